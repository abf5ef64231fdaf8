"""The cost of recording objects with their attributes: the ten programs, beside the default."""

from benchmarks.measure import Result, geometric_mean
from benchmarks.processes import Failed
from benchmarks.programs import cell, measured, named, slowdown
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, PYTRACE, VIZTRACER_VALUES, WITH_ATTRIBUTES, Options


def rows(options: Options) -> list[Row]:
    variants = options.choose([BARE, PYTRACE, WITH_ATTRIBUTES, VIZTRACER_VALUES])
    names = [variant.name for variant in variants]
    results = measured(options, variants)
    if BARE.name not in names or WITH_ATTRIBUTES.name not in names:
        raise Failed("the bare program and the one with attributes are needed")
    recorded = {program: of[WITH_ATTRIBUTES.name] for program, of in results.items()}
    lines = [
        [program, *(cell(of, name) for name in names), *figures(recorded[program])]
        for program, of in results.items()
    ]
    means = {name: geometric_mean(slowdown(of, name) for of in results.values()) for name in names}
    sizes = [result.total("size") / result.total("events") for result in recorded.values()]
    lost = sum(result.total("lost") for result in recorded.values())
    lines.append(
        ["geometric mean", *(f"{mean:.2f}" for mean in means.values()), f"{geometric_mean(sizes):.2f}", ""]
    )
    say(table(("program", *names, "bytes an event", "lost"), lines))
    mean, of = means[WITH_ATTRIBUTES.name], f"{WITH_ATTRIBUTES.name}: {named(results)}"
    made = [Row(f"{of}, geometric mean over bare", "2.2x", "1.9x", f"{mean:.2f}x")]
    if VIZTRACER_VALUES.name in means:
        ratio = (means[VIZTRACER_VALUES.name] - 1) / (mean - 1)
        what = "added time with it, smaller than VizTracer's with values by"
        made.append(Row(what, "25x", "40x", f"{ratio:.0f}x"))
    made.append(Row(f"{of}, bytes an event on disk", "6", "4", f"{geometric_mean(sizes):.2f}"))
    made.append(Row(f"{of}, events lost", "0", "0", f"{lost:,.0f}"))
    return made


def figures(result: Result) -> tuple[str, str]:
    """Bytes an event, and lost events."""
    return f"{result.total('size') / result.total('events'):.2f}", f"{result.total('lost'):,.0f}"
