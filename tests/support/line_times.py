"""Runs and times by line, from the events alone: what the table `line` has to tell.

Written for clearness, not for speed: first the stretches of time in which each line ran, then their
sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

ENTERS, LEAVES = ("call", "resume", "throw"), ("return", "exception", "yield")


class Told(NamedTuple):
    """An event; the events of a recording come in the order of time and id."""

    run: int
    pid: int
    tid: int
    kind: str
    func: str
    line: int
    depth: int
    time: int
    trailing: int


Line = tuple[int, str, int]  # run, function, line
Numbers = tuple[int, int, int, int | None]  # count, own, total, average


@dataclass
class Stretch:
    """A line from its event, or from a resume, to the next event of its call. Places are numbers of
    events; end -1: nobody knows when it ended."""

    thread: tuple[int, int, int]
    begin: int
    since: int
    goes_on: bool
    counts: bool
    calls: list[int] = field(default_factory=list)  # ns of each call made in it
    is_blurred: bool = False
    end: int = -1
    forgotten: int = 1 << 60
    took: int = 0


@dataclass
class Open:
    """A function that is open."""

    func: str
    depth: int
    since: int | None
    line: int = 0
    stretch: Stretch | None = None


class _Oracle:
    def __init__(self, events: Sequence[Told], counts: Callable[[Told], bool]) -> None:
        self.events, self.counts_event = events, counts
        self.stretches: dict[Line, list[Stretch]] = defaultdict(list)
        self.counts: dict[Line, int] = defaultdict(int)
        self.waiting: dict[tuple[int, int, str], list[tuple[int, bool]]] = defaultdict(list)
        self.stacks: dict[tuple[int, int, int], list[Open]] = defaultdict(list)
        self.lossy: set[int] = set()
        for place, event in enumerate(events):
            self.take(place, event)

    def start(self, place: int, event: Told, call: Open, line: int, goes_on: bool, counts: bool) -> None:
        call.line = line
        call.stretch = Stretch(event[:3], place, event.time, goes_on, counts)
        self.stretches[event.run, call.func, line].append(call.stretch)

    @staticmethod
    def stop(place: int, event: Told, call: Open) -> None:
        if call.stretch:
            call.stretch.end = call.stretch.forgotten = place
            call.stretch.took = event.time - call.stretch.since

    def drop(self, place: int, event: Told, depth: int) -> None:
        stack = self.stacks[event[:3]]
        while stack and stack[-1].depth >= depth:
            call = stack.pop()
            if call.stretch and call.stretch.end < 0:
                call.stretch.forgotten = place

    def blur(self, event: Told) -> None:
        stack = self.stacks[event[:3]]
        if stack and stack[-1].depth == event.depth - 1 and stack[-1].stretch:
            stack[-1].stretch.is_blurred = True

    def take(self, place: int, event: Told) -> None:
        stack = self.stacks[event[:3]]
        waiting = self.waiting[event.run, event.pid, event.func]
        if event.kind == "lost":
            self.lossy.add(event.run)
            self.drop(place, event, 0)
        elif event.kind in ENTERS:
            self.drop(place, event, event.depth)
            stack.append(call := Open(event.func, event.depth, event.time))
            if event.kind != "call" and waiting:
                is_clear = len(set(waiting)) == 1 and waiting[0][0] and event.run not in self.lossy
                line, counts = waiting.pop()
                if is_clear:
                    self.start(place, event, call, line, goes_on=True, counts=counts)
                elif waiting:  # which one has gone is not known: none is, until all have
                    waiting[:] = [(0, False)] * len(waiting)
        elif event.kind in LEAVES:
            self.drop(place, event, event.depth + 1)
            took = None
            line, counts = 0, False
            if stack and (stack[-1].depth, stack[-1].func) == (event.depth, event.func):
                call = stack.pop()
                self.stop(place, event, call)
                if call.stretch:
                    line, counts = call.line, call.stretch.counts
                took = None if call.since is None else event.time - call.since
            self.drop(place, event, event.depth)
            if took is None:
                self.blur(event)
            elif stack and stack[-1].depth == event.depth - 1 and stack[-1].stretch:
                stack[-1].stretch.calls.append(took)
            if event.kind == "yield":
                waiting.append((line, counts))
        elif event.kind == "line" and not event.trailing:
            self.line(place, event)

    def line(self, place: int, event: Told) -> None:
        stack = self.stacks[event[:3]]
        self.drop(place, event, event.depth + 1)
        if not (stack and (stack[-1].depth, stack[-1].func) == (event.depth, event.func)):
            self.drop(place, event, event.depth)
            self.blur(event)
            stack.append(Open(event.func, event.depth, None))
        call = stack[-1]
        self.stop(place, event, call)
        counts = self.counts_event(event)
        self.counts[event.run, event.func, event.line] += counts
        self.start(place, event, call, event.line, goes_on=False, counts=counts)


def _is_inner(one: Stretch, stretches: list[Stretch]) -> bool:
    return any(
        other is not one
        and other.thread == one.thread
        and other.begin < one.begin
        and other.forgotten > one.end
        for other in stretches
    )


def expected(
    events: Sequence[Told], counts: Callable[[Told], bool] = lambda event: True
) -> dict[Line, Numbers]:
    """The numbers of each line that ran. counts: whether a run counts that begins with an event."""
    oracle = _Oracle(events, counts)
    found: dict[Line, Numbers] = {}
    for line, every in oracle.stretches.items():
        stretches = [each for each in every if each.counts]
        ended = [each for each in stretches if each.end >= 0]
        own = sum(each.took - sum(each.calls) for each in ended if not each.is_blurred)
        total = sum(each.took for each in ended if not _is_inner(each, stretches))
        timed = sum(not each.goes_on for each in ended)
        average = sum(each.took for each in ended) // timed if timed else None
        if oracle.counts[line]:
            found[line] = oracle.counts[line], own, total, average
    return found
