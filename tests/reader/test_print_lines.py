"""Lines and variables in the outputs for people and programs, and in SQL."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from handmade import NS_PER_UNIT, Handmade, event, printed, ran
from lined import HOSTILE, write_lines


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    write_lines(tmp_path / "traces.sqlite")
    return tmp_path / "traces.sqlite"


def found(path: Path, filter: str, *options: object) -> list[dict[str, Any]]:
    done = printed(path, "--format", "json", "--filter", filter, *options)
    assert done.returncode == 0, done.stderr
    return list(map(json.loads, done.stdout.splitlines()))


def rows(path: Path, sql: str) -> list[list[Any]]:
    done = ran("sql", path, sql, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    return [list(json.loads(line).values()) for line in done.stdout.splitlines()]


def test_as_text(path: Path) -> None:
    done = printed(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition("MainThread  ")[2] for line in done.stdout.splitlines()] == [
        "-> app.main()",
        ".. 2",
        "  -> app.pay(user='bob')",
        "  .. 11",
        "  .. 12: total=3, items=['tea']",
        "  .. 13: user=<deleted>",
        r"""  .. 13: x\x1b[31m"\u202e\='a\nb', variable 100=None""",
        "  <- pay: 3  200ns",
        ".. 3: order=app.Order(total=3), paid=3",
        "<- main: None  360ns",
        "-> ?.?()",
        ".. 5: variable 1=1",
        ".. 6: variable 1=2",
    ]


def test_a_dim_line(path: Path) -> None:
    """Also with colours nothing comes through that a terminal would obey."""
    done = printed(path, FORCE_COLOR="1", TERM="xterm")
    lines = done.stdout.splitlines()
    assert "\x1b[2m.. 12: total=3, items=['tea']\x1b[0m" in lines[4] or "\x1b" not in done.stdout
    assert '\x1b[31m"' not in done.stdout


def test_as_json(path: Path) -> None:
    *_, deleted, hostile = found(path, "kind == 'line' and func == 'pay'")
    assert (deleted["line"], deleted["depth"], deleted["duration"]) == (13, 1, None)
    assert deleted["args"] == [{"name": "user", "value": "<deleted>", "type": ""}]
    assert [(each["name"], each["value"], each["type"]) for each in hostile["args"]] == [
        (HOSTILE, r"'a\nb'", "str"),
        ("variable 100", "None", "NoneType"),
    ]
    key_frame, changed, *_ = found(path, "kind == 'line' and func == 'pay'")
    assert key_frame["args"] == []  # what has not changed is not shown
    assert [each["name"] for each in changed["args"]] == ["total", "items"]
    (attributes,) = found(path, "arg == 'order.total' and value == 3")
    assert attributes["args"][0]["attributes"] == [{"name": "total", "value": "3", "type": "int"}]


def test_as_csv(path: Path) -> None:
    done = printed(path, "--format", "csv", "--filter", "kind == 'line' and line == 12")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["kind"], row["func"], row["line"], row["duration"]) == ("line", "pay", "12", "")
    assert [each["value"] for each in json.loads(row["args"])] == ["3", "['tea']"]


@pytest.mark.parametrize(
    ("filter", "lines"),
    [
        ("kind == 'line'", [2, 11, 12, 13, 13, 3, 5, 6]),
        ("line == 12", [12]),
        ("line == 10 and kind == 'line'", []),
        ("arg == 'total' and value == '3' and kind == 'line'", [12]),
        ("arg == 'user' and kind == 'line'", [13]),
        ("value == 'bob' and kind == 'line'", []),  # which has not changed
        ("value == '%secret%'", []),
        ("value == '<deleted>'", [13]),
        ("value == '%eleted%' and type == ''", [13]),
        ("arg == 'variable 1' and value == 1", [5]),
        ("arg == 'variable 100'", [13]),
        ("arg == 'variable%' and not value == 1", [13, 6]),
        (r"arg == 'x\x1b%'", [13]),
        ("kind == 'line' and duration >= 0", []),
        ("kind == 'line' and depth == 1", [11, 12, 13, 13]),
        ("kind == 'line' and mine == True and func == 'main'", [2, 3]),
    ],
)
def test_filters(path: Path, filter: str, lines: list[int]) -> None:
    assert [event["line"] for event in found(path, filter)] == lines


def test_in_sql(path: Path) -> None:
    arguments = (
        "SELECT position, argument.name, value, type FROM argument JOIN event ON argument.event = event.id"
    )
    assert rows(path, f"{arguments} WHERE kind = 'line' AND line = 12") == [
        [0, "total", "3", "int"],
        [1, "items", "['tea']", "list"],
    ]
    assert rows(path, f"{arguments} WHERE value = '<deleted>'") == [[0, "user", "<deleted>", ""]]
    assert rows(path, f"{arguments} WHERE kind = 'line' AND position = 1 AND line = 3") == [
        [1, "paid", "3", "int"]
    ]
    assert rows(path, "SELECT count(*) FROM argument WHERE value = '''secret'''") == [[0]]
    assert rows(path, "SELECT kinds >> 16 & 1 FROM segment") == [[1]]


def test_calls_and_times_are_those_without_lines(tmp_path: Path) -> None:
    """Lines take part in time, and in nothing else."""
    with_lines, without = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    write_lines(with_lines)
    with Handmade(without) as made:
        run = made.run()
        made.code(run, 1, "main", file="app.py", mine=True)
        made.code(run, 2, "pay", ["user"], file="app.py", line=10, mine=True)
        made.segment(
            run,
            [
                event("call", 1, time=10),
                event("call", 2, "bob", time=20),
                event("return", 2, 3, time=50, elapsed=50),
                event("return", 1, None, time=20, elapsed=90),
                event("call", 77, time=10),
            ],
        )
    hot = "SELECT func, calls, own, total, longest, median FROM hot ORDER BY func"
    assert rows(with_lines, hot) == rows(without, hot)
    assert ["pay", 1, 50 * NS_PER_UNIT] in [row[:3] for row in rows(with_lines, hot)]
    calls = "SELECT func, time, duration, outcome, value, depth FROM call ORDER BY time"
    assert rows(with_lines, calls) == rows(without, calls)
    (line,) = found(with_lines, "line == 12")
    (call,) = found(with_lines, "kind == 'call' and func == 'pay'")
    stack = f"SELECT id FROM stack({line['id']}) ORDER BY depth DESC LIMIT 1"
    assert rows(with_lines, stack) == [[call["id"]]]


def test_diff_does_not_compare_them(tmp_path: Path) -> None:
    first, second = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    write_lines(first)
    write_lines(second)
    with Handmade(second) as made:
        made("DELETE FROM segment")
        made.segment(
            1,
            [
                event("call", 1, time=10),
                event("call", 2, "bob", time=20),
                event("return", 2, 3, time=50, elapsed=50),
                event("return", 1, None, time=20, elapsed=90),
                event("call", 77, time=10),
            ],
        )
    done = ran("diff", first, second)
    assert done.returncode == 0, done.stdout


def test_an_earlier_database_has_no_names(path: Path) -> None:
    with Handmade(path) as made:
        made("ALTER TABLE code DROP COLUMN variables")
    (event,) = found(path, "line == 12")
    assert [each["name"] for each in event["args"]] == ["variable 3", "variable 2"]


def test_info_names_the_feature(path: Path) -> None:
    (run,) = json.loads(ran("info", path, "--format", "json").stdout)["runs"]
    assert run["features"] == ["tasks", "lines"]
    assert run["later"]["features"] == []


def test_the_filter_knows_the_kind(path: Path) -> None:
    done = printed(path, "--filter", "kind == 'lin'")
    assert "did you mean 'line'?" in done.stderr
    done = printed(path, "--filter", "kind == 'line' and arg == 'totl'")
    assert "kind == 'line' and arg == 'total'  1 event" in done.stderr
