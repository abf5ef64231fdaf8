"""Keeps up with the database while a program is being recorded: looks again and again whether something has
changed, reads anew what is on the screen, and follows the end of it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..model import Row
from . import live
from .browser import Task
from .folds import Folds, settled
from .live import Course, Pulse
from .places import Place
from .view import View

if TYPE_CHECKING:
    from ..database import Database
    from .app import App
    from .search import Seen
    from .timeline import Cell, Timeline

_LOOK = 0.1  # s between two looks while a program runs ...
_IDLE_LOOK = 1.0  # ... and when none does
_COURSE = 0.5  # s between two readings of what the run has come to
_REFINE = 2.0  # s between two closer looks at its course, while it grows


class Following:
    """What is known of the recording besides its events, and whether its end is followed."""

    def __init__(self, app: App, file: live.File | None) -> None:
        """file: which one was opened."""
        self._app = app
        self._watch = live.Watch(app.signatures)  # the database thread's
        self._pulse: Pulse | None = None
        self._file = file  # that is read; another one may take its name
        self._looked = self._told = self._refined = 0.0
        self.has_looked = False  # at the database, since the screen was opened
        self._behind = False  # the run has grown since its course was read
        self._stale = False  # something has changed since the events on the screen were read
        self._known = app.sources, 0  # threads and functions
        self.timeline: Timeline | None = None
        self._cells: list[Cell] = []
        self.is_on = False
        self.until_hit = False
        self._until: Seen | None = None  # what is stored and was searched

    def is_live(self) -> bool:
        """Whether the program of the run that is shown (of all: the newest) is still running."""
        runs = self._app.runs_shown()
        return bool(runs) and runs[-1].finished is None

    # ---- looking ----

    def look(self) -> None:
        """To be called often."""
        now, tasks = time.monotonic(), self._app.tasks
        wait = _LOOK if self.is_live() or not self._app.runs else _IDLE_LOOK
        if now - self._looked >= wait and "pulse" not in tasks.asked():
            self.has_looked = self._looked > 0  # else the last one has failed
            self._looked = now
            run = self._app.browser.view.run
            tasks.ask("pulse", lambda database: self._watch.pulse(database, run), self._take_pulse)
        if self._behind and now - self._told >= _COURSE:
            self._ask_course()
        if self._stale:
            self._renew()

    def forget(self, anew: bool = False) -> None:
        """Another run is shown; anew: nothing that was read before counts."""
        self._pulse, self._looked = None, 0.0
        if anew or (self.timeline is not None and self.timeline.run != self._app.browser.view.run):
            self.timeline, self._cells = None, []
            self._ask_course(anew)

    def _take_pulse(self, pulse: Pulse) -> bool:
        """Whether something has changed."""
        before, self._pulse, self.has_looked = self._pulse, pulse, True
        if pulse == before:
            return False
        app = self._app
        is_another = self._file is not None and pulse.file not in (None, self._file)
        if is_another and app.tasks.is_running:
            self._pulse = None  # at the next look
            return True
        self._file = pulse.file or self._file
        if is_another:
            app.tasks.run(app.actions.open(app.path))
            return True
        self._announce(before, pulse)
        if pulse.newest is None:
            return True
        if not app.runs and app.browser.view.run is None and not app.tasks.is_running:
            first = View(pulse.newest, app.browser.view.filter)  # the first recording begins
            app.tasks.run(app.browser.switch(Place(first, None)))
            self._pulse = None
        is_new = before is None or _course_of(before) != _course_of(pulse)
        if is_new or self.timeline is None or time.monotonic() - self._told >= _COURSE:
            self._ask_course()
        else:
            self._behind = True
        self._stale = True
        self._renew()
        return True

    def _announce(self, before: Pulse | None, pulse: Pulse) -> None:
        say = self._app.say
        if pulse.file is None and (before is None or before.file is not None):
            say("the database has been removed; what was read of it stays here", "error")
        elif before is None:
            return
        elif before.newest is not None and pulse.newest is not None and pulse.newest > before.newest:
            say(f"recording {pulse.newest} has begun: {pulse.command}  (:run {pulse.newest} shows it)")
        elif pulse.run == before.run and before.finished is None and pulse.finished is not None:
            say(live.ending(pulse.finished, pulse.exit_status))
        elif pulse.damages > before.damages:
            say("what is in a damaged segment cannot be shown: pytrace info says which", "error")

    def _ask_course(self, anew: bool = False) -> None:
        run, width = self._app.browser.view.run, self._app.layout.width
        self._told, self._behind = time.monotonic(), False
        self._app.tasks.ask(
            "course", lambda database: self._watch.course(database, run, width, anew), self._take_course
        )

    def course(self) -> Task[Timeline | None]:
        """The course of the run that is shown, for what cannot be done without."""
        app = self._app
        run, width = app.browser.view.run, app.layout.width
        if self.timeline is None:
            self._take_course((yield lambda database: self._watch.course(database, run, width, False)))
        return self.timeline

    def _take_course(self, course: Course) -> None:
        app = self._app
        if course.timeline.run != app.browser.view.run:
            return  # another one is shown by now
        app.runs[:], app.sources = course.runs, course.sources
        self.timeline = course.timeline
        self._take_cells(course.cells)
        run = next((run for run in app.runs if run.id == app.browser.view.run), None)
        app.browser.frame(live.header(run), live.footer(run, course.damages))
        known = app.sources, len(app.signatures)
        if known != self._known:
            self._known = known
            app.change_look(app.look)
        if not app.tasks.is_running:
            app.browser.clamp()

    def _take_cells(self, cells: list[Cell]) -> None:
        """What the summaries tell, and then what a closer look does; that is worth the time now and then."""
        now = time.monotonic()
        if len(cells) != len(self._cells) or not self.is_live() or now - self._refined >= _REFINE:
            self._cells, self._refined = cells, now
            self._refine(0)

    def _refine(self, done: int) -> None:
        timeline, cells = self.timeline, self._cells
        if timeline is None or done >= len(cells):
            return

        def take(answer: tuple[list[Cell], int]) -> None:
            if cells is self._cells:
                self._cells, now_done = answer
                self._refine(now_done)

        from .timeline import refined

        self._app.tasks.ask("minimap", lambda database: refined(database, timeline, cells, done), take)

    def cells(self, width: int) -> list[Cell]:
        """The run's course in so many parts; what was looked at closer, as soon as that is known."""
        if len(self._cells) != width and self.timeline is not None:
            self._cells = self.timeline.cells(width)
            self._ask_course()
        return self._cells

    # ---- what is on the screen ----

    def _renew(self) -> None:
        app = self._app
        if app.tasks.is_running or "renew" in app.tasks.asked():
            return  # at the next look; what takes longer than from one to the next is to have its end
        self._stale = False
        self._settle_folds()
        if self.is_on:
            if self.until_hit:
                self._look_for_hit()
            app.tasks.ask("renew", app.browser.newest(), self._take_newest)
        else:
            app.tasks.ask("renew", app.browser.renewed(), self._take_renewed)

    def _take_renewed(self, answer: Any) -> None:
        if self._app.tasks.is_running or not self._app.browser.renew(answer):
            self._stale = True
        else:
            self._settle()

    def _take_newest(self, answer: Any) -> None:
        if self._app.tasks.is_running or not self.is_on:
            self._stale = True
        else:
            self._app.browser.take_newest(answer)
            self._settle()

    def _settle(self) -> None:
        browser = self._app.browser
        if not browser.view.folding.is_open:  # what became of folded calls is still to be read
            self._app.tasks.run(browser.settle())

    def _settle_folds(self) -> None:
        """Folded calls that were running may have ended."""
        browser = self._app.browser
        view, folds = browser.view, browser.view.folding
        if all(span.last is not None for span in (*folds.opened.values(), *folds.closed.values())):
            return

        def take(now: Folds) -> None:
            if browser.view is view and now != folds and not self._app.tasks.is_running:
                browser.view = replace(view, folds=now)

        self._app.tasks.ask("folds", lambda database: settled(database, folds), take)

    # ---- following ----

    def start(self, until_hit: bool = False) -> None:
        """Shows what comes, until a key ends it; until_hit: or until the search finds something."""
        self.is_on, self.until_hit, self._until = True, until_hit, None
        if not self.is_live():
            self._app.say("the program has ended: nothing more will come")
        elif until_hit:
            self._look_for_hit()

    def stop(self) -> None:
        self.is_on = self.until_hit = False

    def _look_for_hit(self) -> None:
        from .search import find_new

        app, before = self._app, self._until
        pattern, query, show = app.searching.pattern, app.browser.events(), app.searching.shower()
        shown = app.searching.shown()
        if pattern is None:
            return

        def question(database: Database) -> tuple[Row | None, Seen]:
            return find_new(database, query, pattern, show, before, shown=shown)

        if "hit" in app.tasks.asked():
            self._stale = True  # it may know less
        else:
            app.tasks.ask("hit", question, self._take_hit)

    def _take_hit(self, answer: tuple[Row | None, Seen]) -> None:
        row, seen = answer
        app = self._app
        if row is not None and app.tasks.is_running:
            self._stale = True  # it is found again
            return
        self._until = seen
        if row is not None and self.until_hit:
            self.stop()
            app.outside.bell()
            app.say("found")
            app.searching.found_at.add(row[2])
            app.tasks.run(app.browser.go(row))


def _course_of(pulse: Pulse) -> tuple[int | None, ...]:
    """What is told anew at once when it changes."""
    return pulse.finished, pulse.newest, pulse.damages
