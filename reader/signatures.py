"""Functions that have arguments: their calls without recorded values are shown as `f(…)`."""

from __future__ import annotations

from .database import Database
from .rows import Row

_LATE = 2000  # processes take turns: a number may come so far behind the highest


class Signatures:
    """The functions of some runs that were read so far. One thread may read while others look."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes, bytes, bytes, int], bool] = {}
        self._highest: dict[int, int] = {}  # number of a code object, by run

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, event: Row) -> bool:
        return _function(event) in self._known

    def has_arguments(self, event: Row) -> bool:
        """Whether the event's function is known to have arguments."""
        return self._known.get(_function(event), False)

    def read(self, database: Database, run: int) -> None:
        """Adds the functions that a run has now. Raises DatabaseError."""
        highest = self._highest.get(run, 0)
        layer = "language" if database.has_column("code", "language") else "''"  # C's tell no signature
        rows = database.query(
            "ibbbii",
            "SELECT number, CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB), line,"
            f" arguments <> '[]' AND {layer} <> 'c' FROM code WHERE run = ? AND number > ?",
            (run, highest - _LATE),
        )
        for number, module, func, file, line, any in rows:
            self._known[run, module, func, file, line] = bool(any)
            highest = max(number, highest)
        self._highest[run] = highest


def _function(event: Row) -> tuple[int, bytes, bytes, bytes, int]:
    _, run, _, _, _, _, _, module, func, file, line, *_ = event
    return run, module, func, file, line
