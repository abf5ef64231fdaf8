"""`pytrace diff`: recordings of one program that differ in one thing, or in nothing but times."""

import json
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from handmade import Handmade, event
from recording import PYTRACE, Record, run

SHOP = """
    import sys, threading

    def price(n, user):
        if user == "eve" and n > 2:
            raise ValueError(f"{n} is too much")
        return n * 2, object()

    def refund(n):
        pass

    def attempt(n):
        return price(n, sys.argv[1])

    def total(count):
        for n in range(count):
            try:
                attempt(n)
            except ValueError:
                refund(n)

    total(5)
    worker = threading.Thread(target=total, args=(len(sys.argv),), name="worker")
    worker.start()
    worker.join()
"""


def diff(database: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run([*PYTRACE, "diff", str(database), *map(str, arguments)], database.parent)


def facts(database: Path, *arguments: object) -> dict[str, Any]:
    done = diff(database, *arguments, "--format", "json")
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == int(bool(found["exceptions"] or found["first"] or calls(found)))
    return found


def calls(found: dict[str, Any]) -> dict[str, list[int]]:
    """Of functions that are called more or less often."""
    return {row["func"]: row["calls"] for row in found["functions"] if len({*row["calls"]}) > 1}


def test_nothing_but_times_and_addresses(record: Record) -> None:
    record(SHOP, "--no-stdlib", args=("bob",))
    database = record(SHOP, "--no-stdlib", args=("bob",)).database
    done = diff(database)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No difference in calls, exceptions, arguments and outcomes." in done.stdout
    found = facts(database)
    assert (found["a"]["run"], found["b"]["run"]) == (1, 2)
    assert (found["exceptions"], found["first"], found["mine"]) == ([], None, True)


def test_an_argument(record: Record) -> None:
    record(SHOP, "--no-stdlib", args=("bob",))
    database = record(SHOP, "--no-stdlib", args=("eve",)).database
    found = facts(database)
    assert calls(found) == {"refund": [0, 2]}
    assert [(row["type"], row["func"], row["count"]) for row in found["exceptions"]] == [
        ("ValueError", "price", [0, 2])
    ]
    first = found["first"]
    assert (first["thread"], first["a"]["kind"], first["a"]["func"]) == ("MainThread", "call", "price")
    assert [first[side]["args"][1]["value"] for side in "ab"] == ["'bob'", "'eve'"]
    shown = diff(database).stdout
    assert "new  __main__.refund" in shown
    assert "New exceptions:\n         2x ValueError in __main__.price" in shown
    assert re.search(r"A  id \d+ +B  id \d+$", shown, re.MULTILINE)
    assert re.search(
        r"-> __main__\.price\(n=0, user='bob'\) +-> __main__\.price\(n=0, user='eve'\)$", shown, re.MULTILINE
    )
    assert re.search(r"^ +user: 'bob' +user: 'eve'$", shown, re.MULTILINE)
    gone = diff(database, "--run", "2,1").stdout
    assert "gone  __main__.refund" in gone
    assert "Exceptions that are gone:" in gone


def test_an_outcome(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    with Handmade(database) as made:
        for value in (10, 11):
            number = made.run()
            made.code(number, 1, "pay", ["n"], mine=True)
            made.code(number, 2, "helped", mine=False)
            made.segment(
                number,
                [
                    event("call", 1, 5, time=1),
                    event("call", 2, time=1),
                    event("return", 2, value, time=1),
                    event("return", 1, value, time=1, elapsed=3),
                ],
            )
    found = facts(database)
    first = found["first"]
    assert (first["call"]["func"], first["a"]["kind"]) == ("pay", "return")
    assert [first[side]["args"][0]["value"] for side in "ab"] == ["10", "11"]
    shown = diff(database).stdout
    assert "-> app.pay(n=5)" in shown
    assert re.search(r"<- app\.pay: 10  12ns +<- app\.pay: 11  12ns$", shown, re.MULTILINE)


def test_without_own_code_all_is_compared(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    with Handmade(database) as made:
        for argument in (1, 2):
            number = made.run()
            made.code(number, 1, "helped", ["n"])
            made.segment(number, [event("call", 1, argument, time=1)])
    found = facts(database)
    assert not found["mine"]
    assert found["first"]["a"]["func"] == "helped"
    assert "The first difference in the code" in diff(database).stdout


def test_a_thread_that_goes_on(record: Record) -> None:
    record(SHOP, "--no-stdlib", args=("bob",))
    database = record(SHOP, "--no-stdlib", args=("bob", "more")).database
    first = facts(database)["first"]
    assert first["thread"] == "worker"
    assert [first[side]["args"][0]["value"] for side in "ab"] == ["2", "3"]


def test_one_ends_earlier(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    with Handmade(database) as made:
        for count in (1, 3):
            number = made.run()
            made.code(number, 1, "pay", ["n"], mine=True)
            made.segment(number, [event("call", 1, n, time=1) for n in range(count)])
    found = facts(database)
    assert found["first"]["a"] is None
    assert found["first"]["b"]["args"][0]["value"] == "1"
    assert "A  has ended" in diff(database).stdout


def test_what_ends_earlier_differs_where_it_ends(tmp_path: Path) -> None:
    """Another thread differs before A's thread has ended."""
    database = tmp_path / "a.sqlite"
    with Handmade(database) as made:
        for count in (1, 2):
            number = made.run()
            made.code(number, 1, "pay", ["n"], mine=True)
            made.thread(number, 2, 101, "worker")
            made.segment(number, [event("call", 1, n, time=100) for n in range(count)])
            made.segment(number, [event("call", 1, count, time=50)], stream=2)
    first = facts(database)["first"]
    assert first["thread"] == "worker"
    assert [first[side]["args"][0]["value"] for side in "ab"] == ["1", "2"]


def test_of_two_databases(record: Record, tmp_path: Path) -> None:
    recording = record(SHOP, "--no-stdlib", args=("bob",))
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(recording.database)) as source, closing(sqlite3.connect(other)) as copy:
        source.backup(copy)
    recording = record(SHOP, "--no-stdlib", args=("eve",))
    assert diff(recording.database, other).returncode == 1
    assert diff(recording.database, other, "--run", "1").returncode == 0
    found = facts(recording.database, other, "--run", "2,1")
    assert [found[side]["path"] for side in "ab"] == [str(recording.database), str(other)]
    assert calls(found) == {"refund": [2, 0]}


def test_own_time_alone_is_shown_and_does_not_count(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    with Handmade(database) as made:
        for took in (1_000, 9_000_000):
            number = made.run()
            made.code(number, 1, "pay", mine=True)
            made.segment(number, [event("call", 1, time=1), event("return", 1, 1, time=took, elapsed=took)])
    done = diff(database)
    assert done.returncode == 0
    assert "own time has changed" in done.stdout
    assert "app.pay" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "has one recording: record once more, or name a second database"),
        (("--run", "1"), "two recordings of one database are named by --run N,M"),
        (("--run", "1,7"), "has no run 7; there are: 1"),
        (("--run", "1,2,3"), "1,2"),
        (("--run", "x"), "1,2"),
        (("no.sqlite",), "no.sqlite"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    database = tmp_path / "a.sqlite"
    with Handmade(database) as made:
        made.run()
    done = diff(database, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr


def test_nothing_unsafe_reaches_a_terminal(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    with Handmade(database) as made:
        for argument in ("\x1b[2J", "\x1b[3J"):
            number = made.run()
            made.code(number, 1, "pay\x1b[31m", ["n\x07"], mine=True)
            made.segment(number, [event("call", 1, argument, time=1)] * (1 + number))
    assert "\x1b" not in diff(database).stdout
    assert "\x07" not in diff(database).stdout


def test_damage_is_told(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    with Handmade(database) as made:
        for _ in range(2):
            number = made.run()
            made.code(number, 1, "pay", mine=True)
            made.segment(number, [event("call", 1, time=1)])
        made("UPDATE segment SET data = x'0102' WHERE run = 1")
    done = diff(database)
    assert done.returncode == 2
    assert "is damaged" in done.stderr
