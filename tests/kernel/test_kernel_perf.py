"""Kernel events without tracefs: context switches and page faults by perf_event_open."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pytracer.dumper import perf

from recording import PYTRACE, TIMEOUT, Event, Recording, environment, read, write

pytestmark = pytest.mark.skipif(bool(perf.why_not()), reason=perf.why_not() or "allowed")

# An ordinary user, who may also read the folders that this Python lies in.
MAY = "-all,+dac_read_search"
ANYBODY = [
    "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
    "--inh-caps", MAY, "--ambient-caps", MAY, "--bounding-set", MAY,
]  # fmt: skip

PROGRAM = """
    import os, threading, time

    def wait():
        for _ in range(20):
            time.sleep(0.001)

    def touch():
        return bytearray(1 << 22)

    thread = threading.Thread(target=wait)
    thread.start()
    touch()
    thread.join()
    if not os.fork():
        wait()
        os._exit(0)
    os.wait()
    os.system("cat /etc/hostname > /dev/null; true")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the ordinary user may write."""
    if os.geteuid():
        return tmp_path
    if not shutil.which("setpriv"):
        pytest.skip("there is no setpriv")
    place = Path("/tmp") / f"pytrace-test-{os.getpid()}-{tmp_path.name}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    place.chmod(0o777)
    return place


@pytest.fixture(autouse=True)
def cleaned(folder: Path):  # type: ignore[no-untyped-def]
    yield
    shutil.rmtree(folder, ignore_errors=True)


def as_anybody(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [*([] if os.geteuid() else ANYBODY), *PYTRACE, *words]
    return subprocess.run(
        command,
        env=environment(HOME=str(folder)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def recorded(folder: Path, option: str) -> Recording:
    script, database = write(folder, "script.py", PROGRAM), folder / "traces.sqlite"
    done = as_anybody(folder, "-o", str(database), option, str(script))
    assert done.returncode == 0, done.stderr
    return Recording(done.returncode, done.stdout, done.stderr, database, script)


def test_switches_and_page_faults_of_all_threads_and_children(folder: Path) -> None:
    recording = recorded(folder, "--kernel")
    assert "only context switches and page faults of user space are recorded" in recording.stderr
    assert "that takes root" in recording.stderr
    events = [event for event in recording.events if event.layer == "kernel"]
    assert {(event.module, event.func) for event in events} == {
        ("sched", "sched_switch"),
        ("exceptions", "page_fault_user"),
    }
    assert len({event.pid for event in events}) >= 4  # the fork, the shell, and cat
    waits = recording.of("call", func="wait")
    assert len(waits) == 2
    for wait in waits:
        [end] = [e for e in recording.of("return", func="wait") if e.tid == wait.tid]
        mine = [e for e in events if e.tid == wait.tid and wait.time < e.time < end.time]
        switches = [e.values for e in mine if e.func == "sched_switch"]
        left = [values for values in switches if values.get("prev_state") == "1"]
        assert len(left) >= 20
        assert {values["prev_pid"] for values in left} == {str(wait.tid)}
        assert sum("next_pid" in values for values in switches) >= 20
        assert {e.depth for e in mine if e.func == "sched_switch"} == {wait.depth}
        assert all(e.cpu is not None for e in mine)


def test_as_many_page_faults_as_the_kernel_counts(folder: Path) -> None:
    recording = recorded(folder, "--kernel=faults")
    [call], [end] = recording.of("call", func="touch"), recording.of("return", func="touch")
    events = [e for e in recording.events if e.layer == "kernel"]
    assert {event.func for event in events} == {"page_fault_user"}
    faults = [e for e in events if e.tid == call.tid and call.time < e.time < end.time]
    assert len({int(e.values["address"], 0) >> 12 for e in faults}) >= 1 << 10


def test_nothing_of_it_is_there_for_system_calls(folder: Path) -> None:
    recording = recorded(folder, "--kernel=syscalls")
    assert "kernel events are not recorded: that takes root" in recording.stderr
    assert not [event for event in recording.events if event.layer == "kernel"]


def test_of_a_process_that_is_no_python(folder: Path) -> None:
    source = """
        import subprocess, sys
        loop = "while [ ! -e end ]; do cat /etc/hostname > /dev/null; done"
        shell = subprocess.Popen(["sh", "-c", loop])
        pytrace = [sys.executable, "-m", "pytracer"]
        command = [*pytrace, "kernel", "--pid", str(shell.pid), "-o", "of.sqlite", *sys.argv[1:]]
        recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while recorder.poll() is None:
            done = subprocess.run([*pytrace, "print", "of.sqlite", "--limit", "1"], capture_output=True)
            if done.stdout:
                break
        open("end", "w")
        shell.wait()
        print(recorder.communicate()[1], recorder.returncode)
    """
    script = write(folder, "starts.py", source)

    def started(*words: str) -> str:
        (folder / "end").unlink(missing_ok=True)
        command = [*([] if os.geteuid() else ANYBODY), sys.executable, str(script), *words]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(HOME=str(folder)),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    refused = started("--events", "syscalls")
    assert "kernel events cannot be recorded: that takes root" in refused
    assert refused.split()[-1] == "2"
    assert started().split()[-1] == "0"
    events = [Event(**row) for row in read(folder / "of.sqlite")]
    assert {"sched_switch", "page_fault_user"} == {event.func for event in events}
    assert len({event.pid for event in events}) >= 2
