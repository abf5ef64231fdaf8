"""The cost of kernel events: getppid in a loop of two processes, bare, recorded, and by trace-cmd.

Times are of the processes' own processor time, so that other processes do not count. Events are
lost if the dumper does not keep up. trace-cmd is left out where it is missing, or not allowed to
trace.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.build import FOLDER
from benchmarks.measure import DATABASE, INSIDE, read_recording
from benchmarks.processes import Failed, reap
from benchmarks.report import Row, say
from benchmarks.variants import Options

LOOPS = 500_000
PROCESSES = 2
RUN = "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"


def rows(options: Options) -> list[Row]:
    if os.geteuid():
        raise Failed("kernel events take root")
    program = [str(compiled()), str(LOOPS), str(PROCESSES)]
    recorded = [
        sys.executable,
        "-m",
        "pytracer",
        "-q",
        "-o",
        DATABASE,
        "--kernel=syscalls",
        "-c",
        RUN,
        *program,
    ]
    beside = ["trace-cmd", "record", "-q", "-F", "-c", "-C", "x86-tsc", "-e", "syscalls", *program]
    best: dict[str, float] = {}
    events = lost = 0
    for _ in range(options.rounds or (2 if options.quick else 5)):
        for name, command in (("bare", program), ("pytrace", recorded), ("trace-cmd", beside)):
            if name == "trace-cmd" and not shutil.which(name):
                continue
            with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
                done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
                reap()
                times = [float(line) for line in done.stdout.split() if line.replace(".", "").isdigit()]
                if done.returncode or not times:
                    say(f"   {name}: {done.stderr.strip()[-200:]}")
                    continue
                best[name] = min(best.get(name, times[0]), *times)
                if name == "pytrace":
                    recording = read_recording(Path(scratch) / DATABASE, 0.0)
                    events += recording.events
                    lost += recording.lost
    if not {"bare", "pytrace"} <= best.keys():
        raise Failed("the program could not be measured bare and recorded")
    say("   " + ", ".join(f"{name} {time:.0f} ns" for name, time in best.items()))
    added = {name: time - best["bare"] for name, time in best.items()}
    made = [Row("kernel events lost, two processes flat out", "0", "0", f"{lost:,} of {lost + events:,}")]
    made.append(Row("a system call recorded, added to it", "", "", f"{added['pytrace']:.0f} ns"))
    if "trace-cmd" in added:
        ratio = added["pytrace"] / added["trace-cmd"]
        made.append(Row("the same, over trace-cmd's", "1x", "0.8x", f"{ratio:.2f}x"))
    return made


def compiled() -> Path:
    """The program, compiled; $CC is the compiler."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = FOLDER / "getppid"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, "-O2", str(INSIDE / "getppid.c"), "-o", str(made)], check=True)
    return made
