"""A client's breakpoints: at lines, functions, exceptions, and changes of variables.

`breakpoints.resume` finds their hits. What it does not know is added here: messages instead of
stops, conditions on the number of hits, and exceptions that are raised. Hits are counted over the
whole recording, so that a walk backwards stops at the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, NamedTuple

from .. import breakpoints as core
from ..expressions import ExpressionError, parse
from ..follow import Follower, Run, calls
from ..history import History, quoted
from ..moment import Moment, after, moments
from ..state import Item, outcome, variables
from .files import Files
from .protocol import Fields, RequestError
from .view import Shown, View
from .wanted import Wanted, counts, message_of, watch

FILTERS = [
    {"filter": "raised", "label": "Raised exceptions", "default": False},
    {"filter": "uncaught", "label": "Uncaught exceptions", "default": True},
]
_MOST = 500  # breakpoints in a request
_MOST_HITS = 100_000  # that are counted


class Stop(NamedTuple):
    """Where a walk stops, and what the event says of it."""

    moment: Moment
    reason: str
    description: str
    more: dict[str, Any]


class Stops:
    """All breakpoints of a session. log: shows the client a text."""

    def __init__(self, history: History, files: Files, view: View, log: Callable[[str], None]) -> None:
        self._history, self._files, self._view, self._log = history, files, view, log
        self._last = 0
        self._lines: dict[str, list[Wanted]] = {}
        self._functions: list[Wanted] = []
        self._exceptions: list[Wanted] = []
        self._changes: list[Wanted] = []
        self._uncaught = True

    # ---- what the client sets ----

    def set_lines(self, source: Fields, wanted: list[Fields]) -> list[dict[str, Any]]:
        """All breakpoints of a file, in the place of those that it had."""
        file = self._files.recorded(source)
        if file is None:
            return [self._refused("nothing of this file was recorded") for _ in _few(wanted)]
        kept: list[Wanted] = []
        answers = [self._line(file, each, kept) for each in _few(wanted)]
        self._lines[file] = kept
        return answers

    def _line(self, file: str, wanted: Fields, kept: list[Wanted]) -> dict[str, Any]:
        asked = wanted.number("line")
        line, note = self._files.nearest(file, asked), ""
        match = core.line_predicate(file, line or 0)
        if line is None:
            if self._history.has_any(f'(and (= kind "line") (= file {quoted(file)}))'):
                return self._refused(f"line {asked} did not run, nor one near it", line=asked)
            line = self._files.first_line_of_function(file, asked)
            match = core.line_predicate(file, line or 0).replace('"line"', '"call"', 1)
            if line is None or not self._history.has_any(match):
                return self._refused(f"line {asked} did not run", line=asked)
            note = "lines were not recorded here: it stops where the function is called"
        elif line != asked:
            note = f"line {asked} did not run; line {line} did"
        made = self._made(wanted, "breakpoint", core.Breakpoint("", match, place=(file, line)))
        if isinstance(made, str):
            return self._refused(made, line=asked)
        kept.append(made)
        told = {"id": made.id, "verified": True, "line": line, "source": self._files.source(file)}
        return told | ({"message": note} if note else {})

    def set_functions(self, wanted: list[Fields]) -> list[dict[str, Any]]:
        """All breakpoints of functions: `name`, `Class.name`, `module.Class.name`, `Class.%`."""
        kept: list[Wanted] = []
        answers = []
        for each in _few(wanted):
            name = each.text("name").strip()
            try:
                if len(name.split()) != 1 or ":" in name or name.isdigit():
                    raise core.BreakpointError("the name of a function is expected, such as Class.name")
                made = self._made(each, "function breakpoint", core.parse(name, self._history, "", None))
            except core.BreakpointError as error:
                made = error.message
            if isinstance(made, str):
                answers.append(self._refused(made))
            else:
                kept.append(made)
                answers.append({"id": made.id, "verified": True})
        self._functions = kept
        return answers

    def set_exceptions(self, filters: list[str]) -> list[dict[str, Any]]:
        """The filters of FILTERS that are on."""
        known = [each["filter"] for each in FILTERS]
        self._uncaught, self._exceptions = "uncaught" in filters, []
        if "raised" in filters:
            self._last += 1
            own = "" if self._history.everything else " (= mine 1)"
            raised = core.Breakpoint("", f'(and (= kind "raise"){own})')
            self._exceptions.append(Wanted(self._last, "exception", raised, self._history.is_raised))
        return [
            {"verified": True} if each in known else self._refused(f"there is no filter {each[:100]}")
            for each in filters[:_MOST]
        ]

    def data_info(self, shown: Shown, name: str) -> dict[str, Any]:
        """Whether a variable's changes can be stopped at: those in all calls of the function that
        are as deep in their thread."""
        entered = shown.entered
        if name not in self._view.named(shown):
            return {"dataId": None, "description": f"{name} is no variable of {entered.func}"}
        return {
            "dataId": json.dumps([name, entered.depth, entered.func, entered.file]),
            "description": f"{name} in {entered.func}",
            "accessTypes": ["write"],
        }

    def set_data(self, wanted: list[Fields]) -> list[dict[str, Any]]:
        """All breakpoints at changes, by ids that `data_info` has told."""
        kept: list[Wanted] = []
        answers = []
        for each in _few(wanted):
            found = watch(each.text("dataId"))
            made = self._made(each, "data breakpoint", found) if found else "there is no such variable"
            if isinstance(made, str):
                answers.append(self._refused(made))
            else:
                kept.append(made)
                answers.append({"id": made.id, "verified": True})
        self._changes = kept
        return answers

    def _made(self, wanted: Fields, reason: str, of: core.Breakpoint | core.Watch) -> Wanted | str:
        """The breakpoint, or what is wrong with it."""
        condition, count = wanted.text("condition", "").strip(), wanted.text("hitCondition", "").strip()
        try:
            parsed = parse(condition) if condition else None
            message = message_of(wanted.text("logMessage", ""))
        except ExpressionError as error:
            return error.message
        counted = counts(count) if count else None
        if count and counted is None:
            return f"{count[:100]} is no number of hits: 5, >= 5, or % 5 for each fifth one"
        accepts: Callable[[Moment], bool] | None = None
        if parsed is not None and isinstance(of, core.Breakpoint):
            of = core.Breakpoint(of.text, of.match, parsed, place=of.place)
        elif parsed is not None:
            accepts = lambda found: parsed.holds(self._variables(found))  # noqa: E731
        self._last += 1
        return Wanted(self._last, reason, of, accepts, counted, message)

    def _refused(self, message: str, **more: Any) -> dict[str, Any]:
        self._last += 1
        return {"id": self._last, "verified": False, "message": message, **more}

    # ---- where a walk stops ----

    def between(self, start: Moment, end: Moment, backwards: bool) -> Stop | None:
        """The first stop of a thread on a step from one moment to another one, if there is one."""
        every = self._every()
        if not every:
            return None
        met = f"(or {' '.join(each.of.match for each in every)})"
        query = after(self._history.events(met, start.stream), start, backwards)
        query = query.also("time >= ?" if backwards else "time <= ?", end.time)
        found = moments(self._history.database, query, backwards, 1)
        if not found or not _is_before(found[0], end, backwards):
            return None
        return self.resume(start, backwards, end)

    def _every(self) -> list[Wanted]:
        of_lines = [each for some in self._lines.values() for each in some]
        return [*of_lines, *self._functions, *self._exceptions, *self._changes]

    def resume(self, start: Moment, backwards: bool, bound: Moment | None = None) -> Stop | None:
        """The next stop, of any thread. bound: of this one's thread, and before it. On the way
        breakpoints with a message show it."""
        every, stream = self._every(), bound.stream if bound else None
        best = self._plain([each for each in every if each.is_plain], start, backwards, stream)
        if best is not None and bound is not None and not _is_before(best.moment, bound, backwards):
            best = None
        for each in every:
            if not each.is_plain and not each.message:
                found = self._hit(each, start, backwards, best.moment if best else bound, stream)
                best = self._stop(found, each) if found else best
        end = best.moment if best else bound
        shown = merge(*(self._messages(each, start, backwards, end) for each in every if each.message))
        for *_, text in reversed(list(shown)) if backwards else shown:
            self._log(text)
        return best

    def _plain(
        self, wanted: Sequence[Wanted], start: Moment, backwards: bool, stream: int | None
    ) -> Stop | None:
        if not wanted and not self._uncaught:
            return None
        for found, reason in self._walk([each.of for each in wanted], start, backwards, stream):
            for each in wanted:
                if each.of is reason:
                    return self._stop(found, each)
            return self._stop(found, None)
        return None

    def _stop(self, found: Moment, of: Wanted | None) -> Stop:
        if of is None or of.reason == "exception":
            item = outcome(self._history.database, found)
            more = {"text": item.value} if item else {}
            return Stop(found, "exception", "uncaught exception" if of is None else "exception", more)
        return Stop(found, of.reason, "", {"hitBreakpointIds": [of.id]})

    def _walk(
        self,
        of: Sequence[core.Breakpoint | core.Watch],
        start: Moment,
        backwards: bool,
        stream: int | None,
    ) -> Iterator[tuple[Moment, core.Breakpoint | core.Watch | None]]:
        """Hits behind a moment, and whose they are; None: an uncaught exception."""
        at = start
        while found := core.resume(self._history, at, of, backwards, self._uncaught, stream):
            at = found.moment
            yield at, found.reason

    # ---- hits that are looked at one by one ----

    def _hit(
        self, wanted: Wanted, start: Moment, backwards: bool, bound: Moment | None, stream: int | None
    ) -> Moment | None:
        """The next hit of a breakpoint that is not plain, before the bound."""
        for event in self._events(wanted, start, backwards, bound):
            if bound is not None and not _is_before(event, bound, backwards):
                return None
            found = self._history.stop_of(event)
            if found.id == start.id or not _is_before(start, found, backwards):
                continue
            if stream is None or found.stream == stream:
                return found
        return None

    def _events(
        self, wanted: Wanted, start: Moment, backwards: bool, bound: Moment | None
    ) -> Iterator[Moment]:
        if wanted.count is None:
            for found in self._history.hits(start, wanted.of.match, backwards):
                if wanted.accepts is None or wanted.accepts(found):
                    yield found
            return
        for place in self._counted(wanted, start, backwards, bound):
            at = self._history.at(place[1])
            if at is not None:
                yield at

    def _counted(
        self, wanted: Wanted, start: Moment, backwards: bool, bound: Moment | None
    ) -> Iterator[tuple[int, int]]:
        """The places of hits behind a moment whose number is one to stop at. They are counted once,
        from the recording's start, and as far as needed."""
        assert wanted.count is not None
        until = _place(start) if backwards else _place(bound) if bound else None
        if backwards:
            self._count_up_to(wanted, until)
            for index in range(len(wanted.counted) - 1, -1, -1):
                if wanted.counted[index] < _place(start) and wanted.count(index + 1):
                    yield wanted.counted[index]
            return
        index = 0
        while index < len(wanted.counted) or self._count_one(wanted, until):
            if wanted.counted[index] > _place(start) and wanted.count(index + 1):
                yield wanted.counted[index]
            index += 1

    def _count_up_to(self, wanted: Wanted, until: tuple[int, int] | None) -> None:
        while self._count_one(wanted, until):
            pass

    def _count_one(self, wanted: Wanted, until: tuple[int, int] | None) -> bool:
        """Counts one more hit, unless the last one lies behind a place."""
        counted = wanted.counted
        if counted and until is not None and counted[-1] > until:
            return False
        if len(counted) >= _MOST_HITS:
            raise RequestError(f"more than {_MOST_HITS:,} hits are not counted")
        if wanted.hits is None:
            wanted.hits = self._runs(wanted, counted[-1] if counted else (0, 0))
        try:
            run = next(wanted.hits, None)
        except BaseException:  # a generator ends where it was interrupted
            wanted.hits = None
            raise
        if run is None:
            wanted.hits = None  # a program that still runs may hit it again
            return False
        counted.append((run.time, run.id))
        return True

    def _messages(
        self, wanted: Wanted, start: Moment, backwards: bool, end: Moment | None
    ) -> Iterator[tuple[tuple[int, int], int, str]]:
        """The messages of a breakpoint on a way, with their places, in the order of time."""
        low, high = (end, start) if backwards else (start, end)
        if wanted.count is not None:
            places = self._counted(wanted, start, backwards, end)
            for place in sorted(places) if backwards else places:
                if high is not None and place >= _place(high):
                    return
                found = self._history.at(place[1])
                if found is not None and (low is None or place > _place(low)):
                    yield place, wanted.id, wanted.filled(self._variables(found))
            return
        for run in self._runs(wanted, _place(low) if low else (0, 0)):
            if high is not None and (run.time, run.id) >= _place(high):
                return
            yield (run.time, run.id), wanted.id, wanted.filled(run.variables)

    def _runs(self, wanted: Wanted, start: tuple[int, int]) -> Iterator[Run]:
        """The hits behind a place, with their variables, by one scan."""
        of, names = wanted.of, wanted.names
        if isinstance(of, core.Watch):
            begin = self._history.first()
            for event in self._history.hits(begin, of.match) if begin else ():
                if _place(event) > start and (wanted.accepts is None or wanted.accepts(event)):
                    yield Run(event.id, event.time, {})
            return
        if isinstance(of.place, tuple) and of.match == core.line_predicate(*of.place):
            runs = Follower(self._history, of.place, names, None).runs(start)
        else:
            runs = calls(self._history, of.match, names, start, False, None)
        for run in runs:
            if of.condition is None or of.condition.holds(run.variables):
                yield run

    def _variables(self, at: Moment) -> Mapping[str, Item]:
        return {each.name: each.value for each in variables(self._history.database, at)}


def _place(moment: Moment) -> tuple[int, int]:
    return moment.time, moment.id


def _is_before(one: Moment, other: Moment, backwards: bool) -> bool:
    return one.id != other.id and (_place(one) > _place(other)) == backwards


def _few(wanted: list[Fields]) -> list[Fields]:
    if len(wanted) > _MOST:
        raise RequestError(f"at most {_MOST} breakpoints are taken at once")
    return wanted
