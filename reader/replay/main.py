"""Opens a replay: the screen, or the debug adapter (--dap). Called by subcommands.py."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

from ...options import UsageError


def run(options: SimpleNamespace) -> int:
    """Returns the exit status. Raises DatabaseError, UsageError, OSError."""
    if options.dap:
        from . import dap

        return dap.run(options)
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        raise UsageError("a replay needs a terminal; for an editor there is --dap; pytrace print prints")
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        raise UsageError("this terminal cannot show a screen (TERM)")
    from .screen import main

    return main.run(options)
