"""Inputs that the fuzzers have found or begun with (tests/c/corpus), under the sanitizers.

tests/c/fuzz_*.c hold what is checked: the decoder and the walkers of records, predicates, the ring
as the dumper sees it, the virtual tables over any database. `make fuzz` looks for further inputs;
what it finds goes into the corpus.
"""

import subprocess
from pathlib import Path

import pytest

from shared import Shared

TESTS = Path(__file__).parents[1] / "c"
FUZZERS = sorted(path.stem.removeprefix("fuzz_") for path in TESTS.glob("fuzz_*.c"))
CORPUS_SIZE = 300_000  # bytes that it may grow to


def run(*command: object) -> None:
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.fixture(name="build", scope="module")
def build_fixture(shared: Shared) -> Path:
    def build(folder: Path) -> None:
        options = [f"BUILD={folder}", "SANITIZE=address,undefined", "DRIVER=-DFUZZ_ALONE", "CFLAGS=-O0 -g1"]
        run("make", "-s", "-j2", "-C", TESTS, *options, "fuzzers")

    return shared("fuzz", build) / "fuzz"


@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_what_was_found_stays_mended(build: Path, fuzzer: str) -> None:
    corpus = sorted((TESTS / "corpus" / fuzzer).iterdir())
    assert corpus
    run(build / f"fuzz_{fuzzer}", *corpus)


def test_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in (TESTS / "corpus").glob("*/*")) < CORPUS_SIZE
