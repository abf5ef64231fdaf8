"""What stands before an event on its line: when, how long, and where. Called by lines.py."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from ..model import Row, Run, Source, text
from .look import Look
from .model import Line
from .text import DOTS, cells, chop, fitted

Pieces: TypeAlias = "list[tuple[str, str]]"  # texts that follow each other, with their styles ("": none)
_SECOND = 1_000_000_000
_GAP = "  "  # behind each column


class Columns:
    """Columns of the same width on each line; sources and runs: those that are shown."""

    def __init__(self, look: Look, sources: Sequence[Source], runs: Sequence[Run]) -> None:
        self._look = look
        are_several = several(sources)
        self._run = are_several["run"] if look.run is None else look.run
        self._process = are_several["process"] if look.process is None else look.process
        self._thread = are_several["thread"] if look.thread is None else look.thread
        self._thread_width = look.width("thread")
        has_tasks = any(source.has_tasks for source in sources)  # whose names nobody knows beforehand
        if not dict(look.widths).get("thread") and not has_tasks:  # no wider than needed
            widest = max((cells(self._name(source.tid, source.thread)) for source in sources), default=1)
            self._thread_width = min(widest, self._thread_width)
        self._duration_width = look.width("duration")
        self._time_width = look.width("time")
        self._started = {run.id: run.started for run in runs}
        seconds = [(run.finished - run.started) // _SECOND for run in runs if run.finished]
        self._start_width = len("+.000000") + max(4, *map(len, map(str, seconds)), 0)
        self._second = lru_cache(256)(self._make_second)
        self._where = lru_cache(1024)(self._make_where)

    def pieces(self, event: Row, took: int | None) -> Pieces:
        """took: what the duration's column says, in ns; None: nothing."""
        id, run, at, pid, tid, thread, _, _, _, file, line, _, _, _, task = event
        look = self._look
        made: Pieces = []
        if look.ids:
            made.append(("dim", f"{id:>{look.width('id')}}{_GAP}"))
        if look.time != "off":
            made.append(("time", self._time(run, at)[: self._time_width] + _GAP))
        if look.duration:
            lasting = "" if took is None else look.lasting(took)
            made.append(("duration", lasting.rjust(self._duration_width) + _GAP))
        where = self._where(run, pid, tid, task or thread)
        if where:
            made.append(("column", where))
        if look.file:
            made.append(("dim", self._place(file, line) + _GAP))
        return made

    def _time(self, run: int, at: int) -> str:
        started = self._started.get(run) if self._look.time == "start" else None
        if started is None:
            second, ns = divmod(at, _SECOND)
            return f"{self._second(second)}.{ns // 1000:06}"
        second, ns = divmod(abs(at - started), _SECOND)
        sign = "+" if at >= started else "-"
        return f"{sign}{second}.{ns // 1000:06}".rjust(self._start_width)

    def _make_second(self, second: int) -> str:
        form = "%Y-%m-%d %H:%M:%S" if self._look.time == "date" else "%H:%M:%S"
        return time.strftime(form, time.localtime(second))

    def _make_where(self, run: int, pid: int, tid: int, name: bytes) -> str:
        """name: the thread's; of an event of a task, the task's."""
        look = self._look
        made = ""
        if self._run:
            made += f"{run:>{look.width('run')}}{_GAP}"
        if self._process:
            made += f"{pid:>{look.width('process')}}{_GAP}"
        if self._thread:
            made += fitted(self._name(tid, text(name)), self._thread_width) + _GAP
        return made

    def _name(self, tid: int, thread: str) -> str:
        return self._look.shown(thread) or str(tid)

    def _place(self, file: bytes, line: int) -> str:
        """The end of a file's path, and the line."""
        width = self._look.width("file")
        place = f"{self._look.shown(text(file))}:{line}" if file else ""
        beyond = cells(place) - width
        if beyond > 0:
            end = chop(Line(place), beyond + len(DOTS), width)
            place = DOTS + "".join(piece for _, piece in end.runs)
        return fitted(place, width)


def several(sources: Sequence[Source]) -> dict[str, bool]:
    """Whether there are several runs; and processes or threads, in one of them. Tasks are like threads."""
    runs = {source.run for source in sources}
    processes = {(source.run, source.pid) for source in sources}
    threads = {(source.run, source.pid, source.tid) for source in sources}
    many = len(threads) > len(runs) or any(source.has_tasks for source in sources)
    return {"run": len(runs) > 1, "process": len(processes) > len(runs), "thread": many}
