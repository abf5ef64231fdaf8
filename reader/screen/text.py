"""Lines of styled text, cut to the screen: by cells of the terminal, not by characters. Called for
every line drawn.

A wide character takes two cells, a combining mark none of its own, and stays where its character
is. The module knows no events.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from wcwidth import wcwidth

from ...messages import printable

DOTS = "..."  # the sign that a line goes on
_FIRST_MARK = "\u0300"  # printable characters before it take one cell
# Characters that change the width of the character before them in some terminals only: selectors of
# variants, tones of skin, letters of flags. A line that becomes too long would spoil others.
_UNCERTAIN = (
    "[\u180b-\u180d\u180f\ufe00-\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
)


class _Cells(dict[str, int]):
    """The cells that a character takes. A vowel sign beside its letter takes one, as in most
    terminals, which count by characters."""

    def __missing__(self, character: str) -> int:
        beside = unicodedata.category(character) == "Mc"
        self[character] = found = 1 if beside else max(wcwidth(character), 0)
        return found


_CELLS = _Cells()


class Line(NamedTuple):
    """Printable text of any length, and [start, end) of its parts that have a style, in order. The
    first `fixed` characters stay where they are when the others are scrolled sideways."""

    text: str
    spans: tuple[tuple[int, int, str], ...] = ()
    fixed: int = 0


class Markup(NamedTuple):
    """A row of the screen: texts with their styles ("": none), and how many cells they take."""

    runs: list[tuple[str, str]]
    cells: int


def shown(text: str, ascii: bool = False) -> str:
    """Recorded text in a form for a terminal: printable, of a known width; `ascii`: only ASCII."""
    if text.isascii():
        return text if text.isprintable() else printable(text)
    text = printable(text)
    if ascii:
        return text.encode("ascii", "backslashreplace").decode()
    return text if _is_narrow(text) else _uncertain().sub(_escaped, text)


def cells(text: str) -> int:
    """The number of cells that a printable text takes."""
    return len(text) if _is_narrow(text) else _reach(text, 0, 2 * len(text))[1]


def fitted(text: str, width: int, right: bool = False) -> str:
    """A text in exactly `width` cells: filled up with spaces, `right`: on its left, or cut."""
    if _is_narrow(text) and len(text) <= width:
        return text.rjust(width) if right else text.ljust(width)
    cut = chop(Line(text), 0, width)
    space = " " * (width - cut.cells)
    text = "".join(text for _, text in cut.runs)
    return space + text if right else text + space


def fitted_end(text: str, width: int) -> str:
    """A text in exactly `width` cells: filled up, or its end behind dots."""
    beyond = cells(text) - width
    if beyond > 0:
        end = chop(Line(text), beyond + len(DOTS), width)
        text = DOTS + "".join(piece for _, piece in end.runs)
    return fitted(text, width)


def chop(line: Line, left: int, width: int) -> Markup:
    """The part of a line in `width` cells from cell `left` on; it ends in dots if the line goes
    on."""
    text = line.text
    start, before = _reach(text, 0, left)
    runs: list[tuple[str, str]] = []
    taken = 0
    if before < left and start < len(text):  # the edge goes through a wide one
        start, wide = _next(text, start)
        taken = min(before + wide - left, width)
        runs.append(("", " " * taken))
    end, reached = _reach(text, start, width - taken)
    if end == len(text):
        _style(line, start, end, runs)
        return Markup(runs, taken + reached)
    dots = DOTS[:width]
    room = max(width - len(dots), 0)
    if taken > room:  # less than a wide one is left
        runs, taken = [("", " " * room)] if room else [], room
    end, reached = _reach(text, start, room - taken)
    _style(line, start, end, runs)
    if dots:
        runs.append(("dim", " " * (room - taken - reached) + dots))
    return Markup(runs, width)


def fold(line: Line, width: int, hang: int = 0, *, at_words: bool = False) -> list[Markup]:
    """All of a line, in rows of at most `width` cells, of which all but the first begin with `hang`
    empty ones; see `cuts`."""
    rows: list[Markup] = []
    for start, end, taken in cuts(line.text, width, hang, at_words=at_words):
        indent = hang if rows else 0
        runs = [("", " " * indent)] if indent else []
        _style(line, start, end, runs)
        rows.append(Markup(runs, indent + taken))
    return rows


def cuts(text: str, width: int, hang: int = 0, *, at_words: bool = False) -> list[tuple[int, int, int]]:
    """Divides a text to fit in `width` cells: start, end and cells of each part; at least one. The
    parts behind the first have `hang` cells less.

    at_words: a part ends at spaces, which are left out, if there are any in its second half. If the
    screen is one cell wide, a wide character leaves that cell empty.
    """
    parts: list[tuple[int, int, int]] = []
    start, room, rest = 0, max(width, 1), max(width - hang, 1)
    while True:
        end, taken = _reach(text, start, room)
        if end == start < len(text):
            end, _ = _next(text, start)
            start, taken = end, 0
        following = end
        if at_words and end < len(text):
            space = _space(text, (start + end) // 2, end + 1)
            if space > 0 and text[start:space].strip(" "):
                end, following = space, _behind_spaces(text, space)
                taken = cells(text[start:end])
        parts.append((start, end, taken))
        if following == len(text):
            return parts
        start, room = following, rest


def _space(text: str, start: int, end: int) -> int:
    """The index of the last space in a part of a text; -1: there is none."""
    while (space := text.rfind(" ", start, end)) >= 0 and _behind_spaces(text, space) == space:
        end = space
    return space


def _behind_spaces(text: str, start: int) -> int:
    """The index behind the spaces that begin here. One that carries a mark counts as a letter."""
    end = len(text) - len(text[start:].lstrip(" "))
    return end - 1 if start < end < len(text) and cells(text[end - 1 : end + 1]) == 1 else end


def begins(line: Line) -> int:
    """The index of a line's first character behind its fixed columns and its indentation."""
    return len(line.text) - len(line.text[line.fixed :].lstrip(" "))


def part(line: Line, start: int, end: int, indent: str = "") -> Line:
    """The part [start, end) of a line, behind an indentation."""
    shift = len(indent) - start
    spans = tuple(
        (max(first, start) + shift, min(last, end) + shift, style)
        for first, last, style in line.spans
        if first < end and last > start
    )
    return Line(indent + line.text[start:end], spans)


def with_hits(line: Line, hits: Iterable[tuple[int, int]]) -> Line:
    """A line with the style `hit` over parts of it: [start, end), in order, none within another."""
    marked = [(start, end) for start, end in hits if start < end]
    spans: list[tuple[int, int, str]] = [(start, end, "hit") for start, end in marked]
    for start, end, style in line.spans:
        for first, last in marked:
            if last <= start:
                continue
            if first >= end:
                break
            if start < first:
                spans.append((start, first, style))
            start = last
        if start < end:
            spans.append((start, end, style))
    return line._replace(spans=tuple(sorted(spans)))


def encoded(markup: Markup, width: int) -> tuple[bytes, list[tuple[str, int]]]:
    """A row as urwid's canvases have it: UTF-8, filled up to `width` cells; styles with lengths in
    bytes."""
    texts, attributes = [], []
    for style, text in markup.runs:
        data = text.encode()
        texts.append(data)
        attributes.append((style, len(data)))
    rest = width - markup.cells
    if rest > 0:
        texts.append(b" " * rest)
        attributes.append(("", rest))
    return b"".join(texts), attributes


def _is_narrow(text: str) -> bool:
    """Whether a quick look tells that each character takes one cell."""
    return text.isascii() or max(text) < _FIRST_MARK


def _reach(text: str, start: int, width: int) -> tuple[int, int]:
    """The longest part [start, end) of at most `width` cells: its end, and its cells."""
    if width <= 0:
        return start, 0
    ahead = text[start : start + width + 1]
    if _is_narrow(ahead or " "):
        end = start + min(len(ahead), width)
        return end, end - start
    taken = 0
    if start == 0 and ahead and _CELLS[ahead[0]] == 0:
        start, taken = 1, 1
    for character in text[start:] if start else text:
        taken += _CELLS[character]
        if taken > width:
            return start, taken - _CELLS[character]
        start += 1
    return start, taken


def _next(text: str, start: int) -> tuple[int, int]:
    """The end of the next character, with the marks on it, and the cells that it takes."""
    return _reach(text, start, _CELLS[text[start]])


def _style(line: Line, start: int, end: int, runs: list[tuple[str, str]]) -> None:
    """Adds the part [start, end) of a line."""
    text = line.text
    if start == end:
        return
    if start == 0 and text[0] >= _FIRST_MARK and _CELLS[text[0]] == 0:
        runs.append(("", " "))  # for a mark without a letter
    for first, last, style in line.spans:
        if last <= start:
            continue
        if first >= end:
            break
        if first > start:
            runs.append(("", text[start:first]))
            start = first
        last = min(last, end)
        runs.append((style, text[start:last]))
        start = last
    if start < end:
        runs.append(("", text[start:end]))


@cache
def _uncertain() -> re.Pattern[str]:
    return re.compile(_UNCERTAIN)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
