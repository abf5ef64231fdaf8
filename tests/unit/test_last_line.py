"""The line that a recorded program ends with."""

from pathlib import Path

from pytracer.dumper.store import Totals
from pytracer.dumper.summary import summary


def line(path: Path, goes_on: bool = False) -> str:
    totals = Totals(1234, processes=2, lost=0, evicted=0, refused=0, turned_away=0)
    return summary(totals, str(path), str(path.parent), [], goes_on)


def test_the_size_is_that_of_the_database_and_its_wal(tmp_path: Path) -> None:
    """While others record, nearly everything is in the WAL."""
    database = tmp_path / "traces.sqlite"
    database.write_bytes(b"x" * 4096)
    whole = "pytrace: 1,234 events of 2 processes in traces.sqlite (4.1 kB), none lost. Open it with: pytrace"
    assert line(database) == whole
    Path(f"{database}-wal").write_bytes(b"x" * 3_000_000)
    assert "traces.sqlite (3.0 MB), none lost; others that it started" in line(database, goes_on=True)


def test_a_database_that_is_gone_has_no_size(tmp_path: Path) -> None:
    assert "2 processes in gone.sqlite, none lost. Open it with: pytrace read gone.sqlite" in line(
        tmp_path / "gone.sqlite"
    )
