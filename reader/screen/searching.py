"""The search of the screen: its prompt, the hits, and where to go on. search.py finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..model import Row
from ..query import Query
from . import moves
from .browser import Task
from .model import Item, Line, Position
from .places import Place
from .view import View

if TYPE_CHECKING:
    from ..database import Database
    from .app import App
    from .literals import Shown
    from .search import Pattern

_WHILE_TYPING = 0.5  # s that a search may take
_TYPED = 200  # characters; longer expressions are searched for when they are complete
_CASES = {None: "ignore case where no capital is typed", False: "heed case", True: "ignore case"}


class Searching:
    """What is searched for, if anything, and in which direction."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._pattern: Pattern | None = None
        self.backwards = False
        self.ignore_case: bool | None = None  # None: smart case
        self.highlight = True
        self._too_slow: Pattern | None = None
        self.found_at: set[int] = set()  # times of hits, for the minimap

    @property
    def pattern(self) -> Pattern | None:
        """What is searched for."""
        return self._pattern

    @pattern.setter
    def pattern(self, pattern: Pattern | None) -> None:
        if pattern is None or self._pattern is None or pattern.text != self._pattern.text:
            self.found_at.clear()
        self._pattern = pattern

    def text(self) -> str:
        """As it was typed, for the status line."""
        return f"{'?' if self.backwards else '/'}{self.pattern.text}" if self.pattern else ""

    def hits(self, line: Line) -> list[tuple[int, int]]:
        """What to highlight in a line."""
        pattern = self.pattern
        if pattern is None or not self.highlight or pattern is self._too_slow:
            return []
        from .search import TooSlow

        try:
            return pattern.hits(line.text)
        except TooSlow as error:
            self._too_slow = pattern  # not again for every line
            self._app.say(str(error), "error")
            return []

    def shower(self) -> Callable[[Row], str]:
        """What is searched: the text of an event's line. Not the screen's, since another thread calls it."""
        line = self._app.liner()
        return lambda row: line(Item(row)).text

    def shown(self) -> Shown:
        """What lines show besides what they always do."""
        from .literals import Shown

        return Shown(files=self._app.look.file, ids=self._app.look.ids)

    # ---- typing ----

    def ask(self, backwards: bool, count: int) -> None:
        """A prompt for a regular expression; the first hit is shown while it is typed."""
        from .asking import check_pattern

        app, before, origin = self._app, self.pattern, self._app.browser.place()

        def done(text: str | None) -> Task[None]:
            app.tasks.take_back("typing")
            if text is None:
                self.pattern = before
                return app.browser.return_to(origin)
            return self._search(text, backwards, count, origin)

        app.prompts.line(
            "?" if backwards else "/",
            done,
            history="search",
            changed=partial(self._typed, origin, backwards),
            check=check_pattern,
            even_if_left=True,
        )

    def _typed(self, origin: Place, backwards: bool, text: str) -> None:
        from .search import BadPattern, Pattern, TimeUp, TooSlow, find

        app = self._app
        app.tasks.take_back("typing")
        if len(text) > _TYPED:
            return  # pasted, key by key
        try:
            self.pattern = pattern = Pattern(text, self.ignore_case) if text else None
        except BadPattern:
            return  # it is not finished
        if pattern is None:
            return
        query, show, start = app.browser.events(), self.shower(), origin.position
        shown = self.shown()
        if start and not backwards:
            start = (start[0], start[1] - 1)  # it may be the event we are on

        def then(row: Row | None) -> None:
            if row is not None and app.prompts.is_open and not app.tasks.is_running:
                app.tasks.run(app.browser.show((row[2], row[0])))

        def question(database: Database) -> Row | None:
            try:
                return find(
                    database, query, pattern, show, start, backwards, shown=shown, seconds=_WHILE_TYPING
                )
            except (TimeUp, TooSlow):
                return None  # Enter searches on

        app.tasks.ask("typing", question, then)

    def _search(self, text: str, backwards: bool, count: int, origin: Place) -> Task[None]:
        from .search import Pattern

        if text:
            self.pattern = Pattern(text, self.ignore_case)
        self.backwards, self.highlight = backwards, True
        yield from self._app.browser.return_to(origin)
        yield from self.next(backwards, count)

    # ---- finding ----

    def next(self, backwards: bool, count: int) -> Task[None]:
        """To the next hit; behind the last one it begins again at the other end."""
        from .actions import Mistake
        from .search import find

        app, pattern = self._app, self.pattern
        if pattern is None:
            raise Mistake("search for something first: / and a regular expression")
        item = app.browser.current
        start = item.position if item else None
        events = app.browser.events()
        if app.following.is_live():  # what comes meanwhile might be more than can be searched meanwhile
            run = View(app.browser.view.run).events(app.runs)
            newest, _ = yield lambda database: moves.before(database, run, None, 1)
            events = events.also("time <= ?", newest[0][2]) if newest else events
        search = partial(
            find, query=events, pattern=pattern, show=self.shower(), backwards=backwards,
            shown=self.shown(),
        )  # fmt: skip
        again = False
        row: Row | None = None
        for _ in range(min(count, 10_000)):
            row = yield partial(search, start=start)
            if row is None and start is not None:
                again = True
                row = yield partial(search, query=_up_to(events, start, backwards), start=None)
            if row is None:
                app.say(f"not found: {pattern.text}", "error")
                return
            start = (row[2], row[0])
        if row is not None:
            self.found_at.add(row[2])
            yield from app.browser.go(row)
            self._show_hit()
        if again:
            app.say(f"the search began again at the {'end' if backwards else 'start'}")

    def _show_hit(self) -> None:
        """Scrolls sideways to the first hit in the line under the cursor."""
        browser = self._app.browser
        line = browser.line(browser.current) if browser.current else Line("")
        hits = self.hits(line)
        if hits and not browser.wrap:
            browser.see(line, hits[0][0])

    def next_case(self) -> None:
        """Smart case, then heeding case, then ignoring it."""
        order = list(_CASES)
        self.ignore_case = order[(order.index(self.ignore_case) + 1) % len(order)]
        self._app.say(f"searches {_CASES[self.ignore_case]}")
        if self.pattern is not None:
            from .search import Pattern

            self.pattern = Pattern(self.pattern.text, self.ignore_case)


def _up_to(query: Query, position: Position, backwards: bool) -> Query:
    """What has not been searched yet, from the other end."""
    return query.also("time >= ?" if backwards else "time <= ?", position[0])
