/* The virtual table `skipped`: content of a later version, which this one skips.
 *
 *   SELECT run, sum(records), sum(fields) FROM skipped GROUP BY run;
 *
 * Each query looks through the segments that may have such records: segments whose row says so
 * (kinds), all of a run with an unknown feature, and all of a small run.
 */
#include "query/sqlite_bodies.h"
#include "query/sqlite_table.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "common/array.h"
#include "common/feature.h"

#define SMALL 100000 /* events; they are looked through in some milliseconds */

/* A segment. */
struct skipped {
    int64_t segment, run, kind;
    /* Records of unknown kinds; records with unknown fields, and unknown fields between records.
     * -1: these numbers are unknown, too. */
    int64_t records, fields;
};

struct skipped_cursor {
    sqlite3_vtab_cursor base;
    struct skipped *rows;
    size_t count, capacity, at;
};

enum { SKIPPED_SEGMENT, SKIPPED_RUN, SKIPPED_KIND, SKIPPED_RECORDS, SKIPPED_FIELDS };

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace,
                         "CREATE TABLE skipped(segment INTEGER, run INTEGER, kind INTEGER, records INTEGER,"
                         " fields INTEGER)",
                         made);
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    info->estimatedCost = 1e6;
    info->estimatedRows = 100;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct skipped_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    free(((struct skipped_cursor *)base)->rows);
    free(base);
    return SQLITE_OK;
}

/* The segments that may have unknown content. */
static int list(struct skipped_cursor *cursor, struct trace *trace)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, LATER, &row);

    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, (int64_t)(EVENT_LATER & ~EVENT_KNOWN));
    sqlite3_bind_int64(row, 2, (int64_t)~FEATURES_KNOWN);
    sqlite3_bind_int64(row, 3, SMALL);
    while ((answer = trace_step(trace, row)) == SQLITE_ROW) {
        if (!array_reserve(&cursor->rows, &cursor->capacity, cursor->count + 1, sizeof *cursor->rows)) {
            answer = SQLITE_NOMEM;
            break;
        }
        cursor->rows[cursor->count++] = (struct skipped){
            sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2), -1, -1};
    }
    sqlite3_reset(row);
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

/* Counts in a segment of events. Nothing is counted in a run that this version must not read. */
static int look_through(struct skipped *row, struct trace *trace)
{
    struct segment_walk walk;
    struct segment_event event;
    struct body *body;
    int answer = body_get(trace, row->segment, &body);

    if (answer == SQLITE_ERROR && *trace->refusal) {
        *trace->refusal = 0;
        return SQLITE_OK;
    }
    if (answer || !body)
        return answer;
    row->records = row->fields = 0;
    segment_open(&walk, body->data, (size_t)body->size, body->segment.base_time, 0);
    while (segment_skim(&walk, &event) > 0)
        row->fields += event.event.has_later;
    row->fields += walk.between;
    row->records = walk.later;
    body_release(body);
    return SQLITE_OK;
}

static int begin(sqlite3_vtab_cursor *base)
{
    struct skipped_cursor *cursor = (struct skipped_cursor *)base;
    struct trace *trace = ((struct trace_table *)base->pVtab)->trace;
    int answer = trace_ready(base->pVtab);
    size_t kept = 0;

    cursor->count = cursor->at = 0;
    if (answer || (answer = list(cursor, trace)))
        return answer;
    for (size_t i = 0; i < cursor->count && !answer; i++) {
        struct skipped *row = &cursor->rows[i];
        if (!row->kind)
            answer = look_through(row, trace);
        if (row->kind || row->records || row->fields)
            cursor->rows[kept++] = *row;
    }
    cursor->count = kept;
    return answer;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
    (void)number, (void)plan, (void)count, (void)values;
    return trace_answer(base->pVtab, begin(base));
}

static int next(sqlite3_vtab_cursor *base)
{
    ((struct skipped_cursor *)base)->at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const struct skipped_cursor *cursor = (const struct skipped_cursor *)base;
    return cursor->at >= cursor->count;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)((struct skipped_cursor *)base)->at + 1;
    return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct skipped_cursor *cursor = (const struct skipped_cursor *)base;
    const struct skipped *row = &cursor->rows[cursor->at];
    const int64_t numbers[] = {
        [SKIPPED_SEGMENT] = row->segment, [SKIPPED_RUN] = row->run, [SKIPPED_KIND] = row->kind,
        [SKIPPED_RECORDS] = row->records, [SKIPPED_FIELDS] = row->fields,
    };

    if (number < SKIPPED_RECORDS || numbers[number] >= 0)
        sqlite3_result_int64(context, numbers[number]);
    return SQLITE_OK;
}

const sqlite3_module skipped_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
