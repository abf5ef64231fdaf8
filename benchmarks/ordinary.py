"""The same questions to ordinary tables, with a row an event and a row an argument."""

import tempfile
from pathlib import Path

from benchmarks.asking import (
    ABSENT,
    COLUMNS,
    COUNT,
    LIKE,
    ROWS_PYTHON,
    ROWS_SQLITE,
    Answer,
    Question,
    ask,
    count,
    million,
)
from benchmarks.processes import Failed
from benchmarks.report import Row, say, table

PLAIN = """
CREATE TABLE plain.event (id INTEGER, run INTEGER, time INTEGER, pid INTEGER, tid INTEGER, thread TEXT,
    kind TEXT, module TEXT, func TEXT, file TEXT, line INTEGER, depth INTEGER, duration INTEGER);
CREATE TABLE plain.argument (event INTEGER, position INTEGER, name TEXT, value TEXT, type TEXT);
"""
LOAD = f"""
INSERT INTO plain.event SELECT {COLUMNS} FROM main.event;
INSERT INTO plain.argument SELECT event, position, name, value, type FROM main.argument
"""


def against_rows(path: Path, most: str, rounds: int) -> list[Row]:
    """Both questions, and all rows handed out; `most`: a function with many events."""
    events = count(path)
    with tempfile.TemporaryDirectory(prefix="plain-", dir=path.parent) as folder:
        plain = Path(folder) / "plain.sqlite"
        load = loaded(path, plain)
        size = plain.stat().st_size
        ours, theirs = both(path, plain, most, rounds)
        index = Question("CREATE INDEX event_func ON event (func)", repeat=1)
        made, indexed = ask(plain, [index, Question(COUNT, [[most]], rounds)], plain=True).answers
        indexed_size = plain.stat().st_size
    ratios = {name: theirs[name].best / ours[name].best for name in ours}
    lines = [
        (name, f"{ours[name].best * 1e3:.1f}", f"{theirs[name].best * 1e3:.1f}", f"{ratio:.1f}x")
        for name, ratio in ratios.items()
    ]
    say(table((f"ms, {million(events)} million events", "recording", "one row an event", "ratio"), lines))
    say(
        f"bytes: {path.stat().st_size:,} here, {size:,} in rows, loaded in {load:.1f} s (reading the "
        f"recording included); with an index on func {indexed_size:,}, made in {made.best:.1f} s, that "
        f"answers count(*) in {indexed.best * 1e3:.1f} ms"
    )
    by_func, like, *_ = ratios.values()
    inside, tuples = (
        tuple(events / of[name].best / 1e6 for of in (ours, theirs)) for name in list(ratios)[2:]
    )
    return [
        Row(
            "the same two against one row an event in an ordinary table",
            "10x",
            "40x",
            f"{by_func:.0f}x, {like:.0f}x (the table: {size / path.stat().st_size:.0f}x the size, "
            f"loaded at {events / load / 1e6:.2f} million events a second)",
        ),
        Row(
            "rows handed out with all columns, million a second",
            "2",
            "5",
            f"{inside[0]:.1f} inside SQLite, {tuples[0]:.1f} as Python's tuples "
            f"(of the ordinary table: {inside[1]:.1f}, {tuples[1]:.1f})",
        ),
    ]


def loaded(path: Path, plain: Path) -> float:
    """Makes ordinary tables of a recording's events and arguments; the seconds that it takes."""
    unsafe = "PRAGMA plain.journal_mode = OFF; PRAGMA plain.synchronous = OFF;"
    questions = [
        Question("ATTACH ? AS plain", [[str(plain)]], 1),
        Question(unsafe + PLAIN, repeat=1),
        Question(LOAD, repeat=1),
    ]
    return ask(path, questions).answers[-1].best


def both(path: Path, plain: Path, most: str, rounds: int) -> tuple[dict[str, Answer], dict[str, Answer]]:
    """The answers of the recording and of the ordinary tables; they take turns. Raises Failed."""
    questions = {
        "count(*) with func = 'x'": Question(COUNT, [[most]]),
        "value LIKE '%needle%'": Question(LIKE, [[ABSENT]]),
        "all columns, inside SQLite": Question(ROWS_SQLITE, repeat=1),
        "all columns, as Python's tuples": Question(ROWS_PYTHON, repeat=1),
    }
    answers: list[dict[str, Answer]] = [{name: Answer([], []) for name in questions} for _ in range(2)]
    for _ in range(rounds):
        for which, of in enumerate((path, plain)):
            for name, new in zip(
                questions, ask(of, list(questions.values()), of == plain).answers, strict=True
            ):
                answers[which][name].times += new.times
                answers[which][name].row = new.row
    ours, theirs = answers
    for name in questions:
        if ours[name].row != theirs[name].row:
            raise Failed(f"{name}: {ours[name].row} in the recording, {theirs[name].row} in rows")
    return ours, theirs
