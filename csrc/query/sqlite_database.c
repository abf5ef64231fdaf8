/* The connection and its statements; see sqlite_database.h. */
#include "query/sqlite_database.h"
SQLITE_EXTENSION_INIT3

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/zstd.h"

#define DAMAGES_MAX 1000 /* that are remembered one by one */

#define SUMMARY "id, start, \"end\", count, stream, min_depth, max_depth, kinds, max_duration, codes"

/* {TABLE.COLUMN|INSTEAD}: a column that a database of an earlier version may lack. */
static const char *const statements[STATEMENTS] = {
    [RUNS] = "SELECT id FROM main.run ORDER BY id",
    [RUN] = "SELECT clock_epoch_ns, clock_epoch_units, clock_scale, {run.features|0} FROM main.run"
            " WHERE id = ?1",
    [COUNTS] = "SELECT (SELECT max(number) FROM main.code WHERE run = ?1),"
               " (SELECT count(*) FROM main.code WHERE run = ?1),"
               " (SELECT max(number) FROM main.type WHERE run = ?1),"
               " (SELECT count(*) FROM main.type WHERE run = ?1)",
    [CODES] = "SELECT number, module, func, file, line, arguments, {code.mine|0}, {code.variables|'[]'},"
              " {code.language|'python'} FROM main.code"
              " WHERE run = ?1",
    [THREADS] = "SELECT stream, coalesce(pid, 0), tid, name, process, {thread.kind|'thread'} = 'kernel'"
                " FROM main.thread LEFT JOIN main.process"
                " ON process.run = thread.run AND number = process WHERE thread.run = ?1 ORDER BY stream",
    [TYPES] = "SELECT number, name, {type.fields|NULL}, {type.attributes|NULL} FROM main.type WHERE run = ?1",
    /* answered by the index segment_time alone */
    [SEGMENTS] = "SELECT " SUMMARY " FROM main.segment WHERE run = ?1 AND start <= ?2 AND \"end\" >= ?3"
                 " AND count > 0 ORDER BY start",
    /* the same for a question about open levels; by the index alone unless the column was added
     * later */
    [SEGMENTS_OPEN] = "SELECT " SUMMARY ", {segment.open|NULL} FROM main.segment"
                      " WHERE run = ?1 AND start <= ?2 AND \"end\" >= ?3 AND count > 0 ORDER BY start",
    [SEGMENTS_BY_ID] = "SELECT " SUMMARY ", {segment.open|NULL} FROM main.segment WHERE +run = ?1 AND id BETWEEN ?2 AND ?3"
                       " AND count > 0",
    [DATA] = "SELECT base_depth, size, {segment.kind|0}, data, {segment.open|NULL} FROM main.segment WHERE id = ?1",
    [ROW] = "SELECT run, size, start, \"end\", count, stream FROM main.segment WHERE id = ?1",
    /* ?1: kinds of events, ?2: features that are not known; ?3: events of a run that is small */
    [LATER] = "SELECT segment.id, segment.run, {segment.kind|0}"
              " FROM (SELECT run AS number, total(count) AS events FROM main.segment GROUP BY run)"
              " CROSS JOIN main.run ON run.id = number CROSS JOIN main.segment ON segment.run = number"
              " WHERE events <= ?3 OR kinds & ?1 OR {run.features|0} & ?2 OR {segment.kind|0}",
    [VERSION] = "PRAGMA main.data_version",
    [SCHEMA_VERSION] = "PRAGMA main.schema_version",
};

/* Adds a statement's text, as this database can answer it. */
static void append_statement(struct trace *trace, const char *text, sqlite3_str *sql)
{
    const char *open, *dot, *bar, *close;

    for (; (open = strchr(text, '{')); text = close + 1) {
        dot = strchr(open, '.');
        bar = strchr(dot, '|');
        close = strchr(bar, '}');
        char *table = sqlite3_mprintf("%.*s", (int)(dot - open - 1), open + 1);
        char *column = sqlite3_mprintf("%.*s", (int)(bar - dot - 1), dot + 1);
        bool there = table && column &&
                     !sqlite3_table_column_metadata(trace->db, "main", table, column, NULL, NULL, NULL,
                                                    NULL, NULL);
        sqlite3_str_append(sql, text, (int)(open - text));
        if (there)
            sqlite3_str_append(sql, dot + 1, (int)(bar - dot - 1));
        else
            sqlite3_str_append(sql, bar + 1, (int)(close - bar - 1));
        sqlite3_free(table);
        sqlite3_free(column);
    }
    sqlite3_str_appendall(sql, text);
}

static int prepare(struct trace *trace, enum statement number)
{
    sqlite3_str *text = sqlite3_str_new(trace->db);
    append_statement(trace, statements[number], text);
    char *sql = sqlite3_str_finish(text);
    int answer = SQLITE_NOMEM;
    if (sql)
        answer = sqlite3_prepare_v3(trace->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &trace->prepared[number],
                                    NULL);
    sqlite3_free(sql);
    return answer;
}

int trace_statement(struct trace *trace, enum statement number, sqlite3_stmt **prepared)
{
    int answer = SQLITE_OK;
    trace->reading++;
    if (!trace->prepared[number])
        answer = prepare(trace, number);
    *prepared = trace->prepared[number];
    if (*prepared)
        sqlite3_reset(*prepared);
    trace->reading--;
    return answer;
}

int trace_step(struct trace *trace, sqlite3_stmt *row)
{
    trace->reading++;
    int answer = sqlite3_step(row);
    trace->reading--;
    return answer;
}

int trace_refuse(struct trace *trace, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sqlite3_vsnprintf(sizeof trace->refusal, trace->refusal, format, arguments);
    va_end(arguments);
    return code;
}

/* ---- the tables that are read -------------------------------------------------------------- */

static const struct {
    const char *name;
    bool later; /* a database of an earlier version may lack it */
} tables_read[] = {
    {"run", false}, {"process", false}, {"thread", false}, {"code", false},
    {"type", false}, {"segment", false}, {"source_file", true},
};

/* Steps through the rows of a pragma on a table until `is_wrong` is true. Then the refusal is the
 * text `wrong`, with the name and a column of that row; if there is no row, it is `none`. */
struct table_check {
    const char *pragma;
    const char *none;                   /* NULL: it may be so */
    bool (*is_wrong)(sqlite3_stmt *row);
    const char *wrong;
    int column;
};

static bool is_no_table(sqlite3_stmt *row)
{
    const char *type = (const char *)sqlite3_column_text(row, 2);
    return !type || strcmp(type, "table");
}

static bool is_generated(sqlite3_stmt *row) { return sqlite3_column_int(row, 6); }

/* The schema as SQLite has parsed it; the texts in the file's own sqlite_schema may be anything. */
static const struct table_check table_checks[] = {
    {"PRAGMA main.table_list(%s)", "there is no table %s", is_no_table, "%s is no table but a %s", 2},
    {"PRAGMA main.table_xinfo(%s)", NULL, is_generated, "table %s has a generated column, %s", 1},
};

static int check_table(struct trace *trace, const struct table_check *check, const char *name, bool later)
{
    char *sql = sqlite3_mprintf(check->pragma, name);
    sqlite3_stmt *row = NULL;
    bool any = false;
    int answer = sql ? sqlite3_prepare_v2(trace->db, sql, -1, &row, NULL) : SQLITE_NOMEM;

    while (!answer && (answer = trace_step(trace, row)) == SQLITE_ROW) {
        any = true;
        answer = SQLITE_OK;
        if (check->is_wrong(row))
            answer = trace_refuse(trace, SQLITE_CORRUPT_VTAB, check->wrong, name,
                                  sqlite3_column_text(row, check->column));
    }
    if (answer == SQLITE_DONE)
        answer = any || later || !check->none
                     ? SQLITE_OK
                     : trace_refuse(trace, SQLITE_CORRUPT_VTAB, check->none, name);
    sqlite3_finalize(row);
    sqlite3_free(sql);
    return answer;
}

/* Whether the tables are ordinary ones of the main database. A view may query the tables that are
 * made of it, and so on without end. */
static int check_tables(struct trace *trace)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, SCHEMA_VERSION, &row);

    if (answer)
        return answer;
    answer = trace_step(trace, row);
    int64_t version = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    if (answer != SQLITE_ROW)
        return answer == SQLITE_DONE ? SQLITE_ERROR : answer;
    if (trace->checked && trace->schema == version)
        return SQLITE_OK;
    trace->checked = false;
    for (size_t i = 0; i < sizeof tables_read / sizeof *tables_read; i++)
        for (size_t j = 0; j < sizeof table_checks / sizeof *table_checks; j++)
            if ((answer = check_table(trace, &table_checks[j], tables_read[i].name, tables_read[i].later)))
                return answer;
    trace->checked = true;
    trace->schema = version;
    return SQLITE_OK;
}

int trace_check(struct trace *trace)
{
    const char *missing = zstd_find();

    if (trace->reading)
        missing = "what the recording's tables are made of asks for these tables itself";
    return missing ? trace_refuse(trace, SQLITE_ERROR, "%s", missing) : check_tables(trace);
}

/* ---- what could not be read --------------------------------------------------------------- */

void trace_damaged(void *context, const struct scan_segment *segment, uint32_t read, const char *reason)
{
    struct trace *trace = context;
    struct damage damage = {segment->id, segment->run->run, segment->count, read, reason};

    for (size_t i = 0; i < trace->damage_count; i++)
        if (trace->damages[i].segment == segment->id) {
            trace->damages[i] = damage;
            return;
        }
    if (trace->damage_count == DAMAGES_MAX)
        return;
    if (!array_reserve(&trace->damages, &trace->damage_capacity, trace->damage_count + 1, sizeof damage))
        return;
    trace->damages[trace->damage_count++] = damage;
}
