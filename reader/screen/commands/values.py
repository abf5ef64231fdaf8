"""Commands that follow values: to the next event with the same one, to the events of an object, to
the return that produced it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...render import SIGNS
from ...rows import Row, text
from .. import navigation, objects
from ..effects import Choice, Choose, CommandError, Result, RunTask, Say, Task
from ..lines import clock, several
from ..session import Session
from .command import Command, Count, Group, current_row, task, values
from .finding import set_filter
from .moving import go, next_of

if TYPE_CHECKING:
    from ...database import Database

_MOST = 200  # events of an object in a menu
_SHORT = 40  # characters of a value in a message
_Value = tuple[str, str]  # an argument's name and value


def next_value(session: Session, count: Count) -> Result:
    return _value(session, count, False)


def previous_value(session: Session, count: Count) -> Result:
    return _value(session, count, True)


def _value(session: Session, count: Count, backwards: bool) -> Result:
    """Goes to the next event with the same value: of the only argument, or of a chosen one."""
    given = values(current_row(session))
    if not given:
        raise CommandError("this event has no value")
    word = "earlier" if backwards else "later"

    @task
    def of(name: str, value: str) -> Task[None]:
        move = partial(navigation.next_of_value, name=name, value=value, backwards=backwards)
        nothing, events = f"no {word} event with {name} = {value[:_SHORT]}", session.browser.events()
        if objects.objects_in(value) == [value]:  # not those of another one at its address
            row = current_row(session)
            life = yield lambda database: objects.life(database, row, value)
            events = life.within(events)
        yield from next_of(session, move, count, nothing, events)

    if len(given) == 1:
        return of(*given[0])
    last = session.last_value
    if last in given and session.repeated:  # the key again: the same argument
        return of(*last)

    def chosen(value: _Value) -> RunTask:
        session.last_value = value
        return of(*value)

    choices = [Choice(f"{name} = {value}", (name, value)) for name, value in given]
    return Choose(f"{word} event with the value of", choices, chosen)


@task
def follow_object(session: Session, count: Count) -> Task[None]:
    """Shows the events of an object, or goes to the return that produced a value. Where an
    exception passes, the function's arguments are offered, too."""
    row = current_row(session)
    rows = [row]
    if row[6] in ("raise", "exception"):
        call = yield lambda database: navigation.own(database, row)
        rows += [call] if call else []
    choices: dict[_Value, tuple[Choice, Row]] = {}
    for each in rows:
        for name, value in [*values(each), *objects.attributes_of(each)]:
            for inside in objects.objects_in(value) or [value]:
                label = f"{name} = {value}" if inside == value else f"{inside} in {name}"
                choices.setdefault((name, inside), (Choice(label, (name, inside)), each))
    if not choices:
        raise CommandError("this event has no value")

    def chosen(value: _Value) -> RunTask:
        is_object = bool(objects.objects_in(value[1]))
        return (_events_of if is_object else _producer)(session, choices[value][1], *value)

    if len(choices) == 1:
        yield from chosen(next(iter(choices))).task
    else:
        yield Choose("follow", [choice for choice, _ in choices.values()], chosen)


@task
def _events_of(session: Session, row: Row, name: str, value: str) -> Task[None]:
    """A menu of the events in which an object appears, and of the filter for them."""

    def question(database: Database) -> tuple[objects.Life, list[Row], bool]:
        life = objects.life(database, row, value)
        return life, *objects.appearances(database, life, row, _MOST)

    life, rows, are_more = yield question
    number = f"{len(rows)} events, and more" if are_more else f"{len(rows)} events"
    since = "from its birth on" if life.birth else "its birth was not recorded"
    choices = [Choice("a filter for its events", _filter_of(session, life))]
    choices += [
        Choice(_label(session, each, value), each, "here" if each[0] == row[0] else clock(each[2]))
        for each in rows
    ]

    def chosen(to: Row | str) -> RunTask:
        return set_filter(session, to) if isinstance(to, str) else RunTask(go(session, to))

    yield Choose(f"{value}: {number}, {since}", choices, chosen)


@task
def _producer(session: Session, row: Row, name: str, value: str) -> Task[None]:
    found = yield lambda database: objects.produced(database, row, value)
    if found is None:
        yield Say(f"no call that this function made has returned {name} = {value[:_SHORT]}")
    else:
        yield from go(session, found)


def _label(session: Session, row: Row, value: str) -> str:
    """An event, and the names under which an object is in it."""
    names = ", ".join(objects.names_of(row, value))
    function = text(row[8]) if row[8] else row[6]
    return f"{session.display.own(SIGNS[row[6]])} {function}  {names}"


def _filter_of(session: Session, life: objects.Life) -> str:
    """The filter that finds the events of an object."""
    from ...suggestions.completion import literal

    conditions = [f"value == {literal(f'%{life.value}%')}"]
    if several(session.sources)["process"]:
        conditions.append(f"pid == {life.pid}")
    started = next((run.started for run in session.runs if run.id == life.run), 0)
    for operator, bound in ((">=", life.after), ("<", life.before)):
        if bound and bound[0] >= started:
            conditions.append(f"time {operator} '+{bound[0] - started}ns'")
    return " and ".join(conditions)


# ---- the table ----------------------------------------------------------------------------

VALUES = Group(
    "Values and objects",
    (
        Command("next-value", ("a",), "to the next event with this argument's value", next_value),
        Command("previous-value", ("A",), "to the one before", previous_value),
        Command(
            "object",
            ("o",),
            "the events of this object from its birth on, and a filter for them; of a plain value: "
            "to the return that produced it",
            follow_object,
        ),
    ),
)
