"""Queries for events, and their rows in the order of time, a page at a time.

A page is one query, which begins where the last page ended. So no query is open while its lines are
written, however slowly somebody reads them, and memory does not grow with the recording. The first
pages are short, so that the first lines come at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .rows import EVENT, Placed, Row

if TYPE_CHECKING:
    from .database import Database, Parameter

INDEX_BITS = 18  # an event's id is its segment's id << 18, plus its index there
_FIRST_PAGE, _LARGEST_PAGE = 64, 16384  # rows
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 0.8  # s, until found rows are handed out
_FOREVER = float("inf")
_FIRST = -(1 << 63)  # ns; no event is as early
_DEEPEST = 1 << 31  # calls


T = TypeVar("T")


class Query(NamedTuple):
    """A condition on events: `SELECT ... FROM event WHERE {where}`. place: the columns that Placed
    has besides EVENT; "": rows are as they are."""

    where: str
    parameters: tuple[Parameter, ...]
    place: str = ""

    def also(self, where: str, *parameters: Parameter) -> Query:
        """Events that meet one more condition."""
        if self.where == "1":
            return Query(where, parameters, self.place)
        if where == "1":
            return self
        return Query(f"{self.where} AND {where}", (*self.parameters, *parameters), self.place)

    @property
    def columns(self) -> str:
        """The columns to be selected, of which `row` makes a row."""
        return f"{EVENT}, {self.place}" if self.place else EVENT

    @property
    def row(self) -> Callable[[Any], Row]:
        return Placed.of if self.place else as_it_is

    # (OR of two columns in SQL would need two scans, and a sort.)

    def behind(self, time: int, id: int) -> Query:
        """Events that come after this place, in the order of time and id."""
        return self.also("time >= ? AND event MATCH ?", time, f"(or (> time {time}) (> id {id}))")

    def before(self, time: int, id: int) -> Query:
        """Events that come before this place."""
        return self.also("time <= ? AND event MATCH ?", time, f"(or (< time {time}) (< id {id}))")


EVERY = Query("1", ())


def pages(
    database: Database, query: Query, make: Callable[[Row], T], limit: int | None = None
) -> Iterator[list[T]]:
    """Pages of the events that meet a condition, in the order of time and id; at most `limit`
    events. The elements are results of `make`.

    Events that are stored meanwhile come, too, if they are later than the present place.
    """
    sql = f"SELECT {query.columns} FROM event WHERE {query.where} AND time >= ? ORDER BY time, id"
    placed = (lambda columns: make(query.row(columns))) if query.place else make
    size, wait = _FIRST_PAGE, _FIRST_WAIT
    after = None
    left = limit
    ended = left == 0
    while not ended:
        most = size if left is None else min(size, left)
        parameters = (*query.parameters, after[0] if after else _FIRST)
        made, after, ended, _ = database.page(sql, parameters, placed, most, wait, after)
        if made:
            yield made
        if left is not None:
            left -= len(made)
            ended = ended or left == 0
        size, wait = min(size * 4, _LARGEST_PAGE), min(wait * 2, _LONGEST_WAIT)


def one(database: Database, event: int) -> Row | None:
    """The event of this id."""
    sql = f"SELECT {EVENT} FROM event WHERE id = ?"
    found = rows(database, sql, (event,), 1)
    return found[0] if found else None


def stack(
    database: Database, event: int, where: str = "1", *parameters: Parameter, place: str = ""
) -> list[Row]:
    """The events that entered the calls that are open at an event, the outermost first. where: a
    condition on `stack.depth`, and on `event`. place: as in Query."""
    query = Query(where, (event, *parameters), place)
    joined = "stack(?) JOIN event ON event.id = stack.id"
    sql = f"SELECT {query.columns} FROM {joined} WHERE {where} ORDER BY stack.depth"
    return database.page(sql, query.parameters, query.row, _DEEPEST, _FOREVER).made


def neighbours(database: Database, event: Row, count: int) -> tuple[list[Row], list[Row]]:
    """At most `count` events of the same thread before an event, and after it, in order of time."""
    id, run, time, pid, tid, *_ = event
    thread = Query("run = ? AND pid = ? AND tid = ?", (run, pid, tid))
    earlier = thread.before(time, id)
    sql = f"SELECT {EVENT} FROM event WHERE {earlier.where} ORDER BY time DESC, id DESC"
    before = rows(database, sql, earlier.parameters, count)
    sql = f"SELECT {EVENT} FROM event WHERE {thread.where} AND time >= ? ORDER BY time, id"
    after = database.page(sql, (*thread.parameters, time), as_it_is, count, _FOREVER, (time, id)).made
    return before[::-1], after


def ids_among(database: Database, query: Query, ids: Sequence[int]) -> set[int]:
    """Those of some events that are among the events of a query."""
    marks = ", ".join("?" * len(ids))
    within = query.also(f"id IN ({marks})", *ids)
    found = (
        database.query("i", f"SELECT id FROM event WHERE {within.where}", within.parameters) if ids else []
    )
    return {id for (id,) in found}


def rows(database: Database, sql: str, parameters: Sequence[Parameter], limit: int) -> list[Row]:
    """The first `limit` rows of a statement that selects EVENT."""
    return database.page(sql, parameters, as_it_is, limit, _FOREVER).made


def as_it_is(row: Row) -> Row:
    """The row itself, for callers that make nothing of it."""
    return row
