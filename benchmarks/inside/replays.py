"""Walks through a recording with lines, as `pytrace replay` does between a key and its screen, and
tells how long each way took.

replay.py starts it as `replays.py SPEC`. SPEC is JSON:

    database   a recording of longrun.py with lines
    rounds     random places that each step is made from
    result     the file for the answers, JSON too: {steps, continues, changes}; in each a list by
               name: of a step pairs of seconds (the way, the scene), of the others
               triples of
               seconds, events passed, and whether something was found

The clock is elapsed time, or with $BENCHMARK_CLOCK the processor time of all threads of a scan: on
two calm processors a long scan takes half of it.
"""

import json
import os
import random
import resource
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from time import CLOCK_PROCESS_CPUTIME_ID, clock_gettime, perf_counter
from typing import Any, NamedTuple

from pytracer.reader.database import Database
from pytracer.reader.query import Query
from pytracer.reader.replay.breakpoints import Breakpoint, Watch, line_predicate, resume
from pytracer.reader.replay.expressions import parse as parse_expression
from pytracer.reader.replay.history import History
from pytracer.reader.replay.moment import Moment, moments
from pytracer.reader.replay.screen.scene import Sight
from pytracer.reader.replay.state import entered, variables

LOOP = "long_loop"  # longrun.py: one call with a tenth of all events
BEYOND = 999_999  # a line that no file has
Find = Callable[[History, Moment, bool], Moment | None]
STEPS: dict[str, Find] = {
    "n": History.next, "s": History.step, "o": History.finish, "i": History.iteration, "e": History.raised,
}  # fmt: skip


def seconds() -> float:
    if os.environ.get("BENCHMARK_CLOCK") == "thread":
        return clock_gettime(CLOCK_PROCESS_CPUTIME_ID)
    return perf_counter()


class Places(NamedTuple):
    """Moments that the ways begin at."""

    first: Moment
    last: Moment
    loop: tuple[Moment, Moment]  # the first line of the long loop's call, and its end
    main: Moment  # the last line of longrun.main


class Walker:
    def __init__(self, path: str) -> None:
        self.database = Database(path)
        self.run = self.database.runs()[-1]
        self.history = History(self.database, self.run.id)
        self.sight = Sight(self.run, coloured=False)
        self.places = self._places()

    def _places(self) -> Places:
        first, last = self.history.first(), self.history.first(backwards=True)
        call = self._only(f"kind = 'call' AND func = '{LOOP}'", False)
        line = self.history.step(call)
        main = self._only("kind = 'line' AND func = 'main' AND file LIKE '%longrun.py'", True)
        end = self.history.finish(call)
        assert first is not None
        assert last is not None
        assert line is not None
        assert end is not None
        return Places(first, last, (line, end), main)

    def _only(self, where: str, backwards: bool) -> Moment:
        return moments(self.database, Query(f"run = {self.run.id} AND {where}", ()), backwards, 1)[0]

    def passed(self, one: Moment, other: Moment) -> int:
        """Events between two moments, by the rows of segments."""
        times = sorted((one.time, other.time))
        at = "clock_epoch_ns + (segment.start - clock_epoch_units) * (clock_scale / 4294967296.0)"
        sql = (
            "SELECT coalesce(sum(count), 0) FROM segment JOIN run ON run.id = segment.run WHERE run = ?"
            f" AND {at} BETWEEN ? AND ?"
        )
        return int(self.database.query("i", sql, (self.run.id, *times))[0][0])

    # ---- the ways ----

    def steps(self, rounds: int) -> dict[str, list[tuple[float, float]]]:
        choice, found = random.Random(1), {}
        first, last = self.places.first.time, self.places.last.time
        for _ in range(rounds):
            moment = self.history.at_time(choice.randint(first, last))
            assert moment
            for name, find in STEPS.items():
                for backwards in (False, True):
                    key = name.upper() if backwards else name
                    found.setdefault(key, []).append(self._step(moment, find, backwards))
        return found

    def _step(self, moment: Moment, find: Find, backwards: bool) -> tuple[float, float]:
        """As going() does it: a new History each time, then all that is shown."""
        start = seconds()
        arrived = find(History(self.database, self.run.id), moment, backwards)
        there = seconds()
        if arrived is not None:
            self.sight.look(self.database, arrived)
        return there - start, seconds() - there

    def continues(self) -> dict[str, tuple[float, int, bool]]:
        first, last, (line, _), main = self.places
        body = Breakpoint("", line_predicate(line.file, line.line + 3), place=(line.file, line.line + 3))
        hot = self._busiest()
        busy = Breakpoint("", line_predicate(hot.file, hot.line), place=(hot.file, hot.line))
        never = Breakpoint("", line_predicate(hot.file, BEYOND), place=(hot.file, BEYOND))
        name = variables(self.database, hot)[0].name
        end = Breakpoint("", line_predicate(main.file, main.line), place=(main.file, main.line))

        def when(breakpoint: Breakpoint, condition: str) -> Breakpoint:
            return replace(breakpoint, condition=parse_expression(condition))

        points: dict[str, list[Breakpoint | Watch]] = {
            "no breakpoint": [],
            "never: a line of the busiest function's file": [never],
            "at the end: a line of `main`": [end],
            "never: the busiest line, its variable == 'never so'": [when(busy, f"{name} == 'never so'")],
            "never: the busiest line, its variable < -12345": [when(busy, f"{name} < -12345")],
            "never: a line of the long loop, number == -1": [when(body, "number == -1")],
            "never: a line of the long loop, number < 0": [when(body, "number < 0")],
            "never: a watched variable of the long loop": [Watch("turns", line.depth, line.func, line.file)],
        }
        found = {}
        for what, each in points.items():
            for backwards in (False, True):
                moment = last if backwards else first
                start = seconds()
                stop = resume(History(self.database, self.run.id), moment, each, backwards, uncaught=True)
                took = seconds() - start
                passed = self.passed(moment, stop.moment if stop else (first if backwards else last))
                found[what + (", backwards" if backwards else "")] = took, passed, stop is not None
        return found

    def _busiest(self) -> Moment:
        """A line that is often the one at a random time, of a function with variables."""
        choice, counts, found = random.Random(2), Counter[tuple[str, int]](), {}
        for _ in range(100):
            time = choice.randint(self.places.first.time, self.places.last.time)
            moment = self.history.at_time(time)
            if moment and moment.kind == "line" and moment.func != LOOP:
                counts[moment.file, moment.line] += 1
                if variables(self.database, moment):
                    found[moment.file, moment.line] = moment
        return max(found.values(), key=lambda each: counts[each.file, each.line])

    def changes(self) -> dict[str, tuple[float, int, bool]]:
        """Where a variable of `main`, or of the long loop, was set last."""
        (_, end), main = self.places.loop, self.places.main
        line = self.history.step(end, backwards=True)
        assert line
        found = {}
        for what, moment, name in (
            ("near: `number` of the long loop", line, "number"),
            ("far: `begun`, a tenth of all events before in the same call", line, "begun"),
            ("never: `nothing` of the long loop", line, "nothing"),
            ("near: `share` of `main`", main, "share"),
            ("far: `turns` of `main`, all events before", main, "turns"),
            ("never: `nothing` of `main`", main, "nothing"),
        ):
            call = next(each for each in entered(self.database, moment.id) if each.depth == moment.depth)
            start = seconds()
            change = History(self.database, self.run.id).change(moment, call, name, backwards=True)
            took = seconds() - start
            found[what] = took, self.passed(moment, change or call), change is not None
        return found


def main() -> None:
    spec = json.loads(sys.argv[1])
    walker = Walker(spec["database"])
    answers: dict[str, Any] = {}
    for what in ("steps", "changes", "continues"):
        answers[what] = walker.steps(spec["rounds"]) if what == "steps" else getattr(walker, what)()
        answers[f"{what}: memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with open(spec["result"], "w") as result:
        json.dump(answers, result)


if __name__ == "__main__":
    main()
