"""Modules compiled by Cython with `profile=True`, which tells of its functions itself, from C."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from recording import Record, Recording

COMPILED = """
# cython: profile=True, language_level=3

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
"""

BUILD = """
from Cython.Build import cythonize
from setuptools import setup

setup(name="compiled", ext_modules=cythonize("compiled.pyx", quiet=True))
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


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the module."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "compiled.pyx").write_text(COMPILED)
    (folder / "setup.py").write_text(BUILD)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(
        command, cwd=folder, env={"PATH": "/usr/bin:/bin", "CFLAGS": "-O0"}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return folder


def kinds(recording: Recording, func: str) -> list[str]:
    return [
        event.kind for event in recording.events if event.func == func and event.file.endswith("compiled.pyx")
    ]


def uses(record: Record, compiled: Path, source: str = USES) -> Recording:
    recording = record(f"import sys\nsys.path.insert(0, {str(compiled)!r})\n{dedent(source)}", "--no-stdlib")
    assert (recording.status, recording.stderr) == (0, "")
    assert recording.stdout == recording.plain_output()
    return recording


def test_compiled_functions(record: Record, compiled: Path) -> None:
    """From 3.13 on they are recorded; before, nothing of them is, and nothing else suffers."""
    recording = uses(record, compiled)
    recorded = [event for event in recording.events if event.file.endswith("compiled.pyx")]
    if sys.version_info < (3, 13):
        assert recorded == []
    else:
        ends = ["throw", "raise", "exception"]
        assert kinds(recording, "add") == ["call", "return"] * 2
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
    assert recording.kinds("doubles") == ["call", "return"]
    assert recording.kinds("fails") == ["call", "raise", "exception"]
    assert {event.value for event in recording.of("raise", "exception", func="fails")} == {"KeyError(5)"}
    assert recording.kinds("catches_it") == ["call", "raise", "return"]
    assert recording.kinds("later") == ["call", "yield", "resume", "return"]
    assert recording.kinds("main") == ["call", "raise", "raise", "return"]
    depths = {event.func: event.depth for event in recording.of("call")}
    assert depths["main"] == depths["<module>"] + 1 == depths["catches_it"] - 1
    for event in recording.of("return", func="main"):
        assert event.depth == depths["main"]


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
