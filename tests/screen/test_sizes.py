"""Screens of all sizes, pulled larger and smaller while something is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader import Reader, Reads

SIZES = [(5, 20), (6, 30), (10, 40), (12, 60), (24, 80), (25, 132), (50, 200), (100, 300)]


def fits(reader: Reader) -> bool:
    """There is a status line, and an event under the cursor."""
    return "journal" in reader.text and any(reader.cell(row, 0).bg == "blue" for row in range(reader.rows))


def test_sizes_one_after_the_other(reads: Reads, journal: Path) -> None:
    """A screen after a change equals one that is drawn anew."""
    reader = reads(journal, rows=24, columns=80).settled()
    reader.type("300g").settled()
    for rows, columns in [*SIZES, *SIZES[::-1], (5, 20), (100, 300), (24, 80)]:
        if (reader.rows, reader.columns) != (rows, columns):
            reader.resize(rows, columns).settled()
        assert fits(reader), (rows, columns, reader.text)
        drawn = reader.lines[1:]
        reader.press("ctrl l").settled()
        assert drawn == reader.lines[1:]


@pytest.mark.parametrize(("rows", "columns"), [(5, 20), (100, 300)])
def test_keys_on_small_and_large_screens(reads: Reads, journal: Path, rows: int, columns: int) -> None:
    reader = reads(journal, rows=rows, columns=columns).settled()
    for key in (
        " ",
        "G",
        "b",
        "tab",
        "meta j",
        "%",
        "right",
        "left",
        "tab",
        "h",
        "q",
        "*",
        "esc",
        "&",
        "esc",
    ):
        reader.press(key).settled()
    for switch in "SNtTpavmk":
        reader.press("-", switch).settled()
        assert fits(reader), (switch, reader.text)
    reader.quit()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 80), (24, 5), (1, 200), (4, 8)])
def test_too_small(reads: Reads, journal: Path, rows: int, columns: int) -> None:
    """As many words as fit are shown, keys still work, and a larger screen brings everything
    back."""
    said = "too small a screen" if columns > 18 else ("too small a screen"[: columns - 3] + "...")[-columns:]
    reader = reads(journal, rows=rows, columns=columns).settled()
    assert reader.line(0) == said
    reader.press("j", "G", "tab", "/", "x", "esc", "tab", "g").settled()
    reader.resize(24, 100).wait(fits, "everything")
    reader.resize(rows, columns).wait(lambda screen: screen.line(0) == said)
    reader.quit()


@pytest.mark.parametrize(
    "keys", [("h",), ("*",), ("&", *"func == 'pay' and x"), ("/", "x"), ("tab",), (":", "q")]
)
def test_resizing_in_the_middle(reads: Reads, journal: Path, keys: tuple[str, ...]) -> None:
    """While a prompt, a menu, a page of help are open."""
    reader = reads(journal).settled()
    reader.type("300g").settled()
    plain = reader.lines[1:]
    reader.press(*keys).settled()
    asked = reader.text
    for rows, columns in [(5, 20), (2, 7), (60, 200), (1, 1), (24, 100)]:
        reader.resize(rows, columns).settled()
    reader.wait(lambda screen: screen.text == asked, "the same screen, and the minimap, which comes later")
    reader.press("tab" if keys == ("tab",) else "esc").settled()
    if reader.lines[1:] != plain:  # the first one closed a list of candidates
        reader.press("esc").settled()
    assert reader.lines[1:] == plain
    reader.quit()


def test_many_sizes_at_once(reads: Reads, journal: Path) -> None:
    reader = reads(journal, rows=40, columns=120).settled()
    before = reader.lines[1:-2]
    for step in range(30):
        reader.resize(40 - step, 120 - 3 * step).press("j" if step % 2 else "k")
    reader.resize(40, 120).press("g", "ctrl l").wait(
        lambda screen: screen.lines[1:-2] == before, "the first screen"
    )
    reader.quit()
