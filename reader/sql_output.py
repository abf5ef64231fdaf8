"""Writes the rows of a query as text, JSON lines or CSV. Knows neither the database nor the screen.

`text` is for people: no text can move a terminal's cursor or turn its direction around.
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

from ..messages import printable
from .render import duration

Value = None | int | float | bytes | str
Line = Callable[[str], None]  # takes a line without its end
# Where a column comes from: the names of its table and of its column there; None: from none.
Origin = tuple[str | None, str | None]

_PAGE = 200  # rows that decide on the widths
_WIDTH_MAX = 60  # of a column; a longer cell moves the rest of its line
_BLOB_MAX = 32  # bytes that are shown
_encode = JSONEncoder().encode  # ASCII: no value can break a line or a terminal
_NAME_MAX = 100
# Columns of the tables `hot` and `line`, so that they fit a screen.
_SHORT = ("hot", "line")
_DURATIONS = ("own", "total", "average", "longest", "median")
_quoted = lru_cache(4096)(_encode)  # most short texts are names, which repeat


class Writer(Protocol):
    """A format: a table begins, has rows, and ends."""

    def begin(self, columns: Sequence[str], origins: Sequence[Origin] = ()) -> None: ...
    def row(self, values: Sequence[Any]) -> None: ...
    def pause(self) -> None:
        """Writes the rows that were held back, if any."""

    def end(self) -> None: ...


def writer(format: str, line: Line) -> Writer:
    """The writer of a format: text, json or csv."""
    makers: dict[str, Callable[[Line], Writer]] = {"text": TextWriter, "json": JsonWriter, "csv": CsvWriter}
    return makers[format](line)


def _width(text: str) -> int:
    """The number of columns on the screen."""
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


def origins(description: Sequence[Sequence[str | None]]) -> list[Origin]:
    """Origins of columns, by SQLite's full description of them."""
    return [(table, column) for _, _, _, table, column in description]


def _is_time(origin: Origin) -> bool:
    return origin[0] in _SHORT and origin[1] in _DURATIONS


def _short(value: Any, origin: Origin) -> Any:
    """A value of one of these tables: a time with its unit, a file without its folder."""
    if isinstance(value, int) and _is_time(origin):
        return duration(value) if value >= 0 else f"-{duration(-value)}"
    if isinstance(value, str) and origin[0] in _SHORT and origin[1] == "file":
        return value.rpartition("/")[2]
    return value


class TextWriter:
    """Columns, as wide as the first rows need; numbers stand at the right. Those of the tables
    `hot` and `line` are short."""

    def __init__(self, line: Line, null: str = "") -> None:
        self._line, self._null = line, null
        self._columns: Sequence[str] = ()
        self._origins: Sequence[Origin] = ()  # () if no column is shortened
        self._page: list[Sequence[Value]] = []
        self._pads: list[int] = []  # negative: at the right
        self._format = ""
        self._tables = 0

    def begin(self, columns: Sequence[str], origins: Sequence[Origin] = ()) -> None:
        if self._tables:
            self._line("")
        self._tables += 1
        self._origins = origins if any(table in _SHORT for table, _ in origins) else ()
        self._columns, self._page, self._pads = columns, [], []

    def row(self, values: Sequence[Value]) -> None:
        if self._origins:
            values = list(map(_short, values, self._origins))
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
        """Fixes the widths of the columns."""
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
        for place, origin in enumerate(self._origins):
            if _is_time(origin):
                self._pads[place] = widths[place]
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
        if not line.isascii():  # then letters differ in width
            line = "  ".join(map(padded, map(str, cells), self._pads))
        self._line(line.rstrip())


def padded(cell: str, width: int) -> str:
    """Pads a cell: at the left for a positive width."""
    spaces = " " * (abs(width) - _width(cell))
    return spaces + cell if width > 0 else cell + spaces


class JsonWriter:
    """An object a row, in ASCII. Bytes are a text of hexadecimal digits."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._format = ""

    def begin(self, columns: Sequence[str], origins: Sequence[Origin] = ()) -> None:
        names: list[str] = []
        for name in columns:  # a name that repeats would hide a value
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
    if isinstance(value, float) and math.isinf(value):  # JSON has no infinity, but 9e999
        return "9e999" if value > 0 else "-9e999"
    return _encode(value.hex() if isinstance(value, bytes) else value)


class CsvWriter:
    """RFC 4180: names first, lines end with CR LF. NULL is an empty field, bytes are hexadecimal
    digits."""

    def __init__(self, line: Line) -> None:
        # line() adds the LF
        self._writer = csv.writer(SimpleNamespace(write=line), lineterminator="\r")

    def begin(self, columns: Sequence[str], origins: Sequence[Origin] = ()) -> None:
        self._writer.writerow(columns)

    def row(self, values: Sequence[Value]) -> None:
        self._writer.writerow([value.hex() if isinstance(value, bytes) else value for value in values])

    def pause(self) -> None: ...
    def end(self) -> None: ...
