"""`pytrace kernel`: records kernel events of processes that are no Python, or of all, until Ctrl-C.

It makes a recording as the launcher does, and joins it as a process that runs no function: the
dumper does all the work. At its end it waits for the dumper as any recorded program does.
"""

import os
import select
import signal
import sys
from types import FrameType

from . import _hook
from .cli import KERNEL
from .config import settings
from .launch import check_limits, check_output, check_python, create_ring, without_tracefs
from .messages import say
from .options import UsageError, values
from .recovery import recover
from .start import READY, WAIT_SECONDS, remove

INTERRUPTED = 130


def main(words: list[str]) -> int:
    """Returns the exit status: 0 after the end of the processes, 130 after Ctrl-C."""
    try:
        given = values(KERNEL, words)
        pids = given["pid"]
        if not pids and not given["all"]:
            raise UsageError("which process? --pid PID, or --all")
        check_python()
        check_limits()
        given["events"] = check_events(given["events"], bool(pids) and not given["filter"])
        watched = [watch(pid) for pid in pids or []]
        names = ("output", "max_size", "max_traces", "buffer_size", "quiet")
        chosen = settings({name: given[name] for name in names})
        chosen |= {
            "kernel": given["events"],
            "kernel_pids": ",".join(map(str, pids)) if pids else "all",
            "kernel_filter": given["filter"],
        }
        check_output(chosen["output"])
        recover(wait=False)
        return record(create_ring(chosen, ["pytrace", "kernel", *words]), watched)
    except UsageError as error:
        say(str(error))
        return 2


def check_events(events: str, plain: bool) -> str:
    """The events that can be recorded; without tracefs only if it is plain: without a filter, and
    of some processes. Raises UsageError if there are none."""
    from .dumper import tracefs

    try:
        tracefs.events(tracefs.find(), events.split(","))
        return events
    except tracefs.UnknownEvent as problem:
        raise UsageError(f"kernel events cannot be recorded: {problem}") from None
    except tracefs.Unavailable as problem:
        if plain:
            left, message = without_tracefs(events, str(problem))
            if left:
                say(message)
                return left
        raise UsageError(f"kernel events cannot be recorded: {problem}") from None


def watch(pid: int) -> int:
    """A descriptor that tells of a process's end. Raises UsageError."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        raise UsageError(f"there is no process {pid} ({error.strerror})") from None


def record(ring: str, watched: list[int]) -> int:
    """Records until Ctrl-C, or until none of the processes is left. Returns the exit status."""
    waker, wake = os.pipe()

    def interrupt(number: int, frame: FrameType | None) -> None:
        os.write(wake, b"\0")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    _hook.join(ring, sys.executable)
    state, message = _hook.wait_ready(WAIT_SECONDS)
    if state != READY:
        remove(ring)
        say(message.removeprefix("pytrace: "))
        return 2
    poll = select.poll()
    for fd in (waker, *watched):
        poll.register(fd, select.POLLIN)
    left = len(watched)
    while True:
        for fd, _ in poll.poll():
            if fd == waker:
                return INTERRUPTED
            poll.unregister(fd)
            left -= 1
            if not left:
                return 0
