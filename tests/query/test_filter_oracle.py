"""Filters find what they mean: the events that SQL finds are those that the oracle picks."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytracer.reader.filter.parser import parse
from pytracer.reader.filter.sql import compile, explain
from pytracer.reader.filter.tree import KINDS, FilterError, unparse

from filter_oracle import Event, Values, filters, matches
from handmade import DELETED, EPOCH_NS, Handmade, event, instance, printed, value

SECOND = 1_000_000_000
# a busy machine may take its time
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class RunTimes(NamedTuple):
    id: int
    started: int
    finished: int


class Trace:
    """A database, its events as `print` shows them, and its runs."""

    def __init__(self, sql: apsw.Connection, events: list[Event], runs: list[RunTimes]) -> None:
        self.sql, self.events, self.runs = sql, events, runs

    def found(self, text: str) -> list[int]:
        query = compile(parse(text), self.runs)
        rows = self.sql.execute(
            f"SELECT id FROM event WHERE {query.where} ORDER BY time, id", query.parameters
        )
        return [number for (number,) in rows]

    def meant(self, text: str) -> list[int]:
        tree = parse(text)
        return [event["id"] for event in self.events if matches(tree, event, self.runs)]


# Units of a run's clock are 4 ns.
def write(path: Path) -> None:
    with Handmade(path) as database:
        for late in (0, 3600 * SECOND):  # the second run starts an hour later, by its clock too
            began = EPOCH_NS + late
            run = database.run(started=began, clock_epoch_ns=began, finished=False)
            database.finish(run)
            database.process(run, 1, 200)
            database.thread(run, 2, 102, "worker")
            database.thread(run, 3, 200, "", process=1)
            database.code(
                run, 1, "pay", ["user", "amount"], line=10, variables=["user", "amount", "total", "Größe"]
            )
            database.code(run, 2, "Order.pay", ["self", "user"], module="app.shop", file="/home/me/shop.py")
            database.code(run, 3, "main.<locals>.pay_all", ["user"], line=30)
            database.code(run, 4, "PAY%", ["a_b", "a%b", "Größe"], module="Größe", file="C:\\größe.py")
            database.code(run, 5, "sched_switch", ["prev_comm", "user"], module="sched", layer="kernel")
            database.code(run, 6, "len", ["arg0"], module="builtins", layer="c")
            database.type(run, 1, "app.Order")
            database.type(run, 2, "ValueError")
            database.type(run, 7, "app.Order", ["user", "total", "größe"])
            order = value("", type=1)
            order.address = 0x7F00
            error = value(ValueError("no bob"), type=2)
            cut = value("bob and so on", length=500)
            full, other = instance(7, 0x7F00, "bob", 5, [order]), instance(7, 0x7F10, "eve", 0, length=5)
            database.segment(
                run,
                [
                    event("call", 1, "bob", 5, time=10),
                    event("raise", 1, error, time=250, line=12),
                    event("exception", 1, error, time=250, elapsed=500),
                    "Task-1",
                    event("call", 2, order, "alice", time=1000),
                    event("call", 3, "Bob", time=10),
                    "Größe",
                    event("log", 3, "it's bob", 5, None, time=1, line=31, names=["user", "a_b"]),
                    event("return", 3, None, time=375_000, elapsed=375_001),
                    "",
                    event("return", 2, True, time=1, elapsed=400_000),
                ],
            )
            database.segment(
                run,
                [
                    event("lost", 17, time=100_000_000),
                    event("call", 1, "5", -5, time=1, depth=3),
                    event("call", 2, full, "bob", time=1),
                    event("log", 2, "sold", full, time=1, line=31, names=["order"]),
                    event("return", 2, other, time=1, elapsed=1),
                    event("line", 1, 5, "it's bob", time=1, line=11, variables=[1, 0]),
                    event(
                        "line",
                        1,
                        "eve",
                        DELETED,
                        "alice",
                        7,
                        time=1,
                        line=12,
                        variables=[2, 1, 0, 3],
                        changed=2,
                    ),
                    event("line", 1, "bob", time=1, line=12, variables=[0], changed=0),
                    event("line", 2, full, time=1, line=21, variables=[1]),
                    event("line", 1, True, time=1, line=13),
                    event("call", 4, "bob", "a%b", cut, time=1),
                    event("return", 4, 5, time=1, elapsed=0),
                    2,
                    event("call", 6, "bob", time=1),
                    event("event", 5, "bob", 5, "eve", time=1),
                    0,
                    event("return", 6, time=1, elapsed=2),
                    -1,
                    event("return", 1, "bob", time=250_000_000, elapsed=250_000_001),
                ],
                sequence=1,
                start=400_000,
            )
            database.segment(
                run,
                [
                    "worker",
                    event("call", 3, ["bob", 5], time=300),
                    event("yield", 3, "a\nbob", time=25, elapsed=25),
                    event("resume", 3, time=25),
                    event("throw", 3, error, time=25),
                    event("yield", 3, 1 << 40, time=25, elapsed=25),
                    event("call", 0, time=1),
                ],
                stream=2,
                start=100,
            )
            database.segment(
                run, [event("call", 2, "user", "bob", time=5)], stream=3, process=1, start=500, complete=False
            )


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    path = tmp_path_factory.mktemp("filter") / "traces.sqlite"
    write(path)
    shown = printed(path, "--run", "all", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(str(files("pytracer").joinpath("sqlite_trace" + EXTENSION_SUFFIXES[0])))
    runs = [RunTimes(*row) for row in connection.execute("SELECT id, started, finished FROM run")]
    yield Trace(connection, [json.loads(line) for line in shown.stdout.splitlines()], runs)
    connection.close()


VALUES = Values(
    texts={
        "func": ["pay", "Order.pay", "main.<locals>.pay_all", "pay_all", "PAY%", ""],
        "module": ["app", "app.shop", "Größe"],
        "file": ["/home/me/app.py", "/home/me/shop.py", "C:\\größe.py"],
        "kind": [*KINDS, "%", "re%", "_all", "CALL"],
        "layer": ["python", "c", "kernel", "native", "%e%", "C"],
        "thread": ["MainThread", "worker", ""],
        "task": ["Task-1", "Größe", "worker", ""],
        "arg": ["user", "amount", "self", "a_b", "a%b", "Größe", "return value", "exception", "count",
            "total", "variable 1", "variable 2.user", "self.user", "self.total", "self.größe", "order.user",
            "return value.total", "self.%"],
        "value": ["bob", "'bob'", "alice", "it's bob", "5", "None", "['bob', 5]", "a\nbob", "a%b", "bob and",
            "<deleted>", "eve",
            "<app.Order at 0x7f00>", "app.Order(user='bob', total=5, größe=[<app.Order at 0x7f00>])"],
        "type": ["str", "int", "NoneType", "list", "app.Order", "ValueError"],
    },
    numbers={
        "time": [EPOCH_NS + 40, EPOCH_NS + 3040, EPOCH_NS + 3600 * SECOND + 1040, EPOCH_NS + SECOND],
        "tid": [100, 102, 200],
        "pid": [100, 200],
        "line": [1, 10, 12, 13, 30, 31],
        "depth": [0, 1, 2, 3],
        "duration": [0, 100, 2000, 1_500_004, 1_600_000, SECOND + 4],
        "run": [1, 2],
        "cpu": [0, 1, 2, -1],
    },
    constants=[None, True, False, 5, -5, 17, 1 << 40, 1.5],
    times=[
        "+40ns", "+1us", "+1.5ms", "+1s", "2023/11/14 22:13:20", "2023-11-14T22:13:20.000000040+00:00",
        "2023-11-14 23:13:20.000001", "22:13:20.001", "23:13:20.5",
    ],
)  # fmt: skip


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_trace_has_events_of_all_kinds(trace: Trace) -> None:
    assert {event["kind"] for event in trace.events} == set(KINDS)
    assert trace.found("") == [event["id"] for event in trace.events]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("func == 'pay'", 32),
        ("func == 'pay' and kind == 'call'", 10),
        ("arg == 'user' and value == 'bob'", 8),
        ("arg == 'user' and value == '5'", 6),
        ("arg == 'user' and value == 5", 4),
        ("value == '\\'bob\\''", 20),
        ("kind == 'call' and not (arg == 'user')", 6),
        ("kind == 'call' and value != 'bob'", 14),
        ("kind == 'call' and not value == 'bob'", 8),
        ("duration > '1.5ms'", 6),
        ("not duration > '1.5ms'", 56),
        ("time > '+1s'", 2),
        ("time > '+1s' and run == 2", 1),
        ("kind == 'lost' and arg == 'count' and value == 17", 2),
        ("arg == 'user' and (value == 'bob' or not arg == 'amount')", 16),
        ("arg == 'self.user' and value == 'bob'", 2),
        ("arg == 'self.total' and value == 5", 2),
        ("arg == 'return value.total' and value == '0'", 2),
        ("arg == 'self.total' and value == 'bob'", 0),
        ("value == '<app.Order at 0x7f00>'", 8),
        ("kind == 'line'", 10),
        ("line == 12 and kind == 'line'", 4),
        ("arg == 'total' and value == 'eve'", 2),
        ("value == '<deleted>' and arg == 'amount' and type == ''", 2),
        ("kind == 'line' and value == 'alice'", 0),  # which has not changed
        ("kind == 'line' and value == 7", 0),
        ("arg == 'Größe' and kind == 'line'", 0),
        ("arg == 'variable 2.total' and value == 5", 2),
        ("arg == 'variable 1' and value == True", 2),
        ("layer == 'kernel' and arg == 'user' and value == 5", 2),
        ("layer == 'c' and kind == 'call' and arg == 'arg0' and value == 'bob'", 2),
        ("layer != 'python'", 6),
        ("cpu == 2", 4),
        ("cpu < 2 and layer == 'c'", 2),
        ("kind == 'event' and arg == 'argument 3' and value == 'eve'", 2),
    ],
)
def test_examples(trace: Trace, text: str, found: int) -> None:
    assert trace.found(text) == trace.meant(text)
    assert len(trace.found(text)) == found


def same(trace: Trace, text: str) -> None:
    assert trace.found(text) == trace.meant(text)
    assert trace.meant(unparse(parse(text))) == trace.meant(text)


@settings(UNHURRIED, max_examples=200)
@given(text=filters(VALUES))
def test_sql_finds_what_is_meant(trace: Trace, text: str) -> None:
    same(trace, text)


@settings(UNHURRIED, max_examples=50)
@given(texts=st.lists(filters(VALUES), min_size=2, max_size=4), join=st.sampled_from([" and ", " or "]))
def test_joined_filters_find_what_is_meant(trace: Trace, texts: list[str], join: str) -> None:
    same(trace, join.join(f"({text})" for text in texts))


@settings(UNHURRIED, max_examples=50)
@given(text=filters(VALUES))
def test_explained_sql_is_the_same(trace: Trace, text: str) -> None:
    explained = explain(compile(parse(text), trace.runs))
    assert [row[0] for row in trace.sql.execute(explained)] == trace.found(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(func == 'a' or depth == 1 and ", ")"),
        ("not (time < '+1s' or arg == 'x' and ", ")"),
        ("not (arg == 'x' and (value == 'y' or ", "))"),
        ("(arg == 'x' and value == 'y' or func == 'z' and ", ")"),
        ("not not ", ""),
    ],
)
def test_the_deepest_filters_are_taken(trace: Trace, before: str, after: str) -> None:
    def nested(levels: int) -> str:
        return before * levels + "not value in ('a', 'b') and time > '+1s'" + after * levels

    def is_refused(levels: int) -> bool:
        try:
            parse(nested(levels))
        except FilterError:
            return True
        return False

    deepest = bisect_left(range(101), True, key=is_refused) - 1
    assert 10 < deepest < 100
    same(trace, nested(deepest))
