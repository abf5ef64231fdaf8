"""The ways through a recording: the same moments forwards and backwards, steps as debuggers have
them, and what was true at each."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.replay import state
from pytracer.reader.replay.breakpoints import parse, resume
from pytracer.reader.replay.history import History
from pytracer.reader.replay.moment import Moment

from handmade import Handmade, event
from line_programs import PROGRAMS
from recording import Record

Move = Callable[[Moment, bool], Moment | None]

SHOP = """
import threading
def price(item):
    cost = len(item)
    return cost
def total(items, sum=0):
    for item in items:
        sum += price(item)
    return sum
def fail():
    try:
        int('x')
    except ValueError as error:
        reason = str(error)
    raise KeyError('gone')
def count(n):
    while n:
        yield n
        n -= 1
def main():
    one = total(['a', 'bb', 'ccc'])
    numbers = [n for n in count(3)]
    try:
        fail()
    except KeyError:
        numbers.append(one)
    thread = threading.Thread(target=total, args=(['dddd'],), name='other')
    thread.start()
    thread.join()
    return numbers
main()
"""


def history_of(path: Path) -> History:
    database = Database(str(path))
    return History(database, database.runs()[-1].id)


@pytest.fixture(name="shop")
def shop_fixture(record: Record) -> History:
    return history_of(record(SHOP, "--lines").database)


def walk(move: Move, start: Moment | None, backwards: bool = False) -> list[Moment]:
    found = []
    while start is not None:
        found.append(start)
        start = move(start, backwards)
    return found


def source_line(text: str) -> int:
    """The number of the first line that has this text, from 1."""
    return next(number for number, line in enumerate(SHOP.splitlines(), 1) if text in line)


def reached(history: History, text: str, nth: int = 1) -> Moment:
    """The moment at which the line with this text is run for the nth time."""
    start, line = history.first(), source_line(text)
    assert start is not None
    hits = history.hits(start, f'(and (= kind "line") (= line {line}) (like file "%script%"))')
    return [next(hits) for _ in range(nth)][-1]


FEW = ("loops", "generators", "exceptions")


@pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS if name not in FEW)]
)
def test_steps_backwards_are_the_steps_forwards_reversed(record: Record, name: str) -> None:
    history = history_of(record(PROGRAMS[name], "--lines").database)
    forwards = walk(history.step, history.first())
    assert walk(history.step, forwards[-1], True) == forwards[::-1]
    assert forwards[0] == history.first()
    assert forwards[-1] == history.first(backwards=True)


def test_a_random_walk_is_where_a_list_of_all_moments_says(shop: History) -> None:
    every = walk(shop.step, shop.first())
    chance, at = random.Random(3), 0
    for _ in range(1000):
        backwards = chance.random() < 0.5
        found = shop.step(every[at], backwards)
        there = at + (-1 if backwards else 1)
        if not 0 <= there < len(every):
            assert found is None
            continue
        assert found == every[there]
        at = there


def test_a_recording_without_lines_has_calls_and_their_ends(record: Record) -> None:
    history = history_of(record(SHOP, "--no-stdlib").database)
    assert not history.has_lines()
    forwards = walk(history.step, history.first())
    assert {moment.kind for moment in forwards} >= {"call", "return", "exception", "yield", "resume"}
    assert walk(history.step, forwards[-1], True) == forwards[::-1]
    call = next(moment for moment in forwards if moment.func == "total")
    assert {each.name: each.value.value for each in state.variables(history.database, call)} == {
        "items": "['a', 'bb', 'ccc']",
        "sum": "0",
    }
    over = history.next(call)
    assert over is not None
    assert (over.kind, over.func) == ("return", "total")
    assert history.next(over, True) == call


def test_other_code_is_passed_over_where_own_lines_are_recorded(shop: History) -> None:
    own = walk(shop.step, shop.first())
    assert {moment.file for moment in own} == {own[0].file}
    shop.everything = True
    every = walk(shop.step, shop.first())
    assert len({moment.file for moment in every}) > 1  # threading.py
    assert [moment for moment in every if moment.file == own[0].file] == own
    assert walk(shop.step, every[-1], True) == every[::-1]


def test_next_goes_over_what_is_called(shop: History) -> None:
    start = reached(shop, "for item in items")
    lines = [moment.line for moment in walk(shop.next, start) if moment.func == "total"]
    loop, call, back = map(source_line, ("for item in items", "sum += price", "return sum"))
    assert lines[:-1] == [loop, call] * 3 + [loop, back]
    end = shop.finish(start)
    assert end is not None
    assert (end.kind, end.func) == ("return", "total")
    backwards = [moment for moment in walk(shop.next, end, True) if moment.func == "total"]
    assert [moment.line for moment in backwards[1:]] == lines[-2::-1]
    caller = shop.next(backwards[-1], True)
    assert caller is not None
    assert (caller.func, caller.line) == ("main", source_line("one = total"))


def test_finish_goes_to_the_end_and_back_to_the_call(shop: History) -> None:
    inside = reached(shop, "cost = len")
    end = shop.finish(inside)
    assert end is not None
    assert (end.kind, end.func) == ("return", "price")
    told = state.outcome(shop.database, end)
    assert told is not None
    assert (told.name, told.value) == ("return value", "1")
    outer = shop.finish(end)
    assert outer is not None
    assert (outer.kind, outer.func) == ("return", "total")
    called = shop.finish(inside, True)
    assert called is not None
    assert (called.func, called.line) == ("total", source_line("sum += price"))


def test_iterations_stay_in_the_call(shop: History) -> None:
    first = reached(shop, "sum += price")
    runs = walk(shop.iteration, first)
    assert len(runs) == 3
    assert walk(shop.iteration, runs[-1], True) == runs[::-1]
    values = [
        next(each.value.value for each in state.variables(shop.database, moment) if each.name == "item")
        for moment in runs
    ]
    assert values == ["'a'", "'bb'", "'ccc'"]
    assert shop.times(runs[1]) == (2, 4)  # one more in the other thread


def test_a_line_that_tells_its_changes_runs_once(record: Record) -> None:
    of = history_of(record("def add(n):\n    n += 1\nfor i in range(3): add(i)\n", "--lines").database)
    first = of.first()
    assert first is not None
    told = list(of.hits(first, '(and (= kind "line") (= qualname "add") (= line 2))'))
    assert [each.trailing for each in told] == [0, 1] * 3
    assert [of.times(each) for each in told] == [(1, 3), (1, 3), (2, 3), (2, 3), (3, 3), (3, 3)]
    stops = walk(of.step, first)
    assert [each for each in stops if each.func == "add" and each.kind == "line"] == told[::2]
    assert walk(of.step, of.first(True), True) == stops[::-1]
    third = replace(parse("2", of, told[0].file, None), hit_count=3)
    stop = resume(of, first, [third], uncaught=False)
    assert stop is not None
    assert stop.moment == told[4]
    assert resume(of, stop.moment, [third], uncaught=False) is None


def test_a_run_of_a_line_at_the_time_of_the_end(tmp_path: Path) -> None:
    with Handmade(path := tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, 1, "main", mine=True)
        lines = event("line", 1, line=2), event("line", 1, line=2), event("return", 1, None)
        made.segment(run, [event("call", 1), *lines])
    assert [each.kind for each in walk(history_of(path).step, history_of(path).first())] == [
        "line", "line", "return",
    ]  # fmt: skip


def test_where_a_value_came_from(shop: History) -> None:
    at = reached(shop, "return sum")
    [frame] = [each for each in state.entered(shop.database, at.id) if each.func == "total"]
    values = []
    change = shop.change(at, frame, "sum", True)
    while change is not None and change.kind == "line":
        setter = shop.setter(at, change)
        assert setter.line == source_line("sum += price")
        values.append(next(v.value.value for v in state.variables(shop.database, change) if v.name == "sum"))
        change = shop.change(setter, frame, "sum", True)
    assert values == ["6", "3", "1"]
    assert change is not None
    assert (change.kind, change.id) == ("call", frame.id)  # the caller gave the first one
    later = shop.change(change, frame, "sum", False)
    assert later is not None
    assert shop.setter(at, later) == reached(shop, "sum += price")


def test_where_an_exception_was_raised(shop: History) -> None:
    raised = shop.raised(reached(shop, "int('x')"))
    assert raised is not None
    assert (raised.func, raised.line) == ("fail", source_line("int('x')"))
    second = shop.raised(raised)
    assert second is not None
    assert (second.func, second.line) == ("fail", source_line("raise KeyError"))
    known = {each.name: each.value.value for each in state.variables(shop.database, second)}
    assert known == {"reason": repr("invalid literal for int() with base 10: 'x'")}
    assert shop.raised(second, True) == raised
    assert shop.raised(second) is None  # it arrives in main


def test_an_exception_is_raised_once(record: Record) -> None:
    """Be there code between that a walk passes over; but that may raise another one."""
    source = """
import json, re
def inner(match):
    raise KeyError('inner')
def around():
    re.sub('a', inner, 'a')
def other():
    json.loads('nonsense')
for each in around, other:
    try:
        each()
    except Exception:
        pass
"""
    of = history_of(record(source, "--lines").database)
    stops = walk(of.raised, of.first())[1:]
    assert [(each.func, each.line) for each in stops] == [("inner", 4), ("other", 8)]
    assert walk(of.raised, of.first(True), True)[1:] == stops[::-1]
    of.everything = True
    stops = walk(of.raised, of.first())[1:]
    assert [each.func for each in stops if each.module == "__main__"] == ["inner"]
    assert "json.decoder" in {each.module for each in stops}


def test_frames_and_their_lines(shop: History) -> None:
    at = reached(shop, "cost = len", nth=2)
    frames = [state.frame(shop.database, at, each) for each in state.entered(shop.database, at.id)]
    assert [(frame.entered.func, frame.line) for frame in frames] == [
        ("price", source_line("cost = len")),
        ("total", source_line("sum += price")),
        ("main", source_line("one = total")),
        ("<module>", SHOP.splitlines().index("main()") + 1),
    ]
    outer = {each.name: each.value.value for each in state.variables(shop.database, frames[1].at)}
    assert outer == {"items": "['a', 'bb', 'ccc']", "sum": "1", "item": "'bb'"}


def test_threads_and_times(shop: History) -> None:
    streams = {name: stream for stream, _, _, name in shop.streams()}
    assert set(streams) == {"MainThread", "other"}
    other = shop.in_thread(streams["other"], 0)
    assert other is not None
    main = shop.in_thread(streams["MainThread"], other.time)
    assert main is not None
    assert main.time <= other.time
    start = shop.first()
    assert start is not None
    assert shop.at_time(0) == start
    assert shop.at_time(1 << 62) == shop.first(backwards=True)
    assert shop.at_time(start.time) == start
    assert shop.at(start.id) == start
    assert shop.at(1 << 50) is None


def test_a_state_that_began_in_an_earlier_segment(record: Record) -> None:
    source = """
def busy(n):
    for i in range(n):
        x = str(i)
def work(items):
    name = 'bob'
    total = {'n': 1, 'of': [1, 2]}
    busy(20000)
    return name
work([1])
"""
    history = history_of(record(source, "--lines").database)
    end = history.first(backwards=True)
    assert end is not None
    inside = history.onwards(end, '(and (= kind "line") (= qualname "busy"))', True)
    assert inside is not None
    frames = {each.func: each for each in state.entered(history.database, inside.id)}
    frame = state.frame(history.database, inside, frames["work"])
    assert frame.at.id >> 18 < inside.id >> 18
    found = {each.name: each.value for each in state.variables(history.database, frame.at, frame.entered)}
    assert {name: item.value for name, item in found.items()} == {
        "items": "[1]",
        "name": "'bob'",
        "total": "{'n': 1, 'of': [1, 2]}",
    }
    assert [(each.name, each.value) for each in found["total"].items] == [
        ("['n']", "1"),
        ("['of']", "[1, 2]"),
    ]
    assert [each.name for each in found["total"].items[1].items] == ["[0]", "[1]"]
