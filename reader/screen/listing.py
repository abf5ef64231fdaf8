"""A list as a screen of its own: rows of columns, sorted by any of them, with a bar for the size of
each row, and a note behind it. It is renewed in the background while it is shown. dialogs.py opens
it for the effect ShowList, and hands it keys.

It knows neither the database nor what its rows are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .effects import Entry
from .paint import Rows
from .text import Line, cells, fitted, fitted_end, shown, with_hits

if TYPE_CHECKING:
    from .effects import Action, Column, Listed, Result
    from .search import Pattern

_BAR = 16  # cells
_FIRST = 12  # cells of the first column, at least
_NOTE = 24  # cells of a note, at least ...
_ROOMY = 48  # ... and beside a bar
_GAP = "  "
_ENDS = 1 << 30
_LEAVING = ("q", "Q", "esc", "ctrl c", "ctrl g")
_EIGHTHS = " ▏▎▍▌▋▊▉"
_NOTHING = "nothing has been found"
_NO_ROW = Entry(None, ())


class Listing:
    """A list on the screen. `done` once it was left; `result` is then None, or makes the effects of
    the action that was chosen."""

    def __init__(
        self,
        title: str,
        columns: Sequence[Column],
        actions: Mapping[str, Action],
        listed: Listed,
        sort: int,
        ascii: bool = False,
    ) -> None:
        self.listed = listed
        self.done = False
        self.result: Callable[[], Result] | None = None
        self.counting: str | None = None  # how far the question is
        self.is_whole = False  # its rows are those of `question` ...
        self.is_final = False  # ... asked when nothing more could come
        self._title, self._columns, self._actions = title, columns, actions
        self._ascii = ascii
        self._entries: list[Entry] = []
        self._sort, self._is_reversed = sort, False
        self._at = self._top = self._page = 0  # the row under the cursor, the first one, how many
        self._needs: list[int] = []  # cells that each column needs
        self._typed: str | None = None  # an expression that is being typed
        self._pattern: Pattern | None = None

    def take(self, entries: list[Entry]) -> None:
        """Shows other rows. The cursor stays on its row, unless that is the first one."""
        current = self.current
        self._entries = entries
        self._needs = []
        self._order()
        if self._at and current is not None:
            places = (place for place, entry in enumerate(self._entries) if entry.id == current.id)
            self._at = next(places, min(self._at, max(len(entries) - 1, 0)))

    def resume(self, former: Listing) -> None:
        """Goes on with the rows of an earlier list, and is sorted in its way."""
        self._sort, self._is_reversed = former._sort, former._is_reversed
        if former.listed.subject == self.listed.subject:
            self._entries = former._entries
            self.is_whole, self.is_final = former.is_whole, former.is_final
            self._at, self._top, self._pattern = former._at, former._top, former._pattern

    @property
    def current(self) -> Entry | None:
        return self._entries[self._at] if self._at < len(self._entries) else None

    # ---- keys ----

    def keypress(self, size: tuple[int, int], key: str) -> None:
        """Takes a key by urwid's name."""
        if self._typed is not None:
            self._type(key)
            return
        page = max(self._page, 1)
        steps = {
            "j": 1, "down": 1, "e": 1, "ctrl n": 1, "k": -1, "up": -1, "y": -1, "ctrl p": -1,
            " ": page, "page down": page, "ctrl f": page, "b": -page, "page up": -page, "ctrl b": -page,
            "g": -_ENDS, "home": -_ENDS, "<": -_ENDS, "G": _ENDS, "end": _ENDS, ">": _ENDS,
        }  # fmt: skip
        keys = [column.key for column in self._columns]
        if key in _LEAVING:
            self.done = True
        elif key in self._actions:
            action = self._actions[key]
            if action.anywhere or self.current is not None:
                self.done, self.result = True, partial(action.do, self.current or _NO_ROW)
        elif key in keys:
            self._sort_by(keys.index(key))
        elif key in ("left", "right"):
            self._sort_by((self._sort + (1 if key == "right" else -1)) % len(keys), turn=False)
        elif key == "/":
            self._typed = ""
        elif key in ("n", "N"):
            self._find(1 if key == "n" else -1)
        else:
            self._at = max(min(self._at + steps.get(key, 0), len(self._entries) - 1), 0)

    def mouse(self, event: str, button: int, row: int) -> None:
        """The wheel moves; a click puts the cursor on a row, and is Enter on the cursor's row."""
        place = self._top + row - 1
        if event != "mouse press":
            return
        if button in (4, 5):
            self._at = max(min(self._at + (1 if button == 5 else -1), len(self._entries) - 1), 0)
        elif button == 1 and 0 < row <= self._page and place < len(self._entries):
            if place == self._at:
                self.keypress((1, 1), "enter")
            self._at = place

    def _sort_by(self, column: int, turn: bool = True) -> None:
        """Sorts by a column; if the rows are in its order, in the reverse one."""
        self._is_reversed = turn and column == self._sort and not self._is_reversed
        self._sort = column
        self._order()
        self._at = self._top = 0

    def _order(self) -> None:
        """Numbers begin with the largest, texts with the first of the alphabet, unknown ones
        last."""
        at, rises = self._sort, self._rises(self._sort)
        known = [entry for entry in self._entries if entry.values[at] is not None]
        unknown = [entry for entry in self._entries if entry.values[at] is None]
        unknown.sort(key=lambda entry: entry.values[1] or 0, reverse=True)
        known.sort(key=lambda entry: entry.values[at], reverse=rises == self._is_reversed)
        self._entries = known + unknown

    def _rises(self, column: int) -> bool:
        return self._columns[column].show is None or self._columns[column].rises

    def _type(self, key: str) -> None:
        from .search import BadPattern, Pattern

        typed = self._typed or ""
        if key in ("esc", "ctrl c", "ctrl g") or (key == "backspace" and not typed):
            self._typed = self._pattern = None
            return
        if key == "enter":
            self._typed = None
            return
        typed = typed[:-1] if key == "backspace" else typed + key if len(key) == 1 else typed
        self._typed = typed
        try:
            self._pattern = Pattern(typed) if typed else None
        except BadPattern:
            return  # it is not finished
        self._find(0)

    def _find(self, step: int) -> None:
        """Goes to the next row that matches, from `step` rows on; after the last one to the
        first."""
        count = len(self._entries)
        for way in range(count):
            place = (self._at + step + (way if step >= 0 else -way)) % count
            entry = self._entries[place]
            if self._hits(self._first(entry)) or self._hits(self._note(entry)):
                self._at = place
                return

    def _hits(self, text: str) -> list[tuple[int, int]]:
        from .search import TooSlow

        try:
            return self._pattern.hits(text) if self._pattern is not None else []
        except TooSlow:
            self._pattern = None
            return []

    # ---- drawing ----

    def render(self, size: tuple[int, int], focus: bool = False) -> Any:
        width, height = size
        rows = Rows(width)
        self._page = page = max(height - 3, 1)
        self._top = max(min(self._top, self._at, len(self._entries) - page), self._at - page + 1, 0)
        seen = self._entries[self._top : self._top + page]
        widths = self._widths(width)
        rows.line(self._head(widths), "bar")
        most = (
            0
            if self._rises(self._sort)
            else max((entry.values[self._sort] or 0 for entry in self._entries), default=0)
        )
        for place, entry in enumerate(seen, self._top):
            rows.line(self._line(entry, widths, most), "cursor" if place == self._at else "")
        if not seen:
            rows.line(Line(f"-- {self.listed.nothing or _NOTHING} --" if self.is_whole else ""))
        rows.fill(height - 2)
        rows.line(self._status(), "bar")
        rows.line(self._hint())
        rows.fill(height)
        return rows.canvas()

    def _widths(self, width: int) -> list[int]:
        """Cells of each column, of the bar and of the note: the columns behind the first as they
        need, the first one or the note what is left. What there is no room for is left out."""
        if not self._needs:
            self._needs = [
                max([cells(column.title), *(cells(self._text(entry, place)) for entry in self._entries)])
                for place, column in enumerate(self._columns)
            ]
        needs = self._needs
        first = min(needs[0], max(width // 3, _FIRST))
        room, widths = width - first, [0] * len(needs)
        for place in range(1, len(needs)):
            if needs[place] + len(_GAP) <= room:
                widths[place] = needs[place]
                room -= needs[place] + len(_GAP)
        has_note = room >= _NOTE + len(_GAP) and any(entry.note for entry in self._entries)
        besides = _ROOMY + len(_GAP) if has_note else 0
        bar = _BAR + len(_GAP) if room >= _BAR + len(_GAP) + besides else 0
        widths[0] = first if has_note else first + room - bar
        return [*widths, bar, room - bar - len(_GAP) if has_note else 0]

    def _text(self, entry: Entry, place: int) -> str:
        value, show = entry.values[place], self._columns[place].show
        return "" if value is None else shown(show(value) if show else value, self._ascii)

    def _first(self, entry: Entry) -> str:
        return self._text(entry, 0)

    def _fitted(self, first: str, width: int) -> str:
        """Of a text that is too long for the first column its beginning; of a place its end."""
        return (fitted if self._columns[0].show is None else fitted_end)(first, width)

    def _note(self, entry: Entry) -> str:
        return shown(entry.note, self._ascii)

    def _head(self, widths: list[int]) -> Line:
        text, spans = "", []
        for place, (column, width) in enumerate(zip(self._columns, widths, strict=False)):
            if width:
                cell = fitted(column.title, width, right=place > 0)
                text += (_GAP if place else "") + cell
                if place == self._sort:
                    start = len(text) - len(cell.lstrip()) if place else 0
                    spans.append((start, start + len(column.title), "key"))
        return Line(text, tuple(spans))

    def _line(self, entry: Entry, widths: list[int], most: float) -> Line:
        *_, bars, rest = widths
        text, spans = self._fitted(self._first(entry), widths[0]), []
        hits = self._hits(text.rstrip())
        for place in range(1, len(self._columns)):
            if widths[place]:
                cell = fitted(self._text(entry, place), widths[place], right=True)
                if place == self._sort:
                    spans.append((len(text) + len(_GAP), len(text) + len(_GAP) + len(cell), "duration"))
                text += _GAP + cell
        value = entry.values[self._sort]
        if bars:
            bar = self._bar(value / most) if most > 0 and value else ""
            spans.append((len(text) + len(_GAP), len(text) + len(_GAP) + len(bar), "name"))
            text += _GAP + bar.ljust(bars - len(_GAP))
        if rest and entry.note:
            start = len(text) + len(_GAP)
            note = fitted(self._note(entry), rest).rstrip()
            hits += [(start + begin, start + end) for begin, end in self._hits(note)]
            text += _GAP + note
        return with_hits(Line(text, tuple(spans)), hits) if hits else Line(text, tuple(spans))

    def _bar(self, share: float) -> str:
        if self._ascii:
            return "#" * max(round(share * _BAR), 1)
        eighths = max(round(share * _BAR * 8), 1)
        return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    def _status(self) -> Line:
        count = len(self._entries)
        parts = [shown(self._title, self._ascii), f"{min(self._at + 1, count):,} of {count:,}"]
        if self.counting:
            parts.append(self.counting)
        if self._typed is not None or self._pattern is not None:
            parts.append("/" + (self._typed if self._typed is not None else self._pattern_text()))
        return Line(shown("  ".join(parts), self._ascii))

    def _pattern_text(self) -> str:
        return self._pattern.text if self._pattern is not None else ""

    def _hint(self) -> Line:
        if self._typed is not None:
            return Line("type a regular expression; Enter keeps it, n and N go on")
        sorts = " ".join(column.key for column in self._columns)
        told = [(key.capitalize() if len(key) > 1 else key, act.help) for key, act in self._actions.items()]
        text, spans = "", []
        for key, help in (*told, (sorts, "sort"), ("/", "search"), ("q", "back")):
            text += _GAP if text else ""
            spans.append((len(text), len(text) + len(key), "key"))
            text += f"{key}: {help}"
        return Line(text, tuple(spans))
