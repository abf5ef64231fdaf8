"""The time that recording adds to the start and end of a thread, a forked child, a new Python.

Each round runs bare, with everything recorded and with own code alone, one behind the other, and
the next round the other way round. The result is the difference to bare within a round, each
process being told by the median of its times (of processor time, which only the sum is known of, by
the mean). Printed is the median of these differences over all rounds, so that neither a machine
that becomes slower nor a round that was disturbed moves it.
"""

import statistics
from dataclasses import dataclass, field

from benchmarks.report import Row, say, table
from benchmarks.scripts import OWN, run_script
from benchmarks.variants import PYTRACE, Options


@dataclass(frozen=True)
class Kind:
    """Something that is started and ended."""

    name: str  # in inside/births.py
    what: str
    often: int  # in a process
    rounds: int
    unit: str
    units: float  # a second
    must: str = ""
    aim: str = ""


KINDS = (
    Kind("thread", "a thread, start and end", 1000, 21, "µs", 1e6, "+20 µs", "+5 µs"),
    Kind("fork", "a fork, to the end of the child", 150, 21, "µs", 1e6, "+500 µs", "+200 µs"),
    Kind("python", "`python -c pass` as a subprocess", 10, 9, "ms", 1e3, "+40 ms", "+15 ms"),
    Kind("spawn", "a process of multiprocessing, spawned", 10, 9, "ms", 1e3),
)
VARIANTS = ("bare", "everything", "own code")


@dataclass
class Times:
    """Of one variant, in the kind's units; one a round."""

    elapsed: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    made, lines = [], []
    for kind in KINDS:
        times = measure(kind, options.rounds or (5 if options.quick else kind.rounds))
        bare, all_, own = (times[variant] for variant in VARIANTS)
        elapsed = (statistics.median(times[variant].elapsed) for variant in VARIANTS)
        processor = (statistics.median(times[variant].processor) for variant in VARIANTS)
        lines.append((kind.what, kind.unit, *(f"{figure:.1f}" for figure in (*elapsed, *processor))))
        made.append(
            Row(
                kind.what,
                kind.must,
                kind.aim,
                f"{added(all_.elapsed, bare.elapsed)} {kind.unit}"
                f" ({added(own.elapsed, bare.elapsed)} with own code recorded alone);"
                f" of processor time {added(all_.processor, bare.processor)}"
                f" ({added(own.processor, bare.processor)})",
            )
        )
    heads = ("start and end", "unit", *VARIANTS, *(f"processor: {variant}" for variant in VARIANTS))
    say(table(heads, lines))
    return made


def measure(kind: Kind, rounds: int) -> dict[str, Times]:
    times = {variant: Times() for variant in VARIANTS}
    for number in range(rounds):
        for variant in VARIANTS if number % 2 == 0 else reversed(VARIANTS):
            env = OWN if variant == "own code" else {}
            ran = run_script("births.py", kind.name, kind.often, recorded=variant != "bare", env=env)
            times[variant].elapsed.append(statistics.median(ran.said["times"]) * kind.units)
            times[variant].processor.append(ran.said["processor"] * kind.units)
    return times


def added(recorded: list[float], bare: list[float]) -> str:
    """The median of the rounds' differences."""
    return f"{statistics.median(a - b for a, b in zip(recorded, bare, strict=True)):+.1f}"
