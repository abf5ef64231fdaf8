"""The kinds of commands, and what several of them do: go to another moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ...screen.commands.command import Count as Count
from ...screen.commands.command import task as task
from ...screen.effects import InBackground, Result, Say, Task
from ..history import History
from ..moment import Moment
from .scene import Scene
from .walk import Walk

if TYPE_CHECKING:
    from ...database import Database

Find: TypeAlias = Callable[[History, Moment], "Moment | None"]
_COLOURS = "colours"  # the question for the colours of the source
TIMES = "times"  # the question how often the line runs
_AHEAD = "the recording ends here"
_BEHIND = "the recording begins here"


class Command(NamedTuple):
    """A command of a key. do: called with the number that was typed before the key. pane: the key
    means this only while that pane has the focus."""

    name: str
    keys: tuple[str, ...]
    help: str
    do: Callable[[Walk, Count], Result]
    pane: str = ""


class LetterCommand(NamedTuple):
    """A command of a key and a letter after it. do: called with the letter."""

    name: str
    keys: tuple[str, ...]
    help: str
    do: Callable[[Walk, str], Result]
    pane: str = ""


class Group(NamedTuple):
    """Commands of one kind, under a title."""

    title: str
    commands: tuple[Command | LetterCommand, ...]


def going(
    walk: Walk, find: Find, backwards: bool, count: int = 1, nothing: str = "", remember: bool = True
) -> Task[bool]:
    """Goes to a moment, `count` times from one to the next, as far as there are any. nothing: said
    if there is none; "": the recording ends. The answer: whether something was found."""
    start = walk.moment

    def question(database: Database) -> tuple[Scene | None, int]:
        history, here, found = History(database, walk.run.id), start, 0
        while found < count and (following := find(history, here)) is not None:
            here, found = following, found + 1
        return (walk.sight.look(database, here) if found else None), found

    scene, found = yield question
    if scene is not None:
        walk.arrive(scene, remember)
        yield from counting(walk)
    if found < count:
        yield from ended(walk, backwards, nothing)
    return bool(found)


def counting(walk: Walk) -> Task[None]:
    """Asks in the background how often the line of this moment runs, and for the colours."""
    scene, colours = walk.scene, walk.source[1]
    if not colours.is_whole:
        yield InBackground(_COLOURS, lambda database: colours.find(database.pause), lambda _: None)
    if scene is None or scene.moment.kind != "line" or walk.times is not None:
        return
    moment = scene.moment

    def then(times: tuple[int, int]) -> Result:
        if walk.scene is not None and walk.scene.moment.id == moment.id:
            walk.times = times
        return None

    yield InBackground(TIMES, lambda database: History(database, moment.run).times(moment), then)


def ended(walk: Walk, backwards: bool, nothing: str = "") -> Task[None]:
    """Says that there is no further moment."""
    run = walk.run
    if not nothing and backwards and run.evicted:
        nothing = f"{_BEHIND}: {run.evicted:,} events before were removed, as it is bounded"
    if not backwards and run.finished is None:
        runs = yield lambda database: database.runs()
        walk.run = run = next((each for each in runs if each.id == run.id), run)
        if run.finished is None:
            live = "the program is still running; this is all so far"
            nothing = f"{nothing}; {live}" if nothing else live
    yield Say(nothing or (_BEHIND if backwards else _AHEAD))
