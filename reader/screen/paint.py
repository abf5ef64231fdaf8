"""Puts lines on the screen: colours, and one urwid canvas of all rows. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import urwid

from .model import Line
from .text import Markup, chop, encoded

# name, foreground, background; without colours
_STYLES = (
    ("", "default", "default", ""),
    ("time", "dark gray", "default", ""),
    ("column", "dark gray", "default", ""),
    ("duration", "brown", "default", ""),
    ("call", "default", "default", ""),
    ("return", "dark green", "default", ""),
    ("exception", "light red,bold", "default", "bold"),
    ("raise", "light red,bold", "default", "bold"),
    ("yield", "dark cyan", "default", ""),
    ("log", "default,bold", "default", "bold"),
    ("lost", "yellow,bold", "default", "bold"),
    ("value", "default", "default", ""),
    ("name", "dark cyan", "default", ""),
    ("dim", "dark gray", "default", ""),
    ("hit", "black", "yellow", "underline"),
    ("error", "light red,bold", "default", "bold"),
    ("note", "dark magenta", "default", "bold"),
    ("key", "default,bold", "default", "bold"),
    ("title", "default,bold", "default", "bold"),
    ("cursor", "white", "dark blue", "standout"),
    ("bar", "black", "light gray", "standout"),
    ("pane", "default", "default", ""),
)
_ON_CURSOR = ("dark gray", "dark green", "dark cyan", "brown")  # hard to read on blue


def palette() -> list[tuple[str, str, str, str]]:
    """urwid's palette: each style, and the same where the cursor is and in a pane of its own."""
    entries: list[tuple[str, str, str, str]] = []
    for name, foreground, background, mono in _STYLES:
        entries.append((name or "plain", foreground, background, mono))
        readable = "white" if foreground in _ON_CURSOR or foreground == "default" else foreground
        on_cursor = (readable, "dark blue") if background == "default" else (foreground, background)
        stands_out = "standout" if mono in ("", "standout") else f"{mono},standout"
        entries.append((f"{name or 'plain'} cursor", *on_cursor, stands_out))
        if name not in ("bar", "cursor"):
            on_bar = ("black", "light gray") if background == "default" else (foreground, background)
            entries.append((f"{name or 'plain'} bar", *on_bar, "standout"))
    return entries


class Rows:
    """Rows of the screen, from the top, each encoded with its attributes as urwid wants them."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.texts: list[bytes] = []
        self.attributes: list[list[tuple[Hashable, int]]] = []

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, markup: Markup, on: str = "") -> None:
        """A row. on: `cursor`, or `bar`: the whole row stands out."""
        text, runs = encoded(markup, self.width)
        suffix = f" {on}" if on else ""
        self.texts.append(text)
        self.attributes.append([((name or "plain") + suffix, length) for name, length in runs])

    def line(self, line: Line, on: str = "") -> None:
        """A line that is cut where the screen ends."""
        self.add(chop(line, 0, self.width), on)

    def fill(self, height: int) -> None:
        """Empty rows, until there are so many; rows below are cut off."""
        while len(self.texts) < height:
            self.add(Markup([], 0))
        del self.texts[height:], self.attributes[height:]

    def canvas(self) -> urwid.Canvas:
        return urwid.TextCanvas(self.texts, self.attributes, maxcol=self.width, check_width=False)


class Screen(urwid.display.raw.Screen):
    """A terminal whose Ctrl-C and Ctrl-\\ are keys like others, until it is given back as it was."""

    def _start(self, *args: Any, **options: Any) -> None:
        # not before the first start, nor only there: what is restored is what was there at a start
        super()._start(*args, **options)
        self.tty_signal_keys(intr="undefined", quit="undefined")


class Surface(urwid.Widget):
    """The whole screen. below: what takes rows at its bottom, for a width and a height; compose: what is
    above it, for these and the number of those rows. Keys never come here."""

    _sizing = frozenset([urwid.BOX])
    _selectable = True

    def __init__(
        self,
        compose: Callable[[int, int, int], urwid.Canvas],
        below: Callable[[int, int], urwid.Canvas | None],
    ) -> None:
        super().__init__()
        self._compose, self._below = compose, below

    def render(self, size: Any, focus: bool = False) -> urwid.Canvas:
        width, height = size
        below = self._below(width, height)
        above = self._compose(width, height, below.rows() if below else 0)
        if below is None:
            return above
        return urwid.CanvasCombine([(above, None, False), (below, None, True)])

    def keypress(self, size: Any, key: str) -> str | None:
        return key
