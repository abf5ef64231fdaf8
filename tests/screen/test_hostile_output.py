"""The output of `print`, `sql` and `info` cannot move a terminal's cursor, nor turn text around:
whatever names and values are. To a pipe the bytes are what was asked for."""

import os
import re
import subprocess
from pathlib import Path

import pexpect
import pytest

import hostile
from handmade import Handmade, command, environment

BAD = "\x1b[31m\u202e\x9b2J"
COLOURS = re.compile(r"\x1b\[(0|1|2|32|36|1;31|1;33)m")


@pytest.fixture(scope="module", name="path")
def path_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile in its own name, too."""
    path = tmp_path_factory.mktemp("hostile") / f"tr{BAD}.sqlite"
    hostile.write(path)
    with Handmade(path) as made:
        made(f'CREATE TABLE "t{BAD}" ("c{BAD}" TEXT DEFAULT \'{BAD}\')')
        made(f'INSERT INTO "t{BAD}" VALUES (?)', [BAD])
        made("UPDATE run SET python = ?", [BAD])
    return path


def terminal(word: str, *arguments: object, status: int = 0) -> str:
    """The bytes that a terminal gets, from standard output and standard error."""
    process = pexpect.spawn(
        command(word, *arguments)[0],
        command(word, *arguments)[1:],
        env=environment(TERM="xterm"),
        encoding="utf-8",
        timeout=60,
        dimensions=(50, 200),
    )
    output = str(process.read())
    process.close()
    assert (process.exitstatus, process.signalstatus) == (status, None), output
    return output


def assert_harmless(output: str) -> None:
    bad = re.search(r"[^ -~\r\n]", "".join(c if not c.isprintable() else "x" for c in output))
    assert bad is None, output[max(bad.start() - 100, 0) :][:200]
    assert "\n" in output


QUERIES = (
    "SELECT * FROM event",
    "SELECT * FROM argument",
    "SELECT * FROM run JOIN thread JOIN code",
    f'SELECT 1 AS "{BAD}", char(27, 10, 155, 8238) AS b',
    f'SELECT * FROM "t{BAD}"',
    "SELECT CAST(x'1b5b33316d' AS TEXT) || char(7), sql FROM sqlite_schema",
)


@pytest.mark.parametrize("format", ["text", "json", "csv"])
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_rows_of_a_query(path: Path, format: str, query: str) -> None:
    assert_harmless(terminal("sql", path, query, "--format", format))


@pytest.mark.parametrize("format", ["text", "json", "csv"])
def test_events(path: Path, format: str) -> None:
    assert_harmless(terminal("print", path, "--color", "never", "--format", format))
    id = terminal(
        "sql", path, "SELECT min(id) AS id FROM event WHERE kind = 'return'", "--format", "csv"
    ).split()[-1]
    for about in ("--around", "--stack"):
        assert_harmless(terminal("print", path, "--color", "never", "--format", format, about, id))


def test_colours_are_our_own(path: Path) -> None:
    shown = terminal("print", path)
    assert COLOURS.search(shown)
    assert_harmless(COLOURS.sub("", shown))


@pytest.mark.parametrize("format", ["text", "json"])
def test_info(path: Path, format: str) -> None:
    assert_harmless(terminal("info", path, "--format", format))


@pytest.mark.parametrize(
    ("word", "arguments"),
    [
        ("print", ["{path}.missing"]),
        ("print", ["{folder}"]),
        ("print", ["{path}", "--run", "99"]),
        ("print", ["{path}", "--limit", BAD]),
        ("print", ["{path}", "--format", BAD]),
        ("print", ["{path}", f"--{BAD}"]),
        ("print", ["{path}", BAD]),
        ("print", ["{path}", "--filter", f"func == '{BAD}"]),
        ("print", ["{path}", "--filter", BAD]),
        ("read", ["{path}", "--filter", BAD]),
        ("sql", ["{path}", f'SELECT "{BAD}" FROM x{BAD}']),
        ("sql", ["{path}", f"SELECT * FROM 't{BAD}' WHERE {BAD}"]),
        ("sql", ["{path}", f'DELETE FROM "t{BAD}"']),
        ("info", ["{path}.missing"]),
    ],
)
def test_mistakes(path: Path, word: str, arguments: list[str]) -> None:
    written = [each.replace("{path}", str(path)).replace("{folder}", str(path.parent)) for each in arguments]
    assert_harmless(terminal(word, *written, status=2))


def test_filters(path: Path) -> None:
    assert_harmless(terminal("print", path, "--explain", "--filter", f"func == '{BAD}' and value == '{BAD}'"))
    nothing = terminal("print", path, "--filter", f"func == 'fun{BAD}c' and arg == 'a\x1b'")
    assert "no event" in nothing.lower()
    assert_harmless(nothing)


MODES = (
    "column", "columns", "csv", "html", "insert", "json", "jsonl", "line", "list", "lines", "python", "tabs",
    "tcl", "text", "qbox", "box", "table",
)  # fmt: skip


@pytest.mark.parametrize(
    "format", ["text", *(pytest.param(each, marks=pytest.mark.slow) for each in ("json", "csv"))]
)
def test_the_shell(path: Path, format: str) -> None:
    words = command("sql", path, "--format", format)
    environ = environment(TERM="dumb", HOME=str(path.parent))
    shell = pexpect.spawn(
        words[0], words[1:], env=environ, encoding="utf-8", timeout=60, dimensions=(50, 4000)
    )
    output = ""

    def say(line: str) -> None:
        nonlocal output
        shell.sendline(line)
        shell.expect_exact("pytrace> ")
        output += str(shell.before)

    shell.expect_exact("pytrace> ")
    output += str(shell.before)
    say("SELECT * FROM event;")
    for mode in MODES:
        say(f".mode {mode}")
        say("SELECT value, name FROM argument, code LIMIT 60;")
        say("SELECT c.* FROM run AS c;")
    for line in (
        ".schema",
        ".dump",
        ".tables",
        ".databases",
        "SELECT nothing FROM code;",
        ".mode x",
        ".help",
    ):
        say(line)
    name = "SELECT name FROM sqlite_schema WHERE name LIKE 't%' AND name NOT LIKE 'thread'"
    say(f"SELECT json_extract('[]', ({name}));")
    say("SELECT * FROM t\t\t;")  # completion
    shell.sendline(".quit")
    output += str(shell.read())
    assert_harmless(output.replace("\t", "").replace("\x07", ""))  # the bell of readline


def test_bytes_in_a_pipe_stay_as_they_are(path: Path) -> None:
    query = f'SELECT "c{BAD}" AS "{BAD}" FROM "t{BAD}"'
    done = subprocess.run(
        command("sql", path, query, "--format", "csv"), capture_output=True, env=environment(), check=True
    )
    assert done.stdout.decode() == f"{BAD}\r\n{BAD}\r\n"
    assert os.path.exists(path)
