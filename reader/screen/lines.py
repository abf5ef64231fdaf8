"""Events as lines of the screen. The app makes a Liner, and another one where threads or switches change.

A line depends on its event, the switches and the threads alone, never on the lines around it: so the
screen is the same whichever way one came to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter

from ..model import Row, Run, Source, text
from ..render import INDENT_MAX, SIGNS, arguments
from .columns import Columns, Pieces
from .look import Look as Look
from .model import Item, Line

# the style of what follows the columns, by kind
_STYLES = {
    "call": "call", "return": "return", "exception": "exception", "yield": "yield", "resume": "yield",
    "throw": "raise", "raise": "raise", "log": "log", "lost": "lost",
}  # fmt: skip
_LOUD = ("exception", "throw", "raise")  # these have their value in the same style
_CLOSED = "+>"  # starts a call that is shown together with what came of it


class Liner:
    """Makes lines. has_arguments: says of a call without values whether its function has arguments,
    which then were not recorded."""

    def __init__(
        self,
        look: Look,
        sources: Sequence[Source],
        runs: Sequence[Run],
        has_arguments: Callable[[Row], bool] = lambda event: False,
    ) -> None:
        self._look = look
        self._columns = Columns(look, sources, runs)
        self._has_arguments = has_arguments
        self._shown = look.shown
        self._names = lru_cache(4096)(self._make_names)

    def __call__(self, item: Item) -> Line:
        """The line of an event, or of a call together with its outcome."""
        event, closed, outcome = item
        took = outcome[12] if closed and outcome else event[12]
        pieces = self._columns.pieces(event, took)
        fixed = sum([len(piece) for _, piece in pieces])
        depth = event[11]
        if depth <= INDENT_MAX:
            pieces.append(("", " " * (self._look.indent * depth)))
        else:
            pieces.append(("dim", f"{' ' * (self._look.indent * INDENT_MAX)}({depth}) "))
        if closed:
            pieces += [("call", _CLOSED + " "), *self._called(event), *self._came(outcome)]
        else:
            pieces += self.what(event)
        return joined(pieces)._replace(fixed=fixed)

    def _called(self, event: Row) -> Pieces:
        """The function with its arguments."""
        function = self._names(event[7], event[8])[0]
        args = event[13]
        if args == "[]" or not self._look.values:
            hidden = args != "[]" or self._has_arguments(event)
            return [("call", f"{function}({self._look.own('…') if hidden else ''})")]
        given = arguments(args)
        if self._look.sort:
            given = sorted(given, key=itemgetter("name"))
        return [("call", function + "("), *self._named(given, ", "), ("call", ")")]

    def _came(self, outcome: Row | None) -> Pieces:
        if outcome is None:
            return [("dim", " (running)")]
        value = self._value(outcome)
        if outcome[6] == "exception":
            return [("exception", f" ! {value}" if value else " !")]
        return [("return", " = "), ("value", value)] if value else []

    def what(self, event: Row) -> Pieces:
        """An event without its columns."""
        kind = event[6]
        style, sign = _STYLES[kind], self._look.own(SIGNS[kind]) + " "
        if kind == "call":
            return [(style, sign), *self._called(event)]
        if kind == "lost":
            number = self._value(event)
            number = f"{int(number):,}" if number.isdecimal() else "some"
            return [(style, f"{sign}{number} events lost{self._look.own(' …')}")]
        if kind == "log":
            message, *named = arguments(event[13]) or [{"value": ""}]
            start = [(style, sign + self._shown(message["value"])), ("", "  " if named else "")]
            return start + self._named(named, "  ")
        full, short = self._names(event[7], event[8])
        if kind == "resume":
            return [(style, sign + full)]
        value = self._value(event)
        what = f"{sign}{short}: " if value else sign + short
        if kind not in _LOUD:
            return [(style, what), ("value", value)]
        line = f"  line {event[10]}" if kind == "raise" and event[10] else ""
        return [(style, what + value + line)]

    def _named(self, given: list[dict[str, str]], between: str) -> Pieces:
        shown = self._shown
        pieces: Pieces = []
        last = len(given) - 1
        for place, each in enumerate(given):
            value = f"={shown(each['value'])}"
            pieces += [("name", shown(each["name"])), ("", value if place == last else value + between)]
        return pieces

    def _value(self, event: Row) -> str:
        """What it returned, yielded, raised or lost."""
        hidden = not self._look.values and event[6] in ("return", "yield")
        if event[13] == "[]" or hidden:
            return ""
        return self._shown(arguments(event[13])[0]["value"])

    def _make_names(self, module: bytes, func: bytes) -> tuple[str, str]:
        short = self._shown(text(func))
        return (f"{self._shown(text(module))}.{short}" if module else short), short


def joined(pieces: Pieces) -> Line:
    """Texts that follow each other as one line."""
    spans = []
    end = 0
    for style, piece in pieces:
        start, end = end, end + len(piece)
        if style and piece:
            spans.append((start, end, style))
    return Line("".join([piece for _, piece in pieces]), tuple(spans))
