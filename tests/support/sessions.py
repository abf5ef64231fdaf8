"""Sessions of the reader without a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytracer.reader.database import Database
from pytracer.reader.screen import live
from pytracer.reader.screen.commands.table import BY_KEY, run_typed
from pytracer.reader.screen.effects import Effect, Result, RunTask
from pytracer.reader.screen.session import Session


def done(database: Database, result: Result) -> list[Effect]:
    """The effects of a command that are left for the terminal, once its tasks have run."""
    left: list[Effect] = []
    for effect in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(effect, RunTask):
            answer: Any = None
            try:
                while True:
                    asked = effect.task.send(answer)
                    answer = asked(database) if callable(asked) else left.append(asked)
            except StopIteration:
                pass
        elif effect is not None:
            left.append(effect)
    return left


def completed(database: Database, session: Session) -> None:
    """Reads what the window lacks, as is done in the background."""
    asks = True
    while asks:
        asks = False
        for _, unread, take in session.browser.unread:
            if question := unread():
                take(question(database))
                asks = True


class Reader:
    """A session whose tasks are run at once."""

    def __init__(self, path: Path) -> None:
        self.database = Database(str(path))
        start = live.opening(self.database, None, False, None)
        self.session = Session(str(path), start, ascii=False, plain=False)
        self.session.fit(80, 24)
        assert self.done(RunTask(self.session.begin())) == []

    def done(self, result: Result) -> list[Effect]:
        """The effects left for the terminal, once tasks have run."""
        left = done(self.database, result)
        completed(self.database, self.session)
        return left

    def press(self, key: str, argument: Any = None) -> list[Effect]:
        return self.done(BY_KEY[key].do(self.session, argument))

    def type(self, line: str) -> list[Effect]:
        return self.done(run_typed(self.session, line))

    @property
    def id(self) -> int:
        """The event under the cursor."""
        item = self.session.browser.current
        assert item is not None
        return item.row[0]
