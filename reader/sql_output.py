"""Writes the rows of a query as text, JSON lines or CSV. Knows neither the database nor the screen.

`text` is for people: nothing in it can move a terminal's cursor or turn its text around.
"""

from __future__ import annotations

import csv
import math
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from json import JSONEncoder
from types import SimpleNamespace
from typing import Any, Protocol

from .render import printable

Value = None | int | float | bytes | str
Line = Callable[[str], None]  # takes a line without its end

_PAGE = 200  # rows whose widths count
_WIDTH_MAX = 60  # of a column; what is longer pushes the rest of its line
_BLOB_MAX = 32  # bytes that are shown
_encode = JSONEncoder().encode  # ASCII, so that nothing in a value can break a line or a terminal
_NAME_MAX = 100
_quoted = lru_cache(4096)(_encode)  # most short texts are names, which come again


class Writer(Protocol):
    """What a format is: a table begins, has rows, and ends."""

    def begin(self, columns: Sequence[str]) -> None: ...
    def row(self, values: Sequence[Any]) -> None: ...
    def pause(self) -> None:
        """Hands out the rows that were held back, if any."""

    def end(self) -> None: ...


def writer(format: str, line: Line) -> Writer:
    """The writer of a format: text, json or csv."""
    makers: dict[str, Callable[[Line], Writer]] = {"text": TextWriter, "json": JsonWriter, "csv": CsvWriter}
    return makers[format](line)


def _width(text: str) -> int:
    """Places on the screen."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def text_cell(value: Value) -> str:
    """A value in one line, for people."""
    if isinstance(value, str):
        return printable(value)
    if value is None:
        return ""
    if isinstance(value, bytes):
        cut = "" if len(value) <= _BLOB_MAX else f"... {len(value)} bytes"
        return f"x'{value[:_BLOB_MAX].hex()}'{cut}"
    return str(value)


class TextWriter:
    """Columns, as wide as the first rows need; numbers stand at the right."""

    def __init__(self, line: Line, null: str = "") -> None:
        self._line, self._null = line, null
        self._columns: Sequence[str] = ()
        self._page: list[Sequence[Value]] = []
        self._pads: list[int] = []  # negative: at the right
        self._format = ""
        self._tables = 0

    def begin(self, columns: Sequence[str]) -> None:
        if self._tables:
            self._line("")
        self._tables += 1
        self._columns, self._page, self._pads = columns, [], []

    def row(self, values: Sequence[Value]) -> None:
        if self._pads:
            self._write(self._cells(values))
            return
        self._page.append(values)
        if len(self._page) >= _PAGE:
            self._settle()

    def pause(self) -> None:
        if self._page:
            self._settle()

    def end(self) -> None:
        if self._columns and not self._pads:
            self._settle()
        self._columns = ()

    def _settle(self) -> None:
        """Now the columns have their widths."""
        rows = [self._cells(values) for values in self._page]
        head: list[int | str] = [printable(name) for name in self._columns]
        widths = [
            min(max(_width(str(cell)) for cell in column), _WIDTH_MAX)
            for column in zip(head, *rows, strict=True)
        ]
        columns = zip(*self._page, strict=True) if self._page else [()] * len(head)
        self._pads = [
            width if all(isinstance(value, int | float | None) for value in column) else -width
            for width, column in zip(widths, columns, strict=True)
        ]
        self._format = "  ".join(f"%{pad}s" for pad in self._pads)
        self._page = []
        self._write(head)
        self._write(["-" * width for width in widths])
        for cells in rows:
            self._write(cells)

    def _cells(self, values: Sequence[Value]) -> list[int | str]:
        return [
            value if value.__class__ is int else self._null if value is None else text_cell(value)
            for value in values
        ]  # fmt: skip

    def _write(self, cells: Sequence[int | str]) -> None:
        line = self._format % tuple(cells)
        if not line.isascii():  # then not every letter takes one place
            line = "  ".join(map(_padded, map(str, cells), self._pads))
        self._line(line.rstrip())


def _padded(cell: str, width: int) -> str:
    """Positive widths are padded at the left."""
    spaces = " " * (abs(width) - _width(cell))
    return spaces + cell if width > 0 else cell + spaces


class JsonWriter:
    """An object a row, in ASCII. Bytes are a text of hexadecimal digits."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._format = ""

    def begin(self, columns: Sequence[str]) -> None:
        names: list[str] = []
        for name in columns:  # one that is there twice would hide a value
            unique, number = name, 0
            while unique in names:
                number += 1
                unique = f"{name}:{number}"
            names.append(unique)
        pairs = [f"{_encode(name).replace('%', '%%')}: %s" for name in names]
        self._format = "{" + ", ".join(pairs) + "}"

    def row(self, values: Sequence[Value]) -> None:
        self._line(self._format % tuple(map(_json, values)))

    def pause(self) -> None: ...
    def end(self) -> None: ...


def _json(value: Value) -> int | str:
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return _quoted(value) if len(value) <= _NAME_MAX else _encode(value)
    if isinstance(value, float) and math.isinf(value):  # JSON has none, but numbers beyond all limits
        return "9e999" if value > 0 else "-9e999"
    return _encode(value.hex() if isinstance(value, bytes) else value)


class CsvWriter:
    """RFC 4180: names first, lines end with CR LF. NULL is an empty field, bytes are hexadecimal digits."""

    def __init__(self, line: Line) -> None:
        self._writer = csv.writer(SimpleNamespace(write=line), lineterminator="\r")  # line() adds the LF

    def begin(self, columns: Sequence[str]) -> None:
        self._writer.writerow(columns)

    def row(self, values: Sequence[Value]) -> None:
        self._writer.writerow([value.hex() if isinstance(value, bytes) else value for value in values])

    def pause(self) -> None: ...
    def end(self) -> None: ...
