"""Colours of source text, by Pygments if it is installed: pytrace does not ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ...screen.text import Line

_MOST = 1 << 20  # characters of a file
_OFTEN = 200  # tokens between two pauses
# the first kind of token that a token is of, and a style of the reader (paint.py)
_STYLES = (("Comment", "dim"), ("Literal.String", "return"), ("Keyword", "name"), ("Literal.Number", "ms"),
           ("Operator.Word", "name"), ("Name.Decorator", "note"), ("Name.Builtin", "ms"))  # fmt: skip


class Colours:
    """The colours of the lines of a file, if they can be told. `find` finds them, which takes a
    moment, and goes on where it was if it is stopped."""

    def __init__(self, lines: Sequence[tuple[int, str]]) -> None:
        self._lines = lines
        self._spans: dict[int, list[tuple[int, int, str]]] = {}
        self._tokens: Iterator[tuple[Any, str]] | None = None
        self._number, self._column = 1, 0
        self.is_whole = not lines

    def find(self, pause: Callable[[], None]) -> None:
        """pause: called now and then; what it raises stops the work."""
        parts = _pygments()
        if parts is None or sum(len(text) for _, text in self._lines) > _MOST:
            self.is_whole = True
            return
        lexer, styles = parts
        if self._tokens is None:
            self._tokens = iter(lexer.get_tokens("\n".join(text for _, text in self._lines)))
        for count, (kind, text) in enumerate(self._tokens, 1):
            self._add(_style(kind, styles), text)
            if count % _OFTEN == 0:
                pause()
        self.is_whole = True

    def line(self, number: int, text: str) -> Line:
        """A line of the file. text: as it is shown."""
        return Line(text, tuple(span for span in self._spans.get(number, ()) if span[1] <= len(text)))

    def _add(self, style: str, text: str) -> None:
        for place, part in enumerate(text.split("\n")):
            if place:
                self._number, self._column = self._number + 1, 0
            if style and part:
                span = self._column, self._column + len(part), style
                self._spans.setdefault(self._number, []).append(span)
            self._column += len(part)


def _style(kind: Any, styles: dict[Any, str]) -> str:
    while kind is not None:
        if kind in styles:
            return styles[kind]
        kind = kind.parent
    return ""


@cache
def _pygments() -> tuple[Any, dict[Any, str]] | None:
    try:
        lexers, token = import_module("pygments.lexers.python"), import_module("pygments.token")
    except ImportError:
        return None
    styles = {token.string_to_tokentype(name): style for name, style in _STYLES}
    return lexers.PythonLexer(stripnl=False, ensurenl=False), styles
