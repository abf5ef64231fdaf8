"""How long it takes from a call until it can be read in the database, while the program runs.

A program calls a function with a text of its own about twice a second; beside it, the database is
looked at every few milliseconds until the text is in a segment.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.measure import DATABASE, INSIDE
from benchmarks.processes import Failed, environment, reap
from benchmarks.report import Row, say, table
from benchmarks.variants import PYTRACE, Options

STAMP = re.compile(rb"stamp-\d{5}")
POLL_SECONDS = 0.002


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    count = options.rounds or (10 if options.quick else 40)
    lines, everything = [], []
    for kind in ("idle", "busy"):
        found = [latency * 1e3 for latency in latencies(count, kind)]
        everything.append((statistics.median(found), max(found)))
        lines.append((kind, *(f"{x:.0f}" for x in (min(found), *everything[-1]))))
    say(table(("program", "smallest ms", "median", "largest"), lines))
    median, largest = (max(of) for of in zip(*everything, strict=True))
    return [Row("call to readable", "300 ms", "150 ms", f"median {median:.0f} ms, largest {largest:.0f} ms")]


def started(scratch: str, count: int, kind: str) -> tuple[subprocess.Popen[bytes], Path]:
    """stamps.py, being recorded into a folder, and the file in it that has what it prints."""
    printed = Path(scratch) / "printed"
    command = [word.replace("{scratch}", scratch) for word in PYTRACE.command]
    with printed.open("wb") as output:
        program = subprocess.Popen(
            [*command, str(INSIDE / "stamps.py"), str(count), kind],
            cwd=scratch,
            env=environment(),
            stdout=output,
        )
    return program, printed


def latencies(count: int, kind: str) -> list[float]:
    """Seconds, for each stamp of one run."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        program, printed = started(scratch, count, kind)
        seen = watch(Path(scratch) / DATABASE, program)
        if program.returncode:
            raise Failed(f"stamps.py ended with {program.returncode}")
        reap()
        called = dict(line.split() for line in printed.read_bytes().splitlines())
        if missing := called.keys() - seen.keys():
            raise Failed(f"not to be read while the program ran: {len(missing)} of {len(called)} calls")
        return [(seen[text] - int(when)) / 1e9 for text, when in called.items()]


def watch(database: Path, program: "subprocess.Popen[bytes]") -> dict[bytes, int]:
    """When each stamp was found in the database, until the program ends."""
    import apsw

    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    seen: dict[bytes, int] = {}
    while program.poll() is None and not database.exists():
        time.sleep(POLL_SECONDS)
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(1000)
    with closing(connection):
        while not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'segment'").get:
            time.sleep(POLL_SECONDS)
        done = 0  # segments up to this one are complete and were looked at
        while program.poll() is None:
            complete = True
            for number, final, data in connection.execute(
                "SELECT id, complete, data FROM segment WHERE id > ? ORDER BY id", (done,)
            ):
                texts = STAMP.findall(zstd.decompress(data))
                now = time.monotonic_ns()
                for text in texts:
                    seen.setdefault(text, now)
                complete = complete and bool(final)
                if complete:
                    done = number
            time.sleep(POLL_SECONDS)
    return seen
