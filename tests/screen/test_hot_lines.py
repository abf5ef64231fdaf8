"""Lines in the hot list: their numbers, places and source, and where their keys lead."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from pytracer.reader.screen.effects import Action, Column, Entry, Listed, ShowList
from pytracer.reader.screen.listing import Listing

from handmade import EPOCH_NS, NS_PER_UNIT, Handmade, event
from lined import write_lines
from reader import Reads
from sessions import Reader

SOURCE = "".join(f"line_{number}()\n" for number in range(1, 30))


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    source = tmp_path / "app.py"
    source.write_text(SOURCE)
    os.utime(source, ns=(EPOCH_NS, EPOCH_NS))
    write_lines(tmp_path / "traces.sqlite", str(tmp_path), repeat=2)
    return tmp_path / "traces.sqlite"


@pytest.fixture(name="reader")
def reader_fixture(path: Path) -> Reader:
    reader = Reader(path)
    reader.session.fit(120, 40)
    return reader


def listed(reader: Reader, *keys: str) -> tuple[ShowList, Mapping[str, Action]]:
    """The list of functions, and which it becomes with keys."""
    (shown,) = reader.press("H")
    for key in keys:
        assert isinstance(shown, ShowList)
        (shown,) = reader.done(shown.actions[key].do(Entry(None, ())))
    assert isinstance(shown, ShowList)
    return shown, shown.actions


def entries(reader: Reader, *keys: str) -> dict[str, Entry]:
    """Lines by their places."""
    shown, _ = listed(reader, *keys)
    assert shown.title.startswith("lines")
    show = shown.columns[0].show
    assert show is not None
    return {show(entry.values[0]): entry for entry in shown.listed.question(reader.database)}


def test_lines_have_numbers_and_source(reader: Reader) -> None:
    found = entries(reader, "H", "M")
    assert {place: (entry.values[1], entry.note) for place, entry in found.items()} == {
        "app.py:2": (1, "line_2()"), "app.py:3": (1, "line_3()"),
        "app.py:11": (2, "line_11()"), "app.py:12": (2, "line_12()"), "app.py:13": (4, "line_13()"),
        "?:5": (1, ""), "?:6": (1, ""),
    }  # fmt: skip
    _, count, own, total, average = found["app.py:11"].values
    assert (count, own, total, average) == (2, 20 * NS_PER_UNIT, 20 * NS_PER_UNIT, 10 * NS_PER_UNIT)
    _, _, own, total, average = found["app.py:2"].values
    assert (own, total) == (30 * NS_PER_UNIT, (30 + 2 * 50) * NS_PER_UNIT)
    assert entries(reader, "H").keys() == found.keys() - {"?:5", "?:6"}  # own code alone


def test_h_goes_from_functions_to_lines_and_back(reader: Reader) -> None:
    assert listed(reader)[1]["H"].help == "lines"
    assert listed(reader, "H")[1]["H"].help == "functions"
    assert listed(reader, "H", "H")[0].title == listed(reader)[0].title
    assert listed(reader, "M", "H", "H")[0].title == "functions"


def test_a_recording_without_lines_offers_none(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "main")
        database.segment(run, [event("call", 1), event("return", 1, None)])
    assert "H" not in listed(Reader(path))[1]


def test_lines_are_those_of_the_filter(reader: Reader) -> None:
    reader.type("filter arg == 'total'")
    found = entries(reader, "H")
    assert {place: entry.values[1] for place, entry in found.items()} == {"app.py:12": 2}
    assert listed(reader, "H")[0].title == "lines (own code) of: arg == 'total'"


def test_enter_goes_to_one_run_after_the_other(reader: Reader) -> None:
    """From the first to the last one, then to the first again."""
    entry, (_, actions) = entries(reader, "H")["app.py:12"], listed(reader, "H")
    seen = []
    for _ in range(3):
        said = reader.done(actions["enter"].do(entry))
        item = reader.session.browser.current
        assert item is not None
        assert (item.row[6], item.row[10]) == ("line", 12)
        seen.append(reader.id)
        assert [getattr(each, "text", "") for each in said] == [
            "app.py:12: it ran 2 times: H, H and Enter go to the next"
        ]
    assert seen[0] < seen[1]
    assert seen[2] == seen[0]


def test_a_filter_for_the_runs_of_a_line(reader: Reader) -> None:
    entry, (_, actions) = entries(reader, "H")["app.py:13"], listed(reader, "H")
    reader.done(actions["&"].do(entry))
    rows = [item.row for item in reader.session.browser.items]
    assert {(row[6], row[10]) for row in rows} == {("line", 13)}
    assert len(rows) == 4  # of each call the line, and what it changed at last


def test_runs_that_have_been_removed(reader: Reader) -> None:
    _, actions = listed(reader, "H")
    (entry,) = (each for place, each in entries(reader, "H").items() if place == "app.py:2")
    gone = entry._replace(id=entry.id._replace(line=99))  # type: ignore[attr-defined]
    (said,) = reader.done(actions["enter"].do(gone))
    assert "have been removed meanwhile" in said.text  # type: ignore[union-attr]


# ---- the list ----


def listing(*, ascii: bool = False) -> Listing:
    columns = (
        Column("line", "f", lambda value: f"{value[0]}:{value[1]}", rises=True),
        Column("count", "c", str),
        Column("own", "o", "{}ns".format),
    )
    shown = Listing("title", columns, {}, Listed(1, lambda database: []), 2, ascii)
    shown.take([
        Entry(number, (("/a/long/way/to/app.py", number), number, 100 - number), f"source('{number} \x1b')")
        for number in (9, 10, 11)
    ])  # fmt: skip
    return shown


def drawn(list: Listing, width: int) -> list[str]:
    canvas = list.render((width, 8))
    return [row.decode().rstrip() for row in canvas.text]


def test_a_list_has_notes_where_there_is_room() -> None:
    assert drawn(listing(), 110)[1].endswith(r"app.py:9       9  91ns  ████████████████  source('9 \x1b')")
    assert drawn(listing(), 60)[1] == r"...g/way/to/app.py:9      9  91ns  source('9 \x1b')"
    assert drawn(listing(ascii=True), 35)[1] == "...ong/way/to/app.py:9      9  91ns"
    for width in (1, 5, 12, 20):
        drawn(listing(), width)


def test_places_are_in_the_order_of_their_lines() -> None:
    list = listing()
    for key, expected in (("f", ["9", "10", "11"]), ("f", ["11", "10", "9"]), ("c", ["11", "10", "9"])):
        list.keypress((60, 8), key)
        assert [line.split()[0].rpartition(":")[2] for line in drawn(list, 60)[1:4]] == expected


def test_a_search_finds_source() -> None:
    list = listing()
    for key in ("/", *r"source\('11", "enter"):
        list.keypress((60, 8), key)
    assert list.current is not None
    assert list.current.id == 11


# ---- in a terminal ----


@pytest.mark.parametrize(("rows", "columns"), [(10, 40), (24, 100), (100, 300)])
def test_lines_at_any_size(path: Path, reads: Reads, rows: int, columns: int) -> None:
    reader = reads(path, rows=rows, columns=columns)
    reader.press("H").settled()
    assert "H: lines" in reader.text
    reader.press("H").settled()
    assert "H: functions" in reader.text or columns < 50
    assert reader.line(0).split()[:4] == ["line", "count", "own", "total"]
    assert reader.line(1).startswith("app.py:13 ")
    assert ("line_13()" in reader.line(1)) == (columns >= 100)
    reader.press("down", "f", "c", "o", "t", "a", "right", "left", "G", "g", "/").type("13")
    reader.press("enter").settled()
    reader.press("enter").settled()
    assert ".. 13" in reader.current
    reader.press("h").settled()
    reader.press("q").quit()
