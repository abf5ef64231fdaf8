"""Measures a workload by several variants and compares them.

The variants of one comparison take turns (bare, a, b, bare, a, b, ...), each time in a new process,
so that a machine that becomes slower or faster meets all of them; what counts is each one's fastest
measurement, and the spread says how far the others were from it.
"""

import json
import math
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import build
from benchmarks.processes import TookTooLong, environment, run
from benchmarks.variants import BARE, PYTRACE, Variant

INSIDE = Path(__file__).resolve().parent / "inside"
DATABASE = "traces.sqlite"


@dataclass
class Recording:
    """The result of one recording."""

    events: int
    lost: int
    size: int  # bytes of the database when everything is saved
    dumper: float  # seconds of processor time of its dumper


@dataclass
class Result:
    """The result of one variant over all its processes."""

    times: list[list[float]] = field(default_factory=list)  # seconds a loop; a list a process
    resident: list[int] = field(default_factory=list)  # bytes, apart from the ring; one a process
    recordings: list[Recording] = field(default_factory=list)
    seconds: float = 0.0  # of all measurements together
    cut: bool = False  # one came to its limit: the true `best` may be larger

    @property
    def best(self) -> float:
        return min(min(times) for times in self.times)

    @property
    def spread(self) -> float:
        """How far the middle one of all measurements is from the fastest: 0.05 is 5 %."""
        return statistics.median(time for times in self.times for time in times) / self.best - 1

    def total(self, what: str) -> float:
        """The sum of a field over all recordings."""
        return math.fsum(getattr(recording, what) for recording in self.recordings)


def compare(
    workload: str, variants: Sequence[Variant], rounds: int, repeat: int, seconds: float
) -> dict[str, Result]:
    """Measures `variants` in turn, in `rounds` processes each; results by the variants' names.

    One measurement takes about `seconds` bare, and `repeat` of them are made in a process.
    """
    loops = measure(BARE, workload, 0, 1, seconds, Result())
    results = {variant.name: Result() for variant in variants}
    for _ in range(rounds):
        for variant in variants:
            if not results[variant.name].cut:
                measure(variant, workload, loops, repeat, seconds, results[variant.name])
    return results


def measure(variant: Variant, workload: str, loops: int, repeat: int, seconds: float, result: Result) -> int:
    """Runs one process and adds what it says to `result`. For the parameters see
    inside/workload.py.

    Returns the loops of a measurement; raises Failed.
    """
    loops = max(1, loops // variant.fewer) if loops else 0
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        folder = Path(scratch)
        answer = folder / "answer"
        spec = {
            "workload": workload,
            "tracer": variant.tracer,
            "loops": loops,
            "repeat": repeat,
            "seconds": seconds,
            "limit": variant.limit,
            "library": str(build.noop()) if variant.tracer.startswith("noop") else "",
            "scratch": scratch,
            "result": str(answer),
        }
        command = [word.replace("{scratch}", scratch) for word in variant.command]
        more = {name: value.replace("{scratch}", scratch) for name, value in variant.environment.items()}
        try:
            dumper = run(
                [*command, str(INSIDE / "workload.py"), json.dumps(spec)], folder, environment(**more)
            )
        except TookTooLong:
            result.times.append([variant.limit / loops])
            result.cut = True
            return loops
        said = json.loads(answer.read_text())
        result.times.append([time / said["loops"] for time in said["times"]])
        result.seconds += sum(said["times"])
        result.resident.append(said["resident"])
        if (folder / DATABASE).exists():
            result.recordings.append(read_recording(folder / DATABASE, dumper))
        return int(said["loops"])


def read_recording(database: Path, dumper: float) -> Recording:
    """The content of a database with one recording, all saved."""
    import apsw

    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        sums: Any = connection.execute(
            "SELECT sum(evicted) + (SELECT ifnull(sum(count), 0) FROM segment), sum(lost) FROM run"
        ).get
    size = sum(path.stat().st_size for path in database.parent.glob(f"{database.name}*"))
    events, lost = sums
    return Recording(events, lost, size, dumper)


def dumper_start() -> float:
    """Seconds of processor time of a dumper that has next to nothing to save."""
    times = []
    for _ in range(3):
        with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
            command = [word.replace("{scratch}", scratch) for word in PYTRACE.command]
            times.append(run([*command, "-c", "pass"], Path(scratch)))
    return min(times)


def geometric_mean(numbers: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(number) for number in numbers))
