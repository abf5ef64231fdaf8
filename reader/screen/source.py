"""The source around a line, as it is on this machine now. Called by detail.py, in the database's thread.

The path comes from the recorded program: nothing but a regular file is opened, not more than its
beginning is read, and nothing in it is run.
"""

from __future__ import annotations

import os
import stat
from io import BytesIO
from typing import NamedTuple

MOST = 1 << 20  # bytes of a file that are looked at
_LONGEST = 2000  # bytes of a line
_BEFORE, _AFTER = 5, 10  # lines
_TAB = 8


class Excerpt(NamedTuple):
    """Lines with their numbers, from 1; `note`: why there are none, or what is the matter with them."""

    lines: list[tuple[int, str]]
    note: str = ""


def excerpt(directory: str, file: str, line: int, started: int) -> Excerpt:
    """What is around a line. directory: where the recorded program was started; started: when, in ns since
    1970: a file that was written later may not be what ran."""
    if not file or file.startswith("<"):
        return Excerpt([], f"{file} is not a file" if file else "it is in no file")
    path = os.path.join(directory, file)
    try:
        data, written = _read(path)
    except FileNotFoundError:
        return Excerpt([], f"{path} is not there, on this machine")
    except OSError as error:
        return Excerpt([], f"{path} cannot be read: {error.strerror}")
    except ValueError:  # a null byte, or what this locale cannot write
        return Excerpt([], f"{path} is no name of a file")
    whole = len(data) <= MOST
    lines = data[:MOST].splitlines()
    if not 1 <= line <= len(lines):
        if whole:
            return Excerpt([], f"{path} has {len(lines)} lines now, and no line {line}")
        return Excerpt([], f"{path} is too large: line {line} is not in its first {MOST >> 20} MiB")
    encoding = _encoding(data)
    first = max(line - _BEFORE, 1)
    around = lines[first - 1 : line + _AFTER]
    note = "the file was written after the recording began: this may not be what ran"
    return Excerpt(
        [(number, _decoded(each, encoding)) for number, each in enumerate(around, first)],
        note if written > started else "",
    )


def _read(path: str) -> tuple[bytes, int]:
    """The beginning of a regular file, a byte longer than MOST if there is more; when it was written last,
    in ns since 1970. Raises OSError, ValueError."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # to open a pipe or a device may do something to it
        raise OSError(0, "it is not a file", path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):  # another one meanwhile
            raise OSError(0, "it is not a file", path)
        return opened.read(MOST + 1), status.st_mtime_ns


def _encoding(data: bytes) -> str:
    """As Python finds it: by the file's first lines."""
    from tokenize import detect_encoding

    try:
        return detect_encoding(BytesIO(data[: 2 * _LONGEST]).readline)[0]
    except (SyntaxError, ValueError, LookupError):
        return "utf-8"


def _decoded(line: bytes, encoding: str) -> str:
    """A line, without its tabs, and without what is far to the right."""
    try:
        text = line[:_LONGEST].decode(encoding, "replace")
    except (LookupError, ValueError):  # an encoding that is not of texts, or that replaces nothing
        text = line[:_LONGEST].decode("utf-8", "replace")
    return text.expandtabs(_TAB)
