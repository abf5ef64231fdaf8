"""The hints at the right of the status line: five keys, each until it has been used once.

The names of the commands that were used are kept beside the history of prompts (history.py).
"""

from __future__ import annotations

from .history import History

# commands, with their keys; a narrow screen has no room for the first of them
HINTS = {
    "filter": "&: filter",
    "search": "/: search",
    "detail": "Tab: values",
    "fold": "Enter: open",
    "help": "h: keys",
}


class Hints:
    """The hints that are left."""

    def __init__(self) -> None:
        self._kept = History("used")
        used = self._kept.lines()
        self.left = {name: hint for name, hint in HINTS.items() if name not in used}

    def used(self, name: str) -> None:
        """A command was used: its hint has done its work."""
        if self.left.pop(name, None):
            self._kept.add(name)
