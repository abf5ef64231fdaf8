"""Kernel events, the whole way: recorded of real programs, and compared with what the programs,
strace and the kernel itself say."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytracer.dumper import tracefs

from recording import PYTRACE, TIMEOUT, Event, Record, Recording, environment, read, run, write
from tracefs_here import instances, left_behind, needs_tracefs

pytestmark = needs_tracefs

CALLS = """
    import os

    def before(number):
        pass

    def after(number):
        pass

    def calls():
        for number in range(50):
            before(number)
            os.getppid()
            after(number)
        try:
            os.stat("/nowhere")
        except OSError:
            pass
        return os.pipe()

    calls()
"""


def kernel_events(recording: Recording, func: str = "", module: str = "syscalls") -> list[Event]:
    return [
        event
        for event in recording.events
        if event.layer == "kernel" and event.module == module and (not func or event.func == func)
    ]


def own(recording: Recording, pid: int = 0) -> list[Event]:
    """The events from the script's first to its last, in the order of time, of its threads."""
    events = recording.events
    script = str(recording.script)
    places = [at for at, event in enumerate(events) if event.file == script]
    return events[places[0] : places[-1] + 1]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = set(left_behind())
    yield
    assert set(left_behind()) <= before


def test_system_calls_stand_between_what_the_program_did_around_them(record: Record) -> None:
    recording = record(CALLS, "--kernel=syscalls")
    shown = [
        (event.kind, event.func) for event in own(recording) if event.func in ("before", "after", "getppid")
    ]
    expected = [(kind, func) for func in ("before", "getppid", "after") for kind in ("call", "return")]
    assert shown == expected * 50


def test_a_system_call_nests_below_the_function_that_made_it(record: Record) -> None:
    recording = record(CALLS, "--kernel=syscalls")
    [calls] = recording.of("call", func="calls")
    found = kernel_events(recording, "getppid")
    assert {event.depth for event in found} == {calls.depth + 1}
    assert {event.thread for event in found} == {calls.thread}
    assert all(event.cpu is not None for event in found)
    [begin, end] = [
        event for event in own(recording) if event.func == "newfstatat" and event.depth > calls.depth
    ]
    assert [arg["name"] for arg in begin.args] == ["dfd", "filename", "statbuf", "flag"]
    assert begin.values["dfd"] == "-100"
    assert end.values == {"return value": "-ENOENT"}
    assert end.duration


def test_own_time_of_a_function_is_without_its_system_calls(record: Record) -> None:
    recording = record(
        """
        import time

        def wait():
            time.sleep(0.2)

        wait()
        """,
        "--kernel=syscalls",
    )
    query = "SELECT own, total FROM hot WHERE func = 'wait'"
    done = run([*PYTRACE, "sql", str(recording.database), query, "--format", "csv"], recording.script.parent)
    own_time, total = map(int, done.stdout.splitlines()[1].split(","))
    assert total >= 200_000_000
    assert own_time < total / 2


@pytest.mark.skipif(not shutil.which("strace"), reason="there is no strace")
def test_as_many_system_calls_as_strace_counts(record: Record) -> None:
    source = """
        import os, threading

        def some(count):
            for _ in range(count):
                os.getpgrp()
                os.sched_yield()
            os.umask(os.umask(0))

        threads = [threading.Thread(target=some, args=(count,)) for count in (10, 200, 3000)]
        for thread in threads:
            thread.start()
        if not (child := os.fork()):
            some(77)
            os._exit(0)
        os.waitpid(child, 0)
        for thread in threads:
            thread.join()
    """
    names = ("getpgrp", "sched_yield", "umask", "wait4")
    recording = record(source, "--kernel")
    counts = Counter(event.func for event in kernel_events(recording) if event.kind == "call")
    table = recording.script.parent / "strace"
    command = [
        "strace",
        "-f",
        "-c",
        "-o",
        str(table),
        "-U",
        "name,calls",
        sys.executable,
        str(recording.script),
    ]
    done = run(command, recording.script.parent)
    assert done.returncode == 0, done.stderr
    expected = {
        words[0]: int(words[1])
        for line in table.read_text().splitlines()
        if len(words := line.split()) == 2 and words[0] in names
    }
    assert {name: counts[name] for name in names} == expected


WAITER = """
    import os, sys
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(300):
        os.getppid()
        os.access("/nowhere", os.R_OK)
    os.close(os.open("/etc/passwd", os.O_RDONLY))
"""
LINE = re.compile(r"^.{16}-(\d+)\s+\[(\d+)\] \S+\s+(\d+): sys_(\w+)(?:\((.*)\)| -> 0x([0-9a-f]+))$")


def numbers(event: Event) -> list[int]:
    """The values of an event, as the kernel's text has them."""
    shown = []
    for arg in event.args:
        value = arg["value"]
        if value.startswith("-E"):
            value = str(-next(n for n in range(1, 134) if value == f"-{errno.errorcode.get(n)}"))
        shown.append(int(value, 0) & (1 << 64) - 1)
    return shown


def test_the_same_as_the_kernels_own_text(tmp_path: Path) -> None:
    script = write(tmp_path, "waiter.py", WAITER)
    beside = Path(tracefs.find()) / "instances" / f"text-{os.getpid()}"
    program = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout
    program.stdout.readline()
    beside.mkdir()
    try:
        (beside / "trace_clock").write_text(tracefs.CLOCK)
        (beside / "set_event_pid").write_text(str(program.pid))
        database = tmp_path / "traces.sqlite"
        recorder = subprocess.Popen(
            [
                *PYTRACE,
                "kernel",
                "-q",
                "--pid",
                str(program.pid),
                "--events",
                "syscalls",
                "-o",
                str(database),
            ],
            env=environment(),
            cwd=tmp_path,
        )
        wait_for_events(recorder)
        (beside / "events/syscalls/enable").write_text("1")
        program.communicate("go\n", timeout=TIMEOUT)
        assert recorder.wait(TIMEOUT) == 0
        (beside / "events/syscalls/enable").write_text("0")
        text = (beside / "trace").read_text()
    finally:
        program.kill()
        beside.rmdir()
    expected = []
    for line in text.splitlines():
        if match := LINE.match(line):
            _, cpu, _, name, args, result = match.groups()
            values = [int(part.rpartition(": ")[2], 16) for part in args.split(", ") if part] if args else []
            expected.append((name, int(cpu), [int(result, 16)] if result else values))
    found = [
        (event.func, event.cpu, numbers(event))
        for event in (Event(**row) for row in read(database))
        if event.layer == "kernel"
    ]
    wanted = ("getppid", "access", "faccessat", "faccessat2", "openat", "close", "exit_group")
    masked = [
        (name, cpu, [value & 0xFFFFFFFF if name == "openat" else value for value in values])
        for name, cpu, values in expected
        if name in wanted
    ]
    shown = [
        (name, cpu, [value & 0xFFFFFFFF if name == "openat" else value for value in values])
        for name, cpu, values in found
        if name in wanted
    ]
    assert len(masked) > 1200
    first = next(at for at, each in enumerate(shown) if each[0] == "getppid")
    start = next(at for at, each in enumerate(masked) if each[0] == "getppid")
    assert [as_signed(each) for each in shown[first:]] == [as_signed(each) for each in masked[start:]]


def as_signed(each: tuple[str, int, list[int]]) -> tuple[str, int, list[int]]:
    """-100 is ffffff9c to the kernel's text, which prints an int's 32 bits."""
    name, cpu, values = each
    return name, cpu, [value & 0xFFFFFFFF if value >> 32 == 0xFFFFFFFF else value for value in values]


def is_on(instance: Path) -> bool:
    """Events are switched on first, and all of them together in the end."""
    try:
        return bool((instance / "set_event").read_text()) and (instance / "tracing_on").read_text() == "1\n"
    except FileNotFoundError:
        return False  # it is just being made


def wait_for_events(recorder: "subprocess.Popen[bytes]") -> None:
    """Until the recorder's instance is switched on."""
    folder = Path(tracefs.find()) / "instances"
    while recorder.poll() is None:
        if any(f"-{recorder.pid}-" in name and is_on(folder / name) for name in instances()):
            return
    raise AssertionError("it does not record")


def test_children_that_are_no_python_are_followed(record: Record) -> None:
    recording = record(
        """
        import subprocess
        subprocess.run(["sh", "-c", "cat /etc/hostname; true"], check=True, stdout=subprocess.DEVNULL)
        """,
        "--kernel=syscalls",
    )
    executed = [event for event in kernel_events(recording, "execve") if event.kind == "call"]
    assert len({event.pid for event in executed}) >= 2
    query = "SELECT count(*), count(finished) FROM process"
    done = run([*PYTRACE, "sql", str(recording.database), query, "--format", "csv"], recording.script.parent)
    count, finished = done.stdout.splitlines()[1].split(",")
    assert int(count) >= 3
    assert count == finished


def test_a_switch_and_a_wakeup_stand_in_both_threads(record: Record) -> None:
    recording = record(
        """
        import threading

        def wait(mine, other):
            for _ in range(100):  # the kernel leaves some switches back from its idle task out
                mine.acquire()
                other.release()

        one, other = threading.Semaphore(0), threading.Semaphore(0)
        thread = threading.Thread(target=wait, args=(one, other))
        thread.start()
        for _ in range(100):
            one.release()
            other.acquire()
        thread.join()
        """,
        "--kernel=sched",
    )
    [wait] = recording.of("call", func="wait")
    switches = [event for event in kernel_events(recording, "sched_switch", "sched") if event.tid == wait.tid]
    assert all(event.kind == "event" for event in switches)
    assert any(event.values["prev_pid"] == str(wait.tid) for event in switches)
    assert any(event.values["next_pid"] == str(wait.tid) for event in switches)
    woken = [e for e in kernel_events(recording, "sched_waking", "sched") if e.values["pid"] == str(wait.tid)]
    assert {event.tid for event in woken} >= {wait.tid, wait.pid}


def test_page_faults_signals_and_single_events(record: Record) -> None:
    recording = record(
        """
        import os, signal
        signal.signal(signal.SIGUSR1, lambda number, frame: None)
        os.kill(os.getpid(), signal.SIGUSR1)
        memory = bytearray(1 << 22)
        """,
        "--kernel=faults,signals,task:task_rename",
    )
    assert len(kernel_events(recording, "page_fault_user", "exceptions")) > 1000
    sent = [
        event
        for event in kernel_events(recording, "signal_generate", "signal")
        if event.values["sig"] == "10"
    ]
    assert sent
    assert sent[0].values["pid"] == str(sent[0].pid)
    assert not kernel_events(recording)


def test_a_program_that_is_killed_keeps_what_it_did(record: Record) -> None:
    recording = record(
        """
        import os, signal
        for _ in range(1000):
            os.getppid()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        "--kernel=syscalls",
        status=-signal.SIGKILL,
    )
    wait_for_end(recording.database)
    assert [event.kind for event in kernel_events(recording, "getppid")].count("return") == 1000
    assert kernel_events(recording, "kill")


def wait_for_end(database: Path) -> None:
    done = run([*PYTRACE, "print", str(database), "--follow", "--limit", "100000000"], database.parent)
    assert done.returncode == 0, done.stderr


def test_a_dumper_that_is_killed_has_a_follower(tmp_path: Path) -> None:
    source = """
        import os, time

        end = time.monotonic() + 2
        while time.monotonic() < end:
            os.getppid()
            time.sleep(0.001)
        os.getpgrp()
    """
    script, database = write(tmp_path, "script.py", source), tmp_path / "traces.sqlite"
    command = [*PYTRACE, "-o", str(database), "--kernel=syscalls", str(script)]
    done = run(command, tmp_path, PYTRACE_DUMPER_DIE_AT="after commit:12")
    assert done.returncode == 0
    done = run([*PYTRACE, "print", str(database), "--limit", "0"], tmp_path)  # saves what is left
    functions = {event.func for event in (Event(**row) for row in read(database)) if event.layer == "kernel"}
    assert {"getppid", "getpgrp"} <= functions


def test_what_a_kill_has_left_behind_goes_with_the_next_recording(record: Record) -> None:
    left = Path(tracefs.find()) / "instances" / f"{tracefs.PREFIX}0-1-{os.urandom(4).hex()}"
    left.mkdir()
    record("pass", "--kernel=sched")
    assert not left.exists()


def test_nobody_else_is_told_why_and_the_program_runs(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can become another user")
    script = write(tmp_path, "script.py", "print('it runs')")
    tmp_path.chmod(0o777)
    for folder in (*tmp_path.parents,):
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            pytest.skip(f"nobody may look into {folder}")
    done = subprocess.run(
        [*PYTRACE, "-o", str(tmp_path / "traces.sqlite"), "--kernel", str(script)],
        env=environment(), cwd=tmp_path, capture_output=True, text=True, user=65534, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.stdout == "it runs\n"
    assert done.returncode == 0
    assert "pytrace: kernel events are not recorded: that takes root" in done.stderr


def test_unknown_events_are_a_mistake(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "pass")
    for given, said in (
        ("nonsense", "sched, syscalls, faults, signals or system:event is expected"),
        ("sched:nonsense", "this kernel has no event sched:nonsense"),
    ):
        done = run([*PYTRACE, f"--kernel={given}", str(script)], tmp_path)
        assert done.returncode == 2
        assert said in done.stderr


def test_of_a_process_that_is_no_python(tmp_path: Path) -> None:
    database = tmp_path / "traces.sqlite"
    shell = subprocess.Popen(
        ["sh", "-c", "read line; cat /etc/hostname"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    command = [*PYTRACE, "kernel", "-q", "--pid", str(shell.pid), "--events", "syscalls", "-o", str(database)]
    recorder = subprocess.Popen(command, env=environment(), cwd=tmp_path)
    wait_for_events(recorder)
    shell.communicate(b"go\n", timeout=TIMEOUT)
    assert recorder.wait(TIMEOUT) == 0
    events = [Event(**row) for row in read(database)]
    assert {event.layer for event in events} == {"kernel"}
    assert {"read", "execve", "openat", "wait4"} <= {event.func for event in events}
    assert len({event.pid for event in events}) == 2


def test_a_filter_in_the_kernels_syntax_until_ctrl_c(tmp_path: Path) -> None:
    database = tmp_path / "traces.sqlite"
    name = f"woken{os.getpid() % 10000}"
    options = ["--all", "--events", "sched:sched_process_exec", "--filter", f'filename ~ "*/{name}"']
    recorder = subprocess.Popen(
        [*PYTRACE, "kernel", "-q", *options, "-o", str(database)], env=environment(), cwd=tmp_path
    )
    wait_for_events(recorder)
    (tmp_path / name).symlink_to(shutil.which("true") or "/bin/true")
    subprocess.run([str(tmp_path / name)], check=True)
    subprocess.run(["true"], check=True)
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(TIMEOUT) == 130
    [event] = [Event(**row) for row in read(database)]
    assert (event.kind, event.module, event.func) == ("event", "sched", "sched_process_exec")
    assert event.values["filename"] == f"'{tmp_path / name}'"


LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


@pytest.mark.skipif(not os.access(LAST_PID, os.W_OK), reason=f"{LAST_PID} cannot be written")
def test_a_number_that_is_used_again_is_another_process(record: Record) -> None:
    recording = record(
        f"""
        import os

        def child(pid, *words):
            for _ in range(1000):
                with open({str(LAST_PID)!r}, "w") as file:
                    file.write(str(pid - 1))
                found = os.posix_spawn(words[0], words, {{}})
                os.waitpid(found, 0)
                if found == pid:
                    return True
            return False

        free = os.posix_spawn("/bin/true", ["true"], {{}})
        os.waitpid(free, 0)
        assert child(free, "/bin/cat", "/dev/null")
        assert child(free, "/bin/true")
        print(free)
        """,
        "--kernel=syscalls,sched",
    )
    query = f"SELECT count(*), count(DISTINCT number) FROM process WHERE pid = {recording.stdout}"
    done = run([*PYTRACE, "sql", str(recording.database), query, "--format", "csv"], recording.script.parent)
    assert done.stdout.splitlines()[1] == "3,3"


def test_children_that_have_ended_take_no_memory(record: Record) -> None:
    recording = record(
        """
        import os, sys

        def dumper():
            for pid in filter(str.isdecimal, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline") as command, open(f"/proc/{pid}/status") as status:
                        if command.read().startswith(f"pytrace: dumper for python {sys.argv[0]}"):
                            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
                except OSError:
                    pass

        for size in 100, 1400:
            for _ in range(size):
                os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
            print(dumper())
        """,
        "--kernel=sched,syscalls",
    )
    before, after = map(int, recording.stdout.split())
    assert after - before < 20_000  # KiB; a thread's record and its streams would be 20 each


def test_what_the_database_cannot_take_stays_in_the_kernel(tmp_path: Path) -> None:
    """Memory is bounded while somebody has locked the database, and what is lost is counted."""
    source = """
        import os, sqlite3, sys

        def dumper():
            for pid in filter(str.isdecimal, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline") as command, open(f"/proc/{pid}/status") as status:
                        if command.read().startswith(f"pytrace: dumper for python {sys.argv[0]}"):
                            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
                except OSError:
                    pass

        lock = sqlite3.connect("traces.sqlite", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        for _ in range(3_000_000):
            os.getppid()
        print(dumper())
        lock.execute("ROLLBACK")
    """
    script, database = write(tmp_path, "script.py", source), tmp_path / "traces.sqlite"
    options = ["--kernel=syscalls", "--no-stdlib", "-o", str(database)]
    done = run([*PYTRACE, *options, str(script)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300_000  # KiB
    query = (
        "SELECT (SELECT count(*) FROM event WHERE func = 'getppid' AND layer = 'kernel'),"
        " (SELECT lost FROM run)"
    )
    shown = run([*PYTRACE, "sql", str(database), query, "--format", "csv"], tmp_path)
    stored, lost = map(int, shown.stdout.splitlines()[1].split(","))
    assert lost > 0
    assert stored
    assert 6_000_000 <= stored + lost < 6_100_000
