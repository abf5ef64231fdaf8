"""Fixtures of the tests that go the whole way of an event."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from recording import Recording, record


@pytest.fixture(name="record")
def record_fixture(tmp_path: Path) -> Callable[..., Recording]:
    """record(source, *options, ...) in a folder of the test's own; see recording.record."""
    return partial(record, tmp_path)
