"""Threads: where each was at this time, and a way there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...screen.effects import Choice, Choose, Open, Task
from ..history import History
from ..moment import Moment
from .command import Command, Count, Group, task
from .steps import show_moment, turn_across
from .walk import Walk

if TYPE_CHECKING:
    from ...database import Database

_MOST = 500  # threads that are looked at


@task
def choose_thread(walk: Walk, count: Count) -> Task[None]:
    """All threads, with the place of each; one of them is shown at this time."""
    here = walk.moment

    def question(database: Database) -> list[tuple[str, Moment]]:
        history = History(database, here.run)
        found = []
        for stream, pid, tid, name in history.streams()[:_MOST]:
            at = here if stream == here.stream else history.in_thread(stream, here.time)
            if at is not None:
                found.append((f"{name or 'thread'}  {pid}/{tid}", at))
        return found

    found = yield question
    choices = [
        Choice(
            label,
            at,
            f"{'here: ' if at.stream == here.stream else ''}{at.func} {os.path.basename(at.file)}:{at.line}"
            f"{f'  task {at.task}' if at.task else ''}",
        )
        for label, at in found
    ]
    yield Choose("threads at this time", choices, lambda at: _go(walk, at))


@task
def _go(walk: Walk, at: Moment) -> Task[None]:
    yield from show_moment(walk, at)


def read(walk: Walk, count: Count) -> Open:
    """The reader, at this event."""
    return Open(walk.path, walk.run.id, walk.moment.id)


THREADS = Group(
    "Threads, and all events",
    (
        Command(
            "threads", ("T",), "all threads, and where each is at this time; Enter goes there", choose_thread
        ),
        Command("read", ("v",), "all events in the reader (pytrace read), at this one; s comes back", read),
        Command("across", ("x",), "s and S follow the time over all threads, or stay in one", turn_across),
    ),
)
