"""A program has written over what the ring says of it: the dumper saves what can be saved, and
ends.

That its chunks are refused, and counted, is in test_faults_ring.py; arbitrary bytes in
tests/c/fuzz_ring.c.
"""

import struct
from pathlib import Path

import pytest

from dumping import REFUSED, Dumper, Producer, TestRing, rows

EVENTS = 50


def write_over(ring: TestRing, what: bytes, by: bytes) -> None:
    """Wherever it stands before the chunks."""
    content = bytearray(ring.path.read_bytes())
    end = content.index(b"recording=") + 32768
    assert what in content[:end]
    with ring.path.open("r+b") as file:
        file.write(content[:end].replace(what, by))


def test_a_pid_that_is_none(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    producer = Producer(ring)
    producer.calls(EVENTS)
    producer.kill()
    write_over(ring, struct.pack("<I", producer.pid), b"\xff" * 4)
    assert Dumper(ring).wait() == 0
    assert rows(ring.database, "SELECT total(count) FROM segment") == [(EVENTS,)]


def test_a_clock_that_is_none(tmp_path: Path) -> None:
    ring = TestRing(tmp_path)
    producer = Producer(ring)
    producer.calls(EVENTS)
    producer.kill()
    units = ring.path.read_bytes()[48:64]  # epoch_ns, epoch_units
    write_over(ring, units, b"\xff" * 16)
    assert Dumper(ring).wait() == 0
    assert rows(ring.database, "SELECT total(count) FROM segment") == [(EVENTS,)]


@pytest.mark.parametrize("name", [b"recording=", b"max_size=", b"output="])
def test_settings_that_are_none(tmp_path: Path, name: bytes) -> None:
    ring = TestRing(tmp_path)
    write_over(ring, name, b"=" * len(name))
    assert Dumper(ring).wait() == 1
    assert ring.said() == REFUSED
    assert "written over" in ring.message()
    assert not ring.path.exists()
    assert not ring.database.exists()
