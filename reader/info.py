"""What `pytrace info` tells: each recording of a database, its size, and what is missing from it."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from .database import Database
from .render import duration, printable


def collect(database: Database) -> dict[str, Any]:
    """The facts, with the keys of `info --format json`. Times are ns since 1970, sizes bytes."""
    runs = []
    for run in database.runs():
        ((events, stored),) = database.query(
            "ii",
            "SELECT coalesce(sum(count), 0), coalesce(sum(length(data)), 0) FROM segment WHERE run = ?",
            (run.id,),
        )
        ((processes,),) = database.query("i", "SELECT count(*) FROM process WHERE run = ?", (run.id,))
        ((threads,),) = database.query("i", "SELECT count(*) FROM thread WHERE run = ?", (run.id,))
        runs.append(
            {
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
            }
        )
    return {"path": os.path.abspath(database.path), "size": database.size(), "runs": runs}


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
        f"  started    {when}, {length}, {_ending(run['exit_status'], finished)}",
        f"  python     {run['python']}, in {run['directory']}",
        f"  recorded   {counted(run['events'], 'event')} of {counted(run['processes'], 'process')}, "
        f"{counted(run['threads'], 'thread')}; {size(run['bytes'])}",
        f"  missing    {_missing(run)}",
    ]
    return "\n".join(map(printable, lines))


def _ending(status: int | None, finished: int | None) -> str:
    if status is None:
        return "still running" if finished is None else "exit status not known"
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"


def _missing(run: dict[str, Any]) -> str:
    parts = []
    if run["lost"]:
        parts.append(f"{counted(run['lost'], 'event')} lost, the buffer was full (--buffer-size helps)")
    if run["evicted"]:
        parts.append(f"{counted(run['evicted'], 'event')} removed to keep the size (--max-size)")
    if run["refused"]:
        parts.append(f"{counted(run['refused'], 'chunk')} that made no sense")
    return "; ".join(parts) or "nothing"


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
