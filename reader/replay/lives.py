"""The life of a call: its events, from where it began to where it ended.

That of a function lies between the event that entered it and the next one that left it. A generator
or coroutine is left and entered again and again, and the recording does not tell which one of its
function goes on. As long as only one is alive, it is that one: then all events of the function are
its own. That of a coroutine is looked for within its task.
"""

from __future__ import annotations

from typing import NamedTuple

from ..query import Query
from .history import History, quoted
from .moment import Moment, moments

_CO_COROUTINE = 0x80
_CO_PAUSES = 0x20 | _CO_COROUTINE | 0x200  # of generators, coroutines, asynchronous generators


class Life(NamedTuple):
    """events: those of the call itself that are known to be its own. is_whole: they are all since
    it was called."""

    events: Query
    begin: Moment
    is_whole: bool


def life(history: History, entered: Moment) -> Life:
    """The life of the call that an event entered."""
    return _of_generator(history, entered) or _stretch(history, entered)


def _stretch(history: History, entered: Moment) -> Life:
    """From the event that entered the function to the one that left it."""
    events = Query("run = ? AND stream = ? AND depth = ?", (history.run, entered.stream, entered.depth))
    events = events.also("time >= ? AND id >= ?", entered.time, entered.id)
    left = history.finish(entered)
    if left is not None:
        events = events.also("time <= ?", left.time)
    return Life(events, entered, entered.kind == "call")


def _of_generator(history: History, entered: Moment) -> Life | None:
    """That of a generator that is alone; None: there is no knowing."""
    flags = _flags(history, entered)
    if not flags & _CO_PAUSES or not history.is_whole():
        return None
    is_it = f"(= file {quoted(entered.file)}) (= qualname {quoted(entered.func)})"
    if flags & _CO_COROUTINE and entered.task:
        is_it += f" (= task {quoted(entered.task)})"
    born, dead = f'(and {is_it} (= kind "call"))', f'(and {is_it} (in kind "return" "exception"))'
    place = entered.time, entered.id + 1  # with itself
    if history.count_before(born, *place) - history.count_before(dead, *place) != 1:
        return None
    edges = history.events(f"(or {born} {dead})")
    before = moments(history.database, edges.before(*place), True, 1)
    behind = moments(history.database, edges.behind(entered.time, entered.id), False, 1)
    begin, is_whole = before[0], before[0].kind == "call"
    # if another one has ended or begun there, that was alive before or is from then on
    events = history.events(f"(and {is_it})").behind(begin.time, begin.id - is_whole)
    if behind:
        end = behind[0]
        events = events.before(end.time, end.id + (end.kind != "call"))
    return Life(events, begin, is_whole)


def _flags(history: History, entered: Moment) -> int:
    """Those of the function's code."""
    sql = "SELECT flags FROM code WHERE run = ? AND file = ? AND func = ? AND line = ?"
    place = history.run, entered.file, entered.func, entered.line
    found = history.database.query("i", sql, place)
    return found[0][0] if found else 0
