"""What earlier readers were told, and others that run: a file for the lines of each kind of prompt,
and one for the keys that were used (hints.py).

The files are in $XDG_STATE_HOME/pytrace (~/.local/state/pytrace), for their owner alone: questions
to a recording may tell as much as the recording. $PYTRACE_HISTORY=off keeps nothing. If the files
cannot be read or written, lines last as long as the reader, without a message.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

KEPT = 500  # lines
_READ_MAX = 1 << 20  # bytes; of a larger file the end is read
_LINE_MAX = 10_000  # characters


class History:
    """The lines of one kind of prompt, by the name of their file."""

    def __init__(self, name: str, environ: Mapping[str, str] = os.environ) -> None:
        self._path = _path(name, environ)
        read, is_whole = _read(self._path) if self._path else ([], True)
        self._lines = _kept(read)
        if len(read) > 2 * KEPT or not is_whole:
            self._rewrite()

    def lines(self) -> list[str]:
        """The lines, the oldest first, each once."""
        return list(self._lines)

    def add(self, line: str) -> None:
        """Keeps a line as the newest. Only printable ones are kept, and none that is blank."""
        if self._lines[-1:] == [line] or not _fits(line):
            return
        self._lines = _kept([*self._lines, line])
        if self._path:
            with suppress(OSError):
                _append(self._path, line)

    def _rewrite(self) -> None:
        """Rewrites the file with the kept lines. A line that another reader adds in this moment may
        be lost."""
        assert self._path
        new = f"{self._path}.{os.getpid()}"
        try:
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(file, "w", encoding="utf-8") as opened:
                opened.writelines(f"{line}\n" for line in self._lines)
            os.replace(new, self._path)
        except OSError:
            with suppress(OSError):
                os.unlink(new)


def _path(name: str, environ: Mapping[str, str]) -> str | None:
    """The path of a history file. None: nothing is kept."""
    if environ.get("PYTRACE_HISTORY", "").lower() in ("off", "0", "no"):
        return None
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # XDG: such a path is ignored
        home = environ.get("HOME", "")
        if not os.path.isabs(home):
            return None
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "pytrace", name)


def _open(path: str, flags: int) -> int:
    """A plain file of one's own, without waiting for anything. Raises OSError."""
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return file
    os.close(file)
    raise PermissionError(path)


def _read(path: str) -> tuple[list[str], bool]:
    """The file's lines, and whether these are all."""
    try:
        with open(_open(path, os.O_RDONLY), "rb") as file:
            before = max(os.fstat(file.fileno()).st_size - _READ_MAX, 0)
            file.seek(before)
            data = file.read(_READ_MAX)
    except OSError:
        return [], True
    if before:
        data = data.partition(b"\n")[2]
    return [line for line in data.decode("utf-8", "replace").split("\n") if _fits(line)], not before


def _append(path: str, line: str) -> None:
    """Appends a line in one write, so that lines of two readers do not mix. Raises OSError."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    file = _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def _fits(line: str) -> bool:
    return bool(line.strip()) and line.isprintable() and len(line) <= _LINE_MAX


def _kept(lines: Iterable[str]) -> list[str]:
    """The newest lines, each at its last place."""
    newest = list(dict.fromkeys(reversed([*lines])))[:KEPT]
    return newest[::-1]
