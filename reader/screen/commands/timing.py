"""Commands that show where the time goes: the hot list, slow calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...filter.units import duration as nanoseconds
from ...query import one
from ...rows import Row, level_of
from ...stretches import ALL, MINE, is_hidden
from .. import navigation
from ..effects import (
    Action,
    Column,
    CommandError,
    Entry,
    Listed,
    Result,
    RunTask,
    Say,
    ShowLanes,
    ShowList,
    Task,
)
from ..session import Session
from ..text import DOTS
from .command import Command, Count, Group, current_row, task
from .finding import set_filter
from .moving import next_of

if TYPE_CHECKING:
    from ... import analyse
    from ...database import Database
    from ...rows import Source
    from ..hot import Function, Times
    from ..slow import SlowCalls

_NAME = 60  # characters of a function's name in a message


# ---- the hot list -------------------------------------------------------------------------


@task
def hot_list(session: Session, count: Count) -> Task[None]:
    from .. import hot

    runs = session.runs_shown()
    has_lines, has_off = (yield hot.has_lines(runs)), (yield hot.has_off(runs))
    yield _hot_functions(session, session.browser.view.scope is MINE, has_lines, has_off)


def _hot_functions(session: Session, mine: bool, has_lines: bool, has_off: bool) -> ShowList:
    """mine: of one's own code alone. has_off: with the time off the processor."""
    from .. import hot

    view, runs = session.browser.view, list(session.runs)
    condition = hot.predicate(view, runs)

    def entries(found: dict[Function, Times]) -> list[Entry]:
        shown = len(columns) - 1
        return [Entry(function, (function.name, *times[:shown])) for function, times in found.items()]

    def question(database: Database) -> list[Entry]:
        return entries(hot.functions(condition, mine)(database))

    def first(database: Database) -> list[Entry]:
        return entries(hot.calls(view.run, mine)(database))

    lasting = session.display.lasting
    columns = (
        Column("function", "f"),
        Column("calls", "c", "{:,}".format),
        *_times(session),
        Column("median", "m", lasting),
        Column("longest", "l", lasting),
        *((Column("off", "p", lasting),) if has_off else ()),
    )
    actions = {"enter": Action("its slowest calls", lambda entry: _slowest(session, entry))}
    if has_lines:
        actions["H"] = Action("lines", lambda entry: _hot_lines(session, mine, has_off), anywhere=True)
    actions |= {
        "&": Action("filter", lambda entry: _only(session, entry.id)),
        "M": _all_or_mine("functions", mine, lambda mine: _hot_functions(session, mine, has_lines, has_off)),
    }
    listed = _listed(session, "functions", condition, mine, question, first if view.filter is None else None)
    return ShowList("hot", _title(session, "functions", mine), columns, actions, listed, sort=2)


def _hot_lines(session: Session, mine: bool, has_off: bool) -> ShowList:
    """mine: of one's own code alone. has_off: the functions have it."""
    from .. import hot

    condition, runs = hot.predicate(session.browser.view, list(session.runs)), session.runs_shown()

    def question(database: Database) -> list[Entry]:
        return [
            Entry(line, ((*line[:2], of.place), *_numbers(of.numbers)), of.source)
            for line, of in hot.lines(condition, runs, mine)(database).items()
        ]

    columns = (
        Column("line", "f", itemgetter(2), rises=True),
        Column("count", "c", "{:,}".format),
        *_times(session),
    )
    actions = {
        "enter": Action("its next run", lambda entry: _next_run(session, entry)),
        "H": Action("functions", lambda entry: _hot_functions(session, mine, True, has_off), anywhere=True),
        "&": Action("filter", lambda entry: _only_line(session, entry.id)),
        "M": _all_or_mine("lines", mine, lambda mine: _hot_lines(session, mine, has_off)),
    }
    listed = _listed(session, "lines", condition, mine, question)
    return ShowList("hot lines", _title(session, "lines", mine), columns, actions, listed, sort=2)


def _times(session: Session) -> tuple[Column, ...]:
    lasting = session.display.lasting
    return Column("own", "o", lasting), Column("total", "t", lasting), Column("average", "a", lasting)


def _numbers(row: analyse.Row) -> tuple[int | None, ...]:
    return row.count, row.own, row.total, row.average


def _all_or_mine(what: str, mine: bool, again: Callable[[bool], ShowList]) -> Action:
    return Action(f"all {what}" if mine else "own code alone", lambda entry: again(not mine), anywhere=True)


def _title(session: Session, what: str, mine: bool) -> str:
    tree = session.browser.view.filter
    title = f"{what} (own code)" if mine else what
    return title if tree is None else f"{title} of: {' '.join(tree.text.split())}"


def _listed(
    session: Session,
    what: str,
    condition: str,
    mine: bool,
    question: Callable[[Database], list[Entry]],
    first: Callable[[Database], list[Entry]] | None = None,
) -> Listed:
    view = session.browser.view
    is_unknown = mine and view.filter is None
    nothing = f"nothing of your own code is known: M shows all {what}" if is_unknown else ""
    return Listed((view.run, condition, mine), question, first, nothing)


def _only(session: Session, function: Any) -> Result:
    """The function alone, among what is shown now."""
    from ..prompt_completion import editable, of_function

    tree = session.browser.view.filter
    return set_filter(session, of_function(function.module, function.func, editable(tree) if tree else ""))


def _only_line(session: Session, line: Any) -> Result:
    """The runs of the line alone, among what is shown now."""
    from ..prompt_completion import editable, of_function

    tree = session.browser.view.filter
    module, func = (name.encode("utf-8", "surrogatepass") for name in (line.module, line.func))
    return set_filter(session, of_function(module, func, editable(tree) if tree else "", line.line))


@task
def _next_run(session: Session, entry: Entry) -> Task[None]:
    """To the next time that a line ran, after the cursor; then to the first."""
    line: Any = entry.id
    item, events = session.browser.current, session.browser.every()
    row = item.row if item is not None else None
    found = yield lambda database: navigation.next_run(database, events, line, row)
    (_, _, place), count, *_ = entry.values
    name = _shortened(session.display.shown(place))
    if found is None:
        yield Say(f"the runs of {name} have been removed meanwhile")
        return
    times = "it ran once" if count == 1 else f"it ran {count:,} times: H, H and Enter go to the next"
    yield Say(f"{name}: {times}")
    yield from session.browser.go(found, True)


@task
def _slowest(session: Session, entry: Entry) -> Task[None]:
    """To the longest calls of a function, the first of them first."""
    from .. import slow
    from ..hot import Times

    function: Any = entry.id
    events, times = session.browser.every(), Times(*entry.values[1:])
    calls = yield lambda database: slow.longest(database, events, function, times)
    if not calls:
        yield Say(f"no call of {_name(session, function)} has ended")
        return
    session.slow_calls = slow.SlowCalls(_subject(session), calls, whole=False)
    yield from _step(session, session.slow_calls, 1)


# ---- slow calls ---------------------------------------------------------------------------


def next_slow(session: Session, count: Count) -> RunTask:
    return _slow(session, count, 1)


def previous_slow(session: Session, count: Count) -> RunTask:
    return _slow(session, count, -1)


def _slow(session: Session, count: Count, step: int) -> RunTask:
    if count:
        session.slow = count * 1_000_000
    return RunTask(_ranked(session, step) if session.slow is None else _as_long(session, step < 0))


def _as_long(session: Session, backwards: bool) -> Task[None]:
    """To the next call that took some time at least."""
    from ...render import duration

    move = partial(navigation.next_slow, nanoseconds=session.slow or 0, backwards=backwards)
    word = "earlier" if backwards else "later"
    least = f"{duration(session.slow or 0)} or more (:slow alone: the worst ones first)"
    yield Say(f"calls of {least}")
    yield from next_of(session, move, None, f"no {word} call of {least}")


def _ranked(session: Session, step: int) -> Task[None]:
    """To the next one of the calls that exceed most what is usual."""
    from .. import slow

    known = session.slow_calls
    if known is None or known.subject != _subject(session):
        current_row(session)
        usual = yield from _usual(session)
        events = session.browser.events()
        calls = yield lambda database: slow.ranked(database, events, usual)
        known = session.slow_calls = slow.SlowCalls(_subject(session), calls, whole=True)
    if not known.calls:
        yield Say("no call took far longer than is usual for its function; N and the key: N milliseconds")
        session.slow_calls = None
        return
    yield from _step(session, known, step)


def _subject(session: Session) -> object:
    """What slow calls are sought in. While the program runs, they are sought again now and then."""
    return session.browser.view.filter, session.usual_now()


def _usual(session: Session) -> Task[dict[Function, Times]]:
    """The usual times of all functions: of the shown run or runs."""
    from .. import hot

    now = session.usual_now()
    if session.usual_of != now:
        session.take_usual((yield hot.usual(now[0])), now)
    return session.usual or {}


def _step(session: Session, calls: SlowCalls, step: int) -> Task[None]:
    from ...render import duration

    found = calls.step(step)
    if found is None:
        if step > 0 and not calls.whole:
            session.slow_calls = None
        yield Say("these were the slowest" if step > 0 else "this is the slowest")
        return
    number, usual = f"{calls.at + 1} of {len(calls.calls)} slow calls", ""
    if found.usual and found.duration >= 2 * found.usual:
        usual = f", {found.duration // found.usual:,} times the usual {duration(found.usual)}"
    name = _name(session, found.function)
    yield Say(f"{number}: {name} took {duration(found.duration)}{usual}")

    yield from _arrive(session, found.id, opens=not calls.whole)


def _name(session: Session, function: Function) -> str:
    """A function's name for a message, which has more to say."""
    return _shortened(session.display.shown(function.name))


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - len(DOTS)] + DOTS


def _arrive(session: Session, id: int, opens: bool = False) -> Task[None]:
    """To the call that an event began or ended; to its end, if the filter hides the call. opens: in
    code that is not shown, too."""

    def question(database: Database) -> tuple[Row | None, Row | None]:
        row = one(database, id)
        begin = navigation.partner(database, row) if row and row[6] in ("return", "exception") else row
        return begin, row

    begin, end = yield question
    if end is None:
        yield Say("that call has been removed meanwhile")
    else:
        yield from session.browser.go(begin or end, opens)


def slow(session: Session, wanted: str) -> Result:
    session.slow_calls = None
    if not wanted:
        session.slow = None
        return Say("l goes to the calls that took far longer than usual, the worst first")
    try:
        session.slow = nanoseconds(wanted)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return next_slow(session, None)


# ---- lanes --------------------------------------------------------------------------------


@task
def lanes(session: Session, count: Count) -> Task[None]:
    """Threads and tasks along the time, around the call that the cursor is in."""
    from .. import flame
    from ..lanes import Lanes

    row = current_row(session)
    timeline = yield from session.course()
    if timeline is None:
        raise CommandError("there is no recording yet")
    item = session.browser.current
    in_opened = item is not None and item.stretch is None and is_hidden(row)
    scope = ALL if in_opened else session.browser.view.scope

    def whole() -> flame.Part:
        nonlocal timeline
        timeline = session.timeline or timeline
        assert timeline is not None
        return flame.Part(timeline.first, max(timeline.last, timeline.first + 1))

    part, row = yield flame.around(row, whole(), scope)
    at = flame.Lane(row[3], row[4], row[14]), level_of(row), row[2]
    go = partial(_to_call, session)

    def sources() -> list[Source]:
        return [source for source in session.sources if source.run == row[1]]

    yield ShowLanes(Lanes(row[1], whole, part, sources, at, go, session.display, scope, session.is_live))


@task
def _to_call(session: Session, id: int) -> Task[None]:
    """To the call that an event began or ended."""
    yield from _arrive(session, id)


SLOW = Group(
    "Where the time goes",
    (
        Command(
            "hot",
            ("H",),
            "functions by calls, own and total time, average, median, longest; Enter: its slowest calls;"
            " H: lines, where they were recorded",
            hot_list,
        ),
        Command(
            "next-slow",
            ("l",),
            "to the call that took longest beyond what is usual, then the next; N: of N milliseconds or more",
            next_slow,
        ),
        Command("previous-slow", ("L",), "to the one before", previous_slow),
        Command(
            "lanes",
            ("V",),
            "threads and tasks along the time, with their calls as bars, around the cursor's call",
            lanes,
        ),
    ),
)
