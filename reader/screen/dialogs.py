"""The dialogs, which take the keys instead of commands: a line that is typed (prompt.py), a choice,
a page to read, a list (listing.py). The app opens them for effects, and hands them keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from .effects import Ask, Choice, Choose, InBackground, Result, ShowLanes, ShowList, ShowPage, TakeBack
from .paint import Rows
from .text import Line, cells, cuts, fitted, fold, shown
from .toolkit import urwid

if TYPE_CHECKING:
    from ..rows import Run
    from .effects import Entry
    from .flame import Bar
    from .lanes import Lanes
    from .lines import DisplayOptions
    from .listing import Listing
    from .prompt import Prompt

_WHOLE = 4  # rows for the whole of a label that is too long for its line
_LEAST = 8  # columns of a label
_ENDS = 1 << 30
LIST = "list"  # the question of the list that is shown
_RENEWED = 1.0  # s between two questions for a list that grows, at least ...
_PAUSE = 5  # ... and so many times as long as the last one took
_END = ("q", "Q", "esc", "enter", "h", "H", "ctrl c")


class Size(Protocol):
    """The size of the screen."""

    width: int
    height: int


class Owner(Protocol):
    """What the dialogs need of a session (or of a replay's walk)."""

    @property
    def parts(self) -> Size: ...
    @property
    def display(self) -> DisplayOptions: ...
    @property
    def runs(self) -> Sequence[Run]: ...
    def is_live(self) -> bool: ...


class Dialogs:
    """At most one dialog is open. perform: makes the effects of an answer happen."""

    def __init__(self, session: Owner, perform: Callable[[Result], None]) -> None:
        self._session, self._perform = session, perform
        self._prompt: Prompt | None = None
        self._page: Menu | Pager | Listing | Lanes | None = None
        self._lists: dict[str, Listing] = {}  # the last one of each kind
        self._listing: Listing | None = None  # the page, if it is one
        self._lanes: Lanes | None = None  # the page, if it is one
        self._due: float | None = None  # when it is to be renewed
        self._done: Callable[[Any], Result] = lambda answer: None
        self._left: Callable[[], Result] | None = None

    @property
    def is_open(self) -> bool:
        return self._prompt is not None or self._page is not None

    @property
    def covers(self) -> bool:
        """A list or the lanes are shown, which ask questions of their own."""
        return self._listing is not None or self._lanes is not None

    def key(self, key: str) -> None:
        """A key for the open dialog."""
        parts = self._session.parts
        if self._page is not None:
            self._page.keypress((parts.width, parts.height), key)
            self._turn()
        elif self._prompt is not None:
            prompt = self._prompt
            prompt.keypress((parts.width,), key)
            if prompt.result is not None and self._prompt is prompt:
                self._prompt = None
                if isinstance(prompt.result, str):
                    self._perform(self._done(prompt.result))
                elif self._left is not None:
                    self._perform(self._left())

    def mouse(self, event: str, button: int, column: int, row: int) -> None:
        """The wheel and clicks."""
        parts = self._session.parts
        if self._prompt is not None and self._page is None:
            row -= parts.height - self._prompt.rows((parts.width,))
            if row >= 0:
                self._prompt.mouse((parts.width,), event, button, column, row)
        elif event == "mouse press" and button in (4, 5) and self._page is not None:
            self.key("up" if button == 4 else "down")
        elif self._page is not None and not isinstance(self._page, Pager):
            self._page.mouse(event, button, row)
            self._turn()

    def _turn(self) -> None:
        page = self._page
        if page is not None and page.done:
            self._page = None
            if page is self._listing or page is self._lanes:
                self._listing = self._lanes = self._due = None
                self._perform(TakeBack(LIST))
            if page.result is not None:
                self._perform(self._done(page.result))

    # ---- drawing ----

    def page(self, width: int, height: int) -> urwid.Canvas | None:
        """The dialog that takes the whole screen."""
        if self._page is None:
            return None
        drawn: urwid.Canvas = self._page.render((width, height), True)
        self.want()
        return drawn

    def below(self, width: int, height: int) -> urwid.Canvas | None:
        """The dialog that takes the rows at the bottom."""
        if self._prompt is None or self._page is not None:
            return None
        self._prompt.candidate_rows = max(min(8, height - 8), 0)
        return self._prompt.render((width,), True)

    # ---- opening ----

    def ask(self, asked: Ask) -> None:
        """A line to type."""
        from .history import History
        from .prompt import Prompt

        kept = History(asked.history) if asked.history else None

        def done(typed: str) -> Result:
            if kept and typed:
                kept.add(typed)
            return asked.done(typed)

        def changed(text: str) -> None:
            if asked.changed is not None:
                self._perform(asked.changed(text))

        self._prompt = Prompt(
            asked.label, asked.text, history=kept.lines() if kept else (), complete=asked.complete,
            check=asked.check, changed=changed, ascii=self._session.display.ascii,
        )  # fmt: skip
        self._done, self._left = done, asked.left

    def refresh(self) -> None:
        """The completions and mistakes of the line may have changed."""
        if self._prompt is not None:
            self._prompt.refresh()

    def choose(self, asked: Choose) -> None:
        """A list to choose from."""
        self._page = Menu(asked.title, asked.choices, self._session.display.ascii)
        self._done = asked.chosen

    def show_list(self, asked: ShowList) -> None:
        """A list, which is filled in the background."""
        from .listing import Listing

        listing = Listing(
            asked.title, asked.columns, asked.actions, asked.listed, asked.sort, self._session.display.ascii
        )
        if asked.name in self._lists:
            listing.resume(self._lists[asked.name])
        self._page = self._listing = self._lists[asked.name] = listing
        self._done = lambda answer: answer()
        if asked.listed.first is not None and not listing.is_whole:
            self._perform(InBackground(LIST, asked.listed.first, partial(self._take_first, listing)))
        elif not listing.is_final:
            self._ask_list(listing)

    def _ask_list(self, listing: Listing) -> None:
        self._due = None
        grows = self._session.is_live() or not self._session.runs  # else nothing has begun
        then = partial(self._take, listing, grows, time.monotonic())
        self._perform(InBackground(LIST, listing.listed.question, then))

    def _take_first(self, listing: Listing, entries: list[Entry]) -> None:
        if listing is self._listing:
            listing.take(entries)
            self._ask_list(listing)

    def _take(self, listing: Listing, grows: bool, since: float, entries: list[Entry]) -> None:
        if listing is self._listing:
            listing.is_whole, listing.is_final = True, not grows
            listing.take(entries)
            now = time.monotonic()
            self._due = now + max(_RENEWED, _PAUSE * (now - since)) if grows else None

    def look(self, counting: str | None) -> bool:
        """To be called often; whether something has changed. counting: how far the question of the
        list is."""
        page = self._listing or self._lanes
        if page is None:
            return False
        if self._due is not None and time.monotonic() >= self._due:
            if self._listing is not None:
                self._ask_list(self._listing)
            elif self._lanes is not None:
                self._lanes.forget()
        self.want()
        changed = page.counting != counting
        page.counting = counting
        return changed

    def show_lanes(self, asked: ShowLanes) -> None:
        """Lanes, whose calls come in the background."""
        self._page = self._lanes = asked.lanes
        self._done = lambda answer: answer()

    def want(self) -> None:
        """Asks for the calls that the lanes lack."""
        lanes = self._lanes
        question = lanes.wanted() if lanes is not None else None
        if lanes is None or question is None:
            return
        self._due = None

        def take(found: list[Bar]) -> None:
            lanes.take(found)
            self._due = time.monotonic() + _RENEWED if self._session.is_live() else None

        self._perform(InBackground(LIST, question, take))

    def show(self, page: ShowPage) -> None:
        """Lines to read."""
        self._page = Pager(page.title, page.lines)


class Menu:
    """Choices over a title. `done` once one was chosen or the menu was left; `result` is then the
    value, or None. ascii: draw only ASCII."""

    def __init__(self, title: str, choices: Sequence[Choice], ascii: bool = False) -> None:
        self.done = False
        self.result: Any = None
        self._title = shown(title, ascii)
        self._choices = [
            Choice(shown(choice.label, ascii), choice.value, shown(choice.hint, ascii)) for choice in choices
        ]
        self._at = self._top = 0  # the choice under the cursor, and the first one shown
        self._page = 0  # how many are shown

    def keypress(self, size: tuple[int, int], key: str) -> None:
        """Takes a key by urwid's name; digits choose one of the first nine."""
        page = max(size[1] - 1, 1)
        steps = {
            "j": 1, "down": 1, "tab": 1, "ctrl n": 1, "k": -1, "up": -1, "shift tab": -1, "ctrl p": -1,
            " ": page, "page down": page, "b": -page, "page up": -page,
            "g": -_ENDS, "home": -_ENDS, "<": -_ENDS, "G": _ENDS, "end": _ENDS, ">": _ENDS,
        }  # fmt: skip
        if key in ("esc", "q", "Q", "ctrl c", "ctrl g"):
            self.done = True
        elif key == "enter":
            self._choose(self._at)
        elif len(key) == 1 and key in "123456789":
            self._choose(int(key) - 1)
        else:
            self._at = max(min(self._at + steps.get(key, 0), len(self._choices) - 1), 0)

    def mouse(self, event: str, button: int, row: int) -> None:
        """A click chooses the row's choice; the wheel moves."""
        if event == "mouse press" and button in (4, 5):
            self.keypress((1, 1), "up" if button == 4 else "down")
        elif event == "mouse press" and button == 1 and row < self._page:
            self._choose(self._top + row)

    def render(self, size: tuple[int, int], focus: bool = False) -> Any:
        width, height = size
        rows = Rows(width)
        whole = self._whole(width)[: max(height - 2, 0)]
        self._page = page = max(height - 1 - len(whole), 1)
        self._top = max(min(self._top, self._at, len(self._choices) - page), self._at - page + 1, 0)
        labels = self._labels(width)
        for number in range(self._top, min(self._top + page, len(self._choices))):
            rows.line(self._line(number, labels), "cursor" if number == self._at else "")
        rows.fill(height - 1 - len(whole))
        for line in whole:
            rows.line(line)
        rows.line(Line(f"{self._title}  (Enter: this one, q: none)"), "bar")
        rows.fill(height)
        canvas: urwid.Canvas = rows.canvas()
        return canvas

    def _choose(self, number: int) -> None:
        if number < len(self._choices):
            self.result, self.done = self._choices[number].value, True

    def _labels(self, width: int) -> int:
        """Columns of the labels: hints stand behind them, as far as there is room."""
        hints = max((cells(choice.hint) + 2 for choice in self._choices if choice.hint), default=0)
        room = max(width - 4 - hints, min(_LEAST, width))
        return min(max((cells(choice.label) for choice in self._choices), default=0), room)

    def _line(self, number: int, labels: int) -> Line:
        choice = self._choices[number]
        sign = ">" if number == self._at else " "
        digit = str(number + 1) if number < 9 else " "
        start = f"{sign}{digit}  {fitted(choice.label, labels)}"
        rest = f"  {choice.hint}" if choice.hint else ""
        return Line(start + rest, ((1, 2, "key"), (len(start), len(start) + len(rest), "dim")))

    def _whole(self, width: int) -> list[Line]:
        """The label under the cursor, if its line has no room for it."""
        if not self._choices:
            return []
        label = self._choices[self._at].label
        if cells(label) <= self._labels(width):
            return []
        parts = [label[start:end] for start, end, _ in cuts(label, width)]
        return [Line(""), *(Line(part, ((0, len(part), "name"),)) for part in parts[:_WHOLE])]


class Pager:
    """Lines under a title. `done` once it was left; there is no result."""

    result: Any = None

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        self._title, self._lines = title, lines
        self._top = 0
        self.done = False

    def keypress(self, size: tuple[int, int], key: str) -> None:
        page = max(size[1] - 2, 1)
        steps = {
            "j": 1, "e": 1, "down": 1, "k": -1, "y": -1, "up": -1, " ": page, "f": page, "page down": page,
            "b": -page, "page up": -page, "d": page // 2, "u": -(page // 2),
            "g": -(1 << 30), "<": -(1 << 30), "home": -(1 << 30), "G": 1 << 30, ">": 1 << 30, "end": 1 << 30,
        }  # fmt: skip
        if key in _END:
            self.done = True
        self._top += steps.get(key, 0)

    def render(self, size: tuple[int, int], focus: bool = False) -> Any:
        width, height = size
        rows = Rows(width)
        body = [row for line in self._lines for row in fold(line, width, at_words=True)]
        page = max(height - 1, 1)
        self._top = max(min(self._top, len(body) - page), 0)
        for row in body[self._top : self._top + page]:
            rows.add(row)
        rows.fill(height - 1)
        end = min(self._top + page, len(body))
        rows.line(Line(f"{self._title}  {end * 100 // max(len(body), 1)}%  (q: back)"), "bar")
        canvas: urwid.Canvas = rows.canvas()
        return canvas
