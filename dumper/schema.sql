-- The database, traces.sqlite. The dumper writes it, the reader only reads it.
-- application_id is 0x70747263 ('ptrc'), user_version 2.
-- The numbers of code objects and of types are unique in a run: both tables are looked up by
-- (run, number).

-- One recording.
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used twice in a database
    recording TEXT NOT NULL UNIQUE,         -- name of its ring: a second dumper finds its run by it
    command TEXT NOT NULL,                  -- the command line, as a shell would take it
    directory TEXT NOT NULL,                -- the working directory at the start
    python TEXT NOT NULL,                   -- version, such as 3.13.0
    started INTEGER NOT NULL,               -- ns since 1970
    finished INTEGER,                       -- ns since 1970; NULL: not yet
    exit_status INTEGER,                    -- 0-255; negative: killed by that signal; NULL: unknown
    lost INTEGER NOT NULL DEFAULT 0,        -- records dropped because no chunk was free
    evicted INTEGER NOT NULL DEFAULT 0,     -- events evicted to keep --max-size
    evicted_until INTEGER,                  -- ns since 1970: the end of the last evicted segment
    refused INTEGER NOT NULL DEFAULT 0,     -- chunks not stored, as their content made no sense
    clock_epoch_ns INTEGER NOT NULL,        -- wall-clock time of clock_epoch_units, ns since 1970
    clock_epoch_units INTEGER NOT NULL,
    clock_scale INTEGER NOT NULL,           -- ns per clock unit, times 2^32
    turned_away INTEGER NOT NULL DEFAULT 0, -- processes beyond the first 16,384: not recorded
    features INTEGER NOT NULL DEFAULT 0,    -- bits of csrc/common/feature.h, from 32 on required
    options TEXT                            -- those in force: a JSON object of texts; NULL: unknown
) STRICT;

-- A process of a run.
CREATE TABLE process (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,                -- its index in the ring's table
    pid INTEGER NOT NULL,
    parent INTEGER,                         -- number of the process that started it
    command TEXT,                           -- NULL: the parent's, as after a fork
    started INTEGER NOT NULL,               -- ns since 1970: the start of its recording
    finished INTEGER,                       -- ns since 1970; NULL: not yet
    exit_status INTEGER,                    -- as in run
    lost INTEGER NOT NULL DEFAULT 0,
    replaced INTEGER NOT NULL DEFAULT 0,    -- 1: it became another program (exec) of the same pid
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- A stream of chunks: a thread that recorded something, or another source of events.
CREATE TABLE thread (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    stream INTEGER NOT NULL,
    process INTEGER NOT NULL,
    tid INTEGER NOT NULL,                   -- the operating system's
    name TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT 'thread',    -- thread; kernel: its system calls; processor: a number
    PRIMARY KEY (run, stream)
) STRICT, WITHOUT ROWID;

-- A function, module or class body: a code object.
CREATE TABLE code (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,                -- from 1
    module TEXT NOT NULL,                   -- __name__ of its module
    func TEXT NOT NULL,                     -- qualified name
    file TEXT NOT NULL,
    line INTEGER NOT NULL,                  -- its first line
    arguments TEXT NOT NULL,                -- JSON array of the names, in the signature's order
    flags INTEGER NOT NULL,                 -- co_flags
    language TEXT NOT NULL DEFAULT 'python', -- python, cython, c, native, or kernel
    mine INTEGER NOT NULL DEFAULT 0,        -- 1: own code, neither Python's nor in site-packages
    variables TEXT NOT NULL DEFAULT '[]',   -- JSON array of their names, if its lines were recorded
    object TEXT,                            -- of a native function: the shared object's file,
    build_id TEXT,                          -- its build id in hex, '' if it has none,
    address INTEGER,                        -- and the function's address in it; NULL: of other code
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- The type of a recorded value, if its content does not tell it; with or without attributes.
CREATE TABLE type (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,                     -- module.qualname; bare for built-in types
    fields TEXT,                            -- of a named tuple: JSON array of the names of its items
    attributes TEXT,                        -- of objects: JSON array of the names of their attributes
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- A source file as it was, compressed, if its lines were recorded. `source` has the texts.
CREATE TABLE source_file (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    file TEXT NOT NULL,                     -- as in `code`
    changed INTEGER NOT NULL,               -- 1: written after the start, and perhaps not what ran
    size INTEGER NOT NULL,                  -- bytes of the text
    data BLOB NOT NULL,                     -- zstd of the text: UTF-8, with \n at the ends of its lines
    UNIQUE (run, file)
) STRICT;

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
    min_depth INTEGER NOT NULL,             -- the smallest depth of an event
    max_depth INTEGER NOT NULL,             -- the largest depth of an event
    count INTEGER NOT NULL,                 -- events
    lost INTEGER NOT NULL,                  -- records dropped before the first event
    size INTEGER NOT NULL,                  -- bytes of data when decompressed
    complete INTEGER NOT NULL,              -- 0: the thread still writes to this chunk
    kinds INTEGER NOT NULL,                 -- 1 << each Event.what in it, added; 1: tasks, 4096: processors
    max_duration INTEGER NOT NULL,          -- the longest duration, clock units; 0: none is known
    kind INTEGER NOT NULL DEFAULT 0,        -- 0: events; a later version's have a count of 0
    codes BLOB NOT NULL,                    -- code objects, calls of each: csrc/format/summary.h
    open BLOB,                              -- own code at its start: csrc/format/levels.h; NULL: unknown
    data BLOB NOT NULL,                     -- zstd of the chunk's body: proto/trace.proto, Events
    UNIQUE (run, stream, sequence)
) STRICT;

-- Both indexes answer without the rows, which lie as far apart as their data is long. The first one
-- finds the segments of a stretch of time, and its summaries rule segments out. The second one
-- finds the oldest segment, and sums the events.
CREATE INDEX segment_time ON segment
    (run, start, "end", count, stream, min_depth, max_depth, kinds, max_duration, codes, open);
CREATE INDEX segment_end ON segment (run, "end", count);
