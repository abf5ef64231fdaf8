"""Events of C, native code and the kernel on the screen."""

from pathlib import Path

import pytest
from pytracer.reader.screen import exceptions
from pytracer.reader.screen.detail import detail, detail_lines
from pytracer.reader.screen.effects import Ask
from pytracer.reader.screen.lines import DisplayOptions, Liner

from layered import write_layers
from sessions import Reader

LINES = [
    "-> app.main()",
    "  -> [cython] _json.Order.save(self=7)",
    "    -> [c] builtins.list.append(arg0=7)",
    "      -> [native] libio.so.flush(int)()",
    "        -> [kernel] syscalls.write(fd=1, count=20)",
    "        ** [kernel] sched.sched_switch: prev_comm='app', next_pid=42",
    "        <- [kernel] write: 20",
    "      <- [native] flush(int)",
    "    <! [c] list.append",
    "  <! [cython] Order.save: ValueError('no')",
    "** [kernel] sched.sched_switch: prev_comm='app', next_pid=43",
    "!! main: ValueError('no')  line 3",
    "<! main: ValueError('no')",
]


@pytest.fixture(name="reader")
def reader_fixture(tmp_path: Path) -> Reader:
    write_layers(tmp_path / "traces.sqlite")
    reader = Reader(tmp_path / "traces.sqlite")
    reader.session.fit(120, 40)
    return reader


def lines(reader: Reader) -> list[str]:
    line = Liner(DisplayOptions(time="off", duration=False), (), ())
    return [line(item).text for item in reader.session.browser.items]


def all_shown(reader: Reader) -> Reader:
    for _ in range(9):
        if lines(reader) == LINES:
            return reader
        reader.press("M")
    raise AssertionError(lines(reader))


def test_each_event_is_a_line(reader: Reader) -> None:
    assert lines(all_shown(reader)) == LINES


def test_layers_have_styles(reader: Reader) -> None:
    line = Liner(DisplayOptions(time="off", duration=False), (), ())
    styles = [
        [style for start, end, style in made.spans if "[" in made.text[start:end]]
        for made in map(line, all_shown(reader).session.browser.items)
    ]
    assert styles[:6] == [[], ["cython"], ["c"], ["native"], ["kernel"], ["kernel"]]


def test_a_folded_call_hides_what_is_below(reader: Reader) -> None:
    all_shown(reader).type("level 2")
    assert lines(reader) == [
        LINES[0],
        "  +> [cython] _json.Order.save(self=7) ! ValueError('no')",
        *LINES[10:],
    ]
    reader.type("level 1")
    assert lines(reader) == ["+> app.main() ! ValueError('no')"]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"\[c\] built", LINES[2]),
        ("kernel", LINES[4]),
        ("native", LINES[3]),
        ("cython", LINES[1]),
        (r"next_pid=42", LINES[5]),
    ],
)
def test_a_search_finds_them(reader: Reader, pattern: str, line: str) -> None:
    all_shown(reader).session.browser.cursor = 0
    (ask,) = reader.press("/")
    assert isinstance(ask, Ask)
    reader.done(ask.done(pattern))
    assert lines(reader)[reader.session.browser.cursor] == line


def test_the_pane_tells_layer_and_processor(reader: Reader) -> None:
    all_shown(reader).session.browser.cursor = 5
    item = reader.session.browser.current
    assert item is not None
    shown = [line.text for line in detail_lines(detail(reader.database, item), 100, DisplayOptions())]
    assert shown[:3] == ["event sched.sched_switch", "  prev_comm  str  'app'", "  next_pid   int  42"]
    assert "  layer     kernel" in shown
    assert "  cpu       3" in shown
    reader.session.browser.cursor = 0
    item = reader.session.browser.current
    assert item is not None
    shown = [line.text for line in detail_lines(detail(reader.database, item), 100, DisplayOptions())]
    assert not any(line.startswith(("  layer", "  cpu")) for line in shown)


def test_an_exception_goes_past_them(reader: Reader) -> None:
    """It left the Cython function, and arrived in main: kernel events lie between."""
    items = all_shown(reader).session.browser.items
    for place in (11, 12):
        assert exceptions.raised(reader.database, items[place].row) == items[9].row
    assert exceptions.caught(reader.database, items[9].row) == (items[12].row, False)
