"""The state of the reader: the open database, the place in it, and the display. Commands change it,
layout.py draws it. It knows no terminal, and asks the database only by tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..query import one
from ..render import INDENT_MAX
from ..rows import Row, Run, Source
from ..signatures import Signatures
from . import live
from .bookmarks import Marks
from .browser import Browser
from .hints import Hints
from .lines import DisplayOptions, Liner, several
from .text import Line, shown
from .view import Item

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..suggestions.names import Names
    from .detail import Detail
    from .effects import Task
    from .exceptions import Fates, Uncaught
    from .hot import Function, Times
    from .prefilter import Shown
    from .search import Pattern
    from .slow import SlowCalls
    from .timeline import Cell, Timeline

_STACK_MAX = 3
_ROOMY = 12  # rows: there is room for more than events
_LONG_MESSAGE = 4  # rows, at most
_SMALLEST = (10, 3)
_NEAR = 0.01  # of the run: nearer losses are told
WIDE = 140  # columns; narrower screens have no room for a pane beside the events
_LEAST_EVENTS = 3  # rows that a pane leaves
_SHARES = 10  # of the events' place; the pane about one of them takes some


class Parts:
    """The parts of the screen: whether each is shown, and its height in rows. The pane about an
    event is below the events, or `beside` them, in so many columns."""

    def __init__(self) -> None:
        self.width, self.height = 80, 24
        self.shown = {"minimap": True, "stack": True, "detail": False}
        self.beside = False
        self.detail_share = _SHARES // 2
        self.minimap_rows = self.about_rows = self.stack_rows = 0
        self.detail_rows = self.detail_columns = self.event_rows = 0

    @property
    def is_too_small(self) -> bool:
        return self.width < _SMALLEST[0] or self.height < _SMALLEST[1]

    @property
    def message_rows(self) -> int:
        return 1 if self.height >= 5 else 0

    @property
    def most_message_rows(self) -> int:
        """The most rows of a message: a long one covers the last events until the next key."""
        return _LONG_MESSAGE if self.height >= _ROOMY else self.message_rows

    def fit(self, width: int, height: int) -> None:
        """The screen has this size."""
        self.width, self.height = width, height
        roomy = height >= _ROOMY
        self.minimap_rows = self.about_rows = int(roomy and self.shown["minimap"])
        self.stack_rows = min(_STACK_MAX, height // 8) if roomy and self.shown["stack"] else 0
        above = self.minimap_rows + self.about_rows + self.stack_rows
        left = height - above - 1 - self.message_rows
        is_open, is_beside = self.shown["detail"] and left >= 4, self.beside and width >= WIDE
        self.detail_columns = width * self.detail_share // _SHARES if is_open and is_beside else 0
        self.detail_rows = max(left * self.detail_share // _SHARES, 1) if is_open and not is_beside else 0
        self.event_rows = max(left - self.detail_rows, 1)

    @property
    def event_columns(self) -> int:
        """The width of the events; between them and a pane beside them is one more column."""
        return self.width - self.detail_columns - 1 if self.detail_columns else self.width

    def resize_detail(self, shares: int) -> None:
        """The pane becomes larger by so many tenths of its place, or smaller."""
        self.detail_share = max(min(self.detail_share + shares, _SHARES - 1), 1)

    def give_detail(self, rows: int) -> None:
        """The pane below the events has so many rows at least, if that leaves some for them."""
        self.fit(self.width, self.height)
        if self.detail_rows:
            left = self.event_rows + self.detail_rows
            wanted = -(-min(rows, left - _LEAST_EVENTS) * _SHARES // left)
            self.resize_detail(max(wanted - self.detail_share, 0))


class Panes:
    """The content of the panes beside the events. stack: the innermost calls around the first line;
    detail: of the event under the cursor, scrolled down by `top` lines. stack_of, detail_of: the
    events that they belong to."""

    def __init__(self) -> None:
        self.stack: list[Row] = []
        self.detail: Detail | None = None
        self.top = 0
        self.stack_of: tuple[int, int] | None = None  # event and count
        self.detail_of: Item | None = None
        self._scrolled_in = 0  # the id of this event

    def take_detail(self, detail: Detail) -> None:
        if self._scrolled_in != detail.row[0]:  # another event: from its beginning
            self._scrolled_in, self.top = detail.row[0], 0
        self.detail = detail

    def scroll(self, lines: int) -> None:
        """The lines about the event, down or up."""
        self.top = max(self.top + lines, 0)

    def forget(self) -> None:
        """Both are to be asked for again."""
        self.stack_of = self.detail_of = None


class Search:
    """The search: its pattern, if there is one, and its direction. search.py finds the hits."""

    def __init__(self) -> None:
        self._pattern: Pattern | None = None
        self.backwards = False
        self.ignore_case: bool | None = None  # None: smart case
        self.highlight = True
        self._too_slow: Pattern | None = None
        self.found_at: set[int] = set()  # times of hits, for the minimap

    @property
    def pattern(self) -> Pattern | None:
        """The regular expression that is searched for."""
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
        """The parts of a line to highlight. Raises TooSlow, once for a pattern."""
        pattern = self.pattern
        if pattern is None or not self.highlight or pattern is self._too_slow:
            return []
        self._too_slow = pattern  # if it raises: not again for every line
        found = pattern.hits(line.text)
        self._too_slow = None
        return found


@dataclass(frozen=True)
class Work:
    """The work of the command that runs: its seconds so far, and how many segments of all were
    opened."""

    seconds: float
    opened: int
    segments: int


class Session:
    """The state of the reader. start: the answer of the first look at the database; plain: the
    terminal shows no colours; ascii: the terminal shows only ASCII."""

    def __init__(self, path: str, start: live.Start, *, ascii: bool, plain: bool) -> None:
        self.path, self.plain = path, plain
        self.begins_at: int | None = None  # the id of an event
        self.file = start.file  # that is read; another one may take its name
        self.runs: list[Run] = start.runs
        self.sources: list[Source] = start.sources
        self.signatures = Signatures()
        self.names: Names | None = None  # that filters can have, once they were asked for
        self.display = DisplayOptions(ascii=ascii)
        self.parts, self.panes, self.search, self.marks = Parts(), Panes(), Search(), Marks()
        # the usual times of functions, if they were asked for, and what they are of
        self.usual: dict[Function, Times] | None = None
        self.usual_of: tuple[int | None, int] | None = None
        self.browser = Browser(start.view, self.runs, self.liner(), self._view_changed)
        # called when another run or filter is shown
        self.view_changed: Callable[[], None] = lambda: None
        # facts of the shown run besides its events
        self.watch = live.Watch(self.signatures)  # the database thread's
        self.timeline: Timeline | None = None
        self.cells: list[Cell] = []
        self._known = self.sources, 0  # threads and functions
        self.evicted_until = 0  # the time up to which events have been removed
        # following its end
        self.is_following = self.until_hit = False
        # message, typed keys, and choice
        self.message: Line | None = None
        self.typed = ""  # of a command: its number, or a key that waits for another one
        self.repeated = False  # the same command comes again
        self.half_screen: int | None = None  # lines, once given
        self.slow: int | None = None  # ns
        self.slow_calls: SlowCalls | None = None  # that `l` goes through
        self.hints = Hints()
        self.fates: Fates | None = None  # which exceptions nobody caught; None: not known yet
        self.went_to: Uncaught | None = None  # the exception that `E` has shown
        # name and value of the argument that `a` looks for
        self.last_value: tuple[str, str] | None = None
        self.work: Work | None = None

    def begin(self) -> Task[None]:
        """Shows the first screen: the events that were read already, or else the first ones."""
        browser, at = self.browser, self.begins_at
        if at is not None:
            return self._begin_at(at)
        return browser.settle() if browser.began else browser.open(browser.view)

    def _begin_at(self, id: int) -> Task[None]:
        yield from self.browser.open(self.browser.view)
        row = yield lambda database: one(database, id)
        if row is not None:
            yield from self.browser.go(row)

    # ---- what is said ----

    def say(self, text: str, style: str = "note") -> None:
        """A message at the bottom, until the next key."""
        text = shown(" ".join(text.split("\n")), self.display.ascii)
        self.message = Line(text, ((0, len(text), style),))

    def message_line(self) -> Line:
        """The last message, or the beginning of a command that is being typed."""
        return self.message or Line(self.typed)

    # ---- the screen and its lines ----

    def fit(self, width: int, height: int) -> None:
        """The screen has this size."""
        self.parts.fit(width, height)
        levels = max(INDENT_MAX, self.parts.event_columns * 3 // 10)  # a wide screen has room for more
        if levels != self.display.levels:
            self.change_display(replace(self.display, levels=levels))
        self.browser.resize(self.parts.event_columns, self.parts.event_rows, self.parts.stack_rows)

    def toggle(self, part: str) -> bool:
        """Shows or hides a part of the screen. Returns whether it is shown."""
        self.parts.shown[part] = not self.parts.shown[part]
        self.refit()
        return self.parts.shown[part]

    def refit(self) -> None:
        """The parts of the screen have changed."""
        self.fit(self.parts.width, self.parts.height)
        self.panes.forget()

    def liner(self) -> Liner:
        """A Liner for the present display options."""
        medians: dict[tuple[bytes, bytes, bytes, int], int] = {
            function: times.median for function, times in (self.usual or {}).items() if times.median
        }
        return Liner(self.display, self.sources, self.runs, self.signatures.has_arguments, medians)

    def change_display(self, display: DisplayOptions) -> None:
        """Lines look different from now on."""
        self.display = display
        self.browser.look_different(self.liner())

    def shows_thread(self) -> bool:
        """Whether threads have a column: by the switch, or because there are several."""
        switched = self.display.thread
        return several(self.sources)["thread"] if switched is None else switched

    def shows_process(self) -> bool:
        """Whether processes have a column, as for threads."""
        switched = self.display.process
        return several(self.sources)["process"] if switched is None else switched

    def hits(self, line: Line) -> list[tuple[int, int]]:
        """The parts of a line that the search finds; a search that is too slow says so once."""
        if self.search.pattern is None:
            return []
        from .search import TooSlow

        try:
            return self.search.hits(line)
        except TooSlow as error:
            self.say(str(error), "error")
            return []

    def searched(self) -> tuple[Callable[[Row], str], Shown]:
        """The text that is searched: a function that makes an event's line, and the columns that
        lines have besides the usual ones. Not the screen's, since another thread calls it."""
        from .prefilter import Shown

        line = self.liner()
        return lambda row: line(Item(row)).text, Shown(files=self.display.file, ids=self.display.ids)

    def _view_changed(self) -> None:
        self.panes.forget()
        self.view_changed()

    # ---- runs ----

    def runs_shown(self) -> list[Run]:
        """The run that is shown, or all."""
        return [run for run in self.runs if self.browser.view.run in (None, run.id)]

    def run_here(self) -> Run | None:
        """The run of the event under the cursor, or the newest that is shown."""
        item = self.browser.current
        here = [run for run in self.runs_shown() if item is None or run.id == item.row[1]]
        return here[-1] if here else None

    def is_live(self) -> bool:
        """Whether the program of the run that is shown (of all: the newest) is still running."""
        runs = self.runs_shown()
        return bool(runs) and runs[-1].finished is None

    def stop_following(self) -> None:
        self.is_following = self.until_hit = False

    # ---- the course of the run ----

    def course(self) -> Task[Timeline | None]:
        """The course of the shown run, for commands that need it."""
        run, width = self.browser.view.run, self.parts.width
        if self.timeline is None:
            self.take_course((yield lambda database: self.watch.course(database, run, width, False)))
        return self.timeline

    def take_course(self, course: live.Course) -> bool:
        """Takes the course that was read. False: another run is shown by now."""
        if course.timeline.run != self.browser.view.run:
            return False
        self.runs[:], self.sources = course.runs, course.sources
        self.timeline = course.timeline
        evicted = max((run.evicted_until or 0 for run in self.runs), default=0)
        if evicted != self.evicted_until:
            self.evicted_until = evicted
            self.browser.evict(evicted)
        run = next((run for run in self.runs if run.id == self.browser.view.run), None)
        self.browser.frame(live.header(run), live.footer(run, course.damages, course.later))
        known = self.sources, len(self.signatures)
        if known != self._known:
            self._known = known
            self.change_display(self.display)
        return True

    # ---- what is usual ----

    def usual_now(self) -> tuple[int | None, int]:
        """What usual times are of: the shown run. While the program runs, they change now and
        then."""
        events = self.timeline.events if self.timeline is not None and self.is_live() else 0
        return self.browser.view.run, events.bit_length()

    def take_usual(self, usual: dict[Function, Times], of: tuple[int | None, int]) -> None:
        """Takes the usual times of functions: durations that are much longer look different."""
        self.usual, self.usual_of = usual, of
        self.change_display(self.display)

    def percent(self) -> float | None:
        """The percentage of events before the cursor; 100 at the last one. None: unknown."""
        item, timeline = self.browser.current, self.timeline
        if item is None or timeline is None or not timeline.events:
            return None
        time = item.row[2]
        return 100.0 if time >= timeline.last else min(timeline.share(time) * 100, 99.9)

    def lost_near(self) -> int:
        """Events lost near the cursor."""
        item, timeline = self.browser.current, self.timeline
        if item is None or timeline is None or not timeline.lost:
            return 0
        within = int((timeline.last - timeline.first) * _NEAR)
        return timeline.lost_near(item.row[2], within)
