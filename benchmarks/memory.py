"""The memory that recording adds to the program, apart from the shared ring."""

from benchmarks.measure import compare
from benchmarks.programs import TEN, workload
from benchmarks.report import Row, say, table
from benchmarks.variants import BARE, PYTRACE, Options


def rows(options: Options) -> list[Row]:
    variants = options.choose([BARE, PYTRACE])
    if BARE not in variants or PYTRACE not in variants:
        return []
    works = {"fib": "fib:25", "objects": "objects"}
    works.update((program, workload(program)) for program in options.programs or TEN)
    lines, added = [], []
    for name, work in works.items():
        results = compare(work, variants, options.rounds or 2, repeat=1, seconds=0.2)
        bare, traced = (min(results[variant.name].resident) / 2**20 for variant in (BARE, PYTRACE))
        added.append(traced - bare)
        lines.append((name, f"{bare:.1f}", f"{traced:.1f}", f"{added[-1]:.1f}"))
    say(table(("resident MiB", "bare", "recorded", "added"), lines))
    return [Row("memory added, apart from the buffer, at most", "16 MiB", "6 MiB", f"{max(added):.1f} MiB")]
