"""Asks a recording questions in SQL, each time in a process of its own: inside/queries.py."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

from benchmarks.measure import INSIDE
from benchmarks.processes import Failed, environment
from benchmarks.recordings import MILLION

COLUMNS = "id, run, time, pid, tid, thread, kind, module, func, file, line, depth, duration"
TEXTS = ("thread", "kind", "module", "func", "file")
ABSENT = "%nowhere to be found%"
COUNT = "SELECT count(*) FROM event WHERE func = ?"
LIKE = "SELECT count(*) FROM argument WHERE value LIKE ?"
# all columns of all rows, for as little as can be made of them in SQLite
ROWS_SQLITE = "SELECT count({}) FROM event".format(
    " | ".join(f"octet_length({name})" if name in TEXTS else name for name in COLUMNS.split(", "))
)
ROWS_PYTHON = f"SELECT {COLUMNS} FROM event"
SPAN = "SELECT (SELECT min(time) FROM event), (SELECT max(time) FROM event)"
PAGE = f"SELECT {COLUMNS} FROM event WHERE time >= ? ORDER BY time, id LIMIT 60"
FIRST_HIT = f"SELECT {COLUMNS} FROM event WHERE func = ? ORDER BY time LIMIT 1"


@dataclass
class Question:
    sql: str
    parameters: Sequence[Sequence[object]] = ((),)
    repeat: int = 3


@dataclass
class Answer:
    times: list[float]  # seconds
    row: list[Any]  # the last of the last time

    @property
    def best(self) -> float:
        return min(self.times)


@dataclass
class Memory:
    """The most that a process had at a time, in bytes."""

    own: int = 0  # anonymous
    mapped: int = 0  # of files, which others may share


@dataclass
class Asked:
    """The answers of one process to its questions."""

    answers: list[Answer]
    memory: Memory


def ask(path: Path, questions: Sequence[Question], plain: bool = False) -> Asked:
    """Asks in a process of its own. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        result = Path(scratch) / "answers"
        spec = {
            "database": str(path),
            "plain": plain,
            "questions": [(of.sql, of.parameters, of.repeat) for of in questions],
            "result": str(result),
        }
        command = [sys.executable, str(INSIDE / "queries.py"), json.dumps(spec)]
        process = subprocess.Popen(command, cwd=scratch, env=environment())
        memory = watch(process)
        if process.returncode:
            raise Failed(f"{path}: asking ended with {process.returncode}")
        return Asked([Answer(*answer) for answer in json.loads(result.read_text())], memory)


def watch(process: "subprocess.Popen[bytes]") -> Memory:
    """Waits for a process. Looks at its memory 200 times a second."""
    memory = Memory()
    while process.poll() is None:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        if "RssAnon" in status:  # not ended meanwhile
            memory.own = max(memory.own, int(status["RssAnon"].split()[0]) * 1024)
            memory.mapped = max(memory.mapped, int(status["RssFile"].split()[0]) * 1024)
        sleep(0.005)
    return memory


def count(path: Path) -> int:
    import apsw

    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        events: Any = connection.execute("SELECT sum(count) FROM segment").get
    return int(events)


def million(events: int) -> int:
    return round(events / MILLION)
