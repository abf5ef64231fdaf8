"""Which code is recorded."""

from pathlib import Path

import pytest

from recording import Record, Recording


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """script.py uses package/a.py and other.py; each of their functions calls the next one's."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "a.py").write_text("import other\n\ndef in_a():\n    return other.in_other()\n")
    (tmp_path / "other.py").write_text("import json\n\ndef in_other():\n    return json.loads('[1]')\n")
    return tmp_path


SCOPED = """
from package import a
def main():
    return a.in_a()
main()
"""


def functions(recording: Recording) -> set[str]:
    names = {"main", "in_a", "in_other", "loads"}
    return names & {event.func for event in recording.events if event.kind == "call"}


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ("package", {"in_a"}),
        ("other.py", {"in_other"}),
        ("other.py:package", {"in_a", "in_other"}),
        (".", {"main", "in_a", "in_other"}),
    ],
)
def test_modules(tree: Path, record: Record, modules: str, expected: set[str]) -> None:
    recording = record(SCOPED, "--modules", modules)
    assert functions(recording) == expected
    by_environment = record(SCOPED, TRACE_MODULES=modules)
    assert functions(by_environment) == expected
    # what is left out does not count
    assert min(event.depth for event in recording.events) == 0
    opened = 0
    for event in recording.events:
        opened -= event.kind == "return"
        assert event.depth == opened
        opened += event.kind == "call"


def test_exclude(tree: Path, record: Record) -> None:
    assert functions(record(SCOPED, "--exclude", "package:script.py")) == {"in_other", "loads"}
    assert functions(record(SCOPED, "--modules", ".", "--exclude", "package")) == {"main", "in_other"}


def test_no_stdlib(tree: Path, record: Record) -> None:
    assert functions(record(SCOPED)) == {"main", "in_a", "in_other", "loads"}
    assert functions(record(SCOPED, "--no-stdlib")) == {"main", "in_a", "in_other"}


def test_no_site_packages(record: Record) -> None:
    script = """
        import iniconfig
        """
    everything = record(script)
    assert any("site-packages" in event.file for event in everything.events)
    without = record(script, "--no-site-packages")
    assert not any("site-packages" in event.file for event in without.events)
    assert len(without.of("call")) == 1
    assert any(event.module == "collections" or "/lib/python3" in event.file for event in without.events)
