"""Expressions that a person types about recorded values: `total > 100 and user == '%bob%'`.

They read like Python, but are never run as Python: `ast` takes them apart, and only what stands in
the table below is computed, on values that were recorded (readings).

    names                  variables of the function
    order.total  items[0]  d['key']     parts that were recorded
    1  2.5  'a'  b'a'  True  False  None  (1, 2)  [1, 2]
    +  -  *  /  //  %  **  comparisons  in  is None  and  or  not  len(x)  type(x)
    user == '%bob%'        a pattern, as in filters: % stands for any characters, _ for any one

A string with an unescaped % or _ is a pattern where == != and `in` compare with it. Logic has three
values: what depends on something that was not recorded is unknown.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from . import operations as op
from .patterns import Pattern, is_pattern
from .readings import Parts, Unknown, attribute_of, parts_of, read, type_of
from .state import Item

LENGTH_MAX = 2000  # characters
DEPTH_MAX = 100  # of what stands inside of each other

Variables: TypeAlias = Mapping[str, Item]
_Value: TypeAlias = Callable[[Variables], Any]
_Place: TypeAlias = "Callable[[Variables], Item | Unknown]"

_MEANT = {
    "&&": "and", "||": "or", "===": "==", "<>": "!=", "!": "not",
}  # fmt: skip
_FORMS = "an expression is such as total > 100, user == '%bob%', order.items[0] or len(items)"


class ExpressionError(Exception):
    """A mistake in an expression at `text[position:end]`; the message says what to type."""

    def __init__(self, message: str, position: int = 0, end: int | None = None) -> None:
        super().__init__(message)
        self.message, self.position = message, position
        self.end = position + 1 if end is None else end


@dataclass(frozen=True)
class Result:
    """What an expression gives. text: as repr shows it; of an unknown one the reason. item: the
    recorded value, whose parts can be opened; None: it was computed."""

    text: str
    type: str
    item: Item | None = None
    known: bool = True
    reason: str = ""


@dataclass(frozen=True)
class Expression:
    """A checked expression. names: the variables that it needs."""

    text: str
    names: frozenset[str]
    _item: _Place | None = field(repr=False, compare=False)
    _value: _Value = field(repr=False, compare=False)
    # variables and what each must equal, else the expression does not hold
    needed: tuple[tuple[str, Any], ...] = field(default=(), repr=False, compare=False)

    def value(self, variables: Variables) -> Result:
        """Its value where these are the variables."""
        if self._item is not None:
            found = self._item(variables)
            if isinstance(found, Item):
                return Result(found.value, found.type, found)
            return Result(found.reason, "", None, False, found.reason)
        value = self._value(variables)
        if isinstance(value, Unknown):
            return Result(value.reason, "", None, False, value.reason)
        return Result(op.shown(value), type_of(value) if not isinstance(value, op.TypeName) else "type")

    def holds(self, variables: Variables) -> bool:
        """Whether it is true there; what is unknown is not."""
        return op.truth(self._value(variables)) is True

    def truth(self, variables: Variables) -> bool | Unknown:
        """The same with three values."""
        return op.truth(self._value(variables))


def parse(text: str) -> Expression:
    """Checks an expression. Raises ExpressionError, and nothing else."""
    stripped = text.strip()
    offset = len(text) - len(text.lstrip())
    if not stripped:
        raise ExpressionError(f"an expression is expected here; {_FORMS}", 0)
    if len(stripped) > LENGTH_MAX:
        raise ExpressionError(f"the expression is longer than {LENGTH_MAX:,} characters", LENGTH_MAX)
    if "\n" in stripped or "\r" in stripped or "\f" in stripped:
        raise ExpressionError("an expression stands in one line", len(stripped.splitlines()[0]) + offset)
    node = _parsed(stripped, offset)
    compiler = _Compiler(stripped, offset)
    try:
        compiler.check_depth(node)
        value = compiler.value(node)
    except (RecursionError, MemoryError):
        raise ExpressionError("the expression is nested too deep", offset) from None
    return Expression(stripped, frozenset(compiler.names), compiler.place(node), value, tuple(_needed(node)))


def _parsed(text: str, offset: int) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of unknown escapes such as \%
            return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        _no_syntax(text, offset, error)
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"this cannot be read as an expression; {_FORMS}", offset) from None


def _no_syntax(text: str, offset: int, error: SyntaxError) -> NoReturn:
    bytes_before = text.encode("utf-8", "surrogatepass")[: max((error.offset or 1) - 1, 0)]
    at = min(len(bytes_before.decode("utf-8", "ignore")), len(text))
    for sign, meant in _MEANT.items():
        place = text.find(sign)
        if place >= 0 and not (sign == "!" and text[place : place + 2] == "!="):
            raise ExpressionError(f"{sign} is not of this language: write {meant}", place + offset) from None
    from re import search

    single = search(r"(?<![=!<>])=(?!=)", text)
    if single:
        raise ExpressionError("= sets a variable, which nobody can here: write ==", single.start() + offset)
    raise ExpressionError(f"this cannot be read: {error.msg}; {_FORMS}", at + offset) from None


# ---- parts that were recorded ------------------------------------------------------------------


def _attribute(whole: Item, attribute: str, name: str) -> Item | Unknown:
    return attribute_of(whole, attribute) or Unknown(f"{name}.{attribute} was not recorded")


def _subscript(whole: Item, key: Any, name: str) -> Item | Unknown:
    found = parts_of(whole)
    if found is None or isinstance(key, Unknown) or found.kind == "":
        part = op.subscript(read(whole), key, name)
        return (
            part if isinstance(part, Unknown) else Item(f"[{op.shown(key)}]", op.shown(part), type_of(part))
        )
    parts, kind, cut = found
    if kind == "{":
        return _at_key(found, key, name)
    if not isinstance(key, int):
        return Unknown(f"{name} has no [{op.shown(key)}]: it has items 0, 1, ...")
    if -len(parts) <= key < len(parts) and (key >= 0 or not cut):
        return parts[key]
    if cut:
        return Unknown(f"items beyond the {op.ordinal(len(parts))} of {name} were not recorded")
    return Unknown(f"{name} has no item {key}: it has {len(parts)}")


def _at_key(parts: Parts, key: Any, name: str) -> Item | Unknown:
    is_unknown = parts.cut
    for part in parts.items:
        answer = op.equal(read(Item("", part.name[1:-1], "")), key)
        if answer is True:
            return part
        is_unknown = is_unknown or isinstance(answer, Unknown)
    shown = op.shown(key)
    return Unknown(f"[{shown}] of {name} was not recorded" if is_unknown else f"{name} has no [{shown}]")


# ---- what is computed --------------------------------------------------------------------------

_KINDS = {
    ast.Call: "a function cannot be called, only len(x) and type(x) can be asked",
    ast.Lambda: "functions cannot be made here",
    ast.IfExp: "there is no if within an expression: write and, or, not",
    ast.NamedExpr: "nothing can be set here: the program has ended",
    ast.ListComp: "there are no loops in an expression",
    ast.SetComp: "there are no loops in an expression",
    ast.DictComp: "there are no loops in an expression",
    ast.GeneratorExp: "there are no loops in an expression",
    ast.JoinedStr: "there are no f-strings: write a plain one",
    ast.Dict: "a dict cannot be written here: compare its items, d['key'] == 1",
    ast.Set: "a set cannot be written here: write a tuple (1, 2)",
    ast.Starred: "* has no meaning here",
    ast.Slice: "there are no slices: write the index of one item",
    ast.Await: "await has no meaning here",
    ast.Yield: "yield has no meaning here",
}


_OPERATORS: dict[type[ast.operator], str] = {
    ast.BitAnd: "& is not of this language: write and",
    ast.BitOr: "| is not of this language: write or",
}
_SINGLE = (None, True, False, ...)


class _Compiler:
    """Makes a function of the variables from Python's tree."""

    def __init__(self, text: str, offset: int) -> None:
        self.text, self.offset = text, offset
        self.names: set[str] = set()

    def check_depth(self, node: ast.AST) -> None:
        level = [node]
        for _ in range(DEPTH_MAX):
            level = [child for each in level for child in ast.iter_child_nodes(each)]
            if not level:
                return
        self._fail(node, "the expression is nested too deep")

    def value(self, node: ast.expr) -> _Value:
        """Raises ExpressionError."""
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._part(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            values = [self.value(each) for each in node.elts]
            kind = "list" if isinstance(node, ast.List) else "tuple"
            return lambda variables: op.gathered(kind, [each(variables) for each in values])
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.BoolOp):
            operands = [self.value(each) for each in node.values]
            joined = op.both if isinstance(node.op, ast.And) else op.either
            return lambda variables: joined(each(variables) for each in operands)
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id)
        self._fail(node, _KINDS.get(type(node), f"this cannot be asked; {_FORMS}"))

    def _constant(self, node: ast.Constant) -> _Value:
        value = node.value
        if isinstance(value, int) and value.bit_length() > op.BITS_MAX:
            self._fail(node, "this number is too large")
        return lambda variables: value

    def place(self, node: ast.expr) -> _Place | None:
        """A function that finds the recorded value of a variable, or of a part of one. None: the
        node is no such part."""
        if isinstance(node, ast.Name):
            name = node.id
            self.names.add(name)
            unknown = Unknown(f"{name} was not recorded, or is not set yet")
            return lambda variables: variables.get(name, unknown)
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            return None
        whole, shown = self.place(node.value), self._source(node.value)
        if whole is None:
            return None
        if isinstance(node, ast.Attribute):
            attribute = node.attr
            return _of(whole, lambda found, _: _attribute(found, attribute, shown))
        key = self.value(node.slice)
        return _of(whole, lambda found, variables: _subscript(found, key(variables), shown))

    def _part(self, node: ast.Name | ast.Attribute | ast.Subscript) -> _Value:
        place = self.place(node)
        if place is not None:
            return _read_at(place)
        if not isinstance(node, ast.Subscript):
            self._fail(node, "only a variable has attributes, as in order.total")
        whole, key, name = self.value(node.value), self.value(node.slice), self._source(node.value)
        return lambda variables: op.subscript(whole(variables), key(variables), name)

    def _unary(self, node: ast.UnaryOp) -> _Value:
        operand = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda variables: op.negated(operand(variables))
        sign = {ast.USub: "-", ast.UAdd: "+"}.get(type(node.op))
        if sign is None:
            self._fail(node, "~ is not of this language: write not")
        return lambda variables: op.signed(sign, operand(variables))

    def _binary(self, node: ast.BinOp) -> _Value:
        sign = op.SIGNS.get(type(node.op))
        if sign is None:
            self._fail(node, _OPERATORS.get(type(node.op), "there are the operators + - * / // % **"))
        left, right = self.value(node.left), self.value(node.right)
        return lambda variables: op.computed(sign, left(variables), right(variables))

    def _compare(self, node: ast.Compare) -> _Value:
        sides = [node.left, *node.comparators]
        pairs = [
            self._pair(left, operator, right)
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        if len(pairs) == 1:
            return pairs[0]
        return lambda variables: op.both(each(variables) for each in pairs)

    def _pair(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> _Value:
        is_not = isinstance(operator, (ast.NotEq, ast.NotIn, ast.IsNot))
        if type(operator) in op.COMPARISONS:
            sign = op.COMPARISONS[type(operator)]
            one, other = self.value(left), self.value(right)
            return lambda variables: op.ordered(sign, one(variables), other(variables))
        if isinstance(operator, (ast.Is, ast.IsNot)):
            found = self._same(left, right)
        elif isinstance(operator, (ast.In, ast.NotIn)):
            found = self._member(left, right)
        else:
            found = self._equal(left, right)
        return _without(found) if is_not else found

    def _equal(self, left: ast.expr, right: ast.expr) -> _Value:
        for one, other in ((left, right), (right, left)):
            if _is_type(one) and not _is_type(other) and (dotted := _dotted(other)):
                asked = self.value(one)
                return lambda variables: op.is_type(asked(variables), dotted)
        for one, other in ((left, right), (right, left)):
            if isinstance(other, ast.Constant) and isinstance(other.value, str) and is_pattern(other.value):
                pattern, asked = self._pattern(other), self.place(one) or self.value(one)
                return lambda variables: op.is_like(pattern, asked(variables))
        first, second = self.value(left), self.value(right)
        return lambda variables: op.equal(first(variables), second(variables))

    def _pattern(self, node: ast.Constant) -> Pattern:
        try:
            return Pattern(str(node.value))
        except ValueError as error:
            self._fail(node, str(error))

    def _member(self, left: ast.expr, right: ast.expr) -> _Value:
        if isinstance(right, (ast.Tuple, ast.List)):
            each_equal = [self._equal(left, each) for each in right.elts]
            return lambda variables: (
                op.either(each(variables) for each in each_equal) if each_equal else False
            )
        one, other = self.value(left), self.value(right)
        return lambda variables: op.member(one(variables), other(variables))

    def _same(self, left: ast.expr, right: ast.expr) -> _Value:
        if _is_type(left) and _dotted(right):
            return self._equal(left, right)
        if not isinstance(right, ast.Constant) or not any(right.value is each for each in _SINGLE):
            self._fail(right, "`is` compares with None, True or False: else write ==")
        one, wanted = self.value(left), right.value
        return lambda variables: op.same(one(variables), wanted)

    def _call(self, node: ast.Call, name: str) -> _Value:
        if name not in ("len", "type") or len(node.args) != 1 or node.keywords:
            self._fail(node, _KINDS[ast.Call])
        inner = node.args[0]
        if name == "len":
            asked, shown = self.value(inner), self._source(inner)
            return lambda variables: op.length(asked(variables), shown)
        of = self.place(inner) or self.value(inner)
        return lambda variables: op.type_name(of(variables))

    def _source(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def _fail(self, node: ast.AST, message: str) -> NoReturn:
        start, end = (getattr(node, name, 0) or 0 for name in ("col_offset", "end_col_offset"))
        encoded = self.text.encode("utf-8", "surrogatepass")
        places = [len(encoded[:place].decode("utf-8", "ignore")) + self.offset for place in (start, end)]
        raise ExpressionError(message, *places)


def _needed(node: ast.expr) -> Iterator[tuple[str, Any]]:
    """NAME == CONSTANT, where nothing holds without it."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for operand in node.values:
            yield from _needed(operand)
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq) or len(node.ops) > 1:
        return
    for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        if not isinstance(one, ast.Name):
            continue
        sign = -1 if isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.USub) else 1
        constant = other.operand if sign < 0 and isinstance(other, ast.UnaryOp) else other
        if not isinstance(constant, ast.Constant):
            continue
        value = constant.value
        if isinstance(value, (int, float)):
            yield one.id, sign * value if sign < 0 else value
        elif sign > 0 and (value is None or (isinstance(value, str) and not is_pattern(value))):
            yield one.id, value


def _is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def _dotted(node: ast.expr) -> str:
    """`app.Order` as a text; "" if it is no dotted name."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return before and f"{before}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _of(whole: _Place, part: Callable[[Item, Variables], Item | Unknown]) -> _Place:
    def place(variables: Variables) -> Item | Unknown:
        found = whole(variables)
        return found if isinstance(found, Unknown) else part(found, variables)

    return place


def _read_at(place: _Place) -> _Value:
    def value(variables: Variables) -> Any:
        found = place(variables)
        return found if isinstance(found, Unknown) else read(found)

    return value


def _without(found: _Value) -> _Value:
    return lambda variables: op.negated(found(variables))
