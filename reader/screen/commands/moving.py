"""Commands that move: along the lines, to a time, through the structure of calls, to the next event
of a kind, to bookmarks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...filter.units import TIME_FORMS, RunTimes, moment
from ...filter.units import duration as nanoseconds
from ...render import duration
from ...rows import Row, text
from ...stretches import ALL, is_hidden
from .. import navigation, pages
from ..bookmarks import Place
from ..effects import Ask, CommandError, Result, RunTask, Say, Task
from ..session import Session
from ..view import ENTERS, View
from .command import Command, Count, Group, LetterCommand, current_row, task

if TYPE_CHECKING:
    from ...database import Database
    from ...query import Query

_FAR = 10_000  # the N-th next of something
_HIDDEN = "the filter hides this event, which is shown while the cursor is on it"
_VALUES = 12  # rows of the pane that shows an exception
_LATEST = (1 << 63) - 1  # ns: no event is later
_NOT_CAUGHT = "no recorded code caught it: it ends here"
_FORMS = f"{TIME_FORMS}, or '-2s' before its end"


# ---- moving -------------------------------------------------------------------------------


def forward_line(session: Session, count: Count) -> RunTask:
    return RunTask(session.browser.scroll(count or 1))


def backward_line(session: Session, count: Count) -> RunTask:
    return RunTask(session.browser.scroll(-(count or 1)))


def forward_window(session: Session, count: Count) -> RunTask:
    return RunTask(session.browser.scroll(count or max(len(session.browser.shown()), 1)))


def backward_window(session: Session, count: Count) -> RunTask:
    return RunTask(session.browser.scroll(-count) if count else session.browser.screen_back())


def forward_half(session: Session, count: Count) -> RunTask:
    return RunTask(session.browser.scroll(_half_screen(session, count)))


def backward_half(session: Session, count: Count) -> RunTask:
    return RunTask(session.browser.scroll(-_half_screen(session, count)))


def _half_screen(session: Session, count: Count) -> int:
    session.half_screen = count or session.half_screen
    return session.half_screen or max(session.browser.height // 2, 1)


@task
def first(session: Session, count: Count) -> Task[None]:
    session.browser.remember()
    yield from _nth(session, count) if count else session.browser.first()


@task
def last(session: Session, count: Count) -> Task[None]:
    session.browser.remember()
    yield from _nth(session, count) if count else session.browser.last()


def _nth(session: Session, number: int) -> Task[None]:
    browser = session.browser
    query = browser.query() if browser.view.scope is ALL else browser.every()
    row = yield lambda database: pages.nth(database, query, number)
    if row is None:
        yield Say("there are fewer events than that")
        yield from session.browser.last()
    else:
        yield from session.browser.show((row[2], row[0]), 0)


@task
def percent(session: Session, count: Count) -> Task[None]:
    session.browser.remember()
    timeline = yield from session.course()
    share = min(count or 0, 100) / 100
    if timeline is None or timeline.events == 0 or share == 0:
        yield from session.browser.first()
    elif share == 1:
        yield from session.browser.last()
    else:
        yield from session.browser.show((timeline.time_at(share), 0), 0)


def ask_time(session: Session, count: Count) -> Ask:
    return Ask("time: ", partial(go_to_time, session), history="time")


@task
def go_to_time(session: Session, wanted: str) -> Task[None]:
    timeline = yield from session.course()
    run = session.run_here()
    if run is None:
        raise CommandError("there is no recording yet")
    try:
        at = typed_time(wanted, run, timeline.last if timeline else run.started)
    except ValueError as error:
        raise CommandError(str(error)) from None
    session.browser.remember()
    yield from session.browser.show((at, 0), 0)


def typed_time(text: str, run: RunTimes, last: int) -> int:
    """A typed time in ns since 1970, in a run whose last event is at `last`. It takes the forms of
    a filter, with or without quotes, and `-2s` before the end. Raises ValueError, which lists the
    forms."""
    stripped = text.strip()
    if len(stripped) >= 2 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        stripped = stripped[1:-1].strip()
    if stripped.startswith("-"):
        try:
            return max(last - nanoseconds(stripped[1:]), 0)
        except ValueError:
            raise ValueError(_FORMS) from None
    try:
        found = moment(stripped)
    except ValueError as error:
        raise ValueError(str(error).replace(TIME_FORMS, _FORMS)) from None
    return min(max(found if isinstance(found, int) else found(run), 0), _LATEST)


def cursor_down(session: Session, count: Count) -> RunTask:
    return RunTask(session.browser.move_cursor(count or 1))


def cursor_up(session: Session, count: Count) -> RunTask:
    return RunTask(session.browser.move_cursor(-(count or 1)))


def right(session: Session, count: Count) -> None:
    session.browser.scroll_aside(count or max(session.browser.width // 2, 1))


def left(session: Session, count: Count) -> None:
    session.browser.scroll_aside(-(count or max(session.browser.width // 2, 1)))


# ---- jumping ------------------------------------------------------------------------------


def go(session: Session, row: Row, opens: bool = False) -> Task[None]:
    yield from session.browser.go(row, opens)
    if session.browser.beside.visited is not None:
        yield Say(_HIDDEN)


@task
def _structural(session: Session, move: Callable[[Database, Row], Row | None], nothing: str) -> Task[None]:
    start = current_row(session)
    row = yield lambda database: move(database, start)
    if row is None:
        yield Say(nothing)
    else:
        yield from go(session, row)


def _to(move: Callable[[Database, Row], Row | None], nothing: str) -> Callable[[Session, Count], RunTask]:
    """A command that goes to the event of a move. nothing: the message if there is none."""
    return lambda session, count: _structural(session, move, nothing)


_to_partner = _to(navigation.partner, "nothing belongs to this event: it has not ended, or was not recorded")


def partner(session: Session, count: Count) -> RunTask:
    return _to_partner(session, None) if count is None else percent(session, count)


def caller(session: Session, count: Count) -> RunTask:
    item, shown = session.browser.current, session.browser.view.is_shown
    in_opened = item is not None and item.stretch is None and is_hidden(item.row)
    move = partial(navigation.caller, among="" if in_opened else shown)
    return RunTask(_walk(session, move, count, "this is the outermost call", ""))


def _walk(
    session: Session,
    move: Callable[..., Row | None],
    count: Count,
    nothing: str,
    last: str,
    anywhere: Callable[..., Row | None] | None = None,
) -> Task[None]:
    """Takes so many steps in one question. nothing: the message if there is no step; `last` is
    added if there were some. anywhere: the same step, also to code that is not shown."""
    start = current_row(session)

    def question(database: Database) -> tuple[Row, bool]:
        row = start
        for _ in range(min(count or 1, _FAR)):
            found = move(database, row=row)
            if found is None:
                return row, True
            row = found
        return row, False

    row, is_end = yield question
    if is_end:
        said = nothing if row is start else nothing + last
        yield Say(said)
        if anywhere is not None and (yield lambda database: anywhere(database, row=row)):
            yield Say(f"{said}; there is one in library code: M shows all")
    if row is not start:
        yield from go(session, row)


def next_of(
    session: Session,
    move: Callable[..., Row | None],
    count: Count,
    nothing: str,
    events: Query | None = None,
) -> Task[None]:
    """The N-th next of something within run and filter, or among other events."""
    browser = session.browser
    within = partial(move, query=events or browser.events())
    is_all = events is not None or browser.view.scope is ALL
    anywhere = None if is_all else partial(move, query=browser.every())
    return _walk(session, within, count, nothing, "; this is the last one", anywhere)


def _to_next(
    move: Callable[..., Row | None], backwards: bool, nothing: str
) -> Callable[[Session, Count], RunTask]:
    """A command that goes to the next of something."""
    return lambda session, count: RunTask(
        next_of(session, partial(move, backwards=backwards), count, nothing)
    )


# ---- the path of waiting ------------------------------------------------------------------


@task
def waker(session: Session, count: Count) -> Task[None]:
    """Goes to the event that woke the thread after its last wait up to here; of a call, after the
    last one in it."""
    start = current_row(session)
    name = text(start[5]) or str(start[4])
    wait = yield lambda database: navigation.last_wait(database, start)
    if wait is None:
        if not (yield lambda database: "kernel" in navigation.layers(database, start[1])):
            raise CommandError("waits are not recorded here: pytrace --kernel does, as root")
        yield Say(f"{name} did not wait {'in this call' if start[6] in ENTERS else 'before this'}")
        return
    waited = f"{name}: {wait.why}{'' if wait.took is None else f', {duration(wait.took)}'}"
    found = wait.waker
    if wait.until is None or found is None or found.is_sure is False:
        nobody = "what woke it was not recorded" if found is None else "a timer or a device woke it"
        yield Say(f"{waited}; {nobody if wait.until else 'it has not been woken'}")
        return
    yield from go(session, found.row, opens=True)
    yield Say(f"{waited}; woken here by {found.name}")


# ---- exceptions ---------------------------------------------------------------------------


def _exception(session: Session, count: Count, backwards: bool) -> RunTask:
    from ..exceptions import next_exception

    # a number counts all of them
    ends = session.browser.view.filter is not None
    move = partial(next_exception, backwards=backwards, every=count is not None, ends=ends)
    word = "earlier" if backwards else "later"
    hint = "" if count else f"; 1{'X' if backwards else 'x'}: also those that a library caught at once"
    return RunTask(next_of(session, move, count, f"no {word} exception{hint}"))


@task
def uncaught(session: Session, count: Count) -> Task[None]:
    """Goes to where the newest exception began that nobody caught, with its values in the pane.
    From there: to the one before."""
    from ..exceptions import Uncaught
    from ..exceptions import uncaught as newest

    item, run = session.browser.current, View(session.browser.view.run).events(session.runs)
    last = session.went_to
    shown = last if last and item and item.row[0] == last.raised[0] else None

    def question(database: Database) -> tuple[Uncaught | None, bool]:
        found = shown
        for _ in range(min(count or 1, _FAR)):
            before = newest(database, run, found)
            if before is None:
                return found, True
            found = before
        return found, False

    found, is_end = yield question
    if found is None:
        yield Say("every exception so far was caught; x goes to the next one")
        return
    if is_end:
        yield Say("no earlier exception has left a thread, a task, a test or the program")
    if found is not shown:
        session.went_to = found
        session.parts.shown["detail"] = True
        session.parts.give_detail(_VALUES)
        session.refit()
        yield from go(session, found.raised, opens=True)


def raised(session: Session, count: Count) -> RunTask:
    return RunTask(_along(session, True))


def caught(session: Session, count: Count) -> RunTask:
    return RunTask(_along(session, False))


def _along(session: Session, backwards: bool) -> Task[None]:
    """To where the exception of the event began; or to where it was caught."""
    from .. import exceptions

    start = current_row(session)

    def question(database: Database) -> tuple[Row | None, bool]:
        row = exceptions.passing(database, start)
        if row is None:
            return None, False
        return (exceptions.raised(database, row), True) if backwards else exceptions.caught(database, row)

    row, is_caught = yield question
    if row is None:
        raise CommandError("no exception passes here; x goes to the next one")
    if row[0] == start[0]:
        yield Say("it began here" if backwards else "it was caught here" if is_caught else _NOT_CAUGHT)
        return
    yield from go(session, row, opens=True)
    if not is_caught:
        yield Say(_NOT_CAUGHT)


# ---- bookmarks ----------------------------------------------------------------------------


def back(session: Session, count: Count) -> Result:
    return _travel(session, session.browser.trail.back, "this is where we began")


def forward(session: Session, count: Count) -> Result:
    return _travel(session, session.browser.trail.forward, "there is nothing to go forward to")


def _travel(session: Session, step: Callable[[Place], Place | None], nothing: str) -> Result:
    place = step(session.browser.place())
    return Say(nothing) if place is None else RunTask(session.browser.return_to(place))


def mark(session: Session, letter: str) -> Say:
    session.marks.set(letter, session.browser.place())
    return Say(f"marked: '{letter} comes back here")


def to_mark(session: Session, letter: str) -> RunTask:
    if letter == "^":
        return first(session, None)
    if letter == "$":
        return last(session, None)
    place = session.browser.trail.latest if letter == "'" else session.marks.get(letter)
    if place is None:
        if letter == "'":
            raise CommandError("there was no jump yet")
        is_letter = letter.isalpha() and len(letter) == 1
        raise CommandError(
            f"there is no mark {letter}: m{letter} sets one"
            if is_letter
            else "a mark is a letter, or one of ' ^ $"
        )
    session.browser.remember()
    return RunTask(session.browser.return_to(place))


# ---- the tables ---------------------------------------------------------------------------

MOVING = Group(
    "Moving",
    (
        Command(
            "forward-line",
            ("j", "e", "down", "ctrl e", "ctrl n"),
            "a line, or N lines, forward",
            forward_line,
        ),
        Command("backward-line", ("k", "y", "up", "ctrl y", "ctrl k", "ctrl p"), "… backward", backward_line),
        Command(
            "forward-window",
            (" ", "f", "page down", "ctrl f", "ctrl v"),
            "a screen, or N lines, forward",
            forward_window,
        ),
        Command("backward-window", ("b", "page up", "ctrl b", "meta v"), "… backward", backward_window),
        Command(
            "forward-half", ("d", "ctrl d"), "half a screen forward; N sets how many lines", forward_half
        ),
        Command("backward-half", ("u", "ctrl u"), "… backward", backward_half),
        Command("first", ("g", "<", "home", "meta <"), "to the first event, or to event N", first),
        Command("last", ("G", ">", "end", "meta >"), "to the last event, or to event N", last),
        Command("percent", ("p",), "to N per cent of the events; N% does the same", percent),
        Command(
            "time",
            ("@",),
            "to a time: 09:52:51, '2026-11-21 09:52', +1.5s from the start, -2s from the end",
            ask_time,
        ),
        Command("cursor-down", ("J", "shift down"), "the cursor down, on the same screen", cursor_down),
        Command("cursor-up", ("K", "shift up"), "the cursor up", cursor_up),
        Command("right", ("right", "meta )"), "half a screen, or N columns, to the right", right),
        Command("left", ("left", "meta ("), "… to the left", left),
    ),
)
JUMPING = Group(
    "Jumping",
    (
        Command("partner", ("%",), "from a call to its return, from a return to its call", partner),
        Command("caller", ("U",), "up: to the call that this one was made in", caller),
        Command(
            "first-callee",
            ("D",),
            "down: to the first call that this one made",
            _to(navigation.first_callee, "it made no call"),
        ),
        Command(
            "last-callee",
            ("$",),
            "to the last call that this one made",
            _to(navigation.last_callee, "it made no call"),
        ),
        Command(
            "next-sibling",
            ("W",),
            "over: to the next call on the same level",
            _to(navigation.next_sibling, "no further call on this level"),
        ),
        Command(
            "previous-sibling",
            ("B",),
            "to the one before on the same level",
            _to(navigation.previous_sibling, "no call before on this level"),
        ),
        Command(
            "next-function",
            ("c",),
            "to the next event of this function",
            _to_next(navigation.next_of_function, False, "no later event of this function"),
        ),
        Command(
            "previous-function",
            ("C",),
            "to the one before",
            _to_next(navigation.next_of_function, True, "no earlier event of this function"),
        ),
        Command(
            "next-thread",
            ("t",),
            "to the next event of this thread",
            _to_next(navigation.next_of_thread, False, "no later event of this thread"),
        ),
        Command(
            "previous-thread",
            ("T",),
            "to the one before",
            _to_next(navigation.next_of_thread, True, "no earlier event of this thread"),
        ),
        Command(
            "next-exception",
            ("x",),
            "to the next exception but those that a library catches where they begin; 1x: all",
            partial(_exception, backwards=False),
        ),
        Command(
            "previous-exception",
            ("X",),
            "to the one before",
            partial(_exception, backwards=True),
        ),
        Command(
            "uncaught",
            ("E",),
            "where the newest exception began that nobody caught, values in the pane; again: the one before",
            uncaught,
        ),
        Command("raised", ("(",), "from an exception's way to where it was raised", raised),
        Command("caught", (")",), "… to where it was caught", caught),
        Command(
            "waker", ("w",), "to what woke the thread after its last wait; again: on along the path", waker
        ),
        Command(
            "next-loss",
            ("i",),
            "to the next place where events were lost",
            _to_next(navigation.next_loss, False, "nothing was lost later"),
        ),
        Command(
            "previous-loss",
            ("I",),
            "to the one before",
            _to_next(navigation.next_loss, True, "nothing was lost earlier"),
        ),
        Command("back", ("backspace", "meta left"), "back: before the last jump, filter or run", back),
        Command("forward", ("\\", "meta right"), "forward again", forward),
        LetterCommand("mark", ("m",), "with a letter: marks this place", mark, stays=True),
        LetterCommand(
            "to-mark",
            ("'",),
            "with a letter: to that mark; '' to where the last jump began, '^ '$ to the ends",
            to_mark,
        ),
    ),
)
