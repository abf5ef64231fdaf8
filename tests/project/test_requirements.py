"""pytrace stands beside the program's own libraries: it asks for few, and works beside any
protobuf."""

import re
import subprocess
import sys
import sysconfig
from importlib.metadata import requires
from pathlib import Path

import pytest

from recording import run, write

# protobuf as programs may have it: one that works for them alone, and none
PROTOBUF = {"of the program's": "made_for = 'the program'", "none": "raise ImportError('there is none')"}


def environment_with(folder: Path, protobuf: str) -> Path:
    """The Python of an environment that has this one's packages, but a `google.protobuf` of its own
    that says in the file `imported` by which program it is imported."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for entry in Path(sysconfig.get_path("platlib")).iterdir():
        if entry.name != "google":
            (packages / entry.name).symlink_to(entry)
    module = packages / "google" / "protobuf" / "__init__.py"
    module.parent.mkdir(parents=True)
    (module.parents[1] / "__init__.py").touch()
    note = f"import sys\nwith open({str(folder / 'imported')!r}, 'a') as f: print(sys.argv, file=f)\n"
    module.write_text(note + protobuf)
    return folder / "bin" / "python"


@pytest.mark.parametrize("protobuf", PROTOBUF)
def test_any_protobuf_will_do(tmp_path: Path, protobuf: str) -> None:
    python = environment_with(tmp_path / "environment", PROTOBUF[protobuf])
    pytrace = [str(python), "-m", "pytracer"]
    write(
        tmp_path,
        "program.py",
        """
        def first(n):
            return n

        try:
            import google.protobuf
            print(google.protobuf.made_for)
        except ImportError as error:
            print(error)
        first(42)
        """,
    )
    done = run([*pytrace, "-q", "program.py"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("the program\n", "there is none\n")
    shown = run([*pytrace, "print", "--format", "json", "--filter", "func == 'first'"], tmp_path)
    assert shown.returncode == 0
    assert [re.search(r'"value": ?"42"', line) is None for line in shown.stdout.splitlines()] == [False] * 2
    # by the program alone
    assert len((tmp_path / "environment" / "imported").read_text().splitlines()) == 1


def test_what_is_installed_with_pytrace() -> None:
    names = {re.split(r"[^\w.-]", text)[0].lower() for text in requires("pytracer") or ()}
    assert names == {
        "apsw", "backports.zstd", "cffi", "pyelftools", "regex", "setproctitle", "urwid", "wcwidth",
    }  # fmt: skip
