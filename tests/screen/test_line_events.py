"""Lines and variables on the screen."""

import os
from pathlib import Path

import pytest
from pytracer.reader.screen.detail import detail, detail_lines
from pytracer.reader.screen.effects import Ask, Execute
from pytracer.reader.screen.layout import compose
from pytracer.reader.screen.lines import DisplayOptions, Liner

from handmade import EPOCH_NS
from lined import write_lines
from sessions import Reader

LINES = [
    "-> app.main()",
    ".. 2",
    "  -> app.pay(user='bob')",
    "  .. 11",
    "  .. 12: total=3, items=['tea']",
    "  .. 13: user=<deleted>",
    r"""  .. 13: x\x1b[31m"\u202e\='a\nb', variable 100=None""",
    "  <- pay: 3",
    ".. 3: order=Order(total=3), paid=3",
    "<- main: None",
    "-> ?.?()",
    ".. 5: variable 1=1",
    ".. 6: variable 1=2",
]


@pytest.fixture(name="reader")
def reader_fixture(tmp_path: Path) -> Reader:
    source = tmp_path / "app.py"
    source.write_text("".join(f"# line {number}\n" for number in range(1, 30)))
    os.utime(source, ns=(EPOCH_NS, EPOCH_NS))
    write_lines(tmp_path / "traces.sqlite", str(tmp_path))
    reader = Reader(tmp_path / "traces.sqlite")
    reader.session.fit(120, 40)
    return reader


def lines(reader: Reader) -> list[str]:
    line = Liner(DisplayOptions(time="off", duration=False), (), ())
    return [line(item).text for item in reader.session.browser.items]


def at(reader: Reader, line: str) -> Reader:
    reader.session.browser.cursor = lines(reader).index(line)
    return reader


def all_shown(reader: Reader) -> Reader:
    """Own code and others, nothing folded."""
    while len(lines(reader)) != len(LINES):
        reader.press("M")
    return reader


def test_each_event_is_a_line(reader: Reader) -> None:
    assert lines(all_shown(reader)) == LINES
    drawn, _ = compose(reader.session, 40)
    text = [row.decode().rstrip() for row in drawn.texts]
    assert any(row.endswith("  .. 12: total=3, items=['tea']") for row in text)
    assert not any("\x1b[31m" in row for row in text)


def test_a_folded_call_hides_its_lines(reader: Reader) -> None:
    at(all_shown(reader), LINES[2]).type("level 2")
    folded = [LINES[0], LINES[1], "  +> app.pay(user='bob') = 3", *LINES[8:]]
    assert lines(reader) == folded
    at(reader, folded[2]).press("enter")
    assert lines(reader) == LINES
    at(reader, LINES[2]).press("enter")
    assert lines(reader) == folded
    reader.type("level 1")
    assert lines(reader) == ["+> app.main() = None", "+> ?.?() (running)"]
    reader.type("level 9")
    assert lines(reader) == LINES


def test_ways(reader: Reader) -> None:
    """From a line to its function, and to the next event of the function."""
    at(all_shown(reader), LINES[4])
    item = reader.session.browser.current
    assert item is not None
    from pytracer.reader.query import EVERY
    from pytracer.reader.screen import navigation

    call = navigation.caller(reader.database, item.row)
    assert call is not None
    assert (call[6], call[8]) == ("call", b"pay")
    following = navigation.next_of_function(reader.database, EVERY, call, backwards=False)
    assert following is not None
    assert (following[6], following[10]) == ("line", 11)
    assert navigation.last_callee(reader.database, item.row) is None


def test_the_pane(reader: Reader) -> None:
    at(all_shown(reader), LINES[4])
    item = reader.session.browser.current
    assert item is not None
    shown = [line.text for line in detail_lines(detail(reader.database, item), 100, DisplayOptions())]
    assert shown[:6] == [
        "line 12 of app.pay",
        "  total  int   3",
        "  items  list  ['tea']",
        "arguments",
        "  user  str  'bob'",
        "source  app.py:12",
    ]
    assert "  > 12  # line 12" in shown
    at(reader, LINES[6])
    item = reader.session.browser.current
    assert item is not None
    shown = [line.text for line in detail_lines(detail(reader.database, item), 100, DisplayOptions())]
    assert r"""  x\x1b[31m"\u202e\  str       'a\nb'""" in shown


def test_the_editor_opens_at_the_line(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor = tmp_path / "vi"
    editor.write_text("#!/bin/sh\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    monkeypatch.delenv("EDITOR", raising=False)
    at(all_shown(reader), LINES[4])
    (effect,) = reader.press("v")
    assert isinstance(effect, Execute)
    assert "+12" in effect.command


def test_a_search_finds_variables(reader: Reader) -> None:
    all_shown(reader)
    for pattern, line in ((r"total=3, it", LINES[4]), (r"12: tot", LINES[4]), (r"<deleted>", LINES[5])):
        reader.session.browser.cursor = 0
        (ask,) = reader.press("/")
        assert isinstance(ask, Ask)
        reader.done(ask.done(pattern))
        item = reader.session.browser.current
        assert item is not None
        assert lines(reader)[reader.session.browser.cursor] == line, pattern


def test_many_lines_are_folded_away(tmp_path: Path) -> None:
    """An outline of a recording with many lines reads few events."""
    write_lines(tmp_path / "traces.sqlite", repeat=700)
    reader = Reader(tmp_path / "traces.sqlite")
    reader.session.fit(120, 20)
    reader.type("level 1")
    assert lines(reader)[0] == "+> app.main() = None"
    reader.type("level 2")
    assert lines(reader)[2:4] == ["  +> app.pay(user='bob') = 3"] * 2
