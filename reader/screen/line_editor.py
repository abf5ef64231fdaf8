"""A line of text that is edited, with the keys of readline. The prompt (prompt.py) is made on it.

The editing itself is urwid's. All text in it is printable: other characters that are typed or
pasted become escapes, as filters and regular expressions write them. Draws nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .text import shown
from .toolkit import Command, CommandMap, urwid

LONGEST = 10_000  # characters that can be typed


class LineEditor:
    """`text`, and `position`: the cursor's place in it. history: earlier lines, the oldest
    first."""

    def __init__(self, text: str = "", history: Sequence[str] = (), ascii: bool = False) -> None:
        self.full = False  # the last key was too much
        self._ascii = ascii
        self._first_text = one_line(text, ascii)
        self._edit = urwid.Edit(edit_text=self._first_text)
        self._edit._command_map = _MOVES
        self._history = list(dict.fromkeys(one_line(line, ascii) for line in reversed(history)))
        # the typed text, then the texts in the history that begin with it, the newest first
        self._recalled: list[str] = []
        self._at = 0  # which of them is shown
        self._killed = ""
        self._pasted: list[str] | None = None

    @property
    def text(self) -> str:
        return str(self._edit.edit_text)

    @property
    def position(self) -> int:
        return int(self._edit.edit_pos)

    @property
    def has_history(self) -> bool:
        return bool(self._history)

    @property
    def is_pasting(self) -> bool:
        """Keys are text now, whatever they are."""
        return self._pasted is not None

    def press(self, key: str) -> bool:
        """Takes a key by urwid's name; returns whether it means something here."""
        self.full = False
        if self._pasted is not None:
            self._paste(key, self._pasted)
        elif len(key) == 1:
            self.insert(key)
        elif key in _KEYS:
            _KEYS[key](self)
        else:
            return self._edit.keypress((1,), key) is None or _MOVES[key] is not None
        return True

    def insert(self, text: str) -> None:
        text = one_line(text, self._ascii)
        room = max(LONGEST - len(self.text), 0)
        self.full = len(text) > room
        self._edit.insert_text(text[:room])

    def replace(self, start: int, end: int, new: str) -> None:
        """Replaces [start, end), and puts the cursor behind the new text."""
        self._edit.set_edit_text(self.text[:start] + new + self.text[end:], edit_pos=start + len(new))

    def move(self, position: int) -> None:
        self._edit.set_edit_pos(position)

    # ---- pasting ----

    def _paste(self, key: str, pasted: list[str]) -> None:
        if key == "end paste":
            self._pasted = None
            self.insert("".join(pasted))
        elif len(pasted) <= LONGEST:
            pasted.append(_pasted_text(key))

    def _begin_paste(self) -> None:
        self._pasted = []

    # ---- moving and deleting ----

    def _start(self) -> None:
        self.move(0)

    def _end(self) -> None:
        self.move(len(self.text))

    def _backspace(self) -> None:
        self._edit.keypress((1,), "backspace")

    def _delete(self) -> None:
        self._edit.keypress((1,), "delete")

    def _kill(self, start: int, end: int) -> None:
        if start < end:
            self._killed = self.text[start:end]
            self.replace(start, end, "")

    def _kill_to_start(self) -> None:
        self._kill(0, self.position)

    def _kill_to_end(self) -> None:
        self._kill(self.position, len(self.text))

    def _kill_blank_word(self) -> None:
        before = self.text[: self.position]
        self._kill(before.rstrip(" ").rfind(" ") + 1, self.position)

    def _kill_word_back(self) -> None:
        end = self.position
        self._edit.keypress((1,), "meta b")
        self._kill(self.position, end)

    def _kill_word(self) -> None:
        start = self.position
        self._edit.keypress((1,), "meta f")
        self._kill(start, self.position)

    def _yank(self) -> None:
        self.insert(self._killed)

    # ---- history ----

    def _earlier(self) -> None:
        self._recall(1)

    def _later(self) -> None:
        self._recall(-1)

    def _recall(self, step: int) -> None:
        """Shows an earlier or later line among those that begin with the typed text."""
        text = self.text
        if not self._recalled or text != self._recalled[self._at]:
            beginning = "" if text == self._first_text else text
            fitting = (line for line in self._history if line.startswith(beginning) and line != text)
            self._recalled, self._at = [text, *fitting], 0
        self._at = min(max(self._at + step, 0), len(self._recalled) - 1)
        self.replace(0, len(text), self._recalled[self._at])


_KEYS: dict[str, Callable[[LineEditor], None]] = {
    "home": LineEditor._start,
    "ctrl a": LineEditor._start,
    "end": LineEditor._end,
    "ctrl e": LineEditor._end,
    "backspace": LineEditor._backspace,
    "delete": LineEditor._delete,
    "ctrl d": LineEditor._delete,
    "ctrl u": LineEditor._kill_to_start,
    "ctrl k": LineEditor._kill_to_end,
    "ctrl w": LineEditor._kill_blank_word,
    "meta backspace": LineEditor._kill_word_back,
    "meta d": LineEditor._kill_word,
    "ctrl y": LineEditor._yank,
    "up": LineEditor._earlier,
    "ctrl p": LineEditor._earlier,
    "down": LineEditor._later,
    "ctrl n": LineEditor._later,
    "begin paste": LineEditor._begin_paste,
}
_MOVES = CommandMap()  # commands of urwid's line editor
for _command, _names in (
    (Command.LEFT, ("left", "ctrl b")),
    (Command.RIGHT, ("right", "ctrl f")),
    (Command.WORD_LEFT, ("meta b", "ctrl left", "meta left")),
    (Command.WORD_RIGHT, ("meta f", "ctrl right", "meta right")),
):
    _MOVES.bind(_command, *_names)


def _pasted_text(key: str) -> str:
    """The text that a key stands for within a paste."""
    if len(key) == 1:
        return key
    if key.startswith("meta "):
        return "\x1b" + _pasted_text(key[5:])
    if key.startswith("<csi "):
        return "\x1b[" + key[5:-1]
    if key.startswith("ctrl ") and len(key) == 6:
        return chr(ord(key[5].upper()) ^ 0x40)
    return {"enter": "\n", "tab": "\t", "esc": "\x1b", "backspace": "\x7f"}.get(key, "")


def one_line(text: str, ascii: bool = False) -> str:
    """The text in a printable form, with blanks for line ends and tabs."""
    return shown(re.sub(r"\r?\n|[\r\t]", " ", text.strip("\r\n")), ascii)
