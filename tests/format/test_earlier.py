"""Databases of earlier versions of pytrace are read, and recorded into.

data/version-2.sqlite.gz is a recording of data/shop.py, made with `--modules shop.py` by the
version before `run` had features and options.
"""

import gzip
import json
from pathlib import Path

import apsw
import pytest
from test_later import asked

from handmade import printed, ran
from recording import PYTRACE, run, write

DATA = Path(__file__).parent / "data"
EARLIER = sorted(path.name.removesuffix(".gz") for path in DATA.glob("*.sqlite.gz"))
NEW_COLUMNS = {
    "run": {"features", "options"}, "thread": {"kind"}, "code": {"language", "mine", "variables"},
    "segment": {"kind", "open"}, "type": {"fields", "attributes"},
    "source_file": {"run", "file", "changed", "size", "data"},
}  # fmt: skip


@pytest.fixture(name="earlier", params=EARLIER)
def earlier_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    path.write_bytes(gzip.decompress((DATA / f"{request.param}.gz").read_bytes()))
    path.chmod(0o600)
    return path


def columns(path: Path, table: str) -> set[str]:
    return {str(name) for (name,) in asked(path, f"SELECT name FROM pragma_table_info('{table}')")}


def test_it_is_read_and_not_changed(earlier: Path) -> None:
    before = earlier.read_bytes()
    done = printed(earlier, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    events = list(map(json.loads, done.stdout.splitlines()))
    assert [event["func"] for event in events if event["kind"] == "call"].count("Order.pay") == 3
    assert {event["thread"] for event in events} == {"MainThread", "worker"}
    assert {event["task"] for event in events if "task" in event} == {"Task-1", "Task-2", "Task-3"}
    (run,) = json.loads(ran("info", earlier, "--format", "json").stdout)["runs"]
    assert (run["events"], run["processes"], run["exit_status"]) == (len(events), 2, 0)
    assert (run["features"], run["options"]) == ([], None)
    assert ran("info", earlier).stdout.endswith("missing    nothing\n")
    assert asked(earlier, "SELECT func, outcome, value, process FROM call WHERE func = 'Order.pay'") == [
        ("Order.pay", "exception", "ValueError('too little')", 0),
        ("Order.pay", "return", "'paid by bob'", 0),
        ("Order.pay", "return", "'paid by bob'", 1),
    ]
    assert asked(earlier, "SELECT calls FROM hot WHERE func = 'Order.pay'") == [(3,)]
    assert asked(earlier, "SELECT * FROM skipped") == []
    assert asked(earlier, "SELECT * FROM source") == []
    assert "func == 'Order.pay'  " in printed(earlier, "--filter", "func == 'Order.pya'").stderr
    assert earlier.read_bytes() == before


def test_a_new_recording_goes_into_it(earlier: Path) -> None:
    old = printed(earlier, "--run", 1, "--format", "json").stdout
    script = write(earlier.parent, "script.py", "def new(): pass\nnew()\n")
    done = run([*PYTRACE, "-q", "-o", str(earlier), "--no-stdlib", "--lines", str(script)], earlier.parent)
    assert done.returncode == 0, done.stderr
    for table, added in NEW_COLUMNS.items():
        assert added <= columns(earlier, table)
    assert printed(earlier, "--run", 1, "--format", "json").stdout == old
    calls = "SELECT count(*) FROM event WHERE run = 2 AND func = 'new' AND kind <> 'line'"
    assert asked(earlier, calls) == [(2,)]
    assert asked(earlier, "SELECT * FROM source") == [(2, str(script), script.read_text())]
    kinds = "SELECT DISTINCT run, thread.kind, language, segment.kind FROM thread JOIN code USING (run)"
    assert asked(earlier, f"{kinds} JOIN segment USING (run) ORDER BY run") == [
        (1, "thread", "python", 0),
        (2, "thread", "python", 0),
    ]
    _, new = json.loads(ran("info", earlier, "--format", "json").stdout)["runs"]
    assert new["features"] == ["tasks", "lines", "layers"]
    assert new["options"]["no_stdlib"] == "1"
    assert new["options"]["output"] == str(earlier)
    assert not {"command", "pid", "recording", "directory", "python"} & new["options"].keys()


def test_columns_are_added_together_or_not_at_all(earlier: Path) -> None:
    """If another one is in the way: a reader, here, which has a transaction open."""
    script = write(earlier.parent, "script.py", "")
    writer = apsw.Connection(str(earlier))
    writer.execute("BEGIN IMMEDIATE")
    done = run([*PYTRACE, "-q", "-o", str(earlier), str(script)], earlier.parent)
    writer.execute("ROLLBACK")
    assert done.returncode == 2
    assert "is locked by another program" in done.stderr
    for table, added in NEW_COLUMNS.items():
        assert not added & columns(earlier, table)
    writer.close()
