"""The table line against a slow and simple count over the events of programs, made by chance and
recorded."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from pytracer.reader.sql_session import SqlSession

from handmade import NS_PER_UNIT, Handmade, event
from line_times import ENTERS, LEAVES, Numbers, Told, expected
from recording import record

FUNCTIONS = ("main", "walk", "parse", "Order.pay")
EVENTS = "SELECT run, pid, tid, kind, func, line, depth, time, trailing FROM event WHERE {} ORDER BY time, id"
LINES = "SELECT run, func, line, count, own, total, average FROM line"


def asked(path: Path, sql: str, *parameters: object) -> list[Any]:
    session = SqlSession(str(path))
    try:
        return session.connection().execute(sql, parameters).fetchall()
    finally:
        session.close()


def told(path: Path, where: str = "1") -> dict[tuple[int, str, int], Numbers]:
    return expected([Told(*row) for row in asked(path, EVENTS.format(where))])


def stored(path: Path) -> dict[tuple[int, str, int], Numbers]:
    return {(run, func, line): tuple(numbers) for run, func, line, *numbers in asked(path, LINES)}


# ---- programs made by chance ----


def program(chance: random.Random, length: int) -> list[tuple[str, int, int, int, int, bool]]:
    """Events of a thread: kind, code, units since the one before, calls open before it, line,
    whether it is trailing."""
    events: list[tuple[str, int, int, int, int, bool]] = []
    stack: list[tuple[int, int]] = []  # code, its last line
    paused: list[tuple[int, int]] = []
    while len(events) < length:
        kind = chance.choice(
            ("call", "call", "return", "return", "exception", "yield", "yield", "resume", "throw", "raise")
            + ("line",) * 8 + (("lost",) if chance.random() < 0.1 else ())
        )  # fmt: skip
        opened, line, since = len(stack), 0, chance.choice((0, 1, 5, 300))
        if kind in LEAVES and stack:
            code, last = stack.pop()
            if last and chance.random() < 0.4:  # the last line's changes
                events.append(("line", code, since, opened, last, chance.random() < 0.8))
                since = chance.choice((0, 0, 0, 2))
            if kind == "yield":
                paused.append((code, last))
        elif kind == "call":
            stack.append((code := chance.randrange(1, len(FUNCTIONS) + 1), 0))
        elif kind in ENTERS and paused:
            stack.append(paused.pop(chance.randrange(len(paused))))
            code = stack[-1][0]
        elif kind in ("line", "raise") and stack:
            code, line = stack[-1][0], chance.randrange(1, 4)
            if kind == "line":
                stack[-1] = code, line
        elif kind == "lost":
            code = 3
        else:
            continue
        events.append((kind, code, since, opened, line, False))
    return events


def write(path: Path, chance: random.Random) -> None:
    """Two runs of two threads; of each thread the beginning may be gone."""
    with Handmade(path) as database:
        for _ in range(2):
            run = database.run()
            for number, name in enumerate(FUNCTIONS, 1):
                database.code(run, number, name)
            for stream in (1, 2):
                database.thread(run, 2, 200, "other") if stream == 2 else None
                events = program(chance, chance.randrange(1, 200))
                time = at = sequence = 0
                gone = chance.choice((0, 0, 1, 3))
                while at < len(events):
                    part = events[at : at + chance.randrange(1, 19)]
                    if sequence >= gone:
                        database.segment(
                            run,
                            [
                                event(kind, code, time=since, line=line, trailing=trailing)
                                for kind, code, since, _, line, trailing in part
                            ],
                            stream=stream,
                            sequence=sequence,
                            start=time,
                            base_depth=part[0][3],
                        )
                    time += sum(since for _, _, since, *_ in part)
                    at += len(part)
                    sequence += 1


@pytest.mark.parametrize("seed", range(80))
def test_lines(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "traces.sqlite"
    write(path, random.Random(seed))
    assert stored(path) == told(path)
    rows = asked(path, LINES)
    own = [row[4] for row in rows]
    assert own == sorted(own, reverse=True)
    assert all(0 <= row[4] <= row[4] + row[5] and row[4] % NS_PER_UNIT == 0 for row in rows)
    for run in (1, 2):
        assert asked(path, f"{LINES} WHERE run = ?", run) == [row for row in rows if row[0] == run]
    assert asked(path, "SELECT * FROM line WHERE run = 'x' OR run IS NULL") == []


CONDITIONS: dict[str, Callable[[Told], bool]] = {
    '(= func "parse")': lambda event: event.func == "parse",
    "(= line 2)": lambda event: event.line == 2,
    '(not (any (= value "7")))': lambda event: True,
    "(< depth 2)": lambda event: event.depth < 2,
    "(and (= run 2) (or (= line 1) (= depth 0)))": (
        lambda event: event.run == 2 and (event.line == 1 or event.depth == 0)
    ),
    '(= kind "call")': lambda event: False,
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("condition", CONDITIONS)
def test_runs_that_meet_a_condition(tmp_path: Path, seed: int, condition: str) -> None:
    path = tmp_path / "traces.sqlite"
    write(path, random.Random(seed))
    events = [Told(*row) for row in asked(path, EVENTS.format("1"))]
    wanted = expected(events, CONDITIONS[condition])
    rows = asked(path, f"{LINES} WHERE line MATCH ?", condition)
    assert {(run, func, line): tuple(numbers) for run, func, line, *numbers in rows} == wanted
    in_one = asked(path, f"{LINES} WHERE line MATCH ? AND run = 2", condition)
    assert in_one == [row for row in rows if row[0] == 2]


def test_a_condition_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    write(path, random.Random(1))
    with pytest.raises(apsw.SQLError, match="there is no field 'nothing'"):
        asked(path, f"{LINES} WHERE line MATCH '(= nothing 1)'")


# ---- one thing each ----


def numbers(tmp_path: Path, *records: Any) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Count, own and total in units by function and line."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        for number, name in enumerate(FUNCTIONS, 1):
            database.code(run, number, name)
        database.segment(run, records)
    assert stored(path) == told(path)
    return {
        (func, line): (count, own // NS_PER_UNIT, total // NS_PER_UNIT)
        for _, func, line, count, own, total, _ in asked(path, LINES)
    }


def test_calls_are_in_total_and_not_in_own(tmp_path: Path) -> None:
    assert numbers(
        tmp_path,
        event("call", 1),
        event("line", 1, time=5, line=2),
        event("call", 2, time=10),
        event("line", 2, time=1, line=8),
        event("return", 2, None, time=100, elapsed=101),
        event("line", 1, time=3, line=3),
        event("exception", 1, None, time=7, elapsed=126),
    ) == {("main", 2): (1, 13, 114), ("main", 3): (1, 7, 7), ("walk", 8): (1, 100, 100)}


def test_the_last_changes_are_no_run(tmp_path: Path) -> None:
    """But a line that runs again is one, be it at the time of the end."""
    assert numbers(
        tmp_path,
        event("call", 1),
        event("line", 1, time=1, line=2),
        event("line", 1, 7, time=10, line=2, variables=[0], trailing=True),
        event("return", 1, None),
        event("call", 2),
        event("line", 2, time=1, line=8),
        event("line", 2, time=10, line=8),
        event("return", 2, None),
    ) == {("main", 2): (1, 10, 10), ("walk", 8): (2, 10, 10)}


def test_recursion_counts_once_in_total(tmp_path: Path) -> None:
    assert numbers(
        tmp_path,
        event("call", 1),
        event("line", 1, line=2),
        event("call", 1, time=10),
        event("line", 1, line=2),
        event("return", 1, None, time=10),
        event("return", 1, None, time=10, elapsed=30),
    ) == {("main", 2): (2, 30, 30)}


def test_a_suspended_generator_does_not_count(tmp_path: Path) -> None:
    """Its line goes on when it is resumed; of two that wait in two lines nobody knows which one."""
    suspended = (
        event("call", 1),
        event("line", 1, line=2),
        event("yield", 1, None, time=10),
        event("resume", 1, time=1000),
        event("line", 1, time=5, line=3),
        event("yield", 1, None, time=20, elapsed=25),
    )
    assert numbers(tmp_path, *suspended) == {("main", 2): (1, 15, 15), ("main", 3): (1, 20, 20)}
    (tmp_path / "traces.sqlite").unlink()
    both = (
        event("call", 1),
        event("line", 1, line=2),
        event("yield", 1, None, time=10),
        event("resume", 1, time=1000),
        event("line", 1, time=5, line=4),
        event("return", 1, None, time=1, elapsed=6),
    )
    assert numbers(tmp_path, *suspended, *both) == {
        ("main", 2): (2, 25, 25), ("main", 3): (1, 20, 20), ("main", 4): (1, 1, 1),
    }  # fmt: skip


def test_what_a_loss_hides_is_left_out(tmp_path: Path) -> None:
    assert numbers(
        tmp_path,
        event("call", 1),
        event("line", 1, line=2),
        event("lost", 5, time=100),
        event("line", 2, time=10, line=8, depth=2),
        event("return", 2, None, time=7, elapsed=0),
        event("line", 1, time=10, line=3),
        event("call", 2, time=1),
        event("return", 2, None, time=7),
        event("return", 1, None, time=1, elapsed=0),
    ) == {("main", 2): (1, 0, 0), ("main", 3): (1, 2, 9), ("walk", 8): (1, 7, 7)}


# ---- recorded programs ----

PROGRAM = """
    import asyncio

    def numbers(n):
        for i in range(n):
            got = yield i * i
        return n

    def all_of(n):
        total = 0
        try:
            total += yield from numbers(n)
        finally:
            total += 1
        return total

    def rec(n):
        return 1 if n == 0 else rec(n - 1) + 1

    def one():
        for i in range(3): i += 1

    def fails(n):
        if n:
            fails(n - 1)
        raise ValueError(n)

    async def wait(n):
        for i in range(n):
            await asyncio.sleep(0.001)
        return n

    async def several():
        await wait(1)
        a, b = await asyncio.gather(wait(2), wait(3))
        return a + b

    def main():
        list(all_of(5))
        dropped = all_of(3)
        next(dropped)
        dropped.close()
        rec(4); rec(2)
        one()
        try:
            fails(3)
        except ValueError as error:
            del error
        x = [rec(n) for n in range(3)]
        y = sorted(x, key=lambda each: -each)
        asyncio.run(several())

    main()
"""


def test_a_recorded_program(tmp_path: Path) -> None:
    recording = record(tmp_path, PROGRAM, "--lines")
    found = stored(recording.database)
    # a function has one code object here, unless it is a library's
    mine = {key: numbers for key, numbers in told(recording.database).items() if key[1] in OWN}
    assert {key: numbers for key, numbers in found.items() if key[1] in OWN} == mine
    lines = {number: line.strip() for number, line in enumerate(PROGRAM.splitlines(), 1)}
    counts = {lines[line]: found[1, func, line][0] for _, func, line in mine}
    assert counts["return 1 if n == 0 else rec(n - 1) + 1"] == 5 + 3 + 1 + 2 + 3
    assert counts["got = yield i * i"] == 5 + 1
    assert counts["for i in range(3): i += 1"] >= 3
    assert counts["raise ValueError(n)"] == 1
    waits = next(key for key in mine if lines[key[2]] == "await asyncio.sleep(0.001)")
    assert found[waits][0] == 6


OWN = ("numbers", "all_of", "rec", "one", "fails", "wait", "several", "main")
