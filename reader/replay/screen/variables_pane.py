"""The pane of the variables: what a function ended with, what the last call returned, and its
variables; containers and objects open to show their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...screen.lines import DisplayOptions
from ...screen.text import Line
from ..moment import Moment
from ..state import Item, Variable

if TYPE_CHECKING:
    from .scene import Scene

_LONGEST = 4000  # characters of a value that are drawn
_PARTS = 10_000  # of a value


class Shown(NamedTuple):
    """A row. path: the variable's name, and those of the parts down to this one. variable: of the
    function, unless it is an outcome. ended: the event that told an outcome."""

    path: tuple[str, ...]
    label: str
    item: Item
    is_new: bool
    variable: Variable | None = None
    ended: Moment | None = None


class Values:
    """The rows of the pane, and the one under the cursor. The open ones stay open in all calls of a
    function."""

    def __init__(self) -> None:
        self.rows: list[Shown] = []
        self.at = self.top = 0
        self._open: set[tuple[str, ...]] = set()
        self._function: tuple[str, str] = ("", "")
        self._scene: Scene | None = None

    @property
    def current(self) -> Shown | None:
        """The row under the cursor."""
        return self.rows[self.at] if self.at < len(self.rows) else None

    def show(self, scene: Scene) -> None:
        """The variables of another moment. The cursor stays on its variable."""
        path = self.current.path if self.current else ()
        function = (scene.file, scene.frame.entered.func) if scene.frame else ("", "")
        if function != self._function:
            self._function, path, self.at, self.top = function, (), 0, 0
        self._scene = scene
        self._fill()
        self._return_to(path)

    def move(self, rows: int) -> None:
        self.at = max(min(self.at + rows, len(self.rows) - 1), 0)

    def seek(self, name: str) -> None:
        """The cursor goes to a variable, if it is there."""
        self._return_to((name,))

    def turn(self, open: bool | None = None) -> bool:
        """Opens a value, or closes it; closing a part closes the value that it is in. Returns
        whether something has changed."""
        row = self.current
        if row is None:
            return False
        key = (*self._function, *row.path)
        wanted = key not in self._open if open is None else open
        if wanted and row.item.items and key not in self._open:
            self._open.add(key)
        elif not wanted and key in self._open:
            self._open.discard(key)
        elif not wanted and len(row.path) > 1:
            self._open.discard(key[:-1])
            self._fill()
            self._return_to(row.path[:-1])
            return True
        else:
            return False
        self._fill()
        return True

    def is_open(self, row: Shown) -> bool:
        return bool(row.item.items) and (*self._function, *row.path) in self._open

    def _return_to(self, path: tuple[str, ...]) -> None:
        places = (place for place, row in enumerate(self.rows) if row.path == path)
        self.at = next(places, min(self.at, max(len(self.rows) - 1, 0)))

    def _fill(self) -> None:
        self.rows = []
        scene = self._scene
        if scene is None:
            return
        if scene.outcome is not None and scene.chosen == 0:
            item = scene.outcome
            self._add(Shown((f"<{item.name}>",), item.name, item, True, None, scene.moment))
        if scene.returned is not None:
            ended, item = scene.returned
            word = {"exception": "raised", "yield": "yielded"}.get(ended.kind, "returned")
            self._add(Shown(("<returned>",), f"{ended.func} {word}", item, True, None, ended))
        for each in scene.variables:
            self._add(Shown((each.name,), each.name, each.value, each.name in scene.fresh, each))

    def _add(self, row: Shown) -> None:
        self.rows.append(row)
        if self.is_open(row) and len(self.rows) < _PARTS:
            for part in row.item.items:
                self._add(Shown((*row.path, part.name), part.name, part, False, row.variable, row.ended))


def line(values: Values, row: Shown, display: DisplayOptions) -> Line:
    """A row: a sign for what is news, another one for what opens, name, value, type."""
    shown = display.shown
    sign = " "
    if row.item.items:
        sign = display.own("▾" if values.is_open(row) else "▸")
        sign = {"▾": "-", "▸": "+"}.get(sign, sign) if display.ascii else sign
    start = f"{'*' if row.is_new else ' '}{'  ' * (len(row.path) - 1)}{sign} "
    name = shown(row.label[:_LONGEST])
    value = shown(row.item.value[:_LONGEST]) + ("..." if len(row.item.value) > _LONGEST else "")
    text = f"{start}{name} = {value}"
    style = "hit" if row.is_new else "name"
    spans = [(0, 1, "hit")] if row.is_new else []
    spans.append((len(start), len(start) + len(name), style))
    if row.ended is not None and row.ended.kind in ("exception", "raise"):
        spans.append((len(text) - len(value), len(text), "exception"))
    if row.item.type and len(row.path) == 1 and not value.startswith(row.item.type):
        spans.append((len(text), len(text) + len(row.item.type) + 2, "dim"))
        text += f"  {shown(row.item.type[:_LONGEST])}"
    return Line(text, tuple(spans))
