"""What the reader speaks of: runs, code objects, threads and what happened in them."""

from __future__ import annotations

from typing import NamedTuple


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
    refused: int
    epoch_ns: int
    epoch_units: int
    scale: int

    def time(self, units: int) -> int:
        """Clock units as ns since 1970."""
        return self.epoch_ns + ((units - self.epoch_units) * self.scale >> 32)


class Code:
    """A function, module or class body; its number's definition. Equal only to itself."""

    __slots__ = ("arguments", "file", "func", "line", "module")

    def __init__(self, module: str, func: str, file: str, line: int, arguments: tuple[str, ...]) -> None:
        self.module, self.func, self.file, self.line, self.arguments = module, func, file, line, arguments


class Source(NamedTuple):
    """Where events come from: a thread of a process of a run. Ids are the operating system's."""

    run: int
    pid: int
    tid: int
    thread: str


NO_CODE = Code("", "", "", 0, ())
UNDEFINED = Code("?", "?", "?", 0, ())  # its definition did not reach the database

Argument = tuple[str, str, str]  # name, value as repr shows it, type


class Event(NamedTuple):
    """What happened. Time in ns since 1970, duration in ns; docs/json.md says the rest."""

    time: int
    id: int
    kind: str
    depth: int
    duration: int | None
    line: int
    code: Code
    source: Source
    args: list[Argument]
