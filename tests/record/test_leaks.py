"""A recorded program keeps nothing alive, and leaves nothing behind."""

import json
from pathlib import Path

import pytest

from recording import Record

FOLDER = Path(__file__).parents[1] / "support"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="values"),
        pytest.param(["--repr"], id="repr", marks=pytest.mark.slow),
        pytest.param(["--attributes", "8"], id="attributes", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_left_behind(options: list[str], record: Record) -> None:
    """Less than one object, or block, in ten calls; and less than one word of the heap in a
    call."""
    recording = record((FOLDER / "leaking.py").read_text(), "--max-size", "100MB", *options)
    grown = [json.loads(line) for line in recording.stdout.splitlines()]
    assert len(grown) > 20
    assert not [
        line
        for line in grown
        for _, calls, blocks, objects, size in [line]
        if max(blocks, objects) > 100 + calls / 10 or size > 4096 + calls * 8
    ]


@pytest.mark.parametrize(
    "options", [[], ["--repr"], ["--attributes", "8"]], ids=["values", "repr", "attributes"]
)
def test_objects_die_when_they_would_have_died(options: list[str], record: Record) -> None:
    recording = record((FOLDER / "lifetimes.py").read_text(), *options)
    assert recording.stdout.count("dies") > 75
    assert recording.stdout == recording.plain_output()
