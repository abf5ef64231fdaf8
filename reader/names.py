"""The names that the runs of a database know: what a filter can ask for.

Called by the screen that a filter is typed in, and where a filter found nothing. The tables of
definitions are small beside the segments, so that all of it is read at once, and later what is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from .database import Database, text
from .vocabulary import Vocabulary

ARGUMENTS = ("return value", "exception", "yield value", "message", "count")  # of events but calls
TYPES = (
    "NoneType", "bool", "int", "float", "str", "bytes", "list", "tuple", "dict", "set", "frozenset",
    "function", "method", "builtin_function_or_method", "type", "module", "ellipsis",
    "NotImplementedType",
)  # fmt: skip  # what values tell by their content; they are in no table
_LATE = 2000  # processes define in turns: smaller numbers than the highest may come this late


class Names:
    """Names by the field of a filter that they are values of; numbers with what they stand for."""

    def __init__(
        self,
        functions: Iterable[str] = (),
        modules: Iterable[str] = (),
        files: Iterable[str] = (),
        arguments: Iterable[str] = (),
        types: Iterable[str] = (),
        threads: Iterable[str] = (),
    ) -> None:
        self.functions = Vocabulary()  # qualified names and their last parts
        self.modules = Vocabulary(modules)
        self.files = Vocabulary(files)
        self.arguments = Vocabulary([*ARGUMENTS, *arguments])
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
        """What the runs of these numbers know so far. Raises DatabaseError."""
        names = cls()
        names.refresh(database, runs)
        return names

    def refresh(self, database: Database, runs: Sequence[int]) -> None:
        """Adds what has come since, and what further runs know. Raises DatabaseError."""
        for run in runs:
            after = self._highest.get(run, 0) - _LATE
            self._highest[run] = max(
                after + _LATE, self._read_codes(database, run, after), self._read_types(database, run, after)
            )
            self._read_threads(database, run)
        for vocabulary in self.by_field().values():
            vocabulary.prepare()

    def by_field(self) -> dict[str, Vocabulary]:
        """The fields that have names as values, but for `kind`."""
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
        """The highest number; the same for types, which are numbered along with codes."""
        rows = database.query(
            "ibbbb",
            "SELECT number, CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB),"
            " CAST(arguments AS BLOB) FROM code WHERE run = ? AND number > ? ORDER BY number",
            (run, after),
        )
        if not rows:
            return 0
        numbers, *columns = zip(*rows, strict=True)
        modules, functions, files, arguments = map(dict.fromkeys, columns)
        self.modules.add(map(text, modules))
        self._add_functions(map(text, functions))
        self.files.add(map(text, files))
        self.arguments.add(name for listed in arguments for name in _listed(listed))
        return int(numbers[-1])

    def _read_types(self, database: Database, run: int, after: int) -> int:
        rows = database.query(
            "ib",
            "SELECT number, CAST(name AS BLOB) FROM type WHERE run = ? AND number > ? ORDER BY number",
            (run, after),
        )
        self.types.add(map(text, dict.fromkeys(name for _, name in rows)))
        return int(rows[-1][0]) if rows else 0

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


def _listed(arguments: bytes) -> list[str]:
    try:
        return [str(name) for name in json.loads(text(arguments))]
    except (ValueError, TypeError):
        return []
