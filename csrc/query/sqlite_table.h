/* The common parts of the virtual tables: making and freeing the state of their connection,
 * connecting, and answering.
 *
 * Called by the files with a sqlite3_module: sqlite_event.c, sqlite_hot.c, sqlite_line.c,
 * sqlite_source.c, sqlite_stack.c, sqlite_variable.c, sqlite_damage.c, sqlite_skipped.c; and by
 * sqlite_trace.c, which lists these.
 */
#ifndef PYTRACE_SQLITE_TABLE_H
#define PYTRACE_SQLITE_TABLE_H

#include "query/sqlite_database.h"

struct trace *trace_new(sqlite3 *db); /* NULL: no memory */
void trace_free(struct trace *trace);
/* Frees everything that would keep the connection from being closed; it is made again if needed. */
void trace_rest(struct trace *trace);

struct table; /* sqlite_plan.h */

struct trace_table {
    sqlite3_vtab base;
    struct trace *trace;
    const struct table *table; /* of those in sqlite_event.c; NULL: it is none of them */
};

/* xConnect and xDisconnect of them all; `declaration` as for sqlite3_declare_vtab. */
int trace_connect(sqlite3 *db, struct trace *trace, const char *declaration, sqlite3_vtab **made);
int trace_disconnect(sqlite3_vtab *base);

/* The start of each xFilter: trace_check. */
int trace_ready(sqlite3_vtab *vtab);
/* The end of each xFilter: its answer, with a message if it was refused. */
int trace_answer(sqlite3_vtab *vtab, int answer);
int trace_fail(sqlite3_vtab *vtab, const char *message);

/* xBestIndex of a table that is a function of an event:
 *
 *   condition        plan      rows are thought to be
 *   event = ?        event=?   as many as the table says; SQLite does not test it again
 *   no such one      there is no plan: no event is asked for
 *   ORDER BY order   is the order in which they come
 */
int trace_plan_of_event(sqlite3_index_info *info, int event, int order, int64_t rows);
/* The event that is asked for; 0: no event has such an id. */
int64_t trace_event_id(sqlite3_value *value);

/* Makes a text the result; the destructor says how long it lives, as for sqlite3_result_text. */
void trace_result(sqlite3_context *context, struct string string, sqlite3_destructor_type destructor);

extern const sqlite3_module event_module, argument_module, call_module; /* sqlite_event.c */
/* in files of these names */
extern const sqlite3_module hot_module, line_module, source_module, stack_module, variable_module;
extern const sqlite3_module damage_module, skipped_module;

#endif
