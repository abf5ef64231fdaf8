"""The life of a call, and the table of a variable's values in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import Query
from pytracer.reader.replay.history import History
from pytracer.reader.replay.lives import Life, life
from pytracer.reader.replay.moment import Moment, moments

from handmade import Handmade, event
from recording import record
from replaying import Replay, Replays
from shared import Shared

SOURCE = """\
import asyncio

def numbers(n):
    total = 0
    for i in range(n):
        total += i + 1
        got = yield total
    return total

def plain(n):
    total = n
    total += 1
    return total

def alone():
    made = numbers(4)
    next(made)
    for value in "abc":
        plain(1)
        made.send(value)
    list(made)

def several():
    for pair in zip(numbers(2), numbers(2)):
        plain(pair)if 0 else None

async def wait(n):
    total = 0
    for i in range(n):
        await asyncio.sleep(0)
        total += 1
    return total

async def tasks():
    await asyncio.gather(wait(2), wait(3))

alone()
alone()
several()
asyncio.run(tasks())
"""
TOLD = '(and (in kind "line" "call") (any (= name "total")))'


@pytest.fixture(name="path", scope="module")
def path_fixture(shared: Shared) -> Path:
    return shared("lives", lambda folder: record(folder, SOURCE, "--no-stdlib", "--lines")) / "traces.sqlite"


@pytest.fixture(name="history")
def history_fixture(path: Path) -> Iterator[History]:
    with closing(Database(str(path))) as database:
        yield History(database, 1)


def entered(history: History, func: str) -> list[Moment]:
    """The events that entered a function."""
    query = Query("run = 1 AND func = ? AND kind IN ('call', 'resume', 'throw')", (func,))
    return moments(history.database, query, False, 1000)


def totals(history: History, of: Life) -> list[str]:
    """The values that `total` has in a life."""
    rows = history.database.query(
        "b",
        "SELECT CAST(args ->> '$[#-1].value' AS BLOB) FROM (SELECT time, id,"
        " (SELECT json_group_array(json(value)) FROM json_each(args) WHERE value ->> '$.name' = 'total') args"
        f" FROM event WHERE {of.events.where} AND event MATCH '{TOLD}') ORDER BY time, id",
        of.events.parameters,
    )
    return [value.decode() for (value,) in rows]


def test_a_generator_lives_from_its_call_to_its_end(history: History) -> None:
    both = entered(history, "numbers")[:10]  # of two generators
    assert [each.kind for each in both] == ["call", "resume", "resume", "resume", "resume"] * 2
    lives = [life(history, each) for each in both]
    assert all(each.is_whole for each in lives)
    assert {each.begin.id for each in lives} == {both[0].id, both[5].id}
    for of in lives:
        assert totals(history, of) == ["0", "1", "3", "6", "10"]
    kinds = [each.kind for each in moments(history.database, lives[3].events, False, 1000)]
    assert (kinds[0], kinds[-1]) == ("call", "return")
    assert kinds.count("yield") == kinds.count("resume") == 4


def test_of_several_generators_nobody_knows_which_one_goes_on(history: History) -> None:
    """But once the others have ended."""
    zipped = entered(history, "numbers")[10:]
    assert [each.kind for each in zipped[:4]] == ["call", "call", "resume", "resume"]
    first, second, third, fourth = (life(history, each) for each in zipped[:4])
    assert first.is_whole  # up to where the second one was called
    assert totals(history, first) == ["0", "1"]
    assert not third.is_whole
    assert third.begin.id == zipped[2].id
    assert totals(history, third) == ["3"]
    assert (second.is_whole, fourth.is_whole) == (True, False)
    assert totals(history, second) == ["0", "1"]


def test_a_coroutine_lives_in_its_task(history: History) -> None:
    found = [life(history, each) for each in entered(history, "wait")]
    assert all(each.is_whole for each in found)
    assert len({each.begin.id for each in found}) == 2
    values = {each.begin.id: totals(history, each) for each in found}
    assert sorted(values.values()) == [["0", "1", "2"], ["0", "1", "2", "3"]]


def test_a_function_lives_from_its_call_to_its_end(history: History) -> None:
    for call in entered(history, "plain"):
        of = life(history, call)
        assert (of.begin, of.is_whole) == (call, True)
        assert totals(history, of) == ["1", "2"]


def test_a_generator_whose_beginning_is_gone(tmp_path: Path) -> None:
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run(evicted=5)
        made.code(run, 1, "numbers", variables=["total"])
        made("UPDATE code SET flags = 32")
        made.segment(run, [
            event("resume", 1), event("line", 1, 7, line=3, variables=[0]), event("yield", 1, None),
            event("resume", 1), event("line", 1, 8, line=3, variables=[0]), event("yield", 1, None),
        ])  # fmt: skip
    with closing(Database(str(tmp_path / "traces.sqlite"))) as database:
        history = History(database, 1)
        of = life(history, entered(history, "numbers")[1])
        assert (of.is_whole, totals(history, of)) == (False, ["8"])


def choose(replay: Replay, name: str) -> Replay:
    """Puts the cursor of the variables on one that has no parts above it."""
    place = next(at for at, each in enumerate(replay.variables) if each.lstrip("*") == name)
    return replay.after("tab").after(*["down"] * place) if place else replay.after("tab")


def test_the_table_of_a_generators_values(replays: Replays, path: Path) -> None:
    """With the line that set each, also where it was suspended meanwhile."""
    replay = choose(replays(path).break_at("7 total == 6").after("c"), "total").after("t")
    assert [line.split()[-2:] for line in replay.lines[1:6]] == [
        ["4", "0"], ["6", "1"], ["6", "3"], ["6", "6"], ["6", "10"],
    ]  # fmt: skip
    assert "values of total in numbers  1 of 5" in replay.text
    replay.after("end").after("enter")
    assert replay.place == 6
    replay.quit()
    replay = choose(replays(path).break_at("7 total == 6").after("c"), "got").after("t")
    assert [line.split()[-2:] for line in replay.lines[1:4]] == [["7", "'a'"], ["7", "'b'"], ["7", "'c'"]]


def test_a_table_says_that_it_does_not_know_all(replays: Replays, path: Path) -> None:
    replay = replays(path, rows=30, columns=140).break_at("several").after("c").break_at("7 total == 3")
    choose(replay.after("c"), "total").after("t")
    assert "since it went on: which generator did before is not recorded" in replay.text
