"""Parses a filter: makes the tree of a text such as `func == 'pay' and value == '%bob%'`.

A filter is a Python expression of conditions FIELD OPERATOR VALUE, joined by and, or, not and
parentheses (docs/filters.md). It is parsed with `ast` and never evaluated.

Conditions on `arg`, `value` and `type` that are operands of one `and` speak of the same argument,
however parentheses group them: there is an argument for which all of them hold. An `or` among them
speaks of that argument, too. If an alternative of the `or` is about the event alone, it needs no
argument. `not (…)` stands for itself: no argument meets the condition. `value != 'bob'` asks for an
argument that differs.

Logic has two values: a comparison with a missing duration is false, and its `not` is true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NoReturn, cast

from .sql import compile
from .tokens import Token, tokens
from .tree import (
    FIELDS,
    KINDS,
    And,
    Compare,
    Constant,
    Field,
    Filter,
    FilterError,
    Node,
    Not,
    Operator,
    Or,
    flat,
    like,
    literal,
)
from .units import DURATION_FORMS, TIME_FORMS, duration, moment

_OPERATORS: dict[type[ast.cmpop], Operator] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
    ast.NotIn: "not in",
}  # fmt: skip
_LEAST_NS = 1000  # who writes a smaller number does not mean ns
_TURNED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def parse(text: str) -> Filter:
    """The checked syntax tree of a filter. Raises FilterError, and nothing else. Blank: every
    event."""
    found = tokens(text)
    if not found:
        return Filter(text, And(()))
    # Each token gets a line of its own, so that a node's lines tell its tokens. The number of its
    # token replaces each constant, so that Python does not read constants.
    lines = [str(i) if token.kind == "constant" else token.text for i, token in enumerate(found)]
    try:
        parsed = ast.parse("(\n{}\n)".format("\n".join(lines)), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = (error.lineno if isinstance(error, SyntaxError) else None) or 2
        token = found[min(max(line - 2, 0), len(found) - 1)]
        raise FilterError(text, token.start, token.end, f"This cannot be read: {error}.") from None
    tree = Filter(text, _Builder(text, found).condition(parsed.body))
    compile(tree, ())  # a predicate that is too large should be found now
    return tree


class _Builder:
    """Makes our tree from Python's."""

    def __init__(self, text: str, found: list[Token]) -> None:
        self.text, self.found = text, found

    def condition(self, node: ast.expr) -> Node:
        start, end = self._place(node)
        if isinstance(node, ast.BoolOp):
            operands = tuple(map(self.condition, node.values))
            if isinstance(node.op, ast.And):
                return And(tuple(flat(And(operands))), start, end)
            return Or(tuple(_alternatives(operands)), start, end)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Not(self.condition(node.operand), start, end)
        if isinstance(node, ast.Compare):
            return self._comparison(node, start, end)
        self._no_condition(node)

    def _comparison(self, node: ast.Compare, start: int, end: int) -> Node:
        sides = [node.left, *node.comparators]
        pairs = tuple(
            self._compare(left, _OPERATORS[type(operator)], right)
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
        )
        return pairs[0] if len(pairs) == 1 else And(pairs, start, end)

    def _compare(self, left: ast.expr, operator: Operator, right: ast.expr) -> Compare:
        start, end = self._place(left)[0], self._place(right)[1]
        for side in (left, right):
            self._check_side(side, operator, side is right)
        if isinstance(left, ast.Name) and isinstance(right, ast.Name):
            self._fail(
                start, end, "A filter cannot compare two fields.",
                f"compare {left.id} with a value: {FIELDS[left.id].example}",
            )  # fmt: skip
        if operator in ("in", "not in"):
            if not isinstance(left, ast.Name):
                self._in_turned(operator, left, right, start, end)
            return self._member(left.id, operator, right, start, end)
        if isinstance(left, ast.Name):
            name, value = left.id, right
        elif isinstance(right, ast.Name):
            name, value, operator = right.id, left, _TURNED[operator]
        else:
            self._fail(
                start, end, "No field is compared here.",
                "one side of a comparison is a field, and in a chain each second one: 1 < depth < 5",
            )  # fmt: skip
        if isinstance(value, (ast.Tuple, ast.List)):
            meant = "not in" if operator == "!=" else "in"
            hint = f"to compare with several write {name} {meant} (…)"
            self._fail(*self._place(value), f"{operator} compares with one value.", hint)
        constant = self._constant(FIELDS[name], value)
        field = FIELDS[name]
        if operator not in ("==", "!=") and not field.ordered:
            if field.sort == "truth":
                hint = f"use == or !=: {field.example}"
                self._fail(start, end, f"{name} is True or False, which {operator} cannot compare.", hint)
            self._fail(
                start, end, f"{name} is a text, which {operator} cannot compare.",
                f"use == or !=, with wildcards: {field.example}",
            )  # fmt: skip
        return Compare(name, operator, (constant,), start, end)

    def _check_side(self, side: ast.expr, operator: Operator, is_right: bool) -> None:
        """Checks that a side of a comparison is a field, a constant, or a list of constants after
        `in`."""
        if isinstance(side, (ast.Name, ast.Constant)):
            return
        if isinstance(side, (ast.Tuple, ast.List)):
            for item in side.elts:
                if isinstance(item, ast.Name):
                    self._fail(*self._place(item), "A list holds values, and no fields.")
                if isinstance(item, (ast.Tuple, ast.List)):
                    self._fail(*self._place(item), "A list cannot hold lists.")
                self._check_side(item, operator, is_right)
            return
        if isinstance(side, ast.BoolOp):
            several = [item for item in side.values if isinstance(item, ast.Constant)]
            texts = ", ".join(literal(self._value(item)) for item in several[:3])
            hint = f"to compare with several values write FIELD in ({texts or '…'})"
            self._fail(*self._place(side), "A comparison cannot be made with a condition.", hint)
        self._fail(*self._place(side), "A comparison cannot be made with a condition.")

    def _in_turned(
        self, operator: Operator, left: ast.expr, right: ast.expr, start: int, end: int
    ) -> NoReturn:
        """'pay' in func"""
        hint = f"write FIELD {operator} (VALUE, …)"
        if isinstance(right, ast.Name) and isinstance(left, ast.Constant):
            value = self._value(left)
            if isinstance(value, str) and not FIELDS[right.id].ordered:
                hint = (
                    f"did you mean {right.id} {'==' if operator == 'in' else '!='} {literal(f'%{value}%')}?"
                )
            else:
                hint = f"write {right.id} {operator} ({literal(value)},)"
        self._fail(start, end, f"The field stands in front of {operator}.", hint)

    def _member(self, name: str, operator: Operator, right: ast.expr, start: int, end: int) -> Compare:
        if isinstance(right, (ast.Tuple, ast.List)):
            items = right.elts
        elif isinstance(right, ast.Constant) and self.found[right.lineno - 3].text in ("(", "["):
            items = [right]  # a tuple of one, without its comma
        else:
            shown = literal(self._value(right)) if isinstance(right, ast.Constant) else "…"
            hint = f"write {name} {operator} ({shown},)"
            self._fail(*self._place(right), f"{operator} needs a list of values in parentheses.", hint)
        constants = tuple(self._constant(FIELDS[name], item) for item in items)
        return Compare(name, operator, constants, start, end)

    # ---- values ----

    def _constant(self, field: Field, node: ast.expr) -> Constant:
        value = self._value(cast(ast.Constant, node))
        start, end = self._place(node)
        problem = hint = ""
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if field.sort == "number" and not is_number:
            problem = f"{field.name} is a whole number."
            digits = value.strip() if isinstance(value, str) else ""
            number = digits if digits.isascii() and digits.isdigit() else ""
            hint = f"write {number.lstrip('0') or '0'}" if number else f"for example: {field.example}"
        elif field.sort == "truth" and not isinstance(value, bool):
            problem, hint = f"{field.name} is True or False.", f"write {field.example}"
        elif field.sort in ("time", "duration") and not is_number:
            problem, hint = _time_problem(field, value)
        elif field.sort == "duration" and isinstance(value, int) and 0 < value < _LEAST_NS:
            problem = f"{value} has no unit."
            hint = f"write '{value}ms', '{value}us' or '{value}ns'; a number alone is ns"
        elif field.sort in ("text", "kind") and not isinstance(value, str):
            problem = f"{field.name} is a text."
            hint = f"write it in quotes: {literal(self.text[start:end])}"
            if value is None and field.name == "type":
                hint = "the type of None is 'NoneType'"
        elif isinstance(value, str):
            problem, hint = _pattern_problem(field, value)
        else:
            try:
                repr(value)
            except ValueError:  # too many digits: sys.set_int_max_str_digits
                problem = "This number is too long to be written."
        if problem:
            self._fail(start, end, problem, hint)
        return Constant(value, start, end)

    def _value(self, node: ast.Constant) -> int | float | str | bool | None:
        return self.found[cast(int, node.value)].value

    # ---- mistakes ----

    def _no_condition(self, node: ast.expr) -> NoReturn:
        start, end = self._place(node)
        if isinstance(node, ast.Name):
            hint = f"compare it with a value: {FIELDS[node.id].example}"
            self._fail(start, end, f"{node.id} alone is no condition.", hint)
        if isinstance(node, (ast.Tuple, ast.List)):
            self._fail(start, end, "A list is no condition.", "join conditions with and, or or")
        hint = "compare a field with it"
        if isinstance(node, ast.Constant):
            value = self._value(node)
            if isinstance(value, str):
                hint += f", such as func == {literal(value) if len(value) < 40 else '…'}"
            if start >= 3 and self.text[:start].rstrip().endswith("or"):
                hint += "; several values stand in a list: func in ('a', 'b')"
        self._fail(start, end, "A value alone is no condition.", hint)

    def _place(self, node: ast.expr) -> tuple[int, int]:
        first, last = node.lineno - 2, (node.end_lineno or node.lineno) - 2
        # a tuple without brackets takes the brackets around the whole text
        if first < 0 or last >= len(self.found):
            return 0, len(self.text)
        return self.found[first].start, self.found[last].end

    def _fail(self, start: int, end: int, problem: str, hint: str = "") -> NoReturn:
        raise FilterError(self.text, start, end, problem, hint)


def _alternatives(operands: Iterable[Node]) -> Iterable[Node]:
    for operand in operands:
        if isinstance(operand, Or):
            yield from operand.operands
        else:
            yield operand


def _time_problem(field: Field, value: object) -> tuple[str, str]:
    """The problem with a text for a time or a duration, and the expected form."""
    if not isinstance(value, str):
        unit = "ns since 1970" if field.sort == "time" else "ns"
        forms = TIME_FORMS if field.sort == "time" else DURATION_FORMS
        return f"{field.name} is a whole number of {unit}, or a text.", forms
    try:
        (moment if field.sort == "time" else duration)(value)
    except ValueError as error:
        what = "time" if field.sort == "time" else "duration"
        return f"{literal(value)[:60]} is no {what}.", str(error)
    return "", ""


def _pattern_problem(field: Field, pattern: str) -> tuple[str, str]:
    """The problem with a LIKE pattern."""
    backslashes = len(pattern) - len(pattern.rstrip("\\"))
    if backslashes % 2:
        return "The backslash at the end escapes nothing.", "a backslash itself is written \\\\\\\\"
    if field.sort == "kind" and not any(like(pattern, kind) for kind in KINDS):
        from difflib import get_close_matches

        nearest = get_close_matches(pattern.lower()[:20], KINDS, 1)
        kinds = f"kinds: {' '.join(KINDS)}"
        return f"There is no kind {literal(pattern[:40])}.", (
            f"did you mean {literal(nearest[0])}? ({kinds})" if nearest else kinds
        )
    return "", ""
