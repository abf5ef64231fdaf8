"""Commands that change the display: following the end, panes, source, copies, switches."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from ...paths import path_bytes
from ...rows import text
from .. import pages
from ..effects import Choice, Choose, CommandError, Copy, Execute, Follow, Open, Result, RunTask, Say, Task
from ..lines import TIMES, DisplayOptions, clock
from ..session import WIDE, Session
from .command import Command, Count, Group, Switch, TypedCommand, current_row, number, task, values
from .finding import next_case

_WIDEST = 200  # columns
_TIMES = {"clock": "of the day", "date": "with the date", "start": "since the start", "off": "not shown"}


# ---- while the program runs ---------------------------------------------------------------


def follow(session: Session, count: Count) -> Result:
    return Follow(), RunTask(session.browser.last())


def follow_until(session: Session, count: Count) -> Result:
    if session.search.pattern is None:
        raise CommandError("search for something first: / and a regular expression")
    return Follow(until_hit=True), RunTask(session.browser.last())


# ---- looking closer -----------------------------------------------------------------------


def detail(session: Session, count: Count) -> Result:
    session.toggle("detail")
    return _with_pane(session)


def _with_pane(session: Session) -> Result:
    """The events beside a pane that was opened, closed or resized."""
    parts = session.parts
    has_room = parts.detail_rows or parts.detail_columns or not parts.shown["detail"]
    settle = RunTask(session.browser.settle())
    return settle if has_room else (Say("this screen has too few lines for the pane"), settle)


def detail_down(session: Session, count: Count) -> None:
    session.panes.scroll(count or 1)


def detail_up(session: Session, count: Count) -> None:
    session.panes.scroll(-(count or 1))


def detail_larger(session: Session, count: Count) -> Result:
    return _resized(session, count or 1)


def detail_smaller(session: Session, count: Count) -> Result:
    return _resized(session, -(count or 1))


def _resized(session: Session, shares: int) -> Result:
    """The pane is opened, or becomes larger or smaller."""
    if session.parts.shown["detail"]:
        session.parts.resize_detail(shares)
        session.refit()
    else:
        session.toggle("detail")
    return _with_pane(session)


def detail_beside(session: Session, count: Count) -> Result:
    """The pane stands at the right of the events, or below them again."""
    parts = session.parts
    if parts.width < WIDE:
        raise CommandError(f"a pane at the right wants {WIDE} columns; this screen has {parts.width}")
    parts.beside = not parts.beside
    parts.shown["detail"] = True
    session.refit()
    return RunTask(session.browser.settle())


@task
def where(session: Session, count: Count) -> Task[None]:
    position, events = session.browser.place().position, session.browser.every()
    before = 0
    if position is not None:
        before = yield lambda database: pages.earlier(database, events, position)
    yield Say(whereabouts(session, before + 1))


def whereabouts(session: Session, number: int) -> str:
    """The message on the present place. number: the event's, among those of run and filter, from
    1."""
    item, run = session.browser.current, session.run_here()
    if item is None or run is None:
        return f"{session.path}: nothing to show yet"
    row = item.row
    moment = time.strftime("%Y-%m-%d ", time.localtime(row[2] // 1_000_000_000)) + clock(row[2])
    since = (row[2] - run.started) / 1e9
    told = [f"event {number:,}", moment, f"+{since:.6f}s", f"id {row[0]}"]
    percent, timeline = session.percent(), session.timeline
    if percent is not None and timeline is not None:
        told.append(f"{percent:.1f}% of {timeline.events:,} events")
        if timeline.lost:
            told.append(f"{timeline.lost:,} lost")
    return "  ".join([*told, f"run {run.id} in {session.path}: {run.command}"])


def replay(session: Session, count: Count) -> Open:
    """The replay of the run, at the event under the cursor."""
    row = current_row(session)
    return Open(session.path, row[1], row[0], is_replay=True)


@task
def edit(session: Session, count: Count) -> Task[None]:
    from ...native_source import place_of
    from ..terminal import EditorMissing, editor_command

    row = current_row(session)
    place = yield lambda database: place_of(database, row)
    if place is None:
        raise CommandError(f"{text(row[9])} has no debug information about the lines of this function")
    file, line = place
    if not file or file.startswith("<"):
        raise CommandError(f"this event has no source file ({file or 'none is known'})")
    run = session.run_here()
    path = os.fsdecode(path_bytes(os.path.join(run.directory if run else "", file)))
    if not os.path.isfile(path):
        raise CommandError(f"{file} is not there (any more)")
    try:
        yield Execute(editor_command(path, line, os.environ))
    except EditorMissing as error:
        raise CommandError(str(error)) from None


def copy(session: Session, count: Count) -> Copy:
    return copy_to(session, "")


def copy_to(session: Session, file: str) -> Copy:
    item = session.browser.current
    if item is None:
        raise CommandError("there is no event here")
    return Copy(session.browser.line(item).text, "the line", file)


def copy_value(session: Session, count: Count) -> Result:
    return copy_value_to(session, "")


def copy_value_to(session: Session, file: str) -> Result:
    given = values(current_row(session))
    if not given:
        raise CommandError("this event has no value")
    if len(given) == 1:
        return Copy(given[0][1], given[0][0], file)
    choices = [Choice(f"{name} = {value}", (name, value)) for name, value in given]
    return Choose("copy the value of", choices, lambda chosen: Copy(chosen[1], chosen[0], file))


def width(session: Session, wanted: str) -> RunTask:
    column, _, columns = wanted.partition(" ")
    if column not in ("time", "duration", "process", "thread", "run"):
        raise CommandError("width of: time, duration, run, process or thread, and a number; 0: as it needs")
    widths = dict(session.display.widths)
    widths[column] = min(number(columns, "columns"), _WIDEST)
    session.change_display(replace(session.display, widths=tuple(widths.items())))
    return RunTask(session.browser.settle())


# ---- switches -----------------------------------------------------------------------------


def switch(session: Session, letter: str) -> Result:
    found = next((switch for switch in SWITCHES if switch.letter == letter), None)
    if found is None:
        letters = " ".join(f"-{switch.letter}" for switch in SWITCHES)
        raise CommandError(f"there is no switch -{letter}; there are: {letters}")
    return found.do(session)


def _wrap(session: Session) -> Result:
    browser = session.browser
    said = "long lines are cut" if browser.wrap else "long lines are wrapped"
    return Say(said), RunTask(browser.switch_wrap())


def _times(session: Session) -> Result:
    shown = TIMES[(TIMES.index(session.display.time) + 1) % len(TIMES)]
    session.change_display(replace(session.display, time=shown))
    return Say(f"times: {_TIMES[shown]}"), RunTask(session.browser.settle())


def _numbers(session: Session) -> Result:
    is_on = not session.display.ids
    return _switched(session, "numbers", is_on, replace(session.display, ids=is_on))


def _duration(session: Session) -> Result:
    is_on = not session.display.duration
    return _switched(session, "duration", is_on, replace(session.display, duration=is_on))


def _file(session: Session) -> Result:
    is_on = not session.display.file
    return _switched(session, "file", is_on, replace(session.display, file=is_on))


def _sort(session: Session) -> Result:
    is_on = not session.display.sort
    return _switched(session, "sort", is_on, replace(session.display, sort=is_on))


def _values(session: Session) -> Result:
    is_on = not session.display.values
    return _switched(session, "values", is_on, replace(session.display, values=is_on))


def _thread(session: Session) -> Result:
    is_on = not session.shows_thread()
    return _switched(session, "thread", is_on, replace(session.display, thread=is_on))


def _process(session: Session) -> Result:
    is_on = not session.shows_process()
    return _switched(session, "process", is_on, replace(session.display, process=is_on))


def _minimap(session: Session) -> Result:
    return _switched(session, "minimap", session.toggle("minimap"), session.display)


def _stack(session: Session) -> Result:
    return _switched(session, "stack", session.toggle("stack"), session.display)


def _switched(session: Session, name: str, is_on: bool, display: DisplayOptions) -> Result:
    if display is not session.display:
        session.change_display(display)
    return Say(f"{name}: {'on' if is_on else 'off'}"), RunTask(session.browser.settle())


# ---- the tables ---------------------------------------------------------------------------

FOLLOWING = Group(
    "While the program runs",
    (
        Command(
            "follow", ("F",), "shows new events as they come; any key that moves ends it", follow, stays=True
        ),
        Command(
            "follow-until", ("meta F",), "follows until the search finds something", follow_until, stays=True
        ),
    ),
)
LOOKING = Group(
    "Looking closer",
    (
        Command(
            "detail", ("tab",), "everything about the event under the cursor, in a pane", detail, stays=True
        ),
        Command("detail-down", ("meta j", "meta down"), "scrolls the pane", detail_down, stays=True),
        Command("detail-up", ("meta k", "meta up"), "… back", detail_up, stays=True),
        Command("detail-larger", ("}",), "opens the pane, or makes it larger", detail_larger, stays=True),
        Command("detail-smaller", ("{",), "… smaller", detail_smaller, stays=True),
        Command(
            "detail-beside",
            ("|",),
            "puts the pane at the right of the events, or below again; wants 140 columns",
            detail_beside,
            stays=True,
        ),
        Command("where", ("=", "ctrl g"), "where we are", where, stays=True),
        Command("replay", ("s",), "steps through the program from this event on; v comes back", replay),
        Command("edit", ("v",), "opens the source in $VISUAL or $EDITOR", edit),
        Command("copy", ("Y",), "copies the line to the clipboard; :copy FILE writes it to a file", copy),
        Command("copy-value", ('"',), "copies the value; :copy-value FILE", copy_value),
    ),
)
SWITCHES = (
    Switch("i", "case", "searches: smart case, or never ignoring it, or always", next_case),
    Switch("S", "wrap", "long lines: cut, or wrapped", _wrap),
    Switch("N", "numbers", "the events' ids", _numbers),
    Switch("t", "times", "times: of the day, with the date, since the start, none", _times),
    Switch("d", "duration", "durations", _duration),
    Switch("T", "thread", "threads", _thread),
    Switch("p", "process", "processes", _process),
    Switch("f", "file", "the functions' files and lines", _file),
    Switch("a", "sort", "arguments in the order of their names", _sort),
    Switch("v", "values", "arguments at all", _values),
    Switch("m", "minimap", "the line that shows the whole run", _minimap),
    Switch("k", "stack", "the calls above the first line", _stack),
)
WIDTH = TypedCommand(
    "width", "COLUMN N", width, "the width of a column: time, duration, run, process, thread"
)
COPY = TypedCommand("copy", "FILE", copy_to, "writes the line to a file")
COPY_VALUE = TypedCommand("copy-value", "FILE", copy_value_to, "writes the value to a file")
