"""Compiles inside/noop.c for the running Python."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "inside" / "noop.c"
FOLDER = HERE.parent / "build" / "benchmarks"


def noop() -> Path:
    """The extension, compiled unless it is there already; $CC is the compiler."""
    library = FOLDER / f"_noop{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not library.exists() or library.stat().st_mtime < SOURCE.stat().st_mtime:
        FOLDER.mkdir(parents=True, exist_ok=True)
        made = library.with_name(f"{library.name}.{os.getpid()}")
        folders = sorted({sysconfig.get_path("include"), sysconfig.get_path("platinclude")})
        command = [*shlex.split(os.environ.get("CC", "cc")), "-O2", "-fPIC", "-shared"]
        command += [f"-I{folder}" for folder in folders]
        subprocess.run([*command, str(SOURCE), "-o", str(made)], check=True)
        made.replace(library)
    return library
