"""Places to come back to: the trail of jumps, and marks."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from .view import Position

_MOST = 200  # places each way


class Place(NamedTuple):
    """A place: the view (compared, not looked into), the event under the cursor (None: there was
    none), and its row of the screen."""

    view: Any
    position: Position | None
    row: int | None = None  # if there is room


class Trail:
    """Back and forward through jumps, as in a browser."""

    def __init__(self, most: int = _MOST) -> None:
        self._behind: deque[Place] = deque(maxlen=most)
        self._ahead: deque[Place] = deque(maxlen=most)

    @property
    def latest(self) -> Place | None:
        """The place where the last jump began."""
        return self._behind[-1] if self._behind else None

    def push(self, place: Place) -> None:
        """A jump begins here. Its destination has no way forward."""
        self._ahead.clear()
        if not self._behind or self._behind[-1] != place:
            self._behind.append(place)

    def back(self, current: Place) -> Place | None:
        """The place before; None: this is the first."""
        return _step(current, self._behind, self._ahead)

    def forward(self, current: Place) -> Place | None:
        """The place that `back` came from; None: this is the last."""
        return _step(current, self._ahead, self._behind)


def _step(current: Place, source: deque[Place], target: deque[Place]) -> Place | None:
    while source:
        place = source.pop()
        if place != current:  # a jump that went nowhere
            target.append(current)
            return place
    return None


class Marks:
    """Places with a letter."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}

    def set(self, letter: str, place: Place) -> None:
        """Sets a mark. Raises ValueError if it is no letter."""
        if len(letter) != 1 or not letter.isalpha():
            raise ValueError("a mark is a letter")
        self._places[letter] = place

    def get(self, letter: str) -> Place | None:
        return self._places.get(letter)
