"""Searches for the next event whose line matches a regular expression: the questions of `/ ? n N`,
and of following until a match.

The scan leaves out events that cannot match (prefilter.py); the others become lines, which are
matched here. Nothing lists all hits: the first one ends the question.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from ..query import INDEX_BITS, Query
from ..rows import EVENT, Row
from . import prefilter
from .prefilter import SHOWN, Shown
from .view import Position

if TYPE_CHECKING:
    from ..database import Database

_PATIENCE = 0.25  # s for one line
_GLANCE = 0.02  # s, for all matches in a line that is drawn
_STEPS_AT_ONCE = 1e7  # a match of fewer steps is not timed
# A page ends after so many rows or seconds, so that a reader does not hold up the database's log.
_PAGE, _PAGE_SECONDS = 1 << 17, 0.5
_STEPS = 100  # of SQLite's machine between two looks at the clock
# If case is ignored, these characters equal a letter of ASCII, though nobody who types it means
# them. _APART is a letter that equals no other. prefilter.py relies on both.
_ALIKE = "\u0130\u0131\u017f\u212a"
_APART = "\u00fe"
_ESCAPED = re.compile(r"\\[pPN]\{[^}]*\}|\\.|\(\?P?", re.DOTALL)  # in which capitals are no letters


class BadPattern(Exception):
    """A mistake in a regular expression: the problem, and its character (from 0)."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message, self.position = message, position


class TooSlow(Exception):
    """A regular expression takes too long on one line: longer than some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"this expression takes more than {seconds} s for a line, and might go on for ever")


class TimeUp(Exception):
    """A search ran out of time without a match, at a time and id of an event. None: before the
    first."""

    def __init__(self, position: Position | None) -> None:
        super().__init__("the search has taken its time")
        self.position = position


class Pattern:
    """A regular expression of the module regex.

    ignore_case: None ignores it unless a capital letter is typed. Raises BadPattern.
    """

    def __init__(self, text: str, ignore_case: bool | None = None) -> None:
        import regex

        if ignore_case is None:
            ignore_case = not any(map(str.isupper, _ESCAPED.sub("", text)))
        self.text = text
        self.ignore_case = ignore_case
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._compiled = regex.compile(text, regex.IGNORECASE if ignore_case else 0)
        except regex.error as mistake:
            error: Any = mistake
            raise BadPattern(error.msg, error.pos or 0) from None
        except (ValueError, OverflowError, RecursionError, MemoryError) as mistake:
            raise BadPattern(f"no such expression is possible: {mistake}", 0) from None
        # only slow expressions get a time limit, which costs some microseconds for each line
        self._parsed = prefilter.parse(text, ignore_case)
        choices = None if self._parsed is None else prefilter.choices(self._parsed)
        self._at_once = 0 if choices is None else int(_STEPS_AT_ONCE ** (1 / (choices + 1)))
        self._apart = {ord(character): _APART for character in _ALIKE if character not in text}

    def hits(self, line: str) -> list[tuple[int, int]]:
        """[start, end) of the matches that are not empty. Raises TooSlow soon: the screen waits for
        it."""
        try:
            found = [match.span() for match in self._compiled.finditer(self._told(line), timeout=_GLANCE)]
        except TimeoutError:
            raise TooSlow(_GLANCE) from None
        return [(start, end) for start, end in found if start < end]

    def matches(self, line: str) -> bool:
        """Raises TooSlow."""
        if len(line) <= self._at_once:
            return bool(self._compiled.search(self._told(line)))
        try:
            # other threads go on meanwhile
            return bool(self._compiled.search(self._told(line), timeout=_PATIENCE, concurrent=True))
        except TimeoutError:
            raise TooSlow(_PATIENCE) from None

    def _told(self, line: str) -> str:
        if line.isascii() or not any(character in line for character in _ALIKE):
            return line
        return line.translate(self._apart)

    def predicate(self, shown: Shown = SHOWN) -> str | None:
        """A necessary condition for `event MATCH`; None: there is none."""
        if self._parsed is None or any(character in self.text for character in _ALIKE):
            return None
        return prefilter.predicate(self._parsed, shown)


Show = Callable[[Row], str]


def find(
    database: Database,
    query: Query,
    pattern: Pattern,
    show: Show,
    start: Position | None,
    backwards: bool = False,
    *,
    shown: Shown = SHOWN,
    seconds: float | None = None,
) -> Row | None:
    """The first event after (before) a position whose line matches; None: there is none.

    start: itself excluded; None: from the very first (last) event on. show: its line. Raises
    TooSlow, and TimeUp after so many seconds.
    """

    def look(row: Row) -> None:
        if pattern.matches(show(row)):
            raise _Found(row)

    necessary = pattern.predicate(shown)
    if necessary:
        query = query.also("event MATCH ?", necessary)
    direction = "DESC" if backwards else "ASC"
    due = None if seconds is None else time.monotonic() + seconds
    limited = None if due is None else _limited(database, due)
    try:
        while True:
            rest = query
            if start is not None:
                rest = query.before(*start) if backwards else query.behind(*start)
            sql = f"SELECT {EVENT} FROM event WHERE {rest.where} ORDER BY time {direction}, id {direction}"
            page = database.page(sql, rest.parameters, look, _PAGE, _PAGE_SECONDS, start, backwards)
            if page.ended:
                return None
            start = page.last
            if due is not None and time.monotonic() >= due:
                raise TimeUp(start)
    except _Found as found:
        return found.row
    finally:
        if limited is not None:
            with suppress(apsw.Error):  # it may be closed by now
                limited.set_progress_handler(None, id=_limited)


class _Found(Exception):
    def __init__(self, row: Row) -> None:
        self.row = row


def _limited(database: Database, due: float) -> apsw.Connection:
    """Ends queries on the present connection at the time `due`."""
    connection = database.connection()
    connection.set_progress_handler(lambda: time.monotonic() >= due, _STEPS, id=_limited)
    return connection


# ---- while it is recorded -----------------------------------------------------------------------


class Seen(NamedTuple):
    """The events that were stored at a time: segments up to an id, and the number of events in each
    incomplete one."""

    last: int
    growing: tuple[tuple[int, int], ...]


def find_new(
    database: Database,
    query: Query,
    pattern: Pattern,
    show: Show,
    before: Seen | None,
    *,
    shown: Shown = SHOWN,
) -> tuple[Row | None, Seen]:
    """The first matching event among those stored after `before`, and what is stored now.

    before: the answer of the last look; None: this is the first look, and all events are old. The
    order of time does not matter: an event that is stored late is found, too. Raises TooSlow.
    """
    if before is None:
        return None, _all_that_is_stored(database)
    ranges, now = _look(database, before)
    if not ranges:
        return None, now
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    among = " ".join(f"(between id {low} {high})" for low, high in ranges)
    query = query.also("id BETWEEN ? AND ? AND event MATCH ?", low, high, f"(or {among})")
    return find(database, query, pattern, show, None, shown=shown), now


def _all_that_is_stored(database: Database) -> Seen:
    rows = database.query(
        "iii",
        "SELECT id, count, complete FROM segment WHERE complete = 0 OR id = (SELECT max(id) FROM segment)",
    )
    last = max((id for id, _, _ in rows), default=0)
    return Seen(last, tuple((id, events) for id, events, complete in rows if not complete))


def _look(database: Database, before: Seen) -> tuple[list[tuple[int, int]], Seen]:
    """Ids of the events stored after `before`, and what is stored now."""
    columns = "SELECT id, count, complete FROM segment WHERE id"
    rows: list[tuple[int, int, int, int]] = []  # the last number: its events seen so far
    for segment, events in before.growing:
        rows += [(*row, events) for row in database.query("iii", f"{columns} = ?", (segment,))]
    rows += [(*row, 0) for row in database.query("iii", f"{columns} > ?", (before.last,))]
    ranges: list[tuple[int, int]] = []
    for segment, events, _, old in sorted(rows):
        if events > old:
            first = segment << INDEX_BITS
            ranges.append((first + old, first + events - 1))
    last = max([before.last, *(segment for segment, *_ in rows)])
    return ranges, Seen(
        last, tuple((segment, events) for segment, events, complete, _ in rows if not complete)
    )
