"""Stored names of files as bytes of the file system."""

import re

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


def path_bytes(stored: str) -> bytes:
    """The bytes of a name in the columns `file`, `directory` or `command`. csrc/common/path_text.h
    has their form: `\\xNN` is the byte NN."""
    text = stored.encode("utf-8", "surrogatepass")
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), text)
