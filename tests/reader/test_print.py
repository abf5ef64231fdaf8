"""pytrace print over databases written by hand: order, choice of runs, formats, damage."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handmade import EPOCH_NS, EVENT_IDS, Handmade, event, printed, started, trace_pb2, value, zstd
from pytracer.messages import printable


def rows(*arguments: object, cwd: Path | None = None) -> list[dict[str, Any]]:
    done = printed(*arguments, "--format", "json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.sqlite"


def record_one(made: Handmade, text: str = "hello", **columns: object) -> int:
    """A run with a call of `main` and its return."""
    run = made.run(**columns)
    made.code(run, 1, "main", ["text"], line=7)
    made.segment(run, [event("call", 1, text, time=10), event("return", 1, None, time=25)])
    return run


def test_json_lines_to_the_letter(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main", line=3)
        made.code(
            run, 2, "Order.pay", ["self", "amount"], module="shop.order", file="/shop/order.py", line=10
        )
        made.type(run, 7, "shop.order.Order")
        made.type(run, 8, "ValueError")
        order = trace_pb2.Value(address=0x7F00, type=7)
        error = value(ValueError("x\n"), type=8)
        segment = made.segment(
            run,
            [
                event("call", 1, time=10),
                event("call", 2, order, 5, time=20),
                event("raise", 2, error, time=5, line=12),
                event("exception", 2, error, time=3, elapsed=8),
                event("log", 1, "hello", 3, time=9, line=4, names=["n"]),
                event("lost", 17, time=3),
                event("return", 1, [1, "a"], time=1000, elapsed=1040),
            ],
        )
    common: dict[str, object] = {"run": run, "pid": 100, "tid": 100, "thread": "MainThread"}
    main = common | {"module": "app", "func": "main", "file": "/home/me/app.py", "line": 3, "depth": 0}
    pay = common | {
        "module": "shop.order", "func": "Order.pay", "file": "/shop/order.py", "line": 10, "depth": 1,
    }  # fmt: skip
    raised = [{"name": "exception", "value": "ValueError('x\\n')", "type": "ValueError"}]
    expected: list[dict[str, object]] = [
        main | {"kind": "call", "duration": None, "args": []},
        pay
        | {
            "kind": "call",
            "duration": None,
            "args": [
                {"name": "self", "value": "<shop.order.Order at 0x7f00>", "type": "shop.order.Order"},
                {"name": "amount", "value": "5", "type": "int"},
            ],
        },
        pay | {"kind": "raise", "line": 12, "duration": None, "args": raised},
        pay | {"kind": "exception", "duration": 32, "args": raised},
        main
        | {
            "kind": "log",
            "line": 4,
            "duration": None,
            "args": [
                {"name": "message", "value": "'hello'", "type": "str"},
                {"name": "n", "value": "3", "type": "int"},
            ],
        },
        common
        | {"kind": "lost", "module": "", "func": "", "file": "", "line": 0, "depth": 0, "duration": None}
        | {"args": [{"name": "count", "value": "17", "type": "int"}]},
        main
        | {
            "kind": "return",
            "duration": 4160,
            "args": [{"name": "return value", "value": "[1, 'a']", "type": "list"}],
        },
    ]
    times = [40, 120, 140, 152, 188, 200, 4200]
    for index, (row, time) in enumerate(zip(expected, times, strict=True)):
        row |= {"id": segment * EVENT_IDS + index, "time": EPOCH_NS + time}
    assert rows(path) == expected


def test_generators_have_a_yield_value(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "numbers")
        made.segment(
            run,
            [
                event("call", 1, time=1),
                event("yield", 1, 5, time=2),
                event("resume", 1, time=3),
                event("yield", 1, 6, time=4),
                event("throw", 1, value(KeyError(1), type=9), time=5),
            ],
        )
        made.type(run, 9, "KeyError")
    found = [(row["kind"], row["duration"], [arg["name"] for arg in row["args"]]) for row in rows(path)]
    assert found == [
        ("call", None, []),
        ("yield", 8, ["yield value"]),
        ("resume", None, []),
        ("yield", 16, ["yield value"]),
        ("throw", None, ["exception"]),
    ]


def test_text_is_a_tree(path: Path) -> None:
    with Handmade(path) as made:
        record_one(made)
    lines = printed(path).stdout.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [
        "MainThread  -> app.main(text='hello')",
        "MainThread  <- None  100ns",
    ]


def test_csv(path: Path) -> None:
    with Handmade(path) as made:
        record_one(made, "a,b\n")
    table = list(csv.DictReader(io.StringIO(printed(path, "--format", "csv").stdout)))
    as_json = rows(path)
    assert list(table[0]) == [*as_json[0], "task", "layer", "cpu"]
    assert [row["func"] for row in table] == ["main", "main"]
    assert [json.loads(row["args"]) for row in table] == [row["args"] for row in as_json]


# ---- order ----


def test_threads_are_merged_by_time(path: Path) -> None:
    """Three threads whose segments overlap, follow each other, and lie within each other."""
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        made.thread(run, 2, 102, "worker")
        made.thread(run, 3, 103, "other")
        spans = {1: [(0, 3, 200), (600, 4, 100)], 2: [(50, 5, 150), (5000, 1, 200)], 3: [(10, 7, 201)]}
        for stream, segments in spans.items():
            for sequence, (start, step, count) in enumerate(segments):
                steps = [event("call", 1, n, time=step, depth=0) for n in range(count)]
                made.segment(run, steps, stream=stream, sequence=sequence, start=start)
    found = rows(path)
    assert len(found) == 851
    assert [row["time"] for row in found] == sorted(row["time"] for row in found)
    for thread, count in (("MainThread", 300), ("worker", 350), ("other", 201)):
        mine = [row for row in found if row["thread"] == thread]
        assert [row["id"] for row in mine] == sorted(row["id"] for row in mine)
        assert len(mine) == count


def test_events_of_one_time_come_in_the_order_of_their_ids(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        made.thread(run, 2, 102, "worker")
        made.segment(run, [event("call", 1, 1), event("call", 1, 2)], stream=2)
        made.segment(run, [event("call", 1, 3), event("call", 1, 4)], stream=1)
        made.segment(run, [event("call", 1, 5), event("call", 1, 6)], stream=1, sequence=1)
    assert [row["args"][0]["value"] for row in rows(path)] == ["1", "2", "3", "4", "5", "6"]


def test_more_events_of_one_time_than_a_page_has(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        made("BEGIN")
        for sequence in range(10):
            made.segment(run, [event("call", 1, 100 * sequence + n) for n in range(100)], sequence=sequence)
        made("COMMIT")
    assert [row["args"][0]["value"] for row in rows(path)] == [str(n) for n in range(1000)]


def test_more_segments_than_are_listed_at_once(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        made("BEGIN")
        for sequence in range(600):  # groups of them start at the same time
            made.segment(run, [event("call", 1, sequence)], sequence=sequence, start=sequence // 300)
        made("COMMIT")
    assert [row["args"][0]["value"] for row in rows(path)] == [str(n) for n in range(600)]


def test_runs(path: Path) -> None:
    with Handmade(path) as made:
        first = record_one(made, "first", clock_epoch_ns=EPOCH_NS + 60)
        second = record_one(made, "second")
    assert {row["run"] for row in rows(path)} == {second}
    assert {row["run"] for row in rows(path, "--run", first)} == {first}
    every = rows(path, "--run", "all")
    assert [(row["run"], row["kind"]) for row in every] == [
        (second, "call"),
        (first, "call"),
        (second, "return"),
        (first, "return"),
    ]
    assert printed(path, "--run", "all").stdout.splitlines()[0].split()[1:3] == [str(second), "MainThread"]
    missing = printed(path, "--run", 9)
    assert missing.returncode == 2
    assert missing.stderr == f"pytrace: {path} has no run 9; there are: {first}, {second}\n"


def test_limit(path: Path) -> None:
    with Handmade(path) as made:
        record_one(made)
    assert [row["kind"] for row in rows(path, "--limit", 1)] == ["call"]
    assert rows(path, "--limit", 0) == []
    assert len(rows(path, "--limit", 9)) == 2


def test_the_default_database(path: Path) -> None:
    with Handmade(path) as made:
        record_one(made)
    assert len(rows(cwd=path.parent)) == 2


@pytest.mark.parametrize(
    "arguments",
    [("--limit", "-1"), ("--limit", "x"), ("--run", "0"), ("--run", "x"), ("--follow", "--run", "all")],
)
def test_bad_options(path: Path, arguments: tuple[str, ...]) -> None:
    done = printed(path, *arguments)
    assert done.returncode == 2
    assert arguments[0] in done.stderr
    assert "Traceback" not in done.stderr


# ---- strange content ----


def test_unusual_names_stay_themselves(path: Path) -> None:
    name = "na\x1bme \u202e\ud800 \x9b"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "f", ["é"])
        stored = name.encode("utf-8", "surrogatepass")
        made("UPDATE code SET func = CAST(? AS TEXT), file = CAST(? AS TEXT)", (stored, b"/\xff"))
        made("UPDATE thread SET name = CAST(? AS TEXT)", (stored,))
        made.segment(run, [event("call", 1, "Zoë \ud800")])
    [row] = rows(path)
    assert (row["func"], row["thread"], row["file"]) == (name, name, "/\\xff")
    assert row["args"] == [{"name": "é", "value": "'Zoë \\ud800'", "type": "str"}]
    [line] = printed(path).stdout.splitlines()
    assert line.isprintable()
    assert "-> app.na\\x1bme \\u202e\\ud800 \\x9b(é='Zoë \\ud800')" in line
    plain = printed(path, PYTHONIOENCODING="ascii").stdout
    assert plain.isascii()
    assert "Zo\\xeb" in plain


UNSAFE = 'a\x1b[31m\n\r\t\x00\x07\x7f\x9b\u202e\u200b\ud800\U000e0001\U0001f388"\\é'


def test_no_text_breaks_a_line(path: Path) -> None:
    """Names of functions, threads, arguments and types, and values, whatever is in them."""
    with Handmade(path) as made:
        run = made.run()
        stored = UNSAFE.replace("\x00", "").encode("utf-8", "surrogatepass")
        made.code(run, 1, "f", [UNSAFE])
        made.type(run, 1, "T")
        for column in ("code SET func", "code SET module", "thread SET name", "type SET name"):
            made(f"UPDATE {column} = CAST(? AS TEXT)", (stored,))
        made.segment(run, [event("call", 1, trace_pb2.Value(address=1, type=1)), event("return", 1, UNSAFE)])
        log = event("log", 1, "", 5)
        log.name.append(stored)
        made.segment(run, [log], sequence=1, start=1)
    for format in ("text", "json", "csv"):
        lines = printed(path, "--format", format).stdout.split("\n")
        assert len(lines) == (5 if format == "csv" else 4)
        assert all(line.isprintable() for line in lines)
    call, returned, logged = rows(path)
    name = UNSAFE.replace("\x00", "")
    assert (call["func"], call["module"], call["thread"]) == (name, name, name)
    shown = printable(name)  # a value is as repr shows it
    assert call["args"] == [{"name": UNSAFE, "value": f"<{shown} at 0x1>", "type": shown}]
    assert returned["args"][0]["value"] == repr(UNSAFE)
    assert logged["args"][1]["name"] == name


def test_definitions_that_are_missing(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.segment(run, [event("call", 5, 1, trace_pb2.Value(address=1, type=3))], stream=4, process=9)
    [row] = rows(path)
    assert (row["func"], row["pid"], row["tid"], row["thread"]) == ("?", 0, 0, "")
    assert [arg["name"] for arg in row["args"]] == ["argument 1", "argument 2"]


def test_an_event_larger_than_the_usual_room(path: Path) -> None:
    """Many values, and types with long names: more text than the event has bytes."""
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "f", [f"a{n}" for n in range(3000)])
        made.type(run, 1, "m." + "LongName" * 100)
        objects = [trace_pb2.Value(address=n, type=1) for n in range(1, 3001)]
        made.segment(run, [event("call", 1, 1), event("call", 1, *objects), event("return", 1, 2)])
    found = rows(path)
    assert [len(row["args"]) for row in found] == [1, 3000, 1]
    assert found[1]["args"][2999]["value"] == f"<m.{'LongName' * 100} at 0xbb8>"


# ---- damage ----


def damage_one(path: Path, sql: str) -> tuple[int, subprocess.CompletedProcess[str]]:
    """Three segments, the second one changed by `sql`. Returns its id and what print did."""
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        ids = [
            made.segment(run, [event("call", 1, n, time=1)] * 5, sequence=n, start=n * 100) for n in range(3)
        ]
        made(f"{sql} WHERE id = ?", (ids[1],))
    return ids[1], printed(path, "--format", "json")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE segment SET data = x'00112233445566778899'",
        "UPDATE segment SET data = x''",
        "UPDATE segment SET data = substr(data, 1, length(data) - 5)",
        "UPDATE segment SET size = size - 1",
        "UPDATE segment SET size = 1 << 40",
        "UPDATE segment SET size = -1",
        "UPDATE segment SET start = -5",
        "UPDATE segment SET base_depth = 1 << 40",
    ],
)
def test_a_damaged_segment_is_named_and_the_others_shown(path: Path, sql: str) -> None:
    damaged, done = damage_one(path, sql)
    assert done.returncode == 2
    values = [json.loads(line)["args"][0]["value"] for line in done.stdout.splitlines()]
    assert values == ["0"] * 5 + ["2"] * 5
    assert f"segment {damaged} of run 1 is damaged" in done.stderr
    assert "1 segment is damaged: 5 events could not be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_clock_that_makes_no_sense(path: Path) -> None:
    with Handmade(path) as made:
        record_one(made, clock_scale=-1)
    done = printed(path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "its run's clock makes no sense" in done.stderr


def test_what_comes_before_the_damage_is_shown(path: Path) -> None:
    good = trace_pb2.Events(event=[event("call", 1, n, time=1) for n in range(3)]).SerializeToString()
    body = good + b"\x0a\xff\xff\xff"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        made.segment(run, [event("call", 1, 0, time=1)] * 7)
        made("UPDATE segment SET data = ?, size = ?", (zstd.compress(body), len(body)))
    done = printed(path, "--format", "json")
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 3
    assert "4 events could not be read" in done.stderr


def test_a_bomb_is_not_unpacked(path: Path) -> None:
    with Handmade(path) as made:
        run = record_one(made)
        made.segment(run, [event("call", 1, 0)], sequence=1)
        made("UPDATE segment SET data = ? WHERE sequence = 1", (zstd.compress(bytes(1 << 30)),))
    done = printed(path, "--format", "json")
    assert (done.returncode, len(done.stdout.splitlines())) == (2, 2)


# ---- nothing there yet ----


def test_a_database_without_runs(path: Path) -> None:
    Handmade(path).close()
    for arguments in ((), ("--follow",), ("--run", "all")):
        done = printed(path, *arguments)
        assert (done.returncode, done.stdout) == (0, "")
        assert "holds no recording yet" in done.stderr


def test_a_run_without_events(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run(finished=False)
        done = printed(path)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == "pytrace: nothing has been recorded yet; --follow waits for what comes\n"
        made.finish(run)
        assert printed(path).stderr == "pytrace: nothing was recorded in this run\n"
        made("UPDATE run SET evicted = 5")
        assert "removed to keep the size" in printed(path).stderr


# ---- pipes and terminals ----


def test_a_closed_pipe_ends_it_quietly(path: Path) -> None:
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        for sequence in range(20):
            made.segment(run, [event("call", 1, n) for n in range(1000)], sequence=sequence, start=sequence)
    reader, writer = os.pipe()
    with started(path, stdout=writer) as process:
        os.close(writer)
        with open(reader, "rb") as pipe:
            assert b"step(n=0)" in pipe.readline()
        assert process.wait(60) == 141
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_output_that_cannot_be_written(path: Path) -> None:
    with Handmade(path) as made:
        record_one(made)
    full = os.open("/dev/full", os.O_WRONLY)
    with started(path, stdout=full) as process:
        os.close(full)
        assert process.wait(60) == 2
        assert process.stderr is not None
        assert process.stderr.read() == "pytrace: the output cannot be written: No space left on device\n"


def on_a_terminal(path: Path, *arguments: str, **environment: str) -> str:
    master, terminal = pty.openpty()
    with started(path, *arguments, stdout=terminal, **environment) as process:
        os.close(terminal)
        output = b""
        while True:
            try:
                block = os.read(master, 4096)
            except OSError:  # EIO: everybody has closed the terminal
                break
            if not block:
                break
            output += block
        assert process.wait(60) == 0
    os.close(master)
    return output.decode()


def test_colours_are_for_terminals(path: Path) -> None:
    with Handmade(path) as made:
        record_one(made)
    assert "\x1b[" in on_a_terminal(path, TERM="xterm")
    assert "\x1b[" not in on_a_terminal(path, TERM="xterm", NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal(path, TERM="dumb")
    assert "\x1b[" not in on_a_terminal(path, "--color", "never", TERM="xterm")
    assert "\x1b[" in on_a_terminal(path, "--color", "always", TERM="dumb")
    assert "\x1b[" in printed(path, "--color", "always").stdout
    assert "\x1b[" not in printed(path).stdout


def test_event_loops_of_other_libraries_are_not_imported(tmp_path: Path) -> None:
    """urwid would import each that is installed. They can be imported afterwards."""
    for name in ("tornado", "trio", "twisted"):
        (tmp_path / f"{name}.py").write_text("import sys\nsys.exit(f'{__name__} is imported')\n")
    script = "import sys; from pytracer.reader.screen import app; assert 'urwid' in sys.modules; import trio"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "trio is imported\n")


def test_modules_are_loaded_when_needed(path: Path) -> None:
    """`pytrace print --help` and a mistake in the options cost no more than the options' parser."""
    script = (
        "import sys; from pytracer.reader import subcommands\n"
        "heavy = {'apsw', 'json', 'pytracer.reader.database'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
