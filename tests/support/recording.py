"""Records a script as a user would, in processes of its own, and reads the events back."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import dedent
from typing import Any

import warm

PYTRACE = [sys.executable, "-m", "pytracer"]
TIMEOUT = 120


@dataclass(frozen=True)
class Event:
    """One line of `pytrace print --format json`."""

    id: int
    run: int
    time: int
    pid: int
    tid: int
    thread: str
    kind: str
    module: str
    func: str
    file: str
    line: int
    depth: int
    duration: int | None
    args: list[dict[str, str]]
    task: str | None = None
    layer: str = "python"
    cpu: int | None = None

    @property
    def values(self) -> dict[str, str]:
        """Texts of the arguments by name."""
        return {arg["name"]: arg["value"] for arg in self.args}

    @property
    def value(self) -> str:
        """The text of the only argument."""
        [arg] = self.args
        return arg["value"]

    def __str__(self) -> str:
        shown = ", ".join(f"{arg['name']}={arg['value']}: {arg['type']}" for arg in self.args)
        return f"{'  ' * self.depth}{self.kind} {self.module}.{self.func}({shown}) line {self.line}"


@dataclass(frozen=True)
class Recording:
    """The outcome of a recorded program; `events` reads the newest run of the database."""

    status: int
    stdout: str
    stderr: str
    database: Path
    script: Path

    @cached_property
    def events(self) -> list[Event]:
        return [Event(**row) for row in read(self.database)]

    def of(self, *kinds: str, func: str | None = None) -> list[Event]:
        """The events in the script itself, of these kinds (all, if there are none)."""
        return [
            event
            for event in self.events
            if (not kinds or event.kind in kinds)
            and event.file == str(self.script)
            and (func is None or event.func == func)
        ]

    def plain_output(self) -> str:
        """The output of the same script without pytrace."""
        return run([sys.executable, str(self.script)], self.script.parent).stdout

    def kinds(self, func: str) -> list[str]:
        return [event.kind for event in self.of(func=func)]


# The fixture `record`: record(source, *options, args=(), status=0, **environment)
Record = Callable[..., Recording]


def environment(**changes: str) -> dict[str, str]:
    """This process's, without whatever would change a recording or a program's output."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTRACE_", "TRACE_", "PYTHON", "COVERAGE_"))
    }
    return kept | changes


def run(command: list[str], cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return warm.run(command, cwd, environment(**changes), TIMEOUT, errors="surrogateescape")


def write(folder: Path, name: str, source: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source), encoding="utf-8", errors="surrogatepass")
    return path


def record(
    folder: Path, source: str, *options: str, args: tuple[str, ...] = (), status: int = 0, **changes: str
) -> Recording:
    """Records `source` as folder/script.py, with pytrace's options before and `args` behind it.

    `changes` go into the environment. The script has to end with `status`.
    """
    script = write(folder, "script.py", source)
    database = folder / "traces.sqlite"
    done = run([*PYTRACE, "-q", "-o", str(database), *options, str(script), *args], folder, **changes)
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return Recording(done.returncode, done.stdout, done.stderr, database, script)


def read(database: Path) -> Iterator[dict[str, Any]]:
    done = run([*PYTRACE, "print", str(database), "--format", "json"], database.parent)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        yield json.loads(line)


def texts(events: list[Event]) -> list[str]:
    """The text of each one's only argument."""
    return [without_addresses(event.value) for event in events]


def without_addresses(text: str) -> str:
    return re.sub(r" at 0x[0-9a-f]+(?=[>,;])", " at 0x…", text)
