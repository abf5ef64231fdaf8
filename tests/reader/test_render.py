"""Lines of text, JSON and CSV from events."""

import csv
import io
import json
import re

import pytest
from pytracer.reader.render import KEYS, TextRenderer, csv_renderer, duration, json_renderer
from pytracer.reader.rows import Row, Source

from events import CUSTOMER, ERROR, MAIN, NO_CODE, RETURNED, TIME, Code, made
from pytracer.messages import printable


def lines(*events: Row, colour: bool = False) -> list[str]:
    """Text without its time and thread."""
    render = TextRenderer([MAIN], colour=colour, has_arguments=lambda event: event[8] == b"Order.pay")
    return [render(event).split("MainThread  ", 1)[1] for event in events]


def test_text_of_each_kind() -> None:
    arguments = (("self", "<app.Order at 0x7f>", "app.Order"), ("amount", "5", "int"))
    assert lines(
        made("call", *arguments),
        made("return", RETURNED, duration=1_234_567),
        made("return", RETURNED, duration=12),
        made("yield", ("yield value", "1", "int"), duration=12_345),
        made("resume"),
        made("raise", ERROR, line=12),
        made("exception", ERROR, duration=5),
        made("throw", ERROR),
        made("log", ("message", "'half way'", "str"), ("n", "3", "int")),
        made("lost", ("count", "17", "int"), code=NO_CODE),
        made("call", code=CUSTOMER),
    ) == [
        "-> app.Order.pay(self=<app.Order at 0x7f>, amount=5)",
        "<- True  1.23ms",
        "<- Order.pay: True  12ns",
        "<~ Order.pay: 1  12.3µs",
        "~> app.Order.pay",
        "!! ValueError('x')  line 12",
        "<! Order.pay: ValueError('x')  5ns",
        "~! app.Order.pay: ValueError('x')",
        "-- 'half way'  n=3",
        "… 17 events lost …",
        "-> app.Customer.name()",
    ]


def test_text_of_a_recording_without_values() -> None:
    assert lines(made("call"), made("return", duration=3), made("return", duration=3)) == [
        "-> app.Order.pay(…)",
        "<- Order.pay  3ns",
        "<- Order.pay  3ns",
    ]


def test_time_has_microseconds() -> None:
    line = TextRenderer([MAIN], colour=False)(made("call"))
    assert re.match(r"\d\d:\d\d:20\.123456  MainThread  ->", line)


def test_depth_is_indentation_within_a_bound() -> None:
    deep = lines(made("call", depth=2), made("call", depth=40), made("call", depth=10_000))
    assert deep[0] == "    -> app.Order.pay(…)"
    assert deep[1] == "  " * 40 + "-> app.Order.pay(…)"
    assert deep[2] == "  " * 40 + "(10000) -> app.Order.pay(…)"


def test_columns_are_there_where_they_tell_something() -> None:
    worker = Source(1, 100, 101, "worker-1")
    child = Source(1, 200, 200, "MainThread")
    later = Source(2, 300, 300, "")

    def columns(*sources: Source) -> list[str]:
        render = TextRenderer(list(sources), colour=False)
        return [render(made("call", source=source))[17:].split("->")[0] for source in sources]

    assert columns(MAIN) == ["MainThread  "]
    assert columns(worker, MAIN) == ["worker-1    ", "MainThread  "]
    assert columns(MAIN, child) == ["    100  MainThread  ", "    200  MainThread  "]
    assert columns(MAIN, later) == ["   1  MainThread  ", "   2  300         "]


def test_a_task_stands_beside_its_thread() -> None:
    render = TextRenderer([MAIN], colour=False)
    tasks = ("Task-1", "", "lib.server.Connection.handle.wait")
    assert [render(made("call", task=task))[17:].split("->")[0] for task in tasks] == [
        "MainThread Task-1  ",
        "MainThread         ",
        "MainThread ….Connection.handle.wait  ",
    ]


def test_colours_leave_the_text_alone() -> None:
    events = [made("call"), made("raise", ERROR, line=3), made("lost", ("count", "1", "int"), code=NO_CODE)]
    plain = TextRenderer([MAIN], colour=False)
    colourful = TextRenderer([MAIN], colour=True)
    for event in events:
        line = colourful(event)
        assert "\x1b[" in line
        assert line.count("\x1b[0m") == len(re.findall(r"\x1b\[[1-9][0-9;]*m", line))
        assert re.sub(r"\x1b\[[0-9;]*m", "", line) == plain(event)


UNSAFE = "a\x1b[31m\n\r\x07\x9b\u202e\u2066\u200b\ud800\U000e0001\x7fz"


def test_nothing_unsafe_reaches_a_terminal() -> None:
    code = Code(UNSAFE, UNSAFE, UNSAFE, 1)
    source = Source(1, 100, 100, UNSAFE)
    for kind in ("call", "return", "raise", "throw", "log", "yield", "resume", "exception"):
        arguments = [(UNSAFE, UNSAFE, UNSAFE)] * 2
        event = made(kind, *arguments, code=code, source=source, task=UNSAFE)
        for render in (TextRenderer([source], colour=False), csv_renderer(), json_renderer()):
            line = render(event)
            assert line.isprintable(), line
            line.encode()


def test_escapes_are_visible() -> None:
    assert printable(UNSAFE) == (r"a\x1b[31m\n\r\x07\x9b\u202e\u2066\u200b\ud800\U000e0001\x7fz")
    assert printable("Zoë 名前 🎈") == "Zoë 名前 🎈"


@pytest.mark.parametrize("text", ["plain", UNSAFE, 'quotes " and \\', "Zoë", ""])
def test_json_keeps_any_text(text: str) -> None:
    code = Code(text, text, text, 4)
    event = made("return", (text, text, text), code=code, source=Source(3, 1, 2, text), depth=5, duration=6)
    assert json.loads(json_renderer()(event)) == {
        "id": 1,
        "run": 3,
        "time": TIME,
        "pid": 1,
        "tid": 2,
        "thread": text,
        "kind": "return",
        "module": text,
        "func": text,
        "file": text,
        "line": 4,
        "depth": 5,
        "duration": 6,
        "args": [{"name": text, "value": text, "type": text}],
    }


def test_json_has_the_keys_of_the_contract_in_their_order() -> None:
    parsed = json.loads(json_renderer()(made("call")))
    assert tuple(parsed) == KEYS[:-3]
    assert parsed["duration"] is None
    parsed = json.loads(json_renderer()(made("call", task="Task-1", layer="c", cpu=0)))
    assert tuple(parsed) == KEYS
    assert (parsed["task"], parsed["layer"], parsed["cpu"]) == ("Task-1", "c", 0)


def test_csv_is_read_back() -> None:
    code = Code("app", 'say "hi", <locals>', "/a,b.py", 4)
    args = (("a", "'x,\"y\"'", "str"), ("b", "1", "int"))
    line = csv_renderer()(made("call", *args, code=code))
    [row] = csv.reader(io.StringIO(line))
    found = dict(zip(KEYS, row, strict=True))
    assert found["func"] == 'say "hi", <locals>'
    assert found["file"] == "/a,b.py"
    assert found["duration"] == found["task"] == found["cpu"] == ""
    assert found["layer"] == "python"
    assert [tuple(arg.values()) for arg in json.loads(found["args"])] == list(args)


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0ns"),
        (999, "999ns"),
        (1000, "1µs"),
        (12_345, "12.3µs"),
        (999_600, "1ms"),
        (1_234_567, "1.23ms"),
        (2_000_000_000, "2s"),
        (59_000_000_000, "59s"),
        (125_000_000_000, "2m05s"),
        (11_220_000_000_000, "3h07m"),
    ],
)
def test_durations(ns: int, shown: str) -> None:
    assert duration(ns) == shown
