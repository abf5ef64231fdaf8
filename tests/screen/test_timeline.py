"""A run's course from the summaries of its segments: shares, places, cells, losses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import apsw
import pytest
from pytracer.reader.database import Damaged, Database
from pytracer.reader.screen import timeline as course
from pytracer.reader.screen.timeline import Cell, Timeline, read, refined

from damaging import loosen
from handmade import EPOCH_NS, NS_PER_UNIT, Handmade, event

NONE, WHOLE = 0.0, 1.0


def calls(count: int, gap: int, kind: str = "call") -> list[object]:
    """So many events, each some units behind the one before."""
    return [event("call", 1, time=gap), *(event(kind, 1, time=gap) for _ in range(count - 1))]


def ns(units: int) -> int:
    return EPOCH_NS + NS_PER_UNIT * units


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Handmade]:
    with Handmade(tmp_path / "traces.sqlite") as made:
        yield made


def asked(made: Handmade, run: int | None, before: Timeline | None = None) -> Timeline:
    database = Database(str(made.path))
    try:
        return read(database, run, before)
    finally:
        database.close()


def looked_at(made: Handmade, line: Timeline, cells: list[Cell]) -> list[Cell]:
    database, done = Database(str(made.path)), 0
    while done < len(cells):
        cells, done = refined(database, line, cells, done, 0)
    database.close()
    return cells


def times(made: Handmade) -> list[int]:
    database = Database(str(made.path))
    found = database.query("i", "SELECT time FROM event ORDER BY time, id")
    database.close()
    return [time for (time,) in found]


def test_shares_of_overlapping_segments(made: Handmade) -> None:
    run, random = made.run(), Random(2)
    made.code(run, 1, "f")
    for stream in range(2, 6):
        made.thread(run, stream, 100 + stream, f"T{stream}")
    for stream in range(1, 6):
        start = 0
        for sequence in range(12):
            start += random.choice([0, 0, 3, 5000])
            gap = random.choice([0, 1, 1, 40])
            made.segment(run, calls(30, gap), stream=stream, sequence=sequence, start=start)
            start += 30 * gap
    line, events = asked(made, run), times(made)
    assert line.events == len(events) == 1800
    assert (line.share(line.first), line.share(line.last)) == (NONE, WHOLE)
    # a segment begins with the record before its first event
    assert line.first <= events[0]
    assert line.last - events[-1] in (0, 1)
    ranks = [line.share(time) * line.events for time in events]
    assert ranks == sorted(ranks)
    assert max(abs(rank - i) for i, rank in enumerate(ranks)) <= 5 * 30  # a segment of each thread
    places = [i / 500 for i in range(501)]
    found = [line.time_at(place) for place in places]
    assert found == sorted(found)
    for place, time in zip(places, found, strict=True):
        assert line.share(time - 1) <= place + 1e-9
        assert line.share(time + 1) >= place - 1e-9
    for count in (1, 7, 200):
        assert sum(cell.events for cell in line.cells(count)) == pytest.approx(1800)


def test_many_segments_are_taken_together(made: Handmade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "_PIECES", 16)
    run = made.run()
    made.code(run, 1, "f")
    for sequence in range(40):
        made.segment(run, calls(20, 1 + sequence % 3), sequence=sequence, start=100 * sequence)
    line, events = asked(made, run), times(made)
    assert line.events == 800
    assert max(abs(line.share(time) * line.events - i) for i, time in enumerate(events)) <= 800 / 13


def test_exceptions_are_first_where_a_segment_has_one_then_where_they_are(made: Handmade) -> None:
    run = made.run()
    made.code(run, 1, "f")
    made.segment(run, [*calls(500, 10), event("raise", 1, time=0), *calls(499, 10)], start=0)
    made.segment(run, calls(1000, 10), sequence=1, start=10_000)
    line = asked(made, run)
    assert [cell.exceptions for cell in line.cells(10)] == [True] * 5 + [False] * 5
    exact = looked_at(made, line, line.cells(10))
    assert [cell.exceptions for cell in exact] == [False, False, True] + [False] * 7
    assert [cell.events for cell in exact][:4] == [199.0, 200.0, 201.0, 200.0]
    assert sum(cell.events for cell in exact) == line.events == 2000


def test_a_large_run_is_looked_at_where_there_may_be_exceptions(
    made: Handmade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "_SMALL", 100)
    run = made.run()
    made.code(run, 1, "f")
    made.segment(run, [*calls(500, 10), event("raise", 1, time=0), *calls(499, 10)], start=0)
    made.segment(run, calls(1000, 10), sequence=1, start=10_000)
    line = asked(made, run)
    cells = line.cells(10)
    exact = looked_at(made, line, cells)
    assert [cell.exceptions for cell in exact] == [False, False, True] + [False] * 7
    assert [cell.events for cell in exact] == [cell.events for cell in cells]


def test_losses(made: Handmade) -> None:
    run = made.run(lost=12)
    made.code(run, 1, "f")
    for sequence, lost in enumerate([0, 5, 0, 7]):
        first = [event("lost", lost)] if lost else []
        number = made.segment(run, first + calls(10, 10), sequence=sequence, start=1000 * sequence)
        made("UPDATE segment SET lost = ? WHERE id = ?", (lost, number))
    line = asked(made, run)
    assert line.lost == 12
    near = {at: line.lost_near(ns(at), NS_PER_UNIT * 10) for at in (0, 989, 990, 1010, 1011, 3000)}
    assert near == {0: 0, 989: 0, 990: 5, 1010: 5, 1011: 0, 3000: 7}
    assert line.lost_near(ns(2000), NS_PER_UNIT * 1000) == 12
    assert [cell.lost for cell in line.cells(31)] == [i in (10, 30) for i in range(31)]
    assert [cell.lost for cell in looked_at(made, line, line.cells(31))] == [i in (10, 30) for i in range(31)]


def test_losses_go_on_and_are_removed(made: Handmade) -> None:
    run = made.run(lost=30, finished=False)
    made.code(run, 1, "f")
    line = None
    for sequence in range(5):
        number = made.segment(run, [event("lost", 6), *calls(9, 10)], sequence=sequence, start=100 * sequence)
        made("UPDATE segment SET lost = 6 WHERE id = ?", (number,))
        line = asked(made, run, line)
        assert line.lost_near(ns(0), NS_PER_UNIT * 1000) == 6 * (sequence + 1)
        assert line == asked(made, run)
    made("DELETE FROM segment WHERE sequence < 2")
    line = asked(made, run, line)
    assert line.lost_near(ns(0), NS_PER_UNIT * 1000) == 18
    assert line == asked(made, run)


def test_a_run_that_goes_on(made: Handmade) -> None:
    run = made.run(finished=False)
    made.code(run, 1, "f")
    line = asked(made, run)
    assert (line.events, line.first, line.last, line.live) == (0, EPOCH_NS, EPOCH_NS, True)
    assert (line.share(EPOCH_NS), line.time_at(0.5)) == (NONE, EPOCH_NS)
    assert line.cells(3) == [Cell()] * 3
    made.segment(run, calls(10, 10), complete=False)
    line = asked(made, run, line)
    assert (line.events, line.last, line.live) == (10, ns(100), True)
    made.segment(run, calls(20, 10))  # more of the same
    made.segment(run, calls(20, 10), sequence=1, start=200)
    line = asked(made, run, line)
    assert (line.events, line.last) == (40, ns(400))
    made("DELETE FROM segment WHERE sequence = 0")
    made("UPDATE run SET evicted = 20, evicted_until = ?", (ns(200),))
    line = asked(made, run, line)
    assert (line.events, line.first, line.evicted, line.evicted_until) == (20, ns(200), 20, ns(200))
    assert [cell.evicted for cell in line.cells(4)] == [True, False, False, False]
    made.finish(run, 3)
    line = asked(made, run, line)
    assert (line.live, line.exit_status) == (False, 3)
    assert asked(made, run, line) is line  # nothing more can come
    line = asked(made, None)
    assert asked(made, None, line) is line
    other = made.run()
    made.code(other, 1, "f")
    made.segment(other, calls(10, 10))
    assert asked(made, None, line).events == 30


def test_all_runs_together(made: Handmade) -> None:
    for started in (0, 3_000_000):
        run = made.run(started=EPOCH_NS + started, clock_epoch_ns=EPOCH_NS + started)
        made.code(run, 1, "f")
        made.segment(run, calls(100, 10))
    line = asked(made, None)
    assert (line.events, line.first, line.last) == (200, EPOCH_NS, EPOCH_NS + 3_000_000 + 4000)
    assert line.share(EPOCH_NS + 1_000_000) == 0.5
    assert asked(made, 2).first == EPOCH_NS + 3_000_000
    assert (asked(made, 77).events, asked(made, 77).live) == (0, False)  # there is no such run


@pytest.mark.parametrize(
    "change",
    [
        'UPDATE segment SET "end" = 9223372036854775807',
        "UPDATE segment SET start = -9223372036854775808",
        "UPDATE run SET clock_epoch_ns = 9223372036854775807",
        "UPDATE run SET clock_epoch_units = -9223372036854775808, clock_scale = 9223372036854775807",
        "UPDATE segment SET count = 9223372036854775807",
        "UPDATE segment SET count = -1",
        "UPDATE run SET lost = 9223372036854775807",
    ],
)
def test_absurd_numbers_saturate(made: Handmade, change: str) -> None:
    run = made.run()
    made.code(run, 1, "f")
    for sequence in range(3):
        made.segment(run, calls(30, 10), sequence=sequence, start=sequence * 300)
    made(change)
    line = asked(made, run)
    assert -(1 << 63) <= line.first <= line.last < 1 << 63
    assert len(line.cells(80)) == 80
    for share in (0.0, 0.3, 1.0):
        assert line.first <= line.time_at(share) <= line.last
        assert line.first <= line.time_of(share) <= line.last


def test_losses_saturate(made: Handmade) -> None:
    run = made.run(lost=2)
    made.code(run, 1, "f")
    for sequence in range(2):
        made.segment(run, [event("lost", 5)], sequence=sequence)
    made("UPDATE segment SET lost = 9223372036854775807")
    assert asked(made, run).lost_near(EPOCH_NS, 10**9) == (1 << 63) - 1


@pytest.mark.parametrize("number", [None, "text", 1.5])
def test_what_is_no_number_is_damage(made: Handmade, number: object) -> None:
    run = made.run()
    made.code(run, 1, "f")
    made.segment(run, calls(30, 10))
    made.close()
    loosen(made.path)
    connection = apsw.Connection(str(made.path))
    connection.execute('UPDATE segment SET "end" = ?', (number,))
    connection.close()
    with pytest.raises(Damaged):
        asked(made, run)
