"""Pending processes, which are about to register.

When all other processes have ended, the pump waits for these. A program may end as soon as it has
started another one. The other one is then forked and not yet registered, or a Python that is still
starting, or a shell that starts one. Like all processes of the recording, it has the ring in its
environment or among its mappings.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

VARIABLE = b"PYTRACE_RING="
PROGRAM = b"program:"
YOUNG_SECONDS = 5.0  # since its start or its exec
# A fork registers within this time, and the kernel gives a new program its environment.
NEW_SECONDS = 1.0
PIDS = 1 << 22  # more than there are
KERNEL_THREAD = 0x00200000  # PF_KTHREAD
# the text of a helper's option -c
HELPER = re.compile(rb"(import sys; )?from [\w.]+\.(resource_tracker|forkserver) import main;")
TICKS = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """From /proc/PID/stat; see proc_pid_stat(5)."""

    zombie: bool
    flags: int  # of the kernel
    start_time: int  # clock ticks since boot
    exit_code: int  # as wait(2) gives it; of a zombie


def read_proc(pid: int, name: str) -> bytes | None:
    """A file of /proc/PID. None: there is no such process. Raises OSError if the file cannot be
    read: no file descriptor is left (EMFILE), or it is another user's (EACCES). That tells nothing
    of the process."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None


def read_stat(pid: int) -> Stat | None:
    """None, and errors, as for read_proc."""
    text = read_proc(pid, "stat")
    if text is None:
        return None
    fields = text.rpartition(b")")[2].split()
    return Stat(fields[0] == b"Z", int(fields[6]), int(fields[19]), int(fields[49]))


def pending(
    ring: bytes, replaced: dict[int, float], is_known: Callable[[int, int], bool]
) -> Iterator[tuple[int, bool]]:
    """Pids of young processes that may register in this ring (its path), and whether this is
    certain.

    replaced: by pid, when a process became another program, time.monotonic(). is_known(pid, start
    time): the process has registered. Raises OSError if /proc cannot be read."""
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
    """True: the process is a helper that multiprocessing (or loky, which imitates it) keeps for a
    program. It ends by itself after the program, when nobody holds the other end of its pipe."""
    try:
        command = read_proc(pid, "cmdline")
    except OSError:
        return False  # nothing shows that it is a helper
    # a process that has ended has no command any more
    return not command or any(HELPER.match(word) for word in command.split(b"\0"))


def _young() -> Iterator[tuple[int, float, Stat]]:
    """Processes with their age in seconds, the newest first. Pids are given out in a circle, so
    that a caller can stop at the first old process."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    with open("/proc/loadavg", "rb") as file:
        newest = int((file.read().split() + [b"0"] * 5)[4])  # later than the list
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
    """None: the kernel has not given the new program its environment yet."""
    try:
        environment = read_proc(pid, "environ")
        if environment is None:
            return False
        if VARIABLE in environment:
            words = environment.split(b"\0")
            return VARIABLE + ring in words or VARIABLE + PROGRAM + ring in words
        if age < NEW_SECONDS:
            maps = read_proc(pid, "maps")
            return maps is not None and (ring in maps or (False if environment else None))
        return False
    except PermissionError:
        return False  # another user's: it cannot register
