"""The meaning of a filter, without SQL: the filter's oracle, and filters to try it with.

`matches` looks at one event, as `print --format json` gives it, and knows nothing of how filters
are compiled: it reads the tree as docs/filters.md explains it. LIKE is SQLite's own.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import apsw
from hypothesis import strategies as st
from pytracer.reader.filter.tree import And, Compare, Filter, Node, Not, Or
from pytracer.reader.filter.units import RunTimes

Event = dict[str, Any]
Argument = dict[str, Any]

OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
NUMBERS = ("time", "pid", "tid", "line", "depth", "duration", "run", "cpu")
OF_ARGUMENT = {"arg": "name", "value": "value", "type": "type"}
UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
SQLITE = apsw.Connection(":memory:")


def matches(tree: Filter, event: Event, runs: Sequence[RunTimes]) -> bool:
    """Whether a filter over these runs finds an event of one of them."""
    (run,) = [run for run in runs if run.id == event["run"]]
    return _Event(event, run).holds(tree.root)


class _Event:
    def __init__(self, event: Event, run: RunTimes) -> None:
        self.event, self.run = event, run
        self.known: dict[int, bool] = {}  # what holds, by the identity of the node

    def holds(self, node: Node) -> bool:
        """For an argument, or for none in particular."""
        if id(node) not in self.known:
            each = [argument for given in self.event["args"] for argument in with_attributes(given)]
            self.known[id(node)] = any(self.holds_for(node, argument) for argument in [*each, None])
        return self.known[id(node)]

    def holds_for(self, node: Node, argument: Argument | None) -> bool:
        """For one argument. A condition on an argument is false if there is none."""
        if isinstance(node, Not):
            return not self.holds(node.operand)  # of whichever argument
        if isinstance(node, (And, Or)):
            results = [self.holds_for(part, argument) for part in node.operands]
            return all(results) if isinstance(node, And) else any(results)
        if node.field in OF_ARGUMENT:
            return argument is not None and compares_argument(node, argument)
        return self.compares(node)

    def compares(self, node: Compare) -> bool:
        wanted = [constant.value for constant in node.constants]
        if node.field in NUMBERS:
            number = self.event.get("cpu") if node.field == "cpu" else self.event[node.field]
            if number is None:
                return False
            numbers = [self.number(node.field, value) for value in wanted]
            if node.operator in ("in", "not in"):
                return (number in numbers) == (node.operator == "in")
            return OPERATORS[node.operator](number, numbers[0])
        absent = {"task": "", "layer": "python"}  # what an event without that key is of
        texts = [self.event.get(node.field, absent.get(node.field))]
        if node.field == "func":
            texts.append(texts[0].split(".")[-1])
        return compares_texts(node, texts)

    def number(self, field: str, value: object) -> int:
        """A number, a duration or a time in ns."""
        if isinstance(value, int):
            return value
        assert isinstance(value, str)
        if field == "duration":
            return nanoseconds(value)
        if value.startswith("+"):
            return self.run.started + nanoseconds(value[1:])
        split = re.fullmatch(r"([^.+]+)(?:\.(\d+))?(\+.*)?", value.replace("/", "-"))
        assert split
        ns = int((split[2] or "").ljust(9, "0"))
        if "-" in split[1]:
            return seconds(split[1] + (split[3] or "")) * 10**9 + ns
        # a time of day: the first after the start, if the run goes on until another day
        started, finished = (datetime.fromtimestamp(t // 10**9).date() for t in self.run_times())
        found = seconds(f"{started}T{split[1]}") * 10**9 + ns
        if found < self.run.started and finished > started:
            found = seconds(f"{started + timedelta(days=1)}T{split[1]}") * 10**9 + ns
        return found

    def run_times(self) -> tuple[int, int]:
        assert self.run.finished is not None
        return self.run.started, self.run.finished


def with_attributes(argument: Argument) -> Iterator[Argument]:
    """An argument, and its attributes as others."""
    yield argument
    for each in argument.get("attributes", ()):
        yield {**each, "name": f"{argument['name']}.{each['name']}"}


def compares_argument(node: Compare, argument: Argument) -> bool:
    shown = argument[OF_ARGUMENT[node.field]]
    texts = [shown, bare(argument)] if node.field == "value" else [shown]
    return compares_texts(node, texts)


def compares_texts(node: Compare, texts: list[str]) -> bool:
    found = any(
        any(like(constant.value, text) for text in texts)
        if isinstance(constant.value, str)
        else texts[0] == repr(constant.value)
        for constant in node.constants
    )
    return found == (node.operator in ("==", "in"))


def bare(argument: Argument) -> str:
    """The content of a string, as recorded texts hold it; the type and address of an object with
    attributes; of anything else what is shown."""
    shown: str = argument["value"]
    if "attributes" in argument:
        return str(argument["object"])
    if argument["type"] != "str" or shown[0] not in "'\"":
        return shown
    cut = shown.endswith("...")
    content = str(ast.literal_eval(shown.removesuffix("...")))
    content = re.sub("[\0\ud800-\udfff]", lambda m: repr(m[0])[1:-1], content)
    return content + "..." * cut


@lru_cache(100_000)
def like(pattern: str, text: str) -> bool:
    ((found,),) = SQLITE.execute("SELECT ? LIKE ? ESCAPE '\\'", (text, pattern))
    return bool(found)


def seconds(text: str) -> int:
    """Since 1970."""
    return int(datetime.fromisoformat(text).timestamp())


def nanoseconds(text: str) -> int:
    parts = re.findall(r"([\d.]+)([^\d.]+)", text)
    return int(sum(Decimal(number) * UNITS[unit] for number, unit in parts))


# ---- filters to try -----------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """Texts and numbers by field, for filters that find something."""

    texts: dict[str, Sequence[str]]
    numbers: dict[str, Sequence[int]]
    constants: Sequence[object] = ()  # for `value`, besides its texts
    times: Sequence[str] = ()


def filters(values: Values) -> st.SearchStrategy[str]:
    """Texts of filters, all without mistakes."""
    condition = st.one_of(_text_conditions(values), _number_conditions(values), _argument_conditions(values))
    return st.recursive(condition, _joined, max_leaves=8)


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bracketed = parts.map("({})".format)
    return st.one_of(
        bracketed.map("not {}".format),
        st.lists(bracketed, min_size=2, max_size=4).map(" and ".join),
        st.lists(bracketed, min_size=2, max_size=4).map(" or ".join),
        st.tuples(parts, st.sampled_from(["and", "or", "and not", "or not"]), parts).map(" ".join),
    )


@st.composite
def _pattern(draw: st.DrawFn, texts: Sequence[str]) -> str:
    """A text of a few as a pattern: whole, in part, in other letters, or with wildcards."""
    text = draw(st.sampled_from(texts))
    same = escape(text)
    first = draw(st.integers(0, len(text)))
    part = escape(text[first : draw(st.integers(first, len(text)))])
    wild = [f"%{part}%", f"%{part}", f"{part}%", "%", "_" * len(text)]
    return draw(st.sampled_from([same, same, same, same.upper(), *wild]))


def escape(text: str) -> str:
    """The pattern that only a text itself matches."""
    return re.sub(r"[\\%_]", r"\\\g<0>", text)


def _text_condition(draw: st.DrawFn, field: str, constants: st.SearchStrategy[str]) -> str:
    comparison = draw(st.sampled_from(["==", "==", "!=", "in", "not in"]))
    if comparison in ("in", "not in"):
        items = draw(st.lists(constants, max_size=3))
        return f"{field} {comparison} ({''.join(item + ',' for item in items)})"
    left, right = (field, draw(constants)) if draw(st.booleans()) else (draw(constants), field)
    return f"{left} {comparison} {right}"


@st.composite
def _text_conditions(draw: st.DrawFn, values: Values) -> str:
    field = draw(st.sampled_from([field for field in values.texts if field not in OF_ARGUMENT]))
    pattern = st.sampled_from(values.texts[field]) if field == "kind" else _pattern(values.texts[field])
    return _text_condition(draw, field, pattern.map(repr))


@st.composite
def _argument_conditions(draw: st.DrawFn, values: Values) -> str:
    field = draw(st.sampled_from(list(OF_ARGUMENT)))
    constants = _pattern(values.texts[field]).map(repr)
    if field == "value" and values.constants:
        constants |= st.sampled_from(values.constants).map(repr)
    return _text_condition(draw, field, constants)


@st.composite
def _number_conditions(draw: st.DrawFn, values: Values) -> str:
    field = draw(st.sampled_from(list(values.numbers)))
    near = st.sampled_from(values.numbers[field]).flatmap(lambda n: st.integers(n - 1, n + 1))
    plain = near | st.sampled_from([-(10**30), 0, 10**30])
    if field == "duration":  # small numbers need a unit
        plain = plain.filter(lambda n: not 0 < n < 1000)
    constants = plain.map(str)
    if field == "duration":
        constants |= near.filter(lambda n: n >= 0).map(
            lambda n: f"'{n}ns'" if n % 2 else f"'{n / 1000:.3f}µs'"
        )
    if field == "time" and values.times:
        constants |= st.sampled_from(values.times).map(repr)
    way = draw(st.sampled_from(["compare", "turned", "chain", "in"]))
    comparisons = [draw(st.sampled_from(list(OPERATORS))) for _ in range(2)]
    if way == "in":
        items = draw(st.lists(constants, max_size=3))
        return f"{field} {draw(st.sampled_from(['in', 'not in']))} ({''.join(item + ',' for item in items)})"
    if way == "chain":
        return f"{draw(constants)} {comparisons[0]} {field} {comparisons[1]} {draw(constants)}"
    left, right = (field, draw(constants)) if way == "compare" else (draw(constants), field)
    return f"{left} {comparisons[0]} {right}"
