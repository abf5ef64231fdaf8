"""The prompt: the line at the bottom of the screen for a filter, a search or a command. The list of
completions stands above it.

dialogs.py opens it, hands it keys, and reads `result`. It does not know the meaning of the text:
functions give it completions and mistakes (prompt_completion.py has those of filters). The line
itself is line_editor.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .effects import Mistake
from .line_editor import LONGEST, LineEditor
from .paint import Rows
from .text import Line, cells, fitted, shown
from .toolkit import urwid

if TYPE_CHECKING:
    from ..suggestions.completion import Candidate, Completions


_CHECKED = 5_000  # characters; longer texts are checked at the end, not at each key
_CANDIDATES = 8  # rows
_MESSAGE = 3
_DOTS = 3  # columns that a line which goes on ends in
_CANCELLING = ("esc", "ctrl c", "ctrl g")


class Cancelled:
    """The `result` of a prompt that was left without one."""


class Prompt:
    """A line that is edited, with completions above it and its mistake below.

    history: lines typed earlier, the oldest first. complete: completions for a place in a text.
    check: the mistake in a text, which is not accepted then. changed: called with each new text.
    ascii: draw only ASCII.

    `result` is None while it is edited, then the text, or a Cancelled.
    """

    def __init__(
        self,
        label: str,
        text: str = "",
        *,
        history: Sequence[str] = (),
        complete: Callable[[str, int], Completions] | None = None,
        check: Callable[[str], Mistake | None] | None = None,
        changed: Callable[[str], object] | None = None,
        ascii: bool = False,
    ) -> None:
        self.result: str | Cancelled | None = None
        # At most; a small screen has fewer. 0: three rows have to be enough for everything.
        self.candidate_rows = _CANDIDATES
        self._label, self._ascii = label, ascii
        self._complete, self._check, self._changed = complete, check, changed
        self._editor = LineEditor(text, history, ascii)
        self._open: Candidates | None = None  # the list, while it is open
        self._note = ""
        self._insists = False  # Enter was pressed: an unfinished text is a mistake now
        self._checked: tuple[str, Mistake | None] | None = None  # a text, and its mistake
        self._left = 0  # the first character that is shown

    @property
    def text(self) -> str:
        return self._editor.text

    @property
    def position(self) -> int:
        """The cursor's place in the text."""
        return self._editor.position

    def refresh(self) -> None:
        """The completions and mistakes may have changed."""
        self._checked = None
        self._open = self._offered() if self._open else None

    # ---- keys ----

    def keypress(self, size: tuple[int], key: str) -> str | None:
        """Takes a key by urwid's name. Returns it if it means nothing here."""
        if self.result is not None:
            return key
        before = self.text, self.position
        self._note = ""
        used = self._press(key)
        if self.text != before[0]:
            self._text_changed()
        elif self.position != before[1]:
            self._open = None
        if self._editor.full:
            self._note = f"no more than {LONGEST:,} characters"
        return None if used else key

    def _press(self, key: str) -> bool:
        if self._editor.is_pasting and key != "ctrl c":  # its end may be lost
            return self._editor.press(key)
        if self._open and key in _IN_LIST:
            _IN_LIST[key](self, self._open)
        elif key in _CANCELLING or (key in ("backspace", "ctrl d") and not self.text):
            self.result = Cancelled()
        elif key == "enter":
            self._accept()
        elif key in ("tab", "shift tab"):
            self._tab()
        else:
            return self._editor.press(key)
        return True

    def _text_changed(self) -> None:
        self._insists = False
        self._open = self._offered() if self._open else None
        if self._changed and self.result is None:
            self._changed(self.text)

    def _accept(self) -> None:
        mistake = self._problem(whole=True)
        if mistake is None:
            self.result = self.text
            return
        if not self._is_hint(mistake):
            self._editor.move(mistake.end)
        self._insists = True

    # ---- completion ----

    def _offered(self) -> Candidates | None:
        found = self._complete(self.text, self.position) if self._complete else None
        return Candidates(found) if found and found.candidates else None

    def _tab(self) -> None:
        offered = self._offered()
        if not offered:
            self._note = "nothing fits here" if self._complete else ""
            return
        start, end = offered.place
        if offered.count == 1:
            self._editor.replace(start, end, offered.chosen)
            return
        common = offered.common(self.text[start : self.position]) if end == self.position else ""
        if common:
            self._editor.replace(start, end, common)
        self._open = self._offered()

    def _next(self, open: Candidates) -> None:
        open.move(1)

    def _previous(self, open: Candidates) -> None:
        open.move(-1)

    def _page_down(self, open: Candidates) -> None:
        open.move(self.candidate_rows)

    def _page_up(self, open: Candidates) -> None:
        open.move(-self.candidate_rows)

    def _take(self, open: Candidates) -> None:
        self._open = None
        self._editor.replace(*open.place, open.chosen)

    def _close(self, open: Candidates) -> None:
        self._open = None

    # ---- mouse ----

    def mouse(self, size: tuple[int], event: str, button: float, column: int, row: int) -> None:
        """A click takes a candidate, or moves the cursor; the wheel moves through the candidates.
        Column and row count from the prompt's own first."""
        if self.result is not None or event != "mouse press":
            return
        listed = len(self._above(size[0]))
        if self._open and button in (4, 5):
            self._open.move(1 if button == 5 else -1)
        elif self._open and button == 1 and row < listed:
            self._open.choose_shown(row)
            self._take(self._open)
            self._text_changed()
        elif button == 1 and row == listed:
            self._open = None
            head, left = self._window(size[0])
            text = self.text
            self._editor.move(urwid.calc_text_pos(text, left, len(text), max(column - cells(head), 0))[0])

    # ---- what is wrong ----

    def _problem(self, whole: bool = False) -> Mistake | None:
        """The mistake in the text. whole: check even a long text, which takes a moment."""
        text = self.text
        if not self._check or (len(text) > _CHECKED and not (whole or self._insists)):
            return None
        if not self._checked or self._checked[0] != text:
            self._checked = text, self._check(text)
        return self._checked[1]

    def _is_hint(self, mistake: Mistake) -> bool:
        return mistake.unfinished and self.position == len(self.text) and not self._insists

    # ---- drawing ----

    def rows(self, size: tuple[int]) -> int:
        """The number of screen rows that it takes now."""
        return len(self._compose(size[0])[0])

    def render(self, size: tuple[int], focus: bool = False) -> urwid.Canvas:
        """focus: with the cursor."""
        composed, cursor = self._compose(size[0])
        rows = Rows(size[0])
        for line, on in composed:
            rows.line(line, on)
        canvas = urwid.CompositeCanvas(rows.canvas())
        if focus:
            canvas.cursor = cursor
        return canvas

    def _compose(self, width: int) -> tuple[list[tuple[Line, str]], tuple[int, int]]:
        """Lines, each with its `on` (Rows.add), and the cursor's column and row."""
        above = self._above(width)
        head, left = self._window(width)
        spans = [(0, len(head), "title")]
        mistake = self._problem()
        if mistake and not self._is_hint(mistake) and mistake.end > left:
            shift = len(head) - left
            spans.append((max(mistake.start + shift, len(head)), mistake.end + shift, "error"))
        line = Line(head + self.text[left:], tuple(spans))
        column = cells(head) + cells(self.text[left : self.position])
        below = [(part, "") for part in self._below(width, head, left)]
        return [*above, (line, ""), *below], (min(column, width - 1), len(above))

    def _above(self, width: int) -> list[tuple[Line, str]]:
        if not self._open:
            return []
        lines = self._open.lines(width, self.candidate_rows, self._ascii)
        return [(line, "cursor" if is_chosen else "") for line, is_chosen in lines]

    def _window(self, width: int) -> tuple[str, int]:
        """The label before the text, and the first character of the text that is shown."""
        text, position = self.text, self.position
        label = self._label if cells(self._label) <= width // 2 else ""
        room = width - cells(label)
        if cells(text) < room:
            self._left = 0
            return label, 0
        room = max(room - 1 - _DOTS, 1)  # signs on both sides say that there is more
        if position < self._left:
            self._left = _back(text, position, room // 4)
        beyond = cells(text[self._left : position]) + 2 - room  # the cursor may stand on a wide one
        if beyond > 0:
            self._left = _forward(text, self._left, min(beyond + room // 4, beyond + room - 2), position)
        return label + ("<" if self._left else ""), self._left

    def _below(self, width: int, head: str, left: int) -> list[Line]:
        """The rows below the text: always one, or more for a mistake."""
        mistake = self._problem()
        if self._note:
            return [_styled(self._note, "note")]
        if self._open:
            return [_styled(f"{self._open.where}  Enter takes it, Esc closes the list", "dim")]
        if mistake:
            message = worded(mistake.message, self._ascii)
            if self._is_hint(mistake):
                return [_styled(message, "dim")]
            start = max(mistake.start, left)
            before = cells(head) + cells(self.text[left:start])
            marks = "^" * max(cells(self.text[start : mistake.end]), 1)
            rows = _MESSAGE if self.candidate_rows else 1
            return [_styled(line, "error") for line in _marked(before, marks, message, width, rows)]
        if not (self._complete or self._check):
            return []
        helps = ["Tab completes"] if self._complete else []
        if self._editor.has_history:
            helps.append("Up: earlier ones" if self._ascii else "↑ earlier ones")
        return [_styled(", ".join(helps) if not self.text else "", "dim")]


_IN_LIST: dict[str, Callable[[Prompt, Candidates], None]] = {
    "tab": Prompt._next,
    "down": Prompt._next,
    "ctrl n": Prompt._next,
    "shift tab": Prompt._previous,
    "up": Prompt._previous,
    "ctrl p": Prompt._previous,
    "page down": Prompt._page_down,
    "page up": Prompt._page_up,
    "enter": Prompt._take,
    "esc": Prompt._close,
}


def _styled(text: str, style: str) -> Line:
    return Line(text, ((0, len(text), style),) if text else ())


def _marked(before: int, marks: str, message: str, width: int, rows: int) -> list[str]:
    """Marks in their column, with the message beside them, or else below in `rows` rows."""
    before = min(before, width - 1)
    marks = marks[: width - before]
    columns = cells(message)
    if before + len(marks) + 1 + columns <= width:
        return [f"{' ' * before}{marks} {message}"]
    if columns < before:
        return [f"{' ' * (before - 1 - columns)}{message} {marks}"]
    from textwrap import wrap

    lines = wrap(message, max(width, _DOTS), max_lines=rows, placeholder="...", break_on_hyphens=False)
    return [" " * before + marks, *lines]


def _back(text: str, position: int, columns: int) -> int:
    """The place so many columns to the left."""
    while position and columns > 0:
        previous = urwid.move_prev_char(text, 0, position)
        columns -= cells(text[previous:position])
        position = previous
    return position


def _forward(text: str, position: int, columns: int, last: int) -> int:
    """The place so many columns to the right, or `last`."""
    while position < last and columns > 0:
        following = urwid.move_next_char(text, position, last)
        columns -= cells(text[position:following])
        position = following
    return position


_OFFERED = 50  # with so many candidates there may be more
_LEAST = 8  # columns of a candidate


class Candidates:
    """Candidates, of which one is chosen. found: at least one."""

    def __init__(self, found: Completions) -> None:
        self._found = found
        self._chosen = 0
        self._top = 0  # the first that is shown

    @property
    def place(self) -> tuple[int, int]:
        """The part of the text that a candidate replaces."""
        return self._found.start, self._found.end

    @property
    def chosen(self) -> str:
        return self._found.candidates[self._chosen].text

    @property
    def count(self) -> int:
        return len(self._found.candidates)

    @property
    def where(self) -> str:
        return f"{self._chosen + 1} of {self.count}"

    def move(self, step: int) -> None:
        """Moves the choice; a single step also leads from the last one to the first."""
        moved = self._chosen + step
        self._chosen = moved % self.count if abs(step) == 1 else min(max(moved, 0), self.count - 1)

    def choose_shown(self, row: int) -> None:
        """Chooses the candidate in this row of those that are shown."""
        self._chosen = min(self._top + row, self.count - 1)

    def common(self, typed: str) -> str:
        """The beginning that all candidates share, if it extends the typed text; else nothing."""
        texts = [candidate.text for candidate in self._found.candidates]
        first, last = min(texts), max(texts)
        same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        common = first[:same]
        goes_on = len(common) > len(typed) and common.lower().startswith(typed.lower())
        return common if goes_on and self.count < _OFFERED else ""

    def lines(self, width: int, rows: int, ascii: bool) -> list[tuple[Line, bool]]:
        """At most `rows` lines, each with whether it is the chosen one."""
        rows = max(rows, 1)
        self._top = min(max(self._top, self._chosen - rows + 1), self._chosen)
        listed = self._found.candidates[self._top : self._top + rows]
        room = max(width - 4 - max(len(one.kind) for one in listed), _LEAST)
        column = min(max(cells(shown(one.text, ascii)) for one in listed), room)
        return [
            (_line(one, number == self._chosen, column, ascii), number == self._chosen)
            for number, one in enumerate(listed, self._top)
        ]


def worded(text: str, ascii: bool) -> str:
    """Words for people in a printable form."""
    return shown(text.replace("…", "...") if ascii else text, ascii)


def _line(candidate: Candidate, is_chosen: bool, column: int, ascii: bool) -> Line:
    text = f"{'>' if is_chosen else ' '} {fitted(shown(candidate.text, ascii), column)}"
    rest = f"  {candidate.kind}" + (f"  {worded(candidate.hint, ascii)}" if candidate.hint else "")
    return Line(text + rest, ((len(text), len(text) + len(rest), "dim"),))
