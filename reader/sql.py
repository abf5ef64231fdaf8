"""`pytrace sql`: questions in SQL, from the command line, standard input or a shell.

Called by the command line (commands.py). The tables come from the extension, csrc/sqlite_trace.c;
what is added here are two views, `slowest` and `exceptions`, and what people need: mistakes that
point, the first rows at once, Ctrl-C, and a word on what could not be read.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TextIO

import apsw

from .damage import report
from .database import Database, DatabaseError, explained
from .progress import Progress
from .render import printable
from .sql_output import Writer, writer

HELP = """\
Ask questions about what was recorded, in SQL. With QUERY, its rows are printed; without, there is a shell
on a terminal, and elsewhere statements are read from standard input. DB may be left out: ./traces.sqlite."""

# Table or view, and what is in it. The ordinary tables come last.
TABLES = {
    "event": "all that happened, in the order of time",
    "argument": "arguments, return values and exceptions of the events",
    "call": "calls with their caller, their duration and what came of them",
    "stack": "stack(ID): the calls that were open at an event",
    "hot": "functions: calls, own and total time; those with the most own time first",
    "slowest": "calls that ended, the longest first (a view)",
    "exceptions": "exceptions raised, and passed on (a view)",
    "damage": "what could not be read so far",
    "run": "the recordings",
    "process": "their processes",
    "thread": "their threads",
    "code": "their functions",
    "type": "the types of values",
    "segment": "the stored events, compressed",
}

VIEWS = {
    "slowest": """
CREATE TEMP VIEW slowest AS
SELECT duration, time, module, func, kind AS outcome, args ->> '$[0].value' AS value,
       run, pid, tid, thread, file, line, depth, id
FROM event WHERE kind IN ('return', 'exception') ORDER BY duration DESC
""".strip(),
    "exceptions": """
CREATE TEMP VIEW exceptions AS
SELECT time, kind, module, func, line, args ->> '$[0].type' AS type, args ->> '$[0].value' AS value,
       duration, run, pid, tid, thread, file, depth, id
FROM event WHERE kind IN ('raise', 'exception') ORDER BY time, id
""".strip(),
}

EXAMPLES = (
    "SELECT * FROM event WHERE func = 'main' ORDER BY time LIMIT 10",
    "SELECT event, value FROM argument WHERE name = 'user' AND value LIKE '%bob%'",
    "SELECT duration, func, value FROM slowest LIMIT 10",
    "SELECT module, func, calls, own / 1e9 AS seconds FROM hot LIMIT 10",
    "SELECT type, value, count(*) FROM exceptions WHERE kind = 'raise' GROUP BY type, value",
)

_SHOW_SECONDS = 0.1  # then the rows that there are are shown
_AROUND = 60  # characters of a statement that are shown beside a mistake

# What is no mistake in a statement.
_OF_FILE = (
    apsw.CorruptError, apsw.NotADBError, apsw.BusyError, apsw.LockedError, apsw.IOError, apsw.FullError
)  # fmt: skip


class Mistake(Exception):
    """SQL that cannot be done. `pointed`: lines with its place, if it is known."""

    def __init__(self, message: str, pointed: Sequence[str]) -> None:
        super().__init__(message)
        self.message, self.pointed = message, pointed


class Session:
    """A connection for questions in SQL: for reading only, with our tables and views."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.progress = Progress()
        self._watch: Callable[[], None] = lambda: None
        self._due = math.inf
        self._connection: apsw.Connection | None = None
        self._told = 0  # damages
        self._database = Database(path, self._look)

    def close(self) -> None:
        self._database.close()

    def watch(self, watch: Callable[[], None]) -> None:
        """From now on has it called ten times a second while a query runs, to show the rows that there are.
        What it raises ends the query."""
        self.progress.clear()
        self._watch, self._due = watch, time.monotonic() + _SHOW_SECONDS

    def connection(self) -> apsw.Connection:
        """The connection; another one, without what was TEMP, where the file has been changed."""
        connection = self._database.connection()
        if connection is not self._connection:
            self._connection = connection
            for view in VIEWS.values():
                connection.execute(view)
        return connection

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._watch()
            self.progress.look()
            self._due = now + _SHOW_SECONDS

    def run(self, sql: str, output: Writer) -> None:
        """Runs statements, and writes their rows. Raises Mistake and DatabaseError."""
        cursor = self.connection().cursor()
        rest = sql

        def begin(cursor: apsw.Cursor, statement: str, bindings: apsw.Bindings | None) -> bool:
            nonlocal rest
            rest = rest[len(statement) :]
            output.end()
            if columns := cursor.get_description():
                output.begin([column[0] for column in columns])
            return True

        cursor.exec_trace = begin
        try:
            for row in cursor.execute(sql):
                output.row(row)
        except apsw.Error as error:
            raise self._explained(error, rest) from error
        except UnicodeDecodeError as error:  # SQLite does not look at what a text is made of
            message = f"a text in these rows is no UTF-8 ({error.reason}); CAST(... AS BLOB) has its bytes"
            raise Mistake(message, []) from error
        finally:
            self.progress.clear()
            output.end()

    def _explained(self, error: apsw.Error, sql: str) -> DatabaseError | Mistake:
        """`sql`: from the statement on that the error is about."""
        if isinstance(error, _OF_FILE):
            if self._database.connection() is not self._connection:
                return DatabaseError(f"{self.path} was written to while it was read. Ask again.")
            return explained(self.path, error)
        message = str(error)
        if isinstance(error, apsw.ReadOnlyError) or "may not be modified" in message:
            message = read_only(error)
        elif isinstance(error, apsw.BindingsError):
            message = "there are no values for ? and :name here: write them into the statement"
        return Mistake(message, pointed(sql, getattr(error, "error_offset", -1)))

    def damages(self) -> list[str]:
        """What could not be read since this was last asked, in words."""
        damages = self._database.damages()
        new, self._told = damages[self._told :], len(damages)
        return report(new)


def read_only(error: apsw.Error) -> str:
    """Why nothing can be written, and what can be done instead."""
    return (
        f"a recording can only be read ({error}). What you want to keep for a while may go into a "
        "table of yours: CREATE TEMP TABLE kept AS SELECT ..."
    )


def pointed(sql: str, offset: int) -> list[str]:
    """The line of `sql` that a mistake is in, with a caret below. offset: bytes of UTF-8; -1: not known."""
    if offset < 0:
        return []
    before = sql.encode()[:offset].decode(errors="ignore")
    behind = sql[len(before) :].partition("\n")[0]
    before = before.rpartition("\n")[2].lstrip()
    shown = printable(f"...{before[-_AROUND:]}" if len(before) > _AROUND else before)
    more = "..." if len(behind) > _AROUND else ""
    return [f"  {shown}{printable(behind[:_AROUND])}{more}", f"  {' ' * len(shown)}^"]


# ---- the command --------------------------------------------------------------------------


def help_more() -> str:
    """What stands below the options in `pytrace sql --help`."""
    tables = "\n".join(f"  {name:<12}{what}" for name, what in TABLES.items())
    examples = "\n".join(f'  pytrace sql "{example}"' for example in EXAMPLES)
    return (
        f"tables:\n{tables}\n\nexamples:\n{examples}\n\n"
        "Times are ns since 1970, durations ns. A recording is only read, never changed."
    )


def is_query(word: str) -> bool:
    """Whether a single argument is meant as a query on ./traces.sqlite, and not as a file."""
    return len(word.split()) > 1 and not os.path.exists(word)


class Lines(Protocol):
    """Where the rows go."""

    def line(self, line: str) -> None: ...
    def flush(self) -> None: ...


def answer(session: Session, queries: Iterable[str], format: str, lines: Lines) -> None:
    """Writes what the queries find, the first rows at once. Raises Mistake and DatabaseError."""
    output = writer(format, lines.line)

    def show() -> None:
        output.pause()
        lines.flush()

    try:
        for query in queries:
            session.watch(show)
            session.run(query, output)
            lines.flush()
    finally:
        lines.flush()


def statements(source: TextIO) -> Iterator[str]:
    """Statements as they come in; together, where several end in the same line."""
    text = ""
    for line in source:
        text += line
        if ";" in line and apsw.complete(text):
            yield text
            text = ""
    if text.strip():
        yield text
