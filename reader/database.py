"""The database as the reader sees it: checked, opened for reading, never created or changed.

Called by everything in the reader. dumper/schema.sql says what the ordinary tables hold; `event` and
its like come from the extension (csrc/sqlite_trace.c), which is loaded into each connection. No query
is left open and no transaction is held, and who looks for events lets go now and then, so that a reader
does not keep the dumper from emptying its WAL.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import apsw

from .damage import Damage
from .model import Row, Run, Source
from .model import text as text

APPLICATION_ID = 0x70747263  # "ptrc"; set by the dumper, as is the version
VERSION = 2
DEFAULT_PATH = "traces.sqlite"
_MAGIC = b"SQLite format 3\0"
_HEADER_SIZE = 100
_LOOKED_AT, _NAMED = 500, 5  # files of a folder where a database is missing, and databases that are told then
_BUSY_MS = 2000
_CACHE_KIB = 16 << 10  # the index that each query looks through stays in it
_PAGE_CHARACTERS = 8 << 20
# Of SQLite's machine, between two looks at the clock and at Ctrl-C. A segment that is read is some ten
# steps and less than a millisecond, a row that is handed out some twenty and a microsecond.
_STEPS = 100
_SHAPES: dict[str, Any] = {"i": int, "n": int | None, "b": bytes}
# Names in the file: what has to be a table there, and what only the extension may have.
_STORED = ("run", "process", "thread", "code", "type", "segment")
_MADE = ("event", "argument", "call", "stack", "hot", "damage")
_TASKS = 1  # of segment.kinds: SUMMARY_TASKS
_LAST_ID = (1 << 63) - 1  # of no event

Parameter: TypeAlias = int | str
T = TypeVar("T")


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


class Page(NamedTuple, Generic[T]):
    """Some rows, as what was made of each; time and id of the last; whether there are no more, or as many as
    were asked for, or there is room for. Of a page without a row `last` is how far the search has come."""

    made: list[T]
    last: tuple[int, int] | None
    ended: bool
    full: bool


class Database:
    """A database of recordings. Raises DatabaseError where there is none to read."""

    def __init__(self, path: str, watch: Callable[[], object] | None = None) -> None:
        """watch: called every few ms while a query runs; what it raises ends the query."""
        self.path = path
        self._watch = watch
        self._connection: apsw.Connection | None = None
        self._seen: tuple[int, ...] = ()
        self._damages: dict[int, Damage] = {}
        self._page: list[Any] | None = None  # that is being read ...
        self._due = 0.0  # ... and is handed out at this time, by time.monotonic()
        self._reached: Callable[[], int | None] = _reached  # the time until which no row of it has come
        self._until: int | None = None  # its answer at the last look
        _check_file(path)
        self._check_kind()

    def close(self) -> None:
        if self._connection is not None:
            self._note_damages(self._connection)
            self._connection.close()
            self._connection = None

    def query(self, shape: str, sql: str, parameters: Sequence[Parameter] = ()) -> list[tuple[Any, ...]]:
        """All rows of one statement, as the database is at this moment.

        shape: of each column the type that it has to have: `i` int, `n` int or NULL, `b` bytes.
        """
        rows = self._ask(sql, parameters, lambda cursor: cursor.fetchall())
        types = [_SHAPES[letter] for letter in shape]
        if not all(isinstance(value, type) for row in rows for value, type in zip(row, types, strict=True)):
            raise Damaged(self.path, "a value of another type than its column's")
        return rows

    def page(
        self,
        sql: str,
        parameters: Sequence[Parameter],
        make: Callable[[Row], T],
        limit: int,
        seconds: float,
        after: tuple[int, int] | None = None,
        backwards: bool = False,
    ) -> Page[T]:
        """The first rows of a statement that selects EVENT in the order of time and id (backwards: the other
        way round), and is about events alone.

        At most `limit` rows; fewer where the next ones do not come within some seconds, or they are large;
        none, where somebody writes to the database meanwhile. after: time and id; rows up to these are
        passed over.
        """
        last = after

        def read(cursor: apsw.Cursor) -> bool:
            nonlocal last
            room = _PAGE_CHARACTERS
            for row in cursor:
                id, _, time, _, _, _, _, _, _, _, _, _, _, args, _ = row
                if after and time == after[0] and (id >= after[1] if backwards else id <= after[1]):
                    continue
                made.append(make(row))
                last = time, id
                room -= len(args)
                if len(made) >= limit or room < 0:
                    return False
            return True

        def reached() -> int | None:
            time = _reached()
            if time is None or (after and (time >= after[0] if backwards else time <= after[0])):
                return None
            return time

        while True:
            made: list[T] = []
            self._page, self._reached, self._until, last = made, reached, None, after
            self._due = time.monotonic() + seconds
            ended = interrupted = False
            try:
                ended = self._ask(sql, parameters, read)
            except apsw.InterruptError:
                if self._changed():
                    continue
                interrupted = True
            finally:
                self._page = None
            if not made and self._until is not None:
                last = self._until, _LAST_ID if backwards else 0
            return Page(made, last, ended, not (ended or interrupted))

    def _ask(self, sql: str, parameters: Sequence[Parameter], read: Callable[[apsw.Cursor], T]) -> T:
        """What is read of a statement's rows, as the database is at this moment."""
        while True:
            try:
                cursor = self.connection().cursor()
                try:
                    answer = read(cursor.execute(sql, tuple(parameters)))
                finally:
                    cursor.close(True)
            except apsw.InterruptError:
                raise
            except apsw.Error as error:
                self._forget_page()
                if self._changed():
                    continue
                raise explained(self.path, error) from error
            except OverflowError:
                raise DatabaseError("this number is larger than any in a recording") from None
            except UnicodeDecodeError as error:
                raise Damaged(self.path, str(error)) from error
            if not self._changed():
                return answer
            self._forget_page()

    def _forget_page(self) -> None:
        if self._page:
            self._page.clear()

    def connection(self) -> apsw.Connection:
        """An open connection, with the extension's tables. Another one, where the file has been changed."""
        # SQLite makes a -wal and a -shm file beside a database in WAL mode even for those who only
        # read, and leaves them there. Without a writer (no -wal, or an empty one) the file can be
        # read as immutable instead, also where its folder is read-only. Should a writer come up
        # meanwhile, `_ask` notices, and asks again.
        if self._connection is not None and not self._changed():
            return self._connection
        self.close()
        self._seen = _file_state(self.path) if not _has_writer(self.path) else ()
        mode = "mode=ro&immutable=1" if self._seen else "mode=ro"
        uri = f"file:{_quoted(os.path.abspath(self.path))}?{mode}"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        try:
            self._connection = connection = apsw.Connection(uri, flags=flags)
            connection.set_busy_timeout(_BUSY_MS)
            connection.execute("PRAGMA trusted_schema = OFF").fetchall()
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}").fetchall()
            connection.enable_load_extension(True)
            connection.load_extension(extension_path())
            connection.enable_load_extension(False)
            _provide_zstd(connection)
            connection.set_progress_handler(self._look, _STEPS, id=Database)
        except apsw.Error as error:
            raise explained(self.path, error) from error
        return connection

    def _look(self) -> bool:
        # here, between two bytecodes, Ctrl-C becomes KeyboardInterrupt
        if self._watch:
            self._watch()
        if self._page is None or time.monotonic() < self._due:
            return False
        if not self._page and not self._seen:  # somebody writes, and may wait for us
            self._until = self._reached()
        return bool(self._page) or self._until is not None

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
        self._check_tables()

    def _check_tables(self) -> None:
        """A view or a virtual table in the place of one of ours might run for ever; an index cannot."""
        names = ", ".join(f"'{name}'" for name in _STORED + _MADE)
        found = self.query(
            "bbi",
            "SELECT CAST(lower(name) AS BLOB), CAST(type AS BLOB), coalesce(rootpage, 0) FROM sqlite_schema"
            f" WHERE lower(name) IN ({names})",
        )
        tables = {text(name) for name, kind, page in found if kind == b"table" and page}
        for name in _STORED:
            if name not in tables:
                raise Damaged(self.path, f"there is no table {name}")
        for name, kind, _ in found:
            if text(name) in _MADE:
                raise Damaged(self.path, f"a {text(kind)} of its own has the name {text(name)}")

    # ---- what could not be read ----

    def damages(self) -> list[Damage]:
        """The segments that could not be read, or not to their end, so far."""
        if self._connection is not None:
            self._note_damages(self._connection)
        return list(self._damages.values())

    def _note_damages(self, connection: apsw.Connection) -> None:
        try:
            rows: list[Any] = connection.execute(
                "SELECT segment, run, events, read, reason FROM damage"
            ).fetchall()
        except apsw.Error:
            return  # so much is damaged that this is not what has to be said
        self._damages.update((row[0], Damage(*row)) for row in rows)

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
            "ibbbinniini",
            "SELECT id, CAST(command AS BLOB), CAST(directory AS BLOB), CAST(python AS BLOB), started,"
            " finished, exit_status, lost, evicted, evicted_until, refused FROM run ORDER BY id",
        )
        return [
            Run(id, text(command), text(directory), text(python), *numbers)
            for id, command, directory, python, *numbers in rows
        ]

    def sources(self, run: int) -> list[Source]:
        """All threads of a run that recorded something so far."""
        rows = self.query(
            "iibi",
            "SELECT coalesce(pid, 0), tid, CAST(name AS BLOB),"
            f" EXISTS (SELECT 1 FROM segment INDEXED BY segment_time WHERE run = ?1 AND kinds & {_TASKS})"
            " FROM thread LEFT JOIN process ON process.run = thread.run AND number = process"
            " WHERE thread.run = ?1",
            (run,),
        )
        return [Source(run, pid, tid, text(name), bool(tasks)) for pid, tid, name, tasks in rows]


def extension_path() -> str:
    """The file of SQLite's extension. Raises DatabaseError."""
    spec = find_spec("pytracer.sqlite_trace")  # finds it without loading it
    if spec is None or spec.origin is None:
        raise DatabaseError("pytrace is not wholly installed: its extension of SQLite is missing")
    return spec.origin


def _reached() -> int | None:
    """The time until which this thread's scan has handed out all events (backwards: from which on). None: it
    is in none."""
    import ctypes

    time = ctypes.c_int64()
    # opened by its path it is the one that SQLite has loaded
    found = ctypes.CDLL(extension_path()).sqlite_trace_reached(ctypes.byref(time))
    return time.value if found else None


def _provide_zstd(connection: apsw.Connection) -> None:
    """Loads Python's zstd where this machine has none that the extension finds by itself."""
    try:
        connection.execute("SELECT 1 FROM event WHERE id = 0").fetchall()
    except apsw.SQLError:
        name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        with suppress(ImportError):  # then the first question says what is missing
            import_module(name)


def _quoted(path: str) -> str:
    """A path as it stands in a URI."""
    # as urllib.parse.quote, whose import takes longer than opening a database
    return "".join(
        chr(byte) if byte < 128 and (chr(byte).isalnum() or byte in b"/-._~") else f"%{byte:02X}"
        for byte in os.fsencode(path)
    )


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
        others = _recordings(os.path.dirname(path) or ".")
        here = f" There is: {', '.join(others)}." if others else ""
        raise DatabaseError(f"there is no {path}.{here} Record one with: pytrace {option}script.py") from None
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


def _recordings(folder: str) -> list[str]:
    """Some databases of recordings in a folder, by their names' order."""
    found = []
    with suppress(OSError):
        for name in sorted(os.listdir(folder))[:_LOOKED_AT]:
            path = os.path.join(folder, name)
            with suppress(OSError):
                if not stat.S_ISREG(os.stat(path).st_mode):
                    continue
                with open(path, "rb") as file:
                    header = file.read(_HEADER_SIZE)
                if header.startswith(_MAGIC) and header[68:72] == APPLICATION_ID.to_bytes(4):
                    found.append(path if folder != "." else name)
    return found[:_NAMED]


def explained(path: str, error: apsw.Error) -> DatabaseError:
    """What an error of SQLite means for a person."""
    if "zstd, which is not here" in str(error):
        return DatabaseError(str(error))
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
