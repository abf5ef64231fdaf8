"""A menu: keys in; what is chosen and rows of the screen out."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import urwid
from pytracer.reader.screen.dialogs import Menu
from pytracer.reader.screen.effects import Choice

CHOICES = [Choice(f"filter {number}", number, f"{number} events") for number in range(20)]
SIZE = (40, 8)


@pytest.fixture(autouse=True, scope="module")
def utf8() -> None:
    urwid.set_encoding("utf-8")


def pressed(menu: Menu, keys: Iterable[str]) -> Menu:
    for key in keys:
        menu.keypress(SIZE, key)
    return menu


def screen(menu: Menu, size: tuple[int, int] = SIZE) -> list[str]:
    return [row.decode().rstrip() for row in menu.render(size).text]


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (["enter"], 0),
        (["j", "down", "enter"], 2),
        (["j", "j", "k", "up", "up", "enter"], 0),
        (["G", "k", "enter"], 18),
        (["end", "down", "enter"], 19),
        (["page down", "enter"], 7),
        ([" ", "b", "enter"], 0),
        (["G", "g", "enter"], 0),
        (["3"], 2),
        (["x", "0", "enter"], 0),
    ],
)
def test_choosing(keys: list[str], result: int) -> None:
    menu = pressed(Menu("filters", CHOICES), keys)
    assert menu.done
    assert menu.result == result


@pytest.mark.parametrize("key", ["esc", "q", "ctrl c", "ctrl g"])
def test_leaving(key: str) -> None:
    menu = pressed(Menu("filters", CHOICES), ["j"])
    assert not menu.done
    pressed(menu, [key])
    assert menu.done
    assert menu.result is None


def test_how_it_is_drawn() -> None:
    menu = Menu("some \x1b filters", [Choice("a", "a", "1 event"), Choice("日本 \u202e", "b", "20 events")])
    assert screen(menu) == [
        ">1  a            1 event",
        " 2  日本 \\u202e  20 events",
        *[""] * 5,
        "some \\x1b filters  (Enter: this one, q:"[:37] + "...",
    ]
    pressed(menu, ["j"])
    assert [row[0] for row in screen(menu)[:2]] == [" ", ">"]


def test_ascii() -> None:
    rows = screen(Menu("é", [Choice("日", 1, "…")], ascii=True))
    assert rows[0] == ">1  \\u65e5  \\u2026"
    assert rows[-1].startswith("\\xe9  (Enter")


def test_a_long_menu_is_scrolled() -> None:
    menu = pressed(Menu("filters", CHOICES), ["G"])
    assert [row[4:] for row in screen(menu)[:7]] == [f"filter {n}  {n} events" for n in range(13, 20)]
    pressed(menu, ["k"] * 8)
    assert screen(menu)[0].startswith(">   filter 11")
    menu.mouse("mouse press", 5, 3)
    assert screen(menu)[1].startswith(">   filter 12")
    menu.mouse("mouse press", 1, 7)  # the title
    assert not menu.done
    menu.mouse("mouse press", 1, 2)
    assert menu.result == 13


def test_a_long_label_is_shown_below() -> None:
    menu = Menu("filters", [Choice("short", 1), Choice("func == 'a' and " * 5, 2, "3 events")])
    assert not any(screen(menu)[2:7])
    rows = screen(pressed(menu, ["j"]))
    assert rows[1] == ">2  func == 'a' and func ==...  3 events"
    assert "".join(f"{row:40}" for row in rows[3:7]).split() == ("func == 'a' and " * 5).split()


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (5, 3), (300, 100)])
def test_any_size(size: tuple[int, int]) -> None:
    for menu in (
        pressed(Menu("日本", CHOICES), ["G"]),
        Menu("none", []),
        Menu("x", [Choice("日" * 500, 1, "日" * 500)]),
    ):
        canvas = menu.render(size)
        rows = list(canvas.content())
        assert len(rows) == size[1]
        assert all(sum(urwid.calc_width(part[2], 0, len(part[2])) for part in row) == size[0] for row in rows)
    pressed(menu := Menu("none", []), ["enter", "1", "j"])
    assert not menu.done
