"""`python -m benchmarks [ROW ...]`: measures, and prints a Markdown table."""

import argparse
import importlib
import platform
import sys

from benchmarks.measure import Failed, Options, Row, RowMaker, also, prepare, say, table

ROWS = {
    "fib": "one call: bare, do-nothing callbacks, pytrace, the peers",
    "programs": "ten programs of pyperformance: slowdown, size, the dumper's time",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures what recording costs, side by side with doing nothing and with other tracers.",
        epilog="rows: " + "; ".join(f"{name} ({what})" for name, what in ROWS.items()),
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="default: all")
    parser.add_argument("--quick", action="store_true", help="less often: rough figures")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="processes a variant")
    parser.add_argument("--only", action="append", default=[], metavar="VARIANT", help="may be repeated")
    parser.add_argument(
        "--also", action="append", default=[], metavar="NAME=COMMAND", help="a variant of your own"
    )
    parser.add_argument("--program", action="append", default=[], help="of the ten; may be repeated")
    arguments = parser.parse_args()
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    options = Options(
        quick=arguments.quick,
        rounds=arguments.rounds,
        only=arguments.only,
        also=[also(text) for text in arguments.also],
        programs=arguments.program,
    )
    prepare()
    made: list[Row] = []
    for name in arguments.rows or ROWS:
        say(f"-- {name}")
        maker: RowMaker = importlib.import_module(f"benchmarks.{name}").rows
        try:
            made += maker(options)
        except Failed as failure:
            say(str(failure))
            return 1
    print(f"Python {platform.python_version()}, {platform.machine()}\n")
    print(
        table(("what", "must reach", "aim", "measured"), [(r.what, r.must, r.aim, r.measured) for r in made])
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
