"""Calls as bars along the time: the questions of the lanes. The database thread calls them.

Only calls that are at least as long as a cell of the screen are asked for. So the summaries of
segments rule out most of a large recording, however much of it is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..query import stack
from ..rows import Placed, Row, Source, level_of, text
from ..stretches import ALL, MINE, NEAR, Scope, is_hidden
from ..waits import off_processor
from . import navigation
from .view import LEAVES, placed

if TYPE_CHECKING:
    from ..database import Database

_BARS = 4000  # the longest ones; and open ones, of all threads
_LANES = 64  # threads whose open calls are looked for
_MARGIN = 20  # the part of a call's duration that is shown before and behind it
_LEAST = 1000  # ns that are shown


class Lane(NamedTuple):
    """A thread of a process; or a task in it, by its name as stored."""

    pid: int
    tid: int
    task: bytes = b""


class Bar(NamedTuple):
    """A call: its function, and its time in ns; `end` is None if it has not ended. id: of the event
    that ended it, or of the one that began it. depth: the number of shown calls around it. library:
    it is of code that is not shown. off: it is no call, but a time off the processor."""

    lane: Lane
    depth: int
    start: int
    end: int | None
    name: str
    failed: bool
    id: int
    library: bool = False
    off: bool = False


class Part(NamedTuple):
    """A part of a run's time, in ns since 1970."""

    start: int
    end: int


def bars(
    run: int, part: Part, least: int, sources: list[Source], scope: Scope = ALL
) -> Callable[[Database], list[Bar]]:
    """A question for the calls of at least so many ns in a part of a run, and for those that are
    open at its end. sources: its threads. scope: the code that is shown; of own code, these are
    also the library functions that it calls."""

    def question(database: Database) -> list[Bar]:
        level = f"coalesce({scope.depth}, depth)"
        calls = " AND event MATCH '(= near 1)'" if scope is not ALL else ""
        library = "mine IS NOT 1" if scope is MINE else "0"
        rows = database.query(
            "iiibibbiibi",
            f"SELECT id, pid, tid, CAST(task AS BLOB), {level}, CAST(module AS BLOB), CAST(func AS BLOB),"
            f" time, duration, CAST(kind AS BLOB), {library} FROM event"
            " WHERE run = ? AND kind IN ('return', 'exception')"
            f" AND duration >= ? AND time BETWEEN ? AND ?{calls} ORDER BY duration DESC LIMIT ?",
            (run, least, part.start, part.end, _BARS),
        )
        found = [
            Bar(
                Lane(pid, tid, task), depth, time - took, time, _name(module, func),
                kind == b"exception", id, bool(other),
            )
            for id, pid, tid, task, depth, module, func, time, took, kind, other in rows
        ]  # fmt: skip
        places = [*dict.fromkeys((source.pid, source.tid) for source in sources)]
        if len(places) > _LANES:
            places = _latest(database, run, places, part.end)
        most = _BARS // max(len(places), 1) // 2
        for pid, tid in places:
            found += _open(database, run, pid, tid, part.end, scope, most)
        return found + [
            Bar(Lane(pid, tid), 0, start, end, "", False, 0, off=True)
            for pid, tid, start, end in off_processor(database, run, part.start, part.end, least)
        ]

    return question


def _latest(database: Database, run: int, places: list[tuple[int, int]], time: int) -> list[tuple[int, int]]:
    """Of threads, by process and id, the first one and those with the latest segments at a time."""
    latest = database.query(
        "ii",
        "SELECT coalesce(pid, 0), tid FROM thread LEFT JOIN process"
        " ON process.run = thread.run AND number = process"
        " JOIN (SELECT stream, max(start) AS latest FROM segment INDEXED BY segment_time"
        " WHERE run = ?1 AND start <= (SELECT clock_epoch_units"
        " + CAST((?2 - clock_epoch_ns) * 4294967296.0 / clock_scale AS INTEGER) FROM run WHERE id = ?1)"
        " GROUP BY stream) AS begun ON begun.stream = thread.stream"
        " WHERE thread.run = ?1 ORDER BY latest DESC LIMIT ?3",
        (run, time, _LANES),
    )
    return [places[0], *(place for place in latest if place != places[0])]


def _open(database: Database, run: int, pid: int, tid: int, time: int, scope: Scope, most: int) -> list[Bar]:
    """The calls of a thread that are open at a time: of very many the outermost and the innermost
    ones. A thread without any that is shown has its innermost one."""
    last = database.query(
        "iib",
        "SELECT id, depth, CAST(kind AS BLOB) FROM event WHERE run = ? AND pid = ? AND tid = ? AND time <= ?"
        " ORDER BY time DESC, id DESC LIMIT 1",
        (run, pid, tid, time),
    )
    if not last:
        return []
    ((id, depth, kind),) = last
    deepest = depth - (kind.decode() in LEAVES)  # its own has ended
    inside, outside = "stack.depth <= ?", "(stack.depth < ? OR stack.depth > ?)"
    shown = f" AND {NEAR.is_shown}" if scope is not ALL else ""
    calls = stack(
        database, id, f"{inside} AND {outside}{shown}", deepest, most, deepest - most, place=scope.place
    )
    if not calls and shown:  # a thread of library code alone
        innermost = stack(database, id, "stack.depth = ?", deepest)
        calls = [Placed.of((*call, 0, True)) for call in innermost]
    took = dict(
        database.query(
            "in",
            "SELECT call.id, duration FROM stack(?) JOIN call ON call.id = stack.id"
            f" WHERE {inside} AND {outside} AND duration IS NOT NULL",
            (id, deepest, most, deepest - most),
        )
    )
    return [
        Bar(
            Lane(row[3], row[4], row[14]), level_of(row), row[2],
            row[2] + took[row[0]] if row[0] in took else None,
            _name(row[7], row[8]), False, row[0], is_hidden(row),
        )
        for row in calls
    ]  # fmt: skip


def around(row: Row, whole: Part, scope: Scope = ALL) -> Callable[[Database], tuple[Part, Row]]:
    """A question for the part of the time around an event: that of the shown call that it is in,
    and a little more, or the whole time if it is in none; and for the event, with its place among
    the shown code."""

    def question(database: Database) -> tuple[Part, Row]:
        at = placed(database, row, scope)
        shown = navigation.caller(database, row, scope.is_shown) if scope.is_shown else None
        call = shown or navigation.caller(database, row)
        if call is None:
            return whole, at
        end = navigation.partner(database, call) if call[6] == "call" else None
        start, until = call[2], end[2] if end else whole.end
        margin = max((until - start) // _MARGIN, _LEAST // 2)
        start = max(start - margin, whole.start)
        return Part(start, max(min(until + margin, whole.end), start + _LEAST)), at

    return question


def _name(module: bytes, func: bytes) -> str:
    name = text(func)
    return f"{text(module)}.{name}" if name == "<module>" else name
