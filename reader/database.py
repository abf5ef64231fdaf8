"""The database as the reader sees it: checked, opened for reading, never created or changed.

Called by everything in the reader. dumper/schema.sql says what the tables hold. No query is left
open and no transaction is held, so that a reader never keeps the dumper from emptying its WAL.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import apsw

from .model import NO_CODE, UNDEFINED, Code, Run, Source

APPLICATION_ID = 0x70747263  # "ptrc"; set by the dumper, as is the version
VERSION = 2
DEFAULT_PATH = "traces.sqlite"
_MAGIC = b"SQLite format 3\0"
_HEADER_SIZE = 100
_BUSY_MS = 2000
_SHAPES: dict[str, Any] = {"i": int, "n": int | None, "b": bytes}


class DatabaseError(Exception):
    """The database cannot be read; the message is for a person, and says what to do."""


class Damaged(DatabaseError):
    """What should be in the file is not. `reason` is the message's core."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is damaged or cut off ({reason}). Copy it again from where it came, or save what is "
            f"left with: sqlite3 {path} .recover"
        )
        self.reason = reason


class Database:
    """A database of recordings. Raises DatabaseError where there is none to read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection: apsw.Connection | None = None
        self._seen: tuple[int, ...] = ()
        _check_file(path)
        self._check_kind()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def query(self, shape: str, sql: str, parameters: Sequence[int] = ()) -> list[tuple[Any, ...]]:
        """All rows of one statement, as the database is at this moment.

        shape: of each column the type that it has to have: `i` int, `n` int or NULL, `b` bytes.
        """
        while True:
            try:
                connection = self._connect()
                rows = connection.execute(sql, tuple(parameters)).fetchall()
            except apsw.Error as error:
                if self._changed():
                    continue
                raise _explained(self.path, error) from error
            except UnicodeDecodeError as error:
                raise Damaged(self.path, str(error)) from error
            if not self._changed():
                break
        types = [_SHAPES[letter] for letter in shape]
        if not all(isinstance(value, type) for row in rows for value, type in zip(row, types, strict=True)):
            raise Damaged(self.path, "a value of another type than its column's")
        return rows

    def _connect(self) -> apsw.Connection:
        # SQLite makes a -wal and a -shm file beside a database in WAL mode even for those who only
        # read, and leaves them there. Without a writer (no -wal, or an empty one) the file can be
        # read as immutable instead, also where its folder is read-only. Should a writer come up
        # meanwhile, `query` notices, and asks again.
        if self._connection is not None and not self._changed():
            return self._connection
        self.close()
        self._seen = _file_state(self.path) if not _has_writer(self.path) else ()
        mode = "mode=ro&immutable=1" if self._seen else "mode=ro"
        uri = f"file:{quote(os.fsencode(os.path.abspath(self.path)))}?{mode}"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        self._connection = connection = apsw.Connection(uri, flags=flags)
        connection.set_busy_timeout(_BUSY_MS)
        connection.execute("PRAGMA trusted_schema = OFF").fetchall()
        return connection

    def _changed(self) -> bool:
        # a file that was deleted can still be read to its end
        state = _file_state(self.path)
        return bool(self._seen and state) and (_has_writer(self.path) or self._seen != state)

    def _check_kind(self) -> None:
        ((application,),) = self.query("i", "PRAGMA application_id")
        ((version,),) = self.query("i", "PRAGMA user_version")
        if application != APPLICATION_ID:
            raise DatabaseError(
                f"{self.path} is a database of another program, not a recording. {_how_to_record(self.path)}"
            )
        if version > VERSION:
            raise DatabaseError(
                f"{self.path} was made by a newer pytrace (format {version}; this one reads {VERSION}). "
                "Upgrade with: pip install --upgrade pytracer"
            )
        if version != VERSION:
            raise DatabaseError(
                f"{self.path} has format {version}, which this pytrace (format {VERSION}) does not read. "
                f"{_how_to_record(self.path)}"
            )

    # ---- tables ----

    def size(self) -> int:
        """Bytes on disk, with what has not yet been moved from the WAL into the file."""
        total = os.stat(self.path).st_size
        try:
            return total + os.stat(self.path + "-wal").st_size
        except FileNotFoundError:
            return total

    def runs(self) -> list[Run]:
        """All recordings, the oldest first."""
        rows = self.query(
            "ibbbinniiiiii",
            "SELECT id, CAST(command AS BLOB), CAST(directory AS BLOB), CAST(python AS BLOB), started,"
            " finished, exit_status, lost, evicted, refused, clock_epoch_ns, clock_epoch_units, clock_scale"
            " FROM run ORDER BY id",
        )
        return [
            Run(id, text(command), text(directory), text(python), *numbers)
            for id, command, directory, python, *numbers in rows
        ]

    def finished(self, run: int) -> bool:
        """Whether the recording has ended (or is no longer in the database)."""
        return self.query("n", "SELECT finished FROM run WHERE id = ?", (run,)) not in ([(None,)],)

    def source(self, run: int, stream: int, process: int) -> Source:
        """The thread that wrote a stream, by the name that it has now."""
        rows = self.query(
            "ib", "SELECT tid, CAST(name AS BLOB) FROM thread WHERE run = ? AND stream = ?", (run, stream)
        )
        tid, name = rows[0] if rows else (0, b"")
        pids = self.query("i", "SELECT pid FROM process WHERE run = ? AND number = ?", (run, process))
        return Source(run, pids[0][0] if pids else 0, tid, text(name))

    def sources(self, run: int) -> list[Source]:
        """All threads of a run that recorded something so far."""
        rows = self.query(
            "iib",
            "SELECT coalesce(pid, 0), tid, CAST(name AS BLOB) FROM thread LEFT JOIN process"
            " ON process.run = thread.run AND number = process WHERE thread.run = ?",
            (run,),
        )
        return [Source(run, pid, tid, text(name)) for pid, tid, name in rows]


class Codes(dict[int, Code]):
    """The code objects of a run by number, each looked up once."""

    def __init__(self, database: Database, run: int) -> None:
        super().__init__({0: NO_CODE})
        self._database, self._run = database, run

    def __missing__(self, number: int) -> Code:
        rows = self._database.query(
            "bbbib",
            "SELECT CAST(module AS BLOB), CAST(func AS BLOB), CAST(file AS BLOB), line,"
            " CAST(arguments AS BLOB) FROM code WHERE run = ? AND number = ?",
            (self._run, number),
        )
        if not rows:
            return UNDEFINED  # not kept: it may come
        module, func, file, line, arguments = rows[0]
        try:
            names = tuple(str(name) for name in json.loads(text(arguments)))
        except (ValueError, TypeError):
            names = ()
        self[number] = code = Code(text(module), text(func), text(file), line, names)
        return code


def text(data: bytes) -> str:
    """Stored text, which came from the recorded program: lone surrogates, even broken UTF-8."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace")


def _file_state(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _has_writer(path: str) -> bool:
    for suffix in ("-wal", "-journal"):
        try:
            if os.stat(path + suffix).st_size:
                return True
        except FileNotFoundError:
            pass
    return False


def _how_to_record(path: str) -> str:
    option = "" if path == DEFAULT_PATH else "-o FILE "
    return f"Record one with: pytrace {option}script.py"


def _check_file(path: str) -> None:
    """Says what is wrong where SQLite would only say that it cannot open the file."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            inside = os.path.join(path, DEFAULT_PATH)
            hint = f"Did you mean {inside}?" if os.path.exists(inside) else _how_to_record(path)
            raise DatabaseError(f"{path} is a folder, not a database. {hint}")
        if not stat.S_ISREG(status.st_mode):
            raise DatabaseError(f"{path} is not a file. {_how_to_record(path)}")
        with open(path, "rb") as file:
            header = file.read(_HEADER_SIZE)
            size = os.fstat(file.fileno()).st_size  # behind the header: it may be growing
    except FileNotFoundError:
        option = "" if path == DEFAULT_PATH else f"-o {path} "
        raise DatabaseError(f"there is no {path}. Record one with: pytrace {option}script.py") from None
    except PermissionError:
        raise DatabaseError(
            f"{path} may not be read by you: a recording belongs to the user who made it. "
            "Read it as that user, or let them give you the right to."
        ) from None
    except (OSError, ValueError) as error:
        raise DatabaseError(f"{path} cannot be read: {error}") from None
    if not header:
        raise DatabaseError(f"{path} is empty: nothing has been recorded into it. {_how_to_record(path)}")
    if header[: len(_MAGIC)] != _MAGIC:
        raise DatabaseError(f"{path} is not a database. {_how_to_record(path)}")
    # SQLite would notice only when it comes to what is missing
    page_size = int.from_bytes(header[16:18]) if header[16:18] != b"\0\1" else 1 << 16
    whole = page_size * int.from_bytes(header[28:32])
    if (len(header) < _HEADER_SIZE or size < whole) and not _has_writer(path):
        raise Damaged(path, f"{size} of {whole} bytes are there")


def _explained(path: str, error: apsw.Error) -> DatabaseError:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.SQLError | apsw.MismatchError):
        return Damaged(path, str(error))
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        return DatabaseError(
            f"{path} cannot be opened ({error}): it is being written, and its folder does not let you "
            f"take part. Copy it together with {path}-wal to a folder of yours, and read it there."
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return DatabaseError(f"{path} is locked by another program ({error}). Try again when it is done.")
    return DatabaseError(f"{path} cannot be read: {error}")
