"""Libraries compiled with -finstrument-functions, and an independent count of their calls."""

import os
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from recording import environment, write

SUPPORT = Path(__file__).parent
INSTRUMENTED = [
    "-O2",
    "-g",
    "-finstrument-functions",
    "-finstrument-functions-exclude-file-list=/usr/include,/usr/lib",
]


def _compiler(cpp: bool) -> list[str]:
    return shlex.split(os.environ.get("CXX", "c++") if cpp else os.environ.get("CC", "cc"))


HAS_CPP = shutil.which(_compiler(cpp=True)[0]) is not None
NO_CPP = "there is no compiler of C++"


def compiled(source: Path | str, target: Path, *flags: str) -> Path:
    """The shared object `target`, made of a file, or of a text in C."""
    if isinstance(source, str):
        source = write(target.parent, f"{target.stem}.c", source)
    command = [*_compiler(source.suffix == ".cpp"), "-shared", "-fPIC", "-pthread", *flags]
    subprocess.run([*command, str(source), "-o", str(target), "-ldl"], check=True)
    return target


def make(folder: Path) -> None:
    """Fills a folder with libnative.so, libshop.so if C++ can be compiled, and counter.so."""
    compiled(SUPPORT / "native_library.c", folder / "libnative.so", *INSTRUMENTED)
    if HAS_CPP:
        compiled(SUPPORT / "native_shop.cpp", folder / "libshop.so", *INSTRUMENTED)
    compiled(SUPPORT / "native_counter.c", folder / "counter.so", "-O1")


def function_names(library: Path) -> dict[int, set[str]]:
    """The names of functions by their addresses, as nm says."""
    names = defaultdict(set)
    done = subprocess.run(["nm", "-C", str(library)], check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        address, kind, name = line.split(" ", 2) if line[0] != " " else ("", "", "")
        if kind in ("t", "T", "w", "W"):
            names[int(address, 16)].add(name)
    return names


class Told(NamedTuple):
    """The beginning or the end of a function: its possible names, and how many were open."""

    begins: bool
    names: frozenset[str]
    depth: int


def counted(script: Path, folder: Path, *args: str) -> list[list[Told]]:
    """What each thread tells of the libraries' functions when the script runs unrecorded."""
    counts = script.with_suffix(".counts")
    changes = {"LD_PRELOAD": str(folder / "counter.so"), "NATIVE_COUNTS": str(counts)}
    subprocess.run([sys.executable, str(script), *args], check=True, env=environment(**changes))
    known: dict[str, dict[int, set[str]]] = {}
    threads: dict[str, list[Told]] = defaultdict(list)
    depths: dict[str, int] = defaultdict(int)
    for line in counts.read_text().splitlines():
        thread, sign, address, file = line.split(" ", 3)
        names = known.setdefault(file, function_names(Path(file)))[int(address, 16)]
        depths[thread] -= sign == "-"
        threads[thread].append(Told(sign == "+", frozenset(names), depths[thread]))
        depths[thread] += sign == "+"
    return list(threads.values())
