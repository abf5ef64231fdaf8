"""`pytrace sql`: queries in SQL, from the command line, standard input or a shell.

subcommands.py calls it. The tables come from the extension, csrc/query/sqlite_trace.c; this file
adds two views, `slowest` and `exceptions`. A mistake is marked in the text, the first rows come at
once, Ctrl-C ends a query, and segments that could not be read are reported.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TextIO

import apsw

from ..messages import printable
from .damage import report
from .database import Database, DatabaseError, explained
from .progress import Progress
from .sql_output import Writer, origins, writer
from .sql_tables import VIEWS

_SHOW_SECONDS = 0.1  # until the present rows are shown
_NO_TEXT = "a statement is a text in UTF-8, without NUL characters"
_AROUND = 60  # characters of a statement that are shown beside a mistake

# Errors of the file, and not of a statement.
_OF_FILE = (
    apsw.CorruptError, apsw.NotADBError, apsw.BusyError, apsw.LockedError, apsw.IOError, apsw.FullError
)  # fmt: skip


class SqlError(Exception):
    """SQL that cannot run. `pointed`: lines that show the place, if it is known."""

    def __init__(self, message: str, pointed: Sequence[str]) -> None:
        super().__init__(message)
        self.message, self.pointed = message, pointed


class SqlSession:
    """A connection for queries in SQL: for reading only, with our tables and views."""

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
        """From now on calls `watch` ten times a second while a query runs, to show the present
        rows. An exception in it ends the query."""
        self.progress.clear()
        self._watch, self._due = watch, time.monotonic() + _SHOW_SECONDS

    def connection(self) -> apsw.Connection:
        """The connection; if the file has changed, a new one without the TEMP tables."""
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
        """Runs statements, and writes their rows. Raises SqlError and DatabaseError."""
        cursor = self.connection().cursor()
        rest = sql

        def begin(cursor: apsw.Cursor, statement: str, bindings: apsw.Bindings | None) -> bool:
            nonlocal rest
            rest = rest[len(statement) :]
            output.end()
            if columns := cursor.get_description():
                # a SQLite of the machine's may be built without the full description
                full = getattr(cursor, "description_full", ())
                output.begin([column[0] for column in columns], origins(full))
            return True

        cursor.exec_trace = begin
        try:
            for row in cursor.execute(sql):
                output.row(row)
        except apsw.Error as error:
            raise self._explained(error, rest) from error
        except UnicodeDecodeError as error:  # SQLite does not check the bytes of a text
            message = f"a text in these rows is no UTF-8 ({error.reason}); CAST(... AS BLOB) has its bytes"
            raise SqlError(message, []) from error
        except ValueError as error:
            raise SqlError(f"{_NO_TEXT} ({error})", []) from error
        finally:
            self.progress.clear()
            output.end()

    def _explained(self, error: apsw.Error, sql: str) -> DatabaseError | SqlError:
        """sql: begins with the statement that has the error."""
        if isinstance(error, _OF_FILE):
            if self._database.connection() is not self._connection:
                return DatabaseError(f"{self.path} was written to while it was read. Ask again.")
            return explained(self.path, error)
        message = str(error)
        if isinstance(error, apsw.ReadOnlyError) or "may not be modified" in message:
            message = read_only(error)
        elif isinstance(error, apsw.BindingsError):
            message = "there are no values for ? and :name here: write them into the statement"
        return SqlError(message, pointed(sql, getattr(error, "error_offset", -1)))

    def damages(self) -> list[str]:
        """Lines on segments that could not be read since the last call."""
        damages = self._database.damages()
        new, self._told = damages[self._told :], len(damages)
        return report(new)


def read_only(error: apsw.Error) -> str:
    """The reason why nothing can be written, and an alternative."""
    return (
        f"a recording can only be read ({error}). What you want to keep for a while may go into a "
        "table of yours: CREATE TEMP TABLE kept AS SELECT ..."
    )


def pointed(sql: str, offset: int) -> list[str]:
    """The line of `sql` with the mistake, and a caret below. offset: bytes of UTF-8; -1:
    unknown."""
    if offset < 0:
        return []
    before = sql.encode()[:offset].decode(errors="ignore")
    behind = sql[len(before) :].partition("\n")[0]
    before = before.rpartition("\n")[2].lstrip()
    shown = printable(f"...{before[-_AROUND:]}" if len(before) > _AROUND else before)
    more = "..." if len(behind) > _AROUND else ""
    return [f"  {shown}{printable(behind[:_AROUND])}{more}", f"  {' ' * len(shown)}^"]


# ---- the command --------------------------------------------------------------------------


def is_query(word: str) -> bool:
    """Whether a single argument is a query on ./traces.sqlite, and not a file."""
    return (len(word.split()) > 1 or is_shell_command(word)) and not os.path.exists(word)


def is_shell_command(query: str) -> bool:
    """Whether it is a command of the shell, such as `.tables`."""
    return query[:1] == "." and query.split()[0][1:].isalpha()


class Lines(Protocol):
    """The destination of rows."""

    def line(self, line: str) -> None: ...
    def flush(self) -> None: ...


def answer(session: SqlSession, queries: Iterable[str], format: str, lines: Lines) -> None:
    """Writes the rows of queries, the first ones at once. Raises SqlError and DatabaseError."""
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
    """Statements as they come in; those that end in the same line come together. Raises
    SqlError."""
    text = ""
    try:
        for line in source:
            text += line
            if ";" in line and apsw.complete(text):
                yield text
                text = ""
    except ValueError as error:
        raise SqlError(f"{_NO_TEXT} ({error})", []) from error
    if text.strip():
        yield text
