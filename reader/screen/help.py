"""Help, made from the table of keys: on the screen, and as docs/reader.md has it."""

from __future__ import annotations

from .command_line import LINE_COMMANDS
from .keys import GROUPS, SWITCHES, TYPED, shown
from .look import Look
from .model import Line

_WIDTH = 26


def help_lines(look: Look) -> list[Line]:
    """The page that `h` shows."""
    own = look.own
    lines = [
        Line("A number N before a key counts. What less has does what it does in less."),
    ]
    for title, commands in GROUPS:
        lines += [Line(""), _title(title)]
        lines += [_entry(own("  ".join(map(shown, command.keys))), own(command.help)) for command in commands]
    lines += [Line(""), _title("Switches")]
    lines += [_entry(f"-{switch.letter}", f"{switch.help}  (:{switch.name})") for switch in SWITCHES]
    lines += [Line(""), _title("Behind :")]
    lines += [_entry(f":{each.name} {each.argument}", each.help) for each in LINE_COMMANDS]
    names = ", ".join(command.name for command in TYPED)
    lines += [Line(""), Line(f"and, with N behind it where it takes one: {names}")]
    return lines


def help_markdown() -> str:
    """The same for docs/reader.md."""
    parts = []
    for title, commands in GROUPS:
        parts.append(f"### {title}\n\n| keys | command | |\n| --- | --- | --- |")
        for command in commands:
            keys = " ".join(
                f"`` {shown(key)} ``" if "`" in key else f"`{shown(key)}`" for key in command.keys
            )
            name = f"`:{command.name}`" if command in TYPED else ""
            parts[-1] += f"\n| {keys.replace('|', chr(92) + '|')} | {name} | {command.help} |"
    parts.append("### Switches\n\n| keys | command | |\n| --- | --- | --- |")
    for switch in SWITCHES:
        parts[-1] += f"\n| `-{switch.letter}` | `:{switch.name}` | {switch.help} |"
    parts.append("### Behind `:`\n\n| command | |\n| --- | --- |")
    for each in LINE_COMMANDS:
        typed = f":{each.name} {each.argument}".strip().replace("|", chr(92) + "|")
        parts[-1] += f"\n| `{typed}` | {each.help} |"
    return "\n\n".join(parts) + "\n"


def _title(text: str) -> Line:
    return Line(text, ((0, len(text), "title"),))


def _entry(keys: str, help: str) -> Line:
    text = f"  {keys:<{_WIDTH}} {help}"
    return Line(text, ((2, 2 + len(keys), "key"),))
