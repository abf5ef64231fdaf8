"""The table of all keys: for app.py, for help, and for docs/replay.md; their names are urwid's."""

from __future__ import annotations

from ...screen.commands.help import shown
from ...screen.effects import Quit, Result, ShowPage
from ...screen.text import Line
from .command import Command, Count, Group, LetterCommand
from .hits_table import HITS
from .panes import PANES
from .prompts import CONTINUING, JUMPING
from .sought import VALUES
from .steps import PLACES, STEPS
from .threads import THREADS
from .walk import Walk

_WIDTH = 20


def show_help(walk: Walk, count: Count) -> ShowPage:
    return ShowPage("keys", help_lines())


def leave(walk: Walk, count: Count) -> Result:
    return Quit()


GENERAL = Group(
    "Everything else",
    (
        Command("help", ("h", "?"), "this page; h, q and Esc leave it", show_help),
        Command("quit", ("q", "Q"), "ends the replay", leave),
    ),
)
GROUPS: tuple[Group, ...] = (STEPS, CONTINUING, VALUES, HITS, PLACES, JUMPING, THREADS, PANES, GENERAL)
COMMANDS = tuple(command for group in GROUPS for command in group.commands)
_BY_KEY = {(command.pane, key): command for command in COMMANDS for key in command.keys}
PREFIXES = tuple(key for command in COMMANDS if isinstance(command, LetterCommand) for key in command.keys)


def command_of(key: str, pane: str) -> Command | LetterCommand | None:
    """The meaning of a key while a pane has the focus."""
    return _BY_KEY.get((pane, key)) or _BY_KEY.get(("", key))


def _title(text: str) -> Line:
    return Line(text, ((0, len(text), "title"),))


def help_lines() -> list[Line]:
    """The page that `h` shows."""
    lines: list[Line] = []
    for title, commands in GROUPS:
        lines += [*([Line("")] if lines else []), _title(title)]
        for command in commands:
            keys = "  ".join(map(shown, command.keys))
            text = f"  {keys:<{_WIDTH}} {command.help}"
            lines.append(Line(text, ((2, 2 + len(keys), "key"),)))
    return lines


def help_markdown() -> str:
    """The same for docs/replay.md."""
    parts = []
    for title, commands in GROUPS:
        rows = [f"### {title}", "", "| keys | |", "| --- | --- |"]
        for command in commands:
            keys = " ".join(
                f"`` {shown(key)} ``" if "`" in key else f"`{shown(key)}`" for key in command.keys
            )
            rows.append(f"| {keys.replace('|', chr(92) + '|')} | {command.help} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"
