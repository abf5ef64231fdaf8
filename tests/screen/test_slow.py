"""The hot list and slow calls: which functions and calls are found, by the questions alone, and the
list as a screen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytracer.reader.database import Database
from pytracer.reader.filter.parser import parse
from pytracer.reader.query import EVERY
from pytracer.reader.screen import hot, slow
from pytracer.reader.screen.effects import Action, Column, Entry, Listed
from pytracer.reader.screen.listing import Listing
from pytracer.reader.screen.view import View

from handmade import NS_PER_UNIT, Handmade, event
from messages import trace_pb2

MAIN, PAY, NET, MODULE, PARSE = 1, 2, 3, 4, 5
CODES = {MAIN: "main", PAY: "pay", NET: "net", MODULE: "<module>", PARSE: "parse"}


class Made:
    """The events of a thread: calls within calls, each of which takes some units by itself."""

    def __init__(self) -> None:
        self.records: list[trace_pb2.Event | str] = []
        self._since = self.now = 0

    def _add(self, kind: str, code: int, lasted: int | None = None) -> None:
        made = event(kind, code, *([None] if kind == "return" else []), time=self._since, elapsed=lasted)
        self.records.append(made)
        self._since = 0

    def call(self, code: int, units: int, *inner: tuple[int, int]) -> None:
        start = self.now
        self._add("call", code)
        for of, took in inner:
            self.call(of, took)
        self._since += units
        self.now += units
        self._add("return", code, self.now - start)


@pytest.fixture(name="database", scope="module")
def database_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("slow") / "traces.sqlite"
    made = Made()
    for _ in range(30):
        made.call(PAY, 1000, (NET, 1000))
        made.call(PARSE, 1000)
    made.call(PAY, 1000, (NET, 90_000))  # by net alone
    made.call(PAY, 50_000, (NET, 1000))
    made.call(MODULE, 400, (PARSE, 70_000))  # an import
    made.call(PAY, 60_000, (NET, 40_000))  # both
    with Handmade(path) as database:
        run = database.run()
        for number, func in CODES.items():
            database.code(run, number, func, mine=func == "pay")
        database.segment(run, made.records)
    reading = Database(str(path))
    yield reading
    reading.close()


def times(database: Database, view: View, mine: bool = False) -> dict[str, hot.Times]:
    condition = hot.predicate(view, database.runs())
    found = hot.functions(condition, mine)(database)
    return {function.name: times for function, times in found.items()}


def test_functions(database: Database) -> None:
    found = times(database, View(1))
    assert {name: of.calls for name, of in found.items()} == {
        "app.pay": 33, "app.net": 33, "app.parse": 31, "app.<module>": 1,
    }  # fmt: skip
    assert found["app.pay"].longest == 100_000 * NS_PER_UNIT
    assert abs((found["app.net"].median or 0) - 1000 * NS_PER_UNIT) <= 125 * NS_PER_UNIT
    assert {name: of.calls for name, of in times(database, View(1), mine=True).items()} == {"app.pay": 33}
    assert times(database, View(None)) == found
    assert times(database, View(9)) == {}
    slow_ones = times(database, View(1, parse("duration >= '300us'")))
    assert {name: of.calls for name, of in slow_ones.items()} == {"app.pay": 2, "app.net": 1}
    at_once = hot.calls(1, mine=False)(database)
    assert {function.name: of.calls for function, of in at_once.items()} == {
        name: of.calls for name, of in found.items()
    }


def test_ranked(database: Database) -> None:
    """The worst first; not those that are slow by one that they contain, nor in imports."""
    usual = hot.functions("(= run 1)", False)(database)
    found = slow.ranked(database, EVERY, usual)
    assert [(call.function.name, call.duration // NS_PER_UNIT) for call in found[:4]] == [
        ("app.pay", 100_000), ("app.net", 90_000), ("app.pay", 51_000), ("app.net", 40_000),
    ]  # fmt: skip
    assert len(found) == 4
    only = EVERY.also("func = 'net'")
    assert [call.duration // NS_PER_UNIT for call in slow.ranked(database, only, usual)] == [90_000, 40_000]
    assert slow.ranked(database, EVERY, {}) == []


def test_longest(database: Database) -> None:
    usual = hot.functions("(= run 1)", False)(database)
    (pay,) = (function for function in usual if function.name == "app.pay")
    found = slow.longest(database, EVERY, pay, usual[pay])
    assert [call.duration // NS_PER_UNIT for call in found[:4]] == [100_000, 91_000, 51_000, 2000]
    assert len(found) == 33
    calls = slow.SlowCalls(None, found[:2], whole=False)
    assert [calls.step(step) for step in (-1, 1, 1, 1, -1, -1)] == [
        None, found[0], found[1], None, found[0], None,
    ]  # fmt: skip


# ---- the list ----


def listing(rows: dict[str, tuple[int | None, int | None]], subject: object = 1) -> Listing:
    columns = (Column("name", "f"), Column("calls", "c", str), Column("own", "o", "{}ns".format))
    listed = Listed(subject, lambda database: [])
    made = Listing("title", columns, {"enter": Action("goes", lambda entry: None)}, listed, sort=2)
    made.take([Entry(name, (name, *numbers)) for name, numbers in rows.items()])
    return made


def screen(list: Listing, width: int = 60, height: int = 8) -> str:
    canvas = list.render((width, height))
    return "\n".join(row.decode().rstrip() for row in canvas.text)


ROWS: dict[str, tuple[int | None, int | None]] = {"one": (7, 10), "two": (9, 80), "three\x1b[0m": (8, None)}


def test_a_list_is_sorted_by_any_column() -> None:
    list = listing(ROWS)

    def order() -> str:
        return " ".join(line.split()[0] for line in screen(list).splitlines()[1:4])

    assert order() == r"two one three\x1b[0m"
    for key, expected in (
        ("o", r"one two three\x1b[0m"), ("c", r"two three\x1b[0m one"), ("f", r"one three\x1b[0m two"),
        ("f", r"two three\x1b[0m one"), ("right", r"two three\x1b[0m one"), ("left", r"one three\x1b[0m two"),
    ):  # fmt: skip
        list.keypress((60, 8), key)
        assert order() == expected
    assert "f c o: sort" in screen(list)


def test_a_list_keeps_its_row_when_it_is_renewed() -> None:
    list = listing(ROWS)
    list.keypress((60, 8), "j")
    assert list.current is not None
    assert list.current.id == "one"
    list.take([Entry(name, (name, 1, own)) for name, own in (("new", 99), ("one", 20), ("two", 90))])
    assert list.current.id == "one"
    assert screen(list).splitlines()[3].split()[:3] == ["one", "1", "20ns"]
    again = listing({})
    again.resume(list)
    assert again.current == list.current
    other = listing({}, subject=2)
    other.resume(list)
    assert other.current is None


def test_a_list_is_searched_and_left() -> None:
    list = listing({f"f{number}": (number, number) for number in range(50)})
    for key in ("f", "/", "4", "[", "backspace", "$", "enter"):
        list.keypress((60, 8), key)
    assert list.current is not None
    seen = []
    for key in ("n", "n", "N"):
        list.keypress((60, 8), key)
        seen.append(list.current.id)
    assert seen == ["f24", "f34", "f24"]
    assert "/4$" in screen(list)
    for key in ("G", "page up", "k", "g", "nonsense"):
        list.keypress((60, 8), key)
        screen(list)
    assert (list.current.id, list.done) == ("f0", False)
    list.mouse("mouse press", 1, 2)
    assert list.current.id == "f1"
    list.mouse("mouse press", 1, 2)
    assert list.done
    assert list.result is not None
    left = listing(ROWS)
    left.keypress((60, 8), "q")
    assert (left.done, left.result) == (True, None)
    for size in ((1, 1), (10, 3), (20, 5), (200, 50)):
        listing(ROWS).render(size)
        listing({}).render(size)
