"""Ways through a recording, compared with what a walk over all of its events finds."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import EVERY, INDEX_BITS, Query
from pytracer.reader.rows import Row
from pytracer.reader.screen import exceptions, navigation, pages

from dumping import wait_for
from handmade import EPOCH_NS, Handmade, event
from recording import record
from recut import recut

PROGRAM = """
import asyncio, os, signal, sys, threading
from pytracer import log

class Order:
    def __init__(self, user):
        self.user = user

    def pay(self, amount):
        log("paid", amount=amount)
        return price(amount)

def price(amount):
    return amount * 2

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def numbers(name, count):
    for n in range(count):
        yield price(n)
    return name

def tree(n):
    if n:
        yield from tree(n - 1)
    yield n
    if n:
        yield from tree(n - 1)

def patient():
    try:
        yield 1
    except ValueError:
        price(6)
    yield 2

def fails(n):
    if n == 0:
        raise ValueError("low")
    fails(n - 1)

def cleans():
    try:
        fails(3)
    finally:
        price(1)

def exceptions():
    try:
        cleans()
    except ValueError:
        try:
            raise KeyError("other")
        except KeyError:
            pass
    thrown = patient()
    next(thrown)
    thrown.throw(ValueError("thrown"))
    thrown.close()
    closed = patient()
    next(closed)
    closed.close()
    try:
        fails(30)
    except ValueError:
        pass

def work(user):
    fib(6)
    for amount in range(4):
        Order(user).pay(amount)
    list(tree(3))
    list(zip(numbers("a", 5), numbers("b", 5)))
    exceptions()

async def step(n):
    await asyncio.sleep(0)
    return price(n)

async def several():
    return await asyncio.gather(*[step(n) for n in range(5)])

if sys.argv[1] == "killed":
    def deep(n):
        fib(3)
        if n == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        deep(n - 1)
    deep(9)

def handed(count):
    for n in range(count):
        yield n

asyncio.run(several())
shared = handed(9)
next(shared)
threads = [threading.Thread(target=work, args=(user,), name=user) for user in ("bob", "eve")]
threads.append(threading.Thread(target=lambda: [next(shared), next(shared)], name="other"))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
def fork():
    return os.fork()
if fork() == 0:
    work("child")
    os._exit(0)
os.wait()
list(shared)
"""

ENTERS, LEAVES = ("call", "resume", "throw"), ("return", "exception", "yield")


# ---- recordings ----------------------------------------------------------------------------------


@pytest.fixture(name="whole", scope="module")
def whole_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: one that ends, and one that is killed in the middle."""
    folder = tmp_path_factory.mktemp("moves")
    record(folder, PROGRAM, "--no-stdlib", args=("all",))
    path = record(folder, PROGRAM, "--no-stdlib", args=("killed",), status=-signal.SIGKILL).database

    def finished() -> bool:
        database = Database(str(path))
        runs = database.runs()
        database.close()
        return len(runs) == 2 and runs[1].finished is not None

    wait_for(finished, "the second run has ended")
    return path


PARAMS = ["whole", "segments of three events", "with losses", "with lines"]


@pytest.fixture(name="found", params=PARAMS, scope="module")
def found_fixture(request: pytest.FixtureRequest, whole: Path) -> Iterator[Found]:
    path = whole
    if request.param != "whole":
        path = whole.with_name(request.param.replace(" ", "-") + ".sqlite")
        chance = Random(1)
        recut(
            whole,
            path,
            3,
            lose=chance if "losses" in request.param else None,
            lines=chance if "lines" in request.param else None,
        )
    database = Database(str(path))
    yield Found(database)
    database.close()


class Found:
    """A database, and all of its events by a walk from the first to the last."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.rows, ended = pages.after(database, EVERY, None, 1_000_000)
        assert ended
        assert self.rows == sorted(self.rows, key=position)
        self.threads: dict[tuple[int, int, int], list[Row]] = {}
        self.own: dict[int, Row | None] = {}  # by an event's id: what entered its function
        self.outer: dict[int, Row | None] = {}  # what entered the one that called that
        stacks: dict[tuple[int, int, int], dict[int, Row]] = {}
        for row in self.rows:
            self.threads.setdefault(thread(row), []).append(row)
            stack = stacks.setdefault(thread(row), {})
            kind, depth = row[6], row[11]
            for level in [level for level in stack if level >= depth + (kind not in ENTERS)]:
                del stack[level]
            if kind in ENTERS:
                stack[depth] = row
            self.own[row[0]] = stack.get(depth)
            self.outer[row[0]] = stack.get(depth - 1)
            if kind in LEAVES:
                own = stack.pop(depth, None)
                if own and own[7:10] != row[7:10]:
                    self.own[row[0]] = None  # its own beginning is lost

    def some(self, seed: int, *kinds: str, count: int = 150) -> list[Row]:
        """Events of these kinds; of all kinds without."""
        rows = [row for row in self.rows if not kinds or row[6] in kinds]
        return Random(seed).sample(rows, min(count, len(rows)))

    def later(self, row: Row, backwards: bool = False) -> list[Row]:
        """The events of its thread behind it, or before, the nearest first."""
        events = self.threads[thread(row)]
        at = events.index(row)
        return events[:at][::-1] if backwards else events[at + 1 :]

    # what the moves should find

    def caller(self, row: Row) -> Row | None:
        return self.outer[row[0]] if row[6] in ENTERS + LEAVES else self.own[row[0]]

    def left(self, row: Row) -> Row | None:
        """The event that left the function, or the next one outside of it."""
        return next((e for e in self.later(row) if e[6] in ENTERS + LEAVES and e[11] <= row[11]), None)

    def callees(self, row: Row) -> list[Row]:
        own = self.own[row[0]]
        if own is None:
            return []
        end = row if row[6] in LEAVES else self.left(row)
        first, last = position(own), position(end) if end else (1 << 63, 0)
        return [
            e
            for e in self.later(own)
            if first < position(e) < last and e[6] in ENTERS and e[11] == row[11] + 1
        ]

    def first_callee(self, row: Row) -> Row | None:
        return next(iter(self.callees(row)), None)

    def last_callee(self, row: Row) -> Row | None:
        return next(reversed(self.callees(row)), None)

    def sibling(self, row: Row, backwards: bool) -> Row | None:
        start = (self.own[row[0]] or row) if backwards else row
        for e in self.later(start, backwards):
            if e[6] in ENTERS + LEAVES and e[11] < row[11]:
                return None
            if e[6] in ENTERS and e[11] == row[11]:
                return e
        return None

    def starts(self, row: Row) -> bool:
        """An exception starts with this event."""
        if row[6] != "raise":
            return False
        before = next((e for e in self.later(row, backwards=True) if e[6] != "line"), None)
        if before is None or before[13] != row[13]:
            return True
        closes = "GeneratorExit" in {arg["type"] for arg in json.loads(row[13])}
        return not (before[6] == "exception" or (before[6] == "throw" and closes))


def position(row: Row) -> tuple[int, int]:
    return row[2], row[0]


def thread(row: Row) -> tuple[int, int, int]:
    return row[1], row[3], row[4]


def args(row: Row) -> list[tuple[str, str]]:
    return [(arg["name"], arg["value"]) for arg in json.loads(row[13])]


# Conditions of queries, in SQL and in Python.
QUERIES: list[tuple[Query, Callable[[Row], bool]]] = [
    (EVERY, lambda row: True),
    (Query("run = ?", (1,)), lambda row: row[1] == 1),
    (Query("run = ? AND func = ?", (1, "fib")), lambda row: row[1] == 1 and row[8] == b"fib"),
    (Query("event MATCH ?", ('(not (like func "%r%"))',)), lambda row: b"r" not in row[8]),
    (Query("event MATCH ?", ("(or)",)), lambda row: False),
]


# ---- pages ---------------------------------------------------------------------------------------


def test_pages(found: Found) -> None:
    database = found.database
    for query, holds in QUERIES:
        rows = [row for row in found.rows if holds(row)]
        assert pages.before(database, query, None, 5) == (rows[-5:], len(rows) < 5)
        for here in found.some(1, count=25):
            later = [row for row in rows if position(row) > position(here)]
            earlier = [row for row in rows if position(row) < position(here)]
            for count in (1, 7):
                got, ended = pages.after(database, query, position(here), count)
                assert (got, ended) == (later[:count], len(later) < count)
                got, began = pages.before(database, query, position(here), count)
                assert (got, began) == (earlier[-count:], len(earlier) < count)
                assert pages.skip(database, query, position(here), count) == (later + [None] * 7)[count - 1]
                assert pages.skip(database, query, position(here), -count) == ([None] * 7 + earlier)[-count]
            assert pages.is_in(database, query, here[0]) == holds(here)
        assert not pages.is_in(database, query, 7)
    assert pages.skip(database, EVERY, position(found.rows[0]), 0) is None


def test_numbers(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(2)
    monkeypatch.setattr(pages, "_FAR", 20)  # a longer way is not gone event by event
    for query, holds in QUERIES:
        rows = [row for row in found.rows if holds(row)]
        few = sorted(random.sample(range(1, len(rows) + 1), min(len(rows), 40)))
        for number in {1, len(rows), *few} - {0}:
            assert pages.nth(found.database, query, number) == (rows[number - 1] if rows else None)
        assert pages.nth(found.database, query, len(rows) + 1) is None
        assert pages.nth(found.database, query, 0) is None
        for here in found.some(7, count=40):
            passed = len([row for row in rows if position(row) < position(here)])
            assert pages.earlier(found.database, query, position(here)) == passed
            for count in (-99, -21, 21, 99):
                number = passed + count + (1 if holds(here) and count > 0 else 0) - (count > 0)
                there = rows[number] if 0 <= number < len(rows) else None
                assert pages.skip(found.database, query, position(here), count) == there
        assert pages.earlier(found.database, query, (2**63 - 1, 0)) == len(rows)
        assert pages.earlier(found.database, query, (0, 0)) == 0


# ---- by structure --------------------------------------------------------------------------------


def test_structure(found: Found) -> None:
    seen: set[tuple[str, bool]] = set()
    for row in [*found.some(3), *[events[0] for events in found.threads.values()]]:
        wanted = {
            navigation.caller: found.caller(row),
            navigation.first_callee: found.first_callee(row),
            navigation.last_callee: found.last_callee(row),
            navigation.next_sibling: found.sibling(row, False),
            navigation.previous_sibling: found.sibling(row, True),
        }
        for move, meant in wanted.items():
            assert move(found.database, row) == meant, (move.__name__, row)
            seen.add((move.__name__, meant is None))
    assert len(seen) == 10


def test_partners_belong_to_each_other(found: Found) -> None:
    """Of a call and its end: function and duration say so. That it is the right one of several:
    below."""
    ended = 0
    for row in found.some(4, "call", "return", "exception", count=300):
        other = navigation.partner(found.database, row)
        if other is None:
            continue
        ended += 1
        call, end = (row, other) if row[6] == "call" else (other, row)
        assert (call[6], end[6]) in (("call", "return"), ("call", "exception"))
        assert call[7:11] == end[7:11]
        assert end[12] is not None
        assert 0 <= end[2] - end[12] - call[2] <= 1
        if found.own[end[0]] is call:  # it is no generator
            assert call[11] == end[11]
        if call[3] == end[3]:  # else a forked process ended it, too
            assert navigation.partner(found.database, other) == row
    assert ended > 100
    for row in found.some(5, "raise", "log"):
        assert navigation.partner(found.database, row) == found.own[row[0]]


@pytest.fixture(name="first_run")
def first_run_fixture(whole: Path) -> Iterator[Found]:
    database = Database(str(whole))
    yield Found(database)
    database.close()


def test_every_end_has_its_call(first_run: Found) -> None:
    database, rows = first_run.database, first_run.rows
    for row in rows:
        if row[6] in ("return", "exception"):
            call = navigation.partner(database, row)
            assert call is not None
            if row[8] == b"numbers" and row[6] == "return":  # its own name
                assert args(row)[0][1] == args(call)[0][1]
    killed = [row for row in rows if row[1] == 2 and row[8] == b"deep"]
    assert len(killed) == 10
    assert [navigation.partner(database, row) for row in killed] == [None] * 10
    assert navigation.last_callee(database, killed[0]) == killed[1]
    assert [navigation.caller(database, row) for row in killed[1:]] == killed[:-1]


def test_generators_go_on_where_they_yielded(first_run: Found) -> None:
    """That of one function several are paused at different depths does not confuse them."""
    (bob, *_) = [events for events in first_run.threads.values() if events[0][5] == b"bob"]
    walk = [row for row in bob if row[8] == b"tree"]
    yields = [row for row in walk if row[6] == "yield"]
    assert len(yields) > 30
    for row in yields:
        resumed = navigation.partner(first_run.database, row)
        later = [e for e in walk if position(e) > position(row) and e[11] == row[11] and e[6] == "resume"]
        assert resumed == later[0]
        assert navigation.partner(first_run.database, resumed) == row
    other = next(row for row in first_run.rows if row[8] == b"handed" and row[5] == b"other")
    before = navigation.partner(first_run.database, other)  # in another thread
    assert before is not None
    assert (before[5], before[6]) == (b"MainThread", "yield")
    assert args(before) == [("yield value", "0")]


def test_a_forked_process_ends_a_call_of_its_parent(first_run: Found) -> None:
    ends = [row for row in first_run.rows if row[8] == b"fork" and row[6] == "return"]
    assert len({row[3] for row in ends}) == 2
    (call,) = {navigation.partner(first_run.database, row) for row in ends}
    assert call is not None
    (parent,) = [row for row in ends if row[3] == call[3]]
    assert navigation.partner(first_run.database, call) == parent


# ---- next of something ---------------------------------------------------------------------------


@pytest.mark.parametrize("backwards", [False, True])
def test_next_of_something(found: Found, backwards: bool) -> None:
    starts = [row for row in found.rows if found.starts(row)]
    for query, holds in QUERIES:
        shown = [row for row in found.rows if holds(row)]
        lost = [row for row in shown if row[6] == "lost"]
        slow = [row for row in shown if row[6] in ("return", "exception") and (row[12] or 0) >= 20_000]
        for row in found.some(6, count=20):
            same_thread = [e for e in shown if thread(e) == thread(row)]
            same_function = [
                e for e in shown if e[7:10] == row[7:10] and (e[10] == row[10] or not have_lines(e, row))
            ]
            wanted: list[tuple[Callable[..., Row | None], list[Row]]] = [
                (navigation.next_of_thread, same_thread),
                (navigation.next_of_function, same_function),
                (partial(exceptions.next_exception, every=True), [e for e in starts if holds(e)]),
                (partial(navigation.next_slow, nanoseconds=20_000), slow),
                (navigation.next_loss, lost),
            ]
            for name, value in args(row)[:1]:
                same_value = [e for e in shown if (name, value) in args(e)]
                wanted.append((partial(navigation.next_of_value, name=name, value=value), same_value))
            for move, rows in wanted:
                assert move(found.database, query=query, row=row, backwards=backwards) == nearest(
                    rows, row, backwards
                ), (move, row)


def nearest(rows: list[Row], row: Row, backwards: bool) -> Row | None:
    """Of rows in order: the first behind a row, or the last before it."""
    if backwards:
        return max((e for e in rows if position(e) < position(row)), key=position, default=None)
    return min((e for e in rows if position(e) > position(row)), key=position, default=None)


def have_lines(*rows: Row) -> bool:
    """The events say where their functions begin."""
    return all(row[6] in ENTERS + LEAVES for row in rows)


def test_an_exception_is_found_where_it_starts(first_run: Found) -> None:
    """And not in each of the thirty functions that it passes through."""
    (bob, *_) = [events for events in first_run.threads.values() if events[0][5] == b"bob"]
    query = Query("run = ? AND tid = ?", (1, bob[0][4]))
    found = []
    row: Row | None = bob[0]
    while row := exceptions.next_exception(first_run.database, query, row, False):
        found.append((row[8].decode(), args(row)[0][1]))
    assert [each for each in found if "StopIteration" not in each[1]] == [
        ("fails", "ValueError('low')"),
        ("exceptions", "KeyError('other')"),
        ("patient", "ValueError('thrown')"),
        ("fails", "ValueError('low')"),
    ]


# ---- by hand -------------------------------------------------------------------------------------


def test_events_at_one_time(tmp_path: Path) -> None:
    """Of two threads, in several segments: only ids tell them apart."""
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.thread(run, 2, 102, "worker")
        made.code(run, 1, "f", ["n"])
        nested = [event("call", 1, n) for n in range(4)] + [event("return", 1, n) for n in (3, 2, 1, 0)]
        for sequence in range(3):
            for stream in (1, 2):
                made.segment(run, nested, stream=stream, sequence=sequence, start=10)
    database = Database(str(tmp_path / "traces.sqlite"))
    found = Found(database)
    assert {row[2] for row in found.rows} == {EPOCH_NS + 40}
    assert len(found.rows) == 48
    for number, row in enumerate(found.rows):
        here = position(row)
        assert pages.after(database, EVERY, here, 48) == (found.rows[number + 1 :], True)
        assert pages.before(database, EVERY, here, 48) == (found.rows[:number], True)
        assert pages.skip(database, EVERY, here, 3) == (found.rows[number:] + [None] * 3)[3]
        assert pages.skip(database, EVERY, here, -3) == ([None] * 3 + found.rows)[number]
        assert pages.nth(database, Query("run = ?", (run,)), number + 1) == row
        ((segment, index),) = [divmod(row[0], 1 << INDEX_BITS)]
        assert navigation.partner(database, row) == one_of(found, segment, 7 - index)
        assert navigation.caller(database, row) == one_of(found, segment, min(index, 7 - index) - 1)
        assert navigation.previous_sibling(database, row) == found.sibling(row, True)
        assert navigation.next_sibling(database, row) == found.sibling(row, False)
    database.close()


def one_of(found: Found, segment: int, index: int) -> Row | None:
    return next((row for row in found.rows if row[0] == (segment << INDEX_BITS) + index), None)


def test_names_that_no_terminal_knows(tmp_path: Path) -> None:
    """Lone surrogates, quotes, NUL: the next event of such a function, of such a value."""
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, 1, 'a"\\b', ['x"\\'])
        made.code(run, 2, "c", ["x"])
        made("UPDATE code SET file = CAST(? AS TEXT) WHERE number = 2", (b"/a\xff\xed\xa0\x80'.py",))
        made.code(run, 3, "c", ["x"], line=5)
        made.segment(run, [event("call", number, 'quote"\\\ud800\0') for number in (1, 2, 3, 1, 2, 3)])
    database = Database(str(tmp_path / "traces.sqlite"))
    rows, _ = pages.after(database, EVERY, None, 9)
    for number in (0, 1, 2):
        here, there = rows[number], rows[number + 3]
        assert navigation.next_of_function(database, EVERY, here, False) == there
        assert navigation.next_of_function(database, EVERY, there, True) == here
    for here, there in ((0, 3), (1, 2), (2, 4)):
        ((name, value),) = args(rows[here])
        assert navigation.next_of_value(database, EVERY, rows[here], name, value, False) == rows[there]
    database.close()


def test_an_empty_database(tmp_path: Path) -> None:
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run(finished=False)
    database = Database(str(tmp_path / "traces.sqlite"))
    query = Query("run = ?", (run,))
    assert pages.after(database, query, None, 9) == ([], True)
    assert pages.before(database, query, None, 9) == ([], True)
    assert pages.nth(database, query, 1) is None
    database.close()
