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
from collections.abc import Iterator, Sequence
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
    lost, evicted = sum(row[4] for row in runs), sum(row[5] for row in runs)
    if before and before.run == run and not (before.live or live) and before.evicted == evicted:
        return before
    pieces = _Pieces()
    losses: list[tuple[int, int]] = []
    for id, _, _, _, lost_here, _, _, *units in runs:
        pieces.read(database, id, *units)
        if lost_here:
            losses += _losses(database, id, *units)
    started = runs[-1][1] if runs else 0
    times, ranks = pieces.course()
    losses.sort()
    removed_until = [row[6] for row in runs if row[6] is not None]
    return Timeline(
        run,
        times[0] if times else started,
        times[-1] if times else started,
        sum(pieces.counts),
        lost,
        evicted,
        max(removed_until, default=None),
        live,
        runs[-1][3] if runs else None,
        times,
        ranks,
        pieces.having(_RAISES),
        array("q", (at for at, _ in losses)),
        array("q", accumulate(count for _, count in losses)),
    )


def _losses(
    database: Database, run: int, epoch_ns: int, epoch_units: int, scale: int
) -> Iterator[tuple[int, int]]:
    """When events were lost, and how many."""
    rows = database.query(
        "ii",
        f"SELECT start, lost FROM segment INDEXED BY segment_time WHERE run = ? AND kinds & {_LOST}",
        (run,),
    )
    for start, lost in rows:
        yield epoch_ns + ((start - epoch_units) * scale >> 32), lost


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
