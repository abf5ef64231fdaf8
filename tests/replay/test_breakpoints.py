"""Breakpoints: each stops wherever its place is met and its condition holds, forwards and
backwards: at the same events as if each event of the place is asked for its variables."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.replay import breakpoints
from pytracer.reader.replay.breakpoints import Breakpoint, BreakpointError, Stop, Watch, parse, resume
from pytracer.reader.replay.history import History
from pytracer.reader.replay.moment import Moment
from pytracer.reader.replay.state import variables
from test_hits import GENERATORS, LOOP

from recording import Record, Recording, write

SHOP = """
import threading
class Order:
    def __init__(self, user, total):
        self.user, self.total = user, total
    def pay(self, amount):
        self.total -= amount
        return self.total
    @property
    def is_paid(self): return self.total == 0
class Cart:
    def pay(self, amount):
        return amount
def work(name):
    order = Order(name, 10)
    for amount in range(5):
        order.pay(amount)
        Cart().pay(amount)
    return order
work('bob')
work('eve').is_paid
thread = threading.Thread(target=work, args=('mallory',), name='worker')
thread.start()
thread.join()
"""


def history(recording: Recording) -> History:
    database = Database(str(recording.database))
    return History(database, database.runs()[-1].id)


def walk(
    of: History, wanted: Sequence[Breakpoint | Watch], backwards: bool = False, **how: object
) -> list[Stop]:
    """All stops from one end of the run to the other."""

    def stops() -> Iterator[Stop]:
        moment = of.first(backwards)
        while moment is not None:
            stop = resume(of, moment, wanted, backwards, **how)  # type: ignore[arg-type]
            if stop is None:
                return
            yield stop
            moment = stop.moment

    return list(stops())


def ids(stops: list[Stop]) -> list[int]:
    return [stop.moment.id for stop in stops]


def one_by_one(of: History, breakpoint: Breakpoint) -> list[int]:
    """The stops of a breakpoint without the last one's and first one's place."""
    first = of.first()
    assert first is not None
    found = []
    for hit in of.hits(first, breakpoint.match):
        told = {each.name: each.value for each in variables(of.database, hit)}
        if breakpoint.condition is None or breakpoint.condition.holds(told):
            found.append(stop_of(of, hit).id)
    return found


def stop_of(of: History, hit: Moment) -> Moment:
    following = of.following(hit)
    has_lines = hit.kind == "call" and following and following.kind == "line" and following.depth == hit.depth
    return following if has_lines and following else hit


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        (LOOP, ["5", "5 i == 3", "5 total > 100 and i % 7 == 0", "5 last == 7", "8 last < i", "4 nothing",
                "work n == 3",
                "work if n > 5", "6 i == 59", "5 i == 0", "9 True", "10", "5 not last == 7"]),
        (GENERATORS, ["5 seen == 'a%'", "5 name == 'b' and i > 10", "4 i == 3", "9 i == 2 and n == 5",
                "9 i > 20", "5 i",
                      "21 name == 'c'", "count name == 'd'", "28 mark == 2", "outer depth == 0",
                      "alone n == 30", "26 depth"]),
        (SHOP, ["pay", "Order.pay amount > 2", "7 self.total == 4", "7 self.user == 'EVE%'",
                "17 order.total < 8",
                "18 name == 'mallory' and amount in (1, 3)", "__main__.Cart.pay", "Order.%",
                "%pay amount == 4",
                "is_paid", "17 order is not None", "17 type(order) == Order and amount == 0"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("near", [0, 1024])
def test_stops_are_those_of_all_events(
    record: Record, monkeypatch: pytest.MonkeyPatch, source: str, texts: list[str], near: int
) -> None:
    monkeypatch.setattr(breakpoints, "_NEAR", near)  # backwards: behind these it asks where it can hold
    recording = record(source, "--lines")
    of, script = history(recording), str(recording.script)
    first, last = of.first(), of.first(True)
    assert first is not None
    assert last is not None
    for text in texts:
        found = parse(text, of, script, 1)
        expected = one_by_one(of, found)
        assert ids(walk(of, [found])) == [id for id in expected if id != first.id], text
        assert ids(walk(of, [found], True)) == [id for id in expected[::-1] if id != last.id], text
        assert all(stop.reason is found for stop in walk(of, [found]))


def test_the_last_line_of_a_call_is_a_stop_once(record: Record) -> None:
    source = """
def work(items, n):
    items.append(n)
for i in range(3):
    work([], i)
"""
    recording = record(source, "--lines")
    of, script = history(recording), str(recording.script)
    stops = walk(of, [parse("3", of, script, 1)])
    assert [stop.moment.kind for stop in stops] == ["line"] * 3
    assert walk(of, [parse("3", of, script, 1)], True)[::-1] == stops
    watch = Watch("items", 1, "work", script)
    assert [stop.moment.kind for stop in walk(of, [watch])] == ["return"] * 3


def test_variables_of_any_name_and_value(record: Record) -> None:
    source = """
import collections
P = collections.namedtuple('P', 'x y')
def work(größe, i):
    text = 'ä\\n"\\udc80' + str(i)
    point = P(i, größe)
    größe = größe + i
    del text
    return größe
for i in range(20):
    work(i, 3)
def outer(free):
    def inner(n):
        m = n + free
        return m
    for n in range(5):
        free += inner(n)
    return free
outer(1)
async def wait(n):
    for i in range(n):
        k = i
    return k
import asyncio
async def all_of():
    await asyncio.gather(*[wait(n) for n in range(1, 6)])
asyncio.run(all_of())
"""
    recording = record(source, "--lines")
    of, script = history(recording), str(recording.script)
    texts = ["8 größe > 15", "7 größe == 4", "8 text == '%3'", "8 text == 'ä\\n\"%'", "8 point.x == 3"]
    texts += ["7 point[1] > 16", "9 not text == '%'", "14 free > 4", "15 m == 1", "14 free == 2 and n == 1"]
    texts += ["23 n == 4", "22 i == 2", "9 größe == 3"]
    for text in texts:
        found = parse(text, of, script, 1)
        expected = one_by_one(of, found)
        assert ids(walk(of, [found])) == expected, text
        assert ids(walk(of, [found], True)) == expected[::-1], text
        assert bool(expected) == (text not in ("9 not text == '%'",)), text


def test_several_breakpoints(record: Record) -> None:
    recording = record(SHOP, "--lines")
    of, script = history(recording), str(recording.script)
    some = [parse(text, of, script, 1) for text in ("7", "18 amount == 2", "Cart.pay amount > 3", "6")]
    expected = {id: each for each in some[::-1] for id in one_by_one(of, each)}
    times = {id: (at.time, id) for id in expected if (at := of.at(id))}
    order = sorted(expected, key=lambda id: times[id])
    assert ids(walk(of, some)) == order
    assert ids(walk(of, some, True)) == order[::-1]
    assert {stop.moment.id: stop.reason for stop in walk(of, some)} == expected
    off = [replace(each, enabled=False) for each in some]
    assert not walk(of, off)
    assert ids(walk(of, [*off[1:], some[0]])) == one_by_one(of, some[0])


def test_hit_counts(record: Record) -> None:
    recording = record(LOOP, "--lines")
    of, script = history(recording), str(recording.script)
    for text in ("5", "5 i % 2 == 1", "work", "work n < 50"):
        whole = parse(text, of, script, 1)
        expected = one_by_one(of, whole)
        for count in (1, 2, 10, 1000):
            some = replace(whole, hit_count=count)
            assert ids(walk(of, [some])) == expected[count - 1 :]
            assert ids(walk(of, [some], True)) == expected[count - 1 :][::-1]


def test_in_one_thread(record: Record) -> None:
    recording = record(SHOP, "--lines")
    of, script = history(recording), str(recording.script)
    for text in ("7", "7 amount > 1", "Order.pay amount > 1"):
        found = parse(text, of, script, 1)
        everywhere = walk(of, [found])
        for stream in {stop.moment.stream for stop in everywhere}:
            expected = [stop.moment.id for stop in everywhere if stop.moment.stream == stream]
            assert ids(walk(of, [found], stream=stream)) == expected
            assert ids(walk(of, [found], True, stream=stream)) == expected[::-1]


def test_uncaught_exceptions(record: Record) -> None:
    source = """
import sys
def fail(n):
    if n:
        fail(n - 1)
    raise ValueError(n)
try:
    fail(2)
except ValueError:
    pass
if len(sys.argv) > 1:
    sys.exit(3)
fail(1)
"""
    of = history(record(source, "--lines", status=1))
    [stop] = walk(of, [])
    assert (stop.moment.kind, stop.moment.func, stop.reason) == ("exception", "<module>", None)
    assert not walk(of, [], uncaught=False)
    assert not walk(history(record(source, "--lines", args=("x",), status=3)), [])


def test_watched_variables(record: Record) -> None:
    recording = record(LOOP, "--lines")
    of = history(recording)
    [first, *_] = recording.of("line", func="work")
    watch = Watch("last", first.depth, "work", str(recording.script))
    expected = [event.id for event in recording.of("line", func="work") if "last" in event.values]
    stops = walk(of, [watch])
    assert ids(stops) == expected
    assert len(expected) > 10
    assert all(stop.reason == watch for stop in stops)
    assert ids(walk(of, [watch], True)) == expected[::-1]


def test_without_lines(record: Record) -> None:
    recording = record(SHOP)
    of, script = history(recording), str(recording.script)
    first = parse("12", of, script, 1)
    assert ids(walk(of, [first])) == [event.id for event in recording.of("call", func="Cart.pay")]
    some = parse("Order.pay amount == 3", of, script, 1)
    assert len(walk(of, [some])) == 3
    with pytest.raises(BreakpointError, match=r"no lines were recorded .*--lines.*Order.pay at 6"):
        parse("7", of, script, 1)


def test_places(record: Record, tmp_path: Path) -> None:
    write(tmp_path, "shop/order.py", "def pay(n):\n    return n\n")
    write(tmp_path, "other/order.py", "def pay(n):\n    return n\n")
    source = "import sys\nsys.path.insert(0, '.')\nimport shop.order, other.order\n"
    source += "shop.order.pay(1)\nother.order.pay(2)\n"
    recording = record(source, "--lines")
    of, script = history(recording), str(recording.script)

    def places(text: str) -> list[tuple[str, int]]:
        stops = walk(of, [parse(text, of, script, 4)])
        return [(str(Path(stop.moment.file).relative_to(tmp_path)), stop.moment.line) for stop in stops]

    assert places("shop/order.py:2") == [("shop/order.py", 2)]
    assert places(f"{tmp_path}/other/order.py:2 n == 2") == [("other/order.py", 2)]
    assert places("script.py:5") == places("5") == [("script.py", 5)]
    assert places("") == places("  ") == [("script.py", 4)]
    assert places("if True") == [("script.py", 4)]
    assert places("pay") == [("shop/order.py", 2), ("other/order.py", 2)]
    assert places("other.order.pay") == [("other/order.py", 2)]
    assert places("p%y n == 1") == places("pay if n == 1") == [("shop/order.py", 2)]
    with pytest.raises(BreakpointError, match=r"several order.py: .*shop/order.py.*other/order.py"):
        parse("order.py:2", of, script, 1)


@pytest.mark.parametrize(
    ("text", "said", "position"),
    [
        ("7 total +", "cannot be read", None), ("7 amount = 3", "write ==", 9),
        ("pay if", "expected behind if", 6),
        ("99", "never ran.*Order.pay at 6", 0), ("11 ", "", None), ("19x", "is no line", 0),
        ("0", "no line 0", 0),
        ("orde.py:3", "no code of orde.py was recorded", 0), ("scrip.py:3", "did you mean script.py", 0),
        ("payy", "did you mean .*pay", 0), ("Order.pya", "did you mean Order.pay", 0),
        ("zzz", "a pattern has %", 0),
        ("8 f(x)", "only len", 2), ("script.py:7 a ||b", "write or", 14), ("9" * 30, "no line", 0),
        ("x" * 5000, "at most", None),
        ("shop/script.py", "a line is a number|no function", 0), ("pay (", "cannot be read", None),
    ],
)  # fmt: skip
def test_mistakes_name_the_way_out(record: Record, text: str, said: str, position: int | None) -> None:
    recording = record(SHOP, "--lines")
    of, script = history(recording), str(recording.script)
    if not said:
        parse(text, of, script, 1)
        return
    with pytest.raises(BreakpointError, match=said) as caught:
        parse(text, of, script, 1)
    assert position is None or caught.value.position == position


def test_lines_that_never_ran(record: Record) -> None:
    recording = record(
        "def f(x):\n    if x:\n        return 1\n    # nothing\n    return 2\nf(0)\n", "--lines"
    )
    of, script = history(recording), str(recording.script)
    with pytest.raises(BreakpointError, match=r"line 4 of script.py never ran; .* 1, 2, 5, 6"):
        parse("4", of, script, 1)


def test_a_search_can_be_interrupted(record: Record) -> None:
    recording = record(LOOP.replace("60", "3000"), "--lines")
    looks = 0

    def watch() -> None:
        nonlocal looks
        looks += 1
        if looks > 50:
            raise KeyboardInterrupt

    database = Database(str(recording.database), watch)
    of = History(database, 1)
    first = of.first()
    assert first is not None
    found = parse("5 i == -1", of, str(recording.script), 1)

    def often() -> None:
        for _ in range(100):
            resume(of, first, [found])

    with pytest.raises(KeyboardInterrupt):
        often()
