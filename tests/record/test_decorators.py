"""notrace, trace and log, as a program uses them."""

from pathlib import Path
from typing import Any

import pytest

from beside import PYTHON, PYTRACE, Outcome, run, write
from recording import read

NAMES = "from pytracer import log, notrace, trace\n"


def record(folder: Path, source: str, *options: str) -> list[dict[str, Any]]:
    """Events in a script run under pytrace."""
    script = write(folder, "script.py", source)
    done = run([*PYTRACE, "-q", "--no-stdlib", *options, script], folder)
    assert (done.status, done.stderr) == (0, b"")
    return [event for event in read(folder / "traces.sqlite") if event["file"].endswith("script.py")]


def play(folder: Path, source: str, status: int = 0) -> Outcome:
    """A script that records a part of itself."""
    done = run([*PYTHON, write(folder, "script.py", source)], folder)
    assert done.status == status, done.stderr
    return done


def functions(folder: Path) -> list[str]:
    """Calls in the script, in order."""
    return [
        event["func"]
        for event in read(folder / "traces.sqlite")
        if event["kind"] == "call" and event["file"].endswith("script.py")
    ]


# ---- notrace -------------------------------------------------------------------------------------


NOTRACE = """
    import asyncio, functools
    from pytracer import notrace

    def seen(): pass
    def hidden(): pass

    @notrace
    def function(): hidden()

    @notrace
    def generator():
        yield hidden()

    @notrace
    async def coroutine(): hidden()

    def repeated(function):
        @functools.wraps(function)
        def wrapper():
            return function()
        return wrapper

    @notrace
    @repeated
    def decorated(): hidden()

    @repeated
    def visible(): seen()

    @notrace
    @functools.lru_cache
    def cached(): hidden()

    class Some:
        @notrace
        def method(self): hidden()

        @notrace
        @staticmethod
        def static(): hidden()

        @classmethod
        @notrace
        def of_class(cls): hidden()

        @notrace
        @property
        def value(self): hidden()

        def shown(self): seen()

    @notrace
    class All:
        def method(self): hidden()

        @property
        def value(self): hidden()

        class Inner:
            def method(self): hidden()

    def main():
        function()
        list(generator())
        asyncio.run(coroutine())
        decorated()
        visible()
        cached()
        some = Some()
        some.method(), some.static(), some.of_class(), some.value, some.shown()
        all = All()
        all.method(), all.value, all.Inner().method()
        notrace(some.shown)
        some.shown()

    main()
"""


def test_notrace(tmp_path: Path) -> None:
    calls = [event["func"] for event in record(tmp_path, NOTRACE) if event["kind"] == "call"]
    behind_main = calls[calls.index("main") + 1 :]
    assert behind_main == ["repeated.<locals>.wrapper", "visible", "seen", "Some.shown", "seen"]


def test_notrace_returns_the_same_object(tmp_path: Path) -> None:
    source = """
        def f(): pass
        class C: pass
        p = property(f)
        assert notrace(f) is f and notrace(C) is C and notrace(p) is p and f.__name__ == "f"
        try:
            notrace(5)
        except TypeError as error:
            print(error)
    """
    done = play(tmp_path, NAMES + source.replace("\n        ", "\n"))
    assert done.stdout == b"notrace: a function or class is expected, not int\n"


# ---- log -----------------------------------------------------------------------------------------


def test_log(tmp_path: Path) -> None:
    [event] = [
        event
        for event in record(tmp_path, NAMES + "def f():\n    log('paid', amount=5, to='bob')\nf()\n")
        if event["kind"] == "log"
    ]
    assert (event["func"], event["line"]) == ("f", 3)
    assert [arg["value"] for arg in event["args"]] == ["'paid'", "5", "'bob'"]
    assert [arg["name"] for arg in event["args"]][1:] == ["amount", "to"]


def test_log_without_a_recording(tmp_path: Path) -> None:
    assert play(tmp_path, NAMES + "log('nothing', a=1)\nprint(log.__name__)").stdout == b"log\n"


def test_the_other_name(tmp_path: Path) -> None:
    play(
        tmp_path,
        "import pytrace, pytracer\nassert pytrace.log is pytracer.log and pytrace.trace is pytracer.trace",
    )


# ---- trace ---------------------------------------------------------------------------------------


def test_block(tmp_path: Path) -> None:
    done = play(
        tmp_path,
        NAMES
        + "def before(): pass\ndef inside(): pass\ndef after(): pass\n"
        + "before()\nwith trace(no_stdlib=True):\n    inside()\nafter()\n"
        + "with trace():\n    inside()\nafter()\n",
    )
    assert functions(tmp_path) == ["inside", "inside"]
    assert b"events of 1 process in traces.sqlite" in done.stderr


def test_nested_blocks(tmp_path: Path) -> None:
    play(
        tmp_path,
        NAMES + "def f(): pass\nwith trace(quiet=True):\n  with trace():\n    f()\n  f()\nf()\n",
    )
    assert functions(tmp_path) == ["f", "f"]


def test_decorated(tmp_path: Path) -> None:
    done = play(
        tmp_path,
        NAMES
        + """
import asyncio

@trace(output="my.sqlite", quiet=True)
def function(n):
    return n + 1

@trace()
def generator():
    got = yield 1
    yield got
    return 3

@trace()
async def coroutine():
    await asyncio.sleep(0)
    return 4

print(function(1), function.__name__)
g = generator()
print(next(g), g.send(2), list(g))
print(asyncio.run(coroutine()))
try:
    @trace()
    async def generator():
        yield
except TypeError as error:
    print(error)
""",
    )
    assert done.stdout.splitlines()[:3] == [b"2 function", b"1 2 []", b"4"]
    assert b"an asynchronous generator cannot be decorated" in done.stdout
    assert done.stderr == b""
    found = {event["func"] for event in read(tmp_path / "my.sqlite") if event["file"].endswith("script.py")}
    assert found == {"function", "generator", "coroutine"}


def test_exception_passes(tmp_path: Path) -> None:
    done = play(tmp_path, NAMES + "def f(): 1 / 0\nwith trace(quiet=True):\n    f()\n", status=1)
    assert done.stderr.endswith(b"ZeroDivisionError: division by zero\n")
    kinds = [e["kind"] for e in read(tmp_path / "traces.sqlite") if e["func"] == "f"]
    assert kinds == ["call", "raise", "exception"]


def test_other_threads_are_recorded(tmp_path: Path) -> None:
    play(
        tmp_path,
        NAMES
        + """
import threading
go, done = threading.Event(), threading.Event()
def inside(): pass
def work():
    go.wait()
    inside()
    done.set()
thread = threading.Thread(target=work)
thread.start()
with trace(quiet=True, no_stdlib=True):
    go.set()
    done.wait()
thread.join()
""",
    )
    assert "inside" in functions(tmp_path)


def test_can_be_read_while_the_program_runs(tmp_path: Path) -> None:
    done = play(
        tmp_path,
        NAMES
        + """
import subprocess, sys, time
def inside(): pass
with trace(quiet=True, no_stdlib=True):
    inside()
end = time.monotonic() + 60
while time.monotonic() < end:
    out = subprocess.run([sys.executable, "-m", "pytracer", "print"], capture_output=True, text=True).stdout
    if "inside" in out:
        print("found")
        break
""",
    )
    assert done.stdout == b"found\n"


def test_under_pytrace_it_changes_nothing(tmp_path: Path) -> None:
    source = NAMES + "def f(): pass\nf()\nwith trace(output='other.sqlite'):\n    f()\nf()\n"
    assert [e["func"] for e in record(tmp_path, source) if e["kind"] == "call"].count("f") == 3
    assert not (tmp_path / "other.sqlite").exists()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("trace(outputs='x')", "trace(): there is no option 'outputs'; did you mean output?"),
        ("trace(max_size='x')", "trace(): max_size = 'x': a size is expected"),
        ("trace(output='.')", "is a folder"),
        ("trace(output='script.py')", "is not a database"),
    ],
)
def test_bad_options(call: str, message: str, tmp_path: Path) -> None:
    done = play(
        tmp_path, NAMES + f"try:\n    with {call}: pass\nexcept ValueError as error:\n    print(error)\n"
    )
    assert message in done.stdout.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_forked_child(tmp_path: Path) -> None:
    done = play(
        tmp_path,
        NAMES
        + """
import os, sys
def inside(): pass
with trace(no_stdlib=True):
    if os.fork() == 0:
        inside()
        sys.exit()
    os.wait()
""",
    )
    assert b"events of 2 processes" in done.stderr
    assert functions(tmp_path) == ["inside"]
