"""The decoder under the sanitizers: arbitrary bytes give an error or a record, and nothing else.

tests/c/fuzz_event.c holds what is checked. clang's fuzzer runs it where clang is; with gcc it
runs by the driver that it brings. One of them is there, having built the extensions.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from records import (
    CONSTANTS,
    CONTAINERS,
    KINDS,
    ROOT,
    SOURCES,
    Google,
    Record,
    Val,
    container,
    copy_sources,
    val,
)

SECONDS = 5  # with each compiler
FLAGS = ["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all"]

COMPILERS = {
    "clang": ["-fsanitize=fuzzer,address,undefined"],
    "gcc": ["-fsanitize=address,undefined", "-DFUZZ_ALONE"],
}

SEEDS = (
    [Record(kind, 5, 300, line=12, depth=-1, values=(val(1),)) for kind in KINDS],
    [Record("call", 1, values=(val(["a", (1, 2.5), {"k": {1}}]), val("é\ud800'\"\n😀"), val(b"\0'")))],
    [Record("return", 1, elapsed=0, values=(val(3**100), Val("big", b"\1abcdefghij", length=500, type=3)))],
    [
        Record(
            "raise",
            1,
            values=(container("EXCEPTION", "x", type=4, length=3), Val("repr", b"<?\n>", length=9)),
        )
    ],
    [Record("log", 1, values=(val("text"), Val("address", 1 << 47, type=5)), names=(b"n\xc3\xb6",))],
    [Record("call", 1, values=tuple(Val("constant", n, type=n) for n in range(len(CONSTANTS))))],
    [Record("call", 1, values=tuple(Val("named", n, type=n, name=b"app.f") for n in range(5)))],
    [Record("call", 1, values=tuple(container(kind, 1, 2, type=7) for kind in CONTAINERS))],
    [Record("call", 1, values=tuple(val(n) for n in (0.1, 5e-324, -1e300, float("nan"), -(2**63))))],
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    google = Google(tmp_path)
    for number, seed in enumerate(SEEDS):
        (folder / str(number)).write_bytes(google.encode(*seed))
    return folder


@pytest.mark.parametrize("compiler", [name for name in COMPILERS if shutil.which(name)])
def test_arbitrary_bytes_do_no_harm(tmp_path: Path, corpus: Path, compiler: str) -> None:
    copy_sources(tmp_path)
    program = tmp_path / "fuzz_event"
    sources = [str(tmp_path / f"{name}.c") for name in SOURCES]
    sources += [str(ROOT / "csrc" / f"{name}.c") for name in ("arguments", "definitions")]
    build = [compiler, *FLAGS, *COMPILERS[compiler], f"-I{tmp_path}", "-o", str(program)]
    subprocess.run([*build, str(ROOT / "tests" / "c" / "fuzz_event.c"), *sources], check=True)
    if compiler == "clang":
        run = [f"-max_total_time={SECONDS}", "-max_len=4096", "-verbosity=0", str(corpus)]
    else:
        run = [str(SECONDS), *map(str, sorted(corpus.iterdir()))]
    done = subprocess.run([program, *run], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
