"""Events that a filter hides, and that are shown nevertheless: the other end of a call that meets
it, on the same line; the events near each match; and one that a jump went to. window.py asks, and
puts them among its items.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..query import Query, ids_among, neighbours
from .view import ENTERS, LEAVES, Item, Position, outcomes, starts

if TYPE_CHECKING:
    from ..database import Database
    from ..rows import Row

MOST_NEAR = 50  # events on each side of a match
T = TypeVar("T")

_KEPT = 3000  # answers
_AT_ONCE = 10  # matches of one question, so that the first answers are seen soon


class Found(NamedTuple):
    """By the ids of matches: the other ends that the filter hides, and the events near, `width` on
    each side. without_end: the matches that have no other end yet."""

    ends: dict[int, Row | None]
    near: dict[int, list[Row]]
    width: int
    without_end: set[int]


class _Answers(Generic[T]):
    """What is known, by the ids of matches. A doubted answer stands until there is a newer one, so
    that lines stay in their rows meanwhile."""

    def __init__(self) -> None:
        self.known: dict[int, T] = {}
        self._doubted: set[int] = set()

    def are_asked_for(self, id: int) -> bool:
        return id not in self.known or id in self._doubted

    def take(self, found: Mapping[int, T]) -> None:
        self.known |= found
        self._doubted -= found.keys()

    def doubt(self, is_old: Callable[[T], bool] = lambda _: True) -> None:
        self._doubted |= {id for id, answer in self.known.items() if is_old(answer)}


class Beside:
    """The answers so far. near: so many events of its thread are shown on each side of a match.
    visited: the event that a jump went to; it goes when the cursor leaves it."""

    def __init__(self) -> None:
        self.near = 0
        self.visited: Row | None = None
        self._ends: _Answers[Row | None] = _Answers()  # hidden other ends
        self._near: _Answers[list[Row]] = _Answers()
        self._without_end: set[int] = set()

    def forget(self) -> None:
        """Other events are matches."""
        self._ends, self._near, self._without_end = _Answers(), _Answers(), set()

    def doubt(self) -> None:
        """The matches have been read anew."""
        self._ends.doubt()
        self._near.doubt()

    def grow(self) -> None:
        """More was recorded: calls without an end may have one by now."""
        for id in self._without_end:
            self._ends.known.pop(id, None)
        self._without_end = set()

    def evict(self, until: int) -> None:
        """Events up to a time (ns) have been removed, if not all of them."""
        self._ends.doubt(lambda row: row is not None and row[2] <= until)
        self._near.doubt(lambda rows: any(row[2] <= until for row in rows))

    def show_near(self, events: int) -> None:
        """So many on each side from now on."""
        self.near = max(min(events, MOST_NEAR), 0)
        self._near = _Answers()

    def among(self, items: Sequence[Item], first: Position | None, last: Position | None) -> list[Item]:
        """Matches together with what is shown beside them. first, last: the ends of what is known
        of the matches; None: there are no more."""
        made = [self._with_end(item) for item in items]
        added = {row[0]: row for item in items for row in self._near.known.get(item.row[0], ())}
        for item in made:  # on the line of the match
            for end in (item.entry, item.outcome):
                added.pop(end[0] if end else 0, None)
        if self.visited is not None:
            added[self.visited[0]] = self.visited
        added = {
            id: row
            for id, row in added.items()
            if (first is None or (row[2], id) >= first) and (last is None or (row[2], id) <= last)
        }
        for id in added.keys() - {item.row[0] for item in items}:
            insort(made, Item(added[id], is_hidden=True), key=lambda item: item.position)
        return made

    def _with_end(self, item: Item) -> Item:
        end = self._ends.known.get(item.row[0])
        if end is None or item.closed:
            return item
        if item.row[6] in ENTERS:
            return item._replace(closed=True, outcome=end)
        return item._replace(closed=True, outcome=item.row, entry=end)

    def unknown(self, items: Iterable[Item]) -> tuple[list[Row], list[Row]]:
        """The next matches of which other ends are to be asked for, and those of which near events
        are."""
        if max(len(self._ends.known), len(self._near.known)) > _KEPT:
            self.forget()
        matches = [item for item in items if not item.is_hidden]
        ends = [
            item.row
            for item in matches
            if item.row[6] in ENTERS + LEAVES
            and self._ends.are_asked_for(item.row[0])
            and (not item.closed or item.row[0] in self._ends.known)  # else it is folded
        ]
        near = [item.row for item in matches if self.near and self._near.are_asked_for(item.row[0])]
        return ends[:_AT_ONCE], near[:_AT_ONCE]

    def take(self, found: Found) -> None:
        """An answer of `read`."""
        self._ends.take(found.ends)
        if found.width == self.near:  # else it is asked for again
            self._near.take(found.near)
        self._without_end |= found.without_end


def read(database: Database, events: Query, ends: Sequence[Row], near: Sequence[Row], count: int) -> Found:
    """The other ends that are not among the events of a query, of each of `ends`; and so many
    events of the same thread before and after each of `near`."""
    found: dict[int, list[Row]] = {}
    own = _other_ends(database, near)
    for row in near:
        other = own.get(row[0])  # it stands on the same line, or is a match itself
        before, after = (
            [each for each in side if other is None or each[0] != other[0]]
            for side in neighbours(database, row, count + 1)
        )
        found[row[0]] = before[-count:] + after[:count]
    around = {row[0]: row for rows in found.values() for row in rows}
    others = _other_ends(database, [*ends, *around.values()])
    shown = ids_among(database, events, [other[0] for other in others.values()])
    hidden = {id: other for id, other in others.items() if other[0] not in shown}
    # an end whose call meets the filter by its other end is on the line of that
    near_of = {
        id: [row for row in rows if row[0] in hidden or row[0] not in others] for id, rows in found.items()
    }
    known = {row[0]: hidden.get(row[0]) for row in ends}
    return Found(known, near_of, count, known.keys() - others.keys())


def _other_ends(database: Database, rows: Iterable[Row]) -> dict[int, Row]:
    """Where calls were left, and where those began that were left, by the ids of the given ends."""
    rows = {row[0]: row for row in rows}.values()
    others = outcomes(database, [row for row in rows if row[6] in ENTERS])
    return others | starts(database, [row for row in rows if row[6] in LEAVES])
