"""The report of `pytrace info`: each recording of a database, its size, busiest functions and
losses. It reads only the times of losses from segments; their rows tell the rest."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from shlex import quote
from typing import Any

from ..cli import OPTIONS
from ..messages import printable
from ..unsaved import Unsaved, unsaved
from . import features, later, process_tree
from .database import Database
from .later import Later
from .render import duration
from .rows import Run, text

_BUSIEST = 5  # functions
_VALUE = 100  # characters of an option's
_VARINT_BITS = 63


def collect(database: Database, is_written: bool) -> dict[str, Any]:
    """The facts, with the keys of `info --format json`. Times are ns since 1970, sizes bytes.
    is_written: as database.is_written said before the database was opened."""
    made_later = later.read(database)
    runs = [_facts(database, run, made_later.get(run.id, Later()), is_written) for run in database.runs()]
    return {"path": os.path.abspath(database.path), "size": database.size(), "runs": runs}


def _facts(database: Database, run: Run, made_later: Later, is_written: bool) -> dict[str, Any]:
    ((events, stored),) = database.query(
        "ii",
        "SELECT coalesce(sum(count), 0), coalesce(sum(length(data)), 0) FROM segment WHERE run = ?",
        (run.id,),
    )
    ((processes,),) = database.query("i", "SELECT count(*) FROM process WHERE run = ?", (run.id,))
    ((threads,),) = database.query(
        "i", "SELECT count(DISTINCT process << 32 | tid) FROM thread WHERE run = ?", (run.id,)
    )
    features_, options = _settings(database, run.id)
    lost_from, lost_until = (None, None) if made_later.refused else _losses(database, run.id)
    left = _unsaved(database, run) if run.finished is None else None
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
        "options": options,
        "features": features.names(features_),
        "later": made_later._asdict(),
        "unsaved": left and left._asdict(),
        "running": run.finished is None and (is_written if left is None else not left.ended),
    }


def _unsaved(database: Database, run: Run) -> Unsaved | None:
    """The unsaved part in the ring of an unfinished run; None: this machine has no such ring."""
    ((name,),) = database.query("b", "SELECT CAST(recording AS BLOB) FROM run WHERE id = ?", (run.id,))
    return unsaved(text(name))


def _turned_away(database: Database, run: int) -> int:
    """Processes that were not recorded; 0 in an older database without this column."""
    if not database.has_column("run", "turned_away"):
        return 0
    ((turned_away,),) = database.query("i", "SELECT turned_away FROM run WHERE id = ?", (run,))
    return int(turned_away)


def _settings(database: Database, run: int) -> tuple[int, dict[str, str] | None]:
    """The features of a run, and the options of its recording; None: unknown."""
    bits = "features" if database.has_column("run", "features") else "0"
    texts = "coalesce(options, 'null')" if database.has_column("run", "options") else "'null'"
    ((found, stored),) = database.query(
        "ib", f"SELECT {bits}, CAST({texts} AS BLOB) FROM run WHERE id = ?", (run,)
    )
    try:
        options = json.loads(stored)
    except ValueError:
        options = None
    return found, options if isinstance(options, dict) else None


def _losses(database: Database, run: int) -> tuple[int | None, int | None]:
    """The times of the first and last loss that are still in the database."""
    lost = "SELECT time FROM event WHERE run = ? AND kind = 'lost' ORDER BY time"
    first = database.query("i", f"{lost} LIMIT 1", (run,))
    last = database.query("i", f"{lost} DESC LIMIT 1", (run,))
    return (first[0][0], last[0][0]) if first and last else (None, None)


def _busiest(database: Database, run: int) -> list[dict[str, Any]]:
    """The functions with the most calls in the database. A function may have several rows, as each
    process has code objects of its own."""
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
    """Calls by the number of the code object, from the column `codes` of segments
    (csrc/format/summary.h)."""
    calls: Counter[int] = Counter()
    for summary in summaries:
        code = number = shift = 0
        is_code = True  # pairs of varints: increase of the code's number, calls
        for byte in summary:
            number |= (byte & 127) << shift
            if byte & 128:
                shift += 7
                if shift > _VARINT_BITS:
                    break  # damaged; the numbers so far may be right
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
    running, status, left = run["running"], run["exit_status"], run["unsaved"]
    if finished is None and not running:
        length, status = ("not yet saved", left["exit_status"]) if left else ("cut off", None)
        if status is None and run["tree"]:  # the dumper may know
            status = run["tree"][0]["exit_status"]
    lines = [
        f"run {run['id']}  {run['command']}",
        f"  started    {when}, {length}, {process_tree.ending(status, running)}",
        f"  python     {run['python']}, in {run['directory']}",
        *(f"  options    {line}" for line in [_options(run["options"] or {})] if line),
        f"  recorded   {counted(run['events'], 'event')} of {counted(run['processes'], 'process')}, "
        f"{counted(run['threads'], 'thread')}; {size(run['bytes'])}",
        *(f"  {'busiest' if i == 0 else '':<9}  {line}" for i, line in enumerate(_busiest_lines(run))),
        *(f"  {'processes' if i == 0 else '':<9}  {line}" for i, line in enumerate(_process_lines(run))),
        f"  missing    {_missing(run)}",
    ]
    return "\n".join(map(printable, lines))


def _options(options: dict[str, Any]) -> str:
    """Those that differ from the defaults, as they would be typed. The output is this database."""
    parts = []
    for option in OPTIONS:
        value = options.get(option.name)
        default = option.convert(option.default or "", option.flag)
        if not isinstance(value, str) or value == default or option.name == "output":
            continue
        value = option.typed(value)
        value = value if len(value) <= _VALUE else value[:_VALUE] + "..."
        parts.append(f"{option.flag} {quote(value)}" if option.metavar else option.flag)
    return " ".join(parts)


def _busiest_lines(run: dict[str, Any]) -> list[str]:
    numbers = [f"{each['calls']:,}" for each in run["busiest"]]
    width = max(map(len, numbers), default=0)
    names = [".".join(filter(None, (each["module"], each["func"]))) for each in run["busiest"]]
    return [
        f"{number:>{width}} {'call' if number == '1' else 'calls'} of {name}"
        for number, name in zip(numbers, names, strict=True)
    ]


def _process_lines(run: dict[str, Any]) -> list[str]:
    """The lines of the process tree; none if the program is alone."""
    alone = len(run["tree"]) <= 1
    return [] if alone else process_tree.lines(run["tree"], run["started"], run["running"])


def _missing(run: dict[str, Any]) -> str:
    started, left = run["started"], run["unsaved"]
    parts = []
    if left and (left["ended"] or left["why"]):
        why = f": {left['why']}" if left["why"] else ""
        parts.append(f"{counted(left['events'], 'event')} ({size(left['bytes'])}) not yet saved{why}")
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
    if not left and run["finished"] is None and not run["running"]:
        parts.append("what was not saved yet when the recording was cut off")
    parts += Later(**run["later"]).parts()
    return "; ".join(parts) or "nothing"


def _after(time: int, started: int) -> str:
    """A time in a form that a filter takes, too."""
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
