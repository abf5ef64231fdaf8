"""Time off the processor, made of the kernel's scheduler events: when a thread lost it, why, and
who woke it. The screen shows each such time as one line, and asks here what it tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .query import Query, stack
from .query import rows as rows_of
from .render import arguments, duration, names
from .rows import EVENT, KERNEL, LAYER, PYTHON, Placed, Row, text

if TYPE_CHECKING:
    from .database import Database

_SCHED = b"sched"
_SWITCH = b"sched_switch"
_WAKING = (b"sched_waking", b"sched_wakeup", b"sched_wakeup_new")
_ENDED = 0x30  # of prev_state: the thread has ended
_SLEEPS = 0xFF  # of prev_state: it waits; without any of these it could have gone on
_NEXT = 16  # events of a thread in which the end of its wait is looked for
_BEFORE = 64  # switches of a thread that are looked at for its last wait
_SWITCHES = 20_000  # of a part of a run, at most
_NEAR = 32  # events at the time of a wakeup
_FIRST = -(1 << 63)  # ns: no event is earlier
_FOREVER = float("inf")

# What a thread waits for in a system call: {} is the argument of this name.
_FOR = {
    "futex": ("", "a lock"),
    "futex_wait": ("", "a lock"),
    "futex_waitv": ("", "a lock"),
    "wait4": ("upid", "process {}"),
    "waitid": ("upid", "process {}"),
    "select": ("", "one of several fds"),
    "pselect6": ("", "one of several fds"),
    "poll": ("", "one of several fds"),
    "ppoll": ("", "one of several fds"),
    "epoll_wait": ("epfd", "one of the fds of epoll {}"),
    "epoll_pwait": ("epfd", "one of the fds of epoll {}"),
    "epoll_pwait2": ("epfd", "one of the fds of epoll {}"),
    "pause": ("", "a signal"),
    "rt_sigsuspend": ("", "a signal"),
    "rt_sigtimedwait": ("", "a signal"),
    "vfork": ("", "the child's program to begin"),
}
_SLEEPING = ("nanosleep", "clock_nanosleep")
_CHILD = ("process -1", "process 0")  # any of them


class Waker(NamedTuple):
    """What woke a thread: the event in the waker's thread, and the function that it was in.
    is_sure: it was in a system call; else the kernel had a reason of its own (a timer, a device),
    and the thread that happened to run had no part in it. None: not known."""

    row: Row
    function: str
    is_sure: bool | None

    @property
    def name(self) -> str:
        """Its thread and function: 4711 (worker, in app.put)."""
        more = [text(self.row[5]), f"in {self.function}" if self.function else ""]
        known = ", ".join(filter(None, more))
        return f"{self.row[4]} ({known})" if known else str(self.row[4])


class Wait(NamedTuple):
    """A time off the processor. until: ns; None: it has not ended, or was not read. why: in words;
    by: what woke the thread, or took its place, in words."""

    until: int | None = None
    took: int | None = None
    why: str = "off the processor"
    by: str = ""
    waker: Waker | None = None

    @property
    def line(self) -> str:
        took = "" if self.took is None else f"{duration(self.took)} "
        return f"·· {took}{self.why}{self.by}"


# ---- events -------------------------------------------------------------------------------


def role(row: Row) -> str:
    """What an event tells of its own thread: it went "out" of the processor, was "woken", went "in"
    again; "": something else."""
    if row[6] != "event" or row[7] != _SCHED or row[LAYER] != KERNEL:
        return ""
    fields, tid = _fields(row[13]), str(row[4])
    if row[8] == _SWITCH:
        return "out" if fields.get("prev_pid") == tid else "in" if fields.get("next_pid") == tid else ""
    return "woken" if row[8] in _WAKING and fields.get("pid") == tid else ""


def could_run(row: Row) -> bool:
    """The thread that is switched out here does not wait: the processor was taken from it."""
    state = _fields(row[13]).get("prev_state", "")
    return state.isdecimal() and not int(state) & _SLEEPS


@lru_cache(4096)
def _fields(args: str) -> dict[str, str]:
    return {each["name"]: each["value"].strip("'") for each in arguments(args)}


# ---- questions ----------------------------------------------------------------------------


def read(database: Database, outs: Iterable[Row]) -> dict[int, Wait]:
    """Times off the processor, by the ids of the events that begin them."""
    return {row[0]: wait(database, row) for row in outs}


def wait(database: Database, out: Row) -> Wait:
    """The time off the processor that begins with an event."""
    fields = _fields(out[13])
    state = int(fields["prev_state"]) if fields.get("prev_state", "").isdecimal() else 0
    if state & _ENDED:
        return Wait(out[2], None, "the thread has ended")
    until, woken = _end(database, out)
    took = None if until is None else until - out[2]
    if could_run(out):
        other = fields.get("next_pid", "0")
        comm = text(fields.get("next_comm", "").encode("utf-8", "surrogatepass"))
        by = f" by {other} ({comm})" if other != "0" else ""
        return Wait(until, took, "taken from the processor", by)
    why, in_call = _why(database, out)
    waker = None if woken is None else _waker(database, woken, in_call)
    by = f", woken by {waker.name}" if waker is not None and waker.is_sure is not False else ""
    return Wait(until, took, why, by, waker=waker)


def last(database: Database, row: Row, since: int | None) -> Row | None:
    """The event that begins the last wait of a thread up to an event, of those since a time (None:
    of all). None: it did not wait."""
    if role(row) == "out" and not could_run(row):
        return row
    thread = _thread(row)
    switches = thread.also("time BETWEEN ? AND ?", _FIRST if since is None else since, row[2]).also(
        "kind = 'event' AND func = 'sched_switch'"
    )
    sql = f"SELECT {EVENT} FROM event WHERE {switches.where} ORDER BY time DESC, id DESC"
    found = rows_of(database, sql, switches.parameters, _BEFORE)
    return next((each for each in found if role(each) == "out" and not could_run(each)), None)


def begin(database: Database, row: Row) -> Row | None:
    """The event that begins the time off the processor which an event of its thread ends."""
    thread = _thread(row).also("time <= ?", row[2]).also("kind = 'event' AND func = 'sched_switch'")
    sql = f"SELECT {EVENT} FROM event WHERE {thread.where} ORDER BY time DESC, id DESC"
    for each in rows_of(database, sql, thread.parameters, 3):
        if each[0] != row[0]:
            return each if role(each) == "out" else None
    return None


def off_processor(
    database: Database, run: int, start: int, end: int, least: int
) -> list[tuple[int, int, int, int]]:
    """Times off the processor of at least so many ns in a part of a run: process, thread, start and
    end; none if too many switches are in that part."""
    if not database.query("i", "SELECT 1 FROM code WHERE run = ? AND module = 'sched' LIMIT 1", (run,)):
        return []
    sql = (
        f"SELECT {EVENT} FROM event WHERE run = ? AND time BETWEEN ? AND ?"
        " AND kind = 'event' AND func = 'sched_switch' ORDER BY time, id"
    )
    switches = rows_of(database, sql, (run, start, end), _SWITCHES)
    found: list[tuple[int, int, int, int]] = []
    since: dict[tuple[int, int], int] = {}
    for row in switches if len(switches) < _SWITCHES else ():
        told, thread = role(row), (row[3], row[4])
        if told == "out":
            since[thread] = row[2]
        elif told == "in" and row[2] - (began := since.pop(thread, start)) >= least:
            found.append((*thread, began, row[2]))
    return found + [(*thread, began, end) for thread, began in since.items() if end - began >= least]


def _thread(row: Row) -> Query:
    return Query("run = ? AND pid = ? AND tid = ?", (row[1], row[3], row[4]))


def _end(database: Database, out: Row) -> tuple[int | None, Row | None]:
    """When a thread went on, and the event that woke it. The kernel sometimes leaves out the switch
    back from its idle task: then it went on when it was woken, or with its next event."""
    thread = _thread(out)
    sql = f"SELECT {EVENT} FROM event WHERE {thread.where} AND time >= ? ORDER BY time, id"
    place = out[2], out[0]
    after = database.page(sql, (*thread.parameters, out[2]), lambda row: row, _NEXT, _FOREVER, place).made
    woken: Row | None = None
    for row in after:
        told = role(row)
        if told == "in":
            return row[2], woken
        if told != "woken":
            return (woken or row)[2], woken
        woken = woken or row
    return None, woken


def _why(database: Database, out: Row) -> tuple[str, bool]:
    """Why a thread waits, by the function that it is in; and whether that is a system call."""
    calls = stack(database, out[0])
    if not calls:
        return "waiting", False
    call = calls[-1]
    func = text(call[8])
    if call[LAYER] != KERNEL:
        if call[LAYER] == PYTHON:
            return "waiting", False
        return f"waiting in {names(text(call[7]), func)[0]}", False
    if func in _SLEEPING:
        return "sleeping", True
    fields = _fields(call[13])
    argument, what = _FOR.get(func, ("fd", "fd {}"))
    if argument and argument not in fields:
        return f"waiting in {func}", True
    what = what.format(fields.get(argument, ""))
    return f"waiting for {'a child' if what in _CHILD else what}", True


def _waker(database: Database, woken: Row, knows_calls: bool) -> Waker | None:
    """The event of another thread that is the same wakeup. knows_calls: system calls were
    recorded."""
    sql = (
        f"SELECT {EVENT} FROM event WHERE run = ? AND time = ? AND kind = 'event' AND tid <> ?"
        " AND module = 'sched' ORDER BY time, id"
    )
    same = (
        row
        for row in rows_of(database, sql, (woken[1], woken[2], woken[4]), _NEAR)
        if (row[8], row[13], row[16]) == (woken[8], woken[13], woken[16])
    )
    row = next(same, None)
    if row is None:
        return None
    calls = stack(database, row[0], place="event.depth, event.mine IS NOT 1")
    python = [call for call in calls if call[LAYER] == PYTHON]
    own = [call for call in python if isinstance(call, Placed) and not call.hidden]
    shown = (own or python)[-1:]
    function = names(text(shown[0][7]), text(shown[0][8]))[0] if shown else ""
    is_sure = bool(calls) and calls[-1][LAYER] == KERNEL if knows_calls else None
    return Waker(row, function, is_sure)
