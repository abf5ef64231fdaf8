"""A program in a pseudo-terminal: what it writes, and when. Called by reader.py and follow.py.

The reader writes a byte to the file descriptor in $PYTRACE_IDLE_FD whenever it has handled all keys
and drawn everything that it knows; what it wrote to the terminal by then is the redraw.
"""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from benchmarks.processes import Failed, environment

ROWS, COLUMNS = 60, 200
LIMIT = 600  # s; nothing takes so long
# escape sequences and other controls, but for tab and newline
CONTROLS = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()].|[ -/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass
class Redraw:
    """Seconds from a key to the first and the last byte that came of it, and until the reader was
    idle."""

    first: float
    last: float
    idle: float


class Terminal:
    """Starts a program in a terminal of its own, 200 columns wide and 60 rows high. view: `all`
    has the reader show all events at first; "": what it shows to everybody."""

    def __init__(self, command: Sequence[str], folder: Path | None = None, view: str = "all") -> None:
        terminal, inner = os.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        idle, told = os.pipe()
        self.command, self._terminal, self._idle = command, terminal, idle
        self.output: list[tuple[float, bytes]] = []  # since the last key: when it came, and what
        self.idles: list[float] = []  # since the last key: when the reader had done all
        self.started = monotonic()
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(TERM="xterm-256color", PYTRACE_IDLE_FD=str(told), PYTRACE_VIEW=view),
            preexec_fn=lambda: os.login_tty(os.dup(inner)),
            pass_fds=[told],
        )
        os.close(inner)
        os.close(told)

    def press(self, keys: bytes) -> Redraw:
        """Types; waits until the reader has done what they mean. Raises Failed."""
        self.listen(0)
        self.output.clear()
        self.idles.clear()
        start = monotonic()
        os.write(self._terminal, keys)
        self.wait(lambda: bool(self.idles), f"after {keys!r}")
        self.listen(0)  # what was written before the byte that says that all is drawn
        idle = self.idles[0] - start
        first, last = (self.output[0][0], self.output[-1][0]) if self.output else (start + idle, start + idle)
        return Redraw(first - start, last - start, idle)

    def type(self, keys: bytes) -> float:
        """Types without waiting; returns when. For programs that do not tell when they are idle."""
        self.listen(0)
        self.output.clear()
        os.write(self._terminal, keys)
        return monotonic()

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Reads until something is so. Raises Failed."""
        end = monotonic() + LIMIT
        while not done():
            if self.process.poll() is not None or monotonic() > end:
                ended = self.process.returncode
                why = "nothing came" if ended is None else f"it ended with {ended}"
                raise Failed(f"{self.command}, {what}: {why}\n{self.text[-4000:].decode(errors='replace')}")
            self.listen(1)

    def wait_for(self, text: bytes) -> float:
        """When a text first stood on the screen, since the last key. Raises Failed."""
        self.wait(lambda: text in self.text, f"waiting for {text!r}")
        for count in range(1, len(self.output)):
            if text in printed(self.output[:count]):
                return self.output[count - 1][0]
        return self.output[-1][0]

    def listen(self, seconds: float) -> bool:
        """Reads what is there, and waits for it so long at most. Returns whether anything was."""
        heard = False
        while ready := select.select([self._terminal, self._idle], [], [], 0 if heard else seconds)[0]:
            heard = True
            if self._terminal in ready:
                try:
                    data = os.read(self._terminal, 1 << 16)
                except OSError:  # the program has gone
                    return heard
                self.output.append((monotonic(), data))
            if self._idle in ready:
                told = os.read(self._idle, 1 << 10)
                if not told:
                    return heard
                self.idles += [monotonic()] * len(told)
        return heard

    @property
    def text(self) -> bytes:
        """The text written since the last key, without colours and movements of the cursor."""
        return printed(self.output)

    def resident(self) -> int:
        """The most bytes that were ever resident, mapped files included."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise Failed(f"{self.command} has gone")

    def quit(self, keys: bytes = b"q") -> None:
        """Types what ends the program, and waits for it. Raises Failed."""
        self.type(keys)
        end = monotonic() + LIMIT
        while self.process.poll() is None and monotonic() < end:
            self.listen(0.01)
        status, text = self.process.returncode, self.text
        self.close()
        if status:
            raise Failed(f"{self.command} ended with {status}\n{text[-4000:].decode(errors='replace')}")

    def close(self) -> None:
        """Kills the program, should it still be there."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._terminal)
        os.close(self._idle)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.close()


def printed(output: Sequence[tuple[float, bytes]]) -> bytes:
    return CONTROLS.sub(b"", b"".join(data for _, data in output))
