/* Conditions of SQL as predicates: those that a plan has taken over, with the values from xFilter.
 *
 * Numbers, texts and NULL compare as SQLite has it: sqlite.org/datatype3.html. Called by
 * sqlite_event.c.
 */
#ifndef PYTRACE_SQLITE_CONDITIONS_H
#define PYTRACE_SQLITE_CONDITIONS_H

#include "query/predicate.h"
#include "query/sqlite_plan.h"

struct conditions {
    struct predicate *event;    /* of events; NULL: all */
    struct predicate *argument; /* of arguments; NULL: all */
    int64_t offset;             /* rows that are left out at the beginning */
};

/* SQLITE_OK, and *made is for conditions_free; or an error, which may have a message in the
 * table. */
int conditions_read(struct trace_table *vtab, const char *plan, int count, sqlite3_value **values,
                    struct conditions *made);
void conditions_free(struct conditions *conditions);

#endif
