"""The reader's place in a recording, and the ways to go: the window of events (window.py) and the
tasks (effects.py) that move it. Nothing here knows the terminal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from .. import stretches, waits
from ..database import Database
from ..rows import LAYER, Row, Run, level_of
from ..stretches import ALL, is_hidden
from . import pages
from .bookmarks import Place, Trail
from .outline import open_view
from .text import Line
from .view import Item, Position, Span, View, has_beside, line_of, placed, revealing
from .window import WAIT, Missed, Window

if TYPE_CHECKING:
    from .effects import Task

_FAR = 5000  # lines; longer ways are not scrolled page by page


class Version(NamedTuple):
    """What is on the screen: this view from this place on."""

    view: View
    near: int
    top: Position | None
    height: int


class Renewed(NamedTuple):
    """The events around the first line, read anew, for a screen in this state."""

    version: Version
    above: list[Row]
    began: bool
    rows: list[Row]
    ended: bool


class Browser(Window):
    """A window that commands move, and that remembers the places where jumps began."""

    def __init__(
        self, view: View, runs: list[Run], line: Callable[[Item], Line], changed: Callable[[], None]
    ) -> None:
        super().__init__(view, runs, line, changed)
        self.trail = Trail()
        self._sought: Position | None = None  # our place, while no event is shown

    @property
    def outline_lines(self) -> int:
        """The lines that an outline may have."""
        return self.height + self.above - 1

    # ---- moving ----

    def scroll(self, lines: int) -> Task[None]:
        """The screen moves by lines, the cursor with it; at the ends the cursor alone."""
        if abs(lines) > _FAR and self.current:
            yield from self._far(lines)
            return
        self.top += lines
        self.cursor += lines
        yield from self.settle()

    def screen_back(self) -> Task[None]:
        """The screen moves back by its own height."""
        while self.wrap and self.top < self.height and not self.began:
            yield from self._load_before()
        lines = self._room_above(self._top(), self.height) if self.wrap else self.height
        yield from self.scroll(-max(lines, 1))

    def _far(self, lines: int) -> Task[None]:
        query, position = self.query(), self.current.position if self.current else (0, 0)
        found = yield lambda database: pages.skip(database, query, position, lines)
        if found is not None:
            yield from self.show((found[2], found[0]), 0)
        else:
            yield from self.last() if lines > 0 else self.first()

    def move_cursor(self, lines: int) -> Task[None]:
        """The cursor moves; the screen follows if it has to."""
        self.cursor += lines
        self.top = min(self.top, self.cursor)
        self._see_cursor()
        yield from self.settle()

    def open(self, view: View) -> Task[None]:
        """Shows a run, or all, as the reader begins: an outline."""
        runs, lines = self.runs, self.outline_lines
        page = yield lambda database: open_view(database, view, runs, lines)
        self._sought = None
        self._set_view(page.view)
        self.forget()
        self.top = self.cursor = 0
        self.begin(page.rows, page.ended, cursor=page.cursor)
        self._see_cursor()
        yield from self.settle()

    # The events read before stay until others are there: a command that is stopped leaves the
    # screen as it was. anew: everything read before is invalid.

    def first(self, anew: bool = False) -> Task[None]:
        """To the first event."""
        self._sought = None
        if anew or not self.began:
            query, count, enough = self.query(), self._count(), self._on_screen()
            rows, ended = yield lambda database: pages.after(database, query, None, count, WAIT, enough)
            self.forget()
            self.begin(rows, ended)
        self.top = self.cursor = 0
        yield from self.settle()

    def last(self, anew: bool = False) -> Task[None]:
        """To the last event."""
        if anew or not self.ended:
            query, count, enough = self.query(), self._count(), self._on_screen()
            rows, began = yield lambda database: pages.before(database, query, None, count, WAIT, enough)
            self.forget()
            self._take(rows, 0)
            self.began, self.ended = began, True
        self.top = self.cursor = len(self.items)
        yield from self.settle()

    def show(self, position: Position, row: int | None = None, anew: bool = False) -> Task[None]:
        """Puts the cursor on the event at a position, on the next one after it, or else on the
        last.

        row: of the screen; None: its present row if it is on the screen, else one below some lines.
        """
        self._sought = position
        index = None if anew else self._find(position)
        if index is None:
            query, count, enough, (time, id) = self.query(), self._count(), self._on_screen(), position
            rows, ended = yield lambda database: pages.after(
                database, query, (time, id - 1), count, WAIT, enough
            )
            if not rows:
                yield from self.last(anew)
                self._note_missed(position)
                return
            self.forget()
            self._known_from = position
            self._take(rows, 0)
            self.ended = ended
            self.top = self.cursor = 0
            yield from self._read_strays()  # it may be one of them
            index = bisect_left(self.items, position, key=lambda item: item.position)
            if row is None:
                row = self.height // 3
        index = min(index, len(self.items) - 1)
        if row is None:
            is_shown = self._top() <= index < self._top() + self.fitting(self._top())
            row = self._rows_to(index) if is_shown else self.height // 3
        self.cursor = self.top = index
        if self.wrap:
            while self.cursor < row and not self.began:  # wrapped lines are as high as they are
                yield from self._load_before()
            row = self._room_above(self.cursor, row)
        self.top = self.cursor - row
        yield from self.settle()
        self._note_missed(position)

    def _note_missed(self, sought: Position) -> None:
        shown = self.current.position if self.current else sought
        self.missed = None if shown == sought else Missed(sought, shown)

    def row(self) -> int:
        """The row of the cursor's line, among those with events."""
        return self._rows_to(self.cursor)

    def _rows_to(self, index: int) -> int:
        return sum(self._height(item) for item in self.items[self._top() : index])

    def _room_above(self, index: int, rows: int) -> int:
        """How many items before this one fit into so many rows."""
        count = 0
        while index - count > 0 and (rows := rows - self._height(self.items[index - count - 1])) >= 0:
            count += 1
        return count

    def scroll_aside(self, columns: int) -> None:
        """Scrolls sideways, on purpose."""
        self.left = max(self.left + columns, 0)
        self.aside = True

    # ---- views and places ----

    def place(self) -> Place:
        """This place, to come back to."""
        item = self.current
        if item is None:
            return Place(self.view, self._sought, self.height // 3)
        return Place(self.view, item.position, self.row())

    def remember(self) -> None:
        """A jump begins here."""
        self.trail.push(self.place())

    def return_to(self, place: Place) -> Task[None]:
        """To a place where we were."""
        if place.view != self.view:
            yield from self.switch(place)
        elif place.position is None:
            yield from self.first()
        else:
            yield from self.show(place.position, place.row)

    def rearrange(self) -> Task[None]:
        """Other events are shown beside those that the filter finds."""
        self._take(self.rows, 1)
        yield from self.settle()

    def change(self, view: View) -> Task[None]:
        """Shows another view. The event under the cursor stays there, or the nearest one does."""
        yield from self.switch(self.place()._replace(view=view))

    def switch(self, place: Place) -> Task[None]:
        """Goes to a place in a view, which is read anew. If it is stopped before the first answer,
        the old view stays."""
        before, rows = self.view, self.rows
        self._set_view(place.view)
        arrived = False
        try:
            if place.position is None:
                yield from self.first(anew=True)
            else:
                yield from self.show(place.position, place.row, anew=True)
            arrived = True
        finally:
            if not arrived and self.rows is rows:
                self._set_view(before)

    def _set_view(self, view: View) -> None:
        before = self.view
        is_other = (view.run, view.filter) != (before.run, before.filter)
        is_part = (view.scope, view.stretches, view.without) != (
            before.scope,
            before.stretches,
            before.without,
        )
        if is_other or is_part:
            self.beside.forget()  # others are matches
        self.view = view
        if is_other:
            self.beside.visited = None
            self._changed()

    def go(self, row: Row, opens: bool = False) -> Task[None]:
        """Jumps to an event, and unfolds it. If the filter hides it, it is shown nevertheless,
        while the cursor is on it. If its layer is hidden, that is shown again. If its code is not
        shown, jumps to the line of its stretch; opens: or opens that."""
        place = self.place()
        if row[0] not in {item.row[0] for item in self.items if not (opens and item.stretch)}:
            events, id = self.events(), row[0]
            if self.view.filter and not (yield lambda database: pages.is_in(database, events, id)):
                self.trail.push(place)
                self.aside = False
                self.beside.visited = row
                self._take(self.rows, 1)
                yield from self.show((row[2], row[0]))
                return
            view = self.view
            layer = row[LAYER].decode()
            if layer in view.without:
                view = replace(view, without=view.without - {layer})
            if view.filter is None and waits.role(row):
                out = yield lambda database: waits.begin(database, row)
                if out is not None:
                    view = yield from self._opening_wait(out, view)
            if view.scope is not ALL and view.filter is None:
                first = yield lambda database: line_of(database, view, row)
                if opens and is_hidden(first) and first[0] not in view.stretches:
                    view = yield from self._opening(first, view)
                    row = yield lambda database: placed(database, row, view.scope)
                else:
                    row = first
            folds = yield lambda database: revealing(database, view.folding, row, view.scope)
            view = view.folded(folds)
            self.trail.push(place)
            self.aside = False
            # the call may have been stored since
            yield from self.switch(Place(view, (row[2], row[0]), None))
            return
        self.trail.push(place)
        self.aside = False
        yield from self.show((row[2], row[0]))

    def toggle_stretch(self, first: Row) -> Task[None]:
        """Shows the events of a stretch of other code, or one line for them again."""
        view = self.view
        if first[0] in view.stretches:
            left = {id: span for id, span in view.stretches.items() if id != first[0]}
            view = replace(view, stretches=left)
        else:
            view = yield from self._opening(first)
        yield from self.switch(Place(view, (first[2], first[0]), self.row()))

    def _opening(self, first: Row, view: View | None = None) -> Task[View]:
        """A view in which a stretch is opened."""
        view = view or self.view
        known, scope = self._stretches.get(first[0]), view.scope.stretches
        if known is None:
            found = yield lambda database: stretches.read(database, [(first, None)], scope)
            known = found[first[0]]
        around = yield lambda database: has_beside(database, first)
        span = Span(
            *(first[1], first[3], first[4], first[11], first[0], known.last),
            level=level_of(first),
            began=first[2],
            ended=None if known.last is None or known.took is None else first[2] + known.took,
            around=around,
        )
        return replace(view, stretches={**view.stretches, first[0]: span})

    def toggle_wait(self, out: Row) -> Task[None]:
        """Shows the events of a time off the processor, or one line for them again."""
        view = self.view
        if out[0] in view.waits:
            view = replace(view, waits={id: span for id, span in view.waits.items() if id != out[0]})
        else:
            view = yield from self._opening_wait(out)
        yield from self.switch(Place(view, (out[2], out[0]), self.row()))

    def _opening_wait(self, out: Row, view: View | None = None) -> Task[View]:
        """A view in which the events of a time off the processor are shown."""
        view = view or self.view
        known = yield lambda database: waits.wait(database, out)
        span = Span(
            *(out[1], out[3], out[4], out[11], out[0], None), began=out[2], ended=known.until, around=True
        )
        return replace(view, waits={**view.waits, out[0]: span})

    # ---- while it is written ----

    def newest(self) -> Callable[[Database], tuple[list[Row], bool]]:
        """A question for the last events."""
        query, count = self.query(), self._count()
        return lambda database: pages.before(database, query, None, count)

    def take_newest(self, answer: tuple[list[Row], bool]) -> None:
        """Shows the end, with these last events."""
        self.rows, self.began = answer
        self.ended = True
        self.beside.grow()
        self._make_items()
        self.top = self.cursor = len(self.items)
        self.clamp()

    def renewed(self) -> Callable[[Database], Renewed]:
        """A question that reads the events on the screen anew."""
        query, top = self.query(), self.items[self._top()].position if self.items else None
        version, count, before = self.version(), self._count(), self._on_screen()

        def question(database: Database) -> Renewed:
            if top is None:
                rows, ended = pages.after(database, query, None, count)
                return Renewed(version, [], True, rows, ended)
            rows, ended = pages.after(database, query, (top[0], top[1] - 1), count)
            above, began = pages.before(database, query, top, before)
            return Renewed(version, above, began, rows, ended)

        return question

    def version(self) -> Version:
        """A value that changes with the content of the screen."""
        top = self.items[self._top()].position if self.items else None
        return Version(self.view, self.beside.near, top, self.height)

    def read_anew(self) -> Task[None]:
        """Reads the events on the screen anew, and what is known about them. The screen and the
        cursor stay where they are."""
        answer = yield self.renewed()
        self.renew(answer)
        self.doubt()
        yield from self.settle()

    def renew(self, answer: Renewed) -> bool:
        """Takes the answer. Events on the screen stay in their rows, unless they have gone. False:
        the screen has moved since the question, and the answer is dropped."""
        version, above, began, rows, ended = answer
        if version != self.version():
            return False
        current, at = self.current, self.cursor - self.top
        self.rows = above + rows
        # those that had no end yet have grown
        self._growing = {id for id, each in self._stretches.items() if each.last is None}
        self._waits = {id: each for id, each in self._waits.items() if each.until is not None}
        self.began, self.ended = began, ended
        self.beside.grow()
        self._known_from = None
        self._make_items()
        top = version.top
        self.top = bisect_left(self.items, top, key=lambda item: item.position) if top else 0
        self.cursor = self.top + at
        if current is not None:
            found = bisect_left(self.items, current.position, key=lambda item: item.position)
            if found < len(self.items) and self.items[found].row[0] == current.row[0]:
                self.cursor = found
        self.clamp()
        return True
