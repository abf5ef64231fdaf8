"""What is typed: a breakpoint, a time, a file."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from ...screen.effects import Ask, Choice, Choose, CommandError, Mistake, Result, RunTask, Say, Task
from ...suggestions.completion import Candidate, Completions
from .. import when
from ..breakpoints import Breakpoint, BreakpointError, Watch, parse, resume
from ..history import History
from .command import Command, Count, Group, counting, ended, task
from .steps import begin
from .walk import Other, Walk

if TYPE_CHECKING:
    from ...database import Database
    from ...source_file import Excerpt
    from ..breakpoints import Stop
    from .colours import Colours
    from .scene import Scene

_OFFERED = 50


# ---- continuing ---------------------------------------------------------------------------


@task
def go_on(walk: Walk, count: Count, backwards: bool) -> Task[None]:
    """To the next breakpoint, watched variable, or exception that nobody catches."""
    if walk.scene is None:
        yield from begin(walk)
        return
    start, stops = walk.moment, tuple(walk.breakpoints)

    def question(database: Database) -> tuple[Scene | None, Stop | None]:
        history, here, found = History(database, walk.run.id), start, None
        for _ in range(max(count or 1, 1)):
            following = resume(history, here, stops, backwards)
            if following is None:
                end = history.first(not backwards)
                return (walk.sight.look(database, end) if end else None), None
            found, here = following, following.moment
        return walk.sight.look(database, here), found

    scene, found = yield question
    if scene is not None and scene.moment.id != start.id:
        walk.arrive(scene)
        yield from counting(walk)
    if found is not None:
        yield Say(_why(found))
    else:
        yield from ended(walk, backwards)


def _why(stop: Stop) -> str:
    if stop.reason is None:
        return f"nobody catches this exception: it ends {stop.moment.thread or 'its thread'}"
    return f"{'watched' if isinstance(stop.reason, Watch) else 'breakpoint'}: {named(stop.reason)}"


def named(each: Breakpoint | Watch) -> str:
    """A breakpoint as people read it."""
    if isinstance(each, Watch):
        return f"{each.name} in {each.func}"
    if isinstance(each.place, str):
        return each.text
    condition = f" if {each.condition.text}" if each.condition is not None else ""
    return f"{os.path.basename(each.place[0])}:{each.place[1]}{condition}"


# ---- breakpoints --------------------------------------------------------------------------


def break_at(walk: Walk, count: Count) -> Result:
    """Removes the breakpoint of the line under the cursor, or asks for one."""
    _ = walk.moment
    here = walk.breakpoint_at(walk.file, walk.line)
    if here is not None:
        walk.breakpoints.remove(here)
        return Say(f"removed: {named(here)}")
    return _ask_break(walk)


def _ask_break(walk: Walk, text: str = "", error: BreakpointError | None = None) -> Ask:
    """error: the mistake in the text, which is then shown at it."""

    def check(typed: str) -> Mistake | None:
        if error is None or typed != text:
            return None
        return Mistake(error.position, max(error.position, len(text)), str(error))

    label = f"break at (Enter: line {walk.line}): "
    return Ask(label, lambda typed: RunTask(_set(walk, typed)), text, "break", check=check)


def _set(walk: Walk, text: str) -> Task[None]:
    file, line = walk.file, walk.line
    typed = text.strip() or str(line)
    try:
        found = yield lambda database: parse(typed, History(database, walk.run.id), file, line)
    except BreakpointError as error:
        yield _ask_break(walk, typed, error)
        return
    if found in walk.breakpoints:
        walk.breakpoints.remove(found)
        yield Say(f"removed: {named(found)}")
        return
    walk.breakpoints.append(found)
    yield Say(f"c and C stop at {named(found)}")


def breaks(walk: Walk, count: Count) -> Result:
    """All of them; Enter removes one."""
    if not walk.breakpoints:
        raise CommandError("there are no breakpoints: b makes one, W watches a variable")
    choices = [Choice(named(each), each, "Enter removes it") for each in walk.breakpoints]

    def chosen(each: Breakpoint | Watch) -> Result:
        walk.breakpoints.remove(each)
        return Say(f"removed: {named(each)}")

    return Choose("breakpoints", choices, chosen)


# ---- times --------------------------------------------------------------------------------


def ask_time(walk: Walk, count: Count) -> Ask:
    """Asks where to go in time."""
    here, run = walk.moment.time, walk.run

    def check(text: str) -> Mistake | None:
        try:
            if text.strip() and when.event_id(text) is None:
                when.parse(text, here, run)
        except when.WhenError as error:
            return Mistake(0, len(text), str(error), True)
        return None

    return Ask("jump to the time: ", lambda text: RunTask(jump(walk, text)), history="time", check=check)


def jump(walk: Walk, text: str) -> Task[None]:
    """Goes to the first moment at a time, or to an event by its id."""
    if not text.strip():
        return
    id = when.event_id(text)

    def question(database: Database) -> Scene | None:
        history, run = History(database, walk.run.id), walk.run
        here = walk.scene.moment.time if walk.scene else run.started
        found = history.at(id) if id is not None else history.at_time(when.parse(text, here, run))
        return walk.sight.look(database, found) if found else None

    scene = yield question
    if scene is None:
        raise CommandError(f"there is no event {id} in this run" if id else "nothing was recorded")
    walk.arrive(scene)
    yield from counting(walk)


# ---- files --------------------------------------------------------------------------------


@task
def ask_file(walk: Walk, count: Count) -> Task[None]:
    """Asks for another file to look at."""
    _ = walk.moment
    rows = yield lambda database: database.query(
        "b", "SELECT DISTINCT CAST(file AS BLOB) FROM code WHERE run = ?", (walk.run.id,)
    )
    from ...rows import text

    files = sorted({text(file) for (file,) in rows if file})
    yield Ask(
        "file: ", lambda typed: RunTask(_show_file(walk, typed, files)), complete=partial(_complete, files)
    )


def _complete(files: list[str], typed: str, position: int) -> Completions:
    start = typed[:position]
    fitting = [file for file in files if start in file]
    fitting.sort(key=lambda file: (not file.startswith(start), start not in os.path.basename(file), file))
    return Completions(0, position, [Candidate(file, "", "") for file in fitting[:_OFFERED]])


def _show_file(walk: Walk, typed: str, files: list[str]) -> Task[None]:
    typed = typed.strip()
    if not typed:
        return
    fitting = [file for file in files if file == typed]
    fitting = fitting or [file for file in files if file.endswith(f"/{typed}")]
    fitting = fitting or [file for file in files if typed in file]
    if not fitting:
        raise CommandError(f"nothing of a file {typed} was recorded")
    if len(fitting) > 1:
        raise CommandError(
            f"{len(fitting)} files have {typed} in their names, such as {', '.join(fitting[:3])}"
        )
    found: tuple[Excerpt, Colours] = yield lambda database: walk.sight.source(database, fitting[0])
    walk.other, walk.cursor, walk.focus = Other(fitting[0], *found), None, "source"
    yield from counting(walk)
    yield Say(". shows again where the program is")


CONTINUING = Group(
    "Breakpoints: 12, file.py:12, a function; with a condition behind it: 12 total > 100",
    (
        Command(
            "continue",
            ("c",),
            "continues: to a breakpoint, a watched variable's change, or an exception that nobody catches",
            partial(go_on, backwards=False),
        ),
        Command("continue-back", ("C",), "the same backwards", partial(go_on, backwards=True)),
        Command("break", ("b",), "asks for a breakpoint; on a line that has one, removes it", break_at),
        Command("breakpoints", ("B",), "all breakpoints and watched variables; Enter removes one", breaks),
    ),
)
JUMPING = Group(
    "Other times and files",
    (
        Command(
            "jump",
            ("j",),
            "to a time: +1.5s, -2m from here; 1.5s from the start; 12:03:04.5; 2026-11-22; or an event's id",
            ask_time,
        ),
        Command("file", ("f",), "another file, by its name; Tab completes", ask_file),
    ),
)
