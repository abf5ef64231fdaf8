"""Databases written by hand, for tests of the reader: no hook and no dumper has part in them.

`Handmade` writes runs, definitions and segments as the dumper would; `event` and `value` make the
records with Google's protobuf. Only the segments' summaries come from pytrace's own C.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw
from pytracer._core import ffi
from pytracer.dumper.segments import NOTHING_OPEN, Segments

import warm
from messages import trace_pb2
from records import varint

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

EPOCH_NS = 1_700_000_000_000_000_000  # the runs' clocks start here ...
EPOCH_UNITS = 1_000_000
NS_PER_UNIT = 4  # ... and count in these
DELETED = trace_pb2.Value(constant=trace_pb2.Value.DELETED)  # of a line
EVENT_IDS = 1 << 18  # ids a segment has room for
# what an event adds to the number of open calls
MOTIONS = {"call": 1, "resume": 1, "throw": 1, "return": -1, "exception": -1, "yield": -1}


def value(content: object, type: int = 0, length: int = 0) -> trace_pb2.Value:
    """A recorded value; a `Value` is taken as it is."""
    if isinstance(content, trace_pb2.Value):
        return content
    made = trace_pb2.Value(type=type, length=length)
    if content is None or isinstance(content, bool):
        made.constant = {None: 0, False: 1, True: 2}[content]
    elif isinstance(content, int):
        made.integer = content
    elif isinstance(content, str):
        made.text = content.encode("utf-8", "surrogatepass")
    elif isinstance(content, list):
        made.container = trace_pb2.Value.LIST
        made.item.extend(value(item) for item in content)
    elif isinstance(content, Exception):
        made.container = trace_pb2.Value.EXCEPTION
        made.item.extend(value(item) for item in content.args)
    else:
        raise TypeError(content)
    return made


def instance(type: int, address: int, *attributes: object, length: int = 0) -> trace_pb2.Value:
    """An object; `type` has the names of its attributes."""
    return trace_pb2.Value(address=address, type=type, item=map(value, attributes), length=length)


def event(
    kind: str,
    code: int,
    *values: object,
    time: int = 0,
    elapsed: int | None = None,
    line: int = 0,
    depth: int | None = None,
    names: Sequence[str] = (),
    variables: Sequence[int] = (),
    changed: int | None = None,
    trailing: bool = False,
) -> trace_pb2.Event:
    """A record; times are clock units since the record before."""
    made = trace_pb2.Event(
        time=time, line=line, value=map(value, values), variable=variables, trailing=trailing
    )
    setattr(made, {"line": "at_line", "event": "happened"}.get(kind, kind), code)
    if changed is not None:
        made.changed = changed
    if elapsed is not None:
        made.elapsed = elapsed
    if depth is not None:
        made.depth = depth
    made.name.extend(name.encode() for name in names)
    return made


def serialized(record: trace_pb2.Event) -> bytes:
    """A record in a chunk, as the hook writes it: `trailing` stands before the values."""
    if not record.trailing:
        return trace_pb2.Events(event=[record]).SerializeToString()
    head, tail = trace_pb2.Event.FromString(record.SerializeToString()), trace_pb2.Event()
    for name in ("value", "name", "variable"):
        getattr(tail, name).extend(getattr(record, name))
        head.ClearField(name)
    if record.HasField("changed"):
        tail.changed = record.changed
        head.ClearField("changed")
    body = head.SerializeToString() + tail.SerializeToString()
    return b"\x0a" + varint(len(body)) + body


def summary(
    body: bytes, base_depth: int, open: bytes = NOTHING_OPEN, own: Iterable[int] = ()
) -> tuple[int, int, int, bytes, bytes]:
    """The columns max_depth, kinds, max_duration and codes of a segment with this body and `open`,
    and `open` of the next one. own: the numbers of own code."""
    segments = Segments()
    segments.know((number, True) for number in own)
    made = segments.summary(ffi.from_buffer(body), len(body), base_depth, open)
    return made.max_depth, made.kinds, made.max_duration, made.codes, made.open


def least_depth(events: Iterable[trace_pb2.Event], depth: int) -> int:
    """The column min_depth: the smallest number of open calls, of which there are `depth` before
    the events."""
    least = depth
    for event in events:
        if event.HasField("depth"):
            depth = event.depth
        depth += MOTIONS.get(event.WhichOneof("what") or "", 0)
        least = min(least, depth)
    return least


class Handmade:
    """A database that is being written. Use it as a context manager, or close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        new = not path.exists()
        self.connection = apsw.Connection(str(path))
        self._opens: dict[tuple[int, int, int], bytes] = {}  # by run, stream, sequence
        if new:
            self("PRAGMA journal_mode = WAL")
            self(files("pytracer.dumper").joinpath("schema.sql").read_text())
            self("PRAGMA application_id = 0x70747263")
            self("PRAGMA user_version = 2")

    def __call__(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters).fetchall()

    def __enter__(self) -> Handmade:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def run(self, command: str = "app.py", *, finished: bool = True, **columns: object) -> int:
        """A recording with one process (pid 100), one thread (stream 1, tid 100)."""
        row: dict[str, object] = {
            "recording": f"ring-{len(self('SELECT id FROM run'))}",
            "command": command,
            "directory": "/home/me",
            "python": "3.13.0",
            "started": EPOCH_NS,
            "finished": EPOCH_NS + 2_000_000_000 if finished else None,
            "exit_status": 0 if finished else None,
            "clock_epoch_ns": EPOCH_NS,
            "clock_epoch_units": EPOCH_UNITS,
            "clock_scale": NS_PER_UNIT << 32,
            **columns,
        }
        ((run,),) = self(
            f"INSERT INTO run ({', '.join(row)}) VALUES ({', '.join('?' * len(row))}) RETURNING id",
            list(row.values()),
        )
        self.process(run, 0, 100)
        self.thread(run, 1, 100, "MainThread")
        return int(run)

    def finish(self, run: int, exit_status: int = 0) -> None:
        self(
            "UPDATE run SET finished = started + 2000000000, exit_status = ? WHERE id = ?", (exit_status, run)
        )

    def process(self, run: int, number: int, pid: int) -> None:
        self(
            "INSERT INTO process (run, number, pid, started) VALUES (?, ?, ?, ?)",
            (run, number, pid, EPOCH_NS),
        )

    def thread(
        self, run: int, stream: int, tid: int, name: str, process: int = 0, kind: str = "thread"
    ) -> None:
        self(
            "INSERT INTO thread (run, stream, process, tid, name, kind) VALUES (?, ?, ?, ?, ?, ?)",
            (run, stream, process, tid, name, kind),
        )

    def code(
        self,
        run: int,
        number: int,
        func: str,
        arguments: Sequence[str] = (),
        *,
        module: str = "app",
        file: str = "/home/me/app.py",
        line: int = 1,
        mine: bool = False,
        variables: Sequence[str] = (),
        layer: str = "python",
    ) -> None:
        names = json.dumps(list(arguments)), json.dumps(list(variables))
        self(
            "INSERT INTO code (run, number, module, func, file, line, arguments, variables, flags, mine,"
            " language) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 3, ?, ?)",
            (run, number, module, func, file, line, *names, mine, layer),
        )

    def type(self, run: int, number: int, name: str, attributes: Sequence[str] = ()) -> None:
        names = json.dumps(list(attributes)) if attributes else None
        self(
            "INSERT INTO type (run, number, name, attributes) VALUES (?, ?, ?, ?)", (run, number, name, names)
        )

    def source(
        self, run: int, text: str | bytes, *, file: str = "/home/me/app.py", changed: bool = False
    ) -> None:
        data = text.encode() if isinstance(text, str) else text
        self(
            "INSERT INTO source_file (run, file, changed, size, data) VALUES (?, ?, ?, ?, ?)",
            (run, file, changed, len(data), zstd.compress(data)),
        )

    def segment(
        self,
        run: int,
        records: Sequence[trace_pb2.Event | str | int],
        *,
        stream: int = 1,
        sequence: int = 0,
        process: int = 0,
        start: int = 0,
        base_depth: int = 0,
        complete: bool = True,
    ) -> int:
        """Stores a chunk, or its longer version: events, and before them the names of their tasks,
        and the numbers of their processors (-1: not known).

        `start`: units since the run's. Returns its id.
        """
        events = [record for record in records if not isinstance(record, str | int)]
        body = b"".join(
            trace_pb2.Events(task=[record.encode()]).SerializeToString()
            if isinstance(record, str)
            else trace_pb2.Events(cpu=[record + 1]).SerializeToString()
            if isinstance(record, int)
            else serialized(record)
            for record in records
        )
        base = EPOCH_UNITS + start
        open = self._opens.get((run, stream, sequence), NOTHING_OPEN)
        own = (number for (number,) in self("SELECT number FROM code WHERE run = ? AND mine", (run,)))
        *columns, behind = summary(body, base_depth, open, own)
        self._opens[run, stream, sequence + 1] = behind
        ((number,),) = self(
            "INSERT INTO segment (run, stream, sequence, process, start, end, base_depth, min_depth,"
            " count, lost, size, complete, max_depth, kinds, max_duration, codes, open, data)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (run, stream, sequence) DO UPDATE SET end = excluded.end,"
            " min_depth = excluded.min_depth,"
            " count = excluded.count, size = excluded.size, complete = excluded.complete,"
            " max_depth = excluded.max_depth, kinds = excluded.kinds,"
            " max_duration = excluded.max_duration, codes = excluded.codes, data = excluded.data"
            " RETURNING id",
            (
                run, stream, sequence, process, base, base + sum(e.time for e in events), base_depth,
                least_depth(events, base_depth), len(events), len(body), int(complete), *columns, open,
                zstd.compress(body, level=1),
            ),
        )  # fmt: skip
        return int(number)


# ---- running the commands ----

_TIMEOUT = 60


def command(word: str, *arguments: object) -> list[str]:
    """`pytrace WORD ARGUMENTS`, without what belongs to the recording side."""
    return [sys.executable, "-P", "-c", warm.ALONE, word, *map(str, arguments)]


def environment(**changes: str) -> dict[str, str]:
    return os.environ | {"TZ": "UTC", "PYTHONIOENCODING": "utf-8"} | changes


def printed(*arguments: object, cwd: Path | None = None, **changes: str) -> subprocess.CompletedProcess[str]:
    """pytrace print, run to its end. `changes` go into the environment."""
    return ran("print", *arguments, cwd=cwd, **changes)


def ran(
    word: str, *arguments: object, cwd: Path | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    return warm.run(command(word, *arguments), cwd, environment(**changes), _TIMEOUT)


def started(*arguments: object, stdout: int = subprocess.PIPE, **changes: str) -> subprocess.Popen[str]:
    """pytrace print, left running."""
    return subprocess.Popen(
        command("print", *arguments),
        env=environment(**changes),
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
