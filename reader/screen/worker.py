"""The one thread that reads the database, so that the screen never waits for it. It answers the
task of a command, a step at each answer, and questions in the background, which give way to it.

A question is a function that gets the database and returns an answer. The thread answers one at a
time; questions that somebody waits for come first. A question in the background stops for them, and
begins again afterwards. Stopping works in the middle of any query, within milliseconds.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..database import Database

if TYPE_CHECKING:
    from .effects import Effect, Question, Task

T = TypeVar("T")
PATIENCE = 0.15  # s; a command that takes longer is shown, and stopped by any key
_REFRESH = 0.1  # s between two looks at a query's progress


class Stopped(Exception):
    """A question was taken back while it was being answered."""


class Job(Generic[T]):
    """A question with its `answer`, or its `error` if an exception ended it."""

    def __init__(self, question: Question[T], then: Callable[[Job[T]], None], background: bool) -> None:
        self.question, self.then, self.background = question, then, background
        self.answer: T | None = None
        self.error: BaseException | None = None
        self.stopped = False  # somebody wants it to stop, or to stand back
        self.dropped = False  # nobody wants its answer any more
        self.is_done = False


class Worker:
    """Answers questions about a database in a thread of its own.

    wake: called in that thread when there are answers; `deliver` hands them out in the caller's
    thread.
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
        """Ends the thread and its question, and waits for it."""
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
            except BaseException as error:  # the screen shows any error
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


class Tasks:
    """One task at a time. perform: makes an effect happen that a task yields. failed: called with
    the error of a task or a question; stopped: called when a task was stopped, or has failed; draw:
    called when something has changed."""

    def __init__(
        self,
        worker: Worker,
        perform: Callable[[Effect], None],
        failed: Callable[[Exception], None],
        stopped: Callable[[], None],
        draw: Callable[[], None],
    ) -> None:
        self._worker, self._perform = worker, perform
        self._failed, self._stopped, self._draw = failed, stopped, draw
        self._task: Task[Any] | None = None
        self._job: Job[Any] | None = None
        self._since = 0.0
        self._background: dict[str, Job[Any]] = {}

    @property
    def progress(self) -> tuple[int, int]:
        """Segments opened, and all, of the query that runs."""
        return self._worker.progress

    @property
    def is_running(self) -> bool:
        return self._task is not None

    @property
    def busy(self) -> float:
        """Seconds since the task began; 0: there is none."""
        return time.monotonic() - self._since if self._task is not None else 0.0

    def run(self, task: Task[Any]) -> None:
        """Begins a task. No other may be running."""
        assert self._task is None
        self._task, self._since = task, time.monotonic()
        self._step(None, None)

    def _step(self, answer: Any, error: BaseException | None) -> None:
        assert self._task is not None
        try:
            asked = self._task.throw(error) if error else self._task.send(answer)
            while not callable(asked):
                self._perform(asked)
                asked = self._task.send(None)
        except StopIteration:
            self._task = self._job = None
        except Exception as problem:
            self._task = self._job = None
            self._stopped()
            self._failed(problem)
        else:
            self._job = self._worker.ask(asked, lambda job: self._step(job.answer, job.error))
            if self.busy < PATIENCE:
                return
        self._draw()

    def stop(self) -> None:
        """The task ends where it is."""
        if self._task is not None:
            if self._job is not None:
                self._worker.stop(self._job)
            self._task.close()
            self._task = self._job = None
            self._stopped()

    # ---- in the background ----

    def ask(self, name: str, question: Callable[[Database], Any], then: Callable[[Any], bool | None]) -> None:
        """Asks, and calls `then` with the answer, which may say False: nothing has changed. A
        question of the same name on its way is taken back."""
        self.take_back(name)

        def answered(job: Job[Any]) -> None:
            if self._background.get(name) is job:
                del self._background[name]
            if isinstance(job.error, Exception):
                self._failed(job.error)
            elif job.error is not None:
                raise job.error
            elif then(job.answer) is False:
                return
            self._draw()

        self._background[name] = self._worker.ask(question, answered, background=True)

    def take_back(self, name: str) -> None:
        """Drops the question of this name: nobody waits for its answer any more."""
        job = self._background.pop(name, None)
        if job is not None:
            self._worker.stop(job)

    def asked(self) -> set[str]:
        """The names of the questions on their way."""
        return set(self._background)
