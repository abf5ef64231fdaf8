"""Objects and values: every event in which an object appears during its life, and the return that
produced a value. The database thread calls these functions.

A recording shows an object by its type and address, and addresses are used again. So an object's
life goes from its birth, the call of its `__init__`, to the next birth at the same address in the
same process. If none of its type's own `__init__` was recorded, it begins with its first event.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..query import Query
from ..query import stack as open_calls
from ..render import arguments
from ..rows import Row
from .navigation import caller, of_text, own
from .pages import after, before, find_first, position_of
from .view import Position

if TYPE_CHECKING:
    from ..database import Database

_OBJECT = re.compile(r"<(?:[\w.]|<locals>)+ at (0x[0-9a-f]+)>")


class Life(NamedTuple):
    """The life of an object. value: as it is shown; birth: the call of its `__init__`; None: it was
    not recorded. after, before: all of its events are between these positions; None: there is no
    other object at the address."""

    value: str
    run: int
    pid: int
    birth: Row | None
    after: Position | None
    before: Position | None

    def within(self, query: Query) -> Query:
        """The events of a query that are in the process and in the time of the object."""
        query = query.also("run = ? AND pid = ?", self.run, self.pid)
        query = query.behind(*self.after) if self.after else query
        return query.before(*self.before) if self.before else query

    def events(self) -> Query:
        """The events in which the object appears, under any name, also in lists and the like."""
        return self.within(Query(of_text(f"%{self.value}%", '(!= type "str")', field="either"), ()))


def shown(argument: dict[str, Any]) -> str:
    """An argument's value; an object with attributes by its type and address."""
    return str(argument.get("object", argument["value"]))


def attributes_of(row: Row) -> list[tuple[str, str]]:
    """Names and values of the attributes in an event that hold objects."""
    return [
        (f"{each['name']}.{attribute['name']}", attribute["value"])
        for each in arguments(row[13])
        for attribute in each.get("attributes", ())
        if objects_in(attribute["value"])
    ]


def objects_in(value: str) -> list[str]:
    """The objects in a value as it is shown: itself, or those in a container."""
    if value.startswith(("'", '"', "b'", 'b"')):  # a text may say anything
        return []
    return list(dict.fromkeys(found[0] for found in _OBJECT.finditer(value)))


def life(database: Database, row: Row, value: str) -> Life:
    """The life of an object of an event. value: as it is shown there."""
    found = _OBJECT.fullmatch(value)
    assert found
    births = Query("run = ? AND pid = ? AND kind = 'call'", (row[1], row[3])).also(
        of_text(
            f"<% at {found[1]}>", '(= func "__init__") (= position 0) (not (like name "_%.%"))', field="text"
        )
    )
    start = find_first(database, births, (row[2], row[0] + 1), backwards=True)
    start = start and _whole_birth(database, start)
    birth = start if start and _self(start) == value else None
    end = find_first(database, births, position_of(row))
    while end and (whole := _whole_birth(database, end)) != end:  # an inherited __init__
        if start is None or whole[0] != start[0]:
            end = whole
            break
        end = find_first(database, births, position_of(end))
    return Life(
        value,
        row[1],
        row[3],
        birth,
        (start[2], start[0] - (birth is not None)) if start else None,
        position_of(end) if end else None,
    )


def appearances(database: Database, life: Life, here: Row, most: int) -> tuple[list[Row], bool]:
    """Events in which an object appears: the first, and those around an event; and whether there
    are others."""
    query, position = life.events(), position_of(here)
    earlier, is_first = before(database, query, position, most // 2)
    later, is_last = after(database, query, (position[0], position[1] - 1), most // 2)
    first = find_first(database, query, None) if not is_first else None
    return [*([first] if first else []), *earlier, *later], not (is_first and is_last)


def produced(database: Database, row: Row, value: str) -> Row | None:
    """The latest return before an event that handed the same value to the same caller: of an
    argument, to the function that makes the call; of any other value, to the event's function."""
    is_call = row[6] == "call"
    start = caller(database, row) if is_call else own(database, row)
    if start is None:
        return None
    returns = Query("run = ? AND pid = ? AND tid = ?", (row[1], row[3], row[4])).also(
        "kind IN ('return', 'yield') AND depth = ? AND time >= ?", start[11] + 1, start[2]
    )
    found = find_first(database, returns.also(of_text(value, exact=True)), position_of(row), backwards=True)
    return found if found is not None and position_of(found) > position_of(start) else None


def names_of(row: Row, value: str) -> list[str]:
    """The names under which an object appears in an event."""
    return [each["name"] for each in arguments(row[13]) if value in each["value"] or value == shown(each)]


def _whole_birth(database: Database, call: Row) -> Row:
    """The outermost `__init__` of the same object that is open at one: a type calls those that it
    inherits."""
    value = _self(call)
    return next((each for each in open_calls(database, call[0]) if _is_birth(each, value)), call)


def _is_birth(row: Row, value: str) -> bool:
    return row[6] == "call" and row[8].split(b".")[-1] == b"__init__" and _self(row) == value


def _self(row: Row) -> str:
    given = arguments(row[13])
    return shown(given[0]) if given else ""
