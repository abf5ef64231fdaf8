"""The switches of how events are shown. The app keeps one Look, and replaces it to change something."""

from __future__ import annotations

from dataclasses import dataclass

from ..render import duration
from .text import shown

TIMES = ("clock", "date", "start", "off")
# columns that can be sized, and their cells where nothing else is said; of a time, digits are left out
WIDTHS = {"id": 12, "time": 26, "duration": 7, "run": 4, "process": 7, "thread": 20, "file": 30}


_OTHERWISE = str.maketrans(
    {"µ": "u", "…": "...", "│": "|", "↓": "Down", "↑": "Up", "←": "Left", "→": "Right"}
)


@dataclass(frozen=True)
class Look:
    """`thread`, `process` and `run` are None where the column is to be there only if there are several (a
    thread's with tasks, too)."""

    time: str = "clock"  # 09:52:51.860222; `date`: with its day; `start`: +1.860222 after the run's; `off`
    duration: bool = True
    thread: bool | None = None
    process: bool | None = None
    run: bool | None = None
    ids: bool = False
    file: bool = False
    values: bool = True  # of arguments, and what is returned
    sort: bool = False  # arguments by name
    indent: int = 2  # spaces a level
    widths: tuple[tuple[str, int], ...] = ()  # columns that have another one than in WIDTHS; 0: as there
    ascii: bool = False  # for terminals that have nothing else

    def width(self, column: str) -> int:
        """Cells of a column."""
        return dict(self.widths).get(column) or WIDTHS[column]

    def shown(self, text: str) -> str:
        """Recorded text as this terminal may get it."""
        return shown(text, self.ascii)

    def lasting(self, ns: int) -> str:
        """A length of time."""
        return self.own(duration(ns))

    def own(self, text: str) -> str:
        """Text of ours as this terminal has it."""
        return text.translate(_OTHERWISE) if self.ascii else text
