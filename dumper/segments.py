"""A chunk of events as a row of the table `segment`: compressed, with a summary of its events.

By the summary (csrc/format/summary.h) readers decide whether they need the segment at all. Each row
also has the levels of own code that are open at its start (csrc/format/levels.h). They follow from
the chunk before it in its stream, which is remembered, or else in the database.
"""

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from pytracer._core import ffi, lib

from .ring import Chunk, Key
from .store import Segment, Store

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdError, decompress
else:
    from backports.zstd import ZstdCompressor, ZstdError, decompress

SQL_INTEGER_MAX = (1 << 63) - 1
NOTHING_OPEN = b"\0"  # of own code; also where it is not known
OPENS_MAX = 1 << 14  # chunks, of which it is remembered


class Summary(NamedTuple):
    """struct summary."""

    max_depth: int
    kinds: int
    max_duration: int  # clock units, within SQL's integers
    codes: bytes
    events: int  # it covers so many: all, unless records cannot be read
    open: bytes  # `open` of the next chunk of the stream


class Segments:
    """Makes the rows; keeps its buffers from one row to the next."""

    def __init__(self) -> None:
        """Raises MemoryError."""
        maker = lib.summary_maker_new()
        if not maker:
            raise MemoryError
        self._maker = ffi.gc(maker, lib.summary_maker_free)
        self._summary = ffi.new("struct summary *")
        self._opens: dict[Key, bytes] = {}  # of chunks; the one that was set last is at the end

    def know(self, codes: Iterable[tuple[int, bool]]) -> None:
        """Numbers of code objects, and whether these are own code. Raises MemoryError."""
        for number, mine in codes:
            if not lib.summary_own(self._maker, number, mine):
                raise MemoryError

    def row(self, chunk: Chunk, complete: bool, compressor: ZstdCompressor, store: Store) -> Segment | None:
        """The published part of the chunk as a row for this store. None: it makes no sense, as
        somebody has written over it. Raises MemoryError, apsw.Error."""
        open = self._open(chunk.key, store)
        summary = self.summary(chunk.body, chunk.used, chunk.base_depth, open)
        if summary.events != chunk.records:
            return None
        self._remember(chunk.key, open)
        self._remember((chunk.stream, chunk.sequence + 1), summary.open)
        return Segment(
            stream=chunk.stream,
            sequence=chunk.sequence,
            process=chunk.process,
            start=chunk.base_time,
            end=chunk.last_time,
            base_depth=chunk.base_depth,
            min_depth=chunk.min_depth,
            max_depth=summary.max_depth,
            events=chunk.records,
            lost=chunk.lost_before,
            size=chunk.used,
            complete=complete,
            kinds=summary.kinds,
            max_duration=summary.max_duration,
            codes=summary.codes,
            open=open,
            data=compressor.compress(chunk.data(), ZstdCompressor.FLUSH_FRAME),
        )

    def forget(self, key: Key) -> None:
        """The row of this chunk is stored for good."""
        self._opens.pop(key, None)

    def summary(self, body: Any, size: int, base_depth: int, open: bytes = NOTHING_OPEN) -> Summary:
        """The summary of the `size` bytes at `body` (const uint8_t *). Raises MemoryError."""
        summary = self._summary
        if not lib.summary_make(self._maker, body, size, base_depth, open, len(open), summary):
            raise MemoryError
        codes = ffi.buffer(summary.codes, summary.codes_size)[:] if summary.codes_size else b""
        duration = min(summary.max_duration, SQL_INTEGER_MAX)
        behind = ffi.buffer(summary.open, summary.open_size)[:]
        return Summary(summary.max_depth, summary.kinds, duration, codes, summary.events, behind)

    # ---- what is open at the start ------------------------------------------------------------

    def _open(self, key: Key, store: Store) -> bytes:
        """The column `open` of a chunk."""
        known = self._opens.get(key)
        if known is not None:
            return known
        stream, sequence = key
        before = store.complete_segment(stream, sequence - 1) if sequence else None
        if before is None:
            return NOTHING_OPEN
        base_depth, open, data = before
        try:
            body = decompress(data)
        except ZstdError:  # somebody has written over it
            return NOTHING_OPEN
        return self.summary(ffi.from_buffer(body), len(body), base_depth, open or NOTHING_OPEN).open

    def _remember(self, key: Key, open: bytes) -> None:
        self._opens.pop(key, None)
        self._opens[key] = open
        if len(self._opens) > OPENS_MAX:
            del self._opens[next(iter(self._opens))]
