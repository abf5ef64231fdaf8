"""Fixtures of the tests that go the whole way of an event."""

import sys
from functools import partial
from pathlib import Path

import pytest

from recording import Record, record

# about sys.monitoring, which came with 3.12
collect_ignore = ["test_tool_ids.py"] if sys.version_info < (3, 12) else []


@pytest.fixture(name="record")
def record_fixture(tmp_path: Path) -> Record:
    """record(source, *options, ...) in a folder of the test's own; see recording.record."""
    return partial(record, tmp_path)
