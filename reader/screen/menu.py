"""A list to choose from: filters that find something, what `*` offers, values. Opened by prompts.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import urwid

from .model import Line
from .paint import Rows
from .text import cells, cuts, fitted, shown

_WHOLE = 4  # rows for the whole of a label that is too long for its line
_LEAST = 8  # columns of a label
_ENDS = 1 << 30


class Choice(NamedTuple):
    """A line of a menu; `value` is what is chosen with it, and not None."""

    label: str
    value: Any
    hint: str = ""


class Menu:
    """Choices over a title. `done` once one was chosen or the menu was left; `result` is then the value, or
    None. ascii: nothing else is drawn."""

    def __init__(self, title: str, choices: Sequence[Choice], ascii: bool = False) -> None:
        self.done = False
        self.result: Any = None
        self._title = shown(title, ascii)
        self._choices = [
            Choice(shown(choice.label, ascii), choice.value, shown(choice.hint, ascii)) for choice in choices
        ]
        self._at = self._top = 0  # the one that the cursor is on, and the first that is shown
        self._page = 0  # how many are shown

    def keypress(self, size: tuple[int, int], key: str) -> None:
        """Takes a key by urwid's name; digits choose one of the first nine."""
        page = max(size[1] - 1, 1)
        steps = {
            "j": 1, "down": 1, "tab": 1, "ctrl n": 1, "k": -1, "up": -1, "shift tab": -1, "ctrl p": -1,
            " ": page, "page down": page, "b": -page, "page up": -page,
            "g": -_ENDS, "home": -_ENDS, "<": -_ENDS, "G": _ENDS, "end": _ENDS, ">": _ENDS,
        }  # fmt: skip
        if key in ("esc", "q", "Q", "ctrl c", "ctrl g"):
            self.done = True
        elif key == "enter":
            self._choose(self._at)
        elif len(key) == 1 and key in "123456789":
            self._choose(int(key) - 1)
        else:
            self._at = max(min(self._at + steps.get(key, 0), len(self._choices) - 1), 0)

    def mouse(self, event: str, button: int, row: int) -> None:
        """A click chooses what stands in a row; the wheel moves."""
        if event == "mouse press" and button in (4, 5):
            self.keypress((1, 1), "up" if button == 4 else "down")
        elif event == "mouse press" and button == 1 and row < self._page:
            self._choose(self._top + row)

    def render(self, size: tuple[int, int], focus: bool = False) -> Any:
        width, height = size
        rows = Rows(width)
        whole = self._whole(width)[: max(height - 2, 0)]
        self._page = page = max(height - 1 - len(whole), 1)
        self._top = max(min(self._top, self._at, len(self._choices) - page), self._at - page + 1, 0)
        labels = self._labels(width)
        for number in range(self._top, min(self._top + page, len(self._choices))):
            rows.line(self._line(number, labels), "cursor" if number == self._at else "")
        rows.fill(height - 1 - len(whole))
        for line in whole:
            rows.line(line)
        rows.line(Line(f"{self._title}  (Enter: this one, q: none)"), "bar")
        rows.fill(height)
        canvas: urwid.Canvas = rows.canvas()
        return canvas

    def _choose(self, number: int) -> None:
        if number < len(self._choices):
            self.result, self.done = self._choices[number].value, True

    def _labels(self, width: int) -> int:
        """Columns of the labels: hints stand behind them, as far as there is room."""
        hints = max((cells(choice.hint) + 2 for choice in self._choices if choice.hint), default=0)
        room = max(width - 4 - hints, min(_LEAST, width))
        return min(max((cells(choice.label) for choice in self._choices), default=0), room)

    def _line(self, number: int, labels: int) -> Line:
        choice = self._choices[number]
        sign = ">" if number == self._at else " "
        digit = str(number + 1) if number < 9 else " "
        start = f"{sign}{digit}  {fitted(choice.label, labels)}"
        rest = f"  {choice.hint}" if choice.hint else ""
        return Line(start + rest, ((1, 2, "key"), (len(start), len(start) + len(rest), "dim")))

    def _whole(self, width: int) -> list[Line]:
        """The label that the cursor is on, where its line has no room for it."""
        if not self._choices:
            return []
        label = self._choices[self._at].label
        if cells(label) <= self._labels(width):
            return []
        parts = [label[start:end] for start, end, _ in cuts(label, width)]
        return [Line(""), *(Line(part, ((0, len(part), "name"),)) for part in parts[:_WHOLE])]
