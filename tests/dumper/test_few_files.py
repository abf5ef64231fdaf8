"""Recording if hardly any file may be open (ulimit -n): it works, or is refused at the start."""

import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from beside import wait_for
from counted import Counted, dumpers
from recording import PYTRACE, TIMEOUT, environment


def limited(files: int, hard: int) -> Callable[[], None]:
    """Called in the process to be."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def record(folder: Path, source: str, files: int, hard: int) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(source)
    return subprocess.run(
        [*PYTRACE, "script.py"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        preexec_fn=limited(files, hard),
    )


@pytest.mark.parametrize("files", [6, 8, 11])
def test_too_few_are_refused(tmp_path: Path, files: int) -> None:
    done = record(tmp_path, "print('hello')", files, files)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no more than {files} files may be open at once (ulimit -n)" in done.stderr
    assert "ulimit -n 1024" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@pytest.mark.parametrize(("files", "hard"), [(12, 12), (8, 1024)])
def test_enough_of_them(tmp_path: Path, files: int, hard: int) -> None:
    """The dumper raises its soft limit; the program keeps the one that it has."""
    source = "import resource\nprint(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    done = record(tmp_path, source, files, hard)
    assert (done.returncode, done.stdout) == (0, f"{files} {hard}\n")
    assert "none lost" in done.stderr


def test_more_processes_than_files(tmp_path: Path) -> None:
    """The dumper watches as many as it can; all are recorded, by one dumper from beginning to
    end."""
    source = """
    children = []
    for slot in range(30):
        if not (child := os.fork()):
            do(slot, 100)
            os.write(1, b"here\\n")
            os.read(0, 1)
            do(slot, 100)
            os._exit(slot)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    """
    program = Counted(tmp_path, source, preexec_fn=limited(16, 16))
    assert [program.line() for _ in range(30)] == ["here"] * 30
    dumper = program.dumper()
    stored = "SELECT count(*) FROM process"
    wait_for(lambda: program.rows(stored) == [(31,)], "all processes to be seen")
    assert dumpers(program.ring) == {dumper}
    program.say("x" * 30)
    assert program.ended() == 0
    assert "none lost" in program.over()
    program.check(*range(30))
    statuses = program.rows("SELECT exit_status FROM process WHERE number > 0 ORDER BY exit_status")
    assert statuses == [(slot,) for slot in range(30)]
