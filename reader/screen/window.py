"""A window on the events of the view: the events in memory, some of which are on the screen.

The window has no gaps, and is moved along by pages. Tasks (effects.py) move it. Nothing here
knows the terminal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .. import stretches, waits
from ..query import Query
from ..rows import Row, Run
from ..stretches import Stretch
from ..waits import Wait
from . import beside, pages
from .beside import Beside, Found
from .text import DOTS, Line, Markup, begins, cells, chop, fold, part
from .view import Item, Position, View, outcomes, strays

if TYPE_CHECKING:
    from ..database import Database
    from .effects import Task

# a name; makes the question, or None if nothing is to be asked; takes the answer
Unread: TypeAlias = "tuple[str, Callable[[], Callable[[Database], Any] | None], Callable[[Any], None]]"

_PAGE = 200  # events that are asked for at once, at least
_MOST = 3000  # events in memory, more or less
WAIT = 0.2  # s, until found events are shown
_LINES = 2000  # made lines that are kept
_HANG = 3  # cells behind the indentation, in the further rows of a line
_WAITS = 10  # times off the processor that are read at once
_HEAD = 3  # this part of a line is its beginning, if a hit far to the right is shown behind it
_MARGIN = 10  # cells before such a hit


class Around(NamedTuple):
    """Events below the window, or above it. reached: there are no more; position: the last, or
    first, event of the window."""

    rows: list[Row]
    reached: bool
    position: Position | None
    is_before: bool = False


class Missed(NamedTuple):
    """An event that was asked for, and the one that is shown instead."""

    sought: Position
    shown: Position


class Window:
    """The events in memory, the first line on the screen (`top`) and the line of the cursor:
    indices of `items`. Screen sizes are in cells, `left` is the first column that is shown."""

    def __init__(
        self, view: View, runs: list[Run], line: Callable[[Item], Line], changed: Callable[[], None]
    ) -> None:
        """line: makes an item's line; changed: called when another run or filter is shown."""
        self.view, self.runs = view, runs
        self.rows: list[Row] = []
        self.items: list[Item] = []
        self.top = self.cursor = 0
        self.began = self.ended = False  # the window reaches the first, the last event of the view
        self.width, self.height = 80, 20
        self.above = 0  # rows of the calls above the first line; lines have them while there are none
        self.left = 0
        self.aside = False  # somebody has scrolled sideways
        self.wrap = False
        self.header: list[Line] = []  # above the first event, and below the last
        self.footer: list[Line] = []
        self.beside = Beside()
        self.missed: Missed | None = None
        self._known_from: Position | None = None  # no event of the view is between this and the first
        self._line, self._changed = line, changed
        self._lines: dict[Item, Line] = {}
        self._outcomes: dict[int, Row] = {}  # of folded calls, by the calls' ids
        self._stretches: dict[int, Stretch] = {}  # by the ids of their first events
        self._growing: set[int] = set()  # of these, those that may have grown since
        self._waits: dict[int, Wait] = {}  # times off the processor, by the ids of their first events
        self._strays: set[int] = set()  # ids of ends without a beginning ...
        self._ends_seen: set[int] = set()  # ... among these

    # ---- what is shown ----

    @property
    def current(self) -> Item | None:
        """The item under the cursor; while the events there are still being read, the nearest
        one."""
        return self.items[max(min(self.cursor, len(self.items) - 1), 0)] if self.items else None

    def line(self, item: Item) -> Line:
        """The line of an item, made once."""
        line = self._lines.get(item)
        if line is None:
            if len(self._lines) >= _LINES:
                self._lines.clear()
            self._lines[item] = line = self._line(item)
        return line

    def switch_wrap(self) -> Task[None]:
        """Long lines are wrapped, or cut. The cursor stays at its event."""
        self.wrap = not self.wrap
        self._see_cursor()
        yield from self.settle()

    def resize(self, width: int, height: int, above: int = 0) -> None:
        """The events have another part of the screen; the cursor stays on it. above: rows over it
        for the calls that are open at the first line."""
        self.width, self.height, self.above = width, height, above
        self._see_cursor()

    def _see_cursor(self) -> None:
        """Scrolls down if the cursor's line is below the screen."""
        top = self._top()
        beyond = self.cursor - (self.top + self.fitting(top) - 1)
        if beyond > 0:  # the calls above take their rows back
            self.top += beyond + self.above - self.stack_rows(top)
        while self.wrap and self.top < self.cursor >= self.top + self.fitting(self.top):
            self.top += 1  # lines are as high as they are

    def look_different(self, line: Callable[[Item], Line]) -> None:
        """Lines are made by another function from now on."""
        self._line = line
        self._lines.clear()

    def laid_out(self, line: Line, hits: Sequence[tuple[int, int]] = ()) -> list[Markup]:
        """A line as rows of the screen. hits: [start, end) of parts, one of which should be
        seen."""
        if self.wrap:
            return self._wrapped(line)
        columns = self._fixed(line)
        around = self._around(line, columns, hits) if hits else None
        if around is None and not (columns and self.left):
            return [chop(line, self.left, self.width)]
        fixed = chop(part(line, 0, line.fixed if columns else 0), 0, columns)
        rest, room = part(line, line.fixed if columns else 0, len(line.text)), self.width - columns
        if around is None:
            pieces = [fixed, chop(rest, self.left, room)]
        else:
            head = chop(rest, self.left, room // _HEAD)
            pieces = [fixed, head, chop(rest, around, room - head.cells)]
        return [Markup([run for each in pieces for run in each.runs], sum(each.cells for each in pieces))]

    def _around(self, line: Line, columns: int, hits: Sequence[tuple[int, int]]) -> int | None:
        """The first cell of a piece around a hit, that replaces a part of the line; None: a hit is
        on the screen, or is scrolled away to the left. columns: cells that do not scroll."""
        room = self.width - columns
        total = cells(line.text) - columns
        for start, end in hits:
            at, behind = cells(line.text[:start]) - columns, cells(line.text[:end]) - columns
            if behind <= self.left:
                continue
            seen = self.left + room - (len(DOTS) if total > self.left + room else 0)
            if min(behind, at + _MARGIN) <= seen:
                return None
            rest = room - room // _HEAD
            return max(min(at - min(_MARGIN, rest // 3), total - rest), self.left)
        return None

    def _wrapped(self, line: Line) -> list[Markup]:
        """A line in full, in rows that stand behind its columns and its indentation, of which no
        more is left than half of the screen has."""
        start = begins(line)
        beyond = min(max(cells(line.text[:start]) - self.width // 2, 0), start - line.fixed)
        if beyond:
            columns, rest = part(line, 0, line.fixed), part(line, line.fixed + beyond, len(line.text))
            shift = len(columns.text)
            spans = tuple((first + shift, last + shift, style) for first, last, style in rest.spans)
            line = Line(columns.text + rest.text, columns.spans + spans, line.fixed)
        hang = cells(line.text[: begins(line)]) + _HANG
        return fold(line, self.width, min(hang, self.width // 2), at_words=True)

    def _fixed(self, line: Line) -> int:
        """The cells of a line that do not scroll; 0 if they would take most of the screen."""
        columns = cells(line.text[: line.fixed])
        return columns if columns <= self.width * 3 // 5 else 0

    def _look_aside(self) -> None:
        """Scrolls sideways if the line under the cursor is indented too far, unless somebody has
        scrolled on purpose."""
        item = self.current
        if item is None or self.wrap:
            return
        line = self.line(item)
        left = self._left_for(line)
        if not self.aside:
            self.left = left
        elif self.left == left == 0:
            self.aside = False  # nobody's purpose is lost

    def _left_for(self, line: Line) -> int:
        """The first column to be shown, so that the start of a line is on the screen."""
        columns, margin = self._fixed(line), self.width // 3
        at = cells(line.text[: begins(line)]) - columns
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

    def stack_rows(self, top: int | None = None) -> int:
        """The rows for the calls above the first line, if this item is the first. Near the start
        there are no more of them than lines have left the screen: none stays empty."""
        top = self._top() if top is None else top
        return min(self.above, top) if self.began else self.above

    def _room(self, top: int) -> int:
        """The rows for lines if this item is the first."""
        return self.height + self.above - self.stack_rows(top)

    def fitting(self, top: int) -> int:
        """The number of items on the screen if this one is the first; at least one."""
        room = self._room(top) - (len(self.header) if self.began and top == 0 else 0)
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
        return len(self._wrapped(self.line(item))) if self.wrap else 1

    def _last_top(self) -> tuple[int, int]:
        """The first item of the last screen, and the number of rows that stay empty."""
        used = len(self.footer)
        top = len(self.items)
        while top > 0 and used + (rows := self._height(self.items[top - 1])) <= self._room(top - 1):
            top -= 1
            used += rows
        room = self._room(top) - used
        if top == 0 and self.began:
            room -= len(self.header)
            if room < 0 and len(self.items) > 1:
                return 1, 0
        return min(top, max(len(self.items) - 1, 0)), room

    def query(self) -> Query:
        return self.view.lines(self.runs)

    def events(self) -> Query:
        return self.view.events(self.runs)

    def every(self) -> Query:
        """The events of run and filter, of all code."""
        return self.view.every(self.runs)

    # ---- the window ----

    def settle(self) -> Task[None]:
        """Makes `top` and `cursor` valid, with events for the whole screen."""
        while True:
            # one more item on each side, so that the first and the last one are recognized
            if self.top <= 0 and not self.began:
                yield from self._load_before()
            elif self.top + self.height + self.above >= len(self.items) and not self.ended:
                yield from self._load_after()
            elif self.ended and not self.began and self._last_top()[0] == 0 < self._last_top()[1]:
                yield from self._load_before()
            else:
                break
        self.clamp()
        self._leave_visited()
        self._look_aside()
        if not self.view.is_plain:
            yield from self._read_ends()

    def frame(self, header: list[Line], footer: list[Line]) -> None:
        """Sets the lines above the first event and below the last one. If the cursor is at the last
        event, they come into view."""
        if footer != self.footer and self.ended and self.cursor == len(self.items) - 1:
            self.top = len(self.items)
        self.header, self.footer = header, footer

    def clamp(self) -> None:
        """`top` and `cursor` become indices of items, as near as there are."""
        if self.ended:
            self.top = min(self.top, self._last_top()[0])
        self.top = max(min(self.top, len(self.items) - 1), 0)
        self.cursor = max(min(self.cursor, self.top + self.fitting(self.top) - 1), self.top)

    def _on_screen(self) -> int:
        """The most items on the screen, and one more."""
        return self.height + self.above + 1

    def _count(self) -> int:
        """The number of events to ask for at once."""
        return max(_PAGE, 3 * self._on_screen())

    def _load_after(self) -> Task[None]:
        query, position, count = self.query(), self._position(-1), self._count()
        enough = max(self.top + self._on_screen() - len(self.items), 1)
        rows, ended = yield lambda database: pages.after(database, query, position, count, WAIT, enough)
        if not self.rows:
            self.began = True  # from the first event on
        self._add_after(rows, ended)

    def _add_after(self, rows: list[Row], ended: bool) -> None:
        self.ended = ended
        self._take(self.rows + rows, 0)
        if len(self.rows) > _MOST and self.top > _PAGE:
            self._take(self.rows[-_MOST:], 1)

    def _load_before(self) -> Task[None]:
        query, position, count = self.query(), self._position(0), self._count()
        enough = max(1 - self.top, 1)
        rows, began = yield lambda database: pages.before(database, query, position, count, WAIT, enough)
        if not self.rows:
            self.ended = True
        self._add_before(rows, began)

    def _add_before(self, rows: list[Row], began: bool) -> None:
        self.began = began
        self._take(rows + self.rows, 1)
        if len(self.rows) > _MOST and self.top + self.height < len(self.items) - _PAGE:
            self._take(self.rows[:_MOST], 0)

    def _take(self, rows: list[Row], at_start: int) -> None:
        """Takes other rows; at_start: rows added or removed at the start of the window."""
        if at_start and rows is not self.rows:
            self._known_from = None
        if len(rows) < len(self.rows):
            self.began, self.ended = self.began and not at_start, self.ended and bool(at_start)
        before = self.items
        self.rows = rows
        self._make_items()
        if before:
            self.top += self._moved(before, self.top)
            self.cursor += self._moved(before, self.cursor)
        elif at_start:
            self.top += len(self.items)
            self.cursor += len(self.items)

    def _moved(self, before: list[Item], index: int) -> int:
        """The distance that an item has moved down; a missing one counts as its nearest
        neighbour."""
        nearest = max(min(index, len(before) - 1), 0)
        return bisect_left(self.items, before[nearest].position, key=lambda item: item.position) - nearest

    def unread_around(self) -> Callable[[Database], Around] | None:
        """A question for events above or below the screen, so that the next page is there at once;
        None: they are."""
        query, count = self.query(), self._count()
        if not self.rows or (self.began and self.ended):
            return None
        if not self.ended and len(self.items) < self.top + 2 * self._on_screen():
            position = self._position(-1)
            return lambda database: Around(*pages.after(database, query, position, count, WAIT), position)
        if not self.began and self.top < self._on_screen():
            position = self._position(0)
            return lambda database: Around(
                *pages.before(database, query, position, count, WAIT), position, is_before=True
            )
        return None

    def take_around(self, found: Around) -> None:
        """Takes the answer, unless the window has moved since."""
        rows, reached, position, is_before = found
        if position != self._position(0 if is_before else -1):
            return
        if is_before:
            self._add_before(rows, reached)
        else:
            self._add_after(rows, reached)
        self.clamp()

    def _position(self, index: int) -> Position | None:
        return (self.rows[index][2], self.rows[index][0]) if self.rows else None

    def _read_strays(self) -> Task[None]:
        """Reads for each end without a start whether the start was recorded at all."""
        if len(self._ends_seen) > _MOST:
            self._strays, self._ends_seen = set(), set()
        alone = [row for row in self.view.folding.unmatched(self.rows) if row[0] not in self._ends_seen]
        if alone:
            events = None if self.view.filter is None else self.events()
            found = yield lambda database: strays(database, alone, events)
            self._ends_seen.update(row[0] for row in alone)
            self._strays |= found
            if found:
                self._take(self.rows, 1)
                self.clamp()

    def evict(self, until: int) -> None:
        """Events up to a time (ns) have been removed, if not all of them: ends may be without their
        starts by now."""
        self._ends_seen = {*self._strays}
        self.beside.evict(until)

    def doubt(self) -> None:
        """What is known about the events is shown until it was read anew, too."""
        self._ends_seen = {*self._strays}
        self._growing = {*self._stretches}
        self._waits = {}
        self.beside.doubt()

    def _read_ends(self) -> Task[None]:
        """Reads the starts and ends of folded calls that reach beyond the window."""
        yield from self._read_strays()
        folds = self.view.folding
        calls = [call for call in folds.pending(self.shown()) if call[0] not in self._outcomes]
        if len(self._outcomes) > _MOST:
            self._outcomes = {}
        if calls:
            ended = yield lambda database: outcomes(database, calls)
            self._outcomes.update(ended)
            self._put_known()

    def unread_stretches(self) -> Callable[[Database], dict[int, Stretch]] | None:
        """A question for what the stretches of other code on the screen hold; None: all of it is
        known."""
        if len(self._stretches) > _MOST:
            self._stretches = {}
        shown = self.view.scope.stretches
        known = self._stretches.keys() - self._growing
        asked = [
            (item.row, self._next_of_thread(item.row))
            for item in self.shown()
            if item.stretch is not None and item.row[0] not in known
        ]
        return (lambda database: stretches.read(database, asked, shown)) if asked else None

    def take_stretches(self, found: dict[int, Stretch]) -> None:
        """Takes the answer."""
        self._stretches |= found
        self._growing -= found.keys()
        self._put_known()

    def unread_waits(self) -> Callable[[Database], dict[int, Wait]] | None:
        """A question for some times off the processor on the screen; None: all are known."""
        if len(self._waits) > _MOST:
            self._waits = {}
        asked = [
            item.row for item in self.shown() if item.wait is not None and item.row[0] not in self._waits
        ]
        return (lambda database: waits.read(database, asked[:_WAITS])) if asked else None

    def take_waits(self, found: dict[int, Wait]) -> None:
        """Takes the answer."""
        self._waits |= found
        self._put_known()

    def _next_of_thread(self, row: Row) -> Row | None:
        """The next event of a thread in the window."""
        start = bisect_left(self.rows, (row[2], row[0]), key=pages.position_of) + 1
        same = (each for each in self.rows[start:] if (each[1], each[3], each[4]) == (row[1], row[3], row[4]))
        return next(same, None)

    @property
    def unread(self) -> tuple[Unread, ...]:
        """What the window may lack once it has settled."""
        return (
            ("beside", self.unread_beside, self.take_beside),
            ("stretches", self.unread_stretches, self.take_stretches),
            ("waits", self.unread_waits, self.take_waits),
            ("around", self.unread_around, self.take_around),
        )

    def unread_beside(self) -> Callable[[Database], Found] | None:
        """A question for some of what is shown beside the matches on the screen; None: all of it is
        known."""
        if self.view.filter is None:
            return None
        top, beyond = self._top(), 2 * self.beside.near  # what is beside these may be on the screen
        seen = self.items[max(top - beyond, 0) : top + self.fitting(top) + beyond]
        ends, near = self.beside.unknown(seen)
        if not ends and not near:
            return None
        events, count = self.events(), self.beside.near
        return lambda database: beside.read(database, events, ends, near, count)

    def take_beside(self, found: Found) -> None:
        """Takes the answer."""
        self.beside.take(found)
        self._take(self.rows, 1)
        self._arrive()
        self._see_cursor()
        self.clamp()

    def _arrive(self) -> None:
        """The cursor goes to the event that was asked for, if it was beside the events known then,
        and nobody has moved since."""
        if self.missed is None or self.current is None or self.current.position != self.missed.shown:
            self.missed = None
            return
        index = bisect_left(self.items, self.missed.sought, key=lambda item: item.position)
        if index < len(self.items) and self.items[index].position == self.missed.sought:
            self.top += index - self.cursor
            self.cursor = index
            self.missed = None

    def _leave_visited(self) -> None:
        """An event that the filter hides goes when the cursor is elsewhere."""
        visited = self.beside.visited
        if visited is not None and not (self.current and self.current.row[0] == visited[0]):
            self.beside.visited = None
            self._take(self.rows, 1)
            self.clamp()

    def _make_items(self) -> None:
        self.items = self.view.items(self.rows, self._strays)
        if self._outcomes or self._stretches or self._waits:
            self._put_known()
        if self.view.filter is not None:
            first = None if self.began else self._known_from or self._position(0)
            last = None if self.ended else self._position(-1)
            self.items = self.beside.among(self.items, first, last)

    def _put_known(self) -> None:
        """Items have what was read of them before."""
        for index, item in enumerate(self.items):
            id = item.row[0]
            if item.closed and item.outcome is None and id in self._outcomes:
                self.items[index] = item._replace(outcome=self._outcomes[id])
            elif item.stretch is not None and id in self._stretches:
                self.items[index] = item._replace(stretch=self._stretches[id])
            elif item.wait is not None and id in self._waits:
                self.items[index] = item._replace(wait=self._waits[id])

    def _find(self, position: Position) -> int | None:
        """The first item at or after a position; None: it may be outside of the window."""
        if not self.rows:
            return None
        if not self.ended and position > (self._position(-1) or position):
            return None
        if not self.began and position < (self._position(0) or position):
            return None
        index = bisect_left(self.items, position, key=lambda item: item.position)
        return index if index < len(self.items) or self.ended else None

    def forget(self) -> None:
        """Forgets all events."""
        self.rows, self.items = [], []
        self._known_from = None
        self._outcomes, self._strays, self._ends_seen = {}, set(), set()
        self._stretches, self._growing, self._waits = {}, set(), {}
        self.beside.doubt()
        self.began = self.ended = False

    def begin(
        self, rows: list[Row], ended: bool, view: View | None = None, cursor: int | None = None
    ) -> None:
        """Takes the first events of the view, or of another one, which were read already. cursor:
        the id of the event to begin with."""
        self.view = view or self.view
        self._take(rows, 0)
        self.began, self.ended = True, ended
        ids = [item.row[0] for item in self.items]
        if cursor in ids:
            self.cursor = ids.index(cursor)
