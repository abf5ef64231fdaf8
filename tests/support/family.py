"""Records programs that start others, and tells what each process did, by itself and by the
recording."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recording import PYTRACE, TIMEOUT, environment, run, write

# A program that says what it does: its pid, and how many calls of work() it makes.
KID = """
    import os, sys

    def work(n):
        return n

    count = int(sys.argv[1])
    for n in range(count):
        work(n)
    print(os.getpid(), count, flush=True)
"""


def write_kid(folder: Path) -> Path:
    """KID as a program with a first line that names this Python."""
    kid = write(folder, "kid.py", KID)
    kid.write_text(f"#!{sys.executable}\n{kid.read_text()}")
    kid.chmod(0o755)
    return kid


def wait_until_finished(database: Path) -> dict[str, Any]:
    """Waits for the end of the newest recording, and returns what `pytrace info` tells of it."""
    end = time.monotonic() + TIMEOUT
    while True:
        done = run([*PYTRACE, "info", str(database), "--format", "json"], database.parent)
        assert done.returncode == 0, done.stderr
        facts: dict[str, Any] = json.loads(done.stdout)["runs"][-1]
        if facts["finished"] is not None:
            return facts
        assert time.monotonic() < end, f"waited too long for the end of {facts}"
        time.sleep(0.02)


def told(output: str) -> Counter[int]:
    """Calls by pid, from lines that KID has printed."""
    calls: Counter[int] = Counter()
    for pid, count in map(str.split, output.splitlines()):
        calls[int(pid)] += int(count)
    return calls


def recorded(database: Path, func: str = "work") -> Counter[int]:
    """Calls of this function by pid, in the newest recording."""
    question = f"func == '{func}' and kind == 'call'"
    done = run([*PYTRACE, "print", str(database), "--format", "json", "--filter", question], database.parent)
    assert done.returncode == 0, done.stderr
    return Counter(json.loads(line)["pid"] for line in done.stdout.splitlines())


def check(folder: Path, source: str, *options: str, status: int = 0, **changes: str) -> dict[str, Any]:
    """Records `source` as folder/script.py: what its processes print has to be what was recorded of
    each. Returns what `pytrace info` tells."""
    script = write(folder, "script.py", source)
    done = run([*PYTRACE, *options, str(script)], folder, **changes)
    assert done.returncode == status, done.stderr
    facts = wait_until_finished(folder / "traces.sqlite")
    assert done.stdout, done.stderr
    calls, expected = recorded(folder / "traces.sqlite"), told(done.stdout)
    assert calls == expected, f"{calls} != {expected}"
    assert done.stderr.count("\n") == 1, done.stderr
    assert "none lost. Open it" in done.stderr  # helpers that run on are not mentioned
    return facts


@contextmanager
def started(folder: Path, *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that the test talks to, killed at the end if it lives."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        yield process
        process.kill()
