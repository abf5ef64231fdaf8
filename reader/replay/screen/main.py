"""Opens the screen of a replay. Called by replay/main.py, on a terminal. A problem with the
database is reported before the screen is taken."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import Any

from ....options import UsageError
from ...database import Database, DatabaseError
from ...rows import Run
from ...screen.effects import Open
from ...screen.main import go_on, keep, known, wait, wants_ascii
from ...screen.worker import Worker
from .. import when
from ..history import History
from ..moment import Moment


def run(options: SimpleNamespace) -> int:
    """Shows a replay. Returns the exit status. Raises DatabaseError, UsageError."""
    walks: dict[Any, Any] = {}
    return go_on(*show(options.database, options.run, options.at, walks), walks, show)


def show(path: str, run: int, at: str, walks: dict[Any, Any]) -> tuple[int, Open | None]:
    """run: 0: the newest; at: where to begin, as it was typed. walks: replays that were left for
    the reader. Returns the exit status, and what to show then."""
    read, write = os.pipe()
    answered = threading.Event()

    def wake() -> None:
        answered.set()
        os.write(write, b".")

    worker = Worker(lambda watch: Database(path, watch), wake)
    try:
        opening = worker.ask(lambda database: _opening(database, run, at), keep)
        from .app import App
        from .scene import Sight
        from .steps import begin
        from .walk import Walk

        wait(answered, lambda: opening.is_done, None)
        (found, first), plain = known(opening), bool(os.environ.get("NO_COLOR"))
        sight = Sight(found, not plain)
        walk = walks.get((path, found.id)) or Walk(path, found, sight, ascii=wants_ascii(), plain=plain)
        walks[path, found.id], walk.sight = walk, sight
        app = App(walk, worker, read, begin(walk, first))
        return app.run(), app.reopen
    finally:
        worker.close()
        os.close(read)
        os.close(write)


def _opening(database: Database, run: int, at: str) -> tuple[Run, Moment | None]:
    """The run, and where to begin in it: None: at its start."""
    found = _run_of(database, run)
    if not at.strip():
        return found, None
    history, id = History(database, found.id), when.event_id(at)
    try:
        moment = history.at_time(when.parse(at, found.started, found)) if id is None else history.at(id)
    except when.WhenError as error:
        raise UsageError(f"--at {at}: {error}") from None
    if moment is None:
        raise UsageError(f"--at {at}: there is no such event in run {found.id}")
    return found, moment


def _run_of(database: Database, run: int) -> Run:
    runs = database.runs()
    if not runs:
        raise DatabaseError(f"{database.path} has no recording yet: pytrace --lines script.py makes one")
    found = next((each for each in runs if each.id == run), None) if run else runs[-1]
    if found is None:
        there = ", ".join(str(each.id) for each in runs[-10:])
        raise DatabaseError(f"{database.path} has no run {run}; there are: {there}")
    return found
