"""Kernel events for scripts: `from pytracer import kernel`."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytracer.dumper import tracefs

from pytracer import kernel
from tracefs_here import instances, left_behind, needs_tracefs

pytestmark = needs_tracefs
SHELL = ["sh", "-c", "read line; cat /etc/hostname; true"]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = set(left_behind())
    yield
    assert set(left_behind()) <= before


@pytest.fixture
def shell() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(SHELL, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.communicate()


def go(shell: "subprocess.Popen[bytes]") -> None:
    assert shell.stdin
    shell.stdin.write(b"go\n")
    shell.stdin.flush()


def test_systems_events_and_fields() -> None:
    assert {"sched", "syscalls", "signal"} <= set(kernel.systems())
    assert kernel.Event("sched", "sched_wakeup") in kernel.events("sched")
    assert kernel.Event("signal", "signal_generate") in kernel.events()
    fields = kernel.Event("sched", "sched_wakeup").fields
    assert kernel.Field("pid", "pid_t") in fields
    assert kernel.Field("comm", "char[16]") in fields


def test_an_iterator_with_fields_as_attributes(shell: "subprocess.Popen[bytes]") -> None:
    wanted = [kernel.Event("syscalls", "sys_enter_openat"), "sched:sched_process_exec"]
    begun = time.monotonic_ns()
    records = kernel.record(shell.pid, events=wanted)
    go(shell)
    found = list(records)
    ended = time.monotonic_ns()
    [exec] = [record for record in found if record.event.name == "sched_process_exec"]
    assert exec.filename.endswith("/cat")
    assert exec.tid == exec.pid != shell.pid
    opened = [record for record in found if record.event == wanted[0]]
    assert opened
    assert all(record.flags & os.O_CLOEXEC or record.flags == 0 for record in opened)
    assert [record.time for record in found] == sorted(record.time for record in found)
    assert begun <= found[0].time <= found[-1].time <= ended
    assert {record.cpu for record in found} <= set(range(os.cpu_count() or 1))
    assert records.lost == 0
    with pytest.raises(AttributeError, match="sched_process_exec has no field 'nonsense'"):
        _ = exec.nonsense


def test_children_are_left_out(shell: "subprocess.Popen[bytes]") -> None:
    records = kernel.record(shell.pid, fork=False, events=["syscalls:sys_enter_*"])
    go(shell)
    assert {record.tid for record in records} == {shell.pid}


def test_a_callback_and_a_filter(shell: "subprocess.Popen[bytes]") -> None:
    seen: list[kernel.Record] = []

    def go_on() -> None:
        while not any(is_on(name) for name in instances() if f"-script-{os.getpid()}-" in name):
            pass
        go(shell)

    thread = threading.Thread(target=go_on)
    thread.start()
    event = kernel.Event("sched", "sched_switch", filter=f"prev_pid == {shell.pid}")
    kernel.record(shell.pid, events=[event], callback=seen.append)
    thread.join()
    assert {record.prev_pid for record in seen} == {shell.pid}


def is_on(name: str) -> bool:
    """The event is switched on first, all in the end; the kernel makes instances that are on."""
    instance = Path(tracefs.find()) / "instances" / name
    try:
        return bool((instance / "set_event").read_text()) and (instance / "tracing_on").read_text() == "1\n"
    except OSError:
        return False  # it is just being made


def test_all_processes_until_it_is_closed(tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.symlink_to(shutil.which("true") or "/bin/true")
    event = kernel.Event("sched", "sched_process_exec", filter="filename ~ '*/only-here'")
    with kernel.record(events=[event]) as records:
        subprocess.run([str(program)], check=True)
        assert next(records).filename == str(program)
    assert list(records) == []


def test_mistakes_are_found_before_anything_is_switched_on() -> None:
    mine = os.getpid()
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: kernel.Event("sched", "nonsense"), kernel.UnknownEvent, "no event sched:nonsense"),
        (lambda: kernel.Event("sched", "*"), kernel.UnknownEvent, "no event"),
        (lambda: kernel.events("nonsense"), kernel.UnknownEvent, "no events nonsense"),
        (lambda: kernel.record(mine), kernel.UnknownEvent, "which events"),
        (lambda: kernel.record(mine, events=["sched", "x"]), kernel.UnknownEvent, "no event x"),
        (lambda: kernel.record([], events=["sched"]), kernel.Unavailable, "no process"),
        (lambda: kernel.record(1 << 22, events=["sched"]), kernel.Unavailable, "there is no process"),
        (
            lambda: kernel.record(mine, events=[kernel.Event("sched", "sched_switch", "nonsense == 3")]),
            kernel.BadFilter,
            "Field not found",
        ),
        (
            lambda: kernel.record(mine, events=["sched", kernel.Event("signal", "signal_generate", "((")]),
            kernel.BadFilter,
            "does not take this filter",
        ),
    ]
    for act, error, text in cases:
        with pytest.raises(error, match=text):
            act()
    assert not [name for name in instances() if f"-script-{mine}-" in name]


def test_what_a_killed_script_leaves_goes_with_the_next(shell: "subprocess.Popen[bytes]") -> None:
    source = (
        "import os, signal; from pytracer import kernel; r = kernel.record(events=['sched']);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    before = set(left_behind())
    subprocess.run([sys.executable, "-P", "-c", source], check=False)
    assert set(left_behind()) - before
    kernel.record(shell.pid, events=["sched"]).close()
    assert set(left_behind()) <= before
