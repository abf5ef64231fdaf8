"""The ring as the dumper sees it: csrc/ring/ring.h through cffi, with Python's types."""

import os
from typing import Any, NamedTuple

from pytracer._core import ffi, lib

EVENTS: int = lib.CHUNK_EVENTS
DEFINITIONS: int = lib.CHUNK_DEFINITIONS

NONE: int = lib.PROCESS_NONE
STARTING: int = lib.PROCESS_STARTING
RUNNING: int = lib.PROCESS_RUNNING
EXITED: int = lib.PROCESS_EXITED
LEAVING: int = lib.PROCESS_LEAVING
LEFT: int = lib.PROCESS_LEFT

LOST_MAX = 1 << 48
SQL_MAX = (1 << 63) - 1  # larger numbers come of damage, and become this one

STATE_STARTING: int = lib.DUMPER_STARTING
STATE_READY: int = lib.DUMPER_READY
STATE_REFUSED: int = lib.DUMPER_REFUSED
STATE_FINISHED: int = lib.DUMPER_FINISHED


Key = tuple[int, int]  # of a chunk: stream, sequence


class Chunk(NamedTuple):
    """A chunk in use, as it was at the look: struct chunk_view."""

    place: int  # in the ring
    room: int  # bytes that it takes
    process: int
    sealed: bool
    kind: int
    stream: int
    sequence: int
    used: int  # bytes; 0: nothing is published, and the rest is not valid
    records: int
    base_time: int
    last_time: int
    base_depth: int
    min_depth: int
    lost_before: int
    tid: int
    body: Any  # const uint8_t *

    @property
    def key(self) -> Key:
        """Unique in the recording."""
        return self.stream, self.sequence

    def data(self, start: int = 0) -> memoryview:
        """The bytes published at the look, from `start` on; in place, not copied. Valid until the
        chunk is released."""
        return memoryview(ffi.buffer(self.body, self.used))[start:]


class Ring:
    """An attached ring, with the dumper's lock on it. The lock ends with the process."""

    def __init__(self, path: str) -> None:
        """Raises OSError: EBUSY if another dumper holds the ring, EPROTO if it is no ring of
        ours."""
        self.path = os.fsencode(path)
        self._ring = ffi.new("struct ring *")
        lock = ffi.new("int *")
        error = lib.ring_attach(self._ring, os.fsencode(path), lib.RING_DUMPER, lock)
        if error:
            raise OSError(-error, os.strerror(-error), path)
        self.chunk_count: int = self._ring.chunk_count
        self.small_count: int = self._ring.small_count  # of them
        self.size: int = sum(map(self._body_size, range(self.chunk_count)))  # bytes, of all bodies
        self._views = ffi.new("struct chunk_view[]", self.chunk_count)
        self._view = ffi.new("struct chunk_view *")
        self._bad = ffi.new("uint32_t *")
        self._definition = ffi.new("struct definition *")

    @property
    def raw(self) -> Any:
        """struct ring *, for other parts of the C code."""
        return self._ring

    def view(self, chunk: Chunk) -> Any:
        """The chunk as const struct chunk_view *, as it was at the look."""
        view = self._view
        view.stream, view.sequence, view.tid = chunk.stream, chunk.sequence, chunk.tid
        view.base_time, view.base_depth = chunk.base_time, chunk.base_depth
        view.body, view.used = chunk.body, chunk.used
        return view

    def settings(self) -> dict[str, str]:
        """The settings that launcher, hook and dumper share."""
        size = ffi.new("size_t *")
        start = lib.ring_settings(self._ring, size)
        pairs = (os.fsdecode(pair).partition("=") for pair in bytes(ffi.buffer(start, size[0])).split(b"\0"))
        return {name: value for name, _, value in pairs if name}

    def features(self) -> int:
        """The recording's features: bits of csrc/common/feature.h."""
        return int(lib.ring_features(self._ring)) & SQL_MAX

    def epoch(self) -> tuple[int, int]:
        """A moment in ns since 1970, and the same in clock units."""
        return lib.ring_epoch_ns(self._ring), lib.ring_epoch_units(self._ring) & SQL_MAX

    def now_ns(self) -> int:
        """ns since 1970 by the recording's own clock: setting the wall clock changes nothing."""
        return int(lib.ring_now_ns(self._ring))

    def clock_scale(self) -> int:
        """ns per clock unit << 32; 0: nobody has measured it yet."""
        return int(lib.ring_clock_scale(self._ring)) & SQL_MAX

    # ---- chunks ---------------------------------------------------------------------------

    def _body_size(self, place: int) -> int:
        return int(lib.RING_SMALL_CHUNK_SIZE if place < self.small_count else self._ring.chunk_size)

    def look(self, kind: int | None = None) -> tuple[list[Chunk], int]:
        """All chunks in use, or only those of one kind; and the number of chunks that make no
        sense."""
        count = lib.ring_look_all(self._ring, self._views, self._bad)
        chunks = [
            Chunk(
                place=view.index,
                room=self._body_size(view.index),
                process=view.process,
                sealed=view.state == lib.CHUNK_SEALED,
                kind=view.kind,
                stream=view.stream,
                sequence=view.sequence,
                used=view.used,
                records=view.count,
                base_time=view.base_time,
                last_time=view.last_time,
                base_depth=view.base_depth,
                min_depth=view.min_depth,
                lost_before=view.lost_before,
                tid=view.tid,
                body=view.body,
            )
            for view in self._views[0:count]
            if kind is None or view.kind == kind
        ]
        return chunks, self._bad[0]

    def know(self, chunk: Chunk, start: int) -> None:
        """The chunk's definitions from `start` on are committed: no other process need repeat
        them."""
        found, at, end = self._definition, chunk.body + start, chunk.body + chunk.used
        while at := lib.definition_next(at, end, found):
            if found.number:
                lib.ring_known_add(self._ring, found.hash, found.number)

    def release(self, chunk: Chunk) -> None:
        """Frees the chunk. To be called only after COMMIT."""
        lib.ring_release(self._ring, chunk.place)

    # ---- processes ------------------------------------------------------------------------

    def process_state(self, number: int) -> int:
        """One of NONE, STARTING, ... above. Slots are taken in order, and never given back."""
        return int(lib.ring_process_state(self._ring, number)) if number < lib.RING_PROCESSES else NONE

    def process_alive(self, number: int) -> bool:
        """False: nobody will write to the process's chunks any more."""
        return bool(lib.ring_process_alive(self._ring, number))

    def process_replaced(self, number: int) -> bool:
        """True: the process runs, but has become another program (exec)."""
        return bool(lib.ring_process_replaced(self._ring, number))

    def process_registered_ns(self, number: int) -> int:
        """ns since 1970."""
        return int(lib.ring_process_registered_ns(self._ring, number))

    def process_pid(self, number: int) -> int:
        return int(lib.ring_process_pid(self._ring, number))

    def process_start_time(self, number: int) -> int:
        """Clock ticks since boot: tells a pid used again."""
        return int(lib.ring_process_start_time(self._ring, number))

    def process_parent(self, number: int) -> int | None:
        """The number of the process that started this one."""
        parent = int(lib.ring_process_parent(self._ring, number))
        return parent - 1 if parent else None

    def process_lost(self, number: int) -> int:
        """Records dropped. If no program could drop so many, the count is written over: 0."""
        lost = int(lib.ring_process_lost(self._ring, number))
        return lost if lost < LOST_MAX else 0

    def process_exit_status(self, number: int) -> int | None:
        """The status that the process reported at its end; None: it did not know."""
        status = int(lib.ring_process_exit_status(self._ring, number))
        return status if status < lib.RING_EXIT_UNKNOWN else None

    def process_left(self, number: int) -> None:
        """Tells a leaving process that everything it published before it left is committed."""
        lib.ring_process_left(self._ring, number)

    def process_ended_ns(self, number: int) -> int:
        """ns since 1970, when the process said that it ends; 0: it has not."""
        return int(lib.ring_process_ended_ns(self._ring, number))

    def process_saved(self, number: int) -> None:
        """Tells a process that everything it published is committed."""
        lib.ring_process_saved(self._ring, number)

    def turned_away(self) -> int:
        """Processes that found no place in the table."""
        return int(lib.ring_turned_away(self._ring))

    # ---- the dumper's word ----------------------------------------------------------------

    def say(self, state: int, message: str) -> None:
        lib.ring_dumper_say(self._ring, state, message.encode("utf-8", "replace"))

    def say_so_far(self, message: str) -> None:
        """Sets the line that a program prints if it ends before others."""
        lib.ring_dumper_say_so_far(self._ring, message.encode("utf-8", "replace"))

    def say_trouble(self, why: str) -> None:
        """Sets the reason why nothing can be saved now; "": there is none."""
        lib.ring_dumper_say_trouble(self._ring, why.encode("utf-8", "replace"))

    def said(self) -> int:
        """The last state that a dumper of this ring set."""
        return int(lib.ring_dumper_state(self._ring))

    def pass_ended(self) -> None:
        """Shows that the dumper is alive and makes progress."""
        lib.ring_dumper_pass_ended(self._ring)
