"""What questions do not read again, or not at all. The summaries of segments are kept from question
to question, as long as they are true."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from pytracer.reader.database import extension_path
from pytracer.reader.sql_session import SqlSession

from handmade import EPOCH_NS, EVENT_IDS, NS_PER_UNIT, Handmade, event, zstd

SEGMENTS = 200
OFTEN = 6  # questions; the summaries are kept before the last
OWN = "event MATCH '(shown own)'"


@pytest.fixture(name="made")
def database(tmp_path: Path) -> Iterator[Handmade]:
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, 1, "pay", mine=True)
        for sequence in range(SEGMENTS):
            made.segment(run, [event("call", 1)], sequence=sequence, start=1000 * sequence)
        yield made


def ask(connection: apsw.Connection, where: str = "1") -> int:
    [(count,)] = connection.execute(f"SELECT count(*) FROM event WHERE {where}").fetchall()
    return int(count)


@pytest.mark.parametrize("where", ["1", OWN])
def test_what_another_connection_changes_is_seen(made: Handmade, where: str) -> None:
    with closing(SqlSession(str(made.path))) as session:
        reader = session.connection()
        assert {ask(reader, where) for _ in range(OFTEN)} == {SEGMENTS}
        made.segment(1, [event("call", 1)], sequence=SEGMENTS, start=1000 * SEGMENTS)
        assert {ask(reader, where) for _ in range(OFTEN)} == {SEGMENTS + 1}
        made("DELETE FROM segment WHERE sequence < 10")
        assert {ask(reader, where) for _ in range(OFTEN)} == {SEGMENTS - 9}


def test_a_question_of_another_kind(made: Handmade) -> None:
    """Levels need a column more."""
    with closing(SqlSession(str(made.path))) as session:
        for where in ("1", OWN, "kind = 'call'", OWN):
            assert {ask(session.connection(), where) for _ in range(OFTEN)} == {SEGMENTS}


def test_changes_of_its_own_are_seen(made: Handmade) -> None:
    """Also those that are taken back."""
    made.connection.enable_load_extension(True)
    made.connection.load_extension(extension_path())
    assert {ask(made.connection) for _ in range(OFTEN)} == {SEGMENTS}
    made("BEGIN")
    made("DELETE FROM segment WHERE sequence < 10")
    assert {ask(made.connection) for _ in range(OFTEN)} == {SEGMENTS - 10}
    made("ROLLBACK")
    assert {ask(made.connection) for _ in range(OFTEN)} == {SEGMENTS}


def test_rows_are_read_once(made: Handmade) -> None:
    """A question about the end, after some others, does not go through all rows."""
    looks = 0

    def look() -> bool:
        nonlocal looks
        looks += 1
        return False

    with closing(SqlSession(str(made.path))) as session:
        reader = session.connection()
        last = int(reader.execute("SELECT max(time) FROM event").fetchall()[0][0])
        reader.set_progress_handler(look, 1)
        steps = []
        for _ in range(OFTEN):
            looks = 0
            assert ask(reader, f"time >= {last}") == 1
            steps.append(looks)
    assert steps[-1] < SEGMENTS < max(steps)


def test_a_segment_is_not_read_behind_what_is_asked_for(made: Handmade) -> None:
    """Its damage is seen by questions that go so far."""
    start = 1000 * SEGMENTS
    segment = made.segment(1, [event("call", 1, time=9)] * 10, sequence=SEGMENTS, start=start)
    [(data,)] = made("SELECT data FROM segment WHERE id = ?", (segment,))
    body = zstd.decompress(data)[:-1]
    made("UPDATE segment SET data = ?, size = size - 1 WHERE id = ?", (zstd.compress(body), segment))
    first = EPOCH_NS + NS_PER_UNIT * start
    with closing(SqlSession(str(made.path))) as session:
        reader = session.connection()
        assert ask(reader, f"time BETWEEN {first} AND {first + 5 * 9 * NS_PER_UNIT}") == 5
        assert ask(reader, f"id BETWEEN {segment * EVENT_IDS} AND {segment * EVENT_IDS + 5}") == 6
        assert reader.execute("SELECT * FROM damage").fetchall() == []
        assert ask(reader, f"time >= {first}") == 9
        assert len(reader.execute("SELECT * FROM damage").fetchall()) == 1
