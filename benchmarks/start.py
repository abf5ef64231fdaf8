"""The time that recording adds to a program that does nothing: `pytrace -q -c pass`."""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.processes import environment, reap
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, PYTRACE, Options


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    rounds = options.rounds or (10 if options.quick else 30)
    times: dict[str, list[float]] = {"python": [], "new database": [], "same database": []}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        commands = {
            "python": list(BARE.command),
            "new database": [word.replace("{scratch}/", f"{scratch}/new-") for word in PYTRACE.command],
            "same database": [word.replace("{scratch}/", f"{scratch}/same-") for word in PYTRACE.command],
        }
        for _ in range(rounds):
            for name, command in commands.items():
                times[name].append(took([*command, "-c", "pass"], scratch))
            for path in Path(scratch).glob("new-*"):
                path.unlink()
    lines = [
        (name, f"{statistics.median(of) * 1e3:.1f}", f"{min(of) * 1e3:.1f}", f"{max(of) * 1e3:.1f}")
        for name, of in times.items()
    ]
    say(table(("-c pass", "median ms", "smallest", "largest"), lines))
    bare = statistics.median(times["python"])
    new, same = ((statistics.median(times[name]) - bare) * 1e3 for name in ("new database", "same database"))
    return [
        Row(
            "`pytrace -q -c pass` over `python -c pass`",
            "150 ms",
            "60 ms",
            f"{new:.0f} ms ({same:.0f} ms again)",
        )
    ]


def took(command: list[str], folder: str) -> float:
    """Seconds until a command has ended; what it leaves behind is waited for, and not counted."""
    start = perf_counter()
    status = subprocess.run(command, cwd=folder, env=environment()).returncode
    end = perf_counter()
    reap()
    if status:
        sys.exit(status)
    return end - start
