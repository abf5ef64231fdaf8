"""Copies text out of the reader: to the terminal's clipboard, or into a new file. Called by the app.

OSC 52 asks the terminal to take a text into its clipboard, also over ssh. Not every terminal does, and
none says whether it did.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress

LIMIT = 74_994  # bytes: with base64 and its frame 100,000, which terminals are known to take


def held(text: str, limit: int = LIMIT) -> str:
    """The part of a text that a terminal takes, from its beginning."""
    return _bytes(text)[:limit].decode("utf-8", "ignore")


def osc52(text: str, limit: int = LIMIT, environ: Mapping[str, str] = os.environ) -> bytes:
    """What to write to a terminal so that `held(text)` is in its clipboard.

    tmux takes OSC 52 itself where its option `set-clipboard` is on, and hands on to the terminal what is
    wrapped for it where `allow-passthrough` is on. It says nothing about either; so it gets both.
    """
    sequence = b"\x1b]52;c;" + b64encode(_bytes(held(text, limit))) + b"\x07"
    if environ.get("TMUX"):
        sequence += b"\x1bPtmux;" + sequence.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
    return sequence


def save(text: str, path: str) -> None:
    """Writes a text into a new file, for its owner alone. Raises FileExistsError, OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as opened:
            opened.write(_bytes(text))
    except OSError:
        with suppress(OSError):
            os.unlink(path)
        raise


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # lone surrogates as they are shown
