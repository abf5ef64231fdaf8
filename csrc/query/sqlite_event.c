/* The virtual tables that are scans: `event`, `argument` and `call`. Conditions on their columns
 * become a predicate (sqlite_plan.h says which, sqlite_conditions.h how). The rows of segments rule
 * most of them out; scan.h decompresses and merges the others. */
#include "query/sqlite_calls.h"
#include "query/sqlite_conditions.h"
#include "query/sqlite_verify.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>
#include <string.h>

#include "query/arguments.h"

/* ---- columns ------------------------------------------------------------------------------ */

#define NUMBER(name, field) {name, "INTEGER", field, false, false}
#define TEXT(name, field) {name, "TEXT", field, true, false}

enum { OF_ID, OF_RUN, OF_TIME, OF_PID, OF_TID, OF_THREAD, OF_KIND, OF_MODULE, OF_FUNC, OF_FILE, OF_LINE,
       OF_DEPTH, OF_DURATION, OF_ARGS, OF_TASK, OF_STREAM, OF_PROCESS, OF_MINE, OF_TRAILING,
       OF_LAYER, OF_CPU, OF_OWN_DEPTH, OF_NEAR_DEPTH, OF_NEAR, OF_MATCH, EVENT_COLUMNS };

static const struct column event_columns[] = {
    NUMBER("id", FIELD_ID), NUMBER("run", FIELD_RUN), NUMBER("time", FIELD_TIME), NUMBER("pid", FIELD_PID),
    NUMBER("tid", FIELD_TID), TEXT("thread", FIELD_THREAD), TEXT("kind", FIELD_KIND),
    TEXT("module", FIELD_MODULE), TEXT("func", FIELD_QUALNAME), TEXT("file", FIELD_FILE),
    NUMBER("line", FIELD_LINE), NUMBER("depth", FIELD_DEPTH), NUMBER("duration", FIELD_DURATION),
    {"args", "TEXT HIDDEN", -1, true, false}, {"task", "TEXT HIDDEN", FIELD_TASK, true, false},
    {"stream", "INTEGER HIDDEN", FIELD_STREAM, false, false},
    {"process", "INTEGER HIDDEN", FIELD_PROCESS, false, false},
    {"mine", "INTEGER HIDDEN", FIELD_MINE, false, false},
    {"trailing", "INTEGER HIDDEN", FIELD_TRAILING, false, false},
    {"layer", "TEXT HIDDEN", FIELD_LAYER, true, false},
    {"cpu", "INTEGER HIDDEN", FIELD_CPU, false, false},
    {"own_depth", "INTEGER HIDDEN", FIELD_OWN_DEPTH, false, false},
    {"near_depth", "INTEGER HIDDEN", FIELD_NEAR_DEPTH, false, false},
    {"near", "INTEGER HIDDEN", FIELD_NEAR, false, false},
    {"event", "HIDDEN", -1, true, false},
};

enum { ARGUMENT_EVENT, ARGUMENT_POSITION, ARGUMENT_NAME, ARGUMENT_VALUE, ARGUMENT_TYPE, ARGUMENT_TEXT,
       ARGUMENT_RUN, ARGUMENT_TIME, ARGUMENT_COLUMNS };

static const struct column argument_columns[] = {
    NUMBER("event", FIELD_ID), {"position", "INTEGER", FIELD_POSITION, false, true},
    {"name", "TEXT", FIELD_NAME, true, true}, {"value", "TEXT", FIELD_VALUE, true, true},
    {"type", "TEXT", FIELD_TYPE, true, true}, {"text", "TEXT", FIELD_TEXT, true, true},
    {"run", "INTEGER HIDDEN", FIELD_RUN, false, false}, {"time", "INTEGER HIDDEN", FIELD_TIME, false, false},
};

enum { CALL_OF_ID, CALL_OF_PARENT, CALL_OF_RUN, CALL_OF_TIME, CALL_OF_DURATION, CALL_OF_PID, CALL_OF_TID,
       CALL_OF_MODULE, CALL_OF_FUNC, CALL_OF_FILE, CALL_OF_LINE, CALL_OF_DEPTH, CALL_OF_OUTCOME,
       CALL_OF_VALUE, CALL_OF_TASK, CALL_OF_STREAM, CALL_OF_PROCESS, CALL_OF_MINE,
       CALL_OF_LAYER, CALL_OF_CPU, CALL_COLUMNS };

static const struct column call_columns[] = {
    NUMBER("id", FIELD_ID), NUMBER("parent", -1), NUMBER("run", FIELD_RUN), NUMBER("time", FIELD_TIME),
    NUMBER("duration", -1), NUMBER("pid", FIELD_PID), NUMBER("tid", FIELD_TID), TEXT("module", FIELD_MODULE),
    TEXT("func", FIELD_QUALNAME), TEXT("file", FIELD_FILE), NUMBER("line", FIELD_LINE),
    NUMBER("depth", FIELD_DEPTH), TEXT("outcome", -1), TEXT("value", -1),
    {"task", "TEXT HIDDEN", FIELD_TASK, true, false},
    {"stream", "INTEGER HIDDEN", FIELD_STREAM, false, false},
    {"process", "INTEGER HIDDEN", FIELD_PROCESS, false, false},
    {"mine", "INTEGER HIDDEN", FIELD_MINE, false, false},
    {"layer", "TEXT HIDDEN", FIELD_LAYER, true, false},
    {"cpu", "INTEGER HIDDEN", FIELD_CPU, false, false},
};

static const struct table tables[] = {
    {"event", event_columns, EVENT_COLUMNS, OF_TIME, OF_ID, OF_MATCH, false, NULL},
    {"argument", argument_columns, ARGUMENT_COLUMNS, ARGUMENT_TIME, ARGUMENT_EVENT, -1, true, NULL},
    {"call", call_columns, CALL_COLUMNS, CALL_OF_TIME, CALL_OF_ID, -1, false, "call"},
};

/* ---- cursors ------------------------------------------------------------------------------ */

struct cursor {
    sqlite3_vtab_cursor base;
    struct conditions conditions;
    struct list list;
    struct scan *scan;
    struct body *body;            /* of a look-up by id */
    struct scan_row row;
    struct scan_at at;
    bool done;
    struct event event;           /* arguments: whose they are */
    struct argument_walk walk;
    struct argument whole;        /* the last one of the walk ... */
    struct attribute_walk attributes;
    struct argument current;      /* ... or an attribute of it */
    uint32_t row_of_event;        /* number of the current one, from 1 */
    char name[RUN_ATTRIBUTE_NAME_MAX];
    struct text_buffer text;
    struct calls_known *calls;
    struct verify verify;
};

static void cursor_clear(struct cursor *cursor)
{
    struct trace *trace = ((struct trace_table *)cursor->base.pVtab)->trace;

    scan_free(cursor->scan);
    conditions_free(&cursor->conditions);
    verify_end(&cursor->verify);
    list_free(&cursor->list);
    body_release(cursor->body);
    if (trace->prepared[DATA])
        sqlite3_reset(trace->prepared[DATA]);
    cursor->scan = NULL;
    cursor->body = NULL;
    cursor->done = true;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    cursor_clear(cursor);
    free(cursor->text.text);
    calls_known_free(cursor->calls);
    free(cursor);
    return SQLITE_OK;
}

/* Moves to the next event. */
static int next_event(struct cursor *cursor)
{
    struct trace *trace = ((struct trace_table *)cursor->base.pVtab)->trace;

    if (!cursor->scan) { /* a look-up has one */
        cursor->done = true;
        return SQLITE_OK;
    }
    int answer = trace_next(trace, cursor->scan, &cursor->list, &cursor->at);
    cursor->done = answer <= 0;
    return answer >= 0 ? SQLITE_OK : answer == SCAN_NO_MEMORY ? SQLITE_NOMEM : -answer;
}

/* Begins with the arguments of the event that the cursor is at. */
static void open_event(struct cursor *cursor)
{
    const struct scan_row *row = cursor->at.row;
    cursor->walk = (struct argument_walk){0};
    cursor->whole.value = (struct value){0};
    cursor->row_of_event = 0;
    if (event_skim(cursor->at.body + row->offset, cursor->at.body_size - row->offset, &cursor->event) < 0)
        memset(&cursor->event, 0, sizeof cursor->event); /* no arguments */
}

/* The next argument or attribute of the event. */
static bool next_of_event(struct cursor *cursor)
{
    const struct run_definitions *run = cursor->at.segment->run;
    struct text_names names = run_type_names(run);
    struct string name;

    cursor->row_of_event++;
    if (attribute_next(&cursor->attributes, &cursor->whole.value, &names, &name, &cursor->current.value)) {
        cursor->current.name = run_attribute_name(cursor->whole.name, name, cursor->name);
        return true;
    }
    if (!argument_next(&cursor->walk, &cursor->event, run_code_find(run, cursor->at.row->code), &cursor->whole))
        return false;
    cursor->attributes = (struct attribute_walk){0};
    cursor->current = cursor->whole;
    return true;
}

/* Moves to the next argument, perhaps of another event. */
static int next_argument(struct cursor *cursor)
{
    while (!cursor->done) {
        struct facts facts;

        if (cursor->conditions.argument)
            scan_facts(&cursor->at, &cursor->event, &facts);
        while (next_of_event(cursor))
            if (!cursor->conditions.argument ||
                predicate_ask_argument(cursor->conditions.argument, &facts, cursor->current.position,
                                       cursor->current.name, &cursor->current.value))
                return SQLITE_OK;
        int answer = next_event(cursor);
        if (answer)
            return answer;
        if (!cursor->done)
            open_event(cursor);
    }
    return SQLITE_OK;
}

static int go_on(struct cursor *cursor)
{
    const struct table *table = ((struct trace_table *)cursor->base.pVtab)->table;
    return table->arguments ? next_argument(cursor) : next_event(cursor);
}

static int64_t event_id(const struct cursor *cursor)
{
    return (int64_t)((uint64_t)cursor->at.segment->id << SCAN_INDEX_BITS) + cursor->at.row->index;
}

/* Passes on the answer that led to a row, or to the end. */
static int verified(struct cursor *cursor, int answer)
{
    struct trace_table *vtab = (struct trace_table *)cursor->base.pVtab;

    if (!answer && !cursor->done)
        answer = verify_row(&cursor->verify, vtab, &(struct verified_row){
            cursor->at.row->time, event_id(cursor), vtab->table->arguments ? cursor->current.position : 0});
    return trace_answer(cursor->base.pVtab, answer);
}

static int next_row(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    return verified(cursor, go_on(cursor));
}

/* Looks one event up by its id; levels: with its place among the open levels. */
static int look_up(struct cursor *cursor, int64_t id, bool levels)
{
    struct trace *trace = ((struct trace_table *)cursor->base.pVtab)->trace;
    uint32_t index = (uint32_t)(id & ((1 << SCAN_INDEX_BITS) - 1));
    struct facts facts;
    struct event event;
    int answer = id > 0 ? body_get(trace, id >> SCAN_INDEX_BITS, &cursor->body) : SQLITE_OK;

    cursor->done = true;
    if (answer || !cursor->body || !body_at(cursor->body, index, &cursor->row, &cursor->at))
        return answer;
    if (levels && (answer = body_place(cursor->body, &cursor->row)))
        return answer;
    if (event_skim(cursor->at.body + cursor->row.offset, cursor->at.body_size - cursor->row.offset,
                   &event) < 0)
        return SQLITE_OK;
    scan_facts(&cursor->at, &event, &facts);
    cursor->done = predicate_ask(cursor->conditions.event, &facts) != ALWAYS;
    return SQLITE_OK;
}

static int begin(sqlite3_vtab_cursor *base, int flags, const char *plan, int count,
                 sqlite3_value **values)
{
    struct cursor *cursor = (struct cursor *)base;
    struct trace *trace = ((struct trace_table *)base->pVtab)->trace;
    int answer = trace_ready(base->pVtab);

    cursor_clear(cursor);
    if (answer)
        return answer;
    answer = conditions_read((struct trace_table *)base->pVtab, plan, count, values, &cursor->conditions);
    if (answer)
        return answer;
    const struct predicate *predicate = cursor->conditions.event;
    bool levels = flags & PLAN_LEVELS || (predicate && predicate_asks_levels(predicate));
    struct bounds ids = {INT64_MIN, INT64_MAX};
    if (predicate)
        ids = predicate_bounds(predicate, FIELD_ID);
    if (ids.low == ids.high) {
        answer = look_up(cursor, ids.low, levels);
    } else {
        bool descending = flags & PLAN_DESCENDING;
        if ((answer = list_in_order(trace, predicate, descending, &cursor->list)))
            return answer;
        struct scan_calls calls = {trace_fetch, trace_damaged, trace,
                                   cursor->list.rest ? list_more : NULL, &cursor->list};
        cursor->scan = scan_new(predicate, cursor->list.segments, cursor->list.count,
                                descending, levels, &calls);
        if (!cursor->scan)
            return SQLITE_NOMEM;
        answer = next_event(cursor);
    }
    if (!answer && !cursor->done && ((struct trace_table *)base->pVtab)->table->arguments) {
        open_event(cursor);
        answer = next_argument(cursor);
    }
    while (!answer && cursor->conditions.offset-- > 0 && !cursor->done)
        answer = go_on(cursor);
    return answer ? answer : verify_begin(&cursor->verify, (struct trace_table *)base->pVtab, plan, count,
                                          values);
}

static int filter(sqlite3_vtab_cursor *base, int flags, const char *plan, int count,
                  sqlite3_value **values)
{
    return verified((struct cursor *)base, begin(base, flags, plan, count, values));
}

static int at_end(sqlite3_vtab_cursor *base) { return ((struct cursor *)base)->done; }

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    const struct cursor *cursor = (const struct cursor *)base;
    *id = event_id(cursor);
    if (((struct trace_table *)base->pVtab)->table->arguments)
        *id = (int64_t)((uint64_t)*id << 12) + (cursor->row_of_event & 4095);
    return SQLITE_OK;
}

/* Texts of definitions live as long as the cursor holds them. */
static void result_string(sqlite3_context *context, struct string string)
{
    trace_result(context, string, SQLITE_STATIC);
}

static void result_text(sqlite3_context *context, const struct cursor *cursor)
{
    trace_result(context, (struct string){cursor->text.text, cursor->text.size}, SQLITE_TRANSIENT);
}

static int result_value(sqlite3_context *context, struct cursor *cursor, text_writer *write)
{
    struct text_names names = run_type_names(cursor->at.segment->run);
    cursor->text.size = 0;
    if (!text_append(&cursor->text, write, &cursor->current.value, &names))
        return SQLITE_NOMEM;
    result_text(context, cursor);
    return SQLITE_OK;
}

/* A name in the segment, as it came from the program: of a task, or of an argument of a log. */
static int result_name(sqlite3_context *context, struct cursor *cursor, struct string name)
{
    cursor->text.size = 0;
    if (!string_is_utf8(name)) {
        if (!text_append_plain(&cursor->text, name))
            return SQLITE_NOMEM;
        name = (struct string){cursor->text.text, cursor->text.size};
    }
    trace_result(context, name, SQLITE_TRANSIENT);
    return SQLITE_OK;
}

static int result_arguments(sqlite3_context *context, struct cursor *cursor)
{
    struct text_names names = run_type_names(cursor->at.segment->run);
    cursor->text.size = 0;
    open_event(cursor);
    const struct run_code *code = run_code_find(cursor->at.segment->run, cursor->at.row->code);
    if (!arguments_json(&cursor->text, &cursor->event, code, &names))
        return SQLITE_NOMEM;
    result_text(context, cursor);
    return SQLITE_OK;
}

static int event_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct cursor *cursor = (struct cursor *)base;
    const struct scan_segment *segment = cursor->at.segment;
    const struct scan_row *row = cursor->at.row;
    const struct run_code *code;

    switch (column) {
    case OF_ID:
        sqlite3_result_int64(context, event_id(cursor));
        return SQLITE_OK;
    case OF_RUN:
        sqlite3_result_int64(context, segment->run->run);
        return SQLITE_OK;
    case OF_TIME:
        sqlite3_result_int64(context, row->time);
        return SQLITE_OK;
    case OF_PID:
        sqlite3_result_int64(context, segment->thread->pid);
        return SQLITE_OK;
    case OF_TID:
        sqlite3_result_int64(context, segment->thread->tid);
        return SQLITE_OK;
    case OF_STREAM:
        sqlite3_result_int64(context, segment->stream);
        return SQLITE_OK;
    case OF_PROCESS:
        if (segment->thread->process >= 0)
            sqlite3_result_int64(context, segment->thread->process);
        return SQLITE_OK;
    case OF_THREAD:
        result_string(context, segment->thread->name);
        return SQLITE_OK;
    case OF_KIND:
        sqlite3_result_text(context, event_kind_name((int)row->kind), -1, SQLITE_STATIC);
        return SQLITE_OK;
    case OF_DEPTH:
        sqlite3_result_int64(context, row->depth);
        return SQLITE_OK;
    case OF_DURATION:
        if (row->duration >= 0)
            sqlite3_result_int64(context, row->duration);
        return SQLITE_OK;
    case OF_TRAILING:
        sqlite3_result_int64(context, (row->facts & ROW_TRAILING) != 0);
        return SQLITE_OK;
    case OF_OWN_DEPTH:
        if (row->facts & ROW_LEVELS)
            sqlite3_result_int64(context, row->own_depth);
        return SQLITE_OK;
    case OF_NEAR_DEPTH:
        if (row->facts & ROW_LEVELS)
            sqlite3_result_int64(context, row->near_depth);
        return SQLITE_OK;
    case OF_NEAR:
        if (row->facts & ROW_LEVELS)
            sqlite3_result_int64(context, (row->facts & ROW_NEAR) != 0);
        return SQLITE_OK;
    case OF_CPU:
        if (row->cpu != CPU_UNKNOWN)
            sqlite3_result_int64(context, row->cpu);
        return SQLITE_OK;
    case OF_ARGS:
        return result_arguments(context, cursor);
    case OF_TASK:
        return result_name(context, cursor,
                           (struct string){(const char *)cursor->at.body + row->task, row->task_size});
    }
    code = run_code_find(segment->run, row->code);
    switch (column) {
    case OF_MODULE:
        result_string(context, code->module);
        break;
    case OF_FUNC:
        result_string(context, code->func);
        break;
    case OF_FILE:
        result_string(context, code->file);
        break;
    case OF_LINE:
        sqlite3_result_int64(context, row->line ? row->line : code->line);
        break;
    case OF_LAYER:
        result_string(context, code->layer);
        break;
    case OF_MINE:
        sqlite3_result_int64(context, code->mine);
        break;
    }
    return SQLITE_OK;
}

static int argument_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct cursor *cursor = (struct cursor *)base;

    switch (column) {
    case ARGUMENT_EVENT:
        sqlite3_result_int64(context, event_id(cursor));
        break;
    case ARGUMENT_POSITION:
        sqlite3_result_int64(context, cursor->current.position);
        break;
    case ARGUMENT_NAME:
        return result_name(context, cursor, cursor->current.name);
    case ARGUMENT_VALUE:
        return result_value(context, cursor, text_value);
    case ARGUMENT_TYPE:
        return result_value(context, cursor, text_type);
    case ARGUMENT_TEXT:
        return result_value(context, cursor, text_bare);
    case ARGUMENT_RUN:
        sqlite3_result_int64(context, cursor->at.segment->run->run);
        break;
    case ARGUMENT_TIME:
        sqlite3_result_int64(context, cursor->at.row->time);
        break;
    }
    return SQLITE_OK;
}

static int call_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    static const int of_event[] = {
        [CALL_OF_ID] = OF_ID, [CALL_OF_RUN] = OF_RUN, [CALL_OF_TIME] = OF_TIME, [CALL_OF_PID] = OF_PID,
        [CALL_OF_TID] = OF_TID, [CALL_OF_MODULE] = OF_MODULE, [CALL_OF_FUNC] = OF_FUNC,
        [CALL_OF_FILE] = OF_FILE, [CALL_OF_LINE] = OF_LINE, [CALL_OF_DEPTH] = OF_DEPTH,
        [CALL_OF_TASK] = OF_TASK,
        [CALL_OF_STREAM] = OF_STREAM, [CALL_OF_PROCESS] = OF_PROCESS, [CALL_OF_MINE] = OF_MINE,
        [CALL_OF_LAYER] = OF_LAYER, [CALL_OF_CPU] = OF_CPU,
    };
    struct cursor *cursor = (struct cursor *)base;
    struct trace *trace = ((struct trace_table *)base->pVtab)->trace;

    switch (column) {
    case CALL_OF_PARENT:
        return call_result(trace, &cursor->calls, &cursor->at, CALL_PARENT, context);
    case CALL_OF_DURATION:
        return call_result(trace, &cursor->calls, &cursor->at, CALL_DURATION, context);
    case CALL_OF_OUTCOME:
        return call_result(trace, &cursor->calls, &cursor->at, CALL_OUTCOME, context);
    case CALL_OF_VALUE:
        return call_result(trace, &cursor->calls, &cursor->at, CALL_VALUE, context);
    default:
        return event_column(base, context, of_event[column]);
    }
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    int answer = plan_best_index(vtab, info);
    return answer ? answer : verify_plan((struct trace_table *)vtab, info);
}

/* ---- connecting --------------------------------------------------------------------------- */

/* `words`: the name of the module, which is the table's. */
static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    const struct table *table = tables;
    sqlite3_str *sql = sqlite3_str_new(db);
    (void)count, (void)error;

    while (strcmp(table->name, words[0]))
        table++;
    sqlite3_str_appendf(sql, "CREATE TABLE %s(", table->name);
    for (int i = 0; i < table->count; i++)
        sqlite3_str_appendf(sql, "%s%s %s", i ? ", " : "", table->columns[i].name, table->columns[i].type);
    sqlite3_str_appendall(sql, ")");
    char *declaration = sqlite3_str_finish(sql);
    int answer = declaration ? trace_connect(db, trace, declaration, made) : SQLITE_NOMEM;
    if (!answer)
        ((struct trace_table *)*made)->table = table;
    sqlite3_free(declaration);
    return answer;
}

#define READ_ONLY_TABLE(column_) {                                                                   \
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,   \
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next_row,              \
    .xEof = at_end, .xColumn = column_, .xRowid = row_id }

const sqlite3_module event_module = READ_ONLY_TABLE(event_column);
const sqlite3_module argument_module = READ_ONLY_TABLE(argument_column);
const sqlite3_module call_module = READ_ONLY_TABLE(call_column);
