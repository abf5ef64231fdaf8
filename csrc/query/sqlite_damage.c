/* The virtual table `damage`: the segments that this connection could not read so far.
 *
 *   SELECT segment, reason FROM damage WHERE read < events;
 */
#include "query/sqlite_table.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace,
                         "CREATE TABLE damage(segment INTEGER, run INTEGER, events INTEGER, read INTEGER,"
                         " reason TEXT)",
                         made);
}

struct damage_cursor {
    sqlite3_vtab_cursor base;
    size_t at;
};

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    info->estimatedRows = 10;
    info->estimatedCost = 10;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct damage_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    free(base);
    return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
    (void)number, (void)plan, (void)count, (void)values;
    ((struct damage_cursor *)base)->at = 0;
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
    ((struct damage_cursor *)base)->at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((struct damage_cursor *)base)->at >= ((struct trace_table *)base->pVtab)->trace->damage_count;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)((struct damage_cursor *)base)->at + 1;
    return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct trace *trace = ((struct trace_table *)base->pVtab)->trace;
    const struct damage *damage = &trace->damages[((struct damage_cursor *)base)->at];
    const int64_t numbers[] = {damage->segment, damage->run, damage->events, damage->read};
    if (number < 4)
        sqlite3_result_int64(context, numbers[number]);
    else
        sqlite3_result_text(context, damage->reason, -1, SQLITE_STATIC);
    return SQLITE_OK;
}

const sqlite3_module damage_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
