"""The rows that the reader uses: runs, threads, and events of the table `event`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias


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
    """The source of events: a thread of a process of a run. Ids are the operating system's."""

    run: int
    pid: int
    tid: int
    thread: str
    has_tasks: bool = False  # some thread of the run has tasks (asyncio, trio)


# An event: EVENT of the table `event`. Names are bytes, for `text`; args is JSON. docs/json.md says
# the rest.
Row: TypeAlias = (
    "tuple[int, int, int, int, int, bytes, str, bytes, bytes, bytes, int, int, int | None, str, bytes,"
    " bytes, int | None]"
)
EVENT = (
    "event.id, event.run, event.time, event.pid, event.tid, CAST(event.thread AS BLOB), event.kind,"
    " CAST(event.module AS BLOB), CAST(event.func AS BLOB), CAST(event.file AS BLOB), event.line,"
    " event.depth, event.duration, event.args, CAST(event.task AS BLOB),"
    " CAST(event.layer AS BLOB), event.cpu"
)


class Placed(
    tuple[
        int, int, int, int, int, bytes, str, bytes, bytes, bytes, int, int, int | None, str, bytes,
        bytes, int | None,
    ]
):  # fmt: skip
    """A row that knows its place where only some code is shown. level: the number of shown calls
    around its function; hidden: it is of other code, and begins a stretch of such events."""

    level: int
    hidden: bool

    @classmethod
    def of(cls, columns: tuple[Any, ...]) -> Placed:
        """A row of EVENT and two columns more."""
        placed = cls(columns[:-2])
        placed.level, placed.hidden = columns[-2], bool(columns[-1])
        return placed


LAYER: Final = 15  # the place of an event's layer
PYTHON = b"python"  # the usual one
KERNEL = b"kernel"  # its events of a thread have a stream of their own
BELOW = (b"c", b"native", b"kernel")  # layers whose events tell no exception


def level_of(row: Row) -> int:
    """The number of shown calls around an event's function; as a rule all are shown."""
    return row.level if isinstance(row, Placed) else row[11]


def text(data: bytes) -> str:
    """A stored text. The recorded program made it: it may have lone surrogates and broken UTF-8."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace")
