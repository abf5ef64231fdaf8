"""The ring's C tests, with and without sanitizers, and the Spin model of its protocol."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from shared import Shared

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "c"

PROGRAMS = (
    "definitions", "summary_usual", "ring_files", "ring_known", "ring_process", "ring_stream", "ring_threads",
    "ring_death",
)  # fmt: skip
RUNS = [
    *(("", program) for program in PROGRAMS),
    *(pytest.param("address,undefined", program, marks=pytest.mark.slow) for program in PROGRAMS),
    pytest.param("thread", "ring_threads", marks=pytest.mark.slow),
]
# Compiling takes longer than running.
FLAGS = {"": ["CFLAGS=-O0 -g1"]}

# Changes that would break the protocol of ring.pml.
MUTATIONS = re.findall(r"^ \*   -D(\w+) ", (ROOT / "csrc" / "ring" / "ring.pml").read_text(), re.MULTILINE)


def run(*command: str | Path, **environment: str) -> str:
    """Runs to the end, and returns what it says; fails with that if the status is not 0."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize(("sanitizer", "program"), RUNS)
def test_program(shared: Shared, tmp_path: Path, sanitizer: str, program: str) -> None:
    def build(folder: Path) -> None:
        run(
            "make",
            "-s",
            "-j2",
            "-C",
            TESTS,
            f"BUILD={folder}",
            f"SANITIZE={sanitizer}",
            *FLAGS.get(sanitizer, ()),
        )

    run(shared(f"ring-{sanitizer}", build) / program, RING_FOLDER=str(tmp_path))


needs_spin = pytest.mark.skipif(shutil.which("spin") is None, reason="spin is not installed")


def check_model(folder: Path, defines: str, optimize: str) -> tuple[int, str]:
    """Spin's count of errors, and all that it says, for ring.pml with these definitions."""
    said = run(
        "make", "-s", "-C", TESTS, "model", f"BUILD={folder}", f"MODEL={defines}", f"MODEL_CFLAGS={optimize}"
    )
    errors = re.search(r"errors: (\d+)", said)
    assert errors, said
    assert "Search not completed" not in said or errors[1] != "0", said
    return int(errors[1]), said


@needs_spin
@pytest.mark.parametrize(
    ("records", "capacity", "optimize"),
    # of two records, -O2 would take longer to compile than it saves
    [(2, 1, "-Og"), pytest.param(3, 2, "-O2", marks=pytest.mark.slow)],
)
def test_model(tmp_path: Path, records: int, capacity: int, optimize: str) -> None:
    errors, said = check_model(tmp_path, f"-DRECORDS={records} -DCAPACITY={capacity}", optimize)
    assert errors == 0, said


@needs_spin
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_model_finds(tmp_path: Path, mutation: str) -> None:
    """The model is strong enough to see what the order of steps is for."""
    # -O0, as compiling takes longer than finding
    errors, said = check_model(tmp_path, f"-D{mutation}", "-O0")
    assert errors > 0, said


def test_mutations_are_known() -> None:
    """Each is one that the model has, and the other way round."""
    model = (ROOT / "csrc" / "ring" / "ring.pml").read_text()
    assert MUTATIONS
    assert set(MUTATIONS) == set(re.findall(r"^#ifn?def ([A-Z_]+_[A-Z_]+)$", model, re.MULTILINE))


def test_every_atomic_has_its_row() -> None:
    table = (ROOT / "docs" / "ring.md").read_text().partition("## Atomics")[2]
    layout = (ROOT / "csrc" / "ring" / "ring_abi.h").read_text()
    atomics = re.findall(r"^ +_Atomic \w+ (\w+);", layout, re.MULTILINE)
    assert len(atomics) == layout.count("_Atomic ")
    assert [name for name in atomics if not re.search(rf"`(\w+\.)?{name}`", table)] == []
