"""The pane about one event: all its facts, with the source around its line. `detail` is a question,
`detail_lines` draws its answer.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

from ..database import Database
from ..native_source import NATIVE, Place, place_of
from ..query import stack as open_calls
from ..render import SIGNS, arguments
from ..rows import PYTHON, Row, Run, text
from ..source_file import Excerpt as Excerpt
from ..sources import Sources
from .lines import DisplayOptions, Liner, Pieces, joined, magnitude
from .navigation import Begun, begun, partner
from .text import Line, cells, chop, fold
from .view import ENTERS, Item

_OUTER, _INNER = 20, 60  # calls of a stack that are shown, from both ends
_ENDS = {"return": "returned", "yield": "yielded"}
_RESUMED = 20  # of these, those whose arguments are looked for
_FEW = 3  # calls that are shown between two of one's own code
_NAMES, _TYPES = 20, 24  # cells of their columns, at most
_VALUES = 24  # cells that values need beside them
_INDENT = "  "
_SECOND = 1_000_000_000
_NOTHING = "nothing came of it yet, or it was not recorded"
_SUSPENDED = "it has yielded, and is suspended"
_ROOMY = 8  # rows: there is room for titles
_ONLY_CALL = "of the only call of it that was open"
_NOT_KNOWN = "{} calls of it were open: a recording does not tell them apart"
_LEAST_SOURCE = 4  # rows: its title, and lines
_ADDRESS = re.compile(r"<[^\s<>]+(?:<locals>[^\s<>]+)* at 0x[0-9a-f]+>")
_BY_ADDRESS = "objects are known by their address; pytrace --attributes 8 records what is in them"


class Detail(NamedTuple):
    """partner: the event that ended a call, or the call that ended; None: not there. texts: content
    of strings with several lines, by event, position and name. signatures: names of arguments
    without recorded values, by module, func, file and line. is_suspended: the call has yielded and
    waits. mine: ids of the calls of the stack that are of the user's own code. begun: by the id of
    an event at which a generator or coroutine goes on, the calls by which it may have begun.
    place: of its source; None: unknown."""

    row: Row
    partner: Row | None
    is_suspended: bool
    run: Run | None
    stack: list[Row]
    mine: frozenset[int]
    texts: dict[tuple[int, int, str], str]
    signatures: dict[tuple[bytes, bytes, bytes, int], list[str]]
    command: str  # of its process
    source: Excerpt
    begun: Mapping[int, Begun] = MappingProxyType({})
    place: Place | None = None


# ---- the question -------------------------------------------------------------------------


def detail(database: Database, item: Item) -> Detail:
    """All about an event. Raises DatabaseError."""
    row = item.row
    other = item.entry or item.outcome
    if other is None and row[6] in ("call", "return", "exception"):
        other = partner(database, row)
    calls = _stack(database, row)
    run = next((each for each in database.runs() if each.id == row[1]), None)
    shown = [row, other] if other else [row]
    mine = _mine(database, calls)
    place = place_of(database, row)
    resumed = [
        each for each in calls[-_INNER:] if each[6] != "call" and (each[0] in mine or each is calls[-1])
    ]
    return Detail(
        row,
        other,
        row[6] == "call" and other is None and _is_suspended(database, row[0]),
        run,
        calls,
        mine,
        {key: content for event in shown for key, content in _texts(database, event).items()},
        _signatures(database, row[1], [*calls, row]),
        _command(database, row[1], row[3]),
        Sources(database, run).excerpt(*place) if place is not None else Excerpt([]),
        {each[0]: begun(database, each) for each in resumed[-_RESUMED:]},
        place,
    )


def _is_suspended(database: Database, call: int) -> bool:
    return database.query("i", "SELECT outcome = 'suspended' FROM call WHERE id = ?", (call,)) == [(1,)]


def _stack(database: Database, row: Row) -> list[Row]:
    """The calls that are open at an event; of a very deep one, both ends."""
    near = row[11] - _INNER
    return open_calls(database, row[0], "(stack.depth < ? OR stack.depth > ?)", _OUTER, near)


def _mine(database: Database, calls: list[Row]) -> frozenset[int]:
    if not calls:
        return frozenset()
    marks = ", ".join("?" * len(calls))
    found = database.query(
        "i", f"SELECT id FROM event WHERE id IN ({marks}) AND mine", tuple(call[0] for call in calls)
    )
    return frozenset(id for (id,) in found)


def _texts(database: Database, row: Row) -> dict[tuple[int, int, str], str]:
    if "\\\\n" not in row[13]:  # the repr of a line end, in JSON
        return {}
    rows = database.query(
        "ibb",
        "SELECT position, CAST(name AS BLOB), CAST(text AS BLOB) FROM argument"
        " WHERE event = ? AND value <> text",
        (row[0],),
    )
    return {
        (row[0], position, text(name)): text(content) for position, name, content in rows if b"\n" in content
    }


def _signatures(
    database: Database, run: int, rows: list[Row]
) -> dict[tuple[bytes, bytes, bytes, int], list[str]]:
    wanted = sorted({text(row[8]) for row in rows if row[6] == "call" and row[13] == "[]"})
    if not wanted:
        return {}
    found = database.query(
        "bbbib",
        "SELECT CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB), line, CAST(arguments AS BLOB)"
        f" FROM code WHERE run = ? AND arguments <> '[]' AND func IN ({', '.join('?' * len(wanted))})",
        (run, *wanted),
    )
    return {(module, func, file, line): json.loads(names) for module, func, file, line, names in found}


def _command(database: Database, run: int, pid: int) -> str:
    rows = database.query(
        "b",
        "SELECT CAST(command AS BLOB) FROM process WHERE run = ? AND pid = ? AND command IS NOT NULL LIMIT 1",
        (run, pid),
    )
    return text(rows[0][0]) if rows else ""


# ---- the lines ----------------------------------------------------------------------------


def detail_lines(detail: Detail, width: int, display: DisplayOptions, height: int = 0) -> list[Line]:
    """The pane's content, each line in at most `width` cells. The first `height` lines tell why an
    exception came: the values, the arguments and the source's marked line, each as far as there is
    room. 0: any number."""
    pane = _Pane(detail, max(width, 1), display)
    is_short = 0 < height < _ROOMY
    pane.head(is_short)
    came, given = pane.part(pane.came), pane.part(pane.arguments)
    rest: list[Line] = []
    room = height - len(pane.lines)
    if is_short:
        rest = [*came, *given]
        values, called = pane.part(lambda: pane.came(True)), pane.part(lambda: pane.arguments(True))
        if len(came) + len(given) + 1 <= room:
            rest = []
        else:
            came = values[: max(room - 1, 0)]
            given = called[: max(room - 1 - len(came), 0)]
    elif height:
        least = min(len(given), 2)  # a title, and one of them
        most = max(room - _LEAST_SOURCE - least, 1)
        rest, came = came[most:], came[:most]
        most = max(room - _LEAST_SOURCE - len(came), least)
        rest, given = rest + given[most:], given[:most]
    pane.lines += came + given
    stack = pane.part(pane.stack)
    room = max(height - len(pane.lines), 1) if height else 0
    source = min(max(room - len(stack), room // 2, _LEAST_SOURCE), room)
    pane.lines += pane.part(lambda: pane.source(source))
    pane.notes()
    if rest:
        pane.title("all of the values" if is_short else "more of the values")
        pane.lines += rest
    pane.lines += stack
    pane.facts()
    return pane.lines


class _Pane:
    def __init__(self, detail: Detail, width: int, display: DisplayOptions) -> None:
        self.detail, self.width, self.display = detail, width, display
        self.lines: list[Line] = []
        self.indent = ""
        self._line = Liner(display, (), (), lambda row: row[7:11] in detail.signatures)
        self._known_by_address = False

    def part(self, make: Callable[[], None]) -> list[Line]:
        """The lines that something adds, not added yet."""
        before, self.lines = self.lines, []
        make()
        made, self.lines = self.lines, before
        return made

    def add(self, pieces: Pieces, hang: int = 0) -> None:
        """Adds a line; if it is too long, it goes on in lines indented by `hang` cells, if there is
        room."""
        line = joined([("", self.indent), *pieces])
        hang += len(self.indent)
        hang = hang if hang <= self.width // 2 else 0
        for row in fold(line, self.width, hang, at_words=True):
            self.lines.append(joined(row.runs))

    def cut(self, pieces: Pieces) -> None:
        """Adds a line, which ends in dots if it is too long."""
        line = joined([("", self.indent), *pieces])
        self.lines.append(joined(chop(line, 0, self.width).runs))

    def title(self, words: str, *more: tuple[str, str]) -> None:
        """Begins a part, whose lines are indented."""
        self.indent = ""
        self.cut([("title", words), *more])
        self.indent = _INDENT

    def fact(self, key: str, *pieces: tuple[str, str], cut: bool = False) -> None:
        start = [("key", f"{key:<10}")]
        if cut:
            self.cut([*start, *pieces])
        else:
            self.add([*start, *pieces], 10)

    # ---- parts of the pane ----

    def head(self, short: bool = False) -> None:
        """The event, and how long it took; short: in one line."""
        shown, other = self.display.shown, self.detail.partner
        kind, module, func, took = *self.detail.row[6:9], self.detail.row[12]
        name = shown(".".join(filter(None, [text(module), text(func)])))
        style = kind if kind in ("exception", "raise", "lost") else "title"
        what = f"line {self.detail.row[10]} of" if kind == "line" else kind
        pieces: Pieces = [(style, f"{what} {name}".rstrip())]
        if kind == "call":
            took = other[12] if other else None
            if other is None:
                pieces.append(("dim", f"  {_SUSPENDED if self.detail.is_suspended else _NOTHING}"))
        if took is not None:
            since = " since it went on" if kind == "yield" else ""
            exactly = f" = {took:,} ns" if took >= 1000 else ""
            pieces += [(magnitude(took), f"  {self.display.lasting(took)}"), ("dim", exactly + since)]
        if short:
            self.cut(pieces)
        else:
            self.add(pieces, 2)

    def came(self, short: bool = False) -> None:
        """The outcome of a call, or what the event itself tells. short: in a line each."""
        row, other = self.detail.row, self.detail.partner
        end = other if row[6] == "call" else row
        if end is not None and end[6] not in ("call", "resume"):
            self._table(end, short)

    def arguments(self, short: bool = False) -> None:
        """The arguments of the event's call. short: in a line each, without a title."""
        row, other, stack = self.detail.row, self.detail.partner, self.detail.stack
        call = row if row[6] == "call" else other
        if call is None and stack and stack[-1][7:10] == row[7:10] and stack[-1][11] == row[11]:
            call = stack[-1]  # of the function that the event is in
        if call is not None and call[6] in ("resume", "throw"):
            self._arguments_of_resumed(call, short)
        elif call is not None and call[6] == "call":
            self._arguments_of(call, short)

    def _arguments_of(self, call: Row, short: bool, note: str = "") -> None:
        if call[13] != "[]":
            if not short:
                self.title("arguments", ("dim", note))
            self._table(call, short)
        elif names := self.detail.signatures.get(call[7:11]):
            self.title("arguments")
            self.add([("dim", "not recorded: "), ("name", self.display.shown(", ".join(names)))], 2)

    def _arguments_of_resumed(self, entered: Row, short: bool) -> None:
        """Those of the call of a generator or coroutine that goes on."""
        calls, is_certain = self.detail.begun.get(entered[0], Begun([]))
        if len(calls) == 1:
            self._arguments_of(calls[0], short, "" if is_certain else f"  {_ONLY_CALL}")
        elif calls and not short:
            self.title("arguments", ("dim", f"  {_NOT_KNOWN.format(len(calls))}"))

    def notes(self) -> None:
        """What helps to see more."""
        if self._known_by_address:
            self.add([("note", _BY_ADDRESS)], 2)

    def _table(self, row: Row, short: bool = False) -> None:
        """An event's values, with their names and types."""
        given = arguments(row[13])
        if not given:
            return
        shown = self.display.shown
        have_attributes = any("attributes" in each for each in given)
        self._known_by_address |= not have_attributes and any(
            _ADDRESS.fullmatch(each["value"]) for each in given
        )
        order = list(enumerate(given))
        if self.display.sort and row[6] == "call":
            order.sort(key=lambda placed: placed[1]["name"])
        table = [each for placed in order for each in _rows(*placed)]
        names = min(max(cells(shown(each.label)) for each in table), _NAMES)
        types = max([width for each in table if (width := cells(shown(each.type))) <= _TYPES], default=0)
        style = "exception" if row[6] in ("exception", "raise", "throw") else "value"
        self.indent = _INDENT
        for each in table:
            name, type, value = shown(each.label), shown(each.type), shown(each.value)
            if short:
                type = type.rpartition(".")[2]
                kind = "" if value.startswith(f"{type}(") else f"  {type}"
                self.cut([("name", name), ("dim", kind), ("", "  "), (style, value)])
                continue
            hang = names + types + 4
            start = [("name", _padded(name, names)), ("dim", "  " + _padded(type, types))]
            if cells(type) <= types and self.width - hang - len(_INDENT) >= _VALUES:
                self.add([*start, ("", "  "), (style, value)], hang)
            else:
                self.add([("name", name), ("dim", f"  {type}")], 2)
                self.add([("", "  "), (style, value)], 2)
            content = self.detail.texts.get((row[0], each.position, each.name))
            for line in content.split("\n") if content else ():
                bar = self.display.own("│ ")
                self.add([("dim", f"  {bar}"), (style, shown(line.expandtabs()))], 4)

    def source(self, rows: int) -> None:
        """The source around the event's line, in so many rows at most; 0: as much as there is. In
        two rows or less there is nothing but the line itself."""
        lines, note = self.detail.source
        if self.detail.place is None or (not lines and not self.detail.place.file):
            return
        file, line = self.detail.place
        here = next((place for place, (number, _) in enumerate(lines) if number == line), 0)
        if not lines or not rows or rows > 2:
            self.title("source", ("dim", f"  {self.display.shown(file)}:{line}"))
            if note and (not lines or not rows or rows >= _LEAST_SOURCE):
                self.cut([("note", self.display.shown(note))])
        self.indent = _INDENT
        room = max(rows - len(self.lines), 1) if rows else len(lines)
        first = max(min(here - room // 3, len(lines) - room), 0)
        digits = len(str(lines[-1][0])) if lines else 0
        for number, content in lines[first : first + room]:
            style, sign = ("key", ">") if number == line else ("", " ")
            self.cut([("dim", f"{sign} {number:>{digits}}  "), (style, self.display.shown(content))])

    def stack(self) -> None:
        """The calls that are open, the innermost first, those of one's own code in bold. Many calls
        of others between them are one line."""
        rows = self.detail.stack[::-1]
        if not rows:
            return
        self.title("stack", ("dim", "  the innermost call first"))
        beyond = rows[0][11] + 1
        for is_own, group in groupby(rows, lambda row: row[0] in self.detail.mine):
            calls = list(group)
            if self.detail.mine and not is_own and calls[0] is not rows[0] and len(calls) > _FEW:
                calls = [calls[0], calls[-1]]
            for row in calls:
                depth = row[11]
                if depth < beyond - 1:
                    self.cut([("dim", self.display.own(f"⋯ {beyond - depth - 1:,} calls"))])
                beyond = depth
                pieces = self._line.what(row)
                calls, is_certain = self.detail.begun.get(row[0], Begun([]))
                if is_certain and len(calls) == 1 and row[6] == "resume":
                    pieces = [("yield", f"{SIGNS['resume']} "), *self._line.called(calls[0])]
                if is_own:
                    pieces = [("own" if style == "call" else style, piece) for style, piece in pieces]
                self.cut(pieces)
        if beyond > 0:
            self.cut([("dim", self.display.own(f"⋯ {beyond:,} calls"))])

    def facts(self) -> None:
        """When and where it was, with the ids by which SQL finds it."""
        shown, detail, other = self.display.shown, self.detail, self.detail.partner
        id, run, at, pid, tid, thread, kind, _, _, _, _, depth, _, _, task, layer, cpu = detail.row
        self.title("event", ("dim", f"  id {id}"))
        self.fact("time", ("time", _date(at)), ("", self._since(at)))
        if other is not None:
            key = (
                _ENDS.get(other[6], "left") if kind in ENTERS else "called" if other[6] == "call" else "began"
            )
            self.fact(
                key, ("time", _date(other[2])), ("", self._since(other[2])), ("dim", f"  id {other[0]}")
            )
        self.fact("thread", ("", f"{shown(text(thread)) or '?'}, tid {tid}, depth {depth}"))
        if task:
            self.fact("task", ("", shown(text(task))))
        if layer != PYTHON:
            self.fact("layer", ("", shown(text(layer))))
        if layer == NATIVE:
            self.fact("object", ("", shown(text(detail.row[9]))))
        if cpu is not None:
            self.fact("cpu", ("", str(cpu)))
        command = detail.command or (detail.run.command if detail.run else "")
        self.fact("process", ("", f"{pid} of run {run}: {shown(command)}"), cut=True)

    def _since(self, at: int) -> str:
        if not self.detail.run:
            return ""
        ns = at - self.detail.run.started
        second, rest = divmod(abs(ns), _SECOND)
        return f"  {'+' if ns >= 0 else '-'}{second}.{rest:09}"


class _Value(NamedTuple):
    """A line of the table of values. label: its name on the screen."""

    position: int
    name: str
    label: str
    type: str
    value: str


def _rows(position: int, argument: dict[str, Any]) -> Iterator[_Value]:
    """An argument, and below it its attributes."""
    name, type = argument["name"], argument["type"]
    yield _Value(position, name, name, type, argument.get("object", argument["value"]))
    for each in argument.get("attributes", ()):
        own = each["name"]
        yield _Value(position, f"{name}.{own}", f"  .{own}", each["type"], each["value"])
    if argument["value"].endswith(", ...)") and "attributes" in argument:
        yield _Value(position, "", "  ...", "", "")


def _date(at: int) -> str:
    second, ns = divmod(at, _SECOND)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(second))}.{ns:09}"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))
