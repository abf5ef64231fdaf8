"""Counts the events that a filter finds, within a time. The SQL of corrections.py."""

from __future__ import annotations

import time
from collections.abc import Sequence

import apsw

from .corrections import Count, Found

_STEPS = 20  # of SQLite's machine between two looks at the clock; about one segment


def counter(connection: apsw.Connection, runs: Sequence[int]) -> Count:
    """Counts events of these runs.

    connection: with the table `event`. Ctrl-C stops a count, too: Python handles signals at each
    look at the clock. Raises apsw.Error if the database cannot be read.
    """

    def count(where: str, parameters: tuple[int | str, ...], at_most: int, deadline: float) -> Found:
        marks = ", ".join("?" * len(runs))
        events = 0
        connection.set_progress_handler(lambda: time.monotonic() >= deadline, _STEPS, id=counter)
        try:
            rows = connection.execute(
                f"SELECT 1 FROM event WHERE run IN ({marks}) AND ({where}) LIMIT ?",
                (*runs, *parameters, at_most + 1),
            )
            for _ in rows:
                events += 1
        except apsw.InterruptError:
            return Found(min(events, at_most), False)
        finally:
            connection.set_progress_handler(None, id=counter)
        return Found(min(events, at_most), events <= at_most)

    return count
