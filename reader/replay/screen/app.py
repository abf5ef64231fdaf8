"""The replay as a program: takes keys, runs their commands, makes their effects happen, draws.

As in the reader (reader.screen.app), one command runs at a time. While it asks the database, keys
wait; once it takes longer than a moment, any key stops it, and one stays where one was.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from functools import partial
from typing import Any

from ...database import DatabaseError
from ...screen import effects, paint
from ...screen.commands.help import shown
from ...screen.dialogs import LIST, Dialogs
from ...screen.effects import Effect, Result, Task
from ...screen.session import Work
from ...screen.terminal import Terminal
from ...screen.toolkit import urwid
from ...screen.worker import PATIENCE, Tasks, Worker
from ..breakpoints import BreakpointError
from ..expressions import ExpressionError
from ..when import WhenError
from . import panes
from .command import TIMES, LetterCommand
from .draw import compose
from .keys import PREFIXES, command_of
from .walk import Walk

_TICK = 0.1  # s
_HUNG_UP = 129  # exit status: the terminal is gone
_SIGNALS = ((signal.SIGTERM, 143), (signal.SIGHUP, _HUNG_UP), (signal.SIGINT, 130))
_COUNT_DIGITS = 6
_WHEEL = 3  # lines
_EXPECTED = (
    DatabaseError, BreakpointError, ExpressionError, WhenError, effects.CommandError, ValueError, OSError,
)  # fmt: skip


class App:
    """Runs a walk on the terminal. read: the file descriptor that says that the database thread has
    answers; begin: the first task."""

    def __init__(self, walk: Walk, worker: Worker, read: int, begin: Task[None]) -> None:
        self._walk, self._worker, self._wake, self._begin = walk, worker, read, begin
        self._tasks = Tasks(worker, self._perform, self._say_error, lambda: None, self._draw)
        self._dialogs = Dialogs(walk, self._run)
        self.reopen: effects.Open | None = None  # what is shown after this
        self._count = self._prefix = ""
        self._pasting = False
        self._keys: deque[Any] = deque()
        self._status = 0
        # tells the process that started us, such as a test, that all keys are handled and drawn
        self._idle_fd = int(os.environ.get("PYTRACE_IDLE_FD") or -1)
        self._owed = True

    # ---- running ----

    def run(self) -> int:
        """Shows the screen until the replay is left. Returns the exit status."""
        self._screen = screen = paint.Screen(self._walk.plain)
        self._terminal = Terminal(screen)
        self._surface = paint.Surface(self._compose, self._below)
        self._loop = loop = urwid.MainLoop(
            self._surface,
            paint.palette(),
            screen,
            event_loop=urwid.SelectEventLoop(),
            input_filter=self._input,
        )
        loop.event_loop.watch_file(self._wake, self._woken)
        handlers = {
            number: signal.signal(number, partial(self._signalled, status)) for number, status in _SIGNALS
        }
        try:
            loop.set_alarm_in(0, self._begun)
            self._walk.fit(*screen.get_cols_rows())
            self._tasks.run(self._begin)
            loop.run()
        except urwid.ExitMainLoop:
            pass  # a signal, before there was a loop
        except (RuntimeError, OSError) as error:  # the terminal is gone
            if isinstance(error, RuntimeError) and "stdin" not in str(error):
                raise
            self._status = _HUNG_UP
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        if self._status == _HUNG_UP:  # else buffered output fails again later
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return self._status

    def _begun(self, *_: object) -> None:
        # registered here, to run after the loop's own handler, which draws
        self._loop.event_loop.enter_idle(self._idle)
        self._loop.set_alarm_in(0, self._tick)

    def _tick(self, *_: object) -> None:
        if self._dialogs.look(self._counting()) or self._tasks.busy > PATIENCE:
            self._draw()
        self._loop.set_alarm_in(_TICK, self._tick)

    def _counting(self) -> str | None:
        if LIST not in self._tasks.asked():
            return None
        opened, segments = self._tasks.progress
        return f"counting{f' {opened * 100 // segments}%' if segments else ''}"

    def _idle(self) -> None:
        if self._owed and not (self._keys or self._tasks.is_running or self._tasks.asked()):
            self._owed = False
            if self._idle_fd >= 0:
                os.write(self._idle_fd, b".")

    def _signalled(self, status: int, number: int, frame: object) -> None:
        self._status = status
        raise urwid.ExitMainLoop

    def _woken(self) -> None:
        os.read(self._wake, 1 << 16)
        self._worker.deliver()
        self._pump()

    # ---- effects ----

    def _run(self, result: Result) -> None:
        if result is not None:
            for effect in result if isinstance(result, (tuple, list)) else (result,):
                self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        walk, tasks, dialogs = self._walk, self._tasks, self._dialogs
        match effect:
            case effects.RunTask(task):
                tasks.take_back(TIMES)  # one moves on
                tasks.run(task)
            case effects.Say(text, style):
                walk.say(text, style)
            case effects.Ask():
                dialogs.ask(effect)
            case effects.Choose():
                dialogs.choose(effect)
            case effects.ShowPage():
                dialogs.show(effect)
            case effects.ShowList():
                dialogs.show_list(effect)
            case effects.InBackground(name, question, then):
                tasks.ask(name, question, lambda answer: self._run(then(answer)))
            case effects.TakeBack(name):
                tasks.take_back(name)
            case effects.Bell():
                self._terminal.bell()
            case effects.Open():
                self._walk.message = None
                self.reopen = effect
                raise urwid.ExitMainLoop
            case effects.Quit():
                raise urwid.ExitMainLoop
            case _:
                raise AssertionError(effect)

    def _say_error(self, error: Exception) -> None:
        if not isinstance(error, _EXPECTED):
            raise error
        self._walk.say(str(error), "error")

    # ---- keys ----

    def _input(self, pressed: list[Any], raw: list[int]) -> list[Any]:
        for key in pressed:
            if key == "window resize":
                self._walk.fit(*self._screen.get_cols_rows())
            else:
                self._keys.append(key)
        if pressed:  # else it is the beginning of a key
            self._owed = True
            self._pump()
        return [key for key in pressed if key == "window resize"]  # urwid has to know it, too

    def _pump(self) -> None:
        """Handles the keys that came, until one has to wait."""
        while self._keys:
            if not self._tasks.is_running:
                self._key(self._keys.popleft())
            elif self._tasks.busy < PATIENCE:
                return  # the task ends in a moment
            else:
                self._tasks.stop()
                if not self._dialogs.is_open and self._keys[0] not in ("q", "Q"):
                    self._keys.popleft()
                    self._walk.say("stopped")
            if self._dialogs.is_open or not self._tasks.is_running:
                self._draw()

    def _key(self, key: Any) -> None:
        self._walk.message = None
        try:
            if isinstance(key, tuple):
                self._mouse(*key)
            elif self._dialogs.is_open:
                self._dialogs.key(key)
            else:
                self._command_key(key)
        except urwid.ExitMainLoop:
            raise
        except Exception as error:
            self._say_error(error)

    def _command_key(self, key: str) -> None:
        if key in ("begin paste", "end paste"):
            self._pasting = key == "begin paste"
        elif self._pasting:
            pass  # text is for prompts
        elif self._prefix:
            prefix, self._prefix = self._prefix, ""
            command = command_of(prefix, self._walk.focus)
            if key not in ("esc", "ctrl c", "ctrl g") and isinstance(command, LetterCommand):
                self._run(command.do(self._walk, key))
        elif len(key) == 1 and key in "0123456789" and (self._count or key != "0"):
            self._count = (self._count + key)[:_COUNT_DIGITS]
        elif key in ("esc", "ctrl c"):
            self._count = ""
        elif key in PREFIXES:
            self._count, self._prefix = "", key
        else:
            count, self._count = int(self._count) if self._count else None, ""
            found = command_of(key, self._walk.focus)
            if found is None or isinstance(found, LetterCommand):
                self._walk.say(f"{shown(key)} has no meaning here: h shows the keys")
            else:
                self._run(found.do(self._walk, count))

    def _mouse(self, event: str, button: int, column: int, row: int) -> None:
        if self._dialogs.is_open:
            self._dialogs.mouse(event, button, column, row)
        elif event == "mouse press" and button == 1:
            self._run(panes.click(self._walk, column, row))
        elif event == "mouse press" and button in (4, 5):
            self._run(panes.wheel(self._walk, column, row, -_WHEEL if button == 4 else _WHEEL))

    # ---- drawing ----

    def _draw(self) -> None:
        self._surface._invalidate()

    def _compose(self, width: int, height: int, below: int) -> urwid.Canvas:
        walk = self._walk
        page = None if walk.parts.is_too_small else self._dialogs.page(width, height)
        if page is not None:
            return page
        busy = self._tasks.busy
        walk.work = Work(busy, *self._tasks.progress) if busy > PATIENCE else None
        walk.typed = self._count + self._prefix
        rows = compose(walk, height - below)
        rows.fill(height - below)
        return rows.canvas()

    def _below(self, width: int, height: int) -> urwid.Canvas | None:
        parts = self._walk.parts
        if (width, height) != (parts.width, parts.height):
            self._walk.fit(width, height)
        return None if parts.is_too_small else self._dialogs.below(width, height)
