"""Kernel events for scripts: `from pytracer import kernel`; docs/kernel.md has examples.

It takes root, or whatever lets a process use tracefs. An instance of tracefs is made for each
recording, and goes with it; one that a killed script has left behind goes with the next recording.
"""

import errno
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, overload

from ._core import ffi, lib
from .dumper import tracefs
from .dumper.kernel import tree
from .dumper.tracefs import BadFilter, Instance, Unavailable, UnknownEvent

__all__ = [
    "BadFilter",
    "Event",
    "Field",
    "Record",
    "Records",
    "Unavailable",
    "UnknownEvent",
    "events",
    "record",
    "systems",
]

CLOCK = "mono"  # time.monotonic_ns()
LOOK_SECONDS = 0.05  # between two looks at the kernel's buffers
PAGES_MOST = 1024  # that are taken at once; the rest stays in the kernel's buffers


class Field(NamedTuple):
    """A field of an event."""

    name: str
    type: str  # as in C: "pid_t", "char[16]"


def _folder() -> str:
    return tracefs.find(CLOCK)


def systems() -> list[str]:
    """The names of all systems: "block", "sched". Raises Unavailable."""
    folder = f"{_folder()}/events"
    return sorted(name for name in os.listdir(folder) if os.path.isdir(f"{folder}/{name}"))


def events(system: str = "") -> "list[Event]":
    """All events, or those of a system. Raises Unavailable; UnknownEvent for a system that this
    kernel does not have."""
    words = [f"{system}:*"] if system else [f"{each}:*" for each in systems()]
    return [Event(*name.split(":")) for name in tracefs.events(_folder(), words)]


class Event:
    """An event that the kernel has: `Event("sched", "sched_wakeup", filter="comm ~ 'nginx*'")`.

    The filter is in the kernel's own syntax; `record` checks it. Raises UnknownEvent, Unavailable.
    """

    def __init__(self, system: str, name: str, filter: str = "") -> None:
        self.system, self.name, self.filter = system, name, filter
        [self._written] = tracefs.events(_folder(), [f"{system}:{name}".replace("*", "").replace("?", "")])

    @property
    def fields(self) -> list[Field]:
        """Its fields, which a filter may name."""
        with open(f"{_folder()}/events/{self.system}/{self.name}/format") as file:
            return [field for line in file if (field := _field(line)) and field.name[:7] != "common_"]

    def __str__(self) -> str:
        return self._written

    def __repr__(self) -> str:
        filter = f", filter={self.filter!r}" if self.filter else ""
        return f"Event({self.system!r}, {self.name!r}{filter})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and (str(self), self.filter) == (str(other), other.filter)

    def __hash__(self) -> int:
        return hash((str(self), self.filter))


def _field(line: str) -> Field | None:
    """From a line of a format file: `field:char comm[16]; offset:8; size:16; signed:0;`"""
    text = line.strip()
    if not text.startswith("field:"):
        return None
    declaration = text[len("field:") :].partition(";")[0]
    located = declaration.startswith(("__data_loc", "__rel_loc"))
    declaration, bracket, size = declaration.partition("[") if not located else (declaration, "", "")
    type, _, name = declaration.rpartition(" ")
    stars = len(name) - len(name.lstrip("*"))
    return Field(name.lstrip("*"), f"{type}{'*' * stars}{bracket}{size}")


class Record:
    """An event that has happened. Its fields are attributes, too: `record.next_comm`. A field that
    has the name of one of these attributes is in `fields`."""

    __slots__ = ("cpu", "event", "fields", "tid", "time")

    def __init__(self, event: Event, time: int, cpu: int, tid: int, fields: dict[str, Any]) -> None:
        """time: as time.monotonic_ns() has it. tid: the thread in which it happened. fields:
        numbers as int, texts as str, others as bytes."""
        self.event, self.time, self.cpu, self.tid, self.fields = event, time, cpu, tid, fields

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"{self.event} has no field {name!r}") from None

    def __repr__(self) -> str:
        fields = " ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.time / 1e9:.6f} cpu {self.cpu} tid {self.tid} {self.event}: {fields}"


class _Format:
    """How to read the records of an event."""

    def __init__(self, event: Event, text: bytes) -> None:
        self.event = event
        self._format = ffi.new("struct kernel_format *")
        if not lib.kernel_format_parse(text, len(text), self._format):
            raise Unavailable(f"the format file of {event} cannot be read")
        self.id = self._format.id
        count = self._format.field_count
        self._fields = [ffi.addressof(self._format.fields[at]) for at in range(count)]
        self._names = [ffi.string(field.name).decode() for field in self._fields]
        self._number, self._bytes, self._size = (ffi.new(t) for t in ("int64_t *", "uint8_t **", "size_t *"))

    def record(self, found: Any, cpu: int) -> Record:
        """found: struct kernel_event."""
        place = self._format.pid_offset
        tid = int.from_bytes(ffi.buffer(found.data + place, 4), "little") if place + 4 <= found.size else 0
        values = {
            name: self._value(field, found) for name, field in zip(self._names, self._fields, strict=True)
        }
        return Record(self.event, found.time, cpu, tid, values)

    def _value(self, field: Any, found: Any) -> Any:
        if lib.kernel_field_number(field, found.data, found.size, self._number):
            number = int(self._number[0])
            return number if field.is_signed or number >= 0 else number + (1 << 64)
        if not lib.kernel_field_bytes(field, found.data, found.size, self._bytes, self._size):
            return None  # it is cut
        value = bytes(ffi.buffer(self._bytes[0], self._size[0]))
        if field.shape == lib.KERNEL_TEXT:
            return value.partition(b"\0")[0].decode("utf-8", "replace")
        return value


class Records:
    """An iterator of the events that happen, in the order of time. It ends with the processes.
    `with` closes it; so does `close()`."""

    def __init__(self, pids: Iterable[int], fork: bool, wanted: Iterable[Event]) -> None:
        """pids: none: all processes. Raises Unavailable and its kinds; nothing is switched on
        then."""
        self.lost = 0  # events that found no room in the kernel's buffers
        self._ready: deque[Record] = deque()
        self._later: list[Record] = []  # others may come before them
        self._certain = 0  # events before this time are all here
        self._drained = 0
        self._fds: list[int] = []
        self._ends = select.poll()
        self._living: set[int] = set()  # descriptors of processes
        self._over = False
        self._instance: Instance | None = None
        events = list(wanted)
        folder = _folder()
        tracefs.remove_left_behind(folder, ("/dev/shm", "/tmp"))
        try:
            for pid in pids:
                self._watch(pid)
            name = f"{tracefs.PREFIX}script-{os.getpid()}-{os.urandom(4).hex()}"
            self._instance = Instance(folder, name, CLOCK)
            self._open(self._instance, events)
            self._begin(self._instance, list(pids), fork, events)
        except OSError as error:
            self.close()
            raise Unavailable(f"{error.filename or 'tracefs'}: {error.strerror}") from None
        except BaseException:
            self.close()
            raise

    def _watch(self, pid: int) -> None:
        try:
            fd = os.pidfd_open(pid)
        except OSError as error:
            raise Unavailable(f"there is no process {pid} ({error.strerror})") from None
        self._fds.append(fd)
        self._living.add(fd)
        self._ends.register(fd, select.POLLIN)

    def _open(self, instance: Instance, events: list[Event]) -> None:
        page = instance.read("../../events/header_page")
        self._layout = ffi.new("struct kernel_layout *")
        if not lib.kernel_layout_parse(page, len(page), self._layout):
            raise Unavailable("the kernel's pages have a form that is not known")
        self._page, self._found = ffi.new("struct kernel_page *"), ffi.new("struct kernel_event *")
        formats = [_Format(event, instance.format(str(event))) for event in events]
        self._formats = {format.id: format for format in formats}
        for event in events:
            instance.filter(str(event), event.filter)
        self._processors: list[tuple[int, int]] = []
        for processor in instance.processors():
            with suppress(FileNotFoundError):
                fd = instance.open_pages(processor)
                self._fds.append(fd)
                self._processors.append((processor, fd))

    def _begin(self, instance: Instance, pids: list[int], fork: bool, events: list[Event]) -> None:
        # With it the children of those who are left out would be left out, too.
        instance.write("options/event-fork", str(int(fork and bool(pids))))
        if not pids:  # reading its own events would make more of them
            for thread in os.listdir("/proc/self/task"):
                instance.write("set_event_notrace_pid", thread, append=True)
        else:
            threads = [tid for pid in pids for tid in (tree(pid) if fork else _threads(pid))]
            if not threads:
                raise FileNotFoundError(errno.ESRCH, "no such process", str(pids))
            instance.write("set_event_pid", " ".join(map(str, threads)))
        for event in events:
            instance.enable(str(event))
        instance.write("tracing_on", "1")

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        while not self._ready:
            if self._over:
                self.close()
                raise StopIteration
            self._look()
        return self._ready.popleft()

    def _look(self) -> None:
        """Waits a while, or for the end, and takes what there is."""
        assert self._instance is not None
        for fd, _ in self._ends.poll(LOOK_SECONDS * 1000):
            self._ends.unregister(fd)
            self._living.discard(fd)
            if not self._living:
                self._instance.write("tracing_on", "0")
                self._over = True
        whole = self._take()
        while self._over and not whole:
            whole = self._take()
        limit = float("inf") if self._over else self._certain
        self._later.sort(key=lambda record: record.time)
        count = next((at for at, each in enumerate(self._later) if each.time >= limit), len(self._later))
        self._ready.extend(self._later[:count])
        del self._later[:count]

    def _take(self) -> bool:
        """Takes pages. Returns whether these are all. What is written at this moment may come
        later, so that only events from before the look before are certain to be in order."""
        now, left = time.monotonic_ns(), PAGES_MOST
        for cpu, fd in self._processors:
            while left:
                try:
                    data = os.read(fd, self._layout.page_size)
                except BlockingIOError:
                    break
                if not data:
                    break
                left -= 1
                self._read(cpu, data)
        if left:
            self._certain, self._drained = self._drained, now
        return bool(left)

    def _read(self, cpu: int, data: bytes) -> None:
        """Makes records of a page."""
        bytes = ffi.from_buffer("uint8_t[]", data)
        if not lib.kernel_page_open(self._page, self._layout, bytes, len(data)):
            return
        if self._page.has_missed:
            self.lost += self._page.missed or 1
        while lib.kernel_page_next(self._page, self._found) > 0:
            found = self._found
            format = self._formats.get(int.from_bytes(ffi.buffer(found.data, 2), "little"))
            if format is not None:
                self._later.append(format.record(found, cpu))

    def close(self) -> None:
        """Ends it, and leaves nothing behind."""
        self._over = True
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        if self._instance is not None:
            self._instance.remove()
            self._instance = None

    def __enter__(self) -> "Records":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_instance", None) is not None:
            self.close()


def _threads(pid: int) -> list[int]:
    try:
        return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


@overload
def record(
    pid: int | Iterable[int] | None = None,
    fork: bool = True,
    events: Iterable[Event | str] = (),
    callback: None = None,
) -> Records: ...
@overload
def record(
    pid: int | Iterable[int] | None = None,
    fork: bool = True,
    events: Iterable[Event | str] = (),
    *,
    callback: Callable[[Record], object],
) -> None: ...
def record(
    pid: int | Iterable[int] | None = None,
    fork: bool = True,
    events: Iterable[Event | str] = (),
    callback: Callable[[Record], object] | None = None,
) -> Records | None:
    """The events of a process, or of several; None: of all. fork: those of their children, too.
    events: `Event`s, or texts as --kernel has them: "sched", "sched:sched_switch".

    Without a callback returns an iterator. With one calls it for each event, until the processes
    have ended, or it raises an exception.

    Raises UnknownEvent, BadFilter, or Unavailable, which both are kinds of: nothing is switched on
    then.
    """
    wanted: dict[str, Event] = {}
    for each in events:
        found = [each] if isinstance(each, Event) else _named(each)
        wanted |= {str(event): event for event in found}
    if not wanted:
        raise UnknownEvent("which events? kernel.events() lists them")
    pids = () if pid is None else (pid,) if isinstance(pid, int) else tuple(pid)
    if pid is not None and not pids:
        raise Unavailable("there is no process in this list")
    records = Records(pids, fork, wanted.values())
    if callback is None:
        return records
    with records:
        for one in records:
            callback(one)
    return None


def _named(words: str) -> list[Event]:
    return [Event(*name.split(":")) for name in tracefs.events(_folder(), words.split(","))]
