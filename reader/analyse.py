"""`pytrace analyse`: which lines and functions took the time.

The numbers come from the tables `line` and `hot`. Where no lines were recorded, functions are shown
instead of lines, in the same columns. Memory does not grow with the recording's length, but with
the number of its lines and functions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from shutil import get_terminal_size
from types import SimpleNamespace
from typing import Any

from ..messages import printable, say
from ..options import UsageError
from . import later
from .damage import report
from .database import Database
from .output import Output
from .printing import chosen, wants_colour
from .progress import Progress
from .render import duration
from .rows import Run, text
from .sources import Sources
from .sql_output import padded, writer

COLUMNS = ("run", "file", "line", "func", "module", "count", "own", "total", "average")
_SHOWN = 20  # lines, and functions, as text
_BAR = 10
_NAME_MAX, _PLACE_MAX, _SOURCE_MAX = 36, 40, 100  # cells of these columns
_SOURCE_MIN = 20
_DIM, _BAR_COLOUR = "2", "33"
_NO_LINES = (
    "no lines were recorded, so these are functions. To see which line took the time, and what each one "
    "changed, record with: pytrace --lines script.py"
)


@dataclass(frozen=True, slots=True)
class Row:
    """A line, or a function with its first line. Times are ns."""

    run: int
    file: str
    line: int
    func: str
    module: str
    count: int
    own: int
    total: int
    average: int | None  # of a run, or of a call; None: of none the end is known

    @property
    def name(self) -> str:
        return f"{self.module}.{self.func}" if self.module else self.func


def run(options: SimpleNamespace) -> int:
    """Prints the hottest lines and functions. Returns the exit status. Raises DatabaseError,
    UsageError, OSError."""
    progress = Progress()
    database = Database(options.database, progress.look)
    try:
        runs = chosen(database, options.run)
        output = Output(options.format == "text", progress)
        with_lines = any(has_lines(database, each.id) for each in runs)
        file = _file(database, runs, options.file) if options.file and runs else None
        if options.format == "text":
            for number, each in enumerate(runs):
                output.write([""] * bool(number) + [*_as_text(database, each, options, file)])
        else:
            _as_rows(database, runs, options, output, file, with_lines)
        damages = report(database.damages())
        skipped = later.told(database, [each.id for each in runs])
    finally:
        progress.clear()
        database.close()
    if not runs:
        say(f"{options.database} holds no recording yet. Record one with: pytrace script.py")
    elif not with_lines:
        say(_NO_LINES)
    for line in [*damages, *skipped]:
        say(line)
    return 2 if damages else 0


def has_lines(database: Database, run: int) -> bool:
    """Whether lines were recorded. The summaries of segments tell it."""
    found = database.query("i", "SELECT 1 FROM event WHERE run = ? AND kind = 'line' LIMIT 1", (run,))
    return bool(found)


# ---- the numbers -------------------------------------------------------------------------------


def lines(database: Database, run: int, condition: str = "", mine: bool = False) -> list[Row]:
    """The lines of a run, each once, whatever code objects have it. condition: for `line MATCH`;
    mine: those of one's own code."""
    return _rows(database, run, "line", "count", condition, mine)


def functions(database: Database, run: int) -> list[Row]:
    """The functions of a run, likewise."""
    return _rows(database, run, "hot", "calls")


def _rows(
    database: Database, run: int, table: str, count: str, condition: str = "", mine: bool = False
) -> list[Row]:
    where = "run = ?" + f" AND {table} MATCH ?" * bool(condition) + " AND mine" * mine
    found: dict[tuple[bytes, int, bytes, bytes], Row] = {}
    for file, line, func, module, *numbers in database.query(
        "bibbiiin",
        "SELECT CAST(file AS BLOB), line, CAST(func AS BLOB), CAST(module AS BLOB),"
        f" {count}, own, total, average FROM {table} WHERE {where}",
        (run, condition) if condition else (run,),
    ):
        row = Row(run, text(file), line, text(func), text(module), *numbers)
        key = file, line, func, module
        found[key] = together(found[key], row) if key in found else row
    return list(found.values())


def together(one: Row, other: Row) -> Row:
    """The numbers of two code objects, or runs, with the same line."""
    known = [row for row in (one, other) if row.average is not None]
    count = sum(row.count for row in known)
    average = sum((row.average or 0) * row.count for row in known) // max(count, 1) if known else None
    return replace(
        one,
        count=one.count + other.count,
        own=one.own + other.own,
        total=one.total + other.total,
        average=average,
    )


def _sorted(rows: list[Row], key: str) -> list[Row]:
    """The largest first."""
    return sorted(rows, key=lambda row: (-_number(row, key), -row.own, row.file, row.line, row.func))


def _number(row: Row, key: str) -> int:
    value = getattr(row, key)
    return -1 if value is None else int(value)


def _file(database: Database, runs: list[Run], wanted: str) -> str:
    """The stored name of the file that the user names by its path, or by the path's end. Raises
    UsageError."""
    real = os.path.realpath(wanted)
    ends: set[str] = set()
    for run in runs:
        for (stored,) in database.query(
            "b", "SELECT DISTINCT CAST(file AS BLOB) FROM code WHERE run = ?", (run.id,)
        ):
            name = text(stored)
            if name == wanted:
                return name
            if os.path.join(run.directory, name) == real or f"/{name}".endswith(f"/{wanted}"):
                ends.add(name)
    if len(ends) == 1:
        return ends.pop()
    if not ends:
        raise UsageError(f"--file {wanted}: nothing was recorded in a file of this name")
    raise UsageError(f"--file {wanted}: which one? There are: {', '.join(sorted(ends)[:10])}")


# ---- JSON and CSV ------------------------------------------------------------------------------


def _as_rows(
    database: Database,
    runs: list[Run],
    options: SimpleNamespace,
    output: Output,
    file: str | None,
    with_lines: bool,
) -> None:
    rows = [
        row
        for run in runs
        for row in (lines if with_lines else functions)(database, run.id)
        if file in (None, row.file)
    ]
    written = writer(options.format, output.line)
    written.begin(COLUMNS)
    for row in _sorted(rows, options.sort)[: options.limit]:
        cells: tuple[Any, ...] = astuple(row)
        if options.format == "csv":  # names are as in text
            cells = tuple(printable(cell) if isinstance(cell, str) else cell for cell in cells)
        written.row(cells)
    written.end()
    output.flush()


# ---- as text -----------------------------------------------------------------------------------


class _Style:
    """The width, colours and letters of the output."""

    def __init__(self) -> None:
        self._colour = wants_colour("auto")
        self.width = get_terminal_size().columns if sys.stdout.isatty() else None
        try:
            "█▌".encode(sys.stdout.encoding)
            self._full, self._half = "█", "▌"
        except UnicodeError:
            self._full, self._half = "#", ""

    def coloured(self, written: str, colour: str) -> str:
        return f"\x1b[{colour}m{written}\x1b[0m" if self._colour and written.strip() else written

    def bar(self, number: int, most: int) -> str:
        """The share of the largest number, as a bar."""
        halves = round(2 * _BAR * max(number, 0) / most) if most > 0 else 0
        bar = self._full * (halves // 2) + self._half * (halves % 2)
        return self.coloured(f"{bar:<{_BAR}}", _BAR_COLOUR)


def _as_text(database: Database, run: Run, options: SimpleNamespace, file: str | None) -> Iterator[str]:
    style = _Style()
    yield printable(f"run {run.id}: {run.command}")
    with_lines = has_lines(database, run.id)
    if file is not None:
        if with_lines:
            yield from _whole_file(style, database, run, file, lines(database, run.id), options.sort)
        else:
            rows = [row for row in functions(database, run.id) if row.file == file]
            yield from _table(style, database, run, rows, "functions", options)
        return
    if with_lines:
        yield from _table(style, database, run, lines(database, run.id), "lines", options)
    yield from _table(style, database, run, functions(database, run.id), "functions", options)


def _table(
    style: _Style, database: Database, run: Run, rows: list[Row], what: str, options: SimpleNamespace
) -> Iterator[str]:
    """The hottest lines, or functions, a line each."""
    limit = _SHOWN if options.limit is None else options.limit
    shown = _sorted(rows, options.sort)[:limit]
    most = max((_number(row, options.sort) for row in shown), default=0)
    places = [_shortened(place(run, row), _PLACE_MAX) for row in shown]
    names = [_shortened(printable(row.name), _NAME_MAX) for row in shown]
    head = "file:line", "func"
    widths = [max(map(len, [title, *cells])) for title, cells in zip(head, (places, names), strict=True)]
    yield ""
    yield f"The {what} with the most {_MOST[options.sort]}:"
    source = "source" if what == "lines" else ""
    yield style.coloured(
        f"{padded(head[0], -widths[0])}  {padded(head[1], -widths[1])}  {_figures(None)}"
        f"  {'':<{_BAR}}  {source}".rstrip(),
        _DIM,
    )
    source_of = _source_of(database, run)
    for row, where, name in zip(shown, places, names, strict=True):
        start = f"{padded(where, -widths[0])}  {padded(name, -widths[1])}  {_figures(row)}  "
        room = _SOURCE_MAX if style.width is None else style.width - len(start) - _BAR - 2
        code = source_of(row.file).get(row.line, "").strip() if source else ""
        code = printable(code)[: max(room, 0)] if room >= _SOURCE_MIN else ""
        yield f"{start}{style.bar(_number(row, options.sort), most)}  {code}".rstrip()
    if len(rows) > len(shown):
        yield f"… {len(rows) - len(shown):,} more: --limit {len(rows)}, or --format json, has all"


_MOST = {"own": "own time", "total": "total time", "average": "time on average", "count": "runs or calls"}


def _figures(row: Row | None) -> str:
    """Count, own, total and average of a line; None: their titles."""
    if row is None:
        return f"{'count':>11}  {'own':>7}  {'total':>7}  {'average':>7}"
    average = "" if row.average is None else duration(row.average)
    return f"{row.count:>11,}  {duration(row.own):>7}  {duration(row.total):>7}  {average:>7}"


def _whole_file(
    style: _Style, database: Database, run: Run, file: str, rows: list[Row], sort: str
) -> Iterator[str]:
    """A file with the figures of its lines in the margin."""
    of_line: dict[int, Row] = {}
    for row in rows:
        if row.file == file:
            before = of_line.get(row.line)
            # of functions in one line, one may call the other: their total times overlap
            of_line[row.line] = (
                replace(together(before, row), total=max(before.total, row.total)) if before else row
            )
    most = max((_number(row, sort) for row in of_line.values()), default=0)
    source, note = Sources(database, run).whole(file)
    texts = dict(source)
    yield ""
    yield printable(f"{file}, the bar shows the {_MOST[sort].removesuffix(' or calls')}:")
    if note:
        yield printable(f"({note})")
    yield style.coloured(f"{_figures(None)}  {'':<{_BAR}}   line", _DIM)
    for number in sorted(texts.keys() | of_line.keys()):
        at = of_line.get(number)
        figures = _figures(at) if at else " " * len(_figures(None))
        bar = style.bar(_number(at, sort), most) if at else " " * _BAR
        code = printable(texts.get(number, ""))
        if style.width is not None:
            code = code[: max(style.width - len(figures) - _BAR - 11, _SOURCE_MIN)]
        yield f"{figures}  {bar}  {number:>5}  {code if at else style.coloured(code, _DIM)}".rstrip()


def _source_of(database: Database, run: Run) -> Callable[[str], dict[int, str]]:
    """A function that reads a file's lines by their numbers; none if it is not there."""

    sources = Sources(database, run)
    return lru_cache(8)(lambda file: dict(sources.whole(file).lines))


def place(run: Run, row: Row) -> str:
    """File and line; a file in the folder where the program began by its name from there."""
    name = row.file.removeprefix(f"{run.directory}/") if run.directory else row.file
    return printable(f"{name}:{row.line}")


def _shortened(name: str, width: int) -> str:
    """Its end, which tells more."""
    return name if len(name) <= width else f"…{name[1 - width :]}"
