"""What the screen is made of: events as they are shown, and lines of styled text."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..model import Row

Position: TypeAlias = tuple[int, int]  # time and id: where an event stands in the order of events


class Item(NamedTuple):
    """What one line shows: an event; or, `closed`, a call together with its outcome (the event that ended
    it; None: it is still running, or the outcome has not been read)."""

    row: Row
    closed: bool = False
    outcome: Row | None = None

    @property
    def position(self) -> Position:
        return self.row[2], self.row[0]


class Line(NamedTuple):
    """Printable text of any length, and [start, end) of its parts that have a style, in order. The first
    `fixed` characters stay where they are when the others are scrolled sideways."""

    text: str
    spans: tuple[tuple[int, int, str], ...] = ()
    fixed: int = 0
