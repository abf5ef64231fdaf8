"""Where a value came from: the lines that set a variable, one after another, and a table of all its
values; watching it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...screen.effects import (
    Action,
    Column,
    CommandError,
    Entry,
    Listed,
    Result,
    RunTask,
    Say,
    ShowList,
    Task,
)
from ...screen.lines import clock
from .. import state
from ..breakpoints import Watch
from ..history import History, quoted
from ..lives import Life, life
from ..moment import Argument, Moment, after, arguments, moments
from ..state import Frame
from .command import Command, Count, Group, ended, task
from .steps import show_moment
from .variables_pane import Shown
from .walk import Walk

if TYPE_CHECKING:
    from ...database import Database

_FIRST, _MOST = 100, 10_000  # values in a table
_LONGEST = 500  # characters of a value there


def _row(walk: Walk) -> Shown:
    """The value under the cursor. Raises CommandError."""
    row = walk.values.current
    if row is None or walk.focus != "variables":
        raise CommandError("this is about a variable: Tab to the variables, and choose one")
    return row


def _variable(walk: Walk) -> tuple[Frame, str]:
    """The variable under the cursor, or the one that was sought last, and its function."""
    row, frame = _row(walk), walk.scene.frame if walk.scene else None
    if walk.sought is not None and frame is not None:
        return frame, walk.sought
    if row.variable is None or frame is None:
        raise CommandError("this is no variable; its value was told by this event itself")
    return frame, row.variable.name


def origin(walk: Walk, count: Count) -> Result:
    """To the line that set the variable last, or to the return of a value that was returned."""
    row = _row(walk)
    if walk.sought is None and row.ended is not None and row.ended.id != walk.moment.id:
        return RunTask(show_moment(walk, row.ended))
    return _seek(walk, *_variable(walk), max(count or 1, 1), True)


def onwards(walk: Walk, count: Count) -> Result:
    """To the line that sets the variable next."""
    return _seek(walk, *_variable(walk), max(count or 1, 1), False)


@task
def _seek(walk: Walk, frame: Frame, name: str, count: int, backwards: bool) -> Task[None]:
    def question(database: Database) -> tuple[Moment | None, bool]:
        history, here, found = History(database, walk.run.id), frame.at, None
        for _ in range(count):
            following, is_passed = _set_line(history, here, frame, name, backwards)
            if following is None:
                break
            here = found = following
            if is_passed:
                return found, True
        return found, False

    found, is_passed = yield question
    if found is None:
        nothing = f"nothing before sets {name}" if backwards else f"this call does not set {name} again"
        yield from ended(walk, backwards, nothing)
        return
    yield from show_moment(walk, found)
    walk.sought = None if is_passed else name
    walk.values.seek(name)
    words = f"here {name} was passed" if is_passed else f"this line sets {name}"
    yield Say(words)


def _set_line(
    history: History, here: Moment, frame: Frame, name: str, backwards: bool
) -> tuple[Moment | None, bool]:
    """The line that sets a variable; of an argument the caller's, and that it is one."""
    entered = None if _is_open_before(frame) else frame.entered
    change = history.change(here, entered, name, backwards)
    while entered is None and change is not None and not _is_of(frame, change):
        change = history.change(change._replace(id=change.id - 1), None, name, True) if backwards else None
    while change is not None:
        if change.kind == "call":
            return (_passed(history, change) if backwards else None), True
        line = history.setter(here, change)
        if backwards or (line.time, line.id) > (here.time, here.id):
            return line, False
        change = history.change(change, entered, name, backwards)
    return None, False


def _is_open_before(frame: Frame) -> bool:
    """Whether the call began before the event that entered it: a coroutine of a task, or one whose
    beginning was removed. (Of generators the recording does not tell which one goes on.)"""
    entered = frame.entered
    return not entered.enters or (entered.kind != "call" and bool(entered.task))


def _is_of(frame: Frame, change: Moment) -> bool:
    """Whether a change at the same depth is of this function, in the same task."""
    one = frame.entered
    return (one.file, one.func, one.task) == (change.file, change.func, change.task)


def _passed(history: History, call: Moment) -> Moment:
    """The caller's line that made a call."""
    entered = state.entered(history.database, call.id)
    callers = [each for each in entered if each.depth < call.depth]
    return state.frame(history.database, call, callers[0]).at if callers else call


def watch(walk: Walk, count: Count) -> Result:
    """Continuing stops whenever the variable changes."""
    frame, name = _variable(walk)
    wanted = Watch(name, frame.depth, frame.entered.func, frame.entered.file)
    if wanted in walk.breakpoints:
        walk.breakpoints.remove(wanted)
        return Say(f"{name} is no longer watched")
    walk.breakpoints.append(wanted)
    return Say(f"{name} is watched: c and C stop where it changes")


# ---- the table ----------------------------------------------------------------------------


@task
def table(walk: Walk, count: Count) -> Task[None]:
    """All values of the variable in this call."""
    frame, name = _variable(walk)
    if not frame.entered.enters:
        raise CommandError("the beginning of this call was removed, or lost: w goes through its lines")
    of = yield lambda database: life(History(database, walk.run.id), frame.entered)
    columns = (Column("time", "1"), Column("line", "2", str), Column(name, "3"))
    actions = {"enter": Action("goes there", lambda entry: RunTask(_to(walk, int(str(entry.id)))))}
    question = partial(_values, life=of, name=name)
    listed = Listed(
        (of, name), partial(question, most=_MOST), partial(question, most=_FIRST), "this call never sets it"
    )
    title = f"values of {name} in {frame.entered.func}"
    if not of.is_whole:
        title += ", since it went on: which generator did before is not recorded"
    yield ShowList("values", title, columns, actions, listed)


def _to(walk: Walk, id: int) -> Task[None]:
    found = yield lambda database: History(database, walk.run.id).at(id)
    if found is None:
        raise CommandError("this moment has been removed, as the recording is bounded")
    yield from show_moment(walk, found)


def _values(database: Database, life: Life, name: str, most: int) -> list[Entry]:
    told = f'(and (in kind "line" "call") (any (= name {quoted(name)})))'
    changes = moments(database, life.events.also("event MATCH ?", told), False, most)
    lines = life.events.also("kind = 'line'")
    width = len(f"{len(changes):,}")
    found = []
    for number, change in enumerate(changes, 1):
        before = moments(database, after(lines, change, True), True, 1) if change.kind == "line" else []
        line = before[0] if before else change
        time = f"{number:>{width},}  {clock(change.time)}"
        found.append(Entry(line.id, (time, line.line, _value(arguments(database, change.id), name))))
    return found


def _value(told: list[Argument], name: str) -> str:
    return next((each.value[:_LONGEST] for each in told if each.name == name), "")


VALUES = Group(
    "Variables: with the cursor on one in their pane",
    (
        Command(
            "where",
            ("w", "["),
            "where its value came from: the line that set it; again: the one before",
            origin,
        ),
        Command("where-next", ("]",), "the line that sets it next", onwards),
        Command("watch", ("W",), "watches it: c and C stop where it changes; again: no longer", watch),
        Command("values", ("t",), "a table of all its values in this call", table),
    ),
)
