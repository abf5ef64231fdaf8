"""Inputs that the fuzzers have found or begun with (tests/c/corpus), also under the sanitizers.

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


@pytest.mark.parametrize("fuzzer", FUZZERS)
@pytest.mark.parametrize("sanitizer", ["", pytest.param("address,undefined", marks=pytest.mark.slow)])
def test_what_was_found_stays_mended(shared: Shared, sanitizer: str, fuzzer: str) -> None:
    def build(folder: Path) -> None:
        options = [f"BUILD={folder}", f"SANITIZE={sanitizer}", "DRIVER=-DFUZZ_ALONE", "CFLAGS=-O0 -g1"]
        run("make", "-s", "-j2", "-C", TESTS, *options, "fuzzers")

    corpus = sorted((TESTS / "corpus" / fuzzer).iterdir())
    assert corpus
    run(shared(f"fuzz-{sanitizer}", build) / "fuzz" / f"fuzz_{fuzzer}", *corpus)


def test_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in (TESTS / "corpus").glob("*/*")) < CORPUS_SIZE
