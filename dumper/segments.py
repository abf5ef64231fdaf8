"""A chunk of events as a row of the table `segment`: compressed, with a summary of its events.

The summary (csrc/summary.h) is what readers decide by whether they need the segment at all.
"""

import sys
from typing import Any, NamedTuple

from pytracer._core import ffi, lib

from .ring import Chunk
from .store import Segment

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor
else:
    from backports.zstd import ZstdCompressor

SQL_INTEGER_MAX = (1 << 63) - 1


class Summary(NamedTuple):
    """struct summary."""

    max_depth: int
    kinds: int
    max_duration: int  # clock units, no more than SQL's integers can be
    codes: bytes
    events: int  # that it covers: all, unless records cannot be read


class Segments:
    """Makes the rows; keeps what that needs from one to the next."""

    def __init__(self) -> None:
        """Raises MemoryError."""
        maker = lib.summary_maker_new()
        if not maker:
            raise MemoryError
        self._maker = ffi.gc(maker, lib.summary_maker_free)
        self._summary = ffi.new("struct summary *")

    def row(self, chunk: Chunk, complete: bool, compressor: ZstdCompressor) -> Segment | None:
        """What has been published of the chunk. None: it makes no sense; somebody has written over it.
        Raises MemoryError."""
        summary = self.summary(chunk.body, chunk.used, chunk.base_depth)
        if summary.events != chunk.records:
            return None
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
            data=compressor.compress(chunk.data(), ZstdCompressor.FLUSH_FRAME),
        )

    def summary(self, body: Any, size: int, base_depth: int) -> Summary:
        """Of the `size` bytes at `body` (const uint8_t *). Raises MemoryError."""
        summary = self._summary
        if not lib.summary_make(self._maker, body, size, base_depth, summary):
            raise MemoryError
        codes = ffi.buffer(summary.codes, summary.codes_size)[:] if summary.codes_size else b""
        duration = min(summary.max_duration, SQL_INTEGER_MAX)
        return Summary(summary.max_depth, summary.kinds, duration, codes, summary.events)
