"""The line that a recorded program ends with."""

from pathlib import Path

from pytracer.dumper.store import RunStart, Store, Totals
from pytracer.dumper.summary import summary


def line(path: Path, goes_on: bool = False) -> str:
    totals = Totals(1234, processes=2, lost=0, evicted=0, refused=0, turned_away=0, size=4096)
    return summary(totals, str(path), str(path.parent), [], goes_on)


def test_it_tells_what_there_is_and_what_is_missing(tmp_path: Path) -> None:
    whole = "pytrace: 1,234 events of 2 processes in traces.sqlite (4.1 kB), none lost. Open it with: pytrace"
    assert line(tmp_path / "traces.sqlite") == whole
    assert "none lost; others that it started still run" in line(tmp_path / "traces.sqlite", goes_on=True)


def test_the_size_is_what_the_database_will_have(tmp_path: Path) -> None:
    """While others record, nearly everything is in the log, and some of it in both."""
    path = tmp_path / "traces.sqlite"
    run = RunStart("ring", "python app.py", str(tmp_path), "3.13.0", clock_epoch_ns=0, clock_epoch_units=0)
    store = Store(str(path), run, max_size=1 << 30, max_events=0)
    with store.transaction():
        store.put_types((number, "x" * 1000, None, None) for number in range(1000))
    size = store.totals().size
    assert size != path.stat().st_size
    store.close()
    assert size == path.stat().st_size > 1_000_000
