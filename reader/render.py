"""Writes events as text, JSON lines or CSV. Knows neither the database nor the screen.

`text` is for people: no text can move a terminal's cursor or turn its direction around. `json` and
`csv` are for programs; their names are a contract (docs/json.md).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from ..messages import printable
from .rows import LAYER, PYTHON, Row, Source, level_of, text

Renderer: TypeAlias = Callable[[Row], str]  # a line without its end

KEYS = (
    "id", "run", "time", "pid", "tid", "thread", "kind", "module", "func", "file", "line", "depth",
    "duration", "args", "task", "layer", "cpu",
)  # fmt: skip

TASK_MAX = 24  # characters of a task's name; a longer one, as in trio, keeps its end
NAME_MAX = 200  # characters of a thread's name, which is on each line
WIDTH_MAX = 60  # of the column of threads and tasks; longer names move the rest
INDENT_MAX = 40  # levels shown by indentation; deeper ones by a number
_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder().encode  # ASCII: no name can break a line or a terminal


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


class _Names(dict[bytes, str]):
    """Names in their printed form; each is made once."""

    def __init__(self, write: Callable[[str], str]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, name: bytes) -> str:
        self[name] = written = self._write(text(name))
        return written


def json_renderer() -> Renderer:
    """One JSON object an event, in ASCII."""
    names = _Names(_encode)

    def render(event: Row) -> str:
        (
            id, run, time, pid, tid, thread, kind, module, func, file, line, depth, duration, args,
            task, layer, cpu,
        ) = event  # fmt: skip
        more = f', "task": {names[task]}' if task else ""
        if layer != PYTHON:
            more += f', "layer": {names[layer]}'
        if cpu is not None:
            more += f', "cpu": {cpu}'
        return (
            f'{{"id": {id}, "run": {run}, "time": {time}, "pid": {pid}, "tid": {tid}, '
            f'"thread": {names[thread]}, "kind": "{kind}", "module": {names[module]}, "func": {names[func]}, '
            f'"file": {names[file]}, "line": {line}, "depth": {depth}, '
            f'"duration": {"null" if duration is None else duration}, "args": {args}{more}}}'
        )

    return render


def csv_renderer() -> Renderer:
    """The columns of KEYS; `args` is the JSON text, names are as in `text`."""

    def field(value: str) -> str:
        if '"' in value or "," in value:
            return '"' + value.replace('"', '""') + '"'
        return value

    names = _Names(lambda name: field(printable(name)))

    def render(event: Row) -> str:
        (
            id, run, time, pid, tid, thread, kind, module, func, file, line, depth, duration, args,
            task, layer, cpu,
        ) = event  # fmt: skip
        return (
            f"{id},{run},{time},{pid},{tid},{names[thread]},{kind},{names[module]},{names[func]},"
            f"{names[file]},{line},{depth},{'' if duration is None else duration},{field(args)},"
            f"{names[task]},{names[layer]},{'' if cpu is None else cpu}"
        )

    return render


def arguments(args: str) -> list[dict[str, Any]]:
    """An event's arguments, each with `name`, `value` and `type`, and perhaps `attributes`."""
    decoded: list[dict[str, Any]] = _decode(args)[0]
    return decoded


@lru_cache(1024)
def _values(args: str) -> list[str]:
    """The first argument's value (empty if there is none), then name=value of each."""
    values = arguments(args)
    return [values[0]["value"] if values else "", *[f"{arg['name']}={arg['value']}" for arg in values]]


def names(module: str, func: str, layer: str = "python") -> tuple[str, str]:
    """A function's name with its module, and the one of the lines that follow its call. Both
    are the same where many modules have such a function: `<module>`, `<lambda>`, `__getattr__`.
    What is not Python has its layer in front: `[c] builtins.len`."""
    full = f"{module}.{func}" if module else func
    is_common = func.startswith("<") or (func.startswith("__") and "." not in func)
    mark = "" if layer == "python" else f"[{layer}] "
    return mark + full, mark + (full if is_common else func)


# ---- text ---------------------------------------------------------------------------------

# the start of a line, by kind
SIGNS = {
    "call": "->", "return": "<-", "exception": "<!", "yield": "<~", "resume": "~>", "throw": "~!",
    "raise": "!!", "log": "--", "lost": "…", "line": "..", "event": "**",
}  # fmt: skip
# and its colour (SGR)
_COLOURS = {
    "call": "", "return": "32", "exception": "1;31", "yield": "36", "resume": "36", "throw": "1;31",
    "raise": "1;31", "log": "1", "lost": "1;33", "line": "2", "event": "",
}  # fmt: skip
# of events that have no colour by their kind, by their layer
_LAYER_COLOURS = {b"cython": "34", b"c": "34", b"native": "35", b"kernel": "33"}
_DIM = "2"


def _shortened(task: str) -> str:
    return task if len(task) <= TASK_MAX else f"…{task[1 - TASK_MAX :]}"


class TextRenderer:
    """Lines for people: time, thread, then the calls as a tree.

    `sources` are the threads known so far: columns for process and run appear only if they differ,
    and are no wider than needed. `has_arguments` tells of a call without values whether its
    function has arguments, which were not recorded then.
    """

    def __init__(
        self,
        sources: list[Source],
        *,
        colour: bool,
        has_arguments: Callable[[Row], bool] = lambda event: False,
    ) -> None:
        self._colour = colour
        self._has_arguments = has_arguments
        runs = {source.run for source in sources}
        self._show_run = len(runs) > 1
        self._show_pid = len({(source.run, source.pid) for source in sources}) > len(runs)
        self._width = min(max((len(self._name(source)) for source in sources), default=0), WIDTH_MAX)
        self._columns = lru_cache(4096)(self._column)
        self._functions: dict[tuple[bytes, bytes, bytes], tuple[str, str]] = {}
        self._second = -1
        self._clock = ""
        self._last: dict[tuple[int, int, int], tuple[str, bytes, bytes, bytes, int]] = {}

    def __call__(self, event: Row) -> str:
        colour = _COLOURS[event[6]] or _LAYER_COLOURS.get(event[LAYER], "")
        return self._line(event, colour, f"{SIGNS[event[6]]} {self._what(event)}")

    def other(self, first: Row, what: str) -> str:
        """The line of events that are not shown, of which this is the first one."""
        self._last.pop((first[1], first[3], first[4]), None)
        return self._line(first, _DIM, what)

    def _line(self, event: Row, style: str, what: str) -> str:
        _, run, at, pid, tid, thread, _, _, _, _, _, _, _, _, task, *_ = event
        depth = level_of(event)
        second, ns = divmod(at, 1_000_000_000)
        if second != self._second:
            self._second, self._clock = second, time.strftime("%H:%M:%S", time.localtime(second))
        columns = self._columns((run, pid, tid, thread, task))
        start = f"{self._clock}.{ns // 1000:06}  {columns}"
        indent = "  " * depth if depth <= INDENT_MAX else f"{'  ' * INDENT_MAX}({depth}) "
        what = printable(what)
        if not self._colour:
            return f"{start}{indent}{what}"
        return f"\x1b[{_DIM}m{start}\x1b[0m{indent}" + (f"\x1b[{style}m{what}\x1b[0m" if style else what)

    @staticmethod
    def _name(source: Source) -> str:
        name = source.thread
        return printable(name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 1]}…") or str(source.tid)

    def _column(self, source: tuple[int, int, int, bytes, bytes]) -> str:
        """Run, process, thread and its task in front of an event. A column never becomes
        narrower."""
        run, pid, tid, thread, task = source
        name = self._name(Source(run, pid, tid, text(thread)))
        if task:
            name += f" {_shortened(printable(text(task)))}"
        self._width = max(self._width, min(len(name), WIDTH_MAX))
        run_column = f"{run:>4}  " if self._show_run else ""
        pid_column = f"{pid:>7}  " if self._show_pid else ""
        return f"{run_column}{pid_column}{name:<{self._width}}  "

    def _name_of(self, module: bytes, func: bytes, layer: bytes) -> tuple[str, str]:
        self._functions[module, func, layer] = found = names(text(module), text(func), text(layer))
        return found

    def _what(self, event: Row) -> str:
        _, run, _, pid, tid, _, kind, module, func, file, line, depth, took, args, _, layer, _ = event
        value, *values = _values(args)
        if kind == "lost":
            return f"{value or 'some'} events lost …"
        if kind == "log":
            return "  ".join([value, *values[1:]])
        full, short = self._functions.get((module, func, layer)) or self._name_of(module, func, layer)
        last = self._last.get((run, pid, tid))
        self._last[run, pid, tid] = here = (kind, module, func, file, depth)
        if kind == "call":
            if values:
                return f"{full}({', '.join(values)})"
            return f"{full}({'…' if self._has_arguments(event) else ''})"
        if kind == "line":
            return f"{line}: {', '.join(values)}" if values else str(line)
        if kind == "event":
            return f"{full}: {', '.join(values)}" if values else full
        if kind == "resume":
            return full
        if kind == "throw":
            return f"{full}: {value}"
        # a line right after the one that names the function need not repeat the name
        adjacent = last is not None and last[0] in ("call", "resume") and last[1:] == here[1:]
        what = (value if adjacent else f"{short}: {value}") if value else short
        if kind == "raise":
            return f"{what}  line {line}" if line else what
        return what if took is None else f"{what}  {duration(took)}"
