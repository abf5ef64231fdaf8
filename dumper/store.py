"""The database as the dumper sees it: one open file, and in it the run that is being recorded.

It knows SQLite and schema.sql, but no ring: pump.py gives it rows. Everything is written inside of
`with store.transaction():`, so that a crash leaves all or nothing of it.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from .sources import SourceFile

if TYPE_CHECKING:
    from .definitions import CodeRow

APPLICATION_ID = 0x70747263  # 'ptrc'
VERSION = 2  # user_version: of schema.sql
PAGE_SIZE = 16384  # a segment fills a few pages; docs/dumper.md has the measurements
BUSY_SECONDS = 2.0
LOG_WAIT_MS = 20  # for readers and writers, before the log begins anew
LOG_AGAIN_SECONDS = 0.2
EVICT_AT_ONCE = 64  # segments a transaction, so that others do not wait long
SHRINK_AT_ONCE = 64  # pages
SOURCES_SHARE = 16  # of the largest size, 1/16 for the sources of a run

BESIDE = ("-journal", "-wal", "-shm")  # files that SQLite makes
OTHERS_WRITE = 0o022  # mode
SQLITE_HEADER = 100  # bytes; https://www.sqlite.org/fileformat.html
SQLITE_MAGIC = b"SQLite format 3\0"

CHOOSE = "Choose another file with --output."
OR_CHOOSE = "or choose another file with --output."

Step = Callable[[str], None]


class Refused(Exception):
    """The output cannot be recorded to. The text says why and what to do, for a person; `reason`
    says why."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}. {advice}")
        self.reason = reason


class RunStart(NamedTuple):
    """The facts of a recording that are known at its start."""

    recording: str  # the name of its ring
    command: str
    directory: str
    python: str
    clock_epoch_ns: int
    clock_epoch_units: int
    features: int = 0  # csrc/common/feature.h
    options: str | None = None  # a JSON object of texts; None: unknown


class Segment(NamedTuple):
    """A row of the table `segment`, without id and run, in the order of its columns."""

    stream: int
    sequence: int
    process: int
    start: int
    end: int
    base_depth: int
    min_depth: int
    max_depth: int
    events: int
    lost: int
    size: int
    complete: bool
    kinds: int
    max_duration: int
    codes: bytes
    open: bytes
    data: bytes


class Totals(NamedTuple):
    """A run's numbers for the summary."""

    events: int  # recorded, with the evicted ones
    processes: int
    lost: int
    evicted: int
    refused: int  # chunks
    turned_away: int  # processes
    size: int  # bytes of the database, all runs, as if its log were empty


PUT_RUN = """
INSERT INTO run (recording, command, directory, python, started, clock_epoch_ns, clock_epoch_units,
                 clock_scale, features, options)
VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, 0, ?7, ?8) ON CONFLICT (recording) DO NOTHING
"""
# A longer row replaces that of an unfinished chunk, and keeps its id. The row of a complete chunk
# stays: if the chunk comes again, it is the same, or its header has been written over.
PUT_SEGMENT = """
INSERT INTO segment (run, stream, sequence, process, start, "end", base_depth, min_depth, max_depth, count,
                     lost, size, complete, kinds, max_duration, codes, open, data)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
ON CONFLICT (run, stream, sequence) DO UPDATE SET
    "end" = excluded."end", min_depth = excluded.min_depth, max_depth = excluded.max_depth,
    count = excluded.count, size = excluded.size, complete = excluded.complete, kinds = excluded.kinds,
    max_duration = excluded.max_duration, codes = excluded.codes, data = excluded.data
WHERE NOT segment.complete AND segment.process = excluded.process
"""
COMPLETE_SEGMENT = """
SELECT base_depth, open, data FROM segment WHERE run = ? AND stream = ? AND sequence = ? AND complete
"""
OWN_CODES = "SELECT number FROM code WHERE run = ? AND mine"
PUT_PROCESS = """
INSERT INTO process (run, number, pid, parent, started) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run, number) DO UPDATE SET started = excluded.started
"""
PUT_COMMAND = """
INSERT INTO process (run, number, pid, parent, command, started) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (run, number) DO UPDATE SET command = excluded.command
"""
PUT_THREAD = "INSERT OR REPLACE INTO thread (run, stream, process, tid, name, kind) VALUES (?, ?, ?, ?, ?, ?)"
PUT_NAMELESS_THREAD = "INSERT OR IGNORE INTO thread (run, stream, process, tid) VALUES (?, ?, ?, ?)"
PUT_CODE = """
INSERT OR REPLACE INTO code (run, number, module, func, file, line, arguments, flags, language, mine,
                             variables, object, build_id, address)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
PUT_TYPE = "INSERT OR REPLACE INTO type (run, number, name, fields, attributes) VALUES (?, ?, ?, ?, ?)"

PUT_SOURCE = "INSERT OR REPLACE INTO source_file (run, file, changed, size, data) VALUES (?, ?, ?, ?, ?)"
SOURCES_SIZE = "SELECT total(length(data)) FROM source_file WHERE run = ?"
FILES_WITHOUT_SOURCE = """
SELECT DISTINCT file, language, mine FROM code
WHERE run = ?1 AND file NOT IN (SELECT file FROM source_file WHERE run = ?1)
"""

# The oldest segment of all runs. A segment that a run still writes to is no candidate: its chunk is
# in a ring, and would come back. Of other runs than this one (?1) nobody knows whether they still
# write, or were cut off for good. So their unfinished segments go when nothing else is left.
OLDEST = """
SELECT s.id, s.run, s.count,
       r.clock_epoch_ns + CAST((s."end" - r.clock_epoch_units) * (r.clock_scale / 4294967296.0) AS INTEGER)
FROM run r JOIN segment s ON s.id = (
    SELECT id FROM segment WHERE run = r.id AND (complete OR r.finished IS NOT NULL) ORDER BY "end" LIMIT 1)
ORDER BY 4 LIMIT 1
"""
OLDEST_UNFINISHED = OLDEST.replace("(complete OR r.finished IS NOT NULL)", "run <> ?1")
EVICTED = """
UPDATE run SET evicted = evicted + ?2, evicted_until = max(coalesce(evicted_until, ?3), ?3) WHERE id = ?1
"""
CHECK = "SELECT * FROM run, process, thread, code, type, segment LIMIT 0"
FORGOTTEN = """
SELECT finished IS NOT NULL AND NOT EXISTS (SELECT 1 FROM segment WHERE segment.run = run.id)
FROM run WHERE id = ?
"""
# An exec makes one process more, with the same pid. A run ended with the last of its processes, and
# not when all was saved.
FINISH = """
UPDATE run SET finished = coalesce((
    SELECT max(finished) FROM process WHERE run = ?1 HAVING count(*) = count(finished)), ?2),
exit_status = (
    SELECT exit_status FROM process
    WHERE run = ?1 AND pid = (SELECT pid FROM process WHERE run = ?1 AND number = 0)
    ORDER BY number DESC LIMIT 1)
WHERE id = ?1
"""
TOTALS = """
SELECT (SELECT total(count) FROM segment WHERE segment.run = run.id) + evicted,
       (SELECT count(*) FROM process WHERE process.run = run.id), lost, evicted, refused,
       turned_away, (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)
FROM run WHERE id = ?
"""
# Columns that older databases of this version lack: table, name and declaration.
LATER_COLUMNS = (
    ("run", "turned_away", "INTEGER NOT NULL DEFAULT 0"),
    ("process", "replaced", "INTEGER NOT NULL DEFAULT 0"),
    ("run", "features", "INTEGER NOT NULL DEFAULT 0"),
    ("run", "options", "TEXT"),
    ("thread", "kind", "TEXT NOT NULL DEFAULT 'thread'"),
    ("code", "language", "TEXT NOT NULL DEFAULT 'python'"),
    ("code", "mine", "INTEGER NOT NULL DEFAULT 0"),
    ("type", "fields", "TEXT"),
    ("type", "attributes", "TEXT"),
    ("segment", "kind", "INTEGER NOT NULL DEFAULT 0"),
    ("segment", "open", "BLOB"),
    ("code", "variables", "TEXT NOT NULL DEFAULT '[]'"),
    ("code", "object", "TEXT"),
    ("code", "build_id", "TEXT"),
    ("code", "address", "INTEGER"),
)
# Tables that they lack; CHECK_LATER is for afterwards.
LATER_TABLES = ("source_file",)
CHECK_LATER = "SELECT run, file, changed, size, data FROM source_file LIMIT 0"
DEFINITIONS = ("code", "type", "thread", "process", "source_file")


def no_step(name: str) -> None:
    """Does nothing; the tests' stand-in dies here."""


class Kept(NamedTuple):
    """The rows that later segments refer to."""

    clock_scale: int
    definitions: dict[str, list[dict[str, Any]]]  # rows by table, values by column


class Store:
    """The open database. Each method may raise apsw.Error (locked, full, ...); then nothing of the
    transaction is stored."""

    def __init__(
        self, path: str, run: RunStart, max_size: int, max_events: int, step: Step = no_step
    ) -> None:
        """Opens or makes the database at `path` (absolute) and takes up the run in it.

        max_size: bytes that the database may take; max_events: events it may hold, 0: any number.
        Raises Refused if the file cannot be recorded to, and leaves it as it is.
        """
        self.path = path
        self.max_events = max_events
        self._step = step
        # SQLite copies the log into the database (checkpoint) when the log has grown to this. The
        # disk must hold both together.
        log_pages = max(16, min(1000, max_size // 16 // PAGE_SIZE))
        self._log_size = log_pages * PAGE_SIZE
        self._log_next = 0.0  # time.monotonic() of the next look at the log
        self._max_pages_size = max_size - self._log_size
        self._max_size = max_size
        self._max_sources_size = max_size // SOURCES_SHARE
        self._db = _open(path, step)
        try:
            self._file = _identity(path)
            self._db.execute(f"PRAGMA wal_autocheckpoint = {log_pages}")
            self._db.execute(f"PRAGMA journal_size_limit = {log_pages * PAGE_SIZE}")
            self._page_size = self._pragma("page_size")
            with self.transaction():
                self._db.execute(PUT_RUN, run)
                row = self._db.execute("SELECT id FROM run WHERE recording = ?", (run.recording,)).get
            self.run = int(row)
            self._sources_size = int(self._db.execute(SOURCES_SIZE, (self.run,)).get)
            self._beside = {path + suffix: _identity(path + suffix) for suffix in ("-wal", "-shm")}
        except apsw.Error as error:
            refusal = _refusal(path, error, self._db.system_errno)
            self._db.close()
            raise refusal from None

    # ---- writing ------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Stores everything inside of it, or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._step("before commit")
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite rolls back by itself if the disk is full
                self._db.execute("ROLLBACK")
            raise
        self._step("after commit")

    def put_segments(self, segments: Iterable[Segment]) -> None:
        """Stores segments, or replaces them, by (stream, sequence)."""
        self._db.executemany(PUT_SEGMENT, ((self.run, *segment) for segment in segments))

    def complete_segment(self, stream: int, sequence: int) -> tuple[int, bytes | None, bytes] | None:
        """base_depth, open and data of a segment that will not grow any more. None: there is no
        such row."""
        row: Any = self._db.execute(COMPLETE_SEGMENT, (self.run, stream, sequence)).fetchone()
        if row is None:
            return None
        base_depth, open, data = row
        return base_depth, open, data

    def own_codes(self) -> list[int]:
        """The numbers of the code objects that are own code."""
        rows: Any = self._db.execute(OWN_CODES, (self.run,))
        return [number for (number,) in rows]

    def put_codes(self, rows: Iterable["CodeRow"]) -> None:
        """Rows of the table `code`, without run."""
        self._db.executemany(PUT_CODE, ((self.run, *row) for row in rows))

    def put_types(self, rows: Iterable[tuple[int, str, str | None, str | None]]) -> None:
        """Rows of the table `type`, without run."""
        self._db.executemany(PUT_TYPE, ((self.run, *row) for row in rows))

    def put_threads(self, rows: Iterable[tuple[int, int, int, str, str]]) -> None:
        """Rows of the table `thread`, without run."""
        self._db.executemany(PUT_THREAD, ((self.run, *row) for row in rows))

    def put_nameless_threads(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Stream, process and tid of threads that may have no row yet."""
        self._db.executemany(PUT_NAMELESS_THREAD, ((self.run, *row) for row in rows))

    def put_processes(self, rows: Iterable[tuple[int, int, int | None, int]]) -> None:
        """Number, pid, parent's number and start (ns since 1970) of processes."""
        self._db.executemany(PUT_PROCESS, ((self.run, *row) for row in rows))

    def put_commands(self, rows: Iterable[tuple[int, int, int | None, str]], now: int) -> None:
        """Number, pid, parent's number and command of processes; the processes may be put before or
        after. now: ns since 1970."""
        self._db.executemany(PUT_COMMAND, ((self.run, *row, now) for row in rows))

    def end_process(self, number: int, now: int, exit_status: int | None, lost: int, replaced: bool) -> None:
        """Everything of the process is stored. now: the time of its end, ns since 1970; the other
        parameters are columns of schema.sql."""
        self._db.execute(
            "UPDATE process SET finished = ?3, exit_status = ?4, lost = ?5, replaced = ?6"
            " WHERE run = ?1 AND number = ?2",
            (self.run, number, now, exit_status, lost, replaced),
        )

    def put_clock_scale(self, scale: int) -> None:
        """ns per clock unit << 32."""
        self._db.execute("UPDATE run SET clock_scale = ? WHERE id = ?", (scale, self.run))

    def put_losses(self, lost: int, refused: int, turned_away: int) -> None:
        """The run's records dropped, chunks refused and processes turned away so far."""
        self._db.execute(
            "UPDATE run SET lost = ?2, refused = max(refused, ?3), turned_away = ?4 WHERE id = ?1",
            (self.run, lost, refused, turned_away),
        )

    def put_source(self, source: SourceFile) -> None:
        """Stores the source of a file, in a transaction of its own; not if the sources of the run
        would take more than their share of the largest size."""
        if self._sources_size + len(source.data) > self._max_sources_size:
            return
        with self.transaction():
            self._db.execute(PUT_SOURCE, (self.run, *source))
        self._sources_size += len(source.data)

    def files_without_source(self) -> list[tuple[str, str, bool]]:
        """File, language, and whether it is own code, of the code objects of files that have no
        source yet."""
        rows: Any = self._db.execute(FILES_WITHOUT_SOURCE, (self.run,))
        return [(file, language, bool(mine)) for file, language, mine in rows]

    # ---- keeping the size ---------------------------------------------------------------------

    def evict(self) -> None:
        """Removes the oldest segments of all runs while the database exceeds its bounds.

        It removes a few at a time, and is called after each pass. SQLite uses their pages again;
        only a file that was once allowed to be larger becomes shorter.
        """
        excess = self._excess_events()
        if excess > 0 or self._too_large():
            with self.transaction():
                self._evict_some(excess)
        if self._pragma("page_count") * self._page_size > self._max_size and self._pragma("freelist_count"):
            self._db.execute(f"PRAGMA incremental_vacuum({SHRINK_AT_ONCE})").fetchall()
        self._shorten_log()

    def _shorten_log(self) -> None:
        """SQLite begins its log anew when all of it is in the database. If two dumpers write, the
        log always has something new, and would grow without end. So the other dumper has to wait a
        moment."""
        now = time.monotonic()
        if now < self._log_next or _size(self.path + "-wal") <= 2 * self._log_size:
            return
        if not self._begin_log_anew():
            self._log_next = now + LOG_AGAIN_SECONDS  # somebody reads: try later

    def check_log(self) -> None:
        """Back-pressure, to be called before segments are stored. Raises apsw.FullError if a reader
        has been in one transaction for so long that the log alone has reached the size limit."""
        if _size(self.path + "-wal") > self._max_size and not self._begin_log_anew():
            raise apsw.FullError("a reader kept the log from being emptied; it has the size of --max-size")

    def _begin_log_anew(self) -> bool:
        """False: somebody reads the log."""
        self._db.set_busy_timeout(LOG_WAIT_MS)
        try:
            return not self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()[0][0]
        finally:
            self._db.set_busy_timeout(int(BUSY_SECONDS * 1000))

    def _too_large(self) -> bool:
        used = self._pragma("page_count") - self._pragma("freelist_count")
        return used * self._page_size > self._max_pages_size

    def _excess_events(self) -> int:
        if not self.max_events:
            return 0
        return int(self._db.execute("SELECT total(count) FROM segment").get) - self.max_events

    def _evict_some(self, excess: int) -> None:
        for _ in range(EVICT_AT_ONCE):
            row: Any = self._db.execute(OLDEST).fetchone()
            row = row or self._db.execute(OLDEST_UNFINISHED, (self.run,)).fetchone()
            if row is None:
                return
            segment, run, count, until = row
            self._db.execute("DELETE FROM segment WHERE id = ?", (segment,))
            self._db.execute(EVICTED, (run, count, until))
            if run != self.run:
                self._forget_definitions(run)
            excess -= count
            if excess <= 0 and not self._too_large():
                return

    def _forget_definitions(self, run: int) -> None:
        """Removes a run's definitions: nothing refers to them once its last segment is evicted."""
        if self._db.execute(FORGOTTEN, (run,)).get:
            for table in ("code", "type", "source_file"):
                self._db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))

    # ---- the end ------------------------------------------------------------------------------

    def finish(self, now: int) -> Totals:
        """Marks the run as finished, with the exit status of the program. now: ns since 1970, if
        processes of the run have no known end."""
        with self.transaction():
            self._db.execute(FINISH, (self.run, now))
        return self.totals()

    def totals(self) -> Totals:
        """The run's numbers so far."""
        row: Any = self._db.execute(TOTALS, (self.run,)).fetchone()
        return Totals(*map(int, row))

    def close(self) -> None:
        """Moves the log into the database and closes it. Committed rows stay so in any case: if a
        reader is in one query for longer than BUSY_SECONDS, the log stays."""
        with suppress(apsw.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.close()

    # ---- a file that was taken away -----------------------------------------------------------

    def moved(self) -> bool:
        """True: the path does not lead to the open file any more."""
        return _identity(self.path) != self._file

    def leave(self, now: int) -> "Kept":
        """Ends the run in a file that was taken away, wherever that is, and closes it. now: ns
        since 1970. Returns the rows that later segments refer to, for the next file.

        The log is moved into the file first: from now on the files beside the path belong to the
        next database. SQLite removes a log that it finds there, but takes up its index (-shm)."""
        with suppress(apsw.Error):
            self.finish(now)
        with suppress(apsw.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        scale = int(self._db.execute("SELECT clock_scale FROM run WHERE id = ?", (self.run,)).get)
        definitions = {table: self._rows(table) for table in DEFINITIONS}
        for path, identity in self._beside.items():
            if identity is not None and _identity(path) == identity:
                with suppress(OSError):
                    os.unlink(path)
        self._db.close()  # SQLite sees the move, and touches nothing at the path
        return Kept(scale, definitions)

    def _rows(self, table: str) -> list[dict[str, Any]]:
        """The run's rows of a table, without `run`."""
        columns = _columns(self._db, table)
        rows = self._db.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE run = ?", (self.run,))
        made = [dict(zip(columns, row, strict=True)) for row in rows]
        for row in made:
            del row["run"]
        return made

    def take_over(self, kept: "Kept") -> None:
        """Stores the rows that another file had before it was taken away."""
        with self.transaction():
            self.put_clock_scale(kept.clock_scale)
            for table, rows in kept.definitions.items():
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    self._db.execute(
                        f"INSERT OR REPLACE INTO {table} (run, {', '.join(row)}) VALUES (?, {marks})",
                        (self.run, *row.values()),
                    )
        self._sources_size = int(self._db.execute(SOURCES_SIZE, (self.run,)).get)

    def why(self, error: apsw.Error) -> str:
        """What an error that was just raised means."""
        return _said(error, self._db.system_errno)

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").get)


# ---- opening ----------------------------------------------------------------------------------


def _size(path: str) -> int:
    """Bytes; 0: there is no such file."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None  # the file, or its folder, is gone
    return status.st_dev, status.st_ino


def _open(path: str, step: Step) -> apsw.Connection:
    """The database at `path`, in WAL mode; made if there is none.

    A crash can leave an empty file, which the next dumper takes as new. Or it leaves a half-made
    file and its journal, which SQLite rolls back to the empty file. The first transaction writes
    the application id together with the tables, so that a database always has it.
    """
    _check_beside(path)
    created = _check_file(path)
    try:
        # SQLite would refuse symbolic links in the folders, too, which are fine
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        db = apsw.Connection(real, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    except (apsw.Error, UnicodeError) as error:
        if created:
            _remove_empty(path)
        raise _refusal(path, error) from None
    try:
        _restrict(db)
        db.set_busy_timeout(int(BUSY_SECONDS * 1000))
        if _header_version(db) == 0:
            _create(db, step)
            _make_private(path)  # also if an empty file was there
        db.execute(CHECK)  # find damage before anything is written
        _use_wal(db, path)
        # SQLite follows links, and takes files that are there. It has them open now, so that their
        # owner cannot change any more.
        _check_beside(path)
        _add_later(db)
        db.execute(CHECK_LATER)
        return db
    except apsw.Error as error:
        refusal = _refusal(path, error, db.system_errno)
        db.close()
        if created:
            _remove_empty(path)
        raise refusal from None
    except Refused:
        db.close()
        if created:
            _remove_empty(path)
        raise


def _restrict(db: apsw.Connection) -> None:
    """Somebody may have prepared the database: no trigger, no view and no harmful function in its
    schema is run."""
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


def _make_private(path: str) -> None:
    with suppress(OSError):  # if the file is taken away, the first pass notices
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        os.fchmod(fd, 0o600)
        os.close(fd)


def _remove_empty(path: str) -> None:
    """Removes the file that _check_file made, unless another dumper has taken it up meanwhile."""
    with suppress(OSError):
        if os.path.getsize(path) == 0:
            os.unlink(path)


def _check_beside(path: str) -> None:
    """SQLite's own files beside the database hold the same events, and have to be ours alone."""
    for suffix in BESIDE:
        try:
            status = os.lstat(path + suffix)
        except OSError:
            continue  # it, or its folder, is missing: the check of the database says so
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink > 1:
            raise Refused(f"{path}{suffix} is not a file of yours", f"Remove it, {OR_CHOOSE}")


def _check_file(path: str) -> bool:
    """Makes an empty file at `path` with mode 0600, or checks whether the file there may be used.
    True: it was made. The check does without SQLite, which might begin to repair the file."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.fchmod(fd, 0o600)  # whatever the umask
        os.close(fd)
        return True
    except FileExistsError:
        pass
    except FileNotFoundError:
        raise Refused(f"the folder of {path} does not exist", f"Make it, {OR_CHOOSE}") from None
    except OSError as error:
        raise Refused(f"cannot create {path}: {error.strerror}", CHOOSE) from None
    try:
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            raise Refused(f"{path} is a folder", "Choose a file in it with --output.")
        if stat.S_ISLNK(status.st_mode):
            raise Refused(f"{path} is a symbolic link", "Give the file itself with --output.")
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{path} is no regular file", CHOOSE)
        if status.st_uid != os.geteuid():
            raise Refused(f"{path} belongs to another user", CHOOSE)
        if status.st_nlink > 1:
            raise Refused(f"{path} has another name, too (a hard link)", f"Remove one of them, {OR_CHOOSE}")
        if status.st_mode & OTHERS_WRITE and status.st_size:
            raise Refused(f"others may write to {path}", f"Take that back (chmod go-w), {OR_CHOOSE}")
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            header = os.pread(fd, SQLITE_HEADER, 0)
        finally:
            os.close(fd)
    except OSError as error:
        raise Refused(f"cannot write to {path}: {error.strerror}", CHOOSE) from None
    if not header:
        return False
    if len(header) < SQLITE_HEADER or not header.startswith(SQLITE_MAGIC):
        raise Refused(f"{path} is not a database", CHOOSE)
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise Refused(f"{path} is another program's database", CHOOSE)
    version = int.from_bytes(header[60:64], "big")
    if version != VERSION:
        newer = "a newer" if version > VERSION else "another"
        raise Refused(f"{path} was written by {newer} version of pytrace", CHOOSE)
    return False


def _header_version(db: apsw.Connection) -> int:
    return int(db.execute("PRAGMA user_version").get)


def _create(db: apsw.Connection, step: Step) -> None:
    db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    db.execute("PRAGMA synchronous = OFF")  # no data can be lost yet
    schema = _schema()
    db.execute("BEGIN")
    try:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # writes, unlike page_size
        if _header_version(db) == 0:  # else another dumper was faster
            db.execute(schema)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {VERSION}")
        step("before creation")
        db.execute("COMMIT")
        step("after creation")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _schema() -> str:
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()


def _columns(db: apsw.Connection, table: str) -> list[str]:
    return [str(name) for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]


def _add_later(db: apsw.Connection) -> None:
    """Adds all missing tables and columns, or none."""
    if not any(_missing_tables(db)) and not any(_missing_columns(db)):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        for declaration in _missing_tables(db):
            db.execute(declaration)
        for table, column, declaration in _missing_columns(db):  # another dumper may be faster
            db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {declaration}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _missing_tables(db: apsw.Connection) -> list[str]:
    """The statements of schema.sql that make them."""
    missing = [table for table in LATER_TABLES if not _columns(db, table)]
    if not missing:
        return []
    return re.findall(rf"^CREATE TABLE (?:{'|'.join(missing)}) \(.*?^\)[^;]*;", _schema(), re.M | re.S)


def _missing_columns(db: apsw.Connection) -> Iterator[tuple[str, str, str]]:
    for table, column, declaration in LATER_COLUMNS:
        if column not in _columns(db, table):
            yield table, column, declaration


def _use_wal(db: apsw.Connection, path: str) -> None:
    """Waits for the change of mode, as SQLite does not."""
    db.execute("PRAGMA synchronous = NORMAL")
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = db.execute("PRAGMA journal_mode = WAL").get
            break
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise Refused(
            f"the file system of {path} cannot share a database", "Choose a local one with --output."
        )


def _said(error: Exception, number: int) -> str:
    """An error of SQLite's with the system's, whose number SQLite keeps: a quota that is used up is
    no more than an I/O error to SQLite."""
    if number and isinstance(error, apsw.IOError | apsw.CantOpenError):
        return f"{error}: {os.strerror(number)}"
    return str(error)


def _refusal(path: str, error: Exception, number: int = 0) -> Refused:
    """number: the errno of SQLite's last call of the system."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return Refused(f"{path} is locked by another program", f"Close that, {OR_CHOOSE}")
        case apsw.FullError():
            return Refused(f"no space is left for {path}", f"Make room, {OR_CHOOSE}")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return Refused(f"cannot write to {path} or its folder ({_said(error, number)})", CHOOSE)
        case apsw.NotADBError() | apsw.CorruptError() | apsw.SQLError():
            return Refused(f"{path} is damaged ({error})", f"Move it away, {OR_CHOOSE}")
        case apsw.NoMemError():
            return Refused(f"there is not enough memory to open {path}", "ulimit -v may bound it.")
        case UnicodeError():
            return Refused(f"the name {path!a} is not UTF-8", CHOOSE)
        case _:
            return Refused(f"cannot record to {path} ({_said(error, number)})", CHOOSE)
