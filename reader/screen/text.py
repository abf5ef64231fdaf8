"""Lines cut to the screen: by cells of the terminal, not by characters. Called for every line drawn.

A wide character takes two cells, a combining mark none of its own, and stays where its character is.
Knows of no event.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from wcwidth import wcwidth

from ..render import printable
from .model import Line

DOTS = "..."  # where a line goes on
_FIRST_MARK = "\u0300"  # whatever is printable and comes before it takes one cell
# What changes the width of the character before it, in some terminals and not in others: selectors of
# variants, tones of skin, letters of flags. A line that is longer than was thought would spoil others.
_UNCERTAIN = (
    "[\u180b-\u180d\u180f\ufe00-\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
)


class _Cells(dict[str, int]):
    """How many cells a character takes. Vowel signs that stand beside their letter take one: with those
    terminals that go by characters, which most do."""

    def __missing__(self, character: str) -> int:
        beside = unicodedata.category(character) == "Mc"
        self[character] = found = 1 if beside else max(wcwidth(character), 0)
        return found


_CELLS = _Cells()


class Markup(NamedTuple):
    """A row of the screen: texts with their styles ("": none), and how many cells they take."""

    runs: list[tuple[str, str]]
    cells: int


def shown(text: str, ascii: bool = False) -> str:
    """Recorded text as it may go to a terminal: printable, of a certain width; `ascii`: nothing else."""
    if text.isascii():
        return text if text.isprintable() else printable(text)
    text = printable(text)
    if ascii:
        return text.encode("ascii", "backslashreplace").decode()
    return text if _is_narrow(text) else _uncertain().sub(_escaped, text)


def cells(text: str) -> int:
    """How many cells a printable text takes."""
    return len(text) if _is_narrow(text) else _reach(text, 0, 2 * len(text))[1]


def fitted(text: str, width: int, right: bool = False) -> str:
    """A text in exactly `width` cells: filled up with spaces, `right`: on its left, or cut."""
    if _is_narrow(text) and len(text) <= width:
        return text.rjust(width) if right else text.ljust(width)
    cut = chop(Line(text), 0, width)
    space = " " * (width - cut.cells)
    text = "".join(text for _, text in cut.runs)
    return space + text if right else text + space


def chop(line: Line, left: int, width: int) -> Markup:
    """What of a line is in `width` cells from cell `left` on; ends in dots where the line goes on."""
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


def fold(line: Line, width: int) -> list[Markup]:
    """All of a line, in rows of at most `width` cells."""
    rows = []
    for start, end, taken in cuts(line.text, width):
        runs: list[tuple[str, str]] = []
        _style(line, start, end, runs)
        rows.append(Markup(runs, taken))
    return rows


def cuts(text: str, width: int) -> list[tuple[int, int, int]]:
    """Where a text is divided to fit in `width` cells: start, end and cells of each part; at least one.

    Where a wide character meets a screen that is one cell wide, that cell has nothing.
    """
    parts = []
    start, width = 0, max(width, 1)
    while True:
        end, taken = _reach(text, start, width)
        if end == start < len(text):
            end, _ = _next(text, start)
            parts.append((end, end, 0))
        else:
            parts.append((start, end, taken))
        if end == len(text):
            return parts
        start = end


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
    """A row as urwid's canvases have it: UTF-8, filled up to `width` cells; styles with lengths in bytes."""
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
    """Whether it is known at once that each character takes one cell."""
    return text.isascii() or max(text) < _FIRST_MARK


def _reach(text: str, start: int, width: int) -> tuple[int, int]:
    """How far [start, end) goes in at most `width` cells: its end, and the cells that it takes."""
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
        runs.append(("", " "))  # for a mark that has nothing to stand on
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
