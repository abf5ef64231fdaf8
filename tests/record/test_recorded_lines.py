"""Lines and variables: the same ones, in the same order and with the same values, as sys.settrace
tells, and whole in each chunk."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pytracer.reader.database import Database, text

from line_programs import PROGRAMS
from recorded import FIND_DUMPER
from recording import PYTRACE, Record, Recording, run

Line = tuple[str, int, dict[str, str]]

NAME, VALUE = "CAST(name AS BLOB)", "CAST(value AS BLOB)"
ORACLE = str(Path(__file__).parents[1] / "support" / "line_oracle.py")


def plain(text: str) -> str:
    """Without what differs between two runs, or between pytrace and repr: <...>."""
    before = ""
    while before != text:
        before, text = text, re.sub(r"<(?!deleted>)[^<>]*>", "?", text)
    return text


def lines_of(recording: Recording) -> list[Line]:
    return [
        (event.func, event.line, {name: plain(value) for name, value in event.values.items()})
        for event in recording.of("line")
    ]


def told(recording: Recording) -> list[tuple[Line, dict[str, str]]]:
    """What the oracle says of the same script: the lines, and all variables at each."""
    output = recording.database.with_suffix(".json")
    done = run([sys.executable, ORACLE, str(recording.script), str(output)], recording.script.parent)
    assert done.returncode == 0, done.stderr
    return [
        (
            (func, line, {name: plain(text) for name, text in changed.items()}),
            {name: plain(text) for name, text in variables.items()},
        )
        for func, line, changed, variables, _ in json.loads(output.read_text())
    ]


def trailing_told(recording: Recording) -> list[bool]:
    """Which of the lines that `told` has found have run, and only tell what they changed."""
    return [trailing for *_, trailing in json.loads(recording.database.with_suffix(".json").read_text())]


def lines_told(recording: Recording) -> list[Line]:
    return [line for line, _ in told(recording)]


def assert_same(found: list[Line], told: list[Line]) -> None:
    for at, (one, other) in enumerate(zip(found, told, strict=False)):
        # a list with more than ten items is cut
        cut = {name for name, text in one[2].items() if "..." in text}
        whole = [
            (func, line, {name: text if name not in cut else "..." for name, text in changed.items()})
            for func, line, changed in (one, other)
        ]
        assert whole[0] == whole[1], f"line event {at}"
    assert len(found) == len(told)


@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_and_variables_are_those_of_settrace(record: Record, name: str) -> None:
    recording = record(PROGRAMS[name], "--lines", "--attributes", "0")
    assert_same(lines_of(recording), lines_told(recording))
    sql = "SELECT trailing FROM event WHERE kind = 'line' AND file = ? ORDER BY time, id"
    found = Database(str(recording.database)).query("i", sql, (str(recording.script),))
    assert [bool(trailing) for (trailing,) in found] == trailing_told(recording)


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_variables_at_a_line_are_those_of_settrace(record: Record, name: str) -> None:
    recording = record(PROGRAMS[name], "--lines", "--attributes", "0")
    database = Database(str(recording.database))
    for event, (line, variables) in zip(recording.of("line"), told(recording), strict=True):
        rows = database.query("bb", f"SELECT {NAME}, {VALUE} FROM variable(?) ORDER BY position", (event.id,))
        found = {text(name): plain(text(value)) for name, value in rows}
        for each in found, variables:
            each.pop(".0", None)  # the iterator of a comprehension
        if line[0].endswith("A"):  # settrace has no free variables of a class body
            found = {name: value for name, value in found.items() if name in variables}
        cut = {name for name, value in found.items() if "..." in value}
        assert {**found, **dict.fromkeys(cut)} == {**variables, **dict.fromkeys(cut)}, (event.id, line)


def test_lines_of_others_are_recorded_if_asked_for(record: Record) -> None:
    source = "import textwrap\nx = textwrap.dedent(' a')\n"
    assert {event.file for event in record(source, "--lines").events if event.kind == "line"} == {
        str(record(source, "--lines").script)
    }
    everything = record(source, "--lines", "all")
    assert "dedent" in {event.func for event in everything.events if event.kind == "line"}
    assert not [event for event in record(source).events if event.kind == "line"]


def test_lines_without_values(record: Record) -> None:
    recording = record(PROGRAMS["loops"], "--lines", "--no-values")
    expected = [(func, line) for func, line, _ in lines_told(recording)]
    places = [(event.func, event.line) for event in recording.of("line")]
    assert set(places) == set(expected)
    assert len(places) <= len(expected)  # the same without the changes before an end
    assert all(not event.args for event in recording.of("line"))


def test_attributes_of_objects_change_in_place(record: Record) -> None:
    recording = record(PROGRAMS["objects"], "--lines")
    shown = [event.values["self"] for event in recording.of("line", func="P.add") if "self" in event.values]
    assert shown == [
        "__main__.P(n=3, all=[])",
        "__main__.P(n=3, all=[2])",
        "__main__.P(n=6, all=[2])",
        "__main__.P(n=6, all=[2, 3])",
    ]


def test_secrets_are_not_in_lines(record: Record) -> None:
    recording = record(
        """
def login(user):
    password = 'hunter2'
    password = 'hunter3'
    token = {'password': 'hunter4', 'user': user}
    del password
    return user
login('bob')
""",
        "--lines",
    )
    assert "hunter" not in json.dumps([event.args for event in recording.events])
    shown = [event.values["password"] for event in recording.of("line") if "password" in event.values]
    assert shown == ["<redacted>", "<redacted>", "<deleted>"]
    [token] = [event.values["token"] for event in recording.of("line") if "token" in event.values]
    assert token == "<redacted>" or "<redacted>" in token


def test_no_code_of_the_program_runs(record: Record) -> None:
    source = """
ran = []
class Trap:
    def __init__(self):
        self.x = 1
    def __getattribute__(self, name):
        ran.append(name)
        return object.__getattribute__(self, name)
    def __repr__(self):
        ran.append('repr')
        return ''
    __eq__ = __hash__ = __bool__ = lambda self, *others: ran.append('called') or True
class Name(str):
    def __eq__(self, other):
        ran.append('eq')
        return str.__eq__(self, other)
    __hash__ = str.__hash__
def f(trap, items):
    other = trap
    items.append(other)
    for each in items:
        last = each
    return last
f(Trap(), [])
names = {Name('a'): 1}
exec('a = 2\\nb = a + 1\\ndel a', names)
print(ran)
"""
    recording = record(source, "--lines", "--attributes", "8")
    assert recording.stdout == recording.plain_output()


# ---- chunks --------------------------------------------------------------------------------------


def test_a_resumed_generator_is_the_one_that_it_was(record: Record) -> None:
    recording = record(
        """
def count(n):
    while True:
        n += 1
        yield n
one, other = count(10), count(20)
for _ in range(3):
    next(one)
    next(other)
next(one)
next(one)
""",
        "--lines",
    )
    database = Database(str(recording.database))
    found = [
        [(text(name), text(value)) for name, value in database.query("bb", sql, (event.id,))]
        for sql in [f"SELECT {NAME}, {VALUE} FROM variable(?)"]
        for event in recording.of("resume")
    ]
    assert found == [[("n", str(n))] for n in (11, 21, 12, 22, 13, 14)]


def test_what_a_resumed_generator_has_told_is_not_told_again(record: Record) -> None:
    source = """
def wait(text):
    while True:
        yield
waiting = [wait(str(i) * 100) for i in range(20)]
for _ in range(100):
    for each in waiting:
        next(each)
"""
    recording = record(source, "--lines")
    sizes = Database(str(recording.database)).query("i", "SELECT size FROM segment")
    assert sum(size for (size,) in sizes) < 2000 * 100  # texts of 100 bytes each


def test_changes_are_the_same_in_each_chunk(record: Record) -> None:
    """The first line of a call in a chunk has all variables: those that are no news are not
    shown."""
    source = """
def work(rounds):
    first = 'first'
    items = []
    for i in range(rounds):
        text = 'x' * (i % 50)
        items.append(i)
        if len(items) > 5:
            items.clear()
    return first
work(10000)
"""
    recording = record(source, "--lines")
    assert_same(lines_of(recording), lines_told(recording))
    sql = "SELECT count(*) FROM segment WHERE kinds >> 16 & 1"
    found = run([*PYTRACE, "sql", str(recording.database), sql, "--format", "csv"], recording.script.parent)
    assert int(found.stdout.split()[-1]) > 1


def test_behind_a_loss_variables_are_right(record: Record) -> None:
    recording = record(
        FIND_DUMPER
        + """
import os, signal
def work(rounds):
    n = 0
    for i in range(rounds):
        if i == 100:
            os.kill(stopped, signal.SIGSTOP)
        if i == 20000:
            os.kill(stopped, signal.SIGCONT)
        n += i
stopped = dumper()
work(25000)
""",
        "--lines",
        "--buffer-size",
        "256KiB",
    )
    assert "lost" in {event.kind for event in recording.events}
    state: dict[str, str] = {}
    summing = recording.script.read_text().splitlines().index("        n += i") + 1
    for event in recording.of("line", func="work"):
        state |= event.values
        if event.line == summing:
            assert int(state["n"]) == int(state["i"]) * (int(state["i"]) - 1) // 2


# ---- made programs -------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d"])
NUMBERS = st.sampled_from(["0", "1", "2", "300", "1000"])


def _expressions() -> st.SearchStrategy[str]:
    flat = st.one_of(NUMBERS, st.sampled_from(["'x'", "None", "1.5", "(1, 2)"]))
    atoms = st.one_of(NAMES, flat, st.sampled_from(["[1]", "{'k': 2}"]))
    return st.one_of(  # no value has more levels than are recorded
        atoms,
        st.builds("[{}, {}]".format, flat, flat),
        st.builds("str({})".format, atoms),
        st.builds("[x for x in ({}, {})]".format, atoms, atoms),
        st.builds("(lambda: {})()".format, NAMES),
        st.builds("twice({})".format, atoms),
        st.builds("({} == {})".format, atoms, atoms),
        st.builds("({} or {})".format, atoms, atoms),
    )


def _indented(block: list[str]) -> list[str]:
    return ["    " + line for statement in block for line in statement.split("\n")]


def _block(statements: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(statements, min_size=1, max_size=3).map(lambda block: "\n".join(_indented(block)))


def _statements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    block = _block(inner)
    return st.one_of(
        st.builds("if {}:\n{}\nelse:\n{}".format, NAMES, block, block),
        st.builds("for {} in (1, 2):\n{}".format, NAMES, block),
        st.builds("try:\n{}\nexcept Exception as error:\n{}\nfinally:\n{}".format, block, block, block),
        st.builds("with Manager() as {}:\n{}".format, NAMES, block),
        st.builds("for x in counting(2):\n{}".format, block),
    )


SIMPLE = st.one_of(
    st.builds("{} = {}".format, NAMES, _expressions()),
    st.builds("{} = {}; {} = {}".format, NAMES, _expressions(), NAMES, _expressions()),
    st.builds("{}, {} = {}, {}".format, NAMES, NAMES, _expressions(), _expressions()),
    st.builds("{} += {}".format, NAMES, st.sampled_from(["1", "'y'", "[5]", "(2,)", "2.5"])),
    st.builds("{}.append({})".format, NAMES, NUMBERS),
    st.builds("{}[0] = {}".format, NAMES, NUMBERS),
    st.builds("del {}".format, NAMES),
    st.builds("add({})".format, NAMES),
    st.sampled_from(["pass", "raise ValueError(1)", "return a", "1 // 0"]),
)
STATEMENTS = st.recursive(SIMPLE, _statements, max_leaves=8)

FRAME = """
class Manager:
    def __enter__(self):
        return [0]
    def __exit__(self, *args):
        return True
def twice(value):
    result = [str(value), type(value).__name__]
    return result
def add(items):
    items.append(7)
def counting(n):
    for i in range(n):
        yield i
def made(a, b):
    c = [1]
{body}
for one in ([1], 2, 'x'):
    try:
        made(one, one)
    except Exception as error:
        seen = type(error)
"""


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=int(os.environ.get("PYTRACE_TEST_LINES", "8")),
    phases=[Phase.generate],  # an example takes a second
)
@given(bodies=st.lists(st.lists(STATEMENTS, min_size=2, max_size=6), min_size=6, max_size=6))
def test_made_programs(record: Record, bodies: list[list[str]]) -> None:
    parts = ["\n".join(_indented(body)) for body in bodies]
    source = "\n".join(FRAME.replace("{body}", part) for part in parts)
    recording = record(source, "--lines", "--attributes", "0")
    assert_same(lines_of(recording), lines_told(recording))


# ---- odd programs: they do what they do without pytrace ------------------------------------------

ODD = {
    "namespaces": """
class Space(dict):
    def __getitem__(self, key):
        if key.startswith("magic"):
            return key
        return dict.__getitem__(self, key)
class Meta(type):
    @classmethod
    def __prepare__(cls, name, bases):
        return Space()
class A(metaclass=Meta):
    a = magic_word
    b = [a]
    del a
    for i in range(3):
        b.append(i)
class Log:
    def __init__(self): self.seen = {}
    def __setitem__(self, key, value): self.seen[key] = value
    def __getitem__(self, key): return self.seen[key]
    def __delitem__(self, key): del self.seen[key]
space = Log()
exec("x = 1\\ny = x + 1\\ndel x", {}, space)
print(A.b, space.seen)
exec("x = 1\\nfor i in range(3): x += i", Space())
""",
    "frames": """
import sys
def target():
    x = 1
    f = sys._getframe()
    f.f_locals["x"] = 5
    y = 2
    del f
    return x > 0
def cleared():
    def g():
        a = [1]
        yield a
        yield 2
    it = g()
    next(it)
    try:
        it.gi_frame.clear()
    except RuntimeError:  # since 3.13
        return None
    return list(it)
def swapped(n):
    m = n
    return m
def other(k):
    z = [k]
    z.append(1)
    return z
print(target(), cleared(), swapped(1))
swapped.__code__ = other.__code__
print(swapped(2))
def deep(n):
    m = n + 1
    return deep(m)
try:
    deep(0)
except RecursionError as error:
    print("too deep")
""",
    "tools": """
import sys
seen = []
def tracer(frame, event, arg):
    if frame.f_code.co_name == "watched":
        seen.append((event, frame.f_lineno))
    return tracer
def watched(n):
    total = 0
    for i in range(n):
        total += i
    return total
sys.settrace(tracer)
watched(3)
sys.settrace(None)
watched(2)
print(seen)
if sys.version_info >= (3, 12):
    m = sys.monitoring
    m.use_tool_id(0, "other")
    lines = []
    m.register_callback(0, m.events.LINE, lambda code, line: lines.append(line))
    m.set_local_events(0, watched.__code__, m.events.LINE)
    watched(2)
    m.set_local_events(0, watched.__code__, 0)
    watched(2)
    m.free_tool_id(0)
    print(lines)
""",
    "threads": """
import threading, os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks while a thread is just ending
def shared(n):
    items = []
    for i in range(n):
        items.append(i)
        yield i
def work(it, lock, out):
    while True:
        with lock:
            try:
                x = next(it)
            except StopIteration:
                return
        out.append(x)
it, lock, out = shared(300), threading.Lock(), []
threads = [threading.Thread(target=work, args=(it, lock, out)) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(out) == list(range(300)))
for i in range(3):
    pid = os.fork()
    if not pid:
        y = [i]
        y.append(work)
        os._exit(len(y))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
def waiting():
    kept = [1]
    yield kept
    kept.append(2)
    yield kept
g = waiting()
next(g)
pid = os.fork()
print(next(g))
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
""",
    "many names": "\n".join(f"n{i} = {i}" for i in range(5000)) + "\nprint(n4999)\n",
    "many locals": "def f():\n"
    + "\n".join(f"    n{i} = [{i}]" for i in range(4500))
    + "\n    return n4499\nprint(f())\n",
    "many cells": "def f():\n"
    + "\n".join(f"    n{i} = [{i}]" for i in range(300))
    + "\n    def g():\n        return "
    + " + ".join(f"n{i}[0]" for i in range(300))
    + "\n    n0[0] = 1\n    return g()\nprint(f())\n",
    "a false sys.monitoring": """
import sys
ran = []
class False_:
    def __getattr__(self, name):
        ran.append(name)
        return getattr(real, name)
real = getattr(sys, "monitoring", None)
sys.monitoring = False_()
def f():
    x = 1
    return x
f()
print(ran)
""",
    "our callbacks": """
import sys
def f():
    x = 1
    return x
f()
monitoring = getattr(sys, "monitoring", None)
tools = [tool for tool in range(6) if monitoring and monitoring.get_tool(tool) == "pytrace"]
for tool in tools:
    for event in (monitoring.events.LINE, monitoring.events.JUMP):
        ours = monitoring.register_callback(tool, event, None)
        own = sys._getframe().f_code
        wrong = [(), (own,), (own, "x"), (own, 1 << 70), (1, 2), (own, "x", None), (own, 1 << 70, 1)]
        for args in wrong:
            try:
                ours(*args)
            except TypeError:
                pass
        monitoring.register_callback(tool, event, ours)
y = f()
""",
    "ends": """
import sys, gc, weakref
class Thing:
    def __init__(self):
        self.me = self
    def __del__(self):
        x = 1
        ended.append(x)
ended = []
def make():
    t = Thing()
    r = weakref.ref(t)
    return r
r = make()
gc.collect()
print(r() is None, ended)
def gen():
    x = [1]
    try:
        while True:
            yield x
    finally:
        ended.append(len(x))
g = gen()
next(g)
del g
gc.collect()
print(ended)
kept = gen()
next(kept)
sys.exit(3)
""",
}


@pytest.mark.parametrize("options", [(), ("--repr",), ("--buffer-size", "256KiB", "--value-length", "1")])
@pytest.mark.parametrize("name", ODD)
def test_odd_programs(record: Record, name: str, options: tuple[str, ...]) -> None:
    status = 3 if name == "ends" else 0
    recording = record(ODD[name], "--lines", *options, status=status)
    assert recording.stdout == recording.plain_output()
    assert recording.stderr == ""
    kinds = [event.kind for event in recording.events]
    assert "line" in kinds


def test_trace_records_lines_of_what_it_calls(record: Record) -> None:
    recording = record(
        """
import pytracer
def f(n):
    m = n + 1
    return m
f(1)
with pytracer.trace(lines=True, output="part.sqlite", quiet=True):
    f(2)
f(3)
with pytracer.trace(lines=True, output="part.sqlite", quiet=True):
    f(4)
""",
        "--no-values",
    )
    done = run([sys.executable, str(recording.script)], recording.script.parent)
    assert done.returncode == 0, done.stderr
    part = Recording(0, "", "", recording.script.with_name("part.sqlite"), recording.script)
    assert [(event.line, event.values) for event in part.of("line", func="f")] == [
        (4, {}), (5, {"m": "3"}), (4, {}), (5, {"m": "5"}),
    ]  # fmt: skip


def test_a_call_that_began_unseen_has_nothing_of_another(record: Record) -> None:
    """Its frame lies where that of a recorded call was."""
    recording = record(
        "import pytracer\n"
        "options = dict(lines=True, output='part.sqlite', quiet=True)\n"
        "def first():\n"
        "    x = 1\n"
        "    return x\n"
        "def unseen():\n"
        + "".join(f"    v{i} = [{i}]\n" for i in range(500))
        + "    block = pytracer.trace(**options)\n"
        "    block.__enter__()\n"
        "    return block\n"
        "for round in range(3):\n"
        "    with pytracer.trace(**options):\n"
        "        first()\n"
        "    block = unseen()\n"
        "    first()\n"
        "    block.__exit__(None, None, None)\n",
        "--no-values",
    )
    done = run([sys.executable, str(recording.script)], recording.script.parent)
    assert done.returncode == 0, done.stderr
    part = Recording(0, "", "", recording.script.with_name("part.sqlite"), recording.script)
    lines = [(event.func, event.values) for event in part.of("line")]
    assert lines == [("first", {}), ("first", {"x": "1"})] * 6
