"""Draws the reader's screen as a picture: docs/reader.svg, from a real session.

    python docs/screenshot.py          # records examples/shop.py, presses keys, writes the file

Needs the tools of the tests (pyproject's group `test`): the screen is that of a terminal in memory.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))  # docs/reader.py is another one

from pyte.screens import Char  # noqa: E402

from reader import Reader  # noqa: E402
from recording import record  # noqa: E402

OUT = ROOT / "docs" / "reader.svg"
SIZE = (24, 100)
KEYS = ("x", "tab")  # an exception that is caught, with the values that led to it
_CELL, _LINE, _MARGIN = 8.4, 18, 14  # of the picture; the letters are 14 high
_INK, _PAPER = "#d8dee9", "#1d2129"
_COLOURS = {
    "black": "#1d2129", "red": "#e06c75", "green": "#98c379", "brown": "#d19a66", "blue": "#2f5d9b",
    "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#abb2bf", "brightblack": "#7a8290",
    "brightred": "#ff7b86", "brightgreen": "#b5e890", "brightbrown": "#ffd787", "brightblue": "#6aa9ff",
    "brightmagenta": "#e5a0ff", "brightcyan": "#7fe0ec", "brightwhite": "#ffffff",
}  # fmt: skip


def svg(screen: Sequence[Sequence[Char]], title: str) -> str:
    """Rows of cells as a picture, letter for letter in their colours."""
    width = len(screen[0]) * _CELL + 2 * _MARGIN
    height = len(screen) * _LINE + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>',
    ]
    for row, cells in enumerate(screen):
        top = _MARGIN + row * _LINE
        for start, end in _runs(cells):
            first, text = cells[start], "".join(cell.data for cell in cells[start:end])
            ink, paper = _colours(first)
            left, length = _MARGIN + start * _CELL, (end - start) * _CELL
            if paper != _PAPER:
                parts.append(
                    f'<rect x="{left:.1f}" y="{top}" width="{length:.1f}" height="{_LINE}" fill="{paper}"/>'
                )
            if text.strip():
                weight = ' font-weight="bold"' if first.bold else ""
                parts.append(
                    f'<text x="{left:.1f}" y="{top + 13}" fill="{ink}"{weight} textLength="{length:.1f}" '
                    f'lengthAdjust="spacingAndGlyphs" xml:space="preserve">{escape(text)}</text>'
                )
    return "\n".join([*parts, "</svg>", ""])


def _runs(cells: Sequence[Char]) -> list[tuple[int, int]]:
    """[start, end) of neighbours that look the same; a word that spaces follow ends there."""
    starts = [0]
    for place in range(1, len(cells)):
        before, here = cells[place - 1], cells[place]
        if before._replace(data="") != here._replace(data="") or (before.data == " ") != (here.data == " "):
            starts.append(place)
    return list(zip(starts, [*starts[1:], len(cells)], strict=True))


def _colours(cell: Char) -> tuple[str, str]:
    """Of the letter, and behind it."""
    ink, paper = _colour(cell.fg, _INK), _colour(cell.bg, _PAPER)
    return (paper, ink) if cell.reverse else (ink, paper)


def _colour(name: str, usual: str) -> str:
    if name == "default":
        return usual
    return _COLOURS.get(name, f"#{name}")


def renamed(cells: list[Char], path: str, name: str) -> list[Char]:
    """A row in which a file has another name: the folder here says nothing to readers."""
    at = "".join(cell.data for cell in cells).find(path)
    if at < 0:
        return cells
    row = cells[:at] + [cells[at]._replace(data=letter) for letter in name] + cells[at + len(path) :]
    return row + [cells[-1]._replace(data=" ")] * (len(cells) - len(row))


def session() -> str:
    """Records the example and reads it, as anybody would. Returns the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = (ROOT / "examples" / "shop.py").read_text()
        recording = record(folder, source, "--attributes", "8")
        rows, columns = SIZE
        with Reader([recording.database], folder, rows=rows, columns=columns, PYTRACE_VIEW="") as reader:
            for key in KEYS:
                reader.settled().press(key)
            reader.settled()
            cells = [reader.cells(row) for row in range(rows)]
            return svg([renamed(row, f"{folder}/script.py", "shop.py") for row in cells], "pytrace read")


if __name__ == "__main__":
    OUT.write_text(session(), encoding="utf-8")
