"""`pytrace sql` as people use it: a query, statements on standard input, formats, mistakes,
Ctrl-C."""

import csv
import io
import json
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pexpect
import pytest
from pytracer.reader.subcommands import main

from handmade import Handmade, command, environment, event, ran
from pytracer import __main__ as main_module

_SEGMENT = 10_000  # events


def write(path: Path, events: int = 2) -> Path:
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "pay", ["user"])
        for sequence in range(0, events, _SEGMENT):
            pairs = min(events - sequence, _SEGMENT) // 2
            records = [event("call", 1, "bob"), event("return", 1, 7, time=5)] * pairs
            database.segment(run, records, sequence=sequence, start=sequence * 5)
    return path


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    return write(tmp_path / "traces.sqlite")


LONG = "SELECT count(*) FROM event AS a, event AS b, event AS c WHERE a.id + b.id + c.id < 0"


def asked(
    *arguments: object, input: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("sql", *arguments),
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


# ---- arguments ----


def test_a_query_on_a_database(path: Path) -> None:
    found = ran("sql", path, "SELECT id, func, duration, args FROM event")
    assert found.stdout.splitlines() == [
        "    id  func  duration  args",
        "------  ----  --------  " + "-" * 55,
        """262144  pay             [{"name": "user", "value": "'bob'", "type": "str"}]""",
        """262145  pay         20  [{"name": "return value", "value": "7", "type": "int"}]""",
    ]
    assert (found.stderr, found.returncode) == ("", 0)


def test_a_query_alone_is_asked_of_the_database_here(path: Path) -> None:
    found = ran("sql", "SELECT count(*) AS events FROM event", cwd=path.parent)
    assert found.stdout == "events\n------\n     2\n"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_options_may_stand_anywhere(path: Path, place: int) -> None:
    words = [str(path), "SELECT 1 AS a"]
    words[place:place] = ["--format", "json"]
    assert ran("sql", *words).stdout == '{"a": 1}\n'


def test_a_single_word_is_a_database(tmp_path: Path) -> None:
    found = asked("nowhere.sqlite", cwd=tmp_path)
    assert found.stderr == (
        "pytrace: there is no nowhere.sqlite. Record one with: pytrace -o nowhere.sqlite script.py\n"
    )
    assert found.returncode == 2


def test_a_file_with_spaces_in_its_name_is_a_database(tmp_path: Path) -> None:
    found = asked(write(tmp_path / "select 1"), input="SELECT 1")
    assert (found.stdout, found.returncode) == ("1\n-\n1\n", 0)


def test_the_command_line_knows_the_word(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("sys.argv", ["pytrace", "sql", str(path), "SELECT 1"])
    assert main_module.main() == 0
    assert capfdbinary.readouterr().out == b"1\n-\n1\n"


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main("sql", ["--help"])
    said = capsys.readouterr().out
    assert re.search(r"^  event +all that happened", said, re.M)
    assert 'pytrace sql "SELECT' in said


# ---- statements ----


def test_several_statements(path: Path) -> None:
    found = ran("sql", path, "SELECT 1 AS a; SELECT 2 AS b WHERE 0; CREATE TEMP TABLE t(x); SELECT 'c' AS d")
    assert found.stdout == "a\n-\n1\n\nb\n-\n\nd\n-\nc\n"


def test_what_is_temporary_lasts_as_long_as_the_session(path: Path) -> None:
    statements = "CREATE TEMP TABLE kept AS SELECT * FROM event;\nSELECT count(*) AS n\nFROM kept;\n"
    found = asked(path, "--format", "json", input=statements)
    assert found.stdout == '{"n": 2}\n'


def test_statements_on_standard_input_are_answered_as_they_come(path: Path) -> None:
    with subprocess.Popen(
        command("sql", path, "--format", "json"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        encoding="utf-8",
    ) as process:
        assert process.stdin
        assert process.stdout
        for number in range(3):
            process.stdin.write(f"-- a comment; with a semicolon\nSELECT {number} AS n,\n ';' AS text;\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == {"n": number, "text": ";"}
        process.stdin.write("SELECT 'the last needs no semicolon' AS n")
        process.stdin.close()
        assert json.loads(process.stdout.readline())["n"].startswith("the last")
    assert process.returncode == 0


def test_nothing_on_standard_input(path: Path) -> None:
    found = asked(path, input=" \n -- nothing\n")
    assert (found.stdout, found.stderr, found.returncode) == ("", "", 0)


# ---- formats ----

VALUES = """SELECT 1 AS a, 1.5 AS b, NULL AS c, 'x,"y"' || char(10) || char(27) AS d,
    x'00ff' AS e, 9e999 AS f, char(0x202e, 233) AS g, 'again' AS a"""


def test_text_has_nothing_that_a_terminal_obeys(path: Path) -> None:
    found = ran("sql", path, VALUES)
    assert found.stdout.splitlines()[2:] == ["1  1.5     x,\"y\"\\n\\x1b  x'00ff'  inf  \\u202eé  again"]


def test_json_is_ascii_and_loses_no_column(path: Path) -> None:
    found = ran("sql", path, VALUES, "--format", "json")
    assert found.stdout.isascii()
    assert json.loads(found.stdout) == {
        "a": 1, "b": 1.5, "c": None, "d": 'x,"y"\n\x1b', "e": "00ff", "f": float("inf"),
        "g": "\u202eé", "a:1": "again",
    }  # fmt: skip


def test_csv(path: Path) -> None:
    found = subprocess.run(
        command("sql", path, VALUES, "--format", "csv"), env=environment(), capture_output=True, check=True
    )
    text = found.stdout.decode()
    assert text.startswith("a,b,c,d,e,f,g,a\r\n")
    assert next(csv.reader(io.StringIO(text.split("\r\n", 1)[1], newline=""))) == [
        "1", "1.5", "", 'x,"y"\n\x1b', "00ff", "inf", "\u202eé", "again",
    ]  # fmt: skip
    assert ran("sql", path, "SELECT 1 AS a WHERE 0", "--format", "csv").stdout == "a\n"


def test_columns_are_as_wide_as_the_first_rows(path: Path) -> None:
    rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
    query = f"{rows} SELECT substr('aaaaaaaaaaaaaaaaaaaa', 1, i / 20) AS a, i, '表' AS w, 'z' AS z FROM n"
    lines = ran("sql", path, query).stdout.splitlines()
    assert lines[0] == "a             i  w   z"
    assert lines[12] == "             11  表  z"
    assert lines[-1] == "aaaaaaaaaaaaaaa  300  表  z"


# ---- mistakes ----

MISTAKES: list[tuple[str, list[str]]] = [
    (
        "SELECT nonsense FROM event",
        ["no such column: nonsense", "  SELECT nonsense FROM event", "         ^"],
    ),
    (
        "SELECT 1;\n\n SELECT id,\n   'é', fro FROM event",
        ["no such column: fro", "  'é', fro FROM event", "       ^"],
    ),
    ("SELECT * FORM event", ['near "FORM": syntax error', "  SELECT * FORM event", "           ^"]),
    (
        f"SELECT {'10, ' * 300}bad{', 20' * 300}",
        ["no such column: bad", f"  ...{'10, ' * 15}bad{', 20' * 15}"[:125] + "...", " " * 65 + "^"],
    ),
    (
        "SELECT '\x1b[31m', bad",
        ["no such column: bad", "  SELECT '\\x1b[31m', bad", "                     ^"],
    ),
    ("SELECT (", ["incomplete input"]),
    ("SELECT ?", ["there are no values for ? and :name here: write them into the statement"]),
    ("SELECT * FROM event WHERE event MATCH 'x'", ["position 0: a ( is missing"]),
    ("SELECT load_extension('x')", ["not authorized"]),
]


@pytest.mark.parametrize(("query", "said"), MISTAKES, ids=[query[:20] for query, _ in MISTAKES])
def test_a_mistake_is_shown_where_it_is(path: Path, query: str, said: Sequence[str]) -> None:
    found = ran("sql", path, query)
    assert found.stderr.splitlines() == [f"pytrace: {said[0]}", *said[1:]]
    assert found.returncode == 2


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM run",
        "UPDATE run SET command = ''",
        "CREATE TABLE mine(x)",
        "DROP TABLE segment",
        "PRAGMA user_version = 3",
        "INSERT INTO event(id) VALUES (1)",
    ],
)
def test_a_recording_is_only_read(path: Path, statement: str) -> None:
    before = path.read_bytes()
    found = ran("sql", path, statement)
    assert "a recording can only be read" in found.stderr
    assert "CREATE TEMP TABLE" in found.stderr
    assert found.returncode == 2
    assert path.read_bytes() == before


def test_no_file_is_made(path: Path) -> None:
    other = path.with_name("other.sqlite")
    for attached in (f"{other}", f"file:{other}?mode=rwc"):
        assert ran("sql", path, f"ATTACH '{attached}' AS other; CREATE TABLE other.x(y)").returncode == 2
    ran("sql", path, "SELECT * FROM event ORDER BY func")
    assert sorted(file.name for file in path.parent.iterdir()) == ["traces.sqlite"]


def test_what_came_before_a_mistake_is_shown(path: Path) -> None:
    found = ran("sql", path, "SELECT 1 AS a; SELECT bad")
    assert found.stdout == "a\n-\n1\n"
    assert found.returncode == 2


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    path = write(tmp_path / "traces.sqlite")
    with Handmade(path) as database:
        database("UPDATE run SET command = CAST(x'61ff' AS TEXT)")
    found = ran("sql", path, "SELECT command FROM run")
    assert "CAST(... AS BLOB)" in found.stderr
    assert found.returncode == 2
    assert ran("sql", path, "SELECT CAST(command AS BLOB) AS c FROM run").stdout == "c\n-------\nx'61ff'\n"


# ---- long queries ----


def test_a_closed_pipe_ends_it_quietly(tmp_path: Path) -> None:
    path = write(tmp_path / "traces.sqlite", events=60_000)
    with subprocess.Popen(
        command("sql", path, "SELECT * FROM event"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_the_first_rows_come_at_once_and_ctrl_c_stops_a_query(tmp_path: Path) -> None:
    path = write(tmp_path / "traces.sqlite", events=2000)
    query = f"SELECT id FROM event LIMIT 3; SELECT 'first' AS text UNION ALL {LONG}"
    with subprocess.Popen(
        command("sql", path, query), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout
        assert process.stderr
        while process.stdout.readline() != b"first\n":  # the rest would take days
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""


def test_damage_is_told(path: Path) -> None:
    with Handmade(path) as database:
        database.segment(1, [event("call", 1, "eve")] * 5, sequence=1, start=100)
        database("UPDATE segment SET data = x'00112233' WHERE sequence = 1")
    found = ran("sql", path, "SELECT count(*) AS n FROM event")
    assert found.stdout == "n\n-\n2\n"
    assert re.fullmatch(
        r"pytrace: segment 2 of run 1 is damaged: .*\n"
        r"pytrace: 1 segment is damaged: 5 events could not be read and are left out\n",
        found.stderr,
    )
    assert found.returncode == 2
    assert ran("sql", path, "SELECT segment FROM damage").stdout == "segment\n-------\n"
    assert ran("sql", path, "SELECT count(*) AS n FROM event WHERE id < 300000").returncode == 0


def test_a_query_sees_one_moment_of_a_database_that_is_written(path: Path) -> None:
    query = (
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
        "SELECT i, (SELECT count(*) FROM event WHERE id > i) AS events FROM n"
    )
    with Handmade(path) as database:
        database.segment(1, [event("call", 1, "eve")] * 5, sequence=1, start=100)
        with subprocess.Popen(
            command("sql", path, query, "--format", "json"),
            stdout=subprocess.PIPE,
            env=environment(),
            encoding="utf-8",
        ) as process:
            assert process.stdout
            assert json.loads(process.stdout.readline()) == {"i": 1, "events": 7}
            for sequence in range(2, 20):  # the pipe is too small for all that the query says
                database("DELETE FROM segment WHERE sequence < ?", (sequence,))
                database.segment(1, [event("call", 1, "eve")] * 50, sequence=sequence, start=100 * sequence)
                database("VACUUM")
            assert process.poll() is None
            assert {json.loads(line)["events"] for line in process.stdout} == {7}
        assert process.returncode == 0
        assert ran("sql", path, "SELECT count(*) AS n FROM event").stdout == " n\n--\n50\n"


# ---- the shell ----

PROMPT = r"pytrace> \S*$"


@pytest.fixture(name="shell")
def shell_fixture(path: Path, tmp_path: Path) -> pexpect.spawn:
    home = tmp_path / "home"
    home.mkdir()
    program, *arguments = command("sql", path)
    changes = {"HOME": str(home), "TERM": "xterm", "NO_COLOR": "1", "INPUTRC": os.devnull}
    shell = pexpect.spawn(
        program, arguments, env=environment(**changes), encoding="utf-8", timeout=60, dimensions=(50, 200)
    )
    shell.expect("pytrace> ")
    return shell


def said(shell: pexpect.spawn, line: str) -> str:
    shell.sendline(line)
    shell.expect("pytrace> ")
    return shell.before.replace("\r\n", "\n")


def test_the_shell_greets_and_leaves(shell: pexpect.spawn, path: Path) -> None:
    assert all(word in shell.before for word in (str(path), "event", "slowest", ".help", ".quit"))
    shell.sendline(".quit")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0
    home = path.parent / "home"
    assert [file.name for file in home.iterdir()] == [".sqlite_history"]


def test_the_shell_answers(shell: pexpect.spawn) -> None:
    assert "262144  pay" in said(shell, "SELECT id, func FROM event;")
    assert "\\x1b[31m" in said(shell, "SELECT char(27) || '[31m';")
    assert "all that happened" in said(shell, ".tables")
    assert "no such column: bad" in said(shell, "SELECT bad;")
    assert "a recording can only be read" in said(shell, "DELETE FROM run;")
    said(shell, "CREATE TEMP TABLE kept AS SELECT 41 + 1 AS answer;")
    assert "42" in said(shell, "SELECT * FROM kept;")
    assert "b  c\n-  -\n2  3" in said(shell, "SELECT 1 AS a; SELECT 2 AS b, 3 AS c;")


def test_the_shell_completes_tables_and_columns(shell: pexpect.spawn) -> None:
    for typed, completed in (
        ("SELECT durat", "duration"),
        ("SELECT outc", "outcome"),
        ("SELECT * FROM slow", "slowest"),
    ):
        shell.send(f"{typed}\t")
        shell.expect_exact(completed)
        shell.send("\x15")  # kill the line


def test_ctrl_c_stops_a_query_and_not_the_shell(shell: pexpect.spawn) -> None:
    many = "(WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)"
    shell.sendline(f"VALUES ('begun'), ('') UNION ALL SELECT count(*) FROM {many};")
    shell.expect_exact("begun\r\n")
    shell.expect_exact("segments")  # how far it is
    shell.sendintr()
    shell.expect_exact("^C")
    shell.expect("pytrace> ")
    assert "42" in said(shell, "SELECT 41 + 1;")


def test_the_shell_sees_what_is_recorded_meanwhile(shell: pexpect.spawn, path: Path) -> None:
    assert "n\n-\n2\n" in said(shell, "SELECT count(*) AS n FROM event;")
    with Handmade(path) as database:
        database.segment(1, [event("call", 1, "eve")] * 5, sequence=1, start=100)
        assert "n\n-\n7\n" in said(shell, "SELECT count(*) AS n FROM event;")
    assert "n\n-\n7\n" in said(shell, "SELECT count(*) AS n FROM event;")


def test_the_shell_takes_a_home_where_nothing_can_be_written(path: Path) -> None:
    program, *arguments = command("sql", path)
    shell = pexpect.spawn(
        program, arguments, env=environment(HOME="/proc/nowhere", TERM="xterm"), encoding="utf-8"
    )
    shell.expect("pytrace> ")
    shell.sendeof()
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0


def test_a_command_of_the_shell_by_itself(path: Path) -> None:
    shown = asked(path, ".tables")
    assert shown.returncode == 0
    assert shown.stdout.startswith("event       all that happened")
    wrong = asked(path, ".table")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert 'Unknown command "table"' in wrong.stderr


def test_the_table_hot_is_short_in_text(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "pay", file="/srv/app/shop/orders.py")
        database.segment(run, [event("call", 1), event("return", 1, None, time=250)])
    query = "SELECT func, file, calls, own AS time, total + 0 AS ns FROM hot"
    assert asked(path, query).stdout.splitlines() == [
        "func  file       calls  time    ns",
        "----  ---------  -----  ----  ----",
        "pay   orders.py      1   1µs  1000",
    ]
    assert json.loads(asked(path, query, "--format", "json").stdout)["time"] == 1000


# ---- names that a program makes up ----


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        logged = event("log", 0, "text", 1, 2, names=["größe"])
        logged.name.append(b"\xed\xa0\x80")  # a lone surrogate
        database.segment(database.run(), [logged])
    shown = asked(path, "SELECT name FROM argument", "--format", "csv")
    assert shown.stderr == ""
    assert shown.stdout.splitlines() == ["name", "message", "größe", r"\ud800"]
