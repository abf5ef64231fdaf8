"""Modules compiled by Cython with `profile=True`, which tells of its functions itself, from C."""

import json
import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from recording import Record, Recording, run
from shared import Shared

pytest.importorskip("Cython", reason="needs Cython")

MONITORING = sys.version_info >= (3, 13)  # Cython reports to sys.monitoring, before to profile functions
ORACLE = Path(__file__).parents[1] / "support" / "cython_oracle.py"

COMPILED = """
# cython: profile=True, language_level=3
import cython

def add(a, b):
    return a + b

cdef int inner(int n) except -1:
    if n == 0:
        raise ValueError("zero")
    return n

def outer(n):
    return inner(n)

def catches(n):
    try:
        return outer(n)
    except ValueError as error:
        return str(error)

def numbers(n):
    for i in range(n):
        yield i

def closes():
    try:
        yield 1
    finally:
        add(1, 2)

def swallows():
    try:
        yield 1
    except KeyError:
        yield 2

async def waits(x):
    return await x

def calls(function, x):
    return function(x)

cpdef twice(int n):
    return inner(n) * 2

def closure(n):
    def inside(k):
        return n + k
    return inside

def nothing():
    pass

@cython.profile(False)
def quiet(n):
    return n

@cython.binding(False)
def builtin(n):
    return n

cdef int free(int n) noexcept nogil:
    return n + 1

def without_gil(n):
    cdef int result
    with nogil:
        result = free(5)
    return result

cdef class Order:
    cdef int total
    def __init__(self, total):
        self.total = total
    def save(self, more):
        return more + self.total
    cpdef deep(self, x):
        return x
    @property
    def price(self):
        return self.total
    @staticmethod
    def static(x):
        return x
    @classmethod
    def of_class(cls, x):
        return x
    def __add__(self, other):
        return 3
    def __len__(self):
        return self.total

class Plain:
    def method(self, x):
        return x
"""

# Told of line by line, too; in a package, and built in another folder than it is installed in.
TRACED = """
# cython: linetrace=True, language_level=3

def lines(n):
    total = 0
    for i in range(n):
        total += i
    return total
"""

BUILD = """
from Cython.Build import cythonize
from setuptools import Extension, setup

traced = Extension("package.traced", ["src/package/traced.pyx"], define_macros=[("CYTHON_TRACE", "1")])
natively = Extension("natively", ["natively.pyx"], extra_compile_args=[
    "-finstrument-functions", "-finstrument-functions-exclude-file-list=/python3.",
    "-finstrument-functions-exclude-function-list=__Pyx_,PyMonitoring_"])
setup(name="compiled", ext_modules=cythonize(["compiled.pyx", traced, natively], quiet=True),
      packages=["package"], package_dir={"package": "src/package"})
"""

USES = """
import asyncio
import compiled

def doubles(x):
    return 2 * x

def fails(x):
    raise KeyError(x)

def catches_it(x):
    try:
        compiled.calls(fails, x)
    except KeyError as error:
        return error.args

async def later():
    await asyncio.sleep(0)
    return 8

def delegates():
    yield from compiled.numbers(2)

def main():
    compiled.add(1, 2)
    compiled.outer(1)
    print(compiled.catches(0), compiled.calls(doubles, 4), catches_it(5))
    print(list(compiled.numbers(3)), any(compiled.numbers(3)), list(delegates()), any(delegates()))
    closed = compiled.numbers(3)
    print(next(closed), closed.close(), list(closed))
    closed = compiled.closes()
    print(next(closed), closed.close())
    never = compiled.numbers(3)
    try:
        never.throw(KeyError("thrown"))
    except KeyError as error:
        print(repr(error))
    thrown = compiled.swallows()
    print(next(thrown), thrown.throw(KeyError("thrown")), list(thrown))
    print(asyncio.run(compiled.waits(later())))
    try:
        compiled.outer(0)
    except ValueError as error:
        print(error)

main()
"""


# Everything that an oracle in Python sees, too.
EACH = """
import asyncio, signal
from compiled import (Order, Plain, add, builtin, calls, catches, closure, nothing, numbers, outer,
                      quiet, twice, waits, without_gil)

def adds(x):
    return add(x, 1)

def fails(x):
    raise KeyError(x)

def interrupted(number, frame):
    add(3, 4)

async def later():
    await asyncio.sleep(0)
    return 8

def attempt(function, *args):
    try:
        function(*args)
    except Exception as error:
        return error

def main():
    add(1, 2)
    twice(3)
    outer(1)
    nothing()
    quiet(2)
    builtin(2)
    catches(0)
    without_gil(1)
    list(numbers(3))
    any(numbers(3))
    closure(1)(2)
    calls(adds, 5)
    order = Order(4)
    order.save(1), order.deep(2), order.price, Order.static(3), Order.of_class(4), order + 1, len(order)
    Plain().method(5)
    asyncio.run(waits(later()))
    signal.signal(signal.SIGUSR1, interrupted)
    calls(signal.raise_signal, signal.SIGUSR1)
    attempt(outer, 0)
    attempt(twice, 0)
    attempt(calls, fails, 1)
    attempt(calls, catches, 0)
    attempt(add)

main()
"""


def make(folder: Path) -> None:
    (folder / "src" / "package").mkdir(parents=True)
    (folder / "src" / "package" / "__init__.py").touch()
    (folder / "src" / "package" / "traced.pyx").write_text(TRACED)
    (folder / "compiled.pyx").write_text(COMPILED)
    (folder / "natively.pyx").write_text(COMPILED)
    (folder / "setup.py").write_text(BUILD)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(
        command, cwd=folder, env={"PATH": "/usr/bin:/bin", "CFLAGS": "-O0"}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.fixture(scope="module")
def compiled(shared: Shared) -> Path:
    """The folder of the modules."""
    return shared("cython", make)


def kinds(recording: Recording, func: str) -> list[str]:
    return [
        event.kind for event in recording.events if event.func == func and event.file.endswith("compiled.pyx")
    ]


def uses(record: Record, compiled: Path, source: str = USES, *options: str) -> Recording:
    text = f"import sys\nsys.path[:0] = {[str(compiled), str(compiled / 'src')]!r}\n{dedent(source)}"
    recording = record(text, *(options or ["--no-stdlib"]))
    assert (recording.status, recording.stderr) == (0, "")
    assert recording.stdout == recording.plain_output()
    return recording


def test_compiled_functions(record: Record, compiled: Path) -> None:
    """Before 3.13, each turn of a generator is a call, and exceptions are not told."""
    recording = uses(record, compiled)
    recorded = [event for event in recording.events if event.file.endswith("compiled.pyx")]
    assert {event.layer for event in recorded} == {"cython"}
    assert {event.file for event in recorded} == {str(compiled / "compiled.pyx")}
    assert {event.module for event in recorded} == {"compiled"}
    lines = {event.func: event.line for event in recorded if event.kind == "call"}
    assert (lines["add"], lines["inner"], lines["calls"]) == (5, 8, 41)
    assert [event.args for event in recorded if event.kind == "call" and event.args] == []
    assert kinds(recording, "add") == ["call", "return"] * 2
    if MONITORING:
        ends = ["throw", "raise", "exception"]
        assert kinds(recording, "catches") == ["call", "raise", "return"]
        assert kinds(recording, "inner") == ["call", "return", *["call", "raise", "exception"] * 2]
        assert kinds(recording, "closes") == ["call", "yield", *ends]
        assert kinds(recording, "swallows") == [
            "call",
            "yield",
            "throw",
            "raise",
            "yield",
            "resume",
            "return",
        ]
        assert {event.line for event in recorded if (event.kind, event.func) == ("raise", "inner")} == {10}
    else:
        assert kinds(recording, "inner") == ["call", "return"] * 3
        assert [event.args for event in recorded if (event.kind, event.func) == ("return", "inner")][1:] == [
            [],
            [],
        ]
        assert kinds(recording, "swallows") == ["call", "return"] * 3
    assert recording.kinds("doubles") == ["call", "return"]
    assert recording.kinds("fails") == ["call", "raise", "exception"]
    assert {event.value for event in recording.of("raise", "exception", func="fails")} == {"KeyError(5)"}
    assert recording.kinds("catches_it") == ["call", "raise", "return"]
    assert recording.kinds("later") == ["call", "yield", "resume", "return"]
    assert recording.kinds("main") == ["call", "raise", "raise", "return"]
    depths = {event.func: event.depth for event in recording.of("call")}
    assert depths["main"] == depths["<module>"] + 1 == depths["catches_it"] - 1 == depths["doubles"] - 2
    for event in recording.of("return", func="main"):
        assert event.depth == depths["main"]


def told(recording: Recording) -> list[tuple[str, str, int, int]]:
    """As the oracle tells it."""
    found = []
    for event in recording.events:
        in_pyx = event.file.endswith(".pyx")
        if (not in_pyx and event.file != str(recording.script)) or event.layer == "c":
            continue
        if event.kind == "line":
            continue
        kind = event.kind
        if in_pyx and kind == "throw":  # Cython reports that it goes on
            kind = "resume"
        if not MONITORING:
            if kind == "raise":
                continue
            kind = "call" if kind in ("call", "resume", "throw") else "return"
        line = event.line if kind == "raise" and in_pyx else 0
        found.append((kind, event.func, event.depth, line))
    return found


@pytest.mark.parametrize("options", [[], ["--c-calls"], ["--lines"], ["--attributes", "4"]])
def test_against_a_recorder_in_python(
    record: Record, compiled: Path, options: list[str], tmp_path: Path
) -> None:
    recording = uses(record, compiled, EACH, "--no-stdlib", *options)
    output = tmp_path / "told.json"
    run([sys.executable, str(ORACLE), str(recording.script), str(output)], recording.script.parent)
    expected = [tuple(event) for event in json.loads(output.read_text())]
    found = told(recording)
    assert [event[:2] + event[3:] for event in found] == [event[:2] + event[3:] for event in expected]
    if "--c-calls" not in options:
        assert [event[2] for event in found] == [event[2] for event in expected]


def test_one_call_not_two(record: Record, compiled: Path) -> None:
    """As a function in C, and as one of Cython's."""
    recording = uses(record, compiled, EACH + "\nmain()\n", "--no-stdlib", "--c-calls")
    counts = Counter(
        (event.layer, event.kind, event.func) for event in recording.events if event.module == "compiled"
    )
    for func in ("add", "outer", "twice", "nothing", "without_gil", "calls", "save", "static",
                 "of_class", "method", "builtin", "deep", "inside", "closure"):  # fmt: skip
        assert (
            counts["cython", "call", func]
            == counts["cython", "return", func] + counts["cython", "exception", func]
        ), func
        assert counts["cython", "call", func] >= 2
        assert ("c", "call", func) not in counts or func == "add"
    if sys.version_info >= (3, 12):  # 3.11 tells of built-in functions alone
        # Not told by Cython: a function without profile, a call that did not begin; what makes a
        # generator is another call than its turns.
        assert counts["c", "call", "quiet"] == counts["c", "return", "quiet"] == 2
        assert counts["c", "call", "add"] == counts["c", "exception", "add"] == 2
        assert counts["c", "call", "numbers"] == counts["c", "return", "numbers"] == 4
        assert counts["c", "call", "Order"] == counts["c", "return", "Order"] == 2
    for event in recording.events:
        if event.func == "main" and event.kind != "raise":
            assert event.depth == 1


def test_lines_are_not_told(record: Record, compiled: Path) -> None:
    """Nor is anything of the frame that happens to run."""
    source = """
        from package.traced import lines
        def main(secret):
            found = lines(3)
            return found
        print(main(7))
        """
    recording = uses(record, compiled, source, "--lines", "--c-calls")
    found = [event for event in recording.events if event.func == "lines"]
    assert [(event.layer, event.kind) for event in found] == [("cython", "call"), ("cython", "return")]
    assert [event.args for event in found] == [[], [{"name": "return value", "value": "3", "type": "int"}]]
    assert {event.module for event in found} == {"package.traced"}
    assert {event.file for event in found} == {str(compiled / "src" / "package" / "traced.pyx")}
    own = [event.values for event in recording.of("line", func="main")]
    assert {"found": "3"} in own


def test_scope(record: Record, compiled: Path) -> None:
    """By the file of the source. A function out of scope is one in C, as any other."""
    source = "from compiled import add, calls\ndef main():\n    calls(lambda x: add(x, x), 2)\nmain()\n"
    excluded = ["--no-stdlib", "--exclude", str(compiled), "--c-calls"]
    recording = uses(record, compiled, source, *excluded)
    events = [event for event in recording.events if event.module == "compiled"]
    found = [(event.layer, event.kind, event.func) for event in events]
    if sys.version_info >= (3, 12):
        assert found == [
            ("c", "call", "calls"),
            ("c", "call", "add"),
            ("c", "return", "add"),
            ("c", "return", "calls"),
        ]
    else:
        assert found == []


def test_threads(record: Record, compiled: Path) -> None:
    source = """
        import threading
        from compiled import add
        threads = [threading.Thread(target=add, args=(n, n), name=f"t{n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """
    recording = uses(record, compiled, source, "--lines", "own")
    found = [(event.thread, event.kind) for event in recording.events if event.func == "add"]
    assert sorted(found) == [(f"t{n}", kind) for n in range(3) for kind in ("call", "return")]


def test_greenlets(record: Record, compiled: Path) -> None:
    """A compiled function switches: its call goes on as often as the greenlet does."""
    pytest.importorskip("greenlet")
    source = """
        from greenlet import getcurrent, greenlet
        from compiled import calls
        def child(x):
            for n in range(3):
                calls(getcurrent().parent.switch, n)
            return 5
        def main():
            one = greenlet(child)
            return [one.switch(1) for _ in range(4)]
        print(main())
        """
    recording = uses(record, compiled, source, "--no-stdlib", "--c-calls")
    found = [event for event in recording.events if event.func == "calls"]
    assert [event.kind for event in found] == ["call", "return"] * 3
    assert len({event.depth for event in found}) == 1
    assert [event.depth for event in recording.of("call", "return", func="child")] == [found[0].depth - 1] * 2


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="not built for this machine")
def test_native_functions_too(record: Record, compiled: Path) -> None:
    """A call as a function in C is told until Cython has told of that function once."""
    source = """
        from natively import add, calls
        def adds(x):
            return add(x, 1)
        def main():
            for n in range(3):
                calls(adds, n)
        main()
        """
    recording = uses(record, compiled, source, "--no-stdlib", "--c-calls", "--native")
    counts = Counter((event.layer, event.func, event.kind) for event in recording.events)
    for func in ("add", "calls"):
        assert counts["cython", func, "call"] == counts["cython", func, "return"] == 3
        assert counts["c", func, "call"] == counts["c", func, "return"] <= 1
    begun = {}
    for event in recording.events:
        if event.layer == "native" and event.kind == "call":
            begun[event.depth] = event.func
        elif event.layer == "cython" and event.func == "add" and event.kind == "call":
            assert "add" in begun[event.depth - 1]
    assert counts["python", "adds", "call"] == 3


def test_a_profile_function_of_the_program(record: Record, compiled: Path) -> None:
    """It is told of compiled functions as ever."""
    source = """
        import compiled
        seen = []
        def profile(frame, event, arg):
            seen.append((event, frame.f_code.co_name))
        def main():
            compiled.outer(1)
            list(compiled.numbers(2))
        sys.setprofile(profile)
        main()
        sys.setprofile(None)
        print(seen)
        """
    recording = uses(record, compiled, source)
    assert recording.kinds("main") == ["call", "return"]
