"""Where a condition such as `i == 99999` can hold at all, found at the speed of a scan.

Its variable must have been told with that value before: by a line, or by a call. From there it can
hold until the variable changes, or its function ends. So only these stretches of the recording are
followed line by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product

from ..rows import text as decoded
from .expressions import Expression
from .history import CO_NESTED, History, quoted

_FRAMES_MOST = 100  # open functions that are looked at, at the start
_STRETCHES_MOST = 64  # if there are more, to follow all lines is quicker
_SUSPENDED = 0x20 | 0x80 | 0x200  # of code.flags: generators and coroutines
_END = (1 << 63) - 1, (1 << 63) - 1  # behind all events

Place = tuple[int, int]  # time and id


def stretches(
    history: History,
    place: tuple[str, int],
    condition: Expression,
    start: Place,
    until: Place | None,
    stream: int | None,
) -> Iterator[tuple[Place, Place]]:
    """From where (included) to where the condition of a breakpoint at a file's line can hold behind
    `start`, in the order of where they begin. Raises DatabaseError."""
    whole = ((start[0], start[1] + 1), until or _END)
    needed = _needed(condition)
    if needed is None or not _is_told(history, place, needed[0]):
        yield whole
        return
    name, value = needed
    of_file = f"(= file {quoted(place[0])})"
    news = f'(and {of_file} (in kind "line" "call") (any (and (= name {quoted(name)}) {value})))'
    open_ones = history.last_of_frames(news, stream, *start)
    if len(open_ones) > _FRAMES_MOST:
        yield whole
        return
    for at, in_stream, depth in open_ones:
        end = history.end_of_value(at, in_stream, depth, name) or _END
        if end > start:
            yield whole[0], end
    for count, (at, in_stream, depth) in enumerate(history.places(news, stream, start, until)):
        if count >= _STRETCHES_MOST:
            yield at, until or _END
            return
        yield at, history.end_of_value(at, in_stream, depth, name) or _END


def _needed(condition: Expression) -> tuple[str, str] | None:
    """A variable, and the predicate of the values that it must have; None: no such one is known."""
    for name, constant in condition.needed:
        texts = _texts(constant)
        if texts:
            return name, f"(in value {' '.join(map(quoted, texts))})"
        if isinstance(constant, str) and constant.isprintable():
            return name, f"(or (= either {quoted(constant)}) (= value {quoted(repr(constant))}))"
    return None


def _texts(constant: object) -> list[str]:
    """The texts of all values that equal a constant; empty: they are not known."""
    if constant is None:
        return ["None"]
    if not isinstance(constant, (int, float)) or constant != constant:
        return []
    try:
        number = float(constant)
    except OverflowError:
        return [str(constant)]
    if number != constant:  # no float, nor complex, is this number
        return [str(constant)]
    found = {repr(constant), repr(number)}
    if number.is_integer():
        found.add(str(int(number)))
    if number in (0, 1):
        found.add(str(number == 1))
    reals = (0.0, -0.0) if number == 0 else (number,)
    found.update(map(repr, reals))
    found.update(repr(complex(real, imaginary)) for real, imaginary in product(reals, (0.0, -0.0)))
    return sorted(found)


def _is_told(history: History, place: tuple[str, int], name: str) -> bool:
    """Whether each value of a variable is told by an event while its function is open: no event is
    missing, and no function that may have the line is suspended, or uses a variable of this name of
    a function around it."""
    if not history.is_whole():
        return False
    rows = history.database.query(
        "b",
        "SELECT CAST(variables AS BLOB) FROM code WHERE run = ? AND file = ? AND line <= ? AND flags & ?",
        (history.run, *place, CO_NESTED | _SUSPENDED),
    )
    return not any(name in json.loads(decoded(variables) or "[]") for (variables,) in rows)
