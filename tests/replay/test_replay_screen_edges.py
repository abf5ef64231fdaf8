"""Sizes, terminals without colours, hostile recordings, recordings without lines, programs that
still run."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
from pytracer.reader.replay.screen.keys import COMMANDS, help_markdown
from pytracer.reader.screen.commands.help import shown
from wcwidth import wcswidth

import hostile
from handmade import Handmade, event
from recording import PYTRACE, environment, record
from replaying import Replays
from shared import Shared

ROOT = Path(__file__).parents[2]
KEYS = ("s", "n", "tab", "+", "down", "enter", "tab", "-", "u", "e", "shift tab", "t", "esc",
        "a", "esc", "h", "esc", "T")  # fmt: skip


@pytest.mark.parametrize(
    "size",
    [
        (10, 40),
        (100, 300),
        *(pytest.param(size, marks=pytest.mark.slow) for size in ((24, 80), (30, 79), (50, 200), (5, 12))),
        (3, 10),
    ],
)
def test_sizes(replays: Replays, orders: Path, size: tuple[int, int]) -> None:
    replay = replays(orders, rows=size[0], columns=size[1])
    for key in KEYS:
        replay.after(key)
        assert all(len(line) <= size[1] for line in replay.lines)
    replay.after("esc").quit()


def test_pulled_larger_and_smaller(replays: Replays, orders: Path) -> None:
    replay = replays(orders).after("e")
    whole = replay.text
    for size in ((10, 40), (100, 300), (2, 5), (1, 1), (12, 80), (24, 100)):
        replay.resize(*size).settled()
    assert replay.text == whole


def test_without_colours(replays: Replays, orders: Path) -> None:
    replay = replays(orders, NO_COLOR="1").after("e").after("n")
    assert replay.colours == set()
    coloured = replays(orders).after("e").after("n")
    assert coloured.text == replay.text


def test_only_ascii(replays: Replays, orders: Path) -> None:
    replay = replays(orders, LC_ALL="C").after("e").after("tab").after("h").after("q")
    assert replay.text.isascii()


def test_hostile_values_are_shown_as_text(replays: Replays, tmp_path: Path) -> None:
    hostile.write(tmp_path / "hostile.sqlite")
    replay = replays(tmp_path / "hostile.sqlite", rows=30, columns=90)
    for _ in range(2 * len(hostile.VALUES) + 2):
        replay.after("s")
        assert all(wcswidth(line) <= 90 for line in replay.lines)
    for key in ("S", "tab", "enter", "q", "a", "q", "T", "q", "e", "f", "esc", "B", "b", "esc"):
        replay.after(key)
    replay.quit()


def test_hostile_source(replays: Replays, tmp_path: Path) -> None:
    wide = "wide\uff5c" * 4000
    source = f"x = 1  # \x1b[31m\u202e\x9b2J\nlong = '{wide}'\nif x:\n\ty = '\x07\x1b]0;t\x07'\nz = y\n"
    made = record(tmp_path, source, "--lines")
    replay = replays(made.database)
    for _ in range(6):
        replay.after("s")
    replay.after("tab").after("down").after("enter").after("q")
    assert "\\x1b[31m" in replay.after("C").text


def test_no_lines(replays: Replays, tmp_path: Path) -> None:
    made = record(tmp_path, "def f(x):\n    return x + 1\nf(41)\n", "--no-stdlib")
    replay = replays(made.database).after("s")
    assert "script.py:1  f" in replay.line(0)
    assert "pytrace --lines" in replay.text
    assert replay.variables["*x"] == "41"
    replay.after("s")
    assert "returns 42" in replay.status


def test_no_source(replays: Replays, tmp_path: Path) -> None:
    made = record(tmp_path, "exec('def f(x):\\n    y = x\\n    return y\\n')\nf(5)\n", "--lines", "all")
    replay = replays(made.database).break_at("f")
    replay.after("c")
    assert "is not a file" in replay.text
    assert "x" in {name.strip("*") for name in replay.variables}


def test_an_unknown_run_and_no_database(replays: Replays, orders: Path, tmp_path: Path) -> None:
    replay = replays(orders, "--run", "7", begins=False)
    assert replay.end() == 2
    assert "no run 7" in replay.errors


def test_while_the_program_runs(replays: Replays, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time\ndef f(n):\n    x = n\n    return x\nf(1)\nprint('on', flush=True)\n"
        "sys.stdin.readline()\nf(2)\nprint('on', flush=True)\nsys.stdin.readline()\n"
    )
    database = tmp_path / "live.sqlite"
    command = [*PYTRACE, "-q", "-o", str(database), "--no-stdlib", "--lines", str(script)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin
        assert program.stdout
        assert program.stdout.readline() == "on\n"
        replay = replays(database)
        end = time.monotonic() + 60
        while "print" not in replay.lines[_marked(replay.lines)] and time.monotonic() < end:
            replay.after("n")
        for _ in range(20):
            replay.after("n")
            if "still running" in replay.message:
                break
        assert "still running; this is all so far" in replay.message
        assert "LIVE" in replay.status
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline() == "on\n"
        before = replay.here
        while replay.here == before and time.monotonic() < end:
            replay.after("n")
        assert replay.here != before
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.wait() == 0


BIG = """\
def work(n):
    total = 0
    for i in range(n):
        total += i % 7
    return total
work(200000)
"""


@pytest.fixture(scope="module")
def big(shared: Shared) -> Path:
    """A recording of many segments."""
    return shared("big-lines", lambda folder: record(folder, BIG, "--no-stdlib", "--lines")) / "traces.sqlite"


def test_a_long_search_is_stopped(replays: Replays, big: Path) -> None:
    replay = replays(big)
    here = replay.here
    replay.break_at("4 total + i < 0").press("c").shows("Esc stops")
    replay.press_ahead("esc").shows("stopped")
    assert replay.settled().here[0] == here[0]
    replay.press("c").shows("Esc stops")
    replay.press_ahead("q")
    assert replay.end() == 0
    assert replay.as_before


def test_the_beginning_was_removed(replays: Replays, big: Path, tmp_path: Path) -> None:
    shutil.copy(big, tmp_path / "traces.sqlite")
    with sqlite3.connect(tmp_path / "traces.sqlite") as database:
        first = "SELECT id FROM segment ORDER BY id LIMIT 3"
        database.execute("UPDATE run SET evicted = (SELECT sum(count) FROM segment WHERE id <= 3)")
        database.execute(f"DELETE FROM segment WHERE id IN ({first})")
    database.close()
    replay = replays(tmp_path / "traces.sqlite")
    assert "and 1 that are not known" in replay.text
    assert replay.line(0).startswith((" script.py:3  work", " script.py:4  work"))
    assert replay.variables["n"] == "200000"
    assert "events before were removed" in replay.after("S").message
    replay.after("tab").after("w").after("t").after("esc")
    replay.after("o")
    assert "returns" in replay.status
    replay.quit()


def test_lost_events_are_a_stop(replays: Replays, tmp_path: Path) -> None:
    with Handmade(tmp_path / "lost.sqlite") as made:
        run = made.run("app.py", features=3)
        made.code(run, 1, "f", ["a"], module="app", file="app.py", line=1, variables=["a"])
        call, end = event("call", 1, 5, time=10), event("return", 1, 5, time=10, elapsed=20)
        made.segment(run, [call, event("lost", 7, time=5), end, event("lost", 1234, time=5)])
    replay = replays(tmp_path / "lost.sqlite").after("s")
    assert "7 events were lost here" in replay.status
    replay.after("s").after("s")
    assert "1234 events were lost here" in replay.status


def test_nothing_was_recorded(replays: Replays, tmp_path: Path) -> None:
    with Handmade(tmp_path / "empty.sqlite") as made:
        made.run("app.py")
    replay = replays(tmp_path / "empty.sqlite")
    assert "nothing was recorded" in replay.text or "no events yet" in replay.text
    for key in ("n", "u", "a", "t", "w", "b", "j", "f", "T", "c", "v", "tab", "down", "enter", "m", "x", "i"):
        replay.after(key)
    replay.quit()


def _marked(lines: list[str]) -> int:
    return next((row for row, line in enumerate(lines) if "▶" in line), 0)


def test_a_signal_restores_the_terminal(replays: Replays, orders: Path) -> None:
    replay = replays(orders).after("s")
    replay.signal(signal.SIGTERM)
    assert replay.end() == 143
    assert replay.as_before


def test_help_lists_every_key(replays: Replays, orders: Path) -> None:
    replay = replays(orders, rows=100, columns=160).after("h")
    for command in COMMANDS:
        assert any(line.split("  ")[1:2] and shown(command.keys[0]) in line for line in replay.lines)
        assert command.help in replay.text


def test_the_documentation_has_the_table_of_keys() -> None:
    assert help_markdown() in (ROOT / "docs" / "replay.md").read_text()
