"""`pytrace diff`: what differs between two recordings, of one database or of two.

Functions are compared by their calls and own time (table `hot`), exceptions by type and function.
Then the events of one's own code are read side by side, thread by thread, up to the first one that
differs. Recordings without own code are compared in all of their code. Memory does not grow with
the recordings' length, but with the number of their functions.
"""

from __future__ import annotations

import json
import re
import textwrap
import time
from collections.abc import Iterator
from itertools import zip_longest
from shutil import get_terminal_size
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from ..messages import printable, say
from ..options import UsageError
from .damage import report
from .database import Database
from .output import Output
from .progress import Progress
from .query import Query, as_it_is, pages
from .render import arguments, duration
from .rows import BELOW, LAYER, Row, Run, text
from .sql_output import padded

_SHOWN = 20  # functions and exceptions of each list, as text
_SLOWER_NS = 1_000_000  # a change of own time that is shown
_GAP, _NARROW = "   ", 24  # between two sides; cells of one of them, at least
_VALUE_MAX = 100  # characters of a value that is shown
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_COMPARED = "kind IN ('call', 'return', 'exception', 'yield', 'log')"
_ENDS = ("return", "exception", "yield")

Name: TypeAlias = tuple[str, str]  # module, function
Thread: TypeAlias = tuple[int, str, int]  # process, name, how many of that name came before


class Side(NamedTuple):
    """One of the two recordings."""

    database: Database
    run: Run
    scope: Query  # the compared code


def run(options: SimpleNamespace) -> int:
    """Prints the differences. Returns the exit status: 0 if there are none, else 1. Raises
    DatabaseError, UsageError, OSError."""
    progress = Progress()
    first = Database(options.database, progress.look)
    try:
        second = Database(options.other, progress.look) if options.other else first
        try:
            runs = _chosen(first, second, options)
            facts = compare((first, runs[0]), (second, runs[1]))
            damages = report(first.damages() + (second.damages() if second is not first else []))
        finally:
            if second is not first:
                second.close()
    finally:
        progress.clear()
        first.close()
    output = Output(options.format == "text")
    output.line(json.dumps(facts, indent=2) if options.format == "json" else as_text(facts))
    output.flush()
    for line in damages:
        say(line)
    return 2 if damages else int(_differs(facts))


def _chosen(first: Database, second: Database, options: SimpleNamespace) -> tuple[Run, Run]:
    numbers = options.run
    if second is first:
        runs = first.runs()
        if numbers is None:
            if len(runs) < 2:
                raise UsageError(
                    f"{first.path} has {'one recording' if runs else 'no recording'}: record once more, "
                    "or name a second database"
                )
            return runs[-2], runs[-1]
        if len(numbers) != 2:
            raise UsageError("two recordings of one database are named by --run N,M")
    elif numbers is None:
        numbers = (0, 0)
    elif len(numbers) == 1:
        numbers *= 2
    return _numbered(first, numbers[0]), _numbered(second, numbers[1])


def _numbered(database: Database, number: int) -> Run:
    """The run of this number; 0: the newest."""
    runs = database.runs()
    for run in runs[-1:] if number == 0 else runs:
        if number in (0, run.id):
            return run
    there = ", ".join(str(run.id) for run in runs[-10:]) or "none"
    raise UsageError(f"{database.path} has no run {number or ''}; there are: {there}")


def _has_own(database: Database, run: int) -> bool:
    return bool(database.query("i", "SELECT 1 FROM event WHERE run = ? AND mine = 1 LIMIT 1", (run,)))


# ---- collecting --------------------------------------------------------------------------------


def compare(*recordings: tuple[Database, Run]) -> dict[str, Any]:
    """The differences of two recordings, with the keys of `diff --format json`. Lists of two are of
    A and of B; times are ns."""
    only_mine = any(_has_own(database, run.id) for database, run in recordings)
    a, b = (
        Side(database, run, Query("run = ?", (run.id,)).also("mine = 1" if only_mine else "1"))
        for database, run in recordings
    )
    return {
        "a": _of_side(a),
        "b": _of_side(b),
        "mine": only_mine,
        "functions": _functions(a, b),
        "exceptions": _exceptions(a, b),
        "first": _first(a, b),
    }


def _of_side(side: Side) -> dict[str, Any]:
    run = side.run
    return {"path": side.database.path, "run": run.id, "command": run.command, "started": run.started}


def _functions(a: Side, b: Side) -> list[dict[str, Any]]:
    """The functions whose number of calls differs, or whose own time does by a millisecond; the
    largest change of own time first."""
    found = _hot(a), _hot(b)
    rows = []
    for name in found[0].keys() | found[1].keys():
        calls, own, total = zip(*(of.get(name, (0, 0, 0)) for of in found), strict=True)
        if calls[0] != calls[1] or abs(own[1] - own[0]) >= _SLOWER_NS:
            rows.append(
                {
                    "module": name[0],
                    "func": name[1],
                    "calls": [*calls],
                    "own": [*own],
                    "total": [*total],
                }
            )
    rows.sort(key=lambda row: (-abs(row["own"][1] - row["own"][0]), row["module"], row["func"]))
    return rows


def _hot(side: Side) -> dict[Name, tuple[int, int, int]]:
    """Calls, own and total time by function."""
    found: dict[Name, tuple[int, int, int]] = {}
    for module, func, *numbers in side.database.query(
        "bbiii",
        "SELECT CAST(module AS BLOB), CAST(func AS BLOB), calls, own, total FROM hot WHERE run = ?",
        (side.run.id,),
    ):
        name = text(module), text(func)
        calls, own, total = (old + new for old, new in zip(found.get(name, (0, 0, 0)), numbers, strict=True))
        found[name] = calls, own, total
    return found


def _exceptions(a: Side, b: Side) -> list[dict[str, Any]]:
    """How often exceptions of a type began in a function, if they did in one of the two only."""
    found = _raised(a), _raised(b)
    rows = []
    for module, func, type in sorted(found[0].keys() ^ found[1].keys()):
        counts = [of.get((module, func, type), 0) for of in found]
        rows.append({"type": type, "module": module, "func": func, "count": counts})
    return rows


def _raised(side: Side) -> dict[tuple[str, str, str], int]:
    counts: dict[tuple[str, str, str], int] = {}
    left: dict[tuple[int, int], str] = {}  # by thread the exception that has left a function last
    query = Query("run = ? AND kind IN ('raise', 'exception')", (side.run.id,))
    for page in pages(side.database, query, as_it_is):
        for event in page:
            _, _, _, pid, tid, _, kind, module, func, _, _, _, _, args, *_ = event
            if event[LAYER] in BELOW:
                continue
            arrives = left.pop((pid, tid), None) == args
            if kind == "exception":
                left[pid, tid] = args
            elif not arrives:
                values = arguments(args)
                key = text(module), text(func), values[0]["type"] if values else ""
                counts[key] = counts.get(key, 0) + 1
    return counts


def _first(a: Side, b: Side) -> dict[str, Any] | None:
    """The first event that differs, by the time in A, of the threads that both have; else of a
    thread that only one has."""
    threads = _threads(a), _threads(b)
    differing = []
    for thread in sorted(threads[0].keys() | threads[1].keys()):
        streams = [of.get(thread) for of in threads]
        pair = _first_of_thread(
            _events(a, streams[0]) if streams[0] is not None else iter(()),
            _events(b, streams[1]) if streams[1] is not None else iter(()),
        )
        if pair:
            at = pair[0][2] if pair[0] else _end(a, streams[0])
            differing.append((None in streams, at, thread, pair))
    if not differing:
        return None
    _, _, thread, (one, other, call) = min(differing, key=lambda each: each[:3])
    return {
        "process": thread[0],
        "thread": thread[1],
        "call": call and _of_event(call),
        "a": one and _of_event(one),
        "b": other and _of_event(other),
    }


def _threads(side: Side) -> dict[Thread, int]:
    """Streams by what a thread is called in both recordings."""
    found: dict[Thread, int] = {}
    counts: dict[tuple[int, str], int] = {}
    for stream, process, name in side.database.query(
        "iib",
        "SELECT stream, process, CAST(name AS BLOB) FROM thread WHERE run = ? ORDER BY stream",
        (side.run.id,),
    ):
        named = process, text(name)
        found[(*named, counts.get(named, 0))] = stream
        counts[named] = counts.get(named, 0) + 1
    return found


def _end(side: Side, stream: int | None) -> int:
    """The time of a thread's last event."""
    newest = side.database.query(
        "i",
        "SELECT time FROM event WHERE run = ? AND stream = ? ORDER BY time DESC LIMIT 1",
        (side.run.id, stream or 0),
    )
    return newest[0][0] if newest else side.run.started


def _events(side: Side, stream: int) -> Iterator[Row]:
    query = side.scope.also(_COMPARED).also("stream = ?", stream)
    for page in pages(side.database, query, as_it_is):
        yield from page


def _first_of_thread(a: Iterator[Row], b: Iterator[Row]) -> tuple[Row | None, Row | None, Row | None] | None:
    """The first two events that differ, and the call that ends with them; None: there are none."""
    open_calls: dict[tuple[int, bytes], Row] = {}  # of A, by depth and function
    for one, other in zip_longest(a, b):
        if one is None or other is None or _said(one) != _said(other):
            call = one and other and one[6] in _ENDS and open_calls.get((one[11], one[8]))
            return one, other, call or None
        if one[6] == "call":
            open_calls[one[11], one[8]] = one
    return None


def _said(event: Row) -> tuple[object, ...]:
    """What is compared: neither times nor addresses."""
    _, _, _, _, _, _, kind, module, func, _, _, _, _, args, *_ = event
    return kind, module, func, _ADDRESS.sub(" at 0x…", args)


def _of_event(event: Row) -> dict[str, Any]:
    id, _, time, _, _, _, kind, module, func, file, line, _, took, args, *_ = event
    return {
        "id": id,
        "time": time,
        "kind": kind,
        "module": text(module),
        "func": text(func),
        "file": text(file),
        "line": line,
        "duration": took,
        "args": arguments(args),
    }


# ---- as text -----------------------------------------------------------------------------------


def _differs(facts: dict[str, Any]) -> bool:
    """Whether anything but times differs."""
    calls = any(one != other for one, other in (row["calls"] for row in facts["functions"]))
    return calls or bool(facts["exceptions"] or facts["first"])


def as_text(facts: dict[str, Any]) -> str:
    """The differences for people, as lines that are safe for a terminal."""
    lines = [*_heads(facts)]
    called = [row for row in facts["functions"] if row["calls"][0] != row["calls"][1]]
    slower = [row for row in facts["functions"] if abs(row["own"][1] - row["own"][0]) >= _SLOWER_NS]
    if called:
        called.sort(key=lambda row: -abs(row["calls"][1] - row["calls"][0]))
        lines += ["", "Functions that are called more or less often:"]
        lines += _table(called, "calls", lambda count: f"{count:,}")
    if slower:
        lines += ["", "Functions whose own time has changed by a millisecond or more:"]
        lines += _table(slower, "own", duration)
    for title, side in (("New exceptions:", 1), ("Exceptions that are gone:", 0)):
        rows = [row for row in facts["exceptions"] if row["count"][side]]
        if rows:
            lines += ["", title]
            lines += [
                printable(f"  {row['count'][side]:>8,}x {row['type'] or 'an exception'} in {_name(row)}")
                for row in rows[:_SHOWN]
            ]
            lines += _more(rows)
    if facts["first"]:
        lines += ["", *_first_lines(facts)]
    if not _differs(facts):
        lines += ["", "No difference in calls, exceptions, arguments and outcomes."]
    return "\n".join(lines)


def _heads(facts: dict[str, Any]) -> Iterator[str]:
    for letter in ("a", "b"):
        side = facts[letter]
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(side["started"] // 1_000_000_000))
        yield printable(f"{letter.upper()}  {side['path']}, run {side['run']}, {started}: {side['command']}")


def _table(rows: list[dict[str, Any]], key: str, show: Any) -> list[str]:
    lines = [f"  {'A':>12}  {'B':>12}  {'change':>12}"]
    for row in rows[:_SHOWN]:
        one, other = row[key]
        if not row["calls"][0] or not row["calls"][1]:
            change = "gone" if row["calls"][0] else "new"
        else:
            change = f"{'+' if other > one else '-'}{show(abs(other - one))}"
        lines.append(printable(f"  {show(one):>12}  {show(other):>12}  {change:>12}  {_name(row)}"))
    return lines + _more(rows)


def _more(rows: list[dict[str, Any]]) -> list[str]:
    return [f"  … {len(rows) - _SHOWN:,} more: --format json has all"] if len(rows) > _SHOWN else []


def _name(row: dict[str, Any]) -> str:
    return f"{row['module']}.{row['func']}" if row["module"] else str(row["func"])


def _first_lines(facts: dict[str, Any]) -> Iterator[str]:
    first = facts["first"]
    whose = "your own code" if facts["mine"] else "the code"
    yield printable(f"The first difference in {whose}, in {first['thread'] or 'a thread'}:")
    if first["call"]:
        yield printable(f"  {_shown(first['call'])}")
    sides = [[*_side_lines(first, letter)] for letter in ("a", "b")]
    width = max((get_terminal_size((120, 24)).columns - len(_GAP) - 2) // 2, _NARROW)
    for pair in zip_longest(*sides, fillvalue=""):
        for left, right in zip_longest(*(_wrapped(each, width) for each in pair), fillvalue=""):
            yield f"  {padded(left, -width)}{_GAP}{right}".rstrip()


def _side_lines(first: dict[str, Any], letter: str) -> Iterator[str]:
    """What one recording has at the first difference; of a call of the same function, each argument
    that differs."""
    event = first[letter]
    yield letter.upper() + (f"  id {event['id']}" if event else "  has ended")
    if not event:
        return
    yield _shown(event)
    a, b = first["a"], first["b"]
    if a and b and a["kind"] == b["kind"] == "call" and _name(a) == _name(b):
        values = [{arg["name"]: _short(arg["value"]) for arg in each["args"]} for each in (a, b)]
        for name in dict.fromkeys((*values[0], *values[1])):
            one, other = (_ADDRESS.sub("", of.get(name, "")) for of in values)
            if one != other:
                yield f"    {name}: {values[letter == 'b'].get(name, 'none')}"


def _wrapped(text: str, width: int) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip()) + 3)
    return textwrap.wrap(printable(text), width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _shown(event: dict[str, Any]) -> str:
    if event["kind"] == "call":
        values = ", ".join(f"{arg['name']}={_short(arg['value'])}" for arg in event["args"])
        return f"-> {_name(event)}({values})"
    value = _short(event["args"][0]["value"]) if event["args"] else ""
    sign = {"return": "<-", "exception": "<!", "yield": "<~", "log": "--"}[event["kind"]]
    took = f"  {duration(event['duration'])}" if event["duration"] is not None else ""
    return f"{sign} {_name(event)}: {value}{took}"


def _short(value: str) -> str:
    return value if len(value) <= _VALUE_MAX else f"{value[: _VALUE_MAX - 1]}…"
