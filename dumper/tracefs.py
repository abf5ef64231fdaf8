"""The kernel's tracefs: where it is, which events it has, and a private instance for a recording.

An instance has its own buffers, events, filters and clock, so that it disturbs no other user of
tracefs. It has the name of the recording's ring. The kernel does not remove an instance that is
held open, so that whoever finds one left behind may simply try.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache

FOLDERS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
PREFIX = "pytrace-"
CLOCK = "x86-tsc"  # the hook's own: csrc/ring/clock.h
BUFFERS = 64 << 20  # bytes, of all processors together:
BUFFER_LEAST, BUFFER_MOST = 1 << 20, 16 << 20  # of one
FIRST_PID_NAMESPACE = 0xEFFFFFFC  # inode of the pid namespace that the kernel starts with
FSOPEN, FSCONFIG, FSMOUNT = 430, 431, 432  # numbers of system calls, on all machines
FSCONFIG_CREATE, CLOEXEC = 6, 1

# What a group stands for. Of system calls an event begins one and an event ends it.
GROUPS = {
    "sched": (
        "sched:sched_switch",
        "sched:sched_waking",
        "sched:sched_wakeup_new",
        "sched:sched_migrate_task",
        "sched:sched_process_fork",
        "sched:sched_process_exec",
        "sched:sched_process_exit",
    ),
    "syscalls": ("syscalls:*",),
    "faults": ("exceptions:page_fault_user", "exceptions:page_fault_kernel"),
    "signals": ("signal:signal_generate", "signal:signal_deliver"),
}


class Unavailable(Exception):
    """Kernel events cannot be recorded. Its text says why, and what to do."""


class UnknownEvent(Unavailable):
    """This kernel has no such event."""


class BadFilter(Unavailable):
    """Its text has what the kernel says."""


def _write(path: str, text: str, append: bool = False) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC))
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


@cache
def _mount() -> str | None:
    """A tracefs that is mounted nowhere: it goes with this process. None: it cannot be had."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    context = libc.syscall(FSOPEN, b"tracefs", CLOEXEC)
    if context < 0:
        return None
    try:
        if libc.syscall(FSCONFIG, context, FSCONFIG_CREATE, None, None, 0) < 0:
            return None
        mounted = libc.syscall(FSMOUNT, context, CLOEXEC, 0)
    finally:
        os.close(context)
    return f"/proc/self/fd/{mounted}" if mounted >= 0 else None


def find(clock: str = CLOCK) -> str:
    """The folder of a tracefs that can be used, with this clock. Raises Unavailable."""
    folder = _find()
    try:
        clocks = _read(f"{folder}/trace_clock").decode()
    except OSError as error:
        raise Unavailable(f"{error.filename}: {error.strerror}; that takes root") from None
    if clock not in clocks:
        raise Unavailable(f"its clock {clock}, by which events are put in order, exists on x86-64 alone")
    return folder


def _find() -> str:
    """The same, whatever its clocks are."""
    if os.stat("/proc/self/ns/pid").st_ino != FIRST_PID_NAMESPACE:
        raise Unavailable(
            "this container has process numbers of its own, which the kernel's events do not know;"
            " record outside of it: pytrace kernel --pid PID"
        )
    for folder in FOLDERS:
        if os.access(f"{folder}/instances", os.W_OK, effective_ids=True):
            return folder
    if (
        os.geteuid() == 0
        and (mounted := _mount())
        and os.access(f"{mounted}/instances", os.W_OK, effective_ids=True)
    ):
        return mounted
    if os.geteuid() != 0:
        raise Unavailable("that takes root: sudo --preserve-env pytrace --kernel ...")
    raise Unavailable(
        "there is no tracefs; mount it: mount -t tracefs nodev /sys/kernel/tracing"
        " (in a container that takes CAP_SYS_ADMIN)"
    )


def events(folder: str, wanted: Iterable[str]) -> list[str]:
    """The events (`system:event`) that groups and names stand for; names may have `*`. Raises
    Unavailable for a name that this kernel does not have."""
    import fnmatch

    found: dict[str, None] = {}
    for word in wanted:
        for pattern in GROUPS.get(word, (word,)):
            system, _, name = pattern.partition(":")
            if "*" not in name and "?" not in name:
                if not os.path.exists(f"{folder}/events/{system}/{name}/format"):
                    raise UnknownEvent(f"this kernel has no event {pattern}; see {folder}/available_events")
                found[pattern] = None
                continue
            try:
                names = sorted(os.listdir(f"{folder}/events/{system}"))
            except OSError:
                message = f"this kernel has no events {pattern}; see {folder}/available_events"
                raise UnknownEvent(message) from None
            matching = [each for each in names if fnmatch.fnmatchcase(each, name)]
            found |= {f"{system}:{each}": None for each in matching if each not in ("enable", "filter")}
    return list(found)


def remove_left_behind(folder: str, shared: Iterable[str]) -> None:
    """Removes the instances of recordings that are over: their ring is in none of the folders
    `shared`."""
    with suppress(OSError):
        for name in os.listdir(f"{folder}/instances"):
            if name.startswith(PREFIX) and not any(os.path.exists(f"{each}/{name}") for each in shared):
                with suppress(OSError):  # EBUSY: it is in use
                    os.rmdir(f"{folder}/instances/{name}")


def _place(event: str) -> str:
    """Of `system:event`, or of all events of a system (`system:*`)."""
    return "events/" + event.removesuffix(":*").replace(":", "/")


class Instance:
    """A private instance."""

    def __init__(self, folder: str, name: str, clock: str = CLOCK) -> None:
        """Makes it, or takes up the one that a dumper before this one has made. Raises OSError."""
        self.top = folder
        self.folder = f"{folder}/instances/{name}"
        try:
            os.mkdir(self.folder)
            self.is_new = True
        except FileExistsError:
            self.is_new = False
        try:
            if self.is_new:
                self.write("tracing_on", "0")
                self.write("trace_clock", clock)
                size = BUFFERS // max(1, len(self.processors()))
                self.write("buffer_size_kb", str(max(BUFFER_LEAST, min(BUFFER_MOST, size)) >> 10))
        except OSError:
            self.remove()
            raise

    def write(self, name: str, text: str, append: bool = False) -> None:
        """Raises OSError."""
        _write(f"{self.folder}/{name}", text, append)

    def read(self, name: str) -> bytes:
        """Raises OSError."""
        return _read(f"{self.folder}/{name}")

    def processors(self) -> list[int]:
        return sorted(int(name[3:]) for name in os.listdir(f"{self.folder}/per_cpu"))

    def open_pages(self, processor: int) -> int:
        """A descriptor of the processor's pages. Raises OSError."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(f"{self.folder}/per_cpu/cpu{processor}/trace_pipe_raw", flags)

    def open_stats(self, processor: int) -> int:
        """A descriptor of the processor's counts. Raises OSError."""
        return os.open(f"{self.folder}/per_cpu/cpu{processor}/stats", os.O_RDONLY | os.O_CLOEXEC)

    def format(self, event: str) -> bytes:
        """The format file of system:event. Raises OSError."""
        return _read(f"{self.top}/events/{event.replace(':', '/')}/format")

    def filter(self, event: str, filter: str) -> None:
        """Gives system:event a filter; "": none. Raises OSError, and BadFilter."""
        if not filter:
            return
        path = _place(event) + "/filter"
        try:
            self.write(path, filter)
        except OSError:
            said = self.read(path).decode("utf-8", "replace").strip()
            raise BadFilter(f"the kernel does not take this filter for {event}:\n{said}") from None

    def enable(self, event: str) -> None:
        """Switches on system:event, or all events of a system (`system:*`). Raises OSError."""
        self.write(_place(event) + "/enable", "1")

    def remove(self) -> None:
        """Its files must be closed. If somebody else still has one open, the next recording removes
        it."""
        with suppress(OSError):
            self.write("tracing_on", "0")
        with suppress(OSError):
            os.rmdir(self.folder)
