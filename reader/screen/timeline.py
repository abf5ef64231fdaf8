"""What is known of a run's course without opening a segment: the share of events before a time, and what
there is in each part of it. For the status line, for jumps to a share, and for the minimap.

All of it comes from the summaries of segments, so that it is an estimate: within a segment events count as
evenly spread. `read` and `refined` are questions.
"""

from __future__ import annotations

import json
import time as clock
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul, sub
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..database import Database

_PIECES = 2048  # more segments than these are taken together, a few that follow each other as one
_KIND_BITS = 10
_RAISES = 1 << 3 | 1 << 7  # exception, raise: of segment.kinds
_LOST = 1 << 9
_SMALL = 300_000  # events that are counted one by one, in some 100 ms


class Cell(NamedTuple):
    """A part of a run's time: how many events, and whether there are exceptions and losses in it, and
    whether events of it were removed."""

    events: float = 0.0
    exceptions: bool = False
    lost: bool = False
    evicted: bool = False


@dataclass(frozen=True)
class Timeline:
    """The course of a run (None: of all). Times are ns since 1970. Never changed; `read` makes another."""

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
    # where events were lost, and how many until behind each
    _lost_at: Sequence[int] = ()
    _lost_until: Sequence[int] = ()
    _lost_segment: int = 0  # the last one of which this is known
    _runs: Sequence[tuple[int | None, ...]] = ()  # as they were stored

    def rank(self, time: int) -> int:
        """How many events are before a time."""
        return round(self._rank(time))

    def share(self, time: int) -> float:
        """The events before a time, of all: 0 to 1."""
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
        return self._times[right - 1] + round(min(max(part, 0.0), 1.0) * length)

    def part(self, time: int) -> float:
        """The place of a time between the first and the last event: 0 to 1."""
        return min(max((time - self.first) / max(self.last - self.first, 1), 0.0), 1.0)

    def time_of(self, part: float) -> int:
        """The time at a place between the first and the last event (0 to 1)."""
        return self.first + round(min(max(part, 0.0), 1.0) * (self.last - self.first))

    def lost_near(self, time: int, within: int) -> int:
        """How many events were lost in so many ns before and after a time."""
        low = bisect_left(self._lost_at, time - within)
        high = bisect_right(self._lost_at, time + within)
        return self._lost_until[high - 1] - (self._lost_until[low - 1] if low else 0) if high > low else 0

    def cells(self, count: int) -> list[Cell]:
        """The run's time in so many parts of the same length. Exceptions are said to be wherever the
        segment has one; `refined` looks closer."""
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


class _Pieces:
    """Stretches of time with their events and kinds."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.counts: list[int] = []
        self.kinds: list[int] = []

    def read(self, database: Database, run: int, epoch_ns: int, epoch_units: int, scale: int) -> None:
        """Adds those of a run."""
        # rows one by one would take four times as long
        ((starts, ends, rest),) = database.query(
            "bbb",
            'SELECT CAST(json_group_array(start) AS BLOB), CAST(json_group_array("end") AS BLOB),'
            f" CAST(json_group_array(count << {_KIND_BITS} | (kinds & {(1 << _KIND_BITS) - 1})) AS BLOB)"
            " FROM segment INDEXED BY segment_time WHERE run = ?",
            (run,),
        )
        starts, ends, rest = json.loads(starts), json.loads(ends), json.loads(rest)
        size = max(-(-len(starts) // _PIECES), 1)
        for i in range(0, len(starts), size):
            start, end = min(starts[i : i + size]), max(ends[i : i + size])
            count = kinds = 0
            for each in rest[i : i + size]:
                count += each >> _KIND_BITS
                kinds |= each
            start_ns = epoch_ns + ((start - epoch_units) * scale >> 32)
            self.starts.append(start_ns)
            self.ends.append(max(epoch_ns + ((end - epoch_units) * scale >> 32), start_ns + 1))
            self.counts.append(count)
            self.kinds.append(kinds)

    def course(self) -> tuple[array[int], array[float]]:
        """The times at which a stretch begins or ends, and how many events there are before each."""
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
        """Starts and ends of those with an event of one of these kinds."""
        chosen = [i for i, has in enumerate(self.kinds) if has & kinds]
        return array("q", (self.starts[i] for i in chosen)), array("q", (self.ends[i] for i in chosen))


def read(database: Database, run: int | None, before: Timeline | None = None) -> Timeline:
    """The course of a run, or of all runs, by now. before: what was read of it the last time."""
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
        pieces.read(database, id, epoch_ns, epoch_units, scale)
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
    """When events were lost, from a first time on, and how many until behind each; the last segment that
    tells. Each is a row to be read, so those that are known already are not read again."""
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
                losses.append((epoch_ns + ((start - epoch_units) * scale >> 32), count))
                newest = max(newest, id)
    losses.sort()
    return array("q", (at for at, _ in losses)), array("q", accumulate(n for _, n in losses)), newest


def refined(
    database: Database, timeline: Timeline, cells: list[Cell], done: int = 0, seconds: float = 0.05
) -> tuple[list[Cell], int]:
    """Cells of `timeline.cells` looked at more closely: the events of a small run are counted; in a large one
    it is made sure that there are exceptions where there may be. done: how many cells are finished already,
    0 at first; returns how many are now, after at most some seconds or one cell."""
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
