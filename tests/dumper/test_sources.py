"""Source files are stored as they were, once for a recording."""

import json
import os
import subprocess
import sys
import zipapp
from pathlib import Path
from typing import Any

import apsw
import pytest
from pytracer.dumper.sources import MOST, TEXT_MOST, decoded
from pytracer.reader.database import extension_path

from dumping import Dumper, Producer, TestRing, rows, wait_for
from messages import Code, Definition
from recording import PYTRACE, Record, environment, run, write

LINES = {"lines": "own"}


def sources(database: Path, query: str = "SELECT file, text, changed FROM source") -> list[Any]:
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    connection.enable_load_extension(True)
    connection.load_extension(extension_path())
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def defined(ring: TestRing, *files: Path | str | bytes, mine: bool = True) -> None:
    """A process defines a function in each file, and ends."""
    dumper = Dumper(ring)
    producer = Producer(ring)
    for number, file in enumerate(files, 1):
        producer.define(Definition(code=Code(number=number, file=os.fsencode(file), mine=mine)))
    producer.calls(5)
    producer.exit()
    assert dumper.wait() == 0


def old(path: Path) -> Path:
    """The file, written before the recording began."""
    os.utime(path, (1, 1))
    return path


# ---- recorded programs ---------------------------------------------------------------------------


def test_each_file_once_for_a_run(record: Record) -> None:
    source = "import json\ndef f(): return json.dumps([1])\ndef g(): return f()\ng()\n"
    recording = record(source, "--lines")
    assert sources(recording.database) == [(str(recording.script), source, 0)]
    assert sources(recording.database, "SELECT * FROM source") == [(1, str(recording.script), source)]
    record(source, "--lines", "own")
    assert sources(recording.database, "SELECT run FROM source") == [(1,), (2,)]
    assert recording.database.stat().st_mode & 0o777 == 0o600


def test_of_all_lines_the_library_s_files_too(record: Record) -> None:
    recording = record("import json\nprint(json.loads('[1]'))\n", "--lines", "all")
    texts = dict(sources(recording.database, "SELECT file, text FROM source"))
    assert texts[str(recording.script)].startswith("import json")
    assert texts[json.__file__] == Path(json.__file__).read_text()
    assert all(os.path.isabs(file) for file in texts)


@pytest.mark.parametrize("options", [(), ("--lines", "--no-sources"), ("--modules", ".")])
def test_none_without_lines_or_if_it_is_asked_for(record: Record, options: tuple[str, ...]) -> None:
    assert sources(record("def f(): pass\nf()\n", *options).database) == []


def test_the_option_in_the_environment(record: Record) -> None:
    assert sources(record("def f(): pass\nf()\n", "--lines", PYTRACE_NO_SOURCES="1").database) == []


def test_a_module_that_the_program_writes_has_changed(record: Record) -> None:
    recording = record(
        "import pathlib, sys\nsys.dont_write_bytecode = True\n"
        "pathlib.Path('made.py').write_text('def f(): return 1\\n')\nimport made\nmade.f()\n",
        "--lines",
    )
    found = {Path(file).name: (text, changed) for file, text, changed in sources(recording.database)}
    assert found["made.py"] == ("def f(): return 1\n", 1)
    assert found["script.py"][1] == 0


def test_the_text_is_as_it_was_after_the_file_has_gone(tmp_path: Path) -> None:
    """The program waits until its source is stored: then it may be removed at once."""
    script = write(tmp_path, "script.py", "def f(): return 2\nf()\n")
    text = script.read_text()
    command = " ".join([*PYTRACE, "-q", "--lines", str(script)])
    run(["sh", "-c", f"{command}; rm {script}"], tmp_path)
    assert not script.exists()
    assert sources(tmp_path / "traces.sqlite") == [(str(script), text, 0)]


def test_the_text_is_as_it_was_when_it_is_edited_meanwhile(tmp_path: Path) -> None:
    text = "import sys\ndef f(): return 2\nf()\nprint('on', flush=True)\ninput()\n"
    script = write(tmp_path, "script.py", text)
    program = subprocess.Popen(
        [*PYTRACE, "-q", "--lines", str(script)], cwd=tmp_path, env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert program.stdout
    assert program.stdout.readline() == b"on\n"
    database = tmp_path / "traces.sqlite"
    wait_for(lambda: rows(database, "SELECT count(*) FROM source_file") == [(1,)], "the source")
    script.write_text("other = 1\n")
    program.communicate(b"\n", timeout=30)
    assert sources(database) == [(str(script), text, 0)]


def test_a_child_in_another_folder(record: Record) -> None:
    recording = record(
        "import os, subprocess, sys\nos.mkdir('sub')\n"
        "open('sub/child.py', 'w').write('def g(): pass\\ng()\\n')\n"
        "subprocess.run([sys.executable, 'child.py'], cwd='sub', check=True)\n",
        "--lines",
    )
    names = {os.path.relpath(file, recording.script.parent) for file, *_ in sources(recording.database)}
    assert names == {"script.py", "sub/child.py"}
    codes = rows(recording.database, "SELECT DISTINCT file FROM code WHERE mine")
    assert {file for (file,) in codes} == {file for file, *_ in sources(recording.database)}


def test_what_is_in_no_file(tmp_path: Path) -> None:
    done = run([*PYTRACE, "-q", "--lines", "-c", "def f(): pass\nf()"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert sources(tmp_path / "traces.sqlite") == []


def test_a_file_in_a_zip_has_none(tmp_path: Path) -> None:
    write(tmp_path, "app/__main__.py", "def f(): pass\nf()\n")
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz")
    done = run([*PYTRACE, "-q", "--lines", "app.pyz"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert sources(tmp_path / "traces.sqlite") == []
    assert rows(tmp_path / "traces.sqlite", "SELECT count(*) FROM code WHERE mine")[0][0] > 1


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\n", "x = 1\n"),
        (b"", ""),
        (b"\r\n\rx\n\x0cy", "\n\nx\n\x0cy"),
        ("\ufeffx = 'é'\r\n".encode(), "x = 'é'\n"),
        ("#!python\n# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), None),
        (b"x = '\xe9'\n", "x = '\ufffd'\n"),
        ("\ufeff# coding: utf-8\nx = 'é'".encode(), "# coding: utf-8\nx = 'é'"),
        (b"\xef\xbb\xbf# coding: latin-1\nx", "# coding: latin-1\nx"),
        (b"# coding: no-such-thing\nx", "# coding: no-such-thing\nx"),
        (b"# coding: rot13\nx", "# coding: rot13\nx"),
        (b"# coding: undefined\nx", "# coding: undefined\nx"),
        (b"# coding: unicode_escape\n\\ud800", "# coding: unicode_escape\n?"),
        (b"# coding: punycode\n" + b"x" * 1_000_000, "# coding: punycode\n" + "x" * 1_000_000),
        (b"a\0b", "a\0b"),
    ],
)
def test_decoding(data: bytes, text: str | None) -> None:
    assert decoded(data).decode() == (data.decode("latin-1") if text is None else text)


def test_names_encodings_and_changes(tmp_path: Path) -> None:
    ring = TestRing(tmp_path, **LINES)
    latin = tmp_path / "latin.py"
    latin.write_bytes("# coding: latin-1\nx = 'é'\r\n".encode("latin-1"))
    bytes_ = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.py"))
    bytes_.write_text("café = 1\n")
    name = f"{tmp_path}/caf\\xe9.py"
    new = tmp_path / "new.py"
    new.touch()
    os.utime(new, (1 << 32, 1 << 32))
    old(bytes_)
    defined(ring, old(latin), name, new)
    assert sorted(sources(ring.database)) == sorted(
        [(str(latin), "# coding: latin-1\nx = 'é'\n", 0), (name, "café = 1\n", 0), (str(new), "", 1)]
    )


def test_what_is_no_file_is_left_out(tmp_path: Path) -> None:
    ring = TestRing(tmp_path, **LINES)
    (tmp_path / "good.py").write_text("good")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    for name, size in (("large.py", MOST), ("larger.py", MOST + 1)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    names = ["none.py", "pipe.py", "loop.py", "good.py/inside.py", ".", "larger.py", "large.py", "good.py"]
    defined(ring, "", "<string>", "relative.py", "/dev/zero", "/\\x00", *(tmp_path / name for name in names))
    stored = rows(ring.database, "SELECT file, size FROM source_file ORDER BY size")
    assert stored == [(f"{tmp_path}/good.py", 4), (f"{tmp_path}/large.py", MOST)]
    assert TEXT_MOST >= 3 * MOST


def test_only_files_whose_lines_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("pass")
    ring = TestRing(tmp_path, **LINES)
    defined(ring, tmp_path / "app.py", mine=False)
    assert sources(ring.database) == []
    defined(TestRing(tmp_path, lines="all"), tmp_path / "app.py", mine=False)
    assert len(sources(ring.database)) == 1
    defined(TestRing(tmp_path, lines="all", no_sources="1"), tmp_path / "app.py")
    defined(TestRing(tmp_path), tmp_path / "app.py")
    assert len(sources(ring.database)) == 1


# ---- bounds, ends --------------------------------------------------------------------------------


def test_the_sources_of_a_run_are_bounded(tmp_path: Path) -> None:
    limit = 1 << 20
    ring = TestRing(tmp_path, max_size=limit, **LINES)
    files = []
    for number in range(60):
        files.append(tmp_path / f"file{number}.py")
        files[-1].write_text(os.urandom(4000).hex())
    small = tmp_path / "small.py"
    small.write_text("pass")
    defined(ring, *files, small)
    ((size, count),) = rows(ring.database, "SELECT sum(length(data)), count(*) FROM source_file")
    assert limit // 16 - 6000 < size <= limit // 16
    assert 10 < count < 60
    assert (str(small), "pass", 1) in sources(ring.database)  # there is room for it
    assert ring.database.stat().st_size <= limit


def test_they_go_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("pass")
    for _ in range(2):
        ring = TestRing(tmp_path, max_traces=1000, **LINES)
        dumper = Dumper(ring)
        producer = Producer(ring)
        code = Code(number=1, file=os.fsencode(tmp_path / "app.py"), mine=True)
        producer.define(Definition(code=code))
        producer.calls(900)
        producer.exit()
        assert dumper.wait() == 0
    assert sources(ring.database, "SELECT run FROM source") == [(2,)]
    connection = apsw.Connection(str(ring.database))
    connection.execute("PRAGMA foreign_keys = ON; DELETE FROM run")
    connection.close()
    assert sources(ring.database) == []


def test_the_next_dumper_stores_what_one_that_died_has_not(tmp_path: Path) -> None:
    """The definitions are committed, and not in the ring any more."""
    (tmp_path / "app.py").write_text("pass")
    (tmp_path / "other.py").write_text("other")
    ring = TestRing(tmp_path, **LINES)
    script = (
        "import os, signal, sys\nfrom pytracer.dumper.__main__ import main\n"
        "from pytracer.dumper.sources import Sources\n"
        "def read(self, file):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Sources.read = read\nsys.exit(main(sys.argv[1]))\n"
    )
    dumper = Dumper(ring, script=script)
    producer = Producer(ring)
    for number, name in enumerate(("app.py", "other.py"), 1):
        file = os.fsencode(tmp_path / name)
        producer.define(Definition(code=Code(number=number, file=file, mine=True)))
    dumper.process.wait(30)
    dumper.kill()
    dumper = Dumper(ring)
    producer.exit()
    assert dumper.wait() == 0
    assert {text for _, text, _ in sources(ring.database)} == {"pass", "other"}


def test_they_come_along_if_the_file_is_taken_away(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text("pass")
    ring = TestRing(tmp_path, **LINES)
    dumper = Dumper(ring)
    producer = Producer(ring)
    producer.define(Definition(code=Code(number=1, file=os.fsencode(script), mine=True)))
    producer.calls(5)
    wait_for(lambda: rows(ring.database, "SELECT count(*) FROM source_file") == [(1,)], "the source")
    script.unlink()
    ring.database.rename(tmp_path / "elsewhere.sqlite")
    producer.calls(5)
    producer.exit()
    assert dumper.wait() == 0
    for database in (ring.database, tmp_path / "elsewhere.sqlite"):
        assert [text for _, text, _ in sources(database)] == ["pass"]


def test_a_table_of_that_name_with_other_columns_is_refused(tmp_path: Path) -> None:
    script = write(tmp_path, "script.py", "pass\n")
    assert run([*PYTRACE, "-q", str(script)], tmp_path).returncode == 0
    connection = apsw.Connection(str(tmp_path / "traces.sqlite"))
    connection.execute("ALTER TABLE source_file RENAME COLUMN data TO other")
    connection.close()
    done = run([*PYTRACE, "-q", str(script)], tmp_path)
    assert done.returncode == 2
    assert "is damaged" in done.stderr


def test_the_tokenizer_is_imported_only_if_it_is_needed() -> None:
    code = "import sys, pytracer.dumper.pump; print('tokenize' in sys.modules)"
    assert run([sys.executable, "-I", "-c", code], Path("/")).stdout == "False\n"
