"""The processes of a recording: which there are, which have ended, and how."""

import fcntl
import os
import select
import struct
from contextlib import suppress
from typing import NamedTuple

from .ring import EXITED, NONE, SAVED, STARTING, Ring

# linux/pidfd.h: struct pidfd_info in its first size, and ioctl 11 of the pid file system on it
PIDFD_GET_INFO = 3 << 30 | 64 << 16 | 0xFF << 8 | 11
PIDFD_INFO_EXIT = 1 << 3
PIDFD_INFO_SIZE = 64
PIDFD_INFO_EXIT_CODE = 60  # offset of the last field, int32_t

CHECK_SECONDS = 0.1
LEFT_SECONDS = 0.5
RETURN_SECONDS = 5.0  # for a program that becomes another one to register as that
MAX_WATCHED = 500  # leaves file descriptors for the ring, which needs them to see who lives


class Stat(NamedTuple):
    """From /proc/PID/stat; see proc_pid_stat(5)."""

    zombie: bool
    start_time: int  # clock ticks since boot
    exit_code: int  # as wait(2) gives it; of a zombie


def read_stat(pid: int) -> Stat | None:
    """None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Stat(fields[0] == b"Z", int(fields[19]), int(fields[49]))


def process_exists(pid: int) -> bool:
    """Whether there is one with this pid, maybe a zombie."""
    return os.path.exists(f"/proc/{pid}")


def reaped_status(pidfd: int) -> int | None:
    """The wait status of a process that has been reaped, from Linux 6.15 on; else None."""
    info = bytearray(PIDFD_INFO_SIZE)
    struct.pack_into("=Q", info, 0, PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
    except OSError:
        return None
    (mask,) = struct.unpack_from("=Q", info, 0)
    return struct.unpack_from("=i", info, PIDFD_INFO_EXIT_CODE)[0] if mask & PIDFD_INFO_EXIT else None


class Process:
    """One registered process, watched until it has ended."""

    def __init__(self, ring: Ring, number: int, watch: bool) -> None:
        """watch: hold a file descriptor of it, which tells when and how it ends."""
        self.number = number
        self.pid = ring.process_pid(number)
        self.parent = ring.process_parent(number)
        self.left_at = 0.0  # since when it is another program, time.monotonic(); 0: it is not
        self._ring = ring
        self.pidfd: int | None = None
        if not watch:
            return
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except OSError:
            return  # it has been reaped already, or there are too many
        stat = read_stat(self.pid)
        if stat is None or stat.start_time != ring.process_start_time(number):
            self.close()  # another process has its pid now

    def ended(self) -> bool:
        """True: it will not write to its chunks any more."""
        return self.said_so() or not self._ring.process_alive(self.number)

    def has_left(self) -> bool:
        """True: it runs, but as another program (exec), which does not map the ring."""
        try:
            with open(f"/proc/{self.pid}/maps", "rb") as file:
                maps = file.read()
        except OSError:
            return False  # not for us to see, or it has just ended
        return bool(maps) and self._ring.name not in maps

    def said_so(self) -> bool:
        """True: it has told its exit status."""
        return self._ring.process_state(self.number) == EXITED

    def exit_status(self) -> int | None:
        """What it said; else what the kernel says, whether its parent has asked for it (reaped it)
        or not; else None. 0-255, or negative: the signal that killed it."""
        if self.said_so():
            return self._ring.process_exit_status(self.number)
        if self.pidfd is None:
            return None
        status = reaped_status(self.pidfd)
        if status is None:
            stat = read_stat(self.pid)
            # one that is reaped between the two questions is asked again
            status = stat.exit_code if stat and stat.zombie else reaped_status(self.pidfd)
        return None if status is None else os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


class Processes:
    """All of them, in the order in which they registered."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._poll = select.poll()
        self._checked = 0.0
        self._left_checked = 0.0
        self._turn = 0
        self._starting: list[int] = []
        self.count = 0  # registered so far
        self.running: list[Process] = []  # those whose end has not been dealt with
        self.saved: set[int] = set()  # numbers of the others
        self._lost = 0  # of the saved

    def look(self) -> list[Process]:
        """Takes up the processes that have registered since the last look, and returns them."""
        while self._ring.process_state(self.count) != NONE:
            self._starting.append(self.count)
            self.count += 1
        new: list[Process] = []
        starting, self._starting = self._starting, []
        for number in starting:
            state = self._ring.process_state(number)
            if state == STARTING and self._ring.process_alive(number):
                self._starting.append(number)
            elif state in (STARTING, SAVED):  # died while it registered; saved by a dumper before this one
                self._is_saved(number)
            else:
                watch = len(self.running) + len(new) < MAX_WATCHED
                new.append(Process(self._ring, number, watch))
        for process in new:
            if process.pidfd is not None:
                self._poll.register(process.pidfd, select.POLLIN)
        self.running += new
        return new

    def ended(self, now: float) -> list[Process]:
        """Those of the running that have ended. Whether one died without a word is looked at a few
        times a second, and when `wait` has heard of it; whether one has become another program, of
        one after the other, because that takes longer."""
        if now - self._checked < CHECK_SECONDS:
            return [process for process in self.running if process.said_so()]
        self._checked = now
        ended = [process for process in self.running if process.ended()]
        if self.running and now - self._left_checked >= LEFT_SECONDS:
            self._left_checked = now
            self._turn += 1
            process = self.running[self._turn % len(self.running)]
            if process.has_left():
                process.left_at = process.left_at or now
                if now - process.left_at >= RETURN_SECONDS and process not in ended:
                    ended.append(process)
        return ended

    def done(self, processes: list[Process]) -> None:
        """All of these has been saved."""
        for process in processes:
            self.running.remove(process)
            self._is_saved(process.number)
            if process.pidfd is not None:
                self._forget(process.pidfd)
            process.close()

    def lost(self) -> int:
        """Records that all of them have dropped."""
        return self._lost + sum(self._ring.process_lost(process.number) for process in self.running)

    def _is_saved(self, number: int) -> None:
        self.saved.add(number)
        self._lost += self._ring.process_lost(number)

    def over(self) -> bool:
        """True: there has been one, and none is left."""
        return bool(self.count) and not self.running and not self._starting

    def all_ended(self) -> bool:
        """True: nobody writes to the ring."""
        return not self._starting and all(process.ended() for process in self.running)

    def wait(self, seconds: float) -> None:
        """Waits, but no longer than until one of them ends."""
        for pidfd, _ in self._poll.poll(seconds * 1000):
            self._forget(pidfd)  # it would be ready from now on
            self._checked = 0.0

    def _forget(self, pidfd: int) -> None:
        with suppress(KeyError):
            self._poll.unregister(pidfd)
