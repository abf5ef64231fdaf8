"""A recording with lines and variables, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from handmade import DELETED, Handmade, event, instance

HOSTILE = 'x\x1b[31m"\u202e\\'  # the name of a variable
VARIABLES = ["user", "items", "total", HOSTILE]
MAIN, PAY, UNKNOWN = 1, 2, 77


def write_lines(path: Path, directory: str = "/home/me", repeat: int = 1) -> None:
    """main calls pay so often; then come lines of a function without a definition."""
    with Handmade(path) as database:
        run = database.run(directory=directory, features=3)
        database.code(run, MAIN, "main", file="app.py", variables=["order", "paid"], mine=True)
        database.code(run, PAY, "pay", ["user"], file="app.py", line=10, variables=VARIABLES, mine=True)
        database.type(run, 1, "app.Order", ["total"])
        order = instance(1, 0x7F00, 3)
        pay = [
            event("call", PAY, "bob", time=10),
            # a key frame: nothing has changed
            event("line", PAY, "bob", "secret", time=10, line=11, variables=[0, 2], changed=0),
            event("line", PAY, 3, ["tea"], "bob", time=10, line=12, variables=[2, 1, 0], changed=2),
            event("line", PAY, DELETED, time=10, line=13, variables=[0]),
            event("line", PAY, "a\nb", None, time=10, line=13, variables=[3, 99]),
            event("return", PAY, 3, time=10, elapsed=50),
        ]
        records: Sequence[object] = [
            event("call", MAIN, time=10),
            event("line", MAIN, time=10, line=2),
            *pay * repeat,
            event("line", MAIN, order, 3, time=10, line=3, variables=[0, 1]),
            event("return", MAIN, None, time=10, elapsed=30 + 60 * repeat),
            event("call", UNKNOWN, time=10),
            event("line", UNKNOWN, 1, time=10, line=5, variables=[0]),
            event("line", UNKNOWN, 2, time=10, line=6),
        ]
        database.segment(run, records)  # type: ignore[arg-type]
