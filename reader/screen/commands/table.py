"""The table of all commands: for app.py, for `:`, and for help.

Names of keys are urwid's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from ..effects import Ask, CommandError, Quit, ReadAnew, Result, RunTask, ShowPage, Task
from ..live import reopen
from ..session import Session
from ..view import View
from . import finding, moving, showing, timing, values
from .command import Command, Count, Group, LetterCommand, TypedCommand, number, task
from .help import Help, help_lines
from .showing import SWITCHES

# ---- everything else ----------------------------------------------------------------------


def ask_command(session: Session, count: Count) -> Ask:
    from ..prompt_completion import complete_command

    return Ask(
        ":", partial(run_typed, session), history="command", complete=partial(complete_command, names())
    )


def read_anew(session: Session, count: Count) -> Result:
    return ReadAnew(), RunTask(session.browser.read_anew())


def show_help(session: Session, count: Count) -> ShowPage:
    return ShowPage("keys", help_lines(HELP, session.display))


def quit(session: Session, count: Count) -> Quit:
    return Quit()


def open_database(session: Session, file: str) -> RunTask:
    return RunTask(reopen(os.path.expanduser(file) or session.path))


@task
def show_run(session: Session, run: int | None) -> Task[None]:
    session.browser.remember()
    yield from session.browser.open(View(run, session.browser.view.filter))


def choose_run(session: Session, wanted: str) -> RunTask:
    numbers = [run.id for run in session.runs]
    if wanted != "all" and not (wanted.isdecimal() and int(wanted) in numbers):
        known = ", ".join(map(str, numbers[-10:])) or "none"
        raise CommandError(f"there are the recordings {'…, ' if len(numbers) > 10 else ''}{known}, and: all")
    return show_run(session, None if wanted == "all" else int(wanted))


@task
def diff(session: Session, wanted: str) -> Task[None]:
    """Shows the differences between this recording and another one, the older one first."""
    from ...diff import as_text, compare
    from ..text import Line, shown

    here = session.run_here()
    known = {run.id: run for run in session.runs if run is not here}
    if here is None or not known:
        raise CommandError("there is no other recording in this database; pytrace diff A B compares two")
    if not wanted:  # the one before
        wanted = str(max((id for id in known if id < here.id), default=min(known)))
    if not (wanted.isdecimal() and int(wanted) in known):
        raise CommandError(f"this is recording {here.id}; there are also: {', '.join(map(str, known))}")
    runs = sorted((here, known[int(wanted)]), key=lambda run: run.id)
    facts = yield lambda database: compare(*((database, run) for run in runs))
    lines = [shown(line, session.display.ascii) for line in as_text(facts).split("\n")]
    yield ShowPage(
        f"what differs between recordings {runs[0].id} and {runs[1].id}",
        [Line(line, () if line.startswith(" ") else ((0, len(line), "title"),)) for line in lines],
    )


def _next_run(step: int) -> Callable[[Session, str], RunTask]:
    """Shows another recording: `step` further on; 0: the first one."""

    def do(session: Session, _: str) -> RunTask:
        numbers = [run.id for run in session.runs]
        if not numbers:
            raise CommandError("there is no recording yet")
        now = session.browser.view.run
        at = numbers.index(now) if now in numbers else len(numbers) - 1
        index = at + step if step else 0
        if not 0 <= index < len(numbers):
            raise CommandError(
                "this is the newest recording" if index > 0 else "this is the oldest recording"
            )
        return show_run(session, numbers[index])

    return do


# ---- the tables ---------------------------------------------------------------------------

GENERAL = Group(
    "Everything else",
    (
        LetterCommand("switch", ("-",), "with a letter: one of the switches below", showing.switch),
        Command("command", (":",), "a command by its name, see below", ask_command, is_typed=False),
        Command("redraw", ("ctrl l", "ctrl r", "R"), "reads and draws everything anew", read_anew),
        Command("help", ("h",), "this page", show_help, stays=True),
        Command("quit", ("q", "Q", "ZZ"), "ends the reader; the program goes on", quit),
    ),
)
GROUPS = (
    moving.MOVING,
    moving.JUMPING,
    values.VALUES,
    timing.SLOW,
    finding.SEARCHING,
    finding.FILTERING,
    showing.FOLLOWING,
    showing.LOOKING,
    GENERAL,
)
COMMANDS = tuple(command for group in GROUPS for command in group.commands)
BY_KEY = {key: command for command in COMMANDS for key in command.keys}
# keys that wait for a second one: a letter, or the Z of ZZ
PREFIXES = ("Z", *(key for command in COMMANDS if isinstance(command, LetterCommand) for key in command.keys))
TYPED = tuple(each for each in COMMANDS if isinstance(each, Command) and each.is_typed)

TYPED_COMMANDS = (
    TypedCommand("q", "", lambda session, _: Quit(), "ends the reader"),
    TypedCommand("e", "FILE", open_database, "opens another database"),
    TypedCommand("n", "", _next_run(1), "the next recording in the database"),
    TypedCommand("p", "", _next_run(-1), "the one before"),
    TypedCommand("x", "", _next_run(0), "the first one"),
    TypedCommand("run", "N|all", choose_run, "shows recording N, or all"),
    TypedCommand("diff", "N", diff, "what differs between this recording and N; without N: the one before"),
    TypedCommand("f", "", lambda session, _: showing.where(session, None), "where we are"),
    finding.FILTER,
    TypedCommand("time", "T", moving.go_to_time, "goes to a time"),
    TypedCommand(
        "slow",
        "[DURATION]",
        timing.slow,
        "l finds calls that took so long, such as 5ms; alone: the worst ones first",
    ),
    finding.LEVEL,
    showing.WIDTH,
    showing.COPY,
    showing.COPY_VALUE,
)
_KEYED = {command.name: command for command in TYPED}
_SWITCHES = {switch.name: switch for switch in SWITCHES}
HELP = Help(GROUPS, SWITCHES, TYPED_COMMANDS, TYPED)


# ---- what is typed ------------------------------------------------------------------------


def names() -> dict[str, str]:
    """The names that can be typed behind `:`, with their help; without those of one letter."""
    known = {command.name: command.help for command in TYPED}
    known |= {
        each.name: each.help for each in TYPED_COMMANDS if len(each.name) > 1 and each.name not in known
    }
    return known | {switch.name: switch.help for switch in SWITCHES}


def run_typed(session: Session, line: str) -> Result:
    """Runs the command typed behind `:`. Raises CommandError."""
    word, _, rest = line.strip().lstrip(":").strip().partition(" ")
    rest = rest.strip()
    if not word:
        return None
    if word.isdecimal() and not rest:
        return moving.first(session, number(word, "events"))
    if word.endswith("%") and word[:-1].isdecimal():
        return moving.percent(session, number(word[:-1], "per cent"))
    for typed in TYPED_COMMANDS:
        # without an argument, the name of a key's command means that command
        if word == typed.name and (rest or word not in _KEYED):
            return typed.do(session, rest)
    if word in _SWITCHES and not rest:
        return _SWITCHES[word].do(session)
    command = _KEYED.get(word)
    if command is None:
        _refuse(word)
    return command.do(session, number(rest, "") if rest.isdecimal() else None)


def _refuse(word: str) -> NoReturn:
    from difflib import get_close_matches

    near = get_close_matches(word, names(), 1)
    hint = f": did you mean {near[0]}?" if near else "; h shows all"
    raise CommandError(f"there is no command {word}{hint}")
