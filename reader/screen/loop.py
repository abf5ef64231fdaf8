"""The loop of a program on the terminal, which the reader and the replay share: takes keys, makes
effects happen, draws.

One command runs at a time. If it has to ask the database, it is a task: keys that come meanwhile
wait for it. Once it takes longer than a moment, any key stops it, and the status line shows its
progress.

What the keys mean, and what is on the screen, say the programs: reader/screen/app.py and
reader/replay/screen/app.py. Only they know the loop.
"""

# ruff: noqa: B027  (a program need not do everything)

from __future__ import annotations

import gc
import os
import signal
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

from . import effects, paint
from .commands.help import shown
from .dialogs import LIST, Dialogs, Owner, Size
from .effects import CommandError, Effect, Result, Task
from .session import Work
from .terminal import Terminal
from .text import Line
from .toolkit import urwid
from .worker import PATIENCE, Tasks, Worker

_TICK = 0.1  # s
_HUNG_UP = 129  # exit status: the terminal is gone
# signals that end the program, with its exit statuses
_SIGNALS = ((signal.SIGTERM, 143), (signal.SIGHUP, _HUNG_UP), (signal.SIGINT, 130))
_CANCELS = ("esc", "ctrl c", "ctrl g")
WHEEL = 3  # lines

Key: TypeAlias = "str | tuple[Any, ...]"  # by urwid's name, or what the mouse did


class Parts(Size, Protocol):
    """The parts of the screen."""

    @property
    def is_too_small(self) -> bool: ...


class Shown(Owner, Protocol):
    """The state that is shown: the reader's session, or a replay's walk."""

    plain: bool
    message: Line | None
    typed: str
    work: Work | None

    @property
    def parts(self) -> Parts: ...
    def say(self, text: str, style: str = "note") -> None: ...
    def fit(self, width: int, height: int) -> None: ...


class Loop(ABC):
    """Runs a program on the terminal. wake: the file descriptor that says that the database thread
    has answers; stopped: called when a task was stopped, or has failed; prefixes: keys that wait
    for another one; digits: of a number before a key, at most."""

    def __init__(
        self,
        state: Shown,
        worker: Worker,
        wake: int,
        stopped: Callable[[], None],
        prefixes: tuple[str, ...],
        digits: int,
    ) -> None:
        self._state, self._worker, self._wake = state, worker, wake
        self._prefixes, self._digits = prefixes, digits
        self.tasks = Tasks(worker, self.perform, self._say_error, stopped, self._draw)
        self.dialogs = Dialogs(state, self.run_effects)
        self.reopen: effects.Open | None = None  # what is shown after this
        self._count = ""  # digits typed so far
        self._prefix = ""  # a key that waits for another one
        self._pasting = False
        self._resized = False  # and the program has not been told yet
        self._keys: deque[Key] = deque()
        self._status = 0
        # tells the process that started us, such as a test, that all keys are handled and drawn
        self._idle_fd = int(os.environ.get("PYTRACE_IDLE_FD") or -1)
        self._owed = True

    # ---- what the program says ----

    @abstractmethod
    def begin(self) -> Task[None]:
        """The first task."""

    @abstractmethod
    def command(self, key: str, count: int | None) -> bool:
        """Runs the command of a key. False: it has none."""

    @abstractmethod
    def prefixed(self, prefix: str, key: str) -> None:
        """Runs the command of two keys, if they have one."""

    @abstractmethod
    def mouse(self, event: str, button: int, column: int, row: int) -> None:
        """The mouse, while no dialog is open."""

    @abstractmethod
    def compose(self, height: int) -> paint.Rows:
        """The screen above a prompt."""

    def look(self) -> None:
        """Called often."""

    def settle(self) -> None:
        """Called after the size of the screen has changed, once no task is running."""

    def escaped(self) -> None:
        """Escape, which ends what goes on by itself."""

    def is_asking(self) -> bool:
        """Whether answers are to come that a key may have asked for."""
        return bool(self.tasks.asked())

    def told(self, error: Exception) -> str:
        """An expected error, for people."""
        return str(error)

    # ---- running ----

    def run(self) -> int:
        """Shows the screen until the program is left. Returns the exit status."""
        self.screen = screen = paint.Screen(self._state.plain)
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
            self._state.fit(*screen.get_cols_rows())
            self.tasks.run(self.begin())
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
        if not gc.isenabled():  # present objects stay: no collection needs to scan them
            gc.freeze()
            gc.enable()
        # registered here, to run after the loop's own handler, which draws
        self._loop.event_loop.enter_idle(self._idle)
        self._loop.set_alarm_in(0, self._tick)  # its questions must not delay the first screen

    def _tick(self, *_: object) -> None:
        self.look()
        if self.dialogs.look(self._counting()) or self.tasks.busy > PATIENCE:
            self._draw()
        self._loop.set_alarm_in(_TICK, self._tick)

    def _counting(self) -> str | None:
        """How far the question of the list is that is shown."""
        if LIST not in self.tasks.asked():
            return None
        opened, segments = self.tasks.progress
        return f"counting{f' {opened * 100 // segments}%' if segments else ''}"

    def _idle(self) -> None:
        self._settle_size()
        if self._owed and not (self._keys or self.tasks.is_running or self.is_asking()):
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

    def run_effects(self, result: Result) -> None:
        """Makes the effects of a command happen."""
        if result is not None:
            for effect in result if isinstance(result, (tuple, list)) else (result,):
                self.perform(effect)

    def perform(self, effect: Effect) -> None:
        """Makes an effect happen that any program may have."""
        state, tasks, dialogs = self._state, self.tasks, self.dialogs
        match effect:
            case effects.RunTask(task):
                tasks.run(task)
            case effects.Say(text, style):
                state.say(text, style)
            case effects.Ask():
                dialogs.ask(effect)
            case effects.RefreshPrompt():
                dialogs.refresh()
            case effects.Choose():
                dialogs.choose(effect)
            case effects.ShowPage():
                dialogs.show(effect)
            case effects.ShowList():
                dialogs.show_list(effect)
            case effects.ShowLanes():
                dialogs.show_lanes(effect)
            case effects.InBackground(name, question, then):
                tasks.ask(name, question, lambda answer: self._run_beside(then(answer)))
            case effects.TakeBack(name):
                tasks.take_back(name)
            case effects.Copy(text, what, file):
                try:
                    state.say(self._terminal.copy(text, what, file))
                except FileExistsError:
                    raise CommandError(f"{file} is there already") from None
            case effects.Execute(command):
                problem = self._terminal.call([*command])
                if problem:
                    raise CommandError(problem)
            case effects.Bell():
                self._terminal.bell()
            case effects.Open():
                state.message = None
                self.reopen = effect
                raise urwid.ExitMainLoop
            case effects.Quit():
                raise urwid.ExitMainLoop
            case _:
                raise AssertionError(effect)

    def _run_beside(self, result: Result) -> None:
        """The same for the effects of a question in the background."""
        if not (isinstance(result, effects.RunTask) and self.tasks.is_running):
            self.run_effects(result)

    def _say_error(self, error: Exception) -> None:
        if not (isinstance(error, (ValueError, OSError)) or _is_ours(error)):
            raise error
        self._state.say(self.told(error), "error")

    # ---- keys ----

    def _input(self, pressed: list[Any], raw: list[int]) -> list[Any]:
        for key in pressed:
            if key == "window resize":
                self._state.fit(*self.screen.get_cols_rows())
                self._resized = True
            else:
                self._keys.append(key)
        self._settle_size()
        if pressed:  # else it is the beginning of a key
            self._owed = True
            self._pump()
        return [key for key in pressed if key == "window resize"]  # urwid has to know it, too

    def _settle_size(self) -> None:
        if self._resized and not self.tasks.is_running:
            self._resized = False
            self.settle()

    def _pump(self) -> None:
        """Handles the keys that came, until one has to wait."""
        while self._keys:
            if not self.tasks.is_running:
                self._key(self._keys.popleft())
            elif self.tasks.busy < PATIENCE:
                return  # the task ends in a moment
            else:
                self.tasks.stop()
                if not self.dialogs.is_open and self._keys[0] not in ("q", "Q"):
                    self._keys.popleft()
                    self._state.say("stopped")
            # a running task draws when its answer comes; drawing now would only delay its thread
            if self.dialogs.is_open or not self.tasks.is_running:
                self._draw()

    def _key(self, key: Key) -> None:
        self._state.message = None
        try:
            if isinstance(key, tuple):
                (self.dialogs.mouse if self.dialogs.is_open else self.mouse)(*key)
            elif self.dialogs.is_open:
                self.dialogs.key(key)
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
            if key not in _CANCELS:
                self.prefixed(prefix, key)
        elif len(key) == 1 and key in "0123456789" and (self._count or key != "0"):
            self._count = (self._count + key)[: self._digits]
        elif key in ("esc", "ctrl c"):
            self._count = ""
            self.escaped()
        elif key in self._prefixes:
            self._count, self._prefix = "", key
        else:
            count, self._count = int(self._count) if self._count else None, ""
            if not self.command(key, count):
                self._state.say(f"{shown(key)} has no meaning here: h shows the keys")

    # ---- drawing ----

    def _draw(self) -> None:
        self._surface._invalidate()

    def _compose(self, width: int, height: int, below: int) -> urwid.Canvas:
        state = self._state
        page = None if state.parts.is_too_small else self.dialogs.page(width, height)
        if page is not None:
            return page
        busy = self.tasks.busy
        state.work = Work(busy, *self.tasks.progress) if busy > PATIENCE else None
        state.typed = self._count + self._prefix
        rows = self.compose(height - below)
        rows.fill(height - below)
        return rows.canvas()

    def _below(self, width: int, height: int) -> urwid.Canvas | None:
        parts = self._state.parts
        if (width, height) != (parts.width, parts.height):
            self._state.fit(width, height)
        return None if parts.is_too_small else self.dialogs.below(width, height)


def _is_ours(error: Exception) -> bool:
    return type(error).__module__.startswith(__package__.partition(".")[0] + ".")
