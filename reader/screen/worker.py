"""The one thread that reads the database, so that the screen never waits for it.

A question is a function that gets the database and gives an answer. One is answered at a time, those
that somebody waits for first; whatever else is going on in the background stops for them, and begins again
afterwards. Stopping works in the middle of any query, within milliseconds.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

from ..database import Database

T = TypeVar("T")
Question: TypeAlias = "Callable[[Database], T]"
_REFRESH = 0.1  # s between two looks at how far a query is


class Stopped(Exception):
    """A question was taken back while it was being answered."""


class Job(Generic[T]):
    """A question and what became of it: `answer`, or `error` where an exception ended it."""

    def __init__(self, question: Question[T], then: Callable[[Job[T]], None], background: bool) -> None:
        self.question, self.then, self.background = question, then, background
        self.answer: T | None = None
        self.error: BaseException | None = None
        self.stopped = False  # somebody wants it to stop, or to stand back
        self.dropped = False  # nobody wants its answer any more
        self.is_done = False


class Worker:
    """Answers questions about a database in a thread of its own.

    wake: called in that thread when there are answers; `deliver` then hands them out in the caller's.
    """

    def __init__(self, open: Callable[[Callable[[], object]], Database], wake: Callable[[], None]) -> None:
        self._open, self._wake = open, wake
        self._changed = threading.Condition()
        self._waiting: deque[Job[Any]] = deque()
        self._behind: deque[Job[Any]] = deque()  # background
        self._done: deque[Job[Any]] = deque()
        self._current: Job[Any] | None = None
        self._closed = False
        self.progress = (0, 0)  # segments opened, and all, of the query that runs
        self._most = 0  # segments of a query of this question
        self._look_at = 0.0
        self._thread = threading.Thread(target=self._work, name="pytrace: database", daemon=True)
        self._thread.start()

    def ask(
        self, question: Question[T], then: Callable[[Job[T]], None], *, background: bool = False
    ) -> Job[T]:
        """`then` is called by `deliver` with the job, once it has its answer or its error."""
        job = Job(question, then, background)
        with self._changed:
            (self._behind if background else self._waiting).append(job)
            if not background and self._current and self._current.background:
                self._current.stopped = True
            self._changed.notify()
        return job

    def stop(self, job: Job[Any]) -> None:
        """Nobody wants the answer any more: `then` is not called."""
        with self._changed:
            job.dropped = job.stopped = True

    def deliver(self) -> None:
        """Hands out the answers that have come."""
        while self._done:
            job = self._done.popleft()
            if not job.dropped:
                job.then(job)

    def close(self) -> None:
        """Ends the thread; what is being answered stops. Waits for it."""
        with self._changed:
            self._closed = True
            if self._current:
                self._current.stopped = True
            self._changed.notify()
        self._thread.join()

    # ---- in the thread ----

    def _work(self) -> None:
        database: Database | None = None
        while True:
            with self._changed:
                self._current = None
                while not (self._closed or self._waiting or self._behind):
                    self._changed.wait()
                if self._closed:
                    break
                self._current = job = (self._waiting or self._behind).popleft()
                job.stopped = job.dropped
            if job.dropped:
                continue
            self.progress, self._most, self._look_at = (0, 0), 0, time.monotonic() + _REFRESH
            try:
                if database is None:
                    database = self._open(self._watch)
                job.answer = job.question(database)
            except Stopped:
                with self._changed:
                    if job.background and not job.dropped:
                        self._behind.appendleft(job)
                continue
            except BaseException as error:  # whatever it is, the screen says it
                job.error = error
            job.is_done = True
            self._done.append(job)
            self._wake()
        if database is not None:
            database.close()

    def _watch(self) -> None:
        job = self._current
        if job is not None and job.stopped:
            raise Stopped
        now = time.monotonic()
        if now >= self._look_at:
            from ..progress import scanned

            opened, count = scanned()
            # a question may be several queries, each of which begins where the last one ended
            self._most = max(self._most, count)
            self.progress, self._look_at = (self._most - count + opened, self._most), now + _REFRESH
