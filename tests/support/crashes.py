"""What faulthandler writes when a test process crashes, in the report of the test it was in."""

import faulthandler
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

# A variable of the environment: where each test process has a file, named gw0, gw1, ...
_FOLDER = "CRASHES_OF_TEST_PROCESSES"

_RUNNERS = re.compile(r"/(pluggy|_pytest|xdist|execnet)/")  # frames of no interest


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """trylast: pytest's own plugin has it write to the standard error."""
    if hasattr(config, "workerinput"):
        file = Path(os.environ[_FOLDER], config.workerinput["workerid"])
        faulthandler.enable(file=file.open("w", encoding="utf-8"))
    else:
        os.environ[_FOLDER] = tempfile.mkdtemp(prefix="crashes-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(_FOLDER))


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any) -> None:
    file = Path(os.environ[_FOLDER], report.node.gateway.id)
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    report.longrepr = "\n".join([report.longrepr, *(line for line in lines if not _RUNNERS.search(line))])
