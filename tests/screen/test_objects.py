"""The events of an object during its life, and the return that produced a value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import EVERY, one
from pytracer.reader.rows import Row
from pytracer.reader.screen import objects, pages
from pytracer.reader.screen.commands.moving import go
from pytracer.reader.screen.detail import detail, detail_lines
from pytracer.reader.screen.effects import Choose, RunTask, Say
from pytracer.reader.screen.lines import DisplayOptions, Liner
from pytracer.reader.screen.view import Item

from handmade import Handmade, event, instance, value
from messages import trace_pb2
from sessions import Reader

INIT, BASE, PAY, PRICE, MAIN = range(1, 6)
ORDER, CART = 1, 2  # types
AT = 0x7F0000000010


def thing(kind: int = ORDER, at: int = AT) -> trace_pb2.Value:
    return trace_pb2.Value(address=at, type=kind)


def born(kind: int = ORDER) -> list[trace_pb2.Event]:
    """Its type calls the `__init__` that it inherits."""
    return [
        event("call", INIT, thing(kind), time=1),
        event("call", BASE, thing(kind), time=1),
        event("return", BASE, None, time=1, elapsed=1),
        event("return", INIT, None, time=1, elapsed=3),
    ]


def paid(*values: object) -> list[trace_pb2.Event]:
    return [event("call", PAY, *values, time=1), event("return", PAY, None, time=1, elapsed=1)]


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    """Three objects at one address, one of them in a list; another object; and plain values."""
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, INIT, "Order.__init__", ["self"])
        made.code(run, BASE, "Base.__init__", ["self"])
        made.code(run, PAY, "pay", ["order", "others"])
        made.code(run, PRICE, "price", ["n"])
        made.code(run, MAIN, "main")
        made.type(run, ORDER, "app.Order")
        made.type(run, CART, "app.make.<locals>.Cart")
        made.segment(
            run,
            [
                event("call", MAIN, time=1),
                *paid(thing(), 0),  # its birth was not recorded
                *born(),
                *paid(1, [thing()]),
                *paid(thing(at=AT + 16), "<app.Order at 0x7f0000000010>"),
                *born(CART),
                *paid(thing(CART), 2),
                *born(),
                event("call", PRICE, 7, time=1),
                event("return", PRICE, value("price 7"), time=1, elapsed=1),
                *paid(thing(), "price 7"),
                event("return", MAIN, None, time=1, elapsed=99),
            ],
        )
    return tmp_path / "traces.sqlite"


@pytest.fixture(name="database")
def database_fixture(path: Path) -> Iterator[Database]:
    database = Database(str(path))
    yield database
    database.close()


def every(database: Database) -> list[Row]:
    return pages.after(database, EVERY, None, 1000)[0]


def test_objects_in() -> None:
    assert objects.objects_in("[<app.A at 0x1>, {'x': <app.f.<locals>.B at 0x2f>}, <app.A at 0x1>]") == [
        "<app.A at 0x1>",
        "<app.f.<locals>.B at 0x2f>",
    ]
    assert objects.objects_in("'<app.A at 0x1>'") == []
    assert objects.objects_in("<function f>") == []


def test_lives(database: Database) -> None:
    """Of each object all events, and none of the others at its address."""
    rows = every(database)
    order, cart = "<app.Order at 0x7f0000000010>", "<app.make.<locals>.Cart at 0x7f0000000010>"
    births = [row for row in rows if row[8] == b"Order.__init__" and row[6] == "call"]
    lives = {}
    for row in rows:
        for shown in (order, cart):
            if f'"{shown}"' in row[13] or f"[{shown}]" in row[13]:
                found = objects.life(database, row, shown)
                events, _ = objects.appearances(database, found, row, 100)
                assert row in events
                lives.setdefault(tuple(each[0] for each in events), found.birth)
    assert [*lives.values()] == [None, *births]
    assert [len(ids) for ids in lives] == [1, 3, 3, 3]
    assert len({id for ids in lives for id in ids}) == 10


def test_around(database: Database) -> None:
    """Of many events the first one, and those around an event."""
    rows = every(database)
    last = [row for row in rows if row[8] == b"pay" and row[6] == "call"][-1]
    found = objects.life(database, last, "<app.Order at 0x7f0000000010>")
    events, are_more = objects.appearances(database, found, last, 2)
    assert are_more
    assert events == [found.birth, rows[rows.index(last) - 5], last]


def test_produced(database: Database) -> None:
    rows = every(database)
    call = next(row for row in rows if "price 7" in row[13] and row[6] == "call")
    found = objects.produced(database, call, "'price 7'")
    assert found is not None
    assert (found[6], found[8]) == ("return", b"price")
    assert objects.produced(database, call, "8") is None
    assert objects.produced(database, rows[0], "8") is None


def test_commands(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    reader = Reader(path)
    cart = next(row for row in every(reader.database) if row[8] == b"pay" and "Cart" in row[13])
    reader.done(RunTask(go(reader.session, cart)))
    (menu,) = reader.press("o")
    assert isinstance(menu, Choose)
    assert [choice.label for choice in menu.choices] == [
        "order = <app.make.<locals>.Cart at 0x7f0000000010>",
        "others = 2",
    ]
    (events,) = reader.done(menu.chosen(menu.choices[0].value))
    assert isinstance(events, Choose)
    assert events.title.endswith("3 events, from its birth on")
    labels = [choice.label for choice in events.choices]
    assert labels == [
        "a filter for its events",
        "-> Order.__init__  self",
        "-> Base.__init__  self",
        "-> pay  order",
    ]
    reader.done(events.chosen(events.choices[1].value))
    birth = one(reader.database, reader.id)
    assert birth is not None
    assert birth[8] == b"Order.__init__"
    reader.done(events.chosen(events.choices[0].value))
    assert [item.row[0] for item in reader.session.browser.items] == [
        each.value[0] for each in events.choices[1:]
    ]
    (nothing,) = reader.press("A")
    assert isinstance(nothing, Say)
    assert "no earlier event" in nothing.text
    reader.database.close()


def test_where_an_exception_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arguments of the function are offered, too."""
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    error = value(ValueError("bad"))
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, INIT, "Order.__init__", ["self"])
        made.code(run, PAY, "Order.pay", ["self", "amount"])
        made.type(run, ORDER, "app.Order")
        made.segment(
            run,
            [
                event("call", INIT, thing(), time=1),
                event("return", INIT, None, time=1, elapsed=1),
                event("call", PAY, thing(), 7),
                event("raise", PAY, error),
                event("exception", PAY, error, time=1, elapsed=1),
            ],
        )
    reader = Reader(tmp_path / "traces.sqlite")
    for kind in ("raise", "exception"):
        row = next(row for row in every(reader.database) if row[6] == kind)
        reader.done(RunTask(go(reader.session, row)))
        (menu,) = reader.press("o")
        assert isinstance(menu, Choose)
        assert [choice.label for choice in menu.choices] == [
            "exception = ?('bad')",
            "self = <app.Order at 0x7f0000000010>",
            "amount = 7",
        ]
        (events,) = reader.done(menu.chosen(menu.choices[1].value))
        assert isinstance(events, Choose)
        labels = [choice.label for choice in events.choices[1:]]
        assert labels == ["-> Order.__init__  self", "-> Order.pay  self"]


# ---- with attributes --------------------------------------------------------------------------


@pytest.fixture(name="full")
def full_fixture(tmp_path: Path) -> Path:
    """An object from its birth on, as its attributes change, beside another one."""
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, INIT, "Order.__init__", ["self"])
        made.code(run, PAY, "pay", ["order", "others"])
        made.type(run, ORDER, "app.Order")
        made.type(run, 7, "app.Order", ["user", "note", "next"])
        other = thing(at=AT + 16)
        made.segment(
            run,
            [
                event("call", INIT, thing(), time=1),
                event("return", INIT, None, time=1, elapsed=1),
                event("call", INIT, instance(7, AT + 16, "mia", None, thing()), time=1),
                event("return", INIT, None, time=1, elapsed=1),
                *paid(instance(7, AT, "bob", "two\nlines", other), 0),
                *paid(instance(7, AT, "eve", None, other, length=5), [thing()]),
                *paid(instance(7, AT + 16, "eve", None, None), 0),
            ],
        )
    return tmp_path / "traces.sqlite"


def test_an_object_with_attributes_is_followed(full: Path) -> None:
    database = Database(str(full))
    rows = every(database)
    row = rows[4]
    address = objects.shown(json.loads(row[13])[0])
    assert address == f"<app.Order at {AT:#x}>"
    life = objects.life(database, row, address)
    assert life.birth == rows[0]  # the other one's has it as an attribute
    found, are_more = objects.appearances(database, life, row, 100)
    assert (found, are_more) == ([rows[0], rows[2], rows[4], rows[6]], False)
    assert objects.names_of(rows[6], address) == ["order", "others"]
    assert objects.attributes_of(row) == [("order.next", f"<app.Order at {AT + 16:#x}>")]
    database.close()


def test_attributes_on_the_screen(full: Path) -> None:
    """Short in a line, each on a line of the pane."""
    database = Database(str(full))
    row, cut = every(database)[4], every(database)[6]
    display = DisplayOptions()
    what = "".join(piece for _, piece in Liner(display, (), ()).what(row))
    assert what == "-> app.pay(order=Order(user='bob', note='two\\nlines', next=Order@0020), others=0)"
    shown = [line.text for line in detail_lines(detail(database, Item(row)), 100, display)]
    start = shown.index("arguments")
    assert shown[start + 1 : start + 8] == [
        f"  order    app.Order  <app.Order at {AT:#x}>",
        "    .user  str        'bob'",
        "    .note  str        'two\\nlines'",
        "    │ two",
        "    │ lines",
        f"    .next  app.Order  <app.Order at {AT + 16:#x}>",
        "  others   int        0",
    ]
    assert not [line for line in shown if "--attributes" in line]
    shown = [line.text.rstrip() for line in detail_lines(detail(database, Item(cut)), 100, display)]
    assert "    ..." in shown
    database.close()
