"""The ways of exceptions: where one was raised, which functions it passed, where it was caught; and
those that nobody caught. The database thread calls these functions.

A recording does not identify exceptions. Two events belong to the same one if type and arguments
are equal, and if one follows from the other: an exception leaves a function, and arrives in the
caller at once. Where other code hands it on (a task to the one that awaits it, a context manager to
its generator, `raise error` in a handler), it is the latest such exception before.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from ..query import INDEX_BITS, Query, ids_among
from ..query import rows as rows_of
from ..render import arguments
from ..rows import BELOW, EVENT, LAYER, Row, text
from .navigation import of_value, own, partner
from .pages import FOREVER, find_first, position_of, read_page
from .view import LEAVES, Position

if TYPE_CHECKING:
    from ..database import Database

# An exception of these types ends a thread, a task or a test as it should end.
ORDERLY = (
    "SystemExit", "GeneratorExit", "StopIteration", "StopAsyncIteration",
    "asyncio.exceptions.CancelledError", "concurrent.futures._base.CancelledError", "trio.Cancelled",
    "unittest.case.SkipTest", "Skipped", "_pytest.outcomes.Skipped", "_pytest.outcomes.XFailed",
)  # fmt: skip
# Functions that catch whatever a thread, a process or a test did not catch: module and name.
_CATCH_ALL = (
    ("threading", "Thread._bootstrap_inner"),
    ("multiprocessing.process", "BaseProcess._bootstrap"),
    ("_pytest.runner", "CallInfo.from_call"),
    ("unittest.case", "_Outcome.testPartExecutor"),
)
_HANDS_ON = ("asyncio.", "concurrent.futures.", "pluggy.")  # they raise an exception of elsewhere
_TASKS = 1  # of segment.kinds
_TOGETHER = 64  # events, beside which others are read with one question
_FEW, _MANY = 8, 4096  # events of one look: at first, and at most
_BESIDE = 256  # ... of those beside one
_FATES = 100  # exceptions that are marked, at most
_NEAR = 64  # events behind a `raise`, within which most functions end
_PASSED_OVER = 4  # events before a `raise` that may not count, and are looked at together
# Beside an event stand those through which exceptions go: no lines, and nothing below Python.
_COUNTS = '(not (or (in kind "line" "event") (in layer "c" "native" "kernel")))'
_INDEX = (1 << INDEX_BITS) - 1


class Uncaught(NamedTuple):
    """An exception that left a thread, a task, a test or the program. raised: the event at which it
    began; left: the one by which it left."""

    raised: Row
    left: Row

    @property
    def in_short(self) -> str:
        """Its type, and the module that raised it."""
        given = arguments(self.raised[13])
        type = given[0]["type"].rpartition(".")[2] if given else "an exception"
        return f"{type} in {text(self.raised[7])}" if self.raised[7] else type


class Fates(NamedTuple):
    """The exceptions that nobody caught, the newest first, as far as they are known. since: of
    exceptions before this time (ns) nothing is known."""

    found: tuple[Uncaught, ...] = ()
    since: float = inf

    def is_uncaught(self, row: Row) -> bool | None:
        """Whether nobody caught the exception of an event; None: it has none, or nothing is
        known."""
        if row[6] not in ("raise", "exception", "throw") or row[2] < self.since:
            return None
        return any(
            row[13] == raised[13] and row[1] == raised[1] and raised[2] <= row[2] <= left[2]
            for raised, left in self.found
        )


def more_fates(database: Database, run: Query, known: Fates, seconds: float = 0.2) -> Fates:
    """One or more exceptions further back. `since` is -inf if there are no more."""
    found, until = [*known.found], time.monotonic() + seconds
    while len(found) < _FATES:
        next_one = uncaught(database, run, found[-1] if found else None)
        if next_one is None:
            return Fates(tuple(found), -inf)
        found.append(next_one)
        if time.monotonic() >= until:
            break
    return Fates(tuple(found), found[-1].raised[2])


# ---- exceptions that nobody caught --------------------------------------------------------


def uncaught(database: Database, run: Query, before: Uncaught | None = None) -> Uncaught | None:
    """The newest exception of a run that left a thread, a task, a test or the program; or the one
    that left before another one. An exception that leaves several of them is found once.

    It left a thread if it left its outermost function, and nothing of the thread comes after, but
    perhaps of a library that prints it; the program, if it left the main module, or all that is
    recorded of the main thread of a process that failed. What catches all
    exceptions of threads, of processes of multiprocessing and of tests is known by name, as is a
    test by its own: `test...` in a module or class of tests. It left a task if the task has ended
    with it. Types that are no failure do not count, such as SystemExit, or CancelledError.
    """
    position = position_of(before.left) if before else None
    ways = [_outermost(database, run, position), _by_name(database, run, position)]
    if _has_tasks(database):
        ways.append(_tasks(database, run, position))
    for left in merge(*ways, key=position_of, reverse=True):
        found = Uncaught(raised(database, left), left)
        if before is None or found.raised[0] != before.raised[0]:
            return found
    return None


def _outermost(database: Database, run: Query, before: Position | None) -> Iterator[Row]:
    """Events by which an exception left the outermost function of a thread, the newest first."""
    after = _Beside(database, backwards=False)
    for row in _each(database, _unexpected(run.also("kind = 'exception' AND depth = 0")), before):
        is_program = row[7:9] == (b"__main__", b"<module>")
        if is_program or (_ends_thread(database, row) and _is_last(database, after, row)):
            yield row


def _ends_thread(database: Database, row: Row) -> bool:
    """Whether an exception may have ended a thread, as it left the outermost function that was
    recorded of it. A main thread's caller may be code that is not recorded, and catch it; it did if
    the process did not fail. A greenlet is no thread: another one gets its exception."""
    if _is_greenlet(database, row):
        return False
    if row[3] != row[4]:
        return True
    status = database.query(
        "n",
        "SELECT exit_status FROM segment JOIN process"
        " ON process.run = segment.run AND process.number = segment.process WHERE segment.id = ?",
        (row[0] >> INDEX_BITS,),
    )
    return status not in ([(0,)], [(None,)])


def _is_greenlet(database: Database, row: Row) -> bool:
    """Whether an earlier stream of the same thread goes on beside the event's own."""
    found = database.query(
        "i",
        "SELECT EXISTS (SELECT 1 FROM segment AS own"
        " JOIN thread ON thread.run = own.run AND thread.stream = own.stream"
        " JOIN thread AS earlier ON earlier.run = own.run AND earlier.stream < own.stream"
        " AND earlier.process = thread.process AND earlier.tid = thread.tid"
        " JOIN segment AS beside ON beside.run = own.run AND beside.stream = earlier.stream"
        ' AND beside."end" > own.start WHERE own.id = ?)',
        (row[0] >> INDEX_BITS,),
    )
    return found == [(1,)]


def _is_last(database: Database, after: _Beside, row: Row) -> bool:
    """Whether nothing of its thread comes after; after own code, no own code."""
    if after(row) is None:
        return True
    if _of_libraries(database, [row]):
        return False
    return find_first(database, _stream(row).also("mine = 1"), position_of(row)) is None


def _by_name(database: Database, run: Query, before: Position | None) -> Iterator[Row]:
    """Events at which an exception arrived in a function that catches all, or left a test."""
    known = " ".join(
        f'(and (= kind "raise") (= module "{module}") (= qualname "{name}"))' for module, name in _CATCH_ALL
    )
    tests = '(like func "test%") (or (like module "%test%") (like qualname "%Test%.%"))'
    ends = run.also("event MATCH ?", f'(or {known} (and (= kind "exception") {tests}))')
    yield from _each(database, _unexpected(ends), before)


def _tasks(database: Database, run: Query, before: Position | None) -> Iterator[Row]:
    """Events by which an exception left the outermost coroutine of a task."""
    after = _Beside(database, backwards=False)
    for row in _each(database, _unexpected(run.also("kind = 'exception' AND task != ''")), before):
        if _left_task(row, after(row)):
            yield row


def _left_task(row: Row, after: Row | None) -> bool:
    return row[14] != b"" and (after is None or after[14] != row[14])


def _has_tasks(database: Database) -> bool:
    found = database.query(
        "i", "SELECT EXISTS (SELECT 1 FROM segment INDEXED BY segment_time WHERE kinds & ?)", (_TASKS,)
    )
    return found == [(1,)]


def _unexpected(query: Query) -> Query:
    types = " ".join(f'"{name}"' for name in ORDERLY)
    return query.also("event MATCH ?", f"(not (any (in type {types})))")


def _each(database: Database, query: Query, before: Position | None) -> Iterator[Row]:
    """The events of a query before a position, the newest first."""
    position, count = before, 1
    while True:
        page = read_page(database, query, position, count, FOREVER, backwards=True)
        yield from page.made
        if page.ended:
            return
        position, count = position_of(page.made[-1]), min(count * _FEW, _MANY)


# ---- the next exception -------------------------------------------------------------------


def next_exception(
    database: Database, query: Query, row: Row, backwards: bool, every: bool = False, ends: bool = False
) -> Row | None:
    """The event at which the next exception starts among the events of a query: the first of its
    way that the query finds. That is a `raise`, unless the exception arrives from a called function
    that the query finds, too: an exception that passes through twenty functions is found once. An
    exception thrown into a generator starts there, except GeneratorExit, which closes it.

    every: also those that never leave the function of a library in which they start. ends: the
    query may find the event by which an exception leaves a function, and not where it starts there.
    """
    kinds = "kind IN ('raise', 'exception')" if ends else "kind = 'raise'"
    raised, position, count = query.also(kinds), position_of(row), _FEW
    after, before = _Beside(database, backwards=False), _Beside(database, backwards=True)
    while True:
        page = read_page(database, raised, position, count, FOREVER, backwards=backwards)
        arrived = _arrived(database, [each for each in page.made if each[6] == "raise"])
        found = ids_among(database, query, [each[0] for each in arrived.values()])
        libraries = set() if every else _of_libraries(database, page.made)
        after.read_ahead([each for each in page.made if each[0] in libraries and each[0] not in arrived])
        for each in page.made:
            last = arrived.get(each[0])
            if last is None and each[6] == "raise":
                is_start = each[0] not in libraries or _leaves(database, after, each)
            elif _type(each) == "GeneratorExit":  # a generator was closed
                is_start = False
            else:
                is_found = last is not None and last[0] in found
                is_start = not is_found and not _is_found_before(database, query, before, each)
            if is_start:
                return each
        if page.ended:
            return None
        position, count = position_of(page.made[-1]), min(count * _FEW, _MANY)


def _is_found_before(database: Database, query: Query, before: _Beside, row: Row) -> bool:
    """Whether a query finds an earlier event of the way of an event's exception."""
    way: list[int] = []
    while source := _source(database, before, row):
        way.append(source[0])
        row = source
    return any(ids_among(database, query, way[at : at + _MANY]) for at in range(0, len(way), _MANY))


def _arrived(database: Database, raised: Iterable[Row]) -> dict[int, Row]:
    """The exceptions that did not start at their `raise`: by its id the event before it in their
    thread, which tells that the same exception left a function, or that a generator is closed.
    Only events that count are looked at."""
    raised = list(raised)
    previous: dict[int, Row] = {}
    by_id = {row[0]: row for row in raised}
    for _ in range(_PASSED_OVER):
        far = {id: row for id, row in by_id.items() if not id & _INDEX}  # the first of its segment
        by_id = {id - 1: row for id, row in by_id.items() if id not in far}
        lines: dict[int, Row] = far
        if by_id:
            marks = ", ".join("?" * len(by_id))
            kinds = '(or (in kind "exception" "throw" "line" "event") (!= layer "python"))'
            sql = f"SELECT {EVENT} FROM event WHERE id IN ({marks}) AND event MATCH '{kinds}'"
            for found in rows_of(database, sql, tuple(by_id), len(by_id)):
                if not _counts(found):
                    lines[found[0]] = by_id[found[0]]
                elif found[6] in ("exception", "throw"):
                    previous[by_id[found[0]][0]] = found
        by_id = lines
    for row in by_id.values():
        before = find_first(database, _counting(_stream(row)), position_of(row), backwards=True)
        if before:
            previous[row[0]] = before
    return {
        row[0]: previous[row[0]] for row in raised if row[0] in previous and _goes_on(previous[row[0]], row)
    }


def _goes_on(previous: Row, row: Row) -> bool:
    if previous[13] != row[13]:
        return False
    return previous[6] == "exception" or (previous[6] == "throw" and '"type": "GeneratorExit"' in row[13])


def _of_libraries(database: Database, rows: list[Row]) -> set[int]:
    """The ids of those events that are not of the user's own code."""
    if not rows:
        return set()
    sql = f"SELECT id FROM event WHERE id IN ({', '.join('?' * len(rows))}) AND mine = 0"
    return {id for (id,) in database.query("i", sql, tuple(row[0] for row in rows))}


def _leaves(database: Database, after: _Beside, row: Row) -> bool:
    """Whether an exception leaves the function of its `raise`."""
    event, depth = after(row), row[11]
    for _ in range(_NEAR):
        if event is None:
            return False
        if event[6] in LEAVES and event[11] <= depth:
            return event[6] == "exception" and event[11] == depth and _is_same(event, row)
        event = after(event)
    left = _left(database, row)
    return left is not None and left[6] == "exception" and left[11] == depth and _is_same(left, row)


def _left(database: Database, row: Row) -> Row | None:
    """The event by which the function was left that an event is in; None: it is open, or its end
    was lost."""
    ends = _stream(row).also("kind IN ('return', 'exception', 'yield') AND depth <= ?", row[11])
    return find_first(database, ends, position_of(row))


# ---- the way of one exception -------------------------------------------------------------


def passing(database: Database, row: Row) -> Row | None:
    """The event itself, if it is on an exception's way; of a call, the exception that ended it."""
    if row[6] == "call":
        end = partner(database, row)
        return end if end is not None and end[6] == "exception" else None
    return row if row[6] in ("raise", "exception", "throw") else None


def raised(database: Database, row: Row) -> Row:
    """The event at which the exception of an event began: a `raise`, or a `throw` of one that comes
    from nowhere; if that was lost, the first event that is there."""
    before = _Beside(database, backwards=True)
    while source := _source(database, before, row):
        row = source
    return row


def caught(database: Database, row: Row) -> tuple[Row, bool]:
    """The last event on the way of an event's exception, and whether it was caught there: a `raise`
    in the function that caught it; else the event by which it left."""
    before, after = _Beside(database, backwards=True), _Beside(database, backwards=False)
    while True:
        following = _following(database, before, after, row)
        if following is None:
            return row, row[6] != "exception"
        row = following


def _source(database: Database, before: _Beside, row: Row) -> Row | None:
    """The event before on the way of an event's exception; None: it began here."""
    last = before(row)
    if last is not None and not _is_same(last, row):
        last = None
    kind, depth = row[6], row[11]
    if kind == "throw":
        if _type(row) in ORDERLY:
            return None  # a generator is closed, a task is cancelled
        if last is not None and last[6] in ("raise", "exception"):
            return last
        return _elsewhere(database, row)
    if kind == "exception":
        if last is not None and last[6] in ("raise", "throw") and last[11] == depth:
            return last
        return _in_function(database, row, "kind IN ('raise', 'throw')")
    # deeper by more than one: functions in C lie between
    if last is not None and (
        (last[6] == "exception" and last[11] > depth) or (last[6], last[11]) == ("throw", depth)
    ):
        return last
    if _hands_on(row):
        handed = _elsewhere(database, row)
        if handed is not None:
            return handed
    again = _in_function(database, row, "kind = 'raise'")
    # the same line: a loop comes by once more
    return again if again is not None and again[10] != row[10] else None


def _following(database: Database, before: _Beside, after: _Beside, row: Row) -> Row | None:
    """The next event on the way of an event's exception; None: it is caught here, or has left."""
    following, depth = after(row), row[11]
    same = following if following is not None and _is_same(following, row) else None
    if row[6] == "exception":
        if same is not None and same[6] == "raise" and same[11] < depth:
            return same
        if not _left_task(row, following):
            return None
        handed = _equal(database, row, _process(row).also("kind IN ('raise', 'throw')"), backwards=False)
        return handed if handed is not None and (handed[6] == "throw" or _hands_on(handed)) else None
    if same is not None and same[11] == depth and same[6] in ("raise", "exception"):
        return same
    left = _left(database, row)
    if left is None or left[6] != "exception" or left[11] != depth or not _is_same(left, row):
        return None
    source: Row | None = left
    while source is not None and position_of(source) > position_of(row):
        source = _source(database, before, source)
    return left if source is not None and source[0] == row[0] else None


def _in_function(database: Database, row: Row, where: str) -> Row | None:
    """The latest event of the same exception in the same run through the function."""
    start = own(database, row)
    if start is None:
        return None
    query = _stream(row).also(f"{where} AND depth = ? AND time >= ?", row[11], start[2])
    return _equal(database, row, query, backwards=True)


def _elsewhere(database: Database, row: Row) -> Row | None:
    """The latest event of an equal exception in the same process."""
    return _equal(database, row, _process(row).also("kind IN ('raise', 'exception')"), backwards=True)


def _equal(database: Database, row: Row, query: Query, *, backwards: bool) -> Row | None:
    """The next event of a query with an equal exception."""
    values = arguments(row[13])
    wanted = query.also(of_value(values[0]["name"], values[0]["value"])) if values else query
    found = find_first(database, wanted, position_of(row), backwards=backwards)
    return found if found is not None and _is_same(found, row) else None


def _is_same(row: Row, other: Row) -> bool:
    return row[13] == other[13]


def _hands_on(row: Row) -> bool:
    return text(row[7]).startswith(_HANDS_ON)


def _type(row: Row) -> str:
    values = arguments(row[13])
    return values[0]["type"] if values else ""


def _process(row: Row) -> Query:
    return Query("run = ? AND pid = ?", (row[1], row[3]))


def _stream(row: Row) -> Query:
    """The events of its thread; numbers of threads are used again."""
    return Query(
        "run = ? AND stream = (SELECT stream FROM segment WHERE id = ?)", (row[1], row[0] >> INDEX_BITS)
    )


def _counts(row: Row) -> bool:
    return row[6] not in ("line", "event") and row[LAYER] not in BELOW


def _counting(query: Query) -> Query:
    return query.also("event MATCH ?", _COUNTS)


class _Beside:
    """For an event the next one of the same thread that counts, or the one before. They are
    read some at a time, so that a long way takes few questions."""

    def __init__(self, database: Database, *, backwards: bool) -> None:
        self._database, self._backwards = database, backwards
        self._known: dict[int, Row | None] = {}
        self._last, self._count = -1, _FEW  # of one way: up to where it is known; to be read next

    def __call__(self, row: Row) -> Row | None:
        id = row[0]
        if id not in self._known:
            self._count = min(self._count * _FEW, _BESIDE) if id == self._last else _FEW
            rows = self._read(id)
            last = id
            for each in rows:
                self._known[last], last = each, each[0]
            if not rows:
                self._known[last] = None
            self._last = last
        return self._known[id]

    def read_ahead(self, rows: Sequence[Row]) -> None:
        """Reads what is next to the first ones of these, with one question."""
        wanted = [row[0] for row in rows if row[0] not in self._known][:_TOGETHER]
        if not wanted:
            return
        ranges = [(max(id - _FEW, 0), id - 1) if self._backwards else (id + 1, id + _FEW) for id in wanted]
        either = " ".join(f"(between id {low} {high})" for low, high in ranges)
        sql = f"SELECT {EVENT} FROM event WHERE id BETWEEN ? AND ? AND event MATCH ?"
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        found = rows_of(self._database, sql, (low, high, f"(or {either})"), _FEW * len(wanted))
        by_id = {row[0]: row for row in found}
        for id, (low, high) in zip(wanted, ranges, strict=True):
            last = id
            for each in range(high, low - 1, -1) if self._backwards else range(low, high + 1):
                following = by_id.get(each)
                if following is None or each >> INDEX_BITS != id >> INDEX_BITS:
                    break
                if _counts(following):
                    self._known[last], last = following, each

    def _read(self, id: int) -> list[Row]:
        """The next events; none: there are no more."""
        segment, count = id >> INDEX_BITS, self._count
        first, last = _ids(segment)
        # the nearest ones first: what is behind them in the segment is not read then
        if self._backwards:
            ranges = [(max(first, id - count), id - 1), (first, id - 1)]
        else:
            ranges = [(id + 1, min(last, id + count)), (id + 1, last)]
        while True:
            for low, high in ranges:
                found = self._between(low, high)
                if found:
                    return found
            beside = self._segment_beside(segment)
            if beside is None:
                return []
            segment, ranges = beside, [_ids(beside)]

    def _between(self, first: int, last: int) -> list[Row]:
        order = " DESC" if self._backwards else ""
        sql = (
            f"SELECT {EVENT} FROM event WHERE id BETWEEN ? AND ? AND event MATCH ?"
            f" ORDER BY time{order}, id{order}"
        )
        return rows_of(self._database, sql, (first, last, _COUNTS), self._count) if first <= last else []

    def _segment_beside(self, segment: int) -> int | None:
        step, order = ("<", "DESC") if self._backwards else (">", "")
        found = self._database.query(
            "i",
            "SELECT other.id FROM segment AS own JOIN segment AS other"
            f" ON other.run = own.run AND other.stream = own.stream AND other.sequence {step} own.sequence"
            f" WHERE own.id = ? ORDER BY other.sequence {order} LIMIT 1",
            (segment,),
        )
        return found[0][0] if found else None


def _ids(segment: int) -> tuple[int, int]:
    """The first and the last id that an event of a segment can have."""
    return segment << INDEX_BITS, (segment + 1 << INDEX_BITS) - 1
