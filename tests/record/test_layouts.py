"""Types of C that are read by a layout of which no header tells: an object of a type that lies in
memory otherwise is shown as its type and address."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

from recording import Record, texts

SOURCE = Path(__file__).parents[1] / "support" / "otherwise.c"

LAYOUTS = ["decimal.Decimal", "collections.deque", "array.array", "datetime.timezone", "_thread.RLock"]

SHOW = """
import array, collections, datetime, decimal, sys, threading
sys.path.insert(0, {folder!r})
from otherwise import otherwise

def taken(value):
    pass

module, name = sys.argv[1].split(".")
there = sys.modules[module]
kind = otherwise(sys.argv[1], getattr(there, name).__basicsize__)
setattr(there, name, kind)
value = kind()
taken(value)
taken([value])
"""


@pytest.fixture(name="folder", scope="module")
def folder_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("otherwise")
    library = folder / f"otherwise{sysconfig.get_config_var('EXT_SUFFIX')}"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    headers = f"-I{sysconfig.get_paths()['include']}"
    subprocess.run([*compiler, "-shared", "-fPIC", headers, SOURCE, "-o", library], check=True)
    return folder


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_object_that_lies_otherwise_is_not_read(record: Record, folder: Path, name: str) -> None:
    recording = record(SHOW.format(folder=str(folder)), "--no-stdlib", args=(name,))
    shown = f"<{name} at 0x…>"
    assert texts(recording.of("call", func="taken")) == [shown, f"[{shown}]"]
