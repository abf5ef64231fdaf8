"""Slow calls: the longest of a function, and those that took far longer than is usual for their
function. The database thread calls the questions.

Usual is the median of a function's calls. The *excess* of a call is the time by which it took
longer than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..query import Query
from ..rows import text
from .hot import Function, Times

if TYPE_CHECKING:
    from ..database import Database

_MOST = 64  # calls that are ranked
_ENOUGH = 16  # if there are fewer, less slow ones are ranked, too
_PAGE = 20_000  # calls that are looked at together
_UNUSUAL = 3  # times the median, at least
_LEAST = 1000  # ns of excess
_ENDS = "kind IN ('return', 'exception')"
_IMPORTS = ("importlib", "importlib._bootstrap", "importlib._bootstrap_external", "zipimport")


class Slow(NamedTuple):
    """A slow call: the id of the event that ended it, its duration and what is usual, in ns (None:
    not known); its function."""

    id: int
    duration: int
    usual: int | None
    function: Function


class SlowCalls:
    """Slow calls, the worst first, and the one of them that we are at. subject: what they are of;
    whole: they are of all functions."""

    def __init__(self, subject: object, calls: list[Slow], whole: bool) -> None:
        self.subject, self.calls, self.whole = subject, calls, whole
        self.at = -1

    def step(self, steps: int) -> Slow | None:
        """The call so many further on; None: there are no more."""
        at = self.at + steps
        if not 0 <= at < len(self.calls):
            return None
        self.at = at
        return self.calls[at]


class _Ended(NamedTuple):
    """A call that has ended. excess: over what is usual."""

    id: int
    duration: int
    time: int  # of its end
    pid: int
    tid: int
    depth: int
    function: Function
    task: bytes
    excess: int

    def contains(self, other: _Ended) -> bool:
        """The other call was made within this one."""
        return (
            (self.pid, self.tid, self.task) == (other.pid, other.tid, other.task)
            and self.depth < other.depth
            and self.time >= other.time
            and self.time - self.duration <= other.time - other.duration
        )


def longest(database: Database, query: Query, function: Function, times: Times) -> list[Slow]:
    """The longest calls of a function, among the events of a query."""
    wanted = query.also("event MATCH ?", f"(and {_of(function)})")
    least, count = (times.longest or 0) // 2, min(times.calls, _MOST)
    while True:
        found = _ended(database, wanted, least, lambda _: 0, lambda call: call.duration)
        if len(found) >= count or least < _LEAST:
            return [Slow(call.id, call.duration, times.median, function) for call in found[:_MOST]]
        least //= 8


def ranked(database: Database, query: Query, usual: Mapping[Function, Times]) -> list[Slow]:
    """The calls among the events of a query that exceed most what is usual for their function.

    Left out are imports and what they call, and calls that are slow only because of one that they
    contain: without it their excess would be less than half.
    """
    at_most = {function: _most(times) for function, times in usual.items() if not _imports(function)}
    functions = sorted((each for each in at_most if at_most[each] >= _LEAST), key=lambda each: -at_most[each])
    functions = functions[:_MOST]
    if not functions:
        return []
    # each function has a call with its largest excess: so many calls have at least the last one's
    least, is_lowered = at_most[functions[-1]], True
    while True:
        calls = _exceeding(database, query, usual, functions, least // 2)
        if len(calls) == _PAGE:  # the calls behind are not needed
            least, is_lowered = max(calls[_MOST].excess, least + 1), False
            continue
        found = _worst(database, calls[: 8 * _MOST], usual, least)
        if len(found) >= _ENOUGH or least < _LEAST or not is_lowered:
            return found
        least //= 8


def _exceeding(
    database: Database,
    query: Query,
    usual: Mapping[Function, Times],
    functions: Sequence[Function],
    least: int,
) -> list[_Ended]:
    """The calls of some functions with this excess at least, the worst first."""
    medians = {function: usual[function].median or 0 for function in functions}
    conditions = (_unusual(function, median, least) for function, median in medians.items())
    return _ended(
        database,
        query.also("event MATCH ?", f"(or {' '.join(conditions)})"),
        min(medians.values()) + least,
        lambda function: medians.get(function, 0),
        lambda call: call.excess,
    )


def _worst(
    database: Database, calls: list[_Ended], usual: Mapping[Function, Times], least: int
) -> list[Slow]:
    """Those of the calls that are slow by themselves."""
    found: list[Slow] = []
    for call in calls:
        inner = max((other.excess for other in calls if call.contains(other)), default=0)
        if call.excess >= least and 2 * inner < call.excess and not _is_imported(database, call.id):
            found.append(Slow(call.id, call.duration, usual[call.function].median, call.function))
        if len(found) == _MOST:
            break
    return found


def _most(times: Times) -> int:
    """The largest excess of a function's calls, if that is unusual."""
    if not times.longest or times.median is None or times.longest < _UNUSUAL * times.median:
        return 0
    return times.longest - times.median


def _ended(
    database: Database,
    query: Query,
    least: int,
    usual: Callable[[Function], int],
    rank: Callable[[_Ended], int],
) -> list[_Ended]:
    """The calls of a query that took so many ns at least, the first by rank first; _PAGE of them if
    there may be more."""
    ended = query.also(f"{_ENDS} AND duration >= ?", least)
    rows = database.query(
        "iiiiiibbbib",
        "SELECT id, duration, time, pid, tid, depth, CAST(module AS BLOB), CAST(func AS BLOB),"
        f" CAST(file AS BLOB), line, CAST(task AS BLOB) FROM event WHERE {ended.where} LIMIT {_PAGE}",
        ended.parameters,
    )
    calls = []
    for id, duration, time, pid, tid, depth, module, func, file, line, task in rows:
        function = Function(module, func, file, line)
        excess = duration - usual(function)
        calls.append(_Ended(id, duration, time, pid, tid, depth, function, task, excess))
    calls.sort(key=rank, reverse=True)
    return calls


def _unusual(function: Function, median: int, excess: int) -> str:
    return f"(and {_of(function)} (>= duration {max(_UNUSUAL * median, median + excess)}))"


def _of(function: Function) -> str:
    """The conditions of a predicate on a function's events."""
    names = zip(("module", "qualname", "file"), function[:3], strict=True)
    texts = " ".join(f"(= {field} {_quoted(text(name))})" for field, name in names)
    return f"{texts} (= line {function.line})"


def _quoted(name: str) -> str:
    # no name with a lone surrogate can be asked for: such a function is not found
    name = name.encode("utf-8", "replace").decode()
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _imports(function: Function) -> bool:
    return text(function.func) == "<module>" or text(function.module) in _IMPORTS


def _is_imported(database: Database, event: int) -> bool:
    """Whether an event is within an import."""
    marks = ", ".join(f"'{name}'" for name in _IMPORTS)
    found = database.query(
        "i",
        "SELECT 1 FROM stack(?) JOIN event ON event.id = stack.id"
        f" WHERE func = '<module>' AND module <> '__main__' OR module IN ({marks}) LIMIT 1",
        (event,),
    )
    return bool(found)
