"""Recorded functions and their arguments, on all threads and in all processes."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from recording import PYTRACE, Record, run, texts


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
    """Code that runs after the program's last line is part of it."""
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

        for i in range(40_000):
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
    assert len(kept) + about["lost"] == 80_002
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


def test_more_arguments_than_a_record_has_room_for(record: Record) -> None:
    recording = record(
        """
        names = [f"a{i}" for i in range(3000)]
        exec(f"def wide({', '.join(names)}): return a2999")
        for i in range(50):
            wide(*["x" * 90] * 3000)
        """
    )
    wide = [event for event in recording.events if event.func == "wide"]
    assert [event.kind for event in wide] == ["call", "return"] * 50
    for call in wide[::2]:
        assert list(call.values) == [f"a{i}" for i in range(400)]
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


def test_what_is_made_again_and_again_is_defined_once(record: Record) -> None:
    """Else a program that lives long would fill the database with definitions, which are never
    removed."""
    recorded = record("""
        def show(value):
            return value

        for number in range(1000):
            eval("show(%d)" % number)
            show(type("Made", (), {})())
            exec("def made(a): return a\\nmade(%d)" % number)
        """)
    assert [event.value for event in recorded.of("call", func="show")[:4:2]] == ["0", "1"]
    with closing(sqlite3.connect(recorded.database)) as database:
        codes = database.execute("SELECT func, count(*) FROM code WHERE file = '<string>' GROUP BY func")
        assert dict(codes.fetchall()) == {"<module>": 1, "made": 1}
        types = database.execute("SELECT count(*) FROM type WHERE name = '__main__.Made'")
        assert types.fetchall() == [(1,)]
