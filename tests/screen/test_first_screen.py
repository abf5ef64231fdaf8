"""The first screen: an outline, the line on the recording, the hints, and no blank rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from math import inf
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.screen import live, outline
from pytracer.reader.screen.commands.table import COMMANDS
from pytracer.reader.screen.exceptions import Fates, Uncaught
from pytracer.reader.screen.hints import HINTS, Hints
from pytracer.reader.screen.layout import about_line, compose, status_line
from pytracer.reader.screen.outline import FirstPage
from pytracer.reader.screen.session import Session

from handmade import Handmade, event
from messages import trace_pb2
from reader import Reads
from sessions import Reader

PATIENT = """
import sys
from pytracer.__main__ import main
from pytracer.reader.screen import live, outline

outline._PATIENCE = 1e9
"""
LATE = """
def never(database, start, lines):
    while True:
        database.query("i", "SELECT count(*) FROM segment AS a, segment AS b, segment AS c")

live.first_page = never  # until the screen stops it
"""
END = "sys.exit(main())"
MAIN, STEP, LEAF = 1, 2, 3
ERROR = '[{"name": "exception", "value": "TypeError()", "type": "TypeError"}]'


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outline is the deepest that fits, however slow the machine is."""
    monkeypatch.setattr(outline, "_PATIENCE", inf)


def call(code: int, *inside: list[trace_pb2.Event]) -> list[trace_pb2.Event]:
    events = list(chain.from_iterable(inside))
    lasted = 1 + sum(each.time for each in events)
    return [event("call", code, time=1), *events, event("return", code, time=1, elapsed=lasted)]


def write(path: Path, steps: int, leaves: int, **run: object) -> Path:
    """main() makes `steps` calls, each of which makes `leaves`."""
    with Handmade(path) as made:
        number = made.run("shop.py --fast", **run)
        for code, name in ((MAIN, "main"), (STEP, "step"), (LEAF, "leaf")):
            made.code(number, code, name)
        step = call(STEP, *[call(LEAF)] * leaves)
        made.segment(number, call(MAIN, *[step] * steps))
    return path


@contextmanager
def opened(path: Path) -> Iterator[tuple[Database, live.Start]]:
    with closing(Database(str(path))) as database:
        yield database, live.opening(database, None, False, None)


def first_page(path: Path, lines: int) -> FirstPage:
    with opened(path) as (database, start):
        return live.first_page(database, start, lines)


@pytest.mark.parametrize(
    ("lines", "level", "shown"),
    [
        (100, None, 42),  # everything fits
        (30, 2, 26),
        (8, 1, 6),
        (5, 0, 1),  # six do not fit, and one line is enough for so small a screen
    ],
)
def test_it_is_the_deepest_level_that_fits(tmp_path: Path, lines: int, level: int | None, shown: int) -> None:
    page = first_page(write(tmp_path / "traces.sqlite", 4, 4), lines)
    assert page.view.folds.level == level
    assert len(page.view.folds.items(page.rows)) == shown
    assert page.ended


def test_an_outline_of_one_line_shows_the_first_of_the_next_level(tmp_path: Path) -> None:
    page = first_page(write(tmp_path / "traces.sqlite", 200, 1), 20)
    assert page.view.folds.level == 1
    assert not page.ended


def test_everything_is_shown_where_somebody_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRACE_VIEW", "all")
    assert first_page(write(tmp_path / "traces.sqlite", 200, 1), 20).view.folds.is_open


# ---- what is said ----


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({}, "shop.py --fast  status 0"),
        ({"exit_status": 3}, "shop.py --fast  status 3"),
        ({"exit_status": -9}, "shop.py --fast  killed by SIGKILL"),
        ({"finished": False}, "shop.py --fast  running"),
        ({"lost": 1204}, "shop.py --fast  status 0  1,204 events lost"),
    ],
)
def test_the_line_on_the_recording(tmp_path: Path, run: dict[str, object], said: str) -> None:
    with opened(write(tmp_path / "traces.sqlite", 1, 1, **run)) as (_, start):
        session = Session("traces.sqlite", start, ascii=False, plain=False)
        assert about_line(session).text == said
        raised = (1, 1, 1, 1, 1, b"", "raise", b"shop.net", b"", b"", 1, 0, None, ERROR, b"")
        session.fates = Fates((Uncaught(raised, raised),))
        assert "  TypeError in shop.net — E goes there" in about_line(session).text


def test_hints_go_when_their_keys_were_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(HINTS) <= {command.name for command in COMMANDS}
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    hints = Hints()
    assert hints.left == HINTS
    hints.used("fold")
    hints.used("quit")
    assert hints.left == Hints().left == {name: hint for name, hint in HINTS.items() if name != "fold"}
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    assert Hints().left == HINTS


def test_hints_take_no_room_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    with opened(write(tmp_path / "traces.sqlite", 1, 1)) as (_, start):
        session = Session("traces.sqlite", start, ascii=False, plain=False)
        for width, shown in ((120, list(HINTS.values())), (30, ["h: keys"]), (15, [])):
            session.fit(width, 24)
            line = status_line(session).text
            assert line.startswith("traces.sqlite")
            assert [hint for hint in HINTS.values() if hint in line] == shown
            assert not shown or (len(line) == width and line.endswith("h: keys"))


def test_no_row_is_blank_before_the_first_event(tmp_path: Path) -> None:
    """Further down the calls above the first line take the rows of lines that have gone, one by
    one."""
    with opened(write(tmp_path / "traces.sqlite", 40, 1)) as (database, start):
        session = Session("traces.sqlite", start, ascii=False, plain=False)
        session.fit(80, 24)
        page = live.first_page(database, start, 20)
        browser = session.browser
        browser.begin(page.rows, page.ended, start.view)
        for top in range(6):
            browser.top = browser.cursor = top
            _, spots = compose(session, 24)
            assert spots.index(top) == 2 + min(top, 3)
            assert spots[-1] == max(19, top + 16)


@pytest.mark.parametrize(("mine", "begins"), [(False, "<module>"), (True, "find_spec")])
def test_without_own_code_it_begins_at_the_main_module(tmp_path: Path, mine: bool, begins: str) -> None:
    """Not at the imports before it."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "find_spec", module="importlib", mine=mine)
        made.code(run, 2, "<module>", module="__main__")
        made.segment(run, call(1) + call(1) + call(2, call(1)))
    screen = Reader(path)
    assert screen.session.browser.current is not None
    assert screen.session.browser.current.row[8].decode() == begins


def test_it_begins_at_the_first_event(reads: Reads, journal: Path) -> None:
    """As it does if the page was there at once: with hints, and folded."""
    started = [sys.executable, "-P", "-c"]
    command = [*started, PATIENT + END, "read"]
    expected = reads(journal, columns=130, command=command, hints=True, PYTRACE_VIEW="").settled()
    assert "h: keys" in expected.status
    assert "+> " in expected.text
    assert expected.line(1).endswith("shop.py  status 0  ValueError in shop.packing — E goes there")
    command = [*started, PATIENT + LATE + END, "read"]
    late = reads(journal, columns=130, command=command, PYTRACE_VIEW="").settled()
    # the minimap is looked at more closely later, and hints are not for those who know the keys
    assert late.lines[1:-2] == expected.lines[1:-2]
