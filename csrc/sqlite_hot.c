/* The virtual table `hot`: calls, own and total time by function, those with the most own time first.
 *
 *   SELECT module, func, calls, own, total FROM hot WHERE run = 1 LIMIT 20;
 *
 * Each query looks through all events of the runs that are asked for (hot.h has what is counted).
 */
#include "sqlite_store.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "hot.h"

struct hot_cursor {
    sqlite3_vtab_cursor base;
    struct list list;
    struct hot *hot;
    const struct hot_code *codes;
    size_t count, at;
};

enum { HOT_RUN, HOT_MODULE, HOT_FUNC, HOT_FILE, HOT_LINE, HOT_CALLS, HOT_OWN, HOT_TOTAL };

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace,
                         "CREATE TABLE hot(run INTEGER, module TEXT, func TEXT, file TEXT, line INTEGER,"
                         " calls INTEGER, own INTEGER, total INTEGER)",
                         made);
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    info->estimatedCost = 1e8;
    info->estimatedRows = 1000;
    for (int i = 0; i < info->nConstraint && !info->idxNum; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->usable && constraint->iColumn == HOT_RUN && constraint->op == SQLITE_INDEX_CONSTRAINT_EQ) {
            info->aConstraintUsage[i].argvIndex = 1; /* not `omit`: SQLite knows best what equals 1 */
            info->idxNum = 1;
            info->idxStr = "run=?";
            info->estimatedCost = 1e7;
        }
    }
    if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn == HOT_OWN && info->aOrderBy[0].desc)
        info->orderByConsumed = 1;
    return SQLITE_OK;
}

static void clear(struct hot_cursor *cursor)
{
    hot_free(cursor->hot);
    list_free(&cursor->list);
    cursor->hot = NULL;
    cursor->count = cursor->at = 0;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct hot_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    clear((struct hot_cursor *)base);
    free(base);
    return SQLITE_OK;
}

static int look_through(struct hot_cursor *cursor, struct trace *trace, const struct predicate *predicate)
{
    struct scan_calls calls = {trace_fetch, trace_damaged, trace};
    struct scan_at at;
    int answer = list_segments(trace, predicate, &cursor->list);

    if (answer)
        return answer;
    struct scan *scan = scan_new(predicate, cursor->list.segments, cursor->list.count, false, &calls);
    cursor->hot = hot_new();
    answer = scan && cursor->hot ? 1 : SCAN_NO_MEMORY;
    while (answer > 0 && (answer = trace_next(trace, scan, cursor->list.count, &at)) > 0)
        if (!hot_add(cursor->hot, &at))
            answer = SCAN_NO_MEMORY;
    scan_free(scan);
    if (!answer && !hot_result(cursor->hot, &cursor->codes, &cursor->count))
        answer = SCAN_NO_MEMORY;
    return answer == SCAN_NO_MEMORY ? SQLITE_NOMEM : -answer;
}

static int filter(sqlite3_vtab_cursor *base, int by_run, const char *plan, int count, sqlite3_value **values)
{
    struct hot_cursor *cursor = (struct hot_cursor *)base;
    struct predicate *predicate = NULL;
    int answer = trace_ready(base->pVtab);
    (void)plan, (void)count;

    clear(cursor);
    if (answer)
        return answer;
    if (by_run) {
        int64_t run = sqlite3_value_int64(values[0]);
        if (!(predicate = predicate_range(FIELD_RUN, run, run)))
            return SQLITE_NOMEM;
    }
    answer = look_through(cursor, ((struct trace_table *)base->pVtab)->trace, predicate);
    predicate_free(predicate);
    return answer;
}

static int next(sqlite3_vtab_cursor *base)
{
    ((struct hot_cursor *)base)->at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const struct hot_cursor *cursor = (const struct hot_cursor *)base;
    return cursor->at >= cursor->count;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)((struct hot_cursor *)base)->at + 1;
    return SQLITE_OK;
}

static void result_string(sqlite3_context *context, struct string string)
{
    sqlite3_result_text(context, string.text, (int)string.size, SQLITE_TRANSIENT);
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct hot_cursor *cursor = (const struct hot_cursor *)base;
    const struct hot_code *hot = &cursor->codes[cursor->at];
    const struct run_code *code = run_code_find(hot->run, hot->code);

    switch (number) {
    case HOT_RUN:
        sqlite3_result_int64(context, hot->run->run);
        break;
    case HOT_MODULE:
        result_string(context, code->module);
        break;
    case HOT_FUNC:
        result_string(context, code->func);
        break;
    case HOT_FILE:
        result_string(context, code->file);
        break;
    case HOT_LINE:
        sqlite3_result_int64(context, code->line);
        break;
    case HOT_CALLS:
        sqlite3_result_int64(context, (sqlite3_int64)hot->calls);
        break;
    case HOT_OWN:
        sqlite3_result_int64(context, hot->own);
        break;
    case HOT_TOTAL:
        sqlite3_result_int64(context, hot->total);
        break;
    }
    return SQLITE_OK;
}

const sqlite3_module hot_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
