"""`python -I -m pytracer.dumper RING`: saves one recording, and ends with it.

The traced program starts it, detached, and again where it has died. It talks through the ring alone:
ready, refused with a reason, finished with a summary.
"""

import errno
import os
import signal
import sys
import time
from contextlib import suppress

import apsw

from . import ring as abi
from .pump import Pump
from .ring import Ring
from .store import Refused, Run, Step, Store, no_step
from .summary import summary

TEXTS = {"recording", "output", "command", "directory", "python"}  # settings
NUMBERS = ("max_size", "max_traces", "pid")
TITLE_LENGTH = 120
ATTACH_SECONDS = 10.0  # for the ring to be finished: the launcher makes it while this process starts


def main(path: str) -> int:
    """Returns the exit status: 0, or 1 where nothing can be recorded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir("/")  # keeps no folder from being unmounted; all paths here are absolute
    try:
        ring = _attach(path)
    except OSError as error:
        return 0 if error.errno == errno.EBUSY else 1
    settings = ring.settings()
    if not _are_whole(settings):
        ring.say(abi.STATE_REFUSED, "pytrace: the buffer was written over; what is in it cannot be saved")
        os.unlink(path)
        return 1
    epoch_ns, epoch_units = ring.epoch()
    run = Run(
        recording=settings["recording"],
        command=settings["command"],
        directory=settings["directory"],
        python=settings["python"],
        clock_epoch_ns=epoch_ns,
        clock_epoch_units=epoch_units,
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
        # the program is on its way: its chunks stay in the ring until the database can be opened
    ring.say(abi.STATE_READY, "")

    def so_far(store: Store, goes_on: bool) -> str:
        return summary(store.totals(), settings["output"], settings["directory"], pump.notes, goes_on)

    pump = Pump(ring, store, open_store, int(settings["pid"]), so_far, step)
    pump.run(before_first_wait=lambda: _set_title(settings["command"]))
    message = _finish(pump, settings)
    # A program that sees itself saved takes this message for the last one. Whoever finds the
    # database without its log, finds the run finished.
    ring.say(abi.STATE_FINISHED, message)
    step("after finished")
    pump.say_saved()
    step("after saved")
    with suppress(FileNotFoundError):
        os.unlink(path)
    return 0


def _are_whole(settings: dict[str, str]) -> bool:
    """False: the program has written over them."""
    return settings.keys() >= TEXTS and all(settings.get(name, "").isdecimal() for name in NUMBERS)


def _finish(pump: Pump, settings: dict[str, str]) -> str:
    totals = None
    if pump.store is not None and pump.store.moved():
        pump.notes.append("the file was taken away")
        with suppress(apsw.Error):
            pump.store.leave(pump.ring.now_ns())
    elif pump.store is not None:
        try:
            totals = pump.store.finish(pump.ring.now_ns())
        except apsw.Error as error:
            pump.notes.append(str(error))
        pump.store.close()
    return summary(totals, settings["output"], settings["directory"], pump.notes)


def _attach(path: str) -> Ring:
    """Raises OSError: EBUSY where another dumper holds the ring; else it has not come, or is none."""
    end = time.monotonic() + ATTACH_SECONDS
    while True:
        try:
            return Ring(path)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EPROTO) or time.monotonic() > end:
                raise
            time.sleep(0.002)


def _set_title(command: str) -> None:
    from setproctitle import setproctitle  # takes 9 ms to import, for which a short program would wait

    if len(command) > TITLE_LENGTH:
        command = command[: TITLE_LENGTH - 3] + "..."
    setproctitle(f"pytrace: dumper for {command}")


def _step() -> Step:
    """For tests: PYTRACE_DUMPER_DIE_AT=NAME:N makes the dumper die where it comes to the step NAME
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
