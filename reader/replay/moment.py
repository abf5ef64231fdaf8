"""Moments: the events at which a replay stops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..query import Query
from ..rows import text

if TYPE_CHECKING:
    from ..database import Database, Parameter

ENTERS = ("call", "resume", "throw")
LEAVES = ("return", "exception", "yield")
_COLUMNS = (
    "id, run, time, stream, pid, tid, CAST(thread AS BLOB), CAST(kind AS BLOB), CAST(module AS BLOB),"
    " CAST(func AS BLOB), CAST(file AS BLOB), line, depth, CAST(task AS BLOB),"
    " trailing"
)
_SHAPE = "iiiiiibbbbbiibi"


class Moment(NamedTuple):
    """An event as a place in time. `line`: of a `line`, `raise` or `log` the line itself, else the
    function's first one. `depth`: the number of open calls around its function."""

    id: int
    run: int
    time: int  # ns since 1970
    stream: int  # the thread's number in the run
    pid: int
    tid: int
    thread: str
    kind: str
    module: str
    func: str
    file: str
    line: int
    depth: int
    task: str
    trailing: int  # 1: a line that has run tells what it changed, as its function's end comes next

    @property
    def enters(self) -> bool:
        return self.kind in ENTERS

    @property
    def leaves(self) -> bool:
        return self.kind in LEAVES


class Argument(NamedTuple):
    """A value that an event tells: its `type` is bare for built-in types."""

    name: str
    value: str
    type: str


def moments(database: Database, query: Query, backwards: bool, count: int) -> list[Moment]:
    """The first events of a query in the order of time (backwards: the last ones, latest first)."""
    order = "time DESC, id DESC" if backwards else "time, id"
    sql = f"SELECT {_COLUMNS} FROM event WHERE {query.where} ORDER BY {order} LIMIT {count}"
    return _asked(database, sql, query.parameters)


def joined(database: Database, ids: str, parameters: Sequence[Parameter], order: str) -> list[Moment]:
    """The events whose ids a query selects as `entered`, each of them looked up. order: by columns
    of that query."""
    sql = f"SELECT {_COLUMNS} FROM ({ids}) CROSS JOIN event ON id = entered ORDER BY {order}"
    return _asked(database, sql, parameters)


def _asked(database: Database, sql: str, parameters: Sequence[Parameter]) -> list[Moment]:
    return [
        Moment._make(text(value) if isinstance(value, bytes) else value for value in row)
        for row in database.query(_SHAPE, sql, parameters)
    ]


def moment(database: Database, id: int) -> Moment | None:
    """The event of this id."""
    found = moments(database, Query("id = ?", (id,)), False, 1)
    return found[0] if found else None


def arguments(database: Database, id: int) -> list[Argument]:
    """What an event tells: arguments of a call, a return value, an exception, a line's changes."""
    rows = database.query("b", "SELECT CAST(args AS BLOB) FROM event WHERE id = ?", (id,))
    told: list[dict[str, Any]] = json.loads(rows[0][0]) if rows else []
    return [Argument(each["name"], each["value"], each["type"]) for each in told]


def after(query: Query, moment: Moment, backwards: bool) -> Query:
    """The events of a query behind a moment; backwards: before it."""
    return (query.before if backwards else query.behind)(moment.time, moment.id)
