"""What is typed in a replay, and what is asked about values, lines and threads."""

from __future__ import annotations

from pathlib import Path

from recording import record
from replaying import PROGRAM, Replays, line_of

ADD, NAMES, PAID = line_of("total = order.add"), line_of("names = "), line_of("paid = ")


def test_breakpoints(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{PAID}")
    assert f"script.py:{PAID}" in replay.message
    assert replay.after("c").place == PAID
    assert f"●▶{PAID}" in replay.text
    assert replay.variables["i"] == "0"
    assert replay.after("2", "c").variables["i"] == "2"
    assert replay.after("C").variables["i"] == "1"
    assert "removed" in replay.after("b").message
    assert "●" not in replay.text
    replay.break_at(f"script.py:{NAMES} total > 10")
    assert replay.after("c").variables["*total"] == "12"
    replay.after("B")
    assert f"script.py:{NAMES} if total > 10" in replay.text
    assert "removed" in replay.after("enter").message


def test_prompts_are_left_and_tell_mistakes(replays: Replays, orders: Path) -> None:
    replay = replays(orders)
    here = replay.here
    for key in "bjf":
        replay.after(key).type("nothing").press("esc").settled()
        assert replay.here == here
    replay.break_at("nothing").shows("break at", "nothing", "no function nothing")
    assert "^^^" in replay.text
    replay.after("esc").after("j").type("soon").press("enter").settled()
    assert "no time" in replay.text
    replay.after("esc")
    replay.after("f").type("nothing").press("enter").settled()
    assert "nothing of a file nothing" in replay.message
    assert replay.here == here


def test_a_uncaught_exception_stops(replays: Replays, tmp_path: Path) -> None:
    made = record(tmp_path, "def f(x):\n    y = x\n    return 1 / y\nf(0)\n", "--lines", status=1)
    replay = replays(made.database)
    replay.after("c")
    assert "nobody catches" in replay.message
    assert "ends with ZeroDivisionError" in replay.status


def test_jumps_in_time(replays: Replays, orders: Path) -> None:
    replay = replays(orders)
    first = replay.here
    replay.after("e")
    at, there = replay.status.split()[0], replay.here
    replay.after("j").type("-1h").press("enter").settled()
    assert replay.here == first
    replay.after("j").type(at).press("enter").settled()
    assert replay.here[1].split()[0] <= there[1].split()[0]
    assert replay.here != first


def test_beginning_at_a_time_or_an_event(replays: Replays, orders: Path) -> None:
    end = replays(orders, "--at", "+1h")
    assert "1st" in end.status or "returns" in end.status
    with_id = replays(orders, "--at", str(1 << 40), begins=False)
    assert with_id.end() == 2
    assert "no such event" in with_id.errors


def test_files(replays: Replays, orders: Path) -> None:
    replay = replays(orders).after("f").type("scr").press("tab").settled()
    assert "script.py" in replay.message
    replay.press("enter").settled()
    assert replay.line(0).startswith(" script.py:1 ")
    replay.after(*["down"] * (PAID - 1)).after("b").press("enter").settled()
    assert f"script.py:{PAID}" in replay.message
    assert replay.after("c").place == PAID


def test_where_a_value_came_from(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{PAID} i == 3")
    replay.after("c").after("tab").after("down").after("down")
    assert replay.after("w").place == ADD
    assert "this line sets total" in replay.message
    assert replay.variables["*i"] == "3"
    assert replay.after("w").variables["*i"] == "2"
    assert replay.after("]").variables["*i"] == "3"
    assert replay.after("2", "w").variables["*i"] == "1"
    assert replay.after("w").place == line_of("total = 0")
    assert "nothing before sets total" in replay.after("w").message


def test_where_an_argument_and_a_returned_value_came_from(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at("discount rate == 2")
    replay.after("c").after("tab").after("w")
    assert replay.place == PAID
    assert "here total was passed" in replay.message
    replay.break_at(f"{NAMES}")
    replay.after("2", "c").after("home").after("w")
    assert "returns 12" in replay.status


def test_where_a_value_came_from_before_a_suspension(replays: Replays, tmp_path: Path) -> None:
    source = (
        "import asyncio\nasync def leaf(n):\n    m = n + 1\n    await asyncio.sleep(0)\n    m += 1\n"
        "    return m\nasync def main():\n    await asyncio.gather(leaf(2), leaf(3))\nasyncio.run(main())\n"
    )
    made = record(tmp_path, source, "--lines", "--no-stdlib")
    replay = replays(made.database).break_at("6 m == 4")
    replay.after("c").after("tab").after("end")
    assert replay.variables["*m"] == "4"
    assert replay.after("w").place == 5
    assert replay.after("w").place == 3
    assert replay.variables["n"] == "2"


def test_watching(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{PAID}")
    replay.after("c").after("b").after("tab").after("down").after("down")
    assert "total is watched" in replay.after("W").message
    assert replay.after("c").variables["*total"] == "2"
    assert "watched: total in work" in replay.message
    assert replay.after("c").variables["*total"] == "6"
    assert replay.after("C").variables["*total"] == "2"


def test_all_values(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{PAID}")
    replay.after("c").after("tab").after("down").after("down").after("t")
    rows = [line.split() for line in replay.lines[1:7]]
    assert rows[0][-2:] == [str(line_of("total = 0")), "0"]
    assert [row[-2:] for row in rows[1:]] == [[str(ADD), value] for value in ("2", "6", "12", "20", "30")]
    replay.after("down").after("enter")
    assert replay.place == ADD
    assert replay.variables["*i"] == "1"


def test_all_hits(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{PAID}")
    replay.after("c").after("a")
    assert "total" in replay.line(0)
    assert [line.split()[0] for line in replay.lines[1:7]] == list("123456")
    replay.after("+").type("total +").press("enter").settled()
    assert "cannot be read" in replay.text
    replay.press("end", "backspace").type("* 2").press("enter").settled()
    assert "total * 2" in replay.line(0)
    assert replay.line(6).endswith("60")
    replay.after("down").after("down").after("enter")
    assert replay.place == PAID
    assert replay.variables["i"] == "2"


def test_threads(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at("side")
    replay.after("c")
    assert replay.place == line_of("s = 0")
    replay.after("T")
    assert "MainThread" in replay.text
    assert "here: side" in replay.text
    replay.after("enter" if replay.line(0).find("MainThread") >= 0 else "2")
    assert "MainThread" in replay.status
    replay.after("backspace")
    assert replay.place == line_of("s = 0")
    assert "over all threads" in replay.after("x").message
    threads = set()
    for key in [*"S" * 15, *"s" * 30]:
        threads.add(replay.after(key).status.split("  ")[-2].strip())
    assert "MainThread" in threads
    assert len(threads) == 2
    assert "stay in one" in replay.after("x").message


def test_to_the_reader_and_back(replays: Replays, orders: Path) -> None:
    replay = replays(orders).break_at(f"{PAID} i == 3")
    replay.after("c")
    here = replay.here
    replay.after("v").shows("traces.sqlite")
    assert "paid" not in replay.line(0)
    replay.after("s")
    assert replay.here[0] == here[0]
    assert replay.here[1].split()[0] == here[1].split()[0]
    assert "●" in replay.text


def test_the_program(orders: Path) -> None:
    assert (orders.parent / "script.py").read_text() == PROGRAM
