"""The dumper as a process: from a real ring that real processes write to, into a real database."""

from pathlib import Path

from dumping import FINISHED, READY, Dumper, Producer, TestRing, rows, stored_calls


def test_everything_written_is_in_the_database(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    dumper = Dumper(ring)
    assert ring.said() == READY
    producer = Producer(ring)
    assert producer.calls(100_000, "one") == 100_000
    assert producer.calls(10, "two") == 10
    producer.exit(3)
    assert dumper.wait() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["traces.sqlite"]

    assert list(stored_calls(ring.database).values()) == [list(range(100_000)), list(range(10))]
    assert rows(ring.database, "SELECT exit_status, lost, finished > started FROM run") == [(3, 0, 1)]
    assert rows(ring.database, "SELECT number, pid, exit_status FROM process") == [(0, producer.pid, 3)]
    assert rows(ring.database, "SELECT count(*) FROM segment WHERE NOT complete") == [(0,)]
    assert ring.said() == FINISHED
    assert "100,010 events of 1 process in traces.sqlite" in ring.message()
    assert ring.message().endswith("none lost. Open it with: pytrace")
