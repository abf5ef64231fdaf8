"""Runs the same thing under python and under pytrace, in the same folder, for comparison."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

PYTHON = [sys.executable]
PYTRACE = [str(Path(sys.executable).with_name("pytrace"))]
TIMEOUT = 120


def wait_for(condition: Callable[[], Any], what: str, seconds: float = TIMEOUT) -> Any:
    """Polls until the condition holds; returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)
    return value


class Outcome(NamedTuple):
    """A user's view of a program: bytes, and the exit status (negative: the signal's number)."""

    status: int
    stdout: bytes
    stderr: bytes


def environment(**more: str) -> dict[str, str]:
    """This process's, without what would change how a recording goes."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTRACE_")} | more


def run(command: Sequence[str], folder: Path, stdin: bytes = b"", **variables: str) -> Outcome:
    done = subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, timeout=TIMEOUT, env=environment(**variables)
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def write(folder: Path, name: str, source: str) -> str:
    """Writes a source file into the folder; returns its name."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source))
    return name


def both(folder: Path, *arguments: str, stdin: bytes = b"", **variables: str) -> tuple[Outcome, Outcome]:
    """(under python, under pytrace -q)."""
    plain = run([*PYTHON, *arguments], folder, stdin, **variables)
    recorded = run([*PYTRACE, "-q", *arguments], folder, stdin, **variables)
    return plain, recorded


def assert_same(folder: Path, *arguments: str, stdin: bytes = b"", **variables: str) -> Outcome:
    """The program under pytrace gives what it gives under python, byte for byte; returns that."""
    plain, recorded = both(folder, *arguments, stdin=stdin, **variables)
    assert recorded == plain
    return plain
