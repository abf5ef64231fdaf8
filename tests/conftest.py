"""Fixtures of tests that go the whole way of an event. And how hypothesis runs here, as a busy
machine may take its time for an example; that assertions of the helper modules, too, say what they
have compared; that Ctrl-C means what it means, even if the tests run in the background of a shell
script, which ignores it for all that they start; and that a crash of a test process is reported."""

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=30)
settings.load_profile("unhurried")

HELPERS = (path.stem for path in Path(__file__).parent.glob("*/*.py"))
pytest.register_assert_rewrite(*(name for name in HELPERS if name != "conftest"))

import mortal  # noqa: E402
import small_disk  # noqa: E402
from crashes import pytest_configure, pytest_handlecrashitem, pytest_unconfigure  # noqa: E402, F401
from recording import Record, record  # noqa: E402
from shared import Shared, shared  # noqa: E402

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(name="record")
def record_fixture(tmp_path: Path) -> Record:
    """record(source, *options, ...) in a folder of the test's own; see recording.record."""
    return partial(record, tmp_path)


@pytest.fixture(scope="session", name="shared")
def shared_fixture(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """shared(name, make): a folder that test processes share; see shared.py."""
    return partial(shared, tmp_path_factory)


@pytest.fixture(scope="session", name="mortal")
def mortal_fixture(shared: Shared) -> dict[str, str]:
    """The environment of a program that can choose where in the hook to die; see mortal.py."""
    return mortal.environment(shared("mortal", mortal.build))


@pytest.fixture(name="small_disk")
def small_disk_fixture(tmp_path: Path) -> Iterator[small_disk.SmallDisk]:
    """A file system of 8 MB in the test's folder."""
    with small_disk.small_disk(tmp_path / "disk") as disk:
        yield disk
