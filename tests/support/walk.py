"""A random walk: keys, clicks and sizes by chance, in a recording that grows and is evicted
meanwhile."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import apsw
from pytracer.reader.screen.commands.table import BY_KEY

from reader import PYTRACE, Reader
from recording import environment

# Goes on when it is told to, and makes so many orders. Its values hardly compress: the database is
# soon full.
PROGRAM = """
import os, sys, threading
from pytracer import log

def token(size):
    return os.urandom(size).hex()

def pay(user, amount, secret):
    if amount % 13 == 0:
        raise ValueError(f"no {amount} from {user}")
    return secret[::-1]

def each(count):
    for n in range(count):
        yield n

def order(number, user):
    log("order", number=number)
    try:
        pay(user, number, token(60))
    except ValueError as error:
        return str(error)
    return [n for n in each(number % 4)]

def descend(depth, user):
    return user if depth == 0 else descend(depth - 1, user)

def work(first, count, user):
    for number in range(first, first + count):
        order(number, user)
    descend(first % 50, user)

first = 0
print("ready", flush=True)
for line in sys.stdin:
    count = int(line)
    other = threading.Thread(target=work, args=(first, count, "eve"), name="other")
    other.start()
    work(first, count, "bob\\x1b[31m")
    other.join()
    first += count
    log("pause", number=first)
    print(first, flush=True)
"""

_LEFT_OUT = {"q", "Q", "ZZ", ":", "ctrl l", "ctrl r", "R"}  # the first would end it
KEYS = sorted(key for key in BY_KEY if key not in _LEFT_OUT)
LINES = {
    "/": ["order", "no 26", r"pay\(.*eve", "(a|aa)+$", "[", "", "PAUSE", r"\d+7"],
    "?": ["order", "bob", "x1b", "nowhere"],
    "&": [
        "func == 'pay'", "", "kind == 'raise'", "duration > '1us'", "tid ==", "func == 'pya'", "depth < 3",
        "arg == 'user' and value == 'eve'",
    ],
    "@": ["+0.1s", "-0.1s", "12:00", "noon", "+1000s"],
    ":": [
        "run all", "run 1", "last", "first", "50%", "level 2", "width thread 5", "slow 1us", "wrap", "x",
        "nonsense", "77", "filter",
    ],
}  # fmt: skip
SIZES = [(24, 80), (30, 120), (5, 20), (60, 200), (12, 40), (3, 9)]
MENDED = ("ctrl c", "ctrl c", "ctrl c")  # leaves lists, prompts, menus, pages
_LONGEST = 0.2  # s that the screen may stand still
_REST = 1.0  # s until all is known that is read behind the screen, too
_DRAWING = 0.1  # of the time that a search takes, goes into telling how far it is
# These keys search something: any key stops the search.
_MAY_TAKE_LONG = frozenset("/?&@*nN:") | {"enter", "meta F", "v"}


class Shop:
    """The program that is recorded, and walks on while the reader is used."""

    def __init__(self, folder: Path) -> None:
        script = folder / "shop.py"
        script.write_text(PROGRAM)
        self.database = folder / "traces.sqlite"
        options = ["--no-stdlib", "--max-size", "1MiB", "--buffer-size", "1MiB"]
        self._process = subprocess.Popen(
            [*PYTRACE, "-q", "-o", str(self.database), *options, str(script)],
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self._goes = threading.Event()
        self._thread = threading.Thread()
        self.orders = 0
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def step(self, count: int) -> None:
        assert self._process.stdin is not None
        print(count, file=self._process.stdin, flush=True)
        self.orders = int(self._line())

    def go(self) -> None:
        """It works until `pause`."""
        self._goes.set()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while self._goes.is_set():
            self.step(100)
            time.sleep(0.02)  # a machine of one processor has a reader, too

    def pause(self) -> None:
        """Returns when it stands still, and all its events are in the database."""
        self._goes.clear()
        if self._thread.ident:
            self._thread.join()
        while not self._is_stored():  # it may have been among those that were lost
            self.step(1)
        # the end of the pass that stored it, the pass in which events are evicted, and a whole one
        self._passes(3)

    def _passes(self, count: int) -> None:
        """Waits until the dumper has ended so many passes, from now on."""
        from pytracer._core import ffi, lib

        maps = Path(f"/proc/{self._process.pid}/maps").read_text()
        path = next(word for word in maps.split() if "/pytrace-" in word)
        ring = ffi.new("struct ring *")
        assert lib.ring_attach(ring, path.encode(), lib.RING_READER, ffi.new("int *")) == 0
        try:
            until = lib.ring_dumper_passes(ring) + count
            while lib.ring_dumper_passes(ring) < until:
                assert self._process.poll() is None
                time.sleep(0.01)
        finally:
            lib.ring_detach(ring)

    def _is_stored(self) -> bool:
        done = subprocess.run(
            [*PYTRACE, "sql", str(self.database),
             f"SELECT count(*) FROM argument WHERE name = 'number' AND value = '{self.orders}'"
             " AND event IN (SELECT event FROM argument WHERE name = 'message' AND value = '''pause''')"],
            capture_output=True, encoding="utf-8", env=environment(),
        )  # fmt: skip
        return "1" in done.stdout

    def events(self) -> int:
        """How many there are in the database."""
        connection = apsw.Connection(str(self.database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            [(count,)] = connection.execute("SELECT sum(count) FROM segment").fetchall()
        finally:
            connection.close()
        return int(count)

    def end(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(60)

    def close(self) -> None:
        self._goes.clear()
        self._process.kill()
        self._process.wait()
        if self._thread.ident:
            self._thread.join(10)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@dataclass
class Walk:
    """Presses keys by chance. trail: what was pressed; slow: what took too long, with ms of wall,
    of CPU."""

    reader: Reader
    seed: int
    trail: list[str] = field(default_factory=list)
    slow: list[tuple[str, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self._step()

    def _step(self) -> None:
        chance = self._chance
        what = chance.random()
        if what < 0.04:
            rows, columns = chance.choice(SIZES)
            self.trail.append(f"{rows}x{columns}")
            self.reader.resize(rows, columns)
        elif what < 0.08:
            row, column = chance.randrange(self.reader.rows), chance.randrange(self.reader.columns)
            button = chance.choice((0, 0, 64, 65))
            self.trail.append(f"click {row} {column} {button}")
            self.reader.click(row, column, button)
        elif what < 0.16:
            prompt = chance.choice("//??&&@::")
            self._keys(
                "esc", prompt, *chance.choice(LINES[prompt]), chance.choice(("enter", "enter", "tab", "esc"))
            )
        elif what < 0.24:
            self._keys(chance.choice("m'-"), chance.choice("abiSNtTdpavmk'^$"))
        elif what < 0.30:
            slow, many = len(self.slow), str(chance.choice((1, 5, 30, 100, 2000)))
            self._keys(*many, chance.choice(KEYS))
            if many in ("100", "2000"):  # steps, between which any key stops it
                del self.slow[slow:]
        else:
            self._keys(*[chance.choice(KEYS) for _ in range(chance.choice((1, 1, 1, 2, 5)))])

    def _keys(self, *keys: str) -> None:
        for key in keys:
            self.trail.append(key)
            before = _usage(self.reader.process.pid)
            start = time.monotonic()
            self.reader.press(key).settled()
            wall = time.monotonic() - start
            if wall > _LONGEST:
                cpu, waited = (
                    after - then for after, then in zip(_usage(self.reader.process.pid), before, strict=True)
                )
                is_still = cpu > max(_LONGEST, wall * _DRAWING)
                if is_still or (wall - waited > _REST and not _MAY_TAKE_LONG & {*self.trail[-12:]}):
                    self.slow.append((" ".join(self.trail[-5:]), round(wall * 1000), round(cpu * 1000)))

    def compare(self) -> None:
        """The screen has to equal one that is drawn after everything is read anew."""
        self.reader.press(*MENDED).settled()
        shown = self.reader.lines[1:-1]
        self.reader.press("ctrl l").settled()
        assert self.reader.lines[1:-1] == shown, self.story(shown)

    def catch_up(self, events: int) -> None:
        """Waits until the reader knows of all events."""
        self.reader.press(*MENDED).settled()
        if self.reader.rows < 10 or self.reader.columns < 120:
            self.reader.resize(24, 120).settled()
        for _ in range(1000):
            self.reader.press("=").settled()
            if f" of {events:,} events" in self.reader.message or "nothing to show" in self.reader.message:
                return
        raise AssertionError(self.story([]))

    def story(self, shown: list[str]) -> str:
        frames = "\n".join(["", "shown:", *shown, "", "drawn anew:", *self.reader.lines])
        return f"seed {self.seed}, after {' '.join(self.trail[-40:])}{frames}\n{self.reader.errors}"


def _usage(pid: int) -> tuple[float, float]:
    """Seconds that a process's first thread has run; and that its threads, and this one, had to
    wait for a processor."""
    run = _schedule(pid, pid)[0]
    try:
        waits = [_schedule(pid, int(task.name))[1] for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # a thread has ended
        waits = []
    return run, sum(waits) + _schedule("self", threading.get_native_id())[1]


def _schedule(pid: int | str, thread: int) -> tuple[float, float]:
    running, waiting, _ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
    return int(running) / 1e9, int(waiting) / 1e9
