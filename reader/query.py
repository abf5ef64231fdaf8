"""Which events are asked for, and their rows in the order of time, a page at a time.

A page is one query, that begins where the last page ended. So nothing is held open while its lines
are written, however slowly somebody reads them, and memory does not grow with the recording. The first
pages are short, so that the first lines are there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .model import EVENT, Row

if TYPE_CHECKING:
    from .database import Database, Parameter

INDEX_BITS = 18  # an event's id is its segment's id << 18, plus its index there
_FIRST_PAGE, _LARGEST_PAGE = 64, 16384  # rows
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 0.8  # s; rows that were found are handed out then
_FOREVER = float("inf")
_FIRST = -(1 << 63)  # ns; no event is as early
_DEEPEST = 1 << 31  # calls


T = TypeVar("T")


class Query(NamedTuple):
    """A condition on events: `SELECT ... FROM event WHERE {where}`."""

    where: str
    parameters: tuple[Parameter, ...]

    def also(self, where: str, *parameters: Parameter) -> Query:
        """Events that meet one more condition."""
        if self.where == "1":
            return Query(where, parameters)
        if where == "1":
            return self
        return Query(f"{self.where} AND {where}", (*self.parameters, *parameters))

    # OR of two columns in SQL would be two scans, and a sort

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
    """What is made of the events that meet a condition, in the order of time and id; at most `limit`.

    Those that are stored while this goes on come too, where they are later than what was there.
    """
    sql = f"SELECT {EVENT} FROM event WHERE {query.where} AND time >= ? ORDER BY time, id"
    size, wait = _FIRST_PAGE, _FIRST_WAIT
    after = None
    left = limit
    ended = left == 0
    while not ended:
        most = size if left is None else min(size, left)
        parameters = (*query.parameters, after[0] if after else _FIRST)
        made, after, ended, _ = database.page(sql, parameters, make, most, wait, after)
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


def stack(database: Database, event: int, where: str = "1", *parameters: Parameter) -> list[Row]:
    """The events that began the calls that are open at an event, the outermost first. where: only some of
    them, by `stack.depth`."""
    sql = f"SELECT {EVENT} FROM stack(?) JOIN event ON event.id = stack.id WHERE {where} ORDER BY stack.depth"
    return rows(database, sql, (event, *parameters), _DEEPEST)


def neighbours(database: Database, event: Row, count: int) -> tuple[list[Row], list[Row]]:
    """At most `count` events of its thread before an event, and as many after it, in the order of time."""
    id, run, time, pid, tid, *_ = event
    thread = Query("run = ? AND pid = ? AND tid = ?", (run, pid, tid))
    earlier = thread.before(time, id)
    sql = f"SELECT {EVENT} FROM event WHERE {earlier.where} ORDER BY time DESC, id DESC"
    before = rows(database, sql, earlier.parameters, count)
    sql = f"SELECT {EVENT} FROM event WHERE {thread.where} AND time >= ? ORDER BY time, id"
    after = database.page(sql, (*thread.parameters, time), as_it_is, count, _FOREVER, (time, id)).made
    return before[::-1], after


def rows(database: Database, sql: str, parameters: Sequence[Parameter], limit: int) -> list[Row]:
    """The first rows of a statement that selects EVENT, at most so many."""
    return database.page(sql, parameters, as_it_is, limit, _FOREVER).made


def as_it_is(row: Row) -> Row:
    """What is made of a row that is wanted itself."""
    return row
