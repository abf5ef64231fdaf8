"""The tables `call` and `stack`: calls with their ends and callers, and what was open at an
event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import apsw
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from handmade import EPOCH_NS, EPOCH_UNITS, EVENT_IDS, Handmade, event
from messages import trace_pb2
from programs import programs
from recording import PYTRACE, Record, write
from recording import run as run_command
from recut import Stream, recut

# Hypothesis warns of large programs.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")

Rows = list[tuple[Any, ...]]


class Database:
    """A connection with the extension."""

    def __init__(self, path: Path) -> None:
        self.connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self.connection.enable_load_extension(True)
        self.connection.load_extension(
            str(files("pytracer").joinpath("sqlite_trace" + EXTENSION_SUFFIXES[0]))
        )

    def __call__(self, sql: str, *parameters: Any) -> Rows:
        return self.connection.execute(sql, parameters).fetchall()

    def stack(self, event: int) -> Rows:
        return self("SELECT depth, id FROM stack(?)", event)


# ---- an oracle -----------------------------------------------------------------------------------


class Call(NamedTuple):
    parent: int | None
    duration: int | None
    outcome: str
    value: str | None


class Meant(NamedTuple):
    """Calls by id, and the stack of each event, from the rows of `event`."""

    calls: dict[int, Call]
    stacks: dict[int, Rows]


def oracle(database: Database) -> Meant:
    """Open functions by depth for each thread; ends by when their call began."""
    events = database(
        "SELECT e.id, e.time, pid, e.kind, module, func, file, line, depth, duration, s.run, s.stream"
        " FROM event e JOIN segment s ON s.id = e.id >> 18 ORDER BY e.time, e.id"
    )
    values: dict[int, str] = dict(
        database("SELECT event, value FROM argument WHERE position = 0 ORDER BY time")
    )
    meant = Meant({}, {})
    threads: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    began: dict[tuple[Any, ...], int] = {}
    kinds: dict[int, str] = {}
    resumed: dict[int, tuple[Any, ...]] = {}  # processes and functions
    yielded: dict[int, tuple[Any, ...]] = {}
    for number, time, pid, kind, *function, depth, duration, run, stream in events:
        stack = threads[run, stream]
        entering = kind in ("call", "resume", "throw")
        for above in [level for level in stack if level >= depth + (not entering)]:
            del stack[above]
        if entering:
            stack[depth] = number
            kinds[number] = kind
            resumed[number] = (run, pid, *function)
        if kind != "lost":
            meant.stacks[number] = [(level, stack[level]) for level in sorted(stack)]
        if kind == "call":
            meant.calls[number] = Call(stack.get(depth - 1), None, "running", None)
            began[(run, pid, *function, time)] = number
        elif kind in ("return", "exception", "yield"):
            opened = stack.pop(depth, None)
            if duration is None or (kind == "yield" and kinds.get(opened, "call") != "call"):
                continue
            # both are rounded to ns
            starts = (time - duration, time - duration - 1, time - duration + 1)
            calls = [
                began[run, pid, *function, start] for start in starts if (run, pid, *function, start) in began
            ]
            if opened in calls:
                calls = [opened]
            if kind == "yield":
                yielded.update((call, (run, pid, *function)) for call in calls[:1])
                continue
            for call in calls[:1]:
                meant.calls[call] = Call(meant.calls[call].parent, duration, kind, values.get(number))
    going_on = {
        resumed[number] for stack in threads.values() for number in stack.values() if kinds[number] != "call"
    }
    for number, function in yielded.items():
        call = meant.calls[number]
        if call.outcome == "running" and function not in going_on:
            meant.calls[number] = call._replace(outcome="suspended")
    return meant


def check(path: Path) -> Meant:
    """Compares all rows of `call`, forwards and backwards and one by one, and all stacks, with the
    oracle."""
    database = Database(path)
    meant = oracle(database)
    columns = "id, parent, duration, outcome, value"
    wanted = [(number, *call) for number, call in meant.calls.items()]
    assert database(f"SELECT {columns} FROM call ORDER BY time, id") == wanted
    assert database(f"SELECT {columns} FROM call ORDER BY time DESC, id DESC") == wanted[::-1]
    by_id = f"SELECT {columns} FROM call WHERE id = ?"
    assert [row for number in meant.calls for row in database(by_id, number)] == wanted
    joined = (
        f"SELECT {', '.join(f'call.{name}' for name in columns.split(', '))} FROM event JOIN call USING (id)"
    )
    assert database(f"{joined} WHERE event.kind = 'call' ORDER BY event.time, event.id") == wanted
    for number, stack in meant.stacks.items():
        assert database.stack(number) == stack
    return meant


def recorded(path: Path) -> int:
    """How many segments there are."""
    ((count,),) = Database(path)("SELECT count(*) FROM segment")
    return int(count)


# ---- recorded programs ---------------------------------------------------------------------------

MIXED = """
import asyncio, ctypes, sys, threading

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def numbers(n):
    for i in range(n):
        try:
            yield fib(i % 5)
        except ValueError as error:
            yield str(error)
    return "done"

def delegating(n):
    result = yield from numbers(n)
    return result

def failing(n):
    if n == 0:
        raise KeyError("deep")
    try:
        failing(n - 1)
    finally:
        fib(3)

async def step(n):
    await asyncio.sleep(0)
    return n * 2

async def several():
    return sum(await asyncio.gather(*(step(n) for n in range(50))))

def work():
    for i in range(rounds):
        for generator in (numbers(4), delegating(3)):
            list(generator)
        abandoned = numbers(9)
        next(abandoned)
        thrown = numbers(2)
        next(thrown)
        thrown.throw(ValueError("thrown"))
        thrown.close()
        try:
            failing(i % 30)
        except KeyError:
            pass

def deep(n):
    return deep(n - 1) + 1 if n else fib(12)

rounds = int(sys.argv[1])
sys.setrecursionlimit(5000)
shared = numbers(200)
next(shared)
threads = [threading.Thread(target=work), threading.Thread(target=lambda: [next(shared) for i in range(50)])]
for thread in threads:
    thread.start()
work()
asyncio.run(several())
deep(200)
for thread in threads:
    thread.join()
list(shared)
left_open = delegating(5)
next(left_open)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(left_open))  # never closed
"""


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 3, 100])
def test_segments_of_a_few_events(record: Record, tmp_path: Path, size: int) -> None:
    recording = record(MIXED, "--no-stdlib", args=("2",))
    path = tmp_path / "cut.sqlite"
    recut(recording.database, path, size)
    whole, cut = check(recording.database), check(path)
    assert [call[1:] for call in whole.calls.values()] == [call[1:] for call in cut.calls.values()]
    recut(recording.database, tmp_path / "lines.sqlite", size, lines=Random(size))
    lined = check(tmp_path / "lines.sqlite")
    assert [call[1:] for call in whole.calls.values()] == [call[1:] for call in lined.calls.values()]
    assert {call.outcome for call in whole.calls.values()} == {"return", "exception", "suspended"}


@pytest.mark.parametrize("seed", range(3))
def test_losses(record: Record, tmp_path: Path, seed: int) -> None:
    recording = record(MIXED, "--no-stdlib", args=("2",))
    path = tmp_path / "cut.sqlite"
    recut(recording.database, path, 2 + seed, Random(seed))
    meant = check(path)
    assert Database(path)("SELECT count(*) FROM event WHERE kind = 'lost'") != [(0,)]
    assert [call for call in meant.calls.values() if call.outcome == "running"]


def test_small_chunks_and_threads(record: Record) -> None:
    recording = record(MIXED, "--no-stdlib", "--buffer-size", "2MiB", args=("150",))
    assert recorded(recording.database) > 4  # of 64 KiB each; the ring has room for all of them
    database = Database(recording.database)
    meant = oracle(database)
    wanted = [(number, *call) for number, call in meant.calls.items()]
    found = database("SELECT id, parent, duration, outcome, value FROM call ORDER BY time, id")
    assert found == wanted
    for number in list(meant.stacks)[::97]:
        assert database.stack(number) == meant.stacks[number]


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(source=programs())
def test_generated_programs(tmp_path_factory: pytest.TempPathFactory, source: str) -> None:
    folder = tmp_path_factory.mktemp("program")
    script = write(folder, "script.py", source)
    database = folder / "traces.sqlite"
    done = run_command([*PYTRACE, "-q", "--no-stdlib", "-o", str(database), str(script)], folder)
    assert done.returncode == 0, done.stderr
    check(database)
    for size in (1, 3):
        path = folder / f"{size}.sqlite"
        recut(database, path, size)
        check(path)
        evict(path)
        check(path)


def evict(path: Path) -> None:
    """Removes the oldest third of the segments."""
    with apsw.Connection(str(path)) as connection:
        connection.execute(
            "DELETE FROM segment WHERE id IN"
            " (SELECT id FROM segment ORDER BY end LIMIT (SELECT count(*) / 3 FROM segment))"
        ).fetchall()
    connection.close()


def test_a_generator_that_a_forked_process_ends_too(record: Record, tmp_path: Path) -> None:
    recording = record(
        """
        import os

        def numbers():
            yield 1
            return os.getpid()

        def fork():
            return os.fork()

        generator = numbers()
        next(generator)
        child = fork()
        list(generator)
        if child:
            os.waitpid(child, 0)
        """,
        "--no-stdlib",
    )
    for size in (1, 1000):
        path = tmp_path / f"{size}.sqlite"
        recut(recording.database, path, size)
        database = Database(path)
        (call,) = database("SELECT pid, outcome, value FROM call WHERE func = 'numbers'")
        assert call == (call[0], "return", str(call[0]))
        assert {
            row[0] for row in database("SELECT pid FROM event WHERE func = 'numbers' AND kind = 'return'")
        } > {call[0]}


# ---- databases by hand ---------------------------------------------------------------------------


@pytest.fixture(name="made")
def made_fixture(tmp_path: Path) -> Iterator[Handmade]:
    with Handmade(tmp_path / "traces.sqlite") as database:
        number = database.run()
        database.thread(number, 2, 102, "worker")
        database.process(number, 1, 200)
        database.thread(number, 3, 200, "", process=1)
        for code, name in enumerate("fghm", start=1):
            database.code(number, code, name, ["a"])
        yield database


F, G, H, M = range(1, 5)


def put(
    made: Handmade, *pieces: list[trace_pb2.Event], start: int = 0, stream: int = 1, process: int = 0
) -> list[int]:
    """Stores segments of one thread, one behind the other. Returns their ids."""
    written = Stream(made.connection, 1, stream, process, EPOCH_UNITS + start, 0)
    return [written.store(piece) for piece in pieces]


def ids(segments: Iterable[int], counts: Iterable[int]) -> list[list[int]]:
    """The ids of the events of segments that have so many."""
    return [
        [segment * EVENT_IDS + index for index in range(count)]
        for segment, count in zip(segments, counts, strict=True)
    ]


def ends(made: Handmade) -> Rows:
    return Database(made.path)("SELECT func, duration, outcome, value FROM call ORDER BY time, id")


def test_columns(made: Handmade) -> None:
    ((m, f, *_),) = ids(
        put(
            made, [event("call", M, 1, time=10), event("call", F, 2, time=5), event("return", F, "x", time=5)]
        ),
        [3],
    )
    database = Database(made.path)
    assert database("SELECT * FROM call ORDER BY time") == [
        (m, None, 1, EPOCH_NS + 40, None, 100, 100, "app", "m", "/home/me/app.py", 1, 0, "running", None),
        (f, m, 1, EPOCH_NS + 60, 20, 100, 100, "app", "f", "/home/me/app.py", 1, 1, "return", "'x'"),
    ]
    columns = "id, parent, run, time, duration, pid, tid, module, func, file, line, depth, outcome, value"
    assert ", ".join(row[1] for row in database("PRAGMA table_info(call)")) == columns
    assert [row[1] for row in database("PRAGMA table_info(stack)")] == ["depth", "id"]


def test_an_end_without_a_value(made: Handmade) -> None:
    put(made, [event("call", F, time=1), event("return", F, time=1), event("call", G), event("exception", G)])
    assert ends(made) == [("f", 4, "return", None), ("g", 0, "exception", None)]


def test_conditions_and_order_are_taken_over(made: Handmade) -> None:
    put(made, *[[event("call", code, 1, time=5), event("return", code, 1, time=5)] for code in (F, G, H, F)])
    database = Database(made.path)
    conditions = "func = 'f' AND time > 7 AND depth = 0"
    plan = database(f"EXPLAIN QUERY PLAN SELECT id FROM call WHERE {conditions} ORDER BY time DESC, id DESC")
    ((*_, detail),) = plan
    assert all(condition in detail for condition in ("func=?", "time>?", "depth=?"))
    assert "ORDER BY time DESC" in detail
    assert database("SELECT func FROM call WHERE duration = 20 ORDER BY time LIMIT 2 OFFSET 1") == [
        ("g",),
        ("h",),
    ]
    assert database("SELECT func FROM call ORDER BY time DESC LIMIT 1") == [("f",)]
    assert database("SELECT count(*) FROM call WHERE func IN ('f', 'h') AND outcome = 'return'") == [(3,)]
    assert database("SELECT count(*) FROM call WHERE value IS NULL") == [(0,)]
    assert database("SELECT func FROM call WHERE id = ?", EVENT_IDS + 1) == []  # a return


def test_ends_far_away(made: Handmade) -> None:
    inner = [event("call", F, 1, time=1), event("return", F, 2, time=1)]
    segments = put(
        made,
        [event("call", M, 0, time=1), event("call", G, 0, time=1)],
        *[inner] * 5,
        [event("exception", G, "no", time=1, elapsed=11)],
        [event("call", H, 1, time=1)],
        [event("return", H, 4, time=1), event("return", M, 3, time=1, elapsed=15)],
    )
    assert [row for row in ends(made) if row[0] != "f"] == [
        ("m", 60, "return", "3"),
        ("g", 44, "exception", "'no'"),
        ("h", 4, "return", "4"),
    ]
    (m, g), *_ = ids(segments, [2, *[2] * 5, 1, 1, 2])
    database = Database(made.path)
    assert database("SELECT DISTINCT parent FROM call WHERE func = 'f'") == [(g,)]
    assert database("SELECT parent FROM call WHERE func = 'h'") == [(m,)]
    h = segments[7] * EVENT_IDS
    assert database.stack(h) == [(0, m), (1, h)]
    assert database.stack(segments[8] * EVENT_IDS) == [(0, m), (1, h)]
    assert database.stack(segments[8] * EVENT_IDS + 1) == [(0, m)]
    assert database.stack(segments[3] * EVENT_IDS + 1) == [(0, m), (1, g), (2, segments[3] * EVENT_IDS)]


def test_evicted_beginnings(made: Handmade) -> None:
    segments = put(
        made,
        [event("call", M, time=1), event("call", G, time=1)],
        [event("call", H, time=1)],
        [event("call", F, time=1), event("return", F, time=1), event("return", H, time=1, elapsed=3)],
        [event("call", F, time=1), event("return", F, time=1), event("return", G, time=1, elapsed=7)],
    )
    made("DELETE FROM segment WHERE id = ?", (segments[0],))
    database = Database(made.path)
    _, (h,), (f, *_), (f2, *_) = ids(segments, [2, 1, 3, 3])
    assert database("SELECT id, parent, outcome FROM call ORDER BY time") == [
        (h, None, "return"),
        (f, h, "return"),
        (f2, None, "return"),
    ]
    assert database.stack(f) == [(2, h), (3, f)]
    assert database.stack(f2) == [(2, f2)]
    assert database.stack(f2 + 2) == []


def test_a_generator_goes_on_in_another_thread(made: Handmade) -> None:
    first = put(made, [event("call", M, time=1), event("call", G, 5, time=1), event("yield", G, 1, time=1)])
    second = put(
        made,
        [
            event("call", H, time=1),
            event("resume", G, time=1),
            event("call", F, time=1),
            event("return", F, time=1),
        ],
        [event("return", G, "end", time=1, elapsed=1003)],
        stream=2,
        start=1000,
    )
    assert [row for row in ends(made) if row[0] == "g"] == [("g", 4012, "return", "'end'")]
    (m, g, _), (h, resume, f, _), (back,) = ids([*first, *second], [3, 4, 1])
    database = Database(made.path)
    assert database("SELECT id, parent FROM call WHERE func IN ('g', 'f') ORDER BY time") == [
        (g, m),
        (f, resume),
    ]
    assert database.stack(f) == [(0, h), (1, resume), (2, f)]
    assert database.stack(back) == [(0, h), (1, resume)]
    assert database.stack(g + 1) == [(0, m), (1, g)]


def test_a_generator_that_ends_in_a_thread_that_began_before_it(made: Handmade) -> None:
    put(made, [event("call", G, 5, time=500), event("yield", G, 1, time=1)])
    put(
        made,
        [event("call", H, time=1), event("resume", G, time=1000), event("return", G, 7, time=1, elapsed=502)],
        stream=2,
    )
    assert ends(made) == [("h", None, "running", None), ("g", 2008, "return", "7")]


def test_an_end_of_another_process_is_not_taken(made: Handmade) -> None:
    put(made, [event("call", G, 5, time=1), event("yield", G, 1, time=1)])
    put(
        made,
        [event("resume", G, time=1), event("return", G, 7, time=1, elapsed=1001)],
        stream=3,
        process=1,
        start=1000,
    )
    assert ends(made) == [("g", None, "suspended", None)]


def test_many_abandoned_generators(made: Handmade) -> None:
    """Each segment is looked through once, not once for each of them."""
    pieces = [[event("call", G, 5, time=1), event("yield", G, 1, time=1)] * 20 for _ in range(60)]
    put(made, *pieces, [event("resume", G, time=1), event("return", G, time=1, elapsed=60 * 40 + 1)])
    rows = ends(made)
    assert len(rows) == 1200
    assert rows[0] == ("g", (60 * 40 + 1) * 4, "return", None)
    assert {row[2] for row in rows[1:]} == {"suspended"}


@pytest.mark.parametrize("kind", ["resume", "throw"])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_suspended_or_going_on(made: Handmade, kind: str, size: int) -> None:
    """Which of a function's generators goes on, no record tells: none of them is surely
    suspended."""
    events = [
        event("call", M, time=1),
        *[event("call", G, time=1), event("yield", G, 1, time=1)] * 2,
        *[event("call", F, time=1), event("yield", F, 1, time=1), event(kind, F, time=1)],
        *[
            event("call", H, time=1),
            event("raise", H, "x", time=1, line=7),
            event("yield", H, time=1, elapsed=2),
        ],
    ]
    put(made, *[events[at : at + size] for at in range(0, len(events), size)])
    put(made, [event("resume", G, time=1)], stream=3, process=1)  # of another process
    outcomes = [
        ("m", "running"),
        ("g", "suspended"),
        ("g", "suspended"),
        ("f", "running"),
        ("h", "suspended"),
    ]
    assert [(row[0], row[2]) for row in ends(made)] == outcomes
    check(made.path)
    put(made, [event("resume", G, time=1), event("call", F, time=1)], stream=2, start=5000)
    outcomes[1:3] = [("g", "running")] * 2
    assert [(row[0], row[2]) for row in ends(made)] == [*outcomes, ("f", "running")]
    check(made.path)


def test_behind_a_loss_no_call_gets_an_end_that_is_not_its_own(made: Handmade) -> None:
    segments = put(
        made,
        [event("call", M, time=1), event("call", F, time=1)],
        # F's return and another call of F were lost: what ends here began later
        [
            event("lost", 2, time=100),
            event("return", F, 2, time=10, elapsed=20),
            event("return", M, time=1, elapsed=112),
        ],
    )
    assert ends(made) == [("m", 448, "return", None), ("f", None, "running", None)]
    database = Database(made.path)
    (m, f), (lost, back, _) = ids(segments, [2, 3])
    assert database.stack(lost) == [(0, m), (1, f)]  # as far as the depth can tell
    assert database.stack(back) == [(0, m), (1, f)]


def test_behind_a_loss_that_took_the_ends(made: Handmade) -> None:
    first = put(made, [event("call", M, time=1), event("call", F, time=1), event("call", G, time=1)])
    behind = Stream(made.connection, 1, 1, 0, EPOCH_UNITS + 3, 1)
    behind.sequence = 1
    last = behind.store(
        [
            event("lost", 2, time=100),
            event("call", H, time=1),
            event("return", H, time=1),
            event("return", M, time=1, elapsed=105),
        ]
    )
    assert [row[:3] for row in ends(made)] == [
        ("m", 420, "return"),
        ("f", None, "running"),
        ("g", None, "running"),
        ("h", 4, "return"),
    ]
    database = Database(made.path)
    assert database("SELECT parent FROM call WHERE func = 'h'") == [(first[0] * EVENT_IDS,)]
    assert database.stack(last * EVENT_IDS) == [(0, first[0] * EVENT_IDS)]


def test_calls_that_ended_unseen(made: Handmade) -> None:
    """The depth says that what was above is gone; an end whose beginning was not recorded is
    nobody's."""
    put(
        made,
        [
            event("call", M, time=1),
            event("call", F, time=1),
            event("call", G, time=1),
            event("return", M, time=1, elapsed=3, depth=1),
            event("return", H, time=1, elapsed=0, depth=1),
            event("call", F, time=1),
            event("return", F, time=1),
        ],
    )
    assert [row[:3] for row in ends(made)] == [
        ("m", 12, "return"),
        ("f", None, "running"),
        ("g", None, "running"),
        ("f", 4, "return"),
    ]


def test_a_segment_that_cannot_be_read(made: Handmade) -> None:
    segments = put(
        made,
        [event("call", M, time=1), event("call", F, time=1)],
        [event("call", G, time=1)],
        [event("call", H, time=1), event("return", H, time=1), event("return", G, time=1, elapsed=3)],
        [event("return", F, 1, time=1, elapsed=5), event("call", H, time=1), event("return", H, time=1)],
    )
    made("UPDATE segment SET data = zeroblob(20) WHERE id = ?", (segments[1],))
    database = Database(made.path)
    (m, f), _, (h, *_), (_, h2, _) = ids(segments, [2, 1, 3, 3])
    assert database("SELECT id, parent, outcome FROM call ORDER BY time") == [
        (m, None, "running"),
        (f, m, "return"),
        (h, None, "return"),
        (h2, m, "return"),
    ]
    assert database.stack(h) == [(0, m), (1, f), (3, h)]
    assert database("SELECT segment FROM damage") == [(segments[1],)]


def test_what_no_program_writes(made: Handmade) -> None:
    """Depths out of all measure, ends of nothing, times behind the last one that there is."""
    put(
        made,
        [
            event("return", F, time=1, elapsed=1 << 63),
            event("call", F, time=1, depth=2_000_000_000),
            event("return", F, time=1, depth=-5),
            event("yield", G, time=1),
            event("call", G, time=(1 << 64) - 3),
            event("return", G, time=5),
            event("call", H, time=(1 << 64) - 1, depth=-2_000_000_000),
            event("return", H, time=1),
        ],
    )
    database = Database(made.path)
    assert sorted(row[:3] for row in ends(made)) == [
        ("f", 4, "return"),
        ("g", None, "running"),  # when it ended, less how long it took, is not when it began
        ("h", None, "running"),
    ]
    for (number,) in database("SELECT id FROM event ORDER BY time"):
        database.stack(number)


def test_stack_of_no_event(made: Handmade) -> None:
    put(made, [event("log", 0, "outside", time=1)])
    database = Database(made.path)
    assert database.stack(EVENT_IDS) == []
    for number in (0, -1, 5, EVENT_IDS + 1, 1 << 62, None, "x", 1.5):
        assert database("SELECT * FROM stack(?)", number) == []
    with pytest.raises(apsw.SQLError):
        database("SELECT * FROM stack")


def test_stacks_of_events_that_are_joined(made: Handmade) -> None:
    put(made, [event("call", M, time=1), event("call", F, time=1), event("raise", F, "x", time=1, line=7)])
    query = (
        "SELECT event.func FROM (SELECT id FROM event WHERE kind = 'raise') AS at, stack(at.id)"
        " JOIN event ON event.id = stack.id ORDER BY stack.depth"
    )
    assert Database(made.path)(query) == [("m",), ("f",)]


def test_a_database_that_grows(made: Handmade) -> None:
    """The same connection sees what was written since, in new segments and in one that got
    longer."""
    reader = Database(made.path)
    query = "SELECT func, outcome, value FROM call ORDER BY time"
    main = [event("call", M, time=1), event("call", G, time=1)]
    first = made.segment(1, main, complete=False)
    assert reader(query) == [("m", "running", None), ("g", "running", None)]
    made.segment(1, [*main, event("yield", G, time=1)], complete=False)
    assert reader(query) == [("m", "running", None), ("g", "suspended", None)]
    assert reader.stack(first * EVENT_IDS + 2) == [(0, first * EVENT_IDS), (1, first * EVENT_IDS + 1)]
    second = [event("resume", G, time=1), event("return", G, 1, time=1, elapsed=3)]
    last = made.segment(1, second, sequence=1, start=3, base_depth=1, complete=False)
    assert reader(query) == [("m", "running", None), ("g", "return", "1")]
    assert reader.stack(last * EVENT_IDS) == [(0, first * EVENT_IDS), (1, last * EVENT_IDS)]
    made.segment(1, [*second, event("return", M, 2, time=1, elapsed=5)], sequence=1, start=3, base_depth=1)
    assert reader(query) == [("m", "return", "2"), ("g", "return", "1")]


def test_two_runs(made: Handmade) -> None:
    put(made, [event("call", M, time=1)], [event("return", M, time=1)])
    other = made.run()
    made.code(other, M, "other")
    for sequence, each in enumerate([event("call", M, time=1), event("return", M, time=2)]):
        made.segment(other, [each], sequence=sequence, start=sequence, base_depth=sequence)
    assert ends(made) == [("m", 4, "return", None), ("other", 8, "return", None)]
    assert Database(made.path)("SELECT func FROM call WHERE run = 2") == [("other",)]
