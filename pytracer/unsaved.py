"""The unsaved part of a recording whose ring is still there, and the reason. `info` and the doctor
call it; the launcher does not, because its imports take long."""

import os
from collections import Counter
from itertools import takewhile
from typing import Any, NamedTuple

from ._core import ffi, lib
from .recovery import SHARED_MEMORY, temporary_folder


class Unsaved(NamedTuple):
    """The part of a recording that is in its ring and not in the database yet."""

    ended: bool  # all processes have
    exit_status: int | None  # reported by the program; None: it has not ended
    chunks: int
    bytes: int
    events: int
    why: str  # why nothing can be saved; "": no reason is known


def unsaved(recording: str) -> Unsaved | None:
    """recording: the name of its ring. None: there is none any more, or it is another user's."""
    if os.sep in recording or not recording.startswith("pytrace-"):  # no ring's name
        return None
    for folder in (SHARED_MEMORY, temporary_folder()):
        path = os.path.join(folder, recording)
        if os.path.exists(path):
            return look(path)
    return None


def look(path: str) -> Unsaved | None:
    """path: of the ring. None: as for unsaved."""
    ring, lock = ffi.new("struct ring *"), ffi.new("int *")
    if lib.ring_attach(ring, os.fsencode(path), lib.RING_READER, lock):
        return None
    try:
        left, why = ffi.new("struct ring_unsaved *"), ffi.new("char[]", lib.RING_TROUBLE_SIZE)
        lib.ring_count_unsaved(ring, left)
        lib.ring_dumper_trouble(ring, why)
        ended = lib.ring_process_state(ring, 0) != lib.PROCESS_NONE
        status = None
        for number in range(lib.RING_PROCESSES):
            state = lib.ring_process_state(ring, number)
            if state == lib.PROCESS_NONE:
                break
            ended = ended and not _runs(ring, number, state)
            if lib.ring_process_pid(ring, number) == lib.ring_process_pid(ring, 0):  # after an exec
                said = lib.ring_process_exit_status(ring, number)
                told = state in (lib.PROCESS_EXITED, lib.PROCESS_LEAVING, lib.PROCESS_LEFT)
                status = said if told and said < lib.RING_EXIT_UNKNOWN else None
        text = ffi.string(why).decode("utf-8", "replace")
        return Unsaved(ended, status, left.chunks, left.bytes, left.events, text)
    finally:
        lib.ring_detach(ring)


def not_yet(path: str) -> str:
    """What to say of a ring that a dumper has tried to save for a while. path: of the ring."""
    left = look(path)
    if left is None or not left.why:
        return "it is not yet saved; that goes on in the background"
    return (
        f"it is not yet saved ({left.events:,} events: {left.why}); the next pytrace command tries again\n"
        f"  to give these events up: rm {path}"
    )


def states(path: str) -> str:
    """The states of a ring, for people who search for a fault: `processes: 2 RUNNING, 1 SAVED;
    chunks: 3 CLAIMED; dumper: READY`. "" if it cannot be opened."""
    ring, lock = ffi.new("struct ring *"), ffi.new("int *")
    if lib.ring_attach(ring, os.fsencode(path), lib.RING_READER, lock):
        return ""
    try:
        processes = (lib.ring_process_state(ring, number) for number in range(lib.RING_PROCESSES))
        registered = takewhile(lib.PROCESS_NONE.__ne__, processes)
        running = Counter(_name(lib.ring_process_state_name(state)) for state in registered)
        view = ffi.new("struct chunk_view *")
        used = (number for number in range(ring.chunk_count) if lib.ring_look(ring, number, view))
        chunks = Counter(_name(lib.ring_chunk_state_name(view.state)) for _ in used)
        dumper = _name(lib.ring_dumper_state_name(lib.ring_dumper_state(ring)))
        return f"processes: {_counted(running)}; chunks: {_counted(chunks)}; dumper: {dumper}"
    finally:
        lib.ring_detach(ring)


def _counted(names: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in names.items()) or "none"


def _name(name: Any) -> str:
    return bytes(ffi.string(name)).decode()


def _runs(ring: Any, number: int, state: int) -> bool:
    """True: the process runs. A process that has said how it ends, and waits to be saved, does
    not."""
    return state in (lib.PROCESS_STARTING, lib.PROCESS_RUNNING) and lib.ring_process_alive(ring, number)
