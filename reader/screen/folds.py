"""Which calls are shown as one line. Used by the view for its query, and by the browser for its items.

A *span* is what one thread does between entering a function (call; of a generator also resume, throw) and
leaving it (return, exception, yield). Spans have the depth of both events and lie properly inside of each
other, whatever generators do. A closed span is one line: the event that entered it, together with the one
that left it. What is in doubt, because events were lost, is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..model import EVENT, Row
from ..query import INDEX_BITS, one, stack
from ..query import rows as rows_of
from .model import Item

if TYPE_CHECKING:
    from ..database import Database

ENTERS = ("call", "resume", "throw")
LEAVES = ("return", "exception", "yield")
_INSIDE = '(in kind "raise" "log" "lost")'  # of those at a function's depth, what happens in it
_LAST = (1 << 63) - 1
_MOST = 64  # spans opened one by one; each is one more condition on every event
_ROUNDING = 2  # ns

_Thread: TypeAlias = tuple[int, int, int]  # run, pid, tid


class Span(NamedTuple):
    """first: id of the event that entered the function. last: id of the one that left it; or, not `whole`,
    that one was lost, and this is the next one outside; None: still running. Within a thread, ids rise."""

    run: int
    pid: int
    tid: int
    depth: int
    first: int
    last: int | None
    whole: bool = True

    def covers(self, thread: _Thread, id: int) -> bool:
        """An event of this id in this thread is in the span, or begins or ends it."""
        return thread == self[:3] and self.first <= id <= (_LAST if self.last is None else self.last)


def _thread(row: Row) -> _Thread:
    return row[1], row[3], row[4]


def _belong(begin: Row, end: Row) -> bool:
    """Whether these, with nothing outside of the span between them, are its first and its last event."""
    # while records were dropped, a span may have ended, and another one begun at its depth
    _, _, began, _, _, _, kind, *function, _, _, _ = begin
    _, _, ended, _, _, _, left, *same, duration, _, _ = end
    if kind not in ENTERS or left not in LEAVES or function != same:
        return False
    if duration is None or (left != "yield" and kind != "call"):  # it is the time since the call
        return True
    return abs(ended - duration - began) <= _ROUNDING


@dataclass(frozen=True)
class Folds:
    """level: spans of this depth and deeper ones are closed, but for `opened` ones; None: only `closed`
    ones are. Both by the id of their first event. A value: methods return another one."""

    level: int | None = None
    opened: Mapping[int, Span] = field(default_factory=dict, hash=False)
    closed: Mapping[int, Span] = field(default_factory=dict, hash=False)

    @property
    def is_open(self) -> bool:
        """Nothing is folded."""
        return self.level is None and not self.closed

    def is_closed(self, row: Row) -> bool:
        """This event enters a closed span: it is shown as one line."""
        return row[6] in ENTERS and self._closes(row[0], row[11])

    def _closes(self, first: int, depth: int) -> bool:
        by_level = self.level is not None and depth >= self.level and first not in self.opened
        return by_level or first in self.closed

    # ---- opening and closing ----

    def open(self, span: Span) -> Folds:
        """Shows what is directly in a span; the ones in it are closed as far as the level says so."""
        closed = {id: other for id, other in self.closed.items() if id != span.first}
        if self.level is not None and span.depth >= self.level:
            return replace(self, opened={**self.opened, span.first: span}, closed=closed)
        return replace(self, closed=closed)

    def close(self, span: Span) -> Folds:
        """Shows a span as one line."""
        # what was opened in it would be shown nevertheless
        opened = {id: other for id, other in self.opened.items() if not span.covers(other[:3], id)}
        if self.level is not None and span.depth >= self.level:
            return replace(self, opened=opened)
        return replace(self, opened=opened, closed={**self.closed, span.first: span})

    def at_level(self, level: int | None) -> Folds:
        """Closes all spans of this depth and opens all others; None: opens all."""
        return Folds(level)

    def reveal(self, row: Row, spans: Iterable[Span]) -> Folds:
        """Opens what hides an event. spans: those around it, as `spans` finds them."""
        inside = row[6] not in ENTERS + LEAVES
        hiding = [
            span for span in spans if span.depth < row[11] + inside and self._closes(span.first, span.depth)
        ]
        folds = self
        for span in hiding[: _MOST + 1]:
            folds = folds.open(span)
        if len(hiding) > _MOST or not folds._reaches(row):  # the beginnings of some are not recorded
            return self.at_level(row[11] + inside)
        return folds

    def _reaches(self, row: Row) -> bool:
        """The level, or something opened, goes down to this event."""
        depth = row[11] + (row[6] == "raise")
        return (
            self.level is None
            or depth <= self.level
            or any(
                span.covers(_thread(row), row[0]) and depth <= span.depth + 1 for span in self.opened.values()
            )
        )

    # ---- as conditions ----

    def constraint(self) -> tuple[str, tuple[int, ...]]:
        """A condition in SQL that the events which are shown meet, and that makes a query quick; or ""."""
        if self.level is None:
            return "", ()
        return "depth <= ?", (max([self.level, *[span.depth + 1 for span in self.opened.values()]]),)

    def predicate(self) -> str:
        """For `event MATCH`, together with `constraint`: the events of which lines are made; "": all are."""
        conditions = []
        if self.level is not None:
            opened = _by_thread(self.opened.values(), _shown_in_opened)
            conditions.append(f"(or {' '.join([*_down_to(self.level), *opened])})")
        conditions += [f"(not {hidden})" for hidden in _by_thread(self.closed.values(), _hidden_in_closed)]
        return f"(and {' '.join(conditions)})" if len(conditions) > 1 else "".join(conditions)

    # ---- as lines ----

    def items(self, rows: Sequence[Row], strays: Collection[int] = ()) -> list[Item]:
        """The lines of events that follow each other, in the order of time and id.

        strays: ids of events that leave a function and whose beginning is not recorded (`strays`).
        """
        if self.is_open:
            return [Item(row) for row in rows]
        ends = self._ends(rows)
        merged = {end[0] for end in ends.values()}
        return [
            Item(row, self.is_closed(row), ends.get(row[0]))
            for row in rows
            if row[0] not in merged and (row[0] in strays or not self._leaves_closed(row))
        ]

    def unmatched(self, rows: Sequence[Row]) -> list[Row]:
        """The events that `items` leaves out because they belong to the line of one that is not among the
        rows; ask for the `strays` of these."""
        merged = {end[0] for end in self._ends(rows).values()}
        return [row for row in rows if row[0] not in merged and self._leaves_closed(row)]

    @staticmethod
    def pending(items: Iterable[Item]) -> list[Row]:
        """What entered the closed spans that are without an outcome; ask for `outcomes` of these."""
        return [item.row for item in items if item.closed and item.outcome is None]

    def _ends(self, rows: Sequence[Row]) -> dict[int, Row]:
        """The events that leave closed spans, by the ids of those that entered them."""
        ends: dict[int, Row] = {}
        begun: dict[_Thread, list[Row]] = {}  # closed spans that are open at this row
        for row in rows:
            kind, depth = row[6], row[11]
            spans = begun.setdefault(_thread(row), [])
            # with an event missing, a span may also end by what comes next
            while spans and spans[-1][11] >= depth + (kind not in ENTERS):
                spans.pop()
            if kind in ENTERS and self.is_closed(row):
                spans.append(row)
            elif kind in LEAVES and spans and spans[-1][11] == depth:
                begin = spans.pop()
                if _belong(begin, row):
                    ends[begin[0]] = row
        return ends

    def _leaves_closed(self, row: Row) -> bool:
        """This event is shown on the line of the one that entered the same span, if that is recorded."""
        id, _, _, _, _, _, kind, _, _, _, _, depth, duration, *_ = row
        if kind not in LEAVES or (kind != "yield" and duration is None):  # the beginning was not recorded
            return False
        for span in self.closed.values():
            if id == span.last and span.whole:
                return True
        if self.level is None or depth < self.level:
            return False
        return not any(
            span.depth == depth and (id == span.last or (span.last is None and span.covers(_thread(row), id)))
            for span in self.opened.values()
        )


def _down_to(depth: int) -> tuple[str, str]:
    return f"(< depth {depth})", f'(and (= depth {depth}) (!= kind "raise"))'


def _shown_in_opened(span: Span) -> str:
    last = _LAST if span.last is None else span.last
    return f"(and (between id {span.first} {last}) (or {' '.join(_down_to(span.depth + 1))}))"


def _hidden_in_closed(span: Span) -> str:
    if span.last is not None:
        return f"(between id {span.first + 1} {span.last - 1})"
    deeper = f"(or (> depth {span.depth}) (and (= depth {span.depth}) {_INSIDE}))"
    return f"(and (> id {span.first}) {deeper})"


def _by_thread(spans: Iterable[Span], condition: Callable[[Span], str]) -> Iterator[str]:
    """For each thread, what is true where the condition about one of its spans is."""
    threads: dict[_Thread, list[Span]] = {}
    for span in spans:
        threads.setdefault(span[:3], []).append(span)
    for (_, pid, tid), those in threads.items():
        first = min(span.first for span in those)
        last = max(_LAST if span.last is None else span.last for span in those)
        any_of_them = " ".join(map(condition, those))
        # of most segments, the ids of all spans together tell that none of them has to be looked at
        yield f"(and (between id {first} {last}) (= tid {tid}) (= pid {pid}) (or {any_of_them}))"


# ---- questions ----------------------------------------------------------------------------


def outcomes(database: Database, rows: Sequence[Row]) -> dict[int, Row]:
    """What left the spans that these events enter, by their ids; not where one runs, or its end was lost."""
    ends = [(row, _beyond(database, row, forwards=True)) for row in rows]
    return {row[0]: end for row, end in ends if end and _belong(row, end)}


def strays(database: Database, rows: Sequence[Row]) -> frozenset[int]:
    """The ids of those of these events that leave a span of which the beginning is not in the database."""
    begins = [(row, _beyond(database, row, forwards=False)) for row in rows]
    return frozenset(row[0] for row, begin in begins if not begin or not _belong(begin, row))


def span(database: Database, row: Row) -> Span:
    """The span that an event enters."""
    end = _beyond(database, row, forwards=True)
    whole = end is None or _belong(row, end)
    return Span(*_thread(row), row[11], row[0], end and end[0], whole)


def spans(database: Database, row: Row, folds: Folds) -> list[Span]:
    """The spans around an event that are closed (of more than can be opened, only where they begin)."""
    around = [begin for begin in stack(database, row[0]) if begin[0] < row[0] and folds.is_closed(begin)]
    if len(around) > _MOST:
        return [Span(*_thread(begin), begin[11], begin[0], None) for begin in around]
    return [span(database, begin) for begin in around]


def settled(database: Database, folds: Folds) -> Folds:
    """The same, with the ends of spans that were still running."""

    def settle(spans: Mapping[int, Span]) -> dict[int, Span]:
        rows = {id: one(database, id) for id, each in spans.items() if each.last is None}
        return {id: span(database, row) if (row := rows.get(id)) else each for id, each in spans.items()}

    return replace(folds, opened=settle(folds.opened), closed=settle(folds.closed))


def _beyond(database: Database, row: Row, *, forwards: bool) -> Row | None:
    """The next event of the thread that is not within the span which this event enters (leaves): the one
    that leaves (enters) it, if nothing is missing."""
    id, depth = row[0], row[11]
    later, order = (">", "") if forwards else ("<", "DESC")
    # in any segment that a span fills, more calls are open all the time: most are passed by their summaries
    segments = database.query(
        "i",
        "SELECT other.id FROM segment AS own CROSS JOIN segment AS other INDEXED BY segment_time"
        " WHERE own.id = ? AND other.run = own.run AND other.stream = own.stream AND other.min_depth <= ?"
        f" AND other.start {later}= own.start ORDER BY other.start {order}, other.id {order} LIMIT 64",
        (id >> INDEX_BITS, depth),
    )
    sql = (
        f"SELECT {EVENT} FROM event WHERE id BETWEEN ? AND ? AND id {later} ? AND depth <= ?"
        f" AND event MATCH ? ORDER BY time {order}, id {order} LIMIT 1"
    )
    outside = f"(or (< depth {depth}) (not {_INSIDE}))"
    for (segment,) in segments:
        first = segment << INDEX_BITS
        parameters = (first, first + (1 << INDEX_BITS) - 1, id, depth, outside)
        found = rows_of(database, sql, parameters, 1)
        if found:
            return found[0]
    return None
