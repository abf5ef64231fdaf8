"""Points and lengths of time as filters write them, in ns.

    duration   850ns 300us 12.3µs 1.5ms 2s 2m05s 3h07m            as the reader shows them
    time       2012/08/15 01:23:45.678, 2012-08-15T01:23:45+02:00, 2012-08-15, 01:23, +1.5s

Dates without an offset are in the reader's time zone. The meaning of a time of day alone, and of a
time since the start, depends on the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from datetime import date

DURATION_FORMS = "a duration is a number with its unit (ns us µs ms s m h), such as '1.5ms', '2s' or '1m30s'"
TIME_FORMS = (
    "a time is '2012/08/15 01:23:45', '2012-08-15T01:23:45.678+02:00', a time of day such as '01:23:45', "
    "or '+1.5s' after the start of the run"
)

_SECOND = 1_000_000_000
_UNITS = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 1_000_000,
    "s": _SECOND, "m": 60 * _SECOND, "min": 60 * _SECOND, "h": 3600 * _SECOND,
}  # fmt: skip
# both are compiled at their first use
_PART = r"([0-9]{1,20})(?:\.([0-9]{1,20}))?\s*([^\W\d]+)\s*"
_TIME = (
    r"(?:(?P<year>\d{4})(?P<dash>[/-])(?P<month>\d{1,2})(?P=dash)(?P<day>\d{1,2}))?"
    r"(?:(?(year)(?:\s+|T))(?P<hour>\d{1,2}):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,20}))?)?"
    r"(?(year)\s*(?P<offset>Z|[+-]\d\d(?::?\d\d)?)?))?"
)


class RunTimes(Protocol):
    """A recording's times, which relative ones need: ns since 1970, None: not finished."""

    @property
    def id(self) -> int: ...
    @property
    def started(self) -> int: ...
    @property
    def finished(self) -> int | None: ...


OfRun: TypeAlias = Callable[[RunTimes], int]  # ns since 1970, which depend on the run


def duration(text: str) -> int:
    """A length of time in ns; parts of ns are dropped. Raises ValueError: no such form."""
    total, rest, smallest = 0, text.strip(), 0
    while rest or not smallest:
        part = re.match(_PART, rest)
        unit = _UNITS.get(part[3], 0) if part else 0
        if not part or not unit or (smallest and unit >= smallest):
            raise ValueError(DURATION_FORMS)
        rest, smallest, fraction = rest[part.end() :], unit, part[2] or ""
        if fraction and rest:  # 1.5m 3s
            raise ValueError(DURATION_FORMS)
        total += int(part[1] + fraction) * unit // 10 ** len(fraction)
    return total


def moment(text: str) -> int | OfRun:
    """A point in time in ns since 1970, or a function that finds it for a run. Raises ValueError:
    no such form, or no such time."""
    stripped = text.strip()
    if stripped.startswith("+"):
        try:
            return partial(_after, duration(stripped[1:]))
        except ValueError:
            raise ValueError(TIME_FORMS) from None
    match = re.fullmatch(_TIME, stripped, re.ASCII | re.IGNORECASE)
    if not match or not stripped:
        raise ValueError(TIME_FORMS)
    clock = [int(match[name] or 0) for name in ("hour", "minute", "second")]
    for number, limit, name in zip(clock, (24, 60, 60), ("hour", "minute", "second"), strict=True):
        if number >= limit:
            raise ValueError(f"there is no {name} {number}; {TIME_FORMS}")
    seconds = (clock[0] * 60 + clock[1]) * 60 + clock[2]
    ns = int((match["fraction"] or "").ljust(9, "0")[:9])
    if not match["year"]:
        return partial(_at_time_of_day, seconds, ns)

    from datetime import date

    try:
        day = date(*(int(match[name]) for name in ("year", "month", "day")))
        return _seconds_of(day, seconds, match["offset"]) * _SECOND + ns
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"there is no {text.strip()}; {TIME_FORMS}") from None


def _seconds_of(day: date, seconds: int, offset: str | None = None) -> int:
    """Seconds since 1970 of a time on a day; local time without an offset."""
    from datetime import UTC, datetime, time, timedelta, timezone

    clock = time(seconds // 3600, seconds // 60 % 60, seconds % 60)
    if not offset:
        return int(datetime.combine(day, clock).timestamp())
    if offset in "Zz":
        zone: timezone = UTC
    else:
        digits = offset[1:].replace(":", "").ljust(4, "0")
        ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        zone = timezone(-ahead if offset[0] == "-" else ahead)
    return int(datetime.combine(day, clock, zone).timestamp())


def _after(ns: int, run: RunTimes) -> int:
    return run.started + ns


def _at_time_of_day(seconds: int, ns: int, run: RunTimes) -> int:
    """The time on the day of the run's start; if the run crosses midnight, the first such time."""
    from datetime import date, timedelta
    from time import time_ns

    day = date.fromtimestamp(run.started // _SECOND)
    found = _seconds_of(day, seconds) * _SECOND + ns
    finished = time_ns() if run.finished is None else run.finished
    if found < run.started and date.fromtimestamp(finished // _SECOND) > day:
        found = _seconds_of(day + timedelta(days=1), seconds) * _SECOND + ns
    return found
