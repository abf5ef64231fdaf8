"""Recordings to walk through, and replays that are ended with their test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dap_program import SOURCE
from recording import Recording, record
from replaying import PROGRAM, Replay, Replays
from shared import Shared


@pytest.fixture
def replays(tmp_path: Path) -> Iterator[Replays]:
    """Opens replays; each has to have sent nothing but text and what draws it, and to have no
    complaint."""
    opened: list[Replay] = []

    def replay(*arguments: object, **options: object) -> Replay:
        found = Replay(arguments, tmp_path, **options)
        opened.append(found)
        return found

    yield replay
    strange = [each.emulator.strange for each in opened]
    errors = [each.errors for each in opened]
    for each in opened:
        each.close()
    assert strange == [[]] * len(opened)
    assert not any("Traceback" in error for error in errors), errors


@pytest.fixture(scope="session")
def orders(shared: Shared) -> Path:
    """A recording of PROGRAM with its lines."""
    return (
        shared("orders", lambda folder: record(folder, PROGRAM, "--no-stdlib", "--lines")) / "traces.sqlite"
    )


@pytest.fixture(scope="session")
def recording(shared: Shared) -> Recording:
    """What the tests of the debug adapter walk through."""
    folder = shared("dap-program", lambda folder: record(folder, SOURCE, "--lines"))
    return Recording(0, "", "", folder / "traces.sqlite", folder / "script.py")
