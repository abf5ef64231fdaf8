"""The source around a line, in the file as it is now."""

import os
from pathlib import Path

import pytest
from pytracer.reader.source_file import MOST, Excerpt, excerpt

LATER = 1 << 62  # after each file here was written


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


def test_lines_around_the_one(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(numbered(30))
    lines, note = excerpt("/", str(tmp_path / "app.py"), 12, LATER)
    assert lines == [(number, f"line {number}") for number in range(7, 23)]
    assert note == ""
    assert excerpt(str(tmp_path), "app.py", 1, LATER).lines[0] == (1, "line 1")
    assert excerpt(str(tmp_path), "app.py", 30, LATER).lines[-1] == (30, "line 30")


def test_a_file_written_since_is_shown_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text("pass\n")
    started = path.stat().st_mtime_ns
    assert excerpt("/", str(path), 1, started).note == ""
    os.utime(path, ns=(started, started + 1))
    assert excerpt("/", str(path), 1, started) == Excerpt(
        [(1, "pass")], "the file was written after the recording began: this may not be what ran"
    )


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "app.py"

    def read(data: bytes, line: int = 1) -> str:
        path.write_bytes(data)
        return excerpt("/", str(path), line, LATER).lines[line - 1][1]

    assert read("x = 'é漢'".encode()) == "x = 'é漢'"
    assert read("\ufeffx = 'é'\n".encode()) == "x = 'é'"
    assert read("# coding: latin-1\nx = 'é'".encode("latin-1"), 2) == "x = 'é'"
    assert read(b"x = '\xe9'") == "x = '\ufffd'"
    assert read(b"\tif x:\ty\r\n") == "        if x:   y"
    for codec in ("no-such-thing", "zlib", "undefined", "rot13", "idna"):
        assert read(f"# coding: {codec}\nx = 1".encode(), 2)
    assert len(read(b"x" * 100_000)) == 2000


@pytest.mark.parametrize(
    ("file", "note"),
    [
        ("", "it is in no file"),
        ("<string>", "<string> is not a file"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap> is not a file"),
        ("none.py", "{}/none.py is not there, on this machine"),
        ("app.py/inside.py", "{}/app.py/inside.py cannot be read: Not a directory"),
        (".", "{}/. cannot be read: it is not a file"),
        ("pipe", "{}/pipe cannot be read: it is not a file"),
        ("/dev/zero", "/dev/zero cannot be read: it is not a file"),
        ("loop", "{}/loop cannot be read: Too many levels of symbolic links"),
        ("null\0byte", "{}/null\0byte is no name of a file"),
        ("app.py", "{}/app.py has 3 lines now, and no line 100000"),
        ("empty.py", "{}/empty.py has 0 lines now, and no line 100000"),
        ("large.py", "{}/large.py is too large: line 100000 is not in its first 1 MiB"),
    ],
)
def test_why_there_is_none(tmp_path: Path, file: str, note: str) -> None:
    (tmp_path / "app.py").write_text(numbered(3))
    (tmp_path / "empty.py").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with (tmp_path / "large.py").open("wb") as large:
        large.truncate(MOST + 1)
    assert excerpt(str(tmp_path), file, 100_000, LATER) == Excerpt([], note.format(tmp_path))


def test_no_line_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(numbered(3))
    for line in (0, -1, 4):
        assert not excerpt(str(tmp_path), "app.py", line, LATER).lines


def test_a_name_that_is_none_in_any_file_system() -> None:
    assert "is no name of a file" in excerpt("/", "\0.py", 1, LATER).note
