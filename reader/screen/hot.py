"""Functions and lines by their calls, runs and times: the questions of the hot list. The database
thread calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..rows import Run, text

if TYPE_CHECKING:
    from .. import analyse
    from ..database import Database, Parameter
    from .view import View

_SOURCE = 200  # characters of a line's source
_CODE = "CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB), line"


class Function(NamedTuple):
    """A function, whatever code objects it has: each process makes its own. Names are as stored."""

    module: bytes
    func: bytes
    file: bytes
    line: int

    @property
    def name(self) -> str:
        return f"{text(self.module)}.{text(self.func)}" if self.module else text(self.func)


class Times(NamedTuple):
    """The calls of a function, and its times in ns; those after `calls` are None where they are not
    known. docs/schema.md says what each is."""

    calls: int
    own: int | None = None
    total: int | None = None
    average: int | None = None
    median: int | None = None
    longest: int | None = None
    off: int | None = None  # of `own`


def predicate(view: View, runs: list[Run]) -> str:
    """The calls of a view, for `hot MATCH`."""
    shown = [run for run in runs if view.run in (None, run.id)]
    conditions = [] if view.run is None else [f"(= run {view.run})"]
    if view.layers:
        conditions.append(view.layers)
    if view.filter is not None:
        from ..filter.sql import predicate as of_filter

        conditions.append(of_filter(view.filter, shown))
    return f"(and {' '.join(conditions)})"


def usual(run: int | None) -> Callable[[Database], dict[Function, Times]]:
    """A question for all functions of a run; None: of all runs."""
    return functions("(and)" if run is None else f"(= run {run})", mine=False)


def functions(condition: str, mine: bool) -> Callable[[Database], dict[Function, Times]]:
    """A question for all functions with calls that meet a condition. mine: for those of one's own
    code."""

    def question(database: Database) -> dict[Function, Times]:
        found: dict[Function, Times] = {}
        rows = database.query(
            "bbbiiiinnnni",
            f"SELECT {_CODE}, calls, own, total, average, median, longest, off, mine FROM hot"
            " WHERE hot MATCH ?",
            (condition,),
        )
        for module, func, file, line, *numbers, is_mine in rows:
            if is_mine or not mine:
                function, times = Function(module, func, file, line), Times(*numbers)
                found[function] = _together(found[function], times) if function in found else times
        return found

    return question


def _together(one: Times, other: Times) -> Times:
    """The times of two code objects of the same function."""
    more, less = (one, other) if one.calls >= other.calls else (other, one)
    calls = one.calls + other.calls
    averages = ((one.average or 0) * one.calls + (other.average or 0) * other.calls) // max(calls, 1)
    return Times(
        calls,
        (one.own or 0) + (other.own or 0),
        (one.total or 0) + (other.total or 0),
        averages,
        more.median if more.median is not None else less.median,
        max(one.longest or 0, other.longest or 0),
        None if one.off is None and other.off is None else (one.off or 0) + (other.off or 0),
    )


def calls(run: int | None, mine: bool) -> Callable[[Database], dict[Function, Times]]:
    """A question for the calls of all functions, by the summaries of segments alone: it is answered
    at once."""

    def question(database: Database) -> dict[Function, Times]:
        from ..info import calls_by_code

        has_mine = database.has_column("code", "mine")
        found: dict[Function, Times] = {}
        for (id,) in database.query("i", "SELECT id FROM run WHERE ?1 = 0 OR id = ?1", (run or 0,)):
            summaries = database.query(
                "b", "SELECT codes FROM segment INDEXED BY segment_time WHERE run = ?", (id,)
            )
            counts = calls_by_code(codes for (codes,) in summaries)
            parameters: tuple[Parameter, ...] = (id,)
            for number, module, func, file, line, is_mine in database.query(
                "ibbbii",
                f"SELECT number, {_CODE}, {'mine' if has_mine else '0'} FROM code WHERE run = ?",
                parameters,
            ):
                if counts[number] and (is_mine or not mine):
                    function = Function(module, func, file, line)
                    before = found[function].calls if function in found else 0
                    found[function] = Times(before + counts[number])
        return found

    return question


# ---- lines --------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of a function. Names are as text."""

    file: str
    line: int
    func: str
    module: str


class HotLine(NamedTuple):
    """A line's numbers in all runs; its place and its source, for people."""

    numbers: analyse.Row
    place: str
    source: str


def has_off(runs: list[Run]) -> Callable[[Database], bool]:
    """A question: whether the scheduler's events were recorded."""

    def question(database: Database) -> bool:
        found = "SELECT 1 FROM code WHERE run = ? AND module = 'sched' AND func = 'sched_switch' LIMIT 1"
        return any(database.query("i", found, (run.id,)) for run in runs)

    return question


def has_lines(runs: list[Run]) -> Callable[[Database], bool]:
    """A question: whether lines were recorded."""

    def question(database: Database) -> bool:
        from ..analyse import has_lines

        return any(has_lines(database, run.id) for run in runs)

    return question


def lines(condition: str, runs: list[Run], mine: bool) -> Callable[[Database], dict[Line, HotLine]]:
    """A question for all lines with runs that meet a condition. mine: for those of one's own
    code."""

    def question(database: Database) -> dict[Line, HotLine]:
        from .. import analyse
        from ..sources import Sources

        found: dict[Line, HotLine] = {}
        for run in runs:
            sources, file, texts = Sources(database, run), "", dict[int, str]()
            for row in sorted(analyse.lines(database, run.id, condition, mine), key=lambda row: row.file):
                line = Line(row.file, row.line, row.func, row.module)
                if line in found:
                    numbers = analyse.together(found[line].numbers, row)
                    found[line] = found[line]._replace(numbers=numbers)
                    continue
                if row.file != file:  # a file at a time: a recording may have thousands
                    file, texts = row.file, dict(sources.whole(row.file).lines)
                source = texts.get(row.line, "").strip()[:_SOURCE]
                found[line] = HotLine(row, analyse.place(run, row), source)
        return found

    return question
