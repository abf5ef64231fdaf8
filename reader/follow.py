"""Follows a run that is being recorded: its events as they come.

While a program runs, the dumper stores the events of all threads in passes, at least every 100 ms:
as new segments, and as longer versions of incomplete ones. Each look asks only for unseen events:
all events of new segments, and the events of known segments that follow the known ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from .database import Database
from .query import INDEX_BITS, Query, pages
from .rows import Row

INDEX_MASK = (1 << INDEX_BITS) - 1
# An event is shown when no earlier one can come any more: after a later pass, or after so many
# looks without anything new.
_QUIET_LOOKS = 4
_LATEST = (1 << 63) - 1
_HIGHEST = _LATEST >> INDEX_BITS  # segment


T = TypeVar("T")


class FollowedSegment(NamedTuple):
    """A row of the table segment, and the events of it that were asked for: those with an index
    below `whole`; and those below `seen` up to the time `until`. Times in clock units."""

    id: int
    start: int
    end: int
    events: int  # how many
    complete: int
    whole: int = 0
    seen: int = 0
    until: int = 0


class Clock(NamedTuple):
    """A run's clock. Its scale may change while the run is young."""

    epoch_ns: int
    epoch_units: int
    scale: int

    def ns(self, units: int) -> int:
        """Clock units as ns since 1970."""
        return min(self.epoch_ns + ((units - self.epoch_units) * self.scale >> 32), _LATEST)


def follow(
    database: Database, run: int, query: Query, make: Callable[[Row], T], wait: Callable[[], None]
) -> Iterator[list[T]]:
    """Pages of the events of a run that meet a condition, until the run has ended: stored events
    first, then new ones. The elements are results of `make`.

    query: asks for events of this run. wait: called between looks.
    """
    pending: dict[int, FollowedSegment] = {}  # not asked for in full, or growing
    last = 0  # the highest id of a known segment
    # in clock units: the newest event in the database, now and at the look before
    newest = settled = -1
    quiet = 0
    while True:
        finished, clock = _state(database, run)  # first: nothing can come after the look
        before = pending
        found = list(_changed(database, run, last, before.values()))
        last = max([last, *(segment.id for segment in found)])
        if any(s.id not in before or s.events > before[s.id].events for s in found):
            settled, newest, quiet = newest, max(newest, *(s.end for s in found)), 0
        else:
            quiet += 1
        until = _LATEST if finished or quiet >= _QUIET_LOOKS else settled
        asked = _ask(found, until, clock)
        if asked:
            yield from pages(database, query.also(asked.where, *asked.parameters), make)
        if finished:
            return
        pending = {s.id: _after(s, until) for s in found if not (s.complete and s.end <= until)}
        wait()


def _state(database: Database, run: int) -> tuple[bool, Clock]:
    """Whether the run has ended (or is no longer in the database), and its clock."""
    rows = database.query(
        "niii",
        "SELECT finished, clock_epoch_ns, clock_epoch_units, clock_scale FROM run WHERE id = ?",
        (run,),
    )
    if not rows:
        return True, Clock(0, 0, 0)
    finished, *clock = rows[0]
    return finished is not None, Clock(*clock)


def _changed(
    database: Database, run: int, last: int, known: Iterable[FollowedSegment]
) -> Iterator[FollowedSegment]:
    """Known segments as they are now, and segments with an id above `last`."""
    columns = 'SELECT id, start, "end", count, complete FROM segment'
    for segment in known:
        if segment.complete:
            yield segment
            continue
        for row in database.query("iiiii", f"{columns} WHERE id = ?", (segment.id,)):
            yield FollowedSegment(*row)._replace(whole=segment.whole, seen=segment.seen, until=segment.until)
    for row in database.query(
        "iiiii", f"{columns} WHERE id BETWEEN ? AND ? AND +run = ?", (last + 1, _HIGHEST, run)
    ):
        yield FollowedSegment(*row)


def _after(segment: FollowedSegment, until: int) -> FollowedSegment:
    """The segment, once its events until a time have been asked for."""
    if until == _LATEST:
        return segment._replace(whole=segment.events, seen=segment.events)
    if segment.start > until:
        return segment
    return segment._replace(seen=segment.events, until=until)


def _ask(segments: list[FollowedSegment], until: int, clock: Clock) -> Query | None:
    """A condition for the events until a time that were not asked for. None: there are none."""
    # ids of segments that were not asked for; adjacent ranges are joined
    ranges: list[tuple[int, int]] = []
    parts: list[tuple[int, int, str]] = []
    for segment in sorted(segments):
        id, start, end, events, complete, whole, seen, asked_until = segment
        if start > until or events <= whole or (events == seen and asked_until >= min(until, end)):
            continue
        first = id << INDEX_BITS
        if seen:
            low, high = first + whole, first + events - 1
            later = f"(or (>= id {first + seen}) (> time {clock.ns(asked_until)}))"
            parts.append((low, high, f"(and (between id {low} {high}) {later})"))
        else:
            ranges.append((first, first + INDEX_MASK if complete else first + events - 1))
            if len(ranges) > 1 and ranges[-2][1] + 1 == first:
                ranges[-2:] = [(ranges[-2][0], ranges[-1][1])]
    parts += [(low, high, f"(between id {low} {high})") for low, high in ranges]
    if not parts:
        return None
    low, high = min(part[0] for part in parts), max(part[1] for part in parts)
    predicate = f"(or {' '.join(part[2] for part in parts)})"
    return Query(
        "id BETWEEN ? AND ? AND time <= ? AND event MATCH ?", (low, high, clock.ns(until), predicate)
    )
