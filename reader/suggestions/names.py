"""The names that the runs of a database have: words that a filter can contain.

The screen uses them to complete a filter; they also correct a filter that found nothing. The tables
of definitions are small beside the segments, so they are read at once, and later their new rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ..database import Database, text
from .vocabulary import Arguments, Vocabulary

ARGUMENTS = ("return value", "exception", "yield value", "message", "count")  # of events but calls
TYPES = (
    "NoneType", "bool", "int", "float", "str", "bytes", "list", "tuple", "dict", "set", "frozenset",
    "function", "method", "builtin_function_or_method", "type", "module", "ellipsis",
    "NotImplementedType",
)  # fmt: skip  # types that values tell by their content; they are in no table
_LATE = 2000  # processes take turns: a number may come so far behind the highest


class Names:
    """Names, by the field of a filter that has them as values; numbers with their meanings."""

    def __init__(
        self,
        functions: Iterable[str] = (),
        modules: Iterable[str] = (),
        files: Iterable[str] = (),
        arguments: Iterable[str] = (),
        types: Iterable[str] = (),
        threads: Iterable[str] = (),
        attributes: Iterable[str] = (),
    ) -> None:
        self.functions = Vocabulary()  # qualified names and their last parts
        self.modules = Vocabulary(modules)
        self.files = Vocabulary(files)
        self.arguments = Arguments([*ARGUMENTS, *arguments], attributes)
        self.types = Vocabulary([*TYPES, *types])
        self.threads = Vocabulary(threads)
        self.tids: dict[int, str] = {}
        self.pids: dict[int, str] = {}
        self.runs: dict[int, str] = {}
        self.started: dict[int, int] = {}  # ns since 1970, by run
        self._add_functions(functions)
        self._highest: dict[int, int] = {}  # number of a definition, by run

    @classmethod
    def load(cls, database: Database, runs: Sequence[int]) -> Names:
        """The names that the runs of these numbers have so far. Raises DatabaseError."""
        names = cls()
        names.refresh(database, runs)
        return names

    def refresh(self, database: Database, runs: Sequence[int]) -> None:
        """Adds new names, and those of further runs. Raises DatabaseError."""
        for run in runs:
            after = self._highest.get(run, 0) - _LATE
            self._highest[run] = max(
                after + _LATE, self._read_codes(database, run, after), self._read_types(database, run, after)
            )
            self._read_threads(database, run)
        for vocabulary in self.by_field().values():
            vocabulary.prepare()

    def by_field(self) -> dict[str, Vocabulary]:
        """The fields with names as values, except `kind`."""
        return {
            "func": self.functions,
            "module": self.modules,
            "file": self.files,
            "arg": self.arguments,
            "type": self.types,
            "thread": self.threads,
        }

    def _add_functions(self, functions: Iterable[str]) -> None:
        functions = list(functions)
        self.functions.add(functions)
        self.functions.add([name.rpartition(".")[2] for name in functions])

    def _read_codes(self, database: Database, run: int, after: int) -> int:
        """Returns the highest number. It counts for types, too, which are numbered with codes."""
        variables = "variables" if database.has_column("code", "variables") else "'[]'"
        rows = database.query(
            "ibbbbb",
            "SELECT number, CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB),"
            f" CAST(arguments AS BLOB), CAST({variables} AS BLOB) FROM code"
            " WHERE run = ? AND number > ? ORDER BY number",
            (run, after),
        )
        if not rows:
            return 0
        numbers, *columns = zip(*rows, strict=True)
        modules, functions, files, arguments, variables_of_lines = map(dict.fromkeys, columns)
        self.modules.add(map(text, modules))
        self._add_functions(map(text, functions))
        self.files.add(map(text, files))
        self.arguments.add(name for listed in (*arguments, *variables_of_lines) for name in _listed(listed))
        return int(numbers[-1])

    def _read_types(self, database: Database, run: int, after: int) -> int:
        attributes = "attributes" if database.has_column("type", "attributes") else "NULL"
        rows = database.query(
            "ibb",
            f"SELECT number, CAST(name AS BLOB), CAST(coalesce({attributes}, '[]') AS BLOB) FROM type"
            " WHERE run = ? AND number > ? ORDER BY number",
            (run, after),
        )
        if not rows:
            return 0
        numbers, *columns = zip(*rows, strict=True)
        types, lists = map(dict.fromkeys, columns)
        self.types.add(map(text, types))
        self.arguments.attributes.add(name for listed in lists for name in _listed(listed))
        return int(numbers[-1])

    def _read_threads(self, database: Database, run: int) -> None:
        for source in database.sources(run):
            self.tids[source.tid] = source.thread
            if source.thread:
                self.threads.add([source.thread])
        commands = database.query(
            "ib", "SELECT pid, CAST(coalesce(command, '') AS BLOB) FROM process WHERE run = ?", (run,)
        )
        self.pids.update((pid, text(command)) for pid, command in commands)
        for command, started in database.query(
            "bi", "SELECT CAST(command AS BLOB), started FROM run WHERE id = ?", (run,)
        ):
            self.runs[run], self.started[run] = text(command), started


def _listed(names: bytes) -> list[str]:
    try:
        return [str(name) for name in json.loads(text(names))]
    except (ValueError, TypeError, RecursionError):
        return []
