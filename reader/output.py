"""Standard output, a few lines at a time; and standard error, which says how far a long query is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .progress import Progress

_BUFFERED = 512  # lines


def complain(message: str) -> None:
    """A line on standard error, safe for a terminal."""
    from .render import printable

    print(f"pytrace: {printable(message)}", file=sys.stderr)


class Output:
    """Standard output, a few lines at a time. `progress` gives way to them."""

    def __init__(self, as_text: bool, progress: Progress | None = None) -> None:
        self._lines: list[str] = []
        self._progress = progress
        if as_text:  # what the terminal has no letter for is shown as an escape
            self._encoding, self._errors = sys.stdout.encoding, "backslashreplace"
        else:
            self._encoding, self._errors = "utf-8", "strict"

    def line(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) >= _BUFFERED:
            self.flush()

    def write(self, lines: Sequence[str]) -> None:
        """Shows lines at once."""
        self.flush()
        for start in range(0, len(lines), _BUFFERED):
            self._lines = list(lines[start : start + _BUFFERED])
            self.flush()

    def flush(self) -> None:
        if self._lines:
            if self._progress:
                self._progress.clear()
            self._lines.append("")
            data = "\n".join(self._lines).encode(self._encoding, self._errors)
            self._lines = []
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def wait(self, seconds: float) -> None:
        """Shows what there is, and waits a moment; BrokenPipeError as soon as nobody reads it."""
        import select

        self.flush()
        if self._progress:
            self._progress.clear()
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        for _, state in poll.poll(seconds * 1000):
            if state & (select.POLLERR | select.POLLHUP):
                raise BrokenPipeError
