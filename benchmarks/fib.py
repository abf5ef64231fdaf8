"""What one call costs: a recursive function that does next to nothing else.

Prints ns a call and the ratios to bare and to callbacks that do nothing.
"""

import sys

from benchmarks.measure import compare, dumper_start
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, NOTHING, NOTHINGS, PEERS, PYTRACE, Options

N = 25


def calls(n: int) -> int:
    """How many calls fib(n) makes."""
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b
    return 2 * a - 1


def rows(options: Options) -> list[Row]:
    variants = options.choose([BARE, *NOTHINGS, PYTRACE, *PEERS])
    rounds = options.rounds or (3 if options.quick else 8)
    results = compare(f"fib:{N}", variants, rounds, repeat=5, seconds=0.1 if options.quick else 0.2)
    lines = []
    bare = results.get(BARE.name)
    nothing = results.get(NOTHING.name)
    for name, result in results.items():
        lines.append(
            (
                name,
                f"{result.best / calls(N) * 1e9:.1f}",
                f"{result.best / bare.best:.2f}" if bare else "",
                f"{result.best / nothing.best:.2f}" if nothing else "",
                f"{result.spread:.0%}",
            )
        )
    say(table(("fib", "ns a call", "over bare", "over do-nothing", "spread"), lines))
    pytrace = results.get(PYTRACE.name)
    if not pytrace or not nothing:
        return []
    made = []
    over = f"{pytrace.best / nothing.best:.2f}x"
    if sys.version_info >= (3, 12):
        made.append(Row("fib, over callbacks that do nothing", "1.5x", "1.4x", over))
    else:
        made.append(Row("fib, over a profile function that does nothing", "1.4x", "1.2x", over))
    events, size = pytrace.total("events"), pytrace.total("size")
    say(f"events lost: {pytrace.total('lost'):,.0f} of {events:,.0f}")
    cpu = pytrace.total("dumper") - dumper_start() * len(pytrace.recordings)
    made.append(Row("disk, bytes an event: fib", "1.5", "0.8", f"{size / events:.2f}"))
    made.append(Row("dumper, CPU ns an event: fib", "60", "40", f"{cpu / events * 1e9:.0f}"))
    return made
