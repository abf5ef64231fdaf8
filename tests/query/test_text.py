"""Lines cut to the cells of a terminal, against a screen that is filled cell by cell."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytracer.reader.screen.text import (
    Line,
    Markup,
    cells,
    chop,
    cuts,
    encoded,
    fitted,
    fold,
    part,
    shown,
    with_hits,
)
from wcwidth import wcwidth

STYLES = ("", "call", "name", "value")


def plain(markup: Markup) -> str:
    return "".join(text for _, text in markup.runs)


def cell_by_cell(text: str) -> list[str]:
    """The content of each cell; the second one of a wide character has an empty string."""
    row: list[str] = []
    for character in text:
        width = 1 if unicodedata.category(character) == "Mc" else wcwidth(character)
        if width:
            row += [character, *[""] * (width - 1)]
        elif row:
            row[max(place for place, content in enumerate(row) if content)] += character
        else:
            row.append(" " + character)
    return row


def whole(row: list[str], following: list[str]) -> list[str]:
    """Cells of which those have a space that hold a part of a wide character only."""
    row = row.copy()
    for place, content in enumerate(row):
        if content:
            break
        row[place] = " "
    if following and not following[0]:
        for place in reversed(range(len(row))):
            content, row[place] = row[place], " "
            if content:
                break
    return row


def chopped(text: str, left: int, width: int) -> str:
    row = cell_by_cell(text)[left:]
    if len(row) <= width:
        return "".join(whole(row, []))
    dots = "..."[:width]
    room = width - len(dots)
    return "".join(whole(row[:room], row[room:])) + dots


# narrow, wide, combining, emoji, Hangul syllables and their parts, Devanagari, Thai
alphabet = st.sampled_from(
    "ab é…漢\u3000😀\u0301\u0308한\u1100\u1161\u11a8क्षि\u0e01\u0e33\U0001f1e9\U0001f1ea\ufe0f👍🏽"
)
printables = st.text(alphabet, max_size=24).map(shown)


@st.composite
def styled_lines(draw: st.DrawFn) -> Line:
    pieces = draw(st.lists(st.tuples(st.sampled_from(STYLES), printables), max_size=5))
    text, spans = "", []
    for style, piece in pieces:
        if style and piece:
            spans.append((len(text), len(text) + len(piece), style))
        text += piece
    return Line(text, tuple(spans))


def styles(line: Line) -> list[str]:
    """The style of each character."""
    found = [""] * len(line.text)
    for start, end, style in line.spans:
        found[start:end] = [style] * (end - start)
    return found


@given(styled_lines(), st.integers(0, 40), st.integers(1, 40))
def test_chopped_lines_are_what_a_screen_shows(line: Line, left: int, width: int) -> None:
    markup = chop(line, left, width)
    assert plain(markup) == chopped(line.text, left, width)
    assert markup.cells == len(cell_by_cell(line.text)[left : left + width])
    assert all(text for _, text in markup.runs)


@given(styled_lines(), st.integers(2, 40))
def test_folded_lines_have_all(line: Line, width: int) -> None:
    rows = fold(line, width)
    text = "".join(map(plain, rows))
    lone = text[: len(text) - len(line.text)]  # a space that carries a mark
    assert lone in ("", " ")
    assert text == lone + line.text
    found = [style for row in rows for style, text in row.runs for _ in text]
    assert found == [""] * len(lone) + styles(line)
    assert [row.cells for row in rows] == [taken for _, _, taken in cuts(line.text, width)]
    assert sum(row.cells for row in rows) == cells(line.text)
    assert all(row.cells in (width, width - 1) for row in rows[:-1])
    assert rows[-1].cells <= width


@example(Line("aa \u0301\u3000"), 4, 0)
@example(Line("aa  \u0301\u3000"), 4, 0)
@given(styled_lines(), st.integers(4, 40), st.integers(0, 40))
def test_wrapped_lines_lack_no_word(line: Line, width: int, hang: int) -> None:
    hang = min(hang, width // 2)
    rows = fold(line, width, hang, at_words=True)
    assert all(row.cells <= width for row in rows)
    assert [row.cells for row in rows] == [cells(plain(row)) for row in rows]
    assert all(plain(row).startswith(" " * hang) for row in rows[1:])
    assert "".join(map(plain, rows)).replace(" ", "") == line.text.replace(" ", "")


def test_wrapping() -> None:
    line = Line("-> pay(user='bob', amount=15, note='a long one')")
    assert [plain(row) for row in fold(line, 20, 3, at_words=True)] == [
        "-> pay(user='bob',",
        "   amount=15,",
        "   note='a long",
        "   one')",
    ]
    assert [plain(row) for row in fold(Line("x" * 12), 5, 2, at_words=True)] == [
        "xxxxx",
        "  xxx",
        "  xxx",
        "  x",
    ]


def test_chopping() -> None:
    line = Line("-> pay(amount=5)", ((0, 3, "call"), (7, 13, "name")))
    assert chop(line, 0, 16).runs == [("call", "-> "), ("", "pay("), ("name", "amount"), ("", "=5)")]
    assert chop(line, 0, 15).runs == [("call", "-> "), ("", "pay("), ("name", "amoun"), ("dim", "...")]
    assert chop(line, 8, 40).runs == [("name", "mount"), ("", "=5)")]
    assert chop(line, 16, 40) == Markup([], 0)
    assert chop(line, 99, 40) == Markup([], 0)
    assert plain(chop(line, 0, 2)) == ".."
    assert chop(line, 0, 0) == Markup([], 0)
    assert plain(chop(Line("漢字漢字"), 1, 5)) == " 字..."[:2] + "..."[:3] or plain(
        chop(Line("漢字漢字"), 1, 5)
    )


def test_wide_and_combining_characters() -> None:
    wide = Line("漢字漢字x")
    assert plain(chop(wide, 0, 9)) == "漢字漢字x"
    assert plain(chop(wide, 0, 8)) == "漢字 ..."
    assert plain(chop(wide, 1, 8)) == " 字漢字x"
    assert plain(chop(wide, 1, 4)) == " ..."
    assert plain(chop(wide, 1, 1)) == "."
    assert [plain(row) for row in fold(wide, 3)] == ["漢", "字", "漢", "字x"]
    assert [row.cells for row in fold(wide, 1)] == [0, 0, 0, 0, 1]
    accents = Line("e\u0301a\u0308o")
    assert cells(accents.text) == 3
    assert plain(chop(accents, 1, 2)) == "a\u0308o"
    assert [plain(row) for row in fold(accents, 2)] == ["e\u0301a\u0308", "o"]
    assert chop(Line("\u0301x", ((0, 1, "value"),)), 0, 5) == Markup(
        [("", " "), ("value", "\u0301"), ("", "x")], 2
    )


def test_what_terminals_do_not_agree_on_is_written_out() -> None:
    assert shown("❤\ufe0f") == "❤\\ufe0f"
    assert shown("👍🏽") == "👍\\U0001f3fd"
    assert shown("🇩🇪") == "\\U0001f1e9\\U0001f1ea"
    assert shown("a\tb\u202e漢é") == "a\\tb\\u202e漢é"
    assert shown("漢é\n", ascii=True) == "\\u6f22\\xe9\\n"


@pytest.mark.parametrize(
    ("text", "width", "fits"),
    [
        ("abc", 5, "abc  "),
        ("abcdef", 5, "ab..."),
        ("漢字", 5, "漢字 "),
        ("漢字漢", 5, "漢..."),
        ("abc", 2, ".."),
        ("漢", 2, "漢"),
    ],
)
def test_fitted(text: str, width: int, fits: str) -> None:
    assert fitted(text, width) == fits
    assert fitted(text, width, right=True) == " " * (len(fits) - len(fits.rstrip())) + fits.rstrip()


@given(styled_lines(), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=4), st.data())
def test_hits_are_laid_over(line: Line, found: list[tuple[int, int]], data: st.DataObject) -> None:
    hits, last = [], 0
    for gap, length in found:
        start = min(last + gap, len(line.text))
        last = min(start + length, len(line.text))
        hits.append((start, last))
    expected = styles(line)
    for start, end in hits:
        expected[start:end] = ["hit"] * (end - start)
    marked = with_hits(line, hits)
    assert marked.text == line.text
    assert styles(marked) == expected
    ends = [place for start, end, _ in marked.spans for place in (start, end)]
    assert ends == sorted(ends)


@given(styled_lines(), st.integers(0, 30), st.integers(0, 30))
def test_parts(line: Line, start: int, end: int) -> None:
    start, end = sorted((min(start, len(line.text)), min(end, len(line.text))))
    found = part(line, start, end, "  ")
    assert found.text == "  " + line.text[start:end]
    assert styles(found) == ["", "", *styles(line)[start:end]]


@given(styled_lines(), st.integers(0, 10), st.integers(1, 30))
def test_encoded_rows_fill_the_screen(line: Line, left: int, width: int) -> None:
    markup = chop(line, left, width)
    data, attributes = encoded(markup, width)
    assert data.decode().rstrip(" ") == plain(markup).rstrip(" ")
    assert len(cell_by_cell(data.decode())) == width
    assert sum(length for _, length in attributes) == len(data)
    start = 0
    for (style, text), (name, length) in zip(markup.runs, attributes, strict=False):
        assert (style, text.encode()) == (name, data[start : start + length])
        start += length
