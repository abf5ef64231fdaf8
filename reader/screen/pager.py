"""A page of text to scroll: help. Opened by prompts.py; knows nothing of recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import urwid

from .model import Line
from .paint import Rows
from .text import fold

_END = ("q", "Q", "esc", "enter", "h", "H", "ctrl c")


class Pager:
    """Lines under a title. `done` once it was left; there is no result."""

    result = None

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        self._title, self._lines = title, lines
        self._top = 0
        self.done = False

    def keypress(self, size: tuple[int, int], key: str) -> None:
        page = max(size[1] - 2, 1)
        steps = {
            "j": 1, "e": 1, "down": 1, "k": -1, "y": -1, "up": -1, " ": page, "f": page, "page down": page,
            "b": -page, "page up": -page, "d": page // 2, "u": -(page // 2),
            "g": -(1 << 30), "<": -(1 << 30), "home": -(1 << 30), "G": 1 << 30, ">": 1 << 30, "end": 1 << 30,
        }  # fmt: skip
        if key in _END:
            self.done = True
        self._top += steps.get(key, 0)

    def render(self, size: tuple[int, int], focus: bool = False) -> Any:
        width, height = size
        rows = Rows(width)
        body = [row for line in self._lines for row in fold(line, width)]
        page = max(height - 1, 1)
        self._top = max(min(self._top, len(body) - page), 0)
        for row in body[self._top : self._top + page]:
            rows.add(row)
        rows.fill(height - 1)
        end = min(self._top + page, len(body))
        rows.line(Line(f"{self._title}  {end * 100 // max(len(body), 1)}%  (q: back)"), "bar")
        canvas: urwid.Canvas = rows.canvas()
        return canvas
