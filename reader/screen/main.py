"""Opens the reader: `pytrace read`. Called by commands.py, on a terminal.

The database is opened by its thread while the screen's library is still being imported. What is wrong with
it is said before the screen is taken.
"""

from __future__ import annotations

import argparse
import os
import threading
from typing import Any

from ..database import Database, DatabaseError
from . import live
from .worker import Job, Worker


def run(options: argparse.Namespace) -> int:
    """Shows a database. Returns the exit status. Raises DatabaseError, FilterError."""
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
    opened = threading.Event()
    started: list[Job[live.Start]] = []

    def wake() -> None:
        opened.set()
        os.write(write, b".")

    worker = Worker(lambda watch: Database(path, watch), wake)
    try:
        worker.ask(lambda database: live.opening(database, run, every, tree), started.append)
        from .app import App  # meanwhile: this takes longer

        opened.wait()
        worker.deliver()
        (job,) = started
        if job.error is not None:
            raise job.error
        assert job.answer is not None
        app = App(path, worker, job.answer, ascii=_wants_ascii(), colours=not os.environ.get("NO_COLOR"))
        app.listen(read)
        return app.run(), app.reopen
    finally:
        worker.close()
        os.close(read)
        os.close(write)


def _wants_ascii() -> bool:
    """Whether the terminal may not know more than ASCII."""
    import locale

    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        return True
    return locale.getpreferredencoding(False).lower().replace("-", "") not in ("utf8", "utf_8")


__all__ = ["DatabaseError", "run"]
