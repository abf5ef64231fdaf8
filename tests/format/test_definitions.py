"""Definitions: the dumper's decoder against Google's protobuf."""

import json
import shlex
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytracer.dumper.definitions import CodeRow, DecodeError, DefinitionRows, decode

from records import Google, generate
from shared import Shared

UNKNOWN = (  # fields of each type, as a later version may write them
    b"",
    b"\x98\x06\x96\x01",  # 99: a number
    b"\x99\x06" + bytes(8),
    b"\x9a\x06\x03abc",
    b"\x9d\x06" + bytes(4),
)

number = st.integers(0, (1 << 32) - 1)
name = st.binary(max_size=200)
bodies = {
    "code": st.fixed_dictionaries(
        {}, optional={
            "number": number, "module": name, "func": name, "file": name, "line": number,
            "argument": st.lists(name, max_size=4), "flags": number, "language": st.integers(0, 9),
            "mine": st.booleans(), "variable": st.lists(name, max_size=4),
        },
    ),
    "type": st.fixed_dictionaries(
        {},
        optional={
            "number": number,
            "name": name,
            "field": st.lists(name, max_size=3),
            "attribute": st.lists(name, max_size=4),
        },
    ),
    "thread": st.fixed_dictionaries(
        {}, optional={"stream": number, "process": number, "tid": st.integers(0, (1 << 64) - 1), "name": name,
            "kind": st.integers(0, 3),
        },
    ),
    "process": st.fixed_dictionaries(
        {}, optional={"number": number, "pid": number, "parent": number, "command": name, "python": name}
    ),
}  # fmt: skip
definitions = st.lists(
    st.sampled_from(sorted(bodies)).flatmap(lambda kind: st.tuples(st.just(kind), bodies[kind])), max_size=5
)


@pytest.fixture(scope="module")
def google(shared: Shared) -> Google:
    return Google(shared("google", generate))


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def shown(names: Sequence[bytes]) -> str | None:
    return json.dumps(list(map(text, names)), ensure_ascii=False) if names else None


def enumerated(message: Any, field: str) -> str:
    """The name of a field's constant; of one of a later version its number."""
    number = getattr(message, field)
    values = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    return values[number].name.lower() if number in values else str(number)


def expected(messages: Any) -> DefinitionRows:
    """The findings of Google's decoder, as rows."""
    rows = DefinitionRows([], [], [], [])
    for definition in messages:
        kind = definition.WhichOneof("what")
        if kind == "code":
            code = definition.code
            names, variables = (
                json.dumps(list(map(text, names)), ensure_ascii=False)
                for names in (code.argument, code.variable)
            )
            three = text(code.module), text(code.func), text(code.file)
            language = enumerated(code, "language")
            more = code.flags, language, code.mine, variables
            place = text(code.file), code.build_id.hex(), code.address & (1 << 63) - 1
            native = place if language == "native" else (None, None, None)
            rows.codes.append(CodeRow(code.number, *three, code.line, names, *more, *native))
        elif kind == "type":
            type = definition.type
            rows.types.append((type.number, text(type.name), shown(type.field), shown(type.attribute)))
        elif kind == "thread":
            it = definition.thread
            tid, kind = it.tid & (1 << 63) - 1, enumerated(it, "kind")
            rows.threads.append((it.stream, it.process, tid, text(it.name), kind))
        elif kind == "process":
            process = definition.process
            command = shlex.join(map(text, process.command.split(b"\0")))
            parent = process.parent - 1 if process.parent else None
            rows.processes.append((process.number, process.pid, parent, command))
    return rows


def decoded(data: bytes) -> DefinitionRows:
    rows = DefinitionRows([], [], [], [])
    decode(data, rows)
    return rows


def packed(field: int, data: bytes) -> bytes:
    """A length-delimited field; its length in five bytes, more than it needs."""
    size = len(data)
    return (
        bytes([field << 3 | 2, *(size >> shift & 127 | 128 for shift in (0, 7, 14, 21)), size >> 28]) + data
    )


@given(made=definitions, unknown=st.sampled_from(UNKNOWN))
def test_definitions_are_what_googles_decoder_finds(
    google: Google, made: list[tuple[str, dict[str, Any]]], unknown: bytes
) -> None:
    messages = google.messages
    data = unknown
    for kind, fields in made:
        message = getattr(messages, kind.capitalize())(**fields)
        field = messages.Definition.DESCRIPTOR.fields_by_name[kind].number
        data += packed(1, packed(field, message.SerializeToString() + unknown) + unknown)
    assert decoded(data) == expected(messages.Definitions.FromString(data).definition)


@given(data=st.binary(max_size=60), kind=st.integers(0, 9))
def test_what_google_refuses_is_refused(google: Google, data: bytes, kind: int) -> None:
    for nested in (data, packed(1, data), packed(1, packed(kind, data)) if kind else data):
        try:
            decoded(nested)
        except DecodeError:  # of groups, too, which Google's decoder passes over
            continue
        google.messages.Definitions.FromString(nested)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff",  # a tag without an end
        b"\x0a",  # no length
        b"\x0a\x02\x08",  # less than the length says
        b"\x00\x00",  # field 0
        b"\x0b",  # a group
        b"\x08" + b"\xff" * 10,  # a number of more than ten bytes
        b"\x0d\0\0\0",  # three of four bytes
        b"\x0a\x03\x0a\x05\x08",  # within: less than its length says
    ],
)
def test_damage_is_noticed(google: Google, data: bytes) -> None:
    with pytest.raises(DecodeError):
        decoded(data)
    with pytest.raises(Exception, match="pars"):
        google.messages.Definitions.FromString(data)
