"""What was true at a moment: the functions that were open, and their variables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ..query import Query
from ..rows import text
from .moment import Moment, after, arguments, joined, moments

if TYPE_CHECKING:
    from ..database import Database


class Item(NamedTuple):
    """A value, or a part of one. `items`: the parts of a container, the attributes of an object; a
    part's name is `[0]`, `['key']`, or that of an attribute."""

    name: str
    value: str
    type: str
    items: tuple[Item, ...] = ()


class Variable(NamedTuple):
    """A variable of a function. `changed`: the id of the event that has this value as news; None:
    it lies further back than the event's segment. `is_new`: the function's last event tells it."""

    value: Item
    changed: int | None
    is_new: bool

    @property
    def name(self) -> str:
        return self.value.name


class Frame(NamedTuple):
    """A function that is open at a moment. `entered`: the event that entered it; `line`: where it
    is; `at`: the moment by which its variables are known."""

    entered: Moment
    at: Moment

    @property
    def line(self) -> int:
        return self.at.line

    @property
    def depth(self) -> int:
        return self.entered.depth


def entered(database: Database, id: int) -> list[Moment]:
    """The events that entered the functions that are open at an event, the innermost first."""
    return joined(database, "SELECT id AS entered, depth AS level FROM stack(?)", (id,), "level DESC")


def frame(database: Database, moment: Moment, entered: Moment, callee: Moment | None = None) -> Frame:
    """The frame that an event entered, at a moment: its last line up to then. callee: the event
    that entered the function which it called there, if that is known: the line is near it."""
    if moment.kind in ("line", "raise", "log") and moment.depth == entered.depth:
        return Frame(entered, moment)
    lines = Query("run = ? AND stream = ? AND depth = ?", (moment.run, moment.stream, entered.depth))
    lines = lines.also("kind = 'line' AND time >= ?", entered.time)
    found = moments(database, after(lines, callee or moment, True), True, 1)
    return Frame(entered, found[0] if found and found[0].id > entered.id else entered)


def variables(database: Database, at: Moment, entered: Moment | None = None) -> list[Variable]:
    """The variables of a moment's function, in its own order. entered: the event that entered it,
    if that is known. Empty, where nothing is known of them."""
    found = _variables(database, at.id)
    if found or entered is None or at.id == entered.id:
        return found
    lines = Query("run = ? AND stream = ? AND depth = ?", (at.run, at.stream, at.depth))
    lines = lines.also("kind = 'line' AND time >= ?", entered.time)
    before = moments(database, after(lines, at, True), True, 1)
    found = _variables(database, before[0].id) if before else _variables(database, entered.id)
    return [each._replace(is_new=False) for each in found]


def _variables(database: Database, id: int) -> list[Variable]:
    rows = database.query(
        "bbbnb",
        "SELECT CAST(name AS BLOB), CAST(value AS BLOB), CAST(type AS BLOB), changed,"
        " CAST(coalesce(items, '') AS BLOB) FROM variable(?) ORDER BY position",
        (id,),
    )
    return [
        Variable(Item(text(name), text(value), text(type), _items(items)), changed, changed == id)
        for name, value, type, changed, items in rows
        if not name.startswith(b".")  # the iterator of a comprehension
    ]


def _items(told: bytes) -> tuple[Item, ...]:
    return _as_items(json.loads(told)) if told else ()


def _as_items(told: list[dict[str, Any]]) -> tuple[Item, ...]:
    return tuple(
        Item(each["name"], each["value"], each["type"], _as_items(each.get("items", []))) for each in told
    )


def outcome(database: Database, at: Moment) -> Item | None:
    """What an end, a raise or a log tells: a return value, an exception, a message."""
    if at.enters or at.kind == "line":
        return None
    told = arguments(database, at.id)
    return Item(told[0].name, told[0].value, told[0].type) if told else None
