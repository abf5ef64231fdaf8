"""Leaving parts of a program out, recording only parts, and events of one's own: notrace, trace,
log."""

import sys
from pathlib import Path

from recording import Record, Recording, run


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


def test_what_is_open_as_a_block_ends_is_forgotten(tmp_path: Path) -> None:
    """It may end unseen: nothing of it is left in the next block, nor is anything missing there."""
    script = tmp_path / "script.py"
    script.write_text(
        """
from contextlib import ExitStack
from threading import Semaphore, Thread

from pytracer import notrace, trace

turn, inside, leave, done = (Semaphore(0) for _ in range(4))

def called(n):
    return n

def waits():
    inside.release()
    leave.acquire()

@notrace
def hidden():
    waits()
    called("inside hidden")

def worker():
    for function in waits, hidden, called, hidden:
        turn.acquire()
        function(*["in the thread"] * (function is called))
        done.release()

def after_the_block(n):
    with ExitStack() as blocks:
        blocks.enter_context(trace(output="traces.sqlite", quiet=True))
        called(n)

thread = Thread(target=worker)
thread.start()
for n in range(2):
    with trace(output="traces.sqlite", quiet=True):
        turn.release()
        inside.acquire()
    leave.release()
    done.acquire()
with trace():
    turn.release()
    done.acquire()
turn.release()
inside.acquire()
with trace():
    leave.release()
    done.acquire()
thread.join()
for n in range(3):
    after_the_block(n)
"""
    )
    done = run([sys.executable, str(script)], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    recording = Recording(0, "", "", tmp_path / "traces.sqlite", script)
    calls = recording.of("call", func="called")
    assert [(event.values["n"], event.depth) for event in calls] == [
        ("'in the thread'", 0), ("0", 0), ("1", 0), ("2", 0),
    ]  # fmt: skip
    assert [event.depth for event in recording.of("call", func="waits")] == [0]


def test_a_block_ends_while_a_repr_is_asked_for(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
from threading import Semaphore, Thread

from pytracer import trace

inside, leave = Semaphore(0), Semaphore(0)

class Waits:
    def __repr__(self):
        inside.release()
        leave.acquire()
        return "waited"

def called(n):
    return n

def worker():
    called(Waits())

thread = Thread(target=worker)
with trace(output="traces.sqlite", quiet=True, repr=True):
    thread.start()
    inside.acquire()
leave.release()
thread.join()
with trace():
    called("behind")
"""
    )
    done = run([sys.executable, str(script)], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    recording = Recording(0, "", "", tmp_path / "traces.sqlite", script)
    assert [event.values["n"] for event in recording.of("call", func="called")] == ["waited", "'behind'"]


def test_a_signal_handler_has_a_block_of_its_own(tmp_path: Path) -> None:
    """Also in the middle of another's beginning and end: it used to wait for itself."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import signal
import sys

from pytracer import trace

counts = {"handler": 0}

def called(n):
    return n

def handler(*_):
    counts["handler"] += 1
    with trace(output="traces.sqlite", quiet=True):
        called("in the handler")

def everywhere(frame, event, arg):
    if frame.f_globals.get("__name__") == "pytracer.decorators":
        signal.raise_signal(signal.SIGUSR1)
        return everywhere

signal.signal(signal.SIGUSR1, handler)
for n in range(3):
    sys.settrace(everywhere)
    with trace(output="traces.sqlite", quiet=True):
        sys.settrace(None)
        called(n)
        sys.settrace(everywhere)
    sys.settrace(None)
    called("outside")
assert counts["handler"] > 50, counts
"""
    )
    done = run([sys.executable, str(script)], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    recording = Recording(0, "", "", tmp_path / "traces.sqlite", script)
    values = [event.values["n"] for event in recording.of("call", func="called")]
    assert [value for value in values if value != "'in the handler'"] == ["0", "1", "2"]
