/* A build for tests (-DPYTRACE_VERIFY) verifies what sqlite_plan.c promises to SQLite's planner.
 * What breaks a promise is an error.
 *
 *   each plan   has some rows, and they cost something; one row and an order are promised exactly
 *               if the plan's text has `id=?` and ORDER BY; the text has all conditions taken over
 *   each row    comes in the order that was promised; is no second one of a search for one; meets
 *               the conditions that SQLite was told not to look at
 *
 * Whether a row meets its conditions, SQLite is asked: by the row's id, with the conditions where
 * they are no constraints. MATCH can be nothing else: so a look-up of the id must find the event,
 * which decodes it and asks the whole predicate, while a scan passes over what cannot match. How
 * many rows a scan has is a guess, as sqlite_plan.c says, and no promise.
 *
 * Called by sqlite_event.c. In other builds there is nothing of this.
 */
#ifndef PYTRACE_SQLITE_VERIFY_H
#define PYTRACE_SQLITE_VERIFY_H

#include "query/sqlite_plan.h"

struct verified_row {
    int64_t time, id;
    uint32_t position; /* of an argument */
};

#ifdef PYTRACE_VERIFY

struct verify {
    sqlite3_stmt *conditions; /* asks of a row whether it meets them; NULL: it need not */
    int order;                /* 1: of time; -1: backwards; 0: none */
    bool single;              /* there is one row */
    bool any;                 /* `last` is one */
    struct verified_row last;
};

/* SQLITE_OK, or the error of a plan. */
int verify_plan(struct trace_table *vtab, const sqlite3_index_info *info);
/* Begins with the rows of a plan. */
int verify_begin(struct verify *verify, struct trace_table *vtab, const char *plan, int count,
                 sqlite3_value **values);
/* SQLITE_OK, or the error of a row that breaks a promise. */
int verify_row(struct verify *verify, struct trace_table *vtab, const struct verified_row *row);
void verify_end(struct verify *verify);

#else

struct verify {
    char none;
};

static inline int verify_plan(struct trace_table *vtab, const sqlite3_index_info *info)
{
    (void)vtab, (void)info;
    return SQLITE_OK;
}

static inline int verify_begin(struct verify *verify, struct trace_table *vtab, const char *plan, int count,
                               sqlite3_value **values)
{
    (void)verify, (void)vtab, (void)plan, (void)count, (void)values;
    return SQLITE_OK;
}

static inline int verify_row(struct verify *verify, struct trace_table *vtab, const struct verified_row *row)
{
    (void)verify, (void)vtab, (void)row;
    return SQLITE_OK;
}

static inline void verify_end(struct verify *verify) { (void)verify; }

#endif
#endif
