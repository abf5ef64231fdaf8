"""Terminals that know less than others: few colours, no colours, no UTF-8, no cursor movements."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader import Reads


@pytest.mark.parametrize(
    "term", ["xterm", "xterm-256color", "screen", "tmux-256color", "linux", "vt100", "unheard-of"]
)
def test_terms(reads: Reads, journal: Path, term: str) -> None:
    reader = reads(journal, TERM=term).settled()
    assert "shop.main()" in reader.current
    assert reader.colours
    reader.press("j", "tab").settled().shows("Shop.order", "number")
    cells = [cell for row in range(reader.rows) for cell in reader.cells(row)]
    assert not [cell for cell in cells if cell.bg == "default" and "black" in cell.fg]
    reader.quit()


def test_a_dumb_terminal_gets_lines(reads: Reads, journal: Path) -> None:
    """One that cannot move its cursor is no place for a screen: it is `pytrace print`."""
    reader = reads(journal, TERM="dumb")
    assert reader.end() == 0
    assert b"\x1b" not in reader.raw
    assert reader.raw.count(b"\n") > 500
    assert "cannot show a screen (TERM)" in reader.errors


def test_no_colours(reads: Reads, journal: Path) -> None:
    """NO_COLOR: the cursor, hits and exceptions are seen nevertheless."""
    reader = reads(journal, NO_COLOR="1").settled()
    reader.press("x").settled()
    assert reader.colours == set()
    rows = [row for row in range(reader.rows - 2) if all(cell.reverse for cell in reader.cells(row))]
    assert any("ValueError" in reader.line(row) for row in rows)
    reader.press("g", "/").type("user=").press("enter").settled()
    assert any(cell.underscore for row in range(reader.rows) for cell in reader.cells(row))
    reader.quit()


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C"}, {"LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}]
)
def test_without_utf_8(reads: Reads, hostile: Path, locale: dict[str, str]) -> None:
    """Only ASCII is sent; everything else is an escape."""
    reader = reads(hostile, columns=200, **locale).settled()
    for key in ("j", " ", "tab", "h", "q", "*", "esc", "G", "&", "esc"):
        reader.press(key).settled()
    assert all(byte < 128 for byte in reader.raw)
    reader.press("tab", "g").type("/show").press("enter").settled()
    reader.quit()


def test_answers_that_nobody_waits_for(reads: Reads, journal: Path) -> None:
    """Reports of a terminal, half sequences and rubbish are no keys that do harm."""
    reader = reads(journal).settled()
    before = reader.lines[1:-2]
    for data in (
        b"\x1b[?62;22c",
        b"\x1b[?2026;2$y",
        b"\x1b[I",
        b"\x1b[O",
        b"\x1b[200~",
        b"\x1b[201~",
        b"\xff\xfe",
        b"\xc3",
    ):
        reader.report(data)
    reader.press("esc").settled().press("g").settled()
    reader.press("g").settled()
    assert reader.lines[1:-2] == before
    reader.quit()
