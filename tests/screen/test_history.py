"""Histories: earlier lines, in files."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pytracer.reader.screen.history import KEPT, History


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "pytrace").mkdir()
    return tmp_path / "pytrace" / "filter"


def test_lines_are_there_again(tmp_path: Path, environ: dict[str, str]) -> None:
    history = History("filter", environ)
    assert history.lines() == []
    for line in ("a", "b", "b", "日本 'x'", "a"):
        history.add(line)
    assert history.lines() == ["b", "日本 'x'", "a"]
    assert History("filter", environ).lines() == history.lines()
    assert History("search", environ).lines() == []
    folder = tmp_path / "pytrace"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "filter").stat().st_mode) == 0o600


def test_it_is_at_home_by_default(tmp_path: Path) -> None:
    History("filter", {"HOME": str(tmp_path), "XDG_STATE_HOME": "relative"}).add("a")
    assert (tmp_path / ".local/state/pytrace/filter").read_text() == "a\n"


@pytest.mark.parametrize("environ", [{}, {"HOME": "home"}, {"PYTRACE_HISTORY": "off", "HOME": "/nowhere"}])
def test_nowhere_to_keep_it(environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    history = History("filter", environ)
    history.add("a")
    assert history.lines() == ["a"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", ["", "  ", "a\nb", "a\x1b[31m", "\u202e", "x" * 10_001])
def test_what_is_not_kept(line: str, environ: dict[str, str]) -> None:
    history = History("filter", environ)
    history.add(line)
    assert history.lines() == []


def test_two_readers_at_once(environ: dict[str, str]) -> None:
    code = (
        "import sys; from pytracer.reader.screen.history import History; history = History('filter')\n"
        "for number in range(100): history.add(f'{sys.argv[1]} {number} ' + sys.argv[1] * 2000)"
    )
    command = [sys.executable, "-P", "-c", code]
    readers = [subprocess.Popen([*command, name], env=os.environ | environ) for name in "ab"]
    assert [reader.wait() for reader in readers] == [0, 0]
    lines = History("filter", environ).lines()
    for name in "ab":
        own = [line for line in lines if line.startswith(name)]
        assert own == [f"{name} {number} {name * 2000}" for number in range(100)]
    assert len(lines) == 200


def test_a_file_that_has_grown_is_cut(file: Path, environ: dict[str, str]) -> None:
    file.write_text("".join(f"line {number}\n" for number in range(3 * KEPT)))
    kept = [f"line {number}" for number in range(2 * KEPT, 3 * KEPT)]
    assert History("filter", environ).lines() == kept
    assert file.read_text().split() == " ".join(kept).split()
    assert [each.name for each in file.parent.iterdir()] == ["filter"]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\n\xff\xfe\nb\x00c\nd", ["a", "\ufffd\ufffd", "d"]),
        (os.urandom(1 << 16).replace(b"\n", b"") + b"\nlast\n", ["last"]),
        (b"x" * (3 << 20) + b"\nlast\n", ["last"]),
        (b"x" * (3 << 20), []),
    ],
    ids=["binary", "random", "huge", "one line"],
)
def test_a_file_of_anything(data: bytes, lines: list[str], file: Path, environ: dict[str, str]) -> None:
    file.write_bytes(data)
    assert History("filter", environ).lines()[-3:] == lines
    assert file.stat().st_size < 1 << 20


@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "device"])
def test_what_is_no_plain_file_is_left_alone(kind: str, file: Path, environ: dict[str, str]) -> None:
    target = file.parent / "target"
    target.write_text("kept\n")
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(target if kind == "link" else "/dev/tty")
    history = History("filter", environ)
    history.add("a")
    assert history.lines() == ["a"]
    assert target.read_text() == "kept\n"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = History("filter", {"XDG_STATE_HOME": str(tmp_path / "file")})
    history.add("a")
    assert history.lines() == ["a"]
