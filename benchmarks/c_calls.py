"""The cost of recording functions in C: of programs that call none, and of each call.

fib calls no function in C: its call sites are looked at, then switched off. A loop over len() does
nothing else: it is compared with callbacks that do nothing for CALL and C_RETURN.
"""

from benchmarks.measure import compare
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, NOTHING_CALLS, PYTRACE, WITH_C_CALLS, Options

FIB = 25
LENGTHS = 10_000


def rows(options: Options) -> list[Row]:
    rounds = options.rounds or (3 if options.quick else 8)
    seconds = 0.1 if options.quick else 0.2
    fib = compare(f"fib:{FIB}", options.choose([PYTRACE, WITH_C_CALLS]), rounds, repeat=5, seconds=seconds)
    lengths = compare(
        f"len:{LENGTHS}",
        options.choose([BARE, NOTHING_CALLS, WITH_C_CALLS]),
        rounds,
        repeat=5,
        seconds=seconds,
    )
    lines = [
        (f"fib({FIB})", name, f"{each.best * 1e3:.2f} ms", f"{each.spread:.0%}") for name, each in fib.items()
    ]
    lines += [
        ("one len()", name, f"{each.best / LENGTHS * 1e9:.1f} ns", f"{each.spread:.0%}")
        for name, each in lengths.items()
    ]
    say(table(("of", "variant", "takes", "spread"), lines))
    made = []
    if PYTRACE.name in fib and WITH_C_CALLS.name in fib:
        over = fib[WITH_C_CALLS.name].best / fib[PYTRACE.name].best
        made.append(
            Row("C calls: fib, which has none, over plain recording", "1.1x", "1.02x", f"{over:.2f}x")
        )
    if NOTHING_CALLS.name in lengths and WITH_C_CALLS.name in lengths:
        over = lengths[WITH_C_CALLS.name].best / lengths[NOTHING_CALLS.name].best
        made.append(Row("C calls: a recorded len() over do-nothing", "1.6x", "1.3x", f"{over:.2f}x"))
        lost = lengths[WITH_C_CALLS.name].total("lost")
        say(f"events lost: {lost:,.0f} of {lengths[WITH_C_CALLS.name].total('events'):,.0f}")
    return made
