"""The cost of recording lines and variables: the ten programs, beside callbacks that do nothing for
LINE, PY_START and PY_RETURN."""

from benchmarks.attributes import figures
from benchmarks.measure import geometric_mean
from benchmarks.processes import Failed
from benchmarks.programs import cell, measured, named, slowdown
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, NOTHING_LINES, WITH_LINES, Options

LONG = "regex_compile"  # functions so long that looking up a line is what costs


def rows(options: Options) -> list[Row]:
    variants = options.choose([BARE, NOTHING_LINES, WITH_LINES])
    names = [variant.name for variant in variants]
    if len({BARE.name, NOTHING_LINES.name, WITH_LINES.name} & {*names}) < 3:
        raise Failed("the bare program, callbacks that do nothing and --lines all are needed")
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
