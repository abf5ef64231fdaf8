"""Commands of the reader without a terminal: what they change in the session, and the effects that
they give back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytracer.reader.screen.effects import (
    Ask,
    Choose,
    CommandError,
    Copy,
    Effect,
    InBackground,
    Open,
    Quit,
    Say,
    ShowPage,
)

from handmade import Handmade, event
from sessions import Reader

CALLS = 50


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.setenv("PYTRACE_VIEW", "all")
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, 1, "pay", ["amount", "user"])
        calls = [event("call", 1, n, "bob", time=2) for n in range(CALLS)]
        ends = [event("return", 1, n * 2, time=1, elapsed=1) for n in range(CALLS)]
        made.segment(run, [each for pair in zip(calls, ends, strict=True) for each in pair])
        opened = Reader(tmp_path / "traces.sqlite")
        yield opened
        opened.database.close()


def said(effects: list[Effect]) -> str:
    (effect,) = effects
    assert isinstance(effect, Say)
    return effect.text


def test_they_need_no_terminal() -> None:
    code = (
        "import sys, pytracer.reader.screen.session, pytracer.reader.screen.commands.table;"
        "print('urwid' in sys.modules, 'pytracer.reader.screen.app' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_moving(reader: Reader) -> None:
    first = reader.id
    assert reader.session.browser.cursor == 0, "it begins at the first event"
    assert reader.press("j", 3) == []
    assert reader.id == first + 3
    assert reader.press("G") == []
    assert reader.id == first + 2 * CALLS - 1
    assert reader.press("backspace") == []
    assert reader.id == first + 3
    assert reader.press("\\") == []
    assert said(reader.press("\\")) == "there is nothing to go forward to"


def test_jumping_and_marks(reader: Reader) -> None:
    first = reader.id
    assert said(reader.press("m", "a")) == "marked: 'a comes back here"
    assert reader.press("%") == []
    assert reader.id == first + 1
    assert said(reader.press("U")) == "this is the outermost call"
    assert reader.press("'", "a") == []
    assert reader.id == first
    with pytest.raises(CommandError, match="there is no mark b"):
        reader.press("'", "b")


def test_what_is_asked(reader: Reader) -> None:
    (ask,) = reader.press("/")
    assert isinstance(ask, Ask)
    assert ask.changed is not None
    (typed,) = reader.done(ask.changed("amount=7,"))
    assert isinstance(typed, InBackground)
    assert reader.done(typed.then(typed.question(reader.database))) == []
    _, *left = reader.done(ask.done("amount=9,"))
    assert left == []
    assert reader.session.search.text() == "/amount=9,"
    (choose,) = reader.press("a")
    assert isinstance(choose, Choose)
    assert [choice.label for choice in choose.choices] == ["amount = 9", "user = 'bob'"]
    at = reader.id
    assert reader.done(choose.chosen(choose.choices[1].value)) == []
    assert reader.id == at + 2


def test_filters_are_completed_and_corrected(reader: Reader) -> None:
    ask, names = reader.press("&")
    assert isinstance(ask, Ask)
    assert isinstance(names, InBackground)
    assert ask.complete is not None
    reader.done(names.then(names.question(reader.database)))
    assert "'pay'" in {candidate.text for candidate in ask.complete("func == ", 8).candidates}
    assert reader.done(ask.done("value == 98")) == []
    assert len(reader.session.browser.items) == 1
    (choose,) = reader.type("filter func == 'pya'")
    assert isinstance(choose, Choose)
    assert "no event meets the filter" in choose.title


def test_what_is_left_for_the_app(reader: Reader, tmp_path: Path) -> None:
    (quit,) = reader.press("q")
    assert isinstance(quit, Quit)
    (page,) = reader.press("h")
    assert isinstance(page, ShowPage)
    assert any("to that mark" in line.text for line in page.lines)
    (copy,) = reader.type("copy line.txt")
    assert isinstance(copy, Copy)
    assert copy.file == "line.txt"
    assert "pay(amount=0" in copy.text
    (open,) = reader.type(f"e {reader.session.path}")
    assert isinstance(open, Open)
    assert open.path == reader.session.path
    with pytest.raises(CommandError, match="did you mean quit"):
        reader.type("quid")


def test_switches(reader: Reader) -> None:
    assert said(reader.press("-", "N")) == "numbers: on"
    assert reader.session.display.ids
    assert said(reader.type("minimap")) == "minimap: off"
    assert reader.session.parts.minimap_rows == 0


def test_two_recordings(reader: Reader) -> None:
    with pytest.raises(CommandError, match="no other recording"):
        reader.type("diff")
    with Handmade(Path(reader.session.path)) as made:
        run = made.run()
        made.code(run, 1, "pay", ["amount", "user"])
        made.segment(run, [event("call", 1, 0, "eve", time=2), event("return", 1, 0, time=1, elapsed=1)])
    newest = Reader(Path(reader.session.path))
    (page,) = newest.type("diff 1")
    assert isinstance(page, ShowPage)
    assert page.title == "what differs between recordings 1 and 2"
    assert any(line.text.split() == ["user:", "'bob'", "user:", "'eve'"] for line in page.lines)
    (again,) = newest.type("diff")
    assert isinstance(again, ShowPage)
    assert again.lines == page.lines
    for wrong in ("diff 2", "diff x"):
        with pytest.raises(CommandError, match="there are also: 1"):
            newest.type(wrong)
    newest.database.close()
