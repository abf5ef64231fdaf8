"""A filter's tree as SQL with parameters.

Comparisons of columns that hold for the whole filter become constraints (`time >= ?`), which choose
the segments to read. The rest is one `event MATCH ?`: a predicate in its text form
(csrc/query/predicate.h), such as

    (and (like func "pay%") (any (and (like name "user") (like either "%bob%"))))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, groupby
from typing import TypeAlias

from ..query import Query
from .tree import (
    FIELDS,
    KINDS,
    And,
    Compare,
    Filter,
    FilterError,
    Node,
    Not,
    Operator,
    Or,
    flat,
    like,
    replace,
    speaks_of_argument,
)
from .units import RunTimes, duration, moment

Parameter: TypeAlias = int | str

# SQLite tests all constraints of a virtual table after the first 16 itself, which it cannot do for
# MATCH. The constraints beyond this number are part of the predicate, which is as quick.
_CONSTRAINTS_MAX = 8
_LIST_MAX = 500  # parameters of one IN; SQLite's limit for a statement is 32766
_PATTERN_MAX = 1000  # characters of LIKE; SQLite's limit is 50000 bytes
_LACKED = ("duration", "cpu")  # numbers that some events do not have
_INTEGERS = range(-(2**63), 2**63)  # SQL's; no column of an event has the first or the last
_ENTANGLED_MAX = 100  # each `not` in alternatives about an argument doubles the predicate
_DEPTH_MAX = 200  # PREDICATE_DEPTH_MAX in csrc/query/predicate.h
_TRUE, _FALSE = "(and)", "(or)"
_PARENTHESES = r'"(?:\\.|[^"\\])*"|[()]'


def compile(tree: Filter | Node, runs: Sequence[RunTimes]) -> Query:
    """SQL for a filter over these runs, on which times since the start and times of day depend.

    Raises FilterError if the predicate would be too large; never for a tree of `parse`.
    """
    root = tree.root if isinstance(tree, Filter) else tree
    compiler = _Compiler(tree.text if isinstance(tree, Filter) else "", runs)
    constraints: list[str] = []
    parameters: list[Parameter] = []
    matched: list[Node] = []
    for node in flat(root):
        constraint = compiler.constraint(node) if len(constraints) < _CONSTRAINTS_MAX else None
        if constraint:
            constraints.append(constraint.where)
            parameters += constraint.parameters
        else:
            matched.append(node)
    if matched:
        constraints.append("event MATCH ?")
        predicate = compiler.predicate(matched[0] if len(matched) == 1 else And(tuple(matched)))
        # without runs `parse` asks; times of several runs will stand two levels deeper
        if _depth(predicate) > (_DEPTH_MAX if runs else _DEPTH_MAX - 2):
            raise FilterError(compiler.text, root.start, root.end, "The filter is nested too deep.")
        parameters.append(predicate)
    return Query(" AND ".join(constraints) or "1", tuple(parameters))


def predicate(tree: Filter, runs: Sequence[RunTimes]) -> str:
    """All of a filter as a predicate, as `hot MATCH` takes it. The same runs as for `compile`."""
    return _Compiler(tree.text, runs).predicate(tree.root)


def explain(query: Query) -> str:
    """The whole statement with its parameters inserted: valid SQL, and safe for a terminal."""
    first, *others = query.where.split("?")
    where = first + "".join(
        _sql_literal(parameter) + text for parameter, text in zip(query.parameters, others, strict=True)
    )
    return f"SELECT * FROM event\nWHERE {where}\nORDER BY time, id"


def _sql_literal(parameter: Parameter) -> str:
    if isinstance(parameter, int):
        return str(parameter)
    pieces = []
    for is_printable, characters in groupby(parameter, str.isprintable):
        if is_printable:
            pieces.append("'" + "".join(characters).replace("'", "''") + "'")
        else:
            pieces.append(f"char({', '.join(str(ord(character)) for character in characters)})")
    return " || ".join(pieces) or "''"


class _Compiler:
    def __init__(self, text: str, runs: Sequence[RunTimes]) -> None:
        self.text, self.runs, self.entangled = text, runs, 0

    # ---- constraints of columns ----

    def constraint(self, node: Node) -> Query | None:
        """A comparison as SQL; None: the node is none, or its SQL would not help the scan."""
        if not isinstance(node, Compare) or not FIELDS[node.field].column:
            return None
        name, operator = node.field, node.operator
        if FIELDS[name].sort == "kind":
            return _among(name, _kinds(node))
        if FIELDS[name].sort == "text":
            pattern = node.constants[0].value if operator == "==" else None
            if isinstance(pattern, str) and "\\" not in pattern and len(pattern) <= _PATTERN_MAX:
                return Query(f"{name} LIKE ?", (pattern,))
            return None
        if FIELDS[name].sort == "truth":
            return _among(name, [*map(int, _truths(node))])
        by_run = self._numbers(node)
        if len(by_run) != 1 or operator in ("!=", "not in"):
            return None
        ((_, numbers),) = by_run
        if operator == "in":
            return _among(name, [number for number in numbers if number in _INTEGERS])
        if numbers[0] not in _INTEGERS:
            return None
        return Query(f"{name} {'=' if operator == '==' else operator} ?", (numbers[0],))

    def _numbers(self, node: Compare) -> list[tuple[RunTimes | None, list[int]]]:
        """The numbers that a field is compared with, in ns for times; several if they depend on the
        run."""
        sort = FIELDS[node.field].sort
        readings = [_reading(constant.value, sort) for constant in node.constants]
        fixed = [reading for reading in readings if isinstance(reading, int)]
        if len(fixed) == len(readings):
            return [(None, fixed)]
        by_run: list[tuple[RunTimes | None, list[int]]] = [
            (run, [reading if isinstance(reading, int) else reading(run) for reading in readings])
            for run in self.runs
        ]
        return [(None, by_run[0][1])] if len(by_run) == 1 else by_run

    # ---- predicates ----

    def predicate(self, node: Node) -> str:
        """The predicate of a node for an event."""
        if isinstance(node, Not):
            return f"(not {self.predicate(node.operand)})"
        if isinstance(node, Compare):
            return self._exists(node) if FIELDS[node.field].argument else self._comparison(node)
        if isinstance(node, And):
            operands, speaks = tuple(flat(node)), speaks_of_argument
        else:  # "an argument meets A, or one meets B" is "one meets A or B"
            operands, speaks = node.operands, _compares_argument
        of_argument = tuple(filter(speaks, operands))
        if len(of_argument) == 1:  # an `or` is cheaper as a whole
            of_argument = ()
        found = [self.predicate(part) for part in operands if not of_argument or not speaks(part)]
        if of_argument:
            found.append(self._exists(_gathered(replace(node, operands=of_argument))))
        return _joined("and" if isinstance(node, And) else "or", found)

    def _exists(self, node: Node) -> str:
        """The predicate that a node holds for an argument, or for the event whatever its arguments.

        Conditions on all arguments in it (a `not` in an `or`) cannot stand inside of `any`. Each is
        true or false for the event; both cases are tested, with the rest of the node. No such part
        is inside a `not` of this node, so a true part can only make the node true.
        """
        part = _independent(node)
        if not part:
            found = f"(any {self._comparison_of_one(node)})"
            alone = _without_argument(node)
            return _joined("or", [found, self._comparison_of_one(alone)]) if alone else found
        self.entangled += 1
        if self.entangled > _ENTANGLED_MAX:
            raise FilterError(
                self.text, part.start, part.end,
                "Too many `not` stand in alternatives about one argument.",
                "take some of them out of their `and` group",
            )  # fmt: skip
        without = self._exists(_put(node, part, Or(())))
        within = self._exists(_put(node, part, And(())))
        return f"(or {without} (and {self.predicate(part)} {within}))"

    def _comparison_of_one(self, node: Node) -> str:
        """The predicate of a node for an event and one of its arguments."""
        if isinstance(node, And):
            return _joined("and", map(self._comparison_of_one, node.operands))
        if isinstance(node, Or):
            return _joined("or", map(self._comparison_of_one, node.operands))
        return self._comparison(node) if isinstance(node, Compare) else self.predicate(node)

    def _comparison(self, node: Compare) -> str:
        field = FIELDS[node.field]
        if field.sort == "kind":
            kinds = _kinds(node)
            return _TRUE if len(kinds) == len(KINDS) else _one_of("kind", map(_quoted, kinds))
        if field.sort == "truth":
            return _one_of(field.predicate, [str(int(truth)) for truth in _truths(node)])
        if field.ordered:
            return _joined(
                "or",
                [
                    _joined("and", [f"(= run {run.id})", self._number(node, numbers)])
                    if run
                    else self._number(node, numbers)
                    for run, numbers in self._numbers(node)
                ],
            )
        texts = [_text_condition(field.predicate, constant.value) for constant in node.constants]
        found = _joined("or", texts)
        return f"(not {found})" if node.operator in ("!=", "not in") else found

    def _number(self, node: Compare, numbers: list[int]) -> str:
        name, operator = node.field, node.operator
        if operator == "in":
            return _one_of(name, [str(number) for number in numbers if number in _INTEGERS])
        if operator == "not in":  # by !=, which is false if there is no value
            each = [_ordered(name, "!=", number) for number in dict.fromkeys(numbers)]
            return _joined("and", each or [_ordered(name, "<", _INTEGERS.stop)])
        return _ordered(name, operator, numbers[0])


def _reading(value: object, sort: str) -> int | Callable[[RunTimes], int]:
    if isinstance(value, str):
        return moment(value) if sort == "time" else duration(value)
    assert isinstance(value, int)  # parse has checked it
    return value


def _kinds(node: Compare) -> list[str]:
    """The kinds that a comparison asks for. They are so few that the pattern is tried on each."""
    patterns = [str(constant.value) for constant in node.constants]
    wanted = node.operator in ("==", "in")
    return [kind for kind in KINDS if any(like(pattern, kind) for pattern in patterns) == wanted]


def _truths(node: Compare) -> list[bool]:
    """What a comparison with True and False asks for."""
    values = [constant.value for constant in node.constants]
    wanted = node.operator in ("==", "in")
    return [truth for truth in (True, False) if (truth in values) == wanted]


def _among(name: str, values: Sequence[Parameter]) -> Query | None:
    if len(values) == 1:
        return Query(f"{name} = ?", tuple(values))
    if not values or len(values) > _LIST_MAX:
        return None
    return Query(f"{name} IN ({', '.join('?' * len(values))})", tuple(values))


def _ordered(name: str, operator: Operator, number: int) -> str:
    if number not in _INTEGERS:
        below = number < 0
        if operator == "==" or (operator in ("<", "<=") and below) or (operator in (">", ">=") and not below):
            return _FALSE
        # true of any number: of every event that has one
        return f"(between {name} {_INTEGERS[0]} {_INTEGERS[-1]})" if name in _LACKED else _TRUE
    return f"({'=' if operator == '==' else operator} {name} {number})"


def _text_condition(name: str, value: object) -> str:
    if isinstance(value, str):
        return f"(like {name} {_quoted(value)})"
    # value == 5 means the repr; that of the text '5' differs
    assert value is None or isinstance(value, (bool, int, float))
    return f"(= value {_quoted(repr(value))})"


def _one_of(name: str, values: Iterable[str]) -> str:
    listed = list(values)
    if not listed:
        return _FALSE
    return f"(= {name} {listed[0]})" if len(listed) == 1 else f"(in {name} {' '.join(listed)})"


def _joined(word: str, predicates: Iterable[str]) -> str:
    listed = list(predicates)
    return listed[0] if len(listed) == 1 else f"({' '.join([word, *listed])})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# ---- conditions on all arguments among those on one ----------------------------------------


def _independent(node: Node) -> Node | None:
    """The first part of a node that is about arguments, and has the same answer for each of
    them."""
    if _is_independent(node):
        return node
    if isinstance(node, (And, Or)):
        found = (part for operand in node.operands if (part := _independent(operand)))
        return next(found, None)
    return None


def _is_independent(node: Node) -> bool:
    return not speaks_of_argument(node) and _has_argument(node)


def _gathered(node: Node) -> Node:
    """The node, with the independent operands of an `and` or `or` joined to one."""
    if not isinstance(node, (And, Or)) or not speaks_of_argument(node):
        return node
    alone = tuple(part for part in node.operands if _is_independent(part))
    others = tuple(_gathered(part) for part in node.operands if not _is_independent(part))
    return replace(node, operands=(*others, replace(node, operands=alone)) if alone else others)


def _without_argument(node: Node) -> Node | None:
    """The condition of a node on an event without arguments; None: it needs an argument."""
    if isinstance(node, Compare):
        return None if FIELDS[node.field].argument else node
    if isinstance(node, Not):
        return node
    parts = [part for part in map(_without_argument, node.operands) if part]
    enough = len(parts) == len(node.operands) if isinstance(node, And) else parts
    return replace(node, operands=tuple(parts)) if enough else None


def _compares_argument(node: Node) -> bool:
    return isinstance(node, Compare) and FIELDS[node.field].argument


def _put(node: Node, part: Node, other: Node) -> Node:
    """The node with `other` in the place of `part`."""
    if node == part:
        return other
    if isinstance(node, (And, Or)):
        return replace(node, operands=tuple(_put(operand, part, other) for operand in node.operands))
    return node


def _has_argument(node: Node) -> bool:
    if isinstance(node, Compare):
        return FIELDS[node.field].argument
    if isinstance(node, Not):
        return _has_argument(node.operand)
    return any(map(_has_argument, node.operands))


def _depth(predicate: str) -> int:
    """The greatest depth of its parentheses."""
    depths = accumulate({"(": 1, ")": -1}.get(part[0][0], 0) for part in re.finditer(_PARENTHESES, predicate))
    return max(depths, default=0)
