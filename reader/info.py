"""What `pytrace info` tells: each recording of a database, its size, what was called most, and what is
missing. No segment is looked into, but for the times of losses: a row of each says enough."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from . import process_tree
from .database import Database
from .model import Run, text
from .render import duration, printable

_BUSIEST = 5  # functions


def collect(database: Database) -> dict[str, Any]:
    """The facts, with the keys of `info --format json`. Times are ns since 1970, sizes bytes."""
    runs = [_facts(database, run) for run in database.runs()]
    return {"path": os.path.abspath(database.path), "size": database.size(), "runs": runs}


def _facts(database: Database, run: Run) -> dict[str, Any]:
    ((events, stored),) = database.query(
        "ii",
        "SELECT coalesce(sum(count), 0), coalesce(sum(length(data)), 0) FROM segment WHERE run = ?",
        (run.id,),
    )
    ((processes,),) = database.query("i", "SELECT count(*) FROM process WHERE run = ?", (run.id,))
    ((threads,),) = database.query(
        "i", "SELECT count(DISTINCT process << 32 | tid) FROM thread WHERE run = ?", (run.id,)
    )
    lost_from, lost_until = _losses(database, run.id)
    return {
        "id": run.id,
        "command": run.command,
        "started": run.started,
        "finished": run.finished,
        "python": run.python,
        "events": events,
        "lost": run.lost,
        "processes": processes,
        "threads": threads,
        "exit_status": run.exit_status,
        "directory": run.directory,
        "bytes": stored,
        "evicted": run.evicted,
        "refused": run.refused,
        "evicted_until": run.evicted_until,
        "lost_from": lost_from,
        "lost_until": lost_until,
        "busiest": _busiest(database, run.id),
        "turned_away": _turned_away(database, run.id),
        "tree": process_tree.collect(database, run.id),
    }


def _turned_away(database: Database, run: int) -> int:
    """Processes that were not recorded; 0 in a database that has no such column yet."""
    ((known,),) = database.query(
        "i", "SELECT count(*) FROM pragma_table_info('run') WHERE name = 'turned_away'"
    )
    if not known:
        return 0
    ((turned_away,),) = database.query("i", "SELECT turned_away FROM run WHERE id = ?", (run,))
    return int(turned_away)


def _losses(database: Database, run: int) -> tuple[int | None, int | None]:
    """When events were lost first and last, of the losses that are still in the database."""
    lost = "SELECT time FROM event WHERE run = ? AND kind = 'lost' ORDER BY time"
    first = database.query("i", f"{lost} LIMIT 1", (run,))
    last = database.query("i", f"{lost} DESC LIMIT 1", (run,))
    return (first[0][0], last[0][0]) if first and last else (None, None)


def _busiest(database: Database, run: int) -> list[dict[str, Any]]:
    """The functions that were called most, of the calls that are in the database. Each process has
    code objects, and so rows, of its own for the same function."""
    rows = database.query("b", "SELECT codes FROM segment INDEXED BY segment_time WHERE run = ?", (run,))
    calls = calls_by_code(codes for (codes,) in rows)
    functions: Counter[tuple[bytes, bytes, bytes, int]] = Counter()
    for number, module, func, file, line in database.query(
        "ibbbi",
        "SELECT number, CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB), line"
        " FROM code WHERE run = ?",
        (run,),
    ):
        if number in calls:
            functions[module, func, file, line] += calls[number]
    return [
        {"module": text(module), "func": text(func), "calls": count}
        for (module, func, _, _), count in functions.most_common(_BUSIEST)
    ]


def calls_by_code(summaries: Iterable[bytes]) -> Counter[int]:
    """Calls by the number of the code object, from the column `codes` of segments (csrc/summary.h)."""
    calls: Counter[int] = Counter()
    for summary in summaries:
        code = number = shift = 0
        is_code = True  # pairs of varints: how much larger the code's number is, and its calls
        for byte in summary:
            number |= (byte & 127) << shift
            if byte & 128:
                shift += 7
                continue
            if is_code:
                code += number
            elif number:
                calls[code] += number
            is_code = not is_code
            number = shift = 0
    return calls


def as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2)


def as_text(facts: dict[str, Any]) -> str:
    """A block of lines for each recording, the oldest first."""
    runs = facts["runs"]
    many = counted(len(runs), "recording") if runs else "no recording yet"
    head = f"{printable(facts['path'])}: {size(facts['size'])}, {many}"
    return "\n\n".join([head, *map(_run, runs)])


def _run(run: dict[str, Any]) -> str:
    started, finished = run["started"], run["finished"]
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started // 1_000_000_000))
    length = f"took {duration(max(finished - started, 0))}" if finished is not None else "not finished"
    lines = [
        f"run {run['id']}  {run['command']}",
        f"  started    {when}, {length}, {process_tree.ending(run['exit_status'], finished is None)}",
        f"  python     {run['python']}, in {run['directory']}",
        f"  recorded   {counted(run['events'], 'event')} of {counted(run['processes'], 'process')}, "
        f"{counted(run['threads'], 'thread')}; {size(run['bytes'])}",
        *(f"  {'busiest' if i == 0 else '':<9}  {line}" for i, line in enumerate(_busiest_lines(run))),
        *(f"  {'processes' if i == 0 else '':<9}  {line}" for i, line in enumerate(_process_lines(run))),
        f"  missing    {_missing(run)}",
    ]
    return "\n".join(map(printable, lines))


def _busiest_lines(run: dict[str, Any]) -> list[str]:
    numbers = [f"{each['calls']:,}" for each in run["busiest"]]
    width = max(map(len, numbers), default=0)
    names = [".".join(filter(None, (each["module"], each["func"]))) for each in run["busiest"]]
    return [
        f"{number:>{width}} {'call' if number == '1' else 'calls'} of {name}"
        for number, name in zip(numbers, names, strict=True)
    ]


def _process_lines(run: dict[str, Any]) -> list[str]:
    """None where the program is alone: all is said of it."""
    alone = len(run["tree"]) <= 1
    return [] if alone else process_tree.lines(run["tree"], run["started"], run["finished"])


def _missing(run: dict[str, Any]) -> str:
    started = run["started"]
    parts = []
    if run["lost"]:
        when = ""
        if run["lost_from"] is not None:
            when = f", between {_after(run['lost_from'], started)} and {_after(run['lost_until'], started)}"
        parts.append(f"{counted(run['lost'], 'event')} lost{when}, the buffer was full (--buffer-size helps)")
    if run["evicted"]:
        until = run["evicted_until"]
        when = f", those until {_after(until, started)}," if until is not None else ""
        parts.append(f"{counted(run['evicted'], 'event')} removed{when} to keep the size (--max-size)")
    if run["refused"]:
        parts.append(f"{counted(run['refused'], 'chunk')} that made no sense")
    if run["turned_away"]:
        parts.append(f"{counted(run['turned_away'], 'process')} (one recording has room for 16,384)")
    return "; ".join(parts) or "nothing"


def _after(time: int, started: int) -> str:
    """A time as a filter takes it, too."""
    return f"+{duration(max(time - started, 0))}"


def counted(number: int, noun: str) -> str:
    """`1 event`, `1,234 events`, `2 processes`."""
    plural = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{plural}"


def size(count: int) -> str:
    """Bytes for people: 999 B, 12.3 kB, 4.5 MB, in powers of 1000."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.5 or unit == "TB":
            break
    return f"{amount:.3g} {unit}"
