"""Impossible recordings are refused with a message that says what to do, before anything is
made."""

import os
import resource
import socket
import sqlite3
import subprocess
import zipfile
from pathlib import Path

import pytest

from beside import PYTHON, PYTRACE, TIMEOUT, Outcome, assert_same, environment, run, wait_for, write

SCRIPT = "print('ran')\n"
HEADER = 100  # bytes of an SQLite database

# arguments, what the message has to say
REFUSED = {
    "no program": (["-q"], "no program to record"),
    "missing script": (["nowhere.py"], "'nowhere.py': No such file or directory"),
    "missing suffix": (["script"], "did you mean script.py?"),
    "module as a script": (["http.server"], "pytrace -m http.server"),
    "folder": (["folder"], "there is no __main__.py in this folder"),
    "word misspelt": (["prnt"], "'prnt': No such file or directory; did you mean print?"),
    "a recording": (["other.sqlite"], "it is a database; read it with: pytrace read other.sqlite"),
    "zip file": (["app.zip"], "there is no __main__.py in this zip file"),
    "below a file": (["script.py/x.py"], "Not a directory"),
    "no module": (["-m"], "-m: a module is expected after it"),
    "no code": (["-c"], "-c: code is expected after it"),
    "unknown option": (
        ["--max-sise", "3", "script.py"],
        "there is no option --max-sise; did you mean --max-size?",
    ),
    "unknown short option": (["-x", "script.py"], "there is no option -x"),
    "no value": (["--output"], "--output: PATH is expected after it"),
    "value of a switch": (["--quiet=1", "script.py"], "--quiet takes no value"),
    "word behind options": (["-q", "print"], "run as ./print"),
    "size without sense": (["--max-size", "big", "script.py"], "a size is expected, such as 64MiB"),
    "size of unknown unit": (["--max-size", "5QB", "script.py"], "a size is expected"),
    "negative size": (["--max-size=-5MB", "script.py"], "a size is expected"),
    "infinite size": (["--max-size", "inf", "script.py"], "a size is expected"),
    "small size": (["--max-size", "1000", "script.py"], "the least is 1 MB"),
    "large size": (["--max-size", "1000T", "script.py"], "more than a database can hold"),
    "small buffer": (["--buffer-size", "255KiB", "script.py"], "the least is 256 KiB"),
    "large buffer": (["--buffer-size", "900T", "script.py"], "more than half of this machine's memory"),
    "count without sense": (["--max-traces", "many", "script.py"], "a number is expected"),
    "negative count": (["--max-traces=-1", "script.py"], "a number is expected"),
    "large count": (["--max-traces", "9" * 30, "script.py"], "too large a number"),
    "value length": (["--value-length", "0", "script.py"], "from 1 to 6000"),
    "attributes": (["--attributes", "-1", "script.py"], "from 0 (none) to 100"),
    "many attributes": (["--attributes", "101", "script.py"], "from 0 (none) to 100"),
    "large value length": (["--value-length", "6001", "script.py"], "from 1 to 6000"),
    "modules": (["--modules", "folder:nowhere", "script.py"], "nowhere; folders and files are expected"),
    "exclude": (["--exclude", "json", "script.py"], "json; folders and files are expected"),
    "pattern": (["--redact", "(a", "script.py"], "a POSIX extended regular expression is expected"),
    "output in no folder": (["-o", "none/x.sqlite", "script.py"], "none; make it, or choose another file"),
    "output in a file": (["-o", "script.py/x.sqlite", "script.py"], "script.py is not a folder; choose"),
    "output below a file": (["-o", "script.py/a/x.sqlite", "script.py"], "cannot be used: Not a directory"),
    "output in a circle": (["-o", "circle/x.sqlite", "script.py"], "Too many levels of symbolic links"),
    "output too long": (["-o", "x" * 300 + "/x.sqlite", "script.py"], "cannot be used: File name too long"),
    "modules too long": (["--modules", "x" * 300, "script.py"], "cannot be used: File name too long"),
    "output is a folder": (["-o", "folder", "script.py"], "folder is a folder; name a file in it"),
    "output without a name": (["-o", "", "script.py"], "a file name is expected"),
    "output is a script": (["-o", "script.py", "script.py"], "is not a database, and stays as it is"),
    "output is another program's": (["-o", "other.sqlite", "script.py"], "is another program's database"),
    "output is newer": (["-o", "newer.sqlite", "script.py"], "was made by a newer pytrace"),
    "output is a socket": (["-o", "socket", "script.py"], "is not a regular file"),
    "output is a device": (["-o", "/dev/null", "script.py"], "is not a regular file"),
    "nothing to read": (
        ["read"],
        "there is no traces.sqlite. There is: newer.sqlite. Record one with: pytrace script.py",
    ),
    "odd bytes": (["--redact", "\udcff\udcfe(", "script.py"], "regular expression"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "script.py", SCRIPT)
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("other.py", "")
    for name, application, version in (("other", 1, 1), ("newer", 0x70747263, 99)):
        with sqlite3.connect(tmp_path / f"{name}.sqlite") as database:
            database.execute(f"PRAGMA application_id = {application}")
            database.execute(f"PRAGMA user_version = {version}")
            database.execute("CREATE TABLE theirs (a)")
        database.close()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def refused(folder: Path, arguments: list[str], **variables: str) -> str:
    """The message of a launch that must fail and leave everything as it is."""
    before = contents(folder)
    process = subprocess.Popen(
        [*PYTRACE, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
    )
    stdout, stderr = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, stdout) == (2, b"")
    assert not list(Path("/dev/shm").glob(f"pytrace-*-{process.pid}-*"))
    assert contents(folder) == before
    message = stderr.decode()
    assert message.startswith("pytrace: ")
    return message


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, folder: Path) -> None:
    arguments, expected = REFUSED[name]
    message = refused(folder, arguments)
    assert expected in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("PYTRACE_MAX_SIZE", "5", "PYTRACE_MAX_SIZE=5: the least is 1 MB"),
        ("PYTRACE_QUIET", "maybe", "PYTRACE_QUIET=maybe: 1 or 0 is expected"),
        ("TRACE_MODULES", "src", "TRACE_MODULES=src: there is no "),
        ("PYTRACE_OUTPUT", "folder", "is a folder"),
    ],
)
def test_environment(variable: str, value: str, expected: str, folder: Path) -> None:
    assert expected in refused(folder, ["script.py"], **{variable: value})


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("max-size = 5", "pyproject.toml: [tool.pytrace]: max-size = 5: the least is 1 MB"),
        ("max-sice = 5", "there is no option 'max-sice'; did you mean max-size?"),
        ("modules = ['folder', 'nowhere']", "nowhere; folders and files are expected"),
        ("max-size = ", "pyproject.toml: Invalid value"),
    ],
)
def test_file(section: str, expected: str, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.pytrace]\n{section}\n")
    assert expected in refused(folder, ["script.py"])


def test_unreadable_script(folder: Path) -> None:
    """Root may read everything: there python itself has to say what is wrong."""
    (folder / "script.py").chmod(0)
    done = run([*PYTRACE, "-q", "script.py"], folder)
    assert done.status == (0 if os.getuid() == 0 else 2)


@pytest.mark.parametrize("arguments", [["broken.py"], ["-c", "1 +"], ["-m", "no_such_module"]])
def test_what_python_refuses_is_not_recorded(arguments: list[str], folder: Path) -> None:
    write(folder, "broken.py", "def f(:\n")
    before = contents(folder)
    assert assert_same(folder, *arguments).status == 1
    assert contents(folder) == before


@pytest.mark.parametrize("options", ["", "--modules src"])
def test_removed_folder(folder: Path, options: str) -> None:
    done = run(["sh", "-c", f"mkdir gone; cd gone; rmdir ../gone; {PYTRACE[0]} {options} -c pass"], folder)
    assert done.status == 2
    assert b"the current folder has been removed; give the whole path" in done.stderr


def test_locked_database(folder: Path) -> None:
    """Only the dumper finds this out, when the program's process is on its way."""
    assert run([*PYTRACE, "-q", "script.py"], folder).status == 0
    database = sqlite3.connect(folder / "traces.sqlite", isolation_level=None)
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    database.execute("BEGIN EXCLUSIVE")
    done = run([*PYTRACE, "script.py"], folder)
    database.close()
    assert (done.status, done.stdout) == (2, b"")
    assert b"locked" in done.stderr


def test_damaged_database(folder: Path) -> None:
    assert run([*PYTRACE, "-q", "script.py"], folder).status == 0
    database = folder / "traces.sqlite"
    database.write_bytes(database.read_bytes()[:HEADER] + bytes(50))
    before = contents(folder)
    done = run([*PYTRACE, "script.py"], folder)
    assert (done.status, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"pytrace: ")
    assert contents(folder) == before


def test_dumper_that_does_not_start(folder: Path) -> None:
    source = """
        import pytracer.start
        from pytracer import _hook, trace
        pytracer.start.WAIT_SECONDS = 0.1
        spawn, _hook.spawn_dumper = _hook.spawn_dumper, lambda executable, ring: None
        try:
            with trace():
                print("ran")
        except RuntimeError as error:
            print(error)
        pytracer.start.WAIT_SECONDS = 60
        _hook.spawn_dumper = spawn
        with trace():
            print("recorded")
    """
    done = run([*PYTHON, write(folder, "never.py", source)], folder)
    assert done.stdout.startswith(b"pytrace: the process that saves the recording does not start")
    assert b"-m pytracer.dumper /dev/shm/pytrace-" in done.stdout
    assert done.stdout.endswith(b"\nrecorded\n")
    assert b"events of 1 process" in done.stderr


def limited(folder: Path, code: str, size: int | None = None, **variables: str) -> Outcome:
    """Runs the launcher with something changed in it; size: of the longest file it may write."""
    done = subprocess.run(
        [
            *PYTHON,
            "-c",
            f"{code}\nimport pytracer.__main__, sys; sys.exit(pytracer.__main__.main())",
            "script.py",
        ],
        cwd=folder,
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(**{"TMPDIR": str(folder)} | variables),
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))) if size else None,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_no_shared_memory(folder: Path) -> None:
    """The ring goes to the temporary folder, and the recording is complete."""
    done = limited(folder, "import pytracer.launch; pytracer.launch.SHARED_MEMORY = '/nowhere'")
    assert (done.status, done.stdout) == (0, b"ran\n")
    assert b"64 MiB cannot be made in /nowhere (No such file or directory); using" in done.stderr
    assert b"events of 1 process" in done.stderr
    wait_for(lambda: not list(folder.glob("pytrace-*")), "the end of the ring")


def test_no_room_anywhere(folder: Path) -> None:
    before = contents(folder)
    done = limited(folder, "", 1 << 20)
    assert (done.status, done.stdout) == (2, b"")
    assert b"the buffer of 64 MiB cannot be made in /dev/shm (File too large), nor in " in done.stderr
    assert b"ask for less with --buffer-size" in done.stderr
    assert contents(folder) == before


def test_a_temporary_folder_that_is_not_utf8(folder: Path) -> None:
    temporary = os.fsdecode(os.fsencode(folder) + b"/\xff")
    os.mkdir(temporary)
    done = limited(
        folder, "import pytracer.launch; pytracer.launch.SHARED_MEMORY = '/nowhere'", TMPDIR=temporary
    )
    assert (done.status, done.stdout) == (0, b"ran\n")
    assert b"\\udcff, slower\n" in done.stderr
    assert b"none lost" in done.stderr
    wait_for(lambda: not os.listdir(temporary), "the end of the ring")


@pytest.mark.parametrize(
    ("function", "number", "expected"),
    [
        ("create", "EACCES", b"TMPDIR names another folder for it"),
        ("create", "EDQUOT", b"ask for less with --buffer-size"),
        ("create", "ENFILE", b"cannot make the buffer: Too many open files in system\n  the whole machine"),
        ("spawn_dumper", "EAGAIN", b"Resource temporarily unavailable\n  let more processes run: ulimit -u"),
        ("spawn_dumper", "ENOMEM", b"the process that saves the recording: Cannot allocate memory"),
    ],
)
def test_why_a_recording_cannot_begin(function: str, number: str, expected: bytes, folder: Path) -> None:
    fails = f"""
import errno, os
from pytracer import _hook
def fails(*_):
    raise OSError(errno.{number}, os.strerror(errno.{number}))
_hook.spawn_dumper = lambda *_: None
_hook.{function} = fails
"""
    done = limited(folder, fails)
    assert (done.status, done.stdout) == (2, b"")
    assert expected in done.stderr


def test_all_files_are_open(folder: Path) -> None:
    """In a program that begins to record when no file can be opened any more."""
    source = """
        import os, resource, tempfile
        from pytracer import config, launch, trace
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        files = []
        try:
            while True:
                files.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            with trace():
                pass
        except ValueError as error:
            message = str(error)
        for file in files:
            os.close(file)
        print(message)
        with trace():
            print("recorded")
    """
    done = run([*PYTHON, write(folder, "full.py", source)], folder)
    expected = b"pytrace: cannot make the buffer: Too many open files\n  close some files, or allow more: "
    assert done.stdout == expected + b"ulimit -n 1024\nrecorded\n"
    assert b"none lost" in done.stderr


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("sys.implementation.name = 'pypy'", b"pypy is not supported; use CPython 3.11 to 3.15"),
        ("sys.version_info = (3, 10, 1)", b"is not supported; use CPython 3.11 to 3.15"),
        ("sys.version_info = (3, 16, 0)", b"is not supported; use CPython 3.11 to 3.15"),
        ("sys.abiflags = 't'", b"free-threaded builds of Python are not supported"),
        ("sys.executable = ''", b"does not know where its executable is"),
        ("import site; site.getsitepackages = lambda: ['/a', '/b']", b"(/a, /b)"),
    ],
)
def test_unsupported_python(change: str, expected: bytes, folder: Path) -> None:
    before = contents(folder)
    done = limited(folder, f"import sys; {change}; sys.stderr.flush()")
    assert done.status == 2
    assert expected in done.stderr
    assert contents(folder) == before
