"""The questions in the background. One asks whether the database has changed; if so, others read
the course of the run and the events on the screen anew. Further ones fill the panes, and search new
events for a hit. All of them give way to commands.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from ..rows import Row
from ..stretches import ALL, is_hidden
from . import live
from .effects import Bell, Effect
from .live import Course, Pulse
from .session import Session
from .view import Folds, View, settled
from .worker import Tasks

if TYPE_CHECKING:
    from ..database import Database
    from .hot import Function, Times
    from .search import Seen
    from .timeline import Cell

T = TypeVar("T")

_MODERATE = 500_000  # events that are gone through in some 100 ms
_LOOK = 0.1  # s between two looks while a program runs ...
_IDLE_LOOK = 1.0  # ... and when none does
_COURSE = 0.5  # s between two readings of the run's course
_REFINE = 2.0  # s between two closer looks at its course, while it grows


class Background:
    """Keeps a session up to date with the database. perform: makes an effect happen."""

    def __init__(self, session: Session, tasks: Tasks, perform: Callable[[Effect], None]) -> None:
        self._session, self._tasks, self._perform = session, tasks, perform
        self._pulse: Pulse | None = None
        self._looked = self._told = self._refined = 0.0
        self.has_looked = False  # at the database, since the screen was opened
        self._fates_of: object = None  # the state of the run of which fates were asked ...
        self._fates_at = 0.0  # ... and when
        self._behind = False  # the run has grown since its course was read
        self._stale = False  # something has changed since the events on the screen were read
        # a list or the lanes cover the events: reading these anew would only hold their question up
        self.is_covered = False
        self._until: Seen | None = None  # the stored events that were searched
        self._completing: dict[str, object] = {}  # the screens whose lines are being completed
        session.view_changed = self.forget

    # ---- looking ----

    def look(self) -> None:
        """To be called often."""
        now, session, tasks = time.monotonic(), self._session, self._tasks
        wait = _LOOK if session.is_live() or not session.runs else _IDLE_LOOK
        if now - self._looked >= wait and "pulse" not in tasks.asked():
            self.has_looked = self._looked > 0  # else the last look has failed
            self._looked = now
            run = session.browser.view.run
            tasks.ask("pulse", lambda database: session.watch.pulse(database, run), self._take_pulse)
        if self._behind and now - self._told >= _COURSE:
            self._ask_course()
        if self._stale:
            self._renew()

    def forget(self, anew: bool = False) -> None:
        """Another run is shown; anew: everything read before is invalid."""
        session = self._session
        self._pulse, self._looked = None, 0.0
        if anew or (session.timeline is not None and session.timeline.run != session.browser.view.run):
            session.timeline, session.cells, session.fates = None, [], None
            self._fates_of = None
            self._ask_course(anew)

    def _take_pulse(self, pulse: Pulse) -> bool:
        """Whether something has changed."""
        before, self._pulse, self.has_looked = self._pulse, pulse, True
        if pulse == before:
            return False
        session, tasks = self._session, self._tasks
        is_another = session.file is not None and pulse.file not in (None, session.file)
        if is_another and tasks.is_running:
            self._pulse = None  # at the next look
            return True
        session.file = pulse.file or session.file
        if is_another:
            tasks.run(live.reopen(session.path))
            return True
        self._announce(before, pulse)
        if pulse.newest is None:
            return True
        browser = session.browser
        if not session.runs and browser.view.run is None and not tasks.is_running:
            first = View(pulse.newest, browser.view.filter)  # the first recording begins
            tasks.run(browser.open(first))
            self._pulse = None
        is_new = before is None or _course_of(before) != _course_of(pulse)
        if is_new or session.timeline is None or time.monotonic() - self._told >= _COURSE:
            self._ask_course()
        else:
            self._behind = True
        self._stale = True
        self._renew()
        return True

    def _announce(self, before: Pulse | None, pulse: Pulse) -> None:
        say = self._session.say
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

    # ---- the course of the run ----

    def _ask_course(self, anew: bool = False) -> None:
        session = self._session
        run, width = session.browser.view.run, session.parts.width
        self._told, self._behind = time.monotonic(), False
        self._tasks.ask(
            "course", lambda database: session.watch.course(database, run, width, anew), self._take_course
        )

    def _take_course(self, course: Course) -> None:
        session = self._session
        evicted_until = session.evicted_until
        if session.take_course(course):
            if session.evicted_until != evicted_until:
                self._stale = True
                self._renew()
            self._take_cells(course.cells)
            self._ask_usual()
            self._ask_fates()
            if not self._tasks.is_running:
                session.browser.clamp()

    def _ask_usual(self) -> None:
        """The usual times of functions, unless that takes long."""
        session, now = self._session, self._session.usual_now()
        timeline = session.timeline
        if timeline is None or timeline.events > _MODERATE or session.usual_of == now or session.is_live():
            return
        from . import hot

        def take(found: dict[Function, Times]) -> None:
            if session.usual_now() == now:
                session.take_usual(found, now)

        self._tasks.ask("usual", hot.usual(now[0]), take)

    def _ask_fates(self) -> None:
        """Which exceptions nobody caught: from the newest on, some at a time."""
        session, now = self._session, time.monotonic()
        timeline = session.timeline
        state = timeline and (timeline.run, timeline.events)
        if state == self._fates_of or (session.is_live() and now - self._fates_at < _REFINE):
            return
        self._fates_of, self._fates_at = state, now
        from .exceptions import Fates, more_fates

        query = View(session.browser.view.run).events(session.runs)

        def look(known: Fates) -> None:
            self._tasks.ask(
                "fates", lambda database: more_fates(database, query, known), lambda fates: take(known, fates)
            )

        def take(known: Fates, fates: Fates) -> None:
            if self._fates_of != state:
                return
            are_more = fates.since > -inf and len(fates.found) > len(known.found)
            if session.fates is None or not are_more:
                session.fates = fates
            if are_more:
                look(fates)

        look(Fates())

    def _take_cells(self, cells: list[Cell]) -> None:
        """Shows cells made of the summaries, and then those of a closer look. That takes long, so
        it is done only now and then."""
        now, session = time.monotonic(), self._session
        if len(cells) != len(session.cells) or not session.is_live() or now - self._refined >= _REFINE:
            session.cells, self._refined = cells, now
            self._refine(0)

    def _refine(self, done: int) -> None:
        session = self._session
        timeline, cells = session.timeline, session.cells
        if timeline is None or done >= len(cells):
            return

        def take(answer: tuple[list[Cell], int]) -> None:
            if cells is session.cells:
                session.cells, now_done = answer
                self._refine(now_done)

        from .timeline import refined

        self._tasks.ask("minimap", lambda database: refined(database, timeline, cells, done), take)

    # ---- what the screen shows besides the events ----

    def want(self) -> None:
        """Asks for outdated parts of the screen, before it is drawn."""
        session, tasks, parts = self._session, self._tasks, self._session.parts
        timeline = session.timeline
        if parts.minimap_rows and timeline and timeline.events and len(session.cells) != parts.width:
            session.cells = timeline.cells(parts.width)
            self._ask_course()
        if tasks.is_running:
            return
        panes, shown, current = session.panes, session.browser.shown(), session.browser.current
        first, rows = shown[0].row if shown else None, parts.stack_rows
        in_opened = shown and shown[0].stretch is None and is_hidden(shown[0].row)
        view = replace(session.browser.view, scope=ALL) if in_opened else session.browser.view
        if first is not None and first[6] == "call" and first[11] == 0:
            panes.stack, panes.stack_of = [], None  # there is none around it
        elif rows and first is not None and (first[0], rows) != panes.stack_of:
            panes.stack_of = first[0], rows
            tasks.ask("stack", lambda database: live.stack(database, first, rows, view), self._take_stack)
        if parts.shown["detail"] and current != panes.detail_of:
            panes.detail_of = current
            if current is None:
                panes.detail = None
            else:
                from .detail import detail

                tasks.ask("detail", lambda database: detail(database, current), panes.take_detail)
        for unread in session.browser.unread:
            self._complete(*unread)

    def _complete(
        self, name: str, unread: Callable[[], Callable[[Database], T] | None], take: Callable[[T], None]
    ) -> None:
        """Asks for what the window lacks, if it is anything: what a filter hides and is shown
        nevertheless, what stretches hold, the events around the screen."""
        tasks, browser = self._tasks, self._session.browser
        on_screen = browser.version()
        if self._completing.get(name) == on_screen:  # it is on its way, or has failed
            return
        question = unread()
        if question is None:
            return
        view, self._completing[name] = browser.view, on_screen

        def answered(found: T) -> None:
            self._completing.pop(name, None)
            if not tasks.is_running and browser.view is view:
                take(found)  # else it is asked for again

        tasks.ask(name, question, answered)

    def _take_stack(self, rows: list[Row]) -> None:
        self._session.panes.stack = rows

    # ---- what is on the screen ----

    def _renew(self) -> None:
        session, tasks = self._session, self._tasks
        if self.is_covered or tasks.is_running or "renew" in tasks.asked():
            return  # at the next look: the task may run to its end
        self._stale = False
        self._settle_folds()
        if session.is_following:
            if session.until_hit:
                self._look_for_hit()
            tasks.ask("renew", session.browser.newest(), self._take_newest)
        else:
            tasks.ask("renew", session.browser.renewed(), self._take_renewed)

    def _take_renewed(self, answer: Any) -> None:
        if self._tasks.is_running or not self._session.browser.renew(answer):
            self._stale = True
        else:
            self._settle()

    def _take_newest(self, answer: Any) -> None:
        if self._tasks.is_running or not self._session.is_following:
            self._stale = True
        else:
            self._session.browser.take_newest(answer)
            self._settle()

    def _settle(self) -> None:
        browser = self._session.browser
        self._session.panes.forget()  # a call may have ended since
        if not browser.view.is_plain:  # the outcomes of folded calls are still to be read
            self._tasks.run(browser.settle())

    def _settle_folds(self) -> None:
        """Folded calls that were running may have ended."""
        browser = self._session.browser
        view, folds = browser.view, browser.view.folding
        if all(span.last is not None for span in (*folds.opened.values(), *folds.closed.values())):
            return

        def take(now: Folds) -> None:
            if browser.view is view and now != folds and not self._tasks.is_running:
                browser.view = view.folded(now)

        self._tasks.ask("folds", lambda database: settled(database, folds), take)

    # ---- following ----

    def follow(self, until_hit: bool) -> None:
        """Shows new events until a key ends it; until_hit: or until the search finds something."""
        session = self._session
        session.is_following, session.until_hit, self._until = True, until_hit, None
        if not session.is_live():
            session.say("the program has ended: nothing more will come")
        elif until_hit:
            self._look_for_hit()

    def _look_for_hit(self) -> None:
        from .search import find_new

        session, before = self._session, self._until
        pattern, query = session.search.pattern, session.browser.events()
        if pattern is None:
            return
        show, shown = session.searched()

        def question(database: Database) -> tuple[Row | None, Seen]:
            return find_new(database, query, pattern, show, before, shown=shown)

        if "hit" in self._tasks.asked():
            self._stale = True  # it may know less
        else:
            self._tasks.ask("hit", question, self._take_hit)

    def _take_hit(self, answer: tuple[Row | None, Seen]) -> None:
        row, seen = answer
        session, tasks = self._session, self._tasks
        if row is not None and tasks.is_running:
            self._stale = True  # it is found again
            return
        self._until = seen
        if row is not None and session.until_hit:
            session.stop_following()
            self._perform(Bell())
            session.say("found")
            session.search.found_at.add(row[2])
            tasks.run(session.browser.go(row))


def _course_of(pulse: Pulse) -> tuple[int | None, ...]:
    """The part of a pulse whose changes are shown at once."""
    return pulse.finished, pulse.newest, pulse.damages
