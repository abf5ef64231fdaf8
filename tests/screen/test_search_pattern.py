"""Expressions of the reader's search: what they match, and what they demand of an event."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

import pytest
from pytracer.reader.screen.prefilter import Shown, choices, parse
from pytracer.reader.screen.search import BadPattern, Pattern, TooSlow

# ---- matching ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ignores"),
    [
        ("pay", True), ("Pay", False), (r"\Spay\W\D\Z", True), (r"\Spay\W\D\ZX", False), ("größe", True),
        ("Ärger", False), (r"\p{Lu}x", True), ("(?P<name>x)", True), ("(?P<Name>x)", False), ("", True),
    ],
)  # fmt: skip
def test_case_matters_where_a_capital_is_typed(text: str, ignores: bool) -> None:
    assert Pattern(text).ignore_case == ignores
    assert Pattern(text, True).ignore_case
    assert not Pattern(text, False).ignore_case


def test_hits_are_what_is_not_empty() -> None:
    assert Pattern("a+").hits("aa b a") == [(0, 2), (5, 6)]
    assert Pattern("x*").hits("axxb") == [(1, 3)]
    assert Pattern("x*").matches("ab")
    assert Pattern("x*").hits("ab") == []
    assert Pattern("^").hits("ab") == []
    assert Pattern("B").hits("bB") == [(1, 2)]
    assert Pattern("b").hits("bB") == [(0, 1), (1, 2)]
    assert not Pattern("^b").matches("ab")


def test_letters_that_only_look_alike_are_others() -> None:
    import regex

    beyond = "".join(map(chr, range(128, 0x110000)))
    alike = regex.findall("[a-z0-9_]", beyond, regex.IGNORECASE)
    assert alike  # else the module has changed its mind, and nothing is to be done
    for letter in "abcdefghijklmnopqrstuvwxyz":
        assert Pattern(letter).hits("".join(alike)) == []
    for letter in alike:
        assert Pattern(letter).matches(letter)
        assert Pattern(letter).predicate() is None
    assert Pattern("é").matches("É")
    assert Pattern("k.b").hits("\u212ab kéb") == [(3, 6)]


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [("a(b", "missing )", 3), ("[a", "unterminated character set", 2), ("*", "nothing to repeat", 0)],
)
def test_mistakes_are_told_with_their_place(text: str, message: str, position: int) -> None:
    with pytest.raises(BadPattern) as mistake:
        Pattern(text)
    assert (mistake.value.message, mistake.value.position) == (message, position)


@pytest.mark.parametrize(
    "text", ["(" * 5000 + ")" * 5000, "(?V1)[", "(?P<a>x)(?P<a>y)", "\\", "(?<=a*)b{99999999999}"]
)
def test_whatever_is_typed_is_an_expression_or_a_mistake(text: str) -> None:
    for piece in (text[:end] for end in range(0, len(text), max(1, len(text) // 20))):
        mistake = None
        try:
            Pattern(piece).hits("a line")
        except BadPattern as error:
            mistake = error
        assert mistake is None or (mistake.message and 0 <= mistake.position <= len(piece))


@pytest.mark.parametrize(
    "text", ["(?:a|a)+$\\b!", "(a*)*\\b!", "(?:(?:a|aa)+)+!", "(?:a?){40}\\w{100,}a{150}"]
)
def test_what_would_take_for_ever_is_ended(text: str) -> None:
    pattern, line = Pattern(text), "a" * 200 + " "
    for ask in (pattern.hits, pattern.matches):
        with suppress(TooSlow):  # some of these the module sees through
            assert not ask(line)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", 0), ("a.c", 0), ("a.*c", 1), ("(a.*)(b+)", 2), ("a?b?", 2), ("a|b", 0), ("ab|cd", 1),
        ("ab|c.*d", 2),
        ("(a*)*", None), ("(ab|cd)*", None), (r"(a)\1", None), ("(?=a*)b", 1),
        ("(?:ab){3}", 1), ("(?>a*)b", 1),
    ],
)  # fmt: skip
def test_where_a_match_has_a_choice(text: str, expected: int | None) -> None:
    parsed = parse(text, True)
    assert parsed is not None
    assert choices(parsed) == expected


# ---- what it demands --------------------------------------------------------------------------


def outline(text: str, shown: Shown | None = None) -> str | None:
    """The predicate with what it asks of all the fields written as the word that has to be in one
    of them."""
    predicate = Pattern(text).predicate(shown or Shown())
    return predicate and written(iter(re.findall(r'[()]|"[^"]*"|[^()" ]+', predicate)))


def written(tokens: Iterator[str]) -> str:
    next(tokens)
    members = [next(tokens)]
    for token in tokens:
        if token == ")":
            break
        members.append(written(chain("(", tokens)) if token == "(" else token)
    word = re.fullmatch(r'.*\(like thread "%([^"]*)%"\).*', members[1])
    if members[0] == "or" and word and "(any" in members[-1]:
        return word[1].replace("\\", "")
    if members[:2] == ["or", "(not (plain thread))"]:
        return "ASCII+"  # more than that
    return f"({' '.join(members)})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quetzal", "quetzal"),
        ("Order.pay", "(and Order pay)"),
        ("a_b", "a_b"),
        ("pay.*bob", "(and pay bob)"),
        ("pay|sell", "(or pay sell)"),
        ("(pay|sell) +bob", "(and (or pay sell) bob)"),
        ("pay|.", None),
        ("(pay)?bob", "bob"),
        ("(pay)+bob", "(and pay bob)"),
        ("(?:pay){2,}", "pay"),
        ("(?:pay){0,2}", None),
        ("(?=pay)x", "(and pay x)"),
        ("(?!pay)bob", "bob"),
        ("(?<=pay)bob", "(and pay bob)"),
        (r"pay\(user='bob'\)", "(and user pay bob)"),
        ("(?i:Pay)x", "(and Pay x)"),
        (r"\bpay\b", "pay"),
        ("größe", "(and gr e ASCII+)"),
        ("öß", "ASCII+"),
        ("12µs|…", None),
        ("bob paid a Alice", "(and Alice paid bob)"),
        ("(?#a word)pay", "pay"),
        # what the line itself may write
        ("events", None),
        ("vent", None),
        ("some_events", "some_events"),
        ("line 12", None),
        ("12ms", None),
        ("2m05s", None),
        ("ns", None),
        ("sum", "sum"),
        ("1204", None),
        ("n=12", "(and 12 n)"),
        ("'12ms'", "12ms"),
        ("12:45", None),
        ("12345678", "12345678"),
        # where re may read it in another way than regex
        ("(pay){e<=1}", None),
        ("[[:alpha:]]pay", None),
        (r"\p{Lu}pay", None),
        (r"pay\K", None),
        ("(?<name>pay)", None),
        ("(?V1)pay", None),
        ("pay" * 2000, None),
        ("(" * 60 + "pay" + ")" * 60, None),
    ],
)
def test_what_has_to_be_in_an_event(text: str, expected: str | None) -> None:
    assert outline(text) == expected


def test_columns_may_show_more() -> None:
    assert outline("12345678", Shown(ids=True)) is None
    assert '(like file "%shop%")' in (Pattern("shop").predicate(Shown(files=True)) or "")
    assert "file" not in (Pattern("shop").predicate() or "")


def test_escapes_may_reach_into_a_word() -> None:
    predicate = Pattern("needle").predicate() or ""
    assert '(and (like func "%eedle%") (or (like func "%needle%") (not (plain func))))' in predicate
    assert '(like value "%add%") (not (plain value))' in (Pattern("add").predicate() or "")
    assert "plain" not in (Pattern("pay").predicate() or "")
