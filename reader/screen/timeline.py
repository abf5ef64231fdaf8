"""The course of a run, without opening a segment: the share of events before a time, and the events
in each part of it. The status line, jumps to a share and the minimap, which is drawn here, use it.

It comes from the summaries of segments, and so is an estimate: events count as evenly spread over
their segment. `read` and `refined` are questions.
"""

from __future__ import annotations

import json
import time as clock
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from math import log2
from operator import mul, sub
from typing import TYPE_CHECKING, NamedTuple

from ..database import Damaged
from .text import Line

if TYPE_CHECKING:
    from ..database import Database


_PIECES = 2048  # of more segments, some that follow each other are taken as one
_KIND_BITS = 32
_RAISES = 1 << 3 | 1 << 7  # exception, raise: of segment.kinds
_LOST = 1 << 9
_SMALL = 300_000  # events that are counted one by one, in some 100 ms
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1  # numbers in a database


class Cell(NamedTuple):
    """A part of a run's time: the number of events, and whether it has exceptions, losses, or
    evicted events."""

    events: float = 0.0
    exceptions: bool = False
    lost: bool = False
    evicted: bool = False


@dataclass(frozen=True)
class Timeline:
    """The course of a run (None: of all). Times are ns since 1970. It is never changed; `read`
    makes a new one."""

    run: int | None
    first: int  # of the events in the database
    last: int
    events: int
    lost: int
    evicted: int
    evicted_until: int | None
    live: bool  # not finished, as far as is known
    exit_status: int | None
    # events before each of these times, growing evenly in between
    _times: Sequence[int] = ()
    _before: Sequence[float] = ()
    # stretches of time with events that are exceptions: starts and ends
    _raising: tuple[Sequence[int], Sequence[int]] = ((), ())
    # times of losses, and the events lost up to each
    _lost_at: Sequence[int] = ()
    _lost_until: Sequence[int] = ()
    _lost_segment: int = 0  # the last one of which this is known
    _runs: Sequence[tuple[int | None, ...]] = ()  # as they were stored

    def share(self, time: int) -> float:
        """The share of events before a time: 0 to 1."""
        return min(self._rank(time) / self.events, 1.0) if self.events else 0.0

    def time_at(self, share: float) -> int:
        """The time before which there is this share (0 to 1) of the events."""
        if not self._times or share <= 0:
            return self.first
        if share >= 1:
            return self.last
        events = share * self.events
        right = min(max(bisect_left(self._before, events), 1), len(self._times) - 1)
        start, end = self._before[right - 1], self._before[right]
        part = (events - start) / (end - start) if end > start else 0.0
        length = self._times[right] - self._times[right - 1]
        return min(self._times[right - 1] + round(min(max(part, 0.0), 1.0) * length), self.last)

    def part(self, time: int) -> float:
        """The place of a time between the first and the last event: 0 to 1."""
        return min(max((time - self.first) / max(self.last - self.first, 1), 0.0), 1.0)

    def time_of(self, part: float) -> int:
        """The time at a place between the first and the last event (0 to 1)."""
        return min(self.first + round(min(max(part, 0.0), 1.0) * (self.last - self.first)), self.last)

    def lost_near(self, time: int, within: int) -> int:
        """The number of events lost within so many ns before and after a time."""
        low = bisect_left(self._lost_at, time - within)
        high = bisect_right(self._lost_at, time + within)
        return self._lost_until[high - 1] - (self._lost_until[low - 1] if low else 0) if high > low else 0

    def cells(self, count: int) -> list[Cell]:
        """The run's time in `count` parts of the same length. Exceptions are marked in the whole
        time of a segment that has one; `refined` looks closer."""
        if not self.events:
            return [Cell()] * count
        edges = [self.time_of(i / count) for i in range(count + 1)]
        ranks = [0.0, *map(self._rank, edges[1:-1]), float(self.events)]
        cells = [Cell(max(end - start, 0.0)) for start, end in pairwise(ranks)]
        for start, end in zip(*self._raising, strict=True):
            for i in range(self._cell(start, count), self._cell(end, count) + 1):
                if not cells[i].exceptions:
                    cells[i] = cells[i]._replace(exceptions=True)
        for at in self._lost_at:
            if not cells[i := self._cell(at, count)].lost:
                cells[i] = cells[i]._replace(lost=True)
        if self.evicted:
            until = self.first if self.evicted_until is None else self.evicted_until
            for i in range(self._cell(until, count) + 1):
                cells[i] = cells[i]._replace(evicted=True)
        return cells

    def _cell(self, time: int, count: int) -> int:
        return min(int(self.part(time) * count), count - 1)

    def _rank(self, time: int) -> float:
        if not self._times or time <= self._times[0]:
            return 0.0
        if time >= self._times[-1]:
            return float(self.events)
        right = bisect_right(self._times, time)
        start, end = self._times[right - 1], self._times[right]
        return self._before[right - 1] + (self._before[right] - self._before[right - 1]) * (
            (time - start) / (end - start)
        )


class _Clock(NamedTuple):
    """What makes times of a run's units; numbers of a damaged database saturate."""

    epoch_ns: int
    epoch_units: int
    scale: int

    def nanoseconds(self, units: int) -> int:
        return _saturated(self.epoch_ns + ((units - self.epoch_units) * self.scale >> 32))


def _saturated(number: int) -> int:
    return min(max(number, _LEAST), _MOST)


class _Pieces:
    """Stretches of time with their events and kinds."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.counts: list[int] = []
        self.kinds: list[int] = []

    def read(self, database: Database, run: int, clock: _Clock) -> None:
        """Adds the stretches of a run."""
        # rows one by one would take four times as long
        ((starts, ends, rest),) = database.query(
            "bbb",
            'SELECT CAST(json_group_array(start) AS BLOB), CAST(json_group_array("end") AS BLOB),'
            f" CAST(json_group_array(count << {_KIND_BITS} | (kinds & {(1 << _KIND_BITS) - 1})) AS BLOB)"
            " FROM segment INDEXED BY segment_time WHERE run = ?",
            (run,),
        )
        starts, ends, rest = json.loads(starts), json.loads(ends), json.loads(rest)
        if any(type(number) is not int for number in chain(starts, ends, rest)):
            raise Damaged(database.path, "a value of another type than its column's")
        size = max(-(-len(starts) // _PIECES), 1)
        for i in range(0, len(starts), size):
            start, end = min(starts[i : i + size]), max(ends[i : i + size])
            count = kinds = 0
            for each in rest[i : i + size]:
                count += max(each >> _KIND_BITS, 0)
                kinds |= each
            start_ns = min(clock.nanoseconds(start), _MOST - 1)
            self.starts.append(start_ns)
            self.ends.append(max(clock.nanoseconds(end), start_ns + 1))
            self.counts.append(count)
            self.kinds.append(kinds)

    def course(self) -> tuple[array[int], array[float]]:
        """The times at which a stretch begins or ends, and the number of events before each."""
        rates = [n / (end - start) for n, start, end in zip(self.counts, self.starts, self.ends, strict=True)]
        changes = rates + [-rate for rate in rates]
        moments = self.starts + self.ends
        order = sorted(range(len(moments)), key=moments.__getitem__)
        times = array("q", map(moments.__getitem__, order))
        rate = accumulate(map(changes.__getitem__, order))
        steps = map(mul, rate, map(sub, times[1:], times))
        # rounding must not make it fall
        before = accumulate((max(step, 0.0) for step in steps), initial=0.0)
        return times, array("d", before if order else ())

    def having(self, kinds: int) -> tuple[array[int], array[int]]:
        """Starts and ends of the stretches with an event of one of these kinds."""
        chosen = [i for i, has in enumerate(self.kinds) if has & kinds]
        return array("q", (self.starts[i] for i in chosen)), array("q", (self.ends[i] for i in chosen))


def read(database: Database, run: int | None, before: Timeline | None = None) -> Timeline:
    """The course of a run, or of all runs, by now. before: the result of the last reading."""
    runs = database.query(
        "iinniiniii",
        "SELECT id, started, finished, exit_status, lost, evicted, evicted_until, clock_epoch_ns,"
        " clock_epoch_units, clock_scale FROM run WHERE ?1 < 0 OR id = ?1 ORDER BY id",
        (-1 if run is None else run,),
    )
    live = any(finished is None for _, _, finished, *_ in runs)
    if before and before.run != run:
        before = None
    if before and before._runs == runs and not live:
        return before
    pieces = _Pieces()
    for id, *_, epoch_ns, epoch_units, scale in runs:
        pieces.read(database, id, _Clock(epoch_ns, epoch_units, scale))
    times, events_before = pieces.course()
    started = runs[-1][1] if runs else 0
    first, last = (times[0], times[-1]) if times else (started, started)
    lost_at, lost_until, lost_segment = _losses(database, runs, before, first)
    return Timeline(
        run,
        first,
        last,
        sum(pieces.counts),
        sum(row[4] for row in runs),
        sum(row[5] for row in runs),
        max((row[6] for row in runs if row[6] is not None), default=None),
        live,
        runs[-1][3] if runs else None,
        times,
        events_before,
        pieces.having(_RAISES),
        lost_at,
        lost_until,
        lost_segment,
        runs,
    )


def _losses(
    database: Database, runs: list[tuple[int, ...]], before: Timeline | None, first: int
) -> tuple[array[int], array[int], int]:
    """When events were lost, from a first time on, and how many until behind each; the last segment
    that tells. Each is a row to be read, so those that are known already are not read again."""
    losses: list[tuple[int, int]] = []
    last = 0
    if before:
        counts = map(sub, before._lost_until, [0, *before._lost_until])
        losses = [loss for loss in zip(before._lost_at, counts, strict=False) if loss[0] >= first]
        last = before._lost_segment
    asked = (
        f"SELECT id, start, lost FROM segment INDEXED BY segment_time"
        f" WHERE run = ? AND kinds & {_LOST} AND id > ?"
    )
    newest = last
    for run, _, _, _, lost, _, _, epoch_ns, epoch_units, scale in runs:
        if lost:
            for id, start, count in database.query("iii", asked, (run, last)):
                losses.append((_Clock(epoch_ns, epoch_units, scale).nanoseconds(start), count))
                newest = max(newest, id)
    losses.sort()
    until = accumulate((n for _, n in losses), lambda before, n: _saturated(before + n))
    return array("q", (at for at, _ in losses)), array("q", until), newest


def refined(
    database: Database, timeline: Timeline, cells: list[Cell], done: int = 0, seconds: float = 0.05
) -> tuple[list[Cell], int]:
    """Cells of `timeline.cells` looked at more closely: the events of a small run are counted; in a
    large one it is made sure that there are exceptions where there may be. done: how many cells are
    finished already, 0 at first; returns how many are now, after at most some seconds or one
    cell."""
    run = "" if timeline.run is None else f"run = {timeline.run} AND "
    if timeline.events <= _SMALL:
        return _counted(database, timeline, cells, run), len(cells)
    cells, until = cells[:], clock.monotonic() + seconds
    asked = f"SELECT 1 FROM event WHERE {run}kind IN ('raise', 'exception') AND time BETWEEN ? AND ? LIMIT 1"
    while done < len(cells):
        if cells[done].exceptions:
            start, end = timeline.time_of(done / len(cells)), timeline.time_of((done + 1) / len(cells))
            if not database.query("i", asked, (start, end)):
                cells[done] = cells[done]._replace(exceptions=False)
        done += 1
        if clock.monotonic() >= until:
            break
    return cells, done


def _counted(database: Database, timeline: Timeline, cells: list[Cell], run: str) -> list[Cell]:
    rows = database.query(
        "iii",
        "SELECT min((time - ?1) * ?2 / ?3, ?2 - 1) AS cell, count(*),"
        " max(kind = 'lost') << 1 | max(kind IN ('raise', 'exception'))"
        f" FROM event WHERE {run}time BETWEEN ?1 AND ?4 GROUP BY cell",
        (timeline.first, len(cells), max(timeline.last - timeline.first, 1), timeline.last),
    )
    counted = [Cell(evicted=cell.evicted) for cell in cells]
    for cell, events, has in rows:
        counted[cell] = Cell(float(events), bool(has & 1), bool(has & 2), cells[cell].evicted)
    return counted


_BARS, _ASCII_BARS = " ▁▂▃▄▅▆▇█", " .:-=+*#"
_MARKS = {
    "exception": "E",
    "handled": "!",
    "lost": "?",
    "hit": "/",
    "cursor": "|",
}  # for terminals without colours
_HALVES = 8  # halvings of the fullest cell that look different


def minimap(
    cells: Sequence[Cell],
    here: float,
    shown: tuple[float, float],
    hits: Iterable[float] = (),
    uncaught: Iterable[float] = (),
    *,
    ascii: bool = False,
    plain: bool = False,
) -> Line:
    """A line as wide as there are cells: the height of each is the logarithm of its events.

    here, shown, hits, uncaught: places in the run's time, 0 to 1 (Timeline.part): of the cursor; of
    the first and the last event on the screen; of the hits; of exceptions that nobody caught.
    plain: marks instead of colours. ascii: draw only ASCII.
    """
    width = len(cells)
    if not width:
        return Line("")
    at = _column(here, width)
    first, last = min(_column(shown[0], width), at), max(_column(shown[1], width), at)
    if first == last:  # two cells are seen more easily
        first, last = min(first, max(width - 2, 0)), min(last + 1, width - 1)
    found = {_column(hit, width) for hit in hits}
    loud = {_column(place, width) for place in uncaught}
    most = max(cell.events for cell in cells)
    text: list[str] = []
    spans: list[tuple[int, int, str]] = []
    for column, cell in enumerate(cells):
        style = _style(cell, first <= column <= last, column in found, column in loud)
        mark = column == at and plain and column not in loud
        text.append(_MARKS["cursor"] if mark else _glyph(cell, style, most, ascii, plain))
        if style:
            if spans and spans[-1][1:] == (column, style):
                spans[-1] = (spans[-1][0], column + 1, style)
            else:
                spans.append((column, column + 1, style))
    return Line("".join(text), tuple(spans))


def time_of_cell(timeline: Timeline, column: int, width: int) -> int:
    """The time in the middle of a cell, ns since 1970; for a click on it."""
    return timeline.time_of((column + 0.5) / max(width, 1))


def _column(part: float, width: int) -> int:
    return min(max(int(part * width), 0), width - 1)


def _style(cell: Cell, on_screen: bool, hit: bool, uncaught: bool) -> str:
    """The style of the cell's most important property."""
    if on_screen:
        return "exception cursor" if uncaught else "cursor"
    if hit:
        return "hit"
    if uncaught:
        return "exception"
    if cell.lost:
        return "lost"
    if cell.exceptions:
        return "handled"
    return "dim" if cell.evicted else ""


def _glyph(cell: Cell, style: str, most: float, ascii: bool, plain: bool) -> str:
    if plain and style in ("exception", "exception cursor", "handled", "lost", "hit"):
        return _MARKS[style.removesuffix(" cursor")]
    bars = _ASCII_BARS if ascii else _BARS
    if cell.events <= 0:
        return bars[0]
    part = 1 + log2(cell.events / most) / _HALVES  # 1: the fullest
    return bars[max(1, round(part * (len(bars) - 1)))]
