"""Which command opens a file at a line in the user's editor. Called by actions.py; the app runs it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping

_ADVICE = "set VISUAL or EDITOR to an editor that is, such as: export VISUAL=nano"


class EditorMissing(Exception):
    """There is no editor to start; the message says what to do."""


def _plus(line: int, file: str) -> list[str]:
    return [f"+{line}", file]


def _colon(line: int, file: str) -> list[str]:
    return [f"{file}:{line}"]


def _goto(line: int, file: str) -> list[str]:
    return ["--goto", f"{file}:{line}"]


def _option(line: int, file: str) -> list[str]:
    return ["--line", str(line), file]


# By the program's name, without what follows a dot or a dash (vim.tiny, emacs-nox): how it is told a line,
# and what makes a window of its own wait until the file is closed.
_Form = Callable[[int, str], "list[str]"]
_EDITORS: dict[str, tuple[_Form, str]] = {
    **dict.fromkeys(
        ("vi", "vim", "nvim", "view", "nvi", "nano", "pico", "emacs", "emacsclient", "micro", "kak", "joe",
         "jmacs", "mg", "zile", "ne", "mcedit", "less"),
        (_plus, ""),
    ),
    **dict.fromkeys(("gvim", "mvim"), (_plus, "--nofork")),
    **dict.fromkeys(("hx", "helix"), (_colon, "")),
    **dict.fromkeys(("subl", "sublime_text", "zed", "zeditor"), (_colon, "--wait")),
    **dict.fromkeys(("code", "codium", "vscodium", "cursor", "windsurf"), (_goto, "--wait")),
    **dict.fromkeys(("pycharm", "charm", "idea"), (_option, "--wait")),
    "kate": (_option, "--block"),
    "gedit": (_plus, "--wait"),
}  # fmt: skip
_SHORT = {"--wait": "-w", "--nofork": "-f", "--block": "-b"}


def command(file: str, line: int, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The words of the command. line: from 1; 0: not known. Raises EditorMissing."""
    words = _words(environ)
    if file.startswith(("-", "+")):  # no option
        file = os.path.join(".", file)
    form, wait = _EDITORS.get(re.split(r"[.\-]", os.path.basename(words[0]))[0], (None, ""))
    if wait and not {wait, _SHORT[wait]} & {*words}:
        words.append(wait)
    return [*words, *(form(line, file) if form and line > 0 else [file])]


def _words(environ: Mapping[str, str]) -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        value = environ.get(name, "")
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise EditorMissing(f"${name} cannot be read ({error}): {value}") from None
        if words:
            return _found(words, f"${name} is {value}, which is not here", environ)
    return _found(["vi"], "there is no vi", environ)


def _found(words: list[str], problem: str, environ: Mapping[str, str]) -> list[str]:
    if shutil.which(words[0], path=environ.get("PATH")) is None:
        raise EditorMissing(f"{problem}; {_ADVICE}")
    return words
