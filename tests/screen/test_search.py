"""The reader's search against a plain look at all lines, of databases written by hand and
recorded."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytracer.reader.database import Database
from pytracer.reader.query import EVERY, Query
from pytracer.reader.rows import EVENT, Row
from pytracer.reader.screen import search
from pytracer.reader.screen.lines import DisplayOptions, Liner
from pytracer.reader.screen.prefilter import Shown
from pytracer.reader.screen.search import BadPattern, Pattern, TimeUp, TooSlow, find, find_new
from pytracer.reader.screen.view import Item

from handmade import Handmade, event, value
from messages import trace_pb2
from recording import Record

EVERYTHING = 1 << 30
DISPLAYS = (
    DisplayOptions(thread=True),
    DisplayOptions(time="start", thread=True, process=True, run=True, ids=True, file=True),
    DisplayOptions(time="off", duration=False, ascii=True, sort=True),
)


class Searched:
    """A database with all its events, in order, and their lines by display options."""

    def __init__(self, path: Path, watch: Callable[[], object] | None = None) -> None:
        self.database = Database(str(path), watch)
        sql = f"SELECT {EVENT} FROM event ORDER BY time, id"
        self.rows: list[Row] = self.database.page(sql, (), lambda row: row, EVERYTHING, float("inf")).made
        self.runs = self.database.runs()
        self.sources = [source for run in self.runs for source in self.database.sources(run.id)]
        self.show = cache(self._show)
        self.lines = cache(lambda display: [self.show(display)(row) for row in self.rows])

    def _show(self, display: DisplayOptions) -> Callable[[Row], str]:
        liner = Liner(display, self.sources, self.runs)
        return lambda row: liner(Item(row)).text

    def found(
        self, pattern: Pattern, display: DisplayOptions, start: int | None, backwards: bool
    ) -> int | None:
        """The place of what `find` finds."""
        at = None if start is None else (self.rows[start][2], self.rows[start][0])
        shown = Shown(display.file, display.ids)
        row = find(self.database, EVERY, pattern, self.show(display), at, backwards, shown=shown)
        return None if row is None else self.rows.index(row)

    def expected(
        self, pattern: Pattern, display: DisplayOptions, start: int | None, backwards: bool
    ) -> int | None:
        places = range(len(self.rows))
        if start is not None:
            places = places[:start] if backwards else places[start + 1 :]
        ordered = reversed(places) if backwards else places
        return next((place for place in ordered if pattern.matches(self.lines(display)[place])), None)


NAMES = (
    "pay", "Order.pay", "add", "Größe", "session", "<lambda>", "face\x1bbed", "\u0131nk\u017fk",
    "tell\u2028him", "n",
)  # fmt: skip

ORDER = trace_pb2.Value(type=1, address=0x7F00DEADB5300)
VALUES = (
    ORDER, trace_pb2.Value(type=2, address=0xBEEF), [1, ORDER], "<app.Order at 0x7f005300>",
    "bob", "the\nneedle", 'say "hi"', "x\ufe0f1f", "a" * 200, "Kelvin \u212a", "", "\x07bad", "é", 42, None,
    12345678, -7, True, [1, "bob", None], ValueError("sold out"), "lost events", "12ms", "line 7", "1,204",
    "a_b",
)  # fmt: skip


def fill(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.thread(run, 2, 23456789, "")
        made.thread(run, 3, 103, "deadbeef\x85worker_3")
        made.type(run, 1, "app.Order")
        made.type(run, 2, "app.é\x1bfn.<locals>.Bücher_\x85bed")
        made("INSERT INTO sqlite_sequence VALUES ('segment', 5000)")
        for number, name in enumerate(NAMES, 1):
            arguments = ("user", "n", "größe", "x\n1")[: number % 5]
            file = f"/srv/f_{number}.py"
            made.code(run, number, name, arguments, module="app.shop", file=file, line=7**number)
        values = iter(VALUES * 40)
        for sequence in range(12):
            events = []
            for number in range(1, len(NAMES) + 1):
                given = [value(next(values), sequence % 2) for _ in range(number % 4)]
                events += [
                    event("call", number, *given, time=3 + sequence),
                    event("log", number, next(values), next(values), time=0, names=("é\x1bnote",)),
                    event("raise", number, ValueError(f"no {number}"), time=1, line=7**number),
                    event("return", number, next(values), time=number * 1000, elapsed=number * 77_777),
                ]
            events.append(event("lost", 1204 * sequence, time=9))
            made.segment(
                run, events, stream=1 + sequence % 3, sequence=sequence, start=sequence * 7_000,
                base_depth=87654321 if sequence == 6 else 0,
            )  # fmt: skip


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    path = tmp_path_factory.mktemp("search") / "traces.sqlite"
    fill(path)
    return Searched(path)


# ---- expressions ------------------------------------------------------------------------------


@st.composite
def expressions(draw: st.DrawFn, lines: list[str]) -> str:
    """Of pieces of the lines, so that they find something now and then."""

    def piece() -> str:
        line = draw(st.sampled_from(lines))
        start = draw(st.integers(0, len(line)))
        text = line[start : start + draw(st.integers(1, 12))]
        return draw(st.sampled_from((str, str.upper, str.lower, str.swapcase)))(text)

    def expression(depth: int) -> str:
        form = draw(st.sampled_from("pppppsscoabrtlni"))
        if not depth or form == "p":
            return re.escape(piece())
        one, two = expression(depth - 1), expression(depth - 1)
        return {
            "s": one + two,
            "c": one
            + draw(st.sampled_from((".*", ".", r"\w+", r"\b", "[^ ]", r"\d*", "$", "^", " *")))
            + two,
            "o": f"(?:{one})?{two}",
            "a": f"(?:{one}|{two})",
            "b": f"(?:{one}|{two}|)",
            "r": f"(?:{one}){{1,2}}",
            "t": f"({one})+?",
            "l": f"(?={one})",
            "n": f"(?!{one}){two}",
            "i": f"(?i:{one})",
        }[form]

    return expression(2)


def ways(searched: Searched) -> Iterator[tuple[int | None, bool]]:
    last = len(searched.rows) - 1
    for start in (None, 0, last // 3, last // 2, last):
        yield start, False
        yield start, True


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_it_finds_what_a_look_at_every_line_finds(searched: Searched, data: st.DataObject) -> None:
    display = data.draw(st.sampled_from(DISPLAYS))
    text = data.draw(expressions(searched.lines(display)))
    pattern = Pattern(text, data.draw(st.sampled_from((None, True, False))))
    for start, backwards in ways(searched):
        expected = searched.expected(pattern, display, start, backwards)
        assert searched.found(pattern, display, start, backwards) == expected, (text, pattern.predicate())


@pytest.mark.parametrize("display", DISPLAYS, ids=("usual", "all", "ascii"))
def test_any_word_of_the_lines_is_found(searched: Searched, display: DisplayOptions) -> None:
    """And its ends: these may be of an escape, or of what the line itself writes."""
    words = {word for line in searched.lines(display) for word in re.findall(r"[^\W_]+|\w+", line)}
    pieces = {word[start:] for word in words if len(word) < 40 for start in range(min(len(word), 6))}
    pieces |= {word[:3] for word in words}
    numbers = sorted(piece for piece in pieces if piece.isdigit())
    large = [piece for piece in numbers if len(piece) >= 8]
    some = Random(7).sample(numbers, 20) + Random(7).sample(large, min(len(large), 30))
    for piece in (*sorted(pieces.difference(numbers)), *some):
        for ignore_case in (True, False):
            pattern = Pattern(re.escape(piece), ignore_case)
            expected = searched.expected(pattern, display, None, False)
            assert searched.found(pattern, display, None, False) == expected, (piece, pattern.predicate())


@pytest.mark.parametrize(
    "text",
    [
        r"bob.*\bbob", "x=.*1", "n=12345678", "1,204", r"42\)", "23456789", "87654321", "nksk", "^$", "x*",
        "", "(?<=user=)'bob'", "=Order@5300", "@5300,", "Order@beef", r"bed@beef", "r@53",
    ],
)  # fmt: skip
def test_some_expressions(searched: Searched, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_PAGE", 7)  # many pages
    for start, backwards in ways(searched):
        pattern = Pattern(text)
        expected = searched.expected(pattern, DISPLAYS[0], start, backwards)
        assert searched.found(pattern, DISPLAYS[0], start, backwards) == expected


def test_a_filter_stays_in_force(searched: Searched) -> None:
    query = Query("tid = ? AND event MATCH ?", (103, '(like kind "r%")'))
    pattern, show = Pattern("bob"), searched.show(DISPLAYS[0])
    hits = [row for row in searched.rows if row[4] == 103 and row[6][0] == "r" and pattern.matches(show(row))]
    found: list[Row] = []
    while row := find(
        searched.database, query, pattern, show, (found[-1][2], found[-1][0]) if found else None
    ):
        found.append(row)
    assert found == hits != []


# ---- bounds -----------------------------------------------------------------------------------


def test_an_expression_that_would_run_for_ever_is_ended(searched: Searched) -> None:
    pattern = Pattern(r"(?:a|a)+$\b!")
    with pytest.raises(TooSlow, match="takes more than"):
        find(searched.database, EVERY, pattern, searched.show(DISPLAYS[0]), None)


def test_a_search_with_a_time_can_be_continued(searched: Searched) -> None:
    pattern, show = Pattern(r"\bnowhere\b|(?!)"), searched.show(DISPLAYS[0])
    position = None
    for _ in range(10):
        with pytest.raises(TimeUp) as up:
            find(searched.database, EVERY, pattern, show, position, seconds=0)
        position = up.value.position
    assert find(searched.database, EVERY, pattern, show, position, seconds=60) is None
    assert find(searched.database, EVERY, Pattern("bob"), show, None, seconds=60) is not None


def test_it_can_be_stopped_at_any_moment(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    left = 0  # looks until it has to stop

    def watch() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Enough

    fill(tmp_path / "traces.sqlite")
    searched = Searched(tmp_path / "traces.sqlite", watch)
    show = searched.show(DISPLAYS[0])
    for looks in (1, 2):
        for text in ("quetzal", r"\d nothing"):
            left = looks
            with pytest.raises(Enough):
                find(searched.database, EVERY, Pattern(text), show, None)
    assert find(searched.database, EVERY, Pattern("bob"), show, None)


# ---- what comes -------------------------------------------------------------------------------


def test_what_is_new_is_found_once_whenever_it_happened(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run(finished=False)
        made.thread(run, 2, 101, "late")
        made.code(run, 1, "pay", ("user",))
        database = Database(str(path))
        liner = Liner(DISPLAYS[0], [], [])
        pattern = Pattern("bob")

        def show(row: Row) -> str:
            return liner(Item(row)).text

        def calls(*names: str) -> list[object]:
            return [event("call", 1, name, time=10) for name in names]

        row, seen = find_new(database, EVERY, pattern, show, None)
        assert row is None
        made.segment(run, calls("al", "bob"), complete=False, start=1000)
        row, seen = find_new(database, EVERY, pattern, show, seen)
        assert row is not None
        for names in (("al", "bob"), ("al", "bob", "al")):  # as before, and longer
            made.segment(run, calls(*names), complete=False, start=1000)
            row, seen = find_new(database, EVERY, pattern, show, seen)
            assert row is None
        made.segment(run, calls("bob"), stream=2, start=0)  # earlier than all
        row, seen = find_new(database, EVERY, pattern, show, seen)
        assert row is not None
        assert row[5] == b"late"
        made.segment(run, calls("al", "bob", "al", "bob"), start=1000)
        row, seen = find_new(database, Query("tid = 101", ()), pattern, show, seen)
        assert row is None
        assert not seen.growing
        row, seen = find_new(database, EVERY, pattern, show, None)  # all that is stored is old
        assert row is None
        made.segment(run, calls("bob"), sequence=1, start=2000)
        row, seen = find_new(database, EVERY, pattern, show, seen)
        assert row is not None
        database.close()


# ---- a recorded program -----------------------------------------------------------------------

PROGRAM = """
import threading

def pay(user, amount):
    if amount > 95:
        raise ValueError(f'{user} has no {amount}')
    return [user] * 2

def work(name):
    for n in range(100):
        try:
            pay(name, n)
        except ValueError:
            pass

threads = [threading.Thread(target=work, args=(name,), name=f'{name}-thread') for name in ('bob', 'alice')]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_a_recording(record: Record) -> None:
    searched = Searched(record(PROGRAM).database)
    display = DISPLAYS[0]
    for text in (
        "alice has no 9[78]",
        "amount=42",
        "ValueError",
        "^.*bob-thread.*amount=99",
        "threading.*wait",
        "zz",
    ):
        pattern = Pattern(text)
        for start in (None, len(searched.rows) // 2):
            for backwards in (False, True):
                expected = searched.expected(pattern, display, start, backwards)
                assert searched.found(pattern, display, start, backwards) == expected, text


def test_a_mistake_in_an_expression_is_told() -> None:
    with pytest.raises(BadPattern) as mistake:
        Pattern("pay(")
    assert (mistake.value.message, mistake.value.position) == ("missing )", 4)
