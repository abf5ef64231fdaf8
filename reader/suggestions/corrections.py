"""Corrections: filters that find something, similar to one that found nothing.

`print` and the screen call it. A part of a filter is replaced, left out, or joined with `or`. The
events of each candidate are really counted, the nearest first, until there are enough candidates or
the time is over. replacements.py has the alternatives for one comparison. No SQL in here.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, product
from typing import NamedTuple, TypeAlias

from ..filter.sql import compile
from ..filter.tree import And, Compare, Constant, Filter, FilterError, Node, Or, replace, unparse
from ..filter.units import RunTimes
from .completion import pattern_of
from .names import Names
from .replacements import Replacement, can_match, replacements

SECONDS = 2.0
AT_MOST = 100_000  # events that are counted

# Distances from the written filter; replacements.py has more.
_OTHER_ARGUMENT, _ANY_ARGUMENT, _EITHER, _DROPPED = 2.5, 2.6, 4.5, 5.0
# costs of each further part that changes, and of each part that finds nothing and is left as it is
_MORE, _LEFT = 0.1, 0.5
_PARTS_MAX = 50  # comparisons that are tried
_NEEDED_MAX = 20  # ways to choose the parts that have to change ...
_BRANCHES_MAX = 5
_TOGETHER_MAX = 200  # ... and to change them
_ARGUMENTS_MAX = 2
_SHARE = 0.25
_WIDTH = 60


class Found(NamedTuple):
    """A number of events. `all`: there are no more; else the bound or the time was reached."""

    events: int
    all: bool


# condition, parameters, bound of the number, deadline (by time.monotonic())
Count: TypeAlias = Callable[[str, "tuple[int | str, ...]", int, float], Found]
_Changes: TypeAlias = "dict[int, Node | None]"  # by id() of a node: its replacement


class Correction(NamedTuple):
    """Another filter and the number of its events; `all`: there are no more."""

    text: str
    events: int
    all: bool


class _Change(NamedTuple):
    cost: float
    nodes: _Changes
    ladder: object = None


class _Candidate(NamedTuple):
    cost: float
    root: Node | None
    ladder: object = None  # of each ladder only the first step that finds something counts


def corrections(
    tree: Filter,
    names: Names,
    runs: Sequence[RunTimes],
    count: Count,
    limit: int = 5,
    deadline: float | None = None,
) -> list[Correction]:
    """At most `limit` filters that find something, the nearest first; the last one finds the most.

    deadline: by time.monotonic(); the default is SECONDS from now.
    """
    search = _Search(names, runs, count, time.monotonic() + SECONDS if deadline is None else deadline)
    found: list[tuple[float, int, Correction]] = []
    tried = {unparse(tree)}
    climbed: set[object] = set()
    for candidates in (search.by_names(tree.root), search.by_counts(tree.root), search.further(tree.root)):
        for cost, root, ladder in candidates:
            if search.over() or (len(found) >= limit and cost > max(found)[0]):
                break
            text = unparse(root) if root else ""
            if not root or not text or text in tried or ladder in climbed:
                continue
            tried.add(text)
            events, all = search.count(root, AT_MOST)
            if events:
                found.append((cost, -events, Correction(text, events, all)))
                climbed |= {ladder} - {None}
        if found:
            break
    return [correction for _, _, correction in sorted(found)[:limit]]


def rendered(text: str, found: Sequence[Correction]) -> str:
    """The message on a filter that finds nothing: lines that are safe for a terminal."""
    from ...messages import printable

    first = f"no event matches: {printable(text)}"
    return f"{first}\n{offered(found)}" if found else first


def offered(found: Sequence[Correction]) -> str:
    """Filters with the numbers of their events, in the same way."""
    from ...messages import printable

    filters = [printable(correction.text) for correction in found]
    numbers = [f"{events:,}{'' if all else ' or more'}" for _, events, all in found]
    width, digits = min(max(map(len, filters)), _WIDTH), max(map(len, numbers))
    lines = [
        f"  {filter:{width}}  {number:>{digits}} {'event' if number == '1' else 'events'}"
        for filter, number in zip(filters, numbers, strict=True)
    ]
    return "\n".join(["did you mean", *lines])


class _Search:
    """Makes candidates for one filter, and counts their events."""

    def __init__(self, names: Names, runs: Sequence[RunTimes], count: Count, deadline: float) -> None:
        self._names, self._runs, self._count, self._deadline = names, runs, count, deadline
        self._leaves: list[Compare] = []
        # by id(): parts that find nothing by themselves, and parts that do; others are unknown
        self._dead: set[int] = set()
        self._alive: set[int] = set()
        # whether names tell that such an event exists; None: they do not tell, or time is over
        self._known: dict[Compare, bool | None] = {}
        self._made: dict[int, list[Replacement]] = {}
        self._first = _Change(0.0, {})  # the nearest change of all parts that must change

    def over(self) -> bool:
        return time.monotonic() >= self._deadline

    def count(self, root: Node, at_most: int) -> Found:
        """Counts events, within a share of the time, so that other candidates have theirs."""
        now = time.monotonic()
        try:
            query = compile(Filter("", root), self._runs)
        except FilterError:  # too entangled
            return Found(0, False)
        return self._count(query.where, query.parameters, at_most, now + (self._deadline - now) * _SHARE)

    def _named(self, leaf: Compare) -> bool | None:
        """can_match, once for each comparison."""
        if leaf not in self._known:
            self._known[leaf] = None if self.over() else can_match(leaf, self._names)
        return self._known[leaf]

    def _finds(self, node: Node) -> bool | None:
        """Whether such an event exists. None: the time was over first."""
        known = self._named(node) if isinstance(node, Compare) else None
        if known is None and not self.over():
            events, all = self.count(node, 1)
            known = True if events else False if all else None
        return known

    def by_names(self, root: Node) -> Iterator[_Candidate]:
        """Candidates that change all parts whose names do not exist."""
        self._leaves = list(islice(_leaves(root), _PARTS_MAX))
        self._dead = {id(leaf) for leaf in self._leaves if self._named(leaf) is False}
        yield from self._changed(root)

    def by_counts(self, root: Node) -> Iterator[_Candidate]:
        """Candidates that change all parts that find nothing by themselves."""
        before = self._dead
        finds = {id(leaf): self._finds(leaf) for leaf in self._leaves}
        self._dead = {leaf for leaf, found in finds.items() if found is False}
        self._alive = {leaf for leaf, found in finds.items() if found}
        if self._dead != before:
            yield from self._changed(root)

    def _changed(self, root: Node) -> Iterator[_Candidate]:
        changes = [
            change
            for needed in islice(_needed(root, self._dead), _NEEDED_MAX)
            for change in self._together([leaf for leaf in self._leaves if id(leaf) in needed])
        ]
        changes.sort(key=lambda change: change.cost)
        self._first = changes[0] if changes else _Change(0.0, {})
        for cost, changed, ladder in changes:
            yield _Candidate(cost, _rebuilt(root, changed), ladder)

    def further(self, root: Node) -> Iterator[_Candidate]:
        """Candidates that change one more part, if the others were not enough."""
        first = self._first
        for cost, changed in self._other_arguments(root):
            yield _Candidate(first.cost + cost, _rebuilt(root, first.nodes | changed))
        changes = [
            _Change(one.cost, {id(leaf): one.node}, one.ladder)
            for leaf in self._leaves
            for one in self._replacements(leaf)
        ]
        for node in _ands(root):
            if all(id(leaf) in self._alive for leaf in _leaves(node)):
                changes.append(_Change(_EITHER, {id(node): Or(node.operands)}))
            changes += [_Change(_DROPPED, {id(part): None}) for part in node.operands]
        for cost, changed, ladder in sorted(changes, key=lambda change: change.cost):
            if not changed.keys() & first.nodes.keys():
                yield _Candidate(first.cost + cost, _rebuilt(root, first.nodes | changed), ladder)

    def _replacements(self, leaf: Compare) -> list[Replacement]:
        """The replacements of a comparison, made once. Ladders begin with the step that finds
        something by itself. Empty if the time is over."""
        if id(leaf) not in self._made:
            found = [] if self.over() else replacements(leaf, self._names, self._runs)
            steps = [one for one in found if one.ladder == id(leaf)]
            first = bisect_left(steps, True, key=lambda one: self._finds(one.node or leaf) is not False)
            self._made[id(leaf)] = [one for one in found if one not in steps[:first]]
        return self._made[id(leaf)]

    def _together(self, leaves: Sequence[Compare]) -> Iterator[_Change]:
        """Ways to change all of these at once."""
        if not leaves:
            return
        most = max(int(_TOGETHER_MAX ** (1 / len(leaves))), 2)
        choices = []
        for leaf in leaves:
            found = self._replacements(leaf)
            choices.append([*found[: most if len(leaves) > 1 else None], Replacement(_DROPPED, None)])
        for chosen in islice(product(*choices), _TOGETHER_MAX):
            nodes = {id(leaf): one.node for leaf, one in zip(leaves, chosen, strict=True)}
            ladder = tuple(one.ladder or one.node for one in chosen)
            climbs = any(one.ladder for one in chosen)
            costs = sorted((one.cost for one in chosen), reverse=True)
            cost = costs[0] + _MORE * sum(costs[1:]) + _LEFT * len(self._dead - nodes.keys())
            yield _Change(cost, nodes, ladder if climbs else None)

    def _other_arguments(self, root: Node) -> Iterator[tuple[float, _Changes]]:
        """Changes of the argument: others may have the value."""
        for node in _ands(root):
            asked = [leaf for leaf in node.operands if isinstance(leaf, Compare)]
            if any(leaf.field in ("value", "type") for leaf in asked):
                for leaf in asked:
                    if leaf.field == "arg" and leaf.operator in ("==", "in"):
                        for name in islice(self._arguments(root, leaf), _ARGUMENTS_MAX):
                            made = Compare("arg", "==", (Constant(pattern_of(name)),))
                            yield _OTHER_ARGUMENT, {id(leaf): made}
                        yield _ANY_ARGUMENT, {id(leaf): None}  # names of logged values are unknown

    def _arguments(self, root: Node, leaf: Compare) -> Iterator[str]:
        """Names that fit a comparison, found by halving the set of all names until one is left."""

        def finds(names: Sequence[str]) -> bool:
            among = Compare("arg", "in", tuple(Constant(pattern_of(name)) for name in names))
            tried = _rebuilt(root, self._first.nodes | {id(leaf): among})
            return bool(tried and not self.over() and self.count(tried, 1).events)

        left = list(self._names.arguments)
        while left and finds(left):
            some = left
            while len(some) > 1 and not self.over():
                half = some[: len(some) // 2]
                some = half if finds(half) else some[len(half) :]
            yield some[0]
            left.remove(some[0])


# ---- trees --------------------------------------------------------------------------------


def _leaves(node: Node) -> Iterator[Compare]:
    """The comparisons outside of any `not`: a `not` of one that finds nothing finds everything."""
    if isinstance(node, Compare):
        yield node
    elif isinstance(node, (And, Or)):
        for operand in node.operands:
            yield from _leaves(operand)


def _ands(node: Node) -> Iterator[And]:
    if isinstance(node, (And, Or)):
        if isinstance(node, And) and len(node.operands) > 1:
            yield node
        for operand in node.operands:
            yield from _ands(operand)


def _needed(node: Node, dead: set[int]) -> Iterator[frozenset[int]]:
    """Sets of parts: the node finds nothing unless all parts of one set change."""
    if isinstance(node, Or):
        branches = [list(islice(_needed(operand, dead), _NEEDED_MAX)) for operand in node.operands]
        yield from chain.from_iterable(branches)
        if 1 < len(branches) <= _BRANCHES_MAX and all(branch[0] for branch in branches):
            yield frozenset().union(*(branch[0] for branch in branches))  # not needed, but meant
    elif isinstance(node, And):
        operands = [list(islice(_needed(operand, dead), _NEEDED_MAX)) for operand in node.operands]
        for sets in product(*operands):
            yield frozenset().union(*sets)
    else:
        yield frozenset({id(node)} & dead)


def _rebuilt(node: Node, changed: _Changes) -> Node | None:
    """The tree with other nodes in the place of some; None: nothing is left."""
    if id(node) in changed:
        return changed[id(node)]
    if isinstance(node, (And, Or)):
        made = [_rebuilt(operand, changed) for operand in node.operands]
        kept = tuple(operand for operand in made if operand)
        return replace(node, operands=kept) if kept else None
    return node
