"""The reader as a program: takes keys, runs their commands, makes their effects happen, draws.

One command runs at a time. If it has to ask the database, it is a task: keys that come meanwhile
wait for it. Once it takes longer than a moment, any key stops it, and the status line shows its
progress. Everything else (new events, the calls above the first line, the minimap) is asked for in
the background.

No other file knows the loop, and only main.py imports this one.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import deque
from functools import partial
from typing import Any, assert_never

from ..database import DatabaseError
from ..filter.tree import FilterError
from . import effects, paint
from .background import Background
from .commands.command import Command, LetterCommand
from .commands.finding import FOLD
from .commands.help import shown
from .commands.table import BY_KEY, PREFIXES
from .dialogs import LIST, Dialogs
from .effects import CommandError, Effect, Result
from .layout import Spot, compose
from .session import Session, Work
from .terminal import Terminal
from .toolkit import urwid
from .worker import PATIENCE, Tasks, Worker

_TICK = 0.1  # s
_HUNG_UP = 129  # exit status: the terminal is gone
# signals that end the reader, with its exit statuses
_SIGNALS = ((signal.SIGTERM, 143), (signal.SIGHUP, _HUNG_UP), (signal.SIGINT, 130))
_COUNT_DIGITS = 12
_WHEEL = 3  # lines


class App:
    """Runs a session on the terminal. read: the file descriptor that says that the database thread
    has answers."""

    def __init__(self, session: Session, worker: Worker, read: int) -> None:
        self._session, self._worker, self._wake = session, worker, read
        self._tasks = Tasks(worker, self._perform, self._say_error, session.browser.clamp, self._draw)
        self._background = Background(session, self._tasks, self._perform)
        self._dialogs = Dialogs(session, self._run)
        self.reopen: effects.Open | None = None  # what is shown after this
        self._count = ""  # digits typed so far
        self._prefix = ""  # a key that waits for another one
        self._pasting = False
        self._last_command = ""
        self._spots: list[Spot] = []  # the thing that each row of the screen belongs to
        self._resized = False  # and the events for the new size are not there yet
        self._keys: deque[str | tuple[Any, ...]] = deque()
        self._status = 0
        # tells the process that started us, such as a test, that all keys are handled and drawn
        self._idle_fd = int(os.environ.get("PYTRACE_IDLE_FD") or -1)
        self._owed = True

    # ---- running ----

    def run(self) -> int:
        """Shows the screen until the reader is left. Returns the exit status."""
        self._screen = screen = paint.Screen(self._session.plain)
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
            self._session.fit(*screen.get_cols_rows())
            self._tasks.run(self._session.begin())
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
        self._background.is_covered = self._dialogs.covers
        self._background.look()
        if self._dialogs.look(self._counting()) or self._tasks.busy > PATIENCE:
            self._draw()
        self._loop.set_alarm_in(_TICK, self._tick)

    def _counting(self) -> str | None:
        """How far the question of the list is that is shown."""
        if LIST not in self._tasks.asked():
            return None
        opened, segments = self._tasks.progress
        return f"counting{f' {opened * 100 // segments}%' if segments else ''}"

    def _idle(self) -> None:
        self._settle_size()
        if (
            self._owed
            and self._background.has_looked
            and not self._keys
            and not self._tasks.is_running
            and not self._tasks.asked() - {"pulse", "minimap"}
        ):
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
        """Makes the effects of a command happen."""
        if result is not None:
            for effect in result if isinstance(result, (tuple, list)) else (result,):
                self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        session, tasks, dialogs = self._session, self._tasks, self._dialogs
        match effect:
            case effects.RunTask(task):
                tasks.run(task)
            case effects.Say(text, style):
                session.say(text, style)
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
            case effects.InBackground(name, question, then):
                tasks.ask(name, question, lambda answer: self._run_beside(then(answer)))
            case effects.TakeBack(name):
                tasks.take_back(name)
            case effects.Follow(until_hit):
                self._background.follow(until_hit)
            case effects.ReadAnew():
                self._screen.clear()
                session.panes.forget()
                session.change_display(session.display)
                self._background.forget(anew=True)
            case effects.ShowLanes():
                dialogs.show_lanes(effect)
            case effects.Copy(text, what, file):
                try:
                    session.say(self._terminal.copy(text, what, file))
                except FileExistsError:
                    raise CommandError(f"{file} is there already") from None
            case effects.Execute(command):
                problem = self._terminal.call([*command])
                if problem:
                    raise CommandError(problem)
            case effects.Bell():
                self._terminal.bell()
            case effects.Open():
                self.reopen = effect
                raise urwid.ExitMainLoop
            case effects.Quit():
                raise urwid.ExitMainLoop
            case _:
                assert_never(effect)

    def _run_beside(self, result: Result) -> None:
        """The same for the effects of a question in the background."""
        if not (isinstance(result, effects.RunTask) and self._tasks.is_running):
            self._run(result)

    def _say_error(self, error: Exception) -> None:
        if isinstance(error, FilterError):
            self._session.say(f"this filter cannot be read: {error.problem} {error.hint}", "error")
        elif isinstance(error, (DatabaseError, ValueError, OSError)) or _is_ours(error):
            self._session.say(str(error), "error")
        else:
            raise error

    # ---- keys ----

    def _input(self, pressed: list[Any], raw: list[int]) -> list[Any]:
        for key in pressed:
            if key == "window resize":
                self._session.fit(*self._screen.get_cols_rows())
                self._resized = True
            else:
                self._keys.append(key)
        self._settle_size()
        if pressed:  # else it is the beginning of a key
            self._owed = True
            self._pump()
        return [key for key in pressed if key == "window resize"]  # urwid has to know it, too

    def _settle_size(self) -> None:
        if self._resized and not self._tasks.is_running:
            self._resized = False
            self._tasks.run(self._session.browser.settle())

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
                    self._session.say("stopped")
            # a running task draws when its answer comes; drawing now would only delay its thread
            if self._dialogs.is_open or not self._tasks.is_running:
                self._draw()

    def _key(self, key: str | tuple[Any, ...]) -> None:
        self._session.message = None
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
            self._prefixed(self._prefix, key)
        elif len(key) == 1 and key in "0123456789" and (self._count or key != "0"):
            self._count = (self._count + key)[:_COUNT_DIGITS]
        elif key in ("esc", "ctrl c"):
            self._count = ""
            self._session.stop_following()
        elif key in PREFIXES:
            self._count, self._prefix = "", key
        else:
            count, self._count = int(self._count) if self._count else None, ""
            command = BY_KEY.get(key)
            if isinstance(command, Command):
                self._command(command, count)
            else:
                self._session.say(f"{shown(key)} has no meaning here: h shows the keys")

    def _prefixed(self, prefix: str, key: str) -> None:
        self._prefix = ""
        if key in ("esc", "ctrl c", "ctrl g"):
            return
        command = BY_KEY.get(prefix) or BY_KEY.get(prefix + key)
        if isinstance(command, LetterCommand):
            if not command.stays:
                self._session.stop_following()
            self._run(command.do(self._session, key))
        elif isinstance(command, Command):
            self._command(command, None)

    def _command(self, command: Command, count: int | None) -> None:
        session = self._session
        session.repeated, self._last_command = command.name == self._last_command, command.name
        session.hints.used(command.name)
        if not command.stays:
            session.stop_following()
        self._run(command.do(session, count))

    # ---- the mouse ----

    def _mouse(self, event: str, button: int, column: int, row: int) -> None:
        if self._dialogs.is_open:
            self._dialogs.mouse(event, button, column, row)
        elif event == "mouse press" and button in (4, 5):
            lines = -_WHEEL if button == 4 else _WHEEL
            if self._spot(column, row) == "detail":
                self._session.panes.scroll(lines)
            else:
                self._session.stop_following()
                self._tasks.run(self._session.browser.scroll(lines))
        elif event == "mouse press" and button == 1:
            self._click(column, row)

    def _spot(self, column: int, row: int) -> Spot:
        """The thing that a place on the screen belongs to."""
        spot = self._spots[row] if 0 <= row < len(self._spots) else None
        is_of_events = spot is None or isinstance(spot, int)
        return "detail" if is_of_events and column >= self._session.parts.event_columns else spot

    def _click(self, column: int, row: int) -> None:
        what, session, browser = self._spot(column, row), self._session, self._session.browser
        if isinstance(what, int) and what == browser.cursor:
            item = browser.items[what]
            if item.row[6] == "call" or item.stretch is not None:
                self._command(FOLD, None)  # what Enter does
                return
        if what == "minimap" and session.timeline is not None:
            from .timeline import time_of_cell

            session.stop_following()
            browser.remember()
            at = time_of_cell(session.timeline, column, session.parts.width)
            self._tasks.run(browser.show((at, 0), 0))
        elif what == "about" and session.fates is not None and session.fates.found:
            command = BY_KEY["E"]  # "E goes there"
            assert isinstance(command, Command)
            self._command(command, None)
        elif isinstance(what, int):
            session.stop_following()
            browser.cursor = what
            browser.clamp()
        elif isinstance(what, tuple):
            session.stop_following()
            self._tasks.run(browser.go(what))

    # ---- drawing ----

    def _draw(self) -> None:
        self._surface._invalidate()

    def _compose(self, width: int, height: int, below: int) -> urwid.Canvas:
        session = self._session
        page = None if session.parts.is_too_small else self._dialogs.page(width, height)
        if page is not None:
            return page
        self._background.want()
        busy = self._tasks.busy
        session.work = Work(busy, *self._tasks.progress) if busy > PATIENCE else None
        session.typed = self._count + self._prefix
        rows, self._spots = compose(session, height - below)
        rows.fill(height - below)
        return rows.canvas()

    def _below(self, width: int, height: int) -> urwid.Canvas | None:
        parts = self._session.parts
        if (width, height) != (parts.width, parts.height):
            self._session.fit(width, height)
        return None if parts.is_too_small else self._dialogs.below(width, height)


def _is_ours(error: Exception) -> bool:
    return type(error).__module__.startswith(__package__.partition(".")[0] + ".")
