/* A connection to a recording: the statements on the ordinary tables of dumper/schema.sql, the
 * check of these tables, and the segments that could not be read.
 *
 * One `struct trace` belongs to a connection; its virtual tables share it. Nothing here writes. All
 * other sqlite_*.c stand on this one; what they keep in `struct trace` is theirs.
 */
#ifndef PYTRACE_SQLITE_DATABASE_H
#define PYTRACE_SQLITE_DATABASE_H

#if !__has_include(<sqlite3ext.h>)
#error "SQLite's headers are missing: install libsqlite3-dev (Debian, Ubuntu), sqlite-devel (Fedora) or sqlite-dev (Alpine)"
#endif
#include <sqlite3ext.h>

#include "query/scan.h"

/* The columns of the SEGMENTS_... are those of SUMMARY in sqlite_database.c, and `open` but for
 * SEGMENTS. */
enum statement {
    RUNS, RUN, COUNTS, CODES, THREADS, TYPES, SEGMENTS, SEGMENTS_OPEN, SEGMENTS_BY_ID, DATA, ROW, LATER,
    VERSION, SCHEMA_VERSION, STATEMENTS
};

struct damage {
    int64_t segment, run;
    uint32_t events, read;
    const char *reason;
};

#define BODIES 8 /* decompressed segments kept for look-ups by id */

struct trace {
    sqlite3 *db;
    int modules, tables;                /* that use it */
    sqlite3_stmt *prepared[STATEMENTS];
    int reading;                        /* not 0: in a statement on the ordinary tables */
    int verifying;                      /* not 0: in a question of sqlite_verify.c */
    bool checked;                       /* these are ordinary tables ... */
    int64_t schema;                     /* ... when the schema had this version */
    char refusal[128];                  /* why a query is refused; empty: it is not */
    struct damage *damages;
    size_t damage_count, damage_capacity;
    struct definitions *definitions;    /* those that are current: sqlite_definitions.c */
    struct body *bodies[BODIES];        /* sqlite_bodies.c */
    uint64_t clock;                     /* of struct body's `used` */
    struct zstd_context *zstd;          /* sqlite_bodies.c */
};

/* Functions that return int return SQLITE_OK, or SQLite's code of an error. */

/* A statement of the table in sqlite_database.c, reset. */
int trace_statement(struct trace *trace, enum statement number, sqlite3_stmt **prepared);
/* sqlite3_step for one of these. */
int trace_step(struct trace *trace, sqlite3_stmt *row);

/* Notes why a query is refused, for trace_answer; the format is sqlite3_mprintf's. Returns
 * `code`. */
int trace_refuse(struct trace *trace, int code, const char *format, ...);

/* Refuses queries that cannot be answered: nothing can be decompressed; a table is a view, virtual,
 * or missing; or a table queries the tables that are made of it. */
int trace_check(struct trace *trace);

/* For struct scan_calls, with the trace as context: a segment could not be read to its end. */
void trace_damaged(void *context, const struct scan_segment *segment, uint32_t read, const char *reason);

#endif
