"""Filters that the reader's prompts offer, on a real database: made from an event they find it;
instead of one that finds nothing they find something, and to look for them can be stopped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytracer.reader.database import Database
from pytracer.reader.filter.parser import parse
from pytracer.reader.filter.sql import compile
from pytracer.reader.query import EVERY, pages
from pytracer.reader.screen.prompt_completion import from_event, suggest
from pytracer.reader.screen.worker import Stopped

from handmade import Handmade, event, value

NASTY = (
    "bob", "it's", 'say "hi"', "' and \"", "100%", "a_b", "back\\slash", "\\%", "\\", "\n\r\t", "\x00nul",
    "\ud800", "日本", "\u202ertl", "\xa0", "\x7f", "", " ", "a # b", "None", "5", "...", "\U0001f600",
    "e\u0301", "\\'%_\"" * 50,
)  # fmt: skip
NUMBERS = (0, -5, 10**18, True, None)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("offers") / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        names = [text for text in NASTY if "\x00" not in text and "\ud800" not in text]
        for number, text in enumerate(names, 1):
            made.code(run, number, f"{text}.<locals>.{text}", [text, "second"], module=text or "app")
        order = value("", type=100)
        order.address = 0x7F00
        made.type(run, 100, "app.Örder%_")
        events = [
            recorded
            for number, text in enumerate(NASTY)
            for code in [number % len(names) + 1]
            for recorded in (
                event("call", code, text, order, time=10),
                event("log", code, "message", text, [text], names=["text %", "_"], time=1, line=3),
                event("exception", code, ValueError(text), time=123_456_789, elapsed=123_456_789),
                event(
                    "call", code, value(text, length=len(text) + 1), NUMBERS[number % len(NUMBERS)], time=10
                ),
                event("return", code, value(text, length=10**6), time=12_345, elapsed=12_345),
            )
        ]
        made.segment(run, events)
        made.code(run, 90, "busy", ["user"])
        for sequence in range(1, 4):
            calls = [event("call", 90, f"user {i % 7} of {sequence}", time=1, depth=0) for i in range(3000)]
            made.segment(run, calls, sequence=sequence, start=10**10 + sequence * 3000)
    opened = Database(str(path))
    yield opened
    opened.close()


def test_what_is_offered_for_an_event_finds_it(database: Database) -> None:
    runs = database.runs()
    rows = [row for page in pages(database, EVERY, lambda row: row, 5 * len(NASTY)) for row in page]
    assert {row[6] for row in rows} == {"call", "log", "exception", "return"}
    for row in rows:
        offered = [text for _, text in from_event(row)]
        besides = next(text for text in offered if text.startswith("arg"))
        for text in [*offered, *(text for _, text in from_event(row, besides))]:
            query = compile(parse(text), runs)
            sql = f"SELECT 1 FROM event WHERE {query.where} AND id = ?"
            assert database.query("i", sql, (*query.parameters, row[0])) == [(1,)], text


def test_what_is_offered_instead_finds_something(database: Database) -> None:
    found = suggest(database, parse("func == 'buzy' and kind == 'call'"), database.runs())
    assert found[0] == ("func == 'busy' and kind == 'call'", 9000, True)
    assert suggest(database, parse("func == 'busy'"), []) == []


def test_to_look_for_it_can_be_stopped(database: Database) -> None:
    tree = parse("func == 'busy' and value == 'user 9 of 9' and depth > 3")
    looks, last = 0, 0

    def watch() -> None:
        nonlocal looks
        looks += 1
        if looks == last:
            raise Stopped

    watched = Database(database.path, watch)
    runs = watched.runs()
    looks = 0
    assert suggest(watched, tree, runs)
    count = looks
    assert count > 100
    for number in range(1, count // 2, count // 20):  # another time there may be fewer
        looks, last = 0, number
        with pytest.raises(Stopped):
            suggest(watched, tree, runs)
    assert watched.runs() == runs
    watched.close()
