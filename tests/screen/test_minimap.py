"""The minimap, with and without colours."""

import pytest
from pytracer.reader.screen.paint import palette
from pytracer.reader.screen.timeline import Cell, Timeline, minimap, time_of_cell

# the last two have both, and what there is besides is not shown
CELLS = [
    *[Cell(128.0)] * 4,
    Cell(32.0, exceptions=True),
    Cell(32.0, lost=True),
    Cell(32.0, evicted=True),
    Cell(32.0, exceptions=True, lost=True, evicted=True),
    Cell(32.0, exceptions=True, lost=True, evicted=True),
]


def place(column: int) -> float:
    return (column + 0.5) / len(CELLS)


def test_the_height_is_the_logarithm_of_the_events() -> None:
    cells = [Cell(events) for events in (0.0, 0.01, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)]
    assert minimap(cells, 0.0, (0.0, 0.0)).text == " ▁▁▂▃▄▅▆▇█"
    assert minimap(cells, 0.0, (0.0, 0.0), ascii=True).text == " ..:-==+*#"
    assert minimap([Cell()] * 3, 0.0, (0.0, 0.0)).text == "   "
    assert minimap([], 0.0, (0.0, 0.0)).text == ""


def test_a_cell_has_the_style_of_the_most_important() -> None:
    line = minimap(CELLS, place(1), (place(0), place(2)), [place(7), place(1)])
    assert line.text == "████▆▆▆▆▆"
    assert line.spans == (
        (0, 3, "cursor"), (4, 5, "handled"), (5, 6, "lost"), (6, 7, "dim"), (7, 8, "hit"), (8, 9, "lost"),
    )  # fmt: skip


def test_marks_say_it_without_colours() -> None:
    line = minimap(CELLS, place(1), (place(0), place(2)), [place(7), place(1)], plain=True)
    assert line.text == "█|██!?▆/?"
    assert minimap(CELLS, place(1), (place(0), place(2)), plain=True, ascii=True).text == "#|##!?+??"


def test_exceptions_that_nobody_caught_are_louder() -> None:
    line = minimap(CELLS, place(1), (place(0), place(2)), [], [place(5), place(6)])
    assert [span for span in line.spans if span[2] == "exception"] == [(5, 7, "exception")]
    assert minimap(CELLS, place(1), (place(0), place(2)), [], [place(6)], plain=True).text == "█|██!?E??"


def test_one_that_is_on_the_screen_is_still_seen() -> None:
    line = minimap(CELLS, place(1), (place(0), place(2)), [], [place(2)])
    assert line.spans[:2] == ((0, 2, "cursor"), (2, 3, "exception cursor"))
    assert minimap(CELLS, place(1), (place(0), place(2)), [], [place(2)], plain=True).text[:3] == "█|E"
    assert minimap(CELLS, place(1), (place(0), place(2)), [], [place(1)], plain=True).text[:3] == "█E█"
    assert "exception cursor" in {name for name, *_ in palette()}


@pytest.mark.parametrize(
    ("here", "marked"), [(0.0, (0, 2)), (place(4), (4, 6)), (1.0, (7, 9)), (7.0, (7, 9))]
)
def test_where_we_are_is_two_cells_wide(here: float, marked: tuple[int, int]) -> None:
    line = minimap(CELLS, here, (here, here))
    assert [span[:2] for span in line.spans if span[2] == "cursor"] == [marked]
    assert minimap(CELLS, here, (here, here), plain=True).text.count("|") == 1


def test_the_time_of_a_cell() -> None:
    line = Timeline(1, 1000, 2000, 0, 0, 0, None, False, None)
    assert [time_of_cell(line, column, 10) for column in (-1, 0, 9, 10)] == [1000, 1050, 1950, 2000]
