"""The output of the benchmarks: progress, tables, and rows that compare with the targets."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass
class Row:
    """A line of the table at the end."""

    what: str
    must: str
    aim: str
    measured: str


def say(text: str) -> None:
    """Progress and details, to standard error."""
    print(text, file=sys.stderr, flush=True)


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [list(heads), *map(list, lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows)
