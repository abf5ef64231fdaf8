"""The database by itself."""

import os
from pathlib import Path

import pytest
from pytracer.dumper.store import RunStart, Store


def test_what_lies_beside_a_file_that_was_taken_away_may_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may be nobody's to change any more. What the next file needs comes along all the
    same."""
    path = tmp_path / "traces.sqlite"
    run = RunStart("ring", "python app.py", str(tmp_path), "3.13.0", clock_epoch_ns=0, clock_epoch_units=0)
    store = Store(str(path), run, max_size=1 << 30, max_events=0)
    with store.transaction():
        store.put_types([(1, "app.Order", None, None)])
    path.rename(tmp_path / "elsewhere.sqlite")
    assert store.moved()

    def refuse(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(os, "unlink", refuse)
    row = {"number": 1, "name": "app.Order", "fields": None, "attributes": None}
    assert store.leave(now=0).definitions["type"] == [row]
