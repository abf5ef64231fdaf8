"""Filters that find something, near one that found nothing.

Called by `print` and by the screen. A part of a filter is replaced, left out, or joined with `or`;
each candidate is really counted, nearest first, until there are enough or the time is over. What
one comparison could be replaced by is in `alternatives`. No SQL in here.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, product
from typing import NamedTuple, TypeAlias

from .alternatives import Alternative, alternatives, can_match
from .complete import pattern_of
from .filter_sql import compile
from .filter_tree import And, Compare, Constant, Filter, FilterError, Node, Or, replace, unparse
from .filter_units import Run
from .names import Names

SECONDS = 2.0
AT_MOST = 100_000  # events that are counted

# How far from what was written; see also alternatives.
_OTHER_ARGUMENT, _ANY_ARGUMENT, _EITHER, _DROPPED = 2.5, 2.6, 4.5, 5.0
_MORE, _LEFT = 0.1, 0.5  # for each further part that changes, that finds nothing and does not change
_PARTS_MAX = 50  # comparisons that are looked at
_NEEDED_MAX = 20  # ways to choose the parts that have to change ...
_BRANCHES_MAX = 5
_TOGETHER_MAX = 200  # ... and to change them
_ARGUMENTS_MAX = 2
_SHARE = 0.25
_WIDTH = 60


class Found(NamedTuple):
    """How many events there are. `all`: no more than these; otherwise the bound or the time was reached."""

    events: int
    all: bool


# where, parameters, at most so many, until when (by time.monotonic())
Count: TypeAlias = Callable[[str, "tuple[int | str, ...]", int, float], Found]
_Changes: TypeAlias = "dict[int, Node | None]"  # by id() of a node: what takes its place


class Correction(NamedTuple):
    """Another filter and how many events it finds; `all`: no more than these."""

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
    ladder: object = None  # of the steps of one only the first that finds something is of use


def corrections(
    tree: Filter,
    names: Names,
    runs: Sequence[Run],
    count: Count,
    limit: int = 5,
    deadline: float | None = None,
) -> list[Correction]:
    """At most `limit` filters that find something, the nearest first, then the one that finds most.

    deadline: by time.monotonic(), SECONDS from now where it is not given.
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
    """What to tell about a filter that finds nothing: lines that are safe for a terminal."""
    from .render import printable

    lines = [f"no event matches: {printable(text)}"]
    if found:
        lines.append("did you mean")
        filters = [printable(correction.text) for correction in found]
        numbers = [f"{events:,}{'' if all else ' or more'}" for _, events, all in found]
        width, digits = min(max(map(len, filters)), _WIDTH), max(map(len, numbers))
        lines += [
            f"  {filter:{width}}  {number:>{digits}} {'event' if number == '1' else 'events'}"
            for filter, number in zip(filters, numbers, strict=True)
        ]
    return "\n".join(lines)


class _Search:
    """Makes candidates for one filter, and counts."""

    def __init__(self, names: Names, runs: Sequence[Run], count: Count, deadline: float) -> None:
        self._names, self._runs, self._count, self._deadline = names, runs, count, deadline
        self._leaves: list[Compare] = []
        # those that find nothing by themselves, and those that do, by id(); of others it is not known
        self._dead: set[int] = set()
        self._alive: set[int] = set()
        self._known: dict[Compare, bool | None] = {}  # whether the names tell that there is such an event
        self._made: dict[int, list[Alternative]] = {}
        self._first = _Change(0.0, {})  # the nearest that changes all that has to

    def over(self) -> bool:
        return time.monotonic() >= self._deadline

    def count(self, root: Node, at_most: int) -> Found:
        """No count takes more than a share of the time, so that others have theirs."""
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
        """Whether there is such an event. None: the time is over before that is known."""
        known = self._named(node) if isinstance(node, Compare) else None
        if known is None and not self.over():
            events, all = self.count(node, 1)
            known = True if events else False if all else None
        return known

    def by_names(self, root: Node) -> Iterator[_Candidate]:
        """Parts whose names do not exist have to change, all of them."""
        self._leaves = list(islice(_leaves(root), _PARTS_MAX))
        self._dead = {id(leaf) for leaf in self._leaves if self._named(leaf) is False}
        yield from self._changed(root)

    def by_counts(self, root: Node) -> Iterator[_Candidate]:
        """So do parts that find nothing by themselves."""
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
        """Where that is not it, or not enough: one more part."""
        first = self._first
        for cost, changed in self._other_arguments(root):
            yield _Candidate(first.cost + cost, _rebuilt(root, first.nodes | changed))
        changes = [
            _Change(one.cost, {id(leaf): one.node}, one.ladder)
            for leaf in self._leaves
            for one in self._alternatives(leaf)
        ]
        for node in _ands(root):
            if all(id(leaf) in self._alive for leaf in _leaves(node)):
                changes.append(_Change(_EITHER, {id(node): Or(node.operands)}))
            changes += [_Change(_DROPPED, {id(part): None}) for part in node.operands]
        for cost, changed, ladder in sorted(changes, key=lambda change: change.cost):
            if not changed.keys() & first.nodes.keys():
                yield _Candidate(first.cost + cost, _rebuilt(root, first.nodes | changed), ladder)

    def _alternatives(self, leaf: Compare) -> list[Alternative]:
        """Once for each. Ladders begin with the step that finds something by itself. Nothing where the
        time is over."""
        if id(leaf) not in self._made:
            found = [] if self.over() else alternatives(leaf, self._names, self._runs)
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
            found = self._alternatives(leaf)
            choices.append([*found[: most if len(leaves) > 1 else None], Alternative(_DROPPED, None)])
        for chosen in islice(product(*choices), _TOGETHER_MAX):
            nodes = {id(leaf): one.node for leaf, one in zip(leaves, chosen, strict=True)}
            ladder = tuple(one.ladder or one.node for one in chosen)
            climbs = any(one.ladder for one in chosen)
            costs = sorted((one.cost for one in chosen), reverse=True)
            cost = costs[0] + _MORE * sum(costs[1:]) + _LEFT * len(self._dead - nodes.keys())
            yield _Change(cost, nodes, ladder if climbs else None)

    def _other_arguments(self, root: Node) -> Iterator[tuple[float, _Changes]]:
        """The value that was asked for may be that of other arguments."""
        for node in _ands(root):
            asked = [leaf for leaf in node.operands if isinstance(leaf, Compare)]
            if any(leaf.field in ("value", "type") for leaf in asked):
                for leaf in asked:
                    if leaf.field == "arg" and leaf.operator in ("==", "in"):
                        for name in islice(self._arguments(root, leaf), _ARGUMENTS_MAX):
                            made = Compare("arg", "==", (Constant(pattern_of(name)),))
                            yield _OTHER_ARGUMENT, {id(leaf): made}
                        yield _ANY_ARGUMENT, {id(leaf): None}  # names of what is logged are not known

    def _arguments(self, root: Node, leaf: Compare) -> Iterator[str]:
        """Names that could stand in a comparison: all names are halved until one is left."""

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
    """The comparisons, but for those in a `not`: where they find nothing, it finds everything."""
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
    """Sets of parts; unless all parts of one of the sets change, it finds nothing."""
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
