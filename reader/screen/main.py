"""Opens the reader: `pytrace read`. Called by subcommands.py, on a terminal.

A problem with the database is reported before the screen is taken.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

from ..database import Database
from . import live
from .effects import Open
from .worker import Job, Worker

T = TypeVar("T")
# shows the replay of a run (0: the newest) at a place; the exit status, and what is shown then
Replay: TypeAlias = "Callable[[str, int, str, dict[Any, Any]], tuple[int, Open | None]]"
_PATIENCE = 0.1  # s; a first page may take so long
_BESIDE = 5  # rows of the screen that have no events at first


def run(options: SimpleNamespace, replay: Replay) -> int:
    """Shows a database, and replays of it when somebody asks for one. Returns the exit status.
    Raises DatabaseError, FilterError."""
    gc.disable()  # until the first screen: imported modules are no garbage
    tree = None
    if options.filter.strip():
        from ..filter.parser import parse

        tree = parse(options.filter)
    run, every = options.run or None, options.run is None
    return go_on(*_show(Open(options.database, run), every, tree), {}, replay)


def go_on(status: int, turn: Open | None, walks: dict[Any, Any], replay: Replay) -> int:
    """Shows what is asked for after the reader or a replay, until one of them is left. walks:
    replays, to come back to. Returns the exit status."""
    while turn is not None:
        if turn.is_replay:
            status, turn = replay(turn.path, turn.run or 0, str(turn.at or ""), walks)
        else:
            status, turn = _show(turn, False, None)
    return status


def _show(turn: Open, every: bool, tree: Any) -> tuple[int, Open | None]:
    """Returns the exit status, and what to show then."""
    path, run = turn.path, turn.run
    read, write = os.pipe()
    answered = threading.Event()

    def wake() -> None:
        answered.set()
        os.write(write, b".")

    worker = Worker(lambda watch: Database(path, watch), wake)
    try:
        opening = worker.ask(lambda database: live.opening(database, run, every, tree), keep)
        lines = os.get_terminal_size(sys.stdout.fileno()).lines - _BESIDE
        page = worker.ask(lambda database: live.first_page(database, known(opening), lines), keep)
        # imports would delay the other thread: the page comes first, unless it takes long
        wait(answered, lambda: page.is_done or opening.error is not None, _PATIENCE)
        from .app import App
        from .session import Session

        wait(answered, lambda: opening.is_done, None)
        start = known(opening)
        session = Session(path, start, ascii=wants_ascii(), plain=bool(os.environ.get("NO_COLOR")))
        app = App(session, worker, read)
        session.begins_at = turn.at
        if page.is_done and page.answer is not None and turn.at is None:
            view, rows, ended, cursor = page.answer
            session.browser.begin(rows, ended, view, cursor)
        else:
            worker.stop(page)  # the screen asks again, and shows the progress
        return app.run(), app.reopen
    finally:
        worker.close()
        os.close(read)
        os.close(write)


def keep(job: Job[Any]) -> None:
    pass  # handled by the code that asked


def known(job: Job[T]) -> T:
    if job.error is not None:
        raise job.error
    assert job.answer is not None
    return job.answer


def wait(answered: threading.Event, enough: Callable[[], bool], seconds: float | None) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while not enough():
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return
        answered.wait(left)
        answered.clear()


def wants_ascii() -> bool:
    """Whether the terminal may not know more than ASCII."""
    import locale

    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        return True
    return locale.getpreferredencoding(False).lower().replace("-", "") not in ("utf8", "utf_8")
