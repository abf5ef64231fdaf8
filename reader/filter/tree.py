"""The filter language's fields, its syntax tree, and the error that a mistake in a filter raises.

parser.py makes trees, sql.py compiles them. Nodes are equal if they say the same, wherever they
stand in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from ...messages import printable

KINDS = ("call", "return", "exception", "yield", "resume", "throw", "raise", "log", "lost", "line", "event")

Sort: TypeAlias = Literal["number", "time", "duration", "text", "kind", "value", "truth"]
Operator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
Literals: TypeAlias = "int | float | str | bool | None"


class Field(NamedTuple):
    """A field that a filter can compare."""

    name: str
    sort: Sort  # the values that it is compared with
    predicate: str  # its name in csrc/query/predicate.h
    argument: bool  # whether it belongs to an argument, not to the event
    column: bool  # whether its comparisons can be plain SQL constraints
    example: str

    @property
    def ordered(self) -> bool:
        """Whether < <= > >= can compare it."""
        return self.sort in ("number", "time", "duration")


FIELDS: dict[str, Field] = {
    each.name: each
    for each in (
        Field("time", "time", "time", False, True, "time >= '12:30:00'"),
        Field("tid", "number", "tid", False, True, "tid == 1234"),
        Field("module", "text", "module", False, True, "module == 'app.%'"),
        Field("func", "text", "func", False, False, "func == 'pay'"),
        Field("arg", "text", "name", True, False, "arg == 'user'"),
        Field("value", "value", "either", True, False, "value == '%bob%'"),
        Field("type", "text", "type", True, False, "type == 'int'"),
        Field("pid", "number", "pid", False, True, "pid == 1234"),
        Field("kind", "kind", "kind", False, True, "kind == 'exception'"),
        Field("file", "text", "file", False, True, "file == '%/app.py'"),
        Field("line", "number", "line", False, True, "line == 10"),
        Field("depth", "number", "depth", False, True, "depth < 5"),
        Field("duration", "duration", "duration", False, True, "duration > '1.5ms'"),
        Field("run", "number", "run", False, True, "run == 1"),
        Field("layer", "text", "layer", False, True, "layer == 'c'"),
        Field("cpu", "number", "cpu", False, True, "cpu == 2"),
        Field("mine", "truth", "mine", False, True, "mine == True"),
        Field("thread", "text", "thread", False, False, "thread == 'MainThread'"),
        Field("task", "text", "task", False, False, "task == 'Task-7'"),
    )
}


class _Part:
    """A part of a tree: immutable, and equal to a part that says the same elsewhere in the text.

    (It is written by hand, as importing dataclasses takes longer than parsing a filter.)
    """

    def __init__(self, start: int, end: int) -> None:
        self.start: Final = start  # its place in the text
        self.end: Final = end

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._says() == self._says()

    def __hash__(self) -> int:
        return hash((type(self), self._says()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._says()!r}"

    def _says(self) -> tuple[object, ...]:
        return tuple([value for name, value in vars(self).items() if name not in ("start", "end")])


PartType = TypeVar("PartType", bound=_Part)


def replace(part: PartType, **changes: object) -> PartType:
    """The same part with other attributes."""
    return type(part)(**(vars(part) | changes))


class Constant(_Part):
    """A value as it was written."""

    def __init__(self, value: Literals, start: int = 0, end: int = 0) -> None:
        super().__init__(start, end)
        self.value: Final = value

    def _says(self) -> tuple[object, ...]:
        return (repr(self.value),)  # 1 == True == 1.0, but a filter tells them apart


class Compare(_Part):
    """FIELD OPERATOR CONSTANT; with `in` and `not in` any number of constants, else one.

    A chain (`1 < depth < 5`) is an And of such comparisons, whose places overlap.
    """

    def __init__(
        self, field: str, operator: Operator, constants: tuple[Constant, ...], start: int = 0, end: int = 0
    ) -> None:
        super().__init__(start, end)
        self.field: Final = field  # a key of FIELDS
        self.operator: Final = operator
        self.constants: Final = constants


class _Operands(_Part):
    def __init__(self, operands: tuple[Node, ...], start: int = 0, end: int = 0) -> None:
        super().__init__(start, end)
        self.operands: Final = operands


class And(_Operands):
    """True if all operands are; true without operands."""


class Or(_Operands):
    """True if any operand is; false without operands."""


class Not(_Part):
    def __init__(self, operand: Node, start: int = 0, end: int = 0) -> None:
        super().__init__(start, end)
        self.operand: Final = operand


Node: TypeAlias = And | Or | Not | Compare


class Filter(_Part):
    """A filter: its text and its tree. A blank filter is an And without operands: every event."""

    def __init__(self, text: str, root: Node) -> None:
        super().__init__(0, len(text))
        self.text: Final = text
        self.root: Final = root

    def _says(self) -> tuple[object, ...]:
        return (self.root,)


def flat(node: Node) -> Iterator[Node]:
    """The operands of an And, with nested Ands dissolved into theirs; else the node itself."""
    if isinstance(node, And):
        for operand in node.operands:
            yield from flat(operand)
    else:
        yield node


def speaks_of_argument(node: Node) -> bool:
    """Whether the node is about one argument. A `not` is about all of them."""
    if isinstance(node, Compare):
        return FIELDS[node.field].argument
    return not isinstance(node, Not) and any(map(speaks_of_argument, node.operands))


def like(pattern: str, text: str) -> bool:
    """SQL's LIKE with \\ as its escape character, for short texts: % any characters, _ one."""
    reached = {0}  # places in the text that the pattern so far can reach
    for part in re.finditer(r"\\?(.)", pattern, re.DOTALL):
        if part[0] == "%":
            reached = set(range(min(reached), len(text) + 1))
        else:
            reached = {
                place + 1
                for place in reached
                if place < len(text) and (part[0] == "_" or _same_letter(part[1], text[place]))
            }
        if not reached:
            return False
    return len(text) in reached


def _same_letter(a: str, b: str) -> bool:
    return a == b or (a.isascii() and b.isascii() and a.lower() == b.lower())


# ---- back to text -------------------------------------------------------------------------


def unparse(tree: Filter | Node) -> str:
    """A filter text that says the same."""
    root = tree.root if isinstance(tree, Filter) else tree
    return "" if root == And(()) else _unparse(root, 0)


def literal(value: Literals) -> str:
    """A constant as a filter text writes it."""
    if isinstance(value, float):
        return repr(value).replace("inf", "1e999")
    return repr(value)


def _unparse(node: Node, binding: int) -> str:
    """binding: of the operator around the node: 0 none, 1 or, 2 and, 3 not."""
    if isinstance(node, Compare):
        constants = [literal(constant.value) for constant in node.constants]
        if node.operator in ("in", "not in"):
            comma = "," if len(constants) == 1 else ""
            return f"{node.field} {node.operator} ({', '.join(constants)}{comma})"
        return f"{node.field} {node.operator} {constants[0]}"
    if isinstance(node, Not):
        return f"not {_unparse(node.operand, 3)}"
    # The language has no word for "always", so a comparison that always holds is written.
    if not node.operands:
        return "kind not in ()" if isinstance(node, And) else "kind in ()"
    if len(node.operands) == 1:
        return _unparse(node.operands[0], binding)
    word, own = ("and", 2) if isinstance(node, And) else ("or", 1)
    text = f" {word} ".join(_unparse(operand, own) for operand in node.operands)
    return f"({text})" if binding > own else text


# ---- mistakes -----------------------------------------------------------------------------

_AROUND = 40  # characters of a long filter on each side of a mistake
_MARKED_MAX = 60
_LINE_MAX = 300


class FilterError(Exception):
    """A mistake in a filter, at `text[start:end]`. `problem` describes it, `hint` the expected or
    meant text ("": no hint). As str: several lines, safe for a terminal."""

    def __init__(self, text: str, start: int, end: int, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.text, self.problem, self.hint = text, problem, hint
        self.start = min(start, len(text))
        self.end = min(max(end, start + 1), max(len(text), self.start))

    def __str__(self) -> str:
        said = [short(printable(line), _LINE_MAX) for line in (self.problem, self.hint) if line]
        return "\n".join([*self._shown(), *said])

    def _shown(self) -> tuple[str, str]:
        """The text around the mistake, and a line that marks it."""
        end = min(self.end, self.start + _MARKED_MAX)
        first, last = max(self.start - _AROUND, 0), end + _AROUND
        before = ("…" if first else "") + printable(self.text[first : self.start])
        marked = printable(self.text[self.start : end])
        after = printable(self.text[end:last]) + ("…" if last < len(self.text) else "")
        return before + marked + after, " " * _columns(before) + "^" * max(_columns(marked), 1)


def short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _columns(text: str) -> int:
    """The number of terminal columns that a printable text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(0 if category(c) in ("Mn", "Me") else 2 if east_asian_width(c) in "WF" else 1 for c in text)
