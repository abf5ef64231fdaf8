"""Eight threads, and eight processes, that make events flat out, against one: time and loss.

Both sides do the same work in total, recorded and bare. Of processes, eight use both processors
bare, and one does not; recorded, eight leave none to the dumper. So the processor time stands
beside the elapsed time: what recording costs the program itself.
"""

import statistics

from benchmarks.report import Row, say, table
from benchmarks.scripts import OWN, Ran, exactly, run_script
from benchmarks.variants import PYTRACE, Options

MANY = 8


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    rounds = options.rounds or (3 if options.quick else 9)
    times = 640 if options.quick else 2400  # of fib(18): 17,000 events each
    made, lines = [], []
    for how in ("threads", "processes"):
        runs: dict[tuple[int, bool], list[Ran]] = {
            (count, recorded): [] for count in (1, MANY) for recorded in (False, True)
        }
        for _ in range(rounds):
            for (count, recorded), of in runs.items():
                of.append(run_script("producers.py", how, count, times, recorded=recorded, env=OWN))
        ratios = {
            what: {key: median(of, what) for key, of in runs.items()} for what in ("seconds", "processor")
        }
        for (count, recorded), of in runs.items():
            seconds, processor = (ratios[what][count, recorded] for what in ratios)
            lines.append(
                (
                    f"{count} {how}" + ", recorded" * recorded,
                    f"{seconds:.3f}",
                    f"{processor:.3f}",
                    f"{seconds / ratios['seconds'][count, False]:.2f}",
                    f"{processor / ratios['processor'][count, False]:.2f}",
                    exactly(of) if recorded else "",
                )
            )
        elapsed, over, own = (
            ratios["seconds"][MANY, True] / ratios["seconds"][1, True],
            slowdown(ratios["seconds"]),
            slowdown(ratios["processor"]),
        )
        made += [
            Row(
                f"{MANY} {how} flat out against one, the same work in total: recorded, elapsed time",
                "1.1x",
                "1.0x",
                f"{elapsed:.2f}x",
            ),
            Row(
                "the same, each over bare: elapsed time; processor time of the program",
                "1.1x",
                "1.0x",
                f"{over:.2f}x; {own:.2f}x",
            ),
            Row(f"lost: {MANY} {how} flat out", "counted exactly", "0", exactly(runs[MANY, True])),
        ]
    say(table(("flat out", "seconds", "processor", "over bare", "over bare", "lost"), lines))
    return made


def median(runs: list[Ran], what: str) -> float:
    return statistics.median([float(ran.said[what]) for ran in runs])


def slowdown(of: dict[tuple[int, bool], float]) -> float:
    """How much slower recording makes many, over how much slower it makes one."""
    return of[MANY, True] / of[MANY, False] / (of[1, True] / of[1, False])
