"""The table hot against a slow and simple count over the events of programs made by chance."""

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import apsw
import pytest
from pytracer.reader.sql_session import SqlSession

from handmade import NS_PER_UNIT, Handmade, event
from waiting import write_waiting

FUNCTIONS = ("main", "walk", "parse", "Order.pay")
ENTERS, LEAVES = ("call", "resume", "throw"), ("return", "exception", "yield")


def program(chance: random.Random, length: int) -> list[tuple[str, int, int, int]]:
    """Events of a thread: kind, code, units since the one before, calls open before it."""
    events: list[tuple[str, int, int, int]] = []
    stack: list[int] = []
    paused: list[int] = []
    while len(events) < length:
        kind = chance.choice(
            ("call", "call", "return", "return", "exception", "yield", "resume", "throw", "log", "line")
        )
        opened = len(stack)
        if kind in LEAVES and stack:
            code = stack.pop()
            if kind == "yield":
                paused.append(code)
        elif kind == "call":
            stack.append(code := chance.randrange(1, len(FUNCTIONS) + 1))
        elif kind in ENTERS and paused:
            stack.append(code := paused.pop(chance.randrange(len(paused))))
        elif kind in ("log", "line") and stack:
            code = stack[-1]
        else:
            continue
        events.append((kind, code, chance.choice((0, 1, 5, 300)), opened))
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
                events = program(chance, chance.randrange(1, 80))
                time = at = sequence = 0
                gone = chance.choice((0, 0, 1, 3))
                while at < len(events):
                    part = events[at : at + chance.randrange(1, 9)]
                    if sequence >= gone:
                        database.segment(
                            run,
                            [event(kind, code, time=since) for kind, code, since, _ in part],
                            stream=stream,
                            sequence=sequence,
                            start=time,
                            base_depth=part[0][3],
                        )
                    time += sum(since for _, _, since, _ in part)
                    at += len(part)
                    sequence += 1


class Open:
    """A function that is open."""

    def __init__(self, func: str, time: int, depth: int) -> None:
        self.func, self.time, self.depth, self.called = func, time, depth, 0


def counted(rows: list[Any]) -> dict[tuple[int, str], tuple[int, int, int]]:
    """Calls, own and total time by run and function, in the words of hot.h."""
    found: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    stacks: dict[tuple[int, int], list[Open]] = defaultdict(list)
    for run, tid, kind, func, depth, time in rows:
        stack = stacks[run, tid]
        if kind in ENTERS:
            found[run, func][0] += kind == "call"
            stack.append(Open(func, time, depth))
        elif kind in LEAVES and stack and stack[-1].depth == depth:
            left = stack.pop()
            took = time - left.time
            found[run, func][1] += took - left.called
            if all(other.func != func for other in stack):
                found[run, func][2] += took
            if stack:
                stack[-1].called += took
    return {key: (calls, own, total) for key, (calls, own, total) in found.items() if calls or own or total}


def chosen(session: SqlSession, expected: dict[tuple[int, str], tuple[int, int, int]]) -> None:
    """What `hot MATCH` counts: functions by their names, events of a thread, of a time."""
    ask = session.connection().execute
    counts = "SELECT run, func, calls, own, total FROM hot WHERE hot MATCH ?"
    rows = ask(counts, ('(in func "walk" "pay")',)).fetchall()
    kept = {key: numbers for key, numbers in expected.items() if key[1] in ("walk", "Order.pay")}
    assert {(run, func): tuple(numbers) for run, func, *numbers in rows} == kept
    ((first, last),) = ask("SELECT min(time), max(time) FROM event").fetchall()
    begin, end = first + (last - first) // 4, last - (last - first) // 4
    for predicate, where in (
        ("(= tid 200)", "tid = 200"),
        (f"(between time {begin} {end})", f"time BETWEEN {begin} AND {end}"),
    ):
        events = ask(
            f"SELECT run, tid, kind, func, depth, time FROM event WHERE {where} ORDER BY time, id"
        ).fetchall()
        rows = ask(counts, (predicate,)).fetchall()
        assert {(run, func): tuple(numbers) for run, func, *numbers in rows} == counted(events)


@pytest.mark.parametrize("seed", range(60))
def test_hot(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "traces.sqlite"
    write(path, random.Random(seed))
    session = SqlSession(str(path))
    ask = session.connection().execute
    expected = counted(
        ask("SELECT run, tid, kind, func, depth, time FROM event ORDER BY time, id").fetchall()
    )
    rows = ask("SELECT run, func, calls, own, total FROM hot").fetchall()
    assert {(run, func): tuple(numbers) for run, func, *numbers in rows} == expected
    own = [row[3] for row in rows]
    assert own == sorted(own, reverse=True)
    assert all(number % NS_PER_UNIT == 0 for number in own)
    for run, func, average, longest, median in ask("SELECT run, func, average, longest, median FROM hot"):
        ended = "run = ? AND func = ? AND kind IN ('return', 'exception') AND duration NOT NULL"
        lasted = sorted(
            ns for (ns,) in ask(f"SELECT duration FROM event WHERE {ended}", (run, func)).fetchall()
        )
        assert longest == (max(lasted) if lasted else None)
        assert average == (sum(lasted) // len(lasted) if lasted else None)
        middle = lasted[(len(lasted) - 1) // 2] if lasted else 0
        assert abs((median or 0) - middle) <= middle / 8
    chosen(session, expected)
    for run in (1, 2):
        of_run = ask("SELECT run, func, calls, own, total FROM hot WHERE run = ?", (run,)).fetchall()
        assert of_run == [row for row in rows if row[0] == run]
    assert ask("SELECT * FROM hot WHERE run = 'x' OR run IS NULL").fetchall() == []
    session.close()


def test_a_loss_ends_what_was_open(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "main")
        database.code(run, 2, "walk")
        records = [
            event("call", 1),
            event("call", 2, time=10),
            event("lost", 5, time=100),
            event("return", 2, None, time=10, depth=2, elapsed=120),
            event("call", 2, time=1),
            event("return", 2, None, time=7),
            event("return", 1, None, time=1, elapsed=129),
        ]
        database.segment(run, records)
    session = SqlSession(str(path))
    rows = session.connection().execute("SELECT func, calls, own, total FROM hot ORDER BY func").fetchall()
    assert rows == [("main", 1, 0, 0), ("walk", 2, 28, 28)]
    session.close()


def test_calls_are_chosen_by_their_arguments_and_durations(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "walk", arguments=["depth"])
        records = [
            event("call", 1, 3),
            event("call", 1, 2, time=10),
            event("call", 1, 1, time=10),
            event("return", 1, None, time=10),
            event("return", 1, None, time=10, elapsed=30),
            event("return", 1, None, time=10, elapsed=50),
        ]
        database.segment(run, records)
    session = SqlSession(str(path))
    counts = "SELECT calls, own / 4, total / 4, longest / 4 FROM hot WHERE hot MATCH ?"
    for predicate, expected in (
        ('(any (and (= name "depth") (= value "2")))', (1, 20, 30, 30)),
        ("(> duration 100)", (2, 40, 50, 50)),
        ("(= depth 2)", (1, 10, 10, 10)),
        ("(> depth 0)", (2, 30, 30, 30)),
        ('(= func "nobody")', None),
    ):
        (row,) = session.connection().execute(counts, (predicate,)).fetchall() or [None]
        assert row == expected, predicate
    with pytest.raises(apsw.SQLError, match="position 0"):
        session.connection().execute(counts, ("=",))
    session.close()


def test_own_time_off_the_processor(tmp_path: Path) -> None:
    write_waiting(tmp_path / "traces.sqlite")
    session = SqlSession(str(tmp_path / "traces.sqlite"))
    rows = session.connection().execute("SELECT func, own / 4, off / 4 FROM hot ORDER BY func").fetchall()
    assert rows == [("futex", 46, 32), ("get", 14, 0), ("main", 50, 10), ("put", 13, 0), ("read", 12, 10)]
    where = "hot MATCH '(= tid 200)'"
    rows = session.connection().execute(f"SELECT func, off FROM hot WHERE {where} AND off > 0").fetchall()
    assert rows == [("read", 40)]
    session.close()


@pytest.mark.parametrize("wakes", [True, False])
def test_a_switch_back_that_the_kernel_left_out(tmp_path: Path, wakes: bool) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run(features=7)
        database.code(run, 1, "wait")
        kernel = {"module": "sched", "file": "", "line": 0, "layer": "kernel"}
        database.code(run, 2, "sched_switch", ["prev_pid", "next_pid"], **kernel)  # type: ignore[arg-type]
        database.code(run, 3, "sched_waking", ["pid"], **kernel)  # type: ignore[arg-type]
        switches = [event("event", 2, 100, 0, time=5), event("event", 3, 100 if wakes else 7, time=10)]
        records = [event("call", 1), *switches, event("return", 1, time=20, elapsed=35)]
        database.segment(run, records)
        database.run()
        database.code(2, 1, "wait")
        database.segment(2, [event("call", 1), event("return", 1, time=35, elapsed=35)])
    session = SqlSession(str(path))
    rows = session.connection().execute("SELECT run, own / 4, off / 4 FROM hot ORDER BY run").fetchall()
    assert rows == [(1, 35, 10), (2, 35, None)]
    session.close()
