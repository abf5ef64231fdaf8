"""Processes that are about to register: when all others have ended, the pump waits for these.

A program may end right behind the start of another one. That one is on its way then: forked and not yet
registered, or a Python that is still starting, or a shell that starts one. What it has in common with
all processes of the recording is the ring: in its environment, or among its mappings.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

VARIABLE = b"PYTRACE_RING="
PROGRAM = b"program:"
YOUNG_SECONDS = 5.0  # since it was started, or became what it is
NEW_SECONDS = 1.0  # for a fork to register; for the kernel to give a program that begins its environment
PIDS = 1 << 22  # more than there are
KERNEL_THREAD = 0x00200000  # PF_KTHREAD
# what stands behind its -c
HELPER = re.compile(rb"(import sys; )?from [\w.]+\.(resource_tracker|forkserver) import main;")
TICKS = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """From /proc/PID/stat; see proc_pid_stat(5)."""

    zombie: bool
    flags: int  # of the kernel
    start_time: int  # clock ticks since boot
    exit_code: int  # as wait(2) gives it; of a zombie


def read_stat(pid: int) -> Stat | None:
    """None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Stat(fields[0] == b"Z", int(fields[6]), int(fields[19]), int(fields[49]))


def newcomers(
    ring: bytes, replaced: dict[int, float], is_known: Callable[[int, int], bool]
) -> Iterator[tuple[int, bool]]:
    """Pids of young processes that may yet register in this ring (its path), and whether that is certain.

    replaced: pids of those that have become another program, and when, time.monotonic(). is_known(pid,
    start time): it has registered."""
    now = time.monotonic()
    for pid, since in replaced.items():
        if now - since < YOUNG_SECONDS and (belongs := _belongs(pid, ring, now - since)) is not False:
            yield pid, bool(belongs)
    for pid, age, stat in _young():
        if pid == os.getpid() or stat.zombie or stat.flags & KERNEL_THREAD:
            continue
        if not is_known(pid, stat.start_time) and (belongs := _belongs(pid, ring, age)) is not False:
            yield pid, bool(belongs)


def is_helper(pid: int) -> bool:
    """True: a server that multiprocessing, or loky after its model, keeps for a program. It ends when nobody
    holds the other end of its pipe any more: behind the program, by itself."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        command = file.read()  # of one that is ending there is none any more
        return not command or any(HELPER.match(word) for word in command.split(b"\0"))
    return True  # it has ended


def _young() -> Iterator[tuple[int, float, Stat]]:
    """Processes with their age in seconds, the newest first. Pids are given out in a circle, so that
    nobody but the newest have to be looked at."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    with open("/proc/loadavg", "rb") as file:
        newest = int((file.read().split() + [b"0"] * 5)[4])  # behind the list: none in it is newer
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    for pid in sorted(pids, key=lambda pid: (newest - pid) % PIDS):
        stat = read_stat(pid)
        if stat is None:
            continue
        age = now - stat.start_time / TICKS
        if age > YOUNG_SECONDS:
            return
        yield pid, age, stat


def _belongs(pid: int, ring: bytes, age: float) -> bool | None:
    """None: a program that only begins, which the kernel has not given its environment yet."""
    with suppress(OSError):  # another user's, or it has just ended
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
        if VARIABLE in environment:
            words = environment.split(b"\0")
            return VARIABLE + ring in words or VARIABLE + PROGRAM + ring in words
        if age < NEW_SECONDS:
            with open(f"/proc/{pid}/maps", "rb") as file:
                return ring in file.read() or (False if environment else None)
    return False
