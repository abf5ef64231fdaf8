"""The screen shows recordings of earlier and of later versions of pytrace."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from handmade import Handmade
from reader import Reads

DATA = Path(__file__).parents[1] / "format" / "data"
EARLIER = sorted(DATA.glob("*.sqlite.gz"))


@pytest.mark.parametrize("stored", EARLIER, ids=lambda path: path.name)
def test_an_earlier_one(reads: Reads, tmp_path: Path, stored: Path) -> None:
    path = tmp_path / "earlier.sqlite"
    path.write_bytes(gzip.decompress(stored.read_bytes()))
    path.chmod(0o600)
    before = path.read_bytes()
    reader = reads(path, rows=50).settled()
    assert "__main__.Order.pay(" in reader.text
    assert "'paid by bob'" in reader.text
    reader.quit()
    assert path.read_bytes() == before


def test_a_later_one(reads: Reads, copy: Path) -> None:
    reader = reads(copy).settled()
    shown = reader.lines[1:]
    reader.quit()
    with Handmade(copy) as made:
        made("PRAGMA user_version = 3")
        made("ALTER TABLE run ADD COLUMN host TEXT")
        made("CREATE TABLE symbol (run INTEGER, address INTEGER, name TEXT) STRICT")
        made("UPDATE run SET features = features | 1 << 20")
    reader = reads(copy).settled()
    assert reader.lines[1:] == shown
    reader.quit()


def test_one_that_needs_a_newer_pytrace(reads: Reads, copy: Path) -> None:
    with Handmade(copy) as made:
        made("UPDATE run SET features = 1 << 40 WHERE id = 2")
    reader = reads(copy, "--run", 2, columns=250).settled()
    assert "run 2 was recorded by a newer pytrace, which is needed to read it" in reader.message
    reader.quit()
    reader = reads(copy, "--run", 1, columns=250).settled()
    assert "newer pytrace" not in reader.text


def test_what_is_passed_over_is_told_below_the_last_event(reads: Reads, copy: Path) -> None:
    with Handmade(copy) as made:
        made("UPDATE run SET features = features | 1 << 20")
    reader = reads(copy).settled()
    reader.press("G").settled()
    reader.shows("-- feature 20 of a later version of pytrace --")
    reader.quit()
