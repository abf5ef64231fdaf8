"""The state of a recording besides its events, read again and again while a program runs.

`Watch` belongs to the database thread: its methods are questions. Their answers are never changed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..database import Database, DatabaseError
from ..later import Later
from ..later import read as read_later
from ..query import stack as open_calls
from ..rows import Row, Run, Source, text
from .outline import FirstPage, open_view
from .text import Line
from .view import View

if TYPE_CHECKING:
    from ..filter.tree import Filter
    from ..signatures import Signatures
    from .effects import Task
    from .timeline import Cell, Timeline

File: TypeAlias = tuple[int, int]  # device and inode


class Start(NamedTuple):
    """The answer of the first look at a database."""

    runs: list[Run]
    sources: list[Source]
    view: View
    file: File | None


class Pulse(NamedTuple):
    """A few numbers that tell at a glance whether something has changed."""

    version: tuple[int, int]  # of the database's content
    file: File | None  # the file's identity; None: the name has no file any more
    newest: int | None  # recording, and its command
    command: str
    run: int | None  # that is shown ...
    finished: int | None  # ... and its state
    exit_status: int | None
    evicted: int
    damages: int  # segments that could not be read so far


class Course(NamedTuple):
    """The course of the run that is shown until now, and the runs and sources that there are."""

    runs: list[Run]
    sources: list[Source]
    timeline: Timeline
    cells: list[Cell]
    damages: int  # segments that could not be read so far
    later: Later  # what is passed over


def opening(database: Database, run: int | None, every: bool, filter: Filter | None) -> Start:
    """The runs, and the shown one: the newest, `run`, or every."""
    runs = database.runs()
    if run is not None and run not in [each.id for each in runs]:
        there = ", ".join(str(each.id) for each in runs[-10:]) or "none"
        raise DatabaseError(f"{database.path} has no run {run}; there are: {there}")
    shown = None if every or not runs else run or runs[-1].id
    return Start(runs, _sources(database, runs, shown), View(shown, filter), _file(database)[0])


def reopen(path: str) -> Task[None]:
    """Goes on with another database. If that cannot be read, the present one stays."""
    from .effects import Open

    yield lambda _: Database(path).close()
    yield Open(path)


def first_page(database: Database, start: Start, lines: int) -> FirstPage:
    """The first events, with an outline of at most so many lines."""
    return open_view(database, start.view, start.runs, lines)


def _sources(database: Database, runs: list[Run], run: int | None) -> list[Source]:
    return [source for each in runs if run in (None, each.id) for source in database.sources(each.id)]


class Watch:
    """Watches one database. Only the database thread calls it; others may read `signatures`."""

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._timeline: Timeline | None = None
        self._later: dict[int, Later] | None = None  # not read yet

    def pulse(self, database: Database, run: int | None) -> Pulse:
        """A glance: some microseconds."""
        ((version,),) = database.query("i", "PRAGMA data_version")
        newest = database.query("ib", "SELECT id, CAST(command AS BLOB) FROM run ORDER BY id DESC LIMIT 1")
        state = database.query(
            "inni", "SELECT id, finished, exit_status, evicted FROM run WHERE id = ?", (run or -1,)
        )
        number, command = newest[0] if newest else (None, b"")
        _, finished, status, evicted = state[0] if state else (None, None, None, 0)
        file, written = _file(database)
        written = 0 if _is_live(state) else written
        damages = len(database.damages())
        return Pulse((version, written), file, number, text(command), run, finished, status, evicted, damages)

    def course(self, database: Database, run: int | None, width: int, anew: bool) -> Course:
        """The whole course; anew: everything read before is invalid. width: columns of the
        minimap."""
        from . import timeline

        before = self._timeline
        if anew or (before is not None and before.run != run):
            before = None
        self._timeline = line = timeline.read(database, run, before)
        runs = database.runs()
        cells = line.cells(width)
        for each in runs:
            if run in (None, each.id):
                self._signatures.read(database, each.id)
        if self._later is None:
            self._later = read_later(database)
        passed_over = self._later.get(run or 0, Later())
        return Course(runs, _sources(database, runs, run), line, cells, len(database.damages()), passed_over)


def _file(database: Database) -> tuple[File | None, int]:
    """The file of the database's name, if any, and the time of its last change, ns since 1970."""
    try:
        there = os.stat(database.path)
    except OSError:
        return None, 0
    return (there.st_dev, there.st_ino), there.st_mtime_ns


def _is_live(state: Sequence[tuple[object, ...]]) -> bool:
    return bool(state) and state[0][1] is None


def stack(database: Database, row: Row, count: int, view: View) -> list[Row]:
    """The innermost calls that are open around an event, of those that a view shows, at most
    `count`, in the order of depth."""
    if view.is_shown:
        calls = open_calls(database, row[0], view.is_shown, place=view.scope.place)
    else:
        calls = open_calls(database, row[0], "stack.depth >= ?", row[11] - count)
    return [call for call in calls if call[0] != row[0]][-count:]


# ---- in words -----------------------------------------------------------------------------


def ending(finished: int | None, status: int | None) -> str:
    """How a program ended."""
    if finished is None:
        return "the program is running"
    if status is None:
        return "the program has ended; how is not known"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the program was killed by {name}"
    return f"the program ended with status {status}"


def ended(run: Run) -> str:
    """How a program ended, in short."""
    if run.finished is None:
        return "running"
    if run.exit_status is not None and run.exit_status >= 0:
        return f"status {run.exit_status}"
    return ending(run.finished, run.exit_status).removeprefix("the program ").removeprefix("was ")


def header(run: Run | None) -> list[Line]:
    """The lines above the first event."""
    if run is None or not run.evicted:
        return []
    return [_note(f"{run.evicted:,} events dropped here to keep the size (--max-size, --max-traces)", "lost")]


def footer(run: Run | None, damages: int, later: Later) -> list[Line]:
    """The lines below the last event."""
    lines = []
    if run is not None:
        lines.append(_note(ending(run.finished, run.exit_status), "note"))
    if damages:
        lines.append(
            _note(
                f"{damages} segment{'s are' if damages > 1 else ' is'} damaged and not shown: pytrace info",
                "error",
            )
        )
    lines += [_note(part, "error") for part in later.parts()]
    return lines


def _note(text: str, style: str) -> Line:
    text = f"-- {text} --"
    return Line(text, ((0, len(text), style),))
