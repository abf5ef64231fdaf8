"""What the reader does with the terminal besides drawing: the bell, other programs, the clipboard. Called by
the actions and by following.py; what is to be said is returned.
"""

from __future__ import annotations

import os
import signal
import subprocess

import urwid


class Outside:
    """The terminal of a screen."""

    def __init__(self, screen: urwid.display.raw.Screen) -> None:
        self._screen = screen

    def bell(self) -> None:
        """Rings."""
        self._screen.write("\a")
        self._screen.flush()

    def call(self, command: list[str]) -> str:
        """Runs another program on the terminal, and comes back. Returns what went wrong, or nothing."""
        self._screen.stop()
        # Ctrl-C and Ctrl-\ are for the other program; it begins with what they do by default
        before = {key: signal.signal(key, lambda *_: None) for key in (signal.SIGINT, signal.SIGQUIT)}
        problem = ""
        try:
            status = subprocess.call(command)
            if status:
                problem = f"{command[0]} ended with status {status}"
        except OSError as error:
            problem = f"{command[0]} cannot be started: {error.strerror}; $VISUAL or $EDITOR names another"
        finally:
            for key, handler in before.items():
                signal.signal(key, handler)
        self._screen.start()  # not where a signal ends the reader: the terminal may be gone
        self._screen.clear()
        return problem

    def copy(self, text: str, what: str, file: str) -> str:
        """To the terminal's clipboard, or into a new file. Returns what was done; raises OSError."""
        from .clipboard import held, osc52, save

        if file:
            save(text, os.path.expanduser(file))
            return f"{what} is in {file}"
        self._screen.write(osc52(text).decode("ascii"))
        self._screen.flush()
        kept = held(text)
        part = f"the first {len(kept):,} characters of {what}" if len(kept) < len(text) else what
        return f"{part} copied, if the terminal lets programs do that; :copy FILE writes it to a file"
