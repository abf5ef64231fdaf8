"""Pages: a query's events from a position on, forwards or backwards; and its event of a number. The
database thread calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..follow import Clock
from ..query import INDEX_BITS, Query, rows
from ..rows import EVENT, Row
from .view import Position

if TYPE_CHECKING:
    from ..database import Database, Page

FOREVER = float("inf")
_STEP = 1.0  # s until the database may go on without this reader
_LATEST = (1 << 63) - 1
_FAR = 200_000  # events; a longer way is counted by segments


def after(
    database: Database,
    query: Query,
    position: Position | None,
    count: int,
    seconds: float = FOREVER,
    enough: int | None = None,
) -> tuple[list[Row], bool]:
    """Events behind a position (None: from the first on), in order, and whether there are no more.

    At most `count`; fewer if they are large, or if the next ones take more than some seconds (once
    there are `enough`: more than a moment).
    """
    page = read_page(database, query, position, count, seconds, enough, backwards=False)
    return page.made, page.ended


def before(
    database: Database,
    query: Query,
    position: Position | None,
    count: int,
    seconds: float = FOREVER,
    enough: int | None = None,
) -> tuple[list[Row], bool]:
    """The nearest events before a position (None: the last ones), in the order of time; see
    `after`."""
    page = read_page(database, query, position, count, seconds, enough, backwards=True)
    return page.made[::-1], page.ended


def is_in(database: Database, query: Query, id: int) -> bool:
    """Whether an event is among those of a query."""
    return find_first(database, query.also("id = ?", id), None) is not None


def skip(database: Database, query: Query, position: Position, count: int) -> Row | None:
    """The `count`-th event behind a position; a negative one: before it. None: there are fewer."""
    if not count:
        return None
    time, id = position
    if abs(count) > _FAR and _is_whole_run(query):
        up_to = (time, id + 1) if count > 0 else (time, id)
        return nth(database, query, earlier(database, query, up_to) + count + (count < 0))
    beyond, order = (query.before(*position), " DESC") if count < 0 else (query.behind(*position), "")
    sql = f"SELECT {EVENT} FROM event WHERE {beyond.where} ORDER BY time{order}, id{order} LIMIT 1 OFFSET ?"
    found = rows(database, sql, (*beyond.parameters, abs(count) - 1), 1)
    return found[0] if found else None


def nth(database: Database, query: Query, number: int) -> Row | None:
    """The event of this number, from 1 on; None: there are fewer.

    Segments that are wholly before the event are not read: a damaged segment counts with the events
    that it should have.
    """
    if number < 1:
        return None
    start = _start_near(database, query, number - 1) if _is_whole_run(query) else None
    if start is not None:
        number -= earlier(database, query, (start, 0))
        query = query.also("time >= ?", start)
    sql = f"SELECT {EVENT} FROM event WHERE {query.where} ORDER BY time, id LIMIT 1 OFFSET ?"
    found = rows(database, sql, (*query.parameters, number - 1), 1)
    return found[0] if found else None


def earlier(database: Database, query: Query, position: Position) -> int:
    """The number of events before a position; counted as in `nth`."""
    before, passed = query.before(*position), 0
    if _is_whole_run(query):
        passed, crossing = _segments_before(database, int(query.parameters[0]), position[0])
        if not crossing:
            return passed
        ranges = [f"(between id {id << INDEX_BITS} {((id + 1) << INDEX_BITS) - 1})" for id in crossing]
        before = before.also("event MATCH ?", f"(or {' '.join(ranges)})")
    sql = f"SELECT count(*) FROM event WHERE {before.where}"
    ((count,),) = database.query("i", sql, before.parameters)
    return passed + int(count)


def _is_whole_run(query: Query) -> bool:
    return query.where == "run = ?"


def _start_near(database: Database, query: Query, most: int) -> int | None:
    """The start of a segment of a run, in ns: the last one with at most so many events before
    it."""
    found = database.query(
        "iiii",
        "SELECT start, clock_epoch_ns, clock_epoch_units, clock_scale FROM (SELECT run, start,"
        " sum(count) OVER (ORDER BY start ROWS UNBOUNDED PRECEDING) - count AS earlier FROM segment"
        " WHERE run = ?) JOIN run ON run.id = run WHERE earlier <= ? ORDER BY start DESC LIMIT 1",
        (query.parameters[0], most),
    )
    return Clock(*found[0][1:]).ns(found[0][0]) if found else None


def _segments_before(database: Database, run: int, time: int) -> tuple[int, list[int]]:
    """How many events are in segments of a run that end before a time (ns), and the segments that
    begin before it, or at it, and do not."""
    clock = database.query(
        "iii", "SELECT clock_epoch_ns, clock_epoch_units, clock_scale FROM run WHERE id = ?", (run,)
    )
    if not clock:
        return 0, []
    epoch_ns, epoch_units, scale = clock[0]
    units = min(max(epoch_units + ((time - epoch_ns) << 32) // max(scale, 1), -_LATEST // 2), _LATEST // 2)
    slack = (1 << 32) // max(scale, 1) + 1  # units within the same ns
    ((passed,),) = database.query(
        "i", 'SELECT coalesce(sum(count), 0) FROM segment WHERE run = ? AND "end" < ?', (run, units - slack)
    )
    crossing = database.query(
        "i",
        'SELECT id FROM segment WHERE run = ? AND start <= ? AND "end" >= ?',
        (run, units + slack, units - slack),
    )
    return passed, [id for (id,) in crossing]


# ---- what they are made of --------------------------------------------------------------------


def read_page(
    database: Database,
    query: Query,
    position: Position | None,
    count: int,
    seconds: float,
    enough: int | None = None,
    *,
    backwards: bool,
) -> Page[Row]:
    """Events behind a position, or before it, the nearest first."""
    made: list[Row] = []
    order = "time DESC, id DESC" if backwards else "time, id"
    while True:
        rest = query
        if position is not None:
            rest = query.before(*position) if backwards else query.also("time >= ?", position[0])
        sql = f"SELECT {rest.columns} FROM event WHERE {rest.where} ORDER BY {order}"
        wait = min(seconds, _STEP)
        few = max(enough - len(made), 1) if enough else None
        page = database.page(
            sql, rest.parameters, rest.row, count - len(made), wait, position, backwards, few
        )
        made += page.made
        position = page.last
        if page.ended or page.full or (made and seconds != FOREVER):
            return page._replace(made=made)


def find_first(
    database: Database, query: Query, position: Position | None, *, backwards: bool = False
) -> Row | None:
    found = read_page(database, query, position, 1, FOREVER, backwards=backwards).made
    return found[0] if found else None


def position_of(row: Row) -> Position:
    return row[2], row[0]
