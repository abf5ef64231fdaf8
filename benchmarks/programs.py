"""The cost of recording for real programs: ten of pyperformance, each inside one process.

Prints each one's slowdown by every tracer, and for pytrace what the recordings came to.
"""

from collections.abc import Sequence, Sized
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measure import Result, compare, dumper_start, geometric_mean
from benchmarks.processes import Failed
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, NOTHING_ALL, PEERS, PYTRACE, TRACE0, VIZTRACER_VALUES, Options, Variant

TEN = (
    "deltablue",
    "richards",
    "go",
    "raytrace",
    "chaos",
    "json_dumps",
    "pyflate",
    "generators",
    "regex_compile",
    "logging",
)


def workload(program: str) -> str:
    """The arguments of measure.py for a program; raises Failed if pyperformance is not
    installed."""
    spec = find_spec("pyperformance")
    if not spec or not spec.origin:
        raise Failed("pyperformance is not installed: pip install pyperformance")
    folder = Path(spec.origin).parent / "data-files" / "benchmarks" / f"bm_{program}"
    return f"{program}={folder / 'run_benchmark.py'}"


def measured(options: Options, variants: Sequence[Variant]) -> dict[str, dict[str, Result]]:
    """By program and name of the variant."""
    rounds = options.rounds or (1 if options.quick else 4)
    results: dict[str, dict[str, Result]] = {}
    for program in options.programs or TEN:
        say(f"   {program}")
        results[program] = compare(
            workload(program), variants, rounds, repeat=3, seconds=0.2 if options.quick else 0.5
        )
    return results


def rows(options: Options) -> list[Row]:
    variants = options.choose([BARE, NOTHING_ALL, PYTRACE, *PEERS])
    names = [variant.name for variant in variants]
    results = measured(options, variants)
    lines = [[program, *(cell(of, name) for name in names)] for program, of in results.items()]
    means = {name: geometric_mean(slowdown(of, name) for of in results.values()) for name in names}
    lines.append(["geometric mean", *(f"{mean:.2f}" for mean in means.values())])
    say(table(("program", *names), lines))
    if PYTRACE.name not in means or BARE.name not in means:
        return []
    return [
        *speed(means, named(results)),
        *recorded({program: of[PYTRACE.name] for program, of in results.items()}),
    ]


def slowdown(of: dict[str, Result], name: str) -> float:
    return of[name].best / of[BARE.name].best if BARE.name in of else float("nan")


def cell(of: dict[str, Result], name: str) -> str:
    ratio = f"{slowdown(of, name):.2f}"
    return f"over {ratio}" if of[name].cut else f"{ratio} ±{of[name].spread:.0%}"


def named(results: Sized) -> str:
    return "ten programs" if len(results) == len(TEN) else f"{len(results)} programs"


def speed(means: dict[str, float], programs: str) -> list[Row]:
    pytrace = means[PYTRACE.name]
    peer = f"not above trace0's {means[TRACE0.name]:.2f}x" if TRACE0.name in means else "not above trace0's"
    made = [Row(f"{programs}, geometric mean over bare", peer, "1.45x", f"{pytrace:.2f}x")]
    if VIZTRACER_VALUES.name in means:
        ratio = (means[VIZTRACER_VALUES.name] - 1) / (pytrace - 1)
        made.append(Row("added time, smaller than VizTracer's with values by", "40x", "75x", f"{ratio:.0f}x"))
    return made


def recorded(results: dict[str, Result]) -> list[Row]:
    """The results of the programs' recordings."""
    start = dumper_start()
    lines = []
    sizes, costs = [], []
    all_events = sum(result.total("events") for result in results.values())
    processes = sum(len(result.recordings) for result in results.values())
    all_cost = (sum(result.total("dumper") for result in results.values()) - start * processes) / all_events
    for program, result in results.items():
        events = result.total("events")
        sizes.append(result.total("size") / events)
        costs.append((result.total("dumper") - start * len(result.recordings)) / events * 1e9)
        lines.append(
            (
                program,
                f"{events:,.0f}",
                f"{events / result.seconds / 1e6:.1f}",
                f"{result.total('lost'):,.0f}",
                f"{sizes[-1]:.2f}",
                f"{costs[-1]:.0f}",
            )
        )
    say(table(("pytrace", "events", "million/s", "lost", "bytes an event", "dumper ns an event"), lines))
    return [
        Row(f"disk, bytes an event: {named(results)}", "4", "2.5", f"{geometric_mean(sizes):.2f}"),
        Row(
            f"dumper, CPU ns an event: {named(results)}",
            "60",
            "40",
            f"{geometric_mean(costs):.0f} ({all_cost * 1e9:.0f} over all events)",
        ),
    ]
