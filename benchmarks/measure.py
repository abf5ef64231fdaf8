"""Runs workloads in processes of their own, bare or traced, in turn, and compares the times.

The variants of one comparison take turns (bare, a, b, bare, a, b, ...), so that a machine that
becomes slower or faster meets all of them; what counts is each one's fastest measurement, and the
spread says how far the others were from it.
"""

import ctypes
import json
import math
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import build

HERE = Path(__file__).resolve().parent
INSIDE = HERE / "inside"
PR_SET_CHILD_SUBREAPER = 36


class Failed(Exception):
    """A measured process did not do its work; the text says how it was started and what it printed."""


class TookTooLong(Failed):
    """A measurement came to the variant's limit."""


@dataclass(frozen=True)
class Variant:
    """One way to run a workload."""

    name: str
    tracer: str = ""  # switched on inside the process: see inside/peers.py
    module: str = ""  # what must be importable for it
    command: tuple[str, ...] = (sys.executable,)  # {database} stands for a fresh file
    environment: tuple[tuple[str, str], ...] = ()
    fewer: int = 1  # of a slow tracer: so many times fewer loops
    limit: int = 0  # seconds that a measurement may take; 0: no limit

    @property
    def records(self) -> bool:
        return "{database}" in self.command


def pytrace_command() -> tuple[str, ...]:
    """The installed `pytrace` of the running Python, else the module."""
    script = Path(sys.executable).with_name("pytrace")
    return (str(script),) if script.exists() else (sys.executable, "-m", "pytracer")


BARE = Variant("bare")
PYTRACE = Variant("pytrace", module="pytracer._hook", command=(*pytrace_command(), "-q", "-o", "{database}"))
ELSEWHERE = Variant(
    "pytrace, out of scope",
    module="pytracer._hook",
    command=PYTRACE.command,
    environment=(("TRACE_MODULES", "{elsewhere}"),),
)
if sys.version_info >= (3, 12):
    NOTHING = Variant("do-nothing", "noop:vectorcall")
    NOTHINGS = (
        NOTHING,
        Variant("do-nothing, all events", "noop:all"),
        Variant("do-nothing, METH_FASTCALL", "noop:fastcall"),
    )
else:
    NOTHING = Variant("do-nothing", "noop:profile")
    NOTHINGS = (NOTHING,)
TRACE0 = Variant("trace0", "trace0", "trace0")
VIZTRACER = Variant("VizTracer", "viztracer", "viztracer", fewer=2)
VIZTRACER_VALUES = Variant("VizTracer, values", "viztracer:values", "viztracer", fewer=20, limit=30)
CPROFILE = Variant("cProfile", "cProfile", "cProfile", fewer=2)
PEERS = (TRACE0, VIZTRACER, VIZTRACER_VALUES, CPROFILE)


@dataclass
class Recording:
    """What one recording came to."""

    events: int
    lost: int
    size: int  # bytes of the database when everything is saved
    dumper: float  # seconds of processor time of its dumper


@dataclass
class Result:
    """What one variant came to over all its processes."""

    times: list[list[float]] = field(default_factory=list)  # seconds a loop; a list a process
    resident: list[int] = field(default_factory=list)  # bytes, apart from the ring
    seconds: float = 0.0  # of all measurements together
    recordings: list[Recording] = field(default_factory=list)
    cut: bool = False  # a measurement came to its limit: `best` is at most the true one

    @property
    def best(self) -> float:
        return min(min(times) for times in self.times)

    @property
    def spread(self) -> float:
        """How far the middle one of all measurements is from the fastest: 0.05 is 5 %."""
        return statistics.median(time for times in self.times for time in times) / self.best - 1

    @property
    def memory(self) -> int:
        return min(self.resident)

    def total(self, what: str) -> float:
        return math.fsum(getattr(recording, what) for recording in self.recordings)


@dataclass
class Options:
    """What the command line asks for."""

    quick: bool = False
    rounds: int = 0  # 0: the row's own number
    only: Sequence[str] = ()  # names of variants
    also: Sequence[Variant] = ()
    programs: Sequence[str] = ()

    def wanted(self, variants: Iterable[Variant]) -> list[Variant]:
        """Those of `variants` that were asked for and can run here."""
        chosen = [v for v in (*variants, *self.also) if not self.only or v.name in self.only]
        return [v for v in chosen if not v.module or available(v.module)]


def also(text: str) -> Variant:
    """A variant from the command line: NAME=COMMAND, run as COMMAND SCRIPT SPEC."""
    name, _, command = text.partition("=")
    return Variant(name, command=tuple(shlex.split(command)))


def geometric_mean(numbers: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(number) for number in numbers))


def say(text: str) -> None:
    """Progress, to standard error."""
    print(text, file=sys.stderr, flush=True)


_available: dict[str, bool] = {}


def available(module: str) -> bool:
    """Whether a measured process can import `module`."""
    if module not in _available:
        with tempfile.TemporaryDirectory() as scratch:
            status = subprocess.run(
                [sys.executable, "-c", f"import {module}"],
                cwd=scratch,
                env=environment(),
                stderr=subprocess.DEVNULL,
            ).returncode
        _available[module] = not status
        if status:
            say(f"not installed here, left out: {module.split('.')[0]}")
    return _available[module]


def environment() -> dict[str, str]:
    """The environment without what would change how pytrace records."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTRACE_") and name != "TRACE_MODULES"
    }


def prepare() -> None:
    """Once, at the start: two processors for everything, and orphans become our children.

    A dumper detaches itself from its program; as its reaper we learn what it used.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def run_all(command: Sequence[str], env: dict[str, str], scratch: Path) -> float:
    """Runs a command and waits for it and for everything that it leaves behind.

    Returns the seconds of processor time of what it left behind (of its dumper); raises Failed.
    """
    printed = scratch / "printed"
    left = 0.0
    status = 0
    with printed.open("wb") as output:
        process = subprocess.Popen(command, cwd=scratch, env=env, stdout=output, stderr=output)
    with suppress(ChildProcessError):
        while True:
            pid, ended, usage = os.wait4(-1, 0)
            if pid == process.pid:
                status = process.returncode = os.waitstatus_to_exitcode(ended)
            else:
                left += usage.ru_utime + usage.ru_stime
    if status:
        text = f"{shlex.join(command)}\nended with {status}:\n{printed.read_text(errors='replace')}"
        raise TookTooLong(text) if status == -signal.SIGALRM else Failed(text)
    return left


def read_recording(database: Path, dumper: float) -> Recording:
    import apsw

    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    events, lost = connection.execute(
        "SELECT sum(evicted) + (SELECT ifnull(sum(count), 0) FROM segment), sum(lost) FROM run"
    ).get
    connection.close()
    size = sum(path.stat().st_size for path in database.parent.glob(f"{database.name}*"))
    return Recording(int(events), int(lost), size, dumper)


def run_once(variant: Variant, workload: str, loops: int, repeat: int, seconds: float, result: Result) -> int:
    """Measures one process and adds what it says to `result`; the loops that it did."""
    scratch = Path(tempfile.mkdtemp(prefix="benchmark-"))
    try:
        database = scratch / "traces.sqlite"
        answer = scratch / "answer"
        done = max(1, loops // variant.fewer) if loops else 0
        spec = {
            "workload": workload,
            "tracer": variant.tracer,
            "loops": done,
            "limit": variant.limit,
            "repeat": repeat,
            "seconds": seconds,
            "library": str(build.noop()) if variant.tracer.startswith("noop") else "",
            "scratch": str(scratch),
            "result": str(answer),
        }
        names = {"{database}": str(database), "{elsewhere}": str(scratch)}
        env = environment()
        env.update((name, names.get(value, value)) for name, value in variant.environment)
        command = [names.get(word, word) for word in variant.command]
        try:
            dumper = run_all([*command, str(INSIDE / "workload.py"), json.dumps(spec)], env, scratch)
        except TookTooLong:
            result.times.append([variant.limit / done])
            result.cut = True
            return done
        said = json.loads(answer.read_text())
        result.times.append([time / said["loops"] for time in said["times"]])
        result.seconds += sum(said["times"])
        result.resident.append(said["resident"])
        if variant.records:
            result.recordings.append(read_recording(database, dumper))
        return int(said["loops"])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def compare(
    workload: str, variants: Sequence[Variant], rounds: int, repeat: int, seconds: float
) -> dict[str, Result]:
    """Measures `variants` in turn, `rounds` times each; results by the variants' names.

    One measurement takes about `seconds` bare, `repeat` of them are made in a process.
    """
    loops = run_once(BARE, workload, 0, 1, seconds, Result())
    results = {variant.name: Result() for variant in variants}
    for _ in range(rounds):
        for variant in variants:
            result = results[variant.name]
            if not result.cut:
                run_once(variant, workload, loops, repeat, seconds, result)
    return results


def dumper_start() -> float:
    """Seconds of processor time of a dumper that has next to nothing to save."""
    with tempfile.TemporaryDirectory() as scratch:
        database = f"{scratch}/traces.sqlite"
        command = [database if word == "{database}" else word for word in PYTRACE.command]
        return min(run_all([*command, "-c", "pass"], environment(), Path(scratch)) for _ in range(3))


@dataclass
class Row:
    """A line of the table that is printed."""

    what: str
    must: str
    aim: str
    measured: str


RowMaker = Callable[[Options], list[Row]]


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [list(heads), *map(list, lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows)
