"""The database as the dumper sees it: one open file, and in it the run that is being recorded.

Knows SQLite and schema.sql, but no ring: pump.py gives it rows. Everything is written between
`with store.transaction():`, so that a crash leaves either all or nothing of it.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import apsw

APPLICATION_ID = 0x70747263  # 'ptrc'
VERSION = 2  # user_version: of schema.sql
PAGE_SIZE = 16384  # a segment fills a few pages; docs/dumper.md has the measurements
BUSY_SECONDS = 2.0
LOG_WAIT_MS = 20  # for readers and writers, before the log is begun anew
LOG_AGAIN_SECONDS = 0.2
EVICT_AT_ONCE = 64  # segments a transaction, so that nobody waits long for it
SHRINK_AT_ONCE = 64  # pages

BESIDE = ("-journal", "-wal", "-shm")  # files that SQLite makes
OTHERS_WRITE = 0o022  # mode
SQLITE_HEADER = 100  # bytes; https://www.sqlite.org/fileformat.html
SQLITE_MAGIC = b"SQLite format 3\0"

CHOOSE = "Choose another file with --output."
OR_CHOOSE = "or choose another file with --output."

Step = Callable[[str], None]


class Refused(Exception):
    """The output cannot be recorded to. The text says why and what to do, for a person."""


class Run(NamedTuple):
    """What is known of a recording at its start."""

    recording: str  # the name of its ring
    command: str
    directory: str
    python: str
    clock_epoch_ns: int
    clock_epoch_units: int


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
    data: bytes


class Totals(NamedTuple):
    """A run's numbers for the summary."""

    events: int  # recorded, the removed ones included
    processes: int
    lost: int
    evicted: int
    refused: int  # chunks
    turned_away: int  # processes
    size: int  # bytes of the database, all runs; what is still in its log lies where it will


PUT_RUN = """
INSERT INTO run (recording, command, directory, python, started, clock_epoch_ns, clock_epoch_units,
                 clock_scale)
VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, 0) ON CONFLICT (recording) DO NOTHING
"""
# The row of an unfinished chunk is replaced by the longer one, and keeps its id. A complete one stays as it
# is: it can only come again the same, or from a chunk whose header has been written over.
PUT_SEGMENT = """
INSERT INTO segment (run, stream, sequence, process, start, "end", base_depth, min_depth, max_depth, count,
                     lost, size, complete, kinds, max_duration, codes, data)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
ON CONFLICT (run, stream, sequence) DO UPDATE SET
    "end" = excluded."end", min_depth = excluded.min_depth, max_depth = excluded.max_depth,
    count = excluded.count, size = excluded.size, complete = excluded.complete, kinds = excluded.kinds,
    max_duration = excluded.max_duration, codes = excluded.codes, data = excluded.data
WHERE NOT segment.complete AND segment.process = excluded.process
"""
PUT_PROCESS = """
INSERT INTO process (run, number, pid, parent, started) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run, number) DO UPDATE SET started = excluded.started
"""
PUT_COMMAND = """
INSERT INTO process (run, number, pid, parent, command, started) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (run, number) DO UPDATE SET command = excluded.command
"""
PUT_THREAD = "INSERT OR REPLACE INTO thread (run, stream, process, tid, name) VALUES (?, ?, ?, ?, ?)"
PUT_NAMELESS_THREAD = "INSERT OR IGNORE INTO thread (run, stream, process, tid) VALUES (?, ?, ?, ?)"
PUT_CODE = """
INSERT OR REPLACE INTO code (run, number, module, func, file, line, arguments, flags)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
PUT_TYPE = "INSERT OR REPLACE INTO type (run, number, name) VALUES (?, ?, ?)"

# The oldest segment of all runs. The ones that a run still writes to are not up for it: their chunks are
# in a ring, and would come back. Of other runs than this one (?1) that is not known: one may have been cut
# off for good. So theirs go when nothing else is left.
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
# A process that replaces itself by another program (exec) is one process more, with the same pid.
FINISH = """
UPDATE run SET finished = ?2, exit_status = (
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
# Columns that databases of this version may not have yet: each with its table and its declaration.
LATER_COLUMNS = (
    ("run", "turned_away", "INTEGER NOT NULL DEFAULT 0"),
    ("process", "replaced", "INTEGER NOT NULL DEFAULT 0"),
)
DEFINITIONS = ("code", "type", "thread", "process")


def no_step(name: str) -> None:
    """Does nothing; the tests' stand-in dies here."""


class Kept(NamedTuple):
    """What the segments to come refer to."""

    clock_scale: int
    definitions: dict[str, list[Any]]  # rows by table


class Store:
    """The open database. Every method may raise apsw.Error (locked, full, ...); then nothing of the
    transaction is stored."""

    def __init__(self, path: str, run: Run, max_size: int, max_events: int, step: Step = no_step) -> None:
        """Opens or makes the database at `path` (absolute) and takes up the run in it.

        max_size: bytes that the database may take; max_events: events it may hold, 0: any number.
        Raises Refused where that cannot be recorded to, and leaves the file there as it is.
        """
        self.path = path
        self.max_events = max_events
        self._step = step
        # SQLite copies the log into the database when it has grown to this; both together are
        # what the disk must hold.
        log_pages = max(16, min(1000, max_size // 16 // PAGE_SIZE))
        self._log_size = log_pages * PAGE_SIZE
        self._log_next = 0.0  # when the log may be looked at again, time.monotonic()
        self._max_pages_size = max_size - self._log_size
        self._max_size = max_size
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
            self._beside = {path + suffix: _identity(path + suffix) for suffix in ("-wal", "-shm")}
        except apsw.Error as error:
            self._db.close()
            raise _refusal(path, error) from None

    # ---- writing ------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything in it is stored, or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._step("before commit")
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite rolls back by itself where the disk is full
                self._db.execute("ROLLBACK")
            raise
        self._step("after commit")

    def put_segments(self, segments: Iterable[Segment]) -> None:
        """Stores or replaces them by (stream, sequence)."""
        self._db.executemany(PUT_SEGMENT, ((self.run, *segment) for segment in segments))

    def put_codes(self, rows: Iterable[tuple[int, str, str, str, int, str, int]]) -> None:
        """Rows of the table `code`, without run."""
        self._db.executemany(PUT_CODE, ((self.run, *row) for row in rows))

    def put_types(self, rows: Iterable[tuple[int, str]]) -> None:
        """Rows of the table `type`, without run."""
        self._db.executemany(PUT_TYPE, ((self.run, *row) for row in rows))

    def put_threads(self, rows: Iterable[tuple[int, int, int, str]]) -> None:
        """Rows of the table `thread`, without run."""
        self._db.executemany(PUT_THREAD, ((self.run, *row) for row in rows))

    def put_nameless_threads(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Stream, process and tid of threads that may have no row yet."""
        self._db.executemany(PUT_NAMELESS_THREAD, ((self.run, *row) for row in rows))

    def put_processes(self, rows: Iterable[tuple[int, int, int | None, int]]) -> None:
        """Number, pid, parent's number and start (ns since 1970) of processes."""
        self._db.executemany(PUT_PROCESS, ((self.run, *row) for row in rows))

    def put_commands(self, rows: Iterable[tuple[int, int, int | None, str]], now: int) -> None:
        """Number, pid, parent's number and command of processes; they may be put before or
        behind. now: ns since 1970."""
        self._db.executemany(PUT_COMMAND, ((self.run, *row, now) for row in rows))

    def end_process(self, number: int, now: int, exit_status: int | None, lost: int, replaced: bool) -> None:
        """All of the process is stored. now: ns since 1970; exit_status and replaced as in schema.sql."""
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

    # ---- keeping the size ---------------------------------------------------------------------

    def evict(self) -> None:
        """Removes the oldest segments, of any run, while the database holds more than it may.

        A few at a time; called again after each pass. The file's pages are used again, and only a
        file that was allowed to be larger once is made shorter.
        """
        excess = self._excess_events()
        if excess > 0 or self._too_large():
            with self.transaction():
                self._evict_some(excess)
        if self._pragma("page_count") * self._page_size > self._max_size and self._pragma("freelist_count"):
            self._db.execute(f"PRAGMA incremental_vacuum({SHRINK_AT_ONCE})").fetchall()
        self._shorten_log()

    def _shorten_log(self) -> None:
        """SQLite begins its log anew when all of it is in the database. Where two dumpers write, there is
        always something new in it, and it would grow without end; so the other one has to wait a moment."""
        now = time.monotonic()
        if now < self._log_next or _size(self.path + "-wal") <= 2 * self._log_size:
            return
        if not self._begin_log_anew():
            self._log_next = now + LOG_AGAIN_SECONDS  # somebody reads; it will be over

    def check_log(self) -> None:
        """To be called before segments are stored. Raises apsw.FullError where a reader has been in one
        transaction for so long that the log alone is as large as all may be: then nothing is added to it."""
        if _size(self.path + "-wal") > self._max_size and not self._begin_log_anew():
            raise apsw.FullError("a reader kept the log from being emptied; it has the size of --max-size")

    def _begin_log_anew(self) -> bool:
        """False: somebody reads what is in it."""
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
        """Nothing refers to them once a finished run has lost its last segment."""
        if self._db.execute(FORGOTTEN, (run,)).get:
            for table in ("code", "type"):
                self._db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))

    # ---- the end ------------------------------------------------------------------------------

    def finish(self, now: int) -> Totals:
        """Marks the run as finished, with the exit status of the program. now: ns since 1970."""
        with self.transaction():
            self._db.execute(FINISH, (self.run, now))
        return self.totals()

    def totals(self) -> Totals:
        """So far."""
        row: Any = self._db.execute(TOTALS, (self.run,)).fetchone()
        return Totals(*map(int, row))

    def close(self) -> None:
        """Moves the log into the database and closes it. What is committed stays so in any case."""
        self._db.set_busy_timeout(100)  # a reader may be in the way: then the log stays beside the file
        with suppress(apsw.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.close()

    # ---- a file that was taken away -----------------------------------------------------------

    def moved(self) -> bool:
        """True where the path does not lead to the open file any more."""
        return _identity(self.path) != self._file

    def leave(self, now: int) -> "Kept":
        """Ends the run in a file that was taken away, wherever that is, and closes it. now: ns since 1970.
        Returns what the segments to come refer to, for the next file.

        Its log is moved into it first, because what lies beside the path belongs to the next file from now
        on: SQLite removes a log that it finds there, but takes up the index of one (-shm)."""
        with suppress(apsw.Error):
            self.finish(now)
        with suppress(apsw.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        scale = int(self._db.execute("SELECT clock_scale FROM run WHERE id = ?", (self.run,)).get)
        definitions = {
            table: self._db.execute(f"SELECT * FROM {table} WHERE run = ?", (self.run,)).fetchall()
            for table in DEFINITIONS
        }
        for path, identity in self._beside.items():
            if identity is not None and _identity(path) == identity:
                with suppress(OSError):
                    os.unlink(path)
        self._db.close()  # sees that the file has moved, and touches nothing at its path
        return Kept(scale, definitions)

    def take_over(self, kept: "Kept") -> None:
        """What another file had before it was taken away."""
        with self.transaction():
            self.put_clock_scale(kept.clock_scale)
            for table, rows in kept.definitions.items():
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", (self.run, *row[1:]))

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").get)


# ---- opening ----------------------------------------------------------------------------------


def _size(path: str) -> int:
    """0: there is no such file."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None  # it, or its folder, is gone
    return status.st_dev, status.st_ino


def _open(path: str, step: Step) -> apsw.Connection:
    """The database at `path`, made where there is none, in WAL mode.

    What a crash can leave: an empty file, which the next one takes as new; or a file and its
    journal in the middle of being made, which SQLite rolls back to the empty file. The application
    id is written by the first transaction together with the tables, so that a database is never
    without it.
    """
    _check_beside(path)
    created = _check_file(path)
    try:
        # SQLite sees symbolic links in the folders too, and those are fine
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
            _make_private(path)  # an empty file that was there, too
        db.execute(CHECK)  # a damaged file is noticed before anything is written to it
        _use_wal(db, path)
        # SQLite, which has them open now, follows links, and takes what there is; whose they are cannot
        # change any more
        _check_beside(path)
        _add_columns(db)
        return db
    except apsw.Error as error:
        db.close()
        if created:
            _remove_empty(path)
        raise _refusal(path, error) from None
    except Refused:
        db.close()
        if created:
            _remove_empty(path)
        raise


def _restrict(db: apsw.Connection) -> None:
    """A database that somebody has prepared runs nothing of theirs: no trigger, no view, no function in its
    schema that could do harm."""
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


def _make_private(path: str) -> None:
    with suppress(OSError):  # taken away: the first pass notices
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        os.fchmod(fd, 0o600)
        os.close(fd)


def _remove_empty(path: str) -> None:
    """Takes back what _check_file made, unless another dumper has taken it up meanwhile."""
    with suppress(OSError):
        if os.path.getsize(path) == 0:
            os.unlink(path)


def _check_beside(path: str) -> None:
    """SQLite's own files beside the database hold the same events: they have to be ours alone."""
    for suffix in BESIDE:
        try:
            status = os.lstat(path + suffix)
        except OSError:
            continue  # not there; or the folder is not, which is said of the database
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink > 1:
            raise Refused(f"{path}{suffix} is not a file of yours. Remove it, {OR_CHOOSE}")


def _check_file(path: str) -> bool:
    """Makes an empty file at `path` with mode 0600, or looks whether the one there may be used,
    without SQLite, which might begin to repair it. True where it was made."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.fchmod(fd, 0o600)  # whatever the umask
        os.close(fd)
        return True
    except FileExistsError:
        pass
    except FileNotFoundError:
        raise Refused(f"the folder of {path} does not exist. Make it, {OR_CHOOSE}") from None
    except OSError as error:
        raise Refused(f"cannot create {path}: {error.strerror}. {CHOOSE}") from None
    try:
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            raise Refused(f"{path} is a folder. Choose a file in it with --output.")
        if stat.S_ISLNK(status.st_mode):
            raise Refused(f"{path} is a symbolic link. Give the file itself with --output.")
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{path} is no regular file. {CHOOSE}")
        if status.st_uid != os.geteuid():
            raise Refused(f"{path} belongs to another user. {CHOOSE}")
        if status.st_nlink > 1:
            raise Refused(f"{path} has another name, too (a hard link). Remove one of them, {OR_CHOOSE}")
        if status.st_mode & OTHERS_WRITE and status.st_size:
            raise Refused(f"others may write to {path}. Take that back (chmod go-w), {OR_CHOOSE}")
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            header = os.pread(fd, SQLITE_HEADER, 0)
        finally:
            os.close(fd)
    except OSError as error:
        raise Refused(f"cannot write to {path}: {error.strerror}. {CHOOSE}") from None
    if not header:
        return False
    if len(header) < SQLITE_HEADER or not header.startswith(SQLITE_MAGIC):
        raise Refused(f"{path} is not a database. {CHOOSE}")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise Refused(f"{path} is another program's database. {CHOOSE}")
    version = int.from_bytes(header[60:64], "big")
    if version != VERSION:
        newer = "a newer" if version > VERSION else "another"
        raise Refused(f"{path} was written by {newer} version of pytrace. {CHOOSE}")
    return False


def _header_version(db: apsw.Connection) -> int:
    return int(db.execute("PRAGMA user_version").get)


def _create(db: apsw.Connection, step: Step) -> None:
    db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    db.execute("PRAGMA synchronous = OFF")  # there is nothing to lose yet
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        schema = file.read()
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


def _add_columns(db: apsw.Connection) -> None:
    for table, column, declaration in LATER_COLUMNS:
        if column not in [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]:
            try:
                db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {declaration}")
            except apsw.SQLError:  # another dumper was faster
                db.execute(f"SELECT {column} FROM {table} LIMIT 0")


def _use_wal(db: apsw.Connection, path: str) -> None:
    """SQLite does not wait by itself for the moment that the change of mode needs."""
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
        raise Refused(f"the file system of {path} cannot share a database. Choose a local one with --output.")


def _refusal(path: str, error: Exception) -> Refused:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return Refused(f"{path} is locked by another program. Close that, {OR_CHOOSE}")
        case apsw.FullError():
            return Refused(f"no space is left for {path}. Make room, {OR_CHOOSE}")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return Refused(f"cannot write to {path} or its folder. {CHOOSE}")
        case apsw.NotADBError() | apsw.CorruptError() | apsw.SQLError():
            return Refused(f"{path} is damaged ({error}). Move it away, {OR_CHOOSE}")
        case UnicodeError():
            return Refused(f"the name {path!a} is not UTF-8. {CHOOSE}")
        case _:
            return Refused(f"cannot record to {path} ({error}). {CHOOSE}")
