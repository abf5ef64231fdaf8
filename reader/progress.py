"""Says on a terminal how far a query has come that shows nothing for a second.

Its `look` is called while a query runs (Database's `watch`). How far the scan is comes from the extension,
by a function that SQL does not know of.
"""

from __future__ import annotations

import os
import sys
import time

_PATIENCE = 1.0  # s
_REFRESH = 0.1


class Progress:
    """A line on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _PATIENCE if _is_terminal() else float("inf")
        self._shown = False
        self._most = 0  # segments of a query since something else was shown

    def look(self) -> None:
        """Shows the line where it is due. Cheap enough to be called all the time."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _REFRESH
            self._show()

    def _show(self) -> None:
        opened, count = scanned()
        self._most = max(self._most, count)
        opened, count = opened + self._most - count, self._most  # a query begins where the one before ended
        share = f" ({opened * 100 // count} %)" if count else ""
        self._shown = True  # first: Ctrl-C may come at any time
        print(f"\r{opened:,} of {count:,} segments{share}\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Something else is shown: the line goes, and comes again only after some time."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False
        self._most = 0
        if self._next != float("inf"):
            self._next = time.monotonic() + _PATIENCE


def scanned() -> tuple[int, int]:
    """How many segments were opened of those that this thread's scan is to look through, and all of them."""
    import ctypes

    from .database import extension_path

    opened, count = ctypes.c_int64(), ctypes.c_int64()
    # opened by its path it is the one that SQLite has loaded
    ctypes.CDLL(extension_path()).sqlite_trace_progress(ctypes.byref(opened), ctypes.byref(count))
    return opened.value, count.value


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
