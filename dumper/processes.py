"""The processes of a recording: their start, their end, and their exit status."""

import fcntl
import os
import resource
import select
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

from . import pending
from .pending import Stat, is_helper, read_stat
from .ring import EXITED, LEAVING, LEFT, NONE, RUNNING, STARTING, Ring

# linux/pidfd.h: ioctl 11 of the pid file system, and the first size of its struct pidfd_info
PIDFD_GET_INFO = 3 << 30 | 64 << 16 | 0xFF << 8 | 11
PIDFD_INFO_EXIT = 1 << 3
PIDFD_INFO_SIZE = 64
PIDFD_INFO_EXIT_CODE = 60  # offset of the last field, int32_t

UNSAVED = (RUNNING, EXITED, LEAVING, LEFT)  # states: the last records may be in the ring

CHECK_SECONDS = 0.1
MAX_WATCHED = 500  # processes of which a file descriptor is held
OWN_FILES = 12  # descriptors for the dumper itself: database, log, ring, /proc, modules


def most_watched() -> int:
    """The number of processes whose file descriptors may be held (RLIMIT_NOFILE)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_WATCHED if soft == resource.RLIM_INFINITY else max(0, min(MAX_WATCHED, soft - OWN_FILES))


def process_exists(pid: int) -> bool:
    """Whether a process has this pid; it may be a zombie."""
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
        """watch: hold a file descriptor of the process, which tells when and how it ends."""
        self.number = number
        self.pid = ring.process_pid(number)
        self.start_time = ring.process_start_time(number)
        self.parent = ring.process_parent(number)
        self.registered_ns = ring.process_registered_ns(number)
        self._ring = ring
        self._ended_ns = 0
        self.pidfd: int | None = None
        if not watch:
            return
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except (OSError, OverflowError):
            return  # it is reaped already, descriptors are all in use, or this is no pid
        try:
            same = self._stat() is not None
        except OSError:
            same = False  # not known
        if not same:
            self.close()  # another process has its pid now

    def _stat(self) -> Stat | None:
        """None: the process is gone, and its pid may be another's. Raises OSError if /proc cannot
        be read."""
        stat = read_stat(self.pid)
        return stat if stat is not None and self.start_time in (0, stat.start_time) else None

    def ended(self) -> bool:
        """True: the process will not write to its chunks any more. If somebody has written over its
        slot in the ring, the answer comes from memory."""
        if self._ring.process_state(self.number) in UNSAVED:
            return self.said_so() or not self._ring.process_alive(self.number)
        try:
            stat = self._stat()
        except OSError:
            return False  # it may live
        return stat is None or stat.zombie

    def replaced(self) -> bool:
        """True: it runs as another program (exec), recorded as another process or not at all."""
        return self._ring.process_replaced(self.number)

    def said_so(self) -> bool:
        """True: it has said that it ends, and writes no more."""
        return self._ring.process_state(self.number) == EXITED

    def leaving(self) -> bool:
        """True: it has said that it ends, and waits; but its other threads may still write."""
        return self._ring.process_state(self.number) == LEAVING

    def left(self) -> bool:
        """True: it is leaving, and need not wait any more."""
        return self._ring.process_state(self.number) in (LEAVING, LEFT)

    def exit_status(self) -> int | None:
        """The status that it reported itself; else the kernel's, also if its parent has reaped it;
        else None. 0-255, or negative: the signal that killed it."""
        if self._ring.process_state(self.number) in (EXITED, LEAVING, LEFT):
            return self._ring.process_exit_status(self.number)
        if self.pidfd is None:
            return None
        status = reaped_status(self.pidfd)
        if status is None:
            try:
                stat = self._stat()
            except OSError:
                stat = None
            # ask again, as it may have been reaped between the two questions
            status = stat.exit_code if stat and stat.zombie else reaped_status(self.pidfd)
        return None if status is None else os.waitstatus_to_exitcode(status)

    def ended_ns(self) -> int:
        """The time when it said that it ends, else of the first call of this; ns since 1970. Call
        it as soon as the end is seen: the time of saving does not belong to the process."""
        if not self._ended_ns:
            now, said = self._ring.now_ns(), self._ring.process_ended_ns(self.number)
            self._ended_ns = said if self.registered_ns <= said <= now else now
        return self._ended_ns

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


class Processes:
    """All processes of the recording, in the order in which they registered."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._poll = select.poll()
        self._checked = 0.0
        self._program = 0  # pid of the first process
        self._program_fds: set[int] = set()  # of the program, while it runs
        self._starting: list[int] = []
        self.count = 0  # registered so far
        self.running: list[Process] = []  # processes whose end has not been handled
        # processes that wait at their end until their records are saved, as of the last look
        self.leaving: list[Process] = []
        self.saved: set[int] = set()  # numbers of all other processes
        self._lost = 0  # of the saved
        self._last: dict[tuple[int, int], int] = {}  # by pid and start time: the last number
        self._over_since = 0.0  # time.monotonic() when all had ended; 0.0: not yet
        self._most_watched = most_watched()
        # by pid: when a process became another program (exec)
        self._replaced: dict[int, float] = {}

    def look(self, now: float) -> tuple[list[Process], list[Process]]:
        """The processes that have registered since the last look, and the running ones that have
        ended.

        A few times a second it checks whether a process died without a word, or has become another
        program. It also checks when `wait` has heard of an end, and when the program itself has
        ended: the program waits to hear whether it was the last."""
        new = self._take_up()
        self.leaving = [process for process in self.running if process.leaving()]
        said_so = [process for process in self.running if process.said_so()]
        if any(process.pid == self._program for process in said_so):
            new += self._take_up()  # the processes that it started before
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
        watched = sum(process.pidfd is not None for process in self.running) if starting else 0
        for number in starting:
            state = self._ring.process_state(number)
            if state == STARTING and self._ring.process_alive(number):
                self._starting.append(number)
                continue
            pid = self._ring.process_pid(number)
            self._program = self._program or pid
            self._last[pid, self._ring.process_start_time(number)] = number
            self._replaced.pop(pid, None)
            if state not in UNSAVED:
                # it died while it registered, an earlier dumper saved it, or the slot is written
                # over
                self._is_saved(number)
            else:
                new.append(Process(self._ring, number, watch=watched < self._most_watched))
                watched += new[-1].pidfd is not None
        for process in new:
            if process.pidfd is not None:
                self._poll.register(process.pidfd, select.POLLIN)
                if process.pid == self._program:
                    self._program_fds.add(process.pidfd)
        self.running += new
        if new:
            self._over_since = 0.0
        return new

    def done(self, processes: list[Process]) -> None:
        """Everything of these processes has been saved."""
        for process in processes:
            self.running.remove(process)
            self._is_saved(process.number)
            if process.replaced() and self._last[process.pid, process.start_time] == process.number:
                self._replaced[process.pid] = time.monotonic()
            if process.pidfd is not None:
                self._forget(process.pidfd)
            process.close()

    def lost(self) -> int:
        """The number of records that all processes have dropped."""
        return self._lost + sum(self._ring.process_lost(process.number) for process in self.running)

    def _is_saved(self, number: int) -> None:
        self.saved.add(number)
        self._lost += self._ring.process_lost(number)

    def numbers(self) -> dict[int, int]:
        """By pid, the number of the process that registered last."""
        return {pid: number for (pid, _), number in self._last.items()}

    def over(self) -> bool:
        """True: there has been a process, and none is left."""
        none_new = self._ring.process_state(self.count) == NONE
        return bool(self.count) and none_new and not self.running and not self._starting

    def expected(self) -> bool:
        """True: another process may be on its way. To be called when all known ones have ended."""
        now = time.monotonic()
        self._over_since = self._over_since or now
        try:
            if any(self._pending()):
                return True
        except OSError:  # after this time no process is young that was so at the end
            if now - self._over_since < pending.YOUNG_SECONDS:
                return True
        return not self.over()  # one has registered meanwhile

    def others_go_on(self) -> bool:
        """True: the program has ended, but processes run, or are about to register, that outlive
        it."""
        running = [process for process in self.running if not process.left() and not process.ended()]
        helpers = {process.number for process in running if is_helper(process.pid)}
        # a process that a helper forks has the helper's command
        if any(process.number not in helpers or process.parent in helpers for process in running):
            return True
        coming = [self._ring.process_pid(number) for number in self._starting]
        with suppress(OSError):
            coming += [pid for pid, certain in self._pending() if certain]
        return not all(map(is_helper, coming))

    def _pending(self) -> Iterator[tuple[int, bool]]:
        return pending.pending(self._ring.path, self._replaced, lambda *process: process in self._last)

    def all_ended(self) -> bool:
        """True: no process writes to the ring."""
        return not self._starting and all(process.ended() for process in self.running)

    def wait(self, seconds: float) -> None:
        """Waits for `seconds`, or until the program ends; after that, until any other process ends.
        Not every end wakes the dumper: many processes that live for a moment would lose time to
        it."""
        end = time.monotonic() + seconds
        while died := self._poll.poll(max(0.0, end - time.monotonic()) * 1000):
            for pidfd, _ in died:
                self._forget(pidfd)  # it would stay ready
            self._checked = 0.0
            if not self._program_fds:
                return

    def _forget(self, pidfd: int) -> None:
        self._program_fds.discard(pidfd)
        with suppress(KeyError):
            self._poll.unregister(pidfd)
