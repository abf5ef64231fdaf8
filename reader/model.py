"""What the reader speaks of: runs, threads, and events as rows of the table `event`."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Run(NamedTuple):
    """One recording. Times are ns since 1970; `finished` and `exit_status` may be unknown."""

    id: int
    command: str
    directory: str
    python: str
    started: int
    finished: int | None
    exit_status: int | None
    lost: int
    evicted: int
    evicted_until: int | None
    refused: int


class Source(NamedTuple):
    """Where events come from: a thread of a process of a run. Ids are the operating system's."""

    run: int
    pid: int
    tid: int
    thread: str
    has_tasks: bool = False  # some thread of the run: asyncio's, trio's


# An event: EVENT of the table `event`. Names are bytes, for `text`; args is JSON. docs/json.md says the rest.
Row: TypeAlias = (
    "tuple[int, int, int, int, int, bytes, str, bytes, bytes, bytes, int, int, int | None, str, bytes]"
)
EVENT = (
    "event.id, event.run, event.time, event.pid, event.tid, CAST(event.thread AS BLOB), event.kind,"
    " CAST(event.module AS BLOB), CAST(event.func AS BLOB), CAST(event.file AS BLOB), event.line,"
    " event.depth, event.duration, event.args, CAST(event.task AS BLOB)"
)


def text(data: bytes) -> str:
    """Stored text, which came from the recorded program: lone surrogates, even broken UTF-8."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace")
