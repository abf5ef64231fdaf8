"""Starts processes, and accounts for what they leave behind: a dumper outlives its program."""

import ctypes
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


class Failed(Exception):
    """A measurement could not be made; the text says what was run and what it printed."""


class TookTooLong(Failed):
    """A measurement came to its limit."""


def prepare() -> None:
    """Once, at the start: two processors for everything, and orphans become our children.

    A dumper detaches itself from its program; as its reaper we learn what it used.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def environment(**more: str) -> dict[str, str]:
    """The environment without what would change how pytrace records, and with `more`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTRACE_") and name != "TRACE_MODULES"
    }
    return {**kept, **more}


def reap() -> float:
    """Waits until nothing that was started is left; seconds of processor time of what was
    reaped."""
    used = 0.0
    with suppress(ChildProcessError):
        while True:
            _, _, usage = os.wait4(-1, 0)
            used += usage.ru_utime + usage.ru_stime
    return used


def run(command: Sequence[str], folder: Path, env: dict[str, str] | None = None) -> float:
    """Runs a command in `folder` and waits for it and for all that it leaves behind.

    Returns the seconds of processor time of what it left behind: its dumper. Raises Failed.
    """
    printed = folder / "printed"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment() if env is None else env, stdout=output, stderr=output
        )
    status = process.wait()
    used = reap()
    if status:
        text = f"{shlex.join(command)}\nended with {status}:\n{printed.read_text(errors='replace')}"
        raise TookTooLong(text) if status == -signal.SIGALRM else Failed(text)
    return used
