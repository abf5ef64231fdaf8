"""Pages of the kernel's ring buffer, made by hand: what they become, losses, and nonsense."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytracer._core import ffi, lib

HEADER = b"""\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
FORMAT = b"""\
name: %s
ID: %d
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;
\tfield:%s;\toffset:16;\tsize:8;\tsigned:%d;

print fmt: "..."
"""
ENTER, EXIT, TID = 7, 8, 4711
MISSED, STORED = 1 << 31, 1 << 30


class Counts(NamedTuple):
    events: int
    lost: int
    nonsense: int


def event(id: int, value: int, delta: int = 10, tid: int = TID) -> bytes:
    data = struct.pack("=HHiiiq", id, 0, tid, 0, 0, value)
    return struct.pack("=I", len(data) // 4 | delta << 5) + data


def page(*events: bytes, time: int = 1000, flags: int = 0, behind: bytes = b"") -> bytes:
    data = b"".join(events)
    return (struct.pack("=QQ", time, len(data) | flags) + data + behind).ljust(4096, b"\0")


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Any]:
    path = os.fsencode(tmp_path / "ring")
    assert lib.ring_create(path, 1 << 20, b"", 0) == 0
    made, lock = ffi.new("struct ring *"), ffi.new("int *")
    assert lib.ring_attach(made, path, lib.RING_DUMPER, lock) == 0
    yield made
    lib.ring_detach(made)
    os.close(lock[0])


def made(ring: Any, folder: Path, *processors: bytes) -> tuple[Counts, dict[int, tuple[int, int]]]:
    """What the pages of each processor become: the counts; records and last time by tid (of a
    processor's own stream: its number)."""
    names = ffi.new("char *[]", 1)
    empty = ffi.new("char[]", b"")
    names[0] = empty
    kernel = lib.kernel_new(ring, HEADER, len(HEADER), names, 1, 1, 2, False)
    assert kernel
    enter = FORMAT % (b"sys_enter_read", ENTER, b"unsigned int fd", 0)
    leave = FORMAT % (b"sys_exit_read", EXIT, b"long ret", 1)
    assert lib.kernel_add_event(kernel, enter, len(enter), lib.KERNEL_ENTER, True) == ENTER
    assert lib.kernel_add_event(kernel, leave, len(leave), lib.KERNEL_EXIT, True) == EXIT
    assert lib.kernel_pair(kernel, ENTER, EXIT) == 0
    for number, pages in enumerate(processors):
        path = folder / f"pages{number}"
        path.write_bytes(pages)
        assert lib.kernel_add_processor(kernel, number, os.open(path, os.O_RDONLY), -1) == 0
    assert lib.kernel_drain(kernel, 1 << 30) == 0
    assert lib.kernel_make(kernel, True) == 0
    lib.kernel_finish(kernel)
    body, bodies = ffi.new("struct kernel_body *"), {}
    lib.kernel_first_body(kernel)
    while lib.kernel_next_body(kernel, False, body):
        bodies[body.tid] = body.records, body.last_time
    counts = ffi.new("struct kernel_counts *")
    lib.kernel_count(kernel, counts)
    lib.kernel_free(kernel)
    return Counts(counts.events, counts.lost, counts.nonsense), bodies


def test_events_of_two_processors_become_one_stream_in_order(ring: Any, tmp_path: Path) -> None:
    first = page(event(ENTER, 3), event(EXIT, 5, delta=200 << 10), time=1 << 20)
    second = page(event(ENTER, 3, delta=100), event(EXIT, 5), time=(1 << 20) + (10 << 10))
    counts, bodies = made(ring, tmp_path, first, second)
    assert counts == (4, 0, 0)
    shift = 1
    while (1 << 20) + 10 + (200 << 10) >> shift != bodies[TID][1]:
        shift += 1
    assert bodies == {TID: (4, (1 << 20) + 10 + (200 << 10) >> shift)}


def test_time_is_extended_and_padding_passed_over(ring: Any, tmp_path: Path) -> None:
    extend = struct.pack("=II", 30 | 5 << 5, 3)
    stamp = struct.pack("=II", 31 | 7 << 5, 1 << 10)
    padding = struct.pack("=III", 29 | 1 << 5, 4, 0)[:8]
    end = struct.pack("=I", 29)
    counts, bodies = made(ring, tmp_path, page(extend, event(ENTER, 3), padding, stamp, event(EXIT, 1), end))
    assert counts == (2, 0, 0)
    assert bodies[TID][1] in {(1 << 37) + 7 + 10 >> shift for shift in range(8)}


@pytest.mark.parametrize(
    ("flags", "behind", "lost"),
    [(0, b"", 0), (MISSED, b"", 1), (MISSED | STORED, struct.pack("=Q", 12345), 12345)],
)
def test_what_the_kernel_has_lost_is_told_where_it_was(
    ring: Any, tmp_path: Path, flags: int, behind: bytes, lost: int
) -> None:
    pages = page(event(ENTER, 3)) + page(event(EXIT, 5), time=5000, flags=flags, behind=behind)
    counts, bodies = made(ring, tmp_path, pages)
    assert counts == (2, lost, 0)
    assert (0 in bodies) == bool(lost)  # a record in the stream of the processor


@pytest.mark.parametrize(
    "nonsense",
    [
        b"",
        struct.pack("=QQ", 0, 4081).ljust(4096, b"\0"),  # more than a page
        page(b"\xff" * 4),  # a time stamp that is cut off
        page(struct.pack("=II", 0, 3)),  # a length that is less than itself
        page(struct.pack("=II", 0, 4000)),  # an event beyond the end
        page(struct.pack("=I", 28)),
        page(struct.pack("=III", 29 | 1 << 5, 100, 0)),
    ],
)
def test_nonsense_is_counted_and_what_is_behind_it_is_read(
    ring: Any, tmp_path: Path, nonsense: bytes
) -> None:
    counts, _ = made(ring, tmp_path, nonsense.ljust(4096 * bool(nonsense), b"\xff") + page(event(ENTER, 3)))
    assert counts == (1, 0, bool(nonsense))


def test_events_of_unknown_numbers_and_short_ones_are_passed_over(ring: Any, tmp_path: Path) -> None:
    short = struct.pack("=IHH", 1 | 1 << 5, ENTER, 0)
    counts, _ = made(ring, tmp_path, page(event(99, 1), short, event(ENTER, 3)))
    assert counts == (1, 0, 0)
