"""The tables are made of ordinary ones, and of nothing else: whatever has their names in a file is
refused.

Each question is asked in a process of its own: a view that asks for the tables made of it had no
end but that of the stack.
"""

from pathlib import Path

import apsw
import pytest
from pytracer.reader.database import extension_path
from test_sql_damage import run_python, write

READ = ("run", "process", "thread", "code", "type", "segment")
LATER = "source_file"  # of which an earlier version made none
MADE = ("event", "argument", "call", "hot", "line", "source", "stack(262144)", "variable(262144)")

ASK = """
import sys
import apsw
extension, path, *questions = sys.argv[1:]
connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
connection.enable_load_extension(True)
connection.load_extension(extension)
for question in questions:
    try:
        print(connection.execute(question).fetchall()[0][0])
    except apsw.Error as error:
        print(error)
"""


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    path = tmp_path / "traces.sqlite"
    write(path)
    return path


def change(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON")
    connection.execute(sql)
    connection.close()


def asked(path: Path) -> set[str]:
    """All the answers that there are."""
    questions = [f"SELECT count(*) FROM {table}" for table in MADE]
    return set(run_python("-c", ASK, extension_path(), path, *questions).splitlines())


@pytest.mark.parametrize("table", [*READ, LATER])
def test_a_view_that_asks_for_what_is_made_of_it(path: Path, table: str) -> None:
    change(path, f"ALTER TABLE {table} RENAME TO other")
    change(path, f"CREATE VIEW {table} AS SELECT other.* FROM other, event")
    assert asked(path) == {f"{table} is no table but a view"}


@pytest.mark.parametrize("table", READ)
def test_a_view_whose_name_is_hidden(path: Path, table: str) -> None:
    """The names in sqlite_schema are not those that SQLite goes by."""
    change(path, f"ALTER TABLE {table} RENAME TO other")
    change(path, f"CREATE VIEW {table} AS SELECT other.* FROM other, event")
    change(
        path,
        "PRAGMA writable_schema = ON;"
        f" UPDATE sqlite_schema SET name = 'hidden', type = 'trigger' WHERE name = '{table}';"
        f" UPDATE sqlite_schema SET name = '{table}' WHERE name = 'other'",
    )
    assert not any(answer.isdigit() for answer in asked(path))  # SQLite may find that out by itself


@pytest.mark.parametrize("table", [*READ, LATER])
def test_a_virtual_table(path: Path, table: str) -> None:
    change(path, f"DROP TABLE {table}")
    change(path, f"CREATE VIRTUAL TABLE {table} USING fts5 (a)")
    assert asked(path) == {f"{table} is no table but a virtual"}


@pytest.mark.parametrize("table", READ)
def test_a_table_that_is_not_there(path: Path, table: str) -> None:
    change(path, f"DROP TABLE {table}")
    assert asked(path) == {f"there is no table {table}"}


def test_a_table_that_earlier_versions_did_not_make(path: Path) -> None:
    change(path, f"DROP TABLE {LATER}")
    answers = asked(path)
    assert "0" in answers  # of source
    assert all(answer.isdigit() for answer in answers)


def test_a_generated_column(path: Path) -> None:
    change(path, "ALTER TABLE segment ADD COLUMN more BLOB AS (zeroblob(1000000000))")
    assert asked(path) == {"table segment has a generated column, more"}


def test_other_schemas_do_not_matter(path: Path) -> None:
    expected = asked(path)
    assert all(answer.isdigit() for answer in expected)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.enable_load_extension(True)
    connection.load_extension(extension_path())
    connection.execute("ATTACH ':memory:' AS other")
    for table in (*READ, LATER):
        connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM event")
    found = {str(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]) for table in MADE}
    connection.close()
    assert found == expected


def test_a_schema_that_changes_is_looked_at_again(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(extension_path())
    question = "SELECT count(*) FROM event"
    before = connection.execute(question).fetchall()
    change(path, "ALTER TABLE run RENAME TO other")
    change(path, "CREATE VIEW run AS SELECT other.* FROM other, event")
    with pytest.raises(apsw.Error, match="run is no table but a view"):
        connection.execute(question).fetchall()
    change(path, "DROP VIEW run; ALTER TABLE other RENAME TO run")
    assert connection.execute(question).fetchall() == before
    connection.close()
