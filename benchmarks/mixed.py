"""Reading where Python, functions in C, native code and the kernel stand on one time line, beside a
recording of as many events of Python alone."""

import random
import statistics

from benchmarks import recordings
from benchmarks.asking import PAGE, SPAN, Question, ask, count, million
from benchmarks.query import took
from benchmarks.report import Row, say, table
from benchmarks.variants import MIXED, PYTRACE, Options

PAGES = 20  # of each process


def rows(options: Options) -> list[Row]:
    where = recordings.folder(options.databases)
    size = 5 if options.quick else 20
    paths = [recordings.database(where, size, variant) for variant in (PYTRACE, MIXED)]
    spans = [ask(path, [Question(SPAN, repeat=1)]).answers[0].row for path in paths]
    first: list[list[float]] = [[], []]
    pages: list[list[float]] = [[], []]
    choice = random.Random(1)
    for _ in range(options.rounds or (5 if options.quick else 20)):
        for which, path in enumerate(paths):
            command = [*PYTRACE.command[: PYTRACE.command.index("-q")], "print", "--limit", "60", str(path)]
            first[which].append(took(command))
            times = [[choice.randint(*spans[which])] for _ in range(PAGES)]
            pages[which] += ask(path, [Question(PAGE, times, 1)]).answers[0].times
    events = f"{million(count(paths[1]))} million events"
    lines = [
        (name, what, *(f"{of * 1e3:.1f}" for of in (statistics.median(all), min(all), max(all))))
        for what, measured in (("first page", first), ("page at a random time", pages))
        for name, all in zip(("Python", "all layers"), measured, strict=True)
    ]
    say(table((events, "ms", "median", "smallest", "largest"), lines))

    def over(measured: list[list[float]]) -> str:
        plain, mixed = map(statistics.median, measured)
        return f"{mixed / plain:.2f}x"

    return [
        Row(f"first page, {events} of all layers, over Python's", "1.0x", "", over(first)),
        Row("page at a random time, the same", "1.0x", "", over(pages)),
    ]
