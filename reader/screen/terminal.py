"""The terminal besides the screen: the bell, the clipboard, other programs such as the user's
editor.

OSC 52 asks the terminal to take a text into its clipboard, also over ssh. Not every terminal does,
and none says whether it did.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol


class Display(Protocol):
    """The methods of the screen (urwid: display) that are needed here."""

    def write(self, data: str) -> None: ...
    def flush(self) -> None: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...
    def clear(self) -> None: ...


class Terminal:
    """The terminal of a screen."""

    def __init__(self, screen: Display) -> None:
        self._screen = screen

    def bell(self) -> None:
        """Rings."""
        self._screen.write("\a")
        self._screen.flush()

    def call(self, command: list[str]) -> str:
        """Runs another program on the terminal. Returns the error, or an empty text."""
        self._screen.stop()
        # Ctrl-C and Ctrl-\ are for the other program, which starts with their defaults
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
        self._screen.start()  # not if a signal ends the reader: the terminal may be gone
        self._screen.clear()
        return problem

    def copy(self, text: str, what: str, file: str) -> str:
        """Copies to the terminal's clipboard, or into a new file. Returns a message; raises
        OSError."""

        if file:
            save(text, os.path.expanduser(file))
            return f"{what} is in {file}"
        self._screen.write(osc52(text).decode("ascii"))
        self._screen.flush()
        kept = held(text)
        part = f"the first {len(kept):,} characters of {what}" if len(kept) < len(text) else what
        return f"{part} copied, if the terminal lets programs do that; :copy FILE writes it to a file"


LIMIT = 74_994  # bytes: with base64 and its frame 100,000, which terminals are known to take


def held(text: str, limit: int = LIMIT) -> str:
    """The part of a text that a terminal takes, from its beginning."""
    return _bytes(text)[:limit].decode("utf-8", "ignore")


def osc52(text: str, limit: int = LIMIT, environ: Mapping[str, str] = os.environ) -> bytes:
    """The bytes that put `held(text)` into the clipboard of the terminal they are written to.

    tmux takes OSC 52 itself if its option `set-clipboard` is on. If `allow-passthrough` is on, it
    hands wrapped bytes on to the terminal. It does not tell its options, so it gets both forms.
    """
    sequence = b"\x1b]52;c;" + b64encode(_bytes(held(text, limit))) + b"\x07"
    if environ.get("TMUX"):
        sequence += b"\x1bPtmux;" + sequence.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
    return sequence


def save(text: str, path: str) -> None:
    """Writes a text into a new file, for its owner alone. Raises FileExistsError, OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as opened:
            opened.write(_bytes(text))
    except OSError:
        with suppress(OSError):
            os.unlink(path)
        raise


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # lone surrogates as they are shown


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


# By the program's name, cut at a dot or a dash (vim.tiny, emacs-nox): its option for a line, and
# the option that makes a program with its own window wait until the file is closed.
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


def editor_command(file: str, line: int, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The words of the command. line: from 1; 0: not known. Raises EditorMissing."""
    words = _words(environ)
    if file.startswith(("-", "+")):  # no option
        file = os.path.join(".", file)
    form, wait = _EDITORS.get(re.split(r"[.\-]", os.path.basename(words[0]))[0], (None, ""))
    if wait and not {wait, _SHORT[wait]} & {*words}:
        words.append(wait)
    return [*words, *(form(line, file) if form and line > 0 else [file])]


def _words(environ: Mapping[str, str]) -> list[str]:
    import shlex  # this and shutil take 5 ms of the start, and few sessions open an editor

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
    import shutil

    if shutil.which(words[0], path=environ.get("PATH")) is None:
        raise EditorMissing(f"{problem}; {_ADVICE}")
    return words
