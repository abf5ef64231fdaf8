"""`pytrace read`, `print`, `sql` and `info`: their options, exit statuses and messages.

Called by the command line with the arguments behind the word. Status 0: shown; 1: the doctor found a
problem; 2: it could not be shown, or not all of it, and standard error says why; 130: Ctrl-C; 141: nobody
reads the output any more. Modules are imported when they are needed: the first line should be there at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable


def read_main(argv: list[str]) -> int:
    """Shows what was recorded on a screen; prints it where there is no terminal. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="pytrace read",
        description="Read what was recorded, like less: h shows the keys. Without a terminal it is printed.",
        allow_abbrev=False,
    )
    _add_database(parser)
    parser.add_argument("--filter", metavar="F", default="", help="only events that meet it: docs/filters.md")
    parser.add_argument(
        "--run", metavar="N|all", type=_run_number, default=0, help="which recording (the newest by default)"
    )
    options = parser.parse_args(argv)
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        return print_main(argv)
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        _complain("this terminal cannot show a screen (TERM); printing instead, as `pytrace print` does")
        return print_main(argv)
    return _guarded(lambda: _read(options))


def print_main(argv: list[str]) -> int:
    """Prints what was recorded, in the order of time. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="pytrace print", description="Print what was recorded, in the order of time.", allow_abbrev=False
    )
    _add_database(parser)
    parser.add_argument(
        "--limit", metavar="N", type=_count, help="stop after N events; with --around, N on each side"
    )
    parser.add_argument(
        "--run", metavar="N|all", type=_run_number, default=0, help="which recording (the newest by default)"
    )
    parser.add_argument(
        "--format", choices=("text", "json", "csv"), default="text", help="text, JSON lines or CSV"
    )
    parser.add_argument("--filter", metavar="F", default="", help="only events that meet it: docs/filters.md")
    parser.add_argument("--follow", action="store_true", help="go on until the recorded program has ended")
    about = parser.add_mutually_exclusive_group()
    about.add_argument(
        "--around",
        metavar="ID",
        type=_event,
        help="the calls around one event, and what its thread did next to it",
    )
    about.add_argument("--stack", metavar="ID", type=_event, help="the calls that were open at an event")
    about.add_argument("--explain", action="store_true", help="the SQL that finds the events")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colours: auto on a terminal"
    )
    options = parser.parse_args(argv)
    if options.follow and options.run is None:
        parser.error("--follow is for one run: give its number, or leave --run out for the newest")
    single = next((name for name in ("around", "stack") if getattr(options, name) is not None), None)
    if single and (options.filter or options.follow):
        parser.error(f"--{single} is about one event: --filter and --follow have no meaning with it")
    return _guarded(lambda: _print(options))


def info_main(argv: list[str]) -> int:
    """Tells about the recordings in a database. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="pytrace info", description="Tell about the recordings in a database.", allow_abbrev=False
    )
    _add_database(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text or JSON")
    parser.add_argument(
        "--extension", action="store_true", help="print the path of the extension that sqlite3 can .load"
    )
    parser.add_argument(
        "--doctor", action="store_true", help="check whether this machine can record, and say what to do"
    )
    parser.set_defaults(database=None)
    options = parser.parse_args(argv)
    return _guarded(lambda: _doctor(options) if options.doctor else _info(options))


def sql_main(argv: list[str]) -> int:
    """Answers questions in SQL: one, those on standard input, or those of somebody at a terminal.
    Returns the exit status."""
    from . import sql

    parser = argparse.ArgumentParser(
        prog="pytrace sql", description=sql.HELP, epilog=sql.help_more(), allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    _add_database(parser)
    parser.add_argument("query", metavar="QUERY", nargs="?", help="statements, with ; between them")
    parser.add_argument(
        "--format", choices=("text", "json", "csv"), default="text", help="text, JSON lines or CSV"
    )
    options = parser.parse_intermixed_args(argv)
    if options.query is None and sql.is_query(options.database):
        options.database, options.query = parser.get_default("database"), options.database
    return _guarded(lambda: _sql(options))


def _add_database(parser: argparse.ArgumentParser) -> None:
    default = "traces.sqlite"
    parser.add_argument("database", metavar="DB", nargs="?", default=default, help=f"default: ./{default}")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of events")
    return int(text)


def _event(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of an event, as --format json shows it")
    return int(text)


def _run_number(text: str) -> int | None:
    """None: all runs."""
    if text == "all":
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a run; give one, or: all")
    return int(text)


def _guarded(command: Callable[[], int]) -> int:
    """Runs a command; what can go wrong in any of them becomes a message and a status."""
    from .database import DatabaseError

    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        status = command()
        sys.stdout.flush()
        return status
    except DatabaseError as error:
        _complain(str(error))
        return 2
    except BrokenPipeError:
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        _complain(str(error))
        return 2
    except KeyboardInterrupt:
        return 130


def _drop_output() -> None:
    """Nothing can be written any more: what is buffered must not fail again when Python ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    from .output import complain

    complain(message)


def _read(options: argparse.Namespace) -> int:
    from .filter_tree import FilterError
    from .screen import main

    try:
        return main.run(options)
    except FilterError as error:
        print(f"pytrace: this filter cannot be read:\n{error}", file=sys.stderr)
        return 2


def _print(options: argparse.Namespace) -> int:
    from . import printing

    return printing.run(options)


# ---- sql ----------------------------------------------------------------------------------


def _sql(options: argparse.Namespace) -> int:
    from . import sql
    from .output import Output

    session = sql.Session(options.database)
    try:
        if options.query is None and sys.stdin.isatty() and sys.stdout.isatty():
            from .sql_shell import Shell

            return Shell(session).ask(options.format)
        queries = sql.statements(sys.stdin) if options.query is None else [options.query]
        output = Output(options.format == "text", session.progress)
        status = 0
        try:
            sql.answer(session, queries, options.format, output)
        except sql.Mistake as mistake:
            _complain(mistake.message)
            print(*mistake.pointed, sep="\n", end="\n" if mistake.pointed else "", file=sys.stderr)
            status = 2
        for damage in session.damages():
            _complain(damage)
            status = 2
        return status
    finally:
        session.close()


# ---- info ---------------------------------------------------------------------------------


def _info(options: argparse.Namespace) -> int:
    from . import info
    from .database import DEFAULT_PATH, Database, extension_path
    from .output import Output

    output = Output(options.format == "text")
    if options.extension:
        output.line(extension_path())
    else:
        database = Database(options.database or DEFAULT_PATH)
        try:
            facts = info.collect(database)
        finally:
            database.close()
        output.line(info.as_json(facts) if options.format == "json" else info.as_text(facts))
    output.flush()
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from ..doctor import as_json, as_text, examine, is_well
    from .output import Output
    from .render import printable

    found = examine(options.database)
    text = as_json(found) if options.format == "json" else as_text(found)
    output = Output(options.format == "text")
    for line in text.splitlines():
        output.line(printable(line))
    output.flush()
    return int(not is_well(found))
