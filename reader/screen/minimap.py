"""The run's time as one line: where there are events, exceptions, losses and hits, and where we are.

Called by layout.py, with the cells that timeline.py makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2

from .model import Line
from .timeline import Cell, Timeline

_BARS, _ASCII_BARS = " ▁▂▃▄▅▆▇█", " .:-=+*#"
_MARKS = {"exception": "!", "lost": "?", "hit": "/", "cursor": "|"}  # where there are no colours
_HALVES = 8  # of the fullest cell's events, that are told apart; emptier cells look the same


def minimap(
    cells: Sequence[Cell],
    here: float,
    shown: tuple[float, float],
    hits: Iterable[float] = (),
    *,
    ascii: bool = False,
    plain: bool = False,
) -> Line:
    """A line as wide as there are cells: the height of each is the logarithm of its events.

    here, shown, hits: places in the run's time, 0 to 1 (Timeline.part): of the cursor; of the first and the
    last event on the screen; of what was found. plain: no colours, marks say what they would. ascii: no
    characters but ASCII's.
    """
    width = len(cells)
    if not width:
        return Line("")
    at = _column(here, width)
    first, last = min(_column(shown[0], width), at), max(_column(shown[1], width), at)
    if first == last:  # two cells are seen more easily
        first, last = min(first, max(width - 2, 0)), min(last + 1, width - 1)
    found = {_column(hit, width) for hit in hits}
    most = max(cell.events for cell in cells)
    text: list[str] = []
    spans: list[tuple[int, int, str]] = []
    for column, cell in enumerate(cells):
        style = _style(cell, first <= column <= last, column in found)
        mark = column == at and plain
        text.append(_MARKS["cursor"] if mark else _glyph(cell, style, most, ascii, plain))
        if style:
            if spans and spans[-1][1:] == (column, style):
                spans[-1] = (spans[-1][0], column + 1, style)
            else:
                spans.append((column, column + 1, style))
    return Line("".join(text), tuple(spans))


def time_of_cell(timeline: Timeline, column: int, width: int) -> int:
    """The time in the middle of a cell, ns since 1970; for a click on it."""
    return timeline.time_of((column + 0.5) / max(width, 1))


def _column(part: float, width: int) -> int:
    return min(max(int(part * width), 0), width - 1)


def _style(cell: Cell, on_screen: bool, hit: bool) -> str:
    """The most important of what there is to say."""
    if on_screen:
        return "cursor"
    if hit:
        return "hit"
    if cell.lost:
        return "lost"
    if cell.exceptions:
        return "exception"
    return "dim" if cell.evicted else ""


def _glyph(cell: Cell, style: str, most: float, ascii: bool, plain: bool) -> str:
    if plain and style in ("exception", "lost", "hit"):
        return _MARKS[style]
    bars = _ASCII_BARS if ascii else _BARS
    if cell.events <= 0:
        return bars[0]
    part = 1 + log2(cell.events / most) / _HALVES  # 1: the fullest
    return bars[max(1, round(part * (len(bars) - 1)))]
