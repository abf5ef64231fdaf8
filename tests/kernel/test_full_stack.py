"""Everything together: Python, functions in C, native code and the kernel on one time line, in
threads and forked processes, and killed in the middle."""

import os
import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from family import wait_until_finished
from native_libraries import make
from recording import PYTRACE, Event, Record, environment, read
from shared import Shared
from tracefs_here import instances, needs_tracefs

pytestmark = needs_tracefs

ROUNDS = 20
SOURCE = """
import ctypes, os, sys, threading, time

lib = ctypes.CDLL({library!r})

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
def back(number):
    os.getppid()
    return lib.leaf(number)

def work(rounds):
    for _ in range(rounds):
        sorted([1], key=ask)

def ask(number):
    return lib.call_back(back, number)

def both(rounds):
    threads = [threading.Thread(target=work, args=(rounds,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    work(rounds)
    for thread in threads:
        thread.join()

children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        both({rounds})
        os._exit(0)
    children.append(child)
both({rounds})
for child in children:
    os.waitpid(child, 0)
"""
FOREVER = """
print("ready", flush=True)
while True:
    work(1)
"""
STACK = [
    ("python", "work"),
    ("c", "sorted"),
    ("python", "ask"),
    ("native", "call_back"),
    ("python", "back"),
    ("c", "getppid"),
    ("kernel", "getppid"),
]
OPTIONS = ("--c-calls", "--native", "--kernel")


@pytest.fixture(scope="module")
def folder(shared: Shared) -> Path:
    return shared("native-libraries", make)


def source(folder: Path) -> str:
    return SOURCE.format(library=str(folder / "libnative.so"), rounds=ROUNDS)


def stacks(events: Iterable[Event], func: str, layer: str) -> list[tuple[int, list[tuple[str, str]]]]:
    """The process and the open calls, from work() on, at each call of a function. Every call begins
    right below the one around it, and every end is that of the innermost call."""
    found = []
    of_threads: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        open_calls = of_threads[event.pid, event.tid]
        if event.kind in ("call", "resume", "throw"):
            if open_calls:
                assert event.depth == open_calls[-1].depth + 1, (event, open_calls)
            open_calls.append(event)
            if (event.func, event.layer) == (func, layer):
                # from 3.12 on, a call of an object of ctypes is one of a function in C
                names = [(each.layer, each.func) for each in open_calls if "FuncPtr" not in each.func]
                if STACK[0] in names:  # else the kernel's answer to somebody else
                    found.append((event.pid, names[names.index(STACK[0]) :]))
        elif event.kind in ("return", "exception", "yield") and open_calls:
            last = open_calls.pop()
            assert (last.func, last.layer, last.depth) == (event.func, event.layer, event.depth)
    return found


def test_in_threads_and_forked_processes(record: Record, folder: Path) -> None:
    recording = record(source(folder), *OPTIONS)
    found = stacks(recording.events, "getppid", "kernel")
    assert [stack for _, stack in found if stack != STACK] == []
    assert sorted(Counter(pid for pid, _ in found).values()) == [4 * ROUNDS] * 3
    assert len({event.cpu for event in recording.events if event.layer == "kernel"} - {None}) >= 1
    times = [event.time for event in recording.events]
    assert times == sorted(times)


def test_killed_in_the_middle(tmp_path: Path, folder: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(source(folder) + FOREVER)
    database = tmp_path / "traces.sqlite"
    command = [*PYTRACE, "-q", "-o", str(database), *OPTIONS, str(script)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        started.send_signal(signal.SIGKILL)
    facts = wait_until_finished(database)
    assert facts["lost"] == 0
    found = stacks((Event(**row) for row in read(database)), "getppid", "kernel")
    assert [stack for _, stack in found if stack != STACK] == []
    counts = Counter(pid for pid, _ in found)
    assert counts[started.pid] >= 4 * ROUNDS
    del counts[started.pid]
    assert sorted(counts.values()) == [4 * ROUNDS] * 2
    assert not [name for name in instances() if f"-{started.pid}-" in name]
    assert not os.path.exists(f"/proc/{started.pid}")
