"""Questions to databases of 1 to 100 million events, beside what bounds them and what one would do
without.

The bound is the decompression of the same bytes; the other way is one row an event in an ordinary
table.
"""

import random
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from benchmarks import decompression, recordings
from benchmarks.asking import (
    ABSENT,
    COUNT,
    FIRST_HIT,
    LIKE,
    PAGE,
    ROWS_SQLITE,
    SPAN,
    Question,
    ask,
    count,
    million,
)
from benchmarks.ordinary import against_rows
from benchmarks.processes import Failed, environment
from benchmarks.recordings import NEEDLE, RARE
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, PYTRACE, Options


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
    pytrace = PYTRACE.command[: PYTRACE.command.index("-q")]
    commands = {
        "python -c pass": [*BARE.command, "-c", "pass"],
        "pytrace print --limit 60": [*pytrace, "print", "--limit", "60", str(path)],
        "first hit by pytrace print": [*pytrace, "print", f"--filter=func=='{RARE}'", "--limit=1", str(path)],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(took(command))
    start, end = ask(path, [Question(SPAN, repeat=1)]).answers[0].row
    choice = random.Random(1)
    random_times = [[choice.randint(start, end)] for _ in range(200)]
    page, hit = ask(path, [Question(PAGE, random_times, 1), Question(FIRST_HIT, [[RARE]], rounds)]).answers
    fresh = [ask(path, [Question(FIRST_HIT, [[RARE]], 1)]) for _ in range(rounds)]
    times["page at a random time"] = page.times
    times["first hit, first of all on a new connection"] = [of.answers[0].best for of in fresh]
    times["first hit"] = hit.times
    lines = [
        (name, *(f"{of * 1e3:.1f}" for of in (statistics.median(all), min(all), max(all))))
        for name, all in times.items()
    ]
    size = f"{million(events)} million events"
    say(table((f"ms, {size}", "median", "smallest", "largest"), lines))
    bare, first, printed, random_page, on_new, on_open = (
        statistics.median(all) * 1e3 for all in times.values()
    )
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
            f"{on_open:.1f} ms (on a new connection {on_new:.1f}, by `pytrace print` {printed:.0f})",
        ),
    ]


def scans(path: Path, events: int, middle: str, most: str, bounds: Sequence[float], rounds: int) -> list[Row]:
    """Full scans, beside decompressing everything."""
    questions = {
        f"func = '{RARE}', called ten times": Question(COUNT, [[RARE]], rounds),
        f"func = '{middle}', of middle frequency": Question(COUNT, [[middle]], rounds),
        f"func = '{most}', the most frequent": Question(COUNT, [[most]], rounds),
        "func LIKE '%e%'": Question("SELECT count(*) FROM event WHERE func LIKE '%e%'", repeat=rounds),
        "depth = 5": Question("SELECT count(*) FROM event WHERE depth = 5", repeat=rounds),
        "duration > 10 ms": Question("SELECT count(*) FROM event WHERE duration > 10000000", repeat=rounds),
        "kind = 'exception'": Question("SELECT count(*) FROM event WHERE kind = 'exception'", repeat=rounds),
        "value LIKE '%needle%', absent": Question(LIKE, [[ABSENT]], rounds),
        "value LIKE '%needle%', twenty times": Question(LIKE, [[NEEDLE]], rounds),
        "value LIKE '%7777777%' (in no number)": Question(LIKE, [["%7777777%"]], rounds),
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


def took(command: Sequence[str]) -> float:
    """Seconds until a command has ended."""
    start = perf_counter()
    status = subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, cwd="/").returncode
    end = perf_counter()
    if status:
        raise Failed(f"{command} ended with {status}")
    return end - start
