"""Steps on the screen of a replay, forwards and backwards, against History itself."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.replay import state
from pytracer.reader.replay.history import History
from pytracer.reader.replay.moment import Moment
from pytracer.reader.screen.lines import clock

from replaying import Replay, Replays, line_of

WAYS = {
    "n": History.next,
    "s": History.step,
    "o": History.finish,
    "i": History.iteration,
    "e": History.raised,
}


def shown_of(database: Database, moment: Moment) -> tuple[str, str]:
    """The beginning of the source's title and of the status at a moment."""
    stack = state.entered(database, moment.id)
    frame = state.frame(database, moment, stack[0])
    return f"script.py:{frame.line}  {frame.entered.func}", clock(moment.time)


def agrees(replay: Replay, database: Database, moment: Moment) -> None:
    title, time = shown_of(database, moment)
    assert replay.here[0] == title, replay.text
    assert replay.here[1].startswith(time), replay.text


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_walk(replays: Replays, orders: Path, seed: int) -> None:
    replay, choose = replays(orders), random.Random(seed)
    database = Database(str(orders))
    history = History(database, 1)
    moment = history.first()
    assert moment is not None
    for _ in range(150):
        agrees(replay, database, moment)
        key = choose.choice("nnnssssoie")
        backwards = choose.random() < 0.4
        if key == "i" and moment.kind != "line":
            continue
        moment = WAYS[key](history, moment, backwards=backwards) or moment
        replay.after(key.upper() if backwards else key)
    database.close()


def test_backwards_shows_the_same_screens(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at("work")
    replay.after("c").after("s")
    screens = []
    for _ in range(40):
        screens.append(replay.text)
        replay.after("s")
    for screen in reversed(screens):
        replay.after("S")
        assert replay.text == screen
    replay.after("4", "0", "backspace")  # through the stops that were made
    assert replay.text != screens[0]
    replay.after("4", "0", "backspace")
    assert replay.text == screens[0]


def test_a_number_repeats(replays: Replays, orders: Path) -> None:
    one, many = replays(orders), replays(orders)
    for _ in range(12):
        one.after("s")
    assert many.after("1", "2", "s").here == one.here
    one.after("N").after("N").after("N")
    assert many.after("3", "N").here == one.here


def test_what_just_changed_stands_out(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{line_of('names = ')} i == 1")
    replay.after("c")
    assert replay.variables["*total"] == "2"
    assert replay.variables["i"] == "1"
    assert "*Order.add returned" in replay.variables
    replay.after("n")
    assert "*names" in replay.variables
    assert replay.variables["total"] == "2"
    row = next(row for row, line in enumerate(replay.lines) if "│*▸ names" in line)
    assert replay.cell(row, replay.line(row).index("names", 50)).bg.endswith("brown")


def test_values_open(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{line_of('paid = ')} i == 3")
    replay.after("c").after("tab").after(*["down"] * 4).after("enter")
    assert "▾ names" in replay.text
    assert "['i'] = 3" in replay.text
    replay.after("down").after("down").after("right")
    assert "[1] = 4" in replay.text
    replay.after("left").after("left")
    assert "▸ names" in replay.text
    replay.after("home").after("enter")  # the whole of a value without parts
    assert replay.line(0).startswith("6")
    replay.after("q")
    assert "▸ names" in replay.text


def test_the_stack(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at("discount rate > 2")
    replay.after("c")
    assert replay.place == line_of("if rate > 3")
    replay.after("u")
    assert replay.place == line_of("paid = ")
    assert replay.variables["n"] == "6"
    replay.after("u")
    assert replay.place == line_of("result = ")
    assert "outermost" in replay.after("u").message
    assert replay.after("2", "d").place == line_of("if rate > 3")
    assert "stack (3)" in replay.text


def test_ends_tell_their_values(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{line_of('return total * rate')}")
    replay.after("c").after("s")
    assert "returns 0" in replay.status
    assert replay.variables["*return value"] == "0"
    replay.after("e")
    assert "raises ValueError('rate 4')" in replay.status
    assert replay.variables["*ValueError" if "*ValueError" in replay.variables else "*exception"]


def test_how_often_a_line_runs(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{line_of('names = ')}")
    replay.after("c").shows("1st of 6")
    replay.after("i").shows("2nd of 6")
    replay.after("2", "i").shows("4th of 6")
    replay.after("I").shows("3rd of 6")


def test_both_ends(replays: Replays, orders: Path) -> None:
    replay = replays(orders)
    assert "begins here" in replay.after("S").message
    replay.after("c")
    assert "ends here" in replay.message
    assert "ends here" in replay.after("s").message
    replay.after("C")
    assert "begins here" in replay.message


def test_stops_and_marks(replays: Replays, orders: Path) -> None:
    replay = replays(orders)
    first = replay.here
    second = replay.after("n").here
    third = replay.after("n").here
    assert replay.after("backspace").here == second
    assert replay.after("ctrl o").here == first
    assert "first stop" in replay.after("backspace").message
    assert replay.after("\\").after("\\").here == third
    replay.after("m", "x").after("e")
    assert replay.here != third
    assert replay.after("'", "x").here == third
    assert replay.after("'", "^").here == first
    assert "no mark y" in replay.after("`", "y").message


def test_quitting(replays: Replays, orders: Path) -> None:
    replay = replays(orders)
    replay.after("s").after("h").after("esc").after("h").after("h").after("h").after("q")
    replay.quit()


def test_the_mouse(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{line_of('paid = ')} i == 3")
    replay.after("c")
    row = next(row for row, line in enumerate(replay.lines) if "▸ names" in line)
    replay.click(row, 70).settled().click(row, 70).settled()
    assert "['i'] = 3" in replay.text
    row = next(row for row, line in enumerate(replay.lines) if "work  script.py" in line)
    replay.click(row + 1, 5).settled()
    assert replay.place == line_of("result = ")
    row = next(row for row, line in enumerate(replay.lines) if "lock.release()" in line)
    replay.click(row, 10).settled().wheel(down=True).settled()
    assert f":{line_of('lock.release()') + 3} " in replay.line(0)


def test_a_key_without_a_meaning(replays: Replays, orders: Path) -> None:
    assert "no meaning here" in replays(orders).after("z").message
