"""Where to go in time, as a person types it: `+1.5s`, `12:03:04.5`, `2026-11-22 12:03:04`, `1.5s`.

    +1.5s  -2m                       from where one is
    1.5s  1m30s  1.5                 since the start of the run; a number alone is in seconds
    12:03:04.5  12:03                on the day of the recording
    2026-11-22  2026/11/22 12:03     local time, as everywhere in the reader; an offset may follow

A large whole number is the id of an event (`--at TIME|ID`).
"""

from __future__ import annotations

import re

from ...messages import printable
from ..filter.tree import short
from ..filter.units import RunTimes, duration
from ..filter.units import moment as point

_FORMS = (
    "a time is +1.5s or -2m from here, 1.5s after the start of the run, 12:03:04.5, 2026-11-22 or "
    "2026-11-22 12:03:04"
)
_UNITS = "the units are ns us ms s m h, as in +1.5s or -2m30s"
_LENGTH_MAX = 100  # characters
_ID_LEAST = 1 << 18  # the first event of the first segment
_ID_MOST = (1 << 63) - 1
_SECOND = 1_000_000_000
_LAST = (1 << 63) - 1  # ns since 1970


class WhenError(Exception):
    """A text is no time; the message is for a person, and says what to type."""


def event_id(text: str) -> int | None:
    """The id of an event that a text is: a large whole number. None: it is none."""
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(_ID_MOST)):
        return None
    return int(digits) if _ID_LEAST <= int(digits) <= _ID_MOST else None


def parse(text: str, moment_time_ns: int, run: RunTimes) -> int:
    """A time in ns since 1970. moment_time_ns: where one is, for `+` and `-`. run: its start and
    day. Raises WhenError."""
    stripped = text.strip()
    if not stripped:
        raise WhenError(f"no time is given; {_FORMS}")
    if len(stripped) > _LENGTH_MAX:
        raise WhenError(f"{short(printable(stripped))} is too long for a time; {_FORMS}")
    found = _relative(stripped, moment_time_ns, run)
    if found is None:
        try:
            reading = point(stripped)
        except ValueError as error:
            raise WhenError(f"{printable(stripped)} is no time; {_why(error)}") from None
        found = reading if isinstance(reading, int) else _of_run(stripped, reading, run)
    if not 0 <= found <= _LAST:
        raise WhenError(f"{printable(stripped)} is too far away from the recording; {_FORMS}")
    return found


def _relative(text: str, here: int, run: RunTimes) -> int | None:
    """The time of a text that is a length of time. None: it is none."""
    sign, length = (text[0], text[1:].strip()) if text[0] in "+-" else ("", text)
    if not re.match(r"[0-9.]", length) and not sign:
        return None
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", length, re.ASCII):
        if event_id(length) is not None and not sign:
            raise WhenError(f"{text} is the id of an event, and no time; {_FORMS}")
        length = f"{length.strip('.')}s" if not length.startswith(".") else f"0{length}s"
    try:
        ns = duration(length)
    except ValueError:
        if sign or re.fullmatch(r"[0-9.]+\s*[^\W\d]+", length):
            raise WhenError(f"{printable(text)} is no length of time; {_UNITS}") from None
        return None
    return here + ns if sign == "+" else here - ns if sign else run.started + ns


def _of_run(text: str, reading: object, run: RunTimes) -> int:
    assert callable(reading)
    try:
        found: int = reading(run)
    except (ValueError, OverflowError, OSError):
        raise WhenError(f"{printable(text)} is no time of this recording; {_FORMS}") from None
    return found


def _why(error: ValueError) -> str:
    """The reason of a mistake, without the forms that filters have."""
    said, mark, _ = str(error).partition("; ")
    return f"{said}; {_FORMS}" if mark and said.startswith("there is no ") else _FORMS
