"""`python -E -P -m pytracer.dumper RING`: saves one recording, and ends with it.

The traced program starts it, detached, and starts it again if it has died. It talks through the
ring alone: ready, refused with a reason, finished with a summary.
"""

import errno
import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import apsw

from . import ring as abi
from .pump import Pump
from .ring import Ring
from .sources import Sources
from .store import Refused, RunStart, Step, Store, Totals, no_step
from .summary import summary
from .tracefs import BadFilter, Unavailable, UnknownEvent

if TYPE_CHECKING:
    from .kernel import Kernel

# Settings. FACTS describe the run, all others are options. TEXTS and NUMBERS must be there.
FACTS = {"recording", "command", "directory", "python", "pid", "kernel_pids", "kernel_filter"}
TEXTS = {"recording", "output", "command", "directory", "python"}
NUMBERS = ("max_size", "max_traces", "pid")
TITLE_LENGTH = 120
ATTACH_SECONDS = 10.0  # the launcher makes the ring while this process starts


def main(path: str) -> int:
    """Returns the exit status: 0, or 1 if nothing can be recorded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir("/")  # keeps no folder from being unmounted; all paths here are absolute
    try:
        ring = _attach(path)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return 0
        print(f"pytrace: the buffer {path!a} cannot be used: {error.strerror}", file=sys.stderr)
        return 1
    settings = ring.settings()
    if not _are_whole(settings):
        ring.say(abi.STATE_REFUSED, "pytrace: the buffer was written over; what is in it cannot be saved")
        os.unlink(path)
        return 1
    epoch_ns, epoch_units = ring.epoch()
    run = RunStart(
        recording=shown(settings["recording"]),
        command=shown(settings["command"]),
        directory=shown(settings["directory"]),
        python=shown(settings["python"]),
        clock_epoch_ns=epoch_ns,
        clock_epoch_units=epoch_units,
        features=ring.features(),
        options=json.dumps(  # file names in them are not escaped yet
            {
                name: shown(text.replace("\\x", "\\x5cx"))
                for name, text in settings.items()
                if name not in FACTS
            }
        ),
    )

    step = _step()

    def open_store() -> Store:
        return Store(settings["output"], run, int(settings["max_size"]), int(settings["max_traces"]), step)

    store = None
    try:
        store = open_store()
    except Refused as refusal:
        if ring.said() == abi.STATE_STARTING:
            ring.say(abi.STATE_REFUSED, f"pytrace: {refusal}")
            return 1
        # the program runs already: its chunks stay in the ring until the database can be opened
    kernel, notes = None, []
    try:
        kernel = _open_kernel(ring, settings)
        if kernel is not None and kernel.follows:
            notes.append("a dumper died, and with it some kernel events")
    except Unavailable as problem:
        if "kernel_pids" in settings and ring.said() == abi.STATE_STARTING:
            ring.say(abi.STATE_REFUSED, f"pytrace: {problem}")
            return 1
        notes.append(f"without kernel events: {problem}")
    ring.say(abi.STATE_READY, "")

    def line(totals: Totals | None, goes_on: bool = False) -> str:
        """What the program prints; "": nothing, with --quiet and if nothing went wrong."""
        if settings.get("quiet") == "1" and totals is not None and not (totals.refused or pump.notes):
            return ""
        return summary(totals, settings["output"], settings["directory"], pump.notes, goes_on)

    sources = Sources(settings, epoch_ns)
    pump = Pump(ring, store, open_store, int(settings["pid"]), line, sources, step, kernel)
    pump.notes += notes
    if not pump.run(before_first_wait=lambda: _set_title(settings["command"])):
        return 1  # the ring stays for another dumper, and says why nothing can be saved
    try:
        message = line(_finish(pump))
    except apsw.Error:
        return 1
    # A program that sees itself saved takes this message for the last one. By then the log is gone,
    # and the run is finished.
    ring.say(abi.STATE_FINISHED, message)
    step("after finished")
    pump.say_saved()
    step("after saved")
    with suppress(FileNotFoundError):
        os.unlink(path)
    return 0


def _open_kernel(ring: Ring, settings: dict[str, str]) -> "Kernel | None":
    """The kernel's events, if they are to be recorded. Raises Unavailable."""
    if not settings.get("kernel"):
        return None
    from .kernel import Kernel

    words = settings.get("kernel_pids", settings["pid"])  # of `pytrace kernel`
    wanted, filter = settings["kernel"].split(","), settings.get("kernel_filter", "")
    pids = [int(word) for word in words.split(",") if word != "all"]
    try:
        return Kernel(ring, wanted, pids, filter, all=words == "all")
    except (UnknownEvent, BadFilter):
        raise
    except Unavailable:
        from .perf import PerfKernel, available, why_not

        if filter or not pids or not available(wanted) or why_not():
            raise
        return PerfKernel(ring, wanted, pids)


def shown(text: str) -> str:
    """A setting as SQL can hold it: bytes that are not UTF-8 as in csrc/common/path_text.h."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _are_whole(settings: dict[str, str]) -> bool:
    """False: the program has written over the settings."""
    return settings.keys() >= TEXTS and all(settings.get(name, "").isdecimal() for name in NUMBERS)


def _finish(pump: Pump) -> Totals | None:
    """None: the database is not there any more. Raises apsw.Error."""
    if pump.store is None:
        return None
    if pump.store.moved():
        pump.notes.append("the file was taken away")
        with suppress(apsw.Error):
            pump.store.leave(pump.ring.now_ns())
        return None
    totals = pump.finish(pump.store)
    pump.store.close()
    return totals


def _attach(path: str) -> Ring:
    """Raises OSError: EBUSY if another dumper holds the ring; else no ring has come."""
    end = time.monotonic() + ATTACH_SECONDS
    while True:
        try:
            return Ring(path)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EPROTO) or time.monotonic() > end:
                raise
            time.sleep(0.002)


def _set_title(command: str) -> None:
    from setproctitle import setproctitle  # imported late: it takes 9 ms

    if len(command) > TITLE_LENGTH:
        command = command[: TITLE_LENGTH - 3] + "..."
    setproctitle(f"pytrace: dumper for {command}")


def _step() -> Step:
    """For tests: PYTRACE_DUMPER_DIE_AT=NAME:N makes the dumper die when it comes to the step NAME
    for the Nth time."""
    name, _, times = os.environ.get("PYTRACE_DUMPER_DIE_AT", "").partition(":")
    if not name:
        return no_step
    left = int(times or 1)

    def step(reached: str) -> None:
        nonlocal left
        left -= reached == name
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
