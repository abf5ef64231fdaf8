"""Events in the order of time, over all threads, processes and runs: what print shows.

A segment holds the events of one thread over some time. Segments come in the order of their start
and are decompressed only when their turn comes; those that overlap are merged. So memory does not
grow with the recording, and the first event is there at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from . import decode
from .database import Codes, Damaged, Database
from .model import Event, Run

INDEX_BITS = 18  # an event's id is its segment's id << 18, plus its index there
INDEX_MASK = (1 << INDEX_BITS) - 1
_PAGE = 256  # segments listed at a time
# While a program runs, the dumper stores what all threads did in passes, at least every 100 ms. An
# event may be shown when nothing earlier can come any more: once a later pass has been seen, or
# after so many looks without anything new.
_QUIET_LOOKS = 4


class Segment(NamedTuple):
    """A row of the table segment, without its data; `start` and `end` in ns since 1970."""

    start: int
    run: int
    stream: int
    sequence: int
    id: int
    end: int
    events: int  # how many
    complete: int


class Damage(NamedTuple):
    """A segment that could not be read to its end."""

    segment: int
    run: int
    events: int  # how many events it should hold
    shown: int
    reason: str


class Recording:
    """A run whose events are to be read."""

    def __init__(self, database: Database, run: Run, damages: dict[int, Damage]) -> None:
        self.database, self.run, self.damages = database, run, damages
        self.shown: dict[int, int] = {}  # how many events of a segment; none where it is not in here
        self._codes, self._types = Codes(database, run.id), decode.Types(database, run.id)

    def segments(self) -> Iterator[Segment]:
        """The segments that are there now, in the order of their start; a few at a time."""
        ((last,),) = self.database.query("i", "SELECT coalesce(max(id), 0) FROM segment")
        after = (-(1 << 63), 0, 0)
        while True:
            # +id: the index on time serves, not the one on id
            page = self._rows(
                "(start, stream, sequence) > (?, ?, ?) AND start >= ? AND +id <= ?"
                f" ORDER BY start, stream, sequence LIMIT {_PAGE}",
                (*after, after[0], last),
            )
            for start, segment in page:
                after = (start, segment.stream, segment.sequence)
                yield segment
            if len(page) < _PAGE:
                return

    def changed_segments(self, after: int, known: Iterable[int]) -> list[Segment]:
        """Segments with an id above `after`, and the known ones as they are now."""
        found = [segment for _, segment in self._rows("id > ?", (after,))]
        for number in known:
            found += [segment for _, segment in self._rows("id = ?", (number,))]
        return found

    def _rows(self, where: str, parameters: tuple[int, ...]) -> list[tuple[int, Segment]]:
        time, run = self.run.time, self.run.id
        return [
            (start, Segment(time(start), run, stream, sequence, id, time(end), count, complete))
            for start, stream, sequence, id, end, count, complete in self.database.query(
                "iiiiiii",
                'SELECT start, stream, sequence, id, "end", count, complete FROM segment'
                f" WHERE run = ? AND {where}",
                (run, *parameters),
            )
        ]

    def finished(self) -> bool:
        return self.database.finished(self.run.id)

    def has_more(self, segment: Segment) -> bool:
        """Whether it holds events that were not shown, and can be."""
        return segment.events > self.shown.get(segment.id, 0) and segment.id not in self.damages

    def forget_all_but(self, segments: Iterable[int]) -> None:
        self.shown = {number: self.shown.get(number, 0) for number in segments}

    def events(self, segment: Segment) -> Iterator[Event]:
        """The events of a segment that were not shown."""
        read = self.shown.get(segment.id, 0)
        count = segment.events
        try:
            rows = self.database.query(
                "iiiiib",
                "SELECT process, start, base_depth, count, size, data FROM segment WHERE id = ?",
                (segment.id,),
            )
            if not rows:
                return  # evicted meanwhile, and counted by the dumper
            process, start, base_depth, count, size, data = rows[0]
            source = self.database.source(self.run.id, segment.stream, process)
            body = decode.Body(decode.decompress(data, size), start, base_depth)
            body.skip(read)
            for event in decode.events(
                body, self.run, segment.id << INDEX_BITS, source, self._codes, self._types
            ):
                read += 1
                yield event
        except (decode.DecodeError, Damaged) as error:
            self.damages[segment.id] = Damage(segment.id, self.run.id, count, read, error.reason)


Opener = Callable[[Segment], Iterator[Event]]


def merge(segments: Iterator[Segment], opener: Opener) -> Iterator[Event]:
    """The events of segments that come in the order of their start, in the order of time.

    Events of one time keep the order of run, stream and sequence.
    """
    heap: list[tuple[int, int, int, int, Event, Iterator[Event]]] = []
    upcoming = next(segments, None)
    while heap or upcoming:
        while upcoming and (not heap or upcoming.start <= heap[0][0]):
            events = opener(upcoming)
            if event := next(events, None):
                _, run, stream, sequence, *_ = upcoming
                heapq.heappush(heap, (event.time, run, stream, sequence, event, events))
            upcoming = next(segments, None)
        if not heap:
            continue
        _, run, stream, sequence, event, events = heap[0]
        others = [entry[0] for entry in heap[1:3]]
        if upcoming:
            others.append(upcoming.start)
        until = min(others, default=None)  # nobody else has an event before this time
        yield event
        for event in events:
            if until is not None and event.time >= until:
                heapq.heapreplace(heap, (event.time, run, stream, sequence, event, events))
                break
            yield event
        else:
            heapq.heappop(heap)


def stored(recordings: list[Recording]) -> Iterator[Event]:
    """All events that are in the database now."""
    by_run = {recording.run.id: recording for recording in recordings}
    segments = heapq.merge(*(recording.segments() for recording in recordings))
    return merge(segments, lambda segment: by_run[segment.run].events(segment))


def follow(recording: Recording, wait: Callable[[], None]) -> Iterator[Event]:
    """All events of a run, and those to come, until it has ended. `wait` is called between looks."""
    growing: dict[int, Segment] = {}  # segments that hold, or may come to hold, more than was shown
    last = 0
    newest = settled = -1  # ns: the newest event in the database, and in what was there before
    quiet = 0
    while True:
        finished = recording.finished()  # asked first: then nothing can come after the look
        before = growing
        growing = {segment.id: segment for segment in recording.changed_segments(last, before)}
        last = max([last, *growing])
        if any(s.id not in before or s.events > before[s.id].events for s in growing.values()):
            settled, newest, quiet = newest, max(newest, *(s.end for s in growing.values())), 0
        else:
            quiet += 1
        more = sorted(s for s in growing.values() if recording.has_more(s))
        for event in merge(iter(more), recording.events):
            if event.time > settled and quiet < _QUIET_LOOKS and not finished:
                break
            recording.shown[event.id >> INDEX_BITS] = (event.id & INDEX_MASK) + 1
            yield event
        growing = {s.id: s for s in growing.values() if not s.complete or recording.has_more(s)}
        recording.forget_all_but(growing)
        if finished:
            return
        wait()
