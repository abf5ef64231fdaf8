"""pytrace print and what takes long: progress, Ctrl-C, memory, and a database that changes
meanwhile."""

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from handmade import Handmade, command, environment, event, printed, started, zstd

EVENTS = 10_000  # of a segment in the long recording
SEGMENTS = 20_000
PATIENCE = 60.0  # s
# A question that no summary and no search in the bytes can answer: each event is tested.
SLOW = "value == '%1%_%_%2%' or func == 'nowhere' and value != '5'"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A recording of 200 million events, all alike."""
    path = tmp_path_factory.mktemp("long") / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        made.segment(run, [event("call", 1, "1 and 3", time=1, depth=0)] * EVENTS)
        made(
            "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?)"
            " INSERT INTO segment SELECT n + 1, run, stream, n, process, start + n * 10000,"
            ' "end" + n * 10000, base_depth, min_depth, max_depth, count, lost, size, complete, kinds,'
            " max_duration, kind, codes, open, data"
            " FROM segment, number WHERE id = 1",
            (SEGMENTS - 1,),
        )
    yield path
    path.unlink()


def read_until(terminal: int, wanted: bytes) -> bytes:
    """The output on a terminal, until it contains something."""
    shown = b""
    deadline = time.monotonic() + PATIENCE
    while wanted not in shown:
        assert select.select([terminal], [], [], deadline - time.monotonic())[0], shown
        shown += os.read(terminal, 4096)
    return shown


def rest_of(terminal: int) -> bytes:
    shown = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:  # EIO: everybody has closed it
            return shown
        shown += block


def test_progress_and_control_c(long: Path) -> None:
    """A query that finds nothing says how far it is, and ends at once when it is told to."""
    master, terminal = pty.openpty()
    with subprocess.Popen(
        command("print", long, "--filter", SLOW),
        env=environment(TERM="xterm"),
        stdout=subprocess.PIPE,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        read_until(master, b" of 20,000 segments")
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        shown = rest_of(master)
        assert process.wait(PATIENCE) == 130
        assert time.monotonic() - before < 2
        assert process.stdout is not None
        assert process.stdout.read() == b""
    os.close(master)
    assert shown.endswith(b"\r\x1b[K")
    assert b"Traceback" not in shown


def test_no_progress_where_nobody_looks(long: Path) -> None:
    with started(long, "--filter", SLOW, "--format", "json", TERM="xterm") as process:
        assert process.stderr is not None
        assert not select.select([process.stderr], [], [], 1.5)[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.read() == ""


def test_the_first_hits_are_shown_while_it_searches_on(long: Path) -> None:
    with started(long, "--filter", f"time < '+1us' or {SLOW}", "--format", "json") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert all(json.loads(line)["func"] == "step" for line in lines)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


# The peak of a process before an exec counts as the peak of the new program, too: so the program is
# started by a small process, and not by this one.
_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_memory_does_not_grow_with_what_is_shown(long: Path) -> None:
    peaks = []  # KiB
    for limit in (20_000, 200_000):
        shown = command("print", long, "--format", "json", "--limit", limit)
        measured = [sys.executable, "-I", "-S", "-c", _PEAK, *shown]
        peaks.append(int(subprocess.run(measured, env=environment(), capture_output=True, check=True).stdout))
    assert peaks[1] < peaks[0] + 20_000
    assert peaks[1] < 150_000


def test_a_closed_pipe_ends_a_long_query(long: Path) -> None:
    reader, writer = os.pipe()
    with started(long, "--format", "csv", stdout=writer) as process:
        os.close(writer)
        with open(reader, "rb") as pipe:
            assert pipe.readline().startswith(b"id,run,time")
        assert process.wait(PATIENCE) == 141
        assert process.stderr is not None
        assert process.stderr.read() == ""


# ---- a database that changes meanwhile ----


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.sqlite"


def steps(first: int) -> list[object]:
    return [event("call", 1, n, time=10, depth=0) for n in range(first, first + 500)]


def test_written_evicted_and_vacuumed_meanwhile(path: Path) -> None:
    """Whatever a writer does: no event twice, none out of order, nothing that looks like damage."""
    stop = threading.Event()
    with Handmade(path) as made:
        run = made.run(finished=False)
        made.code(run, 1, "step", ["n"])
        for n in range(60):
            made.segment(run, steps(n), sequence=n, start=n * 5000)

    def write() -> None:
        with Handmade(path) as made:
            made.connection.set_busy_timeout(20_000)
            made("PRAGMA auto_vacuum")
            for n in range(60, 1 << 20):
                if stop.is_set():
                    break
                made.segment(run, steps(n), sequence=n, start=n * 5000)
                made("DELETE FROM segment WHERE id IN (SELECT id FROM segment ORDER BY id LIMIT 1)")
                if n % 10 == 0:
                    made("VACUUM")
                    made("PRAGMA wal_checkpoint(TRUNCATE)")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for arguments in ((), ("--filter", "value != '17'"), ("--run", "all", "--filter", "depth == 0")):
            done = printed(path, "--format", "json", *arguments)
            assert (done.returncode, done.stderr) == (0, "")
            events = [json.loads(line) for line in done.stdout.splitlines()]
            assert len(events) > 500
            order = [(each["time"], each["id"]) for each in events]
            assert order == sorted(set(order))
    finally:
        stop.set()
        writer.join()


def test_somebody_who_stops_reading_does_not_hold_up_the_writer(path: Path) -> None:
    """While nobody takes the lines, the WAL can be emptied: no transaction is open."""
    with Handmade(path) as made:
        run = made.run(finished=False)
        made.code(run, 1, "step", ["n"])
        for n in range(40):
            made.segment(run, steps(n), sequence=n, start=n * 5000)
        reader, writer = os.pipe()
        with started(path, "--format", "json", stdout=writer) as process:
            os.close(writer)
            capacity = fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
            waiting = bytearray(4)
            deadline = time.monotonic() + PATIENCE
            while int.from_bytes(waiting, sys.byteorder) < capacity - 4096:  # the pipe is not full
                assert time.monotonic() < deadline
                assert process.poll() is None
                fcntl.ioctl(reader, termios.FIONREAD, waiting)
            made.segment(run, steps(0), sequence=40, start=40 * 5000)
            assert made("PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]
            with open(reader, "rb") as pipe:
                assert len(pipe.readlines()) >= 20_000
            assert process.wait(PATIENCE) == 0


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from handmade import Handmade, event
made = Handmade(Path(sys.argv[1]))
for n in range(1, 1 << 20):
    made("BEGIN")
    made.segment(1, [event("call", 1, i, time=10, depth=0) for i in range(50)], sequence=n, start=n * 500)
    made("COMMIT")
    print(n, flush=True)
"""


def test_the_recording_is_killed_meanwhile(path: Path) -> None:
    """Committed events are followed, and so are those of a dumper that takes the recording up
    again."""
    with Handmade(path) as made:
        run = made.run(finished=False)
        made.code(run, 1, "step", ["n"])
        made.segment(run, [event("call", 1, 0, time=1)])
    here = str(Path(__file__).parents[1] / "support")
    with (
        subprocess.Popen(
            [sys.executable, "-P", "-c", WRITER, str(path), here], stdout=subprocess.PIPE, env=environment()
        ) as writer,
        started(path, "--follow", "--format", "json") as follower,
    ):
        assert writer.stdout is not None
        assert follower.stdout is not None
        while int(writer.stdout.readline()) < 20:
            pass
        shown = [json.loads(follower.stdout.readline()) for _ in range(100)]
        writer.kill()
        writer.wait(PATIENCE)
        with Handmade(path) as made:
            made.segment(run, [event("return", 1, None, time=1, depth=0)], sequence=1 << 21, start=1 << 40)
            made.finish(run)
            ((stored,),) = made("SELECT sum(count) FROM segment")
        shown += map(json.loads, follower.stdout)
        assert follower.wait(PATIENCE) == 0
    assert len(shown) == stored
    assert shown[-1]["kind"] == "return"
    order = [(each["time"], each["id"]) for each in shown]
    assert order == sorted(set(order))


def test_a_damaged_segment_is_named_once_however_many_pages(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        long = [event("call", 1, n, time=100, depth=0) for n in range(2000)]
        made.thread(run, 2, 102, "worker")
        made.segment(run, long)
        broken = made.segment(run, long, stream=2, start=5)
        made("UPDATE segment SET data = ? WHERE id = ?", (zstd.compress(bytes(100)), broken))
    done = printed(path, "--format", "json", "--filter", "func == 'step'")
    assert (done.returncode, len(done.stdout.splitlines())) == (2, 2000)
    assert done.stderr.count(f"segment {broken} of run {run} is damaged") == 1
    assert "2000 events could not be read" in done.stderr
    assert len(done.stderr.splitlines()) == 2
