"""Recordings to read, made once, and readers that are ended with their test."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import hostile as nasty
import journal as known
from reader import Reader, Reads
from recorded import EVERYTHING
from recording import record

ROOT = Path(__file__).parents[2]


@pytest.fixture
def reads(tmp_path: Path) -> Iterator[Reads]:
    """Opens readers; each has to have sent nothing but text and what draws it, and to have no
    complaint."""
    opened: list[Reader] = []

    def read(*arguments: object, **options: object) -> Reader:
        reader = Reader(arguments, tmp_path, **options)  # type: ignore[arg-type]
        opened.append(reader)
        return reader

    yield read
    strange = [reader.emulator.strange for reader in opened]
    errors = [reader.errors for reader in opened]
    for reader in opened:
        reader.close()
    assert strange == [[]] * len(opened)
    assert not any("Traceback" in error for error in errors), errors


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="session")
def journal(folder: Path) -> Path:
    """journal.py's: two runs, all of whose events are known."""
    source = folder / "shop.py"
    source.write_text(known.SOURCE)
    os.utime(source, (1_600_000_000, 1_600_000_000))  # older than the recording
    known.write(folder / "journal.sqlite", source)
    return folder / "journal.sqlite"


@pytest.fixture(scope="session")
def hostile(folder: Path) -> Path:
    """hostile.py's: names and values that would do something to a terminal."""
    nasty.write(folder / "hostile.sqlite")
    return folder / "hostile.sqlite"


@pytest.fixture(scope="session")
def everything(folder: Path) -> Path:
    """A real recording of threads, processes, recursion, generators, exceptions, long values."""
    (folder / "everything").mkdir()
    return record(folder / "everything", EVERYTHING, "--no-stdlib").database


@pytest.fixture(scope="session")
def shop(folder: Path) -> Path:
    """The recording that the documentation shows."""
    (folder / "shop").mkdir()
    source = (ROOT / "examples" / "shop.py").read_text()
    return record(folder / "shop", source).database


@pytest.fixture
def copy(journal: Path, tmp_path: Path) -> Path:
    """The journal, to be damaged and removed."""
    return Path(shutil.copy(journal, tmp_path / "traces.sqlite"))
