"""`pytrace replay` in a terminal, with the words for what is on its screen, and a program to walk
through."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, TypeAlias

from reader import PYTRACE, Reader

PROGRAM = """\
import _thread


class Order:
    def __init__(self, user):
        self.user = user
        self.items = []

    def add(self, price):
        self.items.append(price)
        return sum(self.items)


def discount(total, rate):
    if rate > 3:
        raise ValueError(f"rate {rate}")
    return total * rate


def work(n):
    order = Order("bob")
    total = 0
    for i in range(n):
        total = order.add(i * 2)
        names = {"i": i, "all": [i, i + 1]}
        try:
            paid = discount(total, i)
        except ValueError as error:
            last = str(error)
    return total


def side(lock):
    s = 0
    for k in range(3):
        s += k
    lock.release()


lock = _thread.allocate_lock()
lock.acquire()
_thread.start_new_thread(side, (lock,))
lock.acquire()
result = work(6)
"""


def line_of(text: str) -> int:
    """The number of the line of PROGRAM that has a text."""
    return next(number for number, line in enumerate(PROGRAM.split("\n"), 1) if text in line)


class Replay(Reader):
    """A replay."""

    def __init__(
        self, arguments: Sequence[object], home: Path, *, begins: bool = True, **options: object
    ) -> None:
        """begins: it shows a screen."""
        super().__init__(arguments, home, command=(*PYTRACE, "replay"), **options)  # type: ignore[arg-type]
        if begins:
            self.settled()

    @property
    def here(self) -> tuple[str, str]:
        """The title of the source, and the status."""
        return self.line(0).split("─")[0].strip(), self.status.strip()

    @property
    def place(self) -> int:
        """The line of the source that is marked."""
        found = re.match(r"\S*?:(\d+)", self.here[0])
        assert found, self.text
        return int(found[1])

    @property
    def _status_row(self) -> int:
        """The last row that begins with a time of the day."""
        times = [row for row in range(self.rows) if re.match(r"\d\d:\d\d:\d\d\.\d{6}", self.line(row))]
        return times[-1] if times else self.rows - 2

    @property
    def variables(self) -> dict[str, str]:
        """Names and values in the pane beside the source, with the sign of news."""
        rows = [line.partition("│")[2] for line in self.lines if "│" in line]
        found = [re.match(r"([* ])\s*[▸▾]? *(.*?) = (.*)", row) for row in rows]
        return {match[1].strip() + match[2]: match[3].split("  ")[0] for match in found if match}

    def break_at(self, text: str) -> Self:
        """Types a breakpoint."""
        self.after("b").type(text).press("enter").settled()
        return self


# The fixture: replays(database, *arguments, rows=, columns=, **environment)
Replays: TypeAlias = Callable[..., Replay]
