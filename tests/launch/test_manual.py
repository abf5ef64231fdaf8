"""The manual page: installed where `man` looks, read without a warning, and with every option in
it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytracer.cli import COMMANDS, OPTIONS

PAGE = Path(sys.prefix) / "share" / "man" / "man1" / "pytrace.1"
# what shows the page as text, and warns of what is wrong in it
READERS = {
    "groff": ["groff", "-man", "-Tutf8", "-P-cbou", "-ww"],
    "mandoc": ["mandoc", "-T", "utf8", "-W", "warning"],
}


def shown(command: list[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, env=os.environ | {"MANWIDTH": "100"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    return re.sub(r".\x08", "", done.stdout).replace("\N{HYPHEN}", "-").replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize("reader", READERS)
def test_it_is_read_without_warnings(reader: str) -> None:
    if not shutil.which(reader):
        pytest.skip(f"{reader} is not installed")
    text = shown([*READERS[reader], str(PAGE)])
    for command in COMMANDS:
        assert all(form in text for form, _ in command.forms)
        flags = [flag for option in command.options for flag in option.flags]
        assert all(re.search(rf"(?m)^ +.*{flag}\b", text) for flag in flags)
    assert all(variable in text for option in OPTIONS for variable in option.variables)
    assert 'max-size = "200MB"' in text


def test_no_line_of_it_is_long_or_unknown() -> None:
    macros = {"TH", "SH", "SS", "TP", "PP", "B", "br", "nf", "fi", "RS", "RE"}
    requests = re.findall(r"(?m)^[.']([^ \n]*)", PAGE.read_text())
    assert set(requests) <= macros


def test_man_finds_it() -> None:
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    path = f"{PAGE.parents[3] / 'bin'}:{os.environ['PATH']}"
    environ = {name: value for name, value in os.environ.items() if name != "MANPATH"}
    done = subprocess.run(
        ["man", "-w", "pytrace"], capture_output=True, text=True, check=True, env=environ | {"PATH": path}
    )
    assert Path(done.stdout.strip()).samefile(PAGE)
