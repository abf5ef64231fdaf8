"""The scan's C test: what its threads make of many segments, under sanitizers."""

import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1] / "c"


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_scan(tmp_path: Path, sanitizer: str) -> None:
    program = tmp_path / "scan_merge"
    make = ["make", "-s", "-C", TESTS, f"BUILD={tmp_path}", f"SANITIZE={sanitizer}", program]
    for command in (make, [program]):
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout
