"""All times that a line ran, as a table: time, variables of the line, and expressions."""

from __future__ import annotations

import re
from functools import partial
from keyword import iskeyword
from typing import TYPE_CHECKING

from ...screen.effects import Action, Ask, Column, Entry, Listed, Mistake, Result, RunTask, ShowList, Task
from ...screen.lines import clock
from ..expressions import Expression, ExpressionError, parse
from ..history import History
from ..hits import Hit, hits
from .command import Command, Count, Group, task
from .sought import _to
from .walk import Walk

if TYPE_CHECKING:
    from ...database import Database

_FIRST, _MOST = 100, 20_000  # rows
_NAMES = 6  # variables that have columns
_LONGEST = 200  # characters of a value
_KEYS = "123456789"
_NAME = re.compile(r"(?<![.\w])[^\W\d]\w*")


@task
def all_hits(walk: Walk, count: Count) -> Task[None]:
    """All times that the line under the cursor ran."""
    place, run = (walk.file, walk.line), walk.moment.run

    def question(database: Database) -> Hit | None:
        return next(hits(History(database, run), place, (), 1), None)

    first = yield question
    text = next((text for number, text in walk.source[0].lines if number == place[1]), "")
    known = first.variables if first is not None else {}
    names = dict.fromkeys(name for name in _NAME.findall(text) if not iskeyword(name))
    columns = [name for name in names if name in known] or list(known)
    yield _table(walk, place, columns[:_NAMES], [])


def _table(walk: Walk, place: tuple[str, int], names: list[str], added: list[Expression]) -> ShowList:
    titles = [*names, *(each.text for each in added)]
    columns = [Column("time", "0")]
    columns += [Column(title, key) for title, key in zip(titles, _KEYS, strict=False)]
    actions = {
        "enter": Action("goes there", lambda entry: RunTask(_to(walk, int(str(entry.id))))),
        "+": Action("one more column", lambda entry: _ask(walk, place, names, added)),
    }
    ask = partial(_rows, run=walk.moment.run, place=place, names=names, added=added)
    listed = Listed(
        (place, tuple(titles)), partial(ask, most=_MOST), partial(ask, most=_FIRST), "this line never ran"
    )
    return ShowList("hits", f"line {place[1]}, at most {_MOST:,} times", columns, actions, listed)


def _ask(walk: Walk, place: tuple[str, int], names: list[str], added: list[Expression]) -> Result:
    def done(text: str) -> Result:
        more = [*added, parse(text)] if text.strip() else added
        return _table(walk, place, names, more)

    def check(text: str) -> Mistake | None:
        try:
            if text.strip():
                parse(text)
        except ExpressionError as error:
            return Mistake(error.position, error.end, error.message, True)
        return None

    return Ask(
        "column: ", done, history="expression", check=check, left=lambda: _table(walk, place, names, added)
    )


def _rows(
    database: Database, run: int, place: tuple[str, int], names: list[str], added: list[Expression], most: int
) -> list[Entry]:
    found = list(hits(History(database, run), place, added, most))
    width = len(f"{most:,}")
    return [
        Entry(each.moment.id, (f"{each.nth:>{width},}  {clock(each.moment.time)}", *_texts(each, names)))
        for each in found
    ]


def _texts(hit: Hit, names: list[str]) -> list[str]:
    values = [hit.variables[name].value[:_LONGEST] if name in hit.variables else "" for name in names]
    return values + [each.text[:_LONGEST] for each in hit.results]


HITS = Group(
    "Tables",
    (
        Command("hits", ("a",), "all times that the line under the cursor ran; + adds expressions", all_hits),
    ),
)  # fmt: skip
