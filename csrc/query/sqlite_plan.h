/* Plans of the tables that are scans: the conditions on columns that a scan takes over, as a text.
 *
 * A plan has the conditions that were taken over, one for each argument of xFilter, such as
 * `time>=? func LIKE? kind IN?`, then `OFFSET?`, then the order. EXPLAIN QUERY PLAN shows it.
 *
 * Called by sqlite_event.c, whose tables are described here, and by sqlite_conditions.c.
 */
#ifndef PYTRACE_SQLITE_PLAN_H
#define PYTRACE_SQLITE_PLAN_H

#include "query/sqlite_table.h"

struct column {
    const char *name, *type;  /* as declared; type with HIDDEN if SELECT * does not show it */
    int field;                /* enum field; -1: no condition on it can be taken over */
    bool is_text;
    bool of_argument;         /* a condition on it is one on an argument */
};

struct table {
    const char *name;
    const struct column *columns;
    int count;
    int time, id;             /* columns that rows can be ordered by; `id` after time */
    int match;                /* the column that MATCH is about; -1: none */
    bool arguments;           /* a row is an argument */
    const char *kind;         /* of its events; NULL: any */
};

/* In idxNum: rows come backwards; they have places among the open levels. */
enum { PLAN_DESCENDING = 1, PLAN_LEVELS = 2 };

/* xBestIndex of these tables. */
int plan_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info);

/* One condition of a plan: its column, and SQLITE_INDEX_CONSTRAINT_... as *op (0: IN). Returns
 * the text behind it; NULL: there is no more. */
const char *plan_read(const char *plan, const struct table *table, int *column, unsigned char *op);

#endif
