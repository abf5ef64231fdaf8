"""Whatever stands in a damaged database: no crash, no endless query, and the other run as it was.

Each damage, and each question after it, in a process of its own, under the sanitizers, too (damaging.py).
"""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import damaging
from handmade import Handmade, event

SOURCE = Path(__file__).parents[2]
STEP = 150  # damages a process


def write(path: Path) -> None:
    with Handmade(path) as database:
        for _ in range(2):
            run = database.run()
            database.code(run, 1, "pay", ["user", "amount"])
            database.code(run, 2, "walk", ["a"])
            database.type(run, 1, "app.Order")
            records = [
                event("call", 1, "bob", 5),
                event("call", 2, [1, "bob", None]),
                event("yield", 2, "x", time=3),
                event("resume", 2, time=1),
                event("log", 1, "paid", "bob", names=["user"], line=4),
                event("raise", 2, ValueError("bad"), line=9),
                event("exception", 2, ValueError("bad"), elapsed=7, time=2),
                event("return", 1, "bobby", elapsed=9, time=1),
                event("lost", 3),
            ]
            for sequence in range(3):
                database.segment(run, records * 3, sequence=sequence, start=100 * sequence)


@pytest.fixture(name="original", scope="module")
def original_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "traces.sqlite"
    write(path)
    return path


@pytest.fixture(name="sanitized", scope="module")
def sanitized_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension under the address and the undefined behaviour sanitizer."""
    made = tmp_path_factory.mktemp("sanitized") / "sqlite_trace.so"
    (names,) = [
        ast.literal_eval(node.value)
        for node in ast.parse((SOURCE / "setup.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "QUERY"
    ]
    flags = ["-std=gnu11", "-g", "-O1", "-fPIC", "-shared", "-pthread", "-fno-omit-frame-pointer"]
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [SOURCE / "csrc" / f"{name}.c" for name in names]
    subprocess.run(["gcc", *flags, *sanitize, *sources, "-ldl", "-o", made], check=True)
    return made


def run(extension: Path, original: Path, folder: Path, first: int, **changes: str) -> None:
    done = subprocess.run(
        [sys.executable, damaging.__file__, extension, original, folder, str(first), str(first + STEP)],
        env=os.environ | changes,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.parametrize("first", range(0, damaging.COUNT, STEP))
def test_damage(original: Path, tmp_path: Path, first: int) -> None:
    spec = find_spec("pytracer.sqlite_trace")
    assert spec is not None
    run(Path(str(spec.origin)), original, tmp_path, first)


@pytest.mark.parametrize("first", range(0, damaging.COUNT, STEP))
def test_damage_under_the_sanitizers(original: Path, sanitized: Path, tmp_path: Path, first: int) -> None:
    libraries = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, encoding="utf-8", check=True
    ).stdout.strip()
    options = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    run(sanitized, original, tmp_path, first, LD_PRELOAD=libraries, PYTHONMALLOC="malloc", **options)
