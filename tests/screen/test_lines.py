"""Events as lines of the screen."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytracer.reader.rows import Row, Run, Source
from pytracer.reader.screen.lines import TIMES, WIDTHS, DisplayOptions, Liner
from pytracer.reader.screen.paint import palette
from pytracer.reader.screen.text import Line, cells
from pytracer.reader.screen.view import Item

from events import CUSTOMER, ERROR, MAIN, NO_CODE, RETURNED, TIME, Code, made

BARE = DisplayOptions(time="off", duration=False)
RUN = Run(1, "python app.py", "/home/me", "3.13.0", TIME - 1_860_222_000, TIME, 0, 0, 0, None, 0)
SELF = ("self", "<app.Order at 0x7f>", "app.Order")
AMOUNT = ("amount", "5", "int")


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def line(
    event: Row, display: DisplayOptions = BARE, sources: tuple[Source, ...] = (MAIN,), **item: object
) -> Line:
    liner = Liner(display, sources, [RUN], has_arguments=lambda event: event[8] == b"Order.pay")
    return liner(Item(event, **item))  # type: ignore[arg-type]


def styled(line: Line) -> dict[str, list[str]]:
    """Texts by style."""
    found: dict[str, list[str]] = {}
    for start, end, style in line.spans:
        found.setdefault(style, []).append(line.text[start:end])
    return found


def test_unusual_durations_stand_out() -> None:
    pay = made("return", RETURNED, duration=999)
    liner = Liner(replace(BARE, duration=True), (MAIN,), [RUN], usual={pay[7:11]: 100})
    for took, style in ((999, "ns"), (1000, "slow"), (9999, "slow"), (10_000, "slowest")):
        event = made("return", RETURNED, duration=took)
        assert liner(Item(event)).spans[0][2] == style
        closed = liner(Item(made("call"), closed=True, outcome=event))
        assert closed.spans[0][2] == style
    assert liner(Item(made("yield", RETURNED, duration=10_000))).spans[0][2] == "µs"


def test_each_kind() -> None:
    assert [
        line(event).text
        for event in (
            made("call", SELF, AMOUNT),
            made("call"),
            made("call", code=CUSTOMER),
            made("return", RETURNED, duration=12),
            made("return", duration=12),
            made("yield", ("yield value", "1", "int"), duration=12_345),
            made("resume"),
            made("throw", ERROR),
            made("raise", ERROR, line=12),
            made("raise", line=12),
            made("exception", ERROR, duration=5),
            made("log", ("message", "'half way'", "str"), ("n", "3", "int"), ("m", "4", "int")),
            made("log", ("message", "'half way'", "str")),
            made("log"),
            made("lost", ("count", "1204", "int"), code=NO_CODE),
            made("lost", code=NO_CODE),
            made("line", ("total", "3", "int"), ("order", "<app.Order at 0x7f>", "app.Order"), line=12),
            made("line", ("x\x1b[31m", "<deleted>", ""), line=12),
            made("line", line=12),
        )
    ] == [
        "-> app.Order.pay(self=Order@7f, amount=5)",
        "-> app.Order.pay(…)",
        "-> app.Customer.name()",
        "<- Order.pay: True",
        "<- Order.pay",
        "<~ Order.pay: 1",
        "~> app.Order.pay",
        "~! Order.pay: ValueError('x')",
        "!! Order.pay: ValueError('x')  line 12",
        "!! Order.pay  line 12",
        "<! Order.pay: ValueError('x')",
        "-- 'half way'  n=3  m=4",
        "-- 'half way'",
        "-- ",
        "… 1,204 events lost …",
        "… some events lost …",
        ".. 12: total=3, order=Order@7f",
        r".. 12: x\x1b[31m=<deleted>",
        ".. 12",
    ]


def test_a_line_is_quiet() -> None:
    lined = made("line", AMOUNT, SELF, line=12)
    assert styled(line(lined)) == {"dim": [".. 12: amount=5, self=Order@7f"]}
    assert line(lined, replace(BARE, sort=True)).text == ".. 12: amount=5, self=Order@7f"
    assert line(lined, replace(BARE, values=False)).text == ".. 12"


def test_a_closed_call_has_its_outcome() -> None:
    call = made("call", AMOUNT)
    outcomes = (
        made("return", RETURNED, duration=1_234_567),
        made("return", duration=1_234_567),
        made("exception", ERROR, duration=1_234_567),
        made("exception", duration=1_234_567),
        None,
    )
    display = replace(BARE, duration=True)
    assert [line(call, display, closed=True, outcome=outcome).text for outcome in outcomes] == [
        " 1.23ms  +> app.Order.pay(amount=5) = True",
        " 1.23ms  +> app.Order.pay(amount=5)",
        " 1.23ms  +> app.Order.pay(amount=5) ! ValueError('x')",
        " 1.23ms  +> app.Order.pay(amount=5) !",
        "         +> app.Order.pay(amount=5) (running)",
    ]
    assert styled(line(call, closed=True, outcome=outcomes[2]))["exception"] == [" ! ValueError('x')"]


def test_a_folded_part_of_a_generator_is_no_call() -> None:
    thrown = ("exception", "GeneratorExit()", "GeneratorExit")
    yielded = made("yield", ("yield value", "2", "int"))

    def shown(kind: str, *args: tuple[str, str, str], outcome: "Row | None") -> str:
        return line(made(kind, *args), closed=True, outcome=outcome).text

    assert shown("call", AMOUNT, outcome=yielded) == "+> app.Order.pay(amount=5) <~ 2"
    assert shown("resume", outcome=yielded) == "+~> app.Order.pay <~ 2"
    assert shown("resume", outcome=made("yield")) == "+~> app.Order.pay <~"
    assert shown("resume", outcome=made("return", RETURNED)) == "+~> app.Order.pay = True"
    assert shown("throw", thrown, outcome=made("exception", thrown)) == (
        "+~! app.Order.pay: GeneratorExit() ! GeneratorExit()"
    )
    assert shown("resume", outcome=None) == "+~> app.Order.pay (running)"


def test_deep_calls_are_indented_where_there_is_room() -> None:
    deep = made("call", AMOUNT, depth=60)
    assert line(deep).text == " " * 80 + "(60) -> app.Order.pay(amount=5)"
    assert line(deep, replace(BARE, levels=60)).text == " " * 120 + "-> app.Order.pay(amount=5)"


def test_an_outcome_stands_before_long_arguments() -> None:
    note = ("note", f"'{'x' * 50}'", "str")
    call = made("call", AMOUNT, note)

    def shown(*result: tuple[str, str, str]) -> str:
        return line(call, closed=True, outcome=made("return", *result, duration=5)).text

    assert shown(RETURNED) == f"+> app.Order.pay(…) = True  amount=5, note='{'x' * 50}'"
    longer = "y" * 90
    assert shown(("", longer, "str")) == f"+> app.Order.pay(amount=5, note='{'x' * 50}') = {longer}"
    assert line(call, closed=True).text == f"+> app.Order.pay(…) (running)  amount=5, note='{'x' * 50}'"
    bare = replace(BARE, values=False)
    assert line(call, bare, closed=True).text == "+> app.Order.pay(…) (running)"


def test_the_module_is_told_where_the_function_is_common() -> None:
    def left(func: str) -> str:
        return line(made("return", code=Code("app", func, "", 1))).text

    names = ("pay", "<module>", "<lambda>", "pay.<locals>.<lambda>", "__getattr__", "Order.__init__")
    assert [left(name) for name in names] == [
        "<- pay", "<- app.<module>", "<- app.<lambda>", "<- pay.<locals>.<lambda>", "<- app.__getattr__",
        "<- Order.__init__",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<app.Order at 0x7f0012345300>", "Order@5300"),
        ("<Order at 0x53>", "Order@53"),
        ("<app.pay.<locals>.Order at 0x7f0012345300>", "Order@5300"),
        ("<app.Order object at 0x7f0012345300>", "Order@5300"),  # as repr() says it
        ("[<a.B at 0x12345>, {'b': <c.D at 0x1>}]", "[B@2345, {'b': D@1}]"),
        ("'<app.Order at 0x7f00>'", "'<app.Order at 0x7f00>'"),  # a text
        ("""['it\\'s <a.B at 0x1>', "<a.B at 0x1>", <a.B at 0x1>]""",
         """['it\\'s <a.B at 0x1>', "<a.B at 0x1>", B@1]"""),
        ("< at 0x1>", "< at 0x1>"),
        ("<function app.pay>", "<function app.pay>"),
        ("<a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a at 0x", None),
    ],
)  # fmt: skip
def test_objects_are_short(value: str, expected: str | None) -> None:
    given = made("return", ("return value", value, "str"))
    assert line(given).text == f"<- Order.pay: {expected or value}"


def test_styles() -> None:
    assert styled(line(made("call", SELF, AMOUNT))) == {
        "call": ["-> ", "app.Order.pay(", ")"],
        "name": ["self", "amount"],
    }
    assert styled(line(made("return", RETURNED))) == {"return": ["<- Order.pay: "], "value": ["True"]}
    assert styled(line(made("exception", ERROR))) == {"exception": ["<! Order.pay: ValueError('x')"]}
    assert styled(line(made("raise", ERROR, line=3))) == {"raise": ["!! Order.pay: ValueError('x')  line 3"]}
    assert styled(line(made("resume"), DisplayOptions(ids=True, thread=True))) == {
        "dim": ["           1  "],
        "time": ["22:13:20.123456  "],
        "ns": ["         "],
        "column": ["MainThread  "],
        "yield": ["~> app.Order.pay"],
    }


def test_durations_of_different_magnitude_look_different() -> None:
    def style(ns: int) -> str:
        shown = line(made("return", duration=ns), replace(BARE, duration=True))
        return shown.spans[0][2]

    times = (0, 110, 999, 1000, 999_999, 1_000_000, 130_000_000, 1_000_000_000, 10**14)
    assert [style(ns) for ns in times] == ["ns", "ns", "ns", "µs", "µs", "ms", "ms", "s", "s"]
    colours = {name: entry for name, *entry in palette()}
    assert len({tuple(colours[name]) for name in ("ns", "µs", "ms", "s")}) == 4


def test_times() -> None:
    def shown(event: Row, **display: object) -> str:
        return line(event, replace(BARE, **display)).text.split("~>")[0]  # type: ignore[arg-type]

    event = made("resume")
    assert [shown(event, time=time) for time in TIMES] == [
        "22:13:20.123456  ",
        "2023-11-14 22:13:20.123456  ",
        "   +1.860222  ",
        "",
    ]
    early = made("resume", time=RUN.started - 1_000)
    assert shown(early, time="start") == "   -0.000001  "
    # of a run that is not known yet
    other = made("resume", source=Source(2, 1, 1, ""))
    assert shown(other, time="start") == "22:13:20.123456  "
    assert shown(event, time="start", widths=(("time", 9),)) == "   +1.860  "
    assert shown(event, time="clock", widths=(("time", 8),)) == "22:13:20  "


def test_columns_are_there_where_there_are_several() -> None:
    worker = Source(1, 100, 101, "worker-1")
    child = Source(1, 200, 200, "MainThread")
    later = Source(2, 300, 300, "")

    def columns(*sources: Source, display: DisplayOptions = BARE) -> list[str]:
        return [line(made("call", source=each), display, sources).text.split("->")[0] for each in sources]

    assert columns(MAIN) == [""]
    assert columns(worker, MAIN) == ["worker-1    ", "MainThread  "]
    assert columns(MAIN, child) == ["    100  MainThread  ", "    200  MainThread  "]
    assert columns(MAIN, later) == ["   1  ", "   2  "]
    assert columns(MAIN._replace(has_tasks=True)) == ["MainThread            "]  # names can grow
    everything = replace(BARE, thread=True, process=True, run=True, duration=True, ids=True, file=True)
    assert columns(MAIN, display=everything) == [
        "           1              1      100  MainThread  /home/me/app.py:10              "
    ]
    nothing = replace(BARE, thread=False, process=False, run=False)
    assert columns(MAIN, worker, child, later, display=nothing) == [""] * 4


def test_columns_are_sized() -> None:
    source = Source(1, 100, 100, "漢字漢字-1")
    event = made("resume", source=source)

    def shown(display: DisplayOptions, *widths: tuple[str, int]) -> str:
        return line(event, replace(display, widths=widths), (source,)).text.split("~>")[0]

    thread = replace(BARE, thread=True)
    assert shown(thread) == "漢字漢字-1  "
    assert shown(thread, ("thread", 0)) == "漢字漢字-1  "
    assert shown(thread, ("thread", 12)) == "漢字漢字-1    "
    assert shown(thread, ("thread", 8)) == "漢字 ...  "
    assert shown(thread, ("thread", 2)) == "..  "
    file = replace(BARE, file=True)
    assert shown(file, ("file", 20)) == "/home/me/app.py:10    "
    assert shown(file, ("file", 12)) == "...app.py:10  "
    assert shown(file, ("file", 2)) == "..  "
    assert line(made("lost", code=NO_CODE), replace(file, widths=(("file", 4),))).text.startswith("      …")
    for column in WIDTHS:  # never more than asked for, and never a crash
        everything = DisplayOptions(ids=True, file=True, run=True, process=True, thread=True)
        for width in (1, 2, 3, 5, 60):
            shown(everything, (column, width))


def test_depth_is_indentation_within_a_bound() -> None:
    assert line(made("resume", depth=2)).text == "    ~> app.Order.pay"
    assert line(made("resume", depth=2), replace(BARE, indent=1)).text == "  ~> app.Order.pay"
    assert line(made("resume", depth=40)).text == "  " * 40 + "~> app.Order.pay"
    assert line(made("resume", depth=10_000)).text == "  " * 40 + "(10000) ~> app.Order.pay"


def test_arguments_are_sorted_or_left_out() -> None:
    event = made("call", SELF, AMOUNT)
    assert line(event, replace(BARE, sort=True)).text == "-> app.Order.pay(amount=5, self=Order@7f)"
    bare = replace(BARE, values=False)
    assert line(event, bare).text == "-> app.Order.pay(…)"
    assert line(made("call", code=CUSTOMER), bare).text == "-> app.Customer.name()"
    assert line(made("return", RETURNED), bare).text == "<- Order.pay"
    assert line(made("exception", ERROR), bare).text == "<! Order.pay: ValueError('x')"


def test_a_terminal_without_unicode() -> None:
    display = replace(BARE, ascii=True, duration=True)
    code = Code("möd", "größe", "", 1)
    assert line(made("call", ("ä", "'漢'", "str"), code=code), display).text == (
        r"         -> m\xf6d.gr\xf6\xdfe(\xe4='\u6f22')"
    )
    assert line(made("call"), display).text == "         -> app.Order.pay(...)"
    assert line(made("return", duration=12_345), display).text == " 12.3us  <- Order.pay"
    assert line(made("lost", ("count", "3", "int")), display).text == "         ... 3 events lost ..."


KINDS = (
    "call", "return", "exception", "yield", "resume", "throw", "raise", "log", "lost", "line",
    "event",
)  # fmt: skip
texts = st.text(max_size=8)


@given(
    st.sampled_from(KINDS), texts, texts, st.lists(st.tuples(texts, texts, texts), max_size=3), st.booleans()
)
def test_whatever_was_recorded_is_printable(
    kind: str, name: str, thread: str, args: list[tuple[str, str, str]], ascii: bool
) -> None:
    source = Source(1, 2, 3, thread)
    event = made(kind, *args, code=Code(name, name, name, 1), source=source, depth=1, layer=name)
    display = DisplayOptions(ids=True, file=True, thread=True, ascii=ascii)
    for item in (Item(event), Item(event, True, event)):
        shown = Liner(display, [source], [RUN])(item)
        assert shown.text.isprintable()
        assert shown.text.isascii() or not ascii
        ends = [0, *[place for start, end, _ in shown.spans for place in (start, end)], len(shown.text)]
        assert ends == sorted(ends)
        assert cells(shown.text) >= 0
