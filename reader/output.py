"""Standard output, a few lines at a time. A terminal gets no control characters."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from ..messages import printable

if TYPE_CHECKING:
    from .progress import Progress

_BUFFERED = 512  # lines


class Visible:
    """A terminal as a stream: all control characters except line ends and tabs become escapes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        parts = re.split(r"(\r?\n|\t)", text)
        parts[::2] = map(printable, parts[::2])
        self._stream.write("".join(parts))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class Output:
    """Standard output, a few lines at a time. `progress` gives way to them. as_text: the lines are
    for people, and already safe for a terminal. Other lines are escaped for a terminal, and written
    unchanged to anything else."""

    def __init__(self, as_text: bool, progress: Progress | None = None) -> None:
        self._lines: list[str] = []
        self._progress = progress
        self._escapes = not as_text and sys.stdout.isatty()
        if as_text:  # letters that the terminal lacks become escapes
            self._encoding, self._errors = sys.stdout.encoding, "backslashreplace"
        else:
            self._encoding, self._errors = "utf-8", "surrogateescape"

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
            if self._escapes:
                self._lines = [printable(line.removesuffix("\r")) for line in self._lines]
            self._lines.append("")
            data = "\n".join(self._lines).encode(self._encoding, self._errors)
            self._lines = []
            try:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            except OSError as error:
                error.filename = "the output cannot be written"
                raise

    def wait(self, seconds: float) -> None:
        """Shows buffered lines, and waits a moment. Raises BrokenPipeError once nobody reads
        them."""
        import select

        self.flush()
        if self._progress:
            self._progress.clear()
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        for _, state in poll.poll(seconds * 1000):
            if state & (select.POLLERR | select.POLLHUP):
                raise BrokenPipeError
