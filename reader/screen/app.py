"""The reader as a program: takes keys, runs their commands, draws.

One command runs at a time. Where it has to ask the database it is a task: keys that come meanwhile wait for
it, but once it takes longer than a moment any key stops it, and the status line says how far it is.
Everything else (new events, the calls above the first line, the minimap) is asked for in the background.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import urwid

from ..database import DatabaseError
from ..filter_tree import FilterError
from ..model import Run, Source
from ..signatures import Signatures
from . import keys, live, paint
from .actions import Actions, Mistake
from .browser import Browser
from .columns import several
from .following import Following
from .layout import Layout
from .lines import Liner, Look
from .model import Line
from .outside import Outside
from .panes import Panes
from .places import Marks
from .prompts import Prompts
from .searching import Searching
from .tasks import PATIENCE, Tasks
from .worker import Worker

_TICK = 0.1  # s
_SIGNALS = ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130))  # and the exit statuses
_COUNT_DIGITS = 12
_WHEEL = 3  # lines
_STAY = ("follow", "follow-until", "detail", "detail-down", "detail-up", "where", "highlight", "help")


class App:
    """What is open, and what is going on. start: what the first look at the database brought; read: the
    file descriptor that says that the database thread has answers."""

    def __init__(
        self, path: str, worker: Worker, read: int, start: live.Start, *, ascii: bool, colours: bool
    ) -> None:
        self.path, self.worker, self._wake = path, worker, read
        self.runs: list[Run] = start.runs
        self.sources: list[Source] = start.sources
        self.signatures = Signatures()
        self.look = Look(ascii=ascii)
        self.browser = Browser(start.view, self.runs, self.liner(), self._view_changed)
        self.tasks = Tasks(worker, self._say_error, self._stopped, self._draw)
        self.layout = Layout(plain=not colours)
        self.panes = Panes(self.tasks)
        self.searching, self.prompts = Searching(self), Prompts(self)
        self.following = Following(self, start.file)
        self.actions = Actions(self)
        self.marks = Marks()
        self.reopen: str | None = None  # another database, once this one is left
        self.message: Line | None = None
        self.slow: int | None = None  # ns
        self.last_value: tuple[str, str] | None = None  # name and value of the argument that `a` looks for
        self.repeated = False  # the same command comes again
        self._count = ""  # digits typed so far
        self._prefix = ""  # a key that waits for another one
        self._pasting = False
        self._last_command = ""
        self._resized = False  # and the events for it are not there yet
        self._colours = colours
        self._keys: deque[str | tuple[Any, ...]] = deque()
        self._status = 0
        # tells whoever started us, such as a test, that all keys are handled and the screen is drawn
        self._idle_fd = int(os.environ.get("PYTRACE_IDLE_FD") or -1)
        self._owed = True

    # ---- running ----

    def run(self) -> int:
        """Shows the screen until the reader is left. Returns the exit status."""
        self._screen = screen = paint.Screen(bracketed_paste_mode=True)
        screen.set_terminal_properties(colors=16 if self._colours else 1)
        self.outside = Outside(screen)
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
            self._fit(*screen.get_cols_rows())
            self.tasks.run(self.browser.settle())
            loop.run()
        except urwid.ExitMainLoop:
            pass  # a signal, before there was a loop
        except (RuntimeError, OSError) as error:  # the terminal is gone
            if isinstance(error, RuntimeError) and "stdin" not in str(error):
                raise
            self._status = 129
            # what could not be written must not fail again when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return self._status

    def _begun(self, *_: object) -> None:
        if not gc.isenabled():  # what is there now stays: no collection needs to look at it
            gc.freeze()
            gc.enable()
        # from here on, so that it comes behind the loop's own, which draws
        self._loop.event_loop.enter_idle(self._idle)
        self._loop.set_alarm_in(0, self._tick)  # what it asks for must not hold up the first screen

    def _tick(self, *_: object) -> None:
        self.following.look()
        if self.tasks.busy > PATIENCE:
            self._draw()
        self._loop.set_alarm_in(_TICK, self._tick)

    def _idle(self) -> None:
        self._settle_size()
        if (
            self._owed
            and self.following.has_looked
            and not self._keys
            and not self.tasks.is_running
            and not self.tasks.asked() - {"pulse", "minimap"}
        ):
            self._owed = False
            if self._idle_fd >= 0:
                os.write(self._idle_fd, b".")

    def _signalled(self, status: int, number: int, frame: object) -> None:
        self._status = status
        raise urwid.ExitMainLoop

    def _woken(self) -> None:
        os.read(self._wake, 1 << 16)
        self.worker.deliver()
        self._pump()

    def quit(self) -> None:
        """Ends the reader."""
        raise urwid.ExitMainLoop

    def open(self, path: str) -> None:
        """Ends the reader, to read another database."""
        self.reopen = path
        raise urwid.ExitMainLoop

    # ---- keys ----

    def _input(self, pressed: list[Any], raw: list[int]) -> list[Any]:
        for key in pressed:
            if key == "window resize":
                self._fit(*self._screen.get_cols_rows())
                self._resized = True
            else:
                self._keys.append(key)
        self._settle_size()
        if pressed:  # else it is the beginning of a key
            self._owed = True
            self._pump()
        return [key for key in pressed if key == "window resize"]  # which urwid has to know, too

    def _settle_size(self) -> None:
        if self._resized and not self.tasks.is_running:
            self._resized = False
            self.tasks.run(self.browser.settle())

    def _pump(self) -> None:
        """Handles the keys that came, as far as nothing stands before them."""
        while self._keys:
            if not self.tasks.is_running:
                self._key(self._keys.popleft())
            elif self.tasks.busy < PATIENCE:
                return  # it will be done in a moment
            else:
                self.tasks.stop()
                if not self.prompts.is_open and self._keys[0] not in ("q", "Q"):
                    self._keys.popleft()
                    self.say("stopped")
            # what has to be asked for is drawn when it is there; drawing now would only hold up its thread
            if self.prompts.is_open or not self.tasks.is_running:
                self._draw()

    def _key(self, key: str | tuple[Any, ...]) -> None:
        self.message = None
        try:
            if isinstance(key, tuple):
                self._mouse(*key)
            elif self.prompts.is_open:
                self.prompts.key(key)
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
            self.following.stop()
        elif key in keys.PREFIXES:
            self._count, self._prefix = "", key
        else:
            command = keys.BY_KEY.get(key)
            count, self._count = int(self._count) if self._count else None, ""
            if command is None:
                self.say(f"{keys.shown(key)} has no meaning here: h shows the keys")
            else:
                self.command(command.name, count)

    def _prefixed(self, prefix: str, key: str) -> None:
        self._prefix = ""
        if key in ("esc", "ctrl c", "ctrl g"):
            return
        if prefix == "Z":
            if key == "Z":
                self.quit()
            return
        if prefix != "m":
            self.following.stop()
        take = {"m": self.actions.mark, "'": self.actions.to_mark, "-": self.actions.switch}[prefix]
        self._do(take, key)

    def command(self, name: str, count: int | None) -> None:
        """Does what the command of this name does."""
        self.repeated, self._last_command = name == self._last_command, name
        if name not in _STAY:
            self.following.stop()
        self._do(getattr(self.actions, name.replace("-", "_")), count)

    def _do(self, action: Callable[[Any], Any], argument: object) -> None:
        made = action(argument)
        if made is not None:
            self.tasks.run(made)

    def _stopped(self) -> None:
        """A task ended before it was done."""
        self.browser.clamp()

    # ---- the mouse ----

    def _mouse(self, event: str, button: int, column: int, row: int) -> None:
        if self.prompts.is_open:
            self.prompts.mouse(event, button, column, row)
        elif event == "mouse press" and button in (4, 5):
            lines = -_WHEEL if button == 4 else _WHEEL
            if self.layout.at(row) == "detail":
                self.panes.scroll(lines)
            else:
                self.following.stop()
                self.tasks.run(self.browser.scroll(lines))
        elif event == "mouse press" and button == 1:
            self._click(column, row)

    def _click(self, column: int, row: int) -> None:
        what, browser, timeline = self.layout.at(row), self.browser, self.following.timeline
        if what == "minimap" and timeline is not None:
            from .minimap import time_of_cell

            self.following.stop()
            browser.trail.push(browser.place())
            at = time_of_cell(timeline, column, self.layout.width)
            self.tasks.run(browser.show((at, 0), 0))
        elif isinstance(what, int):
            if what == browser.cursor and browser.items[what].row[6] == "call":
                self.command("fold", None)
            else:
                self.following.stop()
                browser.cursor = what
                browser.clamp()
        elif isinstance(what, tuple):
            self.following.stop()
            self.tasks.run(browser.go(what))

    # ---- what is said ----

    def say(self, text: str, style: str = "note") -> None:
        """A message at the bottom, until the next key."""
        from .text import shown

        text = shown(" ".join(text.split("\n")), self.look.ascii)
        self.message = Line(text, ((0, len(text), style),))

    def _say_error(self, error: Exception) -> None:
        if isinstance(error, FilterError):
            self.say(f"this filter cannot be read: {error.problem} {error.hint}", "error")
        elif isinstance(error, (Mistake, DatabaseError, ValueError, OSError)) or _is_ours(error):
            self.say(str(error), "error")
        else:
            raise error

    def message_line(self) -> Line:
        """What was said last, or what is being typed."""
        return self.message or Line(self._count + self._prefix)

    def nothing(self) -> list[Line]:
        """What stands where there are no events."""
        view = self.browser.view
        if view.filter is not None:
            return [Line("-- no event meets the filter --")]
        if view.folds.level is not None:
            return [Line("-- no events on these levels of calls: . shows one more --")]
        if not self.runs:
            return [
                Line(
                    "-- nothing has been recorded yet: pytrace script.py; it is shown as soon as it comes --"
                )
            ]
        if self.following.is_live():
            return [Line("-- the program has begun; there are no events yet --")]
        return [Line("-- nothing was recorded in this run --"), *self.browser.footer]

    # ---- drawing ----

    def _draw(self) -> None:
        self._surface._invalidate()

    def _fit(self, width: int, height: int) -> None:
        self.browser.resize(*self.layout.sized(width, height))

    def _compose(self, width: int, height: int, below: int) -> urwid.Canvas:
        page = None if self.layout.is_too_small else self.prompts.page(width, height)
        if page is not None:
            return page
        self._want()
        rows = self.layout.compose(self, height - below)
        rows.fill(height - below)
        return rows.canvas()

    def _below(self, width: int, height: int) -> urwid.Canvas | None:
        if (width, height) != (self.layout.width, self.layout.height):
            self._fit(width, height)
        return None if self.layout.is_too_small else self.prompts.below(width, height)

    def _want(self) -> None:
        """Asks for what the screen shows besides the events, where it is not the right one yet."""
        if self.tasks.is_running:
            return
        shown = self.browser.shown()
        self.panes.want(
            shown[0].row if shown else None,
            self.layout.stack_rows,
            self.browser.current,
            self.layout.panes["detail"],
        )

    def toggle(self, pane: str) -> bool:
        """Shows a pane, or no longer. Returns which of both."""
        shown = self.layout.toggle(pane)
        self._fit(self.layout.width, self.layout.height)
        self.panes.forget()
        return shown

    def _view_changed(self) -> None:
        """Another run or filter is shown."""
        self.panes.forget()
        self.following.forget()

    def forget(self) -> None:
        """Everything is to be read and drawn anew."""
        self._screen.clear()
        self.panes.forget()
        self.change_look(self.look)
        self.following.forget(anew=True)

    # ---- runs and lines ----

    def runs_shown(self) -> list[Run]:
        """The run that is shown, or all."""
        return [run for run in self.runs if self.browser.view.run in (None, run.id)]

    def run_here(self) -> Run | None:
        """The run of the event under the cursor, or the newest that is shown."""
        item = self.browser.current
        here = [run for run in self.runs_shown() if item is None or run.id == item.row[1]]
        return here[-1] if here else None

    def liner(self) -> Liner:
        """What makes lines of events, by the switches of now."""
        return Liner(self.look, self.sources, self.runs, self.signatures.has_arguments)

    def change_look(self, look: Look) -> None:
        """Lines look different from now on."""
        self.look = look
        self.browser.look_different(self.liner())

    def is_shown(self, column: str) -> bool:
        """Whether threads or processes have a column: by the switch, or since there are several."""
        switched = getattr(self.look, column)
        return several(self.sources)[column] if switched is None else bool(switched)


def _is_ours(error: Exception) -> bool:
    return type(error).__module__.startswith(__package__.partition(".")[0] + ".")
