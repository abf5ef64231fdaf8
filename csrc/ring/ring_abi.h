/* The layout of the shared-memory ring: the contract between the traced processes (producers) and
 * the dumper. Only ring.[ch] uses these declarations; docs/ring.md has the life of a chunk and the
 * order of every atomic.
 *
 *   offset 0                                                          (one file, mode 0600)
 *   +--------------------------------------------------------------------------+
 *   | struct ring_header: constants, clock, settings, processes, dumper's state |  dumper: read, write
 *   +--------------------------------------------------------------------------+
 *   | struct chunk_header [chunk_count]                                         |  dumper: read, write
 *   +--------------------------------------------------------------------------+  bodies_offset (a page)
 *   | body 0 | body 1 | ...   small_count small ones, the others chunk_size     |  dumper: read only
 *   +--------------------------------------------------------------------------+
 *
 * Everything is an offset or an index, never a pointer; every word that two processes use at the
 * same time is a declared atomic. Integers are in the machine's own order.
 */
#ifndef PYTRACE_RING_ABI_H
#define PYTRACE_RING_ABI_H

#include <stdatomic.h>
#include <stdint.h>

#define RING_MAGIC 0x0165636172747970u /* "pytrace\1" */
#define RING_VERSION 7
/* Processes over a whole recording: the database knows each by its slot, so none is used twice. */
#define RING_PROCESSES 16384
#define RING_KNOWN 32768 /* definitions that the processes of a recording share */
#define RING_SETTINGS_SIZE 32768
#define RING_MESSAGE_SIZE 4096
#define RING_TROUBLE_SIZE 512

/* chunk_header.state is STATE | owner << 8, owner being an index in ring_header.processes.
 *
 *   FREE --claim (producer, CAS)--> CLAIMED --seal (producer)--> SEALED --free (dumper)--> FREE
 *                                      \----- owner has ended: free (dumper), after COMMIT ----/
 */
enum chunk_state { CHUNK_FREE = 0, CHUNK_CLAIMED = 1, CHUNK_SEALED = 2 };

#define CHUNK_STATE_NAMES {"FREE", "CLAIMED", "SEALED"} /* by enum chunk_state */

enum chunk_kind { CHUNK_EVENTS = 0, CHUNK_DEFINITIONS = 1 };

struct chunk_header {
    /* First cache line: words that are written while the chunk is in use. */
    _Atomic uint64_t state;      /* producer and dumper; see above */
    _Atomic uint64_t published;  /* owner: bytes used | records << 32; the dumper: 0 before FREE */
    _Atomic uint64_t last_time;  /* owner: time of the last record */
    _Atomic int32_t min_depth;   /* owner: the smallest depth any record left the thread at */
    uint32_t unused_[9];
    /* Second: written by the owner between claim and the first publish, constant afterwards. */
    uint32_t kind;               /* enum chunk_kind */
    uint32_t stream;             /* unique in the recording */
    uint32_t sequence;           /* of the chunk in its stream, from 0 */
    int32_t base_depth;          /* open calls before the first record */
    uint64_t base_time;          /* clock units; the first record's time counts from here */
    uint64_t lost_before;        /* records dropped by this stream since its chunk before */
    uint64_t tid;                /* the operating system's */
    uint32_t pid;
    uint32_t unused2_[5];
};
_Static_assert(sizeof(struct chunk_header) == 128, "two cache lines");

enum process_state {
    PROCESS_NONE = 0,     /* this slot is free */
    PROCESS_STARTING = 1, /* slot taken, fields not yet written */
    PROCESS_RUNNING = 2,
    PROCESS_EXITED = 3,   /* it said so itself: exit_status holds */
    PROCESS_SAVED = 4,    /* the dumper has committed everything that it published */
    PROCESS_LEAVING = 5,  /* as EXITED, but its other threads may still write */
    PROCESS_LEFT = 6,     /* as LEAVING; the dumper has committed what it published before that */
};

/* by enum process_state */
#define PROCESS_STATE_NAMES {"NONE", "STARTING", "RUNNING", "EXITED", "SAVED", "LEAVING", "LEFT"}

/* ring_process.exit_status is 0 to 255, a signal's negative number, or one of these. */
#define RING_EXIT_UNKNOWN 256
#define RING_EXIT_REPLACED 257 /* after an exec; another slot records the new program */

struct ring_process {
    /* enum process_state | pid << 8: a process that dies while it starts is still known */
    _Atomic uint32_t state;
    uint32_t pid;
    uint64_t start_time;    /* field 22 of /proc/PID/stat: tells a pid used again; 0: unknown */
    uint64_t image;         /* field 28, the start of its stack: tells an exec */
    int64_t registered_ns;  /* since 1970 */
    uint32_t parent;        /* index + 1 of the process that started it, 0: none */
    _Atomic int32_t exit_status;
    _Atomic uint64_t lost;  /* records dropped, over all its streams */
    _Atomic int64_t ended_ns; /* since 1970: when it said how it ends */
    uint8_t unused_[8];
};
_Static_assert(sizeof(struct ring_process) == 64, "one cache line");

/* A code or type whose definition is in the database: no other process need define it again. */
struct ring_known {
    _Atomic uint64_t hash; /* of its definition: format/definitions.h; 0: free */
    uint32_t number;       /* written before; constant afterwards */
    uint32_t unused_;
};

enum dumper_state {
    DUMPER_STARTING = 0,
    DUMPER_READY = 1,    /* the database is open */
    DUMPER_REFUSED = 2,  /* it cannot record: `message` says why; the program must not start */
    DUMPER_FINISHED = 3, /* all is saved, the database closed; message holds the summary */
};

#define DUMPER_STATE_NAMES {"STARTING", "READY", "REFUSED", "FINISHED"} /* by enum dumper_state */

/* A clock unit is a tick >> shift, 4 to 8 ns; or a nanosecond if there is no usable counter. */
enum clock_kind { CLOCK_TICKS = 1, CLOCK_NANOSECONDS = 2 };

struct ring_header {
    /* Written by ring_create, constant afterwards; magic last, so that a half-made ring is none. */
    _Atomic uint64_t magic;
    uint32_t version;
    uint32_t chunk_size;        /* of all but the small ones */
    uint32_t chunk_count;       /* with the small ones */
    uint32_t clock_kind;        /* enum clock_kind */
    uint32_t clock_shift;
    uint32_t settings_size;     /* bytes used in settings */
    uint64_t size;              /* of the file */
    uint64_t bodies_offset;
    int64_t epoch_ns;           /* wall-clock time of epoch_units, ns since 1970 */
    uint64_t epoch_units;
    /* ns per unit << 32; 0 until the first process that attaches has measured it, then constant */
    _Atomic uint64_t scale;
    uint64_t base_ns;           /* CLOCK_MONOTONIC at base_units, the start of measuring scale */
    uint64_t base_units;
    uint64_t pid_namespace;     /* inode: pids of another one mean nothing to the dumper */
    uint32_t small_count;       /* the first so many chunks have RING_SMALL_CHUNK_SIZE bytes */
    uint32_t unused_;
    uint64_t features;          /* of what is recorded: common/feature.h */
    uint8_t pad0_[16];

    /* Written by producers. */
    _Atomic uint32_t next_stream;
    _Atomic uint32_t next_number;  /* of codes and types; 0 is none */
    _Atomic uint32_t process_hint; /* all slots below are taken */
    _Atomic uint32_t turned_away;  /* processes that found no slot */
    /* the time of the dumper's last start, ms since boot << 8 | starts since a dumper made a pass;
     * 0: one has made a pass. See ring_dumper_elect */
    _Atomic uint64_t dumper_start;
    uint8_t pad1_[40];

    /* Written by the dumper. */
    _Atomic uint32_t dumper_state;
    _Atomic uint32_t dumper_pid;
    _Atomic uint64_t freed;       /* chunks freed so far; when it moves, a full ring is searched */
    _Atomic uint64_t passes;      /* passes ended: shows that it is alive */
    _Atomic uint32_t troubled;    /* 1: `trouble` holds */
    uint8_t pad2_[36];
    char trouble[RING_TROUBLE_SIZE]; /* why nothing can be saved now; UTF-8, NUL-terminated */
    char message[RING_MESSAGE_SIZE]; /* UTF-8, NUL-terminated; before dumper_state says so */
    /* for a program that ends before its other processes; written before the program is SAVED */
    char so_far[RING_MESSAGE_SIZE];

    struct ring_process processes[RING_PROCESSES];
    /* NAME=value pairs, NUL after each: the settings of launcher, hook and dumper
     * (pytracer/config.py) */
    char settings[RING_SETTINGS_SIZE];
    struct ring_known known[RING_KNOWN]; /* written by the dumper */
};

#endif
