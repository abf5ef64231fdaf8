"""Recordings that a later version of pytrace has made: what this one does not know is passed over,
counted and said."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from pytracer.reader.database import extension_path
from pytracer.reader.features import BITS, FEATURES, FIRST_REQUIRED

from handmade import EVENT_IDS, NS_PER_UNIT, Handmade, event, printed, ran
from messages import trace_pb2

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


LATER_MADE = "made by a later version of pytrace, which this one passes over"


def later(kind: int = 18, time: int = 1, depth: int | None = None, code: int = 1) -> trace_pb2.Event:
    """A record of a kind that is not known here."""
    made = event("call", code, time=time, depth=depth)
    made.ClearField("call")
    made.MergeFromString(bytes([kind << 3 & 0x7F | 0x80, kind >> 4, code]))
    return made


RECORDS = [
    event("call", 1),
    later(),
    event("call", 2, time=1),
    later(31, depth=2),
    event("return", 2, time=1, elapsed=2),
    later(depth=5),
    event("return", 1, time=1, elapsed=6, depth=1),
]


@pytest.fixture(name="database")
def database_fixture(tmp_path: Path) -> Path:
    path = tmp_path / "t.sqlite"
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "outer")
        database.code(run, 2, "inner")
        database.segment(run, RECORDS)
    return path


def test_records_around_unknown_ones_are_read(database: Path) -> None:
    done = printed(database, "--format", "json")
    said = f"pytrace: run 1: 3 records of kinds {LATER_MADE}. Upgrade with: pip install --upgrade pytracer\n"
    assert (done.returncode, done.stderr) == (0, said)
    events = list(map(json.loads, done.stdout.splitlines()))
    assert [(e["kind"], e["func"], e["depth"], e.get("duration")) for e in events] == [
        ("call", "outer", 0, None),
        ("call", "inner", 1, None),
        ("return", "inner", 1, 2 * NS_PER_UNIT),
        ("return", "outer", 0, 6 * NS_PER_UNIT),
    ]
    assert [e["id"] - EVENT_IDS for e in events] == [0, 2, 4, 6]  # a later version's numbers


def asked(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """In another program than ours."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.enable_load_extension(True)
    connection.load_extension(extension_path())
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()


@pytest.mark.parametrize(
    "condition", ["1", "depth < 5", "kind = 'return'", "kind LIKE '%'", "func = 'inner'", "duration > 0"]
)
def test_conditions_find_known_ones_only(database: Path, condition: str) -> None:
    found = asked(database, f"SELECT id FROM event WHERE {condition}")
    every = asked(database, f"SELECT id FROM (SELECT * FROM event LIMIT -1) WHERE {condition}")
    assert found == every
    assert found


def test_an_unknown_one_has_no_row(database: Path) -> None:
    ids = [EVENT_IDS + index for index in range(8)]
    assert [len(asked(database, f"SELECT * FROM event WHERE id = {id}")) for id in ids] == [
        1, 0, 1, 0, 1, 0, 1, 0
    ]  # fmt: skip
    assert asked(database, f"SELECT * FROM stack({ids[1]})") == []
    assert asked(database, f"SELECT id FROM stack({ids[4]})") == [(ids[0],), (ids[2],)]
    assert asked(database, "SELECT outcome FROM call") == [("return",)] * 2
    assert asked(database, "SELECT func, calls FROM hot ORDER BY func") == [("inner", 1), ("outer", 1)]
    assert asked(database, "SELECT * FROM damage") == []


def missing(path: Path) -> str:
    """The last line of `info`."""
    done = ran("info", path)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()[-1].removeprefix("  missing    ")


def later_facts(path: Path) -> Any:
    (run,) = json.loads(ran("info", path, "--format", "json").stdout)["runs"]
    return run["later"]


def test_unknown_records_are_counted(database: Path) -> None:
    assert missing(database) == f"3 records of kinds {LATER_MADE}"
    counts = {"records": 3, "fields": 0, "segments": 0, "features": [], "refused": []}
    assert later_facts(database) == counts
    assert asked(database, "SELECT run, kind, records, fields FROM skipped") == [(1, 0, 3, 0)]
    with Handmade(database) as made:
        made("UPDATE segment SET kinds = 6")  # a summary that does not tell
    assert missing(database) == f"3 records of kinds {LATER_MADE}"


def test_a_large_recording_is_counted_by_its_summaries(database: Path) -> None:
    with Handmade(database) as made:
        for sequence in range(1, 4):
            made.segment(1, [event("call", 1)], sequence=sequence)
        made("UPDATE segment SET count = 200000 WHERE sequence = 3")
        made("UPDATE segment SET data = x'00' WHERE sequence")  # they are not even opened
    assert asked(database, "SELECT records FROM skipped") == [(3,)]
    assert asked(database, "SELECT * FROM damage") == []


def test_a_recording_without_them_has_nothing_to_say(tmp_path: Path) -> None:
    with Handmade(tmp_path / "t.sqlite") as made:
        made.segment(made.run(), [event("call", 1)])
    assert missing(tmp_path / "t.sqlite") == "nothing"
    assert asked(tmp_path / "t.sqlite", "SELECT * FROM skipped") == []


def test_unknown_fields_are_counted(database: Path) -> None:
    with Handmade(database) as made:
        made("DELETE FROM segment")
        record = event("return", 1, "bob", elapsed=3)
        record.MergeFromString(b"\xa2\x02\x01?")  # field 36, bytes
        made.segment(1, [event("call", 1), record])
        ((data,),) = made("SELECT data FROM segment")
        body = zstd.decompress(data) + b"\x9a\x06\x01z"  # field 99 of Events
        made("UPDATE segment SET data = ?, size = ?", (zstd.compress(body), len(body)))
    assert missing(database) == f"fields in 2 places, {LATER_MADE}"
    assert asked(database, "SELECT kind, duration, args ->> '$[0].value' FROM event") == [
        ("call", None, None),
        ("return", 12, "'bob'"),
    ]


def test_a_segment_of_an_unknown_kind_is_passed_over(database: Path) -> None:
    with Handmade(database) as made:
        made.segment(1, [event("call", 1)], sequence=1, start=50)
        made("UPDATE segment SET kind = 7, count = 0, data = x'00' WHERE sequence = 1")
        made.segment(1, [event("call", 1, depth=0), event("return", 1, time=1)], sequence=2, start=100)
    assert later_facts(database) == {
        "records": 3, "fields": 0, "segments": 1, "features": [], "refused": []
    }  # fmt: skip
    assert f"; 1 segment of kinds {LATER_MADE}" in missing(database)
    assert asked(database, "SELECT count(*) FROM event") == [(6,)]
    assert asked(database, f"SELECT count(*) FROM event WHERE id >= {2 * EVENT_IDS}") == [(2,)]
    assert asked(database, f"SELECT count(*) FROM event WHERE id = {2 * EVENT_IDS}") == [(0,)]
    assert asked(database, "SELECT outcome FROM call") == [("return",)] * 3
    assert asked(database, "SELECT * FROM damage") == []
    with Handmade(database) as made:
        made("UPDATE segment SET count = 1 WHERE kind = 7")  # which a later version would not do
    assert asked(database, "SELECT count(*) FROM event") == [(6,)]


def test_a_later_database_is_read_as_far_as_it_can_be(database: Path) -> None:
    before = printed(database, "--format", "json").stdout
    with Handmade(database) as made:
        made("PRAGMA user_version = 4")
        made("ALTER TABLE run ADD COLUMN host TEXT")
        made("ALTER TABLE segment ADD COLUMN cpu INTEGER")
        made("ALTER TABLE code ADD COLUMN layer TEXT NOT NULL DEFAULT 'python'")
        made("CREATE TABLE symbol (run INTEGER, file TEXT, name TEXT) STRICT")
        made(f'UPDATE run SET features = {1 << 7 | 1}, options = \'{{"repr": "1"}}\'')
        made("UPDATE thread SET kind = 'fibre'")
        made("UPDATE code SET language = 'cobol'")
    later_layer = before.replace("}\n", ', "layer": "cobol"}\n')
    assert printed(database, "--format", "json").stdout == later_layer
    assert missing(database) == f"3 records of kinds {LATER_MADE}; feature 7 of a later version of pytrace"
    (run,) = json.loads(ran("info", database, "--format", "json").stdout)["runs"]
    assert (run["features"], run["options"]) == (["tasks", "feature 7"], {"repr": "1"})
    assert run["later"]["features"] == ["feature 7"]


def test_a_required_feature_that_is_unknown_is_refused(database: Path) -> None:
    with Handmade(database) as made:
        first = printed(database, "--run", 1).stdout
        run = made.run(features=1 << 33)
        made.segment(run, RECORDS)
    for word, *options in (["print"], ["print", "--run", "2"], ["sql", "SELECT * FROM hot"]):
        done = ran(word, database, *options)
        assert done.returncode == 2
        assert "run 2 was recorded by a newer pytrace, which is needed to read it (feature 33)" in done.stderr
    assert "pip install --upgrade pytracer" in printed(database).stderr
    assert printed(database, "--run", 1).stdout == first  # the others can be read
    assert missing(database) == "everything: a newer pytrace is needed to read it (feature 33)"


def test_both_tables_of_features_are_the_same() -> None:
    text = (Path(__file__).parents[2] / "csrc" / "common" / "feature.h").read_text()
    table = re.findall(r"FEATURE_([A-Z_]+) = (\d+), /\* (.*) \*/", text)
    assert {int(bit): name.lower().replace("_", " ") for name, bit, _ in table} == {
        bit: name for bit, (name, _) in FEATURES.items()
    }
    assert all(
        meaning in comment for (_, meaning), (_, _, comment) in zip(FEATURES.values(), table, strict=True)
    )
    assert f"UINT64_C(0x{(1 << BITS) - (1 << FIRST_REQUIRED):x})" in text
