"""The pane about one event: all that is known of it. The app asks `detail`, and shows `detail_lines`."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import NamedTuple

from ..database import Database
from ..model import Row, Run, text
from ..query import stack as open_calls
from ..render import arguments
from .columns import Pieces
from .lines import Liner, joined
from .look import Look
from .model import Item, Line
from .moves import partner
from .source import Excerpt, excerpt
from .text import cells, chop, cuts, part

_OUTER, _INNER = 20, 60  # calls of a stack that are shown, from both ends
_NAMES, _TYPES = 20, 24  # cells of their columns, at most
_VALUES = 24  # cells that values need beside them
_INDENT = "  "
_SECOND = 1_000_000_000
_NOTHING = "nothing came of it yet, or it was not recorded"


class Detail(NamedTuple):
    """partner: what ended a call, or the call that ended; None: not there. texts: content of strings with
    several lines, by event and position. signatures: names of arguments that were not recorded, by
    module, func, file and line."""

    row: Row
    partner: Row | None
    run: Run | None
    stack: list[Row]
    texts: dict[tuple[int, int], str]
    signatures: dict[tuple[bytes, bytes, bytes, int], list[str]]
    command: str  # of its process
    source: Excerpt


# ---- the question -------------------------------------------------------------------------


def detail(database: Database, item: Item) -> Detail:
    """All about an event. Raises DatabaseError."""
    row = item.row
    other = item.outcome
    if other is None and row[6] in ("call", "return", "exception"):
        other = partner(database, row)
    calls = _stack(database, row)
    run = next((each for each in database.runs() if each.id == row[1]), None)
    shown = [row, other] if other else [row]
    file, line, started = text(row[9]), row[10], run.started if run else 0
    return Detail(
        row,
        other,
        run,
        calls,
        {key: content for event in shown for key, content in _texts(database, event).items()},
        _signatures(database, row[1], [*calls, row]),
        _command(database, row[1], row[3]),
        excerpt(run.directory if run else "", file, line, started),
    )


def _stack(database: Database, row: Row) -> list[Row]:
    """The calls that are open at an event; of a very deep one, both ends."""
    near = row[11] - _INNER
    return open_calls(database, row[0], "(stack.depth < ? OR stack.depth > ?)", _OUTER, near)


def _texts(database: Database, row: Row) -> dict[tuple[int, int], str]:
    if "\\\\n" not in row[13]:  # as JSON has the repr of a line's end
        return {}
    rows = database.query(
        "ib", "SELECT position, CAST(text AS BLOB) FROM argument WHERE event = ? AND value <> text", (row[0],)
    )
    return {(row[0], position): text(content) for position, content in rows if b"\n" in content}


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


def detail_lines(detail: Detail, width: int, look: Look) -> list[Line]:
    """The pane's content, each line in at most `width` cells."""
    pane = _Pane(detail, max(width, 1), look)
    pane.head()
    pane.values()
    pane.stack()
    pane.source()
    return pane.lines


class _Pane:
    def __init__(self, detail: Detail, width: int, look: Look) -> None:
        self.detail, self.width, self.look = detail, width, look
        self.lines: list[Line] = []
        self.indent = ""
        self._line = Liner(look, (), (), lambda row: row[7:11] in detail.signatures)

    def add(self, pieces: Pieces, hang: int = 0) -> None:
        """A line, and more where it is too long; these are indented by `hang` cells, if there is room."""
        line = joined([("", self.indent), *pieces])
        (start, end, _), *more = cuts(line.text, self.width)
        self.lines.append(part(line, start, end))
        if more:
            hang += len(self.indent)
            hang = hang if hang <= self.width // 2 else 0
            rest = part(line, end, len(line.text))
            for start, end, _ in cuts(rest.text, self.width - hang):
                self.lines.append(part(rest, start, end, " " * hang))

    def cut(self, pieces: Pieces) -> None:
        """A line, and dots where it is too long."""
        line = joined([("", self.indent), *pieces])
        self.lines.append(joined(chop(line, 0, self.width).runs))

    def title(self, words: str) -> None:
        """Begins a part, whose lines are indented."""
        self.indent = ""
        self.add([("title", words)])
        self.indent = _INDENT

    def fact(self, key: str, *pieces: tuple[str, str], cut: bool = False) -> None:
        start = [("key", f"{key:<10}")]
        if cut:
            self.cut([*start, *pieces])
        else:
            self.add([*start, *pieces], 10)

    # ---- parts of the pane ----

    def head(self) -> None:
        shown = self.look.shown
        id, run, at, pid, tid, thread, kind, module, func, file, line, depth, took, _, task = self.detail.row
        name = shown(".".join(filter(None, [text(module), text(func)])))
        style = kind if kind in ("exception", "raise", "lost") else "title"
        self.add([(style, f"{kind} {name}".rstrip()), ("dim", f"  id {id}")], 2)
        self.fact("time", ("time", _date(at)), ("", self._since(at)))
        self._duration(kind, took)
        self.fact("thread", ("", f"{shown(text(thread)) or '?'}, tid {tid}, depth {depth}"))
        if task:
            self.fact("task", ("", shown(text(task))))
        command = self.detail.command or (self.detail.run.command if self.detail.run else "")
        self.fact("process", ("", f"{pid} of run {run}: {shown(command)}"), cut=True)
        if file:
            self.fact("file", ("", f"{shown(text(file))}:{line}"))

    def _since(self, at: int) -> str:
        if not self.detail.run:
            return ""
        ns = at - self.detail.run.started
        second, rest = divmod(abs(ns), _SECOND)
        return f"  {'+' if ns >= 0 else '-'}{second}.{rest:09}"

    def _duration(self, kind: str, took: int | None) -> None:
        other = self.detail.partner
        if kind == "call":
            if other is None:
                self.fact("duration", ("dim", _NOTHING))
                return
            took = other[12]
        if took is not None:
            exactly = f"  {took:,} ns" if took >= 1000 else ""
            since = "  since it went on" if kind == "yield" else ""
            self.fact("duration", ("duration", self.look.lasting(took)), ("", exactly + since))
        if other is not None:
            key = "called" if kind != "call" else "returned" if other[6] == "return" else "left"
            self.fact(
                key, ("time", _date(other[2])), ("", self._since(other[2])), ("dim", f"  id {other[0]}")
            )

    def values(self) -> None:
        """What was recorded with the event, and what is of interest in its partner."""
        row, other = self.detail.row, self.detail.partner
        titles = {"call": "arguments", "log": "log", "lost": "lost"}
        if row[6] == "call" and row[13] == "[]":
            names = self.detail.signatures.get(row[7:11])
            if names:
                self.title("arguments")
                self.add([("dim", "not recorded: "), ("name", self.look.shown(", ".join(names)))], 2)
        else:
            self._table(titles.get(row[6], "value"), row)
        if other is not None:
            self._table("arguments" if other[6] == "call" else "outcome", other)

    def _table(self, title: str, row: Row) -> None:
        given = arguments(row[13])
        if not given:
            return
        self.title(title)
        shown = self.look.shown
        table = [(shown(each["name"]), shown(each["type"]), shown(each["value"])) for each in given]
        names = min(max(cells(name) for name, _, _ in table), _NAMES)
        types = min(max(cells(type) for _, type, _ in table), _TYPES)
        style = "exception" if row[6] in ("exception", "raise", "throw") else "value"
        order = list(range(len(table)))
        if self.look.sort and row[6] == "call":
            order.sort(key=lambda place: given[place]["name"])
        for place in order:
            name, type, value = table[place]
            hang = names + types + 4
            start = [("name", _padded(name, names)), ("dim", "  " + _padded(type, types))]
            if self.width - hang - len(_INDENT) >= _VALUES:
                self.add([*start, ("", "  "), (style, value)], hang)
            else:
                self.add([("name", name), ("dim", f"  {type}")], 2)
                self.add([("", "  "), (style, value)], 2)
            content = self.detail.texts.get((row[0], place))
            for line in content.split("\n") if content else ():
                bar = self.look.own("│ ")
                self.add([("dim", f"  {bar}"), (style, shown(line.expandtabs()))], 4)

    def stack(self) -> None:
        rows = self.detail.stack
        if not rows:
            return
        self.title("stack")
        above = [(-1, rows[0][11]), *pairwise(row[11] for row in rows)]
        for row, (outer, depth) in zip(rows, above, strict=True):
            if depth > outer + 1:
                self.cut([("dim", f"{depth - outer - 1:,} calls that are not shown")])
            indent = min(self.look.indent * depth, self.width // 3)
            self.cut([("", " " * indent), *self._line.what(row)])

    def source(self) -> None:
        lines, note = self.detail.source
        if not lines and not self.detail.row[9]:
            return
        self.title("source")
        if note:
            self.add([("note", self.look.shown(note))])
        digits = len(str(lines[-1][0])) if lines else 0
        for number, line in lines:
            here = number == self.detail.row[10]
            style = "key" if here else ""
            sign = ">" if here else " "
            self.add([("dim", f"{sign} {number:>{digits}}  "), (style, self.look.shown(line))], digits + 4)


def _date(at: int) -> str:
    second, ns = divmod(at, _SECOND)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(second))}.{ns:09}"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))
