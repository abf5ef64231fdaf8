"""What pytrace ought to show of objects of known types: their repr, bounded, and where it has a
form of its own, that one. In plain Python, by what an object's class tells of it."""

import array
import enum
import functools
import gc
import ipaddress
import re
import struct
import sys
import types
import weakref
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

MAX_TEXT = 200
MAX_ITEMS = 10
MAX_DEPTH = 3
ODICT_VIEWS = (type(OrderedDict().keys()), type(OrderedDict().values()), type(OrderedDict().items()))
VIEWS = (type({}.keys()), type({}.values()), type({}.items()), *ODICT_VIEWS)
INTEGERS = {"b": "int", "h": "int", "i": "int", "l": "int", "q": "int", "n": "int"}
INTEGERS |= {letter.upper(): f"u{name}" for letter, name in INTEGERS.items()}


def show(value: Any, depth: int = 1) -> str:
    """The text of a value; of others than those below it is their repr."""
    kind = type(value)
    if isinstance(value, type):
        return f"<class {value.__qualname__!r}>"
    if isinstance(value, enum.Enum):
        return repr(value)
    for base, shown in FORMS:
        if kind is base or (base in SUBCLASSES and isinstance(value, base)):
            return str(shown(value, depth))
    if isinstance(value, tuple):  # a named one
        items = [f"{name}={show(item, depth + 1)}" for name, item in zip(value._fields, value, strict=True)]
        return f"{kind.__name__}({bounded(items, depth)})"
    return repr(value)


def bounded(items: Iterable[str], depth: int) -> str:
    """Joined, as many as there may be."""
    found = list(items)
    most = MAX_ITEMS if depth <= MAX_DEPTH else 0
    return ", ".join([*found[:most], *["..."] * (len(found) > most)])


def show_text(value: Any, depth: int = 1) -> str:
    return repr(value[:MAX_TEXT]) + "..." * (len(value) > MAX_TEXT)


def show_items(value: Any, depth: int) -> str:
    return bounded((show(item, depth + 1) for item in value), depth)


def show_pairs(value: Any, depth: int) -> str:
    return bounded((f"{show(key, depth + 1)}: {show(item, depth + 1)}" for key, item in value.items()), depth)


def show_tuple(value: Any, depth: int) -> str:
    return f"({show_items(value, depth)}{',' * (len(value) == 1 and depth <= MAX_DEPTH)})"


def show_bytearray(value: Any, depth: int) -> str:
    return f"bytearray({show_text(bytes(value))})"


def show_deque(value: Any, depth: int) -> str:
    most = "" if value.maxlen is None else f", maxlen={value.maxlen}"
    return f"deque([{show_items(value, depth)}]{most})"


def show_ordered(value: Any, depth: int) -> str:
    return f"OrderedDict({{{show_pairs(value, depth)}}})" if value else "OrderedDict()"


def show_counter(value: Any, depth: int) -> str:
    try:
        value = dict(value.most_common())
    except TypeError:  # counts that cannot be compared
        value = dict(value)
    return f"Counter({{{show_pairs(value, depth)}}})" if value else "Counter()"


def show_view(value: Any, depth: int) -> str:
    found = [
        f"({show(item[0], depth + 1)}, {show(item[1], depth + 1)})"
        if "items" in type(value).__name__
        else show(item, depth + 1)
        for item in value
    ]
    return f"{type(value).__name__}([{bounded(found, depth)}])"


def show_proxy(value: Any, depth: int) -> str:
    [inner] = gc.get_referents(value)
    return f"mappingproxy({show(inner, depth if type(inner) is dict else depth + 1)})"


def named(items: dict[str, Any], depth: int) -> list[str]:
    """Names have no quotes, but nothing that a terminal obeys."""
    return [
        f"{''.join(c if c.isprintable() else ascii(c)[1:-1] for c in name)}={show(item, depth + 1)}"
        for name, item in items.items()
    ]


def show_namespace(value: Any, depth: int) -> str:
    return f"namespace({bounded(named(vars(value), depth), depth)})"


def show_partial(value: Any, depth: int) -> str:
    found = [show(item, depth + 1) for item in value.args]
    found += named(value.keywords, depth)
    func = f"<built-in function {value.func.__name__}>" if value.func in (len, max) else show(value.func)
    return f"functools.partial({', '.join([func, *([bounded(found, depth)] if found else [])])})"


def show_match(value: Any, depth: int) -> str:
    return f"<re.Match object; span={value.span()}, match={show(value.group())}>"


def show_decimal(value: Any, depth: int) -> str:
    """Of very many digits the first ones, in whole words of 19, counted from the last digit."""
    sign, digits, exponent = value.as_tuple()
    most = 11 * 19 + (len(digits) % 19 or 19)
    if not value.is_finite() or len(digits) <= 12 * 19:
        return repr(value)
    text = "".join(map(str, digits[:most]))
    return f"Decimal('{'-' * sign}{text[0]}.{text[1:]}...E{len(digits) + exponent - 1:+}')"


def show_array(value: Any, depth: int) -> str:
    if value.typecode in "uw":
        text = value.tounicode()
        if not text:
            return f"array({value.typecode!r})"
        return f"array({value.typecode!r}, {text[:100]!r}{'...' * (len(text) > 100)})"
    items = f", [{show_items(value, depth)}]" if value else ""
    return f"array({value.typecode!r}{items})"


def short(number: float) -> float:
    """The shortest number with the same 32 bits."""
    for digits in range(6, 9):
        text = float(f"{number:.{digits}g}")
        if abs(text) < 3.5e38 and struct.pack("f", text) == struct.pack("f", number):
            return text
    return number


def flat(items: Any) -> list[Any]:
    return [item for part in items for item in flat(part)] if isinstance(items, list) else [items]


def show_memory(value: Any, depth: int) -> str:
    try:
        letter = value.format.lstrip("@")
    except ValueError:  # released
        return f"<memoryview at {id(value):#x}>"
    items = flat(value.tolist())
    if letter == "f":
        items = [short(item) for item in items]
    text = bounded(map(repr, items), depth)
    kinds = {"c": "'c'", "?": "bool"} | dict.fromkeys("efd", f"float{value.itemsize * 8}")
    kinds |= {each: f"{name}{value.itemsize * 8}" for each, name in INTEGERS.items()}
    if not value.shape:
        return f"memoryview({text})"
    return f"memoryview([{text}], dtype={kinds[letter]}, shape={value.shape})"


def show_reference(value: Any, depth: int) -> str:
    to = value()
    where = "dead" if to is None else f"to {type(to).__module__ + '.' + type(to).__qualname__!r} at 0x1234567"
    return f"<weakref at {id(value):#x}; {where}>"


def show_address(value: Any, depth: int) -> str:
    """IPv4 within IPv6 has been shown as such since 3.13."""
    text = repr(value)
    address = value.network_address if isinstance(value, ipaddress.IPv6Network) else value
    if sys.version_info >= (3, 13) or int(address) >> 32 != 0xFFFF:
        return text
    quad = ".".join(map(str, (int(address) & 0xFFFFFFFF).to_bytes(4, "big")))
    return re.sub(r"::ffff:[0-9a-f:]+", f"::ffff:{quad}", text)


FORMS: list[tuple[type, Any]] = [
    *[(kind, show_text) for kind in (str, bytes)],
    (bytearray, show_bytearray),
    (list, lambda value, depth: f"[{show_items(value, depth)}]"),
    (tuple, show_tuple),
    (dict, lambda value, depth: f"{{{show_pairs(value, depth)}}}"),
    (deque, show_deque),
    (OrderedDict, show_ordered),
    (Counter, show_counter),
    (
        defaultdict,
        lambda value, depth: f"defaultdict({show(value.default_factory)}, {{{show_pairs(value, depth)}}})",
    ),
    (ChainMap, lambda value, depth: f"ChainMap({show_items(value.maps, depth)})"),
    *[(kind, show_view) for kind in VIEWS],
    (types.MappingProxyType, show_proxy),
    (types.SimpleNamespace, show_namespace),
    (slice, lambda value, depth: f"slice({show_items([value.start, value.stop, value.step], depth)})"),
    (functools.partial, show_partial),
    (re.Match, show_match),
    (Decimal, show_decimal),
    (array.array, show_array),
    (memoryview, show_memory),
    (weakref.ref, show_reference),
    (ipaddress.IPv6Address, show_address),
    (ipaddress.IPv6Network, show_address),
]
SUBCLASSES = (ipaddress.IPv6Address,)
