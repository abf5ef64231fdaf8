-- The database, traces.sqlite. The dumper writes it, the reader only reads.
-- application_id is 0x70747263 ('ptrc'), user_version 2.
-- A process's numbers for code objects and types are unique in its run, so that both tables
-- are looked up by (run, number).

-- One recording.
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used twice in a database
    recording TEXT NOT NULL UNIQUE,         -- name of its ring; a dumper started again finds its run by it
    command TEXT NOT NULL,                  -- what was recorded, as a shell would take it
    directory TEXT NOT NULL,                -- where it was started
    python TEXT NOT NULL,                   -- version, such as 3.13.0
    started INTEGER NOT NULL,               -- ns since 1970
    finished INTEGER,                       -- ns since 1970; NULL: not yet
    exit_status INTEGER,                    -- of the program: 0-255, negative: killed by that signal; NULL: not known
    lost INTEGER NOT NULL DEFAULT 0,        -- records dropped because no chunk was free
    evicted INTEGER NOT NULL DEFAULT 0,     -- events removed to keep the size
    evicted_until INTEGER,                  -- ns since 1970: the end of what was removed
    refused INTEGER NOT NULL DEFAULT 0,     -- chunks that made no sense and were not stored
    clock_epoch_ns INTEGER NOT NULL,        -- wall-clock time of clock_epoch_units, ns since 1970
    clock_epoch_units INTEGER NOT NULL,
    clock_scale INTEGER NOT NULL,           -- ns per clock unit, times 2^32
    turned_away INTEGER NOT NULL DEFAULT 0  -- processes that were not recorded, beyond the first 16,384
) STRICT;

-- A process of a run.
CREATE TABLE process (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,                -- its place in the ring's table
    pid INTEGER NOT NULL,
    parent INTEGER,                         -- number of the process that started it
    command TEXT,                           -- NULL: its parent's (fork)
    started INTEGER NOT NULL,               -- ns since 1970: when it began to be recorded
    finished INTEGER,                       -- ns since 1970; NULL: not yet
    exit_status INTEGER,                    -- as in run
    lost INTEGER NOT NULL DEFAULT 0,
    replaced INTEGER NOT NULL DEFAULT 0,    -- 1: it became another program (exec), with the same pid
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- A thread that recorded something: one stream of chunks.
CREATE TABLE thread (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    stream INTEGER NOT NULL,
    process INTEGER NOT NULL,
    tid INTEGER NOT NULL,                   -- the operating system's
    name TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run, stream)
) STRICT, WITHOUT ROWID;

-- A function, module or class body: a code object.
CREATE TABLE code (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,                -- from 1
    module TEXT NOT NULL,                   -- __name__ of its module
    func TEXT NOT NULL,                     -- qualified name
    file TEXT NOT NULL,
    line INTEGER NOT NULL,                  -- its first
    arguments TEXT NOT NULL,                -- JSON array of their names, in signature order
    flags INTEGER NOT NULL,                 -- co_flags
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- The type of a recorded value, where its content does not tell.
CREATE TABLE type (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,                     -- module.qualname; bare for built-in types
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- The events of one chunk of one thread. Event number i in it has the id (id << 18) + i.
CREATE TABLE segment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used twice in a database
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    stream INTEGER NOT NULL,
    sequence INTEGER NOT NULL,              -- of the chunk in its stream, from 0
    process INTEGER NOT NULL,
    start INTEGER NOT NULL,                 -- base time, clock units
    "end" INTEGER NOT NULL,                 -- time of the last event, clock units
    base_depth INTEGER NOT NULL,            -- open calls before the first event
    min_depth INTEGER NOT NULL,             -- the smallest depth in it
    max_depth INTEGER NOT NULL,             -- the largest depth of an event
    count INTEGER NOT NULL,                 -- events
    lost INTEGER NOT NULL,                  -- records dropped before the first event
    size INTEGER NOT NULL,                  -- bytes of data when decompressed
    complete INTEGER NOT NULL,              -- 0: the thread still writes to this chunk
    kinds INTEGER NOT NULL,                 -- of its events: 1 << number of the kind, added (Event.what); 1: some are of tasks
    max_duration INTEGER NOT NULL,          -- the longest of an event, clock units; 0: none is known
    codes BLOB NOT NULL,                    -- the code objects in it, and calls of each: csrc/summary.h
    data BLOB NOT NULL,                     -- zstd of the chunk's body: proto/trace.proto, Events
    UNIQUE (run, stream, sequence)
) STRICT;

-- Both are looked through without touching the rows, which lie as far apart as their data is long:
-- the first for the events of a stretch of time, and for what says that none searched for is in it;
-- the second for the oldest and for sums of count.
CREATE INDEX segment_time ON segment
    (run, start, "end", count, stream, min_depth, max_depth, kinds, max_duration, codes);
CREATE INDEX segment_end ON segment (run, "end", count);
