"""From a segment's bytes to events: decompression, and the rows that csrc/batch.h makes."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from pytracer._core import ffi, lib

from .database import Codes, Database, text
from .model import Argument, Code, Event, Run, Source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_BODY_MAX = 256 << 10  # RING_MAX_CHUNK_SIZE: no chunk is larger
_EVENTS = 128  # a batch; what is decoded ahead of its time
_TEXT_MAX = 64 << 20  # of one event; its types' names could make it longer than its chunk
_NUMBER_MAX = (1 << 32) - 1
_EVENT = struct.Struct("=4IqqQIIi4x")
_VALUE = struct.Struct("=8I")
_KINDS = ("", *(ffi.string(lib.event_kind_name(kind)).decode() for kind in range(1, 10)))
# the name of the one value that these kinds have
_VALUE_NAMES = {
    "return": "return value",
    "exception": "exception",
    "throw": "exception",
    "raise": "exception",
    "yield": "yield value",
}


class DecodeError(Exception):
    """These bytes are not what they should be; `reason` says in what way."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def decompress(data: bytes, size: int) -> bytes:
    """The body of a segment, `size` bytes. Never makes more than a chunk can hold."""
    if not 0 <= size <= _BODY_MAX:
        raise DecodeError(f"no segment has {size} bytes")
    try:
        body: bytes = zstd.ZstdDecompressor().decompress(data, size + 1)
    except zstd.ZstdError as error:
        raise DecodeError(str(error)) from None
    if len(body) != size:
        raise DecodeError(f"it has {len(body)} bytes instead of {size}")
    return body


class Body:
    """A segment's body and how far it was read; `start` in clock units."""

    def __init__(self, data: bytes, start: int, base_depth: int) -> None:
        self._data = ffi.from_buffer("uint8_t[]", data)  # keeps it alive
        self.walk: Any = ffi.new("struct segment_walk *")
        try:
            lib.segment_open(self.walk, self._data, len(data), start, base_depth)
        except OverflowError:
            raise DecodeError("its start makes no sense") from None

    def skip(self, count: int) -> None:
        """Passes so many events, without looking into them."""
        while count > 0 and (passed := _batch.next(self, min(count, _EVENTS), with_values=False)):
            count -= passed


class TypeTable(NamedTuple):
    """`struct batch_types`; lives as long as this does."""

    size: int
    numbers: Any
    names: Any
    texts: list[Any]  # what `names` points to


class Types:
    """The names of a run's types."""

    def __init__(self, database: Database, run: int) -> None:
        self._database, self._run = database, run
        self._table = TypeTable(0, ffi.NULL, ffi.NULL, [])

    def table(self) -> TypeTable:
        """All types that the segments stored until now refer to."""
        ((count,),) = self._database.query("i", "SELECT count(*) FROM type WHERE run = ?", (self._run,))
        if count != self._table.size:
            rows = self._database.query(
                "ib",
                "SELECT number, CAST(name AS BLOB) FROM type WHERE run = ? AND number BETWEEN 0 AND ?"
                " ORDER BY number",
                (self._run, _NUMBER_MAX),
            )
            texts = [ffi.new("char[]", text(name).encode("utf-8", "backslashreplace")) for _, name in rows]
            numbers = ffi.new("uint32_t[]", [number for number, _ in rows])
            self._table = TypeTable(len(rows), numbers, ffi.new("char *[]", texts), texts)
        return self._table


class _Batch:
    """Room for the rows of some events. One serves all segments: its rows are taken at once."""

    def __init__(self) -> None:
        self.batch: Any = ffi.new("struct batch *")
        self._events = ffi.new("struct batch_event[]", _EVENTS)
        self.batch.events = self._events
        self._room(values=1024, text=64 << 10)

    def _room(self, values: int, text: int) -> None:
        self._values = ffi.new("struct batch_value[]", values)
        self._text = ffi.new("char[]", text)
        self.batch.values, self.batch.value_capacity = self._values, values
        self.batch.text, self.batch.text_capacity = self._text, text

    def next(self, body: Body, limit: int = _EVENTS, with_values: bool = True) -> int:
        """Fills the batch with at most `limit` events; 0: there are no more."""
        self.batch.event_capacity, self.batch.with_values = limit, with_values
        while True:
            answer: int = lib.batch_next(body.walk, self.batch)
            if answer >= 0:
                return answer
            if answer != lib.BATCH_TOO_SMALL:
                what = "ends within an event" if answer == lib.DECODE_TRUNCATED else "makes no sense"
                raise DecodeError(f"its content {what} (after event {body.walk.index})")
            if self.batch.text_capacity >= _TEXT_MAX:
                raise DecodeError("an event in it is longer than any can be")
            self._room(self.batch.value_capacity * 4, self.batch.text_capacity * 4)

    def rows(self) -> Iterator[tuple[int, ...]]:
        return _EVENT.iter_unpack(ffi.buffer(self.batch.events, self.batch.event_count * _EVENT.size))

    def values(self) -> list[tuple[str, str, str]]:
        """(name, value, type) of all values in the batch."""
        batch = self.batch
        pieces = _VALUE.iter_unpack(ffi.buffer(batch.values, batch.value_count * _VALUE.size))
        data: bytes = ffi.buffer(batch.text, batch.text_size)[:]
        if data.isascii():
            text = data.decode("ascii")
            return [
                (text[n : n + n_size], text[v : v + v_size], text[t : t + t_size])
                for n, n_size, v, v_size, t, t_size, _, _ in pieces
            ]
        return [
            (
                data[n : n + n_size].decode("utf-8", "backslashreplace"),
                data[v : v + v_size].decode("utf-8", "backslashreplace"),
                data[t : t + t_size].decode("utf-8", "backslashreplace"),
            )
            for n, n_size, v, v_size, t, t_size, _, _ in pieces
        ]


_batch = _Batch()


def events(
    body: Body, run: Run, first_id: int, source: Source, codes: Codes, types: Types
) -> Iterator[Event]:
    """The remaining events of a segment's body. Raises DecodeError where it breaks."""
    table = types.table()
    try:
        clock = ffi.new("struct segment_clock *", (run.epoch_ns, run.epoch_units, run.scale))
    except OverflowError:
        raise DecodeError("its run's clock makes no sense") from None
    batch = _batch.batch
    while True:
        batch.clock = clock[0]
        batch.types.count, batch.types.numbers, batch.types.names = table[:3]
        if not _batch.next(body):
            return
        values = _batch.values()
        made = []
        for index, number, code_number, line, time, duration, count, first, length, depth in _batch.rows():
            code = codes[code_number]
            kind = _KINDS[number]
            args: list[Argument] = []
            if length == 1 and kind in _VALUE_NAMES:
                _, value, type = values[first]
                args = [(_VALUE_NAMES[kind], value, type)]
            elif length:
                args = _arguments(kind, code, values[first : first + length])
            elif kind == "lost":
                args = [("count", str(count), "int")]
            made.append(
                Event(
                    time,
                    first_id + index,
                    kind,
                    depth,
                    duration if duration >= 0 else None,
                    line or code.line,
                    code,
                    source,
                    args,
                )
            )
        yield from made


def _arguments(kind: str, code: Code, values: list[tuple[str, str, str]]) -> list[Argument]:
    if kind == "log":
        return [("message", *values[0][1:]), *values[1:]]
    names = code.arguments
    if len(names) < len(values):  # its definition is missing
        names = (*names, *(f"argument {i + 1}" for i in range(len(names), len(values))))
    return [(name, value, type) for name, (_, value, type) in zip(names, values, strict=False)]
