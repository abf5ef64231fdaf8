"""Whose code is shown, and stretches: the events of a thread between two of that code. The screen
and `pytrace print --mine` show each as one line, and ask here what it holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .query import INDEX_BITS, Query
from .render import duration
from .rows import EVENT, Placed, Row

if TYPE_CHECKING:
    from .database import Database

_FEW = 100_000  # events of a stretch whose calls are counted ...
_TOGETHER = 300_000  # ... and of all those that are counted at once
_AT_ONCE = 50  # stretches
_FOREVER = float("inf")
_LAST = (1 << 63) - 1
# functions by which an import calls a module, if it calls anything
_IMPORTING = ("find_spec", "find_module", "create_module", "exec_module", "_find_and_load", "__getattr__")


class Scope(NamedTuple):
    """The code that is shown. depth: the column and field that counts its calls around an event.
    stretches, events: for `event MATCH`: its events, with and without the first one of each stretch
    of others."""

    name: str
    depth: str = "depth"
    stretches: str = ""
    events: str = ""

    @property
    def is_shown(self) -> str:
        """A condition in SQL: it is such code."""
        return f"event.{self.name} IS 1" if self.events else ""

    @property
    def place(self) -> str:
        """The columns of Placed."""
        depth = f"coalesce(event.{self.depth}, event.depth)"
        return f"{depth}, NOT ({self.is_shown} OR event.kind = 'lost')" if self.events else ""


MINE = Scope("mine", "own_depth", "(shown own)", '(or (= mine 1) (= kind "lost"))')
NEAR = Scope("near", "near_depth", "(shown near)", '(or (= near 1) (= kind "lost"))')
ALL = Scope("all")


class Stretch(NamedTuple):
    """A stretch of other code. last: the id before that of the next event that is shown; calls:
    those made by the shown code; modules: of which it runs the code, if it is nothing but imports.
    None: not known, or not counted."""

    last: int | None = None
    events: int | None = None
    took: int | None = None  # ns
    calls: int | None = None
    modules: int | None = None

    @property
    def line(self) -> str:
        return f"⋯ {self._holds()}"

    def _holds(self) -> str:
        took = "" if self.took is None else f", {duration(self.took)}"
        if self.modules:
            return f"imports {_count(self.modules, 'module')}{took}"
        parts = []
        if self.calls:
            parts.append(_count(self.calls, "library call"))
        if self.events is not None:
            parts.append(_count(self.events, "event" if self.calls else "library event"))
        return (", ".join(parts) or "library code") + took


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def read(database: Database, firsts: Sequence[tuple[Row, Row | None]], shown: str) -> dict[int, Stretch]:
    """Stretches by the ids of their first events. firsts: these, and the next event of the thread
    that is shown, if it is known; shown: asks for such events (`event MATCH`)."""
    found: dict[int, Stretch] = {}
    for start in range(0, len(firsts), _AT_ONCE):
        counted: list[tuple[Row, int]] = []
        room = _TOGETHER
        for first, following in firsts[start : start + _AT_ONCE]:
            end = following or _following(database, first, shown)
            if end is None:  # its calls are not counted: it may grow, and is then read again
                last, time = _last(database, first)
                before, took = _events(database, first[0], last), time - first[2]
                found[first[0]] = Stretch(None, None if before is None else before + 1, took or None)
                continue
            events = _events(database, first[0], end[0])
            found[first[0]] = Stretch(end[0] - 1, events, end[2] - first[2])
            if events is not None and events <= min(_FEW, room):
                room -= events
                counted.append((first, end[0] - 1))
        for id, calls, modules in _calls(database, counted):
            found[id] = found[id]._replace(calls=calls, modules=modules)
    return found


def with_following(rows: Sequence[Row]) -> list[tuple[Row, Row | None]]:
    """The first events of stretches among events that follow each other; for `read`."""
    made: list[tuple[Row, Row | None]] = []
    following: dict[tuple[int, int, int], Row] = {}
    for row in reversed(rows):
        thread = row[1], row[3], row[4]
        if is_hidden(row):
            made.append((row, following.get(thread)))
        following[thread] = row
    return made[::-1]


def is_hidden(row: Row) -> bool:
    """The event is of other code than is shown."""
    return isinstance(row, Placed) and row.hidden


def _following(database: Database, first: Row, shown: str) -> Row | None:
    thread = Query("run = ? AND pid = ? AND tid = ?", (first[1], first[3], first[4]))
    place = first[2], first[0]
    query = thread.also("time >= ? AND event MATCH ?", first[2], shown)
    sql = f"SELECT {EVENT} FROM event WHERE {query.where} ORDER BY time, id"
    made = database.page(sql, query.parameters, query.row, 1, _FOREVER, place).made
    return made[0] if made else None


def _last(database: Database, first: Row) -> tuple[int, int]:
    """Id and time of the newest event of a thread."""
    newest = database.query(
        "ii",
        "SELECT id, time FROM event WHERE run = ? AND pid = ? AND tid = ? AND time >= ?"
        " ORDER BY time DESC, id DESC LIMIT 1",
        (first[1], first[3], first[4], first[2]),
    )
    return newest[0] if newest else (first[0], first[2])


def _events(database: Database, first: int, end: int) -> int | None:
    """The number of events of a thread from one on until before another; None: the first ones have
    been removed."""
    segment, last = first >> INDEX_BITS, end >> INDEX_BITS
    if segment == last:
        return end - first
    found = database.query("iiii", "SELECT start, run, stream, count FROM segment WHERE id = ?", (segment,))
    if not found:
        return None
    start, run, stream, count = found[0]
    ((between,),) = database.query(
        "i",
        "SELECT coalesce(sum(count), 0) FROM segment INDEXED BY segment_time WHERE run = ? AND stream = ?"
        " AND start BETWEEN ? AND (SELECT start FROM segment WHERE id = ?) AND id NOT IN (?, ?)",
        (run, stream, start, last, segment, last),
    )
    inside = (1 << INDEX_BITS) - 1
    return int(max(count - (first & inside), 0) + between + (end & inside))


def _calls(database: Database, stretches: list[tuple[Row, int]]) -> list[tuple[int, int, int | None]]:
    """Of each stretch (its first event, and an id that no later one has) the id, the calls that the
    shown code makes, and the modules that it imports."""
    if not stretches:
        return []
    by_thread: dict[tuple[int, int], list[tuple[int, int]]] = {}  # id and depth of each first event
    for first, _ in sorted(stretches, key=lambda stretch: stretch[0][0]):
        by_thread.setdefault((first[3], first[4]), []).append((first[0], first[11]))
    calls, modules, others = Counter[int](), Counter[int](), Counter[int]()
    wanted = " ".join(
        f"(and (between id {first[0]} {last}) (= pid {first[3]}) (= tid {first[4]})"
        f' (or (<= depth {first[11]}) (= qualname "<module>")))'
        for first, last in stretches
    )
    low, high = min(first[0] for first, _ in stretches), max(last for _, last in stretches)
    found = database.query(
        "iiiib",
        "SELECT id, pid, tid, depth, CAST(func AS BLOB) FROM event"
        " WHERE id BETWEEN ? AND ? AND kind = 'call' AND event MATCH ?",
        (low, high, f"(or {wanted})"),
    )
    for id, pid, tid, depth, func in found:
        firsts = by_thread[pid, tid]
        begun, outermost = firsts[bisect_right(firsts, (id, _LAST)) - 1]
        name = func.decode(errors="replace").rpartition(".")[2]
        modules[begun] += name == "<module>"
        if depth <= outermost:
            calls[begun] += 1
            others[begun] += name != "<module>" and name not in _IMPORTING
    return [
        (first[0], calls[first[0]], None if others[first[0]] else modules[first[0]] or None)
        for first, _ in stretches
    ]
