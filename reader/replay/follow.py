"""The variables at each run of a line, kept up to date from one event to the next.

variable(ID) walks through a segment each time that it is asked. Here one scan hands out the runs of
a line, the events that tell news of the variables in question, and what enters and leaves their
functions. Only where a function is met in its midst is variable(ID) asked, once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..rows import text as decoded
from .history import History, quoted
from .moment import moment
from .state import Item, variables

_FIRST, _MOST = 64, 8192  # events that are asked for at once
_DELETED = Item("", "<deleted>", "")
_HIT, _NEWS, _CALL, _RESUME, _YIELD, _END, _LOST = range(7)
_WHAT = (
    f"CASE kind WHEN 'line' THEN CASE WHEN line = ? AND NOT trailing THEN {_HIT} ELSE {_NEWS} END"
    f" WHEN 'call' THEN {_CALL} WHEN 'resume' THEN {_RESUME} WHEN 'throw' THEN {_RESUME}"
    f" WHEN 'yield' THEN {_YIELD} WHEN 'lost' THEN {_LOST} ELSE {_END} END"
)
# few columns, as each value costs
_COLUMNS = f"id, time, (stream << 32 | depth) << 3 | {_WHAT}, CAST(func AS BLOB), CAST(args AS BLOB)"
_SIMPLE = r'\{"name": %s, "value": "([^"\\]*)", "type": "([^"\\]*)"\}'


class Run(NamedTuple):
    """A run of a line: its event, and the variables before it. They are valid until the next one is
    asked for."""

    id: int
    time: int
    variables: Mapping[str, Item]


class _Frame:
    """What is known of a function's variables. whole: a name that is missing is not set."""

    def __init__(self, whole: bool) -> None:
        self.known: dict[str, Item] = {}
        self.gone: set[str] = set()
        self.whole = whole


class _Generators:
    """The one generator of a function that has begun and not ended, if there is only one."""

    def __init__(self, live: int | None) -> None:
        self.live = live
        self.suspended: _Frame | None = None


class Follower:
    """Runs of a line, in the order of time. names: the variables in question; None: all."""

    def __init__(
        self, history: History, place: tuple[str, int], names: frozenset[str] | None, stream: int | None
    ) -> None:
        self.history, self.stream, self.names = history, stream, names
        self.place = self.file, self.line = place
        self.functions: dict[bytes, _Generators | None] = {}
        self.frames: dict[int, _Frame] = {}
        self._yields: dict[bytes, bool] = {}  # whether it is a generator or coroutine
        self._closed: dict[bytes, bool] = {}  # whether a call tells all: it uses none of others
        self._told = _teller(names)

    def runs(
        self, start: tuple[int, int], until: tuple[int, int] | None = None, inclusive: bool = False
    ) -> Iterator[Run]:
        """The runs behind a place (time, id), up to another one. inclusive: the one at `start`,
        too. Raises DatabaseError."""
        self.functions.clear()
        self.frames.clear()
        count = _FIRST
        if inclusive:
            start = start[0], start[1] - 1
        at: tuple[int, int] | None = start
        while at is not None:
            rows = self._rows(at, until, count)
            at = (rows[-1][1], rows[-1][0]) if len(rows) == count else None
            for row in rows:
                id, time, place, func, args = row
                what = place & 7
                place >>= 3
                if what == _LOST:
                    self._forget(place >> 32)
                    continue
                if what == _HIT and func not in self.functions:
                    self._learn(func, (time, id))
                    at = time, id - 1
                    break
                if func not in self.functions:
                    continue
                frame = self.frames.get(place) if what <= _NEWS else None
                if frame is None:
                    frame = self._step(place, what, func)
                if frame is not None and what <= _CALL:
                    if len(args) > len("[]"):
                        self._told(frame, args)
                    if what == _HIT:
                        yield Run(id, time, self._known(frame, id))
            count = min(count * 4, _MOST)

    def _rows(self, at: tuple[int, int], until: tuple[int, int] | None, count: int) -> list[tuple[Any, ...]]:
        query = self.history.events(self._predicate(), self.stream).behind(*at)
        if until is not None:
            query = query.also("time <= ?", until[0])
        sql = f"SELECT {_COLUMNS} FROM event WHERE {query.where} ORDER BY time, id LIMIT {count}"
        rows = self.history.database.query("iiibb", sql, (self.line, *query.parameters))
        while until is not None and rows and (rows[-1][1], rows[-1][0]) > until:
            rows.pop()
        return rows

    def _predicate(self) -> str:
        hit = f'(and (= kind "line") (= line {self.line}) (= trailing 0))'
        if not self.functions:
            return f"(and (= file {quoted(self.file)}) {hit})"
        functions = " ".join(quoted(decoded(func)) for func in self.functions)
        kinds = '"call" "resume" "throw"'
        if any(self.functions.values()):
            kinds += ' "yield" "return" "exception"'
        news = ""
        if self.names is None:
            news = '(= kind "line")'
        elif self.names:
            names = " ".join(map(quoted, sorted(self.names)))
            news = f'(and (= kind "line") (any (in name {names})))'
        of_function = f"(and (in qualname {functions}) (or (in kind {kinds}) {news}))"
        return f'(or (and (= file {quoted(self.file)}) (or {hit} {of_function})) (= kind "lost"))'

    def _learn(self, func: bytes, before: tuple[int, int]) -> None:
        """Follows one more function that has the line."""
        self.functions[func] = None
        is_it = f"(= file {quoted(self.file)}) (= qualname {quoted(decoded(func))})"
        if func not in self._yields:
            resumed = f'(and (in kind "resume" "throw") {is_it})'
            self._yields[func] = self.names != frozenset() and self.history.has_any(resumed)
            if self.names is not None and "__class__" not in self.names:
                self._closed[func] = not self.history.is_nested(self.file, decoded(func))
        if not self._yields[func]:
            return
        live = None
        if self.stream is None and self.history.is_whole():
            begun = self.history.count_before(f'(and (= kind "call") {is_it})', *before)
            live = begun - self.history.count_before(f'(and (in kind "return" "exception") {is_it})', *before)
        self.functions[func] = _Generators(live)
        self.frames.clear()

    def _step(self, place: int, what: int, func: bytes) -> _Frame | None:
        """What is known of the function that an event is in; None: it is left."""
        frame: _Frame | None
        generators = self.functions[func]
        if what == _CALL:
            frame = self.frames[place] = _Frame(self._closed.get(func, False))
        elif what == _RESUME:
            frame = generators.suspended if generators and generators.live == 1 else None
            frame = self.frames[place] = frame or _Frame(False)
        elif what in (_YIELD, _END):
            frame = self.frames.pop(place, None)
        else:
            frame = self.frames.get(place)
            if frame is None:
                frame = self.frames[place] = _Frame(False)
        if generators is not None and generators.live is not None:
            generators.live += (what == _CALL) - (what == _END)
            if what not in (_HIT, _NEWS):
                generators.suspended = frame if what == _YIELD and generators.live == 1 else None
        return frame if what not in (_YIELD, _END) else None

    def _known(self, frame: _Frame, id: int) -> Mapping[str, Item]:
        if frame.whole:
            return frame.known
        if self.names is not None and self.names <= (frame.known.keys() | frame.gone):
            return frame.known
        found = moment(self.history.database, id)
        if found is not None:
            frame.known = {each.name: each.value for each in variables(self.history.database, found)}
            frame.whole = True
        return frame.known

    def _forget(self, stream: int) -> None:
        """Events of a thread were lost: calls may have ended, and others begun."""
        for place in [each for each in self.frames if each >> 32 == stream]:
            del self.frames[place]
        for generators in self.functions.values():
            if generators is not None:
                generators.live = generators.suspended = None


def _teller(names: frozenset[str] | None) -> Callable[[_Frame, bytes], None]:
    """A function that takes the variables in question from what an event tells: as a rule without
    reading all of the JSON."""
    if names is None or not all(map(str.isascii, names)):
        return lambda frame, args: _tell(frame, json.loads(args), names)
    marks = [
        (
            name,
            re.compile((_SIMPLE % re.escape(json.dumps(name))).encode()),
            f'{{"name": {json.dumps(name)}, '.encode(),
        )
        for name in sorted(names)
    ]

    def tell(frame: _Frame, args: bytes) -> None:
        if b'"attributes"' in args:
            _tell(frame, json.loads(args), names)
            return
        for name, simple, mention in marks:
            found = simple.search(args)
            if found is not None and found[2]:
                value, type = found.groups()
                frame.known[name] = Item(name, decoded(value), decoded(type))
            elif found is not None or mention in args:
                _tell(frame, json.loads(args), names)
                return

    return tell


def _tell(frame: _Frame, told: list[dict[str, Any]], names: frozenset[str] | None) -> None:
    for each in told:
        name = each["name"]
        if name in names if names is not None else not name.startswith("."):
            told_parts = each.get("attributes", ())
            parts = tuple(Item(part["name"], part["value"], part["type"]) for part in told_parts)
            _set(frame, Item(name, each["value"], each["type"], parts))


def _set(frame: _Frame, item: Item) -> None:
    if item.value == "<deleted>" and not item.type:
        frame.known.pop(item.name, None)
        frame.gone.add(item.name)
    else:
        frame.known[item.name] = item
        frame.gone.discard(item.name)


def calls(
    history: History,
    match: str,
    names: frozenset[str],
    start: tuple[int, int],
    backwards: bool,
    stream: int | None,
) -> Iterator[Run]:
    """Calls behind a place (time, id), or before it, with their arguments: in the order in which a
    walk meets them."""
    tell, count = _teller(names), _FIRST
    order = "time DESC, id DESC" if backwards else "time, id"
    while True:
        query = history.events(match, stream)
        query = query.before(*start) if backwards else query.behind(*start)
        args = "CAST(args AS BLOB)" if names else "x''"
        sql = f"SELECT id, time, {args} FROM event WHERE {query.where} ORDER BY {order} LIMIT {count}"
        rows = history.database.query("iib", sql, query.parameters)
        for id, time, told in rows:
            frame = _Frame(True)
            tell(frame, told)
            yield Run(id, time, frame.known)
        if len(rows) < count:
            return
        start, count = (rows[-1][1], rows[-1][0]), min(count * 4, _MOST)
