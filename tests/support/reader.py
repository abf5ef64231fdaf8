"""`pytrace read` in a terminal, with the words for what is on its screen."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeAlias

from pytracer.reader.screen.hints import HINTS

import warm
from recording import environment
from terminal import Terminal

PYTRACE = [sys.executable, "-P", "-m", "pytracer"]
_NOT_KEPT = ("TERM", "NO_COLOR", "EDITOR", "VISUAL", "TMUX", "LINES", "COLUMNS", "LC_ALL", "LC_CTYPE")


def surroundings(home: Path, **changes: str) -> dict[str, str]:
    """The environment of a reader: a terminal with 256 colours, UTF-8, UTC, a home of its own. It
    shows all events at first, since most tests are about events."""
    kept = {name: value for name, value in environment().items() if name not in _NOT_KEPT}
    return (
        kept
        | {
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "PYTRACE_VIEW": "all",
        }
        | changes
    )


class Reader(Terminal):
    """A reader. hints: somebody's who has not used it yet."""

    def __init__(
        self,
        arguments: Sequence[object],
        home: Path,
        *,
        rows: int = 24,
        columns: int = 100,
        cwd: Path | None = None,
        command: Sequence[str] = (*PYTRACE, "read"),
        stderr_too: bool = False,
        hints: bool = False,
        **changes: str,
    ) -> None:
        if not hints:
            used = home / "state" / "pytrace" / "used"
            used.parent.mkdir(0o700, parents=True, exist_ok=True)
            used.write_text("".join(f"{name}\n" for name in HINTS))
        super().__init__(
            [*command, *map(str, arguments)],
            rows=rows,
            columns=columns,
            cwd=cwd or home,
            env=surroundings(home, **changes),
            stderr_too=stderr_too,
            tells=True,
        )

    def _start(
        self, command: list[str], errors: int, idle: int, cwd: Path | None, env: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | warm.Process:
        if cwd is None or not warm.fits(command, env):
            return super()._start(command, errors, idle, cwd, env)
        files = [self._slave, self._slave, errors, idle]
        return warm.Process(command, files, cwd, {**env, "PYTRACE_IDLE_FD": "3"})

    @property
    def current_row(self) -> int:
        """The row of the screen that the cursor is on: the one that is blue, or stands out
        otherwise."""
        for row in range(self.rows - 1):
            if self.cell(row, 0).bg == self.cell(row, self.columns - 1).bg == "blue":
                return row
        raise AssertionError(f"there is no cursor on the screen\n{self.text}")

    @property
    def current(self) -> str:
        """The line under the cursor."""
        return self.line(self.current_row)

    @property
    def id(self) -> int:
        """The event under the cursor, if the ids are shown (-N)."""
        return int(self.current.split()[0])

    @property
    def ids(self) -> list[int]:
        """The events on the screen, if the ids are shown (-N)."""
        plain = [row for row in range(self.rows) if self.cell(row, 0).bg != "white"]
        starts = [re.match(r" *(\d{6,})  ", self.line(row)) for row in plain]
        return [int(start[1]) for start in starts if start]

    @property
    def status(self) -> str:
        """The line that says where we are."""
        return self.line(self._status_row)

    @property
    def _status_row(self) -> int:
        """Above the last line, and further up if that is a long message."""
        last = self.rows - 2
        return next((row for row in range(last, last - 4, -1) if ".sqlite " in self.line(row)), last)

    @property
    def message(self) -> str:
        """The rows below the status: messages and prompts."""
        return "".join(self.line(row) for row in range(self._status_row + 1, self.rows))

    def say(self, text: str) -> Self:
        """Types a command behind `:`, and waits until it is done."""
        self.press(":").type(text).press("enter").settled()
        return self

    def quit(self) -> None:
        """Ends the reader, which has to leave the terminal as it found it, and say nothing."""
        self.press("q")
        assert self.end() == 0, self.errors
        assert self.errors == ""
        assert self.as_before, self.emulator.modes


# The fixture: reads(database, *arguments, rows=, columns=, **environment)
Reads: TypeAlias = Callable[..., Reader]
