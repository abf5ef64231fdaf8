"""Keys of the panes: the focus, their sizes, and the cursor in each."""

from __future__ import annotations

from functools import partial

from ...screen.effects import Result, RunTask, ShowPage
from ...screen.text import Line
from . import steps
from .command import Command, Count, Group
from .walk import Walk

_ENDS = 1 << 30
_LONGEST = 100_000  # characters of a value on a page
_TITLE = 40


def focus(walk: Walk, count: Count, step: int) -> Result:
    """Another pane takes the keys."""
    shown = walk.parts.shown
    at = shown.index(walk.focus) if walk.focus in shown else 0
    walk.focus = shown[(at + step) % len(shown)] if shown else "source"
    return None


def resize(walk: Walk, count: Count, step: int) -> Result:
    """The pane with the focus becomes larger or smaller."""
    walk.parts.resize(walk.focus, step * (count or 1))
    return None


def move(walk: Walk, count: Count, rows: int, pages: int = 0) -> Result:
    """The cursor of the pane, by rows or by pages."""
    steps_ = rows * (count or 1) + pages * (count or 1) * max(walk.parts.rows[walk.focus] - 1, 1)
    if walk.focus == "variables":
        walk.sought = None
        walk.values.move(steps_)
    elif walk.focus == "stack":
        scene = walk.scene
        if scene is not None and scene.stack:
            wanted = max(min(scene.chosen + steps_, len(scene.stack) - 1), 0)
            return RunTask(steps.choose(walk, wanted))
    else:
        lines = len(walk.source[0].lines)
        walk.cursor = max(min(walk.line + steps_, lines), 1) if lines else None
    return None


def home(walk: Walk, count: Count) -> Result:
    """Back to the line where the program is."""
    walk.cursor = walk.other = None
    return None


def open_value(walk: Walk, count: Count, open: bool | None) -> Result:
    """Opens a container or an object; of other values shows the whole."""
    row = walk.values.current
    if row is None or walk.values.turn(open) or open is False or row.item.items:
        return None
    value, shown = row.item.value, walk.display.shown
    rest = f" (the first {_LONGEST:,} of {len(value):,} characters)" if len(value) > _LONGEST else ""
    title = f"{shown(row.label[:_TITLE])}  {shown(row.item.type[:_TITLE])}{rest}"
    return ShowPage(title, [Line(shown(value[:_LONGEST]))])


def click(walk: Walk, column: int, row: int) -> Result:
    """The pane takes the keys; the cursor goes to the row. A second click opens a value."""
    found = walk.parts.at(column, row)
    if found is None:
        return None
    walk.focus, place = found
    if place < 0 or walk.scene is None:
        return None
    if walk.focus == "variables":
        before, walk.sought = walk.values.at, None
        walk.values.move(walk.values.top + place - before)
        return open_value(walk, None, None) if walk.values.at == before else None
    return move(walk, 1, walk.tops[walk.focus] + place - _at(walk))


def wheel(walk: Walk, column: int, row: int, rows: int) -> Result:
    """The cursor of the pane under the mouse."""
    found = walk.parts.at(column, row)
    if found is None or found[0] == "stack":
        return None
    walk.focus = found[0]
    return move(walk, 1, rows)


def _at(walk: Walk) -> int:
    """The place of the cursor in the source or in the stack."""
    return walk.line if walk.focus == "source" or walk.scene is None else walk.scene.chosen


PANES = Group(
    "Panes: Tab gives the keys to another one",
    (
        Command("focus", ("tab",), "to the next pane: source, variables, stack", partial(focus, step=1)),
        Command("focus-back", ("shift tab",), "to the one before", partial(focus, step=-1)),
        Command("larger", ("+",), "the pane becomes larger", partial(resize, step=1)),
        Command("smaller", ("-",), "… smaller", partial(resize, step=-1)),
        Command("cursor-up", ("up",), "the cursor of the pane up; in the stack: another function",
                partial(move, rows=-1)),
        Command("cursor-down", ("down",), "… down", partial(move, rows=1)),
        Command("page-up", ("page up",), "… a page up", partial(move, rows=0, pages=-1)),
        Command("page-down", ("page down",), "… a page down", partial(move, rows=0, pages=1)),
        Command("first", ("home",), "… to the first row", partial(move, rows=-_ENDS)),
        Command("last", ("end",), "… to the last row", partial(move, rows=_ENDS)),
        Command("here", (".",), "the source where the program is", home),
        Command("open", ("enter",), "opens and closes a container or an object",
                partial(open_value, open=None), "variables"),
        Command("open-right", ("right",), "opens it", partial(open_value, open=True), "variables"),
        Command("close-left", ("left",), "closes it, or what it is in", partial(open_value, open=False),
                "variables"),
    ),
)  # fmt: skip
