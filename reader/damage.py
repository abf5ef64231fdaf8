"""Segments that could not be read, and the lines that report them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_NAMED_MAX = 10


class Damage(NamedTuple):
    """A segment that could not be read to its end."""

    segment: int
    run: int
    events: int  # the number that it should hold
    read: int  # the number that could be read
    reason: str


def report(damages: Sequence[Damage]) -> list[str]:
    """Lines that name the damaged segments, and count the missing events."""
    if not damages:
        return []
    missing = sum(max(damage.events - damage.read, 0) for damage in damages)
    segments = "1 segment is" if len(damages) == 1 else f"{len(damages)} segments are"
    return [
        *(
            f"segment {each.segment} of run {each.run} is damaged: {each.reason}"
            for each in damages[:_NAMED_MAX]
        ),
        f"{segments} damaged: {missing} events could not be read and are left out",
    ]
