/* The table-valued function
 *
 *   SELECT event.* FROM stack(?) JOIN event ON event.id = stack.id ORDER BY stack.depth;
 *
 * has the functions that were open at an event, its own included, outermost first: their depth, and
 * the id of the event that entered them (call; resume or throw of a generator). Functions whose
 * start is not in the database are left out.
 */
#include "query/sqlite_calls.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

struct stack_cursor {
    sqlite3_vtab_cursor base;
    int64_t event;
    struct calls_level *levels;
    size_t count, at;
};

enum { STACK_DEPTH, STACK_ID, STACK_EVENT };

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace, "CREATE TABLE stack(depth INTEGER, id INTEGER, event INTEGER HIDDEN)",
                         made);
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    return trace_plan_of_event(info, STACK_EVENT, STACK_DEPTH, 20);
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct stack_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    free(((struct stack_cursor *)base)->levels);
    free(base);
    return SQLITE_OK;
}

static int find_stack(struct stack_cursor *cursor, struct trace *trace)
{
    uint32_t index = (uint32_t)(cursor->event & ((1 << SCAN_INDEX_BITS) - 1));
    struct body *body;
    struct scan_row row;
    struct scan_at at;
    struct run_calls *run;
    int answer = body_get(trace, cursor->event >> SCAN_INDEX_BITS, &body);

    if (!answer && body && body_at(body, index, &row, &at) &&
        !(answer = run_calls_new(trace, at.segment, &run))) {
        answer = calls_code(calls_stack(run->calls, &at, &cursor->levels, &cursor->count));
        run_calls_free(run);
    }
    body_release(body);
    return answer;
}

static int begin(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
    struct stack_cursor *cursor = (struct stack_cursor *)base;
    int answer = trace_ready(base->pVtab);
    (void)number, (void)plan, (void)count;

    free(cursor->levels);
    cursor->levels = NULL;
    cursor->count = cursor->at = 0;
    if (answer)
        return answer;
    cursor->event = trace_event_id(values[0]);
    return cursor->event > 0 ? find_stack(cursor, ((struct trace_table *)base->pVtab)->trace) : SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
    return trace_answer(base->pVtab, begin(base, number, plan, count, values));
}

static int next(sqlite3_vtab_cursor *base)
{
    ((struct stack_cursor *)base)->at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const struct stack_cursor *cursor = (const struct stack_cursor *)base;
    return cursor->at >= cursor->count;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)((struct stack_cursor *)base)->at + 1;
    return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct stack_cursor *cursor = (const struct stack_cursor *)base;
    const struct calls_level *level = &cursor->levels[cursor->at];

    sqlite3_result_int64(context, number == STACK_DEPTH ? level->depth
                                  : number == STACK_ID  ? level->id
                                                        : cursor->event);
    return SQLITE_OK;
}

const sqlite3_module stack_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
