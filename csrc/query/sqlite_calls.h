/* The columns of the table `call` beyond its event, and the base of `stack`: calls.h over the
 * database. calls.h says which functions count as open.
 *
 * Called by sqlite_event.c and sqlite_stack.c.
 */
#ifndef PYTRACE_SQLITE_CALLS_H
#define PYTRACE_SQLITE_CALLS_H

#include "query/sqlite_bodies.h"
#include "query/sqlite_table.h"

/* The calls of a run. */
struct run_calls {
    struct run_calls *next;
    struct trace *trace;
    struct definitions *definitions;
    struct body *body;   /* fetched last */
    struct calls *calls;
};

/* For the run of this segment. */
int run_calls_new(struct trace *trace, const struct scan_segment *segment, struct run_calls **made);
void run_calls_free(struct run_calls *run);
/* SQLite's code for an answer of calls.h. */
int calls_code(int answer);

/* Facts of calls that stand in other events than the call itself. */
enum call_fact { CALL_PARENT, CALL_DURATION, CALL_OUTCOME, CALL_VALUE };

/* Makes the fact the result for the call event at `at`. *known is kept for the next calls, while
 * one statement runs; NULL at first. */
struct calls_known;
int call_result(struct trace *trace, struct calls_known **known, const struct scan_at *at,
                enum call_fact fact,
                sqlite3_context *context);
void calls_known_free(struct calls_known *known); /* NULL is fine */

#endif
