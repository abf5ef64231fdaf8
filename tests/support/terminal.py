"""A program in a terminal: a real process in a real pseudo-terminal, and keys that are pressed in
it.

Nothing here waits for time: `wait` reads what the program sends until a condition holds, `settled`
until the program says that it has handled all keys and has drawn. A time limit only ends a test
that has failed.

A program that says so writes a byte to the file descriptor in $PYTRACE_IDLE_FD when keys came and
nothing is left to be done. So that a byte tells of the last keys, keys are only pressed when those
before are done.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from pyte.screens import Char

import warm
from emulator import Emulator

_LIMIT = 60.0  # s

# Keys by the names that urwid has for them, as xterm sends them.
KEYS = {
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "insert": "\x1b[2~", "delete": "\x1b[3~", "page up": "\x1b[5~", "page down": "\x1b[6~",
    "shift up": "\x1b[1;2A", "shift down": "\x1b[1;2B", "shift right": "\x1b[1;2C", "shift left": "\x1b[1;2D",
    "ctrl up": "\x1b[1;5A", "ctrl down": "\x1b[1;5B", "ctrl right": "\x1b[1;5C", "ctrl left": "\x1b[1;5D",
    "meta up": "\x1b[1;3A", "meta down": "\x1b[1;3B", "meta right": "\x1b[1;3C", "meta left": "\x1b[1;3D",
    "ctrl home": "\x1b[1;5H", "ctrl end": "\x1b[1;5F",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~",
    "f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~",
    "f12": "\x1b[24~",
    "esc": "\x1b", "enter": "\r", "tab": "\t", "shift tab": "\x1b[Z", "backspace": "\x7f", "space": " ",
    "ctrl space": "\0", "ctrl \\": "\x1c", "ctrl ]": "\x1d", "ctrl ^": "\x1e", "ctrl _": "\x1f",
}  # fmt: skip


def key_bytes(key: str) -> bytes:
    """The bytes that a terminal sends for a key: `down`, `ctrl c`, `meta f`, `é`. Raises
    KeyError."""
    if len(key) == 1:
        return key.encode()
    if key in KEYS:
        return KEYS[key].encode()
    modifier, _, letter = key.partition(" ")
    if modifier == "ctrl" and len(letter) == 1 and letter.isalpha():
        return bytes([ord(letter) & 31])
    if modifier == "meta" and letter:
        return b"\x1b" + key_bytes(letter)
    raise KeyError(key)


class Terminal:
    """A terminal with a program in it, which has a session of its own, as after a login.

    The program's standard error goes into a file, `errors`: it is no part of the screen. Use it as
    a context manager, or close it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        rows: int = 24,
        columns: int = 80,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stderr_too: bool = False,
        tells: bool = False,
    ) -> None:
        """stderr_too: standard error is the terminal, too. tells: the program says when all keys
        are done."""
        self._tells, self._owing = tells, tells
        self._emulator = Emulator(rows, columns)
        self._undrawn: list[bytes] = []
        self._lines: list[str] | None = None
        self._master, self._slave = os.openpty()
        os.set_blocking(self._master, False)
        self._set_size(rows, columns)
        self._modes_before = termios.tcgetattr(self._slave)
        self._idle, idle = os.pipe()
        os.set_blocking(self._idle, False)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        errors = self._slave if stderr_too else self._errors.fileno()
        self.process = self._start(list(command), errors, idle, cwd, os.environ if env is None else env)
        os.close(idle)
        self._ended = os.pidfd_open(self.process.pid)
        self._idle_open = True
        self._rests = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    # ---- keys ----

    def press(self, *keys: str) -> Self:
        """Presses keys, one after the other; does not wait until they are done.

        Escape begins other keys, too: it is pressed alone.
        """
        together = b""
        for key in keys:
            if key == "esc":
                self.send(together).send(key_bytes(key))
                together = b""
            else:
                together += key_bytes(key)
        return self.send(together)

    def press_ahead(self, *keys: str) -> Self:
        """Presses keys while the program is busy with others, or another one has the terminal."""
        self._owing = False
        return self.press(*keys)

    def type(self, text: str) -> Self:
        """Presses the keys of a text."""
        return self.press(*text)

    def paste(self, text: str) -> Self:
        """Sends a text in one go, as a terminal does that has been asked to mark it (bracketed
        paste)."""
        return self.send(f"\x1b[200~{text}\x1b[201~".encode())

    def click(self, line: int, column: int, button: int = 0) -> Self:
        """Presses and lets go a button of the mouse (64, 65: the wheel up, down) at a place (from
        0)."""
        place = f"{button};{column + 1};{line + 1}"
        return self.send(f"\x1b[<{place}M".encode() + (b"" if button >= 64 else f"\x1b[<{place}m".encode()))

    def wheel(self, down: bool, line: int = 5, column: int = 5) -> Self:
        return self.click(line, column, 65 if down else 64)

    def send(self, data: bytes) -> Self:
        """Sends bytes as they are."""
        if data:
            self._owe()
        while data:
            _, ready, _ = select.select([], [self._master], [], _LIMIT)
            assert ready, self._story("the program reads no keys")
            data = data[os.write(self._master, data) :]
        return self

    def report(self, data: bytes) -> Self:
        """Sends what is no key, and of which nothing comes: what terminals say, the beginning of a
        key."""
        self._owe()
        self._owing = False
        os.write(self._master, data)
        return self

    # ---- waiting ----

    def wait(self, condition: Callable[[Self], object], what: str = "") -> Self:
        """Reads what the program sends until the condition holds. AssertionError if it never
        does."""
        limit = time.monotonic() + _LIMIT
        while not condition(self):
            if time.monotonic() > limit or not self._read(limit):
                assert condition(self), self._story(f"waited for {what or 'a condition'}")
                break
        return self

    def shows(self, *texts: str) -> Self:
        """Waits until all of these are on the screen."""
        return self.wait(lambda screen: all(text in screen.text for text in texts), repr(texts))

    def hides(self, *texts: str) -> Self:
        """Waits until none of these is on the screen."""
        return self.wait(lambda screen: not any(text in screen.text for text in texts), f"no {texts!r}")

    def settled(self) -> Self:
        """Waits until the program has handled all keys, and has drawn what they asked for."""
        assert self._tells
        self.wait(lambda screen: screen._rests > 0 and not screen._unread(), "it to be at rest")
        self._owing = False
        return self

    def after(self, *keys: str) -> Self:
        """Presses keys, and waits until the program has handled them."""
        return self.press(*keys).settled()

    def end(self) -> int:
        """Waits until the program has ended. Its exit status; of a signal, the negative number."""
        limit = time.monotonic() + _LIMIT
        while time.monotonic() < limit and self._read(limit):
            pass
        assert self.process.poll() is not None, self._story("waited for the end")
        return self.process.returncode

    # ---- what is there ----

    @property
    def emulator(self) -> Emulator:
        """The inside of the terminal, which takes in what has come only when somebody looks."""
        if self._undrawn:
            data = b"".join(self._undrawn)
            self._undrawn.clear()
            self._lines = None
            self._emulator.feed(data)
            if self._emulator.answers:
                answers, self._emulator.answers = self._emulator.answers, ""
                if self._master >= 0:
                    os.write(self._master, answers.encode())
        return self._emulator

    @property
    def rows(self) -> int:
        return self.emulator.screen.lines

    @property
    def columns(self) -> int:
        return self.emulator.screen.columns

    @property
    def lines(self) -> list[str]:
        """The rows of the screen, without spaces at their ends."""
        emulator = self.emulator  # takes in what has come
        if self._lines is None:
            self._lines = [line.rstrip() for line in emulator.display]
        return self._lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def line(self, number: int) -> str:
        return self.lines[number]

    def cell(self, line: int, column: int) -> Char:
        """A character and its attributes: data fg bg bold italics underscore strikethrough
        reverse."""
        return self.emulator.screen.buffer[line][column]

    def cells(self, line: int) -> list[Char]:
        return [self.cell(line, column) for column in range(self.columns)]

    @property
    def colours(self) -> set[str]:
        """All colours on the screen but the terminal's own."""
        cells = [cell for line in range(self.rows) for cell in self.cells(line)]
        return {colour for cell in cells for colour in (cell.fg, cell.bg)} - {"default"}

    @property
    def cursor(self) -> tuple[int, int] | None:
        """Line and column of the cursor, from 0; None: it is hidden."""
        cursor = self.emulator.screen.cursor
        return None if cursor.hidden else (cursor.y, cursor.x)

    @property
    def raw(self) -> bytes:
        """All that was sent to the terminal."""
        return bytes(self.emulator.sent)

    @property
    def errors(self) -> str:
        """The program's output on standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    @property
    def as_before(self) -> bool:
        """The terminal is as it was before the program: its modes, the main screen, the cursor, no
        mouse."""
        return self.emulator.at_rest and termios.tcgetattr(self._slave) == self._modes_before

    # ---- what can happen to it ----

    def resize(self, rows: int, columns: int) -> Self:
        """Somebody pulls at the window's corner: the program gets SIGWINCH from the kernel."""
        if (rows, columns) == (self.rows, self.columns):
            return self
        self._owe()
        self.emulator.resize(rows, columns)
        self._lines = None
        self._set_size(rows, columns)
        return self

    def signal(self, number: signal.Signals) -> Self:
        """Sends a signal to the program."""
        self.process.send_signal(number)
        return self

    def hang_up(self) -> Self:
        """Closes the window: the program gets SIGHUP, and can neither read nor write any more."""
        for descriptor in (self._master, self._slave):
            os.close(descriptor)
        self._master = self._slave = -1
        return self

    def close(self) -> None:
        """Ends the program, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for descriptor in (self._master, self._slave, self._idle, self._ended):
            if descriptor >= 0:
                os.close(descriptor)
        self._master = self._slave = self._idle = self._ended = -1
        self._errors.close()

    # ---- inside ----

    def _start(
        self, command: list[str], errors: int, idle: int, cwd: Path | None, env: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | warm.Process:
        return subprocess.Popen(
            command,
            stdin=self._slave,
            stdout=self._slave,
            stderr=errors,
            cwd=cwd,
            env={**env, "PYTRACE_IDLE_FD": str(idle)},
            pass_fds=[idle],
            start_new_session=True,
            preexec_fn=_take_terminal,
        )

    def _owe(self) -> None:
        """The program is about to be given something to do."""
        if self._owing:
            self.settled()
        self._read_idle()
        self._rests = 0
        self._owing = self._tells

    def _unread(self) -> int:
        """Bytes that were sent to the program and that it has not read."""
        if self._slave < 0:
            return 0
        (count,) = struct.unpack("i", fcntl.ioctl(self._slave, termios.FIONREAD, bytes(4)))
        return int(count)

    def _read(self, limit: float) -> bool:
        """Takes in what comes next, and waits for it. False: it has ended, or the limit is
        reached."""
        wanted = [self._ended]
        wanted += [self._idle] if self._idle_open else []
        wanted += [self._master] if self._master >= 0 else []
        ready, _, _ = select.select(wanted, [], [], max(0.0, limit - time.monotonic()))
        # In this order: what was drawn before the program said that it rests has been read by then.
        if self._idle in ready:
            self._read_idle()
        if self._master in ready:
            self._read_screen()
            return True
        if self._ended in ready:
            self.process.wait()
            return False
        return bool(ready)

    def _read_idle(self) -> None:
        try:
            rests = os.read(self._idle, 1 << 16)
        except BlockingIOError:
            return
        self._rests += len(rests)
        self._idle_open = bool(rests)
        self._read_screen()

    def _read_screen(self) -> None:
        while self._master >= 0:
            try:
                data = os.read(self._master, 1 << 16)
            except BlockingIOError:
                break
            except OSError:  # nobody has the terminal open any more
                break
            self._undrawn.append(data)

    def _set_size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _story(self, what: str) -> str:
        status = self.process.poll()
        state = "still runs" if status is None else f"ended with status {status}"
        frame = "-" * self.columns
        return f"{what}; the program {state}\n{frame}\n{self.text}\n{frame}\n{self.errors}"


def _take_terminal() -> None:
    """In the new process: standard input becomes its controlling terminal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
