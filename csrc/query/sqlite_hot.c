/* The virtual table `hot`: calls and times by function, the most own time first.
 *
 *   SELECT module, func, calls, own, total FROM hot WHERE run = 1 LIMIT 20;
 *   SELECT func, calls, longest FROM hot WHERE run = 1 AND hot MATCH '(= mine 1)';
 *   SELECT func, own - off AS busy, off FROM hot WHERE run = 1 ORDER BY off DESC;
 *
 * Each query goes through all events of its runs, threads and time; hot.h says what counts.
 */
#include "query/sqlite_counted.h"
#include "query/sqlite_segments.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "query/hot.h"

struct hot_cursor {
    sqlite3_vtab_cursor base;
    struct list list;
    struct predicate *counted; /* NULL: all calls */
    struct hot *hot;
    const struct hot_code *codes;
    size_t count, at;
};

enum { HOT_RUN, HOT_MODULE, HOT_FUNC, HOT_FILE, HOT_LINE, HOT_CALLS, HOT_OWN, HOT_TOTAL,
       HOT_AVERAGE, HOT_LONGEST, HOT_MEDIAN, HOT_MINE, HOT_OFF, HOT_MATCH };

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace,
                         "CREATE TABLE hot(run INTEGER, module TEXT, func TEXT, file TEXT, line INTEGER,"
                         " calls INTEGER, own INTEGER, total INTEGER, average INTEGER, longest INTEGER,"
                         " median INTEGER, mine INTEGER HIDDEN, off INTEGER HIDDEN, hot HIDDEN)",
                         made);
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    static char *const plans[] = {"", "run=?", "hot MATCH?", "run=? hot MATCH?"};
    (void)vtab;
    return counted_plan(info, HOT_RUN, HOT_MATCH, HOT_OWN, plans);
}

static void clear(struct hot_cursor *cursor)
{
    hot_free(cursor->hot);
    predicate_free(cursor->counted);
    list_free(&cursor->list);
    cursor->hot = NULL;
    cursor->counted = NULL;
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
    struct scan_calls calls = {.fetch = trace_fetch, .damaged = trace_damaged, .context = trace};
    struct scan_at at;
    int answer = list_segments(trace, predicate, &cursor->list);

    if (answer)
        return answer;
    struct scan *scan = scan_new(predicate, cursor->list.segments, cursor->list.count, false,
                                 cursor->counted && predicate_asks_levels(cursor->counted), &calls);
    cursor->hot = hot_new(cursor->counted);
    answer = scan && cursor->hot ? 1 : SCAN_NO_MEMORY;
    while (answer > 0 && (answer = trace_next(trace, scan, &cursor->list, &at)) > 0)
        if (!hot_add(cursor->hot, &at))
            answer = SCAN_NO_MEMORY;
    scan_free(scan);
    if (!answer && !hot_result(cursor->hot, &cursor->codes, &cursor->count))
        answer = SCAN_NO_MEMORY;
    return answer == SCAN_NO_MEMORY ? SQLITE_NOMEM : -answer;
}

static int begin(sqlite3_vtab_cursor *base, int plan, sqlite3_value **values)
{
    struct hot_cursor *cursor = (struct hot_cursor *)base;
    struct predicate *around;
    int answer = trace_ready(base->pVtab);

    clear(cursor);
    if (answer || (answer = counted_begin(base->pVtab, plan, values, &cursor->counted, &around)))
        return answer;
    answer = look_through(cursor, ((struct trace_table *)base->pVtab)->trace, around);
    predicate_free(around);
    return answer;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int count, sqlite3_value **values)
{
    (void)text, (void)count;
    return trace_answer(base->pVtab, begin(base, plan, values));
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
    trace_result(context, string, SQLITE_TRANSIENT);
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
    case HOT_AVERAGE:
        if (hot->ended)
            sqlite3_result_int64(context, hot->durations / (int64_t)hot->ended);
        break;
    case HOT_LONGEST:
        if (hot->ended)
            sqlite3_result_int64(context, hot->longest);
        break;
    case HOT_MEDIAN:
        if (hot->ended)
            sqlite3_result_int64(context, hot->median);
        break;
    case HOT_MINE:
        sqlite3_result_int64(context, code->mine);
        break;
    case HOT_OFF:
        if (hot->off >= 0)
            sqlite3_result_int64(context, hot->off);
        break;
    }
    return SQLITE_OK;
}

const sqlite3_module hot_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
