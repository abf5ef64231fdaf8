"""Runs a script of inside/ to its end, bare or recorded: what it says, and what its recording
holds."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.asking import Question, ask
from benchmarks.measure import DATABASE, INSIDE, Recording, read_recording
from benchmarks.processes import environment, run
from benchmarks.variants import BARE, PYTRACE

OWN = {"TRACE_MODULES": str(INSIDE)}  # records the scripts themselves alone


@dataclass
class Ran:
    """One run of a script."""

    said: Any  # its RESULT
    recording: Recording | None = None
    notes: int = 0  # of the recording's events those that only tell of a loss


def run_script(script: str, *arguments: object, recorded: bool, env: Mapping[str, str] | None = None) -> Ran:
    """Runs `script ARGUMENTS RESULT` in a folder of its own. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        folder = Path(scratch)
        result, database = folder / "answer", folder / DATABASE
        command = [word.replace("{scratch}", scratch) for word in (PYTRACE if recorded else BARE).command]
        words = [*command, str(INSIDE / script), *map(str, arguments), str(result)]
        dumper = run(words, folder, environment(**(env or {})))
        ran = Ran(json.loads(result.read_text()))
        if recorded:
            ran.recording = read_recording(database, dumper)
            ran.notes = notes(database)
        return ran


def notes(database: Path) -> int:
    """How many events of a recording are there only to say that others were lost."""
    (answer,) = ask(database, [Question("SELECT count(*) FROM event WHERE kind = 'lost'", repeat=1)]).answers
    return int(answer.row[0])


def exactly(runs: list[Ran]) -> str:
    """Loss over several recordings, and whether what was stored and lost is what the programs
    made."""
    lost = made = off = 0
    for ran in runs:
        assert ran.recording
        lost += ran.recording.lost
        made += ran.said["events"]
        off += abs(ran.recording.events - ran.notes + ran.recording.lost - ran.said["events"])
    return f"{lost:,} of {made:,}, {'counted exactly' if not off else f'the count is off by {off:,}'}"
