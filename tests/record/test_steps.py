"""A search that finds nothing for long lets go of the database now and then, so that the dumper can
empty its log; and finds what it would have found at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pytracer.reader import query as queries
from pytracer.reader.database import Database
from pytracer.reader.query import Query, as_it_is, pages
from pytracer.reader.rows import Row
from pytracer.reader.screen import pages as along
from pytracer.reader.screen import search
from pytracer.reader.screen.view import Position

from handmade import Handmade, event

THREADS, SEGMENTS, EVENTS = 3, 40, 20
RARE = Query("event MATCH ?", ('(any (like value "7"))',))  # only the events themselves tell


class Counting(Database):
    """Counts the looks at the database."""

    looks = 0

    def _ask(self, *arguments):  # type: ignore[no-untyped-def]
        self.looks += 1
        return super()._ask(*arguments)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    """Segments that overlap, of several threads, with an event that is searched for in few of them;
    each look may take no time."""
    random = Random(1)
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, 1, "often", ["n"])
        for stream in range(1, THREADS + 1):
            if stream > 1:
                made.thread(run, stream, 100 + stream, f"worker-{stream}")
            start = 0
            for sequence in range(SEGMENTS):
                rare = random.randrange(EVENTS) if random.random() < 0.15 else -1
                times = [random.randrange(1, 9) for _ in range(EVENTS)]
                calls = [event("call", 1, 7 if i == rare else 1, time=t) for i, t in enumerate(times)]
                made.segment(run, calls, stream=stream, sequence=sequence, start=start)
                start += sum(times) + random.randrange(50)
        monkeypatch.setattr(queries, "_FIRST_WAIT", 0.0)
        monkeypatch.setattr(queries, "_LONGEST_WAIT", 0.0)
        monkeypatch.setattr(along, "_STEP", 0.0)
        monkeypatch.setattr(search, "_PAGE_SECONDS", 0.0)
        opened = Counting(str(tmp_path / "traces.sqlite"))
        yield opened
        opened.close()


def everything(database: Database) -> list[Position]:
    """Times and ids of what is searched for, in one look."""
    sql = f"SELECT time, id FROM event WHERE {RARE.where} ORDER BY time, id"
    return [(time, id) for time, id in database.query("ii", sql, RARE.parameters)]


def test_pages(database: Counting) -> None:
    expected = everything(database)
    assert 10 < len(expected) < 30
    before = database.looks
    found = [(row[2], row[0]) for page in pages(database, RARE, as_it_is) for row in page]
    assert found == expected
    assert database.looks - before > SEGMENTS // 2  # how many depends on SQLite's steps


def test_moves(database: Counting) -> None:
    expected = everything(database)
    for start in (None, *expected[::3]):
        later = [at for at in expected if start is None or at > start]
        earlier = [at for at in expected if start is None or at < start][::-1]
        before = database.looks
        for count in (1, 4, 100):
            rows, ended = along.after(database, RARE, start, count)
            assert [(row[2], row[0]) for row in rows] == later[:count]
            assert ended or len(rows) == count
            rows, ended = along.before(database, RARE, start, count)
            assert [(row[2], row[0]) for row in rows[::-1]] == earlier[:count]
            assert ended or len(rows) == count
        assert database.looks - before > 20


def shown(row: Row) -> str:
    (argument,) = json.loads(row[13])
    return f"often(n={argument['value']})"


@pytest.mark.parametrize("backwards", [False, True])
def test_search(database: Counting, backwards: bool) -> None:
    """The expression says what to look for, and so does the scan: events without it make no row."""
    expected = everything(database)
    pattern = search.Pattern(r"=7\b")
    at: Position | None = None
    found = []
    while row := search.find(database, queries.EVERY, pattern, shown, at, backwards):
        at = row[2], row[0]
        found.append(at)
    assert found == (expected[::-1] if backwards else expected)
