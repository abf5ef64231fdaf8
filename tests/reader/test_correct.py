"""Filters that are offered if one found nothing; what they find is made up."""

import time
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytracer.reader.filter.parser import parse
from pytracer.reader.filter.sql import compile
from pytracer.reader.filter.tree import like, unparse
from pytracer.reader.query import Query
from pytracer.reader.suggestions.corrections import Correction, Found, corrections, rendered
from pytracer.reader.suggestions.names import Names
from pytracer.reader.suggestions.vocabulary import Vocabulary


class Run(NamedTuple):
    id: int
    started: int
    finished: int | None


RUNS = [Run(1, 1_700_000_000_000_000_000, 1_700_000_100_000_000_000)]
NAMES = Names(
    functions=["Order.pay", "Order.payment", "<module>", "ship_order", "Straße.öffnen", "a%b"],
    modules=["app", "app.shop"],
    files=["/home/me/app.py"],
    arguments=["self", "amount", "user", "customer"],
    types=["app.Order"],
    threads=["MainThread", "worker-1"],
)
NAMES.tids |= {1234: "MainThread", 2000: "worker-1"}


class Counter:
    """Counts by a table of filters; every other one finds nothing."""

    def __init__(self, finds: Mapping[str, int]) -> None:
        self._finds = {compile(parse(text), RUNS): events for text, events in finds.items()}
        self.asked = 0

    def __call__(self, where: str, parameters: tuple[int | str, ...], at_most: int, deadline: float) -> Found:
        self.asked += 1
        events = self._finds.get(Query(where, parameters), 0)
        return Found(min(events, at_most), events <= at_most)


def corrected(text: str, finds: Mapping[str, int] | list[str], limit: int = 5) -> list[str]:
    """The filters offered for a text; each filter of a list finds one event."""
    counter = Counter(finds if isinstance(finds, dict) else dict.fromkeys(finds, 1))
    found = corrections(parse(text), NAMES, RUNS, counter, limit, time.monotonic() + 60)
    return [correction.text for correction in found]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        # letters
        ("func == 'paay'", "func == 'pay'"),
        ("func == 'apy'", "func == 'pay'"),
        ("func == 'Order.paymnet'", "func == 'Order.payment'"),
        ("func in ('foo', 'paay')", "func in ('foo', 'pay')"),
        ("arg == 'usre'", "arg == 'user'"),
        ("arg == 'return valeu'", "arg == 'return value'"),
        ("module == 'app.shpo'", "module == 'app.shop'"),
        ("type == 'flaot'", "type == 'float'"),
        ("thread == 'mainthred'", "thread == 'MainThread'"),
        ("tid == 1235", "tid == 1234"),
        ("func == 'STRASSE.ÖFFNEN'", "func == 'Straße.öffnen'"),
        ("func == 'ÖFFNEN'", "func == 'öffnen'"),
        ("func == 'a%%b'", "func == 'a\\\\%b'"),
        # parts of names
        ("func == 'ship'", "func == 'ship%'"),
        ("func == 'men'", "func == '%men%'"),
        ("func == 'app.Order.pay'", "func == 'Order.pay'"),
        ("module == 'shop'", "module == '%.shop'"),
        ("type == 'Order'", "type == '%.Order'"),
        ("file == 'app.py'", "file == '%/app.py'"),
        ("func == 'ordpay'", "func == 'Order.pay'"),
        # names of something else
        ("func == 'app.shop'", "module == 'app.shop'"),
        ("value == 'customer'", "arg == 'customer'"),
        ("arg == 'app.Order'", "type == 'app.Order'"),
        # values
        ("value == 5", "value == '5'"),
        ("value == 5", "value == '5.0'"),
        ("value == '5.0'", "value == '5'"),
        ("value == 1", "value == True"),
        ("value == True", "value == 1"),
        ("value == \"'5'\"", "value == '5'"),
        ("value == ' bob '", "value == 'bob'"),
        ("value == 'bob'", "value == 'bob%'"),
        ("value == 'bob'", "value == '%bob%'"),
        ("value == 'ÉMILE'", "value == 'émile'"),
        ("value == 'dear mister bob'", "value == '%mister%'"),
        # numbers and times
        ("depth == 7", "depth >= 7"),
        ("duration == '1s'", "duration <= '1s'"),
        ("time < '2001/01/01 12:30:00'", "time < '12:30:00'"),
        ("time == '+1s'", "time >= '+1s'"),
    ],
)
def test_one_comparison(text: str, meant: str) -> None:
    assert meant in corrected(text, [meant])


@pytest.mark.parametrize(
    ("text", "finds", "meant"),
    [
        # the part that finds nothing changes, the other stays
        (
            "func == 'paay' and depth < 5",
            ["depth < 5", "func == 'pay' and depth < 5"],
            "func == 'pay' and depth < 5",
        ),
        (
            "depth < 5 and (func == 'paay' or func == 'shp')",
            ["depth < 5", "depth < 5 and (func == 'pay' or func == 'shp')"],
            "depth < 5 and (func == 'pay' or func == 'shp')",
        ),
        # both parts find nothing
        (
            "func == 'paay' and arg == 'usr'",
            ["func == 'pay' and arg == 'user'"],
            "func == 'pay' and arg == 'user'",
        ),
        # nothing like it: left out
        ("func == 'xyzzy' and depth < 5", ["depth < 5"], "depth < 5"),
        ("not func == 'pay' and func == 'xyzzy' and depth < 5",
         ["depth < 5", "not func == 'pay' and depth < 5"],
         "not func == 'pay' and depth < 5"),
        # each finds something, together they do not
        (
            "func == 'pay' and func == 'ship_order'",
            ["func == 'pay'", "func == 'ship_order'", "func == 'pay' or func == 'ship_order'"],
            "func == 'pay' or func == 'ship_order'",
        ),
        (
            "func == 'pay' and not arg == 'self'",
            ["func == 'pay'", "not arg == 'self'"],
            "func == 'pay'",
        ),
        ("1000 < depth < 2000", ["depth < 2000"], "depth < 2000"),
    ],
)  # fmt: skip
def test_parts(text: str, finds: list[str], meant: str) -> None:
    assert meant in corrected(text, finds)


def test_another_argument_is_found_by_halving() -> None:
    """The counter is asked about sets of names."""

    def count(where: str, parameters: tuple[int | str, ...], at_most: int, deadline: float) -> Found:
        asked = str(parameters[0])
        both = "bob" in asked and "name" in asked
        return Found(3, True) if not both or '"customer"' in asked else Found(0, True)

    tree = parse("arg == 'user' and value == 'bob'")
    [first, *_] = corrections(tree, NAMES, RUNS, count)
    assert first == Correction("arg == 'customer' and value == 'bob'", 3, True)


def test_the_nearest_comes_first_then_what_finds_most() -> None:
    assert (
        corrected("func == 'payd'", {"func == 'pay'": 3, "func == 'Order.pay'": 500, "func == 'payment'": 7})[
            0
        ]
        == "func == 'pay'"
    )
    assert corrected("depth == 7", {"depth >= 7": 3, "depth <= 7": 4}) == ["depth <= 7", "depth >= 7"]
    assert corrected("depth == 7", {"depth >= 7": 4, "depth <= 7": 3}) == ["depth >= 7", "depth <= 7"]
    assert corrected("depth == 7", {"depth >= 7": 4, "depth <= 7": 3}, limit=1) == ["depth >= 7"]


ROUND = (500, 200, 100, 50, 20, 10, 5, 2, 1)


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("depth > 100", ["20", "10", "5", "2", "1", "0"]),
        ("depth >= 2", ["0"]),
        ("depth < 5", [str(m * 10**e) for e in range(1, 19) for m in (1, 2, 5)]),
        ("duration > '10s'", [f"'{m}{u}'" for u in ("ms", "us", "ns") for m in ROUND]),
        ("duration > 3000", [f"'{m}ns'" for m in (*ROUND, 0)]),
        ("time > '+200s'", ["'+50s'", "'+10s'", "'+0ns'"]),
        ("time < '+1ns'", ["'+90s'", "'+110s'"]),
    ],
)  # fmt: skip
def test_of_milder_and_milder_ones_the_first_is_offered(text: str, constants: list[str]) -> None:
    compared = text.rpartition(" ")[0]
    finds = [f"{compared} {constant}" for constant in constants]
    assert corrected(text, finds) == [finds[0]]


def test_nothing_is_offered_that_finds_nothing() -> None:
    assert corrected("func == 'paay'", []) == []
    assert corrected("func == 'xyzzy'", ["func == 'pay'"]) == []
    assert corrected("", []) == []


def test_of_alternatives_all_are_corrected_first() -> None:
    one, both = "func == 'pay' or func == 'shp_order'", "func == 'pay' or func == 'ship_order'"
    found = corrected("func == 'paay' or func == 'shp_order'", {one: 9, both: 10})
    assert found == [both, one]


def test_other_filters_only() -> None:
    texts = corrected("func == 'paay' or func == 'paay'", ["func == 'paay' or func == 'pay'"])
    assert texts == ["func == 'paay' or func == 'pay'"]


def test_it_ends_in_time() -> None:
    class Slow(Counter):
        """Each count takes a second of a clock that the test moves."""

        def __call__(
            self, where: str, parameters: tuple[int | str, ...], at_most: int, deadline: float
        ) -> Found:
            clock[0] += 1
            return super().__call__(where, parameters, at_most, deadline)

    clock = [0.0]
    counter = Slow({"value == 'bob%'": 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytracer.reader.suggestions.corrections.time.monotonic", lambda: clock[0])
        text = " or ".join(f"value == 'bob{i}'" for i in range(1000))
        assert corrections(parse(text), NAMES, RUNS, counter, 5, 3.0) == []
        assert counter.asked == 3


def test_an_unfinished_count_proves_nothing() -> None:
    """Time was over before anything was found: the filter's parts are not taken as finding
    nothing."""

    def count(where: str, parameters: tuple[int | str, ...], at_most: int, deadline: float) -> Found:
        return Found(0, False)

    assert corrections(parse("value == 'x' and depth > 3"), NAMES, RUNS, count) == []


def test_long_filters() -> None:
    text = " or ".join(["func == 'paay'"] * 2000)
    before = time.monotonic()
    corrections(parse(text), NAMES, RUNS, Counter({}))
    assert time.monotonic() - before < 10
    text = " and ".join(f"func == 'paay{i}' and depth > {i}" for i in range(500))
    corrections(parse(text), NAMES, RUNS, Counter({}))
    assert time.monotonic() - before < 20


def test_any_filter_is_corrected_to_filters() -> None:
    """Whatever finds something is offered as a text that reads back."""

    def count(where: str, parameters: tuple[int | str, ...], at_most: int, deadline: float) -> Found:
        return Found(1, True)

    for text in (
        "func == 'it\\'s'", "func == '\\x1b[31m'", "value == '\\\\%'", "arg in ()", "kind in ('call',)",
        "kind == 'call'", "value == 1e400", "value == -1.5", "tid in (1, 2)", "run == 7", "line != 3",
        "time in ('+1s', '12:00')", "duration in ('1s', 3000)", "not (func == 'pay')",
        "depth == 99999999999999999999",
    ):  # fmt: skip
        for correction in corrections(parse(text), NAMES, RUNS, count):
            assert unparse(parse(correction.text)) == correction.text


# ---- what is shown ------------------------------------------------------------------------


def test_rendered() -> None:
    found = [
        Correction("func == 'pay'", 1204, True),
        Correction("func == 'payment' and depth < 5", 1, True),
        Correction("func == '%pa%'", 100_000, False),
    ]
    assert rendered("func == 'paay'", found).splitlines() == [
        "no event matches: func == 'paay'",
        "did you mean",
        "  func == 'pay'                              1,204 events",
        "  func == 'payment' and depth < 5                1 event",
        "  func == '%pa%'                   100,000 or more events",
    ]
    assert rendered("depth < 0", []) == "no event matches: depth < 0"


def test_rendered_is_safe_for_a_terminal() -> None:
    unsafe = "func == '\x1b[31m\u202e\ud800'"
    for line in rendered(unsafe, [Correction(unsafe, 1, True)]).splitlines():
        assert line.isprintable()


# ---- LIKE ---------------------------------------------------------------------------------


@given(st.text("aAé%_\\\nb", max_size=8), st.lists(st.text("aAéÉ%_\\\nb", max_size=8)))
def test_like(pattern: str, names: list[str]) -> None:
    if not pattern.endswith("\\"):
        assert Vocabulary(names).fits(pattern) == any(like(pattern, name) for name in names)


def test_unkind_patterns() -> None:
    assert not Vocabulary(["a" * 1000]).fits("%a" * 30 + "%b")
