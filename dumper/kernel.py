"""Kernel events of the recorded processes: from an instance of tracefs to bodies of segments.

Each pass of the pump drains the kernel's buffers, and makes records of their events
(csrc/kernel/record.h). The kernel's buffer stands in for the ring: it outlives a dumper that dies,
and the next one goes on with it. docs/kernel.md tells the whole.
"""

import errno
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from pytracer._core import ffi, lib

from .definitions import CodeRow
from .ring import EVENTS, Chunk, Ring
from .tracefs import Instance, Unavailable, events, find, remove_left_behind

PLACE = -1  # of a chunk that is not in the ring
FIRST_NUMBER = lib.RING_PROCESSES  # of processes that are in no ring
DRAIN_MOST = 64 << 20  # bytes that are in memory; the rest stays in the kernel's buffers
# Events that tell of another thread, and by which field. The first two tell of births.
BIRTH = ("task:task_newtask", "pid")
END = "sched:sched_process_exit"
TOLD = {
    "sched:sched_switch": "next_pid",
    "sched:sched_waking": "pid",
    "sched:sched_wakeup": "pid",
    "sched:sched_wakeup_new": "pid",
    "sched:sched_migrate_task": "pid",
    "signal:signal_generate": "pid",
}
TypeRow = tuple[int, str, str | None, str | None]
ThreadRow = tuple[int, int, int, str, str]


class Source(Protocol):
    """Where events come from: an instance of tracefs, or perf.py."""

    is_new: bool  # False: a dumper before this one began it

    def read(self, name: str) -> bytes: ...
    def write(self, name: str, text: str) -> None: ...
    def format(self, event: str) -> bytes: ...
    def remove(self) -> None: ...


class NewProcess(NamedTuple):
    """A process that no hook has registered."""

    number: int
    pid: int
    parent: int | None
    command: str


class Event(NamedTuple):
    """A code: its system, its name, and the names of its fields."""

    system: str
    name: str
    fields: list[str]


def field_names(format: bytes) -> list[str]:
    """The names of the fields in a format file, without the common ones."""
    names = []
    for line in format.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text.startswith("field:") and ";" in text:
            declaration = text[6 : text.index(";")]
            if "__data_loc" not in declaration and "__rel_loc" not in declaration:
                declaration = declaration.partition("[")[0]
            name = declaration.split()[-1].lstrip("*")
            if not name.startswith("common_"):
                names.append(name)
    return names


class Kernel:
    """The kernel events of a recording."""

    def __init__(
        self, ring: Ring, wanted: Iterable[str], pids: Iterable[int], filter: str = "", all: bool = False
    ) -> None:
        """wanted: groups and names of events. pids: of processes, whose children are followed. all:
        those of every process instead. Raises Unavailable."""
        folder = find()
        path = os.fsdecode(ring.path)
        remove_left_behind(folder, {"/dev/shm", "/tmp", os.path.dirname(path)})
        names = events(folder, wanted)
        self._prepare(ring, all)
        try:
            self._instance: Source = Instance(folder, os.path.basename(path))
        except OSError as error:
            raise Unavailable(self._why(error)) from None
        try:
            self._open(names, filter)
            self._begin(list(pids))
        except OSError as error:
            self.close()
            raise Unavailable(self._why(error)) from None
        except BaseException:
            self.close()
            raise

    def _prepare(self, ring: Ring, all: bool) -> None:
        self._ring = ring
        self._all = all
        self._events: dict[int, Event] = {}  # by id
        self._tgids: dict[int, int] = {}  # by tid
        self._processes: dict[int, int] = {}  # numbers by pid, of those that have got a stream
        self._made_up = 0  # processes that are in no ring
        self._streams: dict[int, tuple[int, int]] = {}  # process's number and tid
        self.new_threads: list[ThreadRow] = []
        self.new_codes: list[CodeRow] = []
        self._waiting: dict[int, Any] = {}  # streams that no row has been made of
        self.new_processes: list[NewProcess] = []
        self.types: list[TypeRow] = []

    @staticmethod
    def _why(error: OSError) -> str:
        if error.errno == errno.EPERM:
            return f"the kernel does not allow it ({error.strerror}); a locked-down kernel shows no events"
        return f"{error.filename or 'tracefs'}: {error.strerror}"

    def _make(self, page: bytes) -> None:
        """The part in C; page: the description of pages. Raises MemoryError."""
        self._errors = [ffi.new("char[]", os.fsencode(errno.errorcode.get(n, ""))) for n in range(134)]
        self._error_names = ffi.new("char *[]", self._errors)
        numbers = [lib.ring_next_number(self._ring.raw) for _ in range(2)]
        self.types = [(numbers[0], "int", None, None), (numbers[1], "address", None, None)]
        made = lib.kernel_new(
            self._ring.raw, page, len(page), self._error_names, len(self._errors), *numbers, self._all
        )
        if not made:
            raise MemoryError
        self._kernel = ffi.gc(made, lib.kernel_free)
        self._body = ffi.new("struct kernel_body *")
        self._birth = ffi.new("struct kernel_birth *")
        self._number = ffi.new("uint32_t *")
        self._id = ffi.new("uint32_t *")

    def _open(self, names: list[str], filter: str) -> None:
        """Raises OSError, MemoryError."""
        self._make(self._instance.read("../../events/header_page"))
        ids: dict[str, int] = {}
        for name in names:
            ids[name] = self._add_event(name)
        for name, enter in ids.items():
            if name.startswith("syscalls:sys_enter_"):
                leave = ids.get(name.replace("sys_enter_", "sys_exit_"))
                if leave is not None:
                    lib.kernel_pair(self._kernel, enter, leave)
        for name, field in TOLD.items():
            if name in ids:
                lib.kernel_tells_of(self._kernel, ids[name], field.encode(), False)
        birth = ids.get(BIRTH[0])
        if birth is None:
            birth = self._add_event(BIRTH[0], shown=False)
        lib.kernel_tells_of(self._kernel, birth, BIRTH[1].encode(), True)
        end = ids.get(END)
        lib.kernel_tells_end(self._kernel, self._add_event(END, shown=False) if end is None else end)
        self._enabled = self._together({*names, BIRTH[0], END})
        self._unfiltered = {BIRTH[0], *({END} - {*names})}
        self._filter = filter

    def _add_event(self, name: str, shown: bool = True) -> int:
        format = self._instance.format(name)
        system, _, event = name.partition(":")
        role = lib.KERNEL_EVENT
        if system == "syscalls":
            role = lib.KERNEL_ENTER if event.startswith("sys_enter_") else lib.KERNEL_EXIT
        number = int(lib.kernel_add_event(self._kernel, format, len(format), role, shown))
        if number < 0:
            raise OSError(-number, "its format file cannot be read", name)
        fields = field_names(format)
        if role != lib.KERNEL_EVENT:
            event = event.removeprefix("sys_enter_").removeprefix("sys_exit_")
            fields = [field for field in fields if field != "__syscall_nr"]
        self._events[number] = Event(system, event, fields)
        return number

    def _together(self, names: set[str]) -> list[str]:
        """All system calls are switched on with one word."""
        calls = {name for name in names if name.startswith("syscalls:")}
        if len(calls) > 100:
            return ["syscalls:*", *sorted(names - calls)]
        return sorted(names)

    def _begin(self, pids: list[int]) -> None:
        """Raises OSError."""
        instance = self._instance
        assert isinstance(instance, Instance)
        for processor in instance.processors():
            with suppress(FileNotFoundError):
                fd = instance.open_pages(processor)
                stats = instance.open_stats(processor)
                if lib.kernel_add_processor(self._kernel, processor, fd, stats):
                    os.close(fd)
                    os.close(stats)
                    raise MemoryError
        # a dumper that the program has started would record itself
        for thread in os.listdir("/proc/self/task"):
            instance.write("set_event_notrace_pid", thread, append=True)
        instance.write("options/event-fork", "1")
        if instance.is_new:
            threads = [] if self._all else [tid for pid in pids for tid in tree(pid)]
            if threads:
                instance.write("set_event_pid", " ".join(map(str, threads)))
            elif not self._all:
                raise FileNotFoundError(errno.ESRCH, "no such process", str(pids))
            for name in self._enabled:
                instance.filter(name, "" if name in self._unfiltered else self._filter)
            for name in self._enabled:
                instance.enable(name)
            instance.write("tracing_on", "1")
        else:
            lib.kernel_go_on(self._kernel)
            listed = instance.read("set_event_pid").split()
            threads = [int(word) for word in listed if word.isdigit()]
        for tid in threads:
            if lib.kernel_add_thread(self._kernel, tid):
                raise MemoryError

    @property
    def follows(self) -> bool:
        """True: a dumper before this one has begun, and has died."""
        return not self._instance.is_new

    # ---- a pass -------------------------------------------------------------------------------

    def drain(self) -> None:
        """To be called before the look at the ring. Raises OSError, MemoryError."""
        self._check(lib.kernel_drain(self._kernel, DRAIN_MOST))

    def _drain_all(self) -> None:
        """Nothing comes any more, so that the kernel's buffers bound it."""
        self._check(lib.kernel_drain(self._kernel, ffi.cast("size_t", -1)))

    def make(self, ring: Ring, chunks: Iterable[Chunk], all: bool = False) -> None:
        """Records of the events that were drained; chunks: what is in the ring, as it was looked at
        after that. all: nothing will come any more. Raises MemoryError."""
        own = [chunk for chunk in chunks if chunk.kind == EVENTS and chunk.used]
        for chunk in sorted(own, key=lambda chunk: chunk.key):
            self._tgids.setdefault(chunk.tid, ring.process_pid(chunk.process))
            self._check(lib.kernel_follow(self._kernel, ring.view(chunk)))
        self._check(lib.kernel_make(self._kernel, all))
        birth = self._birth
        while lib.kernel_next_birth(self._kernel, birth):
            self._waiting[birth.stream] = (birth.tid, birth.parent, birth.is_processor, birth.is_process)

    def _check(self, answer: int) -> None:
        if answer == -errno.ENOMEM:
            raise MemoryError
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer), "trace_pipe_raw")

    def bodies(self, live: bool, numbers: Mapping[int, int]) -> list[Chunk]:
        """The bodies to store, as chunks; with `live` those that are still written, too. numbers:
        of registered processes, by pid."""
        body = self._body
        chunks = []
        lib.kernel_first_body(self._kernel)
        while lib.kernel_next_body(self._kernel, live, body):
            process, _ = self._stream(body.stream, numbers)
            chunks.append(
                Chunk(
                    place=PLACE,
                    room=body.size,
                    process=process,
                    sealed=body.whole,
                    kind=EVENTS,
                    stream=body.stream,
                    sequence=body.sequence,
                    used=body.size,
                    records=body.records,
                    base_time=body.base_time,
                    last_time=body.last_time,
                    base_depth=body.base_depth,
                    min_depth=body.min_depth,
                    lost_before=0,
                    tid=body.tid,
                    body=body.body,
                )
            )
        return chunks

    def stored(self, chunk: Chunk) -> None:
        """The chunk is committed as it was."""
        lib.kernel_stored(self._kernel, chunk.stream, chunk.sequence, chunk.records)

    # ---- definitions --------------------------------------------------------------------------

    def learn(self) -> bool:
        """Puts what is new into the lists, which keep it until `defined`: the database may be
        locked. Returns whether there is anything."""
        self.new_codes.extend(self._codes())
        return bool(self.new_processes or self.new_codes or self.new_threads or self.types)

    def defined(self) -> None:
        """All of it is committed."""
        for rows in (self.new_processes, self.new_codes, self.new_threads, self.types):
            rows.clear()

    def _codes(self) -> Iterator[CodeRow]:
        while lib.kernel_next_code(self._kernel, self._number, self._id):
            event = self._events[self._id[0]]
            names = "[" + ", ".join(f'"{name}"' for name in event.fields) + "]"
            yield CodeRow(
                number=self._number[0],
                module=event.system,
                func=event.name,
                file="",
                line=0,
                arguments=names,
                flags=0,
                language="kernel",
                mine=False,
                variables="[]",
                object=None,
                build_id=None,
                address=None,
            )

    def _stream(self, stream: int, numbers: Mapping[int, int]) -> tuple[int, int]:
        known = self._streams.get(stream)
        if known is not None:
            return known
        tid, parent, is_processor, is_process = self._waiting.pop(stream)
        if is_processor:
            process = 0
        else:
            pid = self._tgid(tid, parent, is_process)
            process = self._process(pid, parent, numbers, is_process and pid == tid)
        self._streams[stream] = process, tid
        kind = "processor" if is_processor else "kernel"
        name = f"cpu{tid}" if is_processor else thread_name(tid)
        self.new_threads.append((stream, process, tid, name, kind))
        return process, tid

    def _tgid(self, tid: int, parent: int, is_process: bool) -> int:
        if is_process:
            self._tgids[tid] = tid
        elif parent:  # it has begun: the number may have been another thread's before
            self._tgids[tid] = self._tgids.get(parent) or self._tgid(parent, 0, False)
        elif tid not in self._tgids:
            self._tgids[tid] = tgid(tid) or tid
        return self._tgids[tid]

    def _process(self, pid: int, parent: int, numbers: Mapping[int, int], begins: bool) -> int:
        """The number of a process. begins: it is another one than what had this pid before."""
        before = self._processes.get(pid)
        known = numbers.get(pid)
        if known is None or (begins and known == before):
            known = None if begins else before
        if known is None:
            known = FIRST_NUMBER + self._made_up
            self._made_up += 1
            above = self._tgids.get(parent)
            number = None if above is None else self._processes.get(above, numbers.get(above))
            self.new_processes.append(NewProcess(known, pid, number, command(pid)))
        self._processes[pid] = known
        return known

    def made_up(self) -> list[int]:
        """The numbers of processes that are in no ring."""
        return list(range(FIRST_NUMBER, FIRST_NUMBER + self._made_up))

    # ---- the end ------------------------------------------------------------------------------

    def stop(self, chunks: Iterable[Chunk]) -> None:
        """Nothing more is recorded; `bodies` has the rest. Raises OSError, MemoryError."""
        with suppress(OSError):
            self._instance.write("tracing_on", "0")
        while True:
            self._drain_all()
            self.make(self._ring, chunks, all=True)
            if not self.counts().bytes:
                break
        lib.kernel_finish(self._kernel)

    def counts(self) -> Any:
        """struct kernel_counts."""
        counts = ffi.new("struct kernel_counts *")
        lib.kernel_count(self._kernel, counts)
        return counts

    def lost(self) -> int:
        """The number of events that the kernel's buffers had no room for."""
        return int(self.counts().lost)

    def close(self) -> None:
        """Leaves nothing behind."""
        kernel = getattr(self, "_kernel", None)
        if kernel is not None:
            ffi.release(kernel)
            self._kernel = None
        self._instance.remove()


def tgid(tid: int) -> int | None:
    """The process that a thread is of."""
    with suppress(OSError), open(f"/proc/{tid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    return None


def thread_name(tid: int) -> str:
    """Its name, or "" if it has ended."""
    with suppress(OSError), open(f"/proc/{tid}/comm", "rb") as file:
        return file.read().rstrip(b"\n").decode("utf-8", "replace")
    return ""


def tree(pid: int) -> list[int]:
    """The threads of a process and of its descendants. [] if there is no such process."""
    threads = []
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    for tid in tids:
        threads.append(int(tid))
        with suppress(OSError), open(f"/proc/{pid}/task/{tid}/children", "rb") as file:
            for child in file.read().split():
                if int(child) != os.getpid():
                    threads += tree(int(child))
    return threads


def command(pid: int) -> str:
    """Its command line, or "" if it has ended."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return shlex.join(os.fsdecode(word) for word in file.read().rstrip(b"\0").split(b"\0"))
    return ""
