"""Folders that the test processes of one run share, each made by the first process that asks for
it."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

# shared(name, make): the folder of that name, after make(folder) has filled it once
Shared = Callable[[str, Callable[[Path], object]], Path]


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The fixture `shared`, with pytest's own factory of folders first."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"shared-{name}"
    made = folder.with_suffix(".made")
    maker = getattr(make, "__qualname__", "")
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if not made.exists():
            folder.mkdir()
            make(folder)
            made.write_text(maker)
        assert made.read_text() == maker, f"{name} is made by others, too"
    return folder
