"""When functions begin, go on and end: times, generators, exceptions."""

import sys
from itertools import pairwise
from textwrap import dedent

from recorded import FIND_DUMPER
from recording import Event, Record, run, texts

CLOCK_STEP = 32  # ns: rounding of two times of a clock that ticks in units of some ns


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
    assert recording.stdout == recording.plain_output()
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
    # on 3.11 there is also the StopIteration that ends an await
    kinds = ["call", "resume", "return", "yield"]
    assert sorted(event.kind for event in recording.of(*kinds, func="child")) == sorted(kinds * 2)
    [end] = recording.of("return", func="main")
    assert end.value == "[1, 2, 3, 4]"
    begin = recording.of("call", func="main")[0]
    assert abs((end.duration or 0) - (end.time - begin.time)) <= CLOCK_STEP


def test_time_goes_on_where_events_were_lost(record: Record) -> None:
    recording = record(
        FIND_DUMPER
        + dedent(
            """
            import os, signal

            def step(n):
                return n

            pid = dumper()
            for i in range(3):
                os.kill(pid, signal.SIGSTOP)
                for n in range(20_000):
                    step(n)
                os.kill(pid, signal.SIGCONT)
                for n in range(5_000):
                    step(n)
            """
        ),
        "--buffer-size",
        "256KiB",
    )
    assert any(event.kind == "lost" for event in recording.events)
    by_id = sorted(recording.events, key=lambda event: event.id)
    for before, after in pairwise(by_id):
        if before.id >> 18 == after.id >> 18:
            assert before.time <= after.time, (before, after)
