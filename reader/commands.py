"""`pytrace print`, `pytrace sql` and `pytrace info`: their options, exit statuses and messages.

Called by the command line with the arguments behind the word. Status 0: shown; 2: it could not be
shown, or not all of it, and standard error says why; 130: Ctrl-C; 141: nobody reads the output any
more. Modules are imported when they are needed: the first line should be there at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .database import Database
    from .events import Damage
    from .model import Run
    from .render import Renderer

_LOOK_SECONDS = 0.05  # --follow: between two looks at the database
_BUFFERED = 512  # lines
_DAMAGES_MAX = 10  # that are named


def print_main(argv: list[str]) -> int:
    """Prints what was recorded, in the order of time. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="pytrace print", description="Print what was recorded, in the order of time.", allow_abbrev=False
    )
    _add_database(parser)
    parser.add_argument("--limit", metavar="N", type=_count, help="stop after N events")
    parser.add_argument(
        "--run", metavar="N|all", type=_run_number, default=0, help="which recording (the newest by default)"
    )
    parser.add_argument(
        "--format", choices=("text", "json", "csv"), default="text", help="text, JSON lines or CSV"
    )
    parser.add_argument("--follow", action="store_true", help="go on until the recorded program has ended")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colours: auto on a terminal"
    )
    options = parser.parse_args(argv)
    if options.follow and options.run is None:
        parser.error("--follow is for one run: give its number, or leave --run out for the newest")
    return _guarded(lambda: _print(options))


def info_main(argv: list[str]) -> int:
    """Tells about the recordings in a database. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="pytrace info", description="Tell about the recordings in a database.", allow_abbrev=False
    )
    _add_database(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text or JSON")
    options = parser.parse_args(argv)
    return _guarded(lambda: _info(options))


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
    options = parser.parse_args(argv)
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
    from .render import printable

    print(f"pytrace: {printable(message)}", file=sys.stderr)


# ---- print --------------------------------------------------------------------------------


def _print(options: argparse.Namespace) -> int:
    from .database import Database

    database = Database(options.database)
    try:
        return _print_runs(database, _chosen(database, options.run), options)
    finally:
        database.close()


def _chosen(database: Database, number: int | None) -> list[Run]:
    """`number`: None for all runs, 0 for the newest."""
    from .database import DatabaseError

    runs = database.runs()
    if number is None:
        return runs
    if number == 0:
        return runs[-1:]
    chosen = [run for run in runs if run.id == number]
    if not chosen:
        there = ", ".join(str(run.id) for run in runs[-10:]) or "none"
        earlier = "..., " if len(runs) > 10 else ""
        raise DatabaseError(f"{database.path} has no run {number}; there are: {earlier}{there}")
    return chosen


def _print_runs(database: Database, runs: list[Run], options: argparse.Namespace) -> int:
    from .database import DatabaseError
    from .events import Recording, follow, stored

    damages: dict[int, Damage] = {}
    recordings = [Recording(database, run, damages) for run in runs]
    output = _Output(options.format == "text")
    events = follow(recordings[0], output.wait) if options.follow and recordings else stored(recordings)
    if options.limit is not None:
        events = islice(events, options.limit)
    render = _renderer(database, runs, options, output)
    nothing = True
    try:
        for event in events:
            output.line(render(event))
            nothing = False
        output.flush()
    except (KeyboardInterrupt, DatabaseError):
        output.flush()
        raise
    if nothing and not damages and options.limit != 0:
        _complain(_why_nothing(database, runs, options.follow))
    return _report(damages)


def _renderer(database: Database, runs: list[Run], options: argparse.Namespace, output: _Output) -> Renderer:
    from . import render

    if options.format == "json":
        return render.json_renderer()
    if options.format == "csv":
        output.line(",".join(render.KEYS))
        return render.csv_renderer()
    sources = [source for run in runs for source in database.sources(run.id)]
    return render.TextRenderer(sources, colour=_wants_colour(options.color))


def _wants_colour(choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _why_nothing(database: Database, runs: list[Run], followed: bool) -> str:
    if not runs:
        return f"{database.path} holds no recording yet. Record one with: pytrace script.py"
    if any(run.evicted for run in runs):
        return "all events of this run were removed to keep the size (a larger --max-size helps)"
    if not followed and any(run.finished is None for run in runs):
        return "nothing has been recorded yet; --follow waits for what comes"
    return "nothing was recorded in this run"


def _report(damages: dict[int, Damage]) -> int:
    """Says which segments could not be read. Returns the exit status."""
    left_out = sum(max(damage.events - damage.shown, 0) for damage in damages.values())
    for damage in list(damages.values())[:_DAMAGES_MAX]:
        _complain(f"segment {damage.segment} of run {damage.run} is damaged: {damage.reason}")
    if damages:
        segments = "1 segment is" if len(damages) == 1 else f"{len(damages)} segments are"
        _complain(f"{segments} damaged: {left_out} events could not be read and are left out")
    return 2 if damages else 0


class _Output:
    """Standard output, a few lines at a time."""

    def __init__(self, as_text: bool) -> None:
        self._lines: list[str] = []
        if as_text:  # what the terminal has no letter for is shown as an escape
            self._encoding, self._errors = sys.stdout.encoding, "backslashreplace"
        else:
            self._encoding, self._errors = "utf-8", "strict"

    def line(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) >= _BUFFERED:
            self.flush()

    def flush(self) -> None:
        if self._lines:
            self._lines.append("")
            data = "\n".join(self._lines).encode(self._encoding, self._errors)
            self._lines.clear()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def wait(self) -> None:
        """Shows what there is, and waits a moment; BrokenPipeError as soon as nobody reads it."""
        import select

        self.flush()
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        for _, state in poll.poll(_LOOK_SECONDS * 1000):
            if state & (select.POLLERR | select.POLLHUP):
                raise BrokenPipeError


# ---- sql ----------------------------------------------------------------------------------


def _sql(options: argparse.Namespace) -> int:
    from . import sql

    session = sql.Session(options.database)
    try:
        if options.query is None and sys.stdin.isatty() and sys.stdout.isatty():
            from .sql_shell import Shell

            return Shell(session).ask(options.format)
        queries = sql.statements(sys.stdin) if options.query is None else [options.query]
        output = _Output(options.format == "text")
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
    from .database import Database

    database = Database(options.database)
    try:
        facts = info.collect(database)
    finally:
        database.close()
    output = _Output(options.format == "text")
    output.line(info.as_json(facts) if options.format == "json" else info.as_text(facts))
    output.flush()
    return 0
