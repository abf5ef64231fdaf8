"""Greenlets: each has its own depth, nesting and durations, however they switch."""

import json
import sys
from pathlib import Path

import pytest

from recording import Event, Record, run, write

pytest.importorskip("greenlet")

# Does at random what greenlets do, and writes down each beginning and end of a call itself, with
# its depth. Only what takes a number is written down. `act` is a call more on the way to whatever
# it calls.
WANDERER = """
    import gc, json, random, sys, threading
    from time import perf_counter_ns
    from greenlet import getcurrent, greenlet

    gc.disable()  # a collection in one thread closes generators that are in another one's log
    numbers = iter(range(1 << 30))


    class Odd(Exception):
        pass


    class Wanderer:
        def __init__(self, seed):
            self.random = random.Random(seed).random
            self.log = []
            self.alive = []
            self.main = getcurrent()

        def choose(self, *those):
            return those[int(self.random() * len(those))]

        def note(self, kind, n, depth):
            self.log.append([kind, n, depth, perf_counter_ns()])

        def switch(self):
            target = self.choose(*self.alive, self.main, None)
            if target is None or (target is not self.main and target.dead):
                target = greenlet(self.begin)
                self.alive.append(target)
                if len(self.alive) > 20:  # GreenletExit is thrown into the one that is nobody's any more
                    self.alive.pop(self.choose(*range(20)))
            if target is not getcurrent():
                target.switch(next(numbers), 0)

        def act(self, depth):
            what = self.random()
            if len(self.log) > 1200:
                return
            if what < 0.45:
                self.switch()
            elif what < 0.5:
                self.sink(next(numbers), depth + 2, self.choose(3, 250))
            elif what < 0.6:
                for _ in self.generate(next(numbers), depth + 2):
                    self.act(depth + 1)
            elif depth < 60:
                try:
                    self.step(next(numbers), depth + 2)
                except Odd:
                    pass

        def begin(self, n, depth):
            self.note("call", n, depth)
            try:
                for _ in range(5):
                    self.act(depth)
            except BaseException:
                self.note("exception", n, depth)
                raise
            self.note("return", n, depth)

        def step(self, n, depth):
            self.note("call", n, depth)
            try:
                for _ in range(self.choose(0, 1, 2, 3)):
                    self.act(depth)
                if self.random() < 0.1:
                    raise Odd
            except BaseException:
                self.note("exception", n, depth)
                raise
            self.note("return", n, depth)

        def sink(self, n, depth, left):
            self.note("call", n, depth)
            try:
                if left:
                    self.sink(next(numbers), depth + 1, left - 1)
                else:
                    self.act(depth)
            except BaseException:
                self.note("exception", n, depth)
                raise
            self.note("return", n, depth)

        def generate(self, n, depth):
            self.note("call", n, depth)
            try:
                for _ in range(2):
                    self.note("yield", n, depth)
                    yield
                    self.note("resume", n, depth)
                    self.act(depth)
            except BaseException:
                self.note("exception", n, depth)
                raise
            self.note("return", n, depth)

        def wander(self, depth):
            while len(self.log) < 1200:
                self.act(depth)


    def wander(seed, depth, logs):
        wanderer = Wanderer(seed)
        logs[threading.get_native_id()] = wanderer.log
        wanderer.wander(depth + 1)


    sys.setrecursionlimit(5000)
    logs = {}
    first = int(sys.argv[1])
    threads = [threading.Thread(target=wander, args=(first + i, 0, logs)) for i in range(int(sys.argv[2]))]
    for thread in threads:
        thread.start()
    wander(first, 1, logs)
    for thread in threads:
        thread.join()
    print(json.dumps(logs))
"""
WRITTEN = ("begin", "step", "sink", "generate")
KINDS = ("call", "return", "exception", "yield", "resume")
TOLERANCE = 20_000  # ns, and a hundredth: two clocks


def plain(event: Event) -> str:
    return event.func.rpartition(".")[2]


@pytest.mark.parametrize(("seed", "threads"), [(1, 0), (2, 0), (10, 2)])
def test_depths_and_durations_are_each_greenlets_own(record: Record, seed: int, threads: int) -> None:
    recording = record(WANDERER, "--no-stdlib", args=(str(seed), str(threads)))
    logs = json.loads(recording.stdout)
    assert len(logs) == threads + 1
    for tid, log in logs.items():
        events = [
            event for event in recording.of(*KINDS) if event.tid == int(tid) and plain(event) in WRITTEN
        ]
        # some Pythons end the greenlets that are left at their own end, when the log has been
        # printed
        assert {event.kind for event in events[len(log) :]} <= {"exception"}
        events = events[: len(log)]
        assert [(event.kind, event.depth) for event in events] == [(kind, depth) for kind, _, depth, _ in log]
        began = {}
        for i, (event, (kind, n, _, time)) in enumerate(zip(events, log, strict=True)):
            before = log[i - 1][3] if i else 0
            after = log[i + 1][3] if i + 1 < len(log) else 1 << 63
            if kind == "call":
                assert event.values["n"] == str(n)
                began[n] = before, time
            elif kind in ("return", "exception"):
                # the call was recorded between the notes before and behind it, and so was its end
                assert event.duration is not None
                longest, shortest = after - began[n][0], time - began[n][1]
                assert shortest * 0.99 - TOLERANCE < event.duration < longest * 1.01 + TOLERANCE


def test_a_thread_with_greenlets_is_one_thread(record: Record) -> None:
    recording = record(
        """
        from greenlet import greenlet, getcurrent

        main = getcurrent()


        def inner(n):
            main.switch()
            return n


        def outer(n):
            return inner(n) + 1


        greenlets = [greenlet(outer) for _ in range(50)]
        for n, one in enumerate(greenlets):
            one.switch(n)
        for one in reversed(greenlets):
            one.switch()
        """
    )
    assert {(event.tid, event.thread) for event in recording.of()} == {
        (recording.events[0].pid, "MainThread")
    }
    assert [event.value for event in recording.of("return", func="outer")] == [
        str(n + 1) for n in range(49, -1, -1)
    ]
    assert {event.depth for event in recording.of(func="inner")} == {1}
    assert {event.depth for event in recording.of(func="outer")} == {0}
    assert not [event for event in recording.events if event.kind == "lost"]


def test_a_greenlet_that_is_dropped_leaves_no_depth_behind(record: Record) -> None:
    """A greenlet of a thread that has ended never runs to its end."""
    recording = record(
        """
        import threading
        from greenlet import greenlet, getcurrent

        kept = []


        def stay(up):
            up.switch()


        def start():
            one = greenlet(stay)
            kept.append(one)
            one.switch(getcurrent())


        def last():
            pass


        for _ in range(3):
            thread = threading.Thread(target=start)
            thread.start()
            thread.join()
        kept.clear()
        threading.Thread(target=last).start()
        for _ in range(3):
            start()
        kept.clear()
        greenlet(last).switch()
        """,
        "--no-stdlib",
    )
    assert [event.depth for event in recording.of("call", func="stay")] == [0] * 6
    assert [event.depth for event in recording.of("call", func="last")] == [0, 0]


def test_a_greenlet_of_nothing_but_a_generator(record: Record) -> None:
    """It has no data stack before it calls a function, and is one of its own nevertheless."""
    recording = record(
        """
        from greenlet import greenlet, getcurrent


        def called(n):
            main.switch()
            return n


        def numbers(count, calls):
            for n in range(count):
                main.switch()
                yield called(n) if calls else n


        def between():
            pass


        def run():
            each = [greenlet(list), greenlet(list), greenlet(set)]
            for one, calls in zip(each, (False, True, False)):
                one.switch(numbers(3, calls))
            while any(each):
                between()
                for one in each:
                    if one:
                        one.switch()
            between()


        main = getcurrent()
        run()
        """,
        "--no-stdlib",
    )
    assert {event.depth for event in recording.of("call", func="between")} == {2}
    turns = recording.of("call", "resume", "yield", "return", func="numbers")
    assert len(turns) == 3 * 8
    assert {event.depth for event in turns} == {0}
    calls = recording.of("call", "return", func="called")
    assert [event.depth for event in calls] == [1] * 6
    assert all(event.duration is not None for event in turns if event.kind in ("yield", "return"))


def test_a_forked_child_goes_on_with_its_greenlets(record: Record) -> None:
    recording = record(
        """
        import os
        from greenlet import greenlet, getcurrent

        main = getcurrent()


        def inner():
            main.switch()


        def outer():
            inner()


        one = greenlet(outer)
        one.switch()
        child = os.fork()
        one.switch()
        if child:
            os.waitpid(child, 0)
        """
    )
    ends = recording.of("return", func="inner") + recording.of("return", func="outer")
    assert sorted((event.func, event.depth) for event in ends) == [("inner", 1)] * 2 + [("outer", 0)] * 2
    assert len({event.pid for event in ends}) == 2


def test_a_part_may_begin_while_greenlets_wait(tmp_path: Path) -> None:
    """Exceptions that arrive in what began before somebody listened."""
    write(
        tmp_path,
        "parts.py",
        """
        from greenlet import getcurrent, greenlet
        from pytracer import trace

        main = getcurrent()


        def waiting(make):
            namespace = {"main": main}
            exec("def inner():\\n main.switch()\\ndef outer():\\n inner()", namespace)  # code that never ran
            one = make(namespace["outer"])
            one.switch()
            return one


        class Sub(greenlet):
            gr_frame = property(lambda self: print("looked at"))


        before = [waiting(greenlet), waiting(Sub), greenlet(print)]
        dropped = waiting(greenlet)
        for made in before[:2], [waiting(greenlet), waiting(Sub)]:
            with trace(output="traces.sqlite", quiet=True):
                for one in made:
                    try:
                        one.throw(ValueError("thrown"))
                    except ValueError as error:
                        print(error)
                dropped = None
        """,
    )
    bare = run([sys.executable, "parts.py"], tmp_path)
    assert (bare.returncode, bare.stdout, bare.stderr) == (0, "thrown\n" * 4, "")
