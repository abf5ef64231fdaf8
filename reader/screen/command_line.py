"""Commands that are typed behind `:`: those of this table, those of keys.py, and switches, by their names."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

from ..filter_units import duration as nanoseconds
from .keys import SWITCHES, TYPED

if TYPE_CHECKING:
    from .actions import Actions
    from .browser import Task

Made: TypeAlias = "Task[None] | None"
_WIDEST = 200  # columns
_MOST = 1 << 30  # a number that is typed


class LineCommand(NamedTuple):
    """A command that has something to be given, or a short name. argument: as help shows it."""

    name: str
    argument: str
    do: Callable[[Actions, str], Made]
    help: str


def _refuse(message: str) -> NoReturn:
    from .actions import Mistake

    raise Mistake(message)


def number(text: str, what: str) -> int:
    """What was typed as a number of something. Raises Mistake."""
    if not text.strip().isdecimal():
        _refuse(f"give a number of {what}")
    return min(int(text), _MOST)


def _open(actions: Actions, file: str) -> Made:
    return actions.open(os.path.expanduser(file) or actions.app.path)


def _run(actions: Actions, wanted: str) -> Made:
    numbers = [run.id for run in actions.app.runs]
    if wanted != "all" and not (wanted.isdecimal() and int(wanted) in numbers):
        shown = ", ".join(map(str, numbers[-10:])) or "none"
        _refuse(f"there are the recordings {'…, ' if len(numbers) > 10 else ''}{shown}, and: all")
    return actions.show_run(None if wanted == "all" else int(wanted))


def _next_run(step: int) -> Callable[[Actions, str], Made]:
    """Another recording: so many further on; 0: the first one."""

    def do(actions: Actions, _: str) -> Made:
        numbers = [run.id for run in actions.app.runs]
        if not numbers:
            _refuse("there is no recording yet")
        now = actions.browser.view.run
        at = numbers.index(now) if now in numbers else len(numbers) - 1
        index = at + step if step else 0
        if not 0 <= index < len(numbers):
            _refuse("this is the newest recording" if index > 0 else "this is the oldest recording")
        return actions.show_run(numbers[index])

    return do


def _slow(actions: Actions, wanted: str) -> Made:
    try:
        actions.app.slow = nanoseconds(wanted)
    except ValueError as error:
        _refuse(str(error))
    return actions.next_slow(None)


def _width(actions: Actions, wanted: str) -> Made:
    column, _, columns = wanted.partition(" ")
    if column not in ("time", "duration", "process", "thread", "run"):
        _refuse("width of: time, duration, run, process or thread, and a number; 0: as it needs")
    widths = dict(actions.app.look.widths)
    widths[column] = min(number(columns, "columns"), _WIDEST)
    actions.app.change_look(dataclasses.replace(actions.app.look, widths=tuple(widths.items())))
    return actions.browser.settle()


LINE_COMMANDS = (
    LineCommand("q", "", lambda actions, _: actions.quit(None), "ends the reader"),
    LineCommand("e", "FILE", _open, "opens another database"),
    LineCommand("n", "", _next_run(1), "the next recording in the database"),
    LineCommand("p", "", _next_run(-1), "the one before"),
    LineCommand("x", "", _next_run(0), "the first one"),
    LineCommand("run", "N|all", _run, "shows recording N, or all"),
    LineCommand("f", "", lambda actions, _: actions.where(None), "where we are"),
    LineCommand("filter", "F", lambda actions, wanted: actions.set_filter(wanted), "sets a filter"),
    LineCommand("time", "T", lambda actions, wanted: actions.go_to_time(wanted), "goes to a time"),
    LineCommand("slow", "DURATION", _slow, "what counts as a slow call, such as 5ms"),
    LineCommand(
        "level", "N", lambda actions, n: actions.levels(number(n, "levels")), "shows N levels of calls"
    ),
    LineCommand("width", "COLUMN N", _width, "the width of a column: time, duration, run, process, thread"),
    LineCommand("copy", "FILE", lambda actions, file: actions.copy(None, file), "writes the line to a file"),
    LineCommand(
        "copy-value",
        "FILE",
        lambda actions, file: actions.copy_value(None, file),
        "writes the value to a file",
    ),
)
_KEYED = {command.name for command in TYPED}
_SWITCHES = {switch.name for switch in SWITCHES}


def names() -> dict[str, str]:
    """What can be typed, with what it does; but for names of one letter."""
    known = {command.name: command.help for command in TYPED}
    known |= {each.name: each.help for each in LINE_COMMANDS if len(each.name) > 1 and each.name not in known}
    return known | {switch.name: switch.help for switch in SWITCHES}


def run_line(actions: Actions, line: str) -> Made:
    """Does what was typed, and may give a task. Raises Mistake."""
    word, _, rest = line.strip().lstrip(":").strip().partition(" ")
    rest = rest.strip()
    if not word:
        return None
    if word.isdecimal() and not rest:
        return actions.first(number(word, "events"))
    if word.endswith("%") and word[:-1].isdecimal():
        return actions.percent(number(word[:-1], "per cent"))
    for command in LINE_COMMANDS:
        # a name that a key has, too, is that command's where nothing is given
        if word == command.name and (rest or word not in _KEYED):
            return command.do(actions, rest)
    if word in _SWITCHES and not rest:
        return actions.set(word)
    if word not in _KEYED:
        from difflib import get_close_matches

        near = get_close_matches(word, names(), 1)
        _refuse(f"there is no command {word}" + (f": did you mean {near[0]}?" if near else "; h shows all"))
    count = number(rest, "") if rest.isdecimal() else None
    made: Made = getattr(actions, word.replace("-", "_"))(count)
    return made
