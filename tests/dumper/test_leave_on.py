"""Recording left on: the oldest goes, the newest is there, and the file stays as small as it was
said.

`python -m benchmarks leave-on` does the same for ten minutes, and looks at memory.
"""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from dumping import wait_for
from recording import PYTRACE, environment, run, write

KIB = 1 << 10
CAP, BUFFER = 1024 * KIB, 4096 * KIB
PASS = BUFFER // 16  # bytes of events in a transaction
FRAMES = 64 * KIB  # what SQLite's log adds to the pages in it
MARKS = 120
EVENTS = 20_002 * MARKS  # more than there is room for

PROGRAM = """
    def pay(user, amount):
        return f"{user} pays {amount}"
    def mark(number):
        pass
    for number in range(MARKS):
        for i in range(10_000):
            pay(f"user {i * i}", i)
        mark(number)
"""


def test_left_on(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", PROGRAM.replace("MARKS", str(MARKS)))
    database = tmp_path / "traces.sqlite"
    sizes: list[int] = []
    options = ["--max-size", str(CAP), "--buffer-size", str(BUFFER), "--no-stdlib", "-q"]
    program = subprocess.Popen([*PYTRACE, *options, str(script)], cwd=tmp_path, env=environment())

    # nobody looks into it meanwhile: a reader keeps SQLite from beginning its log anew
    def ended() -> bool:
        with suppress(FileNotFoundError):
            sizes.append(sum(os.path.getsize(f"{database}{suffix}") for suffix in ("", "-wal")))
        return program.poll() is not None

    wait_for(ended, "the program's end")
    assert program.returncode == 0

    assert max(sizes) <= CAP + PASS + FRAMES
    assert database.stat().st_size <= CAP
    [facts] = json.loads(run([*PYTRACE, "info", "--format", "json"], tmp_path).stdout)["runs"]
    assert facts["evicted"] > EVENTS / 10
    assert facts["evicted"] + facts["events"] + facts["lost"] > EVENTS
    assert "removed, those until +" in run([*PYTRACE, "info"], tmp_path).stdout
    newest = "SELECT max(CAST(value AS INTEGER)) FROM argument WHERE name = 'number'"
    last = run([*PYTRACE, "sql", newest], tmp_path).stdout.split()[-1]
    assert last == str(MARKS - 1) or facts["lost"]  # a machine that is too busy for the dumper
