"""Replacements of one comparison of a filter that finds nothing: likely meanings of it.

corrections.py tries them. Names come from names.py: names that differ in a few letters, that
contain the written one, or that belong to another field. Numbers and times become milder step by
step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..filter.tree import FIELDS, Compare, Constant, Literals, Node, replace
from ..filter.units import RunTimes, duration
from .completion import pattern_of
from .names import Names
from .vocabulary import Vocabulary, distance

_NAMES_MAX = 5
# Distances from the written comparison; a letter that differs counts 1.
_CASE, _FORM, _TAIL, _FIELD, _PATTERN, _MILDER, _LIKE = 0.2, 0.5, 1.1, 1.3, 1.5, 2.0, 3.0
_UNITS = (("h", 3600 * 10**9), ("m", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1))
_RELAXED = {">": -1, ">=": -1, "<": 1, "<=": 1}


class Replacement(NamedTuple):
    """`node` None: the part is left out. `ladder`: each step of a ladder finds everything that the
    step before finds."""

    cost: float
    node: Node | None
    ladder: object = None


def replacements(leaf: Compare, names: Names, runs: Sequence[RunTimes]) -> list[Replacement]:
    """The replacements of a comparison, the nearest first."""
    made = {
        "text": _texts,
        "kind": _texts,
        "value": _values,
        "number": _numbers,
        "duration": _durations,
        "time": _times,
        "truth": _truths,
    }[FIELDS[leaf.field].sort](leaf, names, runs)
    return sorted((one for one in made if one.node != leaf), key=lambda one: one.cost)


def can_match(leaf: Compare, names: Names) -> bool | None:
    """Whether the comparison can find something; None: the names do not tell."""
    if leaf.operator not in ("==", "in") or leaf.field in ("arg", "value"):
        return None  # names of logged values are unknown
    vocabulary = names.by_field().get(leaf.field)
    if vocabulary is None:
        return None
    return any(vocabulary.fits(str(constant.value)) for constant in leaf.constants)


def _with(leaf: Compare, old: Constant, new: Literals) -> Compare:
    """The comparison with the constant `new` in the place of `old`."""
    return replace(leaf, constants=tuple(Constant(new) if c is old else c for c in leaf.constants))


# ---- texts --------------------------------------------------------------------------------


def _texts(leaf: Compare, names: Names, runs: object) -> Iterator[Replacement]:
    vocabulary = names.by_field().get(leaf.field)
    if vocabulary is None or leaf.operator not in ("==", "in"):
        return
    for constant in leaf.constants:
        for cost, pattern, ladder in _patterns(leaf.field, str(constant.value), vocabulary):
            yield Replacement(cost, _with(leaf, constant, pattern), ladder and (id(constant), ladder))
        yield from _other_fields(leaf, constant, names)


def _patterns(field: str, written: str, vocabulary: Vocabulary) -> Iterator[tuple[float, str, str]]:
    """Patterns that match names: cost, pattern, ladder."""
    bare = _bare(written)
    if not bare:
        return
    near = vocabulary.nearest(bare, _NAMES_MAX)
    for changes, name in near:
        yield changes or _CASE, pattern_of(name), ""
    for tail in _tails(bare):  # app.Order.pay as a function
        if field == "func" and tail in vocabulary:
            yield _TAIL, pattern_of(tail), ""
    fitting = [
        (cost, pattern)
        for cost, pattern in (
            (_TAIL, f"%.{pattern_of(bare)}"),
            (_TAIL, f"%/{pattern_of(bare)}"),
            (_PATTERN, f"{pattern_of(bare)}%"),
            (_PATTERN + 0.1, f"%{pattern_of(bare)}%"),
        )
        if vocabulary.fits(pattern)
    ]
    for cost, pattern in fitting:
        yield cost, pattern, "pattern"
    if not near and not fitting:
        for name in vocabulary.complete(bare, 2):
            yield _LIKE, pattern_of(name), ""


def _bare(pattern: str) -> str:
    """The pattern without wildcards at its ends, and without escapes."""
    return re.sub(r"\\(.)", r"\1", pattern.strip("%"), flags=re.DOTALL)


def _tails(name: str) -> Iterator[str]:
    while "." in name:
        name = name.partition(".")[2]
        yield name


def _other_fields(leaf: Compare, constant: Constant, names: Names) -> Iterator[Replacement]:
    written = str(constant.value)
    for field, vocabulary in names.by_field().items():
        same_kind = FIELDS[field].argument == FIELDS[leaf.field].argument
        if same_kind and field != leaf.field and len(leaf.constants) == 1 and _bare(written) in vocabulary:
            yield Replacement(_FIELD, replace(leaf, field=field, constants=(Constant(written),)))


# ---- values -------------------------------------------------------------------------------


def _values(leaf: Compare, names: Names, runs: object) -> Iterator[Replacement]:
    if leaf.operator not in ("==", "in"):
        return
    for constant in leaf.constants:
        for cost, new in _other_values(constant.value):
            ladder = (id(constant), "pattern") if cost in (_PATTERN, _PATTERN + 0.1) else None
            yield Replacement(cost, _with(leaf, constant, new), ladder)
        yield from _other_fields(leaf, constant, names)


def _other_values(value: Literals) -> Iterator[tuple[float, Literals]]:
    if not isinstance(value, str):
        yield _FORM, repr(value)  # as a text it also matches a string
    if isinstance(value, bool):
        yield _FORM, int(value)
    elif isinstance(value, int):
        yield _FORM, f"{value}.0"
        if value in (0, 1):
            yield _FORM, bool(value)
    elif isinstance(value, float):
        if value.is_integer():
            yield _FORM, int(value)
        yield _PATTERN, f"{value}%"
    elif isinstance(value, str):
        bare = value.strip()
        if len(bare) > 2 and bare[0] in "'\"" and bare[-1] == bare[0]:
            bare = bare[1:-1]  # quoted twice
        yield _FORM, bare
        if re.fullmatch(r"-?\d+", bare):
            yield _FORM, f"{bare}.0"
        if re.fullmatch(r"-?\d+\.0*", bare):
            yield _FORM, bare.partition(".")[0]
        if not bare.isascii():  # LIKE ignores case in ASCII only
            for step, other in enumerate((bare.lower(), bare.capitalize(), bare.title(), bare.upper())):
                yield _CASE + step / 100, other
        bare = bare.strip("%")
        if bare:
            yield _PATTERN, f"{bare}%"
            yield _PATTERN + 0.1, f"%{bare}%"
        words = re.findall(r"\w+", bare)
        if len(words) > 1:
            yield _LIKE, f"%{max(words, key=len)}%"


# ---- numbers and times --------------------------------------------------------------------


def _truths(leaf: Compare, names: Names, runs: object) -> Iterator[Replacement]:
    for constant in leaf.constants:
        yield Replacement(_LIKE, _with(leaf, constant, not constant.value))


def _numbers(leaf: Compare, names: Names, runs: object) -> Iterator[Replacement]:
    if leaf.operator in _RELAXED and isinstance(leaf.constants[0].value, int):
        steps = _steps(leaf.constants[0].value, _RELAXED[leaf.operator])
        yield from _ladder(leaf, steps)
    known = {"tid": names.tids, "pid": names.pids, "run": names.runs}.get(leaf.field)
    if leaf.operator == "==" and isinstance(written := leaf.constants[0].value, int):
        if known is None:
            for operator in (">=", "<="):
                yield Replacement(_MILDER, replace(leaf, operator=operator))
        else:
            ranked = sorted((distance(str(written), str(number), 1), number) for number in known)
            for changes, number in ranked[:_NAMES_MAX]:
                cost = float(changes) if changes <= 1 else _LIKE
                yield Replacement(cost, _with(leaf, leaf.constants[0], number))


def _durations(leaf: Compare, names: Names, runs: object) -> Iterator[Replacement]:
    written = leaf.constants[0].value if len(leaf.constants) == 1 else None
    if leaf.operator in _RELAXED and isinstance(written, int | str):
        ns = duration(written) if isinstance(written, str) else written
        yield from _ladder(leaf, map(_length, _steps(ns, _RELAXED[leaf.operator])))
    elif leaf.operator == "==":
        for operator in (">=", "<="):
            yield Replacement(_MILDER, replace(leaf, operator=operator))


def _ladder(leaf: Compare, constants: Iterator[Literals]) -> Iterator[Replacement]:
    for step, constant in enumerate(constants):
        yield Replacement(_MILDER + step / 1000, _with(leaf, leaf.constants[0], constant), id(leaf))


def _steps(number: int, direction: int) -> Iterator[int]:
    """Round numbers, beginning with the next one below (-1) or above (1): 1, 2, 5, 10 …"""
    rounds = [m * 10**e for e in range(19) for m in (1, 2, 5)]
    if direction > 0:
        yield from [n for n in rounds if n > number]
    elif number > 0:
        yield from [n for n in reversed(rounds) if n < number]
        yield 0


def _length(ns: int) -> str:
    """A length of time in the largest unit that fits: '500ms'."""
    return next((f"{ns // size}{unit}" for unit, size in _UNITS if ns >= size and ns % size == 0), "0ns")


def _times(leaf: Compare, names: Names, runs: Sequence[RunTimes]) -> Iterator[Replacement]:
    written = leaf.constants[0].value if len(leaf.constants) == 1 else None
    if isinstance(written, str) and (clock := re.search(r"[T\s](\d\d?:[\d:.,]+)", written.strip())):
        yield Replacement(_TAIL, _with(leaf, leaf.constants[0], clock[1]))  # the run's day
    if leaf.operator == "==":
        for operator in (">=", "<="):
            yield Replacement(_MILDER, replace(leaf, operator=operator))
    longest = max((_lasted(run) for run in runs), default=0)
    if leaf.operator in _RELAXED and longest:
        parts = (0.9, 0.5, 0.1, 0.0) if _RELAXED[leaf.operator] < 0 else (0.1, 0.5, 0.9, 1.1)
        yield from _ladder(leaf, (f"+{_length(_rounded(int(longest * part)))}" for part in parts))


def _lasted(run: RunTimes) -> int:
    from time import time_ns

    return max((time_ns() if run.finished is None else run.finished) - run.started, 0)


def _rounded(ns: int) -> int:
    """The number, rounded to two digits."""
    size = 10 ** max(len(str(ns)) - 2, 0)
    return int(ns // size * size)
