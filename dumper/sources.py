"""The source text of files whose lines are recorded, as it is while the program runs.

The pump says which code objects were defined; here it is found out which files these are in, and
what is in the files. The names come from the recorded program: so only a regular file is opened,
and nothing of it is run. A file that cannot be read, or that is too large, is left out.
"""

import os
import re
import stat
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import NamedTuple

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress

MOST = 4 << 20  # bytes of a file
TEXT_MOST = 3 * MOST  # bytes of its text in UTF-8: TEXT_MAX of csrc/query/sqlite_source.c
MOST_FILES = 1 << 16  # of a run
LEVEL = 3  # of zstd
FIRST_LINES = 4096  # bytes, in which Python looks for the encoding
QUADRATIC = ("idna", "punycode")  # encodings: a long text of them would take minutes

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


class SourceFile(NamedTuple):
    """A row of the table `source_file`, without run, in the order of its columns."""

    file: str
    changed: bool
    size: int
    data: bytes


class Sources:
    """The files whose source is still to be stored, in the order in which they were met."""

    def __init__(self, settings: Mapping[str, str], started: int) -> None:
        """settings: of the ring. started: of the recording, ns since 1970."""
        self._lines = "" if settings.get("no_sources") == "1" else settings.get("lines", "")
        self._started = started
        self._met: set[str] = set()
        self.wanted: deque[str] = deque()  # names as in the column `code.file`

    def want(self, codes: Iterable[tuple[str, str, bool]]) -> None:
        """Takes note of the files of new code objects: file, language, and whether it is own
        code."""
        if not self._lines:
            return
        for file, language, mine in codes:
            if language != "python" or not (mine or self._lines == "all"):
                continue  # its lines are not recorded
            if file.startswith("/") and file not in self._met and len(self._met) < MOST_FILES:
                self._met.add(file)
                self.wanted.append(file)

    def read(self, file: str) -> SourceFile | None:
        """The row of a file. None: there is nothing to store."""
        try:
            data, written = _content(_path_bytes(file))
        except (OSError, ValueError):
            return None
        text = decoded(data) if len(data) <= MOST else b""
        if len(data) > MOST or len(text) > TEXT_MOST:
            return None
        return SourceFile(file, written > self._started, len(text), compress(text, LEVEL))


def _path_bytes(file: str) -> bytes:
    """The bytes of a name; csrc/common/path_text.h has the form."""
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), file.encode())


def _content(path: bytes) -> tuple[bytes, int]:
    """The bytes of a regular file, one more than MOST if there are more; and the time of its last
    change, in ns since 1970. Raises OSError, ValueError."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe or a device may change it
        raise OSError
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # another one meanwhile
            raise OSError
        data = opened.read(MOST + 1)
        return data, os.fstat(descriptor).st_mtime_ns  # afterwards: it may be written meanwhile


def decoded(data: bytes) -> bytes:
    """The text of a source file in UTF-8, decoded as Python does (PEP 263), with \\n at the ends of
    its lines. A byte that is wrong in the encoding becomes U+FFFD."""
    try:
        encoding = _encoding(data[:FIRST_LINES])
        text = data.decode("utf-8" if encoding in QUADRATIC else encoding, "replace")
    except (SyntaxError, ValueError, LookupError):  # it is no encoding, or not one of texts
        text = data.decode("utf-8-sig", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace")


def _encoding(head: bytes) -> str:
    """As the file's first lines say. Raises SyntaxError."""
    if b"coding" not in head:
        return "utf-8-sig"  # with or without a byte order mark

    from tokenize import detect_encoding  # its import takes as long as reading many files

    return detect_encoding(BytesIO(head).readline)[0]
