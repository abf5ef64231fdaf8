"""The replay as a program on the terminal, by the reader's loop (reader/screen/loop.py): runs the
commands of keys, and follows the mouse. A stopped command leaves one where one was."""

from __future__ import annotations

from ...screen import effects, paint
from ...screen.effects import Effect, Task
from ...screen.loop import WHEEL, Loop
from ...screen.worker import Worker
from . import panes
from .command import TIMES, Command, LetterCommand
from .draw import compose
from .keys import PREFIXES, command_of
from .walk import Walk

_DIGITS = 6


class App(Loop):
    """Runs a walk on the terminal. begin: the first task."""

    def __init__(self, walk: Walk, worker: Worker, wake: int, begin: Task[None]) -> None:
        super().__init__(walk, worker, wake, lambda: None, PREFIXES, _DIGITS)
        self._walk, self._begin = walk, begin

    def begin(self) -> Task[None]:
        return self._begin

    def perform(self, effect: Effect) -> None:
        if isinstance(effect, effects.RunTask):
            self.tasks.take_back(TIMES)  # one moves on
        super().perform(effect)

    def command(self, key: str, count: int | None) -> bool:
        command = command_of(key, self._walk.focus)
        if isinstance(command, Command):
            self.run_effects(command.do(self._walk, count))
        return isinstance(command, Command)

    def prefixed(self, prefix: str, key: str) -> None:
        command = command_of(prefix, self._walk.focus)
        if isinstance(command, LetterCommand):
            self.run_effects(command.do(self._walk, key))

    def mouse(self, event: str, button: int, column: int, row: int) -> None:
        if event == "mouse press" and button == 1:
            self.run_effects(panes.click(self._walk, column, row))
        elif event == "mouse press" and button in (4, 5):
            self.run_effects(panes.wheel(self._walk, column, row, -WHEEL if button == 4 else WHEEL))

    def compose(self, height: int) -> paint.Rows:
        return compose(self._walk, height)
