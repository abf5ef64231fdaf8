"""Steps through time, each forwards and, with the capital letter, backwards; through the stack; and
through the stops that were made."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...screen.bookmarks import Place
from ...screen.effects import CommandError, Result, Say, Task
from ..history import History
from ..moment import Moment
from .command import Command, Count, Find, Group, LetterCommand, counting, going, task
from .walk import Walk

if TYPE_CHECKING:
    from ...database import Database
    from .scene import Scene


@task
def way(walk: Walk, count: Count, find: Find, backwards: bool, nothing: str = "") -> Task[None]:
    """One of the ways, so many times."""
    if walk.scene is None:
        yield from begin(walk)
        return
    yield from going(walk, find, backwards, max(count or 1, 1), nothing)


def begin(walk: Walk, at: Moment | None = None) -> Task[None]:
    """Shows the first moment, if there is one by now."""
    scene = yield lambda database: walk.sight.first(database, at)
    if scene is not None:
        if walk.scene is None:
            yield Say("h shows the keys")
        walk.arrive(scene)
        yield from counting(walk)


def step(walk: Walk, backwards: bool) -> Find:
    """Into whatever is next, in this thread or in all."""
    if not walk.across:
        return partial(History.step, backwards=backwards)
    return partial(_across, backwards=backwards)


def _across(history: History, moment: Moment, backwards: bool) -> Moment | None:
    for found in history.hits(moment, "(>= depth 0)", backwards):
        if history._nearest_stop(found, backwards).id == found.id:
            return found
    return None


def _ways(name: str, key: str, help: str, find: Find, back: Find, nothing: str = "") -> tuple[Command, ...]:
    """A command, and the same backwards by the capital letter."""
    return (
        Command(name, (key,), help, partial(way, find=find, backwards=False, nothing=nothing)),
        Command(f"{name}-back", (key.upper(),), f"{help}, backwards",
                partial(way, find=back, backwards=True, nothing=nothing)),
    )  # fmt: skip


def _step(walk: Walk, count: Count, backwards: bool) -> Result:
    return way(walk, count, step(walk, backwards), backwards)


# ---- the stack ----------------------------------------------------------------------------


@task
def frame(walk: Walk, count: Count, direction: int) -> Task[None]:
    """Shows a function further out in the stack, or further in."""
    scene = walk.scene
    if scene is None or not scene.stack:
        raise CommandError("there is no function here")
    wanted = max(min(scene.chosen + direction * (count or 1), len(scene.stack) - 1), 0)
    if wanted == scene.chosen:
        yield Say("this is the outermost function" if direction > 0 else "this is where it happens")
        return
    yield from choose(walk, wanted)


def choose(walk: Walk, place: int) -> Task[None]:
    """Shows a function of the stack."""
    moment = walk.moment
    walk.arrive((yield lambda database: walk.sight.look(database, moment, place)))
    yield from counting(walk)


# ---- stops --------------------------------------------------------------------------------


@task
def back(walk: Walk, count: Count) -> Task[None]:
    """To the stop before."""
    yield from _through(walk, Walk.earlier, count or 1, "this is the first stop")


@task
def forward(walk: Walk, count: Count) -> Task[None]:
    """To the stop that `back` came from."""
    yield from _through(walk, Walk.later, count or 1, "this is the last stop")


def _through(walk: Walk, find: object, count: int, nothing: str) -> Task[None]:
    place: Place | None = None
    for _ in range(count):
        following = find(walk, place or walk.place)  # type: ignore[operator]
        if following is None:
            break
        place = following
    if place is None:
        yield Say(nothing)
    else:
        yield from show(walk, place, False)


def show(walk: Walk, place: Place, remember: bool = True) -> Task[None]:
    """Goes to a place that was kept."""
    assert place.position is not None
    id, chosen = place.position[1], place.row or 0

    def question(database: Database) -> Scene | None:
        found = History(database, walk.run.id).at(id)
        return walk.sight.look(database, found, chosen) if found else None

    scene = yield question
    if scene is None:
        raise CommandError("this moment has been removed, as the recording is bounded")
    walk.arrive(scene, remember)
    yield from counting(walk)


def show_moment(walk: Walk, moment: Moment) -> Task[None]:
    """Goes to a moment that is known."""
    walk.arrive((yield lambda database: walk.sight.look(database, moment)))
    yield from counting(walk)


def mark(walk: Walk, letter: str) -> Result:
    """Marks this moment."""
    _ = walk.moment
    try:
        walk.marks.set(letter, walk.place)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return Say(f"mark {letter}: '{letter} comes back")


@task
def to_mark(walk: Walk, letter: str) -> Task[None]:
    """Goes to a mark; '' to the last stop, '^ and '$ to the ends."""
    if letter in ("^", "$"):
        yield from going(walk, lambda history, _: history.first(letter == "$"), letter == "^")
        return
    place = walk.trail.latest if letter in ("'", "`") else walk.marks.get(letter)
    if place is None:
        raise CommandError(f"there is no mark {letter}: m and a letter make one")
    yield from show(walk, place)


def turn_across(walk: Walk, count: Count) -> Result:
    """Steps stay in one thread, or follow the time over all."""
    walk.across = not walk.across
    return Say("steps follow the time over all threads" if walk.across else "steps stay in one thread")


def _iteration(history: History, moment: Moment, backwards: bool) -> Moment | None:
    if moment.kind != "line":
        raise CommandError("this is no line: i goes from a line to its next run in this call")
    return history.iteration(moment, backwards)


STEPS = Group(
    "Steps: with the capital letter they go backwards; a number before a key repeats it",
    (
        *_ways("next", "n", "the next line, over what it calls",
               partial(History.next, backwards=False), partial(History.next, backwards=True)),
        Command("step", ("s",), "the next line, into what it calls", partial(_step, backwards=False)),
        Command("step-back", ("S",), "the next line, into what it calls, backwards",
                partial(_step, backwards=True)),
        *_ways("out", "o", "out of the function: to its end (backwards: to its call)",
               partial(History.finish, backwards=False), partial(History.finish, backwards=True)),
        *_ways("iteration", "i", "the next time that this call runs this line: the next iteration",
               partial(_iteration, backwards=False), partial(_iteration, backwards=True),
               "this call runs the line no more that way"),
        *_ways("exception", "e", "the next exception that is raised, in any thread",
               partial(History.raised, backwards=False), partial(History.raised, backwards=True),
               "no further exception that way"),
    ),
)  # fmt: skip
PLACES = Group(
    "Places",
    (
        Command("up", ("u",), "up the stack: the function that called", partial(frame, direction=1)),
        Command("down", ("d",), "down the stack", partial(frame, direction=-1)),
        Command("back", ("backspace", "ctrl o", "meta left"), "back through the stops", back),
        Command("forward", ("\\", "meta right"), "forward again", forward),
        LetterCommand("mark", ("m",), "with a letter: marks this moment", mark),
        LetterCommand(
            "to-mark",
            ("'", "`"),
            "with a letter: to that mark; '' to the last stop, '^ '$ to the ends",
            to_mark,
        ),
    ),
)
