"""`python -m benchmarks [ROW ...]`: measures, and prints a Markdown table."""

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Callable

from benchmarks.processes import Failed, prepare
from benchmarks.report import Row, say, table
from benchmarks.variants import Options, from_text

ROWS = {
    "fib": "one call: bare, do-nothing callbacks, pytrace, the peers",
    "programs": "ten programs of pyperformance: slowdown, size, the dumper's time",
    "attributes": "the same ten programs with --attributes 8",
    "lines": "the same ten programs with --lines all",
    "c_calls": "functions in C: fib, which calls none, and a loop over len()",
    "scope": "code out of scope",
    "native": "a native function: empty profiling functions, pytrace, uftrace",
    "lost": "events lost, flat out",
    "kernel": "kernel events: getppid in a loop, beside trace-cmd; events lost (as root)",
    "start": "time that a recording adds to the start and end of a program",
    "memory": "memory added to the program",
    "producers": "eight threads, eight processes flat out, against one",
    "threads": "a thousand threads at once, a hundred thousand one after the other",
    "births": "starting and ending a thread, a fork, a subprocess",
    "ends": "the dumper stopped; from the kill of a program to its last event",
    "servers": "requests a second: an asyncio echo server, gunicorn with Flask",
    "leave-on": "ten minutes flat out into 200 MB: size and memory (only when named)",
    "latency": "from a call to its being readable in the database",
    "query": "questions to databases of 1 to 100 million events",
    "mixed": "pages among 20 million events of all layers, beside as many of Python (as root)",
    "completion": "completing a filter while it is typed",
    "replay": "walking through 100 million events with lines: steps, breakpoints, where a value came from",
    "reader": "the reader in a terminal: from a key to the redrawn screen, beside less",
}

LONG = {"leave-on"}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures what recording costs, side by side with doing nothing and with other tracers.",
        epilog="rows: " + "; ".join(f"{name} ({what})" for name, what in ROWS.items()),
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="default: all but the long ones")
    parser.add_argument("--quick", action="store_true", help="less often: rough figures")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="processes a variant")
    parser.add_argument("--only", action="append", default=[], metavar="VARIANT", help="may be repeated")
    parser.add_argument(
        "--also", action="append", default=[], metavar="NAME=COMMAND", help="a variant of your own"
    )
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="the thread's processor time instead of elapsed time: for a machine that others use, too",
    )
    parser.add_argument("--program", action="append", default=[], help="of the ten; may be repeated")
    parser.add_argument(
        "--databases",
        default="",
        metavar="FOLDER",
        help="where the recordings for `query`, `reader` and `replay` are, or will be",
    )
    parser.add_argument("--minutes", type=float, default=0, metavar="N", help="of `leave-on`")
    arguments = parser.parse_args()
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    options = Options(
        quick=arguments.quick,
        rounds=arguments.rounds,
        only=arguments.only,
        also=[from_text(text) for text in arguments.also],
        programs=arguments.program,
        databases=arguments.databases,
        minutes=arguments.minutes,
    )
    os.environ["BENCHMARK_CLOCK"] = "thread" if arguments.cpu_time else ""
    say(
        f"load average {os.getloadavg()[0]:.1f}: on a busy machine elapsed times are longer, and dumpers late"
    )
    prepare()
    failed = False
    made: list[tuple[str, ...]] = []
    for name in arguments.rows or [name for name in ROWS if name not in LONG]:
        say(f"-- {name}")
        maker: Callable[[Options], list[Row]] = importlib.import_module(
            f"benchmarks.{name.replace('-', '_')}"
        ).rows
        try:
            made += [(row.what, row.must, row.aim, row.measured, f"`{name}`") for row in maker(options)]
        except Failed as failure:
            say(str(failure))
            failed = True
    print(f"Python {platform.python_version()}, {platform.machine()}\n")
    print(table(("what", "must reach", "aim", "measured", "printed by"), made))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
