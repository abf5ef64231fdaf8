"""Somebody else has prepared what pytrace finds: the folder, the output, files beside it, the
database."""

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from dumping import REFUSED, Dumper, TestRing
from handmade import Handmade
from pytracer.recovery import SHARED_MEMORY, abandoned_rings
from recording import PYTRACE, environment, run, write

SOMEBODY = 65534

# ---- where the dumper writes -------------------------------------------------------------------


def recorded(path: Path) -> None:
    with Handmade(path) as database:
        database.code(database.run(), 1, "pay", [])
        database("PRAGMA journal_mode = DELETE")
    path.chmod(0o600)


def hard_link(path: Path) -> None:
    recorded(path)
    path.with_name("other").hardlink_to(path)


def writable(path: Path) -> None:
    recorded(path)
    path.chmod(0o666)


def anothers(path: Path) -> None:
    recorded(path)
    os.chown(path, SOMEBODY, -1)


def linked_log(path: Path) -> None:
    path.with_name("target").write_text("precious")
    path.with_name(path.name + "-wal").symlink_to("target")


def anothers_log(path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    log.touch()
    os.chown(log, SOMEBODY, -1)


def pipe_as_journal(path: Path) -> None:
    os.mkfifo(path.with_name(path.name + "-journal"))


HOSTILE: list[tuple[Callable[[Path], None], str]] = [
    (hard_link, "has another name, too (a hard link). Remove one of them, or choose"),
    (writable, "others may write to {}. Take that back (chmod go-w), or choose"),
    (linked_log, "-wal is not a file of yours. Remove it, or choose"),
    (pipe_as_journal, "-journal is not a file of yours. Remove it, or choose"),
]
if os.geteuid() == 0:  # who else may give files away?
    HOSTILE += [
        (anothers, "belongs to another user. Choose another file with --output."),
        (anothers_log, "-wal is not a file of yours. Remove it, or choose"),
    ]


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in folder.iterdir():
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[path.name] = (status.st_mode, status.st_uid, content)
    return found


@pytest.mark.parametrize(("prepare", "reason"), HOSTILE, ids=[prepare.__name__ for prepare, _ in HOSTILE])
def test_hostile_output(tmp_path: Path, prepare: Callable[[Path], None], reason: str) -> None:
    database = tmp_path / "output" / "traces.sqlite"
    database.parent.mkdir()
    prepare(database)
    before = everything(database.parent)
    ring = TestRing(tmp_path, output=database)
    dumper = Dumper(ring)
    assert dumper.wait() == 1
    assert ring.said() == REFUSED
    assert reason.format(database) in ring.message()
    assert everything(database.parent) == before


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    """Whatever the umask, and if an empty file was there before; ring, database and what is
    beside it."""
    write(
        tmp_path,
        "script.py",
        """
        import glob, os, stat
        maps = [line.split()[-1] for line in open("/proc/self/maps") if "/pytrace-" in line]
        for path in {*maps, *glob.glob("traces.sqlite*")}:
            print(os.path.basename(path).split("-")[0], oct(stat.S_IMODE(os.stat(path).st_mode)))
        """,
    )
    (tmp_path / "traces.sqlite").touch(0o644)
    done = subprocess.run(
        [*PYTRACE, "script.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, umask=0
    )
    assert done.returncode == 0, done.stderr
    shown = done.stdout.split("\n")
    assert {*shown} == {"", "pytrace 0o600", "traces.sqlite 0o600"}
    assert shown.count("traces.sqlite 0o600") == 3  # itself, -wal, -shm


if os.geteuid() == 0:

    def test_options_that_somebody_has_planted(tmp_path: Path) -> None:
        """In a folder that is not theirs; in their own they count, as their program does."""
        write(tmp_path, "pyproject.toml", "[tool.pytrace]\noutput = 'theirs.sqlite'")
        os.chown(tmp_path / "pyproject.toml", SOMEBODY, -1)
        done = run([*PYTRACE, "-q", "-c", "pass"], tmp_path)
        assert done.stderr.splitlines() == [
            "pytrace: pyproject.toml was put here by another user: its [tool.pytrace] is left aside"
        ]
        assert (tmp_path / "traces.sqlite").exists()
        os.chown(tmp_path, SOMEBODY, -1)
        assert run([*PYTRACE, "-q", "-c", "pass"], tmp_path).stderr == ""
        assert (tmp_path / "theirs.sqlite").exists()

    @pytest.mark.parametrize("size", [100_000, 1 << 40])
    def test_names_that_somebody_has_planted(size: int) -> None:
        """A file like a recording that was cut off, but of another user, is neither saved nor
        removed."""
        unique = os.urandom(8).hex()
        prepared = Path(SHARED_MEMORY, f"test-{unique}")
        with prepared.open("wb") as file:
            file.write(b"\xff" * 5000)
            file.truncate(size)
        # the name comes last: as long as the file is ours, a dumper nearby may clean it away
        os.chown(prepared, SOMEBODY, -1)
        path = prepared.rename(Path(SHARED_MEMORY, f"pytrace-{os.getuid()}-999999999-{unique}"))
        try:
            assert str(path) not in [*abandoned_rings()]
            assert path.stat().st_size == size
        finally:
            path.unlink()


# ---- what is loaded ----------------------------------------------------------------------------


def test_nothing_is_loaded_from_the_current_folder(tmp_path: Path) -> None:
    """Not by the launcher, the dumper, or those who read."""
    for module in (
        "apsw",
        "argparse",
        "json",
        "setproctitle",
        "cffi",
        "_cffi_backend",
        "zipimport",
        "backports",
    ):
        write(tmp_path, f"{module}.py", f"open('loaded', 'a').write('{module} ')")
    write(tmp_path, "script.py", "print(1)")
    for words in (["script.py"], ["print"], ["info"], ["sql", "", "SELECT 1"], ["read"]):
        command = [word or "traces.sqlite" for word in words]
        done = run([*PYTRACE, *command], tmp_path)
        assert done.returncode in (0, 1), (command, done.stderr)
        assert not (tmp_path / "loaded").exists(), (command, (tmp_path / "loaded").read_text())


def test_a_pipe_instead_of_options(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    assert run([*PYTRACE, "-q", "-c", "print(1)"], tmp_path).stdout == "1\n"


# ---- what is read ------------------------------------------------------------------------------

CALL = (
    "CREATE TABLE called (x); CREATE TRIGGER spy AFTER INSERT ON run BEGIN INSERT INTO called VALUES (1); END"
)
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
PREPARED = {
    "a view that never ends": f"DROP TABLE type; CREATE VIEW type AS {ENDLESS} SELECT i AS run FROM n",
    "a view that loads something": "CREATE VIEW event AS SELECT load_extension('x') AS id FROM run",
    "a table in the place of a table of ours": "CREATE TABLE event (id, time, evil)",
    "a table that is none": "DROP TABLE thread; CREATE VIRTUAL TABLE thread USING fts5 (run)",
}


@pytest.mark.parametrize("what", PREPARED)
def test_prepared_database(tmp_path: Path, what: str) -> None:
    database = tmp_path / "traces.sqlite"
    recorded(database)
    with apsw.Connection(str(database)) as connection:
        connection.execute(PREPARED[what])
    connection.close()
    for words in (["print"], ["info"], ["sql", str(database), "SELECT * FROM event"]):
        done = run([*PYTRACE, *words], tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "damaged" in done.stderr


def test_triggers_are_not_run(tmp_path: Path) -> None:
    database = tmp_path / "traces.sqlite"
    recorded(database)
    connection = apsw.Connection(str(database))
    connection.execute(CALL)
    connection.close()
    write(tmp_path, "script.py", "")
    done = run([*PYTRACE, "script.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    connection = apsw.Connection(str(database))
    assert connection.execute("SELECT count(*) FROM run").get == 2
    assert connection.execute("SELECT count(*) FROM called").get == 0
    connection.close()
