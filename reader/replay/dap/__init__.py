"""`pytrace replay DB --dap`: a recording as a debug session of an editor (Debug Adapter Protocol).

`protocol` has the messages, `session` a method a request, `view` what is shown of a moment, `files`
the sources, `wanted` the client's breakpoints, `stops` where these stop a walk.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

from ....messages import say
from ....options import UsageError


def run(options: SimpleNamespace) -> int:
    """Serves a client on standard input and output. Returns the exit status. Raises UsageError,
    OSError."""
    from .protocol import Channel
    from .session import Session

    if sys.stdin is None:
        raise UsageError("--dap speaks with an editor, and standard input is closed")
    if sys.stdin.isatty():
        raise UsageError("--dap is for an editor that starts this command; without it there is a screen")
    channel = Channel(sys.stdin.fileno(), sys.stdout.buffer)
    session = Session(channel, options)
    try:
        session.serve()
    finally:
        session.close()
    if channel.problem:
        say(f"{channel.problem}; the session has ended")
        return 2
    return 0
