/* What the tables have in common that count what meets a condition, the most own time first:
 * sqlite_hot.c counts calls, sqlite_line.c runs of lines.
 */
#ifndef PYTRACE_SQLITE_COUNTED_H
#define PYTRACE_SQLITE_COUNTED_H

#include "query/sqlite_table.h"

/* xBestIndex. run, match, own: columns; match is that of `TABLE MATCH`. plans: their names.
 *
 *   condition           idxNum      rows are thought to be
 *   run = ?             BY_RUN      1000, at a tenth of the cost; SQLite looks at it again
 *   TABLE MATCH ?       BY_MATCH    1000; without it there is no plan
 *   both                BY_RUN | BY_MATCH
 *   any other           0           1000
 *   ORDER BY own DESC   is the order in which they come
 */
enum { BY_RUN = 1, BY_MATCH = 2 };

int counted_plan(sqlite3_index_info *info, int run, int match, int own, char *const plans[4]);

/* xFilter: the condition of a plan (NULL: all meet it), and a predicate of the events to go
 * through: those of the runs, threads and times that it has bounds of, so that each call among them
 * is seen as a whole. *counted stays in any case, for the caller to free. */
int counted_begin(sqlite3_vtab *vtab, int plan, sqlite3_value **values, struct predicate **counted,
                  struct predicate **around);

#endif
