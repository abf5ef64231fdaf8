"""Which code is the user's own: what the recording says, and what finds it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recording import PYTRACE, Record, run, write

SCRIPT = """
    import collections, dataclasses, json, lib.helper, parcel

    @dataclasses.dataclass
    class Order:
        n: int

    Pair = collections.namedtuple("Pair", "a b")

    def pay(n):
        return json.dumps([Order(n).n, Pair(1, 2).a])

    exec("def made_up(): pass\\nmade_up()")
    pay(lib.helper.helped(3))
    parcel.wrapped()
"""


def own(database: Path) -> list[dict[str, Any]]:
    command = [*PYTRACE, "print", str(database), "--format", "json", "--filter", "mine == True"]
    done = run(command, database.parent)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def functions(events: list[dict[str, Any]]) -> list[str]:
    """In the order of their first events; without those that 3.14 makes of annotations."""
    names = dict.fromkeys(f"{event['module']}.{event['func']}" for event in events)
    return [name for name in names if not name.endswith(".__annotate__")]


def test_own_code(record: Record, tmp_path: Path) -> None:
    """Neither of the standard library, nor installed, nor made up."""
    write(tmp_path, "lib/helper.py", "def helped(n):\n    return n\n")
    write(tmp_path, "venv/lib/python3/site-packages/parcel.py", "def wrapped():\n    pass\n")
    recording = record(SCRIPT, PYTHONPATH=str(tmp_path / "venv/lib/python3/site-packages"))
    assert functions(own(recording.database)) == [
        "__main__.<module>", "lib.helper.<module>", "__main__.Order", "lib.helper.helped", "__main__.pay",
    ]  # fmt: skip
    everything = {event.func for event in recording.events}
    assert {"wrapped", "made_up", "dumps"} <= everything


@pytest.mark.parametrize(
    ("arguments", "made_up"), [(["-c", "def f(): pass\nf()"], "<string>"), (["-"], "<stdin>")]
)
def test_a_program_without_a_file(arguments: list[str], made_up: str, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("def f(): pass\nf()\n")
    with open(tmp_path / "input") as file:
        subprocess.run(
            [*PYTRACE, "-q", "-o", "traces.sqlite", *arguments], cwd=tmp_path, stdin=file, check=True
        )
    events = own(tmp_path / "traces.sqlite")
    assert functions(events) == ["__main__.<module>", "__main__.f"]
    assert {event["file"] for event in events} == {made_up}


def test_in_sql(record: Record) -> None:
    recording = record("import json\ndef f(): return json.dumps(1)\nf()\n")
    for table in ("event", "call", "hot"):
        query = f"SELECT DISTINCT func FROM {table} WHERE mine = 1 ORDER BY func"
        done = run(
            [*PYTRACE, "sql", str(recording.database), query, "--format", "csv"], recording.script.parent
        )
        assert done.stdout.split() == ["func", "<module>", "f"]
        everything = f"SELECT * FROM {table} LIMIT 1"
        done = run(
            [*PYTRACE, "sql", str(recording.database), everything, "--format", "csv"], recording.script.parent
        )
        assert "mine" not in done.stdout


def test_print_mine(record: Record) -> None:
    recording = record("import json\ndef f(): return json.dumps(1)\nf()\n")
    folder, command = recording.script.parent, [*PYTRACE, "print", str(recording.database)]
    lines = run([*command, "--mine"], folder).stdout.splitlines()
    shown = [line for line in lines if "⋯" not in line]
    mine = run([*command, "--filter", "mine == True"], folder).stdout.splitlines()
    assert [line.split()[:3] for line in shown] == [line.split()[:3] for line in mine]
    assert len(shown) == 4
    assert "⋯ imports " in lines[1]
    assert "⋯ 1 library call, " in lines[3]
    assert len(run([*command, "--mine", "--filter", "func == 'f'"], folder).stdout.splitlines()) == 2
    refused = run([*command, "--mine", "--stack", "1"], folder)
    assert refused.returncode == 2
    assert "--mine" in refused.stderr


def test_nothing_is_ones_own(tmp_path: Path) -> None:
    done = run([*PYTRACE, "-q", "-m", "json.tool", "--help"], tmp_path)
    assert done.returncode == 0
    shown = run([*PYTRACE, "print", "--mine"], tmp_path)
    assert shown.stdout == ""
    assert "leave --mine out" in shown.stderr
