"""Points in time as people type them to go there: those of the filter, and `-2s` before the end. Called by
actions.py."""

from __future__ import annotations

from ..filter_units import TIME_FORMS, Run, duration, moment

_LATEST = (1 << 63) - 1  # ns: no event is later
_FORMS = f"{TIME_FORMS}, or '-2s' before its end"


def when(text: str, run: Run, last: int) -> int:
    """The time in ns since 1970 that is meant in a run whose last event is at `last`; quotes around it do
    not matter. Raises ValueError, with the forms that there are."""
    stripped = text.strip()
    if len(stripped) >= 2 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        stripped = stripped[1:-1].strip()
    if stripped.startswith("-"):
        try:
            return max(last - duration(stripped[1:]), 0)
        except ValueError:
            raise ValueError(_FORMS) from None
    try:
        found = moment(stripped)
    except ValueError as error:
        raise ValueError(str(error).replace(TIME_FORMS, _FORMS)) from None
    return min(max(found if isinstance(found, int) else found(run), 0), _LATEST)
