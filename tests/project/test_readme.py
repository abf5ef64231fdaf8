"""The README and docs/ speak of files, targets and options that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytracer.cli import OPTIONS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
]
FOLDERS = "csrc|pytracer|dumper|reader|proto|tests|docs|benchmarks|examples|[.]ci"


def named_files(text: str) -> Iterator[str]:
    """`folder/file`, and links to files; `ring.*` and `ring.[ch]` name those that match."""
    yield from re.findall(rf"(?<![\w/])(?:{FOLDERS})/(?:[\w./*-]|\[ch\])*(?<![.])", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_exist(page: Path) -> None:
    text = page.read_text()
    missing = [name for name in named_files(text) if not list(ROOT.glob(name))]
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text)
    missing += [link for link in links if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE)) <= targets


def test_the_page_of_options_has_each() -> None:
    page = (ROOT / "docs" / "options.md").read_text()
    rows = re.findall(r"^\| (`-.*?) \|", page, re.MULTILINE)
    told = {flag for row in rows for flag in re.findall(r"-[a-z-]+", row)}
    assert told == {flag for option in OPTIONS for flag in (option.flag, option.short) if flag}
