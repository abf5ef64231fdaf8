"""The sources of a recording, as a client names them: by a path, or by a number (sourceReference)
if the text that was recorded is not what stands at that path now.

Only `session`, `view` and `stops` ask here. Paths come from the recorded program and from the
client: none of them is opened but through `reader.source_file`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from ... import source_file
from ...database import Database
from ...paths import path_bytes
from ...rows import Run, text
from ...sources import Sources
from .protocol import Fields, RequestError

_NEAR = 50  # lines, in which one that ran is looked for
_LISTED = 1000  # files


class Files:
    """The files of a run."""

    def __init__(self, database: Database, run: Run) -> None:
        self._database, self._run = database, run
        self._sources = Sources(database, run)
        self._shown: dict[str, dict[str, Any]] = {}
        self._numbered: list[str] = []  # files by their sourceReference, from 1
        self._names: list[str] = []  # of all files, as recorded

    def source(self, file: str) -> dict[str, Any]:
        """A `Source` of the protocol. Raises DatabaseError."""
        if file not in self._shown:
            self._shown[file] = self._source(file)
        return self._shown[file]

    def _source(self, file: str) -> dict[str, Any]:
        path = self._path(file)
        told: dict[str, Any] = {"name": PurePath(file).name or file}
        if file.startswith("<"):
            return told | {"presentationHint": "deemphasize"}
        told["path"] = path
        stored = self._sources.whole(file).lines
        if stored and stored != source_file.whole(self._run.directory, file, self._run.started).lines:
            self._numbered.append(file)
            return told | {"sourceReference": len(self._numbered), "origin": "as it was recorded"}
        return told if stored else told | {"presentationHint": "deemphasize"}

    def _path(self, file: str) -> str:
        return os.fsdecode(path_bytes(os.path.join(self._run.directory, file)))

    def loaded(self) -> list[dict[str, Any]]:
        """The files of own code. Raises DatabaseError."""
        found = self._recorded("AND mine")
        return [self.source(file) for file in found[:_LISTED] if not file.startswith("<")]

    def content(self, source: Fields) -> str:
        """The text of a source. Raises RequestError, DatabaseError."""
        file = self.recorded(source)
        if file is None:
            raise RequestError("this source is not one of the recording's")
        stored = self._database.query(
            "b",
            "SELECT CAST(text AS BLOB) FROM source WHERE run = ? AND file = ? AND text IS NOT NULL",
            (self._run.id, file),
        )
        if stored:
            return text(stored[0][0])
        found = self._sources.whole(file)
        if not found.lines:
            raise RequestError(found.note or f"{file} is empty")
        return "".join(f"{line}\n" for _, line in found.lines)

    def recorded(self, source: Fields) -> str | None:
        """The name of a source's file in the recording. On another machine the file may be at
        another path, so that the longest common end decides. None: there is none."""
        number = source.number("sourceReference", 0)
        if 0 < number <= len(self._numbered):
            return self._numbered[number - 1]
        path = source.text("path", "") or source.text("name", "")
        if not path:
            return None
        found = self._named(path)
        if found is None:
            self._names = self._recorded("")  # a program that still runs may have got more files
            found = self._named(path)
        return found

    def _named(self, path: str) -> str | None:
        paths = {self._path(name): name for name in self._names}
        real = os.path.realpath(path)
        if path in paths or real in paths:
            return paths.get(path) or paths[real]
        wanted = PurePath(path).parts[::-1]
        alike: dict[int, list[str]] = {}
        for each, name in paths.items():
            alike.setdefault(_common(wanted, PurePath(each).parts[::-1]), []).append(name)
        best = max(alike, default=0)
        return alike[best][0] if best and len(alike[best]) == 1 else None

    def _recorded(self, also: str) -> list[str]:
        rows = self._database.query(
            "b", f"SELECT DISTINCT CAST(file AS BLOB) FROM code WHERE run = ? {also}", (self._run.id,)
        )
        return [text(file) for (file,) in rows]

    def ran(self, file: str, first: int, last: int) -> list[int]:
        """The lines between two ones that ran, in their order. Raises DatabaseError."""
        rows = self._database.query(
            "i",
            "SELECT DISTINCT line FROM event WHERE run = ? AND file = ? AND kind = 'line'"
            " AND line >= ? AND line <= ?",
            (self._run.id, file, first, last),
        )
        return sorted(line for (line,) in rows)

    def nearest(self, file: str, line: int) -> int | None:
        """The line itself if it ran; else the next one that did, or the last one before it."""
        exact = "SELECT 1 FROM event WHERE run = ? AND file = ? AND kind = 'line' AND line = ? LIMIT 1"
        if self._database.query("i", exact, (self._run.id, file, line)):
            return line
        found = self.ran(file, max(line - _NEAR, 1), line + _NEAR)
        behind = [each for each in found if each > line]
        return behind[0] if behind else found[-1] if found else None

    def first_line_of_function(self, file: str, line: int) -> int | None:
        """The first line of the last function that begins up to a line."""
        ((found,),) = self._database.query(
            "n",
            "SELECT max(line) FROM code WHERE run = ? AND file = ? AND line <= ?",
            (self._run.id, file, line),
        )
        return found if isinstance(found, int) else None


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
