"""Programs that a recorded program starts are recorded, however they are started."""

import sqlite3
import sys
from pathlib import Path

import pytest

from family import check, recorded, started, told, wait_until_finished, write_kid
from recording import PYTRACE, TIMEOUT, run, write

WAYS = """
    import os, subprocess, sys
    python, kid = sys.executable, os.path.abspath("kid.py")

    def by_fork_and_exec(*command):
        pid = os.fork()
        if pid == 0:
            os.execv(command[0], command)
        os.waitpid(pid, 0)

    def work(n):
        return n

    work(1)
    print(os.getpid(), 1, flush=True)
    subprocess.run([python, kid, "2"], check=True)
    subprocess.run([kid, "3"], check=True)
    subprocess.run([python, "-I", kid, "4"], check=True)
    subprocess.run([python, "-E", "-X", "dev", kid, "5"], check=True)
    subprocess.run([python, kid, "6"], env={**os.environ, "MINE": "1"}, check=True)
    subprocess.run([python, kid, "7"], preexec_fn=lambda: None, check=True)
    subprocess.run([python, kid, "8"], start_new_session=True, close_fds=False, check=True)
    os.system(f"{python} {kid} 9; true")
    os.waitpid(os.posix_spawn(python, [python, kid, "10"], os.environ), 0)
    by_fork_and_exec(python, kid, "11")
    subprocess.run([python, "-c", f"import subprocess; subprocess.run(['{kid}', '12'], check=True)"])
    os.execv(python, [python, "-c", "import os, runpy, sys; sys.argv[1:] = ['13']; runpy.run_path('kid.py')"
                      "; sys.exit(5)"])
"""


def test_every_way_to_start_a_program(tmp_path: Path) -> None:
    write_kid(tmp_path)
    facts = check(tmp_path, WAYS, status=5)
    tree = facts["tree"]
    first, *others = tree
    assert (first["parent"], first["replaced"], first["exit_status"]) == (None, True, None)
    last = others[-1]
    assert (last["pid"], last["parent"], last["exit_status"]) == (first["pid"], 0, 5)
    assert facts["exit_status"] == 5

    calls = recorded(tmp_path / "traces.sqlite")
    by_count = {calls[process["pid"]]: process for process in others if calls[process["pid"]] <= 12}
    parents = {count: by_count[count]["parent"] for count in range(2, 13)}
    # what was forked is a process of its own, until it became another
    forked = {process["number"] for process in tree if process["command"] is None}
    assert [count for count in parents if parents[count] in forked] == [7, 11]
    [between] = [process for process in others if "import subprocess" in (process["command"] or "")]
    assert parents[12] == between["number"]
    assert {parents[count] for count in parents if count not in (7, 11, 12)} == {0}
    assert by_count[2]["command"] == f"{sys.executable} {tmp_path}/kid.py 2"
    assert {process["exit_status"] for process in by_count.values()} == {0}


def test_a_program_that_ends_before_what_it_starts(tmp_path: Path) -> None:
    """The recording waits for them, though none of them has registered when the program ends."""
    write_kid(tmp_path)
    script = write(
        tmp_path,
        "script.py",
        """
        import os, subprocess, sys
        subprocess.Popen([sys.executable, "kid.py", "2"])
        subprocess.Popen(["sh", "-c", f"{sys.executable} kid.py 3; true"])
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv(sys.executable, [sys.executable, "kid.py", "4"])
            os._exit(0)
        os._exit(0) if "at once" in sys.argv else None
        """,
    )
    for arguments in ([], ["at once"]):
        done = run([*PYTRACE, str(script), *arguments], tmp_path)
        assert done.returncode == 0
        wait_until_finished(tmp_path / "traces.sqlite")
        assert sorted(told(done.stdout).values()) == [2, 3, 4]
        assert recorded(tmp_path / "traces.sqlite") == told(done.stdout)


def test_what_programs_define_alike_is_stored_once(tmp_path: Path) -> None:
    """Else a program that starts others all day long would fill the database with names of
    functions."""
    write_kid(tmp_path)
    source = """
        import os, sqlite3, subprocess, sys

        def stored():
            with sqlite3.connect("file:traces.sqlite?mode=ro", uri=True) as database:
                return database.execute("SELECT count(finished) FROM process").fetchone()[0]

        print(os.getpid(), 0, flush=True)
        for n in range(1, 5):
            subprocess.run([sys.executable, "kid.py", str(n)], check=True)
            while stored() < n:
                pass
    """
    check(tmp_path, source)
    with sqlite3.connect(tmp_path / "traces.sqlite") as database:
        most = "SELECT max(n) FROM (SELECT count(*) AS n FROM {} GROUP BY {})"
        same_code = "module, func, file, line, arguments, flags"
        # what the first of them defines at the same time as the script, both do
        assert database.execute(most.format("code", same_code)).fetchone()[0] <= 2
        assert database.execute(most.format("type", "name")).fetchone()[0] <= 2
        assert database.execute("SELECT count(*) FROM code WHERE func = 'work'").fetchone() == (1,)


def test_a_daemon_outlives_the_program(tmp_path: Path) -> None:
    source = """
        import os, sys

        def work(n):
            return n

        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                sys.stdin.readline()
                for n in range(7):
                    work(n)
                print(os.getpid(), 7, flush=True)
                sys.exit(0)
            os._exit(0)
        os.wait()
    """
    write(tmp_path, "script.py", source)
    with started(tmp_path, *PYTRACE, "script.py") as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.wait(TIMEOUT) == 0
        assert b"; others that it started still run. Open it" in program.stderr.readline()
        program.stdin.write(b"\n")
        program.stdin.close()
        output = program.stdout.read().decode()
    facts = wait_until_finished(tmp_path / "traces.sqlite")
    assert recorded(tmp_path / "traces.sqlite") == told(output)
    assert [process["parent"] for process in facts["tree"]] == [None, 0, 1]
    assert facts["tree"][2]["exit_status"] == 0


def test_children_that_live_for_a_moment(tmp_path: Path) -> None:
    """They are gone before the dumper knows of them: what they end with, they say themselves."""
    source = """
        import os

        for n in range(1, 41):
            if (pid := os.fork()) == 0:
                try:
                    os._exit("no number")
                except TypeError:
                    os._exit(n)
            os.waitpid(pid, 0)
        print(os.getpid(), 0)
    """
    facts = check(tmp_path, source)
    assert [process["exit_status"] for process in facts["tree"]] == list(range(41))


def test_no_children(tmp_path: Path) -> None:
    """Neither programs nor forks; the environment does not lead into the recording."""
    write_kid(tmp_path)
    source = """
        import os, subprocess, sys, threading

        def work(n):
            return n

        work(0)
        if os.fork() == 0:
            work(1)
            thread = threading.Thread(target=work, args=(2,))
            thread.start()
            thread.join()
            while len(os.listdir("/proc/self/task")) > 1:
                pass  # of a thread that is joined but not yet gone, 3.12 warns when it forks
            if os.fork() == 0:
                work(3)
            os._exit(0)
        os.wait()
        subprocess.run([sys.executable, "kid.py", "2"], stdout=subprocess.DEVNULL)
        print(os.getpid(), 1)
    """
    facts = check(tmp_path, source, "--no-children")
    assert len(facts["tree"]) == facts["processes"] == 1
    (tmp_path / "traces.sqlite").unlink()
    assert check(tmp_path, source, PYTRACE_NO_CHILDREN="1")["processes"] == 1


def test_a_fork_of_which_python_is_not_told(tmp_path: Path) -> None:
    """C code forks, and the child goes on in Python: it is a process of its own all the same."""
    facts = check(
        tmp_path,
        """
        import ctypes, os

        def work(n):
            return n

        work(0)
        pid = ctypes.PyDLL(None).fork()
        if pid == 0:
            work(1)
            work(2)
            os.write(1, f"{os.getpid()} 2\\n".encode())
            os._exit(0)
        os.waitpid(pid, 0)
        print(os.getpid(), 1)
        """,
    )
    assert [process["parent"] for process in facts["tree"]] == [None, 0]


def test_a_block_that_is_traced(tmp_path: Path) -> None:
    """With trace(), what is started while a block is open is recorded."""
    write_kid(tmp_path)
    script = write(
        tmp_path,
        "script.py",
        """
        import os, subprocess, sys
        from pytracer import trace

        def start(n):
            subprocess.run([sys.executable, "kid.py", str(n)], check=True)

        start(2)
        with trace():
            start(3)
        start(4)
        assert "PYTRACE_RING" not in os.environ
        with trace():
            start(5)
        """,
    )
    done = run([sys.executable, str(script)], tmp_path)
    assert done.returncode == 0, done.stderr
    calls = recorded(tmp_path / "traces.sqlite")
    assert sorted(calls.values()) == [3, 5]
    assert calls.items() <= told(done.stdout).items()


def test_pytrace_in_a_recorded_program(tmp_path: Path) -> None:
    """It records into its own database, and is not recorded itself."""
    write_kid(tmp_path)
    source = """
        import os, subprocess, sys
        def work(n):
            return n
        work(1)
        pytrace = [sys.executable, "-X", "dev", "-m", "pytracer"]
        subprocess.run([*pytrace, "-q", "-o", "inner.sqlite", "kid.py", "7"], check=True,
                       stdout=open("inner", "w"))
        subprocess.run([*pytrace, "info", "inner.sqlite"], check=True, stdout=subprocess.DEVNULL)
        print(os.getpid(), 1)
    """
    assert check(tmp_path, source)["processes"] == 1
    assert wait_until_finished(tmp_path / "inner.sqlite")["processes"] == 1
    assert recorded(tmp_path / "inner.sqlite") == told((tmp_path / "inner").read_text())


@pytest.mark.parametrize(
    "words", ["-m pytracer x", "-Bm pytracer", "-X dev -mpytracer.dumper", "/bin/pytrace -q x"]
)
def test_command_lines_of_pytrace(words: str) -> None:
    from pytracer.start import is_pytrace

    assert is_pytrace(words.split())


@pytest.mark.parametrize(
    "words", ["", "-", "-m pytest pytrace", "-c pytracer", "pytrace.py", "-X pytracer app.py"]
)
def test_command_lines_of_others(words: str) -> None:
    from pytracer.start import is_pytrace

    assert not is_pytrace(words.split())


# ---- what is not recorded, and runs as always ----------------------------------------------------


def test_a_python_without_pytrace(tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path / "venv", symlinks=True, with_pip=False)
    write_kid(tmp_path)
    source = """
        import os, subprocess, sys
        def work(n):
            return n
        work(1)
        for command in ["venv/bin/python"], [sys.executable, "-S"]:
            done = subprocess.run([*command, "kid.py", "7"], check=True, capture_output=True, text=True)
            assert done.stdout.endswith(" 7\\n") and not done.stderr
        done = subprocess.run([sys.executable, "kid.py", "7"], env={}, capture_output=True, text=True)
        assert done.stdout.endswith(" 7\\n") and not done.stderr
        print(os.getpid(), 1)
    """
    assert check(tmp_path, source)["processes"] == 1


@pytest.mark.parametrize("content", [None, b"", b"\0" * 2_000_000], ids=["missing", "empty", "zeros"])
def test_a_ring_that_is_none(content: bytes | None, tmp_path: Path) -> None:
    """Gone, or of another version: the child says nothing. If it is gone, the variable goes
    too."""
    ring = tmp_path / "ring"
    if content is not None:
        ring.write_bytes(content)
    code = "import os; print(os.environ.get('PYTRACE_RING'))"
    done = run([sys.executable, "-c", code], tmp_path, PYTRACE_RING=str(ring))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f"{ring}\n" if content is not None else "None\n")


def test_the_program_itself_does_not_run_without_its_ring(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", "print(1)"], tmp_path, PYTRACE_RING=f"program:{tmp_path}/ring")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot join the recording" in done.stderr
