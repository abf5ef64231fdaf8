"""Completions and mistakes for the prompts of filters, searches and commands; filters to choose.

The prompt (prompt.py) calls `complete` and `check` at each key; `from_event` makes the filters of
`*`. `suggest` is a question for the database thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..filter.tree import (
    And,
    Compare,
    Constant,
    Filter,
    FilterError,
    Literals,
    Node,
    Operator,
    Or,
    flat,
    speaks_of_argument,
    unparse,
)
from ..render import duration as shown_duration
from ..rows import PYTHON, text
from ..suggestions.completion import Candidate, Completions, complete, pattern_of
from ..suggestions.names import Names
from ..suggestions.words import bare_word
from .effects import Mistake

if TYPE_CHECKING:
    from ..database import Database
    from ..rows import Row, Run
    from ..suggestions.corrections import Correction

_ARGUMENTS = 30  # of a call, for which filters are offered
_UNITS = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
_CONSTANTS: dict[str, Any] = {"int": int, "float": float}
_CONDITION = re.compile(r"\w+ (?:[=!<>]|in )")  # the start of a hint that shows a condition
# a comment, or a string with its end or without
_QUOTED = re.compile(
    r"""\#[^\n]*|(?P<quote>'''|\"""|'|")(?:\\.|(?!(?P=quote))[^\\])*(?P<rest>\\?)(?P<closed>(?P=quote))?""",
    re.DOTALL | re.VERBOSE,
)


class FilterCompletion:
    """`names` may be set later: until then only fields and operators are completed."""

    def __init__(self, names: Names | None = None) -> None:
        self.names = Names() if names is None else names

    def complete(self, text: str, position: int) -> Completions:
        """The words that can stand at a position of a text."""
        return complete(self.names, text, position)

    def check(self, text: str) -> Mistake | None:
        """The mistake in a filter, if there is one."""
        error = _error(text)
        if error is None or bare_word(text):  # filters for the word are offered
            return None
        end, closing = len(text.rstrip()), _closing(text)
        unfinished = error.end >= end
        if closing and not unfinished:
            # with all brackets closed, an earlier mistake may show
            other = _error(text + closing)
            unfinished = other is None or other.end >= end
            error = error if unfinished or other is None else other
        return Mistake(error.start, error.end, _message(error), unfinished)


def _error(text: str) -> FilterError | None:
    from ..filter.parser import parse

    try:
        parse(text)
    except FilterError as error:
        return error
    return None


def _message(error: FilterError) -> str:
    hint = error.hint
    if not _CONDITION.match(hint):  # its words are written as they are
        hint = hint[:1].upper() + hint[1:]
    if hint and hint[-1] not in ".?":
        hint += "."
    return f"{error.problem} {hint}".rstrip()


def _closing(text: str) -> str:
    """The characters that close the string and the brackets open at the end of a text."""
    opened, quote, at = "", "", 0
    for found in _QUOTED.finditer(text):
        opened, at = _brackets(opened, text[at : found.start()]), found.end()
        if found["quote"] and not found["closed"]:
            quote = ("\\" if found["rest"] else "") + found["quote"]
    opened = _brackets(opened, text[at:])
    return quote + "".join(")" if bracket == "(" else "]" for bracket in reversed(opened))


def _brackets(opened: str, text: str) -> str:
    for sign in text:
        if sign in "([":
            opened += sign
        elif sign in ")]":
            opened = opened[:-1]
    return opened


def editable(tree: Filter) -> str:
    """A filter's text in one line, without comments, which end with their line."""
    return tree.text if "\n" not in tree.text else unparse(tree)


def suggest(database: Database, wanted: Filter | str, runs: Sequence[Run]) -> list[Correction]:
    """Filters that find something in these runs, within two seconds: similar to one that finds
    nothing, the nearest first; or such as have a word. Raises DatabaseError."""
    import apsw

    from ..database import explained
    from ..suggestions.corrections import corrections
    from ..suggestions.counting import counter
    from ..suggestions.words import offers

    numbers = [run.id for run in runs]
    try:
        count = counter(database.connection(), numbers)
        if isinstance(wanted, str):
            return offers(wanted, runs, count)
        return corrections(wanted, Names.load(database, numbers), runs, count)
    except apsw.Error as error:
        raise explained(database.path, error) from error


# ---- out of an event ------------------------------------------------------------------------


def from_event(row: Row, present: str = "") -> list[tuple[str, str]]:
    """Filters that find an event and similar ones: the common property, and the filter.

    present: a filter that the event meets; the offered conditions are added to it.
    """
    from ..filter.parser import parse

    tree = parse(present)
    known = [*flat(tree.root)]
    offers: dict[str, str] = {}  # labels by text
    for label, conditions in _conditions(row):
        if all(condition in known for condition in conditions):
            continue
        text = _joined(present, tree.root, conditions)
        if _error(text) is None:  # a filter has limits
            offers.setdefault(text, label)
    return [(label, text) for text, label in offers.items()]


def of_function(module: bytes, func: bytes, present: str = "", line: int | None = None) -> str:
    """A filter for a function, or for the runs of a line of it; present: a filter that is to hold,
    too."""
    from ..filter.parser import parse

    conditions = [_like("func", _pattern(func)), _like("module", _pattern(module))]
    if line is not None:
        conditions += [_compare("kind", "==", "line"), _compare("line", "==", line)]
    return _joined(present, parse(present).root, conditions)


def _joined(present: str, root: Node, conditions: Sequence[Compare]) -> str:
    wanted = unparse(And(tuple(conditions)))
    if root == And(()):
        return wanted
    if "#" in present or not present.isprintable():  # a comment would take in what follows
        present = unparse(root)
    if isinstance(root, Or):
        present = f"({present})"
    # joined by `and`, conditions speak of the same argument; after two `not` of any argument
    if speaks_of_argument(root) and any(map(speaks_of_argument, conditions)):
        wanted = f"not not ({wanted})"
    return f"{present} and {wanted}"


def _conditions(row: Row) -> Iterator[tuple[str, list[Compare]]]:
    _, _, _, pid, tid, thread, kind, module, func, _, _, _, duration, args, task, layer, cpu = row
    if func:
        name = f"{text(module)}.{text(func)}" if module else text(func)
        yield f"function {name}", [_like("func", _pattern(func)), _like("module", _pattern(module))]
    for argument in json.loads(args)[:_ARGUMENTS]:
        value = argument.get("object", argument["value"])
        yield from _of_argument(argument["name"], value, argument["type"])
        for each in argument.get("attributes", ()):
            yield from _of_argument(f"{argument['name']}.{each['name']}", each["value"], each["type"])
    if duration is not None:
        least, length = _rounded(duration)
        yield f"{shown_duration(least)} or longer", [_compare("duration", ">=", length)]
    yield f"kind {kind}", [_compare("kind", "==", kind)]
    if module:
        yield f"module {text(module)}", [_like("module", _pattern(module))]
    if layer != PYTHON:
        yield f"layer {text(layer)}", [_like("layer", _pattern(layer))]
    if cpu is not None:
        yield f"processor {cpu}", [_compare("cpu", "==", cpu)]
    if task:
        yield f"task {text(task)}", [_like("task", _pattern(task))]
    if thread:
        yield f"thread {text(thread)}", [_like("thread", _pattern(thread))]
    yield f"thread {tid}", [_compare("tid", "==", tid), _compare("pid", "==", pid)]
    yield f"process {pid}", [_compare("pid", "==", pid)]


def _of_argument(name: str, value: str, type: str) -> Iterator[tuple[str, list[Compare]]]:
    is_argument = _like("arg", pattern_of(name))
    yield f"{name} is {value}", [is_argument, _compare("value", "==", _constant(value, type))]
    if "." in type or name == "exception":
        yield f"{name} is any {type}", [is_argument, _like("type", pattern_of(type))]


def _constant(value: str, type: str) -> Literals:
    """The constant that finds a shown value, compared with the field `value`."""
    if type in ("bool", "NoneType") and value in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[value]
    if type in _CONSTANTS:
        try:
            number: int | float = _CONSTANTS[type](value)
        except ValueError:  # what is cut
            return pattern_of(value)
        if repr(number) == value and number == number and abs(number) != float("inf"):
            return number
    return pattern_of(value)


def _pattern(name: bytes) -> str:
    """A pattern for a stored name. A wildcard stands for characters that no recorded name holds."""
    known = name.decode("utf-8", "replace").replace("\0", "\ufffd")
    return pattern_of(known).replace("\ufffd", "%")


def _compare(field: str, operator: Operator, value: Literals) -> Compare:
    return Compare(field, operator, (Constant(value),))


def _like(field: str, pattern: str) -> Compare:
    return _compare(field, "==", pattern)


def _rounded(ns: int) -> tuple[int, str]:
    """A length of time, rounded down to three digits: in ns, and as a filter writes it."""
    size = 10 ** max(len(str(ns)) - 3, 0)
    least = ns // size * size
    unit, size = next((unit for unit in _UNITS if least >= unit[1]), _UNITS[-1])
    whole, part = divmod(least, size)
    fraction = f".{part:0{len(str(size)) - 1}}".rstrip("0") if part else ""
    return least, f"{whole}{fraction}{unit}"


# ---- searches and commands ------------------------------------------------------------------


def check_pattern(text: str) -> Mistake | None:
    """The mistake in a regular expression, if there is one."""
    from .search import BadPattern, Pattern

    try:
        Pattern(text)
    except BadPattern as error:
        start = max(min(error.position, len(text) - 1), 0)
        return Mistake(start, start + 1, error.message, error.position >= len(text))
    return None


def complete_command(names: Mapping[str, str], text: str, position: int) -> Completions:
    """The commands that can be typed behind `:`. names: of all commands, with their help."""
    typed = text[:position]
    if " " in typed.strip() or (typed and typed != typed.strip()):
        return Completions(position, position, [])
    end = len(text) if " " not in text[position:] else position + text[position:].index(" ")
    found = [
        Candidate(name, "command", help)
        for begins in (True, False)
        for name, help in names.items()
        if name.startswith(typed) == begins and typed in name
    ]
    return Completions(0, end, found)
