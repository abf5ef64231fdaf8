"""Which functions have arguments: what a call of one without values is shown as."""

from __future__ import annotations

from .database import Database
from .model import Row

_LATE = 2000  # processes define in turns: smaller numbers than the highest may come this late


class Signatures:
    """The functions of the runs that are asked about; read when one is not known yet."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[int, bytes, bytes, bytes, int], bool] = {}
        self._highest: dict[int, int] = {}  # number of a code object, by run

    def has_arguments(self, event: Row) -> bool:
        """Whether the function that an event is in has arguments. Raises DatabaseError."""
        _, run, _, _, _, _, _, module, func, file, line, _, _, _ = event
        function = (run, module, func, file, line)
        if function not in self._known:
            self._read(run)
        return self._known.setdefault(function, False)

    def _read(self, run: int) -> None:
        rows = self._database.query(
            "ibbbii",
            "SELECT number, CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB), line,"
            " arguments <> '[]' FROM code WHERE run = ? AND number > ?",
            (run, self._highest.get(run, 0) - _LATE),
        )
        for number, module, func, file, line, any in rows:
            self._known[run, module, func, file, line] = bool(any)
            self._highest[run] = max(number, self._highest.get(run, 0))
