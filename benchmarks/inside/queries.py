"""Asks a database questions in SQL and tells how long each took.

query.py starts it as `queries.py SPEC`. SPEC is JSON:

    database    a recording; if `plain` is true, any database: nothing is loaded into SQLite
    questions   [[sql, [parameters, ...], repeat], ...]; each is asked with each of its parameters
                (lists themselves), and all that `repeat` times
    result      the file for the answers, JSON too: [[times, row], ...], one a question; the times
                in seconds, in order; `row` is the last row of the last time

All rows are fetched as Python's tuples. Everything on one connection, in order.
"""

import json
import sys
from collections import deque
from time import perf_counter
from typing import Any
from urllib.parse import quote

import apsw


def connect(path: str, plain: bool) -> apsw.Connection:
    """A connection that has the tables of events. Attached databases can be written."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{quote(path)}?mode={'rwc' if plain else 'ro'}", flags=flags)
    if not plain:
        from pytracer.reader.database import extension_path

        connection.enable_load_extension(True)
        connection.load_extension(extension_path())
    return connection


def ask(connection: apsw.Connection, sql: str, parameters: list[list[Any]], repeat: int) -> tuple[Any, ...]:
    times: list[float] = []
    rows: deque[tuple[Any, ...]] = deque()
    for _ in range(repeat):
        for values in parameters:
            start = perf_counter()
            rows = deque(connection.execute(sql, values), maxlen=1)
            times.append(perf_counter() - start)
    return times, rows[0] if rows else ()


def main() -> None:
    spec = json.loads(sys.argv[1])
    connection = connect(spec["database"], spec["plain"])
    answers = [ask(connection, *question) for question in spec["questions"]]
    with open(spec["result"], "w") as result:
        json.dump(answers, result)


if __name__ == "__main__":
    main()
