"""The documented questions keep their plans: what is taken into the scan stays there, and nothing
is sorted that comes in order. And docs/schema.md is what docs/schema.py makes of the tables as they
are."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from pytracer.reader.sql_session import SqlSession
from pytracer.reader.sql_tables import EXAMPLES, TABLES

from handmade import Handmade

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = (DOCS / "schema.md").read_text()
DOCUMENTED = dict(re.findall(r"^\*\*([^\n]+)\*\*\n\n```sql\n(.*?)\n```$", SCHEMA, re.M | re.S))

SORTED, GROUPED = "USE TEMP B-TREE FOR ORDER BY", "USE TEMP B-TREE FOR GROUP BY"
PLANS = {
    "The first events": ["SCAN event VIRTUAL TABLE INDEX 0:ORDER BY time"],
    "The last events": ["SCAN event VIRTUAL TABLE INDEX 1:ORDER BY time DESC"],
    "A second, counted from the run's start": [
        "SEARCH run USING INTEGER PRIMARY KEY (rowid=?)",
        "SCAN event VIRTUAL TABLE INDEX 0:run=? time>=? time<=? ORDER BY time",
    ],
    "An event by its id": ["SCAN event VIRTUAL TABLE INDEX 0:id=?"],
    "All calls of a function, with their arguments": [
        "SCAN event VIRTUAL TABLE INDEX 0:func=? kind=? ORDER BY time"
    ],
    "How often each function of a package is called": [
        "SCAN event VIRTUAL TABLE INDEX 0:kind=? module LIKE?", GROUPED, SORTED,
    ],
    "Returns slower than a millisecond": [
        "SCAN event VIRTUAL TABLE INDEX 0:duration>? kind IN? ORDER BY time"
    ],
    "The slowest calls": ["SCAN event VIRTUAL TABLE INDEX 0:kind IN?", SORTED],
    "The functions that take the most time": ["SCAN hot VIRTUAL TABLE INDEX 1:run=?"],
    "The lines that take the most time": ["SCAN line VIRTUAL TABLE INDEX 1:run=?"],
    "The source of a file as it was": ["SCAN source VIRTUAL TABLE INDEX 5:run=?"],
    "The functions of one's own code that sometimes take long": [
        "SCAN hot VIRTUAL TABLE INDEX 3:run=? hot MATCH?", SORTED,
    ],
    "Values of user with bob": ["SCAN argument VIRTUAL TABLE INDEX 0:name=? text LIKE? ORDER BY time"],
    "The same with the functions": [
        "SCAN argument VIRTUAL TABLE INDEX 0:name=? text LIKE? ORDER BY time",
        "SCAN event VIRTUAL TABLE INDEX 0:id=?",
    ],
    "Calls with two conditions on two arguments": [
        "SCAN event VIRTUAL TABLE INDEX 0:event MATCH? ORDER BY time"
    ],
    "Exceptions, counted": ["SCAN event VIRTUAL TABLE INDEX 0:kind IN? kind=?", GROUPED, SORTED],
    "The variables at an event": ["SCAN variable VIRTUAL TABLE INDEX 0:event=?"],
    "The stack at an event": [
        "SCAN stack VIRTUAL TABLE INDEX 0:event=?", "SCAN event VIRTUAL TABLE INDEX 0:id=?",
    ],
    "Calls and their outcomes": ["SCAN call VIRTUAL TABLE INDEX 0:module=? ORDER BY time"],
    "The calls that a call made": ["SCAN callee VIRTUAL TABLE INDEX 0:run=? ORDER BY time"],
    "Calls that have not ended": ["SCAN call VIRTUAL TABLE INDEX 0:ORDER BY time"],
    "Generators and coroutines that wait": ["SCAN call VIRTUAL TABLE INDEX 0:ORDER BY time"],
    "Events a second": ["SCAN event VIRTUAL TABLE INDEX 0:run=?", GROUPED],
    "The events of each thread": ["SCAN event VIRTUAL TABLE INDEX 0:", GROUPED],
    "Losses": ["SCAN event VIRTUAL TABLE INDEX 0:kind=? ORDER BY time"],
    "Segments that could not be read": ["SCAN damage VIRTUAL TABLE INDEX 0:"],
}  # fmt: skip

# conditions, and how the plan has them
TAKEN = {
    "id = ?": "id=?", "id IN (?, ?)": "id IN?", "id > ?": "id>?", "run = ?": "run=?",
    "run IN (?, ?)": "run IN?", "time >= ?": "time>=?", "time < ?": "time<?",
    "time BETWEEN ? AND ?": "time>=? time<=?", "pid = ?": "pid=?", "tid IN (?, ?)": "tid IN?",
    "thread = ?": "thread=?", "thread LIKE ?": "thread LIKE?", "kind = ?": "kind=?",
    "kind IN (?, ?)": "kind IN?", "kind LIKE ?": "kind LIKE?", "module = ?": "module=?",
    "module LIKE ?": "module LIKE?", "module IN (?, ?)": "module IN?", "func = ?": "func=?",
    "func LIKE ?": "func LIKE?", "func IN (SELECT func FROM code)": "func IN?",
    "file LIKE ?": "file LIKE?", "line = ?": "line=?", "depth <= ?": "depth<=?",
    "depth BETWEEN ? AND ?": "depth>=? depth<=?", "duration > ?": "duration>?",
    "duration BETWEEN ? AND ?": "duration>=? duration<=?", "event MATCH ?": "event MATCH?",
    "func = ? AND time > ?": "func=? time>?",
    # and what is left to SQLite
    "func LIKE ? ESCAPE '!'": "", "func = ? COLLATE NOCASE": "", "func GLOB ?": "", "func > ?": "",
    "duration IS NULL": "", "args LIKE ?": "", "id LIKE ?": "",
}  # fmt: skip


@pytest.fixture(name="connection", scope="module")
def connection_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path = tmp_path_factory.mktemp("plans") / "traces.sqlite"
    with Handmade(path) as database:
        database.run()
    session = SqlSession(str(path))
    yield session.connection()
    session.close()


def plan(connection: apsw.Connection, sql: str, values: int = 0) -> list[str]:
    return [step[-1] for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", [1] * values)]


def test_every_documented_question_has_its_plan_here() -> None:
    assert list(DOCUMENTED) == list(PLANS)


@pytest.mark.parametrize("question", PLANS)
def test_a_documented_question(connection: apsw.Connection, question: str) -> None:
    assert plan(connection, DOCUMENTED[question]) == PLANS[question]
    connection.execute(DOCUMENTED[question]).fetchall()


@pytest.mark.parametrize("condition", TAKEN)
@pytest.mark.parametrize("order", ["", "time", "time, id", "time DESC", "time DESC, id DESC"])
def test_a_condition_is_taken_over(connection: apsw.Connection, condition: str, order: str) -> None:
    backwards = "DESC" in order
    sql = f"SELECT id FROM event WHERE {condition} {order and 'ORDER BY ' + order}"
    taken = [TAKEN[condition], order and ("ORDER BY time DESC" if backwards else "ORDER BY time")]
    steps = plan(connection, sql, condition.count("?"))
    assert steps[0] == f"SCAN event VIRTUAL TABLE INDEX {int(backwards)}:{' '.join(filter(None, taken))}"
    assert SORTED not in steps


@pytest.mark.parametrize("order", ["id", "time, id DESC", "time DESC, id", "time, kind", "duration"])
def test_another_order_is_sorted(connection: apsw.Connection, order: str) -> None:
    assert plan(connection, f"SELECT id FROM event ORDER BY {order}")[-1].startswith("USE TEMP B-TREE")


@pytest.mark.parametrize("view", ["slowest", "exceptions"])
def test_conditions_go_through_views(connection: apsw.Connection, view: str) -> None:
    (scan, *_) = plan(connection, f"SELECT * FROM {view} WHERE run = 1 AND func LIKE 'pay%'")
    assert scan.startswith("SCAN event VIRTUAL TABLE INDEX 0:kind IN? run=? func LIKE?")


def test_each_part_of_an_or_is_a_scan(connection: apsw.Connection) -> None:
    steps = plan(connection, "SELECT id FROM event WHERE func = 'pay' OR kind = 'log' ORDER BY time")
    scans = [step for step in steps if step.startswith("SCAN")]
    assert scans == [f"SCAN event VIRTUAL TABLE INDEX 0:{part}=?" for part in ("func", "kind")]


def test_an_offset_is_skipped_in_the_scan(connection: apsw.Connection) -> None:
    (scan,) = plan(connection, "SELECT id FROM event WHERE func = 'pay' ORDER BY time LIMIT 1 OFFSET 1000000")
    assert scan == "SCAN event VIRTUAL TABLE INDEX 0:func=? OFFSET? ORDER BY time"


def test_examples_of_the_help_are_answered(connection: apsw.Connection) -> None:
    for example in EXAMPLES:
        connection.execute(example).fetchall()


def test_every_table_is_there(connection: apsw.Connection) -> None:
    for table in TABLES:
        connection.execute(f"SELECT * FROM {table}{'(1)' * (table in ('stack', 'variable'))}").fetchall()


def test_the_document_is_what_the_tables_make_it() -> None:
    made = subprocess.run(
        [sys.executable, "-P", str(DOCS / "schema.py")], capture_output=True, encoding="utf-8", check=False
    )
    assert made.stderr == ""
    assert made.stdout == (DOCS / "schema.md").read_text(), "python docs/schema.py > docs/schema.md"
