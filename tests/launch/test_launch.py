"""Options from everywhere, and the life of a recording: dumpers that die, programs that are
killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from beside import PYTHON, PYTRACE, TIMEOUT, environment, run, wait_for, write
from counted import dumpers
from recording import read

RING_FOLDER = Path("/dev/shm")

# Says that it is ready and its pid, and goes on when a line comes.
WAITING = """
    import os, sys

    def before(n):
        return n

    def after(n):
        return n

    for n in range(100):
        before(n)
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    for n in range(1000):
        after(n)
    print("done", flush=True)
"""


def info(database: Path) -> list[dict[str, Any]]:
    done = run([*PYTRACE, "info", str(database), "--format", "json"], database.parent)
    assert done.status == 0, done.stderr
    runs: list[dict[str, Any]] = json.loads(done.stdout)["runs"]
    return runs


def rings(pid: int) -> list[Path]:
    return list(RING_FOLDER.glob(f"pytrace-{os.getuid()}-{pid}-*"))


def dumper(pid: int) -> int | None:
    """The pid of the dumper of the recording that this process began; its title has no ring any
    more, but its mappings have."""
    return min(dumpers(f"/pytrace-{os.getuid()}-{pid}-"), default=None)


def alive(pid: int) -> bool:
    """Runs, and is no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@contextmanager
def waiting(folder: Path, source: str = WAITING) -> Iterator[subprocess.Popen[bytes]]:
    """A recorded WAITING that has come to where it waits."""
    write(folder, "script.py", source)
    with subprocess.Popen(
        [*PYTRACE, "script.py"],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"%d\n" % process.pid
        yield process
        process.kill()


def calls(database: Path, func: str) -> int:
    return sum(event["func"] == func and event["kind"] == "call" for event in read(database))


# ---- options -------------------------------------------------------------------------------------


def test_summary(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "pass")
    done = run([*PYTRACE, script], tmp_path)
    assert done.stderr.startswith(b"pytrace: 2 events of 1 process in traces.sqlite")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "flags", [["-o", "a.sqlite"], ["-oa.sqlite"], ["--output=a.sqlite"], ["-qo", "a.sqlite"]]
)
def test_ways_to_write_an_option(flags: list[str], tmp_path: Path) -> None:
    assert run([*PYTRACE, *flags, "--", "-"], tmp_path).status == 0
    # a process that begins beside it may belong to it: the dumper waits until that is known
    wait_for(lambda: [path.name for path in tmp_path.iterdir()] == ["a.sqlite"], "the dumper's end")


def test_command_line_over_environment_over_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytrace]\noutput = 'file.sqlite'\nquiet = true\n")
    assert run([*PYTRACE, "-c", "pass"], tmp_path).stderr == b""
    assert (tmp_path / "file.sqlite").exists()
    more = {"PYTRACE_OUTPUT": "environment.sqlite", "PYTRACE_QUIET": "0"}
    assert run([*PYTRACE, "-c", "pass"], tmp_path, **more).stderr != b""
    assert (tmp_path / "environment.sqlite").exists()
    run([*PYTRACE, "-o", "line.sqlite", "-c", "pass"], tmp_path, **more)
    assert (tmp_path / "line.sqlite").exists()


def test_scope(tmp_path: Path) -> None:
    script = write(
        tmp_path, "script.py", "import json, mine.a, mine.b\njson.dumps({})\nmine.a.f()\nmine.b.f()\n"
    )
    for name in ("a", "b"):
        write(tmp_path, f"mine/{name}.py", "def f(): pass\n")

    def modules(*options: str, **variables: str) -> set[str]:
        (tmp_path / "traces.sqlite").unlink(missing_ok=True)
        assert run([*PYTRACE, "-q", *options, script], tmp_path, **variables).status == 0
        found = {event["module"].partition(".")[0] for event in read(tmp_path / "traces.sqlite")}
        return found & {"json", "mine", "__main__"}

    assert modules() == {"json", "mine", "__main__"}
    assert modules("--no-stdlib") == {"mine", "__main__"}
    assert modules("--modules", "mine") == {"mine"}
    assert modules(TRACE_MODULES="mine:script.py") == {"mine", "__main__"}
    assert modules("--exclude", "mine", "--no-stdlib") == {"__main__"}
    assert modules("--modules", "mine", TRACE_MODULES="script.py") == {"mine"}


def test_values(tmp_path: Path) -> None:
    script = write(
        tmp_path,
        "script.py",
        """
        class Thing:
            def __repr__(self):
                return "a thing"
        def f(plain, password, other, thing): pass
        f("x" * 50, "hunter2", 5, Thing())
        """,
    )

    def arguments(*options: str) -> list[str]:
        (tmp_path / "traces.sqlite").unlink(missing_ok=True)
        assert run([*PYTRACE, "-q", *options, script], tmp_path).status == 0
        [event] = [e for e in read(tmp_path / "traces.sqlite") if e["func"] == "f" and e["kind"] == "call"]
        return [arg["value"] for arg in event["args"]]

    shown = arguments()
    assert shown[:3] == [repr("x" * 50), "<redacted>", "5"]
    assert shown[3].startswith("<__main__.Thing at 0x")
    assert arguments("--no-values") == []
    assert arguments("--value-length", "10")[0].startswith("'xxxxxxxxxx'")
    assert arguments("--repr")[3] == "a thing"
    assert arguments("--redact", "^oth")[1:3] == ["'hunter2'", "<redacted>"]
    assert arguments("--redact", "")[1:3] == ["'hunter2'", "5"]


@pytest.mark.parametrize("flag", ["--help", "-h", "--version", "-V"])
def test_help(flag: str, tmp_path: Path) -> None:
    done = run([*PYTRACE, flag], tmp_path)
    assert (done.status, done.stderr) == (0, b"")
    assert done.stdout.lower().startswith((b"usage: pytrace", b"pytrace "))


def test_help_names_every_option(tmp_path: Path) -> None:
    from pytracer.cli import OPTIONS

    text = run([*PYTRACE, "--help"], tmp_path).stdout.decode()
    assert all(option.flag in text and option.help in text for option in OPTIONS)
    assert max(map(len, text.splitlines())) <= 100


def test_without_arguments_it_prints(tmp_path: Path) -> None:
    run([*PYTRACE, "-q", "-c", "pass"], tmp_path)
    assert run(PYTRACE, tmp_path) == run([*PYTRACE, "print"], tmp_path)
    assert b"<module>" in run(PYTRACE, tmp_path).stdout


def test_run_tells_what_it_was(tmp_path: Path) -> None:
    script = write(tmp_path, "my script.py", "import sys; sys.exit(3)")
    run([*PYTHON, "-X", "dev", *PYTRACE, "-q", script, "it's", "--fast"], tmp_path)
    [row] = info(tmp_path / "traces.sqlite")
    assert row["command"] == "python -X dev 'my script.py' 'it'\"'\"'s' --fast"
    assert row["exit_status"] == 3
    assert row["processes"] == 1
    assert row["python"] == sys.version.split()[0]


# ---- the life of a recording ---------------------------------------------------------------------


def test_nothing_stays_behind(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        assert len(rings(process.pid)) == 1
        saver = wait_for(lambda: dumper(process.pid), "the dumper")
        title = b"pytrace: dumper for python script.py"
        wait_for(lambda: Path(f"/proc/{saver}/cmdline").read_bytes().startswith(title), "its title")
        assert os.getsid(saver) not in (os.getsid(process.pid), saver)
        assert {os.readlink(f"/proc/{saver}/fd/{fd}") for fd in range(3)} == {"/dev/null"}
        assert os.readlink(f"/proc/{saver}/cwd") == "/"
        process.communicate(b"\n", TIMEOUT)
        assert process.returncode == 0
        wait_for(lambda: not rings(process.pid) and not alive(saver), "the end of the dumper")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["script.py", "traces.sqlite"]
    assert (tmp_path / "traces.sqlite").stat().st_mode & 0o777 == 0o600


def test_dumper_that_dies_is_started_again(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        first = wait_for(lambda: dumper(process.pid), "the dumper")
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: not alive(first), "its end")
        stdout, stderr = process.communicate(b"\n", TIMEOUT)
        assert (process.returncode, stdout) == (0, b"done\n")
        assert b"none lost" in stderr
    assert calls(tmp_path / "traces.sqlite", "before") == 100
    assert calls(tmp_path / "traces.sqlite", "after") == 1000
    [row] = info(tmp_path / "traces.sqlite")
    assert row["exit_status"] == 0


def test_killed_program_is_saved(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        process.kill()
        process.wait(TIMEOUT)
        wait_for(lambda: info(tmp_path / "traces.sqlite")[0]["finished"], "the end of the run")
        wait_for(lambda: not rings(process.pid), "the end of the ring")
    assert calls(tmp_path / "traces.sqlite", "before") == 100


def test_ring_that_was_removed(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        rings(process.pid)[0].unlink()
        _, stderr = process.communicate(b"\n", TIMEOUT)
        assert process.returncode == 0
        assert b"none lost" in stderr
    assert calls(tmp_path / "traces.sqlite", "after") == 1000


def test_half_made_ring_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen("true") as process:
        process.wait()
    ring = RING_FOLDER / f"pytrace-{os.getuid()}-{process.pid}-0123456789abcdef"
    ring.write_bytes(b"half")
    assert run([*PYTRACE, "-q", "-c", "pass"], tmp_path).stderr == b""
    assert not ring.exists()


def test_the_ring_of_another_version_stays(tmp_path: Path) -> None:
    with subprocess.Popen("true") as process:
        process.wait()
    ring = RING_FOLDER / f"pytrace-{os.getuid()}-{process.pid}-0123456789abcdef"
    ring.write_bytes(b"pytrace\1" + (999).to_bytes(4, sys.byteorder) + bytes(4096))
    try:
        assert run([*PYTRACE, "-q", "-c", "pass"], tmp_path).stderr == b""
        assert ring.exists()
    finally:
        ring.unlink()


def test_forked_children_are_recorded(tmp_path: Path) -> None:
    script = write(
        tmp_path,
        "script.py",
        """
        import os, sys
        def work(n): return n
        for n in range(3):
            if os.fork() == 0:
                work(n)
                sys.exit(n)
        for n in range(3):
            os.wait()
        """,
    )
    done = run([*PYTRACE, script], tmp_path)
    assert done.stderr.count(b"events of 4 processes") == 1
    events = [e for e in read(tmp_path / "traces.sqlite") if e["func"] == "work" and e["kind"] == "call"]
    assert sorted(event["args"][0]["value"] for event in events) == ["0", "1", "2"]
    assert len({event["pid"] for event in events}) == 3


def test_child_that_goes_on(tmp_path: Path) -> None:
    """The program does not wait for it, and the recording goes on with it."""
    script = write(
        tmp_path,
        "script.py",
        """
        import os, sys
        def late(n): return n
        if os.fork() == 0:
            sys.stdin.readline()
            late(1)
            os._exit(3)
        """,
    )
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as stdin, open(tmp_path / "stderr", "wb") as stderr:
        command = [*PYTRACE, script]
        subprocess.run(command, cwd=tmp_path, env=environment(), stdin=stdin, stderr=stderr, timeout=TIMEOUT)
    summary = (tmp_path / "stderr").read_text()
    assert summary.startswith("pytrace: ")
    assert ", none lost; others that it started still run. Open it" in summary
    assert info(tmp_path / "traces.sqlite")[0]["finished"] is None
    os.write(write_end, b"\n")
    os.close(write_end)
    wait_for(lambda: info(tmp_path / "traces.sqlite")[0]["finished"], "the end of the run")
    assert calls(tmp_path / "traces.sqlite", "late") == 1


def test_child_that_becomes_another_program(tmp_path: Path) -> None:
    """It does not keep the recording open."""
    script = write(
        tmp_path,
        "script.py",
        """
        import os
        pid = os.fork()
        if pid == 0:
            os.execvp("sleep", ["sleep", "1000"])
        print(pid)
        """,
    )
    with open(tmp_path / "out", "wb") as out:
        command = [*PYTRACE, script]
        subprocess.run(command, cwd=tmp_path, env=environment(), stdout=out, stderr=out, timeout=TIMEOUT)
    wait_for(lambda: info(tmp_path / "traces.sqlite")[0]["finished"], "the end of the run")
    os.kill(int((tmp_path / "out").read_text().split()[0]), signal.SIGKILL)


def test_large_loss_is_told(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "def f(a): pass\nfor i in range(300000): f('x' * 100)\n")
    done = run([*PYTRACE, "--buffer-size", "256k", script], tmp_path)
    [row] = info(tmp_path / "traces.sqlite")
    assert row["events"] + row["lost"] >= 600000
    assert (b"none lost" in done.stderr) == (row["lost"] == 0)


def test_two_recordings_into_one_database(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "def f(): pass\nfor i in range(20000): f()\n")
    commands = [subprocess.Popen([*PYTRACE, "-q", script], cwd=tmp_path, env=environment()) for _ in range(2)]
    assert [command.wait(TIMEOUT) for command in commands] == [0, 0]
    assert [row["events"] for row in info(tmp_path / "traces.sqlite")] == [40002, 40002]
