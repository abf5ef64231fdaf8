"""The pane about one event."""

import os
from pathlib import Path

import pytest
from pytracer.reader.database import Database
from pytracer.reader.model import Row
from pytracer.reader.query import EVERY, pages
from pytracer.reader.screen.detail import Detail, detail, detail_lines
from pytracer.reader.screen.lines import Look
from pytracer.reader.screen.model import Item

from handmade import EPOCH_NS, Handmade, event

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


def shown(found: Detail, width: int = 100, look: Look = Look()) -> list[str]:  # noqa: B008
    return [line.text for line in detail_lines(found, width, look)]


def test_a_call(path: Path) -> None:
    assert shown(asked(path, rows(path)[1])) == [
        "call app.Order.pay  id 262145",
        "time      2023-11-14 22:13:20.000000040  +0.000000040",
        "duration  2µs  2,000 ns",
        "returned  2023-11-14 22:13:20.000002040  +0.000002040  id 262146",
        "thread    MainThread, tid 100, depth 1",
        "process   100 of run 1: python app.py",
        "file      app.py:10",
        "arguments",
        "  amount  int  5",
        r"  note    str  'two\n\x1b[31mlines\tand more'",
        "    │ two",
        r"    │ \x1b[31mlines      and more",
        "outcome",
        r"  return value  str  'a\nb'",
        "    │ a",
        "    │ b",
        "stack",
        "  -> app.main()",
        r"    -> app.Order.pay(amount=5, note='two\n\x1b[31mlines\tand more')",
        "source",
        *[f"     {number}  # {number}" for number in range(5, 10)],
        "  > 10  def pay(self, amount):",
        "    11          return amount",
    ]


def test_each_end_has_the_other(path: Path) -> None:
    _, call, returned, second, _, left, running = rows(path)
    assert "called    2023-11-14 22:13:20.000000040  +0.000000040  id 262145" in shown(asked(path, returned))
    assert "  amount  int  5" in shown(asked(path, returned))
    assert "left      2023-11-14 22:13:20.000002160  +0.000002160  id 262149" in shown(asked(path, second))
    assert asked(path, left).partner == second
    assert asked(path, running).partner is None
    assert "duration  nothing came of it yet, or it was not recorded" in shown(asked(path, running))
    # what the screen knows already is not looked for
    assert asked(path, call, closed=True, outcome=left).partner == left


def test_what_is_raised(path: Path) -> None:
    found = shown(asked(path, rows(path)[4]))
    assert found[0] == "raise app.Order.pay  id 262148"
    assert "  > 11          return amount" in found
    assert found[found.index("stack") + 2] == "    -> app.Order.pay(amount=6, note='x')"


def test_a_narrow_pane(path: Path) -> None:
    lines = shown(asked(path, rows(path)[1]), 30, Look(ascii=True))
    assert lines[:5] == [
        "call app.Order.pay  id 262145",
        "time      2023-11-14 22:13:20.",
        "          000000040  +0.000000",
        "          040",
        "duration  2us  2,000 ns",
    ]
    start = lines.index("arguments")
    assert lines[start + 1 : start + 8] == [
        "  amount  int",
        "    5",
        "  note  str",
        r"    'two\n\x1b[31mlines\tand m",
        "    ore'",
        "    | two",
        r"    | \x1b[31mlines      and m",
    ]
    assert "    -> app.Order.pay(amount..." in lines


def test_arguments_may_be_sorted(path: Path) -> None:
    with Handmade(path) as made:
        made.code(1, 4, "swap", ["b", "a"], file="<string>")
        made.segment(1, [event("call", 4, 1, "\n", depth=0)], sequence=1, start=5000)
    found = shown(asked(path, rows(path)[-1]), look=Look(sort=True))
    start = found.index("arguments")
    assert found[start + 1 : start + 5] == [r"  a  str  '\n'", "    │ ", "    │ ", "  b  int  1"]
    assert found[-1] == "  <string> is not a file"


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
    assert "process   100 of run 1: python -m shop" in found
    assert "  not recorded: amount, note" in found
    assert "  -> app.Order.pay(…)" in found
    assert "    -> app.later()" in shown(asked(path, later))
    assert "arguments" not in shown(asked(path, returned))


def test_a_deep_stack_is_shown_from_both_ends(path: Path) -> None:
    with Handmade(path) as made:
        calls = [event("call", 3, depth=0), *[event("call", 3, time=1) for _ in range(199)]]
        made.segment(1, calls, sequence=1, start=5000)
    found = asked(path, rows(path)[-1])
    assert [row[11] for row in found.stack] == [*range(20), *range(140, 200)]
    lines = shown(found, 60)
    start = lines.index("stack") + 1
    assert lines[start + 19 : start + 22] == [
        "  " + " " * 20 + "-> app.later()",
        "  120 calls that are not shown",
        "  " + " " * 20 + "-> app.later()",
    ]


def test_events_that_are_in_no_function(path: Path) -> None:
    with Handmade(path) as made:
        made.segment(1, [event("lost", 1204)], sequence=1, start=5000)
        made.segment(1, [event("log", 0, "half way", 3, names=["n"], depth=0)], sequence=2, start=6000)
    lost, log = rows(path)[-2:]
    assert shown(asked(path, lost)) == [
        "lost  id 524288",
        "time      2023-11-14 22:13:20.000020000  +0.000020000",
        "thread    MainThread, tid 100, depth 0",
        "process   100 of run 1: python app.py",
        "lost",
        "  count  int  1204",
    ]
    assert shown(asked(path, log))[-2:] == ["  message  str  'half way'", "  n        int  3"]


def test_an_event_that_was_evicted_meanwhile(path: Path) -> None:
    row = rows(path)[1]
    with Handmade(path) as made:
        made("DELETE FROM segment")
        made("DELETE FROM code")
        made("DELETE FROM run")
    found = asked(path, row)
    assert (found.stack, found.partner, found.run) == ([], None, None)
    assert shown(found)[0] == "call app.Order.pay  id 262145"
