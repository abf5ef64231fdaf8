"""Files that the dumper refuses: it says why and what to do, and leaves everything as it is."""

import ctypes
import os
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from dumping import READY, REFUSED, Dumper, Producer, TestRing, rows

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


def obey_permissions() -> None:
    """In the dumper before exec: not even root may then write where its mode says no."""
    prctl = ctypes.CDLL(None).prctl
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def folder(path: Path) -> None:
    path.mkdir()


def text(path: Path) -> None:
    path.write_text("Dear diary, " * 100)


def short_text(path: Path) -> None:
    path.write_text("x")


def others_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customer (name)")
    connection.close()


def newer_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 0x70747263")
        connection.execute("PRAGMA user_version = 3")
        connection.execute("CREATE TABLE event (name)")
    connection.close()


def damaged_database(path: Path) -> None:
    newer_database(path)
    data = bytearray(path.read_bytes())
    data[60:64] = (2).to_bytes(4, "big")
    path.write_bytes(data)


def link(path: Path) -> None:
    path.with_name("target").write_bytes(b"")
    path.symlink_to("target")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def read_only(path: Path) -> None:
    path.touch(0o400)


def read_only_folder(path: Path) -> None:
    path.parent.chmod(0o500)


def read_only_folder_with_file(path: Path) -> None:
    path.touch()
    path.parent.chmod(0o500)


def no_folder(path: Path) -> None:
    path.parent.rmdir()


def no_folder_but_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.touch()


REFUSALS: list[tuple[Callable[[Path], None], str]] = [
    (folder, "is a folder. Choose a file in it with --output."),
    (text, "is not a database. Choose another file with --output."),
    (short_text, "is not a database. Choose another file with --output."),
    (others_database, "is another program's database. Choose another file with --output."),
    (newer_database, "was written by a newer version of pytrace. Choose another file with --output."),
    (damaged_database, "Move it away, or choose another file with --output."),
    (link, "is a symbolic link. Give the file itself with --output."),
    (pipe, "is no regular file. Choose another file with --output."),
    (read_only, "Permission denied. Choose another file with --output."),
    (read_only_folder, "Permission denied. Choose another file with --output."),
    (
        read_only_folder_with_file,
        "or its folder (attempt to write a readonly database). Choose another file with --output.",
    ),
    (no_folder, "does not exist. Make it, or choose another file with --output."),
    (no_folder_but_a_file, "Not a directory. Choose another file with --output."),
]


def everything(path: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(file): (file.lstat().st_mode, file.read_bytes() if file.is_file() else b"")
        for file in path.rglob("*")
    }


@pytest.mark.parametrize(("make", "reason"), REFUSALS, ids=lambda value: getattr(value, "__name__", ""))
def test_refusals(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    database = tmp_path / "output" / "traces.sqlite"
    database.parent.mkdir()
    make(database)
    before = everything(tmp_path)
    ring = TestRing(tmp_path, output=database)
    dumper = Dumper(ring, preexec_fn=obey_permissions)
    assert dumper.wait() == 1
    assert ring.said() == REFUSED
    assert ring.message().startswith("pytrace: ")
    assert ring.message().endswith(reason)
    assert str(database) in ring.message()
    ring.path.unlink()
    assert everything(tmp_path) == before
    if database.parent.exists():
        database.parent.chmod(0o700)


def test_a_locked_database_is_refused(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    Producer(ring).exit()
    assert dumper.wait() == 0
    other = sqlite3.connect(ring.database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    ring = TestRing(tmp_path)
    assert Dumper(ring).wait() == 1
    assert "is locked by another program" in ring.message()
    other.execute("ROLLBACK")
    other.close()
    assert rows(ring.database, "SELECT count(*) FROM run") == [(1,)]


def test_a_full_disk_is_refused_and_nothing_left(tmp_path: Path) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

    ring = TestRing(tmp_path)
    assert Dumper(ring, preexec_fn=small_files).wait() == 1
    assert ring.said() == REFUSED
    assert list(tmp_path.iterdir()) == [ring.path]


def test_an_empty_file_is_taken(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    ring.database.touch()
    dumper = Dumper(ring)
    assert ring.said() == READY
    Producer(ring).exit()
    assert dumper.wait() == 0
    assert rows(ring.database, "SELECT count(*) FROM run") == [(1,)]


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_file_is_private(tmp_path: Path, umask: int) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring, umask=umask)
    assert ring.said() == READY
    for path in tmp_path.glob("traces.sqlite*"):
        assert path.stat().st_mode & 0o777 == 0o600
    Producer(ring).exit()
    assert dumper.wait() == 0


def test_identification_of_the_database(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    header = ring.database.read_bytes()[:100]
    assert header[68:72] == b"ptrc"
    assert int.from_bytes(header[60:64], "big") == 2
    Producer(ring).exit()
    assert dumper.wait() == 0
