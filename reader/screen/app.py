"""The reader as a program on the terminal (loop.py): runs the commands of keys, and follows the
mouse. Everything that nobody waits for (new events, the calls above the first line, the minimap) is
asked for in the background.

Only main.py imports this file.
"""

from __future__ import annotations

from ..filter.tree import FilterError
from . import effects, paint
from .background import Background
from .commands.command import Command, LetterCommand
from .commands.finding import FOLD
from .commands.table import BY_KEY, PREFIXES
from .effects import Effect, Task
from .layout import Spot, compose
from .loop import WHEEL, Loop
from .session import Session
from .worker import Worker

_DIGITS = 12


class App(Loop):
    """Runs a session on the terminal."""

    def __init__(self, session: Session, worker: Worker, wake: int) -> None:
        super().__init__(session, worker, wake, session.browser.clamp, PREFIXES, _DIGITS)
        self._session = session
        self._background = Background(session, self.tasks, self.perform)
        self._last_command = ""
        self._spots: list[Spot] = []  # the thing that each row of the screen belongs to

    def begin(self) -> Task[None]:
        return self._session.begin()

    def look(self) -> None:
        self._background.is_covered = self.dialogs.covers
        self._background.look()

    def is_asking(self) -> bool:
        return not self._background.has_looked or bool(self.tasks.asked() - {"pulse", "minimap"})

    def settle(self) -> None:
        self.tasks.run(self._session.browser.settle())

    def told(self, error: Exception) -> str:
        if isinstance(error, FilterError):
            return f"this filter cannot be read: {error.problem} {error.hint}"
        return super().told(error)

    def perform(self, effect: Effect) -> None:
        session = self._session
        match effect:
            case effects.Follow(until_hit):
                self._background.follow(until_hit)
            case effects.ReadAnew():
                self.screen.clear()
                session.panes.forget()
                session.change_display(session.display)
                self._background.forget(anew=True)
            case _:
                super().perform(effect)

    # ---- keys ----

    def escaped(self) -> None:
        self._session.stop_following()

    def command(self, key: str, count: int | None) -> bool:
        command = BY_KEY.get(key)
        if isinstance(command, Command):
            self._do(command, count)
        return isinstance(command, Command)

    def prefixed(self, prefix: str, key: str) -> None:
        command = BY_KEY.get(prefix) or BY_KEY.get(prefix + key)
        if isinstance(command, LetterCommand):
            if not command.stays:
                self._session.stop_following()
            self.run_effects(command.do(self._session, key))
        elif isinstance(command, Command):
            self._do(command, None)

    def _do(self, command: Command, count: int | None) -> None:
        session = self._session
        session.repeated, self._last_command = command.name == self._last_command, command.name
        session.hints.used(command.name)
        if not command.stays:
            session.stop_following()
        self.run_effects(command.do(session, count))

    # ---- the mouse ----

    def mouse(self, event: str, button: int, column: int, row: int) -> None:
        if event == "mouse press" and button in (4, 5):
            lines = -WHEEL if button == 4 else WHEEL
            if self._spot(column, row) == "detail":
                self._session.panes.scroll(lines)
            else:
                self._session.stop_following()
                self.tasks.run(self._session.browser.scroll(lines))
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
                self._do(FOLD, None)  # what Enter does
                return
        if what == "minimap" and session.timeline is not None:
            from .timeline import time_of_cell

            session.stop_following()
            browser.remember()
            at = time_of_cell(session.timeline, column, session.parts.width)
            self.tasks.run(browser.show((at, 0), 0))
        elif what == "about" and session.fates is not None and session.fates.found:
            command = BY_KEY["E"]  # "E goes there"
            assert isinstance(command, Command)
            self._do(command, None)
        elif isinstance(what, int):
            session.stop_following()
            browser.cursor = what
            browser.clamp()
        elif isinstance(what, tuple):
            session.stop_following()
            self.tasks.run(browser.go(what))

    # ---- drawing ----

    def compose(self, height: int) -> paint.Rows:
        self._background.want()
        rows, self._spots = compose(self._session, height)
        return rows
