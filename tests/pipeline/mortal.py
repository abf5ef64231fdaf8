"""The installed package with something in it exchanged, for programs that find it by PYTHONPATH: a hook in
which the program can choose what happens to it (misfortunes.c), or another folder than /dev/shm for its
ring. Called by test_ends.py and test_faults_*.py."""

import fcntl
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
    """The variables of a program that is to use it, HOOK being the path of the library. It is built in
    `folder` by the first that asks for it."""
    folder.mkdir(exist_ok=True)
    library = folder / "pytracer" / f"_hook{sysconfig.get_config_var('EXT_SUFFIX')}"
    with open(folder / "lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if not library.exists():
            _build(folder, library)
    return {"PYTHONPATH": str(folder), "HOOK": str(library)}


def with_memory(folder: Path, memory: Path) -> dict[str, str]:
    """The variables of commands that make and look for rings in `memory`, and nowhere else: those of others
    that run at the same time do not see them. The package is made in `folder`."""
    source = _link(folder, "abandoned.py").joinpath("abandoned.py")
    text = (INSTALLED / "abandoned.py").read_text()
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


def _build(folder: Path, library: Path) -> None:
    _link(folder, "_hook.")
    names = re.search(r"^HOOK = \((.*)\)$", (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert names
    sources = [ROOT / "csrc" / f"{name}.c" for name in re.findall(r'"(\w+)"', names[1])]
    sources.append(Path(__file__).with_name("misfortunes.c"))
    flags = ["-std=gnu11", "-fPIC", "-fvisibility=hidden", "-pthread", "-DRING_TEST_POINTS", "-c"]
    headers = [f"-I{ROOT / 'csrc'}", f"-I{sysconfig.get_paths()['include']}"]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    # without optimization they are all compiled in a second, two at a time
    halves = [subprocess.Popen([*compiler, *flags, *headers, *sources[i::2]], cwd=folder) for i in range(2)]
    assert [half.wait() for half in halves] == [0, 0]
    objects = [source.with_suffix(".o").name for source in sources]
    subprocess.run([*compiler, "-shared", "-pthread", *objects, "-o", library], cwd=folder, check=True)
