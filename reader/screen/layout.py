"""What stands where on the screen, from the top: the minimap, the calls that are open above the first
line, the events, the pane about one of them, the status line, and a line for messages and prompts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ..model import Row
from .model import Item, Line
from .paint import Rows
from .status import status_line
from .text import Markup, fold, part, with_hits

if TYPE_CHECKING:
    from .app import App

_STACK_MAX = 3
_ROOMY = 12  # rows: there is room for more than events
_LONG_MESSAGE = 4  # rows, at most
_SMALLEST = (10, 3)
# What a row of the screen belongs to: the minimap, a call of the stack, an item's index, the detail pane
Spot: TypeAlias = "str | Row | int | None"


class Layout:
    """The parts and their heights. plain: the terminal shows no colours."""

    def __init__(self, plain: bool) -> None:
        self.plain = plain
        self.width, self.height = 80, 24
        self.panes = {"minimap": True, "stack": True, "detail": False}
        self.minimap_rows = self.stack_rows = self.detail_rows = 0
        self._spots: list[Spot] = []

    @property
    def is_too_small(self) -> bool:
        return self.width < _SMALLEST[0] or self.height < _SMALLEST[1]

    def toggle(self, pane: str) -> bool:
        """Returns whether it is shown from now on."""
        self.panes[pane] = not self.panes[pane]
        return self.panes[pane]

    def sized(self, width: int, height: int) -> tuple[int, int]:
        """The screen has this size. Returns width and height of the part with the events."""
        self.width, self.height = width, height
        roomy = height >= _ROOMY
        self.minimap_rows = int(roomy and self.panes["minimap"])
        self.stack_rows = min(_STACK_MAX, height // 8) if roomy and self.panes["stack"] else 0
        left = height - self.minimap_rows - self.stack_rows - 1 - self._message_rows
        self.detail_rows = max(left // 2, 1) if self.panes["detail"] and left >= 4 else 0
        return width, max(left - self.detail_rows, 1)

    @property
    def _message_rows(self) -> int:
        return 1 if self.height >= 5 else 0

    @property
    def _most_message_rows(self) -> int:
        """A long message stands over the last events until the next key."""
        return _LONG_MESSAGE if self.height >= _ROOMY else self._message_rows

    # ---- drawing ----

    def compose(self, app: App, height: int) -> Rows:
        """The screen's rows; where a prompt takes some of them, fewer than there are."""
        rows = Rows(self.width)
        self._spots = []
        if self.is_too_small:
            rows.line(Line("too small a screen"))
            return rows
        prompted = height < self.height  # then the prompt stands where messages do
        message = fold(app.message_line(), self.width)[: self._most_message_rows]
        below = self.detail_rows + 1 + (0 if prompted else len(message))
        self._minimap(app, rows)
        self._stack(app, rows)
        self._events(app, rows, max(height - len(rows) - below, 0))
        self._detail(app, rows)
        above = height - 1 - (0 if prompted else len(message))
        if len(rows) > above:
            rows.fill(above)
        self._status(app, rows, message, prompted)
        return rows

    def _minimap(self, app: App, rows: Rows) -> None:
        if not self.minimap_rows:
            return
        timeline = app.following.timeline
        if timeline is None or not timeline.events:
            rows.line(Line(""))
        else:
            from .minimap import minimap

            shown = app.browser.shown()
            places = [
                timeline.part(item.row[2]) for item in (*shown[:1], app.browser.current, *shown[-1:]) if item
            ]
            top, here, bottom = places or (0.0, 0.0, 0.0)
            found = app.searching.found_at if app.searching.highlight else ()
            hits = [timeline.part(time) for time in found if timeline.first <= time <= timeline.last]
            cells = app.following.cells(self.width)
            rows.line(minimap(cells, here, (top, bottom), hits, ascii=app.look.ascii, plain=self.plain))
        self._spots.append("minimap")

    def _stack(self, app: App, rows: Rows) -> None:
        if not self.stack_rows:
            return
        calls = app.panes.stack[-self.stack_rows :] if app.browser.items else []
        for place, call in enumerate(calls):
            line = _outdented(app.browser.line(Item(call)))
            if place == 0 and call[11]:
                line = _after(f"({call[11]}) ", line)
            rows.line(line, "bar")
            self._spots.append(call)
        for _ in range(self.stack_rows - len(calls)):
            rows.line(Line(""))
            self._spots.append(None)

    def _events(self, app: App, rows: Rows, height: int) -> None:
        browser = app.browser
        room = len(rows) + height
        if browser.header_rows():
            for line in browser.header:
                if len(rows) < room:
                    rows.line(line)
                    self._spots.append(None)
        first = browser.first_shown
        for index, item in enumerate(browser.shown(), first):
            line = browser.line(item)
            hits = app.searching.hits(line)
            if hits:
                line = with_hits(line, hits)
            for row in browser.laid_out(line):
                if len(rows) < room:
                    rows.add(row, "cursor" if index == browser.cursor else "")
                    self._spots.append(index)
        if browser.ended and first + len(browser.shown()) >= len(browser.items):
            for line in browser.footer if browser.items else app.nothing():
                if len(rows) < room:
                    rows.line(line)
                    self._spots.append(None)
        while len(rows) < room:
            rows.line(Line(""))
            self._spots.append(None)

    def _detail(self, app: App, rows: Rows) -> None:
        if not self.detail_rows:
            return
        title = " event "
        rows.line(Line(title + ("-" if app.look.ascii else "─") * (self.width - len(title))), "bar")
        lines: list[Line] = []
        if app.panes.detail is not None:
            from .detail import detail_lines

            lines = detail_lines(app.panes.detail, self.width, app.look)
        app.panes.top = top = max(min(app.panes.top, len(lines) - self.detail_rows + 1), 0)
        shown = lines[top : top + self.detail_rows - 1]
        for line in shown + [Line("")] * (self.detail_rows - 1 - len(shown)):
            rows.line(line)
        self._spots += ["detail"] * self.detail_rows

    def _status(self, app: App, rows: Rows, message: list[Markup], prompted: bool) -> None:
        if not self._message_rows and app.message is not None:
            rows.line(app.message)
            return
        rows.line(status_line(app), "bar")
        if not prompted:
            for row in message:
                rows.add(row)

    # ---- clicking ----

    def at(self, row: int) -> Spot:
        """What a row of the screen belongs to."""
        return self._spots[row] if 0 <= row < len(self._spots) else None


def _after(text: str, line: Line) -> Line:
    return part(line, 0, len(line.text), text)


def _outdented(line: Line) -> Line:
    """A line without its indentation: in the stack each call is in the one above it."""
    columns, rest = part(line, 0, line.fixed), line.text[line.fixed :]
    text = part(line, line.fixed + len(rest) - len(rest.lstrip(" ")), len(line.text), columns.text)
    return Line(text.text, columns.spans + text.spans)
