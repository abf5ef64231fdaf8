"""`pytrace read` in a terminal of 200x60, driven by keys: from a key to the last byte of the
redraw.

pager.py compares it with less, follow.py looks at new events while they are recorded.
"""

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks import follow, pager, recordings
from benchmarks.asking import SPAN, Question, ask, count, million
from benchmarks.processes import Failed, environment
from benchmarks.recordings import RARE
from benchmarks.report import Row, say, table
from benchmarks.terminal import ROWS, Redraw, Terminal
from benchmarks.variants import PYTRACE, Options

READ = (*PYTRACE.command[: PYTRACE.command.index("-q")], "read")
QUIET = 0.3  # s without a byte
FRAME = 12  # rows of a full screen that need not be events, at most
LAST = r"report\(done=10"  # of the few calls, the last: behind nine tenths of the recording
ABSENT = "nowhere to be found"
SPECIAL = {"right": b"\x1b[C", "left": b"\x1b[D", "backspace": b"\x7f"}
# movements that are measured as jumps, or that wait for another key
APART = ("first", "last", "percent", "time", "mark", "to-mark", "uncaught")
FAR = {"E": "uncaught", "o": "object"}  # keys that may have to look at much of the recording
CANCEL = b"\x07"
OBJECT = b"/self=[A-Z]\\w+@\r"  # a search for a line with an object of a class
CHOICE = b"follow"  # the menu of several objects
OWN = b"(M: all)"  # in the status line, where only own code is shown


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    where = recordings.folder(options.databases)
    path = recordings.database(where, 20 if options.quick else 100)
    rounds = options.rounds or (5 if options.quick else 20)
    say(f"   {path}: {million(count(path))} million events")
    recording = Recording(path)
    return [
        start(recording, rounds),
        first_screen(recording, rounds),
        movements(recording, rounds),
        jumps(recording, rounds),
        far(recording, max(1, rounds // 5)),
        search(recording, max(1, rounds // 5)),
        filtering(recording, rounds),
        *where_time_goes(recording, rounds),
        scopes(recording, rounds),
        *follow.rows(READ, options),
        memory(recording, 1000 if options.quick else 10_000),
        *pager.rows(READ, recordings.database(where, 5), max(1, rounds // 10)),
    ]


class Recording:
    """The facts of a recording that the walk through it needs."""

    def __init__(self, path: Path) -> None:
        self.path, self.events = path, count(path)
        self.first, self.last = ask(path, [Question(SPAN, repeat=1)]).answers[0].row
        self._choice = random.Random(1)

    def open(self) -> Terminal:
        """A reader that has drawn its first page, and what it looks up afterwards."""
        reader = Terminal([*READ, str(self.path)])
        reader.wait(lambda: bool(reader.idles), "at the start")
        while reader.listen(QUIET):
            pass
        return reader

    def random_time(self) -> bytes:
        """The keys that go to a random time."""
        return b"@+%.6fs\r" % self._choice.uniform(0, (self.last - self.first) / 1e9)

    def one(self, sql: str, *parameters: object) -> int:
        row = ask(self.path, [Question(sql, [parameters], 1)]).answers[0].row
        return int(row[0])


def clock(ns: int) -> bytes:
    """A time as it is shown."""
    return time.strftime(f"%H:%M:%S.{ns // 1000 % 1_000_000:06}", time.localtime(ns // 10**9)).encode()


def milliseconds(times: Iterable[float]) -> tuple[str, str]:
    """The median and the largest."""
    all = [time * 1e3 for time in times]
    return f"{statistics.median(all):.1f}", f"{max(all):.1f}"


def start(recording: Recording, rounds: int) -> Row:
    """From the start of the process until the time of an event far down stands on the screen."""
    sql = "SELECT time FROM event ORDER BY time, id LIMIT 1 OFFSET ?"
    low = clock(recording.one(sql, ROWS - FRAME))
    first, full, idle = [], [], []
    for _ in range(rounds):
        with Terminal([*READ, str(recording.path)]) as reader:
            full.append(reader.wait_for(low) - reader.started)
            first.append(reader.output[0][0] - reader.started)
            reader.wait(lambda: bool(reader.idles), "at the start")
            idle.append(reader.idles[0] - reader.started)
            reader.quit()
    lines = [("first byte", first), ("first full page", full), ("all drawn", idle)]
    say(table(("start, ms", "median", "largest"), [(name, *milliseconds(times)) for name, times in lines]))
    median, largest = milliseconds(full)
    return Row("reader: start to first full page", "300 ms", "150 ms", f"{median} ms (at worst {largest})")


def first_screen(recording: Recording, rounds: int) -> Row:
    """From the start of the process until the outline of own code stands on the screen."""
    shown = []
    for _ in range(rounds):
        with Terminal([*READ, str(recording.path)], view="") as reader:
            shown.append(reader.wait_for(OWN) - reader.started)
            reader.wait(lambda: bool(reader.idles), "at the start")
            reader.quit()
    median, largest = milliseconds(shown)
    return Row(
        "reader: start to the outline of own code", "200 ms", "150 ms", f"{median} ms (at worst {largest})"
    )


def scopes(recording: Recording, rounds: int) -> Row:
    """`M` at random places: from all code to own code, to near code, to all; and a page of each."""
    times: dict[str, list[Redraw]] = {}
    with recording.open() as reader:
        for _ in range(rounds):
            reader.press(recording.random_time())
            for scope in ("own", "near", "all"):
                times.setdefault(f"`M` to {scope} code", []).append(reader.press(b"M"))
                times.setdefault(f"space in {scope} code", []).append(reader.press(b" "))
        reader.quit()
    say_redraws("scope", times)
    medians = [f"{name} {milliseconds(of.last for of in redraws)[0]}" for name, redraws in times.items()]
    return Row("reader: `M`, and pages of own code", "30 ms", "16 ms", f"{', '.join(medians)} ms")


def movements(recording: Recording, rounds: int) -> Row:
    """Each key that moves, at random places; the keys are those of the reader's own table."""
    moves = [(name, key) for name, key in keys(groups=2) if name not in APART]
    times: dict[str, list[Redraw]] = {}
    with recording.open() as reader:
        for _ in range(rounds):
            for name, key in moves:
                reader.press(recording.random_time())
                redraw = reader.press(SPECIAL.get(key, key.encode()))
                times.setdefault(f"`{key}` {name}", []).append(redraw)
        reader.quit()
    say_redraws("key", times)
    every = [redraw.last for redraws in times.values() for redraw in redraws]
    medians = {name: statistics.median(of.last for of in redraws) for name, redraws in times.items()}
    slowest = max(medians, key=lambda name: medians[name])
    return Row(
        "reader: key to redrawn screen, any movement",
        "30 ms",
        "16 ms",
        f"{statistics.median(every) * 1e3:.1f} ms; the slowest key, {slowest}: {medians[slowest] * 1e3:.1f}; "
        f"at worst {max(every) * 1e3:.1f}",
    )


def keys(groups: int) -> list[tuple[str, str]]:
    """The commands of the first groups of the installed reader's table, and each one's first
    key."""
    code = (
        "import json; from pytracer.reader.screen.commands.table import GROUPS;"
        f"print(json.dumps([(c.name, c.keys[0]) for _, group in GROUPS[:{groups}] for c in group]))"
    )
    command = [sys.executable, "-P", "-c", code]
    answer = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, check=True).stdout
    return [(name, key) for name, key in json.loads(answer)]


def say_redraws(head: str, times: dict[str, list[Redraw]]) -> None:
    heads = (f"{head}, ms", "first byte", "last byte: median", "largest", "all done: median", "largest")
    lines = [
        (
            name,
            milliseconds(of.first for of in redraws)[0],
            *milliseconds(of.last for of in redraws),
            *milliseconds(of.idle for of in redraws),
        )
        for name, redraws in times.items()
    ]
    say(table(heads, lines))


def jumps(recording: Recording, rounds: int) -> Row:
    """To the ends, to a per cent, to a time; always from somewhere else."""
    times: dict[str, list[Redraw]] = {}
    ends = {"G": clock(recording.last), "g": clock(recording.first)}
    with recording.open() as reader:
        for _ in range(rounds):
            for name, keys in {"time": recording.random_time(), "G": b"G", "50%": b"50%", "g": b"g"}.items():
                times.setdefault(name, []).append(reader.press(keys))
                if name in ends and ends[name] not in reader.text:
                    raise Failed(f"`{name}` did not go there")
        reader.quit()
    say_redraws("jump", times)
    medians = [f"{name} {milliseconds(of.last for of in redraws)[0]}" for name, redraws in times.items()]
    largest = max(redraw.last for redraws in times.values() for redraw in redraws)
    measured = f"{', '.join(medians)} ms; at worst {largest * 1e3:.1f}"
    return Row("reader: `G`, `g`, `50%`, to a time", "100 ms", "30 ms", measured)


def far(recording: Recording, rounds: int) -> Row:
    """From calls of methods at random places: to the newest exception that nobody caught, and to
    the events of an object, until all is drawn."""
    times: dict[str, list[Redraw]] = {}
    with recording.open() as reader:
        for _ in range(rounds):
            for key, name in FAR.items():
                reader.press(recording.random_time())
                reader.press(OBJECT)
                redraw = reader.press(key.encode())
                if CHOICE in reader.text:
                    redraw = reader.press(b"\r")
                times.setdefault(f"`{key}` {name}", []).append(redraw)
                reader.press(CANCEL)
        reader.quit()
    say_redraws("key", times)
    medians = [f"{name} {milliseconds(of.idle for of in redraws)[0]}" for name, redraws in times.items()]
    return Row("reader: `E`, `o`", "10 s, stoppable", "30 ms", f"{', '.join(medians)} ms")


def search(recording: Recording, rounds: int) -> Row:
    """From the first event to the last of ten hits, and to none; how many events are passed a
    second."""
    sql = "SELECT time FROM event WHERE func = ? AND kind = 'call' ORDER BY time DESC LIMIT 1"
    hit = recording.one(sql, RARE)
    events = recording.one("SELECT count(*) FROM event WHERE time < ?", hit)
    found, all = [], []
    with recording.open() as reader:
        for _ in range(rounds):
            reader.press(b"g")
            found.append(reader.press(b"/%s\r" % LAST.encode()).last)
            if clock(hit) not in reader.text:
                raise Failed("the search found something else")
            reader.press(b"g")
            all.append(reader.press(b"/%s\r" % ABSENT.encode()).idle)
        reader.quit()
    lines = []
    for name, of, passed in ((LAST, found, events), (ABSENT, all, recording.events)):
        median = statistics.median(of)
        lines.append((name, f"{median:.2f}", f"{max(of):.2f}", f"{passed / median / 1e6:.1f}"))
    say(table(("search", "median s", "largest", "million events/s"), lines))
    return Row(
        "reader: `/` to a hit far away, million events a second",
        "10",
        "40",
        f"{lines[0][-1]}; through everything, without a hit: {lines[1][-1]}",
    )


def filtering(recording: Recording, rounds: int) -> Row:
    """Setting a filter for a function that is called ten times, at random places."""
    times: list[Redraw] = []
    for _ in range(rounds):
        with recording.open() as reader:
            reader.press(recording.random_time())
            times.append(reader.press(b"&func == '%s'\r" % RARE.encode()))
            if not all(b"%s(done=%d," % (RARE.encode(), number) in reader.text for number in range(1, 11)):
                raise Failed("the filter shows something else")
            reader.quit()
    say_redraws("filter", {f"func == '{RARE}'": times})
    median, largest = milliseconds(redraw.last for redraw in times)
    what = "reader: filter set to first page, rare function"
    return Row(what, "150 ms", "60 ms", f"{median} ms (at worst {largest})")


def where_time_goes(recording: Recording, rounds: int) -> list[Row]:
    """`V` at random places, at several scales; `H` to its first rows, and until all times are
    counted; `l` for the first time, and again."""
    lanes: dict[str, list[Redraw]] = {}
    hot, slow, again = [], [], []
    with recording.open() as reader:
        for _ in range(rounds):
            reader.press(recording.random_time())
            for name, keys in {"V": b"V", "-": b"-", "+": b"+", "-----": b"-----"}.items():
                lanes.setdefault(name, []).append(reader.press(keys))
            reader.press(b"q")
        reader.quit()
    for _ in range(max(rounds // 10, 1)):
        with recording.open() as reader:
            hot.append(reader.press(b"H"))
            reader.press(b"q")
            slow.append(reader.press(b"l"))
            again.append(reader.press(b"l"))
            reader.quit()
    say_redraws("lanes", lanes)
    say_redraws("list", {"`H`": hot, "`l`": slow, "`l` again": again})
    every = [redraw.last for redraws in lanes.values() for redraw in redraws]
    first = [redraw.first for redraws in lanes.values() for redraw in redraws]
    drawn, drawn_last = milliseconds(every)
    counted, ranked = statistics.median(of.idle for of in hot), statistics.median(of.idle for of in slow)
    return [
        Row(
            "reader: `V`, key to the first bars; to all of them",
            "30 ms; 1 s",
            "16 ms; 200 ms",
            f"{milliseconds(first)[0]} ms; {drawn} ms (at worst {drawn_last})",
        ),
        Row(
            "reader: `H`, key to the list; until all times are counted",
            "30 ms; 60 s",
            "16 ms; 10 s",
            f"{milliseconds(of.first for of in hot)[0]} ms; {counted:.1f} s",
        ),
        Row(
            "reader: `l`, the first time; again",
            "60 s; 30 ms",
            "10 s; 16 ms",
            f"{ranked:.1f} s; {milliseconds(of.last for of in again)[0]} ms",
        ),
    ]


def memory(recording: Recording, pages: int) -> Row:
    """The peak of resident memory after a walk: pages, mostly forward, with jumps in between."""
    choice = random.Random(2)
    with recording.open() as reader:
        begun = reader.resident()
        for page in range(pages):
            jump = recording.random_time() if page % 100 == 99 else b""
            reader.press(jump or choice.choices((b" ", b"b", b"%", b"x"), (75, 15, 5, 5))[0])
        most = reader.resident()
        reader.quit()
    measured = f"{most / 2**20:.0f} MiB (of which at the start {begun / 2**20:.0f})"
    return Row(f"reader: memory after {pages:,} pages", "150 MiB", "80 MiB", measured)
