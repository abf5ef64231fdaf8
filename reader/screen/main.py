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
from typing import Any, TypeVar

from ..database import Database
from . import live
from .worker import Job, Worker

T = TypeVar("T")
_PATIENCE = 0.1  # s; a first page may take so long
_BESIDE = 5  # rows of the screen that have no events at first


def run(options: SimpleNamespace) -> int:
    """Shows a database. Returns the exit status. Raises DatabaseError, FilterError."""
    gc.disable()  # until the first screen: imported modules are no garbage
    tree = None
    if options.filter.strip():
        from ..filter.parser import parse

        tree = parse(options.filter)
    path: str | None = options.database
    run, every = options.run or None, options.run is None
    status = 0
    while path is not None:
        status, path = _show(path, run, every, tree)
        run, every, tree = None, False, None
    return status


def _show(path: str, run: int | None, every: bool, tree: Any) -> tuple[int, str | None]:
    """Returns the exit status, and another database to show then."""
    read, write = os.pipe()
    answered = threading.Event()

    def wake() -> None:
        answered.set()
        os.write(write, b".")

    worker = Worker(lambda watch: Database(path, watch), wake)
    try:
        opening = worker.ask(lambda database: live.opening(database, run, every, tree), _keep)
        lines = os.get_terminal_size(sys.stdout.fileno()).lines - _BESIDE
        page = worker.ask(lambda database: live.first_page(database, _known(opening), lines), _keep)
        # imports would delay the other thread: the page comes first, unless it takes long
        _wait(answered, lambda: page.is_done or opening.error is not None, _PATIENCE)
        from .app import App
        from .session import Session

        _wait(answered, lambda: opening.is_done, None)
        start = _known(opening)
        session = Session(path, start, ascii=_wants_ascii(), plain=bool(os.environ.get("NO_COLOR")))
        app = App(session, worker, read)
        if page.is_done and page.answer is not None:
            view, rows, ended, cursor = page.answer
            session.browser.begin(rows, ended, view, cursor)
        else:
            worker.stop(page)  # the screen asks again, and shows the progress
        return app.run(), app.reopen
    finally:
        worker.close()
        os.close(read)
        os.close(write)


def _keep(job: Job[Any]) -> None:
    pass  # handled by the code that asked


def _known(job: Job[T]) -> T:
    if job.error is not None:
        raise job.error
    assert job.answer is not None
    return job.answer


def _wait(answered: threading.Event, enough: Callable[[], bool], seconds: float | None) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while not enough():
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return
        answered.wait(left)
        answered.clear()


def _wants_ascii() -> bool:
    """Whether the terminal may not know more than ASCII."""
    import locale

    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        return True
    return locale.getpreferredencoding(False).lower().replace("-", "") not in ("utf8", "utf_8")
