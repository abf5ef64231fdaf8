"""Fixtures of the tests that go the whole way of an event."""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import mortal
import small_disk
from recording import Record, record

# about sys.monitoring, which came with 3.12
collect_ignore = ["test_tool_ids.py"] if sys.version_info < (3, 12) else []


@pytest.fixture(name="record")
def record_fixture(tmp_path: Path) -> Record:
    """record(source, *options, ...) in a folder of the test's own; see recording.record."""
    return partial(record, tmp_path)


@pytest.fixture(scope="session", name="mortal")
def mortal_fixture(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a program that can choose where in the hook to die; see mortal.py. Test processes
    that run side by side share it."""
    folder = tmp_path_factory.getbasetemp()
    return mortal.environment((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "mortal")


@pytest.fixture(name="small_disk")
def small_disk_fixture(tmp_path: Path) -> Iterator[small_disk.SmallDisk]:
    """A file system of 8 MB in the test's folder."""
    with small_disk.small_disk(tmp_path / "disk") as disk:
        yield disk
