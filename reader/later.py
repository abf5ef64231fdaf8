"""Content of a recording that a later version of pytrace has made, and this one passes over:
counted, and in words.

Called by `info`, by `print` and by the screen, each of which says it once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from . import features
from .database import Database

_MADE = "made by a later version of pytrace, which this one passes over"


class Later(NamedTuple):
    """Of one run; docs/json.md says what each is."""

    records: int = 0
    fields: int = 0
    segments: int = 0
    features: Sequence[str] = ()
    refused: Sequence[str] = ()

    def parts(self) -> list[str]:
        """In words; none if there is nothing of it."""
        parts = []
        if self.records:
            parts.append(f"{_counted(self.records, 'record')} of kinds {_MADE}")
        if self.fields:
            parts.append(f"fields in {_counted(self.fields, 'place')}, {_MADE}")
        if self.segments:
            parts.append(f"{_counted(self.segments, 'segment')} of kinds {_MADE}")
        if self.refused:
            parts.append(f"everything: a newer pytrace is needed to read it ({', '.join(self.refused)})")
        elif self.features:
            parts.append(f"{', '.join(self.features)} of a later version of pytrace")
        return parts


def read(database: Database) -> dict[int, Later]:
    """By the number of the run. Looks through the segments that may have something of it."""
    bits = "features" if database.has_column("run", "features") else "0"
    found = {
        run: Later(features=features.unknown(known), refused=features.refused(known))
        for run, known in database.query("ii", f"SELECT id, {bits} FROM run")
    }
    for run, records, fields, segments in database.query(
        "iiii",
        "SELECT run, coalesce(sum(records), 0), coalesce(sum(fields), 0), sum(kind <> 0)"
        " FROM skipped GROUP BY run",
    ):
        found[run] = found.get(run, Later())._replace(records=records, fields=fields, segments=segments)
    return found


def told(database: Database, runs: Collection[int]) -> list[str]:
    """A line for each of these runs that has something of it."""
    return [
        f"run {run}: {'; '.join(later.parts())}. Upgrade with: pip install --upgrade pytracer"
        for run, later in sorted(read(database).items())
        if run in runs and later.parts()
    ]


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
