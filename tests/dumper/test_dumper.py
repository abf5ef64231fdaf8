"""The dumper as a process: from a real ring that real processes write to, into a real database."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from dumping import (
    FINISHED,
    READY,
    SAVED,
    Dumper,
    Producer,
    TestRing,
    decompress,
    rows,
    stored_calls,
    wait_for,
)
from handmade import summary
from messages import Code, Definition, Process, Thread, Type
from pytracer import unsaved

EVENTS = "SELECT coalesce(sum(count), 0) FROM segment"


def stored(ring: TestRing, query: str = EVENTS) -> int:
    return int(rows(ring.database, query)[0][0])


def finish(dumper: Dumper, producer: Producer) -> str:
    """The summary, when all is over."""
    producer.exit()
    assert dumper.wait() == 0
    assert dumper.ring.said() == FINISHED
    return dumper.ring.message()


# ---- what is stored ------------------------------------------------------------------------------


def test_everything_written_is_in_the_database(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    assert ring.said() == READY
    producer = Producer(ring)
    assert producer.calls(100_000, "one") == 100_000
    assert producer.calls(10, "two") == 10
    producer.exit(3)
    assert dumper.wait() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["traces.sqlite"]

    assert list(stored_calls(ring.database).values()) == [list(range(100_000)), list(range(10))]
    assert rows(ring.database, "SELECT exit_status, lost, finished > started FROM run") == [(3, 0, 1)]
    assert rows(ring.database, "SELECT number, pid, exit_status FROM process") == [(0, producer.pid, 3)]
    assert rows(ring.database, "SELECT count(*) FROM segment WHERE NOT complete") == [(0,)]
    assert ring.said() == FINISHED
    assert "100,010 events of 1 process in traces.sqlite" in ring.message()
    assert ring.message().endswith("none lost. Open it with: pytrace")


def test_an_unfinished_chunk_is_in_the_database_and_grows_in_its_row(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    row = "SELECT id, count, complete FROM segment"
    producer.calls(3)
    wait_for(lambda: stored(ring) == 3, "the first calls")
    ((first, _, complete),) = rows(ring.database, row)
    assert not complete
    producer.calls(2)
    wait_for(lambda: stored(ring) == 5, "more calls")
    assert rows(ring.database, row) == [(first, 5, 0)]
    finish(dumper, producer)
    assert rows(ring.database, row) == [(first, 5, 1)]
    assert list(stored_calls(ring.database).values()) == [[0, 1, 2, 3, 4]]


def test_a_segment_has_the_summary_of_what_it_holds_so_far(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    row = "SELECT max_depth, kinds, max_duration, codes FROM segment"
    producer.calls(3, code=7)
    wait_for(lambda: stored(ring) == 3, "the first calls")
    assert rows(ring.database, row) == [(2, 1 << 1, 0, b"\x07\x03")]
    producer.calls(2, code=300)
    wait_for(lambda: stored(ring) == 5, "more calls")
    grown = [(4, 1 << 1, 0, b"\x07\x03\xa5\x02\x02")]
    assert rows(ring.database, row) == grown
    finish(dumper, producer)
    assert rows(ring.database, row) == grown


def opened(database: Path) -> list[tuple[int, bytes, bytes]]:
    """Sequence and `open` of the segments of the first stream of events, and what `open` has to be:
    it follows from the segment before."""
    own = [number for (number,) in rows(database, "SELECT number FROM code WHERE mine")]
    query = (
        "SELECT sequence, base_depth, open, data FROM segment"
        " WHERE stream = (SELECT min(stream) FROM segment) ORDER BY sequence"
    )
    found = []
    behind = b"\0"
    for sequence, base_depth, open, data in rows(database, query):
        found.append((sequence, open, behind))
        *_, behind = summary(decompress(data), base_depth, open, own)
    return found


def test_a_segment_has_the_own_code_that_is_open_at_its_start(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.define(Definition(code=Code(number=7, mine=True)), Definition(code=Code(number=8)))
    producer.calls(2, code=7)
    producer.calls(7, code=8)
    producer.calls(1, code=7)
    wait_for(lambda: stored(ring) == 10, "the first calls")
    producer.calls(20_000, code=8)
    producer.calls(1, code=7)
    dumper.wait_free(2)
    # the next one knows it from the database alone
    dumper.kill()
    dumper = Dumper(ring)
    producer.calls(20_000, code=8)
    finish(dumper, producer)
    segments = opened(ring.database)
    assert len(segments) > 5
    assert segments[0][1] == b"\0"
    assert segments[1][1] == b"\0\3\2"
    assert all(open == behind for _, open, behind in segments)
    deepest = segments[-1][1]
    assert (deepest[:3], deepest[-1:], len(deepest)) == (b"\0\3\2", b"\4", 2 + 20_010 // 8)


def test_definitions_become_rows(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    code = Code(
        number=1,
        module=b"app",
        func=b"Order.pay",
        file=b"app.py",
        line=7,
        argument=[b"self", b"\xc3\xa4"],
        flags=3,
        mine=True,
        variable=[b"self", b"total", b"\xff"],
    )
    point = Type(number=2, name=b"app.Point", field=[b"x", b"y"])
    order = Type(number=4, name=b"app.Order", attribute=[b"user", b"total"])
    producer.define(Definition(code=code), Definition(type=point), Definition(type=order))
    builtin = Code(number=3, module=b"builtins", func=b"len", language=Code.C)
    producer.define(Definition(code=builtin), Definition(thread=Thread(stream=2, process=0, tid=77)))
    producer.define(Definition(thread=Thread(stream=3, process=0, tid=1, kind=Thread.PROCESSOR)))
    producer.calls(1)
    wait_for(lambda: stored(ring, "SELECT count(*) FROM thread"), "the definitions")
    producer.define(Definition(thread=Thread(stream=2, process=0, tid=77, name=b"worker")))
    command = b"python\0my script.py"
    producer.define(Definition(process=Process(number=0, pid=producer.pid, command=command)))
    finish(dumper, producer)
    assert rows(ring.database, "SELECT * FROM code") == [
        (
            1,
            1,
            "app",
            "Order.pay",
            "app.py",
            7,
            '["self", "ä"]',
            3,
            "python",
            1,
            '["self", "total", "\ufffd"]',
            None,
            None,
            None,
        ),
        (1, 3, "builtins", "len", "", 0, "[]", 0, "c", 0, "[]", None, None, None),
    ]
    assert rows(ring.database, "SELECT * FROM type") == [
        (1, 2, "app.Point", '["x", "y"]', None),
        (1, 4, "app.Order", None, '["user", "total"]'),
    ]
    assert rows(ring.database, "SELECT * FROM thread") == [
        (1, 2, 0, 77, "worker", "thread"),
        (1, 3, 0, 1, "", "processor"),
    ]
    process = "SELECT number, pid, parent, command FROM process"
    assert rows(ring.database, process) == [(0, producer.pid, None, "python 'my script.py'")]


def test_a_thread_whose_definition_found_no_room_is_known_by_its_chunks(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(1, "main")
    wait_for(lambda: stored(ring), "the first call")
    producer.define(Definition(thread=Thread(stream=1, process=0, tid=77, name=b"worker")))
    producer.calls(1, "main")
    producer.calls(1, "another")
    finish(dumper, producer)
    threads = "SELECT thread.process, tid, name FROM thread JOIN segment USING (run, stream) ORDER BY stream"
    assert rows(ring.database, threads) == [(0, 77, "worker"), (0, producer.pid, "")]


def test_what_a_stored_event_refers_to_is_defined(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    for number in range(1, 300):
        producer.define(Definition(code=Code(number=number, func=b"f%d" % number)))
        producer.calls(1, code=number)
        codes, events = rows(ring.database, f"SELECT (SELECT count(*) FROM code), ({EVENTS})")[0]
        assert codes >= events
    finish(dumper, producer)


def test_the_clock_is_stored(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    finish(dumper, producer)
    ((scale, units, ns),) = rows(
        ring.database, "SELECT clock_scale, clock_epoch_units, clock_epoch_ns - started FROM run"
    )
    assert scale > 0
    assert units > 0
    assert ns == 0


def test_lost_records_are_counted(tmp_path: Path) -> None:
    ring = TestRing(tmp_path, size=256 << 10)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(1)
    wait_for(lambda: stored(ring) == 1, "the first call")
    dumper.process.send_signal(signal.SIGSTOP)
    kept = 1 + producer.calls(100_000)
    dumper.process.send_signal(signal.SIGCONT)
    lost = 100_001 - kept
    assert lost > 0
    message = finish(dumper, producer)
    assert f"{lost:,} events lost (buffer full; --buffer-size helps)" in message
    assert rows(ring.database, "SELECT lost FROM run UNION ALL SELECT lost FROM process") == [
        (lost,),
        (lost,),
    ]
    assert [len(calls) for calls in stored_calls(ring.database).values()] == [kept]


def test_chunks_that_make_no_sense_are_counted(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(10)
    wait_for(lambda: stored(ring) == 10, "the first calls")
    producer.scribble(20)
    producer.scribble(21)
    producer.calls(10)
    producer.define_bytes(b"\xff\xff\xff")
    message = finish(dumper, producer)
    assert "3 chunks unreadable" in message
    assert rows(ring.database, "SELECT refused FROM run") == [(3,)]
    assert list(stored_calls(ring.database).values()) == [list(range(20))]


# ---- processes -----------------------------------------------------------------------------------


def test_a_killed_process_has_everything_saved(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    wait_for(lambda: stored(ring, "SELECT count(*) FROM process"), "the process")
    producer.calls(20_000)
    producer.kill()
    assert dumper.wait() == 0
    assert list(stored_calls(ring.database).values()) == [list(range(20_000))]
    assert rows(ring.database, "SELECT complete, count(*) FROM segment GROUP BY complete")[0][0] == 1
    assert rows(ring.database, "SELECT exit_status FROM process UNION ALL SELECT exit_status FROM run") == [
        (-signal.SIGKILL,),
        (-signal.SIGKILL,),
    ]


@pytest.mark.parametrize("reaped", [True, False])
def test_the_kernel_tells_the_exit_status(tmp_path: Path, reaped: bool) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(1)
    wait_for(lambda: stored(ring, "SELECT count(*) FROM process"), "the process")
    if reaped:
        dumper.process.send_signal(signal.SIGSTOP)
        producer.end_with(7)
        producer.reap()
        dumper.process.send_signal(signal.SIGCONT)
    else:
        producer.end_with(7)
    assert dumper.wait() == 0
    assert rows(ring.database, "SELECT exit_status FROM process") == [(7,)]
    producer.reap()


def test_processes_end_one_by_one(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    first = Producer(ring)
    second = Producer(ring, parent=first.number + 1)
    first.calls(100)
    second.calls(200)
    first.exit(4)
    assert ring.process_state(first.number) == SAVED
    assert dumper.process.poll() is None
    assert ring.said() == READY
    second.calls(1)
    assert "301 events of 2 processes" in finish(dumper, second)
    assert rows(ring.database, "SELECT number, parent, exit_status FROM process") == [(0, None, 4), (1, 0, 0)]
    assert rows(ring.database, "SELECT exit_status FROM run") == [(4,)]


def test_a_dumper_does_not_wait_for_a_program_that_never_came(tmp_path: Path) -> None:
    ended = os.fork()
    if not ended:
        os._exit(0)
    os.waitpid(ended, 0)
    ring = TestRing(tmp_path, pid=ended)
    assert Dumper(ring).wait() == 0
    assert not ring.path.exists()


# ---- the dumper itself ---------------------------------------------------------------------------


def test_a_ring_has_one_dumper(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    assert Dumper(ring).wait() == 0
    assert ring.has_dumper()
    producer = Producer(ring)
    finish(dumper, producer)


def test_title_and_signals(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    command = Path(f"/proc/{dumper.process.pid}/cmdline")
    title = b"pytrace: dumper for pytrace 'a script.py'"
    wait_for(lambda: command.read_bytes().rstrip(b"\0") == title, "the title")
    dumper.process.send_signal(signal.SIGINT)
    finish(dumper, producer)


def test_two_recordings_at_once_into_one_database(tmp_path: Path) -> None:
    rings = [TestRing(tmp_path), TestRing(tmp_path)]
    dumpers = [Dumper(ring, wait=False) for ring in rings]
    producers = [Producer(ring) for ring in rings]
    for _ in range(20):
        for producer in producers:
            assert producer.calls(2000) == 2000
            producer.seal()
    for producer in producers:
        producer.exit()
    assert [dumper.wait() for dumper in dumpers] == [0, 0]
    assert rows(rings[0].database, "SELECT count(*) FROM run WHERE finished") == [(2,)]
    for run in (1, 2):
        assert list(stored_calls(rings[0].database, run).values()) == [list(range(40_000))]


STEPS = ("before commit", "after commit", "after release")


@pytest.mark.parametrize(
    "die_at",
    [f"{step}:{n}" for step in STEPS for n in (1, 2, 3, 5)]
    + ["before creation", "after creation", "after finished", "after saved"],
)
def test_a_dumper_that_dies_is_followed_by_one_that_stores_each_event_once(
    tmp_path: Path, die_at: str
) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring, die_at=die_at, wait=False)
    producer = Producer(ring)
    producer.define(Definition(code=Code(number=1, func=b"f")))
    for _ in range(5):
        producer.calls(5000)  # more than a chunk
        producer.calls(10, "other")
        wait_for(lambda: dumper.process.poll() is not None or ring.chunks_in_use() <= 3, "the dumper")
    producer.say_exit(5)
    dumper.process.wait(30)
    assert dumper.process.returncode == -signal.SIGKILL
    if ring.process_state(0) != SAVED:
        assert ring.path.exists()
    assert Dumper(ring).wait() == 0
    producer.close()
    assert not ring.path.exists()

    assert sorted(map(len, stored_calls(ring.database).values())) == [50, 25_000]
    for calls in stored_calls(ring.database).values():
        assert calls == list(range(len(calls)))
    assert rows(ring.database, "SELECT exit_status, finished IS NULL FROM run") == [(5, 0)]
    assert rows(ring.database, "SELECT func FROM code") == [("f",)]
    assert rows(ring.database, "PRAGMA integrity_check") == [("ok",)]
    assert "25,050 events of 1 process" in ring.message()


# ---- the size ------------------------------------------------------------------------------------


def test_the_oldest_go_first(tmp_path: Path) -> None:
    limit = 1 << 20
    ring = TestRing(tmp_path, max_size=limit)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(1, "idle")
    files = [ring.database, Path(f"{ring.database}-wal")]
    largest = 0
    for _ in range(150):
        assert producer.noise(60_000) > 0
        producer.seal()
        dumper.wait_free(1)
        largest = max(largest, sum(file.stat().st_size for file in files))
    message = finish(dumper, producer)
    a_pass = 4 * 64 * 1024  # a sixteenth of the ring
    assert largest <= limit + a_pass
    ((evicted, until, started),) = rows(ring.database, "SELECT evicted, evicted_until, started FROM run")
    assert until > started
    sequences = [
        sequence for (sequence,) in rows(ring.database, "SELECT sequence FROM segment WHERE stream <> 1")
    ]
    assert sequences == list(range(sequences[0], 150))
    assert sequences[0] > 50
    assert stored(ring) + evicted == 151
    assert rows(ring.database, "SELECT count(*) FROM segment WHERE stream = 1") == [(1,)]
    assert "151 events of 1 process in traces.sqlite" in message
    assert f"the oldest {evicted} events removed to keep the size" in message


def test_no_more_events_than_asked_for(tmp_path: Path) -> None:
    ring = TestRing(tmp_path, max_traces=25_000)
    dumper = Dumper(ring)
    producer = Producer(ring)
    for _ in range(10):
        producer.calls(10_000)
        producer.seal()
        dumper.wait_free()
    finish(dumper, producer)
    assert 0 < stored(ring) <= 25_000
    (calls,) = stored_calls(ring.database).values()
    assert calls == list(range(calls[0], 100_000))
    assert rows(ring.database, "SELECT evicted FROM run") == [(calls[0],)]


def test_older_runs_go_first_and_their_definitions_with_them(tmp_path: Path) -> None:
    for _ in range(2):
        ring = TestRing(tmp_path, max_traces=1000)
        dumper = Dumper(ring)
        producer = Producer(ring)
        producer.define(Definition(code=Code(number=1, func=b"f")))
        producer.calls(900)
        finish(dumper, producer)
    assert rows(ring.database, "SELECT id, evicted FROM run") == [(1, 900), (2, 0)]
    assert rows(ring.database, "SELECT DISTINCT run FROM segment") == [(2,)]
    assert rows(ring.database, "SELECT run FROM code") == [(2,)]


def test_a_smaller_size_makes_the_file_shorter(tmp_path: Path) -> None:
    for size in (1 << 30, 1 << 20):
        ring = TestRing(tmp_path, max_size=size)
        dumper = Dumper(ring)
        producer = Producer(ring)
        for _ in range(60):
            producer.noise(60_000)
            producer.seal()
            dumper.wait_free()
        finish(dumper, producer)
    assert ring.database.stat().st_size <= 1 << 20
    assert rows(ring.database, "PRAGMA integrity_check") == [("ok",)]


def test_a_reader_in_a_long_transaction_bounds_what_is_stored(tmp_path: Path) -> None:
    """It keeps the log from being emptied: when that is as large as all may be, chunks stay in the
    ring."""
    limit, many = 1 << 20, 60
    ring = TestRing(tmp_path, max_size=limit)
    dumper = Dumper(ring)
    producer = Producer(ring)
    files = [ring.database, Path(f"{ring.database}-wal")]
    reader = sqlite3.connect(ring.database, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM segment").fetchall()
    for _ in range(many):
        assert producer.noise(60_000)
        producer.seal()
    dumper.wait_trouble()
    assert limit < files[1].stat().st_size
    a_pass = 4 * 64 * 1024  # a sixteenth of the ring
    assert sum(file.stat().st_size for file in files) <= 2 * limit + a_pass
    assert 0 < ring.chunks_in_use() < many
    reader.close()
    dumper.wait_free()
    assert "a reader kept the log from being emptied" in finish(dumper, producer)
    ((evicted,),) = rows(ring.database, "SELECT evicted FROM run")
    assert stored(ring) + evicted == many


# ---- trouble with the file -----------------------------------------------------------------------


def test_a_locked_database_is_waited_for(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    other = sqlite3.connect(ring.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    producer.calls(10_000)
    passes = ring.passes()
    producer.say_exit()
    dumper.wait_trouble()
    assert ring.passes() <= passes + 3
    other.execute("ROLLBACK")
    other.close()
    assert dumper.wait() == 0
    producer.close()
    assert list(stored_calls(ring.database).values()) == [list(range(10_000))]
    assert "could not be written to for a while" in ring.message()


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    limit = 400_000
    dumper = Dumper(ring)
    producer = Producer(ring)
    no_limit = resource.prlimit(dumper.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    written = 0
    while ring.chunks_in_use() < 20:
        written += producer.noise(60_000)
        producer.seal()
    dumper.wait_trouble()
    resource.prlimit(dumper.process.pid, resource.RLIMIT_FSIZE, no_limit)
    assert "could not be written to for a while" in finish(dumper, producer)
    assert stored(ring) == written
    assert rows(ring.database, "SELECT lost FROM run") == [(0,)]
    assert rows(ring.database, "PRAGMA integrity_check") == [("ok",)]


def test_a_file_that_is_taken_away_is_begun_anew(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.define(Definition(code=Code(number=1, func=b"f")))
    producer.calls(10)
    wait_for(lambda: stored(ring) == 10, "the first calls")
    producer.seal()
    dumper.wait_free(1)
    for path in tmp_path.glob("traces.sqlite*"):
        path.unlink()
    producer.calls(10)
    wait_for(ring.database.exists, "a new file")
    assert "a new one begun" in finish(dumper, producer)
    assert list(stored_calls(ring.database).values()) == [list(range(10, 20))]
    assert rows(ring.database, "SELECT func FROM code") == [("f",)]
    assert rows(ring.database, "SELECT exit_status, clock_scale > 0 FROM run") == [(0, 1)]
    assert rows(ring.database, "SELECT pid FROM process") == [(producer.pid,)]
    assert ring.database.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_renamed_without_its_log_has_all_that_was_saved(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.define(Definition(code=Code(number=1, func=b"f")))
    producer.calls(10)
    producer.seal()
    wait_for(lambda: stored(ring) == 10, "the first calls")
    dumper.wait_free(1)
    renamed = ring.database.rename(tmp_path / "renamed.sqlite")
    producer.calls(10)
    wait_for(ring.database.exists, "a new file")
    finish(dumper, producer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["renamed.sqlite", "traces.sqlite"]
    assert list(stored_calls(renamed).values()) == [list(range(10))]
    assert list(stored_calls(ring.database).values()) == [list(range(10, 20))]
    run_and_code = "SELECT finished > started, func FROM run, code"
    assert rows(renamed, run_and_code) == rows(ring.database, run_and_code) == [(1, "f")]


def test_a_file_that_is_replaced_by_a_foreign_one_is_left_alone(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring, script=Dumper.IMPATIENT)
    producer = Producer(ring)
    producer.calls(10)
    wait_for(lambda: stored(ring) == 10, "the first calls")
    (tmp_path / "mine").write_text("my own")
    (tmp_path / "mine").rename(ring.database)
    producer.calls(5)
    producer.kill()
    assert dumper.wait() == 1
    assert ring.database.read_text() == "my own"
    left = unsaved.look(str(ring.path))
    assert left is not None
    assert (left.ended, left.events) == (True, 15)
    assert "is not a database" in left.why


def test_what_could_not_be_saved_stays_for_another_dumper(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring, script=Dumper.IMPATIENT)
    producer = Producer(ring)
    producer.calls(10)
    wait_for(lambda: stored(ring) == 10, "the first calls")
    ring.database.unlink()
    ring.database.mkdir()
    producer.calls(5)
    producer.kill()
    assert dumper.wait() == 1
    ring.database.rmdir()
    assert Dumper(ring).wait() == 0
    assert list(stored_calls(ring.database).values()) == [list(range(15))]
    assert not ring.path.exists()


def test_an_end_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    """All events are saved, but that the run has ended is not: the next dumper does that."""
    ring = TestRing(tmp_path)
    full = "import apsw\nfrom pytracer.dumper import store\nstore.FINISH = 'SELECT full(?1, ?2)'\n"
    dumper = Dumper(ring, script=full + Dumper.IMPATIENT)
    producer = Producer(ring)
    producer.calls(10)
    producer.kill()
    assert dumper.wait() == 1
    left = unsaved.look(str(ring.path))
    assert left is not None
    assert (left.ended, left.events) == (True, 0)
    assert "no such function: full" in left.why
    assert rows(ring.database, "SELECT finished FROM run") == [(None,)]
    assert Dumper(ring).wait() == 0
    assert rows(ring.database, "SELECT finished IS NULL FROM run") == [(0,)]
    assert not ring.path.exists()


def test_an_error_of_the_system_is_told_with_its_reason(tmp_path: Path) -> None:
    """What SQLite calls a disk I/O error: as where a quota is used up."""
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(10)
    wait_for(lambda: stored(ring) == 10, "the first calls")
    bound, none = (ring.database.stat().st_size, resource.RLIM_INFINITY), (resource.RLIM_INFINITY,) * 2
    resource.prlimit(dumper.process.pid, resource.RLIMIT_FSIZE, bound)
    left = None
    while not (left and left.why):
        producer.calls(20_000)
        left = unsaved.look(str(ring.path))
    resource.prlimit(dumper.process.pid, resource.RLIMIT_FSIZE, none)
    assert left.why == "the database cannot be written to, disk I/O error: File too large"
    assert "for a while (disk I/O error: File too large)" in finish(dumper, producer)


def test_a_ring_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """What the program advises to type if its dumper does not start says why."""
    (tmp_path / "ring").symlink_to("ring")
    command = [sys.executable, "-I", "-m", "pytracer.dumper", str(tmp_path / "ring")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("ring' cannot be used: Too many levels of symbolic links\n")


@pytest.mark.parametrize("wrong", [False, True])
def test_quiet_hides_the_summary_but_no_mistake(tmp_path: Path, wrong: bool) -> None:
    ring = TestRing(tmp_path, quiet=1)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(10)
    wait_for(lambda: stored(ring) == 10, "the first calls")
    if wrong:
        ring.database.rename(tmp_path / "elsewhere.sqlite")
        producer.calls(10)
        wait_for(ring.database.exists, "a new file")
    finish(dumper, producer)
    assert ("the file was taken away" in ring.message()) == wrong
    assert bool(ring.message()) == wrong


def test_exec_is_one_process_more_and_its_exit_status_counts(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(10)
    producer.replace()
    producer.calls(20)
    wait_for(lambda: stored(ring, "SELECT count(*) FROM process WHERE finished"), "the end of the first")
    producer.exit(6)
    assert dumper.wait() == 0
    assert rows(ring.database, "SELECT number, pid, exit_status FROM process") == [
        (0, producer.pid, None),
        (1, producer.pid, 6),
    ]
    assert rows(ring.database, "SELECT exit_status FROM run") == [(6,)]
    assert list(stored_calls(ring.database).values()) == [list(range(10)), list(range(20))]


def test_processes_beyond_the_table_are_counted(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    producer = Producer(ring)
    assert producer.register(16400) == 16383
    producer.calls(10)
    producer.say_exit(0)
    producer.close()
    dumper = Dumper(ring)
    assert dumper.wait() == 0
    assert rows(ring.database, "SELECT count(*), count(finished) FROM process") == [(16384, 16384)]
    assert rows(ring.database, "SELECT turned_away FROM run") == [(17,)]
    assert "17 processes not recorded (one recording has room for 16,384)" in ring.message()
    assert list(stored_calls(ring.database).values()) == [list(range(10))]


def test_a_process_that_becomes_another_program_is_not_waited_for(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring, script=Dumper.IMPATIENT)
    producer = Producer(ring)
    producer.calls(10)
    producer.become("sleep", "1000")
    assert dumper.wait() == 0
    assert list(stored_calls(ring.database).values()) == [list(range(10))]
    assert rows(ring.database, "SELECT exit_status, finished IS NULL FROM process") == [(None, 0)]
    producer.kill()


def test_a_reader_in_a_transaction_does_not_hold_the_end_up(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.calls(10)
    wait_for(lambda: stored(ring) == 10, "the first calls")
    reader = sqlite3.connect(ring.database, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute(EVENTS).fetchone() == (10,)
    producer.calls(10)
    finish(dumper, producer)
    assert reader.execute(EVENTS).fetchone() == (10,)
    reader.execute("ROLLBACK")
    assert reader.execute(EVENTS).fetchone() == (20,)
    reader.close()
