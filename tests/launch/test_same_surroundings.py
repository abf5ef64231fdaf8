"""A recorded program if the shell allows it little, or stops it: it runs as without, or not at
all with a word about what to do."""

from pathlib import Path

import pexpect

from beside import PYTRACE, Outcome, environment, run, write
from recording import read

WORK = """
    def work(n):
        return n * n
    print(sum(map(work, range(1000))))
"""


def limited(folder: Path, limit: str, *options: str) -> Outcome:
    script = write(folder, "script.py", WORK)
    command = " ".join([*PYTRACE, "-q", *options, script])
    return run(["bash", "-c", f"ulimit {limit} && exec {command}"], folder)


def test_files_limited(tmp_path: Path) -> None:
    done = limited(tmp_path, "-f 10000")
    assert (done.status, done.stdout) == (2, b"")
    assert b"File too large" in done.stderr
    assert b"--buffer-size" in done.stderr
    assert limited(tmp_path, "-f 10000", "--buffer-size", "1MiB") == (0, b"332833500\n", b"")


def test_memory_limited(tmp_path: Path) -> None:
    done = limited(tmp_path, "-v 600000", "--buffer-size", "1GiB")
    assert (done.status, done.stdout) == (2, b"")
    assert b"Cannot allocate memory" in done.stderr
    assert b"--buffer-size" in done.stderr
    assert limited(tmp_path, "-v 600000") == (0, b"332833500\n", b"")


def test_few_descriptors(tmp_path: Path) -> None:
    assert limited(tmp_path, "-n 16") == (0, b"332833500\n", b"")
    assert sum(event["func"] == "work" for event in read(tmp_path / "traces.sqlite")) == 2000


def test_stopped_and_continued(tmp_path: Path) -> None:
    """Ctrl-Z and fg, as in a shell: the status is the program's, and no event is missing."""
    write(
        tmp_path,
        "script.py",
        """
        import sys
        def work(n):
            return n
        for n in range(1000): work(n)
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range(1000): work(n)
        sys.exit(7)
        """,
    )
    shell = pexpect.spawn(
        "bash",
        ["--norc", "-i"],
        cwd=str(tmp_path),
        env=environment(PS1="$ ", TERM="dumb"),
        encoding="utf-8",
    )
    shell.sendline(" ".join([*PYTRACE, "-q", "script.py"]))
    shell.expect_exact("ready")
    shell.sendcontrol("z")
    shell.expect_exact("Stopped")
    shell.sendline("fg")
    shell.expect_exact("script.py")
    shell.sendline("go on")
    shell.sendline("echo status=$?")
    shell.expect(r"status=(\d+)")
    assert shell.match[1] == "7"
    shell.close()
    assert sum(event["func"] == "work" for event in read(tmp_path / "traces.sqlite")) == 4000
