"""What a native call and its return cost, over empty __cyg_profile_func_*; and under uftrace.

The same C function is called from Python by pytrace --native and without, and from a program of C
by `uftrace record` and without, in turns.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.build import FOLDER, HERE
from benchmarks.processes import environment, reap
from benchmarks.report import Row, say, table
from benchmarks.variants import Options

SOURCE = HERE / "inside" / "native_calls.c"
PYTRACE = "pytrace"
CODE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.native_calls.restype = ctypes.c_long
count = int(sys.argv[2])
library.native_calls(ctypes.c_long(count // 10))
print(min(library.native_calls(ctypes.c_long(count)) for _ in range(3)))
"""


def compiled() -> tuple[Path, Path]:
    """The library and the program."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    command = [*shlex.split(os.environ.get("CC", "cc")), "-O2", "-g", "-finstrument-functions", str(SOURCE)]
    library, program = FOLDER / "libnative_calls.so", FOLDER / "native_calls"
    subprocess.run([*command, "-fPIC", "-shared", "-o", str(library)], check=True)
    subprocess.run([*command, "-DPROGRAM", "-o", str(program)], check=True)
    return library, program


def rows(options: Options) -> list[Row]:
    library, program = compiled()
    count = 200_000 if options.quick else 1_000_000
    in_python = ["-c", CODE, str(library), str(count)]
    commands = {
        "empty": [sys.executable, *in_python],
        PYTRACE: [sys.executable, "-m", "pytracer", "-q", "--native", "--buffer-size", "256MiB", *in_python],
        "empty, in C": [str(program), str(count)],
    }
    if shutil.which("uftrace"):
        commands["uftrace, in C"] = [
            "uftrace",
            "record",
            "--no-libcall",
            "--no-event",
            str(program),
            str(count),
        ]
    else:
        say("uftrace is not installed")
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(options.rounds or (3 if options.quick else 10)):
        for name, command in commands.items():
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(command, cwd=folder, env=environment(), check=True, capture_output=True)
                reap()
            best[name] = min(best[name], int(done.stdout.split()[-1]) / count)
    say(table(("native call and return", "ns"), [(name, f"{ns:.1f}") for name, ns in best.items()]))
    over = best[PYTRACE] - best["empty"]
    made = [Row("native call and return, ns over empty ones", "25", "15", f"{over:.1f}")]
    if "uftrace, in C" in best:
        other = best["uftrace, in C"] - best["empty, in C"]
        made.append(Row("the same, over uftrace's", "1.00", "0.50", f"{over / other:.2f}"))
    return made
