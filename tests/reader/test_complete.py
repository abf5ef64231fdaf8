"""Completions while somebody types a filter."""

import re
import string
import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytracer.reader.filter.parser import parse
from pytracer.reader.filter.tree import FIELDS, KINDS, FilterError
from pytracer.reader.suggestions.completion import HINTS, Candidate, complete, literal, pattern_of
from pytracer.reader.suggestions.names import Names
from pytracer.reader.suggestions.vocabulary import Vocabulary, distance

NAMES = Names(
    functions=["Order.pay", "Order.payment", "<module>", "ship_order", "Zoë.grüßen", "HTTPServer.bindPort"],
    modules=["app", "app.shop"],
    files=["/home/me/app.py"],
    arguments=["self", "amount", "_private"],
    types=["app.Order"],
    threads=["MainThread", "worker-1"],
    attributes=["total", "items"],
)
NAMES.tids |= {100: "MainThread", 101: "worker-1"}
NAMES.runs |= {1: "app.py", 2: "shop.py --fast"}


def offered(text: str) -> list[str]:
    """The text with each candidate in it. `|` is the cursor."""
    cursor = text.index("|")
    text = text.replace("|", "", 1)
    start, end, candidates = complete(NAMES, text, cursor)
    assert 0 <= start <= cursor <= end <= len(text)
    return [text[:start] + candidate.text + text[end:] for candidate in candidates]


@pytest.mark.parametrize(
    ("text", "best"),
    [
        # fields, and what is not typed in order
        ("|", ["func", "module", "arg"]),
        ("f|", ["func", "file"]),
        ("FU|", ["func"]),
        ("dr|", ["duration"]),
        ("func == 'pay' and not |", ["func == 'pay' and not func"]),
        ("(|", ["(func"]),
        # a function's name at once
        ("pay|", ["func == 'pay'", "func == 'payment'"]),
        # operators
        ("func |", ["func ==", "func !=", "func in", "func not in"]),
        ("func =|", ["func =="]),
        ("depth <|", []),
        ("depth |", ["depth ==", "depth !=", "depth <"]),
        ("func not |", ["func not in"]),
        ("func n|", ["func not in"]),
        ("1 < |", ["1 < func"]),
        ("1 |", ["1 =="]),
        ("func in |", ["func in ("]),
        # names
        ("func == |", ["func == 'bindPort'"]),
        ("func ==|", ["func == 'bindPort'"]),
        ("func == 'pa|", ["func == 'pay'", "func == 'payment'", "func == 'Order.pay'"]),
        ('func == "pa|', ['func == "pay"']),
        ("func == r'pa|", ["func == 'pay'"]),
        ("func == pa|", ["func == 'pay'"]),
        ("func == Order.pa|", ["func == 'Order.pay'", "func == 'Order.payment'"]),
        ("func == 'PAYM|", ["func == 'payment'"]),
        ("func == '%ment|", ["func == 'payment'"]),
        ("func == 'ordpay|", ["func == 'Order.pay'"]),
        ("func == 'order|", ["func == 'Order.pay'"]),
        ("func == 'bp|", ["func == 'bindPort'"]),
        ("func == '<|", ["func == '<module>'"]),
        ("func == 'grü|", ["func == 'grüßen'"]),
        ("func == 'xyz|", []),
        ("arg == 'amount.|", ["arg == 'amount.items'", "arg == 'amount.total'"]),
        ("arg == 'amount.to|", ["arg == 'amount.total'"]),
        ("arg == '.to|", []),
        ("arg == 'total|", []),
        ("module == 'sh|", ["module == 'app.shop'"]),
        ("file == 'app|", ["file == '/home/me/app.py'"]),
        ("arg == 're|", ["arg == 'return value'"]),
        ("arg == |", ["arg == 'amount'"]),
        ("arg == '_|", ["arg == '_private'"]),
        ("type == 'ord|", ["type == 'app.Order'"]),
        ("type == 'No|", ["type == 'NoneType'"]),
        ("thread == 'w|", ["thread == 'worker-1'"]),
        ("kind == 'ex|", ["kind == 'exception'"]),
        ("kind in ('call', |", ["kind in ('call', 'call'"]),
        ("value == |", ["value == None", "value == True", "value == False"]),
        ("value == 'N|", []),
        # numbers
        ("tid == |", ["tid == 100", "tid == 101"]),
        ("tid == worker|", ["tid == 101"]),
        ("tid in (100, 10|", ["tid in (100, 100", "tid in (100, 101"]),
        ("run == |", ["run == 2", "run == 1"]),
        ("duration > |", ["duration > '1ms'"]),
        ("duration > '10|", ["duration > '10ms'", "duration > '100ms'"]),
        ("1 < depth < |", []),
        # lists and what follows
        ("func in (|", ["func in ('bindPort'"]),
        ("func in ('pay', 'sh|", ["func in ('pay', 'ship_order'"]),
        ("func in ('pay',|", ["func in ('pay', 'bindPort'"]),
        ("func in ('pay'|", ["func in ('pay',", "func in ('pay')"]),
        ("func in ('pay' |", ["func in ('pay' ,", "func in ('pay' )"]),
        ("func == 'pay' |", ["func == 'pay' and", "func == 'pay' or"]),
        ("func == 'pay'|", ["func == 'pay' and", "func == 'pay' or"]),
        ("(func == 'pay')|", ["(func == 'pay') and"]),
        ("func == 'pay' o|", ["func == 'pay' or"]),
        ("(func == 'pay' |", ["(func == 'pay' and", "(func == 'pay' or", "(func == 'pay' )"]),
        ("(func == 'pay') |", ["(func == 'pay') and", "(func == 'pay') or"]),
        ("func in ('pay') |", ["func in ('pay') and"]),
        # in the middle
        ("func == 'pa|y' and depth > 3", ["func == 'payment' and depth > 3"]),
        ("func == 'pa| and arg == 'x'", ["func == 'pay' and arg == 'x'"]),
        ("func == 'pa|' and arg == 'x", ["func == 'pay' and arg == 'x"]),
        ("arg == 'x' and ty| == 'int'", ["arg == 'x' and type == 'int'"]),
        ("| and depth > 3", ["func and depth > 3"]),
        # nothing that makes sense
        ("'some| text", []),
    ],
)
def test_candidates(text: str, best: list[str]) -> None:
    found = offered(text)
    assert found[: len(best)] == best or (best == [] and found == [])
    assert bool(found) == bool(best)


def test_a_candidate_tells_what_it_is() -> None:
    assert complete(NAMES, "arg == 'am", 10).candidates == [Candidate("'amount'", "argument")]
    assert complete(NAMES, "tid == 101", 9).candidates[0] == Candidate("100", "number", "MainThread")
    assert complete(NAMES, "d", 1).candidates[0].kind == "field"


def test_all_of_the_language_is_offered() -> None:
    assert set(HINTS) == set(FIELDS)
    offered_kinds = [candidate.text for candidate in complete(NAMES, "kind == ", 8).candidates]
    assert offered_kinds == [f"'{kind}'" for kind in KINDS]


def test_operators_fit_the_field() -> None:
    for field in FIELDS:
        for candidate in complete(NAMES, f"{field} ", len(field) + 1).candidates:
            wanted = {"number": "(1)", "truth": "(True)"}.get(FIELDS[field].sort, "('')")
            if FIELDS[field].sort not in ("time", "duration", "kind"):
                parse(f"{field} {candidate.text} {wanted}")


@pytest.mark.parametrize(
    "name",
    ["it's", 'say "hi"', "a%b_c", "back\\slash", "new\nline", "\x1b[31m", "\ud800", "Zoë", "", "\u202e"],
)
def test_any_name_becomes_a_string_that_finds_it(name: str) -> None:
    names = Names(functions=[name])
    for quote in "'\"":
        text = f"func == {quote}"
        found = complete(names, text, len(text)).candidates
        assert found[0].text.isprintable()
        [constant] = parse("func == " + found[0].text).root.constants  # type: ignore[union-attr]
        assert re.sub(r"\\(.)", r"\1", str(constant.value), flags=re.DOTALL) == shown(name)


def shown(name: str) -> str:
    """As the columns have it."""
    return "\\ud800" if name == "\ud800" else name


@given(st.text(), st.sampled_from("'\""))
def test_literals_are_read_back(text: str, quote: str) -> None:
    assert eval(literal(text, quote)) == text
    assert literal(text, quote).isprintable()


@given(st.text("fuinc ()'\"=<>,ay\\\n5.%é[]-"), st.data())
def test_any_text_can_be_typed(text: str, data: st.DataObject) -> None:
    cursor = data.draw(st.integers(0, len(text)))
    start, end, candidates = complete(NAMES, text, cursor)
    assert 0 <= start <= cursor <= end <= len(text)
    assert all(candidate.text.isprintable() for candidate in candidates)


WORDS = ("func", "depth", "kind", "==", "<", "in", "not", "and", "or", "(", ")", ",", "'pay'", "'call'", "3")


@given(st.lists(st.sampled_from(WORDS)))
def test_what_is_offered_can_be_written(words: list[str]) -> None:
    """Wherever a filter is right up to the cursor, what is offered there leads on to one that is
    right."""
    text = "".join(f"{word} " for word in words)
    ends = ("", "== 'pay'", "> 3", "'pay'", "3", "('pay',)", "(3,)", "func == 'pay'", "'pay')", "3)", ")")

    def goes_on(beginning: str) -> bool:
        return any(is_filter(beginning + end + more) for end in ends for more in ("", ")"))

    if goes_on(text):
        for candidate in complete(NAMES, text, len(text)).candidates[:3]:
            assert goes_on(f"{text}{candidate.text} "), candidate


def is_filter(text: str) -> bool:
    try:
        parse(text)
    except FilterError:
        return False
    return True


# ---- the search ---------------------------------------------------------------------------


def test_names_added_later_are_found() -> None:
    vocabulary = Vocabulary(["pay"])
    assert vocabulary.complete("p", 9) == ["pay"]
    vocabulary.add(["pay", "prepare", "repay"])
    assert vocabulary.complete("p", 9) == ["pay", "prepare", "repay"]
    assert len(vocabulary) == 3


def test_order_of_candidates() -> None:
    vocabulary = Vocabulary(
        [
            "payment",
            "pay",
            "Bill.pay",
            "bill_payer",
            "repay",
            "PostAllYears",
            "p_a_y",
            "purchase_any",
            "xpxaxy",
        ]
    )
    assert vocabulary.complete("pay", 20) == [
        "pay", "payment",  # begin with it
        "Bill.pay", "bill_payer",  # a word in them does
        "p_a_y", "PostAllYears", "repay",  # its words' first letters; inside of a word
        "purchase_any",
    ]  # fmt: skip
    assert vocabulary.complete("pay", 2) == ["pay", "payment"]


def test_names_with_strange_letters() -> None:
    names = ["a\nb", "\1", "\0", "\ud800x", "İstanbul", "ß", "x" * 10_000, "]", "^a-z", "(?"]
    vocabulary = Vocabulary(names)
    for name in names:
        assert name in vocabulary.complete(name, 3)
        assert vocabulary.nearest(name, 1) == [(0, name)] or "\n" in name
    assert sorted(vocabulary.complete("", 20)) == sorted(names)


@given(st.text("abcd", max_size=8), st.text("abcd", max_size=8))
def test_distance(a: str, b: str) -> None:
    exact = plain_distance(a, b)
    for most in range(5):
        assert distance(a, b, most) == min(exact, most + 1)


def plain_distance(a: str, b: str) -> int:
    """The whole matrix."""
    rows = {(i, j): i + j for i in range(len(a) + 1) for j in range(len(b) + 1) if not i or not j}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            rows[i, j] = min(
                rows[i - 1, j] + 1, rows[i, j - 1] + 1, rows[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            )
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                rows[i, j] = min(rows[i, j], rows[i - 2, j - 2] + 1)
    return rows[len(a), len(b)]


@given(st.lists(st.text("abxyz_.", min_size=1, max_size=9)), st.text("abxyz_.", min_size=1, max_size=9))
def test_nearest_leaves_nothing_out(names: list[str], written: str) -> None:
    most = (0, 0, 1, 1, 1, 2, 2, 2)[len(written)] if len(written) < 8 else 3
    found = Vocabulary(names).nearest(written, 1000)
    wanted = {(plain_distance(written, name), name) for name in names}
    assert found == sorted(pair for pair in wanted if pair[0] <= most)


def test_a_hundred_thousand_names_are_searched_at_once() -> None:
    random = Random(1)

    words = ["".join(random.choices(string.ascii_lowercase, k=random.randint(3, 9))) for _ in range(5000)]
    functions = [
        f"{random.choice(words).title()}{random.choice(words).title()}.{random.choice(words)}_{i:x}"
        for i in range(100_000)
    ]
    names = Names(functions=functions)
    names.functions.prepare()
    for typed in ("e", "eae", "zqxj", "estimate", "internationalization", "_"):
        text = f"func == '{typed}"
        assert fastest(lambda text=text: complete(names, text, len(text))) < 0.1  # type: ignore[misc]
    for name in functions[:3]:
        assert fastest(lambda name=name: names.functions.nearest(name[1:], 5)) < 0.4  # type: ignore[misc]


def fastest(search: object) -> float:
    """Seconds of the processor, several times more being allowed than it takes."""
    taken = []
    for _ in range(3):
        before = time.process_time()
        search()  # type: ignore[operator]
        taken.append(time.process_time() - before)
    return min(taken)


def test_patterns_of_names() -> None:
    assert pattern_of("a_b%c\\d") == "a_b\\%c\\\\d"
