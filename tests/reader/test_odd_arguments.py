"""Arguments, streams and databases that nobody gives on purpose: an answer or a message, no
traceback."""

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from handmade import Handmade, command, environment, event, ran

FULL = "/dev/full"


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "pay", ["user"])
        made.segment(run, [event("call", 1, "bob"), event("return", 1, time=5)])
    return path


def shell(line: str, path: Path, *words: str) -> tuple[int, str]:
    """Exit status and messages of a line of shell, in which $@ is a command of ours."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line, "bash", *command(words[0], *words[1:])],
        cwd=path.parent, env=environment(), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    messages = done.stderr.decode()
    assert "Traceback" not in messages
    return done.returncode, messages


@pytest.mark.parametrize(
    ("word", "arguments", "message"),
    [
        ("print", ["--limit", "9" * 5000], "--limit 999"),
        ("print", ["--limit", "-1"], "a number of events is expected"),
        ("print", ["--around", "9223372036854775808"], "the id of an event is expected"),
        ("print", ["--run", "0"], "the number of a run is expected"),
        ("print", ["--run", "99999999999999999999"], "has no run"),
        ("print", ["--run", "all", "--follow"], "--follow is for one run"),
        ("print", ["--format", "xml"], "one of text, json, csv is expected"),
        ("print", ["--follow=1"], "--follow takes no value"),
        ("print", ["--filter"], "--filter: F is expected after it"),
        ("print", ["--filter", "--limit", "1"], "--filter: F is expected after it"),
        ("print", ["--around", "1", "--filter", "run == 1"], "--around does not go with --filter"),
        ("print", ["--stack", "1", "--around", "1"], "does not go with"),
        ("print", ["--limt", "3"], "did you mean --limit?"),
        ("print", ["traces.sqlite", "b"], "'b' is one argument too many"),
        ("print", [""], "the name of a database is expected"),
        ("print", [b"\xff.sqlite"], "there is no \\udcff.sqlite"),
        ("info", ["--doctor", "--extension"], "--extension does not go with --doctor"),
        ("sql", [b"SELECT '\xff'"], "a statement is a text in UTF-8"),
        ("sql", ["traces.sqlite", b"\xff"], "a statement is a text in UTF-8"),
        ("sql", ["x", "y", "z"], "'z' is one argument too many"),
    ],
)
def test_arguments(path: Path, word: str, arguments: list[str | bytes], message: str) -> None:
    words = [*command(word), *arguments]
    done = subprocess.run(
        words, cwd=path.parent, env=environment(), capture_output=True, timeout=60, check=False
    )
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert said.startswith("pytrace: ")
    assert message in said
    assert len(said) < 500
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words", [["print"], ["info"], ["sql", "SELECT 1"], ["print", "--help"], ["sql", "--help"]]
)
def test_streams(path: Path, words: list[str]) -> None:
    assert shell('"$@" > /dev/full', path, *words)[0] == 2
    assert shell('"$@" 2>&-', path, *words)[0] == 0
    assert shell('"$@" <&-', path, *words)[0] == 0
    status, messages = shell('"$@" | true', path, *words)
    assert (status in (0, 141), messages) == (True, "")


def test_messages_without_standard_error_go_nowhere(path: Path) -> None:
    for words in (
        ["print", "--filter", "func =="],
        ["print", "--filter", "func == 'never'"],
        ["sql", "SELEC"],
        ["print", "--limt"],
    ):
        done = subprocess.run(
            ["bash", "-c", '"$@" 2>&-', "bash", *command(*words)],  # type: ignore[arg-type]
            cwd=path.parent, env=environment(), stdout=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
        assert done.stdout == b""


def test_sql_without_standard_input(path: Path) -> None:
    status, messages = shell('"$@" <&-', path, "sql")
    assert (status, messages) == (2, "pytrace: there is no query, and standard input is closed\n")


@pytest.mark.parametrize("bytes_", ["\\0;", "\\377;", "SELECT 1; \\377;"])
@pytest.mark.parametrize("encoding", ["utf-8:strict", "utf-8:surrogateescape"])
def test_statements_that_are_no_text(path: Path, bytes_: str, encoding: str) -> None:
    line = f"printf '{bytes_}' | PYTHONIOENCODING={encoding} \"$@\""
    status, messages = shell(line, path, "sql", str(path))
    assert (status, "a statement is a text in UTF-8" in messages) == (2, True)


# ---- databases ----


def test_a_summary_that_never_ends(path: Path) -> None:
    with Handmade(path) as made:
        made("UPDATE segment SET codes = ?", [b"\x80" * 5_000_000])
    before = monotonic()
    assert ran("info", path).returncode == 0
    assert monotonic() - before < 30


def test_arguments_in_arguments_in_arguments(path: Path) -> None:
    with Handmade(path) as made:
        made("UPDATE code SET arguments = ?", ["[" * 500_000 + "]" * 500_000])
    done = ran("print", path, "--filter", "func == 'pya'")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "no event matches" in done.stderr


def test_a_very_long_name_of_a_thread_makes_no_long_lines(path: Path) -> None:
    with Handmade(path) as made:
        made.thread(1, 2, 101, "t" * 1_000_000)
        made.segment(1, [event("call", 1, "bob")], stream=2, start=100)
    lines = ran("print", path).stdout.splitlines()
    assert [len(line) < most for line, most in zip(lines, (200, 200, 300), strict=True)] == [True] * 3


def test_a_path_that_is_no_text(path: Path) -> None:
    odd = os.fsencode(path.parent) + b"/\xff.sqlite"
    os.rename(path, odd)
    for word in ("print", "info", "sql"):
        words = [*command(word), odd, *([b"SELECT 1"] if word == "sql" else [])]
        done = subprocess.run(words, env=environment(), capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_the_extension_is_named_as_it_is() -> None:
    done = ran("info", "--extension")
    assert os.path.dirname(done.stdout).startswith(sys.prefix)
    assert os.path.exists(done.stdout.removesuffix("\n"))
