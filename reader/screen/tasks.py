"""Runs the task of a command (browser.py), a step at each answer of the database thread; and asks questions
in the background, which give way to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..database import Database
from .browser import Task
from .worker import Job, Worker

PATIENCE = 0.15  # s; a command that takes longer is shown, and stopped by any key


class Tasks:
    """One task at a time. failed: is told what ends a task or a question early; stopped: a task was
    stopped, or has failed; draw: something has changed."""

    def __init__(
        self,
        worker: Worker,
        failed: Callable[[Exception], None],
        stopped: Callable[[], None],
        draw: Callable[[], None],
    ) -> None:
        self._worker, self._failed, self._stopped, self._draw = worker, failed, stopped, draw
        self._task: Task[Any] | None = None
        self._job: Job[Any] | None = None
        self._since = 0.0
        self._background: dict[str, Job[Any]] = {}

    @property
    def is_running(self) -> bool:
        return self._task is not None

    @property
    def busy(self) -> float:
        """Seconds since the task began; 0: there is none."""
        return time.monotonic() - self._since if self._task is not None else 0.0

    def run(self, task: Task[Any]) -> None:
        """Begins with a task. There must be no other."""
        assert self._task is None
        self._task, self._since = task, time.monotonic()
        self._step(None, None)

    def _step(self, answer: Any, error: BaseException | None) -> None:
        assert self._task is not None
        try:
            question = self._task.throw(error) if error else self._task.send(answer)
        except StopIteration:
            self._task = self._job = None
        except Exception as problem:
            self._task = self._job = None
            self._stopped()
            self._failed(problem)
        else:
            self._job = self._worker.ask(question, lambda job: self._step(job.answer, job.error))
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
        """Asks, and calls `then` with the answer, which may say False: nothing has changed. A question of
        the same name on its way is taken back."""
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
        """Nobody wants to know any more."""
        job = self._background.pop(name, None)
        if job is not None:
            self._worker.stop(job)

    def asked(self) -> set[str]:
        """The names of the questions on their way."""
        return set(self._background)
