"""`pytrace --complete SHELL`: real shells load the scripts, and complete what is typed on a
terminal."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pexpect
import pytest

from pytracer.cli import COMMANDS
from pytracer.options import CliCommand

PYTRACE = Path(sys.executable).with_name("pytrace")
SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    return subprocess.run([PYTRACE, "--complete", shell], capture_output=True, text=True, check=True).stdout


class Shell:
    """A shell on a terminal, without anybody's own settings, that has loaded the script. `pytrace`
    shows its arguments."""

    def __init__(self, name: str, folder: Path) -> None:
        (folder / "script").write_text(script(name))
        for file in ("app.py", "recording.sqlite", "my recording.sqlite", "source/module.py"):
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).touch()
        start = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
        environ = os.environ | {"TERM": "xterm", "HOME": str(folder), "INPUTRC": "/dev/null"}
        self.process = pexpect.spawn(
            name,
            [*start, "-i"],
            cwd=str(folder),
            env=environ,
            encoding="utf-8",
            dimensions=(60, 200),
            timeout=60,
        )
        before = "autoload -U compinit; compinit -D -u; " if name == "zsh" else ""
        shows = (
            "function pytrace; printf '<%s>' $argv; echo; end"
            if name == "fish"
            else "pytrace() { printf '<%s>' \"$@\"; echo; }"
        )
        self.process.sendline(f"{before}source ./script; {shows}; pytrace is loaded")
        self.process.expect_exact("<is><loaded>")

    def runs(self, typed: str, arguments: str) -> None:
        """That after Tab these are the arguments."""
        self.process.send(f"pytrace {typed}\t")
        self.process.send("\r")
        self.process.expect_exact(arguments + "\r\n")

    def lists(self, typed: str, words: list[str]) -> None:
        """That Tab offers these words."""
        self.process.send(f"pytrace {typed}\t\t")
        for _ in words:
            found = self.process.expect([rf"(?<!-){word}(?![\w-])" for word in words])
            words = [word for number, word in enumerate(words) if number != found]
        self.process.send("\x03")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.close(force=True)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    if not shutil.which(request.param):
        assert request.param != "bash"
        pytest.skip(f"{request.param} is not installed")
    with Shell(request.param, tmp_path) as shell:
        yield shell


# typed, and the arguments after Tab
COMPLETED = {
    "pri": "<print>",
    "inf": "<info>",
    "print --fol": "<print><--follow>",
    "print --format j": "<print><--format><json>",
    "print --format=j": "<print><--format=json>",
    "info x --ext": "<info><x><--extension>",
    "info --doc": "<info><--doctor>",
    "print rec": "<print><recording.sqlite>",
    "print my": "<print><my recording.sqlite>",
    "read --limit 3 --fil": "<read><--limit><3><--filter>",
    "--max-t": "<--max-traces>",
    "-q --output rec": "<-q><--output><recording.sqlite>",
    "--complete b": "<--complete><bash>",
    "app": "<app.py>",
    "-q app": "<-q><app.py>",
    "--modules source/m": "<--modules><source/module.py>",
    "--modules source app": "<--modules><source><app.py>",
    # these belong to the program
    "app.py --fol": "<app.py><--fol>",
    "app.py rec": "<app.py><recording.sqlite>",
    "-m app --max-t": "<-m><app><--max-t>",
}


def test_what_is_typed_is_completed(shell: Shell) -> None:
    for typed, arguments in COMPLETED.items():
        shell.runs(typed, arguments)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name or "record")
def test_all_options_are_offered(shell: Shell, command: CliCommand) -> None:
    shell.lists(f"{command.name} --".lstrip(), [option.flag for option in command.options])


def test_all_choices_are_offered(shell: Shell) -> None:
    for command in COMMANDS:
        for option in command.options:
            if option.choices:
                shell.lists(f"{command.name} {option.flag} ".lstrip(), list(option.choices))


def test_only_shells_have_scripts() -> None:
    done = subprocess.run([PYTRACE, "--complete", "csh"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "bash, zsh, fish" in done.stderr
