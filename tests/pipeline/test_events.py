"""What is recorded of particular programs: one at a time, each written for one question."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recording import PYTRACE, Event, Recording, run, without_addresses

Record = Callable[..., Recording]

CLOCK_STEP = 32  # ns: rounding of two times of a clock that ticks in units of some ns


def plain_output(recording: Recording, *args: str) -> str:
    """What the same script prints without pytrace."""
    done = run([sys.executable, str(recording.script), *args], recording.script.parent)
    return done.stdout


def texts(events: list[Event]) -> list[str]:
    """The text of each one's only argument."""
    return [without_addresses(event.value) for event in events]


def assert_durations(events: list[Event]) -> None:
    """Each duration is the time since the call, or, of a yield, since the generator went on."""
    open_calls: list[Event] = []
    suspended: dict[str, Event] = {}
    for event in events:
        if event.kind in ("call", "resume", "throw"):
            assert event.duration is None
            open_calls.append(event)
        elif event.kind == "raise":
            assert event.duration is None
        else:
            begin = open_calls.pop()
            assert begin.func == event.func
            if event.kind == "yield":
                suspended.setdefault(event.func, begin)
            else:
                begin = suspended.pop(event.func, begin)
            assert event.duration is not None
            assert abs(event.duration - (event.time - begin.time)) <= CLOCK_STEP, event
    assert not open_calls


# ---- durations, generators, exceptions ----


def test_durations_of_recursion(record: Record) -> None:
    recording = record(
        """
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        def fail(n):
            if n:
                fail(n - 1)
            raise ValueError(n)

        fib(8)
        try:
            fail(5)
        except ValueError:
            pass
        """
    )
    events = recording.of()
    assert_durations(events)
    assert sum(event.func == "fib" for event in events) == 2 * 67
    times = [event.time for event in events]
    assert times == sorted(times)


def test_durations_of_generators(record: Record) -> None:
    """A return counts from the call, whatever happened while the generator was suspended."""
    recording = record(
        """
        def work():
            return sum(range(100))

        def numbers():
            for n in range(3):
                yield n
                work()

        def outer():
            work()
            yield from numbers()

        for n in outer():
            work()
        """
    )
    assert_durations(recording.of())
    [end] = recording.of("return", func="numbers")
    yields = recording.of("yield", func="numbers")
    assert len(yields) == 3
    assert end.duration is not None
    assert end.duration > sum(event.duration or 0 for event in yields)


def test_interleaved_generators_keep_their_own_durations(record: Record) -> None:
    recording = record(
        """
        def count(n):
            while n:
                yield n
                n -= 1

        for pair in zip(count(4), count(3)):
            pass
        """
    )
    calls = recording.of("call")[1:]
    ends = recording.of("return")[:-1]
    assert [event.values for event in calls] == [{"n": "4"}, {"n": "3"}]
    # the second one ends by its return; the first, which nobody asks again, by being closed
    second = ends[0]
    assert abs((second.duration or 0) - (second.time - calls[1].time)) <= CLOCK_STEP


def test_send_throw_and_close(record: Record) -> None:
    recording = record(
        """
        def answers():
            got = None
            while True:
                try:
                    got = yield got
                except ValueError as error:
                    got = error
                finally:
                    pass

        g = answers()
        next(g)
        g.send("a")
        g.throw(ValueError("b"))
        g.close()
        """
    )
    events = recording.of(func="answers")
    assert [(event.kind, event.args[0]["value"] if event.args else "") for event in events] == [
        ("call", ""),
        ("yield", "None"),
        ("resume", ""),
        ("yield", "'a'"),
        ("throw", "ValueError('b')"),
        ("raise", "ValueError('b')"),
        ("yield", "ValueError('b')"),
        ("throw", "GeneratorExit()"),
        ("raise", "GeneratorExit()"),
        ("exception", "GeneratorExit()"),
    ]
    assert {event.args[0]["name"] for event in events if event.args} == {"yield value", "exception"}
    assert {event.depth for event in events} == {events[0].depth}


def test_an_exception_thrown_into_a_generator_that_never_ran(record: Record) -> None:
    recording = record(
        """
        def never():
            yield

        try:
            never().throw(KeyError("early"))
        except KeyError:
            pass
        """
    )
    assert recording.kinds("never") == ["throw", "raise", "exception"]


def test_recursion_error(record: Record) -> None:
    """The limit is met where it would be met without pytrace, and the program goes on."""
    recording = record(
        """
        import sys
        sys.setrecursionlimit(400)

        def dive(n):
            global deepest
            deepest = n
            dive(n + 1)

        for _ in range(2):
            try:
                dive(0)
            except RecursionError as error:
                print(deepest, error)
        """
    )
    assert recording.stdout == plain_output(recording)
    calls = recording.of("call", func="dive")
    ends = recording.of("exception", func="dive")
    raises = recording.of("raise", func="dive")
    assert len(calls) == len(ends) == len(raises) > 600
    depths = [event.depth for event in calls]
    assert depths[: len(depths) // 2] == list(range(depths[0], depths[0] + len(depths) // 2))
    assert set(texts(ends)) == {recording.of("raise", func="<module>")[0].value}
    assert ends[0].value.startswith("RecursionError('maximum recursion depth exceeded")


def test_an_exception_through_fifty_frames(record: Record) -> None:
    recording = record(
        """
        def down(n):
            if n == 1:
                raise LookupError("bottom", n)
            down(n - 1)

        try:
            down(50)
        except LookupError:
            pass
        """
    )
    ends = recording.of("exception")
    assert len(ends) == 50
    assert {event.value for event in ends} == {"LookupError('bottom', 1)"}
    depths = [event.depth for event in ends]
    assert depths == sorted(depths, reverse=True)
    durations = [event.duration or 0 for event in ends]
    assert durations == sorted(durations)
    raises = recording.of("raise")
    assert [event.line for event in raises] == [4, *[5] * 49, 8]
    assert {event.line for event in ends} == {2}


def test_lines_of_raises(record: Record) -> None:
    recording = record(
        """
        def several(a,
                    b):
            x = (a
                 + b)
            return x

        class Context:
            def __enter__(self):
                return self
            def __exit__(self, *exc):
                return True

        with Context():
            several(
                1,
                "",
            )
        {}[
            1
        ] if not several else None
        try:
            {}["missing"]
        except KeyError:
            raise SystemExit(0)
        """
    )
    found = [(event.func, event.line, event.args[0]["type"]) for event in recording.of("raise")]
    assert found == [
        ("several", 4, "TypeError"),
        ("<module>", 15, "TypeError"),
        ("<module>", 23, "KeyError"),
        ("<module>", 25, "SystemExit"),
    ]


def test_an_uncaught_exception_ends_the_recording_completely(record: Record) -> None:
    recording = record(
        """
        def fail():
            raise ValueError("uncaught")
        fail()
        """,
        status=1,
    )
    assert [event.kind for event in recording.of()] == [
        "call",
        "call",
        "raise",
        "exception",
        "raise",
        "exception",
    ]
    done = run([sys.executable, str(recording.script)], recording.script.parent)
    assert recording.stderr == done.stderr


def test_exceptions_with_odd_arguments(record: Record) -> None:
    recording = record(
        """
        import json
        class Own(Exception):
            def __init__(self, code):
                self.code = code
            def __str__(self):
                raise SystemError("must not run")
            @property
            def args(self):
                raise SystemError("must not run")

        def fail(exception):
            raise exception

        for exception in (Own(3), OSError(2, "No such file", "x"), KeyError(), StopIteration([1]),
                          ExceptionGroup("g", [ValueError(1)]), json.JSONDecodeError("bad", "{}", 1)):
            try:
                fail(exception)
            except Exception:
                pass
        """
    )
    found = [(event.value, event.args[0]["type"]) for event in recording.of("exception")]
    assert found == [
        ("Own(3)", "__main__.Own"),
        ("FileNotFoundError(2, 'No such file')", "FileNotFoundError"),
        ("KeyError()", "KeyError"),
        ("StopIteration([1])", "StopIteration"),
        ("ExceptionGroup('g', [ValueError(1)])", "ExceptionGroup"),
        ("JSONDecodeError('bad: line 1 column 2 (char 1)')", "json.decoder.JSONDecodeError"),
    ]


def test_a_coroutine_under_asyncio(record: Record) -> None:
    recording = record(
        """
        import asyncio

        async def child(n):
            await asyncio.sleep(0)
            return n

        async def numbers():
            yield 1
            await asyncio.sleep(0)
            yield 2

        async def main():
            found = [n async for n in numbers()]
            return found + await asyncio.gather(child(3), child(4))

        print(asyncio.run(main()))
        """
    )
    assert recording.stdout == "[1, 2, 3, 4]\n"
    # each of the two children is suspended once
    kinds = ["call", "resume", "return", "yield"]
    assert sorted(recording.kinds("child")) == sorted(kinds * 2)
    [end] = recording.of("return", func="main")
    assert end.value == "[1, 2, 3, 4]"
    begin = recording.of("call", func="main")[0]
    assert abs((end.duration or 0) - (end.time - begin.time)) <= CLOCK_STEP


# ---- what is a function ----


def test_a_very_deep_recursion(record: Record) -> None:
    recording = record(
        """
        import sys
        sys.setrecursionlimit(60_000)

        def dive(n):
            return dive(n - 1) if n else 0

        dive(50_000)
        """
    )
    calls = recording.of("call", func="dive")
    ends = recording.of("return", func="dive")
    assert [event.depth for event in calls] == list(range(1, 50_002))
    assert [event.depth for event in ends] == list(range(50_001, 0, -1))


def test_the_end_of_the_interpreter(record: Record) -> None:
    """What runs when the program's last line has run is part of it."""
    recording = record(
        """
        import atexit

        class Late:
            def __del__(self):
                last(2)

        def last(n):
            pass

        late = Late()
        atexit.register(last, 1)
        """
    )
    assert [event.values["n"] for event in recording.of("call", func="last")] == ["1", "2"]
    assert recording.kinds("last") == ["call", "return"] * 2


def test_loss_is_counted(record: Record) -> None:
    """A buffer far too small: what is not there has been counted, to the event."""
    recording = record(
        """
        def work(first, second):
            return first

        for i in range(200_000):
            work(i, "some text")
        """,
        "--buffer-size",
        "256KiB",
        "--modules",
        "script.py",
    )
    kept = [event for event in recording.events if event.kind != "lost"]
    lost = [int(event.values["count"]) for event in recording.events if event.kind == "lost"]
    done = run([*PYTRACE, "info", str(recording.database), "--format", "json"], recording.script.parent)
    [about] = json.loads(done.stdout)["runs"]
    assert about["events"] == len(recording.events)
    assert len(kept) + about["lost"] == 400_002
    # what was lost at the very end has no event behind it to tell of it
    assert sum(lost) <= about["lost"]
    assert {event.depth for event in kept if event.func == "work"} == {1}


def test_module_and_class_bodies(record: Record, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("class Base:\n    class Inner:\n        pass\n")
    recording = record(
        """\
        import helper

        class Child(helper.Base):
            size = len("abc")
        """
    )
    helper = str(tmp_path / "helper.py")
    found = [
        (event.kind, event.module, event.func, event.line)
        for event in recording.events
        if event.file in (helper, str(recording.script))
    ]
    assert found == [
        ("call", "__main__", "<module>", 1),
        ("call", "helper", "<module>", 1),
        ("call", "helper", "Base", 1),
        ("call", "helper", "Base.Inner", 2),
        ("return", "helper", "Base.Inner", 2),
        ("return", "helper", "Base", 1),
        ("return", "helper", "<module>", 1),
        ("call", "__main__", "Child", 3),
        ("return", "__main__", "Child", 3),
        ("return", "__main__", "<module>", 1),
    ]


def test_comprehensions(record: Record) -> None:
    """From 3.12 on, all but generator expressions are part of the function around them."""
    recording = record(
        """
        def f():
            [n for n in (1, 2)]
            {n for n in (1, 2)}
            {n: n for n in (1, 2)}
            return sum(n for n in (1, 2))
        f()
        """
    )
    found = [event.func.rpartition(".")[2] for event in recording.of("call")]
    inlined = [] if sys.version_info >= (3, 12) else ["<listcomp>", "<setcomp>", "<dictcomp>"]
    assert found == ["<module>", "f", *inlined, "<genexpr>"]
    [generator] = recording.of("call", func="f.<locals>.<genexpr>")
    assert list(generator.values) == [".0"]
    assert texts(recording.of("yield")) == ["1", "2"]


def test_arguments_of_every_kind(record: Record) -> None:
    recording = record(
        """
        def f(a, b, /, c, d=4, *rest, e, g=7, **more):
            def inner():
                return a, rest, e, more
            return inner

        f(1, 2, 3, e=6)
        f("a", b"b", [3], {4: 5}, 5.5, None, e={6}, h=(8,), i=...)
        """
    )
    first, second = recording.of("call", func="f")
    assert first.args == [
        {"name": "a", "value": "1", "type": "int"},
        {"name": "b", "value": "2", "type": "int"},
        {"name": "c", "value": "3", "type": "int"},
        {"name": "d", "value": "4", "type": "int"},
        {"name": "rest", "value": "()", "type": "tuple"},
        {"name": "e", "value": "6", "type": "int"},
        {"name": "g", "value": "7", "type": "int"},
        {"name": "more", "value": "{}", "type": "dict"},
    ]
    assert list(second.values.values()) == [
        "'a'",
        "b'b'",
        "[3]",
        "{4: 5}",
        "(5.5, None)",
        "{6}",
        "7",
        "{'h': (8,), 'i': Ellipsis}",
    ]
    assert recording.of("return", func="f")[0].value == "<function __main__.f.<locals>.inner>"


@pytest.mark.parametrize("value", ["7", "'x' * 10_000", "['x' * 300] * 20"])
def test_two_hundred_and_fifty_arguments(record: Record, value: str) -> None:
    recording = record(
        f"""
        names = [f"a{{i}}" for i in range(250)]
        exec(f"def wide({{', '.join(names)}}): return a249")
        wide(*[{value}] * 250)
        """
    )
    [call] = [event for event in recording.events if event.func == "wide" and event.kind == "call"]
    assert list(call.values) == [f"a{i}" for i in range(250)]
    assert all(call.values.values())
    if value == "7":
        assert set(call.values.values()) == {"7"}
    assert not [event for event in recording.events if event.kind == "lost"]


def test_threads(record: Record) -> None:
    recording = record(
        """
        import threading

        def work(n):
            return nested(n)

        def nested(n):
            return n * 2

        threads = [threading.Thread(target=work, args=(i,), name=f"worker-{i}") for i in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """
    )
    main = recording.of("call", func="<module>")[0]
    assert main.thread == "MainThread"
    calls = recording.of("call", func="work")
    assert {(event.thread, event.values["n"]) for event in calls} == {
        (f"worker-{i}", str(i)) for i in range(5)
    }
    assert len({event.tid for event in calls} | {main.tid}) == 6
    for event in recording.of("call", func="nested"):
        [outer] = [call for call in calls if call.tid == event.tid]
        assert event.depth == outer.depth + 1
        assert event.thread == outer.thread


def test_fork(record: Record) -> None:
    recording = record(
        """
        import os

        def both(n):
            return n

        def fork():
            pid = os.fork()
            both(bool(pid))
            return pid

        pid = fork()
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
        """
    )
    calls = recording.of("call", func="both")
    assert {event.values["n"] for event in calls} == {"True", "False"}
    assert len({event.pid for event in calls}) == 2
    assert len({event.depth for event in calls}) == 1
    assert sorted(event.kind for event in recording.of(func="fork")) == ["call", "return", "return"]


# ---- values ----

HOSTILE = """
import sys, time

RAN = []

def trap(name):
    def method(*args, **kwargs):
        RAN.append(name)
        raise SystemError(name)
    return method

SPECIAL = '''repr str len iter getitem getattr hash eq bool int float index format dir sizeof
    contains reversed length_hint bytes complex call get set instancecheck subclasscheck'''.split()
traps = {f"__{name}__": trap(name) for name in SPECIAL}
for name in ("keys", "items", "values", "args", "encode", "name", "value", "__missing__"):
    traps[name] = trap(name)

class Meta(type):
    def __getattribute__(cls, name):
        RAN.append(("meta", name))
        raise SystemError(name)
    __repr__ = __instancecheck__ = __subclasscheck__ = __len__ = __hash__ = trap("meta")

def taken(value):
    return value

def show(value):
    global kept
    kept = taken(value)
"""


def test_no_code_of_a_value_runs(record: Record) -> None:
    recording = record(
        HOSTILE
        + """
Any = type("Any", (), traps)
show(Any())
for base, content in ((int, 5), (str, "text"), (bytes, b"data"), (float, 1.5), (list, [1, 2]),
                      (tuple, (1, 2)), (dict, {"a": 1}), (set, {1}), (frozenset, {1})):
    Sub = type("Sub", (base,), traps)
    show(Sub(content))
    show([Sub(content)])
show(type("Fault", (Exception,), traps)("why", 1))
del RAN[:]

class Trapped:
    def __getattribute__(self, name):
        RAN.append(name)
        raise SystemError(name)
    def __getattr__(self, name):
        RAN.append(name)
        raise SystemError(name)
show(Trapped())

class Liar:
    __class__ = property(lambda self: RAN.append("class") or int)
    __name__ = __module__ = property(trap("name"))
show(Liar())

made = type.__call__(Meta, "Made", (), {})
show(made)
show(object.__new__(made))

class Sleeper:
    def __repr__(self):
        time.sleep(1000)
show(Sleeper())

class Endless:
    def __repr__(self):
        return repr(self)
show(Endless())

class Suicidal:
    def __repr__(self):
        global kept
        del kept
        return ""
show(Suicidal())
print(RAN)
"""
    )
    assert recording.stdout == "[]\n"
    values = texts(recording.of("call", func="taken"))
    assert values == [
        "<__main__.Any at 0x…>",
        "Sub(5)",
        "[Sub(5)]",
        "Sub('text')",
        "[Sub('text')]",
        "Sub(b'data')",
        "[Sub(b'data')]",
        "Sub(1.5)",
        "[Sub(1.5)]",
        "Sub([1, 2])",
        "[Sub([1, 2])]",
        "Sub((1, 2))",
        "[Sub((1, 2))]",
        "Sub({'a': 1})",
        "[Sub({'a': 1})]",
        "Sub({1})",
        "[Sub({1})]",
        "Sub({1})",
        "[Sub({1})]",
        "Fault('why', 1)",
        "<__main__.Trapped at 0x…>",
        values[21],  # of what type it claims to be, anything goes
        "<class '__main__.Made'>",
        "<__main__.Made at 0x…>",
        "<__main__.Sleeper at 0x…>",
        "<__main__.Endless at 0x…>",
        "<__main__.Suicidal at 0x…>",
    ]
    assert "Liar" in values[21]
    returned = texts(recording.of("return", func="taken"))
    assert returned == values


def test_odd_values(record: Record) -> None:
    recording = record(
        """
        import collections, enum, sys

        def taken(value):
            pass

        class Color(enum.IntEnum):
            RED = 1

        Point = collections.namedtuple("Point", "x y")
        ring = [1]
        ring.append(ring)
        knot = {}
        knot["knot"] = (knot,)
        deep = []
        for _ in range(100_000):
            deep = [deep]
        emptied = set(range(1_000_000))
        emptied.difference_update(range(1, 1_000_000))
        values = [float("nan"), -float("inf"), -0.0, 1e22, 2**63, -(2**64), True, None, ..., NotImplemented,
                  "\\ud800", "\\0\\x1b\\u202e", "it's", b"\\xff'", (), (1,), set(), frozenset(), {}, range(3),
                  Color.RED, Point(1, 2), collections.OrderedDict(a=1), collections.Counter("aa"),
                  ring, knot, deep, len, taken, Point, sys, int, [].append, 3j, bytearray(b"x")]
        for value in values:
            taken(value)
        while deep:
            deep = deep.pop()
        """
    )
    values = texts(recording.of("call", func="taken"))
    assert values == [
        *(
            "nan",
            "-inf",
            "-0.0",
            "1e+22",
            str(2**63),
            str(-(2**64)),
            "True",
            "None",
            "Ellipsis",
            "NotImplemented",
        ),
        *(
            r"'\ud800'",
            r"'\x00\x1b\u202e'",
            '"it\'s"',
            'b"\\xff\'"',
            "()",
            "(1,)",
            "set()",
            "frozenset()",
            "{}",
        ),
        *("<range at 0x…>", "Color(1)", "Point((1, 2))", "OrderedDict({'a': 1})", "Counter({'a': 2})"),
        *("[1, [...]]", "{'knot': ({...},)}", "[[[[...]]]]"),
        *(
            "<built-in function len>",
            "<function __main__.taken>",
            "<class '__main__.Point'>",
            "<module 'sys'>",
        ),
        *("<class 'int'>", values[32], "<complex at 0x…>", "<bytearray at 0x…>"),
    ]
    assert "append" in values[32]
    kinds = [event.args[0]["type"] for event in recording.of("call", func="taken")]
    assert kinds[:3] == ["float"] * 3
    assert kinds[7:10] == ["NoneType", "ellipsis", "NotImplementedType"]
    assert kinds[20:24] == [
        "__main__.Color",
        "__main__.Point",
        "collections.OrderedDict",
        "collections.Counter",
    ]
    assert kinds[-5:] == ["module", "type", "builtin_function_or_method", "complex", "bytearray"]


def test_values_are_cut(record: Record) -> None:
    recording = record(
        """
        def taken(value):
            pass
        for value in ("x" * 201, "x" * 200, b"y" * 1000, "é" * 300, list(range(11)), list(range(10)),
                      dict.fromkeys(range(20), 0), "\\U0001f40d" * 201, ["z" * 100] * 30):
            taken(value)
        """
    )
    values = [event.values["value"] for event in recording.of("call", func="taken")]
    assert values[:6] == [
        "'" + "x" * 200 + "'...",
        "'" + "x" * 200 + "'",
        "b'" + "y" * 200 + "'...",
        "'" + "é" * 200 + "'...",
        "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]",
        "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
    ]
    assert values[6] == "{" + "".join(f"{n}: 0, " for n in range(10)) + "...}"
    assert values[7] == "'" + "\U0001f40d" * 200 + "'..."
    assert values[8].startswith("['" + "z" * 100 + "', ")
    assert values[8].endswith("...]")
    assert len(values[8]) < 1200


def test_huge_values_cost_no_more_than_small_ones(record: Record) -> None:
    """Whoever looked at all of it would still be busy when the time limit of the test is over."""
    recording = record(
        """
        def taken(value):
            return value

        emptied = set(range(10_000_000))
        emptied.difference_update(range(1, 10_000_000))
        million_digits = 7 ** 1_200_000
        for value in ([None] * 10_000_000, "x" * 10_000_000, b"x" * 10_000_000, "é" * 10_000_000,
                      dict.fromkeys(range(1_000_000)), (0,) * 10_000_000, million_digits, emptied):
            for _ in range(2000):
                taken(value)
        """
    )
    calls = recording.of("call", func="taken")
    assert len(calls) == 16_000
    digits = calls[-2001].values["value"]
    assert digits.endswith("...")
    expected = str(7**1_200_000 // 10**1_014_000)  # its first 117 or so
    assert digits.startswith(expected[:50])
    assert not [event for event in recording.events if event.kind == "lost"]


def test_a_dict_that_another_thread_changes(record: Record) -> None:
    recording = record(
        """
        import sys, threading
        sys.setswitchinterval(1e-6)
        shared, numbers, done = {}, [], threading.Event()

        def change():
            n = 0
            while not done.is_set():
                n += 1
                shared[n % 50] = {n: [n]}
                shared.pop((n + 25) % 50, None)
                if n % 100 == 0:
                    shared.clear()
                numbers[:] = [n] * (n % 30)

        def taken(first, second):
            return first

        threads = [threading.Thread(target=change) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(20_000):
            taken(shared, numbers)
        done.set()
        for thread in threads:
            thread.join()
        """,
        "--no-stdlib",
    )
    assert len(recording.of("call", func="taken")) == len(recording.of("return", func="taken")) == 20_000


def test_recording_keeps_nothing_alive(record: Record) -> None:
    recording = record(
        """
        import gc
        gc.disable()

        class Value:
            def __init__(self, name):
                self.name = name
            def __del__(self):
                print("gone", self.name)

        def pass_on(value):
            return value

        def generate(value):
            yield value

        def fail(value):
            raise ValueError(value)

        pass_on(Value(1))
        print("a")
        next(generate(Value(2)))
        print("b")
        try:
            fail(Value(3))
        except ValueError:
            pass
        print("c")
        """
    )
    assert recording.stdout == "gone 1\na\ngone 2\nb\ngone 3\nc\n" == plain_output(recording)


def test_odd_names(record: Record) -> None:
    """Names that are no text, or none that can be encoded, of functions, modules and threads."""
    recording = record(
        """
        import threading, types

        def f():
            return 1

        class Name(str):
            def __str__(self):
                raise SystemError
            __repr__ = __hash__ = __eq__ = __len__ = __str__

        def call(name, variables):
            code = f.__code__.replace(co_name=name, co_qualname=name)
            types.FunctionType(code, variables)()

        call("\\ud800\\x1b", {})
        call("nameless", {"__name__": 3})
        call("tricky", {"__name__": Name("x")})
        f.__module__ = Name("y")
        f.__qualname__ = "z" * 5000
        def taken(value):
            pass
        taken(f)
        f.__module__ = 5
        taken(f)
        thread = threading.Thread(target=taken, args=(1,), name="\\udcff\\n")
        thread.start()
        thread.join()
        """
    )
    names = [event.func for event in recording.of("call")]
    assert "nameless" in names
    assert "tricky" in names
    assert len(recording.of("call", func="taken")) == 3
    assert len(recording.of("call")) == len(recording.of("return"))


def test_types_that_take_the_place_of_others(record: Record) -> None:
    """Classes that die leave their addresses, and those of their names, to the next ones."""
    recording = record(
        """
        import gc

        def taken(value):
            pass

        for i in range(200):
            kind = type(f"Type{i:03}", (), {})
            taken(kind())
            del kind
            gc.collect()
        """
    )
    values = texts(recording.of("call", func="taken"))
    assert values == [f"<__main__.Type{i:03} at 0x…>" for i in range(200)]


def test_repr_when_asked_for(record: Record) -> None:
    recording = record(
        """
        from pytracer import log

        class Shown:
            def __repr__(self):
                log("inside")
                helper()
                return "shown!"

        class Fails:
            def __repr__(self):
                raise ValueError

        class Odd:
            def __repr__(self):
                return 5

        def helper():
            pass

        def taken(value):
            pass

        taken(Shown())
        taken(Fails())
        taken(Odd())
        taken("x")
        print(__import__("sys").exc_info())
        """,
        "--repr",
    )
    assert recording.stdout == "(None, None, None)\n"
    values = texts(recording.of("call", func="taken"))
    assert values == ["shown!", "<__main__.Fails at 0x…>", "<__main__.Odd at 0x…>", "'x'"]
    assert recording.kinds("taken") == ["call", "return"] * 4


def test_secret_arguments(record: Record) -> None:
    recording = record(
        """
        def login(user, password, api_token=None, *, secret_key=b"s", **other):
            pass
        login("bob", "hunter2", "t0ken", secret_key=b"s3cret", passwd="pa55", shown={"token": "t00", 1: 2})
        """
    )
    [call] = recording.of("call", func="login")
    assert call.values == {
        "user": "'bob'",
        "password": "<redacted>",
        "api_token": "<redacted>",
        "secret_key": "<redacted>",
        "other": "{'passwd': <redacted>, 'shown': {'token': <redacted>, 1: 2}}",
    }
    assert [arg["type"] for arg in call.args] == ["str", "str", "str", "bytes", "dict"]


def test_without_values(record: Record) -> None:
    recording = record(
        """
        def f(a):
            return [a]
        f("argument-text")
        """,
        "--no-values",
    )
    assert recording.kinds("f") == ["call", "return"]
    assert "argument-text" not in str(recording.of())


# ---- others that trace at the same time ----

WORKLOAD = """
def square(n):
    return n * n

def numbers():
    for n in range(3):
        yield square(n)

def fail():
    raise KeyError("x")

def main():
    total = sum(numbers())
    try:
        fail()
    except KeyError:
        total += 1
    return total

print(main())
"""

WORKLOAD_KINDS = {
    "main": ["call", "raise", "return"],
    "square": ["call", "return"] * 3,
    "numbers": ["call", "yield", "resume", "yield", "resume", "yield", "resume", "return"],
    "fail": ["call", "raise", "exception"],
}


def assert_workload_is_complete(events: list[Event], file: Path) -> None:
    inside = [event for event in events if event.file == str(file)]
    for func, kinds in WORKLOAD_KINDS.items():
        assert [event.kind for event in inside if event.func == func] == kinds, func


def test_beside_coverage(record: Record, tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    workload = tmp_path / "workload.py"
    workload.write_text(WORKLOAD)
    recording = record(
        """
        import json, sys
        from coverage import Coverage
        coverage = Coverage(data_file=None, include=["*/workload.py"])
        coverage.start()
        import workload
        coverage.stop()
        _, statements, _, missing, _ = coverage.analysis2(workload)
        print(len(statements), missing)
        """
    )
    assert recording.stdout == plain_output(recording) == "6\n15 []\n"
    assert_workload_is_complete(recording.events, workload)


def test_beside_cprofile(record: Record, tmp_path: Path) -> None:
    workload = tmp_path / "workload.py"
    workload.write_text(WORKLOAD)
    recording = record(
        """
        import cProfile, pstats
        profile = cProfile.Profile()
        with profile:
            import workload
        counts = {name: row[1] for (_, _, name), row in pstats.Stats(profile).stats.items()}
        print(counts["square"], counts["numbers"], counts["fail"])
        """
    )
    assert recording.stdout == plain_output(recording) == "6\n3 4 1\n"
    assert_workload_is_complete(recording.events, workload)


def test_beside_pdb(record: Record) -> None:
    script = """
        import io, pdb, sys
        commands = io.StringIO("b square\\nc\\np n\\nu\\nc\\np n + 40\\ncl 1\\nn\\nc\\n")
        debugger = pdb.Pdb(stdin=commands, stdout=sys.stdout, readrc=False)
        debugger.use_rawinput = False
        def square(n):
            return n * n
        def main():
            return [square(n) for n in range(4)]
        print(debugger.runcall(main))
        """
    recording = record(script)
    assert recording.stdout == plain_output(recording)
    assert "41" in recording.stdout
    assert recording.stdout.endswith("[0, 1, 4, 9]\n")
    assert recording.kinds("square") == ["call", "return"] * 4


def test_beside_a_trace_function_of_the_program(record: Record) -> None:
    recording = record(
        """
        import sys, threading
        print(sys.gettrace(), sys.getprofile())
        seen = []

        def trace(frame, event, arg):
            if frame.f_code is work.__code__:
                seen.append((event, frame.f_lineno))
            return trace

        def profile(frame, event, arg):
            if getattr(frame, "f_code", None) is work.__code__:
                seen.append(("profile", event))

        def work(n):
            n += 1
            return n

        sys.settrace(trace)
        work(1)
        sys.settrace(None)
        work(2)
        sys.setprofile(profile)
        work(3)
        sys.setprofile(None)
        work(4)
        threading.settrace(trace)
        thread = threading.Thread(target=work, args=(5,))
        thread.start()
        thread.join()
        threading.settrace(None)
        print(seen, sys.gettrace(), sys.getprofile())
        """
    )
    assert recording.stdout == plain_output(recording)
    calls = recording.of("call", func="work")
    assert [event.values["n"] for event in calls] == ["1", "2", "3", "4", "5"]
    assert len(recording.of("return", func="work")) == 5


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_tool_ids_of_others(record: Record) -> None:
    """A program's own tools get the ids that have a meaning, and their events."""
    recording = record(
        """
        import sys
        monitoring = sys.monitoring
        seen = []
        def work():
            return 1
        for tool in (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID, monitoring.PROFILER_ID):
            monitoring.use_tool_id(tool, f"tool {tool}")
            def callback(code, *rest, tool=tool):
                if code is work.__code__:
                    seen.append(tool)
                return monitoring.DISABLE
            monitoring.register_callback(tool, monitoring.events.PY_START, callback)
            monitoring.set_events(tool, monitoring.events.PY_START)
        work()
        work()
        monitoring.restart_events()
        work()
        print(sorted(seen))
        """
    )
    assert recording.stdout == "[0, 0, 1, 1, 2, 2]\n" == plain_output(recording)
    assert recording.kinds("work") == ["call", "return"] * 3


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_only_one_tool_id_left(tmp_path: Path, record: Record) -> None:
    recording = record(
        """
        import sys
        free = [tool for tool in range(6) if sys.monitoring.get_tool(tool) is None]
        for tool in free:
            sys.monitoring.use_tool_id(tool, "other")
        def work():
            return 1
        work()
        print(len(free))
        """
    )
    assert recording.stdout == "5\n"
    assert recording.kinds("work") == ["call", "return"]


# ---- scope ----


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """script.py uses package/a.py and other.py; each of their functions calls the next one's."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "a.py").write_text("import other\n\ndef in_a():\n    return other.in_other()\n")
    (tmp_path / "other.py").write_text("import json\n\ndef in_other():\n    return json.loads('[1]')\n")
    return tmp_path


SCOPED = """
from package import a
def main():
    return a.in_a()
main()
"""


def functions(recording: Recording) -> set[str]:
    names = {"main", "in_a", "in_other", "loads"}
    return names & {event.func for event in recording.events if event.kind == "call"}


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ("package", {"in_a"}),
        ("other.py", {"in_other"}),
        ("other.py:package", {"in_a", "in_other"}),
        (".", {"main", "in_a", "in_other"}),
    ],
)
def test_modules(tree: Path, record: Record, modules: str, expected: set[str]) -> None:
    recording = record(SCOPED, "--modules", modules)
    assert functions(recording) == expected
    by_environment = record(SCOPED, TRACE_MODULES=modules)
    assert functions(by_environment) == expected
    # what is left out does not count
    assert min(event.depth for event in recording.events) == 0
    opened = 0
    for event in recording.events:
        opened -= event.kind == "return"
        assert event.depth == opened
        opened += event.kind == "call"


def test_exclude(tree: Path, record: Record) -> None:
    assert functions(record(SCOPED, "--exclude", "package:script.py")) == {"in_other", "loads"}
    assert functions(record(SCOPED, "--modules", ".", "--exclude", "package")) == {"main", "in_other"}


def test_no_stdlib(tree: Path, record: Record) -> None:
    assert functions(record(SCOPED)) == {"main", "in_a", "in_other", "loads"}
    assert functions(record(SCOPED, "--no-stdlib")) == {"main", "in_a", "in_other"}


def test_no_site_packages(record: Record) -> None:
    script = """
        import iniconfig
        """
    everything = record(script)
    assert any("site-packages" in event.file for event in everything.events)
    without = record(script, "--no-site-packages")
    assert not any("site-packages" in event.file for event in without.events)
    assert len(without.of("call")) == 1
    assert any(event.module == "collections" or "/lib/python3" in event.file for event in without.events)


def test_never_pytrace_itself(record: Record) -> None:
    recording = record(
        """
        from pytracer import log, notrace, trace

        @notrace
        def hidden():
            pass

        @trace()
        def shown():
            log("text")

        with trace():
            hidden()
            shown()
        """
    )
    files = {event.file for event in recording.events}
    assert not [file for file in files if "/pytracer/" in file or file.endswith("/pytrace.py")]
    assert recording.kinds("shown") == ["call", "log", "return"]
    # the frozen import system neither
    assert not [file for file in files if file.startswith("<frozen importlib")]


# ---- notrace, trace, log ----


def test_notrace(record: Record) -> None:
    recording = record(
        """
        import asyncio
        from pytrace import notrace

        def called(n):
            return n

        @notrace
        def function():
            return called("inside function")

        @notrace
        def failing():
            called("inside failing")
            raise ValueError

        @notrace
        def generator():
            called("inside generator")
            yield 1
            called("inside generator")
            yield 2

        @notrace
        async def coroutine():
            await asyncio.sleep(0)
            return called("inside coroutine")

        class Some:
            @notrace
            def method(self):
                return called("inside method")

            @notrace
            @staticmethod
            def static():
                return called("inside static")

            @classmethod
            @notrace
            def cls(cls):
                return called("inside classmethod")

            @notrace
            @property
            def attribute(self):
                return called("inside property")

            def visible(self):
                return called("visible")

        @notrace
        class Hidden:
            def __init__(self):
                called("inside class")

            def method(self):
                return called("inside class")

        async def both():
            called("before")
            await coroutine()
            called("after")

        assert function() == "inside function"
        called(1)
        try:
            failing()
        except ValueError:
            called(2)
        for n in generator():
            called(f"between {n}")
        next(generator())
        generator().close()
        called(3)
        asyncio.run(both())
        some = Some()
        some.method(), some.static(), Some.static(), some.cls(), some.attribute
        assert some.visible() == "visible"
        Hidden().method()
        called(4)
        """
    )
    values = [event.values["n"] for event in recording.of("call", func="called")]
    assert values == ["1", "2", "'between 1'", "'between 2'", "3", "'before'", "'after'", "'visible'", "4"]
    recorded = {event.func for event in recording.of("call")}
    assert recorded - {"Hidden"} == {"<module>", "called", "Some", "both", "Some.visible"}
    depth = recording.of("call", func="<module>")[0].depth
    top = [event.depth for event in recording.of("call", func="called") if event.values["n"].isdigit()]
    assert set(top) == {depth + 1}


def test_log(record: Record) -> None:
    recording = record(
        """
        from pytracer import log

        def work(n):
            log("half way", n=n, items=[1, "two"])
            return n

        work(3)
        log("outside")
        log("")
        """
    )
    first, second, third = recording.of("log")
    assert first.func == "work"
    assert first.line == 5
    assert first.depth in (recording.of("call", func="work")[0].depth + n for n in (0, 1))
    assert [(arg["name"], arg["value"], arg["type"]) for arg in first.args] == [
        ("message", "'half way'", "str"),
        ("n", "3", "int"),
        ("items", "[1, 'two']", "list"),
    ]
    assert second.line == 9
    assert second.value == "'outside'"
    assert third.value == "''"
    assert first.duration is None


def test_trace_without_the_wrapper(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
from pytracer import log, notrace, trace

def before(): log("not recorded")
def inside(n): return n

@trace(output="traces.sqlite", quiet=True)
def decorated(n):
    return inside(n)

before()
with trace(output="traces.sqlite", quiet=True):
    inside(1)
before()
decorated(2)
with trace(output="traces.sqlite", quiet=True):
    with trace():
        inside(3)
    inside(4)
before()
"""
    )
    done = run([sys.executable, str(script)], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    recording = Recording(0, "", "", tmp_path / "traces.sqlite", script)
    assert [event.values["n"] for event in recording.of("call", func="inside")] == ["1", "2", "3", "4"]
    assert recording.kinds("inside") == ["call", "return"] * 4
    assert not recording.of(func="before")
    assert len({event.run for event in recording.events}) == 1


def test_trace_beside_other_tools(tmp_path: Path) -> None:
    if sys.version_info < (3, 12):
        pytest.skip("sys.monitoring came with 3.12")
    script = tmp_path / "script.py"
    script.write_text(
        """
import sys
from pytracer import trace
for tool in (0, 1, 2, 3, 4):
    sys.monitoring.use_tool_id(tool, "other")
def inside(): return 1
with trace(output="traces.sqlite", quiet=True):
    inside()
"""
    )
    done = run([sys.executable, str(script)], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    recording = Recording(0, "", "", tmp_path / "traces.sqlite", script)
    assert recording.kinds("inside") == ["call", "return"]
