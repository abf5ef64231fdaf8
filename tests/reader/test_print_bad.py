"""Databases that cannot be read: what is said, the exit status, and that nothing is left behind."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from handmade import Handmade, command, environment, event, printed, ran


def refused(*arguments: object) -> str:
    """The messages of both commands, without a traceback, and with no standard output."""
    messages = set()
    for word in ("print", "info"):
        done = ran(word, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("pytrace: ")
        assert "Traceback" not in done.stderr
        messages.add(done.stderr)
    [message] = messages
    return message.removeprefix("pytrace: ").rstrip("\n")


def recorded(path: Path, segments: int = 1) -> Path:
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main")
        for n in range(segments):
            made.segment(run, [event("call", 1, os.urandom(50).hex())] * 100, sequence=n, start=n)
    return path


def test_missing(tmp_path: Path) -> None:
    path = tmp_path / "no.sqlite"
    assert refused(path) == f"there is no {path}. Record one with: pytrace -o {path} script.py"
    assert list(tmp_path.iterdir()) == []
    done = printed(cwd=tmp_path)
    assert done.stderr == "pytrace: there is no traces.sqlite. Record one with: pytrace script.py\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder(tmp_path: Path) -> None:
    assert refused(tmp_path).startswith(f"{tmp_path} is a folder, not a database.")
    recorded(tmp_path / "traces.sqlite")
    assert refused(tmp_path).endswith(f"Did you mean {tmp_path}/traces.sqlite?")


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in refused(tmp_path / "pipe")


def test_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    path.touch()
    assert "is empty: nothing has been recorded into it" in refused(path)
    assert path.stat().st_size == 0


@pytest.mark.parametrize("content", [b"hello", b"SQLite format 3", b"\x7fELF" * 2000])
def test_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.sqlite"
    path.write_bytes(content)
    assert "is not a database" in refused(path)


def test_a_header_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "no.sqlite"
    path.write_bytes(b"SQLite format 3\0" + bytes(100))
    assert "is damaged or cut off" in refused(path)


def test_another_programs_database(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE run (id)").fetchall()
    before = path.read_bytes()
    assert "is a database of another program" in refused(path)
    assert path.read_bytes() == before


def test_other_versions(tmp_path: Path) -> None:
    path = recorded(tmp_path / "traces.sqlite")
    with Handmade(path) as made:
        made("PRAGMA user_version = 3")
        made("ALTER TABLE segment RENAME COLUMN codes TO summary")
    said = refused(path)
    assert "was made by a newer pytrace (format 3; this one reads 2)" in said
    assert "no such column: codes" in said
    assert "pip install --upgrade pytracer" in said
    with Handmade(path) as made:
        made("PRAGMA user_version = 0")
    assert "has format 0, which this pytrace (format 2) does not read" in refused(path)


def test_cut_off(tmp_path: Path) -> None:
    whole = recorded(tmp_path / "traces.sqlite", segments=20).read_bytes()
    path = tmp_path / "cut.sqlite"
    for size in (len(whole) // 2, len(whole) - 1, 4096, 100, 20):
        path.write_bytes(whole[:size])
        assert f"{path} is damaged or cut off" in refused(path)


def test_scribbled_over(tmp_path: Path) -> None:
    """Whichever page is lost: a message or what could be read, and never a traceback."""
    path = recorded(tmp_path / "traces.sqlite", segments=3)
    whole = path.read_bytes()
    with apsw.Connection(str(path)) as connection:
        [(page,)] = connection.execute("PRAGMA page_size").fetchall()
    for start in range(page, len(whole), page):
        path.write_bytes(whole[:start] + b"\xa5" * page + whole[start + page :])
        done = printed(path, "--format", "json")
        assert done.returncode in (0, 2)
        assert "Traceback" not in done.stderr
        assert done.stderr or done.returncode == 0


def test_tables_that_are_not_ours(tmp_path: Path) -> None:
    path = recorded(tmp_path / "traces.sqlite")
    with Handmade(path) as made:
        made("ALTER TABLE run RENAME TO walk")
    assert "is damaged or cut off" in refused(path)


def test_names_in_messages_are_safe(tmp_path: Path) -> None:
    assert "no\\x1b[31m\\u202e" in refused(tmp_path / "no\x1b[31m\u202e")


# ---- rights ----


def without_privileges() -> None:
    """Takes from root the power to read and write everything (prctl; see capabilities(7))."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP; fails for those who have none


def plainly(word: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command by somebody whose rights are checked."""
    return subprocess.run(
        command(word, *arguments),
        env=environment(),
        preexec_fn=without_privileges,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder whose rights a test may change."""
    folder = tmp_path / "shared"
    folder.mkdir()
    yield folder
    folder.chmod(0o700)


def test_no_right_to_read(shared: Path) -> None:
    path = recorded(shared / "traces.sqlite")
    path.chmod(0)
    for word in ("print", "info"):
        done = plainly(word, path)
        assert done.returncode == 2
        assert f"{path} may not be read by you" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_folder_without_the_right_to_write(shared: Path) -> None:
    path = recorded(shared / "traces.sqlite")
    path.chmod(0o444)
    shared.chmod(0o555)
    done = plainly("print", path)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 100, "")
    assert os.listdir(shared) == ["traces.sqlite"]


def test_a_folder_without_the_right_to_write_and_a_live_writer(shared: Path) -> None:
    path = recorded(shared / "traces.sqlite")
    with Handmade(path) as made:
        run = made.run(finished=False)
        made.code(run, 1, "main")
        made.segment(run, [event("call", 1)])
        for file in shared.iterdir():
            file.chmod(0o444)
        shared.chmod(0o555)
        done = plainly("print", path)
        assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 1, "")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    path = recorded(tmp_path / "traces.sqlite")
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    for word in ("print", "info"):
        assert ran(word, path).returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["traces.sqlite"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_wal_that_a_crash_left_is_read(tmp_path: Path) -> None:
    """Rows that a dumper committed before it died are there, though they never reached the file."""
    path = tmp_path / "traces.sqlite"
    copy = tmp_path / "copy.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main")
        made.segment(run, [event("call", 1)])
        copy.write_bytes(path.read_bytes())
        Path(f"{copy}-wal").write_bytes(Path(f"{path}-wal").read_bytes())
    assert len(printed(copy).stdout.splitlines()) == 1
