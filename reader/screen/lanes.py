"""Lanes: the time from left to right, and below each other the threads and tasks, with their calls
as bars: a call stands below its caller. Where only own code is shown, library functions that it
calls are names without a bar. Dots in bars are times off the processor. dialogs.py opens it for the
effect ShowLanes, and hands it keys.

What is known is drawn at once, also after a step or another scale; the rest comes in the
background.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..stretches import ALL, Scope
from .flame import Bar, Lane, Part, bars
from .lines import clock
from .paint import Rows
from .text import Line, cells, fitted, shown

if TYPE_CHECKING:
    from ..database import Database
    from ..rows import Source
    from .lines import DisplayOptions

_LABEL = 14  # cells of a lane's name
_ZOOM = 4
_STEP = 4  # the part of the screen by which it moves
_DOTTED = 10  # cells of a bar; names in shorter ones are cut without a sign
_LEAST = 100  # ns on the screen
_LEAVING = ("q", "Q", "esc", "ctrl c", "ctrl g")
_STYLES = ("flame", "flame other")
_KEYS = "←→: along  ↑↓: callers, callees, lanes  + -: scale  Enter: goes there  q: back"


class Lanes:
    """The lanes on the screen. `done` once they were left; `result` is then None, or makes the
    effects of going to a call. whole: the run's time until now; sources: its threads until now;
    at: the place to begin with, as lane, depth and time. go: makes the effects of going to an
    event. scope: the code that is shown. is_live: whether the run goes on."""

    def __init__(
        self,
        run: int,
        whole: Callable[[], Part],
        part: Part,
        sources: Callable[[], list[Source]],
        at: tuple[Lane, int, int],
        go: Callable[[int], Any],
        display: DisplayOptions,
        scope: Scope = ALL,
        is_live: Callable[[], bool] = lambda: False,
    ) -> None:
        self.done = False
        self.result: Callable[[], Any] | None = None
        self.counting: str | None = None
        self._run, self._whole, self._part, self._sources = run, whole, part, sources
        self._lane, self._depth, self._time = at
        self._go, self._display, self._scope, self._is_live = go, display, scope, is_live
        self._grows = part.end >= whole().end  # what is shown ends now
        self._said = ""  # until the next key
        self._bars: dict[Lane, dict[int, list[Bar]]] = {}  # by depth, those of a row by their time
        self._off: dict[tuple[int, int], list[Bar]] = {}  # times off the processor, by process and thread
        self._asked: tuple[Part, int] | None = None  # the part that the bars are of, and its cells
        self._width = 0
        self._grid: list[tuple[Lane, int]] = []  # the lane and depth of each row ...
        self._levels: dict[Lane, list[int]] = {}  # ... and the depths of each lane that have calls

    # ---- what is asked for ----

    def wanted(self) -> Callable[[Database], list[Bar]] | None:
        """The question for what is shown; None: it was asked, or nothing is drawn yet."""
        now = self._part, self._width
        if not self._width or self._asked == now:
            return None
        self._asked = now
        return bars(self._run, self._part, self._cell(), self._sources(), self._scope)

    def forget(self) -> None:
        """The bars are to be asked for again, until now if they end now."""
        self._asked = None
        if self._grows:
            self._part = self._part._replace(end=max(self._part.end, self._whole().end))

    def take(self, found: list[Bar]) -> None:
        self._bars, self._off = {}, {}
        for bar in sorted(found, key=lambda bar: bar.start):
            if bar.off:
                self._off.setdefault((bar.lane.pid, bar.lane.tid), []).append(bar)
                continue
            self._bars.setdefault(bar.lane, {}).setdefault(bar.depth, []).append(bar)

    def _cell(self) -> int:
        return max((self._part.end - self._part.start) // max(self._width, 1), 1)

    # ---- keys ----

    def keypress(self, size: tuple[int, int], key: str) -> None:
        """Takes a key by urwid's name."""
        length, self._said = self._part.end - self._part.start, ""
        if key in _LEAVING:
            self.done = True
        elif key == "enter":
            bar = self._current()
            if bar is not None:
                self.done, self.result = True, partial(self._go, bar.id)
            else:
                self._said = "Enter goes to a call: there is none here"
        elif key in ("+", "="):
            self._show(max(length // _ZOOM, _LEAST))
        elif key in ("-", "_"):
            self._show(length * _ZOOM)
        elif key in ("left", "right", "h", "l"):
            self._along(-1 if key in ("left", "h") else 1)
        elif key in ("up", "down", "k", "j"):
            self._across(-1 if key in ("up", "k") else 1)

    def mouse(self, event: str, button: int, row: int) -> None:
        """The wheel changes the scale; a click puts the cursor on a row."""
        if event == "mouse press" and button in (4, 5):
            self.keypress((1, 1), "+" if button == 4 else "-")
        elif event == "mouse press" and 0 < row <= len(self._grid):
            self._lane, self._depth = self._grid[row - 1]

    def _show(self, length: int) -> None:
        """Shows so many ns; the cursor's time stays in its column."""
        whole = self._whole()
        length = min(length, max(whole.end - whole.start, _LEAST))
        before = self._time - self._part.start
        share = before / max(self._part.end - self._part.start, 1)
        start = int(self._time - length * min(max(share, 0), 1))
        self._part = self._within(start, length)

    def _within(self, start: int, length: int) -> Part:
        whole = self._whole()
        start = max(min(start, whole.end - length), whole.start)
        part = Part(start, start + length)
        self._grows = part.start <= whole.start and part.end >= whole.end
        return part

    def _along(self, step: int) -> None:
        """To the next bar of the row; without one, the time moves."""
        row = self._of_row(self._lane, self._depth)
        ahead = [
            bar for bar in row if (bar.start > self._time if step > 0 else self._until(bar) <= self._time)
        ]
        start, end = self._part
        if ahead:
            bar = ahead[0] if step > 0 else ahead[-1]
            self._time = max(bar.start, start)
        else:
            self._part = self._within(start + step * (end - start) // _STEP, end - start)
            self._time = min(
                max(self._time + step * (end - start) // _STEP, self._part.start), self._part.end
            )

    def _across(self, step: int) -> None:
        """To the next level of the lane that has calls; behind the last one to the next lane."""
        levels = self._levels.get(self._lane, [])
        place = bisect_left(levels, self._depth) + step
        if 0 <= place < len(levels):
            self._depth = levels[place]
            return
        of_lane = [place for place, (lane, _) in enumerate(self._grid) if lane == self._lane]
        beyond = (of_lane[-1] + 1 if step > 0 else of_lane[0] - 1) if of_lane else 0
        if 0 <= beyond < len(self._grid):
            self._lane, self._depth = self._grid[beyond]

    def _current(self) -> Bar | None:
        """The bar under the cursor: the shortest there."""
        column = self._column(self._time)
        here = [bar for bar in self._of_row(self._lane, self._depth) if self._covers(bar, column)]
        return min(here, key=lambda bar: self._until(bar) - bar.start, default=None)

    # ---- bars ----

    def _until(self, bar: Bar) -> int:
        return self._part.end + 1 if bar.end is None else bar.end

    def _of_row(self, lane: Lane, depth: int) -> list[Bar]:
        """The bars of a row that are shown, by their time."""
        return [bar for bar in self._bars.get(lane, {}).get(depth, ()) if self._is_shown(bar)]

    def _is_shown(self, bar: Bar) -> bool:
        return bar.start <= self._part.end and self._until(bar) >= self._part.start

    def _column(self, time: int) -> int:
        start, end = self._part
        return min(max((time - start) * self._width // max(end - start, 1), 0), max(self._width - 1, 0))

    def _covers(self, bar: Bar, column: int) -> bool:
        first = self._column(bar.start)
        return first <= column < max(self._column(self._until(bar)), first + 1)

    def _rows(self, height: int) -> list[tuple[Lane, int]]:
        """The lanes and depths to draw: all levels, if they have room; else the innermost calls
        (`_first`), and the rows around the cursor's."""
        depths = {
            lane: [depth for depth, row in sorted(rows.items()) if any(map(self._is_shown, row))]
            for lane, rows in self._bars.items()
        }
        depths = self._levels = {lane: levels for lane, levels in depths.items() if levels}
        own = depths.get(self._lane, [])
        if self._depth not in own:
            depths[self._lane] = sorted([*own, self._depth])
        order = {(source.pid, source.tid): place for place, source in enumerate(self._sources())}
        lanes = sorted(depths, key=lambda lane: (order.get(lane[:2], len(order)), lane))
        if len(lanes) > height:  # those around the cursor's
            place = min(max(lanes.index(self._lane) - height // 2, 0), len(lanes) - height)
            lanes = lanes[place : place + height]
        room = dict.fromkeys(lanes, 1)
        spare = height - len(lanes)
        while spare > 0:  # a row for each in turn, two for the cursor's
            grown = [lane for lane in (self._lane, *lanes) if room[lane] < len(depths[lane])]
            if not grown:
                break
            for lane in grown[:spare]:
                room[lane] = min(room[lane] + 1, len(depths[lane]))
            spare = height - sum(room.values())
        rows = []
        for lane in lanes:
            rows += [(lane, depth) for depth in self._chosen(lane, depths[lane], room[lane])]
        return rows

    def _chosen(self, lane: Lane, levels: list[int], room: int) -> list[int]:
        """So many of a lane's levels as there is room for."""
        first = self._first(lane, levels, room)
        chosen = levels[first : first + room]
        if lane != self._lane or self._depth in chosen:
            return chosen
        inner = room // 2
        around = max(levels.index(self._depth) - (room - inner) // 2, 0)
        return sorted({*levels[around : around + room - inner], *chosen[len(chosen) - inner :]})

    def _first(self, lane: Lane, levels: list[int], room: int) -> int:
        """The place of the first level to draw. Outer levels that are one bar from end to end are
        left out, and more of them, as far as the innermost call that is open at the end needs
        it; of library code only behind it."""
        dull = innermost = 0
        if room >= len(levels):
            return 0
        for place, depth in enumerate(levels):
            row = self._of_row(lane, depth)
            if any(not bar.library and self._until(bar) > self._part.end for bar in row):
                innermost = place
            if dull == place and any(bar.start <= self._part.start and self._ends(bar) for bar in row):
                dull = place + 1
        behind = levels[innermost + 1 :]
        if room > 1 and behind and any(map(self._ends, self._of_row(lane, behind[0]))):
            innermost += 1
        return min(max(dull - 1, innermost + 1 - room, 0), len(levels) - room)

    def _ends(self, bar: Bar) -> bool:
        return self._until(bar) >= self._part.end

    # ---- drawing ----

    def render(self, size: tuple[int, int], focus: bool = False) -> Any:
        width, height = size
        label = min(_LABEL, width // 4)
        self._width = max(width - label, 1)
        rows = Rows(width)
        rows.line(self._scale(label), "bar")
        self._grid = self._rows(max(height - 3, 1))
        current, former = self._current(), None
        for lane, depth in self._grid:
            name = fitted(self._name(lane), label - 1) + " " if lane != former and label > 1 else " " * label
            former = lane
            rows.line(self._row(name, lane, depth, current))
        rows.fill(height - 2)
        rows.line(Line(self._told(current)), "bar")
        rows.line(Line(self._display.own(_KEYS)))
        rows.fill(height)
        return rows.canvas()

    def _scale(self, label: int) -> Line:
        start, end = self._part
        left, right = clock(start), f"+{self._display.lasting(end - start)}"
        if self._is_live():
            behind = max(self._whole().end - end, 0)
            right += ", to now" if self._grows else f", {self._display.lasting(behind)} before now"
        if cells(left) + cells(right) >= self._width:
            left = ""
        return Line(" " * label + left + right.rjust(max(self._width - cells(left), 0)))

    def _name(self, lane: Lane) -> str:
        if lane.task:
            return shown(lane.task.decode("utf-8", "backslashreplace"), self._display.ascii)
        sources = self._sources()
        names = [source.thread for source in sources if (source.pid, source.tid) == lane[:2]]
        name = names[0] if names and names[0] else str(lane.tid)
        several = len({source.pid for source in sources}) > 1
        return shown(f"{lane.pid} {name}" if several else name, self._display.ascii)

    def _row(self, label: str, lane: Lane, depth: int, current: Bar | None) -> Line:
        """The longer bars first, so that the shorter ones stand on them."""
        text = [" "] * self._width
        styles = [""] * self._width
        found = self._of_row(lane, depth)
        places = {bar.id: place for place, bar in enumerate(found)}
        for bar in sorted(found, key=lambda bar: (not bar.library, bar.start - self._until(bar))):
            first, last = self._column(max(bar.start, self._part.start)), self._column(self._until(bar))
            width = max(last - first, 1)
            begins = "|" if self._display.ascii else "▏"
            name = shown(f"⋯ {bar.name}" if bar.library else bar.name, self._display.ascii)
            cell = (begins if bar.start >= self._part.start else " ") + name
            cell = fitted(cell, width) if width >= _DOTTED else cell[:width].ljust(width)
            if len(cell) != width:  # wide characters are drawn as one
                cell = "".join(letter for letter in cell if cells(letter) == 1).ljust(width)[:width]
            style = "flame failed" if bar.failed else _STYLES[places[bar.id] % 2]
            if bar.library:
                style = "dim"
            if bar is current:
                style = "cursor"
            text[first : first + width] = cell
            styles[first : first + width] = [style] * width
            before = first - len(name) - 1
            if self._ends(bar) and width <= len(name) and before > 0:  # what goes on at the end
                room = slice(before, first)
                if not "".join(text[room]).strip() and not any(styles[room]) and cells(name) == len(name):
                    text[room] = f"{name} "
        dot = self._display.own("·")
        for off in filter(self._is_shown, self._off.get(lane[:2], ())):
            for column in range(self._column(off.start), self._column(self._until(off))):
                if styles[column] and text[column] == " ":
                    text[column] = dot
        if lane == self._lane and depth == self._depth and current is None:
            styles[self._column(self._time)] = "cursor"
        spans: list[tuple[int, int, str]] = []
        for column, style in enumerate(styles[: self._width], len(label)):
            if style and spans and spans[-1][1:] == (column, style):
                spans[-1] = (spans[-1][0], column + 1, style)
            elif style:
                spans.append((column, column + 1, style))
        head = ((0, len(label), "key"),) if lane == self._lane else ()
        return Line(label + "".join(text[: self._width]), (*head, *spans))

    def _told(self, bar: Bar | None) -> str:
        """The call under the cursor."""
        if self._said:
            return self._said
        parts = [f"level {self._depth}"]
        if bar is None:
            parts.append(f"no call of {self._display.lasting(self._cell())} or more here")
        else:
            took = self._lasted(bar)
            parts += [shown(bar.name, self._display.ascii), took, clock(bar.start)]
            parts += ["library code"] if bar.library else []
        if self.counting:
            parts.append(self.counting)
        return "  ".join(parts)

    def _lasted(self, bar: Bar) -> str:
        if bar.end is not None:
            return self._display.lasting(bar.end - bar.start)
        if self._part.end < self._whole().end:
            return "runs on"
        return "runs still" if self._is_live() else "no end recorded"
