"""Definitions in a chunk, as rows of the tables that they belong to.

A definition is a protobuf message, `Definition` in proto/trace.proto. This module decodes it
without protobuf: pytrace is installed beside the program that it records, and that program may need
any version of protobuf.
"""

import json
import shlex
from typing import Any, NamedTuple

VARINT, BYTES = 0, 2  # types of fields: the low three bits of a tag
WIDTHS = {1: 8, 5: 4}  # of other types, in bytes
UINT32_MAX = (1 << 32) - 1
INTEGER_MAX = (1 << 63) - 1  # of SQL

LANGUAGES = ("python", "cython", "c", "native", "kernel")  # Code.Language
KINDS = ("thread", "processor", "kernel")  # Thread.Kind

Field = tuple[int, Any]  # a tag, and an int for VARINT, bytes for BYTES


_as_json = json.JSONEncoder(ensure_ascii=False).encode


class DecodeError(ValueError):
    """The bytes are no protobuf message."""


class CodeRow(NamedTuple):
    """A row of the table `code`, without run, in the order of its columns."""

    number: int
    module: str
    func: str
    file: str
    line: int
    arguments: str
    flags: int
    language: str
    mine: bool
    variables: str
    object: str | None
    build_id: str | None
    address: int | None


class DefinitionRows(NamedTuple):
    """Rows without run."""

    codes: list[CodeRow]
    types: list[tuple[int, str, str | None, str | None]]
    threads: list[tuple[int, int, int, str, str]]
    processes: list[tuple[int, int, int | None, str]]


def decode(data: bytes, rows: DefinitionRows) -> None:
    """Adds the definitions in `data`, which is whole records of a chunk; skips unknown kinds.
    Raises DecodeError."""
    for tag, definition in _fields(data):
        if tag == 1 << 3 | BYTES:
            for kind, what in _fields(definition):
                if kind in ADD:
                    ADD[kind](rows, _fields(what))


def _add_code(rows: DefinitionRows, fields: list[Field]) -> None:
    code = dict(fields)
    language = _name(code, 8, LANGUAGES)
    native = language == "native"
    rows.codes.append(
        CodeRow(
            _number(code, 1),
            _text(_bytes(code, 2)),
            _text(_bytes(code, 3)),
            _text(_bytes(code, 4)),
            _number(code, 5),
            _as_json(_texts(fields, 6)),
            _number(code, 7),
            language,
            bool(_number(code, 9)),
            _as_json(_texts(fields, 10)),
            _text(_bytes(code, 4)) if native else None,
            _bytes(code, 11).hex() if native else None,
            _number(code, 12, INTEGER_MAX) if native else None,
        )
    )


def _add_type(rows: DefinitionRows, fields: list[Field]) -> None:
    type = dict(fields)
    names = _texts(fields, 3), _texts(fields, 4)
    items, attributes = (_as_json(each) if each else None for each in names)
    rows.types.append((_number(type, 1), _text(_bytes(type, 2)), items, attributes))


def _add_thread(rows: DefinitionRows, fields: list[Field]) -> None:
    thread = dict(fields)
    tid = _number(thread, 3, INTEGER_MAX)
    name, kind = _text(_bytes(thread, 4)), _name(thread, 5, KINDS)
    rows.threads.append((_number(thread, 1), _number(thread, 2), tid, name, kind))


def _add_process(rows: DefinitionRows, fields: list[Field]) -> None:
    process = dict(fields)
    parent = _number(process, 3)
    command = shlex.join(_text(word) for word in _bytes(process, 4).split(b"\0"))
    row = _number(process, 1), _number(process, 2), parent - 1 if parent else None, command
    rows.processes.append(row)


ADD = {  # by the tag in Definition
    1 << 3 | BYTES: _add_code,
    2 << 3 | BYTES: _add_type,
    3 << 3 | BYTES: _add_thread,
    4 << 3 | BYTES: _add_process,
}


# ---- messages of protobuf ------------------------------------------------------------------------


def _fields(data: bytes) -> list[Field]:
    """The fields of a message in their order, without those of fixed width: no definition has any.
    Raises DecodeError."""
    fields: list[Field] = []
    at, end = 0, len(data)
    while at < end:
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
        kind = tag & 7
        if not 1 << 3 <= tag <= UINT32_MAX:
            raise DecodeError
        if kind == BYTES:
            size, at = _varint(data, at)
            fields.append((tag, data[at : at + size]))
            at += size
        elif kind == VARINT:
            number, at = _varint(data, at)
            fields.append((tag, number))
        elif kind in WIDTHS:
            at += WIDTHS[kind]
        else:
            raise DecodeError
    if at > end:
        raise DecodeError
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at this position, and the position behind it. Raises DecodeError."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise DecodeError
        byte = data[at]
        at += 1
        if byte < 128:  # the last one
            return number | byte << shift, at
        number |= (byte - 128) << shift
    raise DecodeError


def _number(fields: dict[int, Any], field: int, largest: int = UINT32_MAX) -> int:
    """0 if the field is left out."""
    return int(fields.get(field << 3 | VARINT, 0)) & largest


def _name(fields: dict[int, Any], field: int, names: tuple[str, ...]) -> str:
    """The name of an enumeration's constant; its number, if it is unknown."""
    number = _number(fields, field)
    return names[number] if number < len(names) else str(number)


def _bytes(fields: dict[int, Any], field: int) -> bytes:
    return bytes(fields.get(field << 3 | BYTES, b""))


def _texts(fields: list[Field], field: int) -> list[str]:
    """Those of a repeated field."""
    return [_text(data) for tag, data in fields if tag == field << 3 | BYTES]


def _text(data: bytes) -> str:
    """Lone surrogates, which SQL's texts cannot hold, become question marks."""
    return data.decode("utf-8", "replace")
