"""The processes of a recording: which there are, which have ended, and how."""

import fcntl
import os
import select
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

from .newcomers import is_helper, newcomers, read_stat
from .ring import EXITED, NONE, RUNNING, STARTING, Ring

# linux/pidfd.h: struct pidfd_info in its first size, and ioctl 11 of the pid file system on it
PIDFD_GET_INFO = 3 << 30 | 64 << 16 | 0xFF << 8 | 11
PIDFD_INFO_EXIT = 1 << 3
PIDFD_INFO_SIZE = 64
PIDFD_INFO_EXIT_CODE = 60  # offset of the last field, int32_t

CHECK_SECONDS = 0.1
MAX_WATCHED = 500  # leaves file descriptors for the ring, which needs them to see who lives


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
        self.start_time = ring.process_start_time(number)
        self.parent = ring.process_parent(number)
        self.registered_ns = ring.process_registered_ns(number)
        self._ring = ring
        self.pidfd: int | None = None
        if not watch:
            return
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except (OSError, OverflowError):
            return  # it has been reaped already, there are too many, or this is no pid
        stat = read_stat(self.pid)
        if stat is None or self.start_time not in (0, stat.start_time):
            self.close()  # another process has its pid now

    def ended(self) -> bool:
        """True: it will not write to its chunks any more. Where somebody has written over what the ring
        has of it, what is remembered tells."""
        if self._ring.process_state(self.number) in (RUNNING, EXITED):
            return self.said_so() or not self._ring.process_alive(self.number)
        stat = read_stat(self.pid)
        return stat is None or stat.zombie or self.start_time not in (0, stat.start_time)

    def replaced(self) -> bool:
        """True: it runs, but as another program (exec), recorded as another process or not at all."""
        return self._ring.process_replaced(self.number)

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
        self._program = 0  # pid of the first
        self._program_fds: set[int] = set()  # of it, while it runs
        self._starting: list[int] = []
        self.count = 0  # registered so far
        self.running: list[Process] = []  # those whose end has not been dealt with
        self.saved: set[int] = set()  # numbers of the others
        self._lost = 0  # of the saved
        self._last: dict[tuple[int, int], int] = {}  # by pid and start time the last number of each
        self._replaced: dict[int, float] = {}  # pids of those that have become another program, and when

    def look(self, now: float) -> tuple[list[Process], list[Process]]:
        """Those that have registered since the last look, and those of the running that have ended.

        Whether one died without a word, or has become another program, is looked at a few times a second,
        when `wait` has heard of it, and when the program itself has ended, which waits to be told whether
        it was the last."""
        new = self._take_up()
        said_so = [process for process in self.running if process.said_so()]
        if any(process.pid == self._program for process in said_so):
            new += self._take_up()  # all that it started before
        elif now - self._checked < CHECK_SECONDS:
            return new, said_so
        self._checked = now
        return new, [process for process in self.running if process.ended()]

    def _take_up(self) -> list[Process]:
        while self._ring.process_state(self.count) != NONE:
            self._starting.append(self.count)
            self.count += 1
        new: list[Process] = []
        starting, self._starting = self._starting, []
        for number in starting:
            state = self._ring.process_state(number)
            if state == STARTING and self._ring.process_alive(number):
                self._starting.append(number)
                continue
            pid = self._ring.process_pid(number)
            self._program = self._program or pid
            self._last[pid, self._ring.process_start_time(number)] = number
            self._replaced.pop(pid, None)
            if state not in (RUNNING, EXITED):
                # died while it registered; saved by a dumper before this one; or written over
                self._is_saved(number)
            else:
                watch = len(self.running) + len(new) < MAX_WATCHED
                new.append(Process(self._ring, number, watch))
        for process in new:
            if process.pidfd is not None:
                self._poll.register(process.pidfd, select.POLLIN)
                if process.pid == self._program:
                    self._program_fds.add(process.pidfd)
        self.running += new
        return new

    def done(self, processes: list[Process]) -> None:
        """All of these has been saved."""
        for process in processes:
            self.running.remove(process)
            self._is_saved(process.number)
            if process.replaced() and self._last[process.pid, process.start_time] == process.number:
                self._replaced[process.pid] = time.monotonic()
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
        none_new = self._ring.process_state(self.count) == NONE
        return bool(self.count) and none_new and not self.running and not self._starting

    def expected(self) -> bool:
        """True: another one may be on its way. Asked when all that there were are over."""
        if any(self._newcomers()):
            return True
        return not self.over()  # it has registered meanwhile

    def others_go_on(self) -> bool:
        """True: when the program has ended, others run, or are about to register, that do not end with it."""
        running = [process for process in self.running if not process.ended()]
        helpers = {process.number for process in running if is_helper(process.pid)}
        # what a helper forks has its command
        if any(process.number not in helpers or process.parent in helpers for process in running):
            return True
        coming = [self._ring.process_pid(number) for number in self._starting]
        coming += [pid for pid, certain in self._newcomers() if certain]
        return not all(map(is_helper, coming))

    def _newcomers(self) -> Iterator[tuple[int, bool]]:
        return newcomers(self._ring.path, self._replaced, lambda *process: process in self._last)

    def all_ended(self) -> bool:
        """True: nobody writes to the ring."""
        return not self._starting and all(process.ended() for process in self.running)

    def wait(self, seconds: float) -> None:
        """Waits, but no longer than until the program ends; when it has ended, than until another one does.
        Woken by each of many that live for a moment, the dumper would take their time."""
        end = time.monotonic() + seconds
        while died := self._poll.poll(max(0.0, end - time.monotonic()) * 1000):
            for pidfd, _ in died:
                self._forget(pidfd)  # it would be ready from now on
            self._checked = 0.0
            if not self._program_fds:
                return

    def _forget(self, pidfd: int) -> None:
        self._program_fds.discard(pidfd)
        with suppress(KeyError):
            self._poll.unregister(pidfd)
