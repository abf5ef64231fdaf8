"""The tables in other programs: sqlite3, and Python's sqlite3, if they can load extensions."""

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pytracer.reader.database import extension_path
from pytracer.reader.sql_session import SqlSession
from pytracer.reader.sql_tables import VIEWS
from test_sql_damage import write

SCHEMA = (Path(__file__).parents[2] / "docs" / "schema.md").read_text()
QUERIES = re.findall(r"^\*\*[^\n]+\*\*\n\n```sql\n(.*?)\n```$", SCHEMA, re.M | re.S)
Rows = list[tuple[object, ...]]


def by_program(path: Path, query: str) -> Rows:
    lines = [
        f'.load "{extension_path()}"',
        *(f"{view};" for view in VIEWS.values()),
        ".mode json",
        f"{query};",
    ]
    done = subprocess.run(
        ["sqlite3", "-readonly", "-batch", path],
        input="\n".join(lines),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stderr == ""
    return [tuple(row.values()) for row in json.loads(done.stdout or "[]")]


def by_module(path: Path, query: str) -> Rows:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.enable_load_extension(True)
    connection.load_extension(extension_path())
    for view in VIEWS.values():
        connection.execute(view)
    rows = connection.execute(query).fetchall()
    connection.close()
    return rows


def loads(version: str) -> bool:
    return tuple(map(int, version.split("."))) >= (3, 38, 0)


ASKED: list[Callable[[Path, str], Rows]] = []
if program := shutil.which("sqlite3"):
    told = subprocess.run([program, "--version"], capture_output=True, encoding="utf-8", check=True).stdout
    ASKED += [by_program] * loads(told.split()[0])
if hasattr(sqlite3.Connection, "enable_load_extension"):
    ASKED += [by_module] * loads(sqlite3.sqlite_version)


@pytest.fixture(name="path", scope="module")
def path_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elsewhere") / "traces.sqlite"
    write(path)
    return path


@pytest.mark.parametrize("query", QUERIES)
def test_the_documented_questions_have_the_same_answers(path: Path, query: str) -> None:
    session = SqlSession(str(path))
    expected = session.connection().execute(query).fetchall()
    session.close()
    for ask in ASKED:
        assert ask(path, query) == expected


def test_some_have_answers(path: Path) -> None:
    session = SqlSession(str(path))
    assert sum(bool(session.connection().execute(query).fetchall()) for query in QUERIES) > len(QUERIES) / 2
    session.close()
