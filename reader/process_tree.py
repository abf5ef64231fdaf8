"""The processes of a recording, for `pytrace info`: their tree, and the end of each."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .database import Database
from .render import duration
from .rows import text

_SHOWN = 40  # processes of a recording
_COMMAND = 100  # characters of one
_LEVELS = 12  # of indentation


def collect(database: Database, run: int) -> list[dict[str, Any]]:
    """All processes, in the order in which their recording began; docs/json.md has the keys."""
    replaced = "replaced" if database.has_column("process", "replaced") else "0"
    rows = database.query(
        "iinbinnii",
        "SELECT number, pid, parent, coalesce(CAST(command AS BLOB), x''), started, finished, exit_status,"
        f" lost, {replaced} FROM process WHERE run = ? ORDER BY number",
        (run,),
    )
    events = dict(
        database.query(
            "ii",
            # segments by stream, from the index alone; only damage removes a thread's row
            "SELECT coalesce((SELECT process FROM thread t WHERE t.run = ?1 AND t.stream = s.stream),"
            " (SELECT process FROM segment o WHERE o.run = ?1 AND o.stream = s.stream LIMIT 1)) AS process,"
            " sum(count) FROM (SELECT stream, sum(count) AS count FROM segment INDEXED BY segment_time"
            " WHERE run = ?1 GROUP BY stream) s GROUP BY 1",
            (run,),
        )
    )
    return [
        {
            "number": number,
            "pid": pid,
            "parent": parent,
            "command": text(command) or None,
            "started": started,
            "finished": finished,
            "exit_status": exit_status,
            "replaced": bool(was_replaced),
            "events": events.get(number, 0),
            "lost": lost,
        }
        for number, pid, parent, command, started, finished, exit_status, lost, was_replaced in rows
    ]


def lines(processes: list[dict[str, Any]], started: int, running: bool) -> list[str]:
    """A table for people, whose last column is a tree of commands. A long one is cut, and summed
    up. running: the recording goes on."""
    rows = [_row(process, level, started, running) for process, level in _tree(processes)]
    shown = rows[:_SHOWN] if len(rows) > _SHOWN + 1 else rows
    widths = [max(map(len, column)) for column in list(zip(*shown, strict=True))[:-1]]
    made = []
    for after, pid, ending, events, command in shown:
        aligned = f"{after:<{widths[0]}}  {pid:>{widths[1]}}  {ending:<{widths[2]}}  {events:>{widths[3]}}"
        made.append(f"{aligned}  {command}")
    if rest := rows[len(shown) :]:
        endings = Counter(ending for _, _, ending, _, _ in rest)
        told = ", ".join(f"{count:,} {ending}" for ending, count in endings.most_common())
        made.append(f"... and {len(rest):,} more: {told}")
    return made


def ending(status: int | None, running: bool, replaced: bool = False) -> str:
    """How a process ended, in words. status: as in the database."""
    if replaced:
        return "became another program"
    if status is None:
        return "still running" if running else "exit status not known"
    if status >= 0:
        return f"exit status {status}"
    name = f"signal {-status}"
    with suppress(ValueError):
        name = signal.Signals(-status).name
    return f"killed by {name}"


def _row(process: dict[str, Any], level: int, started: int, running: bool) -> tuple[str, ...]:
    running = running and process["finished"] is None
    command = process["command"] or "(forked)"
    if len(command) > _COMMAND:
        command = command[: _COMMAND - 3] + "..."
    events = f"{process['events']:,} {'event' if process['events'] == 1 else 'events'}"
    if process["lost"]:
        events += f", {process['lost']:,} lost"
    return (
        f"+{duration(max(process['started'] - started, 0))}",
        str(process["pid"]),
        ending(process["exit_status"], running, process["replaced"]),
        events,
        "  " * min(level, _LEVELS) + command,
    )


def _tree(processes: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], int]]:
    """Each process with its level, after its parent. A parent's row comes first; else it is
    none."""
    numbers = {process["number"] for process in processes}
    children: dict[int | None, list[dict[str, Any]]] = {}
    for process in processes:
        parent = process["parent"]
        known = parent in numbers and parent < process["number"]
        children.setdefault(parent if known else None, []).append(process)
    waiting = [(process, 0) for process in reversed(children.get(None, []))]
    while waiting:
        process, level = waiting.pop()
        yield process, level
        waiting += [(child, level + 1) for child in reversed(children.get(process["number"], []))]
