"""Kernel events without tracefs: context switches and page faults in user space, of one's own
processes, by perf_event_open (csrc/kernel/perf.h). Any user may have them, if
`kernel.perf_event_paranoid` is 2 or less.
"""

import errno
import os
from collections.abc import Iterable

from pytracer._core import lib

from .kernel import Event, Kernel, tree
from .ring import Ring
from .tracefs import Unavailable

SWITCH, FAULT = "sched:sched_switch", "exceptions:page_fault_user"
GROUPS = {"sched": SWITCH, "faults": FAULT, SWITCH: SWITCH, FAULT: FAULT}
PAGE = b"""\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
# Events by enum perf_event: name, whether it is one of the faults, fields.
BEGIN, END = 4, 5
EVENTS = {
    1: (SWITCH, ("long prev_pid", "long prev_state")),
    2: (SWITCH, ("long next_pid",)),
    3: (FAULT, ("unsigned long address", "unsigned long ip")),
    BEGIN: ("task:task_newtask", ("long pid", "unsigned long clone_flags")),
    END: ("sched:sched_process_exit", ()),
}


def available(wanted: Iterable[str]) -> list[str]:
    """Those of the wanted events that there are."""
    return list(dict.fromkeys(GROUPS[word] for word in wanted if word in GROUPS))


def why_not() -> str:
    """Why this user cannot have them, and what to do; "": he can."""
    error = -lib.perf_allowed()
    if not error:
        return ""
    try:
        with open("/proc/sys/kernel/perf_event_paranoid") as file:
            paranoid = int(file.read())
    except (OSError, ValueError):
        return "this kernel, or the container, does not allow perf_event_open"
    if paranoid > 2:
        return "context switches and page faults take sysctl kernel.perf_event_paranoid=2"
    return f"perf_event_open: {os.strerror(error)}"


def format(number: int) -> bytes:
    """The description of an event, in the form of the kernel's."""
    name, fields = EVENTS[number]
    lines = [
        f"name: {name.partition(':')[2]}",
        f"ID: {number}",
        "format:",
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;",
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;",
    ]
    for place, field in enumerate(fields):
        signed = int(not field.startswith("unsigned"))
        lines.append(f"\tfield:{field};\toffset:{8 + 8 * place};\tsize:8;\tsigned:{signed};")
    return "\n".join([*lines, ""]).encode()


class PerfKernel(Kernel):
    """The kernel events of a recording that has no tracefs."""

    is_new = True

    def __init__(self, ring: Ring, wanted: Iterable[str], pids: Iterable[int]) -> None:
        """Raises Unavailable."""
        self._prepare(ring, all=False)
        self._instance = self
        shown = available(wanted)
        try:
            self._make(PAGE)
            for number, (name, fields) in EVENTS.items():
                text = format(number)
                lib.kernel_add_event(self._kernel, text, len(text), lib.KERNEL_EVENT, name in shown)
                system, _, event = name.partition(":")
                self._events[number] = Event(system, event, [field.split()[-1] for field in fields])
            lib.kernel_tells_of(self._kernel, BEGIN, b"pid", True)
            lib.kernel_tells_end(self._kernel, END)
            for processor in range(os.sysconf("SC_NPROCESSORS_CONF")):
                if lib.kernel_add_perf(self._kernel, processor):
                    raise MemoryError
            self._attach([tid for pid in pids for tid in tree(pid)], FAULT in shown)
        except BaseException:
            self.close()
            raise

    def _attach(self, threads: list[int], faults: bool) -> None:
        attached = 0
        for tid in threads:
            error = -lib.kernel_attach(self._kernel, tid, faults)
            if error == errno.ENOMEM:
                raise MemoryError
            attached += not error
            if error and error != errno.ESRCH:
                raise Unavailable(f"perf_event_open for thread {tid}: {os.strerror(error)}")
        if not attached:
            raise Unavailable("there is no such process")

    # ---- as a source --------------------------------------------------------------------------

    def read(self, name: str) -> bytes:
        raise FileNotFoundError(name)

    def format(self, event: str) -> bytes:
        raise FileNotFoundError(event)

    def write(self, name: str, text: str) -> None:
        """Switches it off."""
        lib.kernel_stop_perf(self._kernel)

    def remove(self) -> None:
        """Nothing is left: it went with its descriptors."""
