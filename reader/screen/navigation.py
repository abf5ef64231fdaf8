"""Ways through a recording: functions that find the destination of a key. The database thread calls
them.

There are two kinds. `next_...` search among the events of a query, as a rule those of run and
filter. All others follow the structure, which does not depend on the view: the recorded calls of a
thread. pages.py has the ways along the lines of the screen.

An event's depth tells the open call that it belongs to. A call, its return and all events in the
function itself have the same depth. A generator is entered by its call and each resume, and left by
each yield. Lost events cannot be found: a function whose end was lost counts as open for as long as
the depths allow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .. import waits
from ..query import Query, one, stack
from ..rows import Row
from .pages import FOREVER, find_first, position_of, read_page
from .view import ENTERS, LEAVES, outcomes

if TYPE_CHECKING:
    from ..database import Database
    from ..waits import Wait
    from .hot import Line

_KINDS_ENTER = '(in kind "call" "resume" "throw")'
_CO_PAUSES = 0x20 | 0x80 | 0x200  # co_flags of generators, coroutines, asynchronous generators
_CO_COROUTINE = 0x80
_LAYERS = ("python", "cython", "c", "native", "kernel")
_CANDIDATES = 100  # possible answers that are compared here


# ---- by structure -------------------------------------------------------------------------


def partner(database: Database, row: Row) -> Row | None:
    """The partner of an event; in another thread if a generator goes on there.

    call: the return or exception that ended it; None while it runs. return, exception: the call.
    yield: the next resume of the generator; resume, throw: its last yield. A recording does not
    identify generators: among several of one function, those of the same thread and depth go first,
    and a coroutine stays in its task. Any other event: the one that entered its function.
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


class Begun(NamedTuple):
    """The calls by which a generator or coroutine may have begun; is_certain: its end tells which
    one it was."""

    calls: list[Row]
    is_certain: bool = False


def begun(database: Database, entered: Row) -> Begun:
    """The calls by which the generator or coroutine may have begun that goes on here (resume,
    throw). If it ends before it yields again, its end tells when it was called. Else they are the
    calls of its function that had not ended, in the same task if it is a coroutine's; none if there
    are too many to look at, or if events were lost or removed."""
    left = outcomes(database, [entered]).get(entered[0])
    if left is not None and left[6] in ("return", "exception"):
        if left[12] is None:
            return Begun([])
        start = left[2] - left[12]
        return Begun(_calls(database, entered, f"time BETWEEN {start - 1} AND {start}"), True)
    if not any(run.id == entered[1] and not run.lost and not run.evicted for run in database.runs()):
        return Begun([])
    task = entered[14]
    in_task = f" AND task = {_sql(task)}" if task and _has_flags(database, entered, _CO_COROUTINE) else ""
    is_open = f"duration IS NULL OR time + duration >= {entered[2]}"
    return Begun(_calls(database, entered, f"time <= {entered[2]}{in_task}", is_open))


def _calls(database: Database, row: Row, where: str, and_where: str = "1") -> list[Row]:
    """Calls of an event's function in its process; none if there are too many. and_where: a
    condition that takes more than a look at the call."""
    same = _same_function(row)
    sql = f"SELECT id, {and_where} FROM call WHERE {same.where} AND {where} LIMIT ?"
    found = database.query("ii", sql, (*same.parameters, _CANDIDATES + 1))
    if len(found) > _CANDIDATES:
        return []
    calls = (one(database, id) for id, meets in found if meets)
    return [call for call in calls if call is not None]


def caller(database: Database, row: Row, among: str = "") -> Row | None:
    """The event that entered the calling function. For events inside of a function (raise, log,
    lost, line): the event that entered this function. among: the innermost such function."""
    inside = row[6] not in ENTERS and row[6] not in LEAVES
    depth = row[11] if inside else row[11] - 1
    if not among:
        return _entered(database, row, depth)
    around = stack(database, row[0], f"stack.depth <= ? AND {among}", depth)
    return around[-1] if around else None


def first_callee(database: Database, row: Row) -> Row | None:
    """The first call that the event's function made since its entry; resuming a generator
    counts."""
    start = own(database, row)
    if start is None:
        return None
    depth = row[11] + 1
    inside = _crossing(row).also("depth <= ? AND event MATCH ?", depth, _enters_or_reaches(row[11]))
    return _at_depth(depth, find_first(database, inside, position_of(start)))


def last_callee(database: Database, row: Row) -> Row | None:
    """The last call that the event's function made before its end; resuming a generator counts."""
    start = own(database, row)
    if start is None:
        return None
    left = row if row[6] in LEAVES else _left(database, start)
    inside = _crossing(row).also("depth > ? AND time >= ?", row[11], start[2])
    last = find_first(database, inside, position_of(left) if left else None, backwards=True)
    if last is None or position_of(last) < position_of(start):
        return None
    # found without going through the events inside
    callee = _entered(database, last, row[11] + 1)
    if callee:
        return callee
    begins = inside.also("depth = ? AND event MATCH ?", row[11] + 1, _KINDS_ENTER)
    found = find_first(database, begins, position_of(last), backwards=True)
    return found if found and position_of(found) > position_of(start) else None


def next_sibling(database: Database, row: Row) -> Row | None:
    """The next call (or resuming of a generator) by the same caller at the event's depth."""
    around = _crossing(row).also("depth <= ?", row[11])
    left: Row | None = row
    if row[6] not in LEAVES:
        start = own(database, row)
        left = _left(database, start) if start else find_first(database, around, position_of(row))
    if left is None or left[11] < row[11]:
        return None
    if left[6] in ENTERS:  # the event that left the function is lost
        return left
    around = around.also("event MATCH ?", _enters_or_reaches(row[11] - 1))
    return _at_depth(row[11], find_first(database, around, position_of(left)))


def previous_sibling(database: Database, row: Row) -> Row | None:
    """The call (or resuming of a generator) before the event's own, by the same caller."""
    around = _crossing(row).also("depth <= ?", row[11])
    left = find_first(database, around, position_of(own(database, row) or row), backwards=True)
    if left is None or left[11] < row[11]:
        return None
    if left[6] in ENTERS:
        return left
    begun = _entered(database, left, row[11])  # found without going through what happened inside
    if begun:
        return begun
    around = around.also("event MATCH ?", _enters_or_reaches(row[11] - 1))
    return _at_depth(row[11], find_first(database, around, position_of(left), backwards=True))


def last_wait(database: Database, row: Row) -> Wait | None:
    """The last time that a thread waited before an event; of the beginning of a call, the last one
    in it. None: it did not."""
    since, until = None, row
    if row[6] in ENTERS:
        newest = _left(database, row) or find_first(database, _thread(row), None, backwards=True)
        since, until = row[2], newest or row
    out = waits.last(database, until, since)
    return None if out is None else waits.wait(database, out)


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
    """The nearest event of the same thread and depth among the next events of a query; else the
    nearest one."""
    found = read_page(database, query, position_of(row), _CANDIDATES, FOREVER, backwards=backwards).made
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
    """The event that left the function entered here, or the first event after its lost end; None:
    it is open."""
    if start[6] == "call" and not _has_flags(database, start, _CO_PAUSES):
        end = _end_of(database, start)
        if end and end[3:5] == start[3:5] and end[11] == start[11]:
            return end  # found without going through what happened inside
    return find_first(database, _crossing(start).also("depth <= ?", start[11]), position_of(start))


def _has_flags(database: Database, row: Row, flags: int) -> bool:
    """Whether the event's function has one of these flags of code objects, or is unknown."""
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
    """The next event of the same function: same name, module and file, and the same line if
    known."""
    wanted = query
    for part in (_function(row), _line(row)):
        wanted = wanted.also(part.where, *part.parameters)
    return find_first(database, wanted, position_of(row), backwards=backwards)


def next_run(database: Database, query: Query, line: Line, row: Row | None) -> Row | None:
    """The next time that a line ran, after an event; behind the last one, the first."""
    ran = query.also("kind = 'line' AND line = ?", line.line)
    for column in ("func", "module", "file"):
        name = getattr(line, column).encode("utf-8", "surrogatepass")
        ran = ran.also(f"{column} = {_sql(name)}")
    after = find_first(database, ran, position_of(row)) if row is not None else None
    return after or find_first(database, ran, None)


def next_of_thread(database: Database, query: Query, row: Row, backwards: bool) -> Row | None:
    """The next event of the same thread."""
    thread = _thread(row)
    wanted = query.also(thread.where, *thread.parameters)
    return find_first(database, wanted, position_of(row), backwards=backwards)


def next_of_value(
    database: Database, query: Query, row: Row, name: str, value: str, backwards: bool
) -> Row | None:
    """The next event with an argument of this name and value, as text; also 'return value' and the
    like."""
    return find_first(database, query.also(of_value(name, value)), position_of(row), backwards=backwards)


def of_value(name: str, value: str) -> str:
    """A condition: an argument has this name and value; an object is given by type and address."""
    of_name = f"(= name {_quoted(name)})"
    if value.startswith("<"):
        return of_text(value, of_name, '(!= type "str")', exact=True, field="text")
    return of_text(value, of_name, exact=True)


def of_text(value: str, *others: str, exact: bool = False, field: str = "value") -> str:
    """A condition: an argument has this value, or a value like it, and meets other predicates.
    field: `text` has the type and address of an object, even if its attributes are shown."""
    operator = "=" if exact else "like"
    predicate = f"(any (and {' '.join(others)} ({operator} {field} {_quoted(value)})))"
    return f"event MATCH {_sql(predicate.encode('utf-8', 'surrogatepass'))}"


def next_slow(database: Database, query: Query, row: Row, nanoseconds: int, backwards: bool) -> Row | None:
    """The next end of a call that took at least so long."""
    slow = query.also("kind IN ('return', 'exception') AND duration >= ?", nanoseconds)
    return find_first(database, slow, position_of(row), backwards=backwards)


def next_loss(database: Database, query: Query, row: Row, backwards: bool) -> Row | None:
    """The next place where events were lost."""
    return find_first(database, query.also("kind = 'lost'"), position_of(row), backwards=backwards)


def deepest(database: Database, run: int | None) -> int:
    """The number of levels of calls in a run (None: in all runs)."""
    ((depth,),) = database.query(
        "n", "SELECT max(max_depth) FROM segment WHERE ?1 = 0 OR run = ?1", (run or 0,)
    )
    return 0 if depth is None else depth + 1


def layers(database: Database, run: int | None) -> list[str]:
    """The layers of a run's code (None: of all runs), the uppermost first."""
    if not database.has_column("code", "language"):
        return [_LAYERS[0]]
    found = database.query(
        "b", "SELECT DISTINCT CAST(language AS BLOB) FROM code WHERE ?1 = 0 OR run = ?1", (run or 0,)
    )
    recorded = {name.decode(errors="replace") for (name,) in found}
    return [name for name in _LAYERS if name in recorded]


# ---- queries ------------------------------------------------------------------------------


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
    """Events whose function begins in the same line, as far as they tell it."""
    if row[6] in ENTERS or row[6] in LEAVES:
        return Query("event MATCH ?", (f'(or (= line {row[10]}) (in kind "raise" "log" "line"))',))
    return Query("1", ())


def _same_function(row: Row) -> Query:
    """Events of the same function in the same process."""
    return _function(row).also("run = ? AND pid = ? AND line = ?", row[1], row[3], row[10])


def _sql(text: bytes) -> str:
    """A text of any bytes, as SQL."""
    return f"CAST(x'{text.hex()}' AS TEXT)"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
