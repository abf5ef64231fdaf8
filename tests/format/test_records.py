"""Records: the C encoder and decoder against Google's protobuf, and values as text against repr."""

import math
import random
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import (
    CONSTANTS,
    CONTAINERS,
    KINDS,
    LATER,
    NAMED,
    Google,
    Native,
    Record,
    Val,
    build_native,
    container,
    generate,
    val,
    varint,
)  # fmt: skip
from shared import Shared

TRUNCATED, MALFORMED = -1, -2

TYPES = {
    1: "app.Order",
    2: "app.make.<locals>.Point",
    3: "ValueError",
    4: "Größe",
    5: "app.Tags",
    6: "list",
    7: "dict",
}


@pytest.fixture(scope="module")
def native(shared: Shared) -> Native:
    return Native(shared("native", build_native), TYPES)


@pytest.fixture(scope="module")
def google(shared: Shared) -> Google:
    return Google(shared("google", generate))


# ---- records of all sorts ---------------------------------------------------------------------


def numbers(bits: int) -> st.SearchStrategy[int]:
    """Unsigned, of all lengths."""
    return st.integers(0, bits).flatmap(lambda size: st.integers(0, (1 << size) - 1))


def signed(bits: int) -> st.SearchStrategy[int]:
    return numbers(bits - 1).flatmap(lambda n: st.sampled_from((n, -n - 1)))


CONTENT = st.one_of(
    st.tuples(st.just("constant"), st.integers(0, len(CONSTANTS) - 1)),
    st.tuples(st.just("integer"), signed(64)),
    st.tuples(st.just("floating"), st.floats(allow_nan=False)),
    st.tuples(st.sampled_from(("text", "data", "big", "repr")), st.binary(max_size=300)),
    st.tuples(st.just("address"), numbers(64)),
)


def values(depth: int = 4) -> st.SearchStrategy[Val]:
    type_, length = st.just(0) | numbers(32), st.just(0) | numbers(64)
    leaf = st.builds(
        lambda content, t, n, keyword: Val(content[0], content[1], (), t, n, keyword=keyword),
        CONTENT,
        type_,
        length,
        st.just(b"") | st.binary(max_size=20),
    )
    named = st.builds(
        lambda kind, name, t: Val("named", kind, (), t, 0, name),
        st.integers(0, len(NAMED) - 1),
        st.binary(max_size=20),
        type_,
    )
    if not depth:
        return leaf | named
    items = st.lists(values(depth - 1), max_size=4).map(tuple)
    forms = st.just(0) | st.integers(0, 40)
    whole = st.builds(
        lambda kind, items, t, n, form: Val("container", kind, items, t, n, b"", form),
        st.integers(0, len(CONTAINERS) - 1),
        items,
        type_,
        length,
        forms,
    )
    return leaf | named | whole


RECORDS = st.builds(
    lambda kind, what, count, *rest: Record(kind, count if kind == "lost" else what, *rest),
    st.sampled_from(KINDS * 3 + LATER),
    numbers(32),
    numbers(64),
    numbers(64),
    st.none() | numbers(64),
    numbers(32),
    st.none() | signed(32),
    st.lists(values(), max_size=4).map(tuple),
    st.lists(st.binary(max_size=10), max_size=3).map(tuple),
    st.lists(numbers(32), max_size=4).map(tuple),
    st.none() | st.integers(0, (1 << 32) - 2),
    st.booleans(),
)


def get_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number there, and the position behind it."""
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return result, position


def fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The fields of a message: number, all its bytes, and those behind the tag and the length."""
    position = 0
    while position < len(data):
        start = position
        tag, position = get_varint(data, position)
        body = position
        match tag & 7:
            case 0:
                _, position = get_varint(data, position)
            case 1:
                position += 8
            case 2:
                size, body = get_varint(data, position)
                position = body + size
        yield tag >> 3, data[start:position], data[body:position]


def delimited(field: int, body: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(body)) + body


UNKNOWN = (
    varint(99 << 3) + b"\x07",
    varint(36 << 3 | 1) + b"8 bytes.",
    delimited(1000, b"?"),
    b"\xfd\x02abcd",
)


def shuffled(body: bytes, nested: frozenset[int], dice: random.Random) -> bytes:
    """The message with its fields in another order (but the elements of a repeated field in
    theirs), and unknown fields between them. nested: numbers of the fields that are messages."""
    queues: dict[int, list[bytes]] = {}
    for number, piece, inner in fields(body):
        if number in nested:
            piece = delimited(number, shuffled(inner, frozenset({10}), dice))
        queues.setdefault(number, []).append(piece)
    order = [number for number, pieces in queues.items() for _ in pieces]
    dice.shuffle(order)
    out = b""
    for number in order:
        if dice.random() < 0.2:
            out += dice.choice(UNKNOWN)
        out += queues[number].pop(0)
    return out


@given(records=st.lists(RECORDS, max_size=5))
def test_google_reads_what_the_hook_writes(native: Native, google: Google, records: list[Record]) -> None:
    assert google.decode(native.encode(*records)) == records


@given(records=st.lists(RECORDS, max_size=5))
def test_the_decoder_reads_what_google_writes(native: Native, google: Google, records: list[Record]) -> None:
    assert native.decode(google.encode(*records)) == records


@given(record=RECORDS, dice=st.randoms(use_true_random=False))
def test_fields_come_in_any_order_between_unknown_ones(
    native: Native, google: Google, record: Record, dice: random.Random
) -> None:
    ((_, _, body),) = fields(native.encode(record))
    data = delimited(1, shuffled(body, frozenset({14}), dice))
    assert native.decode(data) == [record]
    assert google.decode(data) == [record]


@given(record=RECORDS)
def test_skimming_tells_the_same(native: Native, record: Record) -> None:
    data = native.encode(record)
    assert native.decode(data, skim=True) == [record]
    assert native.status(data, skim=True) == len(data)


@given(record=RECORDS)
def test_a_record_cut_off_anywhere_is_truncated(native: Native, record: Record) -> None:
    data = native.encode(record)
    for size in range(len(data)):
        assert native.status(data[:size]) == TRUNCATED


def test_the_shortest_record(native: Native) -> None:
    assert native.decode(b"\x0a\x02\x08\x00") == [Record("call", 0)]


def record(*body: bytes) -> bytes:
    return delimited(1, b"".join(body))


CALL = b"\x08\x01"


def nested(depth: int) -> Val:
    value = val(1)
    for _ in range(depth - 1):
        value = container("LIST", value)
    return value


def test_nesting_is_bounded(native: Native) -> None:
    deepest = native.lib.VALUE_DEPTH_MAX
    assert native.decode(native.encode_value(nested(deepest)))
    assert native.status(native.encode_value(nested(deepest + 1))) == MALFORMED
    body = b""
    for _ in range(10_000):
        body = delimited(10, body)
    assert native.status(record(CALL, delimited(14, body))) == MALFORMED


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", TRUNCATED),
        (b"\x0a", TRUNCATED),
        (b"\x0a\x80", TRUNCATED),
        (b"\x0a" + b"\x80" * 10 + b"\x01", MALFORMED),  # a length of more than 64 bits
        (b"\x0a\xff\xff\xff\xff\x0f", MALFORMED),  # of 4 GiB
        (b"\x0a\xff\xff\xff\xff\x07", TRUNCATED),  # of 2 GiB, as protobuf allows
        (b"\x12\x00", MALFORMED),  # not a record
        (b"\x08\x01", MALFORMED),
        (record(), MALFORMED),  # of no kind
        (record(b"\x50\x01"), MALFORMED),
        (record(b"\x80\x02\x01"), MALFORMED),  # field 32, which is no kind
        (record(b"\x90\x01"), MALFORMED),  # kind 18, cut off
        (record(b"\x88\x01"), MALFORMED),  # kind 17, cut off
        (record(b"\x8a\x01\x00"), MALFORMED),  # of another wire type
        (record(b"\x80\x01"), MALFORMED),  # kind 16, cut off
        (record(b"\x82\x01\x00"), MALFORMED),  # of another wire type
        (record(b"\x80\x01\x80\x80\x80\x80\x10"), MALFORMED),  # no code has such a number
        (record(CALL, b"\x80\x02\x01"), MALFORMED),  # variables that are no bytes
        (record(CALL, b"\x82\x02\x01\x80"), MALFORMED),  # cut off
        (record(CALL, b"\x82\x02\x02\x01"), MALFORMED),
        (record(CALL, b"\x82\x02\x05\x80\x80\x80\x80\x10"), MALFORMED),
        (record(CALL, b"\x88\x02\x80\x80\x80\x80\x10"), MALFORMED),
        (record(CALL, b"\x8a\x02\x00"), MALFORMED),
        (record(CALL, b"\x92\x02\x00"), MALFORMED),
        (record(b"\x80"), MALFORMED),
        (record(b"\x0a\x01x"), MALFORMED),  # wrong wire types
        (record(CALL, b"\x51" + bytes(8)), MALFORMED),
        (record(CALL, b"\x70\x01"), MALFORMED),
        (record(CALL, b"\x78\x01"), MALFORMED),
        (record(CALL, b"\x72\x02\x0a\x00"), MALFORMED),
        (record(CALL, b"\x72\x02\x18\x00"), MALFORMED),
        (record(CALL, b"\x72\x02\x20\x00"), MALFORMED),
        (record(b"\x08" + b"\xff" * 9 + b"\x01"), MALFORMED),  # numbers too large
        (record(b"\x08\x80\x80\x80\x80\x10"), MALFORMED),
        (record(CALL, b"\x60\x80\x80\x80\x80\x10"), MALFORMED),
        (record(CALL, b"\x68\x80\x80\x80\x80\x10"), MALFORMED),
        (record(CALL, b"\x72\x06\x58\x80\x80\x80\x80\x10"), MALFORMED),
        (record(CALL, b"\x50"), MALFORMED),  # cut off inside
        (record(CALL, b"\x50\x80"), MALFORMED),
        (record(CALL, b"\x72\x05\x08\x00"), MALFORMED),
        (record(CALL, b"\x72\x02\x22\x05"), MALFORMED),
        (record(CALL, b"\x72\x04\x19\x00\x00\x00"), MALFORMED),
        (record(CALL, b"\x00\x00"), MALFORMED),  # field 0
        (record(CALL, b"\x9b\x06\x9c\x06"), MALFORMED),  # a group
        (record(CALL, b"\x9a\x06\x02x"), MALFORMED),  # unknown fields cut off
        (record(CALL, b"\x99\x06" + bytes(7)), MALFORMED),
        (record(CALL, b"\x9d\x06" + bytes(3)), MALFORMED),
        (record(CALL, b"\x98\x06"), MALFORMED),
    ],
)
def test_what_is_wrong_is_refused(native: Native, data: bytes, status: int) -> None:
    assert native.status(data) == status


@pytest.mark.parametrize(
    ("data", "what", "size"),
    [
        (b"\x90\x01\x07", 7, 3),
        (b"\xf8\x01\x07", 7, 3),  # kind 31
        (b"\x90\x81\x00\x07", 7, 4),  # a tag that is longer than it need be
        (b"\x90\x01\x80\x80\x80\x80\x10", 0, 7),  # no code has such a number
        (b"\x92\x01\x02xy", 0, 5),  # nor is this one
        (b"\x91\x01" + bytes(8), 0, 10),
    ],
)
def test_a_kind_of_a_later_version_is_told(native: Native, data: bytes, what: int, size: int) -> None:
    for skim in (False, True):
        (event,) = native.decode(record(data, b"\x50\x03\x68\x04"), skim)
        assert (event.kind in LATER, event.what, event.time, event.depth) == (True, what, 3, 2)
    assert len(data) == size


@given(record=RECORDS, dice=st.randoms(use_true_random=False))
def test_it_is_told_that_there_are_later_fields(native: Native, record: Record, dice: random.Random) -> None:
    ((_, _, body),) = fields(native.encode(record))
    later = dice.choice((b"", *UNKNOWN))
    data = delimited(1, body + later)
    event = native.ffi.new("struct event *")
    assert native.lib.event_skim(native.ffi.from_buffer(data), len(data), event) == len(data)
    assert event.has_later == bool(later)


# a constant, a container, a named thing, and a content that this version does not know
@pytest.mark.parametrize("body", [b"\x08\x0a", b"\x38\x1f", b"\x48\x05", b"\xf8\x01\x01", b""])
def test_a_value_of_a_later_version_is_shown_as_its_type(native: Native, body: bytes) -> None:
    data = record(CALL, delimited(14, body + b"\x58\x01"), delimited(14, body), delimited(14, b"\x10\x02"))
    event, cursor = native.ffi.new("struct event *"), native.ffi.new("const uint8_t **")
    value = native.ffi.new("struct value *")
    held = native.ffi.from_buffer(data)
    assert native.lib.event_decode(held, len(data), event) == len(data)
    buffer = native.ffi.new("char[]", 100)
    for expected in (b"<app.Order>", b"<unknown>"):
        assert native.lib.event_value(event, cursor, value)
        size = native.lib.text_value(value, native.names, buffer, 100)
        assert native.ffi.buffer(buffer)[:size] == expected
    assert native.lib.event_value(event, cursor, value)
    assert value.integer == 1


def test_the_last_of_a_field_counts(native: Native, google: Google) -> None:
    data = record(b"\x08\x01\x10\x02", b"\x50\x01\x50\x02", b"\x72\x05\x10\x02\x22\x01x")
    expected = [Record("return", 2, 2, values=(val("x"),))]
    assert native.decode(data) == google.decode(data) == expected


# ---- text -------------------------------------------------------------------------------------


def built_in(floats: bool = True) -> st.SearchStrategy[Any]:
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.just(...),
        st.just(NotImplemented),
        st.integers(),
        numbers(600).map(lambda n: -n),
        st.floats(),
        st.text(),
        st.text(st.characters()),  # surrogates included
        st.text("'\"\\\n\x00\x7fé\u202e\U0001f600x"),
        st.binary(),
        st.frozensets(st.integers(), max_size=3),
    )
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.lists(inner, max_size=3).map(tuple)
            | st.sets(st.integers() | st.text(), max_size=3)
            | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner, max_size=3)
        ),
        max_leaves=10,
    )


def depth_of(value: Val) -> int:
    return 1 + max(map(depth_of, value.items), default=0)


@given(obj=built_in())
def test_values_look_as_repr_shows_them(native: Native, obj: object) -> None:
    if depth_of(val(obj)) <= native.lib.VALUE_DEPTH_MAX:
        assert native.text(val(obj)) == repr(obj)
        assert native.text(val(obj), "type") == type(obj).__name__


def test_every_character_looks_as_repr_shows_it(native: Native) -> None:
    for start in range(0, 0x110000, 0x1000):
        text = "".join(map(chr, range(start, start + 0x1000)))
        assert native.text(val(text)) == repr(text)
    data = bytes(range(256))
    assert native.text(val(data)) == repr(data)


@given(bits=st.integers(0, (1 << 64) - 1))
def test_any_float(native: Native, bits: int) -> None:
    (number,) = struct.unpack("<d", bits.to_bytes(8, "little"))
    assert native.text(val(number)) == repr(number)


@given(digits=st.integers(1, 10**17), exponent=st.integers(-40, 25))
def test_floats_as_people_write_them(native: Native, digits: int, exponent: int) -> None:
    number = float(f"{digits}e{exponent}")
    assert native.text(val(number)) == repr(number)


def test_floats_at_the_edges(native: Native) -> None:
    powers = [2.0**n for n in range(-1074, 1024)] + [10.0**n for n in range(-323, 309)]
    around = [math.nextafter(n, to) for n in powers for to in (0.0, math.inf)]
    for number in (
        *powers,
        *around,
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        1.7976931348623157e308,
        0.1 + 0.2,
    ):
        assert native.text(val(number)) == repr(number)


@given(sign=st.sampled_from((1, -1)), bits=st.integers(65, 2000), data=st.data())
def test_a_long_int_cut_shows_only_digits_that_are_right(
    native: Native, sign: int, bits: int, data: st.DataObject
) -> None:
    number = data.draw(st.integers(1 << bits - 1, (1 << bits) - 1))
    magnitude = number.to_bytes((bits + 7) // 8)
    kept = data.draw(st.integers(1, len(magnitude) - 1))
    text = native.text(Val("big", bytes([sign < 0]) + magnitude[:kept], length=bits))
    assert text.endswith("...")
    assert repr(sign * number).startswith(text.removesuffix("..."))
    if kept > 8:  # unless the digits are such as 0.1999 and 0.2000: 8 bits are 2.4 digits
        assert len(text) > min(kept, 96) * 2.4 - 12


def test_a_very_long_int(native: Native) -> None:
    number = 3**1_000_000
    magnitude = number.to_bytes((number.bit_length() + 7) // 8)
    text = native.text(Val("big", b"\0" + magnitude[:40], length=number.bit_length()))
    leading = number // 10 ** (int(number.bit_length() * math.log10(2)) - 120)
    assert 90 < len(text) < 100
    assert str(leading).startswith(text.removesuffix("..."))
    # no sense, but no harm
    assert native.text(Val("big", b"\1" + bytes([255] * 9), length=(1 << 64) - 1)).endswith("...")
    assert native.text(Val("big", b"", length=1000)) == "..."
    assert native.text(Val("big", b"\1", length=1000)) == "-..."
    assert native.text(Val("big", b"")) == "0"
    assert Decimal(native.text(Val("big", b"\1" + bytes([255]) * 2048))) == 1 - (1 << 2048 * 8)
    assert native.text(Val("big", b"\0" + bytes([1]) * 2049)).endswith("...")


CUT = Val("constant", CONSTANTS.index("CUT"))


@pytest.mark.parametrize(
    ("value", "text", "type_"),
    [
        (Val("constant", CONSTANTS.index("REDACTED"), type=1), "<redacted>", "app.Order"),
        (Val("constant", CONSTANTS.index("CUT"), type=5), "...", "app.Tags"),
        (Val("constant", CONSTANTS.index("UNBOUND")), "<unbound>", ""),
        (Val("constant", CONSTANTS.index("DELETED")), "<deleted>", ""),
        (container("LIST", Val("constant", CONSTANTS.index("CYCLE"))), "[...]", "list"),
        (container("LIST", 1, Val("constant", CONSTANTS.index("CYCLE"), type=6)), "[1, [...]]", "list"),
        (Val("constant", CONSTANTS.index("CYCLE"), type=7), "{...}", "dict"),
        (Val("constant", CONSTANTS.index("CYCLE"), type=1), "...", "app.Order"),
        (Val("text", b"it's", length=9), '"it\'s"...', "str"),
        (Val("data", b"ab", length=9), "b'ab'...", "bytes"),
        (container("LIST", 1, 2, length=5), "[1, 2, ...]", "list"),
        (container("LIST", length=5), "[...]", "list"),
        (container("TUPLE"), "()", "tuple"),
        (container("TUPLE", 1), "(1,)", "tuple"),
        (container("TUPLE", 1, length=5), "(1, ...)", "tuple"),
        (container("DICT", "a", 1, length=5), "{'a': 1, ...}", "dict"),
        (container("DICT", "a"), "{'a': ...}", "dict"),
        (container("DICT"), "{}", "dict"),
        (container("SET"), "set()", "set"),
        (container("SET", length=5), "{...}", "set"),
        (container("FROZENSET"), "frozenset()", "frozenset"),
        (container("FROZENSET", 1), "frozenset({1})", "frozenset"),
        (container("FROZENSET", 1, CUT, type=5), "Tags({1, ...})", "app.Tags"),
        (container("SET", type=5), "Tags()", "app.Tags"),
        (container("TUPLE", 1, 2, type=2), "Point((1, 2))", "app.make.<locals>.Point"),
        (container("TUPLE", 1, type=2), "Point((1,))", "app.make.<locals>.Point"),
        (container("DICT", "a", 1, type=1), "Order({'a': 1})", "app.Order"),
        (Val("integer", 3, type=1), "Order(3)", "app.Order"),
        (Val("text", b"x", type=1, length=3), "Order('x'...)", "app.Order"),
        (Val("integer", 3, type=77), "?(3)", ""),
        (container("EXCEPTION", "x", type=3), "ValueError('x')", "ValueError"),
        (container("EXCEPTION", type=3), "ValueError()", "ValueError"),
        (container("EXCEPTION", 1, 2, type=3, length=3), "ValueError(1, 2, ...)", "ValueError"),
        (Val("address", 0x7F00DEADBEEF, type=1), "<app.Order at 0x7f00deadbeef>", "app.Order"),
        (Val("address", 0, type=77), "<? at 0x0>", ""),
        (Val("named", NAMED.index("FUNCTION"), name=b"app.pay"), "<function app.pay>", "function"),
        (Val("named", NAMED.index("METHOD"), name=b"app.O.pay"), "<bound method app.O.pay>", "method"),
        (
            Val("named", NAMED.index("BUILTIN"), name=b"len"),
            "<built-in function len>",
            "builtin_function_or_method",
        ),
        (Val("named", NAMED.index("CLASS"), type=1), "<class 'app.Order'>", "type"),
        (Val("named", NAMED.index("CLASS"), type=4), "<class 'Größe'>", "type"),
        (Val("named", NAMED.index("MODULE"), name=b"json"), "<module 'json'>", "module"),
        (Val("named", NAMED.index("MODULE")), "<module ''>", "module"),
        (Val("repr", "Größe\n\x1b[0m\\".encode(), type=4), "Größe\\n\\x1b[0m\\", "Größe"),
        (Val("repr", b"abc", type=1, length=9), "abc...", "app.Order"),
        (Val("text", b"a\xff\xc0\x80\xe2\x82"), "'a\N{REPLACEMENT CHARACTER}" + 4 * "\ufffd" + "'", "str"),
    ],
)
def test_values_that_repr_does_not_show(native: Native, value: Val, text: str, type_: str) -> None:
    assert native.text(value) == text
    assert native.text(value, "type") == type_


@given(text=st.text(st.characters()))
def test_a_string_has_its_bare_content(native: Native, text: str) -> None:
    bare = "".join(repr(c)[1:-1] if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
    assert native.text(val(text), "bare") == bare
    assert native.text(Val("text", b"ab", length=9), "bare") == "ab..."
    assert native.text(Val("text", b"ab", type=1), "bare") == "ab"
    assert native.text(val([text]), "bare") == native.text(val([text]))


@pytest.mark.parametrize("what", ["value", "bare"])
def test_text_is_cut_between_characters(native: Native, what: str) -> None:
    value = val("aé€😀\x00z")
    whole, _ = native.raw_text(value, what, 100)
    for capacity in range(len(whole) + 1):
        written, size = native.raw_text(value, what, capacity)
        assert size == len(whole)
        kept = written.rstrip(b"\0")
        assert len(written) - len(kept) < 4
        assert whole.decode().startswith(kept.decode())


# ---- segments ---------------------------------------------------------------------------------


def walk(
    native: Native, data: bytes, base_time: int = 0, base_depth: int = 0, skim: bool = False
) -> list[Any]:
    """(time, depth, duration) of each record; the decode_error, if any, at the end."""
    held, cursor = native.ffi.from_buffer(data), native.ffi.new("struct segment_walk *")
    step = native.lib.segment_skim if skim else native.lib.segment_next
    native.lib.segment_open(cursor, held, len(data), base_time, base_depth)
    found: list[Any] = []
    event = native.ffi.new("struct segment_event *")
    while (answer := step(cursor, event)) == 1:
        assert event.index == len(found)
        found.append((event.time, event.depth, event.duration if event.has_duration else None))
    return [*found, answer] if answer else found


def test_times_depths_and_durations(native: Native) -> None:
    story = [
        (Record("call", 1, 5), (1005, 3, None)),
        (Record("call", 2, 10), (1015, 4, None)),
        (Record("raise", 2, 1), (1016, 4, None)),
        (Record("exception", 2, 4, elapsed=5), (1020, 4, 5)),
        (Record("raise", 1, 0), (1020, 3, None)),
        (Record("log", 1, 2), (1022, 3, None)),
        (Record("call", 3, 1), (1023, 4, None)),
        (Record("return", 3, 7), (1030, 4, 7)),  # begun by the record before
        (Record("yield", 1, 0, elapsed=0), (1030, 3, None)),  # begun unseen
        (Record("resume", 1, 1), (1031, 3, None)),
        (Record("return", 1, 0), (1031, 3, 0)),
        (Record("throw", 4, 1), (1032, 3, None)),
        (Record("exception", 4, 1), (1033, 3, 1)),
        (Record("lost", 17, 1), (1034, 2, None)),
        (Record("call", 5, 1, depth=9), (1035, 9, None)),  # after a gap
        (Record("log", 5, 1), (1036, 9, None)),
        (Record("return", 5, 1, elapsed=2, depth=1), (1037, 0, 2)),
        (Record("log", 0, 1), (1038, 0, None)),
        (Record("call", 1, 1), (1039, 0, None)),
        (Record("line", 1, 1, line=12), (1040, 0, None)),
        (Record("return", 1, 1, elapsed=2), (1041, 0, 2)),
    ]
    data = native.encode(*(told for told, _ in story))
    expected = [seen for _, seen in story]
    assert walk(native, data, 1000, 3) == expected
    assert walk(native, data, 1000, 3, skim=True) == expected


def test_a_segment_ends_at_what_cannot_be_read(native: Native) -> None:
    good = native.encode(Record("call", 1, 1))
    assert walk(native, good + b"\x1a\x01?" + good) == [(1, 0, None), (2, 1, None)]
    assert walk(native, good + b"\x1a\x01?") == [(1, 0, None)]
    assert walk(native, good + good[:-1]) == [(1, 0, None), TRUNCATED]
    assert walk(native, good + b"\x1a\x05?") == [(1, 0, None), MALFORMED]
    assert walk(native, good + record() + good) == [(1, 0, None), MALFORMED]
    assert walk(native, b"") == []


def test_a_task_stands_until_the_next(native: Native, google: Google) -> None:
    names = ["", "Task-1", "Task-1", "Größe", "", "x" * 200]
    data = b""
    for name, before in zip(names, ["", *names], strict=False):
        data += b"" if name == before else google.messages.Events(task=[name.encode()]).SerializeToString()
        data += native.encode(Record("call", 1, 1))
    held, cursor = native.ffi.from_buffer(data), native.ffi.new("struct segment_walk *")
    native.lib.segment_open(cursor, held, len(data), 0, 0)
    event = native.ffi.new("struct segment_event *")
    found = []
    while native.lib.segment_head(cursor, event) == 1:
        task = cursor.task_size and native.ffi.buffer(cursor.task, cursor.task_size)[:]
        found.append(task.decode() if task else "")
    assert found == names
    good = native.encode(Record("call", 1, 1))
    assert walk(native, good + b"\x12\x05?") == [(1, 0, None), MALFORMED]


def test_a_processor_stands_until_the_next(native: Native, google: Google) -> None:
    cpus = [-1, 0, 0, 3, 200, -1, (1 << 31) - 2]
    data = b""
    for cpu, before in zip(cpus, [-1, *cpus], strict=False):
        if cpu != before:
            buffer = native.ffi.new("uint8_t[]", 8)
            size = native.lib.events_put_cpu(buffer, cpu) - buffer
            written = bytes(native.ffi.buffer(buffer, size))
            assert written == google.messages.Events(cpu=[cpu + 1]).SerializeToString()
            data += written
        data += native.encode(Record("event", 1, 1))
    held, cursor = native.ffi.from_buffer(data), native.ffi.new("struct segment_walk *")
    for step in (native.lib.segment_head, native.lib.segment_skim, native.lib.segment_next):
        native.lib.segment_open(cursor, held, len(data), 0, 0)
        event, found = native.ffi.new("struct segment_event *"), []
        while step(cursor, event) == 1:
            found.append(cursor.cpu)
        assert (found, cursor.between) == (cpus, 0)
    good = native.encode(Record("call", 1, 1))
    assert walk(native, good + b"\x18\x80\x80\x80\x80\x08" + good) == [(1, 0, None), MALFORMED]
    assert walk(native, good + b"\x18\x80") == [(1, 0, None), MALFORMED]


@given(
    base=st.tuples(numbers(64), signed(32)),
    records=st.lists(
        RECORDS.map(lambda r: Record(r.kind, r.what, r.time, r.elapsed, r.line, r.depth)), max_size=20
    ),
)
def test_any_numbers_can_be_walked(native: Native, base: tuple[int, int], records: list[Record]) -> None:
    seen = walk(native, native.encode(*records), *base)
    assert len(seen) == len(records)
    assert all(depth >= 0 for _, depth, _ in seen)


@given(
    units=numbers(64),
    epoch=st.tuples(signed(64), numbers(64), numbers(64)),
)
def test_units_become_nanoseconds(native: Native, units: int, epoch: tuple[int, int, int]) -> None:
    clock = native.ffi.new("struct segment_clock *", epoch)
    epoch_ns, epoch_units, scale = epoch

    def bounded(ns: int) -> int:
        return max(-(1 << 63), min((1 << 63) - 1, ns))

    def as_signed(number: int) -> int:
        return (number + (1 << 63)) % (1 << 64) - (1 << 63)

    difference = bounded(as_signed(units) - as_signed(epoch_units))
    assert native.lib.segment_clock_ns(clock, units) == bounded(epoch_ns + (difference * scale >> 32))
    assert native.lib.segment_duration_ns(clock, units) == bounded(min(units, (1 << 63) - 1) * scale >> 32)
