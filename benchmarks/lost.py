"""Whether anything is lost while a program makes events as fast as it can."""

from benchmarks.measure import Result, measure
from benchmarks.programs import TEN, named, workload
from benchmarks.report import Row, say, table
from benchmarks.variants import PYTRACE, Options


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    seconds = 10.0 if options.quick else 60.0
    results: dict[str, Result] = {}

    def record(name: str, work: str, loops: int, repeat: int, seconds: float) -> None:
        say(f"   {name}")
        measure(PYTRACE, work, loops, repeat, seconds, results.setdefault(name, Result()))

    record("fib(32)", "fib:32", 1, 1, 0)
    programs = options.programs or TEN
    for program in programs:
        record(program, workload(program), 0, 2, 0.5)
    objects = f"objects, {seconds:.0f} s"
    record(objects, "objects", 20, 0, seconds)

    lines = []
    for name, result in results.items():
        events, lost = result.total("events"), result.total("lost")
        lines.append((name, f"{events:,.0f}", f"{lost:,.0f}", f"{lost / (events + lost):.3%}"))
    say(table(("flat out", "events", "lost", "share"), lines))

    def row(what: str, names: list[str]) -> Row:
        lost = sum(results[name].total("lost") for name in names)
        events = sum(results[name].total("events") for name in names)
        return Row(f"lost: {what}", "0", "0", f"{lost:,.0f} of {lost + events:,.0f}")

    return [row("fib(32)", ["fib(32)"]), row(named(programs), list(programs)), row(objects, [objects])]
