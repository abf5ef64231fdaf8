"""Help for the screen and for docs/reader.md, made from the tables of commands; names of keys."""

from __future__ import annotations

from typing import NamedTuple

from ..lines import DisplayOptions
from ..text import Line
from .command import Command, Group, Switch, TypedCommand

_WIDTH = 26
_SHOWN = {
    " ": "space", "down": "↓", "up": "↑", "left": "←", "right": "→", "enter": "Enter", "tab": "Tab",
    "backspace": "Backspace", "page down": "PgDn", "page up": "PgUp", "home": "Home", "end": "End",
}  # fmt: skip


class Help(NamedTuple):
    """The tables for help. typed: commands of keys that can also be typed."""

    groups: tuple[Group, ...]
    switches: tuple[Switch, ...]
    typed_commands: tuple[TypedCommand, ...]
    typed: tuple[Command, ...]


def help_lines(help: Help, display: DisplayOptions) -> list[Line]:
    """The page that `h` shows."""
    own = display.own
    lines = [
        Line("A number N before a key counts. What less has does what it does in less."),
    ]
    for title, commands in help.groups:
        lines += [Line(""), _title(title)]
        lines += [_entry(own("  ".join(map(shown, command.keys))), own(command.help)) for command in commands]
    lines += [Line(""), _title("Switches")]
    lines += [_entry(f"-{switch.letter}", f"{switch.help}  (:{switch.name})") for switch in help.switches]
    lines += [Line(""), _title("Behind :")]
    lines += [_entry(f":{each.name} {each.argument}", each.help) for each in help.typed_commands]
    names = ", ".join(command.name for command in help.typed)
    lines += [Line(""), Line(f"and, with N behind it where it takes one: {names}")]
    return lines


def help_markdown(help: Help) -> str:
    """The same for docs/reader.md."""
    parts = []
    for title, commands in help.groups:
        parts.append(f"### {title}\n\n| keys | command | |\n| --- | --- | --- |")
        for command in commands:
            keys = " ".join(
                f"`` {shown(key)} ``" if "`" in key else f"`{shown(key)}`" for key in command.keys
            )
            name = f"`:{command.name}`" if command in help.typed else ""
            parts[-1] += f"\n| {keys.replace('|', chr(92) + '|')} | {name} | {command.help} |"
    parts.append("### Switches\n\n| keys | command | |\n| --- | --- | --- |")
    for switch in help.switches:
        parts[-1] += f"\n| `-{switch.letter}` | `:{switch.name}` | {switch.help} |"
    parts.append("### Behind `:`\n\n| command | |\n| --- | --- |")
    for each in help.typed_commands:
        typed = f":{each.name} {each.argument}".strip().replace("|", chr(92) + "|")
        parts[-1] += f"\n| `{typed}` | {each.help} |"
    return "\n\n".join(parts) + "\n"


def _title(text: str) -> Line:
    return Line(text, ((0, len(text), "title"),))


def _entry(keys: str, help: str) -> Line:
    text = f"  {keys:<{_WIDTH}} {help}"
    return Line(text, ((2, 2 + len(keys), "key"),))


def shown(key: str) -> str:
    """A key as people write it: `^F`, `ESC-v`, `PgDn`."""
    if key.startswith("ctrl "):
        return "^" + key[5:].upper()
    if key.startswith("meta "):
        return "ESC-" + shown(key[5:])
    if key.startswith("shift "):
        return "shift-" + shown(key[6:])
    return _SHOWN.get(key, key)
