"""Events as lines of the screen, by the display options: first the columns (time, duration,
thread), then the event itself. The app makes a Liner, and a new one if threads or options change.

A line depends on its event, the options and the threads alone, never on the lines around it. So the
screen is the same whichever way led to it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

from ..render import INDENT_MAX, SIGNS, arguments, duration, names
from ..rows import LAYER, Row, Run, Source, level_of, text
from .text import Line, begins, cells, fitted, fitted_end, shown
from .view import Item

TIMES = ("clock", "date", "start", "off")
# columns that can be sized, and their default cells; a narrower time has fewer digits
WIDTHS = {"id": 12, "time": 26, "duration": 7, "run": 4, "process": 7, "thread": 20, "file": 30}


_OTHERWISE = str.maketrans(
    {"µ": "u", "…": "...", "⋯": "...", "│": "|", "↓": "Down", "↑": "Up", "←": "Left", "→": "Right", "·": "."}
)


@dataclass(frozen=True)
class DisplayOptions:
    """`thread`, `process` and `run` are None if the column appears only for several of them (that
    of threads also for tasks)."""

    # `clock`: 09:52:51.860222; `date`: with the day; `start`: +1.860222 since the run's start;
    # `off`
    time: str = "clock"
    duration: bool = True
    thread: bool | None = None
    process: bool | None = None
    run: bool | None = None
    ids: bool = False
    file: bool = False
    values: bool = True  # of arguments, returns and variables
    sort: bool = False  # arguments and variables by name
    indent: int = 2  # spaces a level
    levels: int = INDENT_MAX  # that are indented; deeper ones are numbers
    # columns whose width differs from WIDTHS; 0: as in WIDTHS
    widths: tuple[tuple[str, int], ...] = ()
    ascii: bool = False  # for terminals that know nothing else

    def width(self, column: str) -> int:
        """Cells of a column."""
        return dict(self.widths).get(column) or WIDTHS[column]

    def shown(self, text: str) -> str:
        """Recorded text in a form that is safe for this terminal."""
        return shown(text, self.ascii)

    def lasting(self, ns: int) -> str:
        """A length of time."""
        return self.own(duration(ns))

    def own(self, text: str) -> str:
        """Text of the reader itself, in this terminal's characters."""
        return text.translate(_OTHERWISE) if self.ascii else text


# by module, func, file and line as stored
Usual: TypeAlias = "Mapping[tuple[bytes, bytes, bytes, int], int]"
_WHOLE = ("call", "return", "exception")  # events whose durations are of whole calls
Pieces: TypeAlias = "list[tuple[str, str]]"  # texts side by side, each with its style ("": none)
_SECOND = 1_000_000_000
_MAGNITUDES = (("ns", 1000), ("µs", 1_000_000), ("ms", _SECOND))
_GAP = "  "  # behind each column


# times the usual duration of the function, and how the duration of such a call looks
_UNUSUAL = ((100, "slowest"), (10, "slow"))


class Columns:
    """Columns of the same width on each line. sources, runs: the shown ones. usual: durations in
    ns by function, as far as they are known."""

    def __init__(
        self,
        display: DisplayOptions,
        sources: Sequence[Source],
        runs: Sequence[Run],
        usual: Usual | None = None,
    ) -> None:
        self._display, self._usual = display, usual or {}
        are_several = several(sources)
        self._run = are_several["run"] if display.run is None else display.run
        self._process = are_several["process"] if display.process is None else display.process
        self._thread = are_several["thread"] if display.thread is None else display.thread
        self._thread_width = display.width("thread")
        has_tasks = any(source.has_tasks for source in sources)  # of unknown names
        if not dict(display.widths).get("thread") and not has_tasks:  # no wider than needed
            widest = max((cells(self._name(source.tid, source.thread)) for source in sources), default=1)
            self._thread_width = min(widest, self._thread_width)
        self._duration_width = display.width("duration")
        self._time_width = display.width("time")
        self._started = {run.id: run.started for run in runs}
        seconds = [(run.finished - run.started) // _SECOND for run in runs if run.finished]
        self._start_width = len("+.000000") + max(4, *map(len, map(str, seconds)), 0)
        self._second = lru_cache(256)(self._make_second)
        self._where = lru_cache(1024)(self._make_where)

    def pieces(self, event: Row, took: int | None) -> Pieces:
        """The columns of an event. took: ns for the duration's column; None: it is empty."""
        id, run, at, pid, tid, thread, _, _, _, file, line, _, _, _, task, *_ = event
        display = self._display
        made: Pieces = []
        if display.ids:
            made.append(("dim", f"{id:>{display.width('id')}}{_GAP}"))
        if display.time != "off":
            made.append(("time", self._time(run, at)[: self._time_width] + _GAP))
        if display.duration:
            lasting = "" if took is None else display.lasting(took)
            made.append((self._duration_style(event, took or 0), lasting.rjust(self._duration_width) + _GAP))
        where = self._where(run, pid, tid, task or thread)
        if where:
            made.append(("column", where))
        if display.file:
            made.append(("dim", self._place(file, line) + _GAP))
        return made

    def _duration_style(self, event: Row, took: int) -> str:
        usual = self._usual.get(event[7:11]) if self._usual and event[6] in _WHOLE else None
        if usual:
            for times, style in _UNUSUAL:
                if took >= times * usual:
                    return style
        return magnitude(took)

    def _time(self, run: int, at: int) -> str:
        started = self._started.get(run) if self._display.time == "start" else None
        if started is None:
            second, ns = divmod(at, _SECOND)
            return f"{self._second(second)}.{ns // 1000:06}"
        second, ns = divmod(abs(at - started), _SECOND)
        sign = "+" if at >= started else "-"
        return f"{sign}{second}.{ns // 1000:06}".rjust(self._start_width)

    def _make_second(self, second: int) -> str:
        form = "%Y-%m-%d %H:%M:%S" if self._display.time == "date" else "%H:%M:%S"
        return time.strftime(form, time.localtime(second))

    def _make_where(self, run: int, pid: int, tid: int, name: bytes) -> str:
        """name: the thread's, or that of the event's task."""
        display = self._display
        made = ""
        if self._run:
            made += f"{run:>{display.width('run')}}{_GAP}"
        if self._process:
            made += f"{pid:>{display.width('process')}}{_GAP}"
        if self._thread:
            made += fitted(self._name(tid, text(name)), self._thread_width) + _GAP
        return made

    def _name(self, tid: int, thread: str) -> str:
        return self._display.shown(thread) or str(tid)

    def _place(self, file: bytes, line: int) -> str:
        """The end of a file's path, and the line."""
        width = self._display.width("file")
        return fitted_end(f"{self._display.shown(text(file))}:{line}" if file else "", width)


def magnitude(ns: int) -> str:
    """The style of a length of time, by its unit."""
    return next((unit for unit, limit in _MAGNITUDES if ns < limit), "s")


def clock(ns: int) -> str:
    """A time of the day."""
    second, rest = divmod(ns, _SECOND)
    return f"{time.strftime('%H:%M:%S', time.localtime(second))}.{rest // 1000:06}"


def several(sources: Sequence[Source]) -> dict[str, bool]:
    """Whether there are several runs; and processes or threads, in one of them. Tasks are like
    threads."""
    runs = {source.run for source in sources}
    processes = {(source.run, source.pid) for source in sources}
    threads = {(source.run, source.pid, source.tid) for source in sources}
    many = len(threads) > len(runs) or any(source.has_tasks for source in sources)
    return {"run": len(runs) > 1, "process": len(processes) > len(runs), "thread": many}


# the style of what follows the columns, by kind
_STYLES = {
    "call": "call", "return": "return", "exception": "exception", "yield": "yield", "resume": "yield",
    "throw": "raise", "raise": "raise", "log": "log", "lost": "lost", "line": "dim", "event": "call",
}  # fmt: skip
_LAYERS = {b"cython": "cython", b"c": "c", b"native": "native", b"kernel": "kernel"}  # styles of names
_LOUD = ("exception", "throw", "raise")  # their values have the same style
_CLOSED = "+>"  # starts a call that is shown with its outcome; + and another sign if it goes on
_HIDDEN = "· "  # starts an event that a filter hides
_LONG = 40  # characters; longer arguments stand behind the outcome, if that is shorter
# An object that is known by its type and address, which is shown as Order@5300; or a text, in which
# nothing is an object. Each run of letters and digits is one of the value: prefilter.py needs that.
_OBJECT = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|<(?:[^\s<>'".]+\.|<locals>\.)*([^\s<>'".]+)(?: object)?"""
    r" at 0x[0-9a-f]*?([0-9a-f]{1,4})>"
)


class Liner:
    """Makes lines. has_arguments: tells of a call without values whether its function has
    arguments, which were not recorded then. usual: as for Columns."""

    def __init__(
        self,
        display: DisplayOptions,
        sources: Sequence[Source],
        runs: Sequence[Run],
        has_arguments: Callable[[Row], bool] = lambda event: False,
        usual: Usual | None = None,
    ) -> None:
        self._display = display
        self._columns = Columns(display, sources, runs, usual)
        self._has_arguments = has_arguments
        self._shown = display.shown
        self._names = lru_cache(4096)(self._make_names)

    def __call__(self, item: Item) -> Line:
        """The line of an event, or of a call together with its outcome."""
        row, closed, outcome, entry, is_hidden, stretch, wait = item
        event = entry or row
        took = outcome[12] if closed and outcome else None if stretch else event[12]
        pieces = self._columns.pieces(row, took)
        fixed = _length(pieces)
        depth = level_of(row)
        indent = " " * (self._display.indent * min(depth, self._display.levels))
        pieces.append(("", indent) if depth <= self._display.levels else ("dim", f"{indent}({depth}) "))
        if stretch is not None:
            pieces.append(("dim", self._display.own(stretch.line)))
        elif wait is not None:
            pieces.append(("dim", self._display.own(self._shown(wait.line))))
        elif closed:
            pieces += self._closed(event, outcome)
        else:
            pieces += self.what(event)
        line = joined(pieces)._replace(fixed=fixed)
        return _dimmed(line, self._display.own(_HIDDEN)) if is_hidden else line

    def called(self, event: Row) -> Pieces:
        """The function with its arguments."""
        function, given, style = self._name_of(event), self._given(event), _style(event)
        if given:
            return [(style, function + "("), *given, (style, ")")]
        hidden = event[13] != "[]" or self._has_arguments(event)
        return [(style, f"{function}({self._display.own('…') if hidden else ''})")]

    def _name_of(self, event: Row) -> str:
        return self._names(event[7], event[8], event[LAYER])[0]

    def _given(self, event: Row) -> Pieces:
        """The arguments of a call, or the variables of a line, if they are shown."""
        if event[13] == "[]" or not self._display.values:
            return []
        given = arguments(event[13])
        return self._named(sorted(given, key=itemgetter("name")) if self._display.sort else given, ", ")

    def _closed(self, event: Row, outcome: Row | None) -> Pieces:
        """A call with its outcome, which is not far to the right; or a generator or coroutine that
        goes on, or into which an exception is thrown, until it yields again or ends."""
        if event[6] in ("resume", "throw"):
            sign, name = SIGNS[event[6]], self._name_of(event)
            thrown = self._value(event) if event[6] == "throw" else ""
            start: Pieces = [("call", "+"), (_STYLES[event[6]], f"{sign} {name}")]
            return [*start, ("raise", f": {thrown}" if thrown else ""), *self._came(outcome)]
        sign = _CLOSED + " "
        given, came = self._given(event), self._came(outcome)
        long = _length(given)
        if long <= _LONG or long < _length(came):
            return [("call", sign), *self.called(event), *came]
        function = self._name_of(event)
        return [
            ("call", sign),
            (_style(event), f"{function}({self._display.own('…')})"),
            *came,
            ("", "  "),
            *given,
        ]

    def _came(self, outcome: Row | None) -> Pieces:
        if outcome is None:
            return [("dim", " (running)")]
        value = self._value(outcome)
        if outcome[6] == "exception":
            return [("exception", f" ! {value}" if value else " !")]
        if outcome[6] == "yield":
            return (
                [("yield", f" {SIGNS['yield']} "), ("value", value)]
                if value
                else [("yield", f" {SIGNS['yield']}")]
            )
        return [("return", " = "), ("value", value)] if value else []

    def what(self, event: Row) -> Pieces:
        """An event without its columns."""
        kind = event[6]
        style, sign = _STYLES[kind], self._display.own(SIGNS[kind]) + " "
        if kind == "call":
            return [(style, sign), *self.called(event)]
        if kind == "lost":
            number = self._value(event)
            number = f"{int(number):,}" if number.isdecimal() else "some"
            return [(style, f"{sign}{number} events lost{self._display.own(' …')}")]
        if kind == "log":
            message, *named = arguments(event[13]) or [{"value": ""}]
            start = [(style, sign + self._shown(message["value"])), ("", "  " if named else "")]
            return start + self._named(named, "  ")
        if kind == "line":
            given = self._given(event)
            return [(style, f"{sign}{event[10]}{': ' if given else ''}{_plain(given)}")]
        full, short = self._names(event[7], event[8], event[LAYER])
        if kind == "event":
            given = self._given(event)
            return [(style, sign), (_style(event), f"{full}{': ' if given else ''}"), *given]
        if kind == "resume":
            return [(style, sign + full)]
        value = self._value(event)
        what = f"{sign}{short}: " if value else sign + short
        if kind not in _LOUD:
            return [(style, what), ("value", value)]
        line = f"  line {event[10]}" if kind == "raise" and event[10] else ""
        return [(style, what + value + line)]

    def _named(self, given: list[dict[str, Any]], between: str) -> Pieces:
        shown = self._shown
        pieces: Pieces = []
        last = len(given) - 1
        for place, each in enumerate(given):
            value = f"={_short(shown(_brief(each)))}"
            pieces += [("name", shown(each["name"])), ("", value if place == last else value + between)]
        return pieces

    def _value(self, event: Row) -> str:
        """The value that it returned, yielded, raised or lost."""
        hidden = not self._display.values and event[6] in ("return", "yield")
        if event[13] == "[]" or hidden:
            return ""
        return _short(self._shown(_brief(arguments(event[13])[0])))

    def _make_names(self, module: bytes, func: bytes, layer: bytes) -> tuple[str, str]:
        full, short = names(text(module), text(func), text(layer))
        return self._shown(full), self._shown(short)


def _style(event: Row) -> str:
    """The style of a called function's name."""
    return _LAYERS.get(event[LAYER], "call")


def _length(pieces: Pieces) -> int:
    return sum([len(piece) for _, piece in pieces])


def _plain(pieces: Pieces) -> str:
    return "".join([piece for _, piece in pieces])


def _brief(argument: dict[str, Any]) -> str:
    """An argument's value; an object with attributes by the last name of its type."""
    value: str = argument["value"]
    if "attributes" not in argument:
        return value
    return value.removeprefix(argument["type"].rpartition(".")[0] + ".")


def _short(value: str) -> str:
    """A value whose objects are shown by the last name of their type and the end of their
    address."""
    if " at 0x" not in value:
        return value
    return _OBJECT.sub(lambda found: f"{found[1]}@{found[2]}" if found[1] else found[0], value)


def _dimmed(line: Line, sign: str) -> Line:
    """A line in one quiet style, with a sign behind its indentation for screens without gray."""
    start = begins(line)
    text = f"{line.text[:start]}{sign}{line.text[start:]}"
    return Line(text, ((0, len(text), "dim"),), line.fixed)


def joined(pieces: Pieces) -> Line:
    """Texts that follow each other as one line."""
    spans = []
    end = 0
    for style, piece in pieces:
        start, end = end, end + len(piece)
        if style and piece:
            spans.append((start, end, style))
    return Line("".join([piece for _, piece in pieces]), tuple(spans))
