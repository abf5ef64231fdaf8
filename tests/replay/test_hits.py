"""All hits of a line, with their variables: the same ones as variable(ID) tells, one by one."""

import pytest
from pytracer.reader.database import Database
from pytracer.reader.replay.expressions import parse
from pytracer.reader.replay.history import History
from pytracer.reader.replay.hits import Hit, hits
from pytracer.reader.replay.state import variables

from line_programs import PROGRAMS
from recording import Record, Recording

LOOP = """
def work(n):
    total = 0
    for i in range(n):
        total += i
        if i % 7 == 0:
            last = i
        elif 'last' in locals():
            del last
    return total
work(60)
work(3)
"""
GENERATORS = """
import threading
def count(name, n):
    for i in range(n):
        seen = name + str(i)
        yield seen
def alone(n):
    for i in range(n):
        yield i
one, other = count('a', 30), count('b', 20)
for a, b in zip(one, other):
    pass
list(one)
sum(alone(30))
for x in alone(5):
    list(alone(x))
def both():
    list(zip(count('c', 20), count('d', 20)))
threads = [threading.Thread(target=both) for _ in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
def outer(depth):
    mark = depth
    if depth:
        outer(depth - 1)
    return mark
outer(5)
"""


def history(recording: Recording) -> History:
    database = Database(str(recording.database))
    return History(database, database.runs()[-1].id)


def assert_as_asked_one_by_one(recording: Recording) -> None:
    of = history(recording)
    sql = "SELECT id, line FROM event WHERE kind = 'line' AND file = ? AND NOT trailing ORDER BY time, id"
    runs = of.database.query("ii", sql, (str(recording.script),))
    for line in sorted({line for _, line in runs}):
        found = list(hits(of, (str(recording.script), line)))
        assert [hit.moment.id for hit in found] == [id for id, in_line in runs if in_line == line]
        assert [hit.nth for hit in found] == list(range(1, len(found) + 1))
        for hit in found:
            told = {
                each.name: (each.value.value, each.value.type) for each in variables(of.database, hit.moment)
            }
            assert {name: (item.value, item.type) for name, item in hit.variables.items()} == told, hit.moment


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_variables_are_those_that_are_asked_one_by_one(record: Record, name: str) -> None:
    assert_as_asked_one_by_one(record(PROGRAMS[name], "--lines"))


@pytest.mark.parametrize("source", [LOOP, GENERATORS])
def test_variables_of_loops_and_of_generators_that_take_turns(record: Record, source: str) -> None:
    assert_as_asked_one_by_one(record(source, "--lines"))


def test_variables_in_many_segments(record: Record) -> None:
    recording = record(LOOP.replace("60", "6000"), "--lines")
    of = history(recording)
    every = 53
    for hit in list(hits(of, (str(recording.script), 5)))[::every]:
        told = {each.name: each.value.value for each in variables(of.database, hit.moment)}
        assert {name: item.value for name, item in hit.variables.items()} == told


def test_pages(record: Record) -> None:
    recording = record(LOOP, "--lines")
    of, place = history(recording), (str(recording.script), 5)
    whole = list(hits(of, place, [parse("total + i")]))
    assert len(whole) == 63
    assert [hit.results[0].text for hit in whole[:4]] == ["0", "1", "3", "6"]
    assert list(hits(of, whole[5].moment, [parse("total + i")])) == whole

    def same(found: list[Hit], expected: list[Hit]) -> None:
        assert [(hit.moment.id, hit.nth, hit.variables) for hit in found] == [
            (hit.moment.id, hit.nth, hit.variables) for hit in expected
        ]

    same(list(hits(of, place, limit=10)), whole[:10])
    same(list(hits(of, place, limit=10, after=whole[9])), whole[10:20])
    same(list(hits(of, place, limit=10, after=whole[59])), whole[60:])
    same(list(hits(of, place, limit=10, before=whole[20])), whole[10:20])
    same(list(hits(of, place, limit=10, before=whole[4])), whole[:4])
    same(list(hits(of, place, before=whole[30])), whole[:30])
    assert not list(hits(of, place, limit=10, before=whole[0]))
    assert not list(hits(of, place, limit=0))
    assert not list(hits(of, (str(recording.script), 999)))


def test_what_was_not_recorded_is_said(record: Record) -> None:
    recording = record(LOOP, "--lines")
    first, *_ = hits(history(recording), (str(recording.script), 5), [parse("last"), parse("total > 1")])
    assert not first.results[0].known
    assert "last was not recorded" in first.results[0].reason
    assert first.results[1].text == "False"
