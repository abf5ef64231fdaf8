"""`pytrace sql` on a terminal: apsw's shell, with our tables, completion and rows as they come."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import apsw
import apsw.shell

from ..messages import printable
from .output import Visible
from .sql_output import Origin, TextWriter, origins
from .sql_session import SqlError, SqlSession, read_only
from .sql_tables import EXAMPLES, TABLES

_MODES = {"text": "text", "json": "jsonl", "csv": "csv"}


def banner(path: str) -> str:
    """The lines that the shell begins with."""
    return (
        f"What was recorded in {printable(path)}, for reading only. Tables and views: {', '.join(TABLES)}.\n"
        f"  {EXAMPLES[0]};\n"
        ".tables tells what is in them, .help of more, .quit leaves. Tab completes, Ctrl-C stops a query.\n"
    )


_Base: Any = apsw.shell.Shell  # has no types


class Shell(_Base):  # type: ignore[misc]
    """Statements end with a semicolon, commands begin with a dot."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._text = TextWriter(self._line)
        self._origins: list[Origin] = []  # of the columns of the present statement
        # Control characters come from the recording, or from the shell's colours. Both are escaped,
        # in each format of rows.
        streams = {"stdout": Visible(sys.stdout), "stderr": Visible(sys.stderr)}
        super().__init__(db=session.connection(), **streams)
        self.command_colour(["off"])
        self.output = self.output_text
        self.header = True
        self.prompt, self.moreprompt = "pytrace> ", "    ...> "

    def ask(self, format: str) -> int:
        """Answers queries until the end of input. Returns the exit status."""
        self.process_command(f".mode {_MODES[format]}")
        with suppress(OSError):  # the history may not be writable
            self.cmdloop(banner(self._session.path))
        return 0

    def once(self, command: str) -> None:
        """Runs one command that begins with a dot. Raises SqlError."""
        try:
            self.process_command(command)
        except self.Error as error:
            raise SqlError(str(error), []) from error

    def _show(self) -> None:
        self._text.pause()
        self.stdout.flush()

    def _line(self, line: str) -> None:
        self._session.progress.clear()
        self.write(self.stdout, line + "\n")

    def output_text(self, header: bool, line: Sequence[Any]) -> None:
        """
        Columns as wide as the first rows need, each row as it comes.
        What a terminal would obey is shown as an escape.
        """
        if header:
            self._text.end()  # of the statement before it in the same line
            self._text = TextWriter(self._line, self.nullvalue)
            self._text.begin(line, self._origins)
        else:
            self._text.row(line)

    def _query_details(self, sql: str, bindings: Any) -> Any:
        details = super()._query_details(sql, bindings)
        self._origins = origins(getattr(details, "description_full", None) or ())
        return details

    def process_sql(
        self, sql: str, bindings: Any = None, internal: bool = False, summary: Any = None
    ) -> None:
        self._db = self._session.connection()  # a new one if the file has changed
        self._session.watch(self._show)
        try:
            super().process_sql(sql, bindings, internal, summary)
        except apsw.ReadOnlyError as error:
            raise self.Error(read_only(error)) from error
        finally:
            self._session.progress.clear()
            self._text.end()
        for damage in self._session.damages():
            self.write_error(damage + "\n")

    def command_tables(self, cmd: list[str]) -> None:
        """tables ?PATTERN?: Lists names of tables matching LIKE pattern

        This also returns views, and tells what is in them.
        """
        for name, what in TABLES.items():
            if apsw.strlike(cmd[0] if cmd else "%", name) == 0:
                self._line(f"{name:<12}{what}")

    def complete_sql(self, line: str, token: str, beg: int, end: int) -> list[str]:
        """Completes also columns of virtual tables and views, which are in no schema."""
        if not self._completion_cache:  # apsw empties it, too: the schema may have changed
            super().complete_sql("", "", 0, 0)
            words: list[list[str]] = self._completion_cache
            words[-1].extend(sorted(set(self._columns()).difference(*words)))
        found: list[str] = super().complete_sql(line, token, beg, end)
        # readline would show control characters as they are
        return [word for word in found if word.isprintable()]

    def _columns(self) -> list[str]:
        sql = "SELECT name FROM pragma_table_xinfo(?)"
        return [name for table in TABLES for (name,) in self.db.execute(sql, (table,))]
