"""Faults of the dumper while a program records: killed, stopped, its file locked, full, taken away.
The program goes on as if nothing had happened; what it says that it did is in the database, or
counted as lost."""

import json
import os
import re
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

import mortal
from beside import PYTRACE, run
from counted import RING_FOLDER, Counted, compiled, dumpers, wait_for
from small_disk import SmallDisk

# Works in slot N for each line "N times" that it reads, and says so.
OBEYING = """
os.environ.pop("PYTRACE_DUMPER_DIE_AT", None)  # of the first dumper, and no other
for line in sys.stdin:
    do(*map(int, line.split()))
    print("done", flush=True)
"""


def obeying(folder: Path, *options: str, memory: Path = RING_FOLDER, **variables: str) -> Counted:
    program = Counted(folder, OBEYING, *options, memory=memory, **variables)
    work(program, 0)
    return program


def work(program: Counted, slot: int, times: int = 100) -> None:
    program.say(f"{slot} {times}")
    assert program.line() == "done"


def end(program: Counted) -> str:
    """Ends it properly; its standard error."""
    assert program.process.stdin
    program.process.stdin.close()
    program.process.stdin = None
    assert program.ended() == 0
    return program.over()


# ---- killed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["info"], ["print"], ["sql", "traces.sqlite", "SELECT 1"], [], ["-q", "-oother", "-c", ""]]
)
def test_killed_together_with_the_program(tmp_path: Path, command: list[str]) -> None:
    """The next command, whichever, has saved what is in the ring, and says so."""
    folder, memory = tmp_path / "program", tmp_path / "memory"
    folder.mkdir()
    memory.mkdir()
    variables = mortal.with_memory(tmp_path / "python", memory)
    program = obeying(folder, memory=memory, **variables)
    dumper = program.dumper()
    os.kill(dumper, signal.SIGSTOP)
    work(program, 1)
    os.kill(dumper, signal.SIGKILL)
    program.process.kill()
    program.ended()
    wait_for(lambda: not os.path.exists(f"/proc/{dumper}"), "its end")
    done = run([*PYTRACE, *command], folder, **variables)
    assert done.status == 0
    assert done.stderr.startswith(b"pytrace: an earlier recording was cut off; saving what is left of it (")
    assert command[:1] == ["-q"] or not program.rings()
    assert command != ["info"] or b"missing    nothing" in done.stdout
    (folder / "other").unlink(missing_ok=True)
    program.over()
    program.check(0, 1)
    assert run([*PYTRACE, "info"], folder, **variables).stderr == b""


@pytest.mark.parametrize(
    "step",
    [f"{step}{n}" for n in (2, 3, 5) for step in ("before commit:", "after commit:", "after release:")],
)
def test_killed_at_each_step(tmp_path: Path, step: str) -> None:
    """The program starts another, which goes on there; each event is stored once."""
    program = obeying(tmp_path, PYTRACE_DUMPER_DIE_AT=step)
    for slot in range(1, 9):
        work(program, slot, 4000)
    errors = end(program)
    assert "none lost" in errors
    program.check(*range(9))


# Twenty processes that each fill a chunk every few milliseconds.
BUSY = """
import time

def fill(text):
    counts[slot] += 1

children = []
for slot in range(20):
    if not (child := os.fork()):
        while not os.path.exists("enough"):
            for _ in range(400):
                fill("x" * 180)
            time.sleep(0.02)
        os._exit(0)
    children.append(child)
print("begun", flush=True)
for child in children:
    os.waitpid(child, 0)
"""


def test_killed_while_many_processes_record(tmp_path: Path) -> None:
    """One of them starts another; the next one does so if that has not come up after 800 ms, then
    after 1.6 s."""
    program = Counted(tmp_path, BUSY, "--buffer-size", "500M")
    assert program.line() == "begun"
    first = program.dumper()
    wait_for(lambda: program.rows("SELECT count(*) FROM process WHERE number > 0") == [(20,)], "all of them")
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{first}"), "its end")
    began, started = time.monotonic(), set[int]()
    saved = program.rows("SELECT sum(count) FROM segment")
    while program.rows("SELECT sum(count) FROM segment") == saved:
        started |= dumpers(program.ring, starting=True)
    started |= dumpers(program.ring)  # the one that has saved more, however quick it was
    passed, most = time.monotonic() - began, 1
    while (passed := passed - 0.4 * 2**most) > 0:
        most += 1
    (tmp_path / "enough").touch()
    assert 0 < len(started) <= most
    assert program.ended() == 0
    (tmp_path / "enough").unlink()
    assert "none lost" in program.over()
    calls = sum(program.count(slot)[0] for slot in range(20))
    assert program.query("i", "SELECT sum(calls) FROM hot WHERE func = 'fill'") == [(calls,)]


# ---- stopped -------------------------------------------------------------------------------------


def test_stopped(tmp_path: Path) -> None:
    """The ring is full for long: the program goes on, and each event is stored or counted as
    lost."""
    program = obeying(tmp_path, "--buffer-size", "256k")
    with program.stopped_dumper():
        work(program, 1, 20000)
    work(program, 2, 100)
    errors = end(program)
    ((lost,),) = program.rows("SELECT lost FROM run")
    assert lost > 0
    assert f"{lost:,} events lost" in errors
    assert program.rows("SELECT lost FROM process") == [(lost,)]
    calls = 1 + 3 + sum(program.count(slot)[0] for slot in range(3))  # of the module, do and work
    assert program.query("i", "SELECT count(*) FROM event WHERE kind <> 'lost'") == [(2 * calls - lost,)]
    ((told,),) = program.query(
        "i", "SELECT sum(CAST(a.value AS INTEGER)) FROM event e JOIN argument a ON a.event = e.id"
        " WHERE e.kind = 'lost'"
    )  # fmt: skip
    assert told == lost
    program.check(0, spoilt=(1, 2))


def test_stopped_while_there_are_many_threads(tmp_path: Path) -> None:
    """Each begins with a small piece of the ring, of which there are more than of large ones, and
    keeps it while they take turns."""
    source = """
    def hello(n):
        met.wait()
    met = threading.Barrier(351)
    print("ready", flush=True)
    sys.stdin.readline()
    def greet(n):
        for _ in range(4):
            hello(n)
    threads = [threading.Thread(target=greet, args=(n,)) for n in range(350)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        met.wait()
    for thread in threads:
        thread.join()
    print("met", flush=True)
    """
    program = Counted(tmp_path, source, "--no-stdlib")
    assert program.line() == "ready"
    with program.stopped_dumper():
        program.say()
        assert program.line() == "met"
    assert program.ended() == 0
    assert "none lost" in program.over()
    asked = "SELECT count(DISTINCT tid), count(*) FROM event WHERE func = 'hello'"
    assert program.query("ii", asked) == [(350, 350 * 4 * 2)]


def test_stopped_when_the_program_ends(tmp_path: Path) -> None:
    """The program does not wait for long; all is saved when the dumper goes on."""
    program = obeying(tmp_path)
    with program.stopped_dumper():
        work(program, 1)
        program.process.stdin.close()  # type: ignore[union-attr]
        program.process.stdin = None
        start = time.monotonic()
        assert program.ended() == 0
        assert time.monotonic() - start < 15
    assert "not yet saved; that goes on in the background" in program.over()
    program.check(0, 1)


# ---- trouble with the disk -----------------------------------------------------------------------

# Each write and sync of the database takes long; counted, so that the test knows that it did.
SLOW_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/types.h>

static void slowly(void) { nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); }

#define SLOW(result, name, parameters, arguments) \\
    result name parameters \\
    { \\
        static result (*real) parameters; \\
        if (!real) \\
            real = dlsym(RTLD_NEXT, #name); \\
        slowly(); \\
        return real arguments; \\
    }
SLOW(int, fsync, (int fd), (fd))
SLOW(int, fdatasync, (int fd), (fd))
SLOW(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
SLOW(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
"""


def test_a_slow_disk(tmp_path: Path) -> None:
    library = compiled(tmp_path / "slow.so", SLOW_DISK)
    (folder := tmp_path / "program").mkdir()
    program = obeying(folder, LD_PRELOAD=library)
    for slot in range(1, 6):
        work(program, slot, 5000)
    assert "none lost" in end(program)
    program.check(*range(6))


def test_a_full_disk(tmp_path: Path, small_disk: SmallDisk) -> None:
    """Recording goes on when there is room again; what the ring can hold until then is not lost."""
    program = obeying(small_disk.folder)
    small_disk.fill(program.dumper())
    work(program, 1, 10000)
    wait_for(lambda: not small_disk.room(), "the disk to be full")
    work(program, 2, 1000)
    small_disk.empty()
    work(program, 3, 1000)
    errors = end(program)
    assert "none lost" in errors or "could not be written to for a while" in errors
    assert program.rows("SELECT lost, refused FROM run") == [(0, 0)]
    program.check(0, 1, 2, 3)
    assert program.rows("PRAGMA integrity_check") == [("ok",)]


def test_a_disk_that_is_full_when_the_program_ends(tmp_path: Path, small_disk: SmallDisk) -> None:
    """Even with -q the program says that not all is saved; info and the doctor say how much, and
    why."""
    program = obeying(small_disk.folder, "-q")
    small_disk.fill(program.dumper())
    work(program, 1, 10000)
    wait_for(lambda: not small_disk.room(), "the disk to be full")
    work(program, 2, 1000)
    ended_at = time.time_ns()
    assert program.process.stdin
    program.process.stdin.close()
    program.process.stdin = None
    assert program.ended() == 0
    shown = run([*PYTRACE, "info"], small_disk.folder).stdout.decode()
    (facts,) = json.loads(run([*PYTRACE, "info", "--format", "json"], small_disk.folder).stdout)["runs"]
    examined = run([*PYTRACE, "info", "--doctor"], small_disk.folder).stdout.decode()
    small_disk.empty()
    errors = program.over()
    assert ", not yet saved, exit status 0\n" in shown
    assert re.search(
        r"missing    [\d,]+ events \(.*\) not yet saved: the database cannot be written to, .*full", shown
    )
    left = facts["unsaved"]
    assert (left["ended"], left["exit_status"]) == (True, 0)
    assert left["events"] >= 2 * 1000
    assert re.search(
        r"problem .*its program has ended, [\d,]+ events .* not yet saved: the database", examined
    )
    assert errors.startswith("pytrace: the recording is not yet saved; that goes on in the background (")
    assert re.search(r"\([\d,]+ events, [\d,]+ kB: the database cannot be written to, .*full\)\n$", errors)
    program.check(0, 1, 2)
    ((finished,),) = program.rows("SELECT finished FROM run")
    assert finished - ended_at < 4_000_000_000  # and not five seconds later, after our own waiting
    again = run([*PYTRACE, "info", "--format", "json"], small_disk.folder).stdout
    assert json.loads(again)["runs"][0]["unsaved"] is None


def test_locked_by_another(tmp_path: Path) -> None:
    program = obeying(tmp_path)
    other = sqlite3.connect(program.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    work(program, 1, 5000)
    other.execute("ROLLBACK")
    other.close()
    end(program)
    assert program.rows("SELECT lost, refused FROM run") == [(0, 0)]
    program.check(0, 1)


def test_the_folder_is_removed(tmp_path: Path) -> None:
    """Later events are in a new database, once the folder exists again."""
    (tmp_path / "sub").mkdir()
    program = obeying(tmp_path, "-o", "sub/traces.sqlite")
    program.database = tmp_path / "sub" / "traces.sqlite"
    wait_for(lambda: program.rows("SELECT sum(count) FROM segment")[0][0], "the first events")
    shutil.rmtree(tmp_path / "sub")
    work(program, 1, 5000)
    (tmp_path / "sub").mkdir()
    work(program, 2)
    errors = end(program)
    assert "the file was taken away while recording, and a new one begun" in errors
    program.check(1, 2, spoilt=(0,))


# ---- two of them ---------------------------------------------------------------------------------


# Strings that do not get much smaller when compressed: as many for each line as it says.
NOISY = """
def noise(data):
    counts[0] += 1

for line in sys.stdin:
    for _ in range(int(line)):
        noise(os.urandom(100).hex())
    print("done", flush=True)
"""


def test_two_recordings_into_one_small_database(tmp_path: Path) -> None:
    """While a third process reads. Each event is in it or counted as removed, and it stays
    small."""
    limit = 1 << 20
    programs = []
    for name in ("one", "two"):
        (folder := tmp_path / name).mkdir()
        programs.append(Counted(folder, NOISY, "-o../traces.sqlite", "--max-size", str(limit)))
        programs[-1].database = tmp_path / "traces.sqlite"
    files = [tmp_path / f"traces.sqlite{suffix}" for suffix in ("", "-wal")]
    largest = 0
    for _ in range(20):
        for program in programs:
            program.say("700")
        for program in programs:
            assert program.line() == "done"
        newest = "SELECT count(*) FROM event WHERE func = 'noise' AND time > 0"
        assert programs[0].query("i", newest)[0][0] >= 0
        largest = max(largest, sum(file.stat().st_size for file in files if file.exists()))
    for program in programs:
        end(program)
    rows = programs[0].rows(
        "SELECT run.lost, run.refused, run.evicted + (SELECT sum(count) FROM segment WHERE run = run.id),"
        " run.evicted > 0, exit_status FROM run"
    )
    assert rows == [(0, 0, 2 * (1 + 20 * 700), 1, 0)] * 2
    a_pass = 4 << 20  # a sixteenth of the ring, before it is compressed
    assert largest <= limit + 2 * a_pass
    assert programs[0].rows("PRAGMA integrity_check") == [("ok",)]
