"""`pytrace read`, `print`, `sql`, `info`, `replay`, `analyse`, `diff`: their work, exit statuses,
messages.

The command line calls it with the arguments after the word. Status 0: the output is complete; 1:
the doctor found a problem, or two recordings differ; 2: the output is missing or incomplete, and
standard error says why; 130: Ctrl-C; 141: nobody reads the output any more. Modules are imported on
demand, so that the first line comes at once.
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

from ..cli import COMMANDS
from ..messages import say, why
from ..options import UsageError, values


def main(word: str, arguments: list[str]) -> int:
    """Runs the command of this word with its arguments. Returns the exit status."""
    command = next(each for each in COMMANDS if each.name == word)
    try:
        return _guarded(word, SimpleNamespace(**values(command, arguments)))
    except UsageError as error:
        say(str(error))
        return 2


def _guarded(word: str, options: SimpleNamespace) -> int:
    """Runs a command; errors that all commands have become a message and a status."""
    from .database import DatabaseError

    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        status = _RUN[word](options)
        sys.stdout.flush()
        return status
    except DatabaseError as error:
        say(str(error))
        return 2
    except BrokenPipeError:
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        say(f"{error.filename}: {why(error)}" if error.filename and error.strerror else str(error))
        return 2
    except MemoryError:
        say("there is not enough memory for this; ulimit -v may bound it")
        return 2
    except KeyboardInterrupt:
        return 130


def _drop_output() -> None:
    """Drops buffered output, which would fail again at Python's end: nobody reads it any more."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _read(options: SimpleNamespace) -> int:
    """Shows a recording on a screen; prints it if there is no terminal."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        return _print(_as_print(options))
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        say("this terminal cannot show a screen (TERM); printing instead, as `pytrace print` does")
        return _print(_as_print(options))
    from .filter.tree import FilterError
    from .screen import main

    try:
        return main.run(options, _replay_screen)
    except FilterError as error:
        say(f"this filter cannot be read:\n{error}")
        return 2


def _replay_screen(path: str, run: int, at: str, walks: dict[Any, Any]) -> tuple[int, Any]:
    """The replay that a key of the reader asks for."""
    from .replay.screen import main

    return main.show(path, run, at, walks)


def _as_print(options: SimpleNamespace) -> SimpleNamespace:
    """The options of `read` as those of `print`."""
    command = next(each for each in COMMANDS if each.name == "print")
    return SimpleNamespace(**(values(command, []) | vars(options)))


def _print(options: SimpleNamespace) -> int:
    """Prints events in the order of time."""
    if options.follow and options.run is None:
        raise UsageError("--follow is for one run: give its number, or leave --run out for the newest")
    from . import printing

    return printing.run(options)


# ---- sql ----------------------------------------------------------------------------------


def _sql(options: SimpleNamespace) -> int:
    """Answers queries in SQL: one, those on standard input, or those typed at a terminal."""
    from . import sql_session
    from .database import DEFAULT_PATH
    from .output import Output

    if options.query is None and sql_session.is_query(options.database):
        options.database, options.query = DEFAULT_PATH, options.database
    session = sql_session.SqlSession(options.database)
    try:
        if options.query is None and sys.stdin is None:
            raise UsageError("there is no query, and standard input is closed")
        if options.query is None and sys.stdin.isatty() and sys.stdout.isatty():
            from .sql_shell import Shell

            return Shell(session).ask(options.format)
        if options.query is not None and sql_session.is_shell_command(options.query):
            from .sql_shell import Shell

            try:
                Shell(session).once(options.query)
            except sql_session.SqlError as error:
                raise UsageError(error.message) from None
            return 0
        queries = sql_session.statements(sys.stdin) if options.query is None else [options.query]
        output = Output(options.format == "text", session.progress)
        status = 0
        try:
            sql_session.answer(session, queries, options.format, output)
        except sql_session.SqlError as error:
            say("\n".join([error.message, *error.pointed]))
            status = 2
        for damage in session.damages():
            say(damage)
            status = 2
        return status
    finally:
        session.close()


# ---- info ---------------------------------------------------------------------------------


def _info(options: SimpleNamespace) -> int:
    """Reports on the recordings in a database."""
    if options.doctor:
        return _doctor(options)
    from . import info
    from .database import DEFAULT_PATH, Database, extension_path, is_written
    from .output import Output

    output = Output(options.format == "text" and not options.extension)
    if options.extension:
        output.line(extension_path())
    else:
        path = options.database or DEFAULT_PATH
        written = is_written(path)
        database = Database(path)
        try:
            facts = info.collect(database, written)
        finally:
            database.close()
        output.line(info.as_json(facts) if options.format == "json" else info.as_text(facts))
    output.flush()
    return 0


def _doctor(options: SimpleNamespace) -> int:
    from ..doctor import as_json, as_text, examine, is_well
    from ..messages import printable
    from .output import Output

    found = examine(options.database)
    text = as_json(found) if options.format == "json" else as_text(found)
    output = Output(options.format == "text")
    for line in text.splitlines():
        output.line(printable(line))
    output.flush()
    return int(not is_well(found))


# ---- replay -------------------------------------------------------------------------------


def _replay(options: SimpleNamespace) -> int:
    """Walks through a recording: on a screen, or for an editor that speaks the protocol."""
    if options.run is None:
        raise UsageError("a replay is of one run: give its number, or leave --run out for the newest")
    from .replay import main

    return main.run(options)


# ---- analyse ------------------------------------------------------------------------------


def _analyse(options: SimpleNamespace) -> int:
    """Tells which lines and functions took the time."""
    from . import analyse

    return analyse.run(options)


# ---- diff ---------------------------------------------------------------------------------


def _diff(options: SimpleNamespace) -> int:
    """Tells what differs between two recordings."""
    from . import diff

    return diff.run(options)


_RUN = {
    "read": _read,
    "print": _print,
    "sql": _sql,
    "info": _info,
    "replay": _replay,
    "analyse": _analyse,
    "diff": _diff,
}
