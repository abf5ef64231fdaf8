"""Expressions of recorded values: the same answers as Python's own, or none; never a wrong one."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytracer.reader.database import Database
from pytracer.reader.filter.tree import like
from pytracer.reader.replay.expressions import Expression, ExpressionError, Result, parse
from pytracer.reader.replay.history import History
from pytracer.reader.replay.patterns import Pattern
from pytracer.reader.replay.state import Item, variables

from recording import Record


def item(value: Any, name: str = "") -> Item:
    return Item(name, repr(value), type(value).__name__)


def asked(text: str, **values: Any) -> Result:
    return parse(text).value({name: found(name, value) for name, value in values.items()})


def found(name: str, value: Any) -> Item:
    return value if isinstance(value, Item) else item(value, name)


def holds(text: str, **values: Any) -> bool:
    expression = parse(text)
    told = {name: found(name, value) for name, value in values.items()}
    truth = expression.truth(told)
    assert expression.holds(told) == (truth is True)
    return expression.holds(told)


# ---- against Python ----

TEXTS = st.text().filter(lambda text: "%" not in text and "_" not in text)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
HASHABLE = st.none() | st.booleans() | st.integers() | TEXTS | st.binary()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.tuples(inner)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
        | st.frozensets(HASHABLE, max_size=3)
    ),
    max_leaves=8,
)
TEMPLATES = (
    "a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "a in b", "a not in b", "a and b", "a or b",
    "not a", "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "-a", "len(a)", "a[0]", "a[-1]", "a[b]",
    "a == 1 and b", "a is None", "a is not True", "(a, b)", "[a, 1] == [b, 1]", "a in (b, 1, 'x')",
    "0 < a < b",
    "a == 'bob'", "(a + b) * 2 - 1", "len(a) > 1 or b", "a ** 2", "not (a == b)", "a", "a in [b]",
)  # fmt: skip


@given(st.sampled_from(TEMPLATES), VALUES, VALUES)
def test_answers_are_those_of_python(text: str, a: Any, b: Any) -> None:
    told = asked(text, a=a, b=b)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = eval(text, {"a": a, "b": b})
    except Exception:
        return  # a mistake: no answer, or that of the part that decides
    if told.known:
        assert told.text == repr(expected) or ("{" in told.text and eval(told.text) == expected)
        assert told.type == type(expected).__name__
    else:
        assert "cannot be computed" in told.reason or "too" in told.reason, told.reason


@given(SCALARS | st.floats())
def test_values_are_read_back(value: Any) -> None:
    told = asked("(a,)", a=value)
    assert told.text == repr((value,))


@given(st.text())
def test_strange_texts_of_values_do_no_harm(text: str) -> None:
    for template in ("a == 1", "a[0]", "a.b", "a['k']", "len(a)", "a == '%x%'", "a in (1, 2)", "type(a)"):
        asked(template, a=Item("a", text, "app.Order"))


# ---- what was cut ----

CUT = Item("a", "'abc'...", "str")
LONG = Item("a", "[0, 1, 2, ...]", "list")
DEEP = Item("a", "[1, {...}]", "list")
ORDER = Item(
    "order", "app.Order(user='bob', total=3)", "app.Order",
    (Item("user", "'bob'", "str"), Item("total", "3", "int")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value", "truth"),
    [
        ("a == 'abc'", CUT, False), ("a == 'abcd'", CUT, None), ("a == 'abd'", CUT, False),
        ("a != 'x'", CUT, True), ("a == '%bc%'", CUT, True), ("a == '%x%'", CUT, None),
        ("a == 'x%'", CUT, False), ("a == 'ab_'", CUT, False), ("a == 'abc%d'", CUT, None),
        ("a > 'abb'", CUT, True), ("a > 'abc'", CUT, True), ("a > 'abcd'", CUT, None), ("a", CUT, True),
        ("'b' in a", CUT, True), ("'x' in a", CUT, None), ("len(a) == 3", CUT, None),
        ("a[0] == 'a'", CUT, True),
        ("a is None", CUT, False), ("a == None", CUT, False), ("a == 1", CUT, False),
        ("not a == 'abcd'", CUT, None),
        ("a == 'abcd' or True", CUT, True), ("a == 'abcd' and False", CUT, False),
        ("type(a) == 'str'", CUT, True),
        ("a[2] == 2", LONG, True), ("a[3] == 3", LONG, None), ("a[-1] == 2", LONG, None),
        ("2 in a", LONG, True),
        ("5 in a", LONG, None), ("len(a) > 1", LONG, None), ("a == [0, 1, 2]", LONG, None),
        ("a == 'x'", LONG, False),
        ("a == [1, 2]", DEEP, None), ("a[1] == 2", DEEP, None), ("len(a) == 2", DEEP, True),
        ("a[0] == 1", DEEP, True),
        ("a == 5", Item("a", "123...", "int"), None), ("a == None", ORDER, False),
        ("a is None", ORDER, False),
        ("a.user == 'bob'", ORDER, True), ("a.user == '%o%'", ORDER, True), ("a.total + 1 == 4", ORDER, True),
        ("a.nothing", ORDER, None), ("a", ORDER, None), ("a == '%user=%'", ORDER, True),
        ("type(a) == Order", ORDER, True),
        ("type(a) == app.Order", ORDER, True), ("type(a) != int", ORDER, True),
        ("type(a) is int", ORDER, False),
        ("type(a.total) == int", ORDER, True), ("b == 1", ORDER, None),
        ("b == 1 or a is not None", ORDER, True),
        ("1 / 0 == 1", ORDER, None), ("a < 3", ORDER, None), ("a == '<app%'", ORDER, False),
    ],
)  # fmt: skip
def test_what_is_not_known_is_never_wrong(text: str, value: Item, truth: bool | None) -> None:
    answer = parse(text).truth({"a": value._replace(name="a")})
    assert answer == truth if truth is not None else not isinstance(answer, bool)


def test_reasons() -> None:
    assert asked("total", a=1).reason == "total was not recorded, or is not set yet"
    assert asked("a[12]", a=LONG).reason == "items beyond the 3rd of a were not recorded"
    assert asked("a[3]", a=[1, 2]).reason == "a has no item 3: it has 2"
    assert asked("a['k']", a={"x": 1}).reason == "a has no ['k']"
    assert asked("a.x", a=ORDER).reason == "a.x was not recorded"
    assert asked("1 / 0").reason == "division by zero"
    assert "too large" in asked("10 ** 10 ** 10").reason
    assert "too long" in asked("'a' * 1000000").reason
    assert "cannot be computed" in asked("[[[0] * 9999] * 9999] * 9999").reason
    assert not asked("a", b=1).known


def test_parts_can_be_opened() -> None:
    inner = Item("[0]", "[1, 2]", "list", (Item("[0]", "1", "int"), Item("[1]", "2", "int")))
    whole = Item("a", "[[1, 2]]", "list", (inner,))
    assert asked("a[0]", a=whole).item == inner
    assert asked("a", a=whole).item == whole
    assert asked("a[0][1] + 1", a=whole).text == "3"
    assert asked("a[0][-1]", a=whole).item == inner.items[1]
    assert asked("d['key'][1]", d={"key": (1, "x")}).text == "'x'"
    assert asked("d[(1, 2)]", d={(1, 2): 3}).text == "3"
    assert asked("d[k]", d={"x": 5}, k="x").text == "5"
    assert asked("order.user", order=ORDER).item == ORDER.items[0]
    assert asked("a[1]", a=Item("a", "MyList([1, 2])", "app.MyList")).text == "2"
    assert asked("d['a']", d=Item("d", "defaultdict(<class 'int'>, {'a': 1})", "defaultdict")).text == "1"


def test_names() -> None:
    assert parse("a + b.c > len(d[e]) and type(f) == int").names == {"a", "b", "d", "e", "f"}


# ---- patterns ----


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a == '%bob%'", "Bobby", True), ("a == 'b_b'", "bob", True), ("a == 'b_b'", "bb", False),
        ("a == '100\\%'", "100%", True), ("a == '100\\%'", "1000", False), ("a == '%5%'", 15, True),
        ("a == '\\'%'", "x", True), ("a != '%bob%'", "eve", True), ("a in ('x%', 'b%')", "bob", True),
        ("'%bob%' == a", "bob", True), ("a == 'bob'", "BOB", False), ("a == r'\\%'", "%", True),
        ("a == '%1, 2%'", [1, 2, 3], True), ("a not in ('x%',)", "bob", True),
    ],
)  # fmt: skip
def test_patterns_are_those_of_filters(text: str, value: Any, expected: bool) -> None:
    assert holds(text, a=value) == expected


PIECES = st.text(alphabet="%_\\aAbäß.[*\n", max_size=12)


@given(PIECES, st.text(alphabet="aAbBä%_\\.[*\n", max_size=12))
def test_patterns_match_as_by_like(pattern: str, text: str) -> None:
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        with pytest.raises(ValueError, match="backslash"):
            Pattern(pattern)
        return
    assert Pattern(pattern).matches(text) == like(pattern, text)
    answer = Pattern(pattern).begins(text)
    for more in ("a", "b", "%", "ab" * 10, "A\\"):
        if answer is not None:
            assert like(pattern, text + more) == answer


# ---- mistakes, and hostile texts ----


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected"), ("  ", "expected"), ("total = 3", "write =="), ("a &&b", "write and"),
        ("a || b", "write or"),
        ("a & b", "write and"), ("!a", "write not"), ("f(x)", "only len"), ("len(a, b)", "only len"),
        ("a.b(1)", "only len"), ("lambda: 1", "functions"), ("[x for x in y]", "loops"), ("{1: 2}", "dict"),
        ("f'{a}'", "f-strings"), ("(a := 1)", "set"), ("a[1:2]", "slices"), ("a if b else c", "and, or, not"),
        ("~a", "write not"), ("a @ b", "there are the operators"), ("a is b", "write =="),
        ("a\nb", "one line"),
        ("1 +", "cannot be read"),
        ("x" * 3000, "longer"), ("__import__('os')", "only len"), ("a == 'x%\\\\'", "backslash"),
        ("await x", ""),
        ("(1).real", "only a variable"), ("*a", ""), ("a; b", ""), ("\0", ""), ("'\ud800'", ""),
    ],
)  # fmt: skip
def test_mistakes_say_what_to_type(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert said in caught.value.message
    assert 0 <= caught.value.position <= len(text)


def test_places_of_mistakes() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("  ä == f(x)")
    assert (caught.value.position, caught.value.end) == (7, 11)


@pytest.mark.parametrize("size", [10, 90, 150, 400, 900, 1900])
@pytest.mark.parametrize(
    ("before", "after"),
    [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("a[", "]"), ("a==", ""), ("2**", ""), ("a+", ""),
     ("a.", ""),
     ("a and ", ""), ("a or not ", ""), ("9", ""), ("len(", ")"), ("'", ""), ("((a,),", ")"), ("~", ""),
     ("{", "")],
)  # fmt: skip
def test_hostile_expressions_are_mistakes(before: str, after: str, size: int) -> None:
    try:
        expression = parse(before * (size // len(before)) + "a" + after * size)
    except ExpressionError:
        return
    check(expression)


@given(st.text(alphabet="ab0.1'\"()[]{}+-*/%<>=!, :\\notinadr\n"))
def test_any_text_is_an_expression_or_a_mistake(text: str) -> None:
    try:
        expression = parse(text)
    except ExpressionError as error:
        position = error.position
    else:
        check(expression)
        return
    assert 0 <= position <= len(text)


def check(expression: Expression) -> None:
    told = {"a": item([1, "x"]), "b": CUT}
    assert isinstance(expression.value(told).text, str)
    assert isinstance(expression.holds(told), bool)


# ---- recorded ----


def test_recorded_values(record: Record) -> None:
    source = """
import collections, decimal
class Order:
    def __init__(self, user, total):
        self.user, self.total, self.lines = user, total, [1, 2]
Point = collections.namedtuple('Point', 'x y')
def work():
    order = Order('bob', 3)
    point = Point(1, 'b')
    text, huge, long = 'a"b\\'c\\n' * 3, 10 ** 25, 'ab' * 5000
    deep = {'k': [1, (2, {'z': {5}})], 5: b'\\x00', None: 1.5, (1, 2): {}}
    many = list(range(1000))
    strange = [float('inf'), -0.0, 1j, ..., frozenset({1}), bytearray(b'x'), set()]
    return 1
work()
"""
    recording = record(source, "--lines")
    database = Database(str(recording.database))
    [last] = [event for event in recording.of("line", func="work") if event.line == 14]
    at = History(database, last.run).at(last.id)
    assert at is not None
    told = {each.name: each.value for each in variables(database, at)}
    yes = """
order.user == 'bob' and order.total == 3 and order.lines[1] == 2 and order.lines == [1, 2]
type(order) == Order and point.x == 1 and point.y == 'b'
text == 'a"b\\'c\\n' * 3
huge == 10 ** 25 and huge + 1 == 10000000000000000000000001
long == 'abab%' and long > 'aa' and long is not None and 'ba' in long
deep['k'][0] == 1 and deep[5] == b'\\x00' and deep[None] == 1.5 and deep[(1, 2)] is not None
many[9] == 9 and 5 in many and type(many) == list
strange[0] > 10 ** 100 and strange[1] == 0 and strange[2] == 1j and len(strange) == 7
"""
    for text in yes.strip().splitlines():
        assert parse(text).holds(told), (text, parse(text).value(told), json.dumps(told))
    for text in ("many[500]", "len(many)", "len(long)", "long == 'ab' * 5000", "many[-1]"):
        assert not parse(text).value(told).known, text
