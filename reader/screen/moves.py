"""Ways through a recording: functions that find the event a key goes to. browser.py and actions.py call
them, in the database thread.

Three kinds. Pages (`after`, `before`, `skip`, `nth`) go along the events that a query asks for, the lines
of the screen. `next_...` look for something among the events of a query, as a rule those of run and filter.
All others go by structure, which is the same whatever is shown: the recorded calls of a thread.

An event's depth says which open call it belongs to: a call, its return and all that happens in the
function itself have the same. A generator is entered by its call and each time it is resumed, and left each
time it yields. What was lost is not there to be found: functions that were left unseen count as open
for as long as the depths allow it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..follow import Clock
from ..model import EVENT, Row
from ..query import INDEX_BITS, Query, as_it_is, one, rows
from .folds import ENTERS, LEAVES
from .model import Position

if TYPE_CHECKING:
    from ..database import Database, Page

_FOREVER = float("inf")
_STEP = 1.0  # s until the database may go on without this reader
_LATEST = (1 << 63) - 1
_KINDS_ENTER = '(in kind "call" "resume" "throw")'
_CO_PAUSES = 0x20 | 0x80 | 0x200  # co_flags of generators, coroutines, asynchronous generators
_CO_COROUTINE = 0x80
_CANDIDATES = 100  # events that may be the one asked for, and are told apart here
_FAR = 200_000  # events; a longer way is counted by segments
_FEW, _MANY = 8, 4096  # raised exceptions that are looked at together: at first, and at most
_SLOW_CALLS = 100  # so many calls of a run are slow, at least ...
_EVENTS_FOR_A_SLOW_CALL = 300_000  # ... or one in so many events
_FASTEST = 1000  # ns; what is quicker is never slow


# ---- pages --------------------------------------------------------------------------------


def after(
    database: Database, query: Query, position: Position | None, count: int, seconds: float = _FOREVER
) -> tuple[list[Row], bool]:
    """Events behind a position (None: from the first on), in order, and whether there are no more.

    At most `count`; fewer where they are large, or the next ones do not come within some seconds.
    """
    page = _page(database, query, position, count, seconds, backwards=False)
    return page.made, page.ended


def before(
    database: Database, query: Query, position: Position | None, count: int, seconds: float = _FOREVER
) -> tuple[list[Row], bool]:
    """The same before a position (None: up to the last): the nearest ones, in the order of time."""
    page = _page(database, query, position, count, seconds, backwards=True)
    return page.made[::-1], page.ended


def is_in(database: Database, query: Query, id: int) -> bool:
    """Whether an event is among those of a query."""
    return _first(database, query.also("id = ?", id), None) is not None


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

    Of all events of a run, those in segments that are wholly before it are not read: a damaged one counts
    with what it should have.
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
    """How many events are before a position; counted as in `nth`."""
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
    """The start of a segment of a run, in ns: the last one with at most so many events before it."""
    found = database.query(
        "iiii",
        "SELECT start, clock_epoch_ns, clock_epoch_units, clock_scale FROM (SELECT run, start,"
        " sum(count) OVER (ORDER BY start ROWS UNBOUNDED PRECEDING) - count AS earlier FROM segment"
        " WHERE run = ?) JOIN run ON run.id = run WHERE earlier <= ? ORDER BY start DESC LIMIT 1",
        (query.parameters[0], most),
    )
    return Clock(*found[0][1:]).ns(found[0][0]) if found else None


def _segments_before(database: Database, run: int, time: int) -> tuple[int, list[int]]:
    """How many events are in segments of a run that end before a time (ns), and the segments that begin
    before it, or at it, and do not."""
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


# ---- by structure -------------------------------------------------------------------------


def partner(database: Database, row: Row) -> Row | None:
    """What belongs to an event, across threads where a generator goes on in another.

    call: the return or exception that ended it; None while it runs. return, exception: the call.
    yield: the next time that the generator goes on; resume, throw: where it had yielded. Which of several
    generators of one function an event is of was not recorded: those of the same thread and depth
    go first, and a coroutine stays in its task. Any other event: the one that entered its function.
    """
    kind = row[6]
    if kind == "call":
        return _end_of(database, row)
    if kind in ("return", "exception"):
        return _call_of(database, row)
    if kind == "yield":
        return _pause(database, row, _same_function(row).also("kind IN ('resume', 'throw')"), backwards=False)
    if kind in ("resume", "throw"):
        return _pause(database, row, _same_function(row).also("kind = 'yield'"), backwards=True)
    return _entered(database, row, row[11])


def caller(database: Database, row: Row) -> Row | None:
    """The event that entered the function that called this one; of what happens in a function between
    being entered and left (raise, log, lost): that entered the function."""
    inside = row[6] not in ENTERS and row[6] not in LEAVES
    return _entered(database, row, row[11] if inside else row[11] - 1)


def first_callee(database: Database, row: Row) -> Row | None:
    """The first call that the event's function made since it was entered; its resuming a generator counts."""
    start = own(database, row)
    if start is None:
        return None
    depth = row[11] + 1
    inside = _crossing(row).also("depth <= ? AND event MATCH ?", depth, _enters_or_reaches(row[11]))
    return _at_depth(depth, _first(database, inside, _position(start)))


def last_callee(database: Database, row: Row) -> Row | None:
    """The last call that the event's function made before it was left; its resuming a generator counts."""
    start = own(database, row)
    if start is None:
        return None
    left = row if row[6] in LEAVES else _left(database, start)
    inside = _crossing(row).also("depth > ? AND time >= ?", row[11], start[2])
    last = _first(database, inside, _position(left) if left else None, backwards=True)
    if last is None or _position(last) < _position(start):
        return None
    callee = _entered(database, last, row[11] + 1)  # found without going through what happened inside
    if callee:
        return callee
    begins = inside.also("depth = ? AND event MATCH ?", row[11] + 1, _KINDS_ENTER)
    found = _first(database, begins, _position(last), backwards=True)
    return found if found and _position(found) > _position(start) else None


def next_sibling(database: Database, row: Row) -> Row | None:
    """The next call (or resuming of a generator) by the same caller at the event's depth."""
    around = _crossing(row).also("depth <= ?", row[11])
    left: Row | None = row
    if row[6] not in LEAVES:
        start = own(database, row)
        left = _left(database, start) if start else _first(database, around, _position(row))
    if left is None or left[11] < row[11]:
        return None
    if left[6] in ENTERS:  # the event that left the function is lost
        return left
    around = around.also("event MATCH ?", _enters_or_reaches(row[11] - 1))
    return _at_depth(row[11], _first(database, around, _position(left)))


def previous_sibling(database: Database, row: Row) -> Row | None:
    """The call (or resuming of a generator) before the event's own, by the same caller."""
    around = _crossing(row).also("depth <= ?", row[11])
    left = _first(database, around, _position(own(database, row) or row), backwards=True)
    if left is None or left[11] < row[11]:
        return None
    if left[6] in ENTERS:
        return left
    begun = _entered(database, left, row[11])  # found without going through what happened inside
    if begun:
        return begun
    around = around.also("event MATCH ?", _enters_or_reaches(row[11] - 1))
    return _at_depth(row[11], _first(database, around, _position(left), backwards=True))


def _end_of(database: Database, call: Row) -> Row | None:
    found = database.query("nb", "SELECT duration, CAST(outcome AS BLOB) FROM call WHERE id = ?", (call[0],))
    if not found or found[0][0] is None:
        return None
    lasted, outcome = found[0]
    end = call[2] + lasted  # or a ns more, as both numbers were rounded down
    ended = _same_function(call).also(
        "kind = ? AND time BETWEEN ? AND ? AND duration = ?", outcome.decode(), end, end + 1, lasted
    )
    return _nearest(database, call, ended, backwards=False)


def _call_of(database: Database, end: Row) -> Row | None:
    lasted = end[12]
    if lasted is None:
        return None
    start = end[2] - lasted
    called = _function(end).also(
        "run = ? AND kind = 'call' AND time BETWEEN ? AND ?", end[1], start - 1, start
    )
    # a process forked inside of the call may have ended it, too
    return _nearest(database, end, called.also("pid = ?", end[3]), backwards=True) or _nearest(
        database, end, called, backwards=True
    )


def _pause(database: Database, row: Row, query: Query, *, backwards: bool) -> Row | None:
    """The other end of a pause."""
    task = row[14]
    if task and _has_flags(database, row, _CO_COROUTINE):
        found = _nearest(database, row, query.also(f"task = {_sql(task)}"), backwards=backwards)
        if found:
            return found
    return _nearest(database, row, query, backwards=backwards)


def _nearest(database: Database, row: Row, query: Query, *, backwards: bool) -> Row | None:
    """The nearest one of the same thread and depth among the next events of a query; else the nearest."""
    found = _page(database, query, _position(row), _CANDIDATES, _FOREVER, backwards=backwards).made
    same = (each for each in found if (each[3], each[4], each[11]) == (row[3], row[4], row[11]))
    return next(same, found[0] if found else None)


def _entered(database: Database, row: Row, depth: int) -> Row | None:
    """The event that entered the function that is open at a depth."""
    if depth < 0:
        return None
    found = database.query("i", "SELECT id FROM stack(?) WHERE depth = ?", (row[0], depth))
    return one(database, found[0][0]) if found else None


def own(database: Database, row: Row) -> Row | None:
    """The event that entered the event's own function."""
    if row[6] in ENTERS:
        return row
    found = _entered(database, row, row[11])
    if found is None or (row[6] in LEAVES and found[7:10] != row[7:10]):
        return None  # its beginning was lost
    return found


def _left(database: Database, start: Row) -> Row | None:
    """The event with which, or before which, a function was left that was entered here; None: it is open."""
    if start[6] == "call" and not _has_flags(database, start, _CO_PAUSES):
        end = _end_of(database, start)
        if end and end[3:5] == start[3:5] and end[11] == start[11]:
            return end  # found without going through what happened inside
    return _first(database, _crossing(start).also("depth <= ?", start[11]), _position(start))


def _has_flags(database: Database, row: Row, flags: int) -> bool:
    """Whether the event's function has one of some flags of code objects, or that is not known."""
    sql = f"SELECT flags & ? FROM code WHERE run = ? AND line = ? AND {_function(row).where}"
    found = database.query("i", sql, (flags, row[1], row[10]))
    return not found or any(its for (its,) in found)


def _at_depth(depth: int, row: Row | None) -> Row | None:
    return row if row and row[11] == depth else None


def _enters_or_reaches(depth: int) -> str:
    """A function is entered, or the one that is open at a depth is left."""
    return f"(or {_KINDS_ENTER} (<= depth {depth}))"


# ---- next of something --------------------------------------------------------------------


def next_of_function(database: Database, query: Query, row: Row, backwards: bool) -> Row | None:
    """The next event of the same function: its name, module, file, and where known its line, are the same."""
    wanted = query
    for part in (_function(row), _line(row)):
        wanted = wanted.also(part.where, *part.parameters)
    return _first(database, wanted, _position(row), backwards=backwards)


def next_of_thread(database: Database, query: Query, row: Row, backwards: bool) -> Row | None:
    """The next event of the same thread."""
    thread = _thread(row)
    wanted = query.also(thread.where, *thread.parameters)
    return _first(database, wanted, _position(row), backwards=backwards)


def next_of_value(
    database: Database, query: Query, row: Row, name: str, value: str, backwards: bool
) -> Row | None:
    """The next event with an argument of this name and value, as text; also 'return value' and the like."""
    predicate = f"(any (and (= name {_quoted(name)}) (= value {_quoted(value)})))"
    wanted = query.also(f"event MATCH {_sql(predicate.encode('utf-8', 'surrogatepass'))}")
    return _first(database, wanted, _position(row), backwards=backwards)


def next_exception(database: Database, query: Query, row: Row, backwards: bool) -> Row | None:
    """Where the next exception starts: a `raise`, but not one of an exception that arrives from a function
    called, so that one that passes through twenty functions is found once. One that is thrown into a
    generator starts there; not GeneratorExit, by which a generator is closed."""
    raised, position, count = query.also("kind = 'raise'"), _position(row), _FEW
    while True:
        page = _page(database, raised, position, count, _FOREVER, backwards=backwards)
        arrived = _arrived(database, page.made)
        for each in page.made:
            if each[0] not in arrived:
                return each
        if page.ended:
            return None
        position, count = _position(page.made[-1]), min(count * 8, _MANY)


def next_slow(database: Database, query: Query, row: Row, nanoseconds: int, backwards: bool) -> Row | None:
    """The next end of a call that took at least so long."""
    slow = query.also("kind IN ('return', 'exception') AND duration >= ?", nanoseconds)
    return _first(database, slow, _position(row), backwards=backwards)


def slow_enough(database: Database, run: int) -> int:
    """A duration in ns that some calls of a run reached, a hundred or one in 300,000 events: the
    longest of 1, 2, 5, 10, 20, ... for which that is so; at least a µs."""
    found = database.query(
        "iii",
        "SELECT max(max_duration), sum(count), clock_scale FROM segment JOIN run ON run.id = segment.run"
        " WHERE run.id = ? GROUP BY run.id",
        (run,),
    )
    if not found:
        return _FASTEST
    units, events, scale = found[0]
    longest, calls = units * scale >> 32, max(_SLOW_CALLS, events // _EVENTS_FOR_A_SLOW_CALL)
    exponents = range(len(str(longest)), 2, -1)
    steps = (digit * 10**exponent for exponent in exponents for digit in (5, 2, 1))
    enough = (step for step in steps if step <= longest and _reached(database, run, step, calls))
    return next(enough, _FASTEST)


def _reached(database: Database, run: int, nanoseconds: int, calls: int) -> bool:
    ((count,),) = database.query(
        "i",
        "SELECT count(*) FROM (SELECT 1 FROM event WHERE run = ? AND kind IN ('return', 'exception')"
        " AND duration >= ? LIMIT ?)",
        (run, nanoseconds, calls),
    )
    return bool(count == calls)


def next_loss(database: Database, query: Query, row: Row, backwards: bool) -> Row | None:
    """The next place where events were lost."""
    return _first(database, query.also("kind = 'lost'"), _position(row), backwards=backwards)


def deepest(database: Database, run: int | None) -> int:
    """How many levels of calls a run (None: all runs) has."""
    ((depth,),) = database.query(
        "n", "SELECT max(max_depth) FROM segment WHERE ?1 = 0 OR run = ?1", (run or 0,)
    )
    return 0 if depth is None else depth + 1


def _arrived(database: Database, raised: Iterable[Row]) -> set[int]:
    """The ids of those that did not start where they were raised: in their thread, the event directly
    before says that the same exception left a function, or that a generator is closed."""
    previous = {}
    by_id = {row[0] - 1: row for row in raised if row[0] & ((1 << INDEX_BITS) - 1)}
    if by_id:
        marks = ", ".join("?" * len(by_id))
        sql = f"SELECT {EVENT} FROM event WHERE id IN ({marks}) AND kind IN ('exception', 'throw')"
        previous = {by_id[row[0]][0]: row for row in rows(database, sql, tuple(by_id), len(by_id))}
    for row in raised:
        if not row[0] & ((1 << INDEX_BITS) - 1):  # the first of its segment
            found = _first(database, _thread(row), _position(row), backwards=True)
            if found:
                previous[row[0]] = found
    return {row[0] for row in raised if row[0] in previous and _goes_on(previous[row[0]], row)}


def _goes_on(previous: Row, row: Row) -> bool:
    if previous[13] != row[13]:
        return False
    return previous[6] == "exception" or (previous[6] == "throw" and '"type": "GeneratorExit"' in row[13])


# ---- queries ------------------------------------------------------------------------------


def _page(
    database: Database,
    query: Query,
    position: Position | None,
    count: int,
    seconds: float,
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
        sql = f"SELECT {EVENT} FROM event WHERE {rest.where} ORDER BY {order}"
        wait = min(seconds, _STEP)
        page = database.page(sql, rest.parameters, as_it_is, count - len(made), wait, position, backwards)
        made += page.made
        position = page.last
        if page.ended or page.full or (made and seconds != _FOREVER):
            return page._replace(made=made)


def _first(
    database: Database, query: Query, position: Position | None, *, backwards: bool = False
) -> Row | None:
    found = _page(database, query, position, 1, _FOREVER, backwards=backwards).made
    return found[0] if found else None


def _thread(row: Row) -> Query:
    return Query("run = ? AND pid = ? AND tid = ?", (row[1], row[3], row[4]))


def _crossing(row: Row) -> Query:
    """Events of its thread that enter or leave a function."""
    kinds = "kind IN ('call', 'resume', 'throw', 'return', 'exception', 'yield')"
    return _thread(row).also(kinds)


def _function(row: Row) -> Query:
    _, _, _, _, _, _, _, module, func, file, *_ = row
    return Query(f"func = {_sql(func)} AND module = {_sql(module)} AND file = {_sql(file)}", ())


def _line(row: Row) -> Query:
    """That an event's function begins where this one's does, as far as the events say so."""
    if row[6] in ENTERS or row[6] in LEAVES:
        return Query("event MATCH ?", (f'(or (= line {row[10]}) (in kind "raise" "log"))',))
    return Query("1", ())


def _same_function(row: Row) -> Query:
    """Events of the same function in the same process."""
    return _function(row).also("run = ? AND pid = ? AND line = ?", row[1], row[3], row[10])


def _sql(text: bytes) -> str:
    """A text, whatever bytes it is made of, as SQL."""
    return f"CAST(x'{text.hex()}' AS TEXT)"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _position(row: Row) -> Position:
    return row[2], row[0]
