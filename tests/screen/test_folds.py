"""Folded calls: which events are shown, and as which lines, compared with a walk over all
events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import EVERY, Query
from pytracer.reader.rows import EVENT, Row
from pytracer.reader.screen import view as asking
from pytracer.reader.screen.view import ENTERS, LEAVES, Folds, Item, Span

from family import wait_until_finished
from recording import PYTRACE, record, run
from recut import recut

PROGRAM = """
import asyncio, os, threading
from pytracer import log

def leaf(n):
    if n % 3 == 0:
        raise ValueError(n)
    return n

def catches(n):
    try:
        leaf(n)
    except ValueError:
        log("caught", n=n)
    leaf(n - n % 3 + 1)

def tree(n):
    for i in range(n):
        tree(i)
    log("tree")

def numbers(n):
    catches(n)
    for i in range(n):
        yield leaf(3 * i + 1)
    yield from numbers(n - 1) if n else ()

def deeper(generator, n):
    return deeper(generator, n - 1) if n else next(generator)

def wanders():
    generator = numbers(3)
    for n in (0, 3, 1, 2):
        deeper(generator, n)
    generator.close()

async def sleeper(n):
    await asyncio.sleep(0)
    catches(n)
    await asyncio.sleep(0)
    return leaf(3 * n + 1)

async def gathers():
    await asyncio.gather(*map(sleeper, range(3)))

def passes(n):
    if n:
        passes(n - 1)
    else:
        leaf(0)

def works():
    wanders()
    tree(3)
    try:
        passes(3)
    except ValueError:
        pass

def main():
    log("begins")
    threads = [threading.Thread(target=works) for _ in range(2)]
    for thread in threads:
        thread.start()
    works()
    for thread in threads:
        thread.join()
    asyncio.run(gathers())
    stays(3)

def stays(n):
    catches(n)
    if n:
        stays(n - 1)
    os._exit(0)

log("outside")
main()
"""


@dataclass
class Meant:
    """What a walk over all events finds: what left each span, by what entered it; what encloses an
    event."""

    rows: list[Row]
    ends: dict[int, Row]
    around: dict[int, list[int]]  # the spans that an event is in, not as their first or last event

    def shown(self, folds: Folds) -> list[Row]:
        return [row for row in self.rows if not self._hidden(row, folds)]

    def _hidden(self, row: Row, folds: Folds) -> bool:
        return any(
            self.is_closed(id, folds)
            # if nothing is open, depth is 0, too
            and not (row[6] in ("log", "lost") and row[11] == self.by_id[id][11] and id not in folds.closed)
            for id in self.around[row[0]]
        )

    def is_closed(self, id: int, folds: Folds) -> bool:
        by_level = folds.level is not None and self.by_id[id][11] >= folds.level
        return id in folds.closed or (by_level and id not in folds.opened)

    def items(self, folds: Folds) -> list[Item]:
        shown = self.shown(folds)
        closed = {row[0] for row in shown if row[6] in ENTERS and self.is_closed(row[0], folds)}
        merged = {self.ends[id][0] for id in closed if id in self.ends}
        return [
            Item(row, row[0] in closed, self.ends.get(row[0]) if row[0] in closed else None)
            for row in shown
            if row[0] not in merged
        ]

    def span(self, id: int) -> Span:
        row, end = self.by_id[id], self.ends.get(id)
        return Span(
            *(row[1], row[3], row[4], row[11], id, end and end[0]), began=row[2], ended=end and end[2]
        )

    def __post_init__(self) -> None:
        self.by_id = {row[0]: row for row in self.rows}


def walk(rows: list[Row]) -> Meant:
    meant = Meant(rows, {}, {})
    threads: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for row in rows:
        open = threads[row[1], row[3], row[4]]
        meant.around[row[0]] = open[:]
        if row[6] in ENTERS:
            assert len(open) == row[11]
            open.append(row[0])
        elif row[6] in LEAVES:
            begin = open.pop()
            assert len(open) == row[11]
            assert meant.by_id[begin][7:11] == row[7:11]
            meant.ends[begin] = row
            meant.around[row[0]] = open[:]
    return meant


def ask(database: Database, query: Query = EVERY) -> list[Row]:
    sql = f"SELECT {EVENT} FROM event WHERE {query.where} ORDER BY time, id"
    return database.page(sql, query.parameters, lambda row: row, 1 << 30, float("inf")).made


def asked(folds: Folds) -> Query:
    query = EVERY
    where, parameters = folds.constraint()
    if where:
        query = query.also(where, *parameters)
    predicate = folds.predicate()
    return query.also("event MATCH ?", predicate) if predicate else query


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folds")
    whole = record(folder, PROGRAM, "--no-stdlib").database
    wait_until_finished(whole)
    # returns when all is stored: the program did not wait for that
    run([*PYTRACE, "print", str(whole), "--follow"], folder)
    recut(whole, folder / "pieces.sqlite", 7, lines=Random(3))
    return folder / "pieces.sqlite"


@pytest.fixture(scope="module")
def database(recorded: Path) -> Iterator[Database]:
    database = Database(str(recorded))
    yield database
    database.close()


@pytest.fixture(scope="module")
def meant(database: Database) -> Meant:
    rows = ask(database)
    assert {row[6] for row in rows} == {*ENTERS, *LEAVES, "raise", "log", "line"}
    return walk(rows)


def step(random: Random, database: Database, meant: Meant, folds: Folds) -> Folds:
    """A change of the folds, as a user would make it."""
    items = meant.items(folds)
    entered = [item for item in items if item.row[6] in ENTERS]
    closed = [item for item in entered if item.closed]
    choice = random.random()
    if choice < 0.4 and closed:
        row = random.choice(closed).row
        span = asking.span(database, row)
        assert span == meant.span(row[0])
        opened = folds.open(span)
        assert not opened.is_closed(row)
        return opened
    if choice < 0.7 and entered:
        row = random.choice(entered).row
        closed_again = folds.close(asking.span(database, row))
        assert closed_again.is_closed(row)
        return closed_again
    if choice < 0.9:
        row = random.choice(meant.rows)
        revealed = folds.reveal(row, asking.spans(database, row, folds))
        inside = [id for id in meant.around[row[0]] if meant.is_closed(id, revealed)]
        assert not inside
        assert row in meant.shown(revealed)
        return revealed
    return folds.at_level(random.choice([None, 0, 1, 2, 3, 5]))


def test_what_is_shown_is_what_a_walk_over_all_events_shows(database: Database, meant: Meant) -> None:
    random = Random(5)
    folds = Folds()
    hidden = 0
    for _ in range(100):
        folds = step(random, database, meant, folds)
        shown = meant.shown(folds)
        rows = ask(database, asked(folds))
        assert [row[0] for row in rows] == [row[0] for row in shown], folds
        expected = meant.items(folds)
        assert folds.items(rows) == expected, folds
        hidden += len(meant.rows) - len(rows)

        # a window of them: the same lines, once the outcomes from outside have been asked for
        first, last = sorted(random.choices(range(len(rows) + 1), k=2))
        window = rows[first:last]
        items = folds.items(window)
        outcomes = asking.outcomes(database, folds.pending(items))
        items = [item._replace(outcome=outcomes.get(item.row[0], item.outcome)) for item in items]
        here = {row[0] for row in window}
        assert items == [item for item in expected if item.row[0] in here]
        assert asking.strays(database, folds.unmatched(window)) == frozenset()
    assert hidden > 10_000  # it was about something


def test_all_that_a_level_closes_can_be_opened(database: Database, meant: Meant) -> None:
    folds = Folds().at_level(1)
    while closed := [item.row for item in folds.items(ask(database, asked(folds))) if item.closed]:
        for row in closed:
            folds = folds.open(asking.span(database, row))
    assert ask(database, asked(folds)) == meant.rows


def test_what_runs_is_open_ended_until_it_has_ended(database: Database, meant: Meant) -> None:
    """As in a recording that still goes on: what is known of a span may be older than its end."""
    calls = [row for row in meant.rows if row[6] == "call" and row[11] == 1]
    running = next(row for row in calls if row[0] not in meant.ends)
    ended = next(row for row in calls if row[0] in meant.ends)
    for row in (running, ended):
        unknown = meant.span(row[0])._replace(last=None)
        for folds in (Folds(level=1).open(unknown), Folds().close(unknown)):
            settled = asking.settled(database, folds)
            assert [*settled.opened.values(), *settled.closed.values()] == [meant.span(row[0])]
            assert folds.items(ask(database, asked(settled))) == meant.items(settled)
    assert asking.outcomes(database, [running, ended]) == {ended[0]: meant.ends[ended[0]]}


def test_what_lost_its_beginning_or_its_end(recorded: Path, tmp_path: Path) -> None:
    """Nothing that is not in a closed span is hidden, and no line is without its event."""
    for seed in range(3):
        path = tmp_path / f"{seed}.sqlite"
        recut(recorded, path, 3 + seed, Random(seed))
        database = Database(str(path))
        rows = ask(database)
        assert any(row[6] == "lost" for row in rows)
        check_with_losses(Random(seed), database, rows)
        database.close()


def check_with_losses(random: Random, database: Database, rows: list[Row]) -> None:
    for level in (None, 0, 1, 3):
        folds = Folds(level)
        entered = [row for row in rows if row[6] in ENTERS]
        for row in random.sample(entered, 10):
            span = asking.span(database, row)
            folds = random.choice([folds.open, folds.close])(span)
        shown = ask(database, asked(folds))
        gone = {row[0] for row in rows} - {row[0] for row in shown}
        spans = {id: asking.span(database, row) for row in rows if (id := row[0]) and folds.is_closed(row)}
        for row in rows:
            at_level = folds.level is not None and row[11] + (row[6] in ("raise", "line")) > folds.level
            if row[0] in gone and not at_level:
                assert any(span.covers(row) for span in spans.values())
        strays = asking.strays(database, folds.unmatched(shown))
        items = folds.items(shown, strays)
        on_lines = [event[0] for item in items for event in (item.row, item.outcome) if event]
        assert sorted(on_lines) == sorted(row[0] for row in shown)
        outcomes = asking.outcomes(database, [item.row for item in items if item.closed])
        assert outcomes == {item.row[0]: item.outcome for item in items if item.outcome}
        for row in random.sample(rows, 20):
            revealed = folds.reveal(row, asking.spans(database, row, folds))
            assert row in ask(database, asked(revealed).also("time = ?", row[2]))
