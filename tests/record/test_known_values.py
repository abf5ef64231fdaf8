"""Generated values of every known type are shown as an oracle in Python shows them."""

import array
import re
import zoneinfo
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

from known_oracle import show
from recording import Record

# Of the script and of the oracle
PRELUDE = """
import array, contextvars, datetime, decimal, enum, functools, ipaddress, pathlib, re, types, uuid
import weakref, zoneinfo
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import timedelta, timezone
from decimal import Decimal
from fractions import Fraction

nan, inf = float("nan"), float("inf")

def taken(value):
    pass

def worked(value, steps):
    for name, *args in steps:
        try:
            getattr(value, name)(*args)
        except (IndexError, KeyError):
            pass
    return value

def array_of(code, data):
    made = array.array(code)
    made.frombytes(data[:len(data) // made.itemsize * made.itemsize])
    return made

def released(value):
    value.release()
    return value

def shortened(match):
    del match.string[:]
    return match

class Text(str):
    pass

class Other:
    pass

other = Other()

class Period(timedelta, enum.Enum):
    DAY = 1, 5

class Day(datetime.date, enum.Enum):
    FIRST = 2024, 1, 1

class Price(Decimal, enum.Enum):
    LOW = "1.50"

class Place(namedtuple("Place", "x y"), enum.Enum):
    HERE = 1, 2

class Letter(str, enum.Enum):
    A = "a"

class Level(enum.IntEnum):
    LOW = 1
    BOTTOM = 1
    HIGH = -(2**70)
"""


def call(name: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    """The text of a call with these arguments, which are texts of expressions."""
    return st.tuples(*args).map(lambda drawn: f"{name}({', '.join(drawn)})")


def literal(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return strategy.map(ascii)


def listed(items: st.SearchStrategy[str], **most: Any) -> st.SearchStrategy[str]:
    return st.lists(items, **most).map(lambda drawn: f"[{', '.join(drawn)}]")


def paired(
    keys: st.SearchStrategy[str], items: st.SearchStrategy[str], **most: Any
) -> st.SearchStrategy[str]:
    pairs = st.lists(st.tuples(keys, items), **most)
    return pairs.map(lambda drawn: f"{{{', '.join(f'{key}: {item}' for key, item in drawn)}}}")


integers = st.one_of(st.integers(-9, 99), st.integers(-(2**70), 2**70))
floats = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.0, 1e16, -1e-5, 5e-324]))
short_text = st.text(max_size=6)
leaf = literal(st.one_of(integers, floats, short_text, st.none(), st.booleans(), st.binary(max_size=6)))
key = literal(st.one_of(st.integers(0, 5), st.sampled_from("abcdef")))
names = st.text(min_size=1, max_size=9).filter(lambda name: name.isidentifier())
flags = st.sampled_from(["", ", re.I", ", re.M | re.S", ", re.X", ", re.I | re.M | re.S | re.X"])

# ---- times ---------------------------------------------------------------------------------------

spans = call(
    "timedelta",
    st.integers(-999999997, 999999998).map(str),  # negative seconds take days from it
    st.integers(-99999, 86400).map(str),
    st.integers(-9, 999999).map(str),
) | call("timedelta", *[st.integers(-1, 1).map(str)] * 3)
offsets = call(
    "timedelta",
    st.just("0"),
    st.one_of(st.integers(-86399, 86398), st.sampled_from([0, 60, -3600])).map(str),
    st.sampled_from(["0", "0", "1", "999999"]),
)
zones = st.one_of(
    st.just("timezone.utc"),
    call("timezone", offsets),
    call("timezone", offsets, literal(short_text)),
    call(
        "zoneinfo.ZoneInfo",
        literal(st.sampled_from(["UTC", *sorted(zoneinfo.available_timezones() - {"localtime"})])),
    ),
)
folds = st.sampled_from(["fold=0", "fold=1"])
days = [st.integers(1, 9999).map(str), st.integers(1, 12).map(str), st.integers(1, 28).map(str)]
clock = [
    *(st.one_of(st.integers(0, most), st.just(0)).map(str) for most in (23, 59, 59, 999999)),
    st.one_of(st.just("None"), zones),
    folds,
]
clock[4] = clock[4].map(lambda zone: f"tzinfo={zone}")

# ---- numbers -------------------------------------------------------------------------------------

digits = st.text("0123456789", min_size=1, max_size=60) | st.text("09", min_size=210, max_size=260)
exponents = st.one_of(
    st.just(""), st.integers(-30, 30).map("e{}".format), st.integers(-(10**17), 10**17).map("e{}".format)
)
decimals = st.tuples(
    st.sampled_from(["", "-"]),
    st.one_of(
        st.sampled_from(["inf", "nan", "snan", "0", "0.00", "0e9", "0e-7"]),
        st.tuples(st.sampled_from(["nan", "snan"]), st.text("0123456789", max_size=30)).map("".join),
        st.tuples(digits, exponents).map("".join),
        st.tuples(digits, st.just("."), digits, exponents).map("".join),
    ),
).map(lambda drawn: f"Decimal({''.join(drawn)!r})")
numbers = {
    "Decimal": decimals,
    "Fraction": call("Fraction", literal(integers), literal(integers.filter(bool))),
    "UUID": literal(st.integers(0, 2**128 - 1)).map(lambda n: f"uuid.UUID(int={n})"),
    "complex": call("complex", literal(floats), literal(floats)),
    "range": call("range", literal(integers), literal(integers), literal(integers.filter(bool))),
    "slice": call("slice", leaf, leaf, leaf),
}

# ---- buffers -------------------------------------------------------------------------------------

data = st.one_of(st.binary(max_size=40), st.binary(min_size=190, max_size=230), st.just(b"it's \"'\""))
buffer = literal(st.binary(min_size=48, max_size=48))
memories = st.one_of(
    call("memoryview", literal(data)),
    st.tuples(
        buffer, st.sampled_from("bBhHiIlLqQnNfdc?"), st.sampled_from(["", "[::-1]", "[1:9:3]", "[3:3]"])
    ).map(lambda drawn: "memoryview({}).cast({!r}){}".format(*drawn)),
    st.tuples(
        buffer, st.sampled_from(["'B', (2, 3, 8)", "'i', (4, 3)", "'@h', (3, 8, 1)", "'d', (6, 1)"])
    ).map(lambda drawn: f"memoryview({drawn[0]}).cast({drawn[1]})"),
    buffer.map(lambda drawn: f"memoryview(bytearray({drawn})[:8]).cast('q', ())"),
    buffer.map(lambda drawn: f"released(memoryview({drawn}))"),
)
codes = "".join(code for code in "bBhHiIlLqQfduwe" if code in array.typecodes)
arrays = st.one_of(
    call("array_of", literal(st.sampled_from(codes.replace("u", "").replace("w", ""))), literal(data)),
    call(
        "array.array",
        literal(st.sampled_from([code for code in codes if code in "uw"])),
        literal(st.one_of(st.text(max_size=20), st.text("a'\"ü", min_size=95, max_size=105))),
    ),
)

# ---- collections ---------------------------------------------------------------------------------

few = listed(leaf, max_size=4)
many = st.integers(0, 150).map(lambda n: f"range({n})")
deque_steps = listed(
    st.one_of(
        st.integers(-70, 70).map(lambda n: f"('rotate', {n})"),
        leaf.map(lambda item: f"('append', {item})"),
        leaf.map(lambda item: f"('appendleft', {item})"),
        st.integers(1, 80).map(lambda n: f"('extendleft', range({n}))"),
        st.sampled_from(["('pop',)", "('popleft',)", "('reverse',)", "('clear',)", "('insert', 1, 1)"]),
    ),
    max_size=12,
)
deques = call(
    "worked",
    call("deque", few | many, st.one_of(st.none(), st.integers(0, 3), st.just(100)).map(str)),
    deque_steps,
)
ordered = call(
    "worked",
    call("OrderedDict", paired(key, leaf, max_size=8)) | many.map("OrderedDict.fromkeys({})".format),
    listed(
        st.one_of(
            st.tuples(key, st.booleans()).map(lambda drawn: f"('move_to_end', {drawn[0]}, {drawn[1]})"),
            st.booleans().map(lambda last: f"('popitem', {last})"),
            st.tuples(key, leaf).map(lambda drawn: f"('__setitem__', {drawn[0]}, {drawn[1]})"),
            key.map(lambda drawn: f"('pop', {drawn})"),
        ),
        max_size=10,
    ),
)
counts = literal(
    st.one_of(st.integers(-3, 3), integers, st.floats(allow_nan=False), st.sampled_from(["x", True]))
)
counters = st.one_of(
    call("Counter", paired(key, literal(st.integers(-3, 3)), max_size=9)),
    call("Counter", paired(key, counts, max_size=9)),
    st.lists(st.integers(-9, 9), min_size=11, max_size=30).map(
        lambda drawn: f"Counter(dict(enumerate({drawn})))"
    ),
)
dicts = paired(key, leaf, max_size=8)
spaces = paired(literal(names | short_text.filter(bool)), leaf, max_size=4)
collections = {
    "deque": deques,
    "OrderedDict": ordered,
    "Counter": counters,
    "defaultdict": call("defaultdict", st.sampled_from(["None", "int", "list"]), dicts),
    "ChainMap": st.lists(dicts, max_size=3).map(lambda drawn: f"ChainMap({', '.join(drawn)})"),
    "mappingproxy": call("types.MappingProxyType", st.one_of(dicts, ordered, counters)),
    "views": st.tuples(
        dicts | ordered | call("dict", many.map("enumerate({})".format)),
        st.sampled_from(["keys", "values", "items"]),
    ).map(lambda drawn: f"{drawn[0]}.{drawn[1]}()"),
    "views in order": st.tuples(ordered, st.sampled_from(["keys", "values", "items"])).map(
        lambda drawn: f"{drawn[0]}.{drawn[1]}()"
    ),
    "SimpleNamespace": spaces.map("types.SimpleNamespace(**{})".format),
    "partial": st.tuples(st.sampled_from(["len", "max", "int"]), few, spaces, few).map(
        lambda drawn: "functools.partial(functools.partial({}, *{}, **{}), *{})".format(*drawn)
    ),
    "namedtuple": st.lists(st.tuples(names | short_text, leaf), min_size=1, max_size=12).map(
        lambda drawn: "namedtuple('Named', {}, rename=True)(*[{}])".format(
            ascii([name for name, _ in drawn]), ", ".join(item for _, item in drawn)
        )
    )
    | leaf.map("namedtuple('Point', 'x y', defaults=[1, 2])({})".format),
}

# ---- enumerations --------------------------------------------------------------------------------

members = "{'R': 4, 'W': 2, 'X': 1, 'RW': 6, 'HIGH': 64}"
enums = st.one_of(
    leaf.map("enum.Enum('Kind', {{'A': {0}, 'B': {0}}})['B']".format),
    leaf.map("enum.Enum('Kind', {{'a b': {}}})['a b']".format),
    literal(integers).map("enum.IntEnum('Kind', {{'A': {}}})['A']".format),
    literal(short_text).map("enum.StrEnum('Kind', {{'A': {}}})['A']".format),
    literal(short_text).map("enum.Enum('Kind', {{'A': {}}}, type=str)['A']".format),
    st.integers(-80, 200).map(lambda n: f"enum.IntFlag('Mode', {members})({n})"),
    st.integers(-80, 200).map(lambda n: f"enum.Flag('Mode', {members}, boundary=enum.KEEP)({n})"),
    st.integers(0, 7).map(lambda n: f"enum.Flag('Mode', {members})({n})"),
    st.integers(0, 7).map(lambda n: f"~enum.Flag('Mode', {members})({n})"),
    st.sampled_from(["Level.LOW", "Level.BOTTOM", "Level.HIGH", "Letter.A"]),
)

known_ones = st.sampled_from(["Period.DAY", "Day.FIRST", "Price.LOW", "Place.HERE"])

# ---- texts ---------------------------------------------------------------------------------------

parts = listed(
    literal(st.text("ab./ '\"\nü\\~", max_size=7) | st.sampled_from(["", ".", "..", "/", "//", "///"])),
    max_size=4,
)
paths = st.tuples(
    st.sampled_from(["pathlib.PurePosixPath", "pathlib.PosixPath"]),
    parts,
    st.sampled_from(
        [
            "",
            ".parent",
            " / '..'",
            " / '//x'",
            ".joinpath('a', '/b', '.')",
            " / ''",
            ".parent.parent",
            " / Text('t')",
        ]
    ),
).map(lambda drawn: "{}(*{}){}".format(*drawn))
patterns = st.one_of(
    st.tuples(
        literal(st.text(max_size=12).map(re.escape)),
        flags | st.sampled_from([", re.A", ", re.U", ", re.A | re.I"]),
    ).map(lambda drawn: f"re.compile({drawn[0]}{drawn[1]})"),
    st.tuples(
        literal(st.binary(max_size=12).map(re.escape)),
        flags | st.sampled_from([", re.L", ", re.A", ", re.L | re.I"]),
    ).map(lambda drawn: f"re.compile({drawn[0]}{drawn[1]})"),
)
expressions = [
    "a*",
    "(a)|b",
    "(?<=a)b",
    "",
    "b$",
    ".+",
    "(?P<n>.)(?P<m>.)?",
    "(?!a)",
    "^",
    "a(?=b)",
    "(?s).*",
]
bounds = st.tuples(st.integers(-3, 30), st.integers(-3, 300)).map("{0[0]}, {0[1]}".format)
matches = st.one_of(
    st.tuples(
        st.sampled_from(expressions),
        literal(st.text("aabbü\n\U0001f600", max_size=20))
        | st.just("'ab' * 150")
        | st.sampled_from(["Text('xabü')", "Text('a')"]),
        bounds,
    ).map(lambda drawn: f"re.compile({drawn[0]!r}).search({drawn[1]}, {drawn[2]})"),
    st.tuples(
        st.sampled_from(expressions),
        literal(st.binary(max_size=20)) | st.sampled_from(["b'ab' * 150", "bytearray(b'xab')"]),
        bounds,
    ).map(lambda drawn: f"re.compile({drawn[0].encode()!r}).search({drawn[1]}, {drawn[2]})"),
    st.just("shortened(re.search(b'b+', bytearray(b'abb')))"),
)

# ---- addresses -----------------------------------------------------------------------------------

four = st.integers(0, 2**32 - 1)
six = st.one_of(
    st.integers(0, 2**128 - 1),
    four.map(lambda n: n | 0xFFFF << 32),
    st.lists(st.sampled_from([0, 0, 1, 0xABC]), min_size=8, max_size=8).map(
        lambda groups: sum(group << 16 * i for i, group in enumerate(groups))
    ),
)
scopes = st.sampled_from(["eth0", "1", "a b'", "'\"", "\\"])
with_scope = st.tuples(six, scopes).map(
    lambda drawn: f"str(ipaddress.IPv6Address({drawn[0]})) + '%' + {drawn[1]!r}"
)
addresses = st.one_of(
    four.map("ipaddress.IPv4Address({})".format),
    six.map("ipaddress.IPv6Address({})".format),
    st.tuples(four, st.integers(0, 32)).map("ipaddress.IPv4Network({0}, strict=False)".format),
    st.tuples(six, st.integers(0, 128)).map("ipaddress.IPv6Network({0}, strict=False)".format),
    st.tuples(four, st.integers(0, 32)).map("ipaddress.IPv4Interface({0})".format),
    st.tuples(six, st.integers(0, 128)).map("ipaddress.IPv6Interface({0})".format),
)

scoped = st.one_of(
    with_scope.map("ipaddress.IPv6Address({})".format),
    st.tuples(with_scope, st.integers(0, 128)).map(
        lambda drawn: f"ipaddress.IPv6Interface({drawn[0]} + '/{drawn[1]}')"
    ),
    scopes.map(lambda scope: f"ipaddress.IPv6Network('fe80::%' + {scope!r} + '/64')"),
)

# ---- all of them ---------------------------------------------------------------------------------

KNOWN = {
    "date": call("datetime.date", *days),
    "datetime": call("datetime.datetime", *days, *clock),
    "time": call("datetime.time", *clock),
    "timedelta": spans,
    "timezone": zones,
    **numbers,
    "bytearray": call("bytearray", literal(data)),
    "memoryview": memories,
    "array": arrays,
    **collections,
    "enum": enums,
    "enum of a known type": known_ones,
    "path": paths,
    "pattern": patterns,
    "match": matches,
    "weakref": st.sampled_from(["weakref.ref(other)", "weakref.ref(Other())", "weakref.ref(other, len)"]),
    "ipaddress": addresses,
    "ipaddress with a scope": scoped,
    "ContextVar": call("contextvars.ContextVar", literal(short_text))
    | st.tuples(short_text, leaf).map(
        lambda drawn: f"contextvars.ContextVar({drawn[0]!a}, default={drawn[1]})"
    ),
}
small = st.one_of(
    leaf,
    *(
        KNOWN[name]
        for name in ("date", "datetime", "timedelta", "Fraction", "UUID", "complex", "enum", "path")
    ),
)


def within(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        listed(items, max_size=3),
        st.lists(items, max_size=3).map(lambda drawn: f"({''.join(f'{item}, ' for item in drawn)})"),
        call("deque", listed(items, max_size=3)),
        paired(key, items, max_size=3),
        call("OrderedDict", paired(key, items, max_size=3)),
        paired(literal(names), items, max_size=3).map("types.SimpleNamespace(**{})".format),
        listed(items, max_size=3).map("functools.partial(max, *{})".format),
        call("namedtuple('Pair', 'a b')", items, items),
        call("types.MappingProxyType", paired(key, items, max_size=3)),
        call("slice", items, items),
    )


KNOWN["nested"] = within(within(small))
KNOWN["nested deeper"] = within(within(within(leaf)))


def drawn(strategy: st.SearchStrategy[str]) -> list[str]:
    """Half as many examples as the profile has, so that one program takes those of all types."""
    found: list[str] = []

    @settings(
        max_examples=settings.default.max_examples // 2,
        phases=[Phase.generate],
        database=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(expression: str) -> None:
        found.append(expression)

    collect()
    return found


def masked(text: str) -> str:
    return re.sub(r"0x[0-9a-f]{6,}", "0x…", text)


@pytest.mark.filterwarnings("ignore")
def test_values_of_every_known_type(record: Record) -> None:
    expressions = [expression for strategy in KNOWN.values() for expression in drawn(strategy)]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(PRELUDE, namespace)
    expected = [show(eval(expression, namespace)) for expression in expressions]
    recording = record(
        f"{PRELUDE}\nfor expression in {expressions!a}:\n    taken(eval(expression))\n",
        "--no-stdlib",
        PYTHONWARNINGS="ignore",
    )
    found = [event.value for event in recording.of("call", func="taken")]
    differing = [
        each
        for each in zip(expressions, map(masked, expected), map(masked, found), strict=True)
        if each[1] != each[2]
    ]
    assert not differing, "\n".join(map(str, differing))
