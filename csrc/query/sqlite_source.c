/* The virtual table `source`: the text of source files as it was when the program ran.
 *
 *   SELECT text FROM source WHERE run = 1 AND file = '/home/me/app.py';
 *
 * It is the table `source_file` with its texts decompressed. A text that is damaged is NULL. A
 * database of an earlier version has no such table, and no rows here.
 */
#include "query/sqlite_table.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "common/utf8.h"
#include "query/zstd.h"

#define TEXT_MAX (12 << 20) /* bytes; TEXT_MOST of dumper/sources.py */

struct source_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *row;
    int plan;   /* that `row` was prepared for */
    bool at_end;
};

/* In the table, and in the rows of the statement. */
enum { SOURCE_RUN, SOURCE_FILE, SOURCE_TEXT, SOURCE_CHANGED };
enum { ROW_ID, ROW_RUN, ROW_FILE, ROW_CHANGED, ROW_SIZE, ROW_DATA };

/* In idxNum. Without texts the pages that they lie in are not read. */
enum { PLAN_RUN = 1, PLAN_FILE = 2, PLAN_TEXT = 4 };

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace,
                         "CREATE TABLE source(run INTEGER, file TEXT, text TEXT, changed INTEGER HIDDEN)",
                         made);
}

/* condition                plan            rows are thought to be
 *   run = ? and file = ?     run=? file=?      1
 *   file = ?                 file=?           10
 *   run = ?                  run=?           100
 *   no such one                             1000
 * SQLite tests the conditions again. Another collation than BINARY is not taken over. */
static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    static const struct {
        char *text;
        int rows;
    } plans[] = {{"", 1000}, {"run=?", 100}, {"file=?", 10}, {"run=? file=?", 1}};
    int taken[2] = {-1, -1}; /* conditions: on run, on file */
    int plan = 0, arguments = 0;
    (void)vtab;

    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->op != SQLITE_INDEX_CONSTRAINT_EQ || !constraint->usable ||
            sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY"))
            continue;
        if (constraint->iColumn == SOURCE_RUN || constraint->iColumn == SOURCE_FILE)
            taken[constraint->iColumn] = i;
    }
    for (int i = 0; i < 2; i++)
        if (taken[i] >= 0) {
            info->aConstraintUsage[taken[i]].argvIndex = ++arguments;
            plan |= PLAN_RUN << i;
        }
    info->idxStr = plans[plan].text;
    info->estimatedRows = plans[plan].rows;
    info->estimatedCost = 10 * plans[plan].rows;
    info->idxNum = plan | (info->colUsed & 1 << SOURCE_TEXT ? PLAN_TEXT : 0);
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct source_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    sqlite3_finalize(((struct source_cursor *)base)->row);
    free(base);
    return SQLITE_OK;
}

static int prepare(struct source_cursor *cursor, struct trace *trace, int plan)
{
    static const char *const conditions[] = {"", " WHERE run = ?1", " WHERE file = ?1",
                                             " WHERE run = ?1 AND file = ?2"};
    const char *condition = conditions[plan & ~PLAN_TEXT];
    const char *text = plan & PLAN_TEXT ? "size, data" : "NULL, NULL";

    sqlite3_finalize(cursor->row);
    cursor->row = NULL;
    char *sql = sqlite3_mprintf("SELECT rowid, run, file, changed, %s FROM main.source_file%s"
                                " ORDER BY run, file",
                                text, condition);
    trace->reading++;
    int answer = sql ? sqlite3_prepare_v2(trace->db, sql, -1, &cursor->row, NULL) : SQLITE_NOMEM;
    trace->reading--;
    sqlite3_free(sql);
    cursor->plan = plan;
    return answer == SQLITE_ERROR
               ? trace_refuse(trace, answer, "the table source_file has other columns than it should")
               : answer;
}

static int step(struct source_cursor *cursor)
{
    int answer = trace_step(((struct trace_table *)cursor->base.pVtab)->trace, cursor->row);
    cursor->at_end = answer != SQLITE_ROW;
    return answer == SQLITE_ROW || answer == SQLITE_DONE ? SQLITE_OK : answer;
}

static int begin(struct source_cursor *cursor, int plan, int count, sqlite3_value **values)
{
    struct trace *trace = ((struct trace_table *)cursor->base.pVtab)->trace;
    int answer = trace_ready(cursor->base.pVtab);

    cursor->at_end = true;
    if (answer)
        return answer;
    if (sqlite3_table_column_metadata(trace->db, "main", "source_file", NULL, NULL, NULL, NULL, NULL, NULL))
        return SQLITE_OK;
    if (cursor->row && cursor->plan == plan)
        sqlite3_reset(cursor->row);
    else if ((answer = prepare(cursor, trace, plan)))
        return answer;
    for (int i = 0; i < count && !answer; i++)
        answer = sqlite3_bind_value(cursor->row, i + 1, values[i]);
    return answer ? answer : step(cursor);
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int count, sqlite3_value **values)
{
    (void)text;
    return trace_answer(base->pVtab, begin((struct source_cursor *)base, plan, count, values));
}

static int next(sqlite3_vtab_cursor *base) { return step((struct source_cursor *)base); }

static int at_end(sqlite3_vtab_cursor *base) { return ((struct source_cursor *)base)->at_end; }

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = sqlite3_column_int64(((struct source_cursor *)base)->row, ROW_ID);
    return SQLITE_OK;
}

static bool is_text(const char *text, size_t size)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + size;
    uint32_t code;

    for (size_t length; p < end; p += length)
        if (!(length = utf8_get(p, end, &code)) || (code >= 0xd800 && code < 0xe000))
            return false;
    return true;
}

/* Makes the text the result, or leaves it NULL. */
static int give_text(struct trace *trace, sqlite3_stmt *row, sqlite3_context *context)
{
    int64_t size = sqlite3_column_int64(row, ROW_SIZE);
    const void *data = sqlite3_column_blob(row, ROW_DATA);
    const char *reason;

    if (size < 0 || size > TEXT_MAX || sqlite3_column_type(row, ROW_DATA) != SQLITE_BLOB || !data)
        return SQLITE_OK;
    if (!trace->zstd && !(trace->zstd = zstd_context_new()))
        return SQLITE_NOMEM;
    char *text = malloc((size_t)size + 1); /* one more: it may be longer than it says */
    if (!text)
        return SQLITE_NOMEM;
    long found = zstd_decompress(trace->zstd, text, (size_t)size + 1, data,
                                 (size_t)sqlite3_column_bytes(row, ROW_DATA), &reason);
    if (found == size && is_text(text, (size_t)size))
        trace_result(context, (struct string){text, (size_t)size}, free);
    else
        free(text);
    return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    static const int columns[] = {
        [SOURCE_RUN] = ROW_RUN, [SOURCE_FILE] = ROW_FILE, [SOURCE_CHANGED] = ROW_CHANGED};
    sqlite3_stmt *row = ((struct source_cursor *)base)->row;

    if (number == SOURCE_TEXT)
        return give_text(((struct trace_table *)base->pVtab)->trace, row, context);
    sqlite3_result_value(context, sqlite3_column_value(row, columns[number]));
    return SQLITE_OK;
}

const sqlite3_module source_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
