"""The source of a run's files: as it was, if it was stored with the recording (`pytrace --lines`),
else as it is on this machine now.

The pane about an event and `pytrace analyse` ask here. A stored text was written by the recorded
program's user, and may hold anything: long lines are cut, as those of a file are, and whoever draws
a line escapes it.
"""

from __future__ import annotations

from functools import lru_cache

from . import source_file
from .database import Database
from .rows import Run, text
from .source_file import LATER, Excerpt, around, line_text

LINES_MOST = 1 << 20  # of a stored text
_KEPT = 8  # files
_DAMAGED = "the stored source is damaged; this is the file as it is now"


class Sources:
    """The sources of a run; None: of no run that is known."""

    def __init__(self, database: Database, run: Run | None) -> None:
        self._database = database
        self._run = run.id if run else 0
        self._directory, self._started = (run.directory, run.started) if run else ("", 0)
        self._stored = lru_cache(_KEPT)(self._read)
        self._whole = lru_cache(_KEPT)(self._all_lines)

    def excerpt(self, file: str, line: int) -> Excerpt:
        """The source around a line. file: as in the column `file`. Raises DatabaseError."""
        lines, note = self._stored(file)
        if lines is None:
            return _doubted(source_file.excerpt(self._directory, file, line, self._started), note)
        if not 1 <= line <= (len(lines) or 1):  # an empty module begins in its first line
            return Excerpt([], f"{file} had {len(lines)} lines, and no line {line}")
        first, last = around(line)
        shown = (lines or [""])[first - 1 : last]
        return Excerpt([(number, line_text(each)) for number, each in enumerate(shown, first)], note)

    def whole(self, file: str) -> Excerpt:
        """All lines of a file, split once for all questions: the answer is shared, and must not be
        changed. Raises DatabaseError."""
        return self._whole(file)

    def _all_lines(self, file: str) -> Excerpt:
        lines, note = self._stored(file)
        if lines is None:
            return _doubted(source_file.whole(self._directory, file, self._started), note)
        return Excerpt([(number, line_text(each)) for number, each in enumerate(lines, 1)], note)

    def _read(self, file: str) -> tuple[list[str] | None, str]:
        """The stored lines, and a doubt about them. None: there are none, or none to be read."""
        try:
            file.encode()
        except UnicodeEncodeError:
            return None, ""  # no stored name has lone surrogates
        found = self._database.query(
            "no",
            "SELECT changed, CAST(text AS BLOB) FROM source WHERE run = ? AND file = ?",
            (self._run, file),
        )
        if not found:
            return None, ""
        changed, stored = found[0]
        if stored is None:
            return None, _DAMAGED
        lines = text(stored).split("\n", LINES_MOST)
        rest = lines.pop()  # empty behind the last line end
        if len(lines) == LINES_MOST and rest:
            return lines, f"these are the first {LINES_MOST:,} lines of {file}"
        if rest:
            lines.append(rest)
        return lines, LATER if changed else ""


def _doubted(found: Excerpt, note: str) -> Excerpt:
    return Excerpt(found.lines, "; ".join(each for each in (note, found.note) if each))
