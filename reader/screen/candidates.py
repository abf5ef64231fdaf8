"""The list of what can be completed, above the line of a prompt (prompt.py), while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import Line
from .text import cells, fitted, shown

if TYPE_CHECKING:
    from ..complete import Candidate, Completions

_OFFERED = 50  # so many candidates may not be all that there are
_LEAST = 8  # columns of a candidate


class Candidates:
    """Candidates, of which one is chosen. found: at least one."""

    def __init__(self, found: Completions) -> None:
        self._found = found
        self._chosen = 0
        self._top = 0  # the first that is shown

    @property
    def place(self) -> tuple[int, int]:
        """The part of the text that a candidate takes the place of."""
        return self._found.start, self._found.end

    @property
    def chosen(self) -> str:
        return self._found.candidates[self._chosen].text

    @property
    def count(self) -> int:
        return len(self._found.candidates)

    @property
    def where(self) -> str:
        return f"{self._chosen + 1} of {self.count}"

    def move(self, step: int) -> None:
        """From the last to the first, too, but only by a single step."""
        moved = self._chosen + step
        self._chosen = moved % self.count if abs(step) == 1 else min(max(moved, 0), self.count - 1)

    def choose_shown(self, row: int) -> None:
        """What stands in this row of those that are shown."""
        self._chosen = min(self._top + row, self.count - 1)

    def common(self, typed: str) -> str:
        """What all of them begin with, where it goes on from what was typed; else nothing."""
        texts = [candidate.text for candidate in self._found.candidates]
        first, last = min(texts), max(texts)
        same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        common = first[:same]
        goes_on = len(common) > len(typed) and common.lower().startswith(typed.lower())
        return common if goes_on and self.count < _OFFERED else ""

    def lines(self, width: int, rows: int, ascii: bool) -> list[tuple[Line, bool]]:
        """At most so many, with whether it is the one that is chosen."""
        rows = max(rows, 1)
        self._top = min(max(self._top, self._chosen - rows + 1), self._chosen)
        listed = self._found.candidates[self._top : self._top + rows]
        room = max(width - 4 - max(len(one.kind) for one in listed), _LEAST)
        column = min(max(cells(shown(one.text, ascii)) for one in listed), room)
        return [
            (_line(one, number == self._chosen, column, ascii), number == self._chosen)
            for number, one in enumerate(listed, self._top)
        ]


def worded(text: str, ascii: bool) -> str:
    """Words for people as they may be shown."""
    return shown(text.replace("…", "...") if ascii else text, ascii)


def _line(candidate: Candidate, is_chosen: bool, column: int, ascii: bool) -> Line:
    text = f"{'>' if is_chosen else ' '} {fitted(shown(candidate.text, ascii), column)}"
    rest = f"  {candidate.kind}" + (f"  {worded(candidate.hint, ascii)}" if candidate.hint else "")
    return Line(text + rest, ((len(text), len(text) + len(rest), "dim"),))
