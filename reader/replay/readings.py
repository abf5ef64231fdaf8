"""Recorded values read back from their texts. Nothing is executed: a text is taken apart.

A value that was recorded whole becomes that value of Python. One that was cut, and an object of
another type, becomes what is known of it: Cut, Partial or Other. Unknown stands for no value.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Any, NamedTuple

from .state import Item

_DEPTH_MAX = 20  # containers inside each other; the recorder stops far earlier
_LENGTH_MAX = 100_000  # characters of a text that is taken apart
_KEPT = 4096  # readings

_STRING = r"(?P<bytes>b?)(?P<quote>['\"])(?P<body>(?:(?!(?P=quote))[^\\]|\\.)*)(?P=quote)(?P<cut>\.\.\.)?"
_NUMBER = (
    r"(?P<int>[+-]?[0-9]+)(?P<more>\.\.\.)?(?![\w.])"
    r"|(?P<float>[+-]?(?:inf|nan|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?![\w.]))"
    r"|(?P<complex>\([+-]?(?:[0-9.]|inf|nan|e[+-])+[+-](?:[0-9.]|inf|nan|e[+-])+j\)"
    r"|[+-]?(?:[0-9.]|inf|nan|e[+-])+j)"
)
_WORD = r"(?P<word>True|False|None|Ellipsis|set\(\)|frozenset\(\))(?![\w.(])"
_SCALAR = re.compile(f"{_STRING}|{_NUMBER}|{_WORD}", re.DOTALL)
_SKIPPED = re.compile(
    r"[^'\"()\[\]{}<>,:]+|b?(?P<quote>['\"])(?:(?!(?P=quote))[^\\]|\\.)*(?P=quote)|.", re.DOTALL
)
_WORDS: dict[str, Any] = {
    "True": True, "False": False, "None": None, "Ellipsis": ..., "set()": set(), "frozenset()": frozenset(),
}  # fmt: skip
_CLOSING = {"[": "]", "(": ")", "{": "}", "<": ">"}


class Unknown(NamedTuple):
    """No value, and why."""

    reason: str


class Cut(NamedTuple):
    """A string or bytes of which only the beginning was recorded: there is more of it."""

    prefix: str | bytes


class Other(NamedTuple):
    """An object by its text: of another type than those that can be read."""

    text: str
    type: str


class Partial(NamedTuple):
    """A container, not all of which can be read. parts: name (`[0]`, `['key']`), text, value and
    key of each. cut: there are more."""

    type: str
    text: str
    parts: tuple[Part, ...]
    cut: bool


class Part(NamedTuple):
    """An item of a container: its name (`[0]`), its text, its value, and its key in a dict."""

    name: str
    text: str
    value: Any
    key: Any = None


def read(item: Item) -> Any:
    """What is known of a recorded value."""
    if item.type == "int" and len(item.value) < 20:
        try:
            return int(item.value)
        except ValueError:
            pass
    return _read(item.value, item.type)


@lru_cache(_KEPT)
def _read(text: str, type: str) -> Any:
    if len(text) > _LENGTH_MAX:
        return Other(text, type)
    reader = _Reader(text, type)
    try:
        value = reader.value(0)
    except (ValueError, IndexError):
        return Other(text, type)
    return value if reader.at == len(text) else Other(text, type)


class Parts(NamedTuple):
    """The items of a container. kind: its bracket; "": a set, whose items have no place. cut: there
    are more that were not recorded."""

    items: tuple[Item, ...]
    kind: str
    cut: bool


def parts_of(item: Item) -> Parts | None:
    """The items of a container, from its text where they are not at hand. None: it is none."""
    if item.items and not item.items[0].name.startswith("["):
        return _fields(item) if _is_named_tuple(item) else None
    inner = _inner(item.value)
    reader = _Reader(inner, "")
    try:
        found, cut = reader.container(0)
    except (ValueError, IndexError):
        return _fields(item) if _is_named_tuple(item) else None
    if reader.at != len(inner):
        return None
    is_set = inner[0] == "{" and bool(found) and not found[0].name
    items = item.items or tuple(Item(part.name, part.text, type_of(part.value)) for part in found)
    return Parts(items, "" if is_set else inner[0], cut)


def attribute_of(item: Item, name: str) -> Item | None:
    """An attribute of an object, or a field of a named tuple. None: it was not recorded."""
    parts = item.items or _fields(item).items
    return next((part for part in parts if part.name == name), None)


def _is_named_tuple(item: Item) -> bool:
    """`Point(x=1, y=2)`; an object's text has its module in front."""
    return bool(re.match(r"[^\W\d]\w*\([^\W\d]\w*=", item.value))


def _fields(item: Item) -> Parts:
    """What stands in `app.Order(user='bob', total=3)`."""
    is_cut = item.value.endswith("...)")
    if item.items:
        return Parts(item.items, "(", is_cut)
    found: list[Item] = []
    head = re.match(r"[\w.<>]+\(", item.value)
    if not head or not item.value.endswith(")"):
        return Parts((), "(", is_cut)
    reader = _Reader(item.value, "")
    reader.at = head.end()
    try:
        while name := re.compile(r"(\w+)=").match(item.value, reader.at):
            reader.at = begin = name.end()
            value = reader.value(1)
            found.append(Item(name[1], item.value[begin : reader.at], type_of(value)))
            if item.value.startswith(", ", reader.at):
                reader.at += 2
    except (ValueError, IndexError):
        return Parts((), "(", True)
    return Parts(tuple(found), "(", is_cut)


def _inner(text: str) -> str:
    """The container in `MyList([1, 2])`, `deque([1, 2], maxlen=3)`, `defaultdict(..., {...})`."""
    head = re.match(r"[\w.]+\((?:<class '[\w.]+'>, )?(?=[\[{(])", text)
    if not head or not text.endswith(")"):
        return text
    return re.sub(r", maxlen=\d+$", "", text[head.end() : -1])


def type_of(value: Any) -> str:
    """The name of a value's type; "" if that is not known."""
    if isinstance(value, (Other, Partial)):
        return value.type
    if isinstance(value, Cut):
        return "str" if isinstance(value.prefix, str) else "bytes"
    return type(value).__name__ if not isinstance(value, Unknown) else ""


def is_plain(value: Any) -> bool:
    """Whether it is a value of Python, all of it known."""
    return not isinstance(value, (Unknown, Cut, Other, Partial))


class _Reader:
    def __init__(self, text: str, type: str) -> None:
        self.text, self.type, self.at = text, type, 0

    def value(self, depth: int) -> Any:
        """Raises ValueError, IndexError: this is no text that can be read."""
        if depth > _DEPTH_MAX:
            raise ValueError
        start = self.at
        match = _SCALAR.match(self.text, start)
        if match:
            self.at = match.end()
            return self._scalar(match)
        if self.text.startswith("frozenset({", start):
            self.at += len("frozenset(")
            found, cut = self.container(depth)
            self._expect(")")
            return self._made("frozenset", start, found, cut)
        if self.text.startswith("bytearray(b", start):
            self.at += len("bytearray(")
            inner = self.value(depth + 1)
            self._expect(")")
            return (
                bytearray(inner)
                if isinstance(inner, bytes)
                else Other(self.text[start : self.at], "bytearray")
            )
        if self.text[start] in "[({":
            opening = self.text[start]
            found, cut = self.container(depth)
            kind = {"[": "list", "(": "tuple"}.get(opening)
            if kind is None:
                is_set = bool(found) and not found[0].name
                kind = "set" if is_set else "dict" if found or not cut else ""
            if depth == 0 and not kind and self.type in ("dict", "set"):
                kind = self.type
            return self._made(kind, start, found, cut)
        return self._other(start)

    def container(self, depth: int) -> tuple[list[Part], bool]:
        """The parts of the container that begins here, and whether there are more."""
        closing = {"[": "]", "(": ")", "{": "}"}.get(self.text[self.at])
        if closing is None:
            raise ValueError
        is_braced = closing == "}"
        self.at += 1
        found: list[Part] = []
        while self.text[self.at] != closing:
            if self.text.startswith("...", self.at) and self.text[self.at + 3] == closing:
                self.at += 4
                return found, True
            start = self.at
            value = self.value(depth + 1)
            text = self.text[start : self.at]
            if is_braced and self.text.startswith(": ", self.at):
                self.at += 2
                begin = self.at
                found.append(Part(f"[{text}]", "", self.value(depth + 1), value))
                found[-1] = found[-1]._replace(text=self.text[begin : self.at])
            else:
                found.append(Part("" if is_braced else f"[{len(found)}]", text, value))
            if self.text.startswith(", ", self.at):
                self.at += 2
            elif self.text.startswith(",)", self.at) and closing == ")":
                self.at += 1
            elif self.text[self.at] != closing:
                raise ValueError
        self.at += 1
        return found, False

    def _made(self, kind: str, start: int, found: list[Part], cut: bool) -> Any:
        text = self.text[start : self.at]
        whole = not cut and all(is_plain(part.value) and is_plain(part.key) for part in found)
        if whole:
            values = [part.value for part in found]
            try:
                if kind == "dict":
                    return {part.key: part.value for part in found}
                return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](values)
            except TypeError:  # unhashable: no text of Python's own
                pass
        return Partial(kind, text, tuple(found), cut)

    def _scalar(self, match: re.Match[str]) -> Any:
        if match["quote"]:
            body = match["body"]
            value: str | bytes
            if "\\" in body or match["bytes"]:
                quote = match["quote"]
                value = ast.literal_eval(f"{match['bytes']}{quote}{body}{quote}")
            else:
                value = body
            return Cut(value) if match["cut"] else value
        if match["int"]:
            return Other(match.group(), "int") if match["more"] else int(match["int"])
        if match["float"]:
            return float(match["float"])
        if match["complex"]:
            return complex(match["complex"])
        return _WORDS[match["word"]]

    def _other(self, start: int) -> Other:
        """An object's text, up to the end of its brackets."""
        opened: list[str] = []
        for match in _SKIPPED.finditer(self.text, start):
            sign = match.group()
            if sign in _CLOSING:
                opened.append(_CLOSING[sign])
            elif opened and sign == opened[-1]:
                opened.pop()
            elif not opened and sign in (",", ":", "]", "}", ")"):
                break
            elif sign in ("]", "}", ")") or (sign in "'\"" and len(sign) == 1 and self.text[start] != "<"):
                raise ValueError
            self.at = match.end()
        if opened or self.at == start:
            raise ValueError
        text = self.text[start : self.at]
        return Other(text, self.type if not start and self.at == len(self.text) else _type_in(text))

    def _expect(self, sign: str) -> None:
        if not self.text.startswith(sign, self.at):
            raise ValueError
        self.at += len(sign)


def _type_in(text: str) -> str:
    """The type in `<app.Order at 0x7f00>`; "" if the text does not tell it."""
    match = re.match(r"<([\w.<>]+) at 0x[0-9a-f]+>$", text)
    return match[1] if match else ""
