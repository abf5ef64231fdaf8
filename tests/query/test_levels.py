"""What own code is around an event (csrc/format/levels.h): the columns own_depth, near_depth and
near, and `shown`, against a slow and simple walk over programs made by chance."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytracer.reader.sql_session import SqlSession

from handmade import MOTIONS, Handmade, event

CODES = {1: True, 2: False, 3: False, 4: True, 5: False}  # by number: whether it is own code
FIRST, SECOND = 1, 2  # streams


@contextmanager
def asking(path: Path) -> Iterator[Callable[..., list[Any]]]:
    """Asks the database in SQL."""
    session = SqlSession(str(path))
    try:
        yield lambda sql, *values: list(session.connection().execute(sql, values))
    finally:
        session.close()


class Step(NamedTuple):
    """An event of a program."""

    kind: str
    code: int
    open: int  # calls before it
    depth: int | None  # as written in its record: behind a loss


class Found(NamedTuple):
    """What the walk says of an event."""

    id: int
    own_depth: int
    near_depth: int
    near: int
    shown_own: bool
    shown_near: bool


def program(chance: random.Random, length: int) -> Iterator[Step]:
    """A thread: calls, generators, exceptions, and losses, behind which other calls are open."""
    stack = [0] * chance.choice((0, 0, 3))  # code 0: as after a fork
    depth = None
    for _ in range(length):
        kind = chance.choice(
            ("call",) * 5 + ("return",) * 4 + ("exception", "yield", "resume", "log", "lost", "line", "line")
        )
        opened = len(stack)
        if MOTIONS.get(kind, 0) > 0:
            code = chance.choice((1, 2, 2, 3, 5, 5) if opened % 7 < 5 else (2, 3, 4, 5))
            stack.append(code)
        elif kind in MOTIONS and stack:
            code = stack.pop() or 2
        elif kind == "lost" and chance.random() < 0.3:
            code = 1  # a count
        elif kind in ("log", "line") and stack:
            code = stack[-1] or 2
        else:
            continue
        yield Step(kind, code, opened, depth)
        depth = None
        if kind == "lost" and chance.random() < 0.8:
            del stack[chance.randrange(len(stack) + 1) :]
            stack += [0] * chance.randrange(4)
            depth = len(stack)


def write(path: Path, chance: random.Random, length: int) -> dict[int, list[tuple[int, Step]]]:
    """A run of two threads in segments of a few events; the events of each, with their ids."""
    steps: dict[int, list[tuple[int, Step]]] = {}
    with Handmade(path) as database:
        run = database.run()
        for number, mine in CODES.items():
            database.code(run, number, f"func{number}", mine=mine)
        database.thread(run, SECOND, 200, "other")
        for stream in (FIRST, SECOND):
            events = list(program(chance, length))
            at = sequence = 0
            while at < len(events):
                part = events[at : at + chance.choice((1, 2, 3, 8))]
                id = database.segment(
                    run,
                    [event(step.kind, step.code, time=1, depth=step.depth) for step in part],
                    stream=stream,
                    sequence=sequence,
                    start=at,
                    base_depth=part[0].open,
                )
                steps.setdefault(stream, []).extend(((id << 18) + i, step) for i, step in enumerate(part))
                at += len(part)
                sequence += 1
    return steps


def walk(steps: list[tuple[int, Step]]) -> Iterator[Found]:
    """The events of a thread. Of the functions that are open at its start, or behind a loss, none
    is known."""
    levels: list[bool] = []
    after_own = after_near = False
    for id, (kind, code, opened, _) in steps:
        levels = (levels + [False] * opened)[:opened]
        enters = MOTIONS.get(kind, 0) > 0
        around = levels if enters else levels[:-1]
        lost = kind == "lost"
        mine = not lost and CODES[code]
        near = not lost and (mine or around[-1:] == [True])
        yield Found(
            id,
            sum(around),
            sum(own or above for own, above in zip(around, [False, *around], strict=False)),
            int(near),
            mine or lost or after_own,
            near or lost or after_near,
        )
        after_own, after_near = mine or lost, near or lost
        if kind in MOTIONS:
            levels = [*around, mine] if enters else around


@pytest.mark.parametrize("seed", range(4))
def test_against_a_walk(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "traces.sqlite"
    steps = write(path, chance, 400)
    found = {one.id: one for thread in steps.values() for one in walk(thread)}
    with asking(path) as asked:
        columns = "id, own_depth, near_depth, near"
        forward = [id for (id,) in asked("SELECT id FROM event ORDER BY time, id")]
        assert sorted(forward) == sorted(found)
        for order, ids in (("", forward), ("DESC", forward[::-1])):
            rows = asked(f"SELECT {columns} FROM event ORDER BY time {order}, id {order}")
            assert rows == [found[id][:4] for id in ids]
        shown = {
            "own": [id for id in forward if found[id].shown_own],
            "near": [id for id in forward if found[id].shown_near],
        }
        assert 0 < len(shown["own"]) < len(shown["near"]) < len(forward)
        for view, ids in shown.items():
            match = f"event MATCH '(shown {view})'"
            assert asked(f"SELECT id FROM event WHERE {match} ORDER BY time, id") == [(id,) for id in ids]
            assert asked(f"SELECT {columns} FROM event WHERE {match} ORDER BY time DESC, id DESC") == [
                found[id][:4] for id in reversed(ids)
            ]
            assert asked(f"SELECT count(*) FROM event WHERE {match}") == [(len(ids),)]
            middle = asked("SELECT time FROM event WHERE id = ?", forward[len(forward) // 2])[0][0]
            late = asked(
                f"SELECT id FROM event WHERE {match} AND time >= ? ORDER BY time, id LIMIT 9", middle
            )
            assert late == asked(
                f"SELECT id FROM (SELECT id, time FROM event WHERE {match}) WHERE time >= ?"
                " ORDER BY time, id LIMIT 9",
                middle,
            )
            hidden = f"SELECT id FROM event WHERE event MATCH '(not (shown {view}))' ORDER BY time, id"
            assert [id for (id,) in asked(hidden)] == [id for id in forward if id not in set(ids)]
            for id in chance.sample(forward, 60):
                rows = asked(f"SELECT {columns} FROM event WHERE id = ? AND {match}", id)
                assert rows == [found[id][:4]] * (id in ids)
        both = "event MATCH '(and (shown near) (or (= depth 3) (= func \"func5\")) (= stream 1))'"
        assert asked(f"SELECT id FROM event WHERE {both} ORDER BY time, id") == asked(
            "SELECT id FROM event WHERE event MATCH '(shown near)' AND (+depth = 3 OR +func = 'func5')"
            " AND +stream = 1 ORDER BY time, id"
        )
        for condition in ("own_depth <= 1", "own_depth = 3", "near_depth > 4", "near = 1", "near = 0"):
            wanted = {id for id in forward if eval(condition.replace(" = ", " == "), {}, found[id]._asdict())}
            for where in (condition, f"event MATCH '({' '.join(_prefix(condition))})'"):
                assert {id for (id,) in asked(f"SELECT id FROM event WHERE {where}")} == wanted


def _prefix(condition: str) -> tuple[str, str, str]:
    field, operator, number = condition.split()
    return operator, field, number


def _library(path: Path, base: int = 10) -> None:
    """Own code at levels 0 and 1, then a segment that shows nothing: library calls from level 10
    on; and one that shows: they come back to what own code called."""
    with Handmade(path) as database:
        run = database.run()
        for number, mine in CODES.items():
            database.code(run, number, f"func{number}", mine=mine)
        down = [event("call", 1, time=1)] * 2 + [event("call", 2, time=1)] * (base - 2)
        inside = [event("call", 2, time=1), event("return", 2, time=1)] * 50
        up = [event("return", 2, time=1)] * (base - 2)
        database.segment(run, down)
        for sequence in (1, 2):
            database.segment(
                run, inside, sequence=sequence, start=len(down) + (sequence - 1) * 100, base_depth=base
            )
        database.segment(run, up, sequence=3, start=len(down) + 200, base_depth=base)


def test_segments_that_show_nothing_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    _library(path)
    with Handmade(path) as database:
        database("UPDATE segment SET data = x'00' WHERE sequence IN (1, 2)")
        assert database("SELECT hex(open) FROM segment ORDER BY id") == [
            ("00",),
            ("0003",),
            ("0003",),
            ("0003",),
        ]
    with asking(path) as asked:
        own = "SELECT count(*) FROM event WHERE event MATCH '(shown own)'"
        near = (
            "SELECT kind, depth, near FROM event WHERE event MATCH '(shown near)' ORDER BY time DESC, id DESC"
        )
        assert asked(own) == [(3,)]
        assert asked(near) == [
            ("return", 2, 1),
            ("call", 3, 0),
            ("call", 2, 1),
            ("call", 1, 1),
            ("call", 0, 1),
        ]
        assert asked("SELECT count(*) FROM event WHERE own_depth < 2") == [(2,)]
        assert asked("SELECT count(*) FROM event WHERE near_depth > 3 OR near_depth < 2") == [(2,)]
        assert asked("SELECT depth FROM event WHERE near = 1 ORDER BY time") == [(0,), (1,), (2,), (2,)]
        assert asked("SELECT * FROM damage") == []
        assert asked("SELECT count(*) FROM event WHERE own_depth = 2 ") == [(16,)]
        assert len(asked("SELECT * FROM damage")) == 2


def test_older_recordings_show_own_code_alone(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    _library(path)
    with Handmade(path) as database:
        for changes in (["UPDATE segment SET open = NULL"], ["UPDATE segment SET open = x''"], _WITHOUT):
            for change in changes:
                database(change)
            with asking(path) as asked:
                for view in ("own", "near"):
                    match = f"event MATCH '(shown {view})'"
                    rows = asked(f"SELECT mine, near, own_depth FROM event WHERE {match}")
                    assert rows == [(1, None, None)] * 2
                none = "SELECT count(*) FROM event WHERE own_depth >= 0 OR near IN (0, 1)"
                assert asked(none) == [(0,)]


_WITHOUT = ["DROP INDEX segment_time", "ALTER TABLE segment DROP COLUMN open"]


def test_functions_that_are_shown_are_hot(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    _library(path)
    with asking(path) as asked:
        rows = asked("SELECT func, calls FROM hot WHERE hot MATCH '(shown near)' ORDER BY func")
        assert rows == [("func1", 2), ("func2", 2)]
