"""Recordings that were cut off, the program and its dumper both: every `pytrace` command has what is left
of them in the ring saved. Called by launch.py and __main__.py; costs a look into two folders."""

import os
import sys
import time

from . import _hook
from .config import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_MEMORY = "/dev/shm"
MARK = b"pytrace"  # the first bytes of RING_MAGIC
WAIT_SECONDS = 5.0  # for a dumper to save what is left; a full ring takes one


def temporary_folder() -> str:
    """As the tempfile module chooses it, but for its trial file. Rings are made there where there is no
    room in shared memory."""
    for folder in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"):
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.path.abspath(folder)
    return os.getcwd()


def abandoned_rings() -> "Iterator[str]":
    """Rings of this user that nobody writes to or saves any more. What is not even a ring (its
    creation was cut off) is removed."""
    start = f"pytrace-{os.getuid()}-"
    for folder in (SHARED_MEMORY, temporary_folder()):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            pid = name.removeprefix(start).partition("-")[0]
            if name.startswith(start) and pid.isdecimal():
                path = os.path.join(folder, name)
                try:
                    if _is_abandoned(path, os.path.exists(f"/proc/{pid}")):
                        yield path
                except OSError:
                    pass  # somebody else deals with it right now


def _is_abandoned(path: str, launching: bool) -> bool:
    """launching: there is a process with the pid of the one that made it. So it may only be beginning,
    unless a process has been in it already: those are told apart by more than the pid."""
    if _hook.is_ring(path):
        return _hook.is_abandoned(path, launching)
    if not launching and os.lstat(path).st_uid == os.getuid() and not _is_marked(path):
        os.unlink(path)
    return False


def _is_marked(path: str) -> bool:
    """It is a ring, of another version of pytrace: that one knows what to do with it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, len(MARK)) == MARK
    finally:
        os.close(descriptor)


def save_abandoned(wait: bool) -> None:
    """Has everything saved that dead recordings left behind. wait: until it is, but not for long."""
    paths = list(abandoned_rings())
    for path in paths:
        say(f"an earlier recording was cut off; saving what is left of it ({path})")
        try:
            _hook.spawn_dumper(sys.executable, path)
        except OSError as error:
            say(f"cannot start the process that saves it: {error.strerror}")
    end = time.monotonic() + WAIT_SECONDS
    while wait and any(map(os.path.exists, paths)):
        if time.monotonic() > end:
            say("it is not yet saved; that goes on in the background")
            return
        time.sleep(0.005)
