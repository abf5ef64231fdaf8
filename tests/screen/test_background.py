"""Questions in the background: how often they are asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pytracer.reader.screen.background import Background
from pytracer.reader.screen.browser import Browser
from pytracer.reader.screen.worker import Tasks

from handmade import Handmade, event
from sessions import Reader


class Failing:
    """Questions, of which each fails at once."""

    is_running = False

    def __init__(self) -> None:
        self.names: list[str] = []

    def ask(self, name: str, question: Callable[..., object], then: Callable[..., object]) -> None:
        self.names.append(name)

    def asked(self) -> set[str]:
        return set()


def test_a_question_that_failed_is_not_asked_again_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is drawn, and whatever is drawn asks for what the screen lacks."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "main", mine=True)
        database.code(run, 2, "sort")
        database.segment(
            run, [event("call", 1), event("call", 2, time=1), event("return", 2, None, time=1, elapsed=1)]
        )
    reader, tasks = Reader(path), Failing()
    unread: Any = [("stretches", lambda: lambda database: None, lambda found: None)]
    monkeypatch.setattr(Browser, "unread", unread)
    background = Background(reader.session, cast("Tasks", tasks), lambda effect: None)
    for _ in range(3):
        background.want()
    assert tasks.names.count("stretches") == 1
    reader.database.close()
