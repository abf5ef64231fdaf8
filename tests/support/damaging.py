"""Asks a database all sorts of questions after one thing in it was damaged, again and again: a
program.

Arguments: the extension's file, a database (in which each table has a row whose `run` is 1, and
which has more than one run), a folder for copies, the numbers of what is damaged.
What is found in run 2 has to stay as it was. Prints what it has done; a crash, or a row that should
not be, ends it.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

QUESTIONS = (
    "SELECT *, args FROM event",
    "SELECT * FROM event ORDER BY time DESC, id DESC LIMIT 10 OFFSET 3",
    "SELECT * FROM event WHERE func LIKE '%a%' AND duration > 1 AND depth < 5",
    "SELECT * FROM event WHERE kind IN ('call', 'log') AND module = 'app' AND pid > 0",
    "SELECT *, args FROM event WHERE id IN (SELECT id FROM event)",
    "SELECT e.*, e.args FROM segment AS s JOIN event AS e ON e.id = (s.id << 18) + 1",
    'SELECT * FROM event WHERE event MATCH \'(and (not (= kind "log")) (any (like either "%b%")))\'',
    "SELECT *, run, time FROM argument",
    "SELECT * FROM argument WHERE value LIKE '%ob%' AND name = 'user'",
    "SELECT * FROM call",
    "SELECT * FROM call WHERE func LIKE '%' ORDER BY time DESC",
    "SELECT stack.* FROM event JOIN stack(event.id) AS stack",
    "SELECT * FROM hot",
    "SELECT *, mine FROM line",
    "SELECT *, changed FROM source",
    "SELECT text FROM source JOIN run ON run.id = source.run WHERE file = '/home/me/app.py'",
    "SELECT *, trailing FROM event WHERE trailing = 1 OR event MATCH '(= trailing 0)'",
    "SELECT *, own_depth, near_depth, near FROM event WHERE event MATCH '(or (shown own) (shown near))'",
    "SELECT * FROM damage",
)
INTACT = "SELECT *, args FROM event WHERE run = 2 ORDER BY time, id"

ABSURD = (
    -1, 0, 1 << 18, (1 << 31) - 1, 1 << 32, (1 << 45) - 1, (1 << 63) - 1, -(1 << 63), "text", b"blob", None,
)  # fmt: skip
NUMBERS = {
    "segment": (
        "id", "run", "stream", "sequence", "process", "start", '"end"', "base_depth", "min_depth",
        "max_depth", "count", "lost", "size", "complete", "kinds", "max_duration", "codes", "open", "data",
    ),
    "run": ("id", "clock_epoch_ns", "clock_epoch_units", "clock_scale"),
    "process": ("number", "pid"),
    "thread": ("stream", "process", "tid", "name"),
    "code": ("number", "module", "func", "file", "line", "arguments", "variables"),
    "type": ("number", "name"),
    "source_file": ("run", "file", "changed", "size", "data"),
}  # fmt: skip
NAMES = (
    "[",
    '[1, null, {"a": []}]',
    '["a"' + ', "b"' * 5000 + "]",
    "[" * 50_000,
    '["\\ud800", "\\u0000"]',
    "{}",
    b"\xff\xfe",
)
CHANGES = [
    *((table, column, value) for table, columns in NUMBERS.items() for column in columns for value in ABSURD),
    *(("code", column, value) for column in ("arguments", "func", "variables") for value in NAMES),
]
SEEDS = 120  # damages by chance come behind those
COUNT = len(CHANGES) + SEEDS


def by_chance(connection: apsw.Connection, seed: int) -> str:
    """Damages the bytes of a segment's events, of their compressed form, or of its summary."""
    chance = random.Random(seed)
    column = ("codes", "open", "data", "body")[seed % 4]
    rows = connection.execute(
        "SELECT id, codes, open, data FROM segment WHERE run = 1 ORDER BY id"
    ).fetchall()
    id, codes, open, data = chance.choice(rows)
    content = bytearray(
        {"codes": codes, "open": open, "data": data, "body": zstd.decompress(bytes(data))}[column]
    )
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(content) + 1)
        match chance.randrange(5):
            case 0:
                del content[at:]
            case 1:
                content[at:at] = chance.randbytes(chance.choice((1, 9, 100)))
            case 2:
                content[at : at + 10] = b"\xff" * 10
            case 3:
                content[at:at] = content[: chance.randrange(len(content) + 1)]
            case 4:
                content[at : at + 1] = bytes([chance.randrange(256)])
    if column == "body":
        connection.execute("UPDATE segment SET size = ? WHERE id = ?", (len(content), id))
        column, content = "data", bytearray(zstd.compress(bytes(content)))
    connection.execute(f"UPDATE segment SET {column} = ? WHERE id = ?", (bytes(content), id))
    return f"{column} by chance, {seed}"


def damage(path: Path, number: int) -> str:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        if number >= len(CHANGES):
            return by_chance(connection, number - len(CHANGES))
        table, column, value = CHANGES[number]
        key = "id" if table == "run" else "run"
        with suppress(apsw.MismatchError, apsw.ConstraintError):  # this SQLite does not even store
            connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {key} = 1", (value,))
        return f"{table}.{column} = {str(value)[:40]!r}"
    finally:
        connection.close()


def loosen(path: Path) -> None:
    """Lets columns take what they should not: as a file that another program has damaged."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'STRICT, WITHOUT', 'WITHOUT'),"
        " ') STRICT', ')'), 'NOT NULL', '') WHERE type = 'table'"
    )
    connection.close()


def ask(path: Path, extension: str, question: str) -> list[Any] | str:
    """The answer on a connection of its own: rows, or the error's text."""
    return ask_all(path, extension, (question,))[0]


def ask_all(path: Path, extension: str, questions: Sequence[str]) -> list[list[Any] | str]:
    """The answers to questions one after the other on one connection."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)

    def answer(question: str) -> list[Any] | str:
        try:
            connection.load_extension(extension)  # again: the second time it does nothing
            return connection.execute(question).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            return str(error)

    try:
        connection.enable_load_extension(True)
        return [answer(question) for question in questions]
    finally:
        connection.close()


def main(extension: str, original: Path, folder: Path, numbers: list[int]) -> None:
    intact = ask(original, extension, INTACT)
    assert len(intact) > 5
    assert isinstance(intact, list)
    loose, copy = folder / "loose.sqlite", folder / "copy.sqlite"
    shutil.copyfile(original, loose)
    loosen(loose)
    for number in numbers:
        shutil.copyfile(loose, copy)
        what = damage(copy, number)
        if number % 4:
            answers = ask_all(copy, extension, QUESTIONS)
        else:  # each meets the damage first
            answers = [ask(copy, extension, question) for question in QUESTIONS]
        print(what, [answer if isinstance(answer, str) else len(answer) for answer in answers], flush=True)
        found = ask(copy, extension, INTACT)
        assert found == intact, f"{what}: {found}"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), [int(number) for number in sys.argv[4:]])
