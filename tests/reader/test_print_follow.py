"""pytrace print while the recording goes on: what comes is shown, each event once, in order."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytracer.reader.database import Database
from pytracer.reader.follow import follow
from pytracer.reader.query import Query
from pytracer.reader.rows import Row

from handmade import Handmade, event, printed, started


class Follower:
    """`print --follow --format json`, and the events it has printed so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []

    def wait_for(self, count: int) -> list[str]:
        """Reads on until there are so many events. Their values."""
        assert self.process.stdout is not None
        while len(self.events) < count:
            line = self.process.stdout.readline()
            assert line, f"ended after {len(self.events)} events"
            self.events.append(json.loads(line))
        return [event["args"][0]["value"] for event in self.events]

    def end(self) -> int:
        assert self.process.stdout is not None
        self.events += map(json.loads, self.process.stdout)
        return self.process.wait(60)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Handmade]:
    with Handmade(tmp_path / "traces.sqlite") as made:
        yield made


@pytest.fixture
def run(made: Handmade) -> int:
    run = made.run(finished=False)
    made.code(run, 1, "step", ["n"])
    return run


@pytest.fixture
def follower(made: Handmade, run: int) -> Iterator[Follower]:
    with started(made.path, "--follow", "--format", "json") as process:
        yield Follower(process)
        process.kill()


def steps(*numbers: int) -> list[Any]:
    return [event("call", 1, number, time=1, depth=0) for number in numbers]


def test_growing_segments_and_new_ones(made: Handmade, run: int, follower: Follower) -> None:
    made.segment(run, steps(0), complete=False)
    assert follower.wait_for(1) == ["0"]
    made.segment(run, steps(0, 1, 2), complete=False)
    assert follower.wait_for(3) == ["0", "1", "2"]
    made.segment(run, steps(0, 1, 2, 3), complete=True)
    made.segment(run, steps(4), sequence=1, start=10, complete=False)
    assert follower.wait_for(5) == ["0", "1", "2", "3", "4"]
    made.segment(run, steps(4, 5), sequence=1, start=10)
    made.finish(run)
    assert follower.end() == 0
    assert [event["args"][0]["value"] for event in follower.events] == [str(n) for n in range(6)]
    assert len({event["id"] for event in follower.events}) == 6


def test_a_thread_that_comes_later(made: Handmade, run: int, follower: Follower) -> None:
    made.segment(run, steps(0), complete=False)
    follower.wait_for(1)
    made.thread(run, 2, 102, "late")
    made.code(run, 2, "other", ["n"])
    made.segment(run, [event("call", 2, 1, time=5)], stream=2, start=100)
    follower.wait_for(2)
    assert (follower.events[1]["thread"], follower.events[1]["func"]) == ("late", "other")
    made.finish(run)
    assert follower.end() == 0


def test_while_a_writer_never_rests(made: Handmade, run: int, follower: Follower) -> None:
    """Commits come faster than looks, from two threads; nothing is missed or shown twice or
    late."""
    made.thread(run, 2, 102, "worker")
    for n in range(300):
        made("BEGIN")
        for stream in (1, 2):
            made.segment(
                run, steps(n, n), stream=stream, sequence=n, start=n * 10 + stream, complete=n % 3 != 0
            )
        made("COMMIT")
    made("UPDATE segment SET complete = 1")
    made.finish(run)
    assert follower.end() == 0
    assert len(follower.events) == 1200
    times = [event["time"] for event in follower.events]
    assert times == sorted(times)


def test_following_with_a_filter(made: Handmade, run: int) -> None:
    """Like tail -f with grep: what matches is shown as it comes, also behind what does not."""
    with started(made.path, "--follow", "--format", "json", "--filter", "value in (2, 5, 7)") as process:
        follower = Follower(process)
        made.segment(run, steps(0, 1, 2), complete=False)
        assert follower.wait_for(1) == ["2"]
        made.segment(run, steps(0, 1, 2, 3, 4), complete=False)
        made.segment(run, steps(0, 1, 2, 3, 4, 5, 6), complete=True)
        assert follower.wait_for(2) == ["2", "5"]
        made.segment(run, steps(6, 7), sequence=1, start=10, complete=False)
        assert follower.wait_for(3) == ["2", "5", "7"]
        made.finish(run)
        assert follower.end() == 0
    assert len(follower.events) == 3


def test_a_finished_run_ends_at_once(made: Handmade, run: int) -> None:
    made.segment(run, steps(0, 1))
    made.finish(run)
    assert len(printed(made.path, "--follow").stdout.splitlines()) == 2


def test_a_run_that_records_nothing(made: Handmade, run: int, follower: Follower) -> None:
    made.finish(run)
    assert follower.end() == 0
    assert follower.process.stderr is not None
    assert follower.process.stderr.read() == "pytrace: nothing was recorded in this run\n"


def test_limit_ends_it(made: Handmade, run: int) -> None:
    made.segment(run, steps(0, 1, 2), complete=False)
    assert len(printed(made.path, "--follow", "--limit", 2).stdout.splitlines()) == 2


def test_control_c(made: Handmade, run: int, follower: Follower) -> None:
    made.segment(run, steps(0))
    follower.wait_for(1)
    follower.process.send_signal(signal.SIGINT)
    assert follower.end() == 130
    assert follower.process.stderr is not None
    assert follower.process.stderr.read() == ""


def test_nobody_reads_any_more(made: Handmade, run: int, follower: Follower) -> None:
    """It ends though nothing comes that it could fail to write."""
    made.segment(run, steps(0))
    follower.wait_for(1)
    assert follower.process.stdout is not None
    follower.process.stdout.close()
    assert follower.process.wait(60) == 141
    assert follower.process.stderr is not None
    assert follower.process.stderr.read() == ""


def test_a_damaged_segment_is_said_once(made: Handmade, run: int, follower: Follower) -> None:
    made.segment(run, steps(0))
    follower.wait_for(1)
    damaged = made.segment(run, steps(1, 2), sequence=1, start=10)
    made("UPDATE segment SET data = x'00' WHERE id = ?", (damaged,))
    made.segment(run, steps(3), sequence=2, start=20)
    assert follower.wait_for(2) == ["0", "3"]
    made.finish(run)
    assert follower.end() == 2
    assert follower.process.stderr is not None
    assert follower.process.stderr.read().count(f"segment {damaged} ") == 1


def test_eviction_meanwhile(made: Handmade, run: int, follower: Follower) -> None:
    gone = made.segment(run, steps(0), complete=False)
    follower.wait_for(1)
    made("DELETE FROM segment WHERE id = ?", (gone,))
    made.segment(run, steps(1), sequence=1, start=10)
    assert follower.wait_for(2) == ["0", "1"]
    made.finish(run)
    assert follower.end() == 0


def shown_value(row: Row) -> str:
    return str(json.loads(row[13])[0]["value"])


def test_an_event_waits_for_those_before_it(made: Handmade, run: int) -> None:
    """In one pass the dumper sees a late event of one thread, but not yet an earlier one of
    another."""
    made.thread(run, 2, 102, "worker")
    passes = [
        lambda: made.segment(run, steps(5), start=50, complete=False),
        lambda: made.segment(run, steps(3), stream=2, start=30, complete=False),
        lambda: made.segment(run, steps(5, 6), start=50, complete=False),
        lambda: made.finish(run),
    ]
    database = Database(str(made.path))
    shown: list[str] = []
    seen: list[int] = []

    def wait() -> None:
        seen.append(len(shown))
        passes.pop(0)()

    for page in follow(database, run, Query("run = ?", (run,)), shown_value, wait):
        shown += page
    database.close()
    assert shown == ["3", "5", "6"]
    assert seen[1] == 0  # the late event alone was held back


def test_print_ends_while_a_writer_goes_on(made: Handmade, run: int) -> None:
    """Without --follow, what was there at the start is printed, and no more is waited for."""
    stop = threading.Event()

    def write() -> None:
        sequence = 1
        connection = Handmade(made.path)
        connection.connection.set_busy_timeout(10_000)
        while not stop.is_set():
            connection.segment(run, steps(*range(500)), sequence=sequence, start=sequence * 1000)
            sequence += 1
        connection.close()

    made.segment(run, steps(0))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = printed(made.path, "--format", "json")
    finally:
        stop.set()
        writer.join()
    assert (done.returncode, done.stderr) == (0, "")
    times = [json.loads(line)["time"] for line in done.stdout.splitlines()]
    assert times
    assert times == sorted(times)


def test_a_database_deleted_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
    database = Database(str(path))
    path.unlink()
    assert [each.id for each in database.runs()] == [run]
    database.close()


def test_a_writer_that_comes_up_meanwhile(tmp_path: Path) -> None:
    """A database without a writer is read as immutable; it has to notice when one comes and changes
    it."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        first = made.run()
    database = Database(str(path))
    assert [run.id for run in database.runs()] == [first]
    with Handmade(path) as made:
        second = made.run()
        assert [run.id for run in database.runs()] == [first, second]
        made("PRAGMA wal_checkpoint(TRUNCATE)")
        made("PRAGMA page_size")
        third = made.run()
        assert [run.id for run in database.runs()] == [first, second, third]
    assert [run.id for run in database.runs()] == [first, second, third]
    database.close()
