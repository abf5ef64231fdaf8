"""Recording left on: a program flat out for minutes into a small database. Does anything grow?"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.processes import Failed, environment, reap
from benchmarks.report import Row, say
from benchmarks.variants import PYTRACE, Options

CAP = 200_000_000  # --max-size
PASS = (64 << 20) // 16  # of the ring: the most that a transaction adds
INTERVAL = 0.25  # s between two looks
MINUTES = 10.0
PROGRAM = Path(__file__).with_name("inside") / "flatout.py"


def size(database: Path) -> int:
    """Bytes of the database and its log."""
    total = 0
    for path in (database, database.with_name(database.name + "-wal")):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def own_memory(pid: int) -> int:
    """Bytes that a process has for itself: not the ring, not what is mapped from files."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


def dumper() -> int | None:
    """Its pid: it has become a child of this process."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if not entry.name.isdecimal() or b"pytrace: dumper" not in (entry / "cmdline").read_bytes():
                continue
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                return int(entry.name)
    return None


def growth(samples: Sequence[int]) -> float:
    """By how much the most of the last half is above the most of the second quarter, MB: at the
    start everything is still coming."""
    quarter = max(1, len(samples) // 4)
    return (max(samples[2 * quarter :]) - max(samples[quarter : 2 * quarter])) / 1e6


def ask(*words: str) -> str:
    command = [sys.executable, "-P", "-m", "pytracer", *words]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def rows(options: Options) -> list[Row]:
    minutes = options.minutes or (1.0 if options.quick else MINUTES)
    with tempfile.TemporaryDirectory() as name:
        return _rows(Path(name), minutes)


def _rows(scratch: Path, minutes: float) -> list[Row]:
    database, stop = scratch / "traces.sqlite", scratch / "stop"
    command = [word.format(scratch=scratch) for word in PYTRACE.command]
    program = subprocess.Popen(
        [*command, "--max-size", str(CAP), str(PROGRAM), str(stop)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60 * minutes
    sizes: list[int] = []
    memory: dict[str, list[int]] = {"program": [], "dumper": []}
    saver = None
    while time.monotonic() < end and program.poll() is None:
        time.sleep(INTERVAL)
        saver = saver or dumper()
        sizes.append(size(database))
        if saver is not None:
            memory["dumper"].append(own_memory(saver))
            memory["program"].append(own_memory(program.pid))
        if len(sizes) % round(60 / INTERVAL) == 0:
            say(f"   {len(sizes) * INTERVAL / 60:.0f} min: {sizes[-1] / 1e6:.1f} MB")
    stop.touch()
    output, _ = program.communicate()
    reap()
    if program.returncode:
        raise Failed(f"the program ended with {program.returncode}")

    (run,) = json.loads(ask("info", str(database), "--format", "json"))["runs"]
    question = "SELECT value FROM argument WHERE name = 'number' ORDER BY event DESC LIMIT 1"
    newest = json.loads(ask("sql", str(database), question, "--format", "json"))["value"]
    over = max(sizes) - CAP
    say(f"   {run['events']:,} events kept, {run['evicted']:,} removed, {run['lost']:,} lost")
    for who, samples in memory.items():
        say(f"   {who}: {samples[0] / 1e6:.1f} MB of its own at first, {samples[-1] / 1e6:.1f} MB at the end")
    what = f"{minutes:g} minutes flat out, --max-size {CAP / 1e6:.0f}MB"
    return [
        Row(f"{what}: the most above that", f"{PASS / 1e6:.1f} MB", "0", f"{max(over, 0) / 1e6:.1f} MB"),
        *(
            Row(f"{what}: growth of the {who}", "5 MB", "1 MB", f"{growth(samples):.1f} MB")
            for who, samples in memory.items()
        ),
        Row(f"{what}: the last mark found", output.strip(), output.strip(), newest),
        Row(f"{what}: events removed, as info says", "> 0", "> 0", f"{run['evicted']:,}"),
    ]
