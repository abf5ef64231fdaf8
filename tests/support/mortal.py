"""The installed package with something in it exchanged, for programs that find it by PYTHONPATH: a
hook in which the program can choose what happens to it (misfortunes.c), and which counts its slow
paths (stats.h), or another folder than /dev/shm for its ring. Called by test_ends.py,
test_faults_*.py and test_stats.py."""

import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytracer

INSTALLED = Path(pytracer.__file__).parent
ROOT = Path(__file__).parents[2]


def environment(folder: Path) -> dict[str, str]:
    """The variables of a program that is to use what `build` made there. HOOK is the library's
    path."""
    return {"PYTHONPATH": str(folder), "HOOK": str(_library(folder))}


def _library(folder: Path) -> Path:
    return folder / "pytracer" / f"_hook{sysconfig.get_config_var('EXT_SUFFIX')}"


def with_memory(folder: Path, memory: Path) -> dict[str, str]:
    """The variables of commands that make and look for rings in `memory`, and nowhere else: those
    of others that run at the same time do not see them. The package is made in `folder`."""
    source = _link(folder, "recovery.py").joinpath("recovery.py")
    text = (INSTALLED / "recovery.py").read_text()
    changed = text.replace('SHARED_MEMORY = "/dev/shm"', f"SHARED_MEMORY = {str(memory)!r}")
    assert changed != text
    source.write_text(changed)
    return {"PYTHONPATH": str(folder), "TMPDIR": str(folder)}


def _link(folder: Path, without: str) -> Path:
    """The installed package as links, but for the file that begins so."""
    package = folder / "pytracer"
    package.mkdir(parents=True)
    for path in INSTALLED.iterdir():
        if not path.name.startswith((without, "__pycache__")):
            (package / path.name).symlink_to(path)
    return package


def build(folder: Path) -> None:
    """Makes the package with that hook in the folder."""
    _link(folder, "_hook.")
    folders = re.search(r"^HOOK = \((.*)\)$", (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert folders
    sources = [
        path
        for folder in re.findall(r'"(\w+)"', folders[1])
        for path in sorted((ROOT / "csrc" / folder).glob("*.c"))
    ]
    sources.append(Path(__file__).with_name("misfortunes.c"))
    flags = ["-c", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-pthread"]
    flags += ["-DRING_TEST_POINTS", "-DPYTRACE_STATS"]
    headers = [f"-I{ROOT / 'csrc'}", f"-I{sysconfig.get_paths()['include']}"]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    # without optimization they are all compiled in a second, two at a time
    halves = [subprocess.Popen([*compiler, *flags, *headers, *sources[i::2]], cwd=folder) for i in range(2)]
    assert [half.wait() for half in halves] == [0, 0]
    objects = [source.with_suffix(".o").name for source in sources]
    subprocess.run(
        [*compiler, "-shared", "-pthread", *objects, "-o", _library(folder)], cwd=folder, check=True
    )
