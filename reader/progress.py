"""Shows the progress of a query on a terminal if nothing else was shown for a second.

Database calls `look` while a query runs (its `watch`). The extension tells the progress of the scan
by a C function.
"""

from __future__ import annotations

import os
import sys
import time

_PATIENCE = 1.0  # s
_REFRESH = 0.1


class Progress:
    """A line on standard error, if that is a terminal."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _PATIENCE if _is_terminal() else float("inf")
        self._shown = False
        self._most = 0  # segments of a query since something else was shown

    def look(self) -> None:
        """Shows the line if it is due. Cheap enough to be called all the time."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _REFRESH
            self._show()

    def _show(self) -> None:
        opened, count = scanned()
        self._most = max(self._most, count)
        # a query begins where the one before ended
        opened, count = opened + self._most - count, self._most
        share = f" ({opened * 100 // count} %)" if count else ""
        self._shown = True  # first: Ctrl-C may come at any time
        print(f"\r{opened:,} of {count:,} segments{share}\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line for other output; it comes again only after some time."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False
        self._most = 0
        if self._next != float("inf"):
            self._next = time.monotonic() + _PATIENCE


def scanned() -> tuple[int, int]:
    """The number of segments that this thread's scan has opened, and of all that it has to scan."""
    import ctypes

    from .database import extension_path

    opened, count = ctypes.c_int64(), ctypes.c_int64()
    # the same path gives the library that SQLite has loaded
    ctypes.CDLL(extension_path()).sqlite_trace_progress(ctypes.byref(opened), ctypes.byref(count))
    return opened.value, count.value


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
