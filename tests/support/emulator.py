"""A terminal's inside: takes the bytes that a program sends, and is the screen that they make.

pyte draws the text. This module does the rest: private modes, questions to the terminal (answered
as xterm does), the clipboard, the bell. Whatever has no place in the output of a careful
full-screen program is kept in `strange`. Called by terminal.py and screenshot.py.
"""

from __future__ import annotations

import base64
import codecs
import functools
import re

import pyte
import wcwidth

_TOKEN = re.compile(
    r"\x1b\[(?P<private>[<-?]?)(?P<numbers>[0-9;:]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b\](?P<command>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b(?P<charset>[()][0-9A-B])"
    r"|\x1b(?P<escape>[0-9=>cM])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
)
_LONGEST = 200_000  # characters of an unfinished sequence
_DRAWING = frozenset("ABCDGHJKLMPXdmr@")  # final letters of sequences that move, clear, colour
_CONTROLS = frozenset("\b\r\n\x0e\x0f")
_PLAIN_MODES = frozenset(("4h", "4l"))  # insert, as urwid does it in a last column

CURSOR, MOUSE, FOCUS, ALTERNATE, PASTE = 25, 1000, 1004, 1049, 2004
_MODES = {1, 7, 12, CURSOR, MOUSE, 1002, FOCUS, 1006, ALTERNATE, PASTE, 2026}
_FIRST_MODES = {7, CURSOR}  # line wrap, and a cursor that is seen


class Emulator:
    """A screen of some rows and columns.

    screen: pyte's. sent: all bytes so far. answers: what the terminal has to say to the program,
    for whoever sends it there. modes: the private modes that are on. copied: the texts that OSC 52
    put into the clipboard. bells: how often it rang. strange: controls and unprintable text that no
    value may bring here.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.sent = bytearray()
        self.answers = ""
        self.modes = set(_FIRST_MODES)
        self.copied: list[str] = []
        self.bells = 0
        self.strange: list[str] = []
        self._stream = pyte.Stream(self.screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._rest = ""

    def feed(self, data: bytes) -> None:
        self.sent += data
        text = self._rest + self._decoder.decode(data)
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                if len(text) - at < _LONGEST and not _hopeless(text[at : at + 2]):
                    break
                self.strange.append(text[at : at + 20])
                at += 1
                continue
            at = token.end()
            self._take(token)
        self._rest = text[at:]

    def resize(self, rows: int, columns: int) -> None:
        self.screen.resize(rows, columns)

    @property
    def display(self) -> list[str]:
        """The rows as text. pyte measures each character; only wide ones make a difference."""
        columns = range(self.screen.columns)
        rows = [self.screen.buffer[y] for y in range(self.screen.lines)]
        texts = ["".join([row[x].data for x in columns]) for row in rows]
        return self.screen.display if any(map(_is_wide, set().union(*texts))) else texts

    @property
    def at_rest(self) -> bool:
        """All is as it is in a terminal before a program comes."""
        return self.modes - {2026} == _FIRST_MODES and not self._rest

    def _take(self, token: re.Match[str]) -> None:
        kind, whole = token.lastgroup, token.group()
        if kind == "text":
            if not whole.isprintable():
                self.strange.append(whole)
            self.screen.draw(whole)  # what the stream would do with it, after a longer look
        elif kind == "final":
            self._sequence(token)
        elif kind == "command":
            self._command(token["command"])
        elif whole == "\a":
            self.bells += 1
        elif kind == "control" and whole not in _CONTROLS:
            self.strange.append(whole)
        else:
            self._stream.feed(whole)

    def _sequence(self, token: re.Match[str]) -> None:
        private, numbers, between, final = token.group("private", "numbers", "between", "final")
        if final == "m" and not private + between and not numbers.strip("0123456789;"):
            # by far most of them; the stream would look at each of its characters
            self.screen.select_graphic_rendition(*(int(number or 0) for number in numbers.split(";")))
            return
        modes = [int(number) for number in numbers.split(";") if number.isdigit()]
        match private, between, final:
            case "?", "", "h" | "l" if modes and _MODES.issuperset(modes):
                (self.modes.update if final == "h" else self.modes.difference_update)(modes)
                self._stream.feed(token.group())
            case "?", "$", "p":
                self.answers += f"\x1b[?{numbers};{2 if int(numbers) in _MODES else 0}$y"
            case "", "", "c":
                self.answers += "\x1b[?62;22c"
            case "", "", "n" if numbers == "6":
                self.answers += f"\x1b[{self.screen.cursor.y + 1};{self.screen.cursor.x + 1}R"
            case "", "", _ if final in _DRAWING or numbers + final in _PLAIN_MODES:
                self._stream.feed(token.group())
            case _:
                self.strange.append(token.group())

    def _command(self, command: str) -> None:
        number, _, rest = command.partition(";")
        if number == "52":
            self.copied.append(base64.b64decode(rest.partition(";")[2]).decode("utf-8", "surrogateescape"))
        elif number not in ("0", "2"):  # a title
            self.strange.append(command)


@functools.cache
def _is_wide(character: str) -> bool:
    return wcwidth.wcwidth(character) == 2


def _hopeless(start: str) -> bool:
    """No sequence that is known begins like this."""
    return len(start) == 2 and start[1] not in "[]()"
