"""The prefilter of a regular expression: a predicate for `event MATCH` that an event meets if its
line can match. The scan tests it before any line is made. The module also tells whether a match may
take long. search.py calls it.

A literal piece of the expression is cut into runs of letters, digits and _. The fields that a line
shows have other characters between them, so each run stands within one field, or is written by the
line itself: digits, units of time, a few words. The predicate requires the runs that must be in a
field; for text beyond ASCII, it requires a field with any such text. It may let through more events
than match, never fewer; forms that are not understood here require nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple

# Forms that the modules regex and re may understand differently: classes with names, sets in sets,
# fuzzy matching, characters by name.
_DOUBTFUL = re.compile(r"\[\^?\[|--|&&|\|\||~~|\{(?!\d+(,\d*)?\}|,\d+\})|\\[pPNLXRKGhmMQe]")
_DEEPEST = 40  # groups in groups
_LONGEST = 4000  # characters
_MOST_RUNS = 3  # of a literal; more runs hardly rule out more events
_RUN = re.compile(r"[A-Za-z0-9_]+")
# The words that lines.py writes itself. If a run has a neighbour that lines.py does not put there
# (the = of name=value), it is the event's.
_WORDS = ("line", "some", "events", "lost", "running", "cython", "c", "native", "kernel")
_UNITS = re.compile(r"[0-9numsh]*")
_OWN = "µ\u03bc\u039c…"  # also their forms in other cases
_MOST_UNITS = 2  # letters: 12ms, 2m05s
_DIGITS = 8  # no time or duration has so many in a row; a number that has them is as large as this:
_LARGE = 10 ** (_DIGITS - 1)
_BEFORE, _BEHIND = " :.,(+-µ/…[", " :.,)-µ…]"
# An escape, or the rest of one, at the start of a run: \n, \x1b, \u2028.
_ESCAPE = re.compile(r"[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[0-9a-f]{1,8}", re.IGNORECASE)
_IN_ESCAPE = re.compile(r"[nrt]|[xu]?[0-9a-f]{0,8}", re.IGNORECASE)


class All(NamedTuple):
    """All members are needed: pieces of text, and groups."""

    members: tuple[Need, ...]


class One(NamedTuple):
    """One member is needed."""

    members: tuple[Need, ...]


Need = str | All | One
Parsed = list[tuple[Any, Any]]  # as the parser of re has it
_NOTHING = All(())


class Shown(NamedTuple):
    """The columns that lines have besides the usual ones."""

    files: bool = False  # names of files
    ids: bool = False  # of events


SHOWN = Shown()


def parse(expression: str, ignore_case: bool) -> Parsed | None:
    """The parts of the expression; None: they are not quite certain."""
    if len(expression) > _LONGEST or _DOUBTFUL.search(expression):
        return None
    try:
        parsed = import_module("re._parser").parse(expression, re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError):
        return None  # regex knows more forms than re
    return list(parsed)


def predicate(parsed: Parsed, shown: Shown) -> str | None:
    """A condition that an event meets if its line matches; None: there is none."""
    return _condition(_needs(parsed, 0), shown)


def choices(parsed: Parsed) -> int | None:
    """The number of places where a match has a choice. A try takes at most (length of the line) **
    (this + 1) steps. None: it may take many more."""
    count = 0
    for op, argument in parsed:
        match str(op):
            case "SUBPATTERN":
                inner = choices(argument[3])
            case "ATOMIC_GROUP":
                inner = choices(argument)
            case "ASSERT" | "ASSERT_NOT":
                inner = choices(argument[1])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                inner = 1 if choices(argument[2]) == 0 else None
            case "BRANCH":
                each = [choices(branch) for branch in argument[1]]
                inner = None if None in each else sum(filter(None, each), 1)
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN" | "AT":
                inner = 0
            case _:
                inner = None
        if inner is None:
            return None
        count += inner
    return count


# ---- what the expression needs ------------------------------------------------------------------


def _needs(items: Parsed, depth: int) -> Need:
    """The text that each line contains which a parsed expression matches."""
    if depth > _DEEPEST:
        return _NOTHING
    found: list[Need] = []
    for literal, group in groupby(items, lambda item: str(item[0]) == "LITERAL"):
        if literal:
            found.append("".join(chr(code) for _, code in group))
        else:
            found.extend(_need(str(op), argument, depth + 1) for op, argument in group)
    return All(tuple(found))


def _need(op: str, argument: Any, depth: int) -> Need:
    match op:
        case "SUBPATTERN":
            return _needs(argument[3], depth)
        case "ATOMIC_GROUP":
            return _needs(argument, depth)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if argument[0]:
            return _needs(argument[2], depth)
        case "ASSERT":
            return _needs(argument[1], depth)
        case "BRANCH":
            return One(tuple(_needs(branch, depth) for branch in argument[1]))
        case _:
            return _NOTHING


# ---- as a predicate -----------------------------------------------------------------------------


def _condition(need: Need, shown: Shown) -> str | None:
    if isinstance(need, One):
        each = [_condition(member, shown) for member in need.members]
        known = [condition for condition in each if condition]
        return f"(or {' '.join(known)})" if len(known) == len(each) else None
    if isinstance(need, str):
        longest = sorted(_runs(need, shown), key=len, reverse=True)[:_MOST_RUNS]
        conditions = [_holds(run, shown) for run in longest]
        if any(not character.isascii() and character not in _OWN for character in need):
            conditions.append(_foreign(shown))
    else:
        conditions = [c for c in (_condition(member, shown) for member in need.members) if c]
    conditions = list(dict.fromkeys(conditions))
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return f"(and {' '.join(conditions)})"


def _runs(literal: str, shown: Shown) -> Iterator[str]:
    """The runs that are the event's."""
    for found in _RUN.finditer(literal):
        start, end = found.span()
        before, behind = literal[start - 1 : start] if start else "", literal[end : end + 1]
        named = (before and before not in _BEFORE) or (behind and behind not in _BEHIND)
        if named or not _is_own(found[0].lower(), shown):
            yield found[0]


def _is_own(run: str, shown: Shown) -> bool:
    """Whether lines.py itself may write the run, other than in large numbers."""
    if run.isdigit() and len(run) >= _DIGITS:
        return shown.ids
    letters = sum(not character.isdigit() for character in run)
    return any(run in word for word in _WORDS) or (letters <= _MOST_UNITS and bool(_UNITS.fullmatch(run)))


def _fields(shown: Shown) -> list[str]:
    return ["thread", "task", "module", "func", *(["file"] if shown.files else [])]


def _foreign(shown: Shown) -> str:
    """The condition that some text is not only ASCII."""
    each = " ".join(f"(not (plain {field}))" for field in _fields(shown))
    return f"(or {each} (any (or (not (plain name)) (not (plain value)))))"


def _holds(run: str, shown: Shown) -> str:
    each = " ".join(_contains(field, run) for field in _fields(shown))
    if run.isdigit():
        each += "".join(f" (>= {field} {_LARGE})" for field in ("pid", "tid", "line", "depth"))
    return f"(or {each} (any (or {_contains('name', run)} {_contains('value', run)})))"


def _contains(field: str, run: str) -> str:
    """The condition that a field has a run, as it is or in an escape."""
    plain = _like(field, run)
    if _IN_ESCAPE.fullmatch(run):
        return f"{plain} (not (plain {field}))"
    escape = _ESCAPE.match(run)
    if escape:
        return f"(and {_like(field, run[escape.end() :])} (or {plain} (not (plain {field}))))"
    return plain


def _like(field: str, run: str) -> str:
    return f'(like {field} "%{run.replace("_", chr(92) * 2 + "_")}%")'
