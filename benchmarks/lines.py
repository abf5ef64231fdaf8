"""The cost of recording lines and variables: the ten programs, beside callbacks that do nothing for
LINE, PY_START and PY_RETURN; and beside py-tt-debug, as one's own code."""

import shutil
import tempfile
from pathlib import Path

from benchmarks.attributes import figures
from benchmarks.measure import Result, compare, geometric_mean
from benchmarks.processes import Failed
from benchmarks.programs import TEN, cell, measured, named, slowdown, workload
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, NOTHING_LINES, OWN_LINES, PYTTD, WITH_LINES, Options

LONG = "regex_compile"  # functions so long that looking up a line is what costs


def rows(options: Options) -> list[Row]:
    return over_nothing(options) + against_pyttd(options)


def over_nothing(options: Options) -> list[Row]:
    variants = options.choose([BARE, NOTHING_LINES, WITH_LINES])
    names = [variant.name for variant in variants]
    if len({BARE.name, NOTHING_LINES.name, WITH_LINES.name} & {*names}) < 3:
        return []
    results = measured(options, variants)
    over = {
        program: slowdown(of, WITH_LINES.name) / slowdown(of, NOTHING_LINES.name)
        for program, of in results.items()
    }
    lines = [
        [program, *(cell(of, name) for name in names), f"{over[program]:.2f}", *figures(of[WITH_LINES.name])]
        for program, of in results.items()
    ]
    means = {name: geometric_mean(slowdown(of, name) for of in results.values()) for name in names}
    mean = geometric_mean(over.values())
    recorded = [of[WITH_LINES.name] for of in results.values()]
    size = geometric_mean(result.total("size") / result.total("events") for result in recorded)
    lost = sum(result.total("lost") for result in recorded)
    summed = [f"{each:.2f}" for each in (*means.values(), mean, size)]
    lines.append(["geometric mean", *summed, f"{lost:,.0f}"])
    say(table(("program", *names, "over do-nothing", "bytes an event", "lost"), lines))
    made = [Row(f"lines: {named(results)}, geometric mean over do-nothing", "1.5x", "1.2x", f"{mean:.2f}x")]
    if LONG in over:
        made.append(Row(f"lines: {LONG} over do-nothing", "1.0x", "0.3x", f"{over[LONG]:.2f}x"))
    made.append(Row("lines: bytes an event on disk", "3", "2", f"{size:.2f}"))
    made.append(Row("lines: events lost", "0", "0", f"{lost:,.0f}"))
    return made


def against_pyttd(options: Options) -> list[Row]:
    """Both with what they record by default of own code; py-tt-debug never records other code."""
    variants = options.choose([BARE, OWN_LINES, PYTTD])
    names = [variant.name for variant in variants]
    if len({BARE.name, OWN_LINES.name, PYTTD.name} & {*names}) < 3:
        return []
    rounds = options.rounds or (1 if options.quick else 3)
    results: dict[str, dict[str, Result]] = {}
    lines = []
    for program in options.programs or TEN:
        say(f"   {program}, as own code")
        name, _, path = workload(program).partition("=")
        with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
            own = shutil.copytree(Path(path).parent, Path(scratch) / program) / Path(path).name
            try:
                of = compare(f"{name}={own}", variants, rounds, 1, 0.2 if options.quick else 0.5)
            except Failed as failure:
                lines.append([program, str(failure).strip().splitlines()[-1]])
                continue
        results[program] = of
        lines.append([program, *(cell(of, name) for name in names), f"{added(of):.0f}"])
    heads = ("program", *names, "added time, theirs over ours")
    say(table(heads, [line + [""] * (len(heads) - len(line)) for line in lines]))
    if not results:
        return []
    ours, theirs = (
        geometric_mean(slowdown(of, name) for of in results.values()) for name in (OWN_LINES.name, PYTTD.name)
    )
    ratio = (theirs - 1) / (ours - 1)
    return [
        Row(
            f"lines: {named(results)}, added time, smaller than py-tt-debug's by",
            "10x",
            "30x",
            f"{ratio:.0f}x ({theirs:.1f}x over bare, {ours:.2f}x with pytrace)",
        )
    ]


def added(of: dict[str, Result]) -> float:
    return (slowdown(of, PYTTD.name) - 1) / max(slowdown(of, OWN_LINES.name) - 1, 0.001)
