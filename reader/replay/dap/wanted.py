"""A client's breakpoint: what it is a breakpoint at, and the conditions that come with it.

`stops` makes them of requests, and finds their hits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from .. import breakpoints as core
from ..expressions import Expression, parse
from ..follow import Run
from ..moment import Moment
from ..state import Item

_HIT = re.compile(r"\s*(>=|<=|==|=|>|<|%)?\s*([0-9]{1,9})\s*")
_COUNTS: dict[str, Callable[[int, int], bool]] = {
    "": lambda nth, wanted: nth == wanted,
    "=": lambda nth, wanted: nth == wanted,
    "==": lambda nth, wanted: nth == wanted,
    ">=": lambda nth, wanted: nth >= wanted,
    ">": lambda nth, wanted: nth > wanted,
    "<=": lambda nth, wanted: nth <= wanted,
    "<": lambda nth, wanted: nth < wanted,
    "%": lambda nth, wanted: wanted > 0 and nth % wanted == 0,
}
_EXPRESSION = re.compile(r"\{([^{}]*)\}")


@dataclass(eq=False)
class Wanted:
    """One of the client's breakpoints. accepts: what else a hit has to be; count: which hits it
    stops at; message: texts and expressions by turns, that are shown instead of a stop. counted:
    the places of the hits from the recording's start on; hits: those that are still to be
    counted."""

    id: int
    reason: str
    of: core.Breakpoint | core.Watch
    accepts: Callable[[Moment], bool] | None = None
    count: Callable[[int], bool] | None = None
    message: tuple[str | Expression, ...] = ()
    counted: list[tuple[int, int]] = field(default_factory=list)
    hits: Iterator[Run] | None = None

    @property
    def is_plain(self) -> bool:
        return self.accepts is None and self.count is None and not self.message

    @property
    def names(self) -> frozenset[str]:
        """The variables that its condition and its message are about."""
        condition = self.of.condition if isinstance(self.of, core.Breakpoint) else None
        some = [each for each in (condition, *self.message) if isinstance(each, Expression)]
        return frozenset().union(*(each.names for each in some))

    def filled(self, known: Mapping[str, Item]) -> str:
        """The message, with the values of its expressions."""
        return "".join(each if isinstance(each, str) else each.value(known).text for each in self.message)


def watch(id: str) -> core.Watch | None:
    """The variable of an id that `data_info` told."""
    try:
        name, depth, func, file = json.loads(id)
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(depth, int) or not all(isinstance(each, str) for each in (name, func, file)):
        return None
    return core.Watch(name, depth, func, file)


def counts(text: str) -> Callable[[int], bool] | None:
    """Whether a hit of this number is one to stop at. None: the condition is none."""
    hit = _HIT.fullmatch(text)
    if hit is None:
        return None
    is_met, wanted = _COUNTS[hit[1] or ""], int(hit[2])
    return lambda nth: is_met(nth, wanted)


def message_of(text: str) -> tuple[str | Expression, ...]:
    """The texts of a log message, and the expressions in its braces."""
    parts = _EXPRESSION.split(text) if text else []
    return tuple(parse(part) if index % 2 else part for index, part in enumerate(parts))
