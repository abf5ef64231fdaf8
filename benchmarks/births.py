"""What recording adds to starting and ending a thread, a forked child, a Python of one's own."""

import statistics

from benchmarks.report import Row, say, table
from benchmarks.scripts import OWN, run_script
from benchmarks.variants import PYTRACE, Options

# kind in inside/births.py, what it is, how often in a process, unit, units a second, must, aim
KINDS = (
    ("thread", "a thread, start and end", 2000, "µs", 1e6, "+20 µs", "+5 µs"),
    ("fork", "a fork, to the end of the child", 300, "µs", 1e6, "+500 µs", "+200 µs"),
    ("python", "`python -c pass` as a subprocess", 10, "ms", 1e3, "+40 ms", "+15 ms"),
    ("spawn", "a process of multiprocessing, spawned", 10, "ms", 1e3, "", ""),
)


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    rounds = options.rounds or (3 if options.quick else 9)
    made, lines = [], []
    for kind, what, often, unit, units, must, aim in KINDS:
        times: dict[str, list[float]] = {"bare": [], "everything": [], "own": []}
        used: dict[str, list[float]] = {name: [] for name in times}
        for _ in range(rounds):
            for name, of in times.items():
                env = OWN if name == "own" else {}
                said = run_script("births.py", kind, often, recorded=name != "bare", env=env).said
                of += said["times"]
                used[name].append(said["processor"])
        bare, all_, own = (statistics.median(of) * units for of in times.values())
        bare_used, all_used, own_used = (statistics.median(of) * units for of in used.values())
        figures = (bare, all_, own, bare_used, all_used, own_used)
        lines.append((what, unit, *(f"{figure:.1f}" for figure in figures)))
        made.append(
            Row(
                what,
                must,
                aim,
                f"{all_ - bare:+.1f} {unit} ({own - bare:+.1f} with own code recorded alone); "
                f"of processor time {all_used - bare_used:+.1f} ({own_used - bare_used:+.1f})",
            )
        )
    heads = (
        "start and end",
        "unit",
        "bare",
        "recorded",
        "own code",
        "processor: bare",
        "recorded",
        "own code",
    )
    say(table(heads, lines))
    return made
