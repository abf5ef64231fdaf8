"""Joining a recording, in the process that is to be recorded.

`start` is called by pytrace.pth, from `site`, when the launcher has replaced itself by this Python;
trace() calls `record` in the middle of a program. What is imported here is imported in every
recorded program, so it is as good as nothing.
"""

import os
import sys

from . import _hook

VARIABLE = "PYTRACE_RING"
READY = 1  # enum dumper_state
WAIT_SECONDS = 60.0


def parse_settings(settings: bytes) -> dict[str, str]:
    """The ring's NAME=value texts."""
    pairs = (os.fsdecode(pair).partition("=") for pair in settings.split(b"\0") if pair)
    return {name: value for name, _, value in pairs}


def show_path(path: str) -> str:
    """The path as the hook takes it: what is no UTF-8 replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def directory() -> str | None:
    """The current folder; None where it has been removed."""
    try:
        return show_path(os.getcwd())
    except OSError:
        return None


def begin(settings: dict[str, str], gate: bool) -> None:
    """Begins to record, in a process that has joined. gate: not before `site` is done."""
    own = os.path.dirname(__file__)
    _hook.start(
        modules=[show_path(path) for path in settings["modules"].split(":") if path],
        exclude=[show_path(path) for path in settings["exclude"].split(":") if path],
        site_packages=settings["no_site_packages"] != "1",
        stdlib=settings["no_stdlib"] != "1",
        values=settings["no_values"] != "1",
        repr=settings["repr"] == "1",
        value_length=int(settings["value_length"]),
        redact=settings["redact"] or None,
        gate=gate,
        stdlib_path=show_path(os.path.dirname(os.__file__)),
        own_path=show_path(own),
        own_alias=show_path(os.path.join(os.path.dirname(own), "pytrace.py")),
        directory=directory(),
        command=show_path("\0".join(sys.orig_argv)),
        python=sys.version.split()[0],
    )


def remove(path: str) -> None:
    """Removes a file that may be gone already."""
    try:
        os.unlink(path)
    except OSError:
        return


def record(ring: str, gate: bool) -> tuple[dict[str, str], str]:
    """Joins the recording, waits for its dumper and begins to record.

    Returns the settings, and what is wrong ("": nothing; else nothing is recorded, and the ring is
    gone). Raises OSError where the ring cannot be joined.
    """
    settings = parse_settings(_hook.join(ring, sys.executable, False))
    state, message = _hook.wait_ready(WAIT_SECONDS)
    if state != READY:
        remove(ring)
        return settings, message
    begin(settings, gate)
    return settings, ""


def start() -> None:
    """Joins the recording that the launcher has prepared, or ends the process with a message."""
    ring = os.environ.pop(VARIABLE)
    try:
        _, message = record(ring, gate=True)
    except Exception as error:  # `site` would print it and go on, without a recording
        message = f"pytrace: cannot join the recording: {error}"
    if message:
        os.write(2, f"{message}\n".encode("utf-8", "replace"))
        os._exit(2)
