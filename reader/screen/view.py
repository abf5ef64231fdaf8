"""A view of a recording: its run and filter, the calls that are folded into one line, and the
resulting items, each of which is one line of the screen.

A *span* has the events of one thread between entering a function (call; of a generator also resume,
throw) and leaving it (return, exception, yield). A span has the depth of both events. Spans are
properly nested, whatever generators do. A closed span is one line: the event that entered it,
together with the one that left it. If events were lost, a doubtful event is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..query import EVERY, INDEX_BITS, Query, ids_among, one, stack
from ..query import rows as rows_of
from ..rows import EVENT, KERNEL, LAYER, Placed, Row, Run, level_of
from ..stretches import ALL, Scope, Stretch, is_hidden
from ..waits import Wait, role

if TYPE_CHECKING:
    from ..database import Database
    from ..filter.tree import Filter


Position: TypeAlias = tuple[int, int]  # time and id: an event's place in the order


class Item(NamedTuple):
    """The content of one line: an event; or, `closed`, a call together with its outcome (the event
    that ended it; None: it is still running, or the outcome has not been read). entry: if the row
    is the outcome, the event that entered the call. is_hidden: a filter hides the event. stretch:
    the row is the first event of a stretch of other code than is shown. wait: the row begins a time
    off the processor."""

    row: Row
    closed: bool = False
    outcome: Row | None = None
    entry: Row | None = None
    is_hidden: bool = False
    stretch: Stretch | None = None
    wait: Wait | None = None

    @property
    def position(self) -> Position:
        return self.row[2], self.row[0]


ENTERS = ("call", "resume", "throw")
LEAVES = ("return", "exception", "yield")
_INSIDE = (
    '(in kind "raise" "log" "lost" "line" "event")'  # events at a function's depth that are inside of it
)
_FOLDED = ("raise", "line", "event")  # of these, those that a level hides with the function
_OF_KERNEL = '(= layer "kernel")'
_LAST = (1 << 63) - 1
_MOST = 64  # spans opened one by one; each is one more condition on every event
_ROUNDING = 2  # ns
_FOREVER = float("inf")

_Thread: TypeAlias = tuple[int, int, int]  # run, pid, tid


class Span(NamedTuple):
    """first: id of the event that entered the function. last: id of the event that left it; if that
    was lost (not `whole`), of the next one outside; None: it still runs. Within a stream, ids rise.

    began, ended: ns. around: events that the kernel tells of the thread, in a stream of their own,
    may be in it, by their times."""

    run: int
    pid: int
    tid: int
    depth: int
    first: int
    last: int | None
    whole: bool = True
    level: int | None = None  # the shown calls around it, if that is not its depth
    began: int = 0
    ended: int | None = None
    around: bool = False

    @property
    def shown_depth(self) -> int:
        return self.depth if self.level is None else self.level

    def covers(self, row: Row) -> bool:
        """An event is in the span, or begins or ends it."""
        if _thread(row) != self[:3]:
            return False
        if self.around and row[LAYER] == KERNEL:
            return self.began <= row[2] <= (_LAST if self.ended is None else self.ended)
        return self.first <= row[0] <= (_LAST if self.last is None else self.last)

    def contains(self, other: Span) -> bool:
        """The other span is this one, or in it."""
        if other[:3] != self[:3]:
            return False
        if self.around and not other.around:
            last = _LAST if self.ended is None else self.ended
            return other.depth > self.depth and self.began <= other.began <= last
        return self.first <= other.first <= (_LAST if self.last is None else self.last)


def _thread(row: Row) -> _Thread:
    return row[1], row[3], row[4]


def _belong(begin: Row, end: Row) -> bool:
    """Whether these are the first and last event of one span; there is no event outside of it
    between them."""
    # while records were dropped, a span may have ended, and another one begun at its depth
    began, kind, function = begin[2], begin[6], begin[7:12]
    ended, left, same, duration = end[2], end[6], end[7:12], end[12]
    if kind not in ENTERS or left not in LEAVES or function != same:
        return False
    if duration is None or (left != "yield" and kind != "call"):  # duration: since the call
        return True
    return abs(ended - duration - began) <= _ROUNDING


@dataclass(frozen=True)
class Folds:
    """level: spans of this depth and deeper ones are closed, except `opened` ones; None: only
    `closed` ones are. Both are by the id of their first event. Folds are a value: methods return a
    new one.

    Levels are depths among the shown code. Only spans of shown code have one; a closed one of other
    code is in an opened stretch.
    """

    level: int | None = None
    opened: Mapping[int, Span] = field(default_factory=dict, hash=False)
    closed: Mapping[int, Span] = field(default_factory=dict, hash=False)

    @property
    def is_open(self) -> bool:
        """Nothing is folded."""
        return self.level is None and not self.closed

    def is_closed(self, row: Row) -> bool:
        """This event enters a closed span: it is shown as one line."""
        return row[6] in ENTERS and self._closes(row[0], _level(row))

    def _closes(self, first: int, depth: int) -> bool:
        by_level = self.level is not None and depth >= self.level and first not in self.opened
        return by_level or first in self.closed

    # ---- opening and closing ----

    def open(self, span: Span) -> Folds:
        """Shows the events directly in a span; the level decides whether spans in it are closed."""
        closed = {id: other for id, other in self.closed.items() if id != span.first}
        if self.level is not None and span.shown_depth >= self.level:
            return replace(self, opened={**self.opened, span.first: span}, closed=closed)
        return replace(self, closed=closed)

    def close(self, span: Span) -> Folds:
        """Shows a span as one line."""
        # else opened spans in it would still be shown
        opened = {id: other for id, other in self.opened.items() if not span.contains(other)}
        if self.level is not None and span.shown_depth >= self.level:
            return replace(self, opened=opened)
        return replace(self, opened=opened, closed={**self.closed, span.first: span})

    def at_level(self, level: int | None) -> Folds:
        """Closes all spans of this depth and opens all others; None: opens all."""
        return Folds(level)

    def reveal(self, row: Row, spans: Iterable[Span]) -> Folds:
        """Opens the spans that hide an event. spans: the closed ones around it, from `spans`."""
        inside = row[6] not in ENTERS  # an end would be on the line of its call
        hiding = [
            span
            for span in spans
            if span.depth < row[11] + inside and self._closes(span.first, span.shown_depth)
        ]
        folds = self
        for span in hiding[: _MOST + 1]:
            folds = folds.open(span)
        if len(hiding) > _MOST or not folds._reaches(row):  # the start of some was not recorded
            return self.at_level(level_of(row) + inside)
        return folds

    def _reaches(self, row: Row) -> bool:
        """The level, or something opened, goes down to this event."""
        depth = level_of(row) + (row[6] in _FOLDED)
        return (
            self.level is None
            or depth <= self.level
            or any(span.covers(row) and depth <= span.shown_depth + 1 for span in self.opened.values())
        )

    # ---- as conditions ----

    # depth: the column and field that counts the calls that are shown.

    def constraint(self, depth: str = "depth") -> tuple[str, tuple[int, ...]]:
        """A condition in SQL that all shown events meet, and that makes a query quick; or ""."""
        if self.level is None:
            return "", ()
        deepest = max([self.level, *[span.shown_depth + 1 for span in self.opened.values()]])
        return f"{depth} <= ?", (deepest,)

    def predicate(self, depth: str = "depth") -> str:
        """For `event MATCH`, together with `constraint`: selects the events that become lines; "":
        all."""
        conditions = []
        if self.level is not None:
            opened = _by_thread(self.opened.values(), partial(_shown_in_opened, depth))
            conditions.append(f"(or {' '.join([*_down_to(depth, self.level), *opened])})")
        conditions += [f"(not {hidden})" for hidden in _by_thread(self.closed.values(), _hidden_in_closed)]
        return f"(and {' '.join(conditions)})" if len(conditions) > 1 else "".join(conditions)

    # ---- as lines ----

    def items(self, rows: Sequence[Row], strays: Collection[int] = ()) -> list[Item]:
        """The lines of events that follow each other, in the order of time and id.

        strays: ids of events that leave a function whose start was not recorded (`strays`).
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
        """The events that `items` leaves out because they belong to the line of one that is not
        among the rows; ask for the `strays` of these."""
        merged = {end[0] for end in self._ends(rows).values()}
        return [row for row in rows if row[0] not in merged and self._leaves_closed(row)]

    @staticmethod
    def pending(items: Iterable[Item]) -> list[Row]:
        """The events that entered closed spans without an outcome; ask for `outcomes` of these."""
        return [item.row for item in items if item.closed and item.outcome is None]

    def _ends(self, rows: Sequence[Row]) -> dict[int, Row]:
        """The events that leave closed spans, by the ids of those that entered them."""
        ends: dict[int, Row] = {}
        begun: dict[_Thread, list[Row]] = {}  # closed spans that are open at this row
        for row in rows:
            kind, depth = row[6], row[11]
            spans = begun.setdefault(_thread(row), [])
            # if an event is missing, the next one may end a span
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
        """This event is on the line of the event that entered the same span, if that was
        recorded."""
        id, _, _, _, _, _, kind, _, _, _, _, _, duration, *_ = row
        if kind not in LEAVES or (kind != "yield" and duration is None):  # no start recorded
            return False
        for span in self.closed.values():
            if id == span.last and span.whole:
                return True
        depth = _level(row)
        if self.level is None or depth < self.level:
            return False
        return not any(
            id == span.last or (span.last is None and span.covers(row))
            for span in self.opened.values()
            if span.shown_depth == depth
        )


def _level(row: Row) -> int:
    """The level of an event's function; code that is not shown has none."""
    return -1 if is_hidden(row) else level_of(row)


def _down_to(depth: str, level: int) -> tuple[str, str]:
    folded = " ".join(f'"{kind}"' for kind in _FOLDED)
    return f"(< {depth} {level})", f"(and (= {depth} {level}) (not (in kind {folded})))"


def _shown_in_opened(depth: str, span: Span) -> str:
    levels = " ".join(_down_to(depth, span.shown_depth + 1))
    return f"(and {_between(span)} (or {levels}))"


def _between(span: Span) -> str:
    return _with_kernel(span, f"(between id {span.first} {_LAST if span.last is None else span.last})")


def _hidden_in_closed(span: Span) -> str:
    if span.last is not None:
        return _with_kernel(span, f"(between id {span.first + 1} {span.last - 1})")
    deeper = f"(or (> depth {span.depth}) (and (= depth {span.depth}) {_INSIDE}))"
    return f"(and {_with_kernel(span, f'(> id {span.first})')} {deeper})"


def _with_kernel(span: Span, condition: str) -> str:
    """A condition on the ids of a span's events. Those in the kernel's stream of the thread are in
    it by their times."""
    if not span.around:
        return condition
    times = f"(between time {span.began} {_LAST if span.ended is None else span.ended})"
    return f"(or (and (not {_OF_KERNEL}) {condition}) (and {_OF_KERNEL} {times}))"


def _by_thread(spans: Iterable[Span], condition: Callable[[Span], str]) -> Iterator[str]:
    """For each thread, the predicate that the condition on one of its spans holds."""
    threads: dict[_Thread, list[Span]] = {}
    for span in spans:
        threads.setdefault(span[:3], []).append(span)
    for (_, pid, tid), those in threads.items():
        any_of_them = " ".join(map(condition, those))
        # the range of all spans' ids rules out most segments, or that of their times
        if any(span.around for span in those):
            low = min(span.began for span in those)
            high = max(_LAST if span.ended is None else span.ended for span in those)
            within = f"(between time {low} {high})"
        else:
            first = min(span.first for span in those)
            last = max(_LAST if span.last is None else span.last for span in those)
            within = f"(between id {first} {last})"
        yield f"(and {within} (= tid {tid}) (= pid {pid}) (or {any_of_them}))"


# ---- questions ----------------------------------------------------------------------------


def outcomes(database: Database, rows: Sequence[Row]) -> dict[int, Row]:
    """The events that left the spans that `rows` enter, by the ids of `rows`. There is none for a
    span that still runs, or whose end was lost."""
    ends = [(row, _beyond(database, row, forwards=True)) for row in rows]
    return {row[0]: end for row, end in ends if end and _belong(row, end)}


def starts(database: Database, rows: Sequence[Row]) -> dict[int, Row]:
    """The events that entered the spans that `rows` leave, by the ids of `rows`."""
    begins = [(row, _beyond(database, row, forwards=False)) for row in rows]
    return {row[0]: begin for row, begin in begins if begin and _belong(begin, row)}


def strays(database: Database, rows: Sequence[Row], events: Query | None = None) -> frozenset[int]:
    """The ids of the events that leave a span whose start is not in the database, or not among
    these events."""
    begun = starts(database, rows)
    if events is not None:
        shown = ids_among(database, events, [begin[0] for begin in begun.values()])
        begun = {id: begin for id, begin in begun.items() if begin[0] in shown}
    return frozenset(row[0] for row in rows if row[0] not in begun)


def span(database: Database, row: Row) -> Span:
    """The span that an event enters."""
    end = _beyond(database, row, forwards=True)
    whole = end is None or _belong(row, end)
    around = has_beside(database, row)
    return Span(
        *_thread(row),
        row[11],
        row[0],
        end and end[0],
        whole,
        _span_level(row),
        row[2],
        end and end[2],
        around,
    )


def has_beside(database: Database, row: Row) -> bool:
    """Whether the thread of an event has a second stream, which the kernel's events are in. Nothing
    is in the kernel's own calls but events of the kernel."""
    if row[LAYER] == KERNEL:
        return False
    ((streams,),) = database.query(
        "i", "SELECT count(*) FROM thread WHERE run = ? AND tid = ?", (row[1], row[4])
    )
    return bool(streams > 1)


def _span_level(row: Row) -> int | None:
    return _level(row) if isinstance(row, Placed) else None


def spans(database: Database, row: Row, folds: Folds, scope: Scope = ALL) -> list[Span]:
    """The closed spans around an event. If they are more than can be opened, only their starts are
    known."""
    calls = stack(database, row[0], place=scope.place)
    around = [begin for begin in calls if begin[0] != row[0] and folds.is_closed(begin)]
    if len(around) > _MOST:
        return [
            Span(*_thread(each), each[11], each[0], None, level=_span_level(each), began=each[2])
            for each in around
        ]
    return [span(database, begin) for begin in around]


def has_own(database: Database, run: int | None) -> bool:
    """Whether own code of a run (None: of the newest one) is known, and which calls are open in it
    at any time: earlier versions recorded neither."""
    if not (database.has_column("code", "mine") and database.has_column("segment", "open")):
        return False
    found = database.query(
        "i",
        "SELECT EXISTS (SELECT 1 FROM code WHERE code.run = run.id AND mine) AND"
        " (SELECT open IS NOT NULL FROM segment WHERE segment.run = run.id LIMIT 1)"
        " FROM run WHERE id = ?1 OR ?1 = 0 ORDER BY id DESC LIMIT 1",
        (run or 0,),
    )
    return bool(found) and bool(found[0][0])


def line_of(database: Database, view: View, row: Row) -> Row:
    """The event on whose line another one is: itself, or the first one of its stretch."""
    query, (_, _, time, *_) = view.lines_of_thread(row), row
    for beyond, order in ((query.before(time, row[0] + 1), " DESC"), (query.behind(time, row[0]), "")):
        sql = f"SELECT {query.columns} FROM event WHERE {beyond.where} ORDER BY time{order}, id{order}"
        found = database.page(sql, beyond.parameters, query.row, 1, _FOREVER).made
        if found:
            return found[0]
    return row


def placed(database: Database, row: Row, scope: Scope) -> Row:
    """An event with its place among the shown code."""
    if not scope.place or isinstance(row, Placed):
        return row
    query = Query("id = ?", (row[0],), scope.place)
    found = database.page(
        f"SELECT {query.columns} FROM event WHERE {query.where}", query.parameters, query.row, 1, _FOREVER
    )
    return found.made[0] if found.made else row


def reopened(database: Database, view: View, calls: Iterable[int]) -> View:
    """The view with calls open, as far as their code is shown. calls: ids of their first events."""
    folds = view.folds
    for id in calls:
        row = one(database, id)
        if row is None:
            continue
        row = placed(database, row, view.scope)
        if not is_hidden(row):
            folds = revealing(database, folds, row, view.scope).open(span(database, row))
    return replace(view, folds=folds)


def revealing(database: Database, folds: Folds, row: Row, scope: Scope) -> Folds:
    """The folds without those that hide an event."""
    if folds.is_open:
        return folds
    return folds.reveal(row, spans(database, row, folds, scope))


def settled(database: Database, folds: Folds) -> Folds:
    """The same folds, with the ends of spans that were still running."""

    def settle(spans: Mapping[int, Span]) -> dict[int, Span]:
        rows = {id: one(database, id) for id, each in spans.items() if each.last is None}
        return {
            id: span(database, row)._replace(level=each.level) if (row := rows.get(id)) else each
            for id, each in spans.items()
        }

    return replace(folds, opened=settle(folds.opened), closed=settle(folds.closed))


def _beyond(database: Database, row: Row, *, forwards: bool) -> Row | None:
    """The next event of the thread that is not within the span which this event enters (leaves):
    the one that leaves (enters) it, if nothing is missing."""
    id, depth = row[0], row[11]
    later, order = (">", "") if forwards else ("<", "DESC")
    # more calls are open in any segment that the span fills: summaries rule most of these out
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


@dataclass(frozen=True)
class View:
    """run: None for all of them. scope: whose code is shown; stretches: those of other code that
    were opened, by the ids of their first events; waits: times off the processor whose events are
    shown, likewise. without: layers that are not shown. A view is never changed; moving back brings
    an older one."""

    run: int | None
    filter: Filter | None = None
    folds: Folds = field(default_factory=Folds)
    found_folds: Folds = field(default_factory=Folds)
    scope: Scope = ALL
    stretches: Mapping[int, Span] = field(default_factory=dict, hash=False)
    without: frozenset[str] = frozenset()
    waits: Mapping[int, Span] = field(default_factory=dict, hash=False)

    @property
    def folding(self) -> Folds:
        """The folds in force: those of all events, or of those that the filter finds."""
        return self.folds if self.filter is None else self.found_folds

    def folded(self, folds: Folds) -> View:
        """The view with other folds in force."""
        return replace(self, folds=folds) if self.filter is None else replace(self, found_folds=folds)

    def filtered(self, filter: Filter | None) -> View:
        """The view with another filter, under which nothing is folded yet."""
        return replace(self, filter=filter, found_folds=Folds())

    @property
    def is_plain(self) -> bool:
        """Each line is an event."""
        return self.folding.is_open and (self.scope is ALL or self.filter is not None)

    def every(self, runs: Sequence[Run]) -> Query:
        """The events of run and filter, of all code."""
        query = EVERY if self.run is None else Query("run = ?", (self.run,))
        if self.filter is None:
            return query
        from ..filter.sql import compile

        asked = compile(self.filter, [run for run in runs if self.run in (None, run.id)])
        return query.also(asked.where, *asked.parameters)

    def events(self, runs: Sequence[Run]) -> Query:
        """Those of the code that is shown, as if nothing were folded."""
        return self._within(self.every(runs), self.scope.events)

    def lines(self, runs: Sequence[Run]) -> Query:
        """The events of which lines are made."""
        query = self.every(runs)._replace(place=self.scope.place)
        query = self._within(query, self.scope.events if self.filter else self.scope.stretches)
        where, parameters = self.folding.constraint(self.scope.depth)
        if where:
            query = query.also(where, *parameters)
        predicate = self.folding.predicate(self.scope.depth)
        return query.also("event MATCH ?", predicate) if predicate else query

    def _within(self, query: Query, condition: str) -> Query:
        """Of the events those that meet a condition, and those of opened stretches; of both those
        in layers that are shown. The first event of a stretch stands for it, whatever its layer
        is."""
        layers = self.layers
        if not condition:
            return query.also("event MATCH ?", layers) if layers else query
        opened = " ".join(_by_thread(self.stretches.values(), _between))
        if layers:
            condition = f"(and {condition} (or (= {self.scope.name} 0) {layers}))"
            opened = f"(and (or {opened}) {layers})" if opened else ""
        return query.also("event MATCH ?", f"(or {condition} {opened})" if opened else condition)

    @property
    def is_shown(self) -> str:
        """A condition in SQL: a call is of code and of a layer that are shown; "": all are."""
        layers = ", ".join(f"'{name}'" for name in sorted(self.without))
        return " AND ".join(filter(None, (self.scope.is_shown, layers and f"event.layer NOT IN ({layers})")))

    @property
    def layers(self) -> str:
        """A condition for `event MATCH`: an event is in a layer that is shown; "": all are."""
        if not self.without:
            return ""
        return '(not (in layer "' + '" "'.join(sorted(self.without)) + '"))'

    def lines_of_thread(self, row: Row) -> Query:
        """The events of lines in the thread of an event, as if nothing were folded."""
        thread = Query("run = ? AND pid = ? AND tid = ?", _thread(row), self.scope.place)
        return self._within(thread, self.scope.stretches)

    def items(self, rows: Sequence[Row], strays: Collection[int] = ()) -> list[Item]:
        """The lines of events that follow each other; see `Folds.items`."""
        items = self.folding.items(rows, strays)
        if self.scope is not ALL:
            items = [self._of_other_code(item) if is_hidden(item.row) else item for item in items]
        if self.filter is None and any(item.row[6] == "event" for item in items):
            items = [item for each in items for item in self._off_processor(each)]
        return items

    def _off_processor(self, item: Item) -> Sequence[Item]:
        """An event that begins a time off the processor stands for the others of it, unless that
        was opened."""
        told = "" if item.stretch is not None else role(item.row)
        if not told or any(wait.covers(item.row) for wait in self.waits.values()):
            return (item,)
        return (item._replace(wait=Wait()),) if told == "out" else ()

    def _of_other_code(self, item: Item) -> Item:
        """A stretch of code that is not shown, or an event of one that was opened."""
        row = item.row
        assert isinstance(row, Placed)
        for stretch in self.stretches.values():
            if stretch.covers(row):
                row.level = max(stretch.shown_depth + row[11] - stretch.depth, 0)
                return item
        return item._replace(stretch=Stretch())
