"""How often the hook leaves its fast paths, counted by a hook that is built for it (stats.h)."""

import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

from pytracer import _hook
from recorded import FIND_DUMPER
from recording import Record, Recording, write

STATS = Path(__file__).parents[2] / "csrc" / "record" / "stats.h"
COUNTERS = set(re.findall(r"^    _\((\w+)\)", STATS.read_text(), re.MULTILINE))

# Some releases end a suspended generator without an event (closed.c).
CLOSES_UNSEEN = (3, 13) <= sys.version_info < (3, 13, 10) or sys.version_info[:3] == (3, 14, 0)

PRELUDE = """
import _thread, asyncio, ctypes, json, os
from types import FunctionType
from pytracer import _hook, log, notrace

def difference(before, after):
    return {name: count - before[name] for name, count in after.items() if count != before[name]}

class Known:
    pass

def add(a, b=None):
    return a

known, error = Known(), OSError(1)
for value in known, error, GeneratorExit(), StopIteration(), (), [], {}, type:
    hasattr(value, "odd")  # a class has no version before somebody asks it for something
"""


@dataclass(frozen=True)
class Step:
    """What `source` counts, behind `before`, and nothing else. On 3.11 trace_switched is compared
    only where it is named: `<module>` has the trace function there, because C code has called it,
    and its callees mostly do not."""

    before: str
    source: str
    counts: dict[str, int]
    on_311: dict[str, int] = field(default_factory=dict)  # in place of these

    @property
    def expected(self) -> dict[str, int]:
        counts = self.counts | (self.on_311 if sys.version_info < (3, 12) else {})
        return {name: count for name, count in counts.items() if count}


FIRST = {"event_prepared": 1, "code_resolved": 1, "code_defined": 1}

STEPS = {
    "what is known": Step(
        """
        def many():
            for n in range(100):
                add(n, "text")
                add(1.5, None)
                add(known, True)
        many()
        """,
        "many()",
        {},
        {"trace_switched": 2},
    ),
    "a new function": Step("def new(): pass", "new(); new()", FIRST),
    "one that is made again": Step(
        """
        first, again = [FunctionType(compile("1", "file", "eval"), {}) for _ in range(2)]
        first()
        """,
        "again()",
        FIRST | {"definition_repeated": 1},
    ),
    "a module with names that are no strings": Step(
        "space = {1: 2}; exec('def odd(): pass', space)", "space['odd']()", FIRST | {"name_looked": 1}
    ),
    # each event is switched off where it is told, which a profile function cannot
    "out of scope": Step(
        "import excluded",
        "for _ in range(10): excluded.function()",
        {"event_prepared": 2, "event_out_of_scope": 2, "code_resolved": 1},
        {"event_prepared": 20, "event_out_of_scope": 20},
    ),
    "below notrace": Step(
        "hidden = notrace(lambda: add(1)); hidden()",
        "for _ in range(10): hidden()",
        {"event_prepared": 40, "event_passed_over": 40},
    ),
    # the end of `hides` is passed over, its call was not
    "an end that is not the innermost": Step(
        """
        def hides(): _hook.notrace(hides.__code__)
        def outer(): hides()
        """,
        "outer()",
        {
            "event_prepared": 3,
            "code_resolved": 2,
            "code_defined": 2,
            "event_passed_over": 1,
            "end_out_of_order": 1,
        },
    ),
    "many open calls": Step(
        "def deep(n): return n and deep(n - 1)\ndeep(0)", "deep(100)", {"calls_grown": 1}
    ),
    # raised, ended, arrived; its line is looked for once
    "exceptions": Step(
        """
        def fails(): raise error
        def catches():
            try: fails()
            except OSError: pass
        catches()
        """,
        "for _ in range(10): catches()",
        {"value_general": 30},
        {"trace_switched": 20, "end_held_back": 10},
    ),
    "an exception in two places": Step(
        """
        def chooses(n):
            if n: raise error
            raise error
        def catches(n):
            try: chooses(n)
            except OSError: pass
        catches(0)
        """,
        "for n in range(10): catches(n % 2)",
        {"value_general": 30, "line_looked": 9},
        {"line_looked": 0, "end_held_back": 10},  # a traceback has it
    ),
    # argument and result: each asks for the type, and what is not simple once or twice more
    "a class that nobody has asked": Step(
        "class Fresh: pass\nfresh = Fresh()",
        "add(fresh)",
        {"type_looked": 4, "type_defined": 1, "value_general": 1},
    ),
    "a container": Step("", "add([1, 'text', known])", {"value_general": 2}),
    "containers in it": Step("", "add([[1], (2, 3)])", {"value_general": 6}),
    "an object of a known type": Step(
        "span = 3j\nspan.real\nadd(span)", "add(span)", {"value_general": 2, "value_known": 2}
    ),
    "a large number": Step("", "add(1 << 40)", {"value_general": 2}),
    "a long text": Step("", "add('x' * 300)", {"value_general": 2, "value_cut": 2}),
    "a long container": Step("", "add([1] * 11)", {"value_general": 2, "value_cut": 2}),
    "a key": Step("", "for _ in range(10): add({'odd key': 1})", {"value_general": 20, "name_judged": 1}),
    "generators": Step(
        "def count(n): yield from range(n)\nlist(count(1))",
        "for _ in range(10): list(count(10))",
        {},
    ),
    "a generator that is closed": Step(
        """
        def waits(): yield
        next(waiting := waits())
        waiting.close()
        next(waiting := waits())
        """,
        "waiting.close()",
        {"value_general": 3} | ({"end_unseen": 1} if CLOSES_UNSEEN else {}),
        {"value_general": 2, "end_held_back": 1},
    ),
    "a thread": Step(
        """
        def work():
            add(1)
            lock.release()
        lock = _thread.allocate_lock()
        lock.acquire()
        """,
        "_thread.start_new_thread(work, ()); lock.acquire()",
        FIRST
        | {"thread_made": 1, "thread_looked": 1, "record_without_room": 1, "chunk_claimed": 1}
        | {"stack_looked": 1, "stack_searched": 1},
    ),
    "log": Step("def says(): log('said', n=1)\nsays()", "for _ in range(10): says()", {"value_general": 20}),
    # 3.11: `await` is a call of C code
    "coroutines": Step(
        """
        async def inner(): add(1)
        async def outer():
            await inner()
            await inner()
        def step(coroutine):
            try: coroutine.send(None)
            except StopIteration: pass
        step(outer())
        """,
        "step(outer())",
        {"task_looked": 1, "value_general": 2, "value_known": 1},
        {"task_looked": 3},
    ),
    "a task": Step("", "asyncio.new_event_loop().run_until_complete(outer())", {"task_changed": 1}),
    "a clock that goes back": Step(
        """
        move = ctypes.CDLL(os.environ["HOOK"]).move_counter
        move.argtypes = [ctypes.c_double]
        move(0)
        """,
        "move(-1); add(1); move(1)",
        {"clock_behind": 2},
    ),
}


def counted(step: str) -> str:
    """Prints its name and what it counts."""
    before, source = STEPS[step].before, STEPS[step].source
    return "\n".join(
        [
            dedent(before),
            "before = _hook.stats()",
            source,
            "after = _hook.stats()",
            f"print(json.dumps([{step!r}, difference(before, after)]))",
        ]
    )


def test_slow_paths(tmp_path: Path, record: Record, mortal: dict[str, str]) -> None:
    excluded = write(tmp_path, "excluded.py", "def function(): pass\n")
    program = "\n".join([PRELUDE, *map(counted, STEPS)])
    recording = record(program, "--exclude", str(excluded), **mortal)
    counts = dict(json.loads(line) for line in recording.stdout.splitlines())
    for name, step in STEPS.items():
        if "trace_switched" not in step.expected:
            counts[name].pop("trace_switched", None)
    counts["a task"] = {"task_changed": counts["a task"]["task_changed"]}  # asyncio itself does more
    wrong = [
        f"{name}: {counts[name]}, not {step.expected}"
        for name, step in STEPS.items()
        if counts[name] != step.expected
    ]
    assert not wrong, "\n".join(wrong)


def found(recording: Recording) -> dict[str, int]:
    """The counters, at the end of PRELUDE and a program."""
    counts: dict[str, int] = json.loads(recording.stdout)
    return counts


REPR = """
class Odd:
    def __repr__(self):
        return "odd"

odd = Odd()
before = _hook.stats()
for _ in range(10):
    add(odd)
print(json.dumps(difference(before, _hook.stats())))
"""


def test_with_repr(record: Record, mortal: dict[str, str]) -> None:
    assert found(record(PRELUDE + REPR, "--repr", **mortal))["record_outside"] == 20


UNASKED = """
import enum

class Way(enum.IntEnum):
    ON = 1

way = Way.ON
Way.other = None  # it has no version now
before = _hook.stats()
for _ in range(1000):
    add(way)
print(json.dumps(difference(before, _hook.stats())))
"""


def test_a_class_in_which_nothing_is_looked_up(record: Record, mortal: dict[str, str]) -> None:
    assert found(record(PRELUDE + UNASKED, **mortal)).get("type_looked", 0) < 100


# One class whose objects all have the same names, and one whose objects have not.
ATTRIBUTES = """
class Order:
    def __init__(self, *names):
        for name in names:
            setattr(self, name, name)

class Bag(Order):
    pass

order, bags = Order("user", "total"), [Bag("a", "b"), Bag("b", "a")]
for value in order, *bags:
    hasattr(value, "odd")
    add(value)
counts = []
for values in [order] * 10, bags * 5, [Bag("c")]:
    before = _hook.stats()
    for value in values:
        add(value)
    counts.append(difference(before, _hook.stats()))
    counts[-1].pop("trace_switched", None)
Order.changed = True
hasattr(order, "odd")
before = _hook.stats()
add(order)
counts.append(difference(before, _hook.stats()))
counts[-1].pop("trace_switched", None)
print(json.dumps(counts))
"""


def test_with_attributes(record: Record, mortal: dict[str, str]) -> None:
    recording = record(PRELUDE + ATTRIBUTES, "--attributes", "8", **mortal)
    assert json.loads(recording.stdout) == [
        {"value_general": 20},
        {"value_general": 20},
        {"value_general": 2, "shape_looked": 1, "shape_made": 1, "type_defined": 1, "name_judged": 1},
        {"value_general": 2, "type_looked": 1, "layout_looked": 1},
    ]


# Each of them records something in each turn.
GREENLETS = """
from greenlet import getcurrent, greenlet

def takes_turns():
    while True:
        add(1)
        getcurrent().parent.switch()

other = greenlet(takes_turns)
other.switch()
add(0)
before = _hook.stats()
for _ in range(10):
    other.switch()
    add(2)
print(json.dumps(difference(before, _hook.stats())))
"""


def test_greenlets(record: Record, mortal: dict[str, str]) -> None:
    pytest.importorskip("greenlet")
    counts = found(record(PRELUDE + GREENLETS, **mortal))
    assert counts["greenlet_found"] == counts["stack_searched"] == 20


# The dumper takes no chunk, and more threads want one than there are.
FULL = """
import signal, threading

def wait():
    ready.wait()
    done.wait()

pid = dumper()
os.kill(pid, signal.SIGSTOP)
ready, done = threading.Barrier(41), threading.Event()
threads = [threading.Thread(target=wait) for _ in range(40)]
for thread in threads:
    thread.start()
ready.wait()
while not _hook.stats()["record_dropped"]:
    add("some text")
os.kill(pid, signal.SIGCONT)
done.set()
for thread in threads:
    thread.join()
print(json.dumps(_hook.stats()))
"""


def test_a_full_ring(record: Record, mortal: dict[str, str]) -> None:
    counts = found(record(PRELUDE + FIND_DUMPER + FULL, "--buffer-size", "1MiB", **mortal))
    assert counts["record_dropped"] > 0
    assert counts["chunk_taken_back"] > 0


def test_every_counter_is_tested() -> None:
    named = set(re.findall(r'"(\w+)"', Path(__file__).read_text()))
    assert named >= COUNTERS


def test_the_usual_build_counts_nothing() -> None:
    assert hasattr(_hook, "stats") == ("PYTRACE_STATS" in os.environ)
