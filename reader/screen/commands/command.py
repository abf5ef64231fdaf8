"""The kinds of commands: rows of the tables, with the function itself; and helpers of several
commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeAlias

from ...rows import Row
from .. import objects
from ..effects import CommandError, Result, RunTask, Task
from ..session import Session

P = ParamSpec("P")
Count: TypeAlias = "int | None"


class Command(NamedTuple):
    """A command of a key. do: called with the number that was typed before the key."""

    name: str
    keys: tuple[str, ...]
    help: str
    do: Callable[[Session, Count], Result]
    stays: bool = False  # following the end goes on
    is_typed: bool = True  # behind `:`, too


class LetterCommand(NamedTuple):
    """A command of a key and a letter after it. do: called with the letter."""

    name: str
    keys: tuple[str, ...]
    help: str
    do: Callable[[Session, str], Result]
    stays: bool = False


class TypedCommand(NamedTuple):
    """A command that is typed behind `:`, with an argument or a short name. argument: as help shows
    it. do: called with the given text."""

    name: str
    argument: str
    do: Callable[[Session, str], Result]
    help: str


class Switch(NamedTuple):
    """A switch: `-` and a letter turn it, or its name behind `:`."""

    letter: str
    name: str
    help: str
    do: Callable[[Session], Result]


class Group(NamedTuple):
    """Commands of one kind, under a title."""

    title: str
    commands: tuple[Command | LetterCommand, ...]


def task(function: Callable[P, Task[None]]) -> Callable[P, RunTask]:
    """Makes a command of a task: the result returns the effect that runs the task."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> RunTask:
        return RunTask(function(*args, **kwargs))

    return run


def current_row(session: Session) -> Row:
    """The event under the cursor. Raises CommandError."""
    item = session.browser.current
    if item is None:
        raise CommandError("there is no event here")
    return item.row


def number(text: str, what: str) -> int:
    """A typed number. what: names it in the CommandError that a bad one raises."""
    if not text.strip().isdecimal():
        raise CommandError(f"give a number of {what}")
    return min(int(text), _MOST)


_MOST = 1 << 30


def values(row: Row) -> list[tuple[str, str]]:
    """Names and values of an event; of objects with attributes their type and address."""
    from ...render import arguments

    return [(each["name"], objects.shown(each)) for each in arguments(row[13])]
