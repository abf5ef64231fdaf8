"""Summaries of segments against a walk over the records, on bodies of all sorts."""

import random
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_records import RECORDS, delimited, fields, numbers, shuffled, signed

from records import (
    KINDS,
    LATER,
    NAMES,
    NUMBERS,
    Google,
    Native,
    Record,
    build_native,
    generate,
    val,
    varint,
)
from shared import Shared

FAR = (1 << 22) - 1  # codes up to here are counted in a table
LEAVING = ("return", "exception", "yield")
ENTERING = ("call", "resume", "throw")
LEVELS = 1 << 16
OWN = {1, 2, 127, 16_383, FAR, FAR + 1, (1 << 32) - 1}  # those beyond FAR do not count


class Summary(NamedTuple):
    max_depth: int
    kinds: frozenset[str]
    max_duration: int
    calls: dict[int, int]  # of each code
    open: bytes


class Levels:
    """The open levels, by levels.h: whether the function at each is own code."""

    def __init__(self, open: bytes, base_depth: int) -> None:
        self.flags, self.open = open[0], base_depth
        bits = int.from_bytes(open[1:], "little")
        self.own = {level for level in range(bits.bit_length()) if bits >> level & 1 and level < base_depth}

    def step(self, kind: str, code: int, open: int) -> None:
        """The next event; `open`: the number of open calls behind it."""
        before = open - (kind in ENTERING) + (kind in LEAVING)
        level = before - (kind not in ENTERING)
        self.own = {level for level in self.own if level < min(before, self.open)}
        mine, self.open = code in OWN and code <= FAR, open
        if kind in KINDS:
            shown = mine or kind == "lost"
            self.flags = shown * 1 | (shown or level - 1 in self.own) * 2
        if kind in ENTERING and mine and 0 <= level < LEVELS:
            self.own.add(level)

    def written(self) -> bytes:
        bits = sum(1 << level for level in self.own if level < self.open)
        return bytes([self.flags]) + bits.to_bytes((bits.bit_length() + 7) // 8, "little")


class Maker:
    """csrc/format/summary.h, and the walk that it is compared with."""

    def __init__(self, native: Native) -> None:
        self.ffi, self.lib = native.ffi, native.lib
        self._maker = self.ffi.gc(self.lib.summary_maker_new(), self.lib.summary_maker_free)
        for number in OWN:
            assert self.lib.summary_own(self._maker, number, True)

    def made(self, body: bytes, base_depth: int = 0, open: bytes = b"\0") -> Summary:
        made = self.ffi.new("struct summary *")
        held = self.ffi.from_buffer(body)
        assert self.lib.summary_make(self._maker, held, len(body), base_depth, open, len(open), made)
        kinds = frozenset(kind for kind, n in NUMBERS.items() if made.kinds >> n & 1)
        assert sum(1 << NUMBERS[kind] for kind in kinds) == made.kinds
        data = bytes(self.ffi.buffer(made.codes, made.codes_size)) if made.codes_size else b""
        calls, bad = self.listed(data)
        assert not bad
        assert list(calls) == sorted(calls)
        behind = bytes(self.ffi.buffer(made.open, made.open_size))
        return Summary(made.max_depth, kinds, made.max_duration, calls, behind)

    def listed(self, data: bytes) -> tuple[dict[int, int], bool]:
        """The list of codes, and whether it ended where it cannot be read."""
        held = self.ffi.from_buffer(data)
        p = held + 0
        code, bad = self.ffi.new("struct summary_code *"), self.ffi.new("bool *")
        calls: dict[int, int] = {}
        while p := self.lib.summary_next(p, held + len(data), code, bad):
            assert code.number not in calls
            calls[code.number] = code.calls
        return calls, bad[0]

    def walked(
        self, body: bytes, base_depth: int = 0, step: str = "segment_next", open: bytes = b"\0"
    ) -> Summary:
        walk, event = self.ffi.new("struct segment_walk *"), self.ffi.new("struct segment_event *")
        held = self.ffi.from_buffer(body)
        self.lib.segment_open(walk, held, len(body), 0, base_depth)
        deepest = longest = 0
        kinds: set[str] = set()
        calls: Counter[int] = Counter()
        levels = Levels(open, base_depth)
        while getattr(self.lib, step)(walk, event) == 1:
            kind = NAMES[event.event.kind]
            kinds.add(kind)
            deepest = max(deepest, event.depth)
            longest = max(longest, event.duration)
            calls[event.event.code] += kind == "call"
            levels.step(kind, event.event.code, walk.open)
        return Summary(deepest, frozenset(kinds), longest, dict(calls), levels.written())


@pytest.fixture(scope="module")
def native(shared: Shared) -> Native:
    return Native(shared("native", build_native))


@pytest.fixture(scope="module")
def maker(native: Native) -> Maker:
    return Maker(native)  # one for all bodies, as in the dumper


@pytest.fixture(scope="module")
def google(shared: Shared) -> Google:
    return Google(shared("google", generate))


# as a program makes them: few codes, small times, values or none
USUAL = st.builds(
    lambda kind, code, time, elapsed, depth, line, value: Record(
        kind, code, time, elapsed if kind in LEAVING else None, line, depth, value
    ),
    st.sampled_from(KINDS[:6] * 4 + KINDS + LATER[:2]),
    numbers(3) | st.sampled_from((127, 128, 16_383, 16_384, FAR, FAR + 1, (1 << 32) - 1)),
    numbers(30),
    st.none() | numbers(30),
    st.sampled_from((None,) * 9) | signed(32),
    st.sampled_from((0,) * 9) | numbers(32),
    st.sampled_from(((), (val(1),), (val("x" * 150),), (val("x" * 20_000),))),
)
BODIES = st.lists(USUAL | RECORDS.map(lambda record: replace(record, names=())), max_size=40)
DEPTHS = st.integers(-3, 20) | signed(32)
OPENS = st.builds(lambda flags, bits: bytes([flags]) + bits, st.integers(0, 3), st.binary(max_size=4))


# the last number that a code can have, at a level that `open` should not tell of
@example(records=[Record("call", (1 << 32) - 1)], base_depth=0, open=b"\0\1")
@given(records=BODIES, base_depth=DEPTHS, open=OPENS)
def test_it_says_what_a_walk_finds(
    native: Native, maker: Maker, records: list[Record], base_depth: int, open: bytes
) -> None:
    body = native.encode(*records)
    assert maker.made(body, base_depth, open) == maker.walked(body, base_depth, open=open)


@given(records=BODIES, base_depth=DEPTHS, dice=st.randoms(use_true_random=False))
def test_of_records_that_others_write(
    google: Google, maker: Maker, records: list[Record], base_depth: int, dice: random.Random
) -> None:
    """Absent fields and, at the top, unknown ones."""
    unknown = delimited(7, b"?") + varint(11 << 3) + b"\x01"
    body = b"".join(google.encode(record) + (unknown if dice.random() < 0.2 else b"") for record in records)
    assert maker.made(body, base_depth) == maker.walked(body, base_depth)


@given(records=BODIES, dice=st.randoms(use_true_random=False))
def test_of_any_bytes(native: Native, maker: Maker, records: list[Record], dice: random.Random) -> None:
    """Scans of segments read only the heads, and find the same."""
    body = bytearray(native.encode(*records))
    for _ in range(dice.randrange(5)):
        if body:
            body[dice.randrange(len(body))] = dice.choice((0, 1, 0x0A, 0x50, 0x58, 0x68, 0x7F, 0x80, 0xFF))
    if dice.random() < 0.5:
        del body[dice.randrange(len(body) + 1) :]
    assert maker.made(bytes(body)) == maker.walked(bytes(body), step="segment_head")


@given(records=st.lists(USUAL, min_size=1, max_size=20), dice=st.randoms(use_true_random=False))
def test_of_fields_in_another_order(
    native: Native, maker: Maker, records: list[Record], dice: random.Random
) -> None:
    bodies = (body for _, _, body in fields(native.encode(*records)))
    body = b"".join(delimited(1, shuffled(body, frozenset({14}), dice)) for body in bodies)
    assert maker.made(body) == maker.walked(body, step="segment_head")


def test_nothing(maker: Maker) -> None:
    assert maker.made(b"") == Summary(0, frozenset(), 0, {}, b"\0")
    assert maker.made(b"", 9, b"\3\xff\7") == Summary(0, frozenset(), 0, {}, b"\3\xff\1")


def test_a_small_program(native: Native, maker: Maker) -> None:
    body = native.encode(
        Record("call", 5, 10),
        Record("call", 6, 10),
        Record("return", 6, 300),  # the time since its call
        Record("call", 6, 10),
        Record("raise", 6, 10, line=3),
        Record("exception", 6, 10, elapsed=20),
        Record("lost", 1000, 10),
        Record("return", 5, 10, elapsed=0),  # not known
    )
    kinds = frozenset({"call", "return", "raise", "exception", "lost"})
    assert maker.made(body, 3) == Summary(4, kinds, 300, {0: 0, 5: 1, 6: 2}, b"\0")


def test_own_code_that_is_open(native: Native, maker: Maker) -> None:
    """Own code is at levels 1 and 9; a function of a library, called by such, has just ended."""
    body = native.encode(
        Record("call", 2), *[Record("call", 5)] * 7, Record("call", 1), Record("call", 5), Record("return", 5)
    )
    assert maker.made(body, 1).open == b"\2\2\2"
    assert maker.made(body + native.encode(Record("return", 1)), 1).open == b"\3\2"
    again = native.encode(Record("yield", 5), Record("call", 5, depth=40), Record("log", 1))
    assert maker.made(again, 11, b"\2\2\2").open == b"\3\2\2"


def test_own_code_at_levels_beyond_those_that_are_known(native: Native, maker: Maker) -> None:
    deep = maker.made(native.encode(*[Record("call", 1)] * 70_000))
    assert deep.open == b"\3" + b"\xff" * (LEVELS // 8)
    back = maker.made(native.encode(*[Record("return", 1)] * 69_990), 70_000, deep.open)
    assert back.open == b"\3\xff\3"


def test_depths_at_the_bounds(native: Native, maker: Maker) -> None:
    for depth in (-(1 << 31), -1, 0, (1 << 31) - 2, (1 << 31) - 1):
        for kinds in (("call",) * 3 + ("return",) * 9 + ("call",) * 9, ("return",) * 3, ("raise", "yield")):
            body = native.encode(*(Record(kind, 1, 1) for kind in kinds))
            assert maker.made(body, depth) == maker.walked(body, depth)


def test_numbers_that_look_longer_than_they_are(maker: Maker) -> None:
    """A varint may end in zeros; only what it says counts."""
    short = b"\x0a\x07\x10\x01\x50\xff\x01\x72\x00"
    long = b"\x0a\x08\x10\x01\x50\x81\x80\x00\x72\x00"
    for body in (long + short, short + long, long, long + short * 5):
        body = body + b"\x0a\x02\x08\x01" * 9
        assert maker.made(body) == maker.walked(body)


def test_very_many_codes(native: Native, maker: Maker) -> None:
    dice = random.Random(1)
    codes = [dice.randrange(1 << bits) for bits in range(1, 33) for _ in range(300)]
    body = native.encode(*(Record(dice.choice(KINDS[:8]), code, 1) for code in codes))
    expected = maker.walked(body)
    assert maker.made(body) == expected
    assert len(expected.calls) > 5000
    assert maker.made(native.encode(Record("call", 3))).calls == {3: 1}  # nothing is left behind


@pytest.mark.parametrize(
    ("data", "calls", "bad"),
    [
        (b"", {}, False),
        (b"\x00\x00\x05\x01", {0: 0, 5: 1}, False),
        (b"\x05", {}, True),
        (b"\x05\x80", {}, True),
        (b"\x80", {}, True),
        (b"\x05\x01\x00\x01", {5: 1}, True),  # the same once more
        (b"\xff\xff\xff\xff\x0f\x01", {(1 << 32) - 1: 1}, False),
        (b"\xff\xff\xff\xff\x0f\x01\x01\x01", {(1 << 32) - 1: 1}, True),  # beyond the largest
        (b"\x80\x80\x80\x80\x10\x01", {}, True),
    ],
)
def test_lists_of_codes(maker: Maker, data: bytes, calls: dict[int, int], bad: bool) -> None:
    assert maker.listed(data) == (calls, bad)
