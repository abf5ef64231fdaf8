"""What is shown although a filter hides it: other ends of calls, events near, events jumped to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pytracer.reader.database import Database
from pytracer.reader.filter.parser import parse
from pytracer.reader.query import EVERY, rows
from pytracer.reader.rows import EVENT, Row
from pytracer.reader.screen.browser import Browser
from pytracer.reader.screen.lines import DisplayOptions, Liner
from pytracer.reader.screen.view import Folds, View, span

from handmade import Handmade, event

DISPLAY = DisplayOptions(time="off", duration=False)


@pytest.fixture(name="database", scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """main calls pay three times, which calls check; the last one raises, and main still runs."""
    path = tmp_path_factory.mktemp("beside") / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main")
        made.code(run, 2, "pay", ["n"])
        made.code(run, 3, "check")
        events = [event("call", 1)]
        for n in range(3):
            events += [event("call", 2, n, time=10), event("call", 3, time=10)]
            events += [event("return", 3, None, time=10, elapsed=10)]
            last = ("raise", "exception")[n // 2 :] if n == 2 else ("return",)
            events += [event(kind, 2, n * 10, time=10, elapsed=30) for kind in last]
        made.segment(run, events)
    database = Database(str(path))
    yield database
    database.close()


class Screen:
    """A browser whose tasks are done at once."""

    def __init__(self, database: Database, filter: str) -> None:
        self.database, runs = database, database.runs()
        self.line = Liner(DISPLAY, (), runs)
        self.browser = Browser(View(1, parse(filter)), runs, self.line, lambda: None)
        self.do(self.browser.first())

    def do(self, task: Any) -> None:
        answer = None
        try:
            while True:
                asked = task.send(answer)
                answer = asked(self.database)
        except StopIteration:
            pass
        while unread := self.browser.unread_beside():
            self.browser.take_beside(unread(self.database))

    @property
    def lines(self) -> list[str]:
        return [self.line(item).text for item in self.browser.items]

    @property
    def current(self) -> str:
        assert self.browser.current
        return self.line(self.browser.current).text


def all_events(database: Database) -> list[Row]:
    return rows(database, f"SELECT {EVENT} FROM event WHERE {EVERY.where} ORDER BY time, id", (), 100)


@pytest.mark.parametrize("kind", ["'call'", "'return'"])
def test_a_match_shows_the_other_end(database: Database, kind: str) -> None:
    last = ["  +> app.pay(n=2) ! 20"] if kind == "'call'" else []
    assert Screen(database, f"func == 'pay' and kind == {kind}").lines == [
        "  +> app.pay(n=0) = 0",
        "  +> app.pay(n=1) = 10",
        *last,
    ]


def test_ends_that_are_both_found_have_their_lines(database: Database) -> None:
    assert Screen(database, "func == 'pay' and kind != 'raise'").lines[:2] == [
        "  -> app.pay(n=0)",
        "  <- pay: 0",
    ]
    assert Screen(database, "func == 'main'").lines == ["-> app.main()"]


def test_events_near_a_match(database: Database) -> None:
    screen = Screen(database, "value == 1")
    assert screen.lines == ["  +> app.pay(n=1) = 10"]
    screen.browser.beside.show_near(2)
    screen.do(screen.browser.rearrange())
    assert screen.lines == [
        "    · <- check: None",
        "  · <- pay: 0",
        "  +> app.pay(n=1) = 10",
        "    · -> app.check()",
        "    · <- check: None",
    ]
    assert screen.current == "  +> app.pay(n=1) = 10"
    hidden = screen.line(screen.browser.items[0])
    assert [style for _, _, style in hidden.spans] == ["dim"]
    screen.browser.beside.show_near(-1)
    screen.do(screen.browser.rearrange())
    assert screen.lines == ["  +> app.pay(n=1) = 10"]


def test_the_other_end_is_not_near(database: Database) -> None:
    """What is on the line of the match is not counted."""
    screen = Screen(database, "func == 'check' and kind == 'call'")
    screen.browser.beside.show_near(1)
    screen.do(screen.browser.rearrange())
    assert screen.lines[:3] == ["  · -> app.pay(n=0)", "    +> app.check() = None", "  · <- pay: 0"]


def test_a_jump_to_a_hidden_event_shows_it_while_the_cursor_is_there(database: Database) -> None:
    found = ["  +> app.pay(n=0) = 0", "  +> app.pay(n=1) = 10", "  +> app.pay(n=2) ! 20"]
    screen = Screen(database, "func == 'pay' and kind == 'call'")
    everything = all_events(database)
    for row, place, shown in (
        (everything[0], 0, "· -> app.main()"),
        (everything[6], 2, "    · -> app.check()"),
        (everything[-1], 3, "  · <! pay: 20"),
        (everything[3], 1, "    · <- check: None"),
    ):
        screen.do(screen.browser.go(row))
        assert screen.current == shown
        assert screen.lines == [*found[:place], shown, *found[place:]]
    screen.do(screen.browser.move_cursor(1))
    assert screen.lines == found
    assert screen.current == found[1]
    screen.do(screen.browser.go(everything[0]))
    screen.do(screen.browser.last())
    assert screen.lines == found


def test_a_jump_beyond_what_is_found(database: Database) -> None:
    for row in all_events(database):
        screen = Screen(database, "func == 'pay' and kind == 'call' and value == 0")
        screen.do(screen.browser.go(row))
        assert row[0] == (screen.browser.current and screen.browser.current.row[0])


@pytest.mark.parametrize("kind", ["call", "return", "exception"])
def test_folded_calls_under_a_filter(database: Database, kind: str) -> None:
    """A closed call has one line, whichever of its ends the filter finds."""
    screen = Screen(database, f"depth == 2 or func == 'pay' and kind == '{kind}'")
    opened, events = screen.lines, all_events(database)
    inside = [row for row in events if row[6] == "call" and row[8] == b"check"]
    calls = [row for row in events if row[6] == "call" and row[8] == b"pay"]
    folds = screen.browser.view.folding
    for call in calls:
        folds = folds.close(span(database, call))
    screen.do(screen.browser.change(screen.browser.view.folded(folds)))
    outcomes = {"call": (" = 0", " = 10", " ! 20"), "return": (" = 0", " = 10"), "exception": (" ! 20",)}[
        kind
    ]
    first = 3 - len(outcomes) if kind == "exception" else 0
    assert screen.lines == [f"  +> app.pay(n={n}){outcome}" for n, outcome in enumerate(outcomes, first)]
    screen.do(screen.browser.go(inside[first]))
    assert screen.current == "    -> app.check()"
    assert len(screen.lines) == len(outcomes) + 2
    screen.do(screen.browser.change(screen.browser.view.folded(Folds())))
    assert screen.lines == opened
    screen.do(screen.browser.change(screen.browser.view.folded(Folds(1))))
    assert len(screen.lines) == len(outcomes)
    screen.do(screen.browser.change(screen.browser.view.filtered(parse("depth == 2"))))
    assert len(screen.lines) == 6


def test_what_is_near_does_not_depend_on_the_way_there(database: Database) -> None:
    """A call that meets the filter by its return is on the line of that, and not beside another
    match, whether that line was on the screen or not."""
    screen = Screen(database, "kind == 'return'")
    browser = screen.browser
    browser.beside.show_near(1)
    screen.do(browser.rearrange())
    before = screen.lines
    assert before[:3] == ["    +> app.check() = None", "  +> app.pay(n=0) = 0", "    +> app.check() = None"]
    browser.resize(80, 1)
    browser.top = browser.cursor = 1
    screen.do(browser.switch(browser.place()))
    assert screen.current == before[1]
    assert "  · -> app.pay(n=1)" not in screen.lines


def test_an_event_near_a_match_keeps_the_cursor(database: Database) -> None:
    """When all is read anew, it is known later than the matches; also behind the last of them."""
    for filter, index in (("value == 1", 1), ("value == 2", -1)):
        screen = Screen(database, filter)
        screen.browser.beside.show_near(2)
        screen.do(screen.browser.rearrange())
        screen.browser.cursor = range(len(screen.lines))[index]
        current = screen.current
        assert " · " in current
        screen.do(screen.browser.switch(screen.browser.place()))
        assert screen.current == current


@pytest.mark.parametrize("index", range(9))
def test_lines_stay_in_their_rows_when_all_is_read_anew(database: Database, index: int) -> None:
    """What is beside the matches is read later than these, and was on the screen before."""
    screen = Screen(database, "func == 'pay' and kind == 'call'")
    browser = screen.browser
    browser.resize(80, 4)
    browser.beside.show_near(2)
    screen.do(browser.rearrange())
    screen.do(browser.first())
    screen.do(browser.move_cursor(index))
    screen.do(browser.move_cursor(-1))
    before, row, current = browser.shown(), browser.row(), screen.current
    screen.do(browser.read_anew())
    assert (browser.shown(), browser.row(), screen.current) == (before, row, current)


def test_an_event_jumped_to_is_not_taken_along(tmp_path: Path) -> None:
    """Thousands of matches behind it, the next jump is to one of them."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "outer")
        made.code(run, 2, "leaf", ["n"])
        events = [event("call", 1)]
        for n in range(5000):
            events += [event("call", 2, n, time=10), event("return", 2, None, time=10, elapsed=10)]
        events += [event("call", 2, -1, time=10), event("exception", 2, -2, time=10, elapsed=10)]
        made.segment(run, events)
    with closing(Database(str(path))) as database:
        screen = Screen(database, "func == 'leaf'")
        first, *_ = rows(database, f"SELECT {EVENT} FROM event WHERE func = 'outer'", (), 1)
        last, *_ = rows(database, f"SELECT {EVENT} FROM event WHERE kind = 'exception'", (), 1)
        screen.do(screen.browser.go(first))
        assert screen.current == "· -> app.outer()"
        screen.do(screen.browser.go(last))
        assert screen.current == "  <! leaf: -2"
        assert len(screen.browser.rows) < 1000


def test_what_was_evicted_is_asked_for_anew(database: Database) -> None:
    """A match may stay while an event beside it, or its other end, has gone."""
    screen = Screen(database, "value == 1")
    beside = screen.browser.beside
    beside.show_near(1)
    screen.do(screen.browser.rearrange())
    assert screen.browser.unread_beside() is None
    oldest = min(item.row[2] for item in screen.browser.items)
    beside.evict(oldest - 1)
    assert screen.browser.unread_beside() is None
    beside.evict(oldest)
    assert screen.browser.unread_beside() is not None


def test_the_start_of_a_folded_call_was_evicted(tmp_path: Path) -> None:
    """Its end gets a line of its own, as if all were read anew."""
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, 1, "main")
        made.code(run, 2, "work")
        made.segment(run, [event("call", 1, time=10), event("call", 2, time=10)])
        rest = [event("return", 2, None, time=10, elapsed=10)]
        rest += [event("call", 2, time=10), event("return", 2, None, time=10, elapsed=10)]
        made.segment(run, rest, sequence=1, start=20, base_depth=2)
        with closing(Database(str(made.path))) as database:
            screen = Screen(database, "func == 'work'")
            browser = screen.browser
            screen.do(browser.change(browser.view.folded(Folds(level=1))))
            assert screen.lines == ["  +> app.work() = None"] * 2
            start, end = browser.rows[:2]
            screen.do(browser.show((end[2], end[0]), anew=True))
            assert screen.lines == ["  +> app.work() = None"] * 2
            made("DELETE FROM segment WHERE sequence = 0")
            browser.evict(start[2])
            assert browser.renew(browser.renewed()(database))
            screen.do(browser.settle())
            renewed = screen.lines
            screen.do(browser.read_anew())
            assert screen.lines == renewed == ["  <- work: None", "  +> app.work() = None"]


def test_an_answer_for_another_width_is_not_taken(database: Database) -> None:
    """Somebody presses + again before the first answer."""
    screen = Screen(database, "value == 1")
    browser = screen.browser
    browser.beside.show_near(1)
    question, before = browser.unread_beside(), browser.version()
    assert question is not None
    browser.beside.show_near(2)
    assert browser.version() != before
    browser.take_beside(question(database))
    assert len(screen.lines) == 1
    screen.do(browser.rearrange())
    assert len(screen.lines) == 5
