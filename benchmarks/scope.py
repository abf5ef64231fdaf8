"""The cost of code out of scope: TRACE_MODULES names a folder elsewhere."""

import sys

from benchmarks.fib import N
from benchmarks.measure import compare
from benchmarks.programs import workload
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, OUT_OF_SCOPE, Options


def rows(options: Options) -> list[Row]:
    if sys.version_info < (3, 12):
        say("code out of scope is free of cost with sys.monitoring only: Python 3.12 and later")
        return []
    variants = options.choose([BARE, OUT_OF_SCOPE])
    if BARE not in variants or OUT_OF_SCOPE not in variants:
        return []
    rounds = options.rounds or (5 if options.quick else 15)
    lines, measured = [], []
    for name, work in (("fib", f"fib:{N}"), ("richards", workload("richards"))):
        results = compare(work, variants, rounds, repeat=5, seconds=0.1 if options.quick else 0.25)
        out = results[OUT_OF_SCOPE.name]
        measured.append(f"{out.best / results[BARE.name].best:.3f}x")
        events = sum(recording.events for recording in out.recordings)
        lines.append(
            (name, measured[-1], f"{results[BARE.name].spread:.1%}", f"{out.spread:.1%}", str(events))
        )
    say(table(("out of scope", "over bare", "spread bare", "spread recorded", "events"), lines))
    return [Row("code out of scope, over bare: fib, richards", "1.02x", "1.00x", ", ".join(measured))]
