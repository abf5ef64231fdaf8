"""Lanes: which calls become bars, and the bars on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import one
from pytracer.reader.rows import Source
from pytracer.reader.screen import flame
from pytracer.reader.screen.effects import ShowLanes
from pytracer.reader.screen.flame import Bar, Lane, Part
from pytracer.reader.screen.lanes import Lanes
from pytracer.reader.screen.lines import DisplayOptions
from pytracer.reader.stretches import MINE, NEAR, Scope

from handmade import EPOCH_NS, NS_PER_UNIT, Handmade, event
from sessions import Reader
from waiting import write_waiting

ONE, TWO = Lane(100, 100), Lane(100, 200)


@pytest.fixture(name="database", scope="module")
def database_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("lanes") / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        for number, func in enumerate(("main", "walk", "pay", "wait"), 1):
            database.code(run, number, func)
        database.thread(run, 2, 200, "other")
        records = [
            event("call", 1),
            event("call", 2, time=1000),
            event("call", 3, time=10),
            event("return", 3, None, time=5),
            event("exception", 2, ValueError("no"), time=3000, elapsed=3015),
            event("call", 3, time=1000),
        ]
        database.segment(run, records)
        database.segment(run, [event("call", 4, time=100), event("call", 3, time=10)], stream=2)
    reading = Database(str(path))
    yield reading
    reading.close()


def asked(database: Database, start: int, end: int, least: int) -> list[tuple[str, int, bool, bool]]:
    sources = database.sources(1)
    ((first,),) = database.query("i", "SELECT min(time) FROM event")
    part = Part(first + start * NS_PER_UNIT, first + end * NS_PER_UNIT)
    found = flame.bars(1, part, least * NS_PER_UNIT, sources)(database)
    return sorted((bar.name, bar.depth, bar.end is None, bar.failed) for bar in found)


def test_bars(database: Database) -> None:
    """Calls that ended are as long as asked for; those that are open at the end are all there."""
    still = [("main", 0, True, False), ("pay", 1, True, False), ("wait", 0, True, False)]
    other = ("pay", 1, True, False)
    walk = ("walk", 1, False, True)
    assert asked(database, 0, 9000, 1) == sorted([*still, other, walk, ("pay", 2, False, False)])
    assert asked(database, 0, 9000, 100) == sorted([*still, other, walk])
    assert asked(database, 0, 4500, 100) == sorted([("main", 0, True, False), other, walk, still[2]])
    assert asked(database, 0, 500, 100) == sorted([("main", 0, True, False), other, still[2]])


def test_of_many_threads_the_latest_are_looked_at(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is always among them; a thread counts from its first event on."""
    places = [(100, 100), (100, 50), (100, 200)]
    ((first, last),) = database.query("ii", "SELECT min(time), max(time) FROM event")
    monkeypatch.setattr(flame, "_LANES", 1)
    assert flame._latest(database, 1, places, first - 10**6) == [(100, 100)]
    monkeypatch.setattr(flame, "_LANES", 2)
    assert flame._latest(database, 1, places, last) == [(100, 100), (100, 200)]


def test_the_part_around_an_event(database: Database) -> None:
    ((id, first, last),) = database.query(
        "iii", "SELECT min(id), min(time), max(time) FROM event WHERE kind = 'return'"
    )
    row = one(database, id)
    assert row is not None
    part, _ = flame.around(row, Part(0, last + 10**9))(database)
    assert 0 < first - part.start < 10_000
    assert 0 < part.end - first - 3000 * NS_PER_UNIT < 10_000


def test_at_a_call_without_a_caller_the_whole_time_is_shown(database: Database) -> None:
    ((first,),) = database.query("i", "SELECT id FROM event ORDER BY time, id LIMIT 1")
    row = one(database, first)
    assert row is not None
    whole = Part(row[2], row[2] + 10**9)
    assert flame.around(row, whole)(database)[0] == whole


def test_a_call_that_ends_behind_the_part_has_its_end(database: Database) -> None:
    ((start,),) = database.query("i", "SELECT min(time) FROM event")
    part = Part(start, start + 2000 * NS_PER_UNIT)
    found = flame.bars(1, part, 1, database.sources(1))(database)
    ended = {bar.name: bar.end and bar.end - bar.start for bar in found if bar.lane == ONE}
    assert ended == {"main": None, "walk": 3015 * NS_PER_UNIT, "pay": 5 * NS_PER_UNIT}


@pytest.fixture(name="own", scope="module")
def own_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library runs own code, which calls a library, that calls own code back; another thread
    runs no own code."""
    path = tmp_path_factory.mktemp("own") / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run(finished=False)
        for number, func in enumerate(("bootstrap", "main", "sort", "compare", "inner", "key"), 1):
            database.code(run, number, func, mine=func in ("main", "key"))
        database.thread(run, 2, 200, "other")
        calls = [event("call", code, time=1000) for code in (1, 2, 3, 4, 6, 3, 4)]
        database.segment(run, calls)
        database.segment(run, [event("call", 1, time=9000), event("call", 5, time=10)], stream=2)
    return path


def test_of_own_code_and_what_it_calls(own: Path) -> None:
    database = Database(str(own))
    sources = database.sources(1)
    part = Part(0, 2**62)

    def found(*scope: Scope) -> list[tuple[str, int, bool]]:
        return [
            (bar.name, bar.depth, bar.library) for bar in flame.bars(1, part, 1, sources, *scope)(database)
        ]

    assert found(MINE) == [
        ("main", 0, False), ("sort", 1, True), ("key", 1, False), ("sort", 2, True), ("inner", 0, True),
    ]  # fmt: skip
    assert found(NEAR) == [
        ("main", 0, False), ("sort", 1, False), ("key", 2, False), ("sort", 3, False), ("inner", 0, True),
    ]  # fmt: skip
    assert [name for name, _, _ in found()] == [
        "bootstrap", "main", "sort", "compare", "key", "sort", "compare", "bootstrap", "inner",
    ]  # fmt: skip
    database.close()


def test_the_first_line_shows_all_threads_until_now(own: Path) -> None:
    reader = Reader(own)
    (effect,) = reader.press("V")
    assert isinstance(effect, ShowLanes)
    made = effect.lanes
    made.render((60, 10))
    question = made.wanted()
    assert question is not None
    made.take(question(reader.database))
    drawn = screen(made, 60, 10)
    assert drawn[0].endswith(", to now")
    assert [row[:14].strip() for row in drawn[1:5]] == ["MainThread", "", "", "other"]
    assert "main" in drawn[1]
    assert "key" in drawn[2]
    assert "⋯ inner" in drawn[4]
    reader.database.close()


def test_of_very_many_open_calls_the_outer_and_inner_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as written:
        run = written.run()
        written.code(run, 1, "down")
        written.segment(run, [event("call", 1, time=1000) for _ in range(100)])
    reading = Database(str(path))
    monkeypatch.setattr(flame, "_BARS", 10)
    found = flame.bars(1, Part(0, 2**62), 1, reading.sources(1))(reading)
    assert [bar.depth for bar in found] == [*range(5), *range(95, 100)]
    reading.close()


def test_deep_recursion_is_drawn_without_going_through_all_bars_at_each_level() -> None:
    looked = 0

    class Counted(Bar):
        def __getattribute__(self, name: str) -> Any:
            nonlocal looked
            looked += name == "lane"
            return super().__getattribute__(name)

    made = lanes([Counted(ONE, depth, depth, None, "down", False, depth) for depth in range(3000)])
    screen(made)
    made.keypress((54, 12), "down")
    screen(made)
    assert looked < 4 * 3000


def test_without_room_the_innermost_calls_are_drawn() -> None:
    made = lanes([
        *(Bar(ONE, depth, depth, None, f"level{depth}", False, depth) for depth in range(9)),
        Bar(ONE, 9, 3000, None, "wait", False, 10, True),
        *(Bar(TWO, depth, depth, None, f"other{depth}", False, 20 + depth) for depth in range(9)),
        Bar(TWO, 9, 3000, None, "wait", False, 30, True),
    ])  # fmt: skip
    drawn = "\n".join(screen(made, 54, 9))
    assert [name for name in ("level0", "level8", "⋯ wait", "other8") if name not in drawn] == []
    assert "other0" not in drawn
    drawn = "\n".join(screen(made, 54, 5))  # a row for each
    assert "other8" in drawn


def test_the_name_of_a_short_call_at_the_end_stands_before_it() -> None:
    made = lanes([Bar(ONE, 0, 0, None, "main", False, 1), Bar(ONE, 1, 3999, None, "acquire", False, 2)])
    assert screen(made)[2].endswith("acquire ▏")


def test_the_end_moves_on_while_everything_is_shown() -> None:
    whole = Part(0, 4000)
    sources = [Source(1, 100, 100, "MainThread")]
    made = Lanes(
        1, lambda: whole, whole, lambda: sources, (ONE, 0, 0), print, DisplayOptions(), is_live=lambda: True
    )
    assert screen(made)[0].endswith("+4µs, to now")
    whole = Part(0, 8000)
    made.forget()
    assert screen(made)[0].endswith("+8µs, to now")
    made.keypress((54, 12), "+")
    whole = Part(0, 10_000)
    made.forget()
    assert screen(made)[0].endswith("+2µs, 8µs before now")
    made.take([Bar(ONE, 0, -500, None, "main", False, 1)])
    assert screen(made)[-2].split("  ")[2] == "runs on"
    made.keypress((54, 12), "-")
    made.keypress((54, 12), "-")
    assert screen(made)[0].endswith("+10µs, to now")
    assert screen(made)[-2].split("  ")[2] == "runs still"


def test_time_off_the_processor_is_dotted(tmp_path: Path) -> None:
    off = Bar(ONE, 0, 2000, 3000, "", False, 0, off=True)
    made = lanes([Bar(ONE, 0, 0, None, "main", False, 1), off])
    row = screen(made)[1].ljust(54)[13:]
    assert "".join("·" if cell == "·" else " " for cell in row).rstrip() == " " * 20 + "·" * 10
    assert row.startswith("▏main")
    write_waiting(tmp_path / "traces.sqlite")
    database = Database(str(tmp_path / "traces.sqlite"))

    def asked(start: int, end: int, least: int) -> list[tuple[int, int, int]]:
        part = Part(EPOCH_NS + 4 * start, EPOCH_NS + 4 * end)
        found = flame.bars(1, part, 4 * least, database.sources(1))(database)
        return [
            (bar.lane.tid, (bar.start - EPOCH_NS) // 4, ((bar.end or 0) - EPOCH_NS) // 4)
            for bar in found
            if bar.off
        ]

    assert asked(0, 200, 1) == [(200, 42, 52), (100, 32, 64), (100, 80, 90)]
    assert asked(0, 200, 20) == [(100, 32, 64)]
    assert asked(50, 85, 1) == [(200, 50, 52), (100, 50, 64), (100, 80, 85)]
    database.close()


def lanes(found: list[Bar], width: int = 54) -> Lanes:
    sources = [Source(1, 100, 100, "MainThread"), Source(1, 100, 200, "worker")]
    went: list[int] = []
    whole, part, at = Part(0, 8000), Part(0, 4000), (ONE, 0, 0)
    made = Lanes(1, lambda: whole, part, lambda: sources, at, went.append, DisplayOptions())
    made.render((width, 12))
    assert made.wanted() is not None
    assert made.wanted() is None  # once
    made.take(found)
    return made


BARS = [
    Bar(ONE, 0, -500, None, "main", False, 1),
    Bar(ONE, 1, 0, 1000, "first", False, 2),
    Bar(ONE, 1, 1000, 2000, "second", True, 3),
    Bar(TWO, 0, 2000, 2050, "other", False, 4),
]


def screen(made: Lanes, width: int = 54, height: int = 12) -> list[str]:
    return [row.decode().rstrip() for row in made.render((width, height)).text]


def told(made: Lanes) -> str:
    return screen(made)[-2].split("  ")[1]


def test_the_screen() -> None:
    made = lanes(BARS)
    assert screen(made)[1:4] == [
        "MainThread    main",
        " " * 13 + "▏first    ▏second",
        "worker" + " " * 27 + "▏",
    ]
    assert told(made) == "main"
    for key, expected in (
        ("down", "first"), ("right", "second"), ("left", "first"), ("up", "main"), ("j", "first"),
        ("l", "second"), ("down", "no call of 97ns or more here"), ("right", "other"),
    ):  # fmt: skip
        made.keypress((54, 12), key)
        assert told(made) == expected, key


def test_the_scale() -> None:
    made = lanes(BARS)
    made.keypress((54, 12), "-")
    assert "+8µs" in screen(made)[0]
    assert made.wanted() is not None
    made.keypress((54, 12), "-")
    assert "+8µs" in screen(made)[0]  # no more than there is
    for _ in range(9):
        made.keypress((54, 12), "+")
    assert "+100ns" in screen(made)[0]
    made.keypress((54, 12), "right")
    assert "+100ns" in screen(made)[0]
    for size in ((1, 1), (10, 3), (30, 5), (200, 60)):
        made.render(size)
    made.take([])
    made.keypress((54, 12), "enter")
    assert not made.done
    assert screen(made)[-2] == "Enter goes to a call: there is none here"
    made.keypress((54, 12), "q")
    assert (made.done, made.result) == (True, None)


def test_enter_goes_to_the_call_under_the_cursor() -> None:
    made = lanes(BARS)
    screen(made)
    made.mouse("mouse press", 1, 2)
    made.keypress((54, 12), "enter")
    assert made.done
    assert made.result is not None
    assert made.result() is None
    assert made._go.__self__ == [2]  # type: ignore[attr-defined]
