"""Where we are in a recording, and the events around: all that the screen shows of it. No screen in here.

The events in memory are a stretch of those of the view, without gaps: a window, that is moved along by
pages. What moves is a task: a generator that yields questions for the database and is sent their answers.
Between two answers the screen may be drawn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ..database import Database
from ..model import Row, Run
from ..query import Query
from . import moves
from .folds import outcomes, spans, strays
from .model import Item, Line, Position
from .places import Place, Trail
from .text import Markup, cells, chop, fold, part
from .view import View

T = TypeVar("T")
Task: TypeAlias = "Generator[Callable[[Database], Any], Any, T]"
_PAGE = 200  # events that are asked for at once, at least
_MOST = 3000  # events in memory, more or less
_FAR = 5000  # lines; a longer way is not gone page by page
_WAIT = 0.2  # s; events that were found until then are shown
_LINES = 2000  # made lines that are kept


class Renewed(NamedTuple):
    """The events around the first line, read anew: for a screen that is in this state."""

    version: tuple[object, ...]
    above: list[Row]
    began: bool
    rows: list[Row]
    ended: bool


class Browser:
    """The window of events, its first line on the screen (`top`) and the line of the cursor: indices of
    `items`. Screen sizes are in cells, `left` is the first column that is shown."""

    def __init__(
        self, view: View, runs: list[Run], line: Callable[[Item], Line], changed: Callable[[], None]
    ) -> None:
        """line: makes an item's line; changed: is called when another run or filter is shown."""
        self.view, self.runs = view, runs
        self.trail = Trail()
        self.rows: list[Row] = []
        self.items: list[Item] = []
        self.top = self.cursor = 0
        self.began = self.ended = False  # the window reaches the first, the last event of the view
        self.width, self.height = 80, 20
        self.left = 0
        self.aside = False  # somebody has scrolled sideways
        self.wrap = False
        self.header: list[Line] = []  # above the first event, and below the last
        self.footer: list[Line] = []
        self._line, self._changed = line, changed
        self._lines: dict[Item, Line] = {}
        self._outcomes: dict[int, Row] = {}  # of folded calls, by the calls' ids
        self._strays: set[int] = set()  # ids of ends without a beginning ...
        self._ends_seen: set[int] = set()  # ... among these
        self._sought: Position | None = None  # where we are, while no event is shown

    # ---- what is shown ----

    @property
    def current(self) -> Item | None:
        """What is under the cursor."""
        return self.items[self.cursor] if 0 <= self.cursor < len(self.items) else None

    def line(self, item: Item) -> Line:
        """The line of an item, made once."""
        line = self._lines.get(item)
        if line is None:
            if len(self._lines) >= _LINES:
                self._lines.clear()
            self._lines[item] = line = self._line(item)
        return line

    def resize(self, width: int, height: int) -> None:
        """The events have another part of the screen; the cursor stays on it."""
        self.width, self.height = width, height
        self.top += max(self.cursor - (self.top + self.fitting(self._top()) - 1), 0)

    def look_different(self, line: Callable[[Item], Line]) -> None:
        """Lines are made by another function from now on."""
        self._line = line
        self._lines.clear()

    def laid_out(self, line: Line) -> list[Markup]:
        """A line as rows of the screen."""
        if self.wrap:
            return fold(line, self.width)
        columns = self._fixed(line)
        if not columns or not self.left:
            return [chop(line, self.left, self.width)]
        fixed = chop(part(line, 0, line.fixed), 0, columns)
        rest = chop(part(line, line.fixed, len(line.text)), self.left, self.width - columns)
        return [Markup(fixed.runs + rest.runs, fixed.cells + rest.cells)]

    def _fixed(self, line: Line) -> int:
        """The cells of a line that do not scroll; none where they would take most of the screen."""
        columns = cells(line.text[: line.fixed])
        return columns if columns <= self.width * 3 // 5 else 0

    def _look_aside(self) -> None:
        """Scrolls sideways where the line under the cursor is indented too far to be read, unless somebody
        has scrolled there on purpose."""
        item = self.current
        if item is None or self.wrap:
            return
        line = self.line(item)
        indented = line.text[line.fixed :]
        start = line.fixed + len(indented) - len(indented.lstrip(" "))
        if not self.aside:
            self.see(line, start, self.width // 3)
        elif self.left == 0 and self._left_for(line, start, self.width // 3) == 0:
            self.aside = False  # where nobody's purpose is lost

    def see(self, line: Line, start: int, margin: int = 10) -> None:
        """Scrolls sideways, if a character of a line and as many columns behind it are not on the screen."""
        self.left = self._left_for(line, start, margin)

    def _left_for(self, line: Line, start: int, margin: int) -> int:
        columns = self._fixed(line)
        at = cells(line.text[:start]) - columns
        room = self.width - columns
        if self.left <= at <= self.left + room - margin:
            return self.left
        return 0 if at <= room - margin else max(at - room // 4, 0)

    @property
    def first_shown(self) -> int:
        """The index of the first item on the screen."""
        return self._top()

    def shown(self) -> list[Item]:
        """The items on the screen; of the last one perhaps not all rows."""
        top = self._top()
        return self.items[top : top + self.fitting(top)]

    def header_rows(self) -> int:
        return len(self.header) if self.began and self._top() == 0 else 0

    def fitting(self, top: int) -> int:
        """How many items stand on the screen when this one is the first; at least one."""
        room = self.height - (len(self.header) if self.began and top == 0 else 0)
        left = len(self.items) - top
        if not self.wrap:
            return max(min(left, room), min(left, 1))
        count = 0
        while count < left and room > 0:
            room -= self._height(self.items[top + count])
            count += 1
        return count if room >= 0 or count <= 1 else count - 1

    def _top(self) -> int:
        return max(min(self.top, len(self.items) - 1), 0)

    def _height(self, item: Item) -> int:
        return len(fold(self.line(item), self.width)) if self.wrap else 1

    def _last_top(self) -> tuple[int, int]:
        """The first item of the last screen, and how many rows would stay empty."""
        room = self.height - len(self.footer)
        top = len(self.items)
        while top > 0 and room >= (rows := self._height(self.items[top - 1])):
            top -= 1
            room -= rows
        if top == 0 and self.began:
            room -= len(self.header)
            if room < 0 and len(self.items) > 1:
                return 1, 0
        return min(top, max(len(self.items) - 1, 0)), room

    def query(self) -> Query:
        return self.view.lines(self.runs)

    def events(self) -> Query:
        return self.view.events(self.runs)

    # ---- the window ----

    def settle(self) -> Task[None]:
        """Makes `top` and `cursor` what they can be, with events for the whole screen."""
        while True:
            # one more on each side, so that it is known where the first and the last one are seen
            if self.top <= 0 and not self.began:
                yield from self._load_before()
            elif self.top + self.height >= len(self.items) and not self.ended:
                yield from self._load_after()
            elif self.ended and not self.began and self._last_top()[0] == 0 < self._last_top()[1]:
                yield from self._load_before()
            else:
                break
        self.clamp()
        self._look_aside()
        if not self.view.folding.is_open:
            yield from self._read_ends()

    def frame(self, header: list[Line], footer: list[Line]) -> None:
        """What stands above the first event and below the last. Whoever is at the last one gets to see it."""
        if footer != self.footer and self.ended and self.cursor == len(self.items) - 1:
            self.top = len(self.items)
        self.header, self.footer = header, footer

    def clamp(self) -> None:
        """`top` and `cursor` become indices of items, as near as there are."""
        if self.ended:
            self.top = min(self.top, self._last_top()[0])
        self.top = max(min(self.top, len(self.items) - 1), 0)
        self.cursor = max(min(self.cursor, self.top + self.fitting(self.top) - 1), self.top)

    def _load_after(self) -> Task[None]:
        query, position, count = self.query(), self._position(-1), self._count()
        rows, ended = yield lambda database: moves.after(database, query, position, count, _WAIT)
        if not self.rows:
            self.began = True  # from the first event on
        self._take(self.rows + rows, 0)
        self.ended = ended
        if len(self.rows) > _MOST and self.top > _PAGE:
            self._take(self.rows[-_MOST:], 1)

    def _load_before(self) -> Task[None]:
        query, position, count = self.query(), self._position(0), self._count()
        rows, began = yield lambda database: moves.before(database, query, position, count, _WAIT)
        if not self.rows:
            self.ended = True
        self._take(rows + self.rows, 1)
        self.began = began
        if len(self.rows) > _MOST and self.top + self.height < len(self.items) - _PAGE:
            self._take(self.rows[:_MOST], 0)

    def _take(self, rows: list[Row], at_start: int) -> None:
        """Other rows; at_start: what is more or less of them is so at the start of the window."""
        if len(rows) < len(self.rows):
            self.began, self.ended = self.began and not at_start, self.ended and bool(at_start)
        before = self.items
        self.rows = rows
        self.items = self.view.folding.items(rows, self._strays)
        if self._outcomes:
            self._put_outcomes()
        if before:
            self.top += self._moved(before, self.top)
            self.cursor += self._moved(before, self.cursor)
        elif at_start:
            self.top += len(self.items)
            self.cursor += len(self.items)

    def _moved(self, before: list[Item], index: int) -> int:
        """How much further down an item stands now; one that there is not: as the nearest one."""
        nearest = max(min(index, len(before) - 1), 0)
        return bisect_left(self.items, before[nearest].position, key=lambda item: item.position) - nearest

    def _position(self, index: int) -> Position | None:
        return (self.rows[index][2], self.rows[index][0]) if self.rows else None

    def _read_strays(self) -> Task[None]:
        """Of ends that stand alone: whether their beginning is recorded at all."""
        if len(self._ends_seen) > _MOST:
            self._strays, self._ends_seen = set(), set()
        alone = [row for row in self.view.folding.unmatched(self.rows) if row[0] not in self._ends_seen]
        if alone:
            found = yield lambda database: strays(database, alone)
            self._ends_seen.update(row[0] for row in alone)
            self._strays |= found
            if found:
                self._take(self.rows, 1)
                self.clamp()

    def _read_ends(self) -> Task[None]:
        """What is further away than the window reaches: where folded calls begin and end."""
        yield from self._read_strays()
        folds = self.view.folding
        calls = [call for call in folds.pending(self.shown()) if call[0] not in self._outcomes]
        if len(self._outcomes) > _MOST:
            self._outcomes = {}
        if calls:
            ended = yield lambda database: outcomes(database, calls)
            self._outcomes.update(ended)
            self._put_outcomes()

    def _put_outcomes(self) -> None:
        for index, item in enumerate(self.items):
            if item.closed and item.outcome is None and item.row[0] in self._outcomes:
                self.items[index] = item._replace(outcome=self._outcomes[item.row[0]])

    def _find(self, position: Position) -> int | None:
        """The first item at or behind a position; None: it may be outside of the window."""
        if not self.rows:
            return None
        if not self.ended and position > (self._position(-1) or position):
            return None
        if not self.began and position < (self._position(0) or position):
            return None
        index = bisect_left(self.items, position, key=lambda item: item.position)
        return index if index < len(self.items) or self.ended else None

    def forget(self) -> None:
        """Nothing is known of the events any more."""
        self.rows, self.items = [], []
        self._forget_ends()
        self.began = self.ended = False

    def _forget_ends(self) -> None:
        self._outcomes, self._strays, self._ends_seen = {}, set(), set()

    def begin(self, rows: list[Row], ended: bool) -> None:
        """The first events of the view, which were read already."""
        self._take(rows, 0)
        self.began, self.ended = True, ended

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
        """The screen moves back by itself: what was above its first line ends on its last."""
        while self.wrap and self.top < self.height and not self.began:
            yield from self._load_before()
        lines = self._room_above(self._top(), self.height) if self.wrap else self.height
        yield from self.scroll(-max(lines, 1))

    def _far(self, lines: int) -> Task[None]:
        query, position = self.query(), self.current.position if self.current else (0, 0)
        found = yield lambda database: moves.skip(database, query, position, lines)
        if found is not None:
            yield from self.show((found[2], found[0]), 0)
        else:
            yield from self.last() if lines > 0 else self.first()

    def move_cursor(self, lines: int) -> Task[None]:
        """The cursor moves; the screen where it has to."""
        self.cursor += lines
        if self.cursor < self.top:
            self.top = self.cursor
        else:
            self.top += max(self.cursor - (self.top + self.fitting(self._top()) - 1), 0)
        yield from self.settle()

    # What was read before stays until something else is there: a command that is stopped leaves the screen
    # as it was. anew: nothing that was read before counts.

    def first(self, anew: bool = False) -> Task[None]:
        """To the first event."""
        self._sought = None
        if anew or not self.began:
            query, count = self.query(), self._count()
            rows, ended = yield lambda database: moves.after(database, query, None, count, _WAIT)
            self.forget()
            self.begin(rows, ended)
        self.top = self.cursor = 0
        yield from self.settle()

    def last(self, anew: bool = False) -> Task[None]:
        """To the last event."""
        if anew or not self.ended:
            query, count = self.query(), self._count()
            rows, began = yield lambda database: moves.before(database, query, None, count, _WAIT)
            self.forget()
            self._take(rows, 0)
            self.began, self.ended = began, True
        self.top = self.cursor = len(self.items)
        yield from self.settle()

    def _count(self) -> int:
        """How many events are asked for at once."""
        return max(_PAGE, 2 * self.height)

    def show(self, position: Position, row: int | None = None, anew: bool = False) -> Task[None]:
        """The event at a position, or the next one behind it, or else the last, comes under the cursor.

        row: of the screen; None: where it is if it is on the screen, else with some lines above it.
        """
        self._sought = position
        index = None if anew else self._find(position)
        if index is None:
            query, count, (time, id) = self.query(), self._count(), position
            rows, ended = yield lambda database: moves.after(database, query, (time, id - 1), count, _WAIT)
            if not rows:
                yield from self.last(anew)
                return
            self.forget()
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

    # ---- views and places ----

    def place(self) -> Place:
        """Where we are, to come back to."""
        item = self.current
        if item is None:
            return Place(self.view, self._sought, self.height // 3)
        return Place(self.view, item.position, self.row())

    def return_to(self, place: Place) -> Task[None]:
        """To a place where we were."""
        if place.view != self.view:
            yield from self.switch(place)
        elif place.position is None:
            yield from self.first()
        else:
            yield from self.show(place.position, place.row)

    def change(self, view: View) -> Task[None]:
        """Another view; what is under the cursor stays there, or the nearest that is shown."""
        yield from self.switch(self.place()._replace(view=view))

    def switch(self, place: Place) -> Task[None]:
        """To a place in a view, which is read anew. If it is stopped before anything of it is there, the
        view is the old one."""
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
        is_other = (view.run, view.filter) != (self.view.run, self.view.filter)
        self.view = view
        if is_other:
            self._changed()

    def go(self, row: Row) -> Task[bool]:
        """A jump to an event, which is unfolded. False: the filter hides it, and we stay."""
        place = self.place()
        if row[0] not in {item.row[0] for item in self.items}:
            events, id = self.events(), row[0]
            if self.view.filter and not (yield lambda database: moves.is_in(database, events, id)):
                return False
            view = yield from self._revealing(row)
            self.trail.push(place)
            self.aside = False
            yield from self.switch(Place(view, (row[2], row[0]), None))  # it may have been stored since
            return True
        self.trail.push(place)
        self.aside = False
        yield from self.show((row[2], row[0]))
        return True

    def _revealing(self, row: Row) -> Task[View]:
        """A view in which no fold hides an event."""
        folds = self.view.folding
        if folds.is_open:
            return self.view
        around = yield lambda database: spans(database, row, folds)
        revealed = folds.reveal(row, around)
        return self.view if revealed == folds else replace(self.view, folds=revealed)

    # ---- while it is written ----

    def newest(self) -> Callable[[Database], tuple[list[Row], bool]]:
        """A question for the last events."""
        query, count = self.query(), self._count()
        return lambda database: moves.before(database, query, None, count)

    def take_newest(self, answer: tuple[list[Row], bool]) -> None:
        """Shows the end, with these last events."""
        self.rows, self.began = answer
        self.items = self.view.folding.items(self.rows, self._strays)
        self.ended = True
        self.top = self.cursor = len(self.items)
        self.clamp()

    def renewed(self) -> Callable[[Database], Renewed]:
        """A question for the events that are on the screen now, as the database is by then."""
        query, top = self.query(), self.items[self._top()].position if self.items else None
        height, version = self.height, self._version()
        count = self._count()

        def question(database: Database) -> Renewed:
            if top is None:
                rows, ended = moves.after(database, query, None, count)
                return Renewed(version, [], True, rows, ended)
            rows, ended = moves.after(database, query, (top[0], top[1] - 1), count)
            above, began = moves.before(database, query, top, height)
            return Renewed(version, above, began, rows, ended)

        return question

    def _version(self) -> tuple[object, ...]:
        """Another one when something else is on the screen."""
        top = self.items[self._top()].position if self.items else None
        return self.view, top, self.height

    def renew(self, answer: Renewed) -> bool:
        """Takes the answer. What is on the screen stays where it is, as far as it is still there. False: the
        screen has moved since it was asked for, and the answer is not taken."""
        version, above, began, rows, ended = answer
        if version != self._version():
            return False
        current, at = self.current, self.cursor - self.top
        self.rows = above + rows
        self.items = self.view.folding.items(self.rows, self._strays)
        self.began, self.ended = began, ended
        top = (rows[0][2], rows[0][0]) if rows else None
        self.top = bisect_left(self.items, top, key=lambda item: item.position) if top else len(self.items)
        self.cursor = self.top + at
        if current is not None:
            found = bisect_left(self.items, current.position, key=lambda item: item.position)
            if found < len(self.items) and self.items[found].row[0] == current.row[0]:
                self.cursor = found
        self.clamp()
        return True
