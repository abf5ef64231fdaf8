"""LIKE in C against SQLite's own, and the search for literals against Python's."""

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from predicates import Predicates, build_predicates
from shared import Shared

BACKSLASH = ord("\\")


@pytest.fixture(scope="module")
def predicates(shared: Shared) -> Predicates:
    return Predicates(shared("predicates", build_predicates))


@pytest.fixture(scope="module")
def sqlite() -> apsw.Connection:
    return apsw.Connection(":memory:")


# few letters, so that things match and nearly match; no NUL, at which SQLite's texts end, and no
# U+FFFE and U+FFFF, which SQLite takes for the same character
LETTERS = st.characters(exclude_characters="\0\ufffd\ufffe\uffff", exclude_categories=["Cs"])
TEXTS = st.text(st.sampled_from("aaAbBÄä€😀 %_\\") | LETTERS, max_size=40)
PATTERNS = st.lists(
    st.sampled_from(["%", "_", "\\", "\\%", "\\_", "a", "B", "ab", "Ä", "€", "😀", "%a", "a_b"]) | LETTERS,
    max_size=12,
).map("".join)


def sqlite_likes(sqlite: apsw.Connection, pattern: str, text: str, escape: str | None) -> bool:
    if escape is None:
        return bool(sqlite.execute("SELECT ? LIKE ?", (text, pattern)).get)
    return bool(sqlite.execute("SELECT ? LIKE ? ESCAPE ?", (text, pattern, escape)).get)


@given(pattern=PATTERNS, text=TEXTS, escape=st.sampled_from(["\\", "\\", None, "a", "%", "_", "€"]))
@example(pattern="", text="", escape=None)
@example(pattern="%\\", text="a", escape="\\")
@example(pattern="a%\\\\", text="ab\\", escape="\\")
@example(pattern="%a_b%b", text="aab" * 10, escape=None)
@example(pattern="%a_b", text="aaxb", escape=None)
@example(pattern="%a_b_%c", text="aaxaaxbyc", escape=None)
def test_it_matches_as_in_sqlite(
    predicates: Predicates, sqlite: apsw.Connection, pattern: str, text: str, escape: str | None
) -> None:
    answer = predicates.like(pattern.encode(), text.encode(), -1 if escape is None else ord(escape))
    assert answer == sqlite_likes(sqlite, pattern, text, escape)


@st.composite
def made_from(draw: st.DrawFn, text: str) -> str:
    """A pattern that matches the text: some of its characters are changed for wildcards or the
    other case."""
    pattern, rest = "", text
    while rest:
        match draw(st.integers(0, 5)):
            case 0:
                pattern += "_"
                rest = rest[1:]
            case 1:
                pattern += "%"
                rest = rest[draw(st.integers(0, len(rest))) :]
            case 2:
                pattern += "%"
            case _:
                c, rest = rest[0], rest[1:]
                c = c.swapcase() if c.isascii() and draw(st.booleans()) else c
                pattern += f"\\{c}" if c in "%_\\" or draw(st.booleans()) else c
    return pattern


@given(data=st.data(), text=TEXTS)
def test_patterns_that_match(
    predicates: Predicates, sqlite: apsw.Connection, data: st.DataObject, text: str
) -> None:
    pattern = data.draw(made_from(text))
    assert predicates.like(pattern.encode(), text.encode(), BACKSLASH)
    assert sqlite_likes(sqlite, pattern, text, "\\")
    other = data.draw(TEXTS)
    answer = predicates.like(pattern.encode(), other.encode(), BACKSLASH)
    assert answer == sqlite_likes(sqlite, pattern, other, "\\")


@given(pattern=PATTERNS, texts=st.lists(TEXTS, max_size=5))
def test_what_matches_contains_the_literal(predicates: Predicates, pattern: str, texts: list[str]) -> None:
    literal, alone = predicates.literal(pattern.encode(), BACKSLASH)
    for text in texts:
        data = text.encode()
        matches = predicates.like(pattern.encode(), data, BACKSLASH)
        if matches:
            assert predicates.find(data, literal) >= 0
        if alone:
            assert matches == (data.lower() == literal)


def test_literals(predicates: Predicates) -> None:
    assert predicates.literal(b"%ab_Cde%f", BACKSLASH) == (b"cde", False)
    assert predicates.literal(b"BOB", BACKSLASH) == (b"bob", True)
    assert predicates.literal(b"50\\%", BACKSLASH) == (b"50%", True)
    assert predicates.literal(b"", BACKSLASH) == (b"", True)
    assert predicates.literal(b"%_", BACKSLASH) == (b"", False)
    assert predicates.literal(b"a\\", BACKSLASH)[1] is False


@given(
    haystack=st.lists(
        st.sampled_from([b"a", b"B", b"ab", b"xyz", b"[", b"{", b"\xc3\xa4", b"q"]), max_size=80
    ),
    start=st.integers(0, 100),
    size=st.integers(0, 40),
    needle=st.none() | st.sampled_from([b"", b"a", b"qb", b"zz", b"[", b"{", b"\xe3\xa4", b"bxyzab" * 4]),
)
def test_finding(
    predicates: Predicates, haystack: list[bytes], start: int, size: int, needle: bytes | None
) -> None:
    text = b"".join(haystack)
    wanted = text[start : start + size].lower() if needle is None else needle
    assert predicates.find(text, wanted) == text.lower().find(wanted)


def test_finding_at_every_place(predicates: Predicates) -> None:
    for size in (1, 2, 3, 17, 40):
        needle = b"needle in a haystack, with straw around it"[:size]
        for before in range(70):
            for behind in (0, 1, 15, 16, 40):
                text = b"." * before + needle.upper() + b"." * behind
                assert predicates.find(text, needle) == before
                assert predicates.find(text[: before + size - 1], needle) == -1


def test_many_wildcards_take_no_time(predicates: Predicates) -> None:
    # each % has one place at most that is tried again: no explosion
    assert not predicates.like(b"%a" * 50 + b"%b", b"a" * 5000)
    assert predicates.like(b"%a" * 50 + b"%", b"a" * 5000)


def test_broken_utf8_is_passed_byte_by_byte(predicates: Predicates) -> None:
    assert predicates.like(b"%\xff%", b"a\xffb")
    assert predicates.like(b"a_b", b"a\xffb")
    assert predicates.like(b"a%", b"a\xc3")
    assert predicates.like(b"a_", b"a\xc3")
    assert predicates.like(b"_b", b"\x80b")
    assert not predicates.like(b"_b", b"a\x80b")
