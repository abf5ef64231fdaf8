"""Names of files that are not UTF-8: stored in one form, from which their bytes come back."""

import json
import os
import shlex
import sqlite3
import subprocess
from pathlib import Path

import pytest
from pytracer.reader.paths import path_bytes
from pytracer.reader.source_file import excerpt

from pytracer.start import show_path
from recording import PYTRACE, TIMEOUT, environment

FOLDERS = [b"caf\xe9", b"a\\x41\\b", "é".encode(), b"\xed\xb3\xbf\\x5c\\"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_bytes_come_back(tmp_path: Path, folder: bytes) -> None:
    inside = os.path.join(os.fsencode(tmp_path), folder)
    script = os.path.join(inside, b"odd\xff.py")
    os.mkdir(inside)
    Path(os.fsdecode(script)).write_text(
        "import os, sys\ndef here(): pass\nhere()\n"
        "if len(sys.argv) < 3:\n"
        "    if not (child := os.fork()):\n"
        "        os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])\n"
        "    os.waitpid(child, 0)\n"
    )
    database = tmp_path / "traces.sqlite"
    done = subprocess.run(
        [*PYTRACE, "-q", "-o", database, "--modules", b"odd\xff.py", b"odd\xff.py", b"\xfe'"],
        cwd=inside,
        env=environment(),
        capture_output=True,
        timeout=TIMEOUT,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    with sqlite3.connect(database) as stored:
        directory, command, options = stored.execute("SELECT directory, command, options FROM run").fetchone()
        files = [file for (file,) in stored.execute("SELECT DISTINCT file FROM code WHERE func = 'here'")]
        ((again,),) = stored.execute("SELECT command FROM process WHERE command LIKE '%again%'")
    stored.close()
    assert path_bytes(directory) == inside
    assert [*map(path_bytes, files)] == [script]
    assert files == [show_path(os.fsdecode(script))]
    assert words(command)[-2:] == [b"odd\xff.py", b"\xfe'"]
    assert words(again)[-3:] == [b"odd\xff.py", b"\xfe'", b"again"]
    assert path_bytes(json.loads(options)["modules"]) == script
    assert excerpt(directory, files[0], 2, 0).lines[1] == (2, "def here(): pass")

    exactly = files[0].replace("\\", "\\\\").replace("_", "\\_")  # as LIKE takes it
    chosen = f"file == {exactly!r} and func == 'here'"
    shown = subprocess.run(
        [*PYTRACE, "print", database, "--format", "json", "--filter", chosen],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert {json.loads(line)["file"] for line in shown.stdout.splitlines()} == set(files)


def words(command: str) -> list[bytes]:
    return [os.fsencode(word) for word in shlex.split(os.fsdecode(path_bytes(command)))]
