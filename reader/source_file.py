"""Source text as it is on this machine now; sources.py has the text as it was.

The path comes from the recorded program. So only a regular file is opened, only its beginning is
read, and none of it is run.
"""

from __future__ import annotations

import os
import stat
from io import BytesIO
from typing import NamedTuple

from .paths import path_bytes

MOST = 1 << 20  # bytes of a file that are read
_LONGEST = 2000  # bytes of a line
_BEFORE, _AFTER = 5, 10  # lines
_TAB = 8
LATER = "the file was written after the recording began: this may not be what ran"


class Excerpt(NamedTuple):
    """Lines with their numbers, from 1; `note`: why there are none, or a doubt about them."""

    lines: list[tuple[int, str]]
    note: str = ""


def excerpt(directory: str, file: str, line: int, started: int) -> Excerpt:
    """The source around a line. directory: the folder of the program's start; started: its time, in
    ns since 1970. A file that was written later may differ from the code that ran."""
    opened = _open(directory, file)
    if isinstance(opened, Excerpt):
        return opened
    path, data, written = opened
    is_whole = len(data) <= MOST
    lines = data[:MOST].splitlines() or [b""] * (line == 1)  # an empty module begins there
    if not 1 <= line <= len(lines):
        if is_whole:
            return Excerpt([], f"{path} has {len(lines)} lines now, and no line {line}")
        return Excerpt([], f"{path} is too large: line {line} is not in its first {MOST >> 20} MiB")
    encoding = _encoding(data)
    first, last = around(line)
    return Excerpt(
        [(number, _decoded(each, encoding)) for number, each in enumerate(lines[first - 1 : last], first)],
        LATER if written > started else "",
    )


def whole(directory: str, file: str, started: int) -> Excerpt:
    """All lines of a file; see `excerpt`."""
    opened = _open(directory, file)
    if isinstance(opened, Excerpt):
        return opened
    path, data, written = opened
    encoding = _encoding(data)
    lines = [(number, _decoded(each, encoding)) for number, each in enumerate(data[:MOST].splitlines(), 1)]
    if len(data) > MOST:
        return Excerpt(lines, f"these are the first {MOST >> 20} MiB of {path}")
    return Excerpt(lines, LATER if written > started else "")


def around(line: int) -> tuple[int, int]:
    """The first and the last line that are shown around a line."""
    return max(line - _BEFORE, 1), line + _AFTER


def line_text(line: str) -> str:
    """A line without tabs, cut far to the right."""
    return line[:_LONGEST].expandtabs(_TAB)


def _open(directory: str, file: str) -> tuple[str, bytes, int] | Excerpt:
    """The path, and what `_read` finds there; or the excerpt that says why there is nothing."""
    if not file or file.startswith("<"):
        return Excerpt([], f"{file} is not a file" if file else "it is in no file")
    path = os.path.join(directory, file)
    try:
        return path, *_read(path_bytes(path))
    except (OSError, ValueError) as error:
        return Excerpt([], _why_not(path, error))


def _why_not(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path} is not there, on this machine"
    if isinstance(error, OSError):
        return f"{path} cannot be read: {error.strerror}"
    return f"{path} is no name of a file"  # a null byte, or a letter that this locale lacks


def _read(path: bytes) -> tuple[bytes, int]:
    """The beginning of a regular file, a byte longer than MOST if there is more; and the time of
    its last change, in ns since 1970. Raises OSError, ValueError."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe or a device may change it
        raise OSError(0, "it is not a file", path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):  # another one meanwhile
            raise OSError(0, "it is not a file", path)
        return opened.read(MOST + 1), status.st_mtime_ns


def _encoding(data: bytes) -> str:
    """The encoding, found as by Python: in the file's first lines."""
    from tokenize import detect_encoding

    try:
        return detect_encoding(BytesIO(data[: 2 * _LONGEST]).readline)[0]
    except (SyntaxError, ValueError, LookupError):
        return "utf-8"


def _decoded(line: bytes, encoding: str) -> str:
    """The text of a line."""
    try:
        text = line[:_LONGEST].decode(encoding, "replace")
    except (LookupError, ValueError):  # an encoding that is not of texts, or that replaces nothing
        text = line[:_LONGEST].decode("utf-8", "replace")
    return line_text(text)
