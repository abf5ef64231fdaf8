"""What can happen to the dumper while a program records: killed, stopped, its file locked, full, taken away.
The program goes on as if nothing had happened; what it says that it did is in the database, or counted as
lost."""

import os
import signal
from pathlib import Path

import pytest

import mortal
from beside import PYTRACE, run
from counted import RING_FOLDER, Counted, wait_for

# Works in slot N for each line "N times" that it reads, and says so.
OBEYING = """
os.environ.pop("PYTRACE_DUMPER_DIE_AT", None)  # of the first dumper, and no other
for line in sys.stdin:
    do(*map(int, line.split()))
    print("done", flush=True)
"""


def obeying(folder: Path, *options: str, memory: Path = RING_FOLDER, **variables: str) -> Counted:
    program = Counted(folder, OBEYING, *options, memory=memory, **variables)
    work(program, 0)
    return program


def work(program: Counted, slot: int, times: int = 100) -> None:
    program.say(f"{slot} {times}")
    assert program.line() == "done"


def end(program: Counted) -> str:
    """Ends it properly; its standard error."""
    assert program.process.stdin
    program.process.stdin.close()
    program.process.stdin = None
    assert program.ended() == 0
    return program.over()


# ---- killed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["info"], ["print"], ["sql", "traces.sqlite", "SELECT 1"], [], ["-q", "-oother", "-c", ""]]
)
def test_killed_together_with_the_program(tmp_path: Path, command: list[str]) -> None:
    """The next command, whichever, has saved what is in the ring, and says so."""
    folder, memory = tmp_path / "program", tmp_path / "memory"
    folder.mkdir()
    memory.mkdir()
    variables = mortal.with_memory(tmp_path / "python", memory)
    program = obeying(folder, memory=memory, **variables)
    dumper = program.dumper()
    os.kill(dumper, signal.SIGSTOP)
    work(program, 1)
    os.kill(dumper, signal.SIGKILL)
    program.process.kill()
    program.ended()
    wait_for(lambda: not os.path.exists(f"/proc/{dumper}"), "its end")
    done = run([*PYTRACE, *command], folder, **variables)
    assert done.status == 0
    assert done.stderr.startswith(b"pytrace: an earlier recording was cut off; saving what is left of it (")
    assert command[:1] == ["-q"] or not program.rings()
    assert command != ["info"] or b"missing    nothing" in done.stdout
    (folder / "other").unlink(missing_ok=True)
    program.over()
    program.check(0, 1)
    assert run([*PYTRACE, "info"], folder, **variables).stderr == b""


@pytest.mark.parametrize(
    "step",
    [f"{step}{n}" for n in (2, 3, 5) for step in ("before commit:", "after commit:", "after release:")],
)
def test_killed_at_each_step(tmp_path: Path, step: str) -> None:
    """The program starts another, which goes on there; each event is stored once."""
    program = obeying(tmp_path, PYTRACE_DUMPER_DIE_AT=step)
    for slot in range(1, 9):
        work(program, slot, 4000)
    errors = end(program)
    assert "none lost" in errors
    program.check(*range(9))
