"""Events of C, native code and the kernel in what `print` and `sql` show."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from handmade import printed, ran
from layered import write_layers

LINES = [
    "-> app.main()",
    "  -> [cython] _json.Order.save(self=7)",
    "    -> [c] builtins.list.append(arg0=7)",
    "      -> [native] libio.so.flush(int)()",
    "        -> [kernel] syscalls.write(fd=1, count=20)",
    "        ** [kernel] sched.sched_switch: prev_comm='app', next_pid=42",
    "        <- [kernel] write: 20  80ns",
    "      <- [native] flush(int)  160ns",
    "    <! [c] list.append  240ns",
    "  <! [cython] Order.save: ValueError('no')  320ns",
    "** [kernel] sched.sched_switch: prev_comm='app', next_pid=43",
    "!! main: ValueError('no')  line 3",
    "<! main: ValueError('no')  480ns",
]
LAYERS = ["python", "cython", "c", "native", "kernel", "kernel", "kernel", "native", "c", "cython", "kernel"]
LAYERS += ["python", "python"]
CPUS = [None, 3, 3, 3, 3, 3, 0, 0, 0, None, None, None, None]


@pytest.fixture(name="path", scope="module")
def path_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layers") / "traces.sqlite"
    write_layers(path)
    return path


def text(path: Path, *options: str) -> list[str]:
    done = printed(path, *options)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("MainThread  ", 1)[1] for line in done.stdout.splitlines()]


def as_json(path: Path, *options: str) -> list[dict[str, Any]]:
    return list(map(json.loads, printed(path, "--format", "json", *options).stdout.splitlines()))


def test_text_marks_what_is_not_python(path: Path) -> None:
    assert text(path) == LINES


def test_layers_have_colours(path: Path) -> None:
    shown = printed(path, "--color", "always", "--filter", "kind == 'call'").stdout.splitlines()
    colours = ["-> app", "\x1b[34m-> [cy", "\x1b[34m-> [c]", "\x1b[35m-> [na", "\x1b[33m-> [ke"]
    for line, start in zip(shown, colours, strict=True):
        assert line.split("\x1b[0m", 1)[1].strip().startswith(start)


def test_json_has_keys_where_they_tell_something(path: Path) -> None:
    events = as_json(path)
    assert [event.get("layer", "python") for event in events] == LAYERS
    assert [event.get("cpu") for event in events] == CPUS
    assert not any(event.get("layer") == "python" or event.get("cpu", 0) is None for event in events)
    assert [*events[5]][-3:] == ["args", "layer", "cpu"]
    assert events[5]["args"] == [
        {"name": "prev_comm", "value": "'app'", "type": "str"},
        {"name": "next_pid", "value": "42", "type": "int"},
    ]
    assert [event["depth"] for event in events] == [0, 1, 2, 3, 4, 4, 4, 3, 2, 1, 0, 0, 0]


def test_csv_has_columns_for_them(path: Path) -> None:
    done = printed(path, "--format", "csv")
    header, *rows = csv.reader(io.StringIO(done.stdout))
    assert header[-3:] == ["task", "layer", "cpu"]
    assert [row[-2] for row in rows] == LAYERS
    assert [row[-1] for row in rows] == ["" if cpu is None else str(cpu) for cpu in CPUS]


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("layer == 'kernel'", [4, 5, 6, 10]),
        ("layer == 'kernel' and func == 'write' and duration > '50ns'", [6]),
        ("layer in ('c', 'native') and kind == 'call'", [2, 3]),
        ("layer != 'python' and not layer == 'kernel'", [1, 2, 3, 7, 8, 9]),
        ("kind == 'event'", [5, 10]),
        ("kind == 'event' and arg == 'next_pid' and value == 43", [10]),
        ("cpu == 3", [1, 2, 3, 4, 5]),
        ("cpu < 3", [6, 7, 8]),
        ("not cpu >= 0", [0, 9, 10, 11, 12]),
        ("mine == True and kind == 'call'", [0]),
    ],
)
def test_filters(path: Path, filter: str, found: list[int]) -> None:
    assert text(path, "--filter", filter) == [LINES[place] for place in found]


def test_hidden_columns_of_events_and_calls(path: Path) -> None:
    def asked(sql: str) -> list[list[Any]]:
        done = ran("sql", path, sql, "--format", "json")
        assert (done.returncode, done.stderr) == (0, "")
        return [[*json.loads(line).values()] for line in done.stdout.splitlines()]

    assert asked("SELECT layer, cpu FROM event") == [list(each) for each in zip(LAYERS, CPUS, strict=True)]
    assert asked("SELECT func, layer, cpu FROM call WHERE layer <> 'python' AND cpu = 3") == [
        ["Order.save", "cython", 3], ["list.append", "c", 3],
        ["flush(int)", "native", 3], ["write", "kernel", 3],
    ]  # fmt: skip
    assert asked("SELECT func, own FROM hot WHERE hot MATCH '(= layer \"native\")'") == [["flush(int)", 80]]
    assert "layer" not in ran("sql", path, "SELECT * FROM event LIMIT 1").stdout
