"""The layout of the screen, from the top: the minimap, what the recording is, the calls that are
open above the first line, the events, the pane about one of them, the status line, and a line for
messages and prompts. The layout depends on the session alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

from ..rows import Row, level_of
from ..stretches import ALL
from .lines import clock
from .live import ended
from .paint import Rows
from .session import Session, Work
from .text import Line, Markup, begins, cells, chop, fold, part, with_hits
from .view import Item

# The thing that a row of the screen belongs to: the minimap, what the recording is ("about"), a
# call of the stack, an item's index, the detail pane
Spot: TypeAlias = "str | Row | int | None"
_LEAST_COMMAND = 20  # cells


def compose(session: Session, height: int) -> tuple[Rows, list[Spot]]:
    """The screen's rows, and the thing that each belongs to. There are fewer rows if a prompt takes
    some."""
    composed = _Composed(session, height)
    return composed.rows, composed.spots


class _Composed:
    def __init__(self, session: Session, height: int) -> None:
        parts = session.parts
        self.session, self.parts = session, parts
        self.rows, self.spots = Rows(parts.width), list[Spot]()
        if parts.is_too_small:
            self.rows.line(Line("too small a screen"))
            return
        prompted = height < parts.height  # the prompt is in the place of messages
        message = fold(session.message_line(), parts.width)[: parts.most_message_rows]
        below = parts.detail_rows + 1 + (0 if prompted else len(message))
        if parts.minimap_rows:
            self._minimap()
        if parts.about_rows:
            self._add(about_line(session), "about")
        self._stack()
        room = max(height - len(self.rows) - below, 0)
        if parts.detail_columns:
            self._events_and_detail(room)
        else:
            self._events(room)
        if parts.detail_rows:
            self._detail(parts.detail_rows)
        above = height - 1 - (0 if prompted else len(message))
        if len(self.rows) > above:
            self.rows.fill(above)
        self._status(message, prompted)

    def _add(self, line: Line, spot: Spot, on: str = "") -> None:
        self.rows.line(line, on)
        self.spots.append(spot)

    def _minimap(self) -> None:
        session, timeline = self.session, self.session.timeline
        line = Line("")
        if timeline is not None and timeline.events:
            from .timeline import minimap

            browser, search = session.browser, session.search
            top = here = bottom = 0.0
            shown, current = browser.shown(), browser.current
            if shown and current:
                top, here, bottom = (timeline.part(item.row[2]) for item in (shown[0], current, shown[-1]))
            found = search.found_at if search.highlight else ()
            hits = [timeline.part(time) for time in found if timeline.first <= time <= timeline.last]
            ascii, plain = session.display.ascii, session.plain
            fates = session.fates.found if session.fates else ()
            uncaught = [timeline.part(each.raised[2]) for each in fates]
            line = minimap(session.cells, here, (top, bottom), hits, uncaught, ascii=ascii, plain=plain)
        self._add(line, "minimap")

    def _stack(self) -> None:
        browser = self.session.browser
        rows = browser.stack_rows()
        calls = self.session.panes.stack[-rows:] if rows and browser.items else []
        for _ in range(rows - len(calls)):
            self._add(Line(""), None)
        for place, call in enumerate(calls):
            depth = level_of(call) if place == 0 else 0
            above = f"({depth}) " if depth else ""
            number = f"({level_of(call)}) " if level_of(call) > self.session.display.levels else ""
            self._add(_outdented(browser.line(Item(call)), above, number), call, "bar")

    def _events(self, height: int) -> None:
        session, browser = self.session, self.session.browser
        room = len(self.rows) + height
        if browser.header_rows():
            self._beside(browser.header, room)
        first = browser.first_shown
        for index, item in enumerate(browser.shown(), first):
            line = self._by_fate(browser.line(item), item)
            hits = session.hits(line)
            if hits:
                line = with_hits(line, hits)
            for row in browser.laid_out(line, hits):
                if len(self.rows) < room:
                    self.rows.add(row, "cursor" if index == browser.cursor else "")
                    self.spots.append(index)
        if browser.ended and first + len(browser.shown()) >= len(browser.items):
            self._beside(browser.footer if browser.items else nothing(session), room)
        while len(self.rows) < room:
            self._add(Line(""), None)

    def _by_fate(self, line: Line, item: Item) -> Line:
        """The line of an exception that was caught is less loud."""
        fates, row = self.session.fates, item.outcome if item.closed and item.outcome else item.row
        if fates is None or fates.is_uncaught(row) is not False:
            return line
        spans = (
            (a, b, "handled" if style in ("exception", "raise") else style) for a, b, style in line.spans
        )
        return line._replace(spans=tuple(spans))

    def _beside(self, lines: Sequence[Line], room: int) -> None:
        for line in lines:
            if len(self.rows) < room:
                self._add(line, None)

    def _events_and_detail(self, height: int) -> None:
        """Both side by side."""
        whole = self.rows
        events = self.rows = Rows(self.parts.event_columns)
        self._events(height)
        spots = self.spots.copy()
        detail = self.rows = Rows(self.parts.detail_columns)
        if height:
            self._detail(height)
        self.rows, self.spots = whole, spots
        self.rows.side_by_side(events, Markup([("dim", self.session.display.own("│"))], 1), detail)

    def _detail(self, height: int) -> None:
        session, width = self.session, self.rows.width
        panes, display = session.panes, session.display
        title = " event "
        self._add(Line(title + ("-" if display.ascii else "─") * (width - len(title))), "detail", "bar")
        lines: list[Line] = []
        if panes.detail is not None:
            from .detail import detail_lines

            lines = detail_lines(panes.detail, width, display, height - 1)
        panes.top = top = max(min(panes.top, len(lines) - height + 1), 0)
        shown = lines[top : top + height - 1]
        for line in shown + [Line("")] * (height - 1 - len(shown)):
            self._add(line, "detail")

    def _status(self, message: list[Markup], prompted: bool) -> None:
        said = self.session.message
        if not self.parts.message_rows and said is not None:
            self.rows.line(said)
            return
        self.rows.line(status_line(self.session), "bar")
        if not prompted:
            for row in message:
                self.rows.add(row)


def nothing(session: Session) -> list[Line]:
    """The lines that replace events if there are none."""
    view = session.browser.view
    if view.without and session.runs and view.filter is None:
        return [Line(f"-- nothing is left without {', '.join(sorted(view.without))}: S shows layers --")]
    if view.folding.level is None and view.filter is not None:
        return [Line("-- no event meets the filter --")]
    if view.folding.level is not None:
        return [Line("-- no events on these levels of calls: . shows one more --")]
    if not session.runs:
        return [
            Line("-- nothing has been recorded yet: pytrace script.py; it is shown as soon as it comes --")
        ]
    if session.is_live():
        return [Line("-- the program has begun; there are no events yet --")]
    return [Line("-- nothing was recorded in this run --"), *session.browser.footer]


def status_line(session: Session) -> Line:
    """Database, run, time, per cent, LIVE, filter, search, losses near, and the running work."""
    parts: list[tuple[str, str]] = [("title", os.path.basename(session.path) or session.path)]
    browser, view, runs = session.browser, session.browser.view, session.runs
    if view.run is None:
        parts.append(("", "all runs" if runs else "no recording yet"))
    elif len(runs) > 1:
        parts.append(("", f"run {view.run} of {len(runs)}"))
    if browser.current is not None:
        parts.append(("", clock(browser.current.row[2])))
    percent = session.percent()
    if percent is not None:
        parts.append(("", f"{percent:.0f}%"))
    if session.is_following:
        parts.append(("key", "FOLLOWING UNTIL FOUND" if session.until_hit else "FOLLOWING"))
    elif session.is_live():
        parts.append(("key", "LIVE"))
    lost = session.lost_near()
    if lost:
        parts.append(("lost", f"{lost:,} lost near here"))
    if session.work is not None:
        parts.append(("note", _working(session.work)))
    if view.filter is not None:
        parts.append(("note", f"filter: {' '.join(view.filter.text.split())}"))
    if session.search.pattern is not None:
        parts.append(("", session.search.text()))
    if view.scope is not ALL:
        parts.append(("key", f"{view.scope.name} (M: all)"))
    if view.without:
        parts.append(("key", f"without {', '.join(sorted(view.without))} (S: layers)"))
    if view.folding.level is not None:
        parts.append(("", f"levels: {view.folding.level + 1}"))
    if browser.left:
        parts.append(("", f"column {browser.left + 1}"))
    line = _side_by_side(session, parts)
    return _with_hints(line, list(session.hints.left.values()), session.parts.width)


def _side_by_side(session: Session, parts: Sequence[tuple[str, str]]) -> Line:
    """Texts with their styles, in one line."""
    text, spans = "", []
    for style, what in parts:
        what = session.display.shown(what)
        text += "  " if text else ""
        if style:
            spans.append((len(text), len(text) + len(what), style))
        text += what
    return Line(text, tuple(spans))


def _with_hints(line: Line, hints: list[str], width: int) -> Line:
    """The line with as many of the hints at its right as there is room for."""
    room = width - cells(line.text) - 2
    while hints and len("  ".join(hints)) > room:
        del hints[0]
    said = "  ".join(hints)
    gap = " " * (width - cells(line.text) - len(said)) if said else ""
    return Line(line.text + gap + said, line.spans)


def about_line(session: Session) -> Line:
    """What the recording is: its command, how it ended, the newest exception that nobody caught,
    and lost events."""
    runs = session.runs_shown()
    if len(runs) != 1:
        return Line(f"{len(runs)} recordings" if runs else "")
    (run,) = runs
    parts = [("exception" if run.exit_status else "note", ended(run))]
    for newest in session.fates.found[:1] if session.fates else ():
        parts.append(("exception", f"{newest.in_short} {session.display.own('—')} E goes there"))
    if run.lost:
        parts.append(("lost", f"{run.lost:,} events lost"))
    rest = _side_by_side(session, parts)
    room = max(session.parts.width - cells(rest.text) - 2, _LEAST_COMMAND)
    command = chop(Line(session.display.shown(run.command)), 0, room)
    start = "".join(piece for _, piece in command.runs) + "  "
    spans = tuple((first + len(start), last + len(start), style) for first, last, style in rest.spans)
    return Line(start + rest.text, ((0, len(start) - 2, "title"), *spans))


def _working(work: Work) -> str:
    share = f" {work.opened * 100 // work.segments}%" if work.segments else ""
    since = f", {work.seconds:.0f}s" if work.seconds >= 1 else ""
    return f"working{share}{since}: any key stops it"


def _outdented(line: Line, above: str, number: str) -> Line:
    """A line without its indentation: in the stack each call is in the one above it. above: stands
    behind the columns; number: of its level, as far as the line has one."""
    columns = part(line, 0, line.fixed)
    text = part(line, begins(line) + len(number), len(line.text), columns.text + above)
    return Line(text.text, columns.spans + text.spans)
