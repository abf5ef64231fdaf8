"""The pane about one event."""

import os
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.query import EVERY, pages
from pytracer.reader.rows import Row
from pytracer.reader.screen.detail import Detail, detail, detail_lines
from pytracer.reader.screen.layout import compose
from pytracer.reader.screen.lines import DisplayOptions
from pytracer.reader.screen.view import Item

from events import made as row_of
from handmade import EPOCH_NS, Handmade, event
from sessions import Reader

SOURCE = "".join(f"# {number}\n" for number in range(1, 10)) + "def pay(self, amount):\n\treturn amount\n"


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture(name="path")
def shop(tmp_path: Path) -> Path:
    """A recording of main, which calls Order.pay twice: it returns, then an exception leaves it."""
    app = tmp_path / "app.py"
    app.write_text(SOURCE)
    os.utime(app, ns=(EPOCH_NS, EPOCH_NS))
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run("python app.py", directory=str(tmp_path))
        made.code(run, 1, "main", file="app.py", line=1)
        made.code(run, 2, "Order.pay", ["amount", "note"], file="app.py", line=10)
        made.code(run, 3, "later", file="app.py", line=11)
        made.segment(
            run,
            [
                event("call", 1),
                event("call", 2, 5, "two\n\x1b[31mlines\tand more", time=10),
                event("return", 2, "a\nb", time=500, elapsed=500),
                event("call", 2, 6, "x", time=10),
                event("raise", 2, ValueError("no"), time=10, line=11),
                event("exception", 2, ValueError("no"), time=10, elapsed=20),
                event("call", 3, time=10),
            ],
        )
    return path


def rows(path: Path) -> list[Row]:
    database = Database(str(path))
    found = [row for page in pages(database, EVERY, lambda row: row) for row in page]
    database.close()
    return found


def asked(path: Path, row: Row, **item: object) -> Detail:
    database = Database(str(path))
    found = detail(database, Item(row, **item))  # type: ignore[arg-type]
    database.close()
    return found


def shown(found: Detail, width: int = 100, display: DisplayOptions = DisplayOptions()) -> list[str]:  # noqa: B008
    return [line.text for line in detail_lines(found, width, display)]


FACTS = [
    "event  id 262145",
    "  time      2023-11-14 22:13:20.000000040  +0.000000040",
    "  returned  2023-11-14 22:13:20.000002040  +0.000002040  id 262146",
    "  thread    MainThread, tid 100, depth 1",
    "  process   100 of run 1: python app.py",
]


def test_a_call(path: Path) -> None:
    found = asked(path, rows(path)[1])
    assert shown(found) == [
        "call app.Order.pay  2µs = 2,000 ns",
        r"  return value  str  'a\nb'",
        "    │ a",
        "    │ b",
        "arguments",
        "  amount  int  5",
        r"  note    str  'two\n\x1b[31mlines\tand more'",
        "    │ two",
        r"    │ \x1b[31mlines      and more",
        "source  app.py:10",
        *[f"     {number}  # {number}" for number in range(5, 10)],
        "  > 10  def pay(self, amount):",
        "    11          return amount",
        "stack  the innermost call first",
        r"  -> app.Order.pay(amount=5, note='two\n\x1b[31mlines\tand more')",
        "  -> app.main()",
        *FACTS,
    ]
    assert not found.mine


def test_what_is_on_the_first_page(path: Path) -> None:
    """The values, the arguments, and the source's marked line."""
    found = asked(path, rows(path)[1])
    marked = "  > 10  def pay(self, amount):"
    whole = shown(found)
    source = ["source  app.py:10", "     9  # 9", marked, "    11          return amount"]
    assert lines_of(found, 14)[:13] == [*whole[:9], *source]
    page = lines_of(found, 9)
    assert page[:9] == [*whole[:3], *whole[4:6], *source]
    assert page[9:14] == ["more of the values", whole[3], *whole[6:9]]
    short = [
        r"  return value  str  'a\nb'",
        "  amount  int  5",
        r"  note  str  'two\n\x1b[31mlines\tand more'",
    ]
    for height in (2, 3, 4, 5):
        page = lines_of(found, height)
        assert page[:height] == [whole[0], *short[: height - 2], marked]
        assert page[height : height + 9] == ["all of the values", *whole[1:9]]


def lines_of(found: Detail, height: int) -> list[str]:
    return [line.text for line in detail_lines(found, 100, DisplayOptions(), height)]


def test_own_code_is_bold_in_the_stack(path: Path) -> None:
    with Handmade(path) as made:
        made("UPDATE code SET mine = 1 WHERE func = 'main'")
    found = asked(path, rows(path)[1])
    assert found.mine == {rows(path)[0][0]}
    bold = [
        line.text
        for line in detail_lines(found, 100, DisplayOptions())
        if "own" in {s[2] for s in line.spans}
    ]
    assert bold == ["  -> app.main()"]


def test_calls_of_others_between_own_ones_are_few(tmp_path: Path) -> None:
    path = tmp_path / "deep.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main", mine=True)
        made.code(run, 2, "library", module="lib")
        made.segment(run, [event("call", code) for code in [1, *[2] * 9, 1, *[2] * 9]])
    lines = shown(asked(path, rows(path)[-1]))
    start = lines.index("stack  the innermost call first") + 1
    own, library, rest = "  -> app.main()", "  -> lib.library()", "  ⋯ 7 calls"
    assert lines[start : start + 14] == [*[library] * 9, own, library, rest, library, own]


@pytest.mark.parametrize(
    ("until", "told"),
    [
        ("exception", ["arguments", "  n  int  2"]),
        ("raise", ["arguments  2 calls of it were open: a recording does not tell them apart"]),
        ("one", ["arguments  of the only call of it that was open", "  n  int  2"]),
    ],
)
def test_arguments_of_a_coroutine_that_goes_on(tmp_path: Path, until: str, told: list[str]) -> None:
    """They are those of the call that its end belongs to, or of the only one that was open."""
    path = tmp_path / "coroutine.sqlite"
    first = [event("call", 1, 1, time=10), event("yield", 1, None, time=10)]
    second = [event("call", 1, 2, time=10), event("yield", 1, None, time=10)]
    resumed = [event("resume", 1, time=10), event("raise", 1, ValueError("no"), time=10)]
    end = [event("exception", 1, ValueError("no"), time=10, elapsed=40)]
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "numbers", ["n"])
        before = second if until == "one" else first + second
        made.segment(run, [*before, *resumed, *(end if until == "exception" else [])])
    raised = next(row for row in rows(path) if row[6] == "raise")
    lines = shown(asked(path, raised))
    assert lines[2 : 2 + len(told)] == told
    resumes = "  ~> app.numbers(n=2)" if until == "exception" else "  ~> app.numbers"
    assert lines[lines.index("stack  the innermost call first") + 1] == resumes
    if until != "exception":  # events that were lost, or removed, may be those of another one
        with Handmade(path) as made:
            made("UPDATE run SET lost = 1")
        assert not any(line.startswith("arguments") for line in shown(asked(path, raised)))


def test_an_empty_file(path: Path, tmp_path: Path) -> None:
    """Python says that an empty module begins in line 1."""
    (tmp_path / "__init__.py").touch()
    os.utime(tmp_path / "__init__.py", ns=(EPOCH_NS, EPOCH_NS))
    with Handmade(path) as made:
        made("UPDATE code SET file = '__init__.py', line = 1 WHERE func = 'main'")
    found = shown(asked(path, rows(path)[0]))
    start = found.index("source  __init__.py:1")
    assert found[start + 1 : start + 3] == ["  > 1  ", "stack  the innermost call first"]


def test_objects_without_attributes(path: Path) -> None:
    call = rows(path)[1]
    told = "  objects are known by their address; pytrace --attributes 8 records what is in them"
    assert told not in shown(asked(path, call))
    order = row_of("call", ("order", "<app.Order at 0x7f00>", "app.Order"), id=call[0])
    assert told in shown(asked(path, order))
    order = row_of("call", ("order", "<app.Order object at 0x7f00>", "app.Order"), id=call[0])
    assert told not in shown(asked(path, order))


def test_each_end_has_the_other(path: Path) -> None:
    _, call, returned, second, _, left, running = rows(path)
    assert "  called    2023-11-14 22:13:20.000000040  +0.000000040  id 262145" in shown(
        asked(path, returned)
    )
    assert "  amount  int  5" in shown(asked(path, returned))
    assert "  left      2023-11-14 22:13:20.000002160  +0.000002160  id 262149" in shown(asked(path, second))
    assert asked(path, left).partner == second
    assert asked(path, running).partner is None
    assert shown(asked(path, running))[0] == "call app.later  nothing came of it yet, or it was not recorded"
    # what the screen knows already is not looked for
    assert asked(path, call, closed=True, outcome=left).partner == left


def test_a_suspended_generator(tmp_path: Path) -> None:
    path = tmp_path / "waits.sqlite"
    with Handmade(path) as made:
        run = made.run("python app.py")
        made.code(run, 1, "numbers")
        made.segment(run, [event("call", 1), event("yield", 1, 5, time=10)])
    call, _ = rows(path)
    assert shown(asked(path, call))[0] == "call app.numbers  it has yielded, and is suspended"


def test_what_is_raised(path: Path) -> None:
    found = shown(asked(path, rows(path)[4]))
    assert found[:5] == [
        "raise app.Order.pay",
        "  exception    ?('no')",
        "arguments",  # of the call that it is in
        "  amount  int  6",
        "  note    str  'x'",
    ]
    assert "  > 11          return amount" in found
    assert (
        found[found.index("stack  the innermost call first") + 1] == "  -> app.Order.pay(amount=6, note='x')"
    )


def test_a_narrow_pane(path: Path) -> None:
    lines = shown(asked(path, rows(path)[1]), 30, DisplayOptions(ascii=True))
    assert lines[:3] == ["call app.Order.pay  2us =", "  2,000 ns", "  return value  str"]
    start = lines.index("  time      2023-11-14")
    assert lines[start + 1 : start + 3] == ["            22:13:20.000000040", "            +0.000000040"]
    start = lines.index("arguments")
    assert lines[start + 1 : start + 8] == [
        "  amount  int",
        "    5",
        "  note  str",
        r"    'two\n\x1b[31mlines\tand",
        "    more'",
        "    | two",
        r"    | \x1b[31mlines      and",
    ]
    assert "  -> app.Order.pay(amount=5..." in lines


def test_arguments_may_be_sorted(path: Path) -> None:
    with Handmade(path) as made:
        made.code(1, 4, "swap", ["b", "a"], file="<string>")
        made.segment(1, [event("call", 4, 1, "\n", depth=0)], sequence=1, start=5000)
    found = shown(asked(path, rows(path)[-1]), display=DisplayOptions(sort=True))
    start = found.index("arguments")
    assert found[start + 1 : start + 5] == [r"  a  str  '\n'", "    │ ", "    │ ", "  b  int  1"]
    assert "  <string> is not a file" in found


def test_without_values(path: Path) -> None:
    with Handmade(path) as made:
        made("UPDATE process SET command = 'python -m shop'")
        made.segment(
            1,
            [
                event("call", 2, depth=0),
                event("call", 3, time=1),
                event("return", 3, time=1, elapsed=1),
                event("return", 2, time=1, elapsed=3),
            ],
            sequence=1,
            start=5000,
        )
    call, later, returned, _ = rows(path)[-4:]
    found = shown(asked(path, call))
    assert "  process   100 of run 1: python -m shop" in found
    assert "  not recorded: amount, note" in found
    assert "  -> app.Order.pay(…)" in found
    assert "  -> app.later()" in shown(asked(path, later))
    assert "arguments" not in shown(asked(path, returned))


def test_a_deep_stack_is_shown_from_both_ends(path: Path) -> None:
    with Handmade(path) as made:
        calls = [event("call", 3, depth=0), *[event("call", 3, time=1) for _ in range(199)]]
        made.segment(1, calls, sequence=1, start=5000)
    found = asked(path, rows(path)[-1])
    assert [row[11] for row in found.stack] == [*range(20), *range(140, 200)]
    lines = shown(found, 60)
    start = lines.index("stack  the innermost call first") + 1
    call = "  -> app.later()"
    assert lines[start : start + 81] == [*[call] * 60, "  ⋯ 120 calls", *[call] * 20]


def test_events_that_are_in_no_function(path: Path) -> None:
    with Handmade(path) as made:
        made.segment(1, [event("lost", 1204)], sequence=1, start=5000)
        made.segment(1, [event("log", 0, "half way", 3, names=["n"], depth=0)], sequence=2, start=6000)
    lost, log = rows(path)[-2:]
    assert shown(asked(path, lost)) == [
        "lost",
        "  count  int  1204",
        "event  id 524288",
        "  time      2023-11-14 22:13:20.000020000  +0.000020000",
        "  thread    MainThread, tid 100, depth 0",
        "  process   100 of run 1: python app.py",
    ]
    assert shown(asked(path, log))[:3] == ["log", "  message  str  'half way'", "  n        int  3"]


def test_an_event_that_was_evicted_meanwhile(path: Path) -> None:
    row = rows(path)[1]
    with Handmade(path) as made:
        made("DELETE FROM segment")
        made("DELETE FROM code")
        made("DELETE FROM run")
    found = asked(path, row)
    assert (found.stack, found.partner, found.run) == ([], None, None)
    assert shown(found)[0].startswith("call app.Order.pay  nothing")


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
def test_one_key_tells_why_with_which_values(tmp_path: Path, size: tuple[int, int]) -> None:
    """The exception, an argument, and the line that raised it are on the screen."""
    source = tmp_path / "app.py"
    source.write_text("def pay(order, amount):\n" + "    #\n" * 20 + "    raise ValueError(amount)\n")
    os.utime(source, ns=(EPOCH_NS, EPOCH_NS))
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run("python app.py", directory=str(tmp_path), exit_status=1)
        made.code(run, 1, "<module>", file="app.py", mine=True, module="__main__")
        made.code(run, 2, "pay", ["order", "amount"], file="app.py", mine=True, module="__main__")
        error = ValueError("much too long a message for a line" * 3)
        made.segment(
            run,
            [
                event("call", 1),
                event("call", 2, 5, "two", time=10),
                event("raise", 2, error, time=10, line=22),
                event("exception", 2, error, time=10, elapsed=20),
                event("raise", 1, error, line=1),
                event("exception", 1, error, time=10, elapsed=40),
            ],
        )
    reader = Reader(path)
    reader.session.fit(*size)
    reader.press("E")
    item = reader.session.browser.current
    assert item is not None
    assert item.row[6] == "raise"
    reader.session.panes.take_detail(detail(reader.database, item))
    drawn, _ = compose(reader.session, size[1])
    lines = [row.decode().rstrip() for row in drawn.texts]
    pane = lines[next(place for place, line in enumerate(lines) if line.startswith(" event ")) + 1 :]
    assert pane[0].startswith("raise __main__.pay")
    assert pane[1].startswith("  exception  ")
    assert "much too" in pane[1]
    assert any(line.split() == ["order", "int", "5"] for line in pane)
    assert any(line.startswith("  > 22      raise ValueError") for line in pane)
    reader.database.close()
