"""What expressions compute, on recorded values (readings): bounded, and with a third truth value.

Nothing here raises: a mistake such as 1 / 0 gives an Unknown with its reason.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

from .patterns import Pattern
from .readings import Cut, Other, Part, Partial, Unknown, is_plain, read, type_of
from .state import Item

BITS_MAX = 14_000  # of a whole number: Python shows up to 4300 digits
LENGTH_MAX = 10_000  # of what + and * make

_MISTAKES = (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError)
SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


class TypeName(str):
    """The answer to type(x)."""


def shown(value: Any) -> str:
    """A value as repr shows it."""
    if isinstance(value, TypeName):
        return str(value)
    if isinstance(value, (Other, Partial)):
        return value.text
    if isinstance(value, Cut):
        return f"{value.prefix!r}..."
    try:
        return repr(value)
    except _MISTAKES:
        return f"<{type(value).__name__}>"


# ---- truth ----


def truth(value: Any) -> bool | Unknown:
    if isinstance(value, (bool, Unknown)):
        return value
    if isinstance(value, Cut):
        return True
    if isinstance(value, Partial):
        return True if value.parts else Unknown(f"whether {value.text} is empty was not recorded")
    if isinstance(value, Other):
        return Unknown(f"whether {value.text} is true was not recorded: compare it, as with `is not None`")
    return bool(value)


def negated(value: Any) -> bool | Unknown:
    found = truth(value)
    return found if isinstance(found, Unknown) else not found


def both(values: Iterable[Any]) -> Any:
    """`and`: the first value that is not true, else the last one."""
    return _joined(values, False)


def either(values: Iterable[Any]) -> Any:
    """`or`: the first value that is true, else the last one."""
    return _joined(values, True)


def _joined(values: Iterable[Any], decides: bool) -> Any:
    unknown: Unknown | None = None
    value: Any = not decides
    for value in values:
        found = truth(value)
        if isinstance(found, Unknown):
            unknown = unknown or found
        elif found == decides:
            return decides if unknown else value
    return unknown or value


# ---- comparing ----


def equal(one: Any, other: Any) -> bool | Unknown:
    for each in (one, other):
        if isinstance(each, Unknown):
            return each
    if is_plain(one) and is_plain(other):
        if isinstance(one, TypeName) or isinstance(other, TypeName):
            return is_type(one, other) if isinstance(one, TypeName) else is_type(other, one)
        try:
            return bool(one == other)
        except _MISTAKES:
            return Unknown("these values cannot be compared")
    if is_plain(one):
        one, other = other, one
    if other is None:
        return False
    if isinstance(one, Cut):
        return _equal_cut(one, other)
    if isinstance(one, Other):
        return _equal_other(one, other)
    assert isinstance(one, Partial)
    if one.type and type_of(other) and is_plain(other) and one.type not in _alike(type_of(other)):
        return False
    return Unknown(f"not all of {one.text} was recorded")


def _alike(type: str) -> tuple[str, ...]:
    return ("set", "frozenset") if type in ("set", "frozenset") else (type,)


def _equal_cut(one: Cut, other: Any) -> bool | Unknown:
    unknown = Unknown(f"the end of {shown(one)} was not recorded")
    if isinstance(other, Cut):
        if type_of(one) != type_of(other):
            return False
        first, second = one.prefix, other.prefix
        length = min(len(first), len(second))
        return unknown if first[:length] == second[:length] else False
    if isinstance(other, (Other, Partial)):
        return Unknown(f"{shown(one)} and {shown(other)} cannot be compared")
    if isinstance(one.prefix, str) and isinstance(other, str):
        return unknown if len(other) > len(one.prefix) and other.startswith(one.prefix) else False
    if isinstance(one.prefix, bytes) and isinstance(other, bytes):
        return unknown if len(other) > len(one.prefix) and other.startswith(one.prefix) else False
    return Unknown("these values cannot be compared") if isinstance(other, bytearray) else False


def _equal_other(one: Other, other: Any) -> bool | Unknown:
    if isinstance(other, str):  # as in filters: the object's text
        return one.text == other
    if isinstance(other, Other) and " at 0x" in one.text and one.text == other.text:
        return True
    return Unknown(f"whether {one.text} equals {shown(other)} was not recorded")


def is_type(value: Any, name: Any) -> bool | Unknown:
    """Whether the answer to type(x) is this type, by its whole name or the last part of it."""
    if isinstance(value, Unknown):
        return value
    if not isinstance(name, str):
        return False
    return bool(str(value) == name or str(value).endswith(f".{name}"))


def is_like(pattern: Pattern, value: Any) -> bool | Unknown:
    """Whether a value is shown as by a pattern, or its content is. value: an Item, or computed."""
    if isinstance(value, Unknown):
        return value
    text, content = (value.value, read(value)) if isinstance(value, Item) else (shown(value), value)
    if pattern.matches(text) or (isinstance(content, str) and pattern.matches(content)):
        return True
    if not isinstance(content, Cut):
        return False
    answers = [pattern.begins(text.removesuffix("...")[:-1])]
    if isinstance(content.prefix, str):
        answers.append(pattern.begins(content.prefix))
    if any(answers):
        return True
    return Unknown(f"the end of {text} was not recorded") if None in answers else False


def ordered(sign: str, one: Any, other: Any) -> bool | Unknown:
    for each in (one, other):
        if isinstance(each, Unknown):
            return each
    if isinstance(one, Cut) or isinstance(other, Cut):
        return _ordered_cut(sign, one, other)
    for each in (one, other):
        if not is_plain(each):
            return Unknown(f"not enough of {shown(each)} was recorded to compare it")
    return _compared(sign, one, other)


def _ordered_cut(sign: str, one: Any, other: Any) -> bool | Unknown:
    """What the beginnings of two texts decide."""
    first, second = (each.prefix if isinstance(each, Cut) else each for each in (one, other))
    if type(first) is not type(second):
        return Unknown(f"{shown(one)} and {shown(other)} cannot be compared")
    length = min(len(first), len(second))
    if first[:length] != second[:length]:
        return _compared(sign, first[:length], second[:length])
    if not isinstance(other, Cut) and len(second) <= len(first):
        return sign in (">", ">=")
    if not isinstance(one, Cut) and len(first) <= len(second):
        return sign in ("<", "<=")
    return Unknown(f"the end of {shown(one if isinstance(one, Cut) else other)} was not recorded")


def same(value: Any, constant: Any) -> bool | Unknown:
    """value is None, True, False or ..."""
    return value if isinstance(value, Unknown) else value is constant


def member(one: Any, whole: Any) -> bool | Unknown:
    for each in (one, whole):
        if isinstance(each, Unknown):
            return each
    if is_plain(one) and is_plain(whole):
        try:
            return bool(one in whole)
        except _MISTAKES as error:
            return Unknown(_said(error))
    if isinstance(whole, Cut):
        prefix: Any = whole.prefix
        if type(one) is type(prefix) and one in prefix:
            return True
        return Unknown(f"the end of {shown(whole)} was not recorded")
    if isinstance(whole, Partial):
        parts = [part.key if part.name and whole.type == "dict" else part.value for part in whole.parts]
        answer = either(equal(one, part) for part in parts) if parts else False
        if answer is False and whole.cut:
            return Unknown(f"items beyond the {ordinal(len(parts))} were not recorded")
        return answer if isinstance(answer, (bool, Unknown)) else Unknown("these cannot be compared")
    if is_plain(whole) and isinstance(whole, (list, tuple, set, frozenset, dict)):
        answer = either(equal(one, part) for part in whole) if whole else False
        return answer if isinstance(answer, (bool, Unknown)) else Unknown("these cannot be compared")
    return Unknown(f"the items of {shown(whole)} were not recorded")


# ---- computing ----


def signed(sign: str, value: Any) -> Any:
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, (int, float, complex)):
        return Unknown(f"{shown(value)} is no number")
    return -value if sign == "-" else +value


def computed(sign: str, one: Any, other: Any) -> Any:
    """one + other, and so on."""
    for each in (one, other):
        if isinstance(each, Unknown):
            return each
        if not is_plain(each):
            return Unknown(f"not enough of {shown(each)} was recorded to compute with it")
    numbers = isinstance(one, (int, float, complex)) and isinstance(other, (int, float, complex))
    if not numbers:
        reason = _no_numbers(sign, one, other)
        if reason:
            return Unknown(reason)
    elif isinstance(one, int) and isinstance(other, int) and _is_too_large(sign, one, other):
        return Unknown(f"{sign} makes a number here that is too large")
    return _done(sign, one, other)


def _is_too_large(sign: str, one: int, other: int) -> bool:
    if sign == "**":
        return other > 0 and abs(one) > 1 and one.bit_length() * other > BITS_MAX
    return sign == "*" and one.bit_length() + other.bit_length() > BITS_MAX


def _no_numbers(sign: str, one: Any, other: Any) -> str:
    """Why texts and containers cannot be computed with; "": they can be."""
    sized = (str, bytes, list, tuple)
    if sign == "+" and isinstance(one, sized) and isinstance(other, sized):
        return "" if len(one) + len(other) <= LENGTH_MAX else "+ makes a text here that is too long"
    if sign == "*":
        for first, second in ((one, other), (other, one)):
            if isinstance(first, (str, bytes)) and isinstance(second, int):
                return "" if len(first) * second <= LENGTH_MAX else "* makes a text here that is too long"
    if sign == "-" and isinstance(one, (set, frozenset)) and isinstance(other, (set, frozenset)):
        return ""
    return f"{sign} cannot be computed of {type_of(one)} and {type_of(other)}"


def _done(sign: str, one: Any, other: Any) -> Any:
    try:
        return _FUNCTIONS[sign](one, other)
    except _MISTAKES as error:
        return Unknown(_said(error))


def _compared(sign: str, one: Any, other: Any) -> bool | Unknown:
    answer = _done(sign, one, other)
    return answer if isinstance(answer, Unknown) else bool(answer)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def length(value: Any, name: str) -> Any:
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Cut):
        return Unknown(f"the end of {name} was not recorded")
    if isinstance(value, Partial):
        if value.cut:
            return Unknown(f"items beyond the {ordinal(len(value.parts))} of {name} were not recorded")
        return len(value.parts)
    if isinstance(value, (str, bytes, bytearray, list, tuple, set, frozenset, dict)):
        return len(value)
    if is_plain(value):
        return Unknown(f"{name} has no length")
    return Unknown(f"the length of {name} was not recorded")


def subscript(whole: Any, key: Any, name: str) -> Any:
    """whole[key]"""
    for each in (whole, key):
        if isinstance(each, Unknown):
            return each
    if not is_plain(key):
        return Unknown(f"not enough of {shown(key)} was recorded")
    if isinstance(whole, Cut):
        if isinstance(key, int) and 0 <= key < len(whole.prefix):
            return whole.prefix[key]
        return Unknown(f"the end of {name} was not recorded")
    if isinstance(whole, Partial):
        return _part_of(whole, key, name)
    if isinstance(whole, (str, bytes, bytearray, list, tuple, dict)):
        try:
            return whole[key]
        except _MISTAKES:
            return Unknown(f"{name} has no [{shown(key)}]")
    if is_plain(whole):
        return Unknown(f"{name} has no items")
    return Unknown(f"the items of {name} were not recorded")


def _part_of(whole: Partial, key: Any, name: str) -> Any:
    count = len(whole.parts)
    if whole.type in ("list", "tuple") and isinstance(key, int):
        if 0 <= key < count or (not whole.cut and -count <= key < 0):
            return whole.parts[key].value
        if whole.cut:
            return Unknown(f"items beyond the {ordinal(count)} of {name} were not recorded")
        return Unknown(f"{name} has no item {key}: it has {count}")
    for part in whole.parts:
        if whole.type == "dict" and equal(part.key, key) is True:
            return part.value
    return Unknown(f"[{shown(key)}] of {name} was not recorded")


def gathered(kind: str, values: list[Any]) -> Any:
    """A tuple or list that an expression makes."""
    for value in values:
        if isinstance(value, Unknown):
            return value
    if all(map(is_plain, values)):
        return values if kind == "list" else tuple(values)
    parts = tuple(Part(f"[{i}]", shown(value), value) for i, value in enumerate(values))
    text = ", ".join(part.text for part in parts)
    return Partial(kind, f"[{text}]" if kind == "list" else f"({text})", parts, False)


def type_name(value: Any) -> Any:
    """type(x), of an Item or of what was computed."""
    if isinstance(value, Unknown):
        return value
    name = value.type if isinstance(value, Item) else type_of(value)
    return TypeName(name) if name else Unknown("the type was not recorded")


def ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
