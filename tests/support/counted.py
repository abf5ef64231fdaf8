"""Recorded programs that count what they do in a file that outlives them, so that after any end
what was recorded can be compared with it; and what must be true of every end: all is saved, nothing
stays behind.

Called by test_ends.py and test_faults_*.py.
"""

import mmap
import os
import re
import shlex
import signal
import sqlite3
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from pytracer.reader.database import Database

from beside import PYTRACE, TIMEOUT, environment, wait_for
from dumping import rows

RING_FOLDER = Path("/dev/shm")
DUMPER = re.compile(
    rb"\0pytracer\.dumper\0|^pytrace: dumper for"
)  # a command, before it has its title and then
SLOTS = 128

# The start of each program. `do` counts a call before it makes it, and again when it has returned.
PRELUDE = f"""\
import ctypes, mmap, os, resource, signal, sys, threading

with open("count", "r+b") as file:
    counts = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")

def work(key):
    return key

def do(slot, times=1000):
    for n in range(counts[slot], counts[slot] + times):
        counts[slot] += 1
        work((slot, n))
        counts[{SLOTS} + slot] += 1

"""


def compiled(library: Path, source: str) -> str:
    """A library for LD_PRELOAD, made of C source; its path."""
    command = [*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-x", "c", "-", "-o", library]
    subprocess.run([*command, "-ldl"], input=source, text=True, check=True)
    return str(library)


def dumpers(ring: str, starting: bool = False) -> set[int]:
    """The dumpers that have this ring mapped (by its name's start). starting: also those about
    to."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            # bytes: the programs of other tests map files whose names are no UTF-8
            maps = (process / "maps").read_bytes()
            mapped = ring.encode() in maps or (starting and ring.encode() in command)
            if mapped and DUMPER.search(command):
                found.add(int(process.name))
        except OSError:
            continue  # it has just ended
    return found


@dataclass(frozen=True)
class Stored:
    """The database's numbers n of `work((slot, n))` for one slot, in order."""

    calls: list[int]
    returns: list[int]


class Counted:
    """One program under pytrace. `process` is it: pytrace becomes the program."""

    def __init__(
        self,
        folder: Path,
        source: str,
        *options: str,
        memory: Path = RING_FOLDER,
        preexec_fn: Callable[[], None] | None = None,
        **variables: str,
    ) -> None:
        """source: behind PRELUDE. Only the script is recorded, so that all its events are known.
        memory: where its ring will be. preexec_fn: as subprocess has it."""
        self.folder = folder
        self.memory = memory
        self.database = folder / "traces.sqlite"
        (folder / "script.py").write_text(PRELUDE + dedent(source))
        (folder / "count").write_bytes(bytes(8 * 2 * SLOTS))
        with open(folder / "count", "r+b") as file:
            self._counts = mmap.mmap(file.fileno(), 0)
        self.process = subprocess.Popen(
            [*PYTRACE, "--modules", "script.py", *options, "script.py"],
            cwd=folder,
            env=environment(**variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=preexec_fn,
        )
        self.ring = f"pytrace-{os.getuid()}-{self.process.pid}-"

    # ---- while it runs ----

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout
        return self.process.stdout.readline().decode().strip()

    def say(self, text: str = "") -> None:
        """A line for its standard input."""
        assert self.process.stdin
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def count(self, slot: int) -> tuple[int, int]:
        """Calls it has begun, and those that have returned."""
        words = struct.unpack(f"{2 * SLOTS}Q", self._counts)
        return words[slot], words[SLOTS + slot]

    def dumper(self) -> int:
        """The pid of its dumper."""
        return int(min(wait_for(lambda: dumpers(self.ring), "the dumper")))

    @contextmanager
    def stopped_dumper(self) -> Iterator[None]:
        """Its dumper stands still meanwhile."""
        dumper = self.dumper()
        os.kill(dumper, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(dumper, signal.SIGCONT)

    def rings(self) -> list[Path]:
        """Its ring, while there is one."""
        return list(self.memory.glob(self.ring + "*"))

    # ---- its end ----

    def ended(self) -> int:
        """Waits for its end, and leaves it a zombie: the kernel tells the dumper how it ended.
        Returns the exit status, as subprocess has it."""
        result = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        assert result is not None
        return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status

    def over(self) -> str:
        """Waits until all is saved; nothing of ours may stay behind. Returns its standard error."""
        self.ended()
        wait_for(lambda: not self.rings(), "the end of the ring")
        wait_for(lambda: not dumpers(self.ring), "the end of the dumper")
        _, errors = self.process.communicate(timeout=TIMEOUT)
        left = {path.name for path in self.folder.iterdir() if path.is_file()}
        assert left <= {"count", "script.py", "traces.sqlite"}
        assert self.finished()
        return errors.decode()

    def finished(self) -> bool:
        """Its run is."""
        try:
            ((finished,),) = self.rows(f"SELECT finished FROM run WHERE recording GLOB '{self.ring}*'")
        except (sqlite3.Error, ValueError):
            return False  # the database is just being made
        return finished is not None

    # ---- what was recorded ----

    def rows(self, sql: str) -> list[Any]:
        """Of a query of the ordinary tables, read as any other program would."""
        return rows(self.database, sql)

    def query(self, shape: str, sql: str) -> list[tuple[Any, ...]]:
        """shape: as Database.query has it."""
        database = Database(str(self.database))
        try:
            return database.query(shape, sql)
        finally:
            database.close()

    def stored(self) -> dict[int, Stored]:
        """By slot, of the newest run."""
        found: dict[int, Stored] = {}
        rows = self.query(
            "bbi",
            "SELECT CAST(e.kind AS BLOB), CAST(a.value AS BLOB), e.id"
            " FROM event e JOIN argument a ON a.event = e.id"
            " WHERE e.func = 'work' AND e.run = (SELECT max(id) FROM run) ORDER BY e.time, e.id",
        )
        for kind, value, _ in rows:
            slot, n = map(int, value.decode().strip("()").split(", "))
            stored = found.setdefault(slot, Stored([], []))
            (stored.calls if kind == b"call" else stored.returns).append(n)
        return found

    def check(self, *slots: int, spoilt: tuple[int, ...] = ()) -> None:
        """Each call and return that the program counted is stored once, in its order, and nothing
        else; but for one call and one return that it died too early to count. Of the spoilt slots
        there may be less."""
        found = self.stored()
        assert found.keys() <= {*slots, *spoilt}
        for slot in spoilt:
            calls = found.get(slot, Stored([], [])).calls
            assert calls == sorted(set(calls))
            assert set(calls) <= set(range(self.count(slot)[0]))
        for slot in slots:
            began, returned = self.count(slot)
            stored = found.get(slot, Stored([], []))
            assert stored.calls == list(range(len(stored.calls)))
            assert stored.returns == list(range(len(stored.returns)))
            assert len(stored.calls) in (began - 1, began) if began > returned else (began,)
            assert len(stored.returns) in (returned, min(returned + 1, began))
