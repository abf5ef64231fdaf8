/* What the virtual tables are made of: the ordinary tables of dumper/schema.sql, read. Definitions,
 * lists of segments that a predicate leaves over, single segments by id, and what could not be read.
 *
 * One `struct trace` belongs to a connection; its tables share it. Nothing here writes.
 */
#ifndef PYTRACE_SQLITE_STORE_H
#define PYTRACE_SQLITE_STORE_H

#if !__has_include(<sqlite3ext.h>)
#error "SQLite's headers are missing: install libsqlite3-dev (Debian, Ubuntu), sqlite-devel (Fedora) or sqlite-dev (Alpine)"
#endif
#include <sqlite3ext.h>

#include "calls.h"

#define BODIES 8           /* decompressed segments kept for look-ups by id */

enum statement {
    RUNS, RUN, COUNTS, CODES, THREADS, TYPES, SEGMENTS, SEGMENTS_BY_ID, DATA, ROW, TIMELINE, VERSION,
    STATEMENTS
};

/* Memory that is given back all at once. */
struct arena {
    struct arena_block *blocks;
    char *next;
    size_t left;
};
struct arena_block {
    struct arena_block *next;
};

/* A run's codes and types: they only become more, so that the same counts mean the same names. */
struct names {
    int references;
    int64_t counts[4];                  /* as COUNTS gives them */
    struct run_code *codes;
    const char **types;
    uint32_t code_count, type_count;
    struct arena arena;
};

/* A run's definitions, as they were at one time. */
struct definitions {
    struct definitions *next;
    int references;
    int64_t version;                    /* data_version at that time */
    struct run_definitions run;         /* points into `names` and `arena` */
    struct names *names;
    struct timeline *timeline;          /* NULL: not asked for yet */
    struct arena arena;                 /* threads, timeline */
};

struct damage {
    int64_t segment, run;
    uint32_t events, read;
    const char *reason;
};

/* A decompressed segment, with places to begin at. */
struct body {
    int references;
    uint64_t used;                      /* when it was asked for last */
    int64_t size;                       /* as in its row: a segment that is being written grows */
    struct scan_segment segment;
    struct definitions *definitions;
    uint8_t *data;
    size_t capacity;
    struct segment_walk *places;        /* before the events 0, STRIDE, 2 * STRIDE, ... */
    uint32_t count;                     /* events that can be read */
};

struct trace {
    sqlite3 *db;
    int modules, tables;                /* that use it */
    sqlite3_stmt *prepared[STATEMENTS];
    struct definitions *definitions;    /* those that are current */
    struct damage *damages;
    size_t damage_count, damage_capacity;
    struct body *bodies[BODIES];
    uint64_t clock;                     /* of struct body's `used` */
    struct zstd_context *zstd;
};

struct trace *trace_new(sqlite3 *db); /* NULL: no memory */
void trace_free(struct trace *trace);
/* Gives back what would keep the connection from being closed; it is made again when needed. */
void trace_rest(struct trace *trace);

/* Functions that return int answer SQLITE_OK, or SQLite's code of what went wrong. */

/* A statement of the table in sqlite_store.c, reset. */
int trace_statement(struct trace *trace, enum statement number, sqlite3_stmt **prepared);

/* The definitions of a run as they are in this moment's snapshot. A reference becomes the caller's. */
int definitions_get(struct trace *trace, int64_t run, struct definitions **found);
void definitions_release(struct definitions *definitions); /* NULL is fine */

/* Those that a segment's `run` belongs to. */
struct definitions *definitions_of(const struct scan_segment *segment);

/* The run's segments, kept with its definitions. */
int timeline_get(struct trace *trace, struct definitions *definitions, const struct timeline **timeline);

/* The segments of a query, and what they refer to. */
struct list {
    struct scan_segment *segments;
    size_t count, capacity;
    struct definitions **definitions;
    size_t definitions_count;
};

/* All segments in which the predicate (NULL: anything) may be true of an event. */
int list_segments(struct trace *trace, const struct predicate *predicate, struct list *list);
void list_free(struct list *list);

/* For struct scan_calls, with the trace as context. Fetching runs a statement of its own, so that an
 * interrupt, or SQLite's progress handler, stops a scan in which no row is found, too; it answers
 * SQLite's codes made negative. */
int trace_fetch(void *context, const struct scan_segment *segment, struct scan_data *data);
void trace_damaged(void *context, const struct scan_segment *segment, uint32_t read, const char *reason);

/* scan_next over a list of `count` segments, telling sqlite_trace_progress how far it has come. */
int trace_next(struct trace *trace, struct scan *scan, size_t count, struct scan_at *at);

/* The segment of this id, decompressed; a reference becomes the caller's. *found NULL: there is none. */
int body_get(struct trace *trace, int64_t id, struct body **found);
void body_release(struct body *body); /* NULL is fine */

/* Makes *at the event of this index, and *row its row. False: there is none. */
bool body_at(const struct body *body, uint32_t index, struct scan_row *row, struct scan_at *at);

/* ---- calls (sqlite_calls.c) ---- */

/* What is known of calls by other events than the call itself. */
enum call_fact { CALL_PARENT, CALL_DURATION, CALL_OUTCOME, CALL_VALUE };

/* Makes it the result for the call event at `at`. *known is kept for the calls to come, as long as one
 * statement runs; NULL at first. */
struct calls_known;
int call_result(struct trace *trace, struct calls_known **known, const struct scan_at *at, enum call_fact fact,
                sqlite3_context *context);
void calls_known_free(struct calls_known *known); /* NULL is fine */

/* ---- the virtual tables ---- */

struct table; /* sqlite_trace.c */

struct trace_table {
    sqlite3_vtab base;
    struct trace *trace;
    const struct table *table; /* of those in sqlite_trace.c */
};

/* xConnect and xDisconnect of them all; `declaration` as for sqlite3_declare_vtab. */
int trace_connect(sqlite3 *db, struct trace *trace, const char *declaration, sqlite3_vtab **made);
int trace_disconnect(sqlite3_vtab *base);

/* Where nothing can be decompressed: an error that says why. */
int trace_ready(sqlite3_vtab *vtab);
int trace_fail(sqlite3_vtab *vtab, const char *message);

/* The tables in files of their own. */

extern const sqlite3_module hot_module;   /* sqlite_hot.c */
extern const sqlite3_module stack_module; /* sqlite_calls.c */

#endif
