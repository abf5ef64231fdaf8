"""`pytrace analyse`: the lines and functions that took the time."""

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pexpect
import pytest

from handmade import NS_PER_UNIT, Handmade, command, environment, event, ran
from recording import record

SOURCE = """\
def main():
    wait()
    x\x1b[31m = "größe"


def wait():
    return 1
"""
US = 1000 // NS_PER_UNIT  # a microsecond, in units


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    """A recording with lines (1), and one without (2)."""
    path = tmp_path / "traces.sqlite"
    (tmp_path / "app.py").write_text(SOURCE, encoding="utf-8")
    with Handmade(path) as database:
        for has_lines in (True, False):
            run = database.run("python app.py", directory=str(tmp_path), started=1 << 62)
            for number, (name, line) in enumerate((("main", 1), ("wait", 6)), 1):
                database.code(run, number, name, file=f"{tmp_path}/app.py", line=line)
            database.code(run, 3, "wait", file=f"{tmp_path}/app.py", line=6)  # another process's
            records = [
                event("call", 1),
                event("line", 1, line=2),
                event("call", 2, time=10 * US),
                event("line", 2, line=7),
                event("return", 2, None, time=30 * US, elapsed=30 * US),
                event("call", 3),
                event("line", 3, line=7),
                event("return", 3, None, time=40 * US, elapsed=40 * US),
                event("line", 1, line=3),
                event("return", 1, None, time=5 * US, elapsed=85 * US),
            ]
            kept = records if has_lines else [each for each in records if not each.HasField("at_line")]
            database.segment(run, kept)
    return path


LINES = [
    {"line": 7, "func": "wait", "count": 2, "own": 70_000, "total": 70_000, "average": 35_000},
    {"line": 2, "func": "main", "count": 1, "own": 10_000, "total": 80_000, "average": 80_000},
    {"line": 3, "func": "main", "count": 1, "own": 5_000, "total": 5_000, "average": 5_000},
]


def row(path: Path, run: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"run": run, "file": f"{path.parent}/app.py", "module": "app", **values}


def found(path: Path, *options: object) -> list[dict[str, Any]]:
    done = ran("analyse", path, "--format", "json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return list(map(json.loads, done.stdout.splitlines()))


def test_as_json(path: Path) -> None:
    assert found(path, "--run", 1) == [row(path, 1, line) for line in LINES]
    assert list(found(path, "--run", 1)[0]) == [
        "run", "file", "line", "func", "module", "count", "own", "total", "average",
    ]  # fmt: skip
    assert [each["line"] for each in found(path, "--run", "all")] == [7, 2, 3]


@pytest.mark.parametrize(
    ("key", "order"), [("own", [7, 2, 3]), ("total", [2, 7, 3]), ("average", [2, 7, 3]), ("count", [7, 2, 3])]
)
def test_what_comes_first(path: Path, key: str, order: list[int]) -> None:
    assert [each["line"] for each in found(path, "--run", 1, "--sort", key)] == order
    assert [each["line"] for each in found(path, "--run", 1, "--sort", key, "--limit", 2)] == order[:2]


def test_as_csv(path: Path) -> None:
    done = ran("analyse", path, "--run", 1, "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [*csv.DictReader(io.StringIO(done.stdout))]
    assert rows == [{name: str(value) for name, value in row(path, 1, line).items()} for line in LINES]


def test_as_text(path: Path) -> None:
    done = ran("analyse", path, "--run", 1)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "run 1: python app.py",
        "",
        "The lines with the most own time:",
        "file:line  func            count      own    total  average              source",
        "app.py:7   app.wait            2     70µs     70µs     35µs  ██████████  return 1",
        "app.py:2   app.main            1     10µs     80µs     80µs  █▌          wait()",
        r'app.py:3   app.main            1      5µs      5µs      5µs  ▌           x\x1b[31m = "größe"',
        "",
        "The functions with the most own time:",
        "file:line  func            count      own    total  average",
        "app.py:6   app.wait            2     70µs     70µs     35µs  ██████████",
        "app.py:1   app.main            1     15µs     85µs     85µs  ██",
    ]
    limited = ran("analyse", path, "--run", 1, "--limit", 1).stdout.splitlines()
    assert limited[5] == "… 2 more: --limit 3, or --format json, has all"
    ascii = ran("analyse", path, "--run", 1, PYTHONIOENCODING="ascii").stdout
    assert "##########  return 1" in ascii


@pytest.mark.parametrize("name", ["app.py", "{}/app.py"])
def test_a_file_with_its_figures(path: Path, name: str) -> None:
    done = ran("analyse", path, "--run", 1, "--file", name.format(path.parent))
    assert (done.returncode, done.stderr) == (0, "")
    empty = " " * 38
    assert done.stdout.splitlines() == [
        "run 1: python app.py",
        "",
        f"{path.parent}/app.py, the bar shows the own time:",
        "      count      own    total  average               line",
        f"{empty}                  1  def main():",
        "          1     10µs     80µs     80µs  █▌              2      wait()",
        r'          1      5µs      5µs      5µs  ▌               3      x\x1b[31m = "größe"',
        f"{empty}                  4",
        f"{empty}                  5",
        f"{empty}                  6  def wait():",
        "          2     70µs     70µs     35µs  ██████████      7      return 1",
    ]


def test_a_file_that_is_gone(path: Path) -> None:
    (path.parent / "app.py").unlink()
    done = ran("analyse", path, "--run", 1, "--file", "app.py")
    assert f"({path.parent}/app.py is not there, on this machine)" in done.stdout
    assert "          2     70µs     70µs     35µs  ██████████      7" in done.stdout.splitlines()
    assert "app.py:7   app.wait            2" in ran("analyse", path, "--run", 1).stdout


def test_without_lines_it_shows_functions(path: Path) -> None:
    done = ran("analyse", path)
    assert done.returncode == 0
    assert "record with: pytrace --lines script.py" in done.stderr
    assert "The lines" not in done.stdout
    assert "app.py:6   app.wait            2     70µs" in done.stdout
    assert "app.wait" in ran("analyse", path, "--file", "app.py").stdout
    done = ran("analyse", path, "--format", "json")
    assert (done.returncode, "--lines" in done.stderr) == (0, True)
    assert list(map(json.loads, done.stdout.splitlines())) == [
        row(path, 2, {"line": 6, "func": "wait", "count": 2, "own": 70000, "total": 70000, "average": 35000}),
        row(path, 2, {"line": 1, "func": "main", "count": 1, "own": 15000, "total": 85000, "average": 85000}),
    ]


def test_mistakes(path: Path) -> None:
    for options, said in (
        (("--file", "other.py"), "--file other.py: nothing was recorded in a file of this name"),
        (("--sort", "name"), "one of own, total, average, count is expected"),
        (("--limit", "few"), "a number of lines is expected"),
        (("--run", "7"), "has no run 7"),
    ):
        done = ran("analyse", path, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def test_two_files_of_a_name(path: Path) -> None:
    with Handmade(path) as database:
        database.code(1, 9, "other", file="/srv/app.py")
    done = ran("analyse", path, "--run", 1, "--file", "app.py")
    assert (done.returncode, "which one?" in done.stderr) == (2, True)


def test_a_database_without_a_recording(tmp_path: Path) -> None:
    Handmade(tmp_path / "traces.sqlite").close()
    done = ran("analyse", tmp_path / "traces.sqlite")
    assert (done.returncode, done.stdout) == (0, "")
    assert "holds no recording yet" in done.stderr


def test_damage_is_told(path: Path) -> None:
    with Handmade(path) as database:
        database("UPDATE segment SET data = x'00' WHERE run = 2")
    done = ran("analyse", path, "--run", "all")
    assert (done.returncode, "is damaged" in done.stderr) == (2, True)
    assert "app.py:7" in done.stdout


def test_nobody_reads_on(path: Path) -> None:
    """The pipe is closed at its start."""
    shell = f"{subprocess.list2cmdline(command('analyse', path))} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell.replace('"', "'")], capture_output=True, env=environment())
    assert (done.returncode in (0, 141), done.stderr) == (True, b"")


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_on_a_terminal(path: Path, no_color: str) -> None:
    program, *arguments = command("analyse", path, "--run", "1")
    shown = pexpect.run(
        subprocess.list2cmdline([program, *arguments]).replace('"', "'"),
        env=environment(TERM="xterm", NO_COLOR=no_color),
        encoding="utf-8",
    )
    assert ("\x1b[33m██████████\x1b[0m" in shown) is (not no_color)
    assert ("\x1b" in shown) is not bool(no_color)


def test_a_recorded_program(tmp_path: Path) -> None:
    program = """
        import time

        def work(n):
            for _ in range(n):
                time.sleep(0.002)
            return n

        def main():
            work(5)
            work(10)

        main()
    """
    recording = record(tmp_path, program, "--lines")
    rows = {(each["func"], each["line"]): each for each in found(recording.database)}
    assert found(recording.database)[0]["line"] == 6
    assert rows["work", 6]["count"] == 15
    assert rows["work", 6]["own"] >= 30_000_000
    assert rows["main", 11]["total"] >= 20_000_000 > rows["main", 11]["own"]
