"""What a client is shown of a moment: functions that are open, their scopes and variables.

Each frame and each container gets a number, by which the client asks for more. Numbers are never
used again, and hold until the session stops somewhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...query import Query
from ..history import History
from ..moment import Moment
from ..state import Frame, Item, entered, frame, outcome, variables
from .files import Files
from .protocol import RequestError

_MOST = 1000  # frames or variables in an answer
_INDEX = re.compile(r"\[\d+\]")
_OUTCOMES = {"return": "Return value", "yield": "Yielded value", "log": "Log message"}


class Shown(NamedTuple):
    """A frame that a client knows. where: the moment of its thread; callee: the event that entered
    the function it called; None: it is the innermost."""

    where: Moment
    entered: Moment
    callee: Moment | None

    @property
    def is_top(self) -> bool:
        return self.callee is None


class Group(NamedTuple):
    """Items that a client may ask for. path: the expression of what they are parts of; "": they
    are variables; ".": none gives it. shown: their frame."""

    items: tuple[Item, ...]
    path: str
    shown: Shown


class View:
    """The numbers of a stop."""

    def __init__(self, history: History, files: Files, started: int) -> None:
        """started: the run's start, ns since 1970."""
        self._history, self._files, self._started = history, files, started
        self._last = 0
        self._frames: dict[int, Shown] = {}
        self._groups: dict[int, Group | Shown] = {}  # Shown: its variables
        self._stacks: dict[int, list[Moment]] = {}
        self._known: dict[Shown, tuple[Item, ...]] = {}

    def forget(self) -> None:
        """The session stops somewhere else."""
        for kept in (self._frames, self._groups, self._stacks, self._known):
            kept.clear()

    # ---- frames ----

    def stack(self, where: Moment, start: int, count: int) -> dict[str, Any]:
        """Frames of a thread, the innermost first."""
        calls = self._stack(where)
        some = calls[start : start + min(count or _MOST, _MOST)]
        mine, callees = self._mine(some), [None, *calls][start:]
        return {
            "stackFrames": [
                self._frame(Shown(where, each, callee), each.id in mine)
                for each, callee in zip(some, callees, strict=False)
            ],
            "totalFrames": len(calls),
        }

    def top(self, where: Moment) -> Shown:
        return Shown(where, self._stack(where)[0], None)

    def shown(self, number: int) -> Shown:
        """The frame of a number. Raises RequestError."""
        if number not in self._frames:
            raise RequestError(f"there is no frame {number} at this stop")
        return self._frames[number]

    def at(self, shown: Shown) -> Frame:
        return frame(self._history.database, *shown)

    def _stack(self, where: Moment) -> list[Moment]:
        if where.id not in self._stacks:
            self._stacks[where.id] = entered(self._history.database, where.id) or [where]
        return self._stacks[where.id]

    def _mine(self, calls: Sequence[Moment]) -> set[int]:
        """The calls of own code."""
        query = Query(f"id IN ({', '.join('?' * len(calls))})", tuple(each.id for each in calls))
        rows = self._history.database.query(
            "i", f"SELECT id FROM event WHERE mine AND {query.where}", query.parameters
        )
        return {id for (id,) in rows}

    def _frame(self, shown: Shown, mine: bool) -> dict[str, Any]:
        self._last += 1
        self._frames[self._last] = shown
        found = self.at(shown)
        is_here = shown.is_top and shown.where.kind in ("line", "raise", "log")
        line = shown.where.line if is_here else found.line
        told = {
            "id": self._last,
            "name": f"{shown.entered.module}.{shown.entered.func}" if not mine else shown.entered.func,
            "line": line,
            "column": 1 if line else 0,
            "canRestart": True,
        }
        if not mine:
            told["presentationHint"] = "subtle"
        if shown.entered.file:
            told["source"] = self._files.source(shown.entered.file)
        return told

    # ---- scopes and variables ----

    def scopes(self, shown: Shown) -> list[dict[str, Any]]:
        told = [
            {
                "name": "Locals",
                "presentationHint": "locals",
                "variablesReference": self._number(shown),
                "namedVariables": len(self.variables(shown)),
                "expensive": False,
            }
        ]
        result = self.outcome(shown)
        if result is not None:
            name = _OUTCOMES.get(shown.where.kind, "Exception")
            told.insert(
                0,
                {
                    "name": name,
                    "variablesReference": self._number(Group((result,), ".", shown)),
                    "namedVariables": 1,
                    "expensive": False,
                } | ({"presentationHint": "returnValue"} if name == "Return value" else {}),
            )  # fmt: skip
        if shown.is_top:
            told.append(
                {
                    "name": "Moment",
                    "variablesReference": self._number(Group(self._moment(shown.where), ".", shown)),
                    "expensive": False,
                }
            )
        return told

    def _moment(self, where: Moment) -> tuple[Item, ...]:
        """Where in the recording this is. The id is good for `at`, and for other commands."""
        since = where.time - self._started
        return (
            Item("event", str(where.id), "int"),
            Item("kind", where.kind, ""),
            Item("time", f"+{since // 10**9}.{since % 10**9:09}s", ""),
            Item("depth", str(where.depth), "int"),
        )

    def outcome(self, shown: Shown) -> Item | None:
        """What the moment itself tells, if it is in this frame."""
        return outcome(self._history.database, shown.where) if shown.is_top else None

    def variables(self, shown: Shown) -> tuple[Item, ...]:
        """The variables of a frame."""
        if shown not in self._known:
            found = variables(self._history.database, self.at(shown).at, shown.entered)
            self._known[shown] = tuple(each.value for each in found)
        return self._known[shown]

    def named(self, shown: Shown) -> dict[str, Item]:
        return {each.name: each for each in self.variables(shown)}

    def group(self, number: int) -> Group:
        """The items of a number. Raises RequestError."""
        found = self._groups.get(number)
        if found is None:
            raise RequestError(f"there are no variables {number} at this stop")
        return Group(self.variables(found), "", found) if isinstance(found, Shown) else found

    def page(self, number: int, wanted: str, start: int, count: int) -> list[dict[str, Any]]:
        """Variables of a number. wanted: `indexed`, `named`, or "" for both."""
        group = self.group(number)
        items = [each for each in group.items if not wanted or (wanted == "indexed") == _is_index(each)]
        some = items[start : start + min(count or _MOST, _MOST)]
        return [{"name": each.name} | self.value(each, group.shown, _path(group.path, each)) for each in some]

    def value(self, item: Item, shown: Shown, path: str, key: str = "value") -> dict[str, Any]:
        """A value as the protocol has it, under `key`. path: an expression that gives it."""
        told: dict[str, Any] = {key: item.value, "variablesReference": 0}
        if item.type:
            told["type"] = item.type
        if path and key == "value":
            told["evaluateName"] = path
        if item.items:
            told["variablesReference"] = self._number(Group(item.items, path or ".", shown))
            indexed = sum(map(_is_index, item.items))
            told["indexedVariables"], told["namedVariables"] = indexed, len(item.items) - indexed
        return told

    def _number(self, group: Group | Shown) -> int:
        self._last += 1
        self._groups[self._last] = group
        return self._last


def _is_index(item: Item) -> bool:
    return _INDEX.fullmatch(item.name) is not None


def _path(parent: str, item: Item) -> str:
    """The expression of an item; "": there is none, as it is no variable's."""
    if parent == ".":
        return ""
    return f"{parent}{item.name}" if item.name.startswith("[") or not parent else f"{parent}.{item.name}"
