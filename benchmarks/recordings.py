"""Databases of 1, 5, 20 and 100 million events of real programs, recorded once and kept.

They are kept in `$XDG_CACHE_HOME/pytrace-benchmarks`, or in the folder that `--databases` names;
delete them to have them made again. The two large ones are recordings of inside/longrun.py:
programs of pyperformance in turn, at times in three threads at once. The small ones hold each 100th
and each 20th segment of the largest, so that all sizes are of the same programs in the same
proportion. Those with lines are recorded with `--lines all`, and one call has a tenth of their
events. Mixed ones have functions in C, native ones and system calls, too.
"""

import json
import os
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks import native
from benchmarks.measure import INSIDE, read_recording
from benchmarks.processes import Failed, environment, run
from benchmarks.programs import TEN, workload
from benchmarks.report import say
from benchmarks.variants import MIXED, PYTRACE, WITH_LINES, Variant

MILLION = 1_000_000
RECORDED = (20, 100)  # million events
SAMPLED = (1, 5)  # of the largest one recorded
RARE = "report"  # a function called ten times
NEEDLE = "%the needle in%"  # what only its argument and its return value contain
SUFFIXES = {PYTRACE.name: "", WITH_LINES.name: "-lines", MIXED.name: "-mixed"}
ROOM = 40 * 100 * MILLION  # bytes: many times as much as is needed


def folder(given: str = "") -> Path:
    """The folder of the databases."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(given).resolve() if given else Path(cache) / "pytrace-benchmarks"
    path.mkdir(parents=True, exist_ok=True)
    return path


def database(where: Path, millions: int, variant: Variant = PYTRACE) -> Path:
    """The database of so many million events, made unless it is there. variant: PYTRACE, WITH_LINES
    or MIXED. Raises Failed."""
    path = where / f"{millions}-million{SUFFIXES[variant.name]}.sqlite"
    if not path.exists() or not is_current(path):
        for old in where.glob(f"{path.name}*"):
            old.unlink()
        with tempfile.TemporaryDirectory(prefix=f"{millions}-", dir=where) as scratch:
            say(f"   making {path}")
            made = Path(scratch) / "traces.sqlite"
            if variant != PYTRACE or millions in RECORDED:
                record(made, millions, variant)
            else:
                sample(database(where, max(RECORDED)), made, millions / max(RECORDED))
            made.rename(path)
    return path


def is_current(path: Path) -> bool:
    """Whether the pytrace of today reads it."""
    command = [*PYTRACE.command[: PYTRACE.command.index("-q")], "info", str(path)]
    return not subprocess.run(command, cwd=path.parent, env=environment(), capture_output=True).returncode


def record(path: Path, millions: int, variant: Variant) -> None:
    """Records so many million events, and a few more."""
    spec = {
        "database": str(path),
        "events": millions * MILLION,
        "programs": {name: workload(name).partition("=")[2] for name in TEN},
        "loop": millions * MILLION // 10 // 2 if variant == WITH_LINES else 0,
        "library": str(native.compiled()[0]) if variant == MIXED else "",
    }
    command = [word.replace("{scratch}", str(path.parent)) for word in variant.command]
    dumper = run([*command, f"--max-size={ROOM}", str(INSIDE / "longrun.py"), json.dumps(spec)], path.parent)
    recording = read_recording(path, dumper)
    say(f"   {recording.events:,} events in {recording.size:,} bytes, {recording.lost:,} lost")
    if recording.events < millions * MILLION:
        raise Failed(f"{path} holds {recording.events:,} events only")


def sample(source: Path, path: Path, share: float) -> None:
    """A copy with this share of the segments: each 20th, spread evenly."""
    import apsw

    with closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.execute("VACUUM INTO ?", (str(path),)).fetchall()
    with closing(apsw.Connection(str(path))) as connection:
        every = round(1 / share)
        connection.execute("DELETE FROM segment WHERE id % ? != 0", (every,)).fetchall()
        connection.execute("VACUUM").fetchall()
