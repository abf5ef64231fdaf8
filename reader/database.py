"""The database as the reader sees it: checked, opened for reading, never created or changed.

All of the reader calls it. dumper/schema.sql describes the ordinary tables; `event` and the other
virtual tables come from the extension (csrc/query/sqlite_trace.c), which is loaded into each
connection. No query is left open, no transaction is held, and a long search ends its transaction
now and then. So a reader does not keep the dumper from emptying its WAL.
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

from ..messages import why
from .damage import Damage
from .rows import Row, Run, Source
from .rows import text as text

APPLICATION_ID = 0x70747263  # "ptrc"; set by the dumper, as is the version
VERSION = 2
DEFAULT_PATH = "traces.sqlite"
_MAGIC = b"SQLite format 3\0"
_HEADER_SIZE = 100
# If a database is missing: files of its folder that are looked at, and databases that are named.
_LOOKED_AT, _NAMED = 500, 5
_BUSY_MS = 2000
_CACHE_KIB = 16 << 10  # it holds the index that each query scans
_PAGE_CHARACTERS = 8 << 20
# Steps of SQLite's machine between two looks at the clock and at Ctrl-C. Reading a segment takes
# some ten steps and less than a millisecond; a row takes some twenty steps and a microsecond.
_STEPS = 100
_MOMENT = 0.002  # s, for more rows once there are enough
_SHAPES: dict[str, Any] = {"i": int, "n": int | None, "b": bytes, "o": bytes | None}
# Names that have to be tables in the file, and names that only the extension may have.
_STORED = ("run", "process", "thread", "code", "type", "segment")
_LATER = ("source_file",)  # of which an earlier version made none
_MADE = ("event", "argument", "call", "stack", "hot", "line", "source", "variable", "damage", "skipped")
_FLOCK = "hhqqi4x"  # struct flock
_SHARED_LOCKS = (0x40000002, 510)  # where each connection in WAL mode has a lock; their number
_TASKS = 1  # of segment.kinds: SUMMARY_TASKS
_LAST_ID = (1 << 63) - 1  # of no event

# The columns that reading needs.
_COLUMNS = (
    "SELECT 1 FROM (SELECT clock_epoch_ns, clock_epoch_units, clock_scale FROM run),"
    " (SELECT pid FROM process), (SELECT stream, process, tid, name FROM thread),"
    " (SELECT number, module, func, file, line, arguments FROM code), (SELECT number, name FROM type),"
    ' (SELECT id, run, stream, start, "end", base_depth, min_depth, max_depth, count, size, kinds,'
    " max_duration, codes, data FROM segment) LIMIT 0"
)
_UPGRADE = "Upgrade with: pip install --upgrade pytracer"

Parameter: TypeAlias = int | str
T = TypeVar("T")


class DatabaseError(Exception):
    """The database cannot be read; the message is for a person, and says what to do."""


class Damaged(DatabaseError):
    """The file lacks something that it should have. `reason` is the message's core."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is damaged or cut off ({reason}). Copy it again from where it came, or save what is "
            f"left with: sqlite3 {path} .recover"
        )
        self.reason = reason


class Page(NamedTuple, Generic[T]):
    """Some rows, each as `make` returned it; time and id of the last one; whether the query has
    ended, by its rows, its limit or its size. In a page without rows `last` is the place that the
    search has reached."""

    made: list[T]
    last: tuple[int, int] | None
    ended: bool
    full: bool


class Database:
    """A database of recordings. Raises DatabaseError if there is none to read."""

    def __init__(self, path: str, watch: Callable[[], object] | None = None) -> None:
        """watch: called every few ms while a query runs; an exception in it ends the query."""
        self.path = path
        self._watch = watch
        self._connection: apsw.Connection | None = None
        self._seen: tuple[int, ...] = ()
        self._damages: dict[int, Damage] = {}
        self._page: list[Any] | None = None  # the page that is being read ...
        self._due = 0.0  # ... is handed out at this time, by time.monotonic()
        self._reached: Callable[[], int | None] = _reached  # no row up to this time has come
        self._until: int | None = None  # its answer at the last look
        self._version = VERSION
        _check_file(path)
        self._check_kind()

    def close(self) -> None:
        if self._connection is not None:
            self._note_damages(self._connection)
            self._connection.close()
            self._connection = None

    def query(self, shape: str, sql: str, parameters: Sequence[Parameter] = ()) -> list[tuple[Any, ...]]:
        """All rows of one statement, as the database is at this moment.

        shape: the required type of each column: `i` int, `n` int or NULL, `b` bytes, `o`
        bytes or NULL.
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
        enough: int | None = None,
    ) -> Page[T]:
        """The first rows of a statement that selects EVENT, from events alone, in the order of time
        and id (backwards: in the reverse order).

        At most `limit` rows; fewer if the next ones take more than some seconds (once there are
        `enough`: more than a moment), or if they are large. There may be none, if somebody writes
        to the database meanwhile. after: time and id; rows up to this place are skipped.
        """
        last = after

        def read(cursor: apsw.Cursor) -> bool:
            nonlocal last
            room = _PAGE_CHARACTERS
            for row in cursor:
                id, at, args = row[0], row[2], row[13]
                if after and at == after[0] and (id >= after[1] if backwards else id <= after[1]):
                    continue
                made.append(make(row))
                last = at, id
                if len(made) == enough:
                    self._due = min(self._due, time.monotonic() + _MOMENT)
                room -= len(args)
                if len(made) >= limit or room < 0:
                    return False
            return True

        def reached() -> int | None:
            at = _reached()
            if at is None or (after and (at >= after[0] if backwards else at <= after[0])):
                return None
            return at

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
        """The result of `read` over a statement's rows, as the database is at this moment."""
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
                raise self._newer(explained(self.path, error)) from error
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
        """An open connection, with the extension's tables; a new one if the file has changed."""
        # SQLite makes a -wal and a -shm file beside a database in WAL mode, even for a reader, and
        # leaves them there. If there is no writer (no -wal, or an empty one), the file is read as
        # immutable instead, which also works in a read-only folder. If a writer comes meanwhile,
        # `_ask` notices it, and asks again.
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

    def pause(self) -> None:
        """For long work between two queries: calls `watch`, which may end it."""
        if self._watch:
            self._watch()

    def _look(self) -> bool:
        # here, between two bytecodes, Ctrl-C becomes KeyboardInterrupt
        if self._watch:
            self._watch()
        if self._page is None or time.monotonic() < self._due:
            return False
        if not self._page and not self._seen:  # a writer may be waiting for us
            self._until = self._reached()
        return bool(self._page) or self._until is not None

    def _changed(self) -> bool:
        # a deleted file can still be read to its end
        state = _file_state(self.path)
        return bool(self._seen and state) and (_has_writer(self.path) or self._seen != state)

    def _check_kind(self) -> None:
        ((application,),) = self.query("i", "PRAGMA application_id")
        ((version,),) = self.query("i", "PRAGMA user_version")
        if application != APPLICATION_ID:
            raise DatabaseError(
                f"{self.path} is a database of another program, not a recording. {_how_to_record(self.path)}"
            )
        if version < VERSION:
            raise DatabaseError(
                f"{self.path} has format {version}, which this pytrace (format {VERSION}) does not read. "
                f"{_how_to_record(self.path)}"
            )
        self._version = version
        try:
            self._check_tables()
            self.query("", _COLUMNS)
        except Damaged as error:
            raise self._newer(error) from error

    def _newer(self, error: DatabaseError) -> DatabaseError:
        """The error; in a database of a later version it means that this version cannot read it."""
        if self._version == VERSION or not isinstance(error, Damaged):
            return error
        return DatabaseError(
            f"{self.path} was made by a newer pytrace (format {self._version}; this one reads {VERSION}), "
            f"and this one cannot read it ({error.reason}). {_UPGRADE}"
        )

    def has_column(self, table: str, column: str) -> bool:
        """False: an earlier version made the database, and did not store this column."""
        ((number,),) = self.query(
            "i", "SELECT count(*) FROM pragma_table_info(?) WHERE name = ?", (table, column)
        )
        return bool(number)

    def _check_tables(self) -> None:
        """Refuses views and virtual tables in the place of our tables: they might run for ever."""
        names = ", ".join(f"'{name}'" for name in _STORED + _LATER + _MADE)
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
            if text(name) in _LATER and text(name) not in tables:
                raise Damaged(self.path, f"{text(name)} is no table but a {text(kind)}")
            if text(name) in _MADE:
                raise Damaged(self.path, f"a {text(kind)} of its own has the name {text(name)}")

    # ---- what could not be read ----

    def damages(self) -> list[Damage]:
        """The segments that queries so far could not read, or not to their end."""
        if self._connection is not None:
            self._note_damages(self._connection)
        return list(self._damages.values())

    def _note_damages(self, connection: apsw.Connection) -> None:
        try:
            rows: list[Any] = connection.execute(
                "SELECT segment, run, events, read, reason FROM damage"
            ).fetchall()
        except apsw.Error:
            return  # the damage is too large to list segments
        self._damages.update((row[0], Damage(*row)) for row in rows)

    # ---- tables ----

    def size(self) -> int:
        """Bytes on disk, with the pages of the WAL that are not in the file yet."""
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
        named = {(pid, tid) for pid, tid, name, _ in rows if name}  # a thread may have several streams
        return [
            Source(run, pid, tid, text(name), bool(tasks))
            for pid, tid, name, tasks in rows
            if name or (pid, tid) not in named
        ]


def is_written(path: str) -> bool:
    """Whether a process of this machine has the database open in WAL mode, as a dumper has. Only to
    be asked while this process has not: closing any descriptor of the file would end SQLite's own
    locks on it."""
    import fcntl
    import struct

    if not os.path.isfile(path):
        return False  # Database says so
    try:
        with open(path, "rb") as file:
            asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, *_SHARED_LOCKS, 0)
            kind, *_ = struct.unpack_from(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
            return bool(kind != fcntl.F_UNLCK)
    except OSError:
        return False


def extension_path() -> str:
    """The file of SQLite's extension. Raises DatabaseError."""
    spec = find_spec("pytracer.sqlite_trace")  # finds, does not load
    if spec is None or spec.origin is None:
        raise DatabaseError("pytrace is not wholly installed: its extension of SQLite is missing")
    return spec.origin


def _reached() -> int | None:
    """The time up to which this thread's scan has handed out all events (backwards: from which on).
    None: no scan runs."""
    import ctypes

    time = ctypes.c_int64()
    # the same path gives the library that SQLite has loaded
    found = ctypes.CDLL(extension_path()).sqlite_trace_reached(ctypes.byref(time))
    return time.value if found else None


def _provide_zstd(connection: apsw.Connection) -> None:
    """Loads Python's zstd if the extension does not find the machine's own."""
    try:
        connection.execute("SELECT 1 FROM event WHERE id = 0").fetchall()
    except (apsw.SQLError, apsw.CorruptError):  # the file may be another program's
        name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        with suppress(ImportError):  # then the first query says so
            import_module(name)


def _quoted(path: str) -> str:
    """A path in the form of a URI."""
    # urllib.parse.quote does the same, but its import takes longer than opening a database
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
    """Explains problems of which SQLite only says that it cannot open the file."""
    if not path:
        raise DatabaseError("the name of a database is expected, and this one is empty")
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
            size = os.fstat(file.fileno()).st_size  # after the header: it may grow
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
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {why(error)}") from None
    except ValueError as error:
        raise DatabaseError(f"{path!r} cannot be read: {error}") from None
    if not header:
        raise DatabaseError(f"{path} is empty: nothing has been recorded into it. {_how_to_record(path)}")
    if header[: len(_MAGIC)] != _MAGIC:
        raise DatabaseError(f"{path} is not a database. {_how_to_record(path)}")
    # SQLite would notice a cut only when it reads the missing part
    page_size = int.from_bytes(header[16:18]) if header[16:18] != b"\0\1" else 1 << 16
    whole = page_size * int.from_bytes(header[28:32])
    if (len(header) < _HEADER_SIZE or size < whole) and not _has_writer(path):
        raise Damaged(path, f"{size} of {whole} bytes are there")


def _recordings(folder: str) -> list[str]:
    """Some databases of recordings in a folder, in the order of their names."""
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


def _extended(error: apsw.Error) -> int:
    return int(getattr(error, "extendedresult", 0))


def explained(path: str, error: apsw.Error) -> DatabaseError:
    """An error of SQLite in words for a person."""
    if "zstd, which is not here" in str(error):
        return DatabaseError(str(error))
    if "recorded by a newer pytrace" in str(error):
        return DatabaseError(f"{path}: {error}. {_UPGRADE}")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.SQLError | apsw.MismatchError):
        return Damaged(path, str(error))
    if isinstance(error, apsw.NoMemError):
        return DatabaseError(f"there is not enough memory to read {path}; ulimit -v may bound it")
    if isinstance(error, apsw.FullError) or _extended(error) == apsw.SQLITE_IOERR_GETTEMPPATH:
        return DatabaseError(
            f"there is no room for temporary files, which this takes ({error}). "
            "SQLITE_TMPDIR names another folder for them."
        )
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as reason:
            return DatabaseError(f"{path} cannot be opened: {why(reason)}")
        return DatabaseError(
            f"{path} cannot be opened ({error}): it is being written, and its folder does not let you "
            f"take part. Copy it together with {path}-wal to a folder of yours, and read it there."
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return DatabaseError(f"{path} is locked by another program ({error}). Try again when it is done.")
    return DatabaseError(f"{path} cannot be read: {error}")
