"""Questions to databases of 1 to 100 million events, beside what bounds them and what one would do without.

The bound is the decompression of the same bytes; the other way is one row an event in an ordinary table.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from benchmarks import decompression, recordings
from benchmarks.measure import INSIDE
from benchmarks.processes import Failed, environment
from benchmarks.recordings import MILLION, NEEDLE, RARE
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, PYTRACE, Options

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
PAGE = f"SELECT {COLUMNS} FROM event WHERE time >= ? ORDER BY time, id LIMIT 60"
FIRST_HIT = f"SELECT {COLUMNS} FROM event WHERE func = ? ORDER BY time LIMIT 1"
PLAIN = """
CREATE TABLE plain.event (id INTEGER, run INTEGER, time INTEGER, pid INTEGER, tid INTEGER, thread TEXT,
    kind TEXT, module TEXT, func TEXT, file TEXT, line INTEGER, depth INTEGER, duration INTEGER);
CREATE TABLE plain.argument (event INTEGER, position INTEGER, name TEXT, value TEXT, type TEXT);
"""
LOAD = f"""
INSERT INTO plain.event SELECT {COLUMNS} FROM main.event;
INSERT INTO plain.argument SELECT event, position, name, value, type FROM main.argument
"""


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

    @property
    def median(self) -> float:
        return statistics.median(self.times)


@dataclass
class Memory:
    """The most that a process had at a time, in bytes."""

    own: int = 0  # anonymous
    mapped: int = 0  # of files, which others may share


@dataclass
class Asked:
    """What one process made of its questions."""

    answers: list[Answer]
    opened: float  # seconds: until it was connected, the extension loaded
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
        said = json.loads(result.read_text())
        return Asked([Answer(*answer) for answer in said["answers"]], said["opened"], memory)


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


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    where = recordings.folder(options.databases)
    sizes = [1, 5, 20] if options.quick else [1, 5, 20, 100]
    paths = {size: recordings.database(where, size) for size in sizes}
    large, events = paths[sizes[-1]], count(paths[sizes[-1]])
    rounds = options.rounds or (3 if options.quick else 5)
    say(f"   {large}: {events:,} events in {large.stat().st_size:,} bytes")
    middle, most = functions(paths[5])
    bounds = decompression.seconds(large)
    return [
        *pages(large, events, 4 * rounds),
        *scans(large, events, middle, most, bounds, rounds),
        *against_rows(paths[5], most, rounds),
        linear(paths, most, rounds),
        scan_memory(large, events),
    ]


def count(path: Path) -> int:
    import apsw

    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        events: Any = connection.execute("SELECT sum(count) FROM segment").get
    return int(events)


def functions(path: Path) -> tuple[str, str]:
    """The function in the middle of those with events, by how many, and the one with the most."""
    by_count = "SELECT func, row_number() OVER (ORDER BY count(*)) AS place FROM event GROUP BY func"
    which = "place = (SELECT {} FROM f)"
    sql = f"WITH f AS ({by_count}) SELECT func FROM f WHERE {which}"
    answers = ask(
        path, [Question(sql.format(of), repeat=1) for of in ("max(place) / 2", "max(place)")]
    ).answers
    return answers[0].row[0], answers[1].row[0]


def pages(path: Path, events: int, rounds: int) -> list[Row]:
    """The first page as a new process, pages at random times, the first hit."""
    times: dict[str, list[float]] = {"python -c pass": [], "pytrace print --limit 60": []}
    pytrace = PYTRACE.command[: PYTRACE.command.index("-q")]
    for _ in range(rounds):
        times["python -c pass"].append(took([*BARE.command, "-c", "pass"]))
        times["pytrace print --limit 60"].append(took([*pytrace, "print", "--limit", "60", str(path)]))
    ((start, end),) = [
        ask(path, [Question("SELECT min(time), max(time) FROM event", repeat=1)]).answers[0].row
    ]
    choice = random.Random(1)
    random_times = [[choice.randint(start, end)] for _ in range(200)]
    page, hit = ask(path, [Question(PAGE, random_times, 1), Question(FIRST_HIT, [[RARE]], rounds)]).answers
    times["page at a random time"] = page.times
    times["first hit"] = hit.times
    fresh = [ask(path, [Question(FIRST_HIT, [[RARE]], 1)]) for _ in range(rounds)]
    times["first hit, on a new connection, with it"] = [of.opened + of.answers[0].best for of in fresh]
    lines = [
        (name, *(f"{of * 1e3:.1f}" for of in (statistics.median(all), min(all), max(all))))
        for name, all in times.items()
    ]
    say(table((f"ms, {million(events)} million events", "median", "smallest", "largest"), lines))
    bare, first, random_page, on_open, on_new = (statistics.median(all) * 1e3 for all in times.values())
    size = f"{million(events)} million events"
    return [
        Row(
            f"open and show the first page, {size}",
            "150 ms",
            "60 ms",
            f"{first:.0f} ms (of which Python's start {bare:.0f})",
        ),
        Row(
            f"page at a random time, {size}",
            "50 ms",
            "15 ms",
            f"{random_page:.1f} ms (at worst {max(page.times) * 1e3:.1f})",
        ),
        Row(
            f"first hit of a function called ten times, {size}",
            "50 ms",
            "20 ms",
            f"{on_open:.1f} ms (on a new connection {on_new:.1f})",
        ),
    ]


def scans(path: Path, events: int, middle: str, most: str, bounds: Sequence[float], rounds: int) -> list[Row]:
    """What looks through everything, beside decompressing everything."""
    questions = {
        "func = 'x', called ten times": Question(COUNT, [[RARE]], rounds),
        "func = 'x', of middle frequency": Question(COUNT, [[middle]], rounds),
        "func = 'x', the most frequent": Question(COUNT, [[most]], rounds),
        "func LIKE '%e%'": Question("SELECT count(*) FROM event WHERE func LIKE '%e%'", repeat=rounds),
        "depth = 5": Question("SELECT count(*) FROM event WHERE depth = 5", repeat=rounds),
        "duration > 10 ms": Question("SELECT count(*) FROM event WHERE duration > 10000000", repeat=rounds),
        "kind = 'exception'": Question("SELECT count(*) FROM event WHERE kind = 'exception'", repeat=rounds),
        "value LIKE '%needle%', absent": Question(LIKE, [[ABSENT]], rounds),
        "value LIKE '%needle%', twenty times": Question(LIKE, [[NEEDLE]], rounds),
        "name = 'self' and value LIKE '%needle%'": Question(LIKE + " AND name = 'self'", [[ABSENT]], rounds),
    }
    answers = dict(zip(questions, ask(path, list(questions.values())).answers, strict=True))

    def speed(seconds: float) -> str:
        return f"{events / seconds / 1e6:,.0f}"

    lines = [(name, f"{of.row[0]:,}", f"{of.best:.3f}", speed(of.best)) for name, of in answers.items()]
    one, two = (speed(bound) for bound in bounds)
    lines += [
        (f"decompression of all, {cores}", "", f"{bound:.3f}", speed(bound))
        for cores, bound in zip(("one core", "two cores"), bounds, strict=True)
    ]
    say(table((f"{million(events)} million events", "found", "s", "million events/s"), lines))
    rare, mid, frequent, *_ = (speed(of.best) for of in answers.values())
    like = [speed(of.best) for name, of in answers.items() if name.startswith("value")]
    bound = f"decompression alone: {one} on one core, {two} on two"
    return [
        Row(
            "`count(*)` with `func = 'x'`, million events a second",
            "50",
            "150",
            f"{frequent} the most frequent one, {mid} of middle frequency, {rare} called ten times; {bound}",
        ),
        Row(
            "`value LIKE '%needle%'` over all strings, million events a second",
            "20",
            "60",
            f"{like[0]} absent, {like[1]} rare; {bound}",
        ),
    ]


def against_rows(path: Path, most: str, rounds: int) -> list[Row]:
    """The same questions to ordinary tables with a row an event and a row an argument."""
    events = count(path)
    with tempfile.TemporaryDirectory(prefix="plain-", dir=path.parent) as folder:
        plain = Path(folder) / "plain.sqlite"
        load = loaded(path, plain)
        size = plain.stat().st_size
        ours, theirs = both(path, plain, most, rounds)
        index = Question("CREATE INDEX event_func ON event (func)", repeat=1)
        made, indexed = ask(plain, [index, Question(COUNT, [[most]], rounds)], plain=True).answers
        indexed_size = plain.stat().st_size
    ratios = {name: theirs[name].best / ours[name].best for name in ours}
    lines = [
        (name, f"{ours[name].best * 1e3:.1f}", f"{theirs[name].best * 1e3:.1f}", f"{ratio:.1f}x")
        for name, ratio in ratios.items()
    ]
    say(table((f"ms, {million(events)} million events", "recording", "one row an event", "ratio"), lines))
    say(
        f"bytes: {path.stat().st_size:,} here, {size:,} in rows, loaded in {load:.1f} s (reading the "
        f"recording included); with an index on func {indexed_size:,}, made in {made.best:.1f} s, that "
        f"answers count(*) in {indexed.best * 1e3:.1f} ms"
    )
    by_func, like, *_ = ratios.values()
    inside, tuples = (
        tuple(events / of[name].best / 1e6 for of in (ours, theirs)) for name in list(ratios)[2:]
    )
    return [
        Row(
            "the same two against one row an event in an ordinary table",
            "10x",
            "40x",
            f"{by_func:.0f}x, {like:.0f}x (the table: {size / path.stat().st_size:.0f}x the size, "
            f"loaded at {events / load / 1e6:.2f} million events a second)",
        ),
        Row(
            "rows handed out with all columns, million a second",
            "2",
            "5",
            f"{inside[0]:.1f} inside SQLite, {tuples[0]:.1f} as Python's tuples "
            f"(of the ordinary table: {inside[1]:.1f}, {tuples[1]:.1f})",
        ),
    ]


def loaded(path: Path, plain: Path) -> float:
    """Makes ordinary tables of a recording's events and arguments; the seconds that it takes."""
    unsafe = "PRAGMA plain.journal_mode = OFF; PRAGMA plain.synchronous = OFF;"
    questions = [
        Question("ATTACH ? AS plain", [[str(plain)]], 1),
        Question(unsafe + PLAIN, repeat=1),
        Question(LOAD, repeat=1),
    ]
    return ask(path, questions).answers[-1].best


def both(path: Path, plain: Path, most: str, rounds: int) -> tuple[dict[str, Answer], dict[str, Answer]]:
    """The answers of the recording and of the ordinary tables; they take turns. Raises Failed."""
    questions = {
        "count(*) with func = 'x'": Question(COUNT, [[most]]),
        "value LIKE '%needle%'": Question(LIKE, [[ABSENT]]),
        "all columns, inside SQLite": Question(ROWS_SQLITE, repeat=1),
        "all columns, as Python's tuples": Question(ROWS_PYTHON, repeat=1),
    }
    answers: list[dict[str, Answer]] = [{name: Answer([], []) for name in questions} for _ in range(2)]
    for _ in range(rounds):
        for which, of in enumerate((path, plain)):
            for name, new in zip(
                questions, ask(of, list(questions.values()), of == plain).answers, strict=True
            ):
                answers[which][name].times += new.times
                answers[which][name].row = new.row
    ours, theirs = answers
    for name in questions:
        if ours[name].row != theirs[name].row:
            raise Failed(f"{name}: {ours[name].row} in the recording, {theirs[name].row} in rows")
    return ours, theirs


def linear(paths: dict[int, Path], most: str, rounds: int) -> Row:
    """The same scans over databases of all sizes."""
    lines, speeds = [], []
    for path in paths.values():
        events = count(path)
        questions = [Question(COUNT, [[most]], 2 * rounds), Question(LIKE, [[ABSENT]], 2 * rounds)]
        by_func, like = (events / of.best / 1e6 for of in ask(path, questions).answers)
        lines.append((f"{events:,}", f"{by_func:,.0f}", f"{like:,.0f}"))
        speeds.append(f"{like:,.0f}")
    say(table(("events", "func = 'x', million/s", "LIKE, million/s"), lines))
    sizes = ", ".join(f"{size}" for size in paths)
    return Row(
        f"million events a second, as the database grows: {sizes} million events",
        "linear",
        "linear",
        f"`LIKE`: {', '.join(speeds)}",
    )


def scan_memory(path: Path, events: int) -> Row:
    lines, most = [], 0
    for name, questions in {
        "connected only": [Question("SELECT 1", repeat=1)],
        "LIKE": [Question(LIKE, [[ABSENT]], 1)],
        "all columns of all rows": [Question(ROWS_SQLITE, repeat=1)],
    }.items():
        memory = ask(path, questions).memory
        most = max(most, memory.own + memory.mapped)
        lines.append((name, f"{memory.own / 2**20:.1f}", f"{memory.mapped / 2**20:.1f}"))
    say(table(("resident MiB, at most", "own", "mapped files"), lines))
    return Row(
        f"memory of a scan over {million(events)} million events",
        "200 MiB",
        "60 MiB",
        f"{most / 2**20:.0f} MiB",
    )


def million(events: int) -> int:
    return round(events / MILLION)


def took(command: Sequence[str]) -> float:
    """Seconds until a command has ended."""
    start = perf_counter()
    status = subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, cwd="/").returncode
    end = perf_counter()
    if status:
        raise Failed(f"{command} ended with {status}")
    return end - start
