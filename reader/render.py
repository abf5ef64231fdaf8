"""Writes events as text, JSON lines or CSV. Knows neither the database nor the screen.

`text` is for people: nothing in it can move a terminal's cursor or turn its text around. `json` and
`csv` are for programs; their names are a contract (docs/json.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from json import JSONEncoder

from .model import Argument, Code, Event, Source

Renderer = Callable[[Event], str]  # a line without its end

KEYS = (
    "id", "run", "time", "pid", "tid", "thread", "kind", "module", "func", "file", "line", "depth",
    "duration", "args",
)  # fmt: skip

_INDENT_MAX = 40  # levels that are shown by indentation; beyond, the depth is written
_encode = JSONEncoder().encode  # ASCII, so that nothing in a value can break a line or a terminal
_quoted = lru_cache(4096)(_encode)


def printable(text: str) -> str:
    """The text with everything that is not printable (controls, bidi, surrogates) as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def duration(ns: int) -> str:
    """A length of time for people: 850ns 12.3µs 1.23ms 4.56s 2m05s 3h07m."""
    if ns < 1000:
        return f"{ns}ns"
    for unit, size, limit in (("µs", 1e3, 999.5e3), ("ms", 1e6, 999.5e6), ("s", 1e9, 59.95e9)):
        if ns < limit:
            return f"{ns / size:.3g}{unit}"
    minutes, seconds = divmod(ns // 1_000_000_000, 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02}s"
    return f"{minutes // 60}h{minutes % 60:02}m"


# ---- JSON and CSV -------------------------------------------------------------------------


def _json_args(args: list[Argument]) -> str:
    return ", ".join(
        f'{{"name": {_quoted(name)}, "value": {_encode(value)}, "type": {_quoted(type)}}}'
        for name, value, type in args
    )


def json_renderer() -> Renderer:
    """One JSON object an event, in ASCII."""
    sources: dict[Source, str] = {}
    codes: dict[Code, str] = {}

    def render(event: Event) -> str:
        time, id, kind, depth, duration, line, code, source, args = event
        where = sources.get(source)
        if where is None:
            where = sources[source] = (
                f'"pid": {source.pid}, "tid": {source.tid}, "thread": {_encode(source.thread)}, "kind": '
            )
        what = codes.get(code)
        if what is None:
            what = codes[code] = (
                f'"module": {_encode(code.module)}, "func": {_encode(code.func)}, '
                f'"file": {_encode(code.file)}'
            )
        return (
            f'{{"id": {id}, "run": {source.run}, "time": {time}, {where}"{kind}", {what}, "line": {line}, '
            f'"depth": {depth}, "duration": {"null" if duration is None else duration}, '
            f'"args": [{_json_args(args) if args else ""}]}}'
        )

    return render


def csv_renderer() -> Renderer:
    """The columns of KEYS; `args` is the JSON text, names are as in `text`."""

    def field(value: str) -> str:
        value = printable(value)
        if '"' in value or "," in value:
            return '"' + value.replace('"', '""') + '"'
        return value

    cached = lru_cache(4096)(field)

    def render(event: Event) -> str:
        time, id, kind, depth, duration, line, code, source, args = event
        return (
            f"{id},{source.run},{time},{source.pid},{source.tid},{cached(source.thread)},{kind},"
            f"{cached(code.module)},{cached(code.func)},{cached(code.file)},{line},{depth},"
            f"{'' if duration is None else duration},{field('[' + _json_args(args) + ']')}"
        )

    return render


# ---- text ---------------------------------------------------------------------------------

# kind: how its line starts, and its colour (SGR)
_SIGNS = {
    "call": ("->", ""),
    "return": ("<-", "32"),
    "exception": ("<!", "1;31"),
    "yield": ("<~", "36"),
    "resume": ("~>", "36"),
    "throw": ("~!", "1;31"),
    "raise": ("!!", "1;31"),
    "log": ("--", "1"),
    "lost": ("…", "1;33"),
}
_DIM = "2"


class TextRenderer:
    """Lines for people: time, thread, then the calls as a tree.

    `sources` are the threads known so far: columns for process and run are there only where they
    differ, and no wider than needed.
    """

    def __init__(self, sources: list[Source], *, colour: bool) -> None:
        self._colour = colour
        runs = {source.run for source in sources}
        self._show_run = len(runs) > 1
        self._show_pid = len({(source.run, source.pid) for source in sources}) > len(runs)
        self._width = max((len(self._name(source)) for source in sources), default=0)
        self._columns: dict[Source, str] = {}
        self._names: dict[Code, tuple[str, str]] = {}
        self._second = -1
        self._clock = ""
        self._last: dict[tuple[int, int, int], tuple[str, Code, int]] = {}

    def __call__(self, event: Event) -> str:
        second, ns = divmod(event.time, 1_000_000_000)
        if second != self._second:
            self._second, self._clock = second, time.strftime("%H:%M:%S", time.localtime(second))
        columns = self._columns.get(event.source) or self._column(event.source)
        start = f"{self._clock}.{ns // 1000:06}  {columns}"
        depth = event.depth
        indent = "  " * depth if depth <= _INDENT_MAX else f"{'  ' * _INDENT_MAX}({depth}) "
        sign, style = _SIGNS[event.kind]
        what = printable(f"{sign} {self._what(event)}")
        if not self._colour:
            return f"{start}{indent}{what}"
        return f"\x1b[{_DIM}m{start}\x1b[0m{indent}" + (f"\x1b[{style}m{what}\x1b[0m" if style else what)

    @staticmethod
    def _name(source: Source) -> str:
        return printable(source.thread) or str(source.tid)

    def _column(self, source: Source) -> str:
        run = f"{source.run:>4}  " if self._show_run else ""
        pid = f"{source.pid:>7}  " if self._show_pid else ""
        name = self._name(source)
        self._width = max(self._width, len(name))
        self._columns[source] = column = f"{run}{pid}{name:<{self._width}}  "
        return column

    def _name_of(self, code: Code) -> tuple[str, str]:
        self._names[code] = names = (f"{code.module}.{code.func}" if code.module else code.func, code.func)
        return names

    def _what(self, event: Event) -> str:
        kind, args = event.kind, event.args
        if kind == "lost":
            count = args[0][1] if args else "some"
            return f"{count} events lost …"
        if kind == "log":
            names = "".join(f"  {name}={value}" for name, value, _ in args[1:])
            return (args[0][1] if args else "") + names
        full, short = self._names.get(event.code) or self._name_of(event.code)
        thread = (event.source.run, event.source.pid, event.source.tid)
        last = self._last.get(thread)
        self._last[thread] = here = (kind, event.code, event.depth)
        if kind == "call":
            if args:
                return f"{full}({', '.join([f'{name}={value}' for name, value, _ in args])})"
            return f"{full}({'…' if event.code.arguments else ''})"
        if kind == "resume":
            return full
        value = args[0][1] if args else ""
        if kind == "throw":
            return f"{full}: {value}"
        # what directly follows the line that names the function need not name it again
        adjacent = last is not None and last[0] in ("call", "resume") and last[1:] == here[1:]
        what = (value if adjacent else f"{short}: {value}") if value else short
        if kind == "raise":
            return f"{what}  line {event.line}" if event.line else what
        return what if event.duration is None else f"{what}  {duration(event.duration)}"
