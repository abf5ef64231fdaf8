"""Recovery of recordings whose program and dumper were both cut off. Each `pytrace` command starts
a dumper that saves the rest in their rings. launch.py and __main__.py call it; it costs a look into
two folders."""

import os
import sys
import time

from . import _hook
from .messages import say, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_MEMORY = "/dev/shm"
MARK = b"pytrace"  # the first bytes of RING_MAGIC
WAIT_SECONDS = 5.0  # for a dumper to save the rest; a full ring takes one


def temporary_folder() -> str:
    """The folder of the tempfile module, without its trial file. Rings are made there if shared
    memory has no room."""
    for folder in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"):
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.path.abspath(folder)
    return os.getcwd()


def abandoned_rings() -> "Iterator[str]":
    """Rings of this user that nobody writes to or saves any more. Half-made rings, whose creation
    was cut off, are removed."""
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
                    pass  # somebody else handles it right now


def _is_abandoned(path: str, launching: bool) -> bool:
    """True: nobody writes to the ring any more. launching: a process has the pid of the ring's
    maker, so the recording may only be beginning. It is not, if a process has registered already:
    registered ones are told apart by more than the pid."""
    if _hook.is_ring(path):
        return _hook.is_abandoned(path, launching)
    if not launching and os.lstat(path).st_uid == os.getuid() and not _is_marked(path):
        os.unlink(path)
    return False


def _is_marked(path: str) -> bool:
    """True: it is a ring of another version of pytrace, and that version knows how to handle it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, len(MARK)) == MARK
    finally:
        os.close(descriptor)


def recover(wait: bool) -> list[str]:
    """Lets dumpers save everything that dead recordings left. wait: for that, but not for long.
    Returns the rings that are not all saved yet."""
    paths = list(abandoned_rings())
    for path in paths:
        say(f"an earlier recording was cut off; saving what is left of it ({path})")
        try:
            _hook.spawn_dumper(sys.executable, path)
        except OSError as error:
            say(f"cannot start the process that saves it: {why(error)}")
    end = time.monotonic() + WAIT_SECONDS
    while wait and any(map(os.path.exists, paths)) and time.monotonic() < end:
        time.sleep(0.005)
    return [path for path in paths if os.path.exists(path)]
