"""docs/reader.md has the keys that the reader has, and no two commands share one."""

import subprocess
import sys
from pathlib import Path

from pytracer.reader.screen.commands.help import help_lines
from pytracer.reader.screen.commands.table import BY_KEY, COMMANDS, HELP, PREFIXES, SWITCHES, TYPED
from pytracer.reader.screen.lines import DisplayOptions

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_reader_says() -> None:
    made = subprocess.run(
        [sys.executable, "-P", str(DOCS / "reader.py")], capture_output=True, encoding="utf-8", check=True
    )
    assert made.stdout == (DOCS / "reader.md").read_text(), "python docs/reader.py > docs/reader.md"


def test_each_key_has_one_command() -> None:
    keys = [key for command in COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys)) == len(BY_KEY)
    assert {key for key in PREFIXES if key != "Z"} <= set(keys)
    assert len({switch.letter for switch in SWITCHES}) == len(SWITCHES)
    names = [each.name for each in (*TYPED, *SWITCHES)]
    assert len(names) == len(set(names)), "each has its name behind `:`"


def test_help_tells_every_command_and_switch() -> None:
    text = "\n".join(line.text for line in help_lines(HELP, DisplayOptions()))
    assert all(command.help in text for command in COMMANDS)
    assert all(f"-{switch.letter}" in text and switch.help in text for switch in SWITCHES)
