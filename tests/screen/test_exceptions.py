"""The ways of exceptions: where each was raised, and where it was caught, if it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import EVERY, Query
from pytracer.reader.rows import Row
from pytracer.reader.screen import exceptions, pages

from handmade import Handmade, event, value
from reader import Reads
from recording import record
from recut import recut

PROGRAM = """
import asyncio, contextlib, threading

def start(name):
    raise LookupError(name)

def deep(n, name):
    if n == 0:
        start(name)
    deep(n - 1, name)

def again(name):
    try:
        start(name)
    except LookupError as error:
        str(error)
        raise error

@contextlib.contextmanager
def context():
    try:
        yield
    except KeyError:
        pass

def inside(name):
    with context():
        start(name)

def retried(name):
    for _ in range(2):
        try:
            start(name)
        except LookupError:
            pass

def other(name):
    try:
        start(name)
    except LookupError:
        raise KeyError(name)

def caught(function, *arguments):
    try:
        function(*arguments)
    except (LookupError, SystemExit):
        pass

for function in (start, again, inside, retried, other):
    caught(function, function.__name__)
caught(deep, 20, "recursion")

class TestThings:
    def test_fails(self):
        start("test")

caught(TestThings().test_fails)

async def waits():
    await asyncio.sleep(0)
    again("task")

async def several():
    task = asyncio.create_task(waits())
    try:
        await task
    except LookupError:
        pass
    cancelled = asyncio.create_task(asyncio.sleep(9))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])

asyncio.run(several())
for target, *arguments in ((start, "thread"), (caught, start, "worker"), (exit, 3)):
    thread = threading.Thread(target=target, args=arguments)
    thread.start()
    thread.join()
raise SystemError("end")
"""


class Recorded:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.rows, _ = pages.after(database, EVERY, None, 1_000_000)
        self.has_tasks = any(row[14] for row in self.rows)

    def of(self, name: str, kind: str, func: str, place: int = 0) -> Row:
        """An event of the exception with this argument."""
        rows = [
            row for row in self.rows if row[6] == kind and row[8] == func.encode() and f"'{name}'" in row[13]
        ]
        return rows[place]


@pytest.fixture(
    name="recorded", params=["whole", "segments of three events", "with lines", "with C"], scope="module"
)
def recorded_fixture(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("exceptions")
    if request.param == "whole":
        path = record(folder, PROGRAM, status=1).database
    elif request.param == "with C":
        path = record(folder, PROGRAM, "--c-calls=all", status=1).database
    else:
        whole = record(folder, PROGRAM, "--no-stdlib", status=1).database
        path = folder / "short.sqlite"
        recut(whole, path, 3, lines=Random(1) if "lines" in request.param else None)  # which forgets tasks
    database = Database(str(path))
    yield Recorded(database)
    database.close()


def test_uncaught(recorded: Recorded) -> None:
    found, raised = None, []
    while found := exceptions.uncaught(recorded.database, EVERY, found):
        raised.append(found.raised)
    assert "SystemError('end')" in raised.pop(0)[13]
    names = ["thread", *(["task"] if recorded.has_tasks else []), "test"]
    assert raised == [recorded.of(name, "raise", "start") for name in names]


@pytest.mark.parametrize("name", ["start", "again", "inside", "retried", "recursion", "test"])
def test_way(recorded: Recorded, name: str) -> None:
    """From each event of an exception, to its first and to its last one."""
    start = recorded.of(name, "raise", "start")
    ends = {"retried": ("retried", 0)}
    end = recorded.of(name, "raise", *ends.get(name, ("caught", 0)))
    way = [row for row in recorded.rows if row[13] == start[13] and start[0] <= row[0] <= end[0]]
    assert len(way) > (40 if name == "recursion" else 2)
    for row in way:
        assert exceptions.raised(recorded.database, row) == start
        if row[8] not in (b"context", b"_GeneratorContextManager.__exit__"):
            assert exceptions.caught(recorded.database, row) == (end, True)


def test_same_again(recorded: Recorded) -> None:
    """A second exception with the same arguments is another one."""
    start, end = recorded.of("retried", "raise", "start", 1), recorded.of("retried", "raise", "retried", 1)
    assert exceptions.raised(recorded.database, end) == start
    assert exceptions.caught(recorded.database, start) == (end, True)


def test_other(recorded: Recorded) -> None:
    """An exception that a handler raises is another one."""
    both = [row for row in recorded.rows if row[8] == b"other" and row[6] == "raise"]
    caught, raised = both
    assert exceptions.raised(recorded.database, caught) == recorded.of("other", "raise", "start")
    assert exceptions.caught(recorded.database, recorded.of("other", "raise", "start")) == (caught, True)
    assert exceptions.raised(recorded.database, recorded.of("other", "raise", "caught")) == raised


def test_task(recorded: Recorded) -> None:
    """An exception goes from a task to the one that awaits it."""
    start, end = recorded.of("task", "raise", "start"), recorded.of("task", "raise", "several")
    assert exceptions.raised(recorded.database, end) == start
    assert exceptions.caught(recorded.database, start) == (end, True) or not recorded.has_tasks


def test_of_a_call(recorded: Recorded) -> None:
    call = next(row for row in recorded.rows if row[8] == b"deep")
    assert exceptions.passing(recorded.database, call) == recorded.of("recursion", "exception", "deep", -1)
    assert exceptions.passing(recorded.database, recorded.rows[0]) is not None  # the program
    returned = next(row for row in recorded.rows if row[6] == "return")
    assert exceptions.passing(recorded.database, returned) is None


def test_next(recorded: Recorded) -> None:
    """From start to start; those that a library catches where they begin only if all are wanted."""

    def starts(every: bool) -> list[Row]:
        found, row = [], recorded.rows[0]
        while next_one := exceptions.next_exception(recorded.database, EVERY, row, False, every):
            found.append(row := next_one)
        return found

    everywhere, chosen = starts(True), starts(False)
    assert [row for row in everywhere if row in chosen] == chosen
    own = [row for row in everywhere if row[9].endswith(b"script.py")]
    assert [row for row in chosen if row[9].endswith(b"script.py")] == own
    for row in everywhere:
        left = exceptions.caught(recorded.database, row)[0] != row
        assert (row in chosen) == (row in own or left), row


def test_fates(recorded: Recorded) -> None:
    """Which lines are of exceptions that nobody caught, once that is known."""
    fates = exceptions.Fates()
    thrown = recorded.of("thread", "raise", "start")
    assert fates.is_uncaught(thrown) is None
    while fates.since > -inf:
        fates = exceptions.more_fates(recorded.database, EVERY, fates, seconds=0)
        newest = fates.found[0].raised
        assert fates.is_uncaught(newest) is True
    uncaught = {row[13] for row in recorded.rows if fates.is_uncaught(row)}
    names = {"thread", "test", *(["task"] if recorded.has_tasks else [])}
    wanted = {recorded.of(name, "raise", "start")[13] for name in names}
    assert uncaught == {newest[13], *wanted}
    assert fates.is_uncaught(recorded.of("start", "raise", "start")) is False
    assert fates.is_uncaught(recorded.rows[0]) is None


@pytest.mark.parametrize("begins", ["in a library", "in own code"])
def test_next_where_its_beginning_is_not_shown(tmp_path: Path, begins: str) -> None:
    """The first event of the exception's way that is shown: one stop for each exception."""
    error, functions = value(ValueError("bad")), (1, 2, 3, 1, 4)  # 1 to 3: own code
    if begins == "in a library":
        functions = (1, 2, 3, 4, 4)
    left = [event(kind, code, error) for code in functions[:0:-1] for kind in ("raise", "exception")]
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        for code in (1, 2, 3, 4):
            made.code(run, code, f"f{code}", mine=code < 4)
        made.segment(run, [*(event("call", code) for code in functions), *left, event("raise", 1, error)])
    with closing(Database(str(tmp_path / "traces.sqlite"))) as database:
        rows, _ = pages.after(database, EVERY, None, 100)

        def stops(query: Query, backwards: bool, ends: bool = False) -> list[Row]:
            found, row = [], rows[-1 if backwards else 0]
            while next_one := exceptions.next_exception(
                database, query, row, backwards, every=False, ends=ends
            ):
                found.append(row := next_one)
            return found

        for where in ("mine = 1", "func = 'f2'", "func IN ('f2', 'f4')", "1"):
            query = EVERY.also(where)
            shown, _ = pages.after(database, query, None, 100)
            first = next(row for row in shown if row[6] == "raise")
            assert stops(query, False) == [first]
            assert stops(query, True) == [first]
        ends = EVERY.also("kind = 'exception'")
        assert stops(ends, False, ends=True) == [next(row for row in rows if row[6] == "exception")]


@pytest.mark.parametrize("backwards", [False, True])
def test_what_libraries_catch_is_passed_by_with_few_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backwards: bool
) -> None:
    events = [event("call", 1)]
    for _ in range(60):
        events += [event("call", 2), event("raise", 2, KeyError(1)), event("return", 2, 0, elapsed=2)]
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, 1, "main", mine=True)
        made.code(run, 2, "library")
        made.segment(run, [*events, event("return", 1, 0, elapsed=9)])
    questions = 0
    ask = Database.page

    def counted(self: Database, *arguments: Any, **options: Any) -> Any:
        nonlocal questions
        questions += 1
        return ask(self, *arguments, **options)

    monkeypatch.setattr(Database, "page", counted)
    with closing(Database(str(tmp_path / "traces.sqlite"))) as database:
        at = pages.after(database, EVERY, None, 200)[0][-1 if backwards else 0]
        assert exceptions.next_exception(database, EVERY, at, backwards) is None
        assert exceptions.next_exception(database, EVERY, at, backwards, every=True) is not None
    assert questions < 40


def thrown() -> list[Any]:
    """A function that an exception ends, and whose caller was not recorded."""
    error = value(ValueError("bad"))
    return [event("call", 2), event("raise", 2, error), event("exception", 2, error, elapsed=0)]


@pytest.mark.parametrize(("status", "found"), [(0, 0), (None, 0), (1, 1), (-9, 1)])
def test_the_caller_was_not_recorded(tmp_path: Path, status: int | None, found: int) -> None:
    """In the main thread it may have caught the exception; in other threads there is none."""
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made("UPDATE process SET exit_status = ?", (status,))
        made.code(run, 2, "function", mine=True)
        made.segment(run, thrown())
        assert uncaught(made.path) == found
        made.thread(run, 2, 101, "Worker")
        made.segment(run, thrown(), stream=2, start=10)
        assert uncaught(made.path) == found + 1


@pytest.mark.parametrize("tid", [100, 101])
def test_a_greenlet_is_no_thread(tmp_path: Path, tid: int) -> None:
    """It has a stream of its own while its thread goes on."""
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made("UPDATE process SET exit_status = 1")
        made.code(run, 1, "main", mine=True)
        made.code(run, 2, "function", mine=True)
        main = [event("call", 1), event("return", 1, time=100, elapsed=100)]
        for stream in (2, 3):
            made.thread(run, stream, tid, "Thread")
        made.segment(run, main, stream=2)
        made.segment(run, thrown(), stream=3, start=10)
        assert uncaught(made.path) == 0
        made.thread(run, 4, tid, "Thread")  # the number is used again
        made.segment(run, thrown(), stream=4, start=200)
        assert uncaught(made.path) == 1


def uncaught(path: Path) -> int:
    with closing(Database(str(path))) as database:
        found, count = None, 0
        while found := exceptions.uncaught(database, EVERY, found):
            count += 1
        return count


def test_a_click_goes_to_the_exception(reads: Reads, journal: Path) -> None:
    reader = reads(journal, columns=130, PYTRACE_VIEW="").settled()
    by_key = reads(journal, columns=130, PYTRACE_VIEW="").settled().press("E").settled()
    reader.click(1, reader.line(1).index("E goes there")).settled()
    assert reader.lines[1:-2] == by_key.lines[1:-2]
    assert "ValueError" in reader.current
