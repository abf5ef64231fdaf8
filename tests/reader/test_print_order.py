"""Following generated recordings: whenever the dumper passes, each event once and in order."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytracer.reader.database import Database
from pytracer.reader.follow import follow
from pytracer.reader.query import Query, pages
from pytracer.reader.rows import Row

from handmade import EPOCH_NS, Handmade, event

# of each thread, its segments: each the steps from one event to the next
Threads = list[list[list[int]]]
threads = st.lists(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), max_size=5), max_size=4)


class Planned(NamedTuple):
    """A segment that is to be stored; times are clock units."""

    stream: int
    sequence: int
    start: int
    times: list[int]


def planned(threads: Threads) -> list[Planned]:
    """Segments of one thread follow each other; all threads start at 0."""
    made = []
    for stream, segments in enumerate(threads):
        time = 0
        for sequence, steps in enumerate(segments):
            start, times = time, []
            for step in steps:
                time += step
                times.append(time)
            made.append(Planned(stream, sequence, start, times))
    return made


def key(row: Row) -> tuple[int, int]:
    return row[2], row[0]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    threads,
    st.lists(st.integers(0, 40), max_size=6, unique=True).map(sorted),
    st.sampled_from(
        [Query("1", ()), Query("depth = 0", ()), Query("event MATCH ?", (f"(< time {EPOCH_NS + 50})",))]
    ),
)
def test_follow(threads: Threads, passes: list[int], asked: Query) -> None:
    """The followed events are the ones stored in the end."""
    with tempfile.TemporaryDirectory() as folder, Handmade(Path(folder) / "traces.sqlite") as made:
        other = made.run("other.py", finished=False)  # is recorded at the same time
        run = made.run(finished=False)
        made.code(run, 1, "step")

        def dump(until: int, complete: bool) -> None:
            made("BEGIN")
            for stream, sequence, start, times in planned(threads):
                there = [start, *(time for time in times if time <= until)]
                if len(there) > 1:
                    calls = [
                        event("call", 1, time=time - before, depth=time % 2)
                        for before, time in pairwise(there)
                    ]
                    whole = complete or len(calls) == len(times)
                    for each in (other, run):
                        made.segment(
                            each, calls, stream=stream, sequence=sequence, start=start, complete=whole
                        )
            made("COMMIT")

        left = list(passes)

        def wait() -> None:
            if left:
                dump(left.pop(0), complete=False)
            else:
                dump(1 << 40, complete=True)
                made.finish(run)

        query = Query("run = ?", (run,)).also(asked.where, *asked.parameters)
        database = Database(str(made.path))
        followed = [row for page in follow(database, run, query, key, wait) for row in page]
        at_the_end = [row for page in pages(database, query, key) for row in page]
        database.close()
        assert sorted(followed) == at_the_end
        assert [time for time, _ in followed] == [time for time, _ in at_the_end]
        if asked.where == "1":
            assert len(at_the_end) == sum(len(each.times) for each in planned(threads))
