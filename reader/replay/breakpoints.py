"""Where a walk stops: breakpoints as a person types them, watched variables, uncaught exceptions.

    12  12 total > 100  order.py:12  pay  Order.pay user == '%bob%'  app.order.pay%  12 if i == 3

A breakpoint without a condition is a predicate for `event MATCH`, so that the scan passes over
whole segments. For one with a condition the scan finds its place, and `follow` keeps the variables
of the functions that are open.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from .expressions import Expression, ExpressionError
from .expressions import parse as parse_expression
from .follow import Follower, Run, calls
from .history import History, quoted
from .moment import Moment
from .narrowing import Place, stretches
from .places import BreakpointError as BreakpointError
from .places import line_predicate as line_predicate
from .places import place_of

_STRETCH, _LONGEST_STRETCH = 64, 16384  # runs of a line that are followed at once, backwards
_NEAR = 1024  # the same, before a scan for where the condition can hold
_END = (1 << 63) - 1, (1 << 63) - 1  # behind all events

# they leave a thread where it ends as it should
_NORMAL = ("SystemExit", "StopIteration", "StopAsyncIteration", "GeneratorExit")
UNCAUGHT = (
    '(and (= kind "exception") (= depth 0) (not (any (in type '
    + " ".join(quoted(name) for name in _NORMAL)
    + "))))"
)


@dataclass(frozen=True)
class Breakpoint:
    """text: as it was typed. match: a predicate of its events, for `event MATCH`. place: its file
    and line, or its function as it was typed. hit_count: it stops from this hit of the run on,
    counted from 1; 0: at all of them."""

    text: str
    match: str
    condition: Expression | None = None
    hit_count: int = 0
    place: tuple[str, int] | str = ""
    enabled: bool = True


@dataclass(frozen=True)
class Watch:
    """A variable of the function `func` in `file`, at a depth of its thread: stops where a line has
    changed it."""

    name: str
    depth: int
    func: str
    file: str

    @property
    def match(self) -> str:
        where = f"(= depth {self.depth}) (= qualname {quoted(self.func)}) (= file {quoted(self.file)})"
        return f'(and (= kind "line") {where} (any (= name {quoted(self.name)})))'


@dataclass(frozen=True)
class Stop:
    """Where a walk stops, and why; None: an exception leaves a thread."""

    moment: Moment
    reason: Breakpoint | Watch | None


def parse(text: str, history: History, file: str, line: int | None) -> Breakpoint:
    """A breakpoint as a person types it. file, line: where one is; a blank text means this line.
    Raises BreakpointError, whose message names the way out; DatabaseError."""
    place, match, rest, start = place_of(text, history, file, line)
    condition = None
    if rest.split(maxsplit=1)[:1] == ["if"]:
        start += len(rest) - len(rest.split("if", 1)[1])
        rest = rest.split("if", 1)[1]
        if not rest.strip():
            raise BreakpointError(f"a condition is expected behind if: {text.strip()} total > 100", start)
    if rest.strip():
        try:
            condition = parse_expression(rest)
        except ExpressionError as error:
            raise BreakpointError(error.message, start + error.position) from None
    return Breakpoint(text.strip(), match, condition, place=place)


def resume(
    history: History,
    moment: Moment,
    breakpoints: Sequence[Breakpoint | Watch],
    backwards: bool = False,
    uncaught: bool = True,
    stream: int | None = None,
) -> Stop | None:
    """The next moment, of all threads or of one, at which a breakpoint stops: its place is met, and
    its condition holds over all variables of the function there. None: there is none; the recording
    ends. Raises DatabaseError, and what the database's watch raises."""
    found: Stop | None = None
    active = [each for each in breakpoints if isinstance(each, Watch) or each.enabled]
    plain = [each for each in active if isinstance(each, Watch) or not (each.condition or each.hit_count > 1)]
    if plain or uncaught:
        found = _first(history, moment, plain, backwards, uncaught, stream)
    for each in active:
        if isinstance(each, Breakpoint) and (each.condition or each.hit_count > 1):
            stop = _conditional(history, moment, each, backwards, stream, found)
            if stop is not None and (found is None or _is_before(stop, found.moment, backwards)):
                found = Stop(stop, each)
    return found


def _is_before(one: Moment, other: Moment, backwards: bool) -> bool:
    first, second = (one.time, one.id), (other.time, other.id)
    return first > second if backwards else first < second


def _first(
    history: History,
    moment: Moment,
    plain: Sequence[Breakpoint | Watch],
    backwards: bool,
    uncaught: bool,
    stream: int | None,
) -> Stop | None:
    predicates = [each.match for each in plain] + ([UNCAUGHT] if uncaught else [])
    for hit in _hits(history, moment, f"(or {' '.join(predicates)})", backwards, stream):
        stop = history.stop_of(hit)
        if _is_before(moment, stop, backwards):
            return Stop(stop, _reason(history, hit, plain))
    return None


def _hits(
    history: History, moment: Moment, predicate: str, backwards: bool, stream: int | None
) -> Iterator[Moment]:
    if stream is not None:
        predicate = f"(and (= stream {stream}) {predicate})"
    return history.hits(moment, predicate, backwards)


def _reason(history: History, hit: Moment, plain: Sequence[Breakpoint | Watch]) -> Breakpoint | Watch | None:
    """Which one an event meets."""
    for each in plain:
        if history.meets(hit.id, each.match):
            return each
    return None


def _conditional(
    history: History,
    moment: Moment,
    breakpoint: Breakpoint,
    backwards: bool,
    stream: int | None,
    bound: Stop | None,
) -> Moment | None:
    """The next hit at which a condition holds; at most as far as the bound."""
    least = _nth(history, breakpoint, stream) if breakpoint.hit_count > 1 else (0, 0)
    if least is None:
        return None
    for hit in _holding(history, moment, breakpoint, backwards, stream, bound.moment if bound else None):
        if (hit.time, hit.id) < least:
            if backwards:
                return None
            continue
        stop = history.stop_of(hit)
        if _is_before(moment, stop, backwards):
            return stop
    return None


def _holding(
    history: History,
    start: Moment,
    breakpoint: Breakpoint,
    backwards: bool,
    stream: int | None,
    bound: Moment | None,
) -> Iterator[Moment]:
    condition = breakpoint.condition
    if isinstance(breakpoint.place, tuple) and breakpoint.match == line_predicate(*breakpoint.place):
        follower = Follower(history, breakpoint.place, condition.names if condition else frozenset(), stream)
        yield from (_last_that if backwards else _first_that)(history, follower, start, breakpoint, bound)
        return
    names = condition.names if condition else frozenset()
    for run in calls(history, breakpoint.match, names, (start.time, start.id), backwards, stream):
        if bound is not None and _is_beyond(run, bound, backwards):
            return
        if condition is None or condition.holds(run.variables):
            yield from _moment_of(history, run.id)


def _first_that(
    history: History, follower: Follower, start: Moment, breakpoint: Breakpoint, bound: Moment | None
) -> Iterator[Moment]:
    until = (bound.time, bound.id) if bound else None
    done = (start.time, start.id)
    condition = breakpoint.condition
    if condition is None:
        parts = iter([((done[0], done[1] + 1), until or _END)])
    else:
        parts = stretches(history, follower.place, condition, done, until, follower.stream)
    for first, last in parts:
        if last <= done:
            continue
        begin = max((first[0], first[1] - 1), done)
        for run in follower.runs(begin, min(last, until or _END)):
            if condition is None or condition.holds(run.variables):
                yield from _moment_of(history, run.id)
        done = last


def _last_that(
    history: History, follower: Follower, start: Moment, breakpoint: Breakpoint, bound: Moment | None
) -> Iterator[Moment]:
    """The same backwards: the nearest runs, then those where the condition can hold. To find these
    takes a scan of all that is left."""
    until, begin = (start.time, start.id), (bound.time, bound.id) if bound else (0, 0)
    rest = yield from _back(history, follower, breakpoint, begin, until, _NEAR)
    if rest is None or breakpoint.condition is None:
        return
    parts = stretches(history, follower.place, breakpoint.condition, begin, rest, follower.stream)
    for first, last in reversed(_joined(parts)):
        end = min((last[0], last[1] + 1), rest)
        yield from _back(history, follower, breakpoint, first, end, None)


def _back(
    history: History,
    follower: Follower,
    breakpoint: Breakpoint,
    begin: tuple[int, int],
    end: tuple[int, int],
    most: int | None,
) -> Generator[Moment, None, tuple[int, int] | None]:
    """The runs before `end` at which a condition holds, the last one first: some runs at a
    time, each of which is followed forwards. most: it ends behind so many at once, and
    answers where; None: it came to `begin`."""
    count = _STRETCH
    while most is None or count <= most:
        first = history.place_before(breakpoint.match, follower.stream, *end, count, begin[0])
        if first is None:
            return None
        first = max(first, begin)
        holding = [
            run.id
            for run in follower.runs(first, (end[0], end[1] - 1), inclusive=True)
            if breakpoint.condition is None or breakpoint.condition.holds(run.variables)
        ]
        for id in reversed(holding):
            yield from _moment_of(history, id)
        if first <= begin:
            return None
        end, count = first, min(count * 4, _LONGEST_STRETCH)
    return end


def _joined(parts: Iterable[tuple[Place, Place]]) -> list[tuple[Place, Place]]:
    """Stretches that do not overlap, in order."""
    found: list[tuple[Place, Place]] = []
    for first, last in parts:
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def _moment_of(history: History, id: int) -> Iterator[Moment]:
    found = history.at(id)
    if found is not None:
        yield found


def _is_beyond(run: Run, bound: Moment, backwards: bool) -> bool:
    first, second = (run.time, run.id), (bound.time, bound.id)
    return first < second if backwards else first > second


def _nth(history: History, breakpoint: Breakpoint, stream: int | None) -> tuple[int, int] | None:
    """The place of the first hit that counts; None: there were fewer."""
    hits = _from_the_start(history, breakpoint, stream)
    return next(islice(hits, breakpoint.hit_count - 1, None), None)


def _from_the_start(
    history: History, breakpoint: Breakpoint, stream: int | None
) -> Iterator[tuple[int, int]]:
    condition = breakpoint.condition
    names = condition.names if condition else frozenset()
    if isinstance(breakpoint.place, tuple) and breakpoint.match == line_predicate(*breakpoint.place):
        runs = Follower(history, breakpoint.place, names, stream).runs((0, 0))
    else:
        runs = calls(history, breakpoint.match, names, (0, 0), False, stream)
    return ((run.time, run.id) for run in runs if condition is None or condition.holds(run.variables))
