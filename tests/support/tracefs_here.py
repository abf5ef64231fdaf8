"""Whether this machine lets tests record kernel events."""

import os
from pathlib import Path

import pytest
from pytracer.dumper import tracefs


def why_not() -> str:
    """Empty: it does."""
    try:
        folder = tracefs.find()
        (Path(folder) / "events" / "sched" / "enable").read_text()
    except (tracefs.Unavailable, OSError) as error:
        return str(error)
    return ""


WHY_NOT = why_not()
needs_tracefs = pytest.mark.skipif(bool(WHY_NOT), reason=f"kernel events cannot be recorded here: {WHY_NOT}")


def instances() -> list[str]:
    """The instances of recordings."""
    return [name for name in os.listdir(f"{tracefs.find()}/instances") if name.startswith(tracefs.PREFIX)]


def left_behind() -> list[str]:
    """Those of programs that have ended, and of this process."""
    pids = {name: int(name.split("-")[2]) for name in instances()}
    return [name for name, pid in pids.items() if pid == os.getpid() or not os.path.exists(f"/proc/{pid}")]
