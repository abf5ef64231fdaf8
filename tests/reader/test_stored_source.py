"""The stored source is preferred to the file on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytracer.reader.database import Damaged, Database
from pytracer.reader.query import EVERY, pages
from pytracer.reader.screen.detail import detail, detail_lines
from pytracer.reader.screen.lines import DisplayOptions
from pytracer.reader.screen.view import Item
from pytracer.reader.source_file import LATER, Excerpt
from pytracer.reader.sources import LINES_MOST, Sources

from handmade import EPOCH_NS, Handmade, event, ran

HOSTILE = "x\x1b[31m\u202e\0\x9b\n" + "y" * 10_000_000 + "\n\ttab\rbed\u2028\x0c"


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    """A recording with lines of an application whose files are others now."""
    path = tmp_path / "traces.sqlite"
    files = {"app.py": "stored = 1\ncall()\n", "hostile.py": HOSTILE, "empty.py": "", "new.py": "pass"}
    with Handmade(path) as made:
        run = made.run(directory=str(tmp_path))
        made.code(run, 1, "main", file=f"{tmp_path}/app.py")
        made.code(run, 2, "bad", file=f"{tmp_path}/hostile.py")
        made.code(run, 3, "unstored", file=f"{tmp_path}/plain.py")
        for name, text in files.items():
            made.source(run, text, file=f"{tmp_path}/{name}", changed=name == "new.py")
        made.segment(
            run,
            [
                event("call", 1),
                event("line", 1, time=10, line=2),
                event("line", 1, time=10, line=1),
                *(event("call", 2), event("line", 2, time=10, line=1), event("line", 2, time=10, line=2)),
                *(event("line", 2, time=10, line=3), event("return", 2, None, elapsed=30)),
                event("return", 1, None, time=10, elapsed=60),
            ],
        )
    for name in ("app.py", "plain.py"):
        (tmp_path / name).write_text("as it is now\n")
        os.utime(tmp_path / name, ns=(EPOCH_NS, EPOCH_NS))
    return path


@pytest.fixture(name="database")
def database_fixture(path: Path) -> Iterator[Database]:
    database = Database(str(path))
    yield database
    database.close()


@pytest.fixture(name="sources")
def sources_fixture(database: Database) -> Sources:
    return Sources(database, database.runs()[0])


def change(path: Path, sql: str) -> None:
    with Handmade(path) as made:
        made(sql)


def test_the_stored_text(tmp_path: Path, sources: Sources) -> None:
    lines = [(1, "stored = 1"), (2, "call()")]
    app = f"{tmp_path}/app.py"
    assert sources.excerpt(app, 2) == Excerpt(lines)
    assert sources.whole(app) == Excerpt(lines)
    assert sources.whole(app) is sources.whole(app)
    for line in (-1, 0, 3):
        assert sources.excerpt(app, line) == Excerpt([], f"{app} had 2 lines, and no line {line}")
    assert sources.excerpt(f"{tmp_path}/empty.py", 1) == Excerpt([(1, "")])
    assert sources.excerpt(f"{tmp_path}/empty.py", 2).note.endswith("had 0 lines, and no line 2")
    assert sources.whole(f"{tmp_path}/empty.py") == Excerpt([])


def test_one_that_was_written_after_the_start(tmp_path: Path, sources: Sources) -> None:
    expected = Excerpt([(1, "pass")], LATER)
    assert sources.excerpt(f"{tmp_path}/new.py", 1) == sources.whole(f"{tmp_path}/new.py") == expected


def test_else_the_file_on_this_machine(tmp_path: Path, database: Database, sources: Sources) -> None:
    now = Excerpt([(1, "as it is now")])
    assert sources.excerpt(f"{tmp_path}/plain.py", 1) == sources.whole(f"{tmp_path}/plain.py") == now
    assert sources.excerpt("/none.py", 1).note == "/none.py is not there, on this machine"
    assert sources.excerpt("<string>", 1).note == "<string> is not a file"
    assert sources.excerpt("/\ud800.py", 1).lines == []
    assert Sources(database, None).excerpt(f"{tmp_path}/app.py", 1).lines == now.lines


def test_of_an_earlier_version(path: Path, tmp_path: Path) -> None:
    change(path, "DROP TABLE source_file")
    database = Database(str(path))
    now = Excerpt([(1, "as it is now")])
    assert Sources(database, database.runs()[0]).whole(f"{tmp_path}/app.py") == now
    database.close()


def test_a_damaged_one(path: Path, tmp_path: Path, sources: Sources) -> None:
    change(path, "UPDATE source_file SET size = 1")
    found = sources.whole(f"{tmp_path}/app.py")
    assert found == sources.excerpt(f"{tmp_path}/app.py", 1)
    assert found == Excerpt(
        [(1, "as it is now")], "the stored source is damaged; this is the file as it is now"
    )


def test_more_lines_than_any(path: Path, tmp_path: Path, sources: Sources) -> None:
    with Handmade(path) as made:
        made.source(1, "\n" * LINES_MOST, file="/full.py")
        made.source(1, "\n" * 10_000_000, file="/more.py")
    assert len(sources.whole("/full.py").lines) == LINES_MOST
    assert sources.whole("/full.py").note == ""
    assert len(sources.whole("/more.py").lines) == LINES_MOST
    assert sources.whole("/more.py").note == "these are the first 1,048,576 lines of /more.py"


def test_a_hostile_one(tmp_path: Path, database: Database, sources: Sources) -> None:
    lines = [text for _, text in sources.whole(f"{tmp_path}/hostile.py").lines]
    assert lines == ["x\x1b[31m\u202e\0\x9b", "y" * 2000, "        tab\rbed\u2028\x0c"]
    assert [text for _, text in sources.excerpt(f"{tmp_path}/hostile.py", 1).lines] == lines
    (row,) = [
        row
        for page in pages(database, EVERY, lambda row: row)
        for row in page
        if row[8] == b"bad" and row[10] == 3
    ]
    shown = [line.text for line in detail_lines(detail(database, Item(row)), 100, DisplayOptions())]
    assert any(line.endswith(r"1  x\x1b[31m\u202e\x00\x9b") for line in shown)
    assert all(line.isprintable() and len(line) <= 100 for line in shown)
    done = ran("analyse", database.path, "--file", "hostile.py")
    assert done.returncode == 0
    assert r"x\x1b[31m\u202e\x00\x9b" in done.stdout
    assert done.stdout.replace("\n", "").isprintable()
    assert max(map(len, done.stdout.splitlines())) < 2100
    assert ran("analyse", database.path).stdout.replace("\n", "").isprintable()


def test_the_pane_and_the_analysis_have_it(path: Path, database: Database) -> None:
    rows = [row for page in pages(database, EVERY, lambda row: row) for row in page]
    found = detail(database, Item(rows[1]))
    assert found.source == Excerpt([(1, "stored = 1"), (2, "call()")])
    text = ran("analyse", path, "--file", "app.py").stdout
    assert "stored = 1" in text
    assert "as it is now" not in text
    assert "stored = 1" in ran("analyse", path).stdout


@pytest.mark.parametrize("kind", ["VIEW", "VIRTUAL TABLE"])
def test_what_is_no_table_is_refused(path: Path, kind: str) -> None:
    change(path, "DROP TABLE source_file")
    how = "AS SELECT * FROM run" if kind == "VIEW" else "USING fts5 (a)"
    change(path, f"CREATE {kind} source_file {how}")
    with pytest.raises(Damaged, match="source_file is no table"):
        Database(str(path))
