"""Functions in C: --c-calls."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from recording import Record, Recording, environment, run

MONITORING = sys.version_info >= (3, 12)
ORACLE = Path(__file__).parents[1] / "support" / "c_calls_oracle.py"

PROGRAM = """
import functools, json, operator, re, struct, time, types

class Order:
    def __init__(self, price=1):
        self.price = price
        self.names = []
    def name(self, *names):
        for name in names:
            self.names.append(name)
        return len(self.names)
    def __call__(self, *rest):
        return sum(rest)
    @classmethod
    def many(cls, count):
        return [cls(n) for n in range(count)]
    @staticmethod
    def least(orders):
        return min(orders, key=lambda order: order.price)

class Special(Order):
    def __init__(self):
        super().__init__(5)

class Names(list):
    def append(self, name):
        super().append(str(name).upper())

class Plain(list):
    pass

class Meta(type):
    def __call__(cls, *rest):
        return super().__call__()

class Made(metaclass=Meta):
    pass

class Part(functools.partial):
    pass

def key(pair):
    return operator.itemgetter(1)(pair)

def fails(n):
    return int("x") if n else [].pop()

def numbers(n):
    for each in range(n):
        try:
            yield each
        except ValueError as error:
            yield str(error)

def recursive(n):
    if n == 0:
        return len("0")
    return max([recursive(n - 1), n], key=lambda value: abs(value))

@functools.lru_cache
def cached(n):
    return pow(n, 2)

def to_json(value):
    return repr(value)

def caught(function, *args, **named):
    try:
        return function(*args, **named)
    except Exception as error:
        return type(error)

def main():
    order = Order()
    order.name("tea", "cake")
    order.name(*["pie"])
    Order.many(3)
    Order.least(Order.many(2))
    Special()
    names = Names()
    names.append("bob")
    plain = Plain()
    plain.append(1)
    bound = plain.append
    bound(2)
    bound(*(3,))
    list.append(plain, 4)
    Made(1)
    order(1, 2)
    sorted([(1, 3), (2, 1)], key=key)
    caught(fails, 0)
    caught(fails, 1)
    caught(len, 5)
    caught(sorted, [1, "a"], key=fails)
    numbers_ = numbers(3)
    next(numbers_)
    numbers_.send(None)
    numbers_.throw(ValueError("no"))
    numbers_.close()
    recursive(3)
    cached(3), cached(3)
    functools.partial(pow, 2)(3)
    Part(key, (1, 2))()
    json.dumps({"a": Order}, default=to_json)
    dict.fromkeys("ab")
    {}.fromkeys("ab")
    int("10", base=3), str(5), tuple([1])
    object.__init__(order)
    (5).__add__(3)
    int.__add__(1, 2)
    struct.pack("<i", 5)
    re.compile("a").match("a")
    types.MethodType(len, [1])()
    list(map(key, [(1, 2)]))
    "a,b".split(",")
    time.sleep(0.001)
    exec("len('x')")

main()
"""


def expected(folder: Path, source: str) -> list[tuple[Any, ...]]:
    script, output = folder / "script.py", folder / "oracle.json"
    script.write_text(source)
    done = run([sys.executable, str(ORACLE), str(script), str(output)], folder)
    assert done.returncode == 0, done.stderr
    return [tuple(each) for each in json.loads(output.read_text())]


def observed(recording: Recording) -> list[tuple[Any, ...]]:
    kinds = ("call", "return", "exception", "yield", "resume", "throw")
    found = [event for event in recording.events if event.kind in kinds]
    return [(event.kind, event.module, event.func, event.depth) for event in found]


def normal(events: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """3.11's profile functions do not tell returns, yields and exceptions of Python apart."""
    names = {"resume": "call", "throw": "call", "yield": "return", "exception": "return"}
    return [(names.get(kind, kind), *rest) for kind, *rest in events] if not MONITORING else events


@pytest.mark.parametrize("which", ["all", "own", "exact"])
def test_the_same_calls_as_the_oracle(record: Record, tmp_path: Path, which: str) -> None:
    recording = record(PROGRAM, f"--c-calls={which}", "--modules", str(tmp_path / "script.py"))
    found, told = normal(observed(recording)), normal(expected(tmp_path, PROGRAM))
    for place, (ours, theirs) in enumerate(zip(found, told, strict=False)):
        assert ours == theirs, (place, found[place - 5 : place + 5], told[place - 5 : place + 5])
    assert found == told
    assert len(found) > 200


def c_events(recording: Recording) -> list[Any]:
    return [event for event in recording.events if event.layer == "c"]


def names(recording: Recording) -> Counter[str]:
    return Counter(f"{e.module}.{e.func}" for e in c_events(recording) if e.kind == "call")


def test_nothing_without_the_option(record: Record) -> None:
    assert c_events(record("len('abc')")) == []


def test_who_calls(record: Record) -> None:
    """own: only calls by own code; all: also those by libraries."""
    source = "import json, time\ntime.sleep(0)\njson.loads('[1]')\n"
    own, all_ = (names(record(source, f"--c-calls={which}")) for which in ("own", "all"))
    assert own["time.sleep"] == all_["time.sleep"] == 1
    assert set(own) <= {"time.sleep", "builtins.__build_class__"}
    assert len(all_) > 10
    assert not any(name.startswith("pytracer") for name in all_)


def test_what_an_event_tells(record: Record) -> None:
    source = "class A(list): pass\na = A()\na.append(5)\nlen('abc')\n[].pop() if a else 0\n"
    recording = record(source.replace("[].pop()", "[][0:].index(3)"), "--c-calls", status=1)
    events = [event for event in c_events(recording) if event.func in ("list.append", "len", "list.index")]
    assert [(e.kind, e.module, e.func, e.file, e.line, e.depth) for e in events] == [
        ("call", "builtins", "list.append", "", 0, 1), ("return", "builtins", "list.append", "", 0, 1),
        ("call", "builtins", "len", "", 0, 1), ("return", "builtins", "len", "", 0, 1),
        ("call", "builtins", "list.index", "", 0, 1), ("exception", "builtins", "list.index", "", 0, 1),
    ]  # fmt: skip
    assert [e.args for e in events if e.kind != "call"] == [[], [], []]
    assert all(event.duration is not None for event in events if event.kind != "call")
    first = [event.values for event in events if event.kind == "call"]
    assert first == [{"arg0": "A([])"}, {"arg0": "'abc'"} if MONITORING else {}, {"arg0": "[]"}]


def test_what_waits_is_slow(record: Record) -> None:
    recording = record("import time\ndef f():\n    time.sleep(0.05)\nf()\n", "--c-calls")
    [slept] = [e for e in c_events(recording) if e.func == "sleep" and e.kind == "return"]
    assert slept.duration is not None
    assert slept.duration >= 50_000_000
    [ended] = recording.of("return", func="f")
    assert ended.duration is not None
    assert ended.duration >= slept.duration


POLYMORPHIC = """
def python(x):
    return x
def call(function, x):
    return function(x)
for n in range(100):
    call(python, n)
for n in range(5):
    call(abs, n)
def mixed(function, x):
    return function(x)
for n in range(50):
    mixed((python, abs)[n % 2], n)
for n in range(50):
    mixed(python, n)
mixed(abs, 1)
"""


@pytest.mark.skipif(not MONITORING, reason="3.11 has no call sites")
def test_a_call_site_that_changes_its_mind(record: Record) -> None:
    """One that has called the same Python function again and again is switched off, unless the
    recording is exact; one that has called a function in C never is."""
    assert names(record(POLYMORPHIC, "--c-calls=all"))["builtins.abs"] == 26
    assert names(record(POLYMORPHIC, "--c-calls=exact"))["builtins.abs"] == 31


def test_as_many_as_cprofile_counts(record: Record, tmp_path: Path) -> None:
    """Of built-in functions and methods, which are all that it knows."""
    profiled = (
        "import cProfile, json, pstats, sys\n"
        "profile = cProfile.Profile()\n"
        "profile.runcall(main)\n"
        "stats = pstats.Stats(profile).stats\n"
        "counts = {name: row[1] for (file, line, name), row in stats.items() if file == '~'}\n"
        "json.dump(counts, open(sys.argv[1], 'w'))\n"
    )
    lines = PROGRAM.rsplit("main()", 1)[0].splitlines(keepends=True)
    elsewhere = ("json.dumps", "re.compile", "exec(")  # whose own code calls functions in C, too
    source = "".join(line for line in lines if not any(word in line for word in elsewhere))
    (tmp_path / "profiled.py").write_text(source + profiled)
    done = run([sys.executable, "profiled.py", "counts.json"], tmp_path)
    assert done.returncode == 0, done.stderr
    counts = json.loads((tmp_path / "counts.json").read_text())
    found = names(record(source + "main()", "--c-calls=exact", "--modules", str(tmp_path / "script.py")))
    compared = 0
    for name, count in counts.items():
        for start, func in (("<built-in method builtins.", "builtins."), ("<method '", "builtins.")):
            if name.startswith(start):
                short = name[len(start) :].split("'")[0].rstrip(">")
                if start == "<method '":
                    short = f"{name.split(chr(39))[3]}.{short}"
                ours = found[f"{func}{short}"]
                if short in (
                    "len",
                    "max",
                    "min",
                    "next",
                    "sorted",
                    "abs",
                    "pow",
                    "list.append",
                    "generator.send",
                ):
                    assert (short, ours) == (short, count)
                    compared += 1
    assert compared >= 7


def test_threads_and_forks(record: Record) -> None:
    source = """
        import os, threading
        def work(n):
            for each in range(n):
                abs(each)
        threads = [threading.Thread(target=work, args=(20,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pid = os.fork()
        work(7)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        """
    recording = record(source, "--c-calls")
    events = [event for event in c_events(recording) if event.func == "abs"]
    assert Counter(event.kind for event in events) == {"call": 94, "return": 94}
    assert {event.depth for event in events if event.pid == recording.events[0].pid} >= {2}
    forked = [event for event in c_events(recording) if event.func == "fork"]
    assert Counter(event.kind for event in forked) == {"call": 1, "return": 2}  # one in each process


def test_lines_between_them(record: Record) -> None:
    recording = record("def f(x):\n    y = len(x)\n    return y\nf('abc')\n", "--c-calls", "--lines")
    told = [(e.kind, e.func, e.depth) for e in recording.events if e.func in ("f", "len")]
    assert told == [
        ("call", "f", 1), ("line", "f", 1), ("call", "len", 2), ("return", "len", 2), ("line", "f", 1),
        ("return", "f", 1),
    ]  # fmt: skip


def test_a_function_without_arguments_shows_none(record: Record) -> None:
    recording = record("import time\ntime.time()\n", "--c-calls")
    command = [
        sys.executable,
        "-m",
        "pytracer",
        "print",
        str(recording.database),
        "--filter",
        "func == 'time'",
    ]
    shown = run(command, recording.database.parent, **environment()).stdout
    assert "-> [c] time.time()\n" in shown


def test_a_block_records_them(record: Record) -> None:
    source = """
        from pytracer import trace
        def f(x):
            return len(x)
        f("a")
        with trace(c_calls=True, output="own.sqlite", quiet=True):
            f("ab")
        f("abc")
        """
    recording = record(source, "--no-values")  # under the command, blocks do nothing
    done = run([sys.executable, str(recording.script)], recording.script.parent)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "pytracer", "print", "own.sqlite", "--format", "json"]
    events = [json.loads(line) for line in run(command, recording.script.parent).stdout.splitlines()]
    assert [event["kind"] for event in events if event["func"] == "len"] == ["call", "return"]


GREENLETS = """
import greenlet

def child(n):
    for each in range(n):
        abs(each)
        greenlet.getcurrent().parent.switch(each)

def parent():
    one = greenlet.greenlet(child)
    one.switch(3)
    for _ in range(2):
        len("ab")
        one.switch()

parent()
"""


def test_greenlets(record: Record) -> None:
    pytest.importorskip("greenlet")
    recording = record(GREENLETS, "--c-calls")
    events = [event for event in c_events(recording) if event.func in ("abs", "len", "greenlet.switch")]
    counts = Counter((event.func, event.kind) for event in events)
    assert counts["abs", "call"] == counts["abs", "return"] == 3
    assert counts["len", "call"] == counts["len", "return"] == 2
    assert counts["greenlet.switch", "call"] == 6
    assert counts["greenlet.switch", "return"] == 5  # the child waits for ever
