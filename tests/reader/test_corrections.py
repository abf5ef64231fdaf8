"""Corrections and names on a real database: what is offered is what SQL finds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

import apsw
import pytest
from hypothesis import given
from pytracer.reader.database import Database
from pytracer.reader.filter.parser import parse
from pytracer.reader.filter.sql import compile
from pytracer.reader.suggestions.completion import complete
from pytracer.reader.suggestions.corrections import Correction, Found, corrections, rendered
from pytracer.reader.suggestions.counting import counter
from pytracer.reader.suggestions.names import Names
from pytracer.reader.suggestions.words import bare_word, offers

from filter_oracle import Values, filters, matches
from handmade import EPOCH_NS, Handmade, environment, event, instance, printed, value

Offered: TypeAlias = Callable[[str], list[Correction]]

EVENTS = 3000  # of the large run's segments
SEGMENTS = 40


def write(path: Path) -> None:
    with Handmade(path) as database:
        run = database.run("shop.py --fast")
        database.thread(run, 2, 102, "worker-1")
        database.code(run, 1, "Order.pay", ["self", "user"], module="app.shop")
        database.code(run, 2, "main", ["argv"])
        database.code(run, 3, "never_called", ["nothing"])
        database.type(run, 4, "app.Order")
        order = value("", type=4)
        order.address = 0x7F00
        database.segment(
            run,
            [
                event("call", 2, value("shop.py"), time=10),
                event("call", 1, order, "bob", time=10),
                event("return", 1, 5, time=500, elapsed=500),
                event("call", 1, order, "Émile", time=10),
                event("return", 1, True, time=250_000, elapsed=250_000),
                event("log", 2, "half way", 7, time=1, line=31, names=["done"]),
                event("return", 2, time=1, elapsed=251_000),
            ],
        )


def write_large(path: Path) -> None:
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "pay", ["user"])
        for sequence in range(SEGMENTS):
            events = [event("call", 1, f"user {i % 7} of {sequence}", time=1, depth=0) for i in range(EVENTS)]
            database.segment(run, events, sequence=sequence, start=sequence * EVENTS)


def connected(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.enable_load_extension(True)
    connection.load_extension(str(files("pytracer").joinpath("sqlite_trace" + EXTENSION_SUFFIXES[0])))
    return connection


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("correct") / "traces.sqlite"
    write(path)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "traces.sqlite"
    write_large(path)
    return path


@pytest.fixture(name="offered", scope="module")
def offered_fixture(path: Path) -> Iterator[Offered]:
    database = Database(str(path))
    runs = database.runs()
    names = Names.load(database, [run.id for run in runs])
    connection = connected(path)

    def offered(text: str) -> list[Correction]:
        count = counter(connection, [run.id for run in runs])
        found = corrections(parse(text), names, runs, count, 5, time.monotonic() + 60)
        for correction in found:  # the same by another way
            query = compile(parse(correction.text), runs)
            sql = f"SELECT count(*) FROM event WHERE {query.where}"
            assert connection.execute(sql, query.parameters).get == correction.events
        return found

    yield offered
    connection.close()
    database.close()


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("func == 'paay'", Correction("func == 'pay'", 4, True)),
        ("func == 'order.pya'", Correction("func == 'Order.pay'", 4, True)),
        ("func == 'app.shop.Order.pay'", Correction("func == 'Order.pay'", 4, True)),
        ("module == 'shop'", Correction("module == '%.shop'", 4, True)),
        ("file == 'app.py'", Correction("file == '%/app.py'", 7, True)),
        ("arg == 'usr'", Correction("arg == 'user'", 2, True)),
        ("arg == 'user' and value == 'bib'", Correction("arg == 'user'", 2, True)),
        ("arg == 'self' and value == 'bob'", Correction("arg == 'user' and value == 'bob'", 1, True)),
        ("arg == 'user' and value == 7", Correction("value == 7", 1, True)),
        ("value == 'émile'", Correction("value == 'Émile'", 1, True)),
        ("value == '5.0'", Correction("value == '5'", 1, True)),
        ("value == 1", Correction("value == True", 1, True)),
        ("type == 'Order'", Correction("type == '%.Order'", 2, True)),
        ("tid == 103", Correction("tid == 100", 7, True)),
        ("duration > '1h'", Correction("duration > '1ms'", 1, True)),
        ("depth > 100", Correction("depth > 0", 4, True)),
        ("func == 'paay' and arg == 'usr' and kind == 'call'",
         Correction("func == 'pay' and arg == 'user' and kind == 'call'", 2, True)),
        ("func == 'pay' and func == 'main'", Correction("func == 'pay' or func == 'main'", 7, True)),
        ("time > '+1h'", Correction("time > '+0ns'", 7, True)),
    ],
)  # fmt: skip
def test_offered(offered: Offered, text: str, nearest: Correction) -> None:
    [first, *_] = offered(text)
    assert first == nearest


@pytest.fixture(name="events", scope="module")
def events_fixture(path: Path) -> list[dict[str, object]]:
    shown = printed(path, "--format", "json")
    return [json.loads(line) for line in shown.stdout.splitlines()]


ALMOST = Values(
    texts={
        "func": ["pya", "main", "Order.payy", "rder", "app.shop.Order.pay", ""],
        "module": ["ap", "app.shop", "shop"],
        "file": ["app.py", "/home/me/app.pyc"],
        "kind": ["call", "return", "yield", "lost"],
        "thread": ["MainThred", "worker"],
        "arg": ["usr", "self", "argv", "done", "return value"],
        "value": ["bib", "bob", "'5'", "7.0", "émile"],
        "type": ["Order", "st", "int"],
    },
    numbers={
        "time": [EPOCH_NS - 1, EPOCH_NS + 10**12],
        "tid": [10, 100],
        "pid": [1, 100],
        "line": [1, 31, 32],
        "depth": [0, 1, 7],
        "duration": [0, 10**9, 10**12],
        "run": [1, 2],
    },
    constants=[None, True, 1, 5, 7.0],
    times=["+1h", "+10us"],
)


@given(text=filters(ALMOST))
def test_what_is_offered_finds_as_much_as_it_says(
    offered: Offered, events: list[dict[str, object]], path: Path, text: str
) -> None:
    database = Database(str(path))
    runs = database.runs()
    database.close()
    for correction in offered(text):
        tree = parse(correction.text)
        assert sum(matches(tree, event, runs) for event in events) == correction.events > 0


def test_a_name_without_events_is_not_offered(offered: Offered) -> None:
    assert not any("never" in found.text for found in offered("func == 'never_caled'"))


def test_names(path: Path) -> None:
    database = Database(str(path))
    names = Names.load(database, [1])
    assert sorted(names.functions) == ["Order.pay", "main", "never_called", "pay"]
    assert sorted(names.modules) == ["app", "app.shop"]
    assert {"self", "user", "argv", "nothing", "return value"} <= set(names.arguments)
    assert "app.Order" in names.types
    assert names.tids == {100: "MainThread", 102: "worker-1"}
    assert names.pids == {100: ""}
    assert names.runs == {1: "shop.py --fast"}
    assert complete(names, "func == 'neve", 13).candidates[0].text == "'never_called'"
    database.close()


def test_names_of_a_running_program(tmp_path: Path) -> None:
    """Later names are found, also if numbers come in another order."""
    with Handmade(tmp_path / "traces.sqlite") as handmade:
        run = handmade.run(finished=False)
        handmade.code(run, 7, "first", ["a"])
        database = Database(str(tmp_path / "traces.sqlite"))
        names = Names.load(database, [run])
        assert sorted(names.functions) == ["first"]
        handmade.code(run, 8, "second.part", ["b"], module="later")
        handmade.code(run, 3, "late", ["c"])
        handmade.type(run, 5, "app.Late")
        handmade.thread(run, 9, 109, "worker-9")
        other = handmade.run("other.py")
        handmade.code(other, 1, "of_another_run")
        names.refresh(database, [run])
        assert sorted(names.functions) == ["first", "late", "part", "second.part"]
        assert {"a", "b", "c"} <= set(names.arguments)
        assert "later" in names.modules
        assert "app.Late" in names.types
        assert names.tids[109] == "worker-9"
        names.refresh(database, [run, other])
        assert "of_another_run" in names.functions
        database.close()


def test_a_table_with_nonsense_gives_the_names_that_make_sense(tmp_path: Path) -> None:
    with Handmade(tmp_path / "traces.sqlite") as handmade:
        run = handmade.run()
        handmade.code(run, 1, "good", ["a"])
        for number, arguments in enumerate(("{", "7", "[1, null]", "", '"x"'), 2):
            handmade.code(run, number, f"bad{number}")
            handmade("UPDATE code SET arguments = ? WHERE number = ?", (arguments, number))
        handmade("UPDATE code SET func = CAST(x'ff41' AS TEXT) WHERE number = 2")
        database = Database(str(tmp_path / "traces.sqlite"))
        names = Names.load(database, [run])
        assert {"good", "bad3", "\\xffA"} <= set(names.functions)
        assert "a" in names.arguments
        database.close()


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("user", [("arg == 'user'", 2)]),
        ("pay", [("func == 'pay'", 4)]),
        ("bob", [("value == 'bob'", 1)]),
        ("arg", [("arg == '%arg%'", 1)]),
        ("o", [("func == '%o%'", 4), ("arg == '%o%'", 1), ("value == '%o%'", 3)]),
        ("nowhere", []),
    ],
)
def test_filters_for_a_word(path: Path, word: str, found: list[tuple[str, int]]) -> None:
    database, connection = Database(str(path)), connected(path)
    made = offers(word, database.runs(), counter(connection, [1]))
    assert [(text, events) for text, events, _ in made] == found
    connection.close()
    database.close()


def test_bare_words() -> None:
    words = (
        " pay ",
        "'pay'",
        "Order.pay",
        "<module>",
        "x@y",
        "func",
        "not",
        "True",
        "a b",
        "pay'",
        "f(x)",
        "",
    )
    assert [bare_word(text) for text in words] == [
        "pay", "pay", "Order.pay", "<module>", "x@y", "", "", "", "", "", "", "",
    ]  # fmt: skip


def test_a_count_ends_at_its_bound(large: Path) -> None:
    connection = connected(large)
    count, later = counter(connection, [1]), time.monotonic() + 60
    assert count("1", (), 1000, later) == Found(1000, False)
    assert count("1", (), EVENTS * SEGMENTS, later) == Found(EVENTS * SEGMENTS, True)
    assert count("func LIKE ?", ("nothing",), 1000, later) == Found(0, True)
    connection.close()


def test_a_count_ends_at_the_deadline(large: Path) -> None:
    connection = connected(large)
    count = counter(connection, [1])
    events, all = count("event MATCH ?", ('(any (like either "user 6% 7%"))',), EVENTS, time.monotonic() - 1)
    assert not all
    assert events < EVENTS
    # and leaves nothing behind
    assert count("1", (), 5, time.monotonic() + 60) == Found(5, False)
    connection.close()


HERE = Path(__file__).parent
SLOW = """
import sys, time
sys.path[:0] = [{here!r}, {support!r}]
from pathlib import Path
from test_corrections import connected, counter
count = counter(connected(Path({path!r})), [1])
print("counting", flush=True)
while True:  # until somebody presses Ctrl-C
    count("event MATCH ?", ('(any (like either "user 6% 7%x"))',), 1000, time.monotonic() + 600)
"""


def test_ctrl_c_ends_a_count(large: Path) -> None:
    source = SLOW.format(here=str(HERE), support=str(HERE.parent / "support"), path=str(large))
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", source],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "counting\n"
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT


def test_what_is_printed(offered: Offered) -> None:
    text = "func == 'paay' and kind == 'call'"
    lines = rendered(text, offered(text)).splitlines()
    assert lines[:3] == [
        "no event matches: func == 'paay' and kind == 'call'",
        "did you mean",
        "  func == 'pay' and kind == 'call'  2 events",
    ]


@pytest.mark.parametrize("written", ["ordr.total", "order.totl", "ordr.totl"])
def test_names_of_attributes(tmp_path: Path, written: str) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "pay", ["order", "total"])
        database.type(run, 2, "app.Order", ["user", "total"])
        database.segment(run, [event("call", 1, instance(2, 0x7F00, "bob", 3), 5)])
    done = printed(path, "--filter", f"arg == '{written}'")
    assert "arg == 'order.total'  1 event" in (done.stdout + done.stderr)
