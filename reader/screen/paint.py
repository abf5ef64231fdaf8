"""Puts lines on the screen: colours, and one urwid canvas of all rows. It makes no decisions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from .text import Line, Markup, chop, encoded
from .toolkit import urwid

# The gray of a terminal of 256 colours, which can be read on black and on white. Where there are
# fewer it is the default: their dark gray is bright black, which many terminals show as black.
GRAY = "g50"
# name, foreground, background; without colours
_STYLES = (
    ("", "default", "default", ""),
    ("time", GRAY, "default", ""),
    ("column", GRAY, "default", ""),
    ("ns", GRAY, "default", ""),
    ("µs", "dark cyan", "default", ""),
    ("ms", "brown", "default", ""),
    ("slow", "default,bold", "default", "bold"),
    ("slowest", "light red,bold", "default", "bold"),
    ("s", "yellow,bold", "default", "bold"),
    ("call", "default", "default", ""),
    ("cython", "light blue", "default", ""),
    ("c", "light blue", "default", ""),
    ("native", "dark magenta", "default", ""),
    ("kernel", "brown", "default", ""),
    ("own", "default,bold", "default", "bold"),
    ("return", "dark green", "default", ""),
    ("exception", "light red,bold", "default", "bold"),
    ("raise", "light red,bold", "default", "bold"),
    ("handled", "dark red", "default", ""),
    ("yield", "dark cyan", "default", ""),
    ("log", "default,bold", "default", "bold"),
    ("lost", "yellow,bold", "default", "bold"),
    ("value", "default", "default", ""),
    ("name", "dark cyan", "default", ""),
    ("dim", GRAY, "default", ""),
    ("hit", "black", "yellow", "underline"),
    ("error", "light red,bold", "default", "bold"),
    ("note", "dark magenta", "default", "bold"),
    ("key", "default,bold", "default", "bold"),
    ("title", "default,bold", "default", "bold"),
    ("flame", "black", "dark cyan", "standout"),
    ("flame other", "black", "dark green", "underline"),
    ("flame failed", "black", "light red", "bold"),
    ("cursor", "white", "dark blue", "standout"),
    ("bar", "black", "light gray", "standout"),
    ("pane", "default", "default", ""),
)
_ON_CURSOR = (
    "default",
    GRAY,
    "dark green",
    "dark cyan",
    "dark red",
    "brown",
    "light blue",
    "dark magenta",
)  # hard to read on blue

# name, foreground, background, without colours, and both of these where there are 256 colours
Entry: TypeAlias = tuple[str, str, str, str, str, str]


def palette() -> list[Entry]:
    """urwid's palette: each style, also for the cursor's line and for the detail pane."""
    entries: list[Entry] = []
    for name, foreground, background, mono in _STYLES:
        entries.append(_entry(name or "plain", foreground, background, mono))
        readable = "white" if foreground in _ON_CURSOR else foreground
        on_cursor = (readable, "dark blue") if background == "default" else (foreground, background)
        stands_out = "standout" if mono in ("", "standout") else f"{mono},standout"
        entries.append(_entry(f"{name or 'plain'} cursor", *on_cursor, stands_out))
        if name not in ("bar", "cursor"):
            on_bar = ("black", "light gray") if background == "default" else (foreground, background)
            entries.append(_entry(f"{name or 'plain'} bar", *on_bar, "standout"))
    return entries


def _entry(name: str, foreground: str, background: str, mono: str) -> Entry:
    few = "default" if foreground == GRAY else foreground
    return name, few, background, mono, foreground, background


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
        """A line that is cut at the edge of the screen."""
        self.add(chop(line, 0, self.width), on)

    def side_by_side(self, left: Rows, between: Markup, right: Rows) -> None:
        """Rows that are made of those of two parts of the screen, which are as many."""
        text, runs = encoded(between, between.cells)
        middle: list[tuple[Hashable, int]] = [*runs]
        self.texts += [one + text + other for one, other in zip(left.texts, right.texts, strict=True)]
        both = zip(left.attributes, right.attributes, strict=True)
        self.attributes += [one + middle + other for one, other in both]

    def fill(self, height: int) -> None:
        """Empty rows, until there are so many; rows below are cut off."""
        while len(self.texts) < height:
            self.add(Markup([], 0))
        del self.texts[height:], self.attributes[height:]

    def canvas(self) -> urwid.Canvas:
        return urwid.TextCanvas(self.texts, self.attributes, maxcol=self.width, check_width=False)


class Screen(urwid.display.raw.Screen):
    """A terminal whose Ctrl-C and Ctrl-\\ are keys like others, until its old state is restored.
    plain: it shows no colours."""

    def __init__(self, plain: bool) -> None:
        super().__init__(bracketed_paste_mode=True)
        self.set_terminal_properties(colors=1 if plain else 256 if self.colors >= 256 else 16)

    def _start(self, *args: Any, **options: Any) -> None:
        # at each start: its state at that moment is restored later
        super()._start(*args, **options)
        self.tty_signal_keys(intr="undefined", quit="undefined")


class Surface(urwid.Widget):
    """The whole screen. below: makes the dialog at the bottom, for a width and a height; compose:
    makes the rest, for these and the dialog's rows. Keys never come here."""

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
