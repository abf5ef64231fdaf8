"""Recordings cut anew: the same events in segments of a few each, so that whatever reaches over
more than one segment does so everywhere; with lines and losses, if asked for."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import apsw

from handmade import MOTIONS, NOTHING_OPEN, serialized, summary
from messages import trace_pb2

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_TIMES = 1 << 64
_INSERT = """
INSERT INTO segment (run, stream, sequence, process, start, end, base_depth, min_depth, max_depth, count,
                     lost, size, complete, kinds, max_duration, codes, open, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 1, ?, ?, ?, ?, ?) RETURNING id
"""


class Stream:
    """A thread's segments, stored one behind the other; `time` (clock units), `depth` are behind
    the last."""

    def __init__(
        self, connection: apsw.Connection, run: int, stream: int, process: int, time: int, depth: int
    ) -> None:
        self._connection, self._key, self._process = connection, (run, stream), process
        self.sequence = 0
        self.time, self.depth = time, depth
        self._open = NOTHING_OPEN
        own = connection.execute("SELECT number FROM code WHERE run = ? AND mine", (run,))
        self._own = [int(number) for (number,) in own]

    def pass_by(self, events: list[trace_pb2.Event]) -> int:
        """Comes to be behind these. Returns the smallest depth on the way."""
        smallest = self.depth
        for event in events:
            self.time = (self.time + event.time) % _TIMES
            if event.HasField("depth"):
                self.depth = event.depth
            self.depth += MOTIONS.get(event.WhichOneof("what") or "", 0)
            smallest = min(smallest, self.depth)
        return smallest

    def store(self, events: list[trace_pb2.Event]) -> int:
        """Returns the segment's id."""
        body = b"".join(map(serialized, events))
        start, base_depth = self.time, self.depth
        open = self._open
        max_depth, kinds, max_duration, codes, self._open = summary(body, base_depth, open, self._own)
        min_depth = self.pass_by(events)
        row = (
            *self._key, self.sequence, self._process, start, self.time, base_depth, min_depth, max_depth,
            len(events), len(body), kinds, max_duration, codes, open,
            zstd.compress(body, level=1),
        )  # fmt: skip
        number: Any
        ((number,),) = self._connection.execute(_INSERT, row).fetchall()
        self.sequence += 1
        return int(number)


def with_lines(events: list[trace_pb2.Event], open: list[int], chance: Random) -> list[trace_pb2.Event]:
    """The events, between them lines of the functions that are open. open: their codes, before the
    events and then behind them."""
    made: list[trace_pb2.Event] = []
    for event in events:
        kind = event.WhichOneof("what") or ""
        if event.HasField("depth"):
            open[:] = [*open, *[0] * event.depth][: event.depth]
        elif open and open[-1] and event.time > 1 and chance.random() < 0.6:
            if MOTIONS.get(kind) == -1 and not event.HasField("elapsed"):
                event.elapsed = event.time
            time = chance.randrange(1, event.time)  # no two segments begin at once
            line = trace_pb2.Event(at_line=open[-1], line=chance.randrange(1, 90), time=time)
            if chance.random() < 0.7:
                line.variable.append(0)
                line.value.add().integer = chance.randrange(5)
            event.time -= time
            made.append(line)
        made.append(event)
        if MOTIONS.get(kind) == 1:
            open.append(getattr(event, kind))
        elif MOTIONS.get(kind) == -1:
            del open[-1:]
    return made


def recut(
    source: Path, path: Path, size: int, lose: Random | None = None, lines: Random | None = None
) -> None:
    """Copies a finished database, with segments of at most `size` events; threads take turns as
    they did.

    `lose`: some of the events are dropped, as if the ring had been full. `lines`: lines of the
    functions are put between the events.
    """
    connection = apsw.Connection(str(source))
    connection.execute("VACUUM INTO ?", (str(path),)).fetchall()
    connection.close()
    with apsw.Connection(str(path)) as connection:
        old: list[Any] = connection.execute(
            "SELECT run, stream, process, start, base_depth, data FROM segment ORDER BY run, start, id"
        ).fetchall()
        connection.execute("DELETE FROM segment").fetchall()
        streams: dict[tuple[int, int], Stream] = {}
        dropped: Counter[Stream] = Counter()
        open_codes: dict[tuple[int, int], list[int]] = {}
        for run, number, process, start, depth, data in old:
            if (run, number) not in streams:
                streams[run, number] = Stream(connection, run, number, process, start, depth)
            stream = streams[run, number]
            events = list(trace_pb2.Events.FromString(zstd.decompress(data)).event)
            if lines:
                events = with_lines(events, open_codes.setdefault((run, number), []), lines)
            for first in range(0, len(events), size):
                piece = events[first : first + size]
                if lose and lose.random() < 0.2:
                    stream.pass_by(piece)
                    dropped[stream] += len(piece)
                    continue
                lost = [trace_pb2.Event(lost=dropped.pop(stream))] if dropped[stream] else []
                stream.store(lost + piece)
    connection.close()
