"""Names and values that would move the cursor, recolour, or turn text around are shown, and never
sent.

That nothing unprintable reaches the terminal is looked at in each test, when its readers are
closed.
"""

from __future__ import annotations

from pathlib import Path

from wcwidth import wcswidth

from handmade import Handmade, event
from hostile import VALUES
from reader import Reads


def test_values_are_seen_as_they_are_written(reads: Reads, hostile: Path) -> None:
    reader = reads(hostile, rows=50, columns=200).settled()
    for text in (
        r"\x1b[31mred",
        r"\x1b]0;title\x07",
        r"\x9b31mC1",
        r"line\nline\r\n",
        r"\u202eturned\u202c",
        "日本語",
    ):
        assert text in reader.text, text
    assert r"\x1b[31m\u202e" not in reader.line(0)


def test_everything_there_is_about_them(reads: Reads, hostile: Path) -> None:
    """Each one in the pane, searched, filtered, folded, wrapped, sideways, copied."""
    reader = reads(hostile, rows=30, columns=90).settled()
    reader.press("tab").settled()
    for number in range(2 * len(VALUES) + 2):
        reader.press("meta j", "J" if number % 3 else "j").settled()
    reader.press("tab", "g", "-", "S").settled()
    for _ in range(20):
        reader.press(" ").settled()
    reader.press("-", "S", "g", "/").type(r"\\x1b|日本").press("enter").settled()
    for _ in range(12):
        reader.press("right", "n").settled()
    reader.press("g", "=", "*").settled()
    reader.press("down", "enter").settled().press("enter").settled()
    assert "filter" in reader.status
    reader.press("g", "enter").settled().press('"').settled()
    reader.press("esc").say("width thread 3").say("run all")
    reader.quit()


def test_columns_stay_in_line(reads: Reads, hostile: Path) -> None:
    """Wide and combining characters take the room that the terminal gives them, wherever a line is
    cut."""
    reader = reads(hostile, rows=50, columns=97).settled()
    for left in range(12):
        for row, line in enumerate(reader.lines[:-1]):
            width = wcswidth(line)
            assert width <= reader.columns, (left, line)
            if reader.cell(row, 0).bg == "default" and line.endswith("..."):
                assert width == reader.columns, (left, line)
        reader.type("7").press("right").settled()


def test_what_was_typed(reads: Reads, hostile: Path) -> None:
    """Controls that are pasted into a prompt are no commands, and are shown."""
    reader = reads(hostile).settled()
    reader.press("&").send("value == '\x01\x02\x9b31m\u202e日本'".encode()).settled()
    reader.press("enter").settled().press("esc").settled()
    reader.press("/").send("\ud83d\x00\x9b(((".encode(errors="surrogatepass")).press("enter").settled()
    reader.press("g").settled()


def test_the_name_of_the_file(reads: Reads, tmp_path: Path) -> None:
    path = tmp_path / "tra\x1b[31m\u202e\nces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main")
        made.segment(run, [event("call", 1)])
    reader = reads(path, rows=12, columns=250).settled().press("=").settled()
    assert r"tra\x1b[31m\u202e ces.sqlite" in reader.message
    reader.quit()
