"""The table `source`: stored source files, decompressed."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from pytracer.reader.database import extension_path

from handmade import Handmade

APP, OTHER = "/home/me/app.py", "/home/me/caf\\xe9.py"


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        for number in range(2):
            run = database.run()
            database.source(run, f"run {run}: é\0\n", file=APP, changed=bool(number))
            database.source(run, "", file=OTHER)
    return path


@pytest.fixture(name="connection")
def connection_fixture(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(extension_path())
    yield connection
    connection.close()


def test_rows(connection: apsw.Connection) -> None:
    rows = connection.execute("SELECT * FROM source").fetchall()
    assert rows == [(1, APP, "run 1: é\0\n"), (1, OTHER, ""), (2, APP, "run 2: é\0\n"), (2, OTHER, "")]
    names = [name for name, *_ in connection.execute("SELECT name FROM pragma_table_xinfo('source')")]
    assert names == ["run", "file", "text", "changed"]
    assert connection.execute(
        "SELECT changed, typeof(text) FROM source WHERE file = ?", (APP,)
    ).fetchall() == [
        (0, "text"),
        (1, "text"),
    ]
    ids = connection.execute("SELECT rowid FROM source").fetchall()
    assert len(set(ids)) == 4
    assert connection.execute("SELECT text FROM source WHERE rowid = ?", ids[2]).fetchall() == [rows[2][2:]]


@pytest.mark.parametrize(
    ("condition", "plan", "count"),
    [
        ("1", "", 4),
        ("run = 2", "run=?", 2),
        ("run = '2'", "run=?", 2),
        ("run = 2.5", "run=?", 0),
        ("run IN (1, 2, 3)", "run=?", 4),
        ("run IS NULL", "", 0),
        ("run = NULL", "run=?", 0),
        ("run > 1", "", 2),
        (f"file = '{APP}'", "file=?", 2),
        (f"file = '{APP.upper()}'", "file=?", 0),
        (f"file = '{APP.upper()}' COLLATE NOCASE", "", 2),
        (f"file = CAST('{APP}' AS BLOB)", "file=?", 0),
        (f"file = '{APP}' AND run = 1 AND run <> 3", "run=? file=?", 1),
        (f"run = 1 AND run = 2 AND file = '{APP}'", "run=? file=?", 0),
        ("text LIKE '%1%'", "", 1),
    ],
)
def test_conditions_are_asked_of_the_index(
    connection: apsw.Connection, condition: str, plan: str, count: int
) -> None:
    ((*_, detail),) = [
        row
        for row in connection.execute(f"EXPLAIN QUERY PLAN SELECT * FROM source WHERE {condition}")
        if "VIRTUAL" in str(row[3])
    ]
    assert str(detail).partition(":")[2] == plan
    assert connection.execute(f"SELECT count(*) FROM source WHERE {condition}").fetchall() == [(count,)]


def test_joins(connection: apsw.Connection) -> None:
    query = (
        "SELECT run.id, a.text = b.text FROM run JOIN source a ON a.run = run.id JOIN source b USING (file)"
    )
    found = connection.execute(f"{query} WHERE b.run = 1 AND a.file = ?", (APP,)).fetchall()
    assert sorted(found) == [(1, 1), (2, 0)]


def test_names_are_found_without_a_text(connection: apsw.Connection) -> None:
    """A text that is not asked for is not even looked at."""
    connection.execute("UPDATE source_file SET data = x'00'")
    assert connection.execute("SELECT run, changed FROM source WHERE run = 2").fetchall() == [(2, 1), (2, 0)]


@pytest.mark.parametrize(
    "change",
    [
        "data = x''",
        "data = x'00'",
        "data = substr(data, 1, length(data) - 3)",
        "data = CAST(x'ffffffff' || data AS BLOB)",
        "size = 0",
        "size = size - 1",
        "size = size + 1",
        "size = -1",
        "size = 1 << 40",
        "size = ~(1 << 63)",
    ],
)
def test_a_damaged_text_is_null(connection: apsw.Connection, change: str) -> None:
    connection.execute(f"UPDATE source_file SET {change} WHERE run = 1 AND file = ?", (APP,))
    assert connection.execute("SELECT text IS NULL FROM source").fetchall() == [(1,), (0,), (0,), (0,)]


def test_a_text_that_is_no_utf8_is_null(path: Path, connection: apsw.Connection) -> None:
    with Handmade(path) as database:
        database.source(1, b"\xff", file="a")
        database.source(1, b"\xed\xa0\x80", file="b")  # a lone surrogate
        database.source(1, b"\xe2\x82", file="c")
        database.source(1, b"\xf4\x90\x80\x80", file="d")
    found = connection.execute("SELECT text FROM source WHERE file < '/'  OR file > 'a'").fetchall()
    assert [row for row in found if row == (None,)] == [(None,)] * 3
    assert connection.execute("SELECT text FROM source WHERE file = 'a'").fetchall() == [(None,)]


def test_a_text_that_is_larger_than_any(path: Path, connection: apsw.Connection) -> None:
    with Handmade(path) as database:
        database.source(1, bytes(12 << 20), file="a")
        database.source(1, bytes((12 << 20) + 1), file="b")
    assert connection.execute(
        "SELECT length(CAST(text AS BLOB)) FROM source WHERE file IN ('a', 'b')"
    ).fetchall() == [
        (12 << 20,),
        (None,),
    ]


def test_a_table_with_other_columns(connection: apsw.Connection) -> None:
    connection.execute("ALTER TABLE source_file RENAME COLUMN data TO other")
    with pytest.raises(apsw.SQLError, match="source_file has other columns than it should"):
        connection.execute("SELECT * FROM source").fetchall()
    assert connection.execute("SELECT count(*) FROM event").fetchall() == [(0,)]


def test_no_such_table(connection: apsw.Connection) -> None:
    connection.execute("DROP TABLE source_file")
    assert connection.execute("SELECT * FROM source WHERE run = 1").fetchall() == []


def test_the_connection_can_be_closed_within_a_query(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(extension_path())
    cursor = connection.execute("SELECT * FROM source")
    next(cursor)
    connection.close(True)
