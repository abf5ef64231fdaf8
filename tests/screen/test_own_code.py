"""Own code first: what is shown of it, stretches of library code as lines, `M`, and where keys lead
whose destination is in a library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from math import inf
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import as_it_is
from pytracer.reader.rows import EVENT
from pytracer.reader.screen import live, outline
from pytracer.reader.screen.commands.table import BY_KEY, run_typed
from pytracer.reader.screen.effects import Action, CommandError, Entry, Listed, Result, RunTask, Say, ShowList
from pytracer.reader.screen.layout import status_line
from pytracer.reader.screen.lines import DisplayOptions, Liner
from pytracer.reader.screen.session import Session
from pytracer.reader.stretches import Stretch, read

from handmade import Handmade, event, printed, value
from messages import trace_pb2
from sessions import completed, done

MAIN, OWN, CALLBACK, LIBRARY, INNER, MODULE, FIND = range(1, 8)
Events = list[trace_pb2.Event]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outline is the deepest that fits, however slow the machine is."""
    monkeypatch.setattr(outline, "_PATIENCE", inf)


def call(code: int, *inside: Events) -> Events:
    events = [each for part in inside for each in part]
    lasted = 10 + sum(each.time for each in events)
    return [event("call", code, time=10), *events, event("return", code, time=10, elapsed=lasted)]


def raising() -> Events:
    error = value(ValueError("bad"))
    return [
        event("call", LIBRARY, time=10),
        event("raise", LIBRARY, error, time=10),
        event("exception", LIBRARY, error, time=10, elapsed=20),
    ]


@pytest.fixture(name="path", scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """main imports, calls own code that calls a library twice, and a library that calls back."""
    path = tmp_path_factory.mktemp("own") / "traces.sqlite"
    names = ("main", "own", "callback", "library", "inner", "<module>", "Finder.find_spec")
    with Handmade(path) as made:
        run = made.run()
        for number, name in enumerate(names, 1):
            mine = number <= CALLBACK
            made.code(run, number, name, module="app" if mine else "lib", mine=mine)
        made.segment(
            run,
            call(
                MAIN,
                [*call(FIND), *call(MODULE, call(MODULE))],
                call(OWN, [*call(LIBRARY, call(INNER)), *call(LIBRARY)]),
                call(LIBRARY, call(CALLBACK)),
                raising(),
            ),
        )
    return path


class Screen:
    """A session whose tasks are done at once, with lines that have neither time nor duration."""

    def __init__(self, database: Database, rows: int = 40) -> None:
        self.database = database
        start = live.opening(database, None, False, None)
        self.session = Session("traces.sqlite", start, ascii=False, plain=False)
        self.session.fit(120, rows)
        self.line = Liner(DisplayOptions(time="off", duration=False), (), start.runs)
        self.said: list[str] = []
        self.do(RunTask(self.session.begin()))

    def do(self, result: Result) -> None:
        self.said += [effect.text for effect in done(self.database, result) if isinstance(effect, Say)]
        completed(self.database, self.session)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.said.clear()
            self.do(BY_KEY[key].do(self.session, None))  # type: ignore[arg-type]

    @property
    def lines(self) -> list[str]:
        return [self.line(item).text for item in self.session.browser.items]

    @property
    def current(self) -> str:
        assert self.session.browser.current
        return self.line(self.session.browser.current).text.strip()

    def at(self, line: str) -> Screen:
        """With the cursor on the first such line."""
        browser = self.session.browser
        browser.cursor = next(i for i, text in enumerate(self.lines) if text.strip() == line)
        browser.clamp()
        assert self.current == line
        return self


@pytest.fixture
def screen(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    with closing(Database(str(path))) as database:
        yield Screen(database)


MINE = """\
-> app.main()
  ⋯ imports 2 modules, 240ns
  -> app.own()
    ⋯ 2 library calls, 6 events, 240ns
  <- own
  ⋯ 1 library call, 1 event, 40ns
  -> app.callback()
  <- callback
  ⋯ 1 library call, 4 events, 160ns
<- main"""
NEAR_OWN = """\
  -> app.own()
    -> lib.library()
      ⋯ 1 library call, 2 events, 80ns
    <- library
    -> lib.library()
    <- library
  <- own"""


def test_own_code_is_shown_first(screen: Screen) -> None:
    assert "\n".join(screen.lines) == MINE
    assert "mine (M: all)" in status_line(screen.session).text


def test_m_goes_round(screen: Screen) -> None:
    screen.at("-> app.own()").press("M")
    assert screen.current == "-> app.own()"
    assert NEAR_OWN in "\n".join(screen.lines)
    screen.press("M")
    assert screen.current == "-> app.own()"
    assert "⋯" not in "".join(screen.lines)
    assert len(screen.lines) == 23
    screen.at("-> lib.inner()").press("M")
    assert screen.current == "⋯ 2 library calls, 6 events, 240ns"
    assert "\n".join(screen.lines) == MINE


def test_a_stretch_is_opened_and_closed(screen: Screen) -> None:
    screen.at("⋯ 2 library calls, 6 events, 240ns").press("enter")
    opened = "    -> lib.library()\n      -> lib.inner()\n      <- inner\n    <- library\n"
    assert opened in "\n".join(screen.lines)
    assert screen.current == "-> lib.library()"
    assert sum("library calls" in line for line in screen.lines) == 0
    screen.at("-> lib.inner()").press("enter")  # calls in it are folded as anywhere
    assert screen.current == "+> lib.inner()"
    screen.press("U")
    assert screen.current == "-> lib.library()"
    screen.press("enter")
    assert "\n".join(screen.lines) == MINE


def test_an_outline_has_levels_of_own_code(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    with closing(Database(str(path))) as database:
        screen = Screen(database, 14)
        assert screen.session.browser.view.folds.level == 1
        assert "  +> app.own()" in screen.lines
        assert "  ⋯ imports 2 modules, 240ns" in screen.lines
        screen.at("+> app.own()").press("enter")
        assert "    ⋯ 2 library calls, 6 events, 240ns" in screen.lines
        screen.at("-> app.own()").press("enter", "M")  # near code has levels of its own
        assert screen.current.endswith("> app.own()")


def test_m_keeps_what_is_opened_and_the_place(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    with closing(Database(str(path))) as database:
        screen = Screen(database, 14)
        screen.at("+> app.own()").press("enter")
        screen.at("⋯ 2 library calls, 6 events, 240ns").press("M")
        assert screen.session.browser.view.folds.level is not None
        assert screen.current == "+> lib.library()"
        assert "  -> app.own()" in screen.lines
        screen.press("enter")
        screen.at("⋯ 1 library call, 2 events, 80ns").press("M")
        assert screen.session.browser.view.folds.level is not None
        assert screen.current == "+> lib.inner()"
        screen.press("M")
        assert screen.current == "⋯ 2 library calls, 6 events, 240ns"
        assert "  -> app.own()" in screen.lines
        screen.at("-> app.own()").press("enter", "M")  # what has been closed stays so
        assert screen.current == "+> app.own()"


def test_where_keys_lead(screen: Screen) -> None:
    screen.at("-> app.own()").press("D")
    assert screen.current == "⋯ 2 library calls, 6 events, 240ns"
    screen.press("U")
    assert screen.current == "-> app.own()"
    screen.at("-> app.callback()").press("U")
    assert screen.current == "-> app.main()"  # not the library in between
    screen.press("x")
    assert screen.said[-1].endswith("; there is one in library code: M shows all")
    screen.do(run_typed(screen.session, "filter func == 'library' or func == 'own'"))
    assert [line.strip() for line in screen.lines] == ["-> app.own()", "<- own"]


def test_a_search_says_where_else_there_is_a_hit(screen: Screen) -> None:
    elsewhere = " in your own code; there is a hit in library code: M shows all"
    for typed, said in (("inner", elsewhere), ("nowhere", "")):
        (ask,) = [BY_KEY["/"].do(screen.session, None)]  # type: ignore[arg-type]
        screen.said.clear()
        screen.do(ask.done(typed))  # type: ignore[union-attr]
        assert screen.said == [f"not found: {typed}{said}"]


def test_nothing_is_known_of_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, LIBRARY, "library")
        made.segment(run, call(LIBRARY))
    with closing(Database(str(tmp_path / "traces.sqlite"))) as database:
        screen = Screen(database)
        assert len(screen.lines) == 2
        with pytest.raises(CommandError, match="nothing of your own code"):
            screen.press("M")


def test_print(path: Path) -> None:
    lines = printed(path, "--mine").stdout.splitlines()
    assert [line.partition("MainThread  ")[2].partition("  160ns")[0] for line in lines][:6] == [
        "-> app.main()",
        "  ⋯ imports 2 modules, 240ns",
        "  -> app.own()",
        "    ⋯ 2 library calls, 6 events, 240ns",
        "  <- own  280ns",
        "  ⋯ 1 library call, 1 event, 40ns",
    ]
    assert printed(path, "--mine", "--format", "json").stdout.count("\n") == 6


def test_a_stretch_whose_first_events_have_been_removed(tmp_path: Path) -> None:
    """While the program runs, the oldest segments go."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main", mine=True)
        made.code(run, 2, "library", mine=False)
        made.segment(run, [event("call", 1, time=1), *call(2)])
        made.segment(run, [*call(2), event("return", 1, time=1)], sequence=1, start=100, base_depth=1)
    with closing(Database(str(path))) as database:
        shown = "(shown own)"
        sql = f"SELECT {EVENT} FROM event WHERE event MATCH ? ORDER BY time, id"
        _, first, following = database.page(sql, (shown,), as_it_is, 3, 1.0).made
        found = read(database, [(first, following)], shown)[first[0]]
        assert found == Stretch(following[0] - 1, 4, following[2] - first[2], 2)
        with Handmade(path) as made:
            made("DELETE FROM segment WHERE sequence = 0")
        assert read(database, [(first, following)], shown)[first[0]] == found._replace(
            events=None, calls=None
        )


def test_a_stretch_at_the_end_of_a_thread_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main", mine=True)
        made.code(run, 2, "library", mine=False)
        made.segment(run, [*call(1), *call(2)])
        made.segment(run, call(2), sequence=1, start=100)
    with closing(Database(str(path))) as database:
        shown = "(shown own)"
        sql = f"SELECT {EVENT} FROM event WHERE event MATCH ? ORDER BY time, id"
        first = database.page(sql, (shown,), as_it_is, 3, 1.0).made[2]
        ((took,),) = database.query("i", "SELECT max(time) - ? FROM event", (first[2],))
        assert read(database, [(first, None)], shown)[first[0]] == Stretch(None, 4, took)


def test_keys_that_can_do_nothing_say_so(screen: Screen) -> None:
    screen.session.fit(120, 5)
    for key in ("tab", "}"):
        screen.press(key)
        assert screen.said == ["this screen has too few lines for the pane"]
    screen.press("tab")
    assert not screen.said


def hot(screen: Screen, *keys: str) -> tuple[Listed, Mapping[str, Action]]:
    """The hot list, and which it becomes with keys."""
    (shown,) = done(screen.database, BY_KEY["H"].do(screen.session, None))  # type: ignore[arg-type]
    for key in keys:
        assert isinstance(shown, ShowList)
        (shown,) = done(screen.database, shown.actions[key].do(Entry("", ())))
    assert isinstance(shown, ShowList)
    return shown.listed, shown.actions


def test_a_librarys_function_of_the_hot_list_is_gone_to(screen: Screen) -> None:
    """Its stretch is opened."""
    listed, actions = hot(screen, "M")
    (inner,) = (each for each in listed.question(screen.database) if each.id.name == "lib.inner")
    screen.do(actions["enter"].do(inner))
    assert screen.current == "-> lib.inner()"
    assert screen.said[-1].startswith("1 of 1 slow calls: lib.inner took ")
    assert sum("library calls" in line for line in screen.lines) == 0


def test_a_long_name_leaves_room_for_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRACE_HISTORY", "off")
    with Handmade(tmp_path / "traces.sqlite") as made:
        run = made.run()
        made.code(run, LIBRARY, "long" * 1000)
        made.segment(run, call(LIBRARY))
    with closing(Database(str(tmp_path / "traces.sqlite"))) as database:
        screen = Screen(database)
        listed, actions = hot(screen, "M")
        assert listed.question(database) == []
        assert listed.nothing == "nothing of your own code is known: M shows all functions"
        listed, actions = hot(screen)
        (entry,) = listed.question(database)
        screen.do(actions["enter"].do(entry))
        assert screen.said[-1].startswith("1 of 1 slow calls: app.longlong")
        assert screen.said[-1].endswith("... took 40ns")
        assert len(screen.said[-1]) < 120
