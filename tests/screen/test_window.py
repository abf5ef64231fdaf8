"""Lines as rows of the screen: cut, scrolled sideways, wrapped, and with a hit far to the right."""

from pytracer.reader.screen.text import Line, Markup
from pytracer.reader.screen.view import Item, View
from pytracer.reader.screen.window import Window

from events import made

COLUMNS = "12:00  "
LINE = Line(f"{COLUMNS}    -> app.pay(user='bob', note='{'a ' * 20}needle{' b' * 20}')", fixed=len(COLUMNS))
NEEDLE = (LINE.text.index("needle"), LINE.text.index("needle") + len("needle"))
USER = (LINE.text.index("user"), LINE.text.index("user") + len("user"))


def shown(line: Line, *hits: tuple[int, int], left: int = 0, wrap: bool = False) -> list[str]:
    window = Window(View(1), [], lambda item: line, lambda: None)
    window.width, window.left, window.wrap = 60, left, wrap
    rows = window.laid_out(line, hits)
    assert all(row.cells <= 60 for row in rows)
    return list(map(plain, rows))


def plain(row: Markup) -> str:
    return "".join(text for _, text in row.runs)


def test_a_hit_far_to_the_right_is_shown_within_its_line() -> None:
    cut = LINE.text[:57] + "..."
    assert shown(LINE) == [cut]
    assert shown(LINE, USER) == shown(LINE, USER, NEEDLE) == [cut]
    (found,) = shown(LINE, NEEDLE)
    assert found == "12:00      -> app.pay...a a a a a needle b b b b b b b b ..."
    assert len(found) == 60
    assert shown(LINE, (len(LINE.text) - 3, len(LINE.text)))[0].endswith(" b b')")


def test_a_hit_that_is_scrolled_away_stays_so() -> None:
    assert shown(LINE, USER, left=60) == shown(LINE, left=60)
    assert shown(LINE, NEEDLE, left=60) == shown(LINE, left=60)  # on the screen
    assert "needle" in shown(LINE, USER, NEEDLE, left=20)[0]


def test_lines_are_wrapped_at_words_behind_their_indentation() -> None:
    first, *more = shown(LINE, NEEDLE, wrap=True)
    assert first == "12:00      -> app.pay(user='bob', note='a a a a a a a a a a"
    assert [row[:14] for row in more] == [" " * 14] * len(more)
    assert " ".join(row.strip() for row in more)[-20:] == LINE.text[-20:]


def test_a_wrapped_deep_line_begins_in_its_first_row() -> None:
    deep = Line(COLUMNS + " " * 80 + "(41) -> app.pay(user='bob', note='a long one')", fixed=len(COLUMNS))
    first, *more = shown(deep, wrap=True)
    assert first.startswith(COLUMNS + " " * 23 + "(41) -> app.pay(")
    assert more
    assert all(row.startswith(" " * 30) for row in more)


def test_the_cursor_stays_when_lines_are_wrapped() -> None:
    window = Window(View(1), [], lambda item: LINE, lambda: None)
    window.items = [Item(made("call", id=id)) for id in range(1, 21)]
    window.began = window.ended = True
    window.cursor = 15
    window.resize(40, 20)
    for _ in range(2):
        list(window.switch_wrap())
        assert window.cursor == 15
        assert window.items[15] in window.shown()


def test_there_is_an_item_under_the_cursor_while_more_is_read() -> None:
    window = Window(View(1), [], lambda item: LINE, lambda: None)
    window.items = [Item(made("call", id=id)) for id in range(1, 21)]
    window.began = True
    window.cursor = window.top = len(window.items)  # the end, as far as it has been read
    next(window.settle())
    assert window.current is window.items[-1]
    window.items = []
    assert window.current is None
