"""The merge of segments, and following them, over generated recordings."""

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytracer.reader.database import Database
from pytracer.reader.events import Event, Recording, Segment, follow, merge, stored
from pytracer.reader.model import NO_CODE, Source

from handmade import Handmade
from handmade import event as record

SOURCE = Source(1, 1, 1, "")

# of each thread, its segments: each the steps from one event to the next
Threads = list[list[list[int]]]
threads = st.lists(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), max_size=5), max_size=4)


def laid_out(threads: Threads) -> list[tuple[Segment, list[Event]]]:
    """Segments of one thread follow each other; all threads start at 0."""
    made = []
    number = 0
    for stream, segments in enumerate(threads):
        time = 0
        for sequence, steps in enumerate(segments):
            start, events = time, []
            number += 1
            for index, step in enumerate(steps):
                time += step
                events.append(Event(time, (number << 18) + index, "call", 0, None, 0, NO_CODE, SOURCE, []))
            made.append((Segment(start, 1, stream, sequence, number, time, len(events), 1), events))
    return made


@given(threads)
def test_merge(threads: Threads) -> None:
    made = laid_out(threads)
    by_id = {segment.id: events for segment, events in made}
    merged = list(merge(iter(sorted(by[0] for by in made)), lambda segment: iter(by_id[segment.id])))
    # events of one time: by thread, and within it as they happened
    expected = sorted(
        (event.time, segment.stream, segment.sequence, event.id)
        for segment, events in made
        for event in events
    )
    assert [event.id for event in merged] == [row[-1] for row in expected]


@given(threads)
def test_no_segment_is_opened_before_its_turn(threads: Threads) -> None:
    made = laid_out(threads)
    by_id = {segment.id: events for segment, events in made}
    opened: list[Segment] = []

    def opener(segment: Segment) -> Iterator[Event]:
        opened.append(segment)
        return iter(by_id[segment.id])

    now = 0
    for event in merge(iter(sorted(by[0] for by in made)), opener):
        assert max(segment.start for segment in opened) <= max(now, event.time)
        now = event.time


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(threads, st.lists(st.integers(1, 40), max_size=6, unique=True).map(sorted))
def test_follow(threads: Threads, passes: list[int]) -> None:
    """Whenever the dumper passes: what is followed is what is stored in the end, each event once."""
    with tempfile.TemporaryDirectory() as folder, Handmade(Path(folder) / "traces.sqlite") as made:
        run = made.run(finished=False)
        made.code(run, 1, "step")
        layout = laid_out(threads)

        def dump(until: int, complete: bool) -> None:
            made("BEGIN")
            for segment, events in layout:
                there = [event for event in events if event.time <= until]
                times = [segment.start, *(event.time for event in there)]
                if there:
                    made.segment(
                        run,
                        [record("call", 1, time=time - before, depth=0) for before, time in pairwise(times)],
                        stream=segment.stream,
                        sequence=segment.sequence,
                        start=segment.start,
                        complete=complete or len(there) == len(events),
                    )
            made("COMMIT")

        left = list(passes)

        def wait() -> None:
            if left:
                dump(left.pop(0), complete=False)
            else:
                dump(1 << 40, complete=True)
                made.finish(run)

        database = Database(str(made.path))
        [recorded] = database.runs()
        followed = [event.id for event in follow(Recording(database, recorded, {}), wait)]
        at_the_end = list(stored([Recording(database, recorded, {})]))
        database.close()
        assert sorted(followed) == sorted(event.id for event in at_the_end)
        assert len(at_the_end) == sum(len(events) for _, events in layout)
        times = {event.id: event.time for event in at_the_end}
        assert [times[id] for id in followed] == sorted(times.values())
