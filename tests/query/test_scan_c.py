"""The query's C tests: what a scan's threads make of many segments, also under sanitizers; how zstd
is found."""

import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1] / "c"


def build_and_run(folder: Path, name: str, *arguments: object, **variables: str) -> None:
    program = folder / name
    settings = [f"{variable}={value}" for variable, value in variables.items()]
    make = ["make", "-s", "-C", TESTS, f"BUILD={folder}", *settings, program]
    for command in (make, [program, *arguments]):
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout


def test_scan(tmp_path: Path) -> None:
    build_and_run(tmp_path, "scan_merge", CFLAGS="-O0 -g1")  # compiling takes longer than running


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_scan_under_sanitizers(tmp_path: Path, sanitizer: str) -> None:
    build_and_run(tmp_path, "scan_merge", SANITIZE=sanitizer)


def test_no_module_is_opened_under_the_loaders_lock(tmp_path: Path) -> None:
    build_and_run(tmp_path, "zstd_find", tmp_path / "zstd_find.so")
