"""The processor of each event: `--cpu`."""

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from recording import Record

PROCESSORS = sorted(os.sched_getaffinity(0))
two = pytest.mark.skipif(len(PROCESSORS) < 2, reason="there is one processor")

MOVES = f"""
    import os, threading

    def on(cpu):
        time = len("")
        return cpu

    def moves():
        for cpu in {PROCESSORS[:2]} * 100:
            os.sched_setaffinity(0, [cpu])
            on(cpu)

    moves()
    thread = threading.Thread(target=moves)
    thread.start()
    thread.join()
    if not (child := os.fork()):
        moves()
        os._exit(0)
    os.waitpid(child, 0)
"""


@two
@pytest.mark.parametrize("options", [(), ("--c-calls",), ("--lines",), ("--repr",), ("--buffer-size=1MiB",)])
def test_events_tell_their_processor(record: Record, options: tuple[str, ...]) -> None:
    recording = record(MOVES, "--cpu", *options)
    calls = recording.of("call", func="on")
    assert [str(event.cpu) for event in calls] == [event.values["cpu"] for event in calls]
    assert [event.cpu for event in calls] == PROCESSORS[:2] * 300
    returns = recording.of("return", func="on")
    assert [str(event.cpu) for event in returns] == [event.values["return value"] for event in returns]
    inner = [event for event in recording.events if event.func == "len" or event.kind == "line"]
    inner = [event for event in inner if event.func in ("len", "on")]
    assert bool(inner) == (options in (("--c-calls",), ("--lines",)))
    stack: dict[int, int | None] = {}
    for event in recording.events:
        if event.func == "on":
            stack[event.tid] = event.cpu
        elif event.func == "len":
            assert event.cpu == stack[event.tid]


def test_nothing_is_stored_without_it(record: Record) -> None:
    recording = record(MOVES)
    assert {event.cpu for event in recording.events} == {None}


@two
def test_each_chunk_tells_it_again(record: Record) -> None:
    recording = record(
        f"""
        import os

        def nothing():
            pass

        os.sched_setaffinity(0, [{PROCESSORS[1]}])
        for _ in range(100000):
            nothing()
        """,
        "--cpu",
        "--buffer-size=1MiB",
    )
    calls = recording.of("call", func="nothing")
    assert calls
    assert {event.cpu for event in calls} == {PROCESSORS[1]}


NATIVE = """
void leaf(void) {}
void inner(void) { leaf(); }
void outer(void) { inner(); }
"""


@two
@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
def test_native_functions_tell_it_too(record: Record, tmp_path: Path) -> None:
    source, library = tmp_path / "native.c", tmp_path / "native.so"
    source.write_text(NATIVE)
    command = ["gcc", "-O0", "-g", "-shared", "-fPIC", "-finstrument-functions", "-o", library, source]
    subprocess.run(command, check=True)
    recording = record(
        f"""
        import ctypes, os

        library = ctypes.CDLL({str(library)!r})
        for cpu in {PROCESSORS[:2]} * 50:
            os.sched_setaffinity(0, [cpu])
            library.outer()
        """,
        "--cpu",
        f"--native={library}",
    )
    for func in ("outer", "inner", "leaf"):
        for kind in ("call", "return"):
            found = [e for e in recording.events if (e.layer, e.func, e.kind) == ("native", func, kind)]
            assert [event.cpu for event in found] == PROCESSORS[:2] * 50


def test_with_kernel_it_is_on(record: Record) -> None:
    """The setting: kernel events themselves may not be allowed here."""
    recording = record("pass", "--kernel=sched", "--no-stdlib")
    with sqlite3.connect(recording.database) as database:
        [[options]] = database.execute("SELECT options FROM run")
    assert '"cpu": "1"' in options
