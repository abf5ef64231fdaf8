"""Each key of the tables of commands, in a terminal: where it leads is worked out from the plain
events.

A command without a test here fails, as does a key that does nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from pyte.screens import Char
from pytracer.reader.screen.commands import table
from pytracer.reader.screen.commands.command import Command, LetterCommand

from reader import Reader
from recording import Event, read

Test = Callable[["Window", str], None]
TESTS: dict[str, Test] = {}


def about(*commands: str) -> Callable[[Test], Test]:
    """Marks the test of some commands, which is called with each of their keys."""

    def mark(test: Test) -> Test:
        TESTS.update(dict.fromkeys(commands, test))
        return test

    return mark


class Window(Reader):
    """A reader that shows the ids of events, and the events as they are expected."""

    events: list[Event]

    def start(self, events: list[Event]) -> Window:
        self.events = events
        self._places = {event.id: index for index, event in enumerate(events)}
        self.shows("main").press("-", "N").settled()
        assert self.id == events[0].id
        return self

    def go(self, index: int) -> Window:
        self.type(str(index + 1)).press("g").settled()
        assert self.index == index
        return self

    @property
    def index(self) -> int:
        """Which event is under the cursor."""
        return self._places[self.id]

    @property
    def top(self) -> int:
        """Which event the screen begins with."""
        return self._places[self.ids[0]]

    def find(self, condition: Callable[[Event], object], start: int = -1, backwards: bool = False) -> int:
        """The next event behind one that meets a condition."""
        order = range(start - 1, -1, -1) if backwards else range(start + 1, len(self.events))
        return next(index for index in order if condition(self.events[index]))

    def leads(self, key: str, start: int, end: int, count: str = "") -> None:
        self.go(start).type(count).press(key).settled()
        assert self.index == end, self.text


@pytest.fixture(scope="module")
def events(journal: Path) -> list[Event]:
    return [Event(**row) for row in read(journal)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def windows() -> Iterator[list[Window]]:
    """The reader of the last test, if it may be used on."""
    windows: list[Window] = []
    yield windows
    for window in windows:
        window.close()


ALTERING = {"Filtering and folding", "Looking closer", "Everything else", "Searching"}


@pytest.mark.parametrize(
    ("command", "key"),
    [
        pytest.param(command, key, id=f"{command.name} {key}")
        for command in table.COMMANDS
        for key in command.keys
    ],
)
def test_key(
    command: Command | LetterCommand,
    key: str,
    journal: Path,
    events: list[Event],
    place: Path,
    windows: list[Window],
) -> None:
    window = windows.pop() if windows else None
    if window is None:
        window = Window([journal], place, rows=30, columns=150, EDITOR="no-such").start(events)
    try:
        TESTS[command.name](window, key)
        assert not window.emulator.strange
    except BaseException:
        window.close()
        raise
    altered = any(command in group for title, group in table.GROUPS if title in ALTERING)
    if altered or window.process.poll() is not None:
        window.close()
    else:
        windows.append(window)


# ---- moving ----


@about("forward-line")
def forward_line(window: Window, key: str) -> None:
    window.go(40)
    top = window.top
    window.press(key).settled()
    assert (window.index, window.top) == (41, top + 1)
    window.leads(key, 40, 57, count="17")


@about("backward-line")
def backward_line(window: Window, key: str) -> None:
    window.leads(key, 40, 39)
    window.leads(key, 40, 23, count="17")
    window.leads(key, 0, 0)


@about("forward-window")
def forward_window(window: Window, key: str) -> None:
    window.go(40)
    last = window.ids[-1]
    window.press(key).settled()
    assert window.ids[0] == window.events[window.top].id
    assert window.events[window.top - 1].id == last
    window.leads(key, 40, 45, count="5")


@about("backward-window")
def backward_window(window: Window, key: str) -> None:
    window.go(200)
    first = window.top
    window.press(key).settled()
    assert window.top + len(window.ids) == first
    window.leads(key, 200, 195, count="5")


@about("forward-half")
def forward_half(window: Window, key: str) -> None:
    window.leads(key, 40, 47, count="7")
    window.leads(key, 40, 47)  # the number holds


@about("backward-half")
def backward_half(window: Window, key: str) -> None:
    window.leads(key, 40, 33, count="7")
    window.leads(key, 40, 33)


@about("first")
def first(window: Window, key: str) -> None:
    window.leads(key, 300, 0)
    window.leads(key, 300, 6, count="7")


@about("last")
def last(window: Window, key: str) -> None:
    window.leads(key, 300, len(window.events) - 1)
    window.leads(key, 300, 6, count="7")


@about("percent")
def percent(window: Window, key: str) -> None:
    for share in (25, 50, 75):
        window.go(0).type(str(share)).press(key).settled()
        assert abs(window.index - len(window.events) * share / 100) < len(window.events) * 0.15
    window.leads(key, 300, len(window.events) - 1, count="100")
    window.leads(key, 300, 0, count="0")


@about("time")
def time(window: Window, key: str) -> None:
    wanted = window.events[300].time
    moment = datetime.fromtimestamp(wanted // 10**9, UTC)
    window.go(0).press(key).type(f"{moment:%H:%M:%S}.{wanted % 10**9:09}").press("enter").settled()
    assert window.index == 300
    window.press(key).type("noon").press("enter").settled()
    assert window.index == 300
    assert window.message.startswith("a time is")


@about("cursor-down")
def cursor_down(window: Window, key: str) -> None:
    window.go(40)
    top = window.top
    window.press(key, key).settled()
    assert (window.index, window.top) == (42, top)


@about("cursor-up")
def cursor_up(window: Window, key: str) -> None:
    window.go(40).press("J", "J", key).settled()
    assert window.index == 41


@about("right", "left")
def sideways(window: Window, key: str) -> None:
    window.go(1)
    whole = window.current
    columns, text = whole[: whole.index("  ->")], whole[whole.index("  ->") :]
    window.type("20").press("right").settled()
    assert window.current == columns + text[20:]
    window.type("5").press("right").type("5").press("left").settled()
    assert window.current == columns + text[20:]
    window.type("20").press("left").settled()
    assert window.current == whole
    window.press(key).settled()
    assert (window.current == whole) == (key in ("left", "meta ("))
    window.press("left").settled()
    assert window.current == whole


# ---- jumping ----


def same_thread(window: Window, index: int) -> Callable[[Event], bool]:
    return lambda event: event.tid == window.events[index].tid


def call_of(window: Window, number: int, func: str = "Shop.order") -> int:
    """The call for an order."""
    at = window.find(lambda event: event.kind == "call" and event.values.get("number") == str(number))
    if func == "Shop.order":
        return at
    return window.find(lambda event: event.kind == "call" and event.func == func, at)


@about("partner")
def partner(window: Window, key: str) -> None:
    for number in (3, 60, 24):
        call = call_of(window, number, "pay")
        end = window.find(lambda event: event.func == "pay" and event.kind in ("return", "exception"), call)
        window.leads(key, call, end)
        window.press(key).settled()
        assert window.index == call
    window.leads(key, 0, window.find(lambda event: event.func == "main" and event.kind == "return"))
    half = window.go(0).type("50").press(key).settled()
    assert half.text == window.go(0).type("50").press("p").settled().text


@about("caller")
def caller(window: Window, key: str) -> None:
    order = call_of(window, 70)
    window.leads(key, order + 1, order)
    window.leads(key, order, 0)
    window.leads(key, 0, 0)
    window.leads(key, order + 1, 0, count="2")


@about("first-callee")
def first_callee(window: Window, key: str) -> None:
    order = call_of(window, 70)
    window.leads(key, order, call_of(window, 70, "check"))
    window.leads(key, 0, 1)


@about("last-callee")
def last_callee(window: Window, key: str) -> None:
    window.leads(key, call_of(window, 70), call_of(window, 70, "pay"))
    window.leads(key, 0, call_of(window, 119))


@about("next-sibling")
def next_sibling(window: Window, key: str) -> None:
    window.leads(key, call_of(window, 70), call_of(window, 71))
    window.leads(key, call_of(window, 119), call_of(window, 119))
    window.leads(key, call_of(window, 70, "check"), call_of(window, 70, "pay"))


@about("previous-sibling")
def previous_sibling(window: Window, key: str) -> None:
    window.leads(key, call_of(window, 70), call_of(window, 69))
    window.leads(key, call_of(window, 0), call_of(window, 0))


def both_ways(window: Window, key: str, backwards: bool, start: int, like: Callable[[Event], object]) -> None:
    window.leads(key, start, window.find(like, start, backwards))
    window.press(key).settled()
    assert window.index == window.find(like, window.find(like, start, backwards), backwards)


@about("next-function", "previous-function")
def function(window: Window, key: str) -> None:
    for start in (call_of(window, 70), call_of(window, 70, "pay")):
        func = window.events[start].func
        both_ways(window, key, key == "C", start, lambda event, func=func: event.func == func)


@about("next-thread", "previous-thread")
def thread(window: Window, key: str) -> None:
    start = window.find(lambda event: event.thread == "packer", 100)
    both_ways(window, key, key == "T", start, same_thread(window, start))


@about("next-value", "previous-value")
def value(window: Window, key: str) -> None:
    start = call_of(window, 70, "check")
    user = window.events[start].values["user"]
    window.leads(key, start, window.find(lambda event: event.values.get("user") == user, start, key == "A"))
    start = call_of(window, 70)  # which has two: one is chosen
    window.go(start).press(key).shows("number = 70", f"user = {user}")
    window.press("down", "enter").settled()
    found = window.find(lambda event: event.values.get("user") == user, start, key == "A")
    assert window.index == found


@about("object")
def object_or_value(window: Window, key: str) -> None:
    # test_objects.py has objects
    window.go(call_of(window, 70, "check")).press(key).settled()
    assert "no call that this function made has returned user = " in window.message
    window.go(call_of(window, 70)).press(key).shows("number = 70", "user = ")
    window.press("q").settled()
    assert window.index == call_of(window, 70)


@about("next-exception", "previous-exception")
def exception(window: Window, key: str) -> None:
    """Each exception is one stop: where it starts."""
    starts = [
        index for index, event in enumerate(window.events) if event.kind == "raise" and event.func == "pay"
    ]
    middle = starts[1] + 20
    window.leads(key, middle, starts[2] if key == "x" else starts[1])
    window.press(key).settled()
    assert window.index == (starts[3] if key == "x" else starts[0])


@about("uncaught")
def uncaught(window: Window, key: str) -> None:
    """Where the exception began that ended the packer, with its values in the pane."""
    torn = window.find(lambda event: event.func == "work" and event.kind == "raise")
    window.go(300).press(key).shows("exception", "ValueError('torn')").settled()
    assert window.index == torn
    window.press(key).settled()
    assert "no earlier exception" in window.message
    window.press("backspace", "tab").settled()
    assert window.index == 300


@about("raised", "caught")
def along(window: Window, key: str) -> None:
    raised = window.find(lambda event: event.func == "pay" and event.kind == "raise")
    left = window.find(lambda event: event.func == "pay" and event.kind == "exception", raised)
    caught = window.find(lambda event: event.func == "Shop.order" and event.kind == "raise", left)
    end = raised if key == "(" else caught
    for start in (call_of(window, 24, "pay"), raised, left, caught):
        window.leads(key, start, end)
    window.go(0).press(key).settled()
    assert "no exception" in window.message


@about("next-slow", "previous-slow")
def slow(window: Window, key: str) -> None:
    middle = call_of(window, 70)
    window.go(middle).type("9").press(key).settled()
    found = window.find(lambda event: (event.duration or 0) >= 9_000_000, middle, key == "L")
    assert window.index == found
    window.say("slow")
    assert "worst" in window.message
    window.go(middle).press("l").settled()
    first = window.index
    assert "1 of" in window.message, window.message
    assert "times the usual" in window.message
    window.press("l").settled()
    assert window.index != first
    window.press("L").settled()
    assert window.index == first


@about("hot")
def hot_list(window: Window, key: str) -> None:
    window.go(40).press(key).settled()
    functions = {event.func for event in window.events if event.kind == "call"}
    assert all(any(func in line for line in window.lines) for func in functions)
    window.press("c").settled()
    counts = [int(line.split()[1].replace(",", "")) for line in window.lines[1 : len(functions)]]
    assert counts == sorted(counts, reverse=True)
    window.press("/").type("pay").press("enter", "enter").settled()
    slowest = max(
        (event for event in window.events if event.func == "pay" and event.duration is not None),
        key=lambda event: event.duration or 0,
    )
    assert window.events[window.index].func == "pay"
    assert window.events[window.index].time + (slowest.duration or 0) == slowest.time
    window.press(key).settled()
    window.press("&").settled()
    assert {window._places[id] for id in window.ids} <= {
        place for place, event in enumerate(window.events) if event.func == "pay"
    }
    window.press("&").press("ctrl a", "ctrl k", "enter").settled()


@about("lanes")
def lanes(window: Window, key: str) -> None:
    """The call that the cursor is in is drawn, and Enter goes there."""
    order = call_of(window, 70)
    window.go(order + 1).press(key).settled()
    assert any("Shop.order" in line for line in window.lines), window.text
    assert "main" in window.line(1)
    window.press("up", "enter").settled()
    assert window.events[window.index].func in ("main", "Shop.order")
    window.press(key).settled()
    window.press("q").settled()
    assert window.ids


@about("next-loss", "previous-loss")
def loss(window: Window, key: str) -> None:
    middle = call_of(window, 50)
    window.leads(key, middle, window.find(lambda event: event.kind == "lost", middle, key == "I"))
    assert "1,204 events lost" in window.current
    before = window.index
    window.press(key).settled()
    assert window.index == before


@about("back")
def back(window: Window, key: str) -> None:
    start = call_of(window, 70)
    window.leads("U", start, 0)
    window.press(key).settled()
    assert window.index == start


@about("forward")
def forward(window: Window, key: str) -> None:
    window.leads("U", call_of(window, 70), 0)
    window.press("backspace", key).settled()
    assert window.index == 0


@about("mark", "to-mark")
def mark(window: Window, key: str) -> None:
    window.go(33).press("m", "a").go(300).press("m", "Z").go(7)
    window.press("'", "a").settled()
    assert window.index == 33
    window.press("'", "Z").settled()
    assert window.index == 300
    window.press("'", "'").settled()
    assert window.index == 33
    window.press("'", "^").settled()
    assert window.index == 0
    window.press("'", "$").settled()
    assert window.index == len(window.events) - 1
    window.go(5).press("'", "b").settled()
    assert "no mark b" in window.message
    window.press(key, "esc").settled()
    assert window.index == 5


# ---- searching ----


@about("search", "search-backward", "next-hit", "previous-hit", "highlight")
def search(window: Window, key: str) -> None:
    hits = [n for n, event in enumerate(window.events) if event.values.get("amount") in ("690", "700", "710")]
    assert len(hits) == 3
    window.go(40).press("/").type(r"amount=(69|7[01])0\b").press("enter").settled()
    assert window.index == hits[0]
    assert {cell.data for cell in window.cells(window.current_row) if cell.bg == "brightbrown"} >= set(
        "amount=690"
    )
    for press, hit in (("n", 1), ("n", 2), ("N", 1), ("n", 2), ("n", 0)):
        window.press(press).settled()
        assert window.index == hits[hit]
    assert "wrap" in window.message or "start" in window.message or "top" in window.message
    window.press("meta u").settled()
    assert not any(cell.bg == "brightbrown" for row in range(1, 25) for cell in window.cells(row))
    window.go(400).press("?").type("AMOUNT=7[01]0").press("enter").settled()
    assert "not" in window.message  # found: capitals
    window.go(len(window.events) - 1).press("?").type("amount=7[01]0").press("enter").settled()
    assert window.index == hits[2]
    window.press("n").settled()
    assert window.index == hits[1]
    window.press("N").settled()
    assert window.index == hits[2]


# ---- filtering and folding ----


@about("filter")
def filters(window: Window, key: str) -> None:
    start = call_of(window, 70, "pay")
    window.go(start).press(key).type("func == 'pay'").press("enter").settled()
    assert window.index == start  # it stays
    assert "filter: func == 'pay'" in window.status
    shown = [event.id for event in window.events if event.func == "pay"]
    assert window.ids == shown[shown.index(window.ids[0]) :][: len(window.ids)]
    assert len(window.ids) > 10
    window.press(key, "ctrl u", "enter").settled()
    assert window.index == start
    assert "filter" not in window.status


@about("filter-this")
def filter_this(window: Window, key: str) -> None:
    window.go(call_of(window, 70, "pay")).press(key).shows("function shop.money.pay")
    window.press("enter").settled()
    assert "filter: func == 'pay'" in window.text  # to be edited
    window.press("enter").settled()
    assert window.index == call_of(window, 70, "pay")
    assert all("pay" in line for line in window.lines[5:20])


@about("fold")
def fold(window: Window, key: str) -> None:
    order = call_of(window, 70)
    end = window.find(lambda event: event.func == "Shop.order" and event.kind == "return", order)
    window.go(order).press(key).settled()
    assert window.index == order
    assert "+> shop.Shop.order(number=70, user='eve') = 'order 70 of eve'" in window.current
    others = [n for n in range(order, end + 1) if window.events[n].thread == "MainThread"][1:]
    assert not {window.events[n].id for n in others} & set(window.ids)
    window.press(key).settled()
    assert window.index == order
    assert window.events[order + 1].id in window.ids
    window.go(call_of(window, 70, "check") + 1).press(key).settled()  # a return closes its call
    assert window.index == call_of(window, 70, "check")


@about("scope")
def scope(window: Window, key: str) -> None:
    """test_own_code.py has a recording with own code."""
    window.go(40).press(key).settled()
    assert "nothing of your own code is known" in window.message
    assert window.index == 40


@about("layers", "waker")
def of_the_kernel(window: Window, key: str) -> None:
    """test_waits.py has a recording with more than Python."""
    window.go(40).press(key).settled()
    assert ("all is Python here" if key == "S" else "waits are not recorded here") in window.message
    assert window.index == 40


@about("close-level", "open-level")
def levels(window: Window, key: str) -> None:
    window.go(0).type("2").press(key).settled()
    seen = ("call", "log", "lost")
    shown = [e.id for e in window.events if e.depth == 0 or (e.depth == 1 and e.kind in seen)]
    assert window.ids[: len(shown)] == shown[: len(window.ids)]
    window.press("," if key == "," else ".").settled()
    assert ("1 level" in window.message) == (key == ",")
    window.press(".", ".", ".").settled()
    assert "all levels" in window.message
    assert window.ids[:20] == [event.id for event in window.events[:20]]
    window.press("&").type("kind != 'lost'").press("enter").settled()
    window.type("2").press(key).settled()
    assert "2 levels are shown, and no deeper matches" in window.message
    window.press("&").press("ctrl a", "ctrl k", "enter").settled()


# ---- while the program runs ----


@about("follow")
def follow(window: Window, key: str) -> None:
    window.go(3).press(key).settled()
    assert window.index == len(window.events) - 1
    window.press("k").settled()
    assert window.index == len(window.events) - 2


@about("follow-until")
def follow_until(window: Window, key: str) -> None:
    window.go(3).press(key).settled()
    assert "search" in window.message


@about("more-context", "less-context")
def context(window: Window, key: str) -> None:
    window.press(key).settled()
    assert "& sets a filter first" in window.message
    window.say("filter func == 'pay' and kind == 'call'")
    assert "+> shop.money.pay(" in window.current
    window.type("2").press("+").settled()
    shown = [window._places[id] for id in window.ids]
    assert len(shown) > 20
    assert {later - earlier for earlier, later in pairwise(shown)} < {1, 2, 3, 4}
    assert "· -> shop.money.check(" in window.text
    window.press("_").settled()
    assert "1 event on each side" in window.message
    window.press("_").settled()
    assert "· " not in window.text


# ---- looking closer ----


@about("detail", "detail-down", "detail-up")
def detail(window: Window, key: str) -> None:
    start = call_of(window, 70, "pay")
    window.go(start).press("tab").shows("amount", "700", "shop.py:9")
    assert window.index == start
    before = window.text
    window.press("meta j", "meta j").settled()
    assert window.text != before
    assert window.index == start
    window.press("meta k", "meta k").settled()
    assert window.text == before
    window.press("meta down", "meta up").settled()
    assert window.text == before
    window.press("tab").settled()
    assert "shop.py:9" not in window.text


@about("detail-larger", "detail-smaller")
def detail_size(window: Window, key: str) -> None:
    start = call_of(window, 70, "pay")
    window.go(start).press(key).shows("amount", "700", "shop.py:9")
    events = len(window.ids)
    window.press(key).settled()
    assert (len(window.ids) < events) == (key == "}")
    assert window.index == start
    window.type("99").press(key).settled()
    assert window.index == start
    window.press(*("{{{{" if key == "}" else "}}}}")).settled()
    assert len(window.ids) == events


@about("detail-beside")
def detail_beside(window: Window, key: str) -> None:
    start = call_of(window, 70, "pay")
    window.resize(30, 200).settled()
    before = len(window.go(start).ids)
    window.press(key).shows("amount", "700", "shop.py:9")
    assert len(window.ids) == before
    row = next(row for row in range(1, window.rows) if window.cell(row, 0).bg == "blue")
    assert window.line(row).split()[0] == str(window.events[start].id)
    assert window.line(row).index("│") == 99
    window.press(key).settled()
    assert len(window.ids) < before
    window.resize(30, 139).press(key).settled()
    assert "140 columns" in window.message


@about("where")
def where(window: Window, key: str) -> None:
    window.go(300).press(key).settled()
    assert "event 301 " in window.message
    assert f"id {window.events[300].id}" in window.message
    assert "%" in window.message


@about("replay")
def replay(window: Window, key: str) -> None:
    number = call_of(window, 70, "pay")
    window.go(number).press(key).settled()
    assert " variables " in window.text
    assert " stack " in window.text
    window.press("v").settled()
    assert "pay" in window.current


@about("edit")
def edit(window: Window, key: str) -> None:
    # there is no editor: test_outside.py has the rest
    window.go(call_of(window, 70, "pay")).press(key).settled()
    assert "no-such" in window.message
    assert "EDITOR" in window.message


@about("copy", "copy-value")
def copy(window: Window, key: str) -> None:
    window.go(call_of(window, 70, "check")).press(key).settled()
    [text] = window.emulator.copied
    assert text == ("'eve'" if key == '"' else window.current)
    assert base64.b64encode(text.encode()) in window.raw


# ---- everything else ----


def looks_of(window: Window) -> list[Char]:
    """All but the minimap, whose closer look may come later, and the message."""
    return [cell for line in range(1, window.rows - 1) for cell in window.cells(line)]


@about("switch")
def switch(window: Window, key: str) -> None:
    """Each switch changes the screen, and changes it back."""
    window.go(call_of(window, 70)).type("4").press("k").settled()
    for each in table.SWITCHES:
        before, looks = looks_of(window), []
        while before not in looks:
            window.press(key, each.letter).settled()
            assert window.message
            looks.append(looks_of(window))
            assert len(looks) <= 5, each.name
        assert len(looks) > 1 or each.name in ("case", "wrap", "sort")
    window.press(key, "!").settled()
    assert "no switch -!" in window.message


@about("command")
def command(window: Window, key: str) -> None:
    window.press(key).type("last").press("enter").settled()
    assert window.index == len(window.events) - 1
    window.press(key).type("7").press("enter").settled()
    assert window.index == 6
    window.press(key).type("lost").press("enter").settled()
    assert "did you mean last" in window.message


@about("redraw")
def redraw(window: Window, key: str) -> None:
    before = window.go(200).lines
    sent = len(window.raw)
    window.press(key).settled()
    assert window.lines[1:] == before[1:]
    window.wait(lambda screen: screen.lines == before, "the minimap, which comes behind the rest")
    assert len(window.raw) - sent > 1000


@about("help")
def help_page(window: Window, key: str) -> None:
    before = window.go(200).text
    window.press(key).shows("forward-line" if key == "?" else "a line, or N lines, forward")
    window.press("q").settled()
    assert window.text == before


@about("quit")
def leave(window: Window, key: str) -> None:
    window.press(*(key if key == "ZZ" else [key]))
    assert window.end() == 0
    assert window.errors == ""
    assert window.as_before


def test_every_command_has_a_test() -> None:
    assert {command.name for command in table.COMMANDS} == set(TESTS)
