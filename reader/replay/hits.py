"""All times that a line ran, with its variables: a table of hits.

The variables are those before the line ran, as variable(ID) has them, kept up to date from one hit
to the next (follow). Hits come a page at a time, so memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from .expressions import Expression, Result
from .follow import Follower, Run
from .history import History
from .moment import Moment
from .places import line_predicate
from .state import Item

_AT_ONCE = 100  # moments that are asked for at once


@dataclass(frozen=True)
class Hit:
    """A time that a line ran. nth: which one of the run, from 1. variables: by name; attributes are
    their items, while items of containers stand in the text alone (variable(ID) has them all).
    results: of the expressions, in their order."""

    moment: Moment
    nth: int
    variables: Mapping[str, Item]
    results: tuple[Result, ...]


def hits(
    history: History,
    place: Moment | tuple[str, int],
    expressions: Sequence[Expression] = (),
    limit: int | None = None,
    after: Hit | None = None,
    before: Hit | None = None,
) -> Iterator[Hit]:
    """The hits of a line in the order of time, in all threads: the first ones, those behind the hit
    `after`, or the last ones before the hit `before`. place: a moment at the line, or the line's
    file and number. limit: the largest number of hits; None: all. Raises DatabaseError, and what
    the database's watch raises."""
    file, line = (place.file, place.line) if isinstance(place, Moment) else place
    follower = Follower(history, (file, line), None, None)
    if limit == 0:
        return
    if before is None:
        nth = after.nth if after else 0
        runs = follower.runs((after.moment.time, after.moment.id) if after else (0, 0))
    else:
        count = before.nth - 1 if limit is None else min(limit, before.nth - 1)
        end = before.moment.time, before.moment.id
        first = history.place_before(line_predicate(file, line), None, *end, count) if count else None
        if first is None:
            return
        nth = before.nth - 1 - count
        runs = follower.runs(first, (end[0], end[1] - 1), inclusive=True)
    kept = ((run, dict(run.variables)) for run in islice(runs, limit))
    while page := list(islice(kept, _AT_ONCE)):
        for moment, (_, variables) in zip(_moments(history, [run for run, _ in page]), page, strict=True):
            nth += 1
            yield Hit(moment, nth, variables, tuple(each.value(variables) for each in expressions))


def _moments(history: History, runs: Sequence[Run]) -> list[Moment]:
    found = history.among([run.id for run in runs])
    return [found[run.id] for run in runs]
