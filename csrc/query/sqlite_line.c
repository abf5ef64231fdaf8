/* The virtual table `line`: runs and times by line, the most own time first.
 *
 *   SELECT file, line, func, count, own, total FROM line WHERE run = 1 LIMIT 20;
 *   SELECT file, line, count, own FROM line WHERE run = 1 AND line MATCH '(= func "pay")';
 *
 * Each query goes through all events of its runs, threads and time; line_times.h says what counts.
 */
#include "query/sqlite_counted.h"
#include "query/sqlite_segments.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "query/line_times.h"

struct line_cursor {
    sqlite3_vtab_cursor base;
    struct list list;
    struct predicate *counted; /* NULL: all runs */
    struct line_times *times;
    const struct line_time *lines;
    size_t count, at;
};

enum { LINE_RUN, LINE_FILE, LINE_LINE, LINE_FUNC, LINE_MODULE, LINE_COUNT, LINE_OWN, LINE_TOTAL,
       LINE_AVERAGE, LINE_MINE };

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace,
                         "CREATE TABLE line(run INTEGER, file TEXT, line INTEGER, func TEXT, module TEXT,"
                         " count INTEGER, own INTEGER, total INTEGER, average INTEGER,"
                         " mine INTEGER HIDDEN)",
                         made);
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    static char *const plans[] = {"", "run=?", "line MATCH?", "run=? line MATCH?"};
    (void)vtab;
    return counted_plan(info, LINE_RUN, LINE_LINE, LINE_OWN, plans);
}

static void clear(struct line_cursor *cursor)
{
    line_times_free(cursor->times);
    predicate_free(cursor->counted);
    list_free(&cursor->list);
    cursor->times = NULL;
    cursor->counted = NULL;
    cursor->count = cursor->at = 0;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct line_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    clear((struct line_cursor *)base);
    free(base);
    return SQLITE_OK;
}

static int look_through(struct line_cursor *cursor, struct trace *trace, const struct predicate *predicate)
{
    struct scan_calls calls = {.fetch = trace_fetch, .damaged = trace_damaged, .context = trace};
    struct scan_at at;
    int answer = list_segments(trace, predicate, &cursor->list);

    if (answer)
        return answer;
    struct scan *scan = scan_new(predicate, cursor->list.segments, cursor->list.count, false,
                                 cursor->counted && predicate_asks_levels(cursor->counted), &calls);
    cursor->times = line_times_new(cursor->counted);
    answer = scan && cursor->times ? 1 : SCAN_NO_MEMORY;
    while (answer > 0 && (answer = trace_next(trace, scan, &cursor->list, &at)) > 0)
        if (!line_times_add(cursor->times, &at))
            answer = SCAN_NO_MEMORY;
    scan_free(scan);
    if (!answer && !line_times_result(cursor->times, &cursor->lines, &cursor->count))
        answer = SCAN_NO_MEMORY;
    return answer == SCAN_NO_MEMORY ? SQLITE_NOMEM : -answer;
}

static int begin(sqlite3_vtab_cursor *base, int plan, sqlite3_value **values)
{
    struct line_cursor *cursor = (struct line_cursor *)base;
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
    ((struct line_cursor *)base)->at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const struct line_cursor *cursor = (const struct line_cursor *)base;
    return cursor->at >= cursor->count;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)((struct line_cursor *)base)->at + 1;
    return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct line_cursor *cursor = (const struct line_cursor *)base;
    const struct line_time *line = &cursor->lines[cursor->at];
    const struct run_code *code = run_code_find(line->run, line->code);

    switch (number) {
    case LINE_RUN:
        sqlite3_result_int64(context, line->run->run);
        break;
    case LINE_FILE:
        trace_result(context, code->file, SQLITE_TRANSIENT);
        break;
    case LINE_LINE:
        sqlite3_result_int64(context, line->line);
        break;
    case LINE_FUNC:
        trace_result(context, code->func, SQLITE_TRANSIENT);
        break;
    case LINE_MODULE:
        trace_result(context, code->module, SQLITE_TRANSIENT);
        break;
    case LINE_COUNT:
        sqlite3_result_int64(context, (sqlite3_int64)line->count);
        break;
    case LINE_OWN:
        sqlite3_result_int64(context, line->own);
        break;
    case LINE_TOTAL:
        sqlite3_result_int64(context, line->total);
        break;
    case LINE_AVERAGE:
        if (line->timed)
            sqlite3_result_int64(context, line->durations / (int64_t)line->timed);
        break;
    case LINE_MINE:
        sqlite3_result_int64(context, code->mine);
        break;
    }
    return SQLITE_OK;
}

const sqlite3_module line_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
