"""Opens the reader: `pytrace read`. Called by commands.py, on a terminal.

What is wrong with the database is said before the screen is taken.
"""

from __future__ import annotations

import argparse
import gc
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..database import Database
from . import live
from .worker import Job, Worker

T = TypeVar("T")
_PATIENCE = 0.1  # s; a first page that takes longer is not waited for


def run(options: argparse.Namespace) -> int:
    """Shows a database. Returns the exit status. Raises DatabaseError, FilterError."""
    gc.disable()  # until the first screen is there: nothing of what is imported is garbage
    tree = None
    if options.filter.strip():
        from ..filter import parse

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
        page = worker.ask(lambda database: live.first_page(database, _known(opening)), _keep)
        # importing would hold up the other thread: first the page, unless it takes long
        _wait(answered, lambda: page.is_done or opening.error is not None, _PATIENCE)
        from .app import App

        _wait(answered, lambda: opening.is_done, None)
        start = _known(opening)
        app = App(path, worker, read, start, ascii=_wants_ascii(), colours=not os.environ.get("NO_COLOR"))
        if page.is_done and page.answer is not None:
            app.browser.begin(*page.answer)
        else:
            worker.stop(page)  # the screen asks for it, and shows how far it is
        return app.run(), app.reopen
    finally:
        worker.close()
        os.close(read)
        os.close(write)


def _keep(job: Job[Any]) -> None:
    pass  # it is looked at where it was asked


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
