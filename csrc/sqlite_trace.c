/* The recorded events as SQL tables: a loadable SQLite extension, for any SQLite from 3.38 on.
 *
 *   SELECT func, duration FROM event WHERE kind = 'return' AND duration > 1000000 ORDER BY time;
 *   SELECT value FROM argument WHERE name = 'user' AND value LIKE '%bob%';
 *   SELECT * FROM event WHERE event MATCH '(and (like func "pay%") (not (any (like name "user"))))';
 *   SELECT func, count(*), sum(duration) FROM call GROUP BY func;
 *   SELECT * FROM damage;                     -- what could not be read
 *
 * They are eponymous virtual tables over the ordinary ones of dumper/schema.sql. Conditions on their
 * columns become a predicate (predicate.h); what a segment's row says of it rules most segments out;
 * the others are decompressed and merged by scan.h. The plan's text lists what was taken over.
 *
 * sqlite_store.c reads the ordinary tables; no other file knows SQLite. Nothing here writes.
 */
#include "sqlite_store.h"
SQLITE_EXTENSION_INIT1

#include <stdlib.h>

#include "arguments.h"

#define EXPORTED __attribute__((visibility("default")))

struct column {
    const char *name, *type;  /* as declared; type with HIDDEN where SELECT * does not show it */
    int field;                /* enum field; -1: no condition on it can be taken over */
    bool is_text;
    bool of_argument;         /* a condition on it is one on an argument */
};

#define NUMBER(name, field) {name, "INTEGER", field, false, false}
#define TEXT(name, field) {name, "TEXT", field, true, false}

enum { OF_ID, OF_RUN, OF_TIME, OF_PID, OF_TID, OF_THREAD, OF_KIND, OF_MODULE, OF_FUNC, OF_FILE, OF_LINE, OF_DEPTH,
       OF_DURATION, OF_ARGS, OF_TASK, OF_MATCH, EVENT_COLUMNS };

static const struct column event_columns[] = {
    NUMBER("id", FIELD_ID), NUMBER("run", FIELD_RUN), NUMBER("time", FIELD_TIME), NUMBER("pid", FIELD_PID),
    NUMBER("tid", FIELD_TID), TEXT("thread", FIELD_THREAD), TEXT("kind", FIELD_KIND),
    TEXT("module", FIELD_MODULE), TEXT("func", FIELD_QUALNAME), TEXT("file", FIELD_FILE),
    NUMBER("line", FIELD_LINE), NUMBER("depth", FIELD_DEPTH), NUMBER("duration", FIELD_DURATION),
    {"args", "TEXT HIDDEN", -1, true, false}, {"task", "TEXT HIDDEN", FIELD_TASK, true, false},
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
       CALL_OF_MODULE, CALL_OF_FUNC, CALL_OF_FILE, CALL_OF_LINE, CALL_OF_DEPTH, CALL_OF_OUTCOME, CALL_OF_VALUE,
       CALL_OF_TASK, CALL_COLUMNS };

static const struct column call_columns[] = {
    NUMBER("id", FIELD_ID), NUMBER("parent", -1), NUMBER("run", FIELD_RUN), NUMBER("time", FIELD_TIME),
    NUMBER("duration", -1), NUMBER("pid", FIELD_PID), NUMBER("tid", FIELD_TID), TEXT("module", FIELD_MODULE),
    TEXT("func", FIELD_QUALNAME), TEXT("file", FIELD_FILE), NUMBER("line", FIELD_LINE),
    NUMBER("depth", FIELD_DEPTH), TEXT("outcome", -1), TEXT("value", -1),
    {"task", "TEXT HIDDEN", FIELD_TASK, true, false},
};

static const struct column damage_columns[] = {
    NUMBER("segment", -1), NUMBER("run", -1), NUMBER("events", -1), NUMBER("read", -1), TEXT("reason", -1),
};

struct table {
    const char *name;
    const struct column *columns;
    int count;
    int time, id;             /* columns that rows can be ordered by; `id` after time */
    int match;                /* the column that MATCH is about; -1: none */
    bool arguments;           /* a row is an argument */
    const char *kind;         /* that its events are of; NULL: any */
};

static const struct table tables[] = {
    {"event", event_columns, EVENT_COLUMNS, OF_TIME, OF_ID, OF_MATCH, false, NULL},
    {"argument", argument_columns, ARGUMENT_COLUMNS, ARGUMENT_TIME, ARGUMENT_EVENT, -1, true, NULL},
    {"call", call_columns, CALL_COLUMNS, CALL_OF_TIME, CALL_OF_ID, -1, false, "call"},
    {.name = "damage", .columns = damage_columns, .count = 5},
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct predicate *predicate;  /* of events; NULL: all */
    struct predicate *argument;   /* of arguments; NULL: all */
    struct list list;
    struct scan *scan;
    struct body *body;            /* of a look-up by id */
    struct scan_row row;
    struct scan_at at;
    bool done;
    struct event event;           /* arguments: whose they are */
    struct argument_walk walk;
    struct argument current;
    struct text_buffer text;
    struct calls_known *calls;
};

/* ---- plans -------------------------------------------------------------------------------- */

/* A plan is a text: conditions that were taken over, one for each argument of xFilter, such as
 * `time>=? func LIKE? kind IN?`, and then the order. EXPLAIN QUERY PLAN shows it. */
static const struct operation {
    unsigned char op;
    const char *text;
} operations[] = {
    {SQLITE_INDEX_CONSTRAINT_EQ, "=?"},     {SQLITE_INDEX_CONSTRAINT_LT, "<?"},
    {SQLITE_INDEX_CONSTRAINT_LE, "<=?"},    {SQLITE_INDEX_CONSTRAINT_GT, ">?"},
    {SQLITE_INDEX_CONSTRAINT_GE, ">=?"},    {SQLITE_INDEX_CONSTRAINT_LIKE, " LIKE?"},
    {SQLITE_INDEX_CONSTRAINT_MATCH, " MATCH?"}, {0, " IN?"},
};
enum { OPERATIONS = sizeof operations / sizeof *operations, OPERATION_IN = OPERATIONS - 1 };

static int find_operation(unsigned char op)
{
    for (int i = 0; i < OPERATION_IN; i++)
        if (operations[i].op == op)
            return i;
    return -1;
}

/* Which operation a constraint is taken over as; -1: it is left to SQLite. */
static int operation_for(const struct table *table, sqlite3_index_info *info, int number)
{
    const struct sqlite3_index_constraint *constraint = &info->aConstraint[number];
    int operation = find_operation(constraint->op);

    if (operation < 0 || constraint->iColumn < 0)
        return -1;
    if (constraint->op == SQLITE_INDEX_CONSTRAINT_MATCH)
        return constraint->iColumn == table->match ? operation : -1;
    const struct column *column = &table->columns[constraint->iColumn];
    if (column->field < 0)
        return -1;
    if (!column->is_text)
        return constraint->op == SQLITE_INDEX_CONSTRAINT_LIKE ? -1 : operation;
    if (constraint->op == SQLITE_INDEX_CONSTRAINT_LIKE)
        return operation;
    if (constraint->op != SQLITE_INDEX_CONSTRAINT_EQ ||
        sqlite3_stricmp(sqlite3_vtab_collation(info, number), "BINARY"))
        return -1;
    return operation;
}

/* 1: rows come in the order that is asked for; 2: backwards; 0: they do not. */
static int order_for(const struct table *table, const sqlite3_index_info *info)
{
    if (info->nOrderBy < 1 || info->nOrderBy > 2 || info->aOrderBy[0].iColumn != table->time)
        return 0;
    if (info->nOrderBy == 2 &&
        (info->aOrderBy[1].iColumn != table->id || info->aOrderBy[1].desc != info->aOrderBy[0].desc))
        return 0;
    return info->aOrderBy[0].desc ? 2 : 1;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    const struct table *table = ((struct trace_table *)vtab)->table;
    sqlite3_str *plan = sqlite3_str_new(NULL);
    int arguments = 0, offset = -1;
    bool single = false, all = true;
    double rows = 1e8;

    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->op == SQLITE_INDEX_CONSTRAINT_OFFSET || constraint->op == SQLITE_INDEX_CONSTRAINT_LIMIT) {
            if (constraint->op == SQLITE_INDEX_CONSTRAINT_OFFSET && constraint->usable)
                offset = i;
            continue;
        }
        int operation = operation_for(table, info, i);
        if (!constraint->usable && constraint->op == SQLITE_INDEX_CONSTRAINT_MATCH) {
            sqlite3_free(sqlite3_str_finish(plan));
            return SQLITE_CONSTRAINT; /* nobody else can answer it */
        }
        if (operation < 0 || !constraint->usable) {
            all = false;
            continue;
        }
        if (constraint->op == SQLITE_INDEX_CONSTRAINT_EQ && sqlite3_vtab_in(info, i, 1))
            operation = OPERATION_IN;
        info->aConstraintUsage[i].argvIndex = ++arguments;
        info->aConstraintUsage[i].omit = 1;
        sqlite3_str_appendf(plan, "%s%s%s", arguments > 1 ? " " : "", table->columns[constraint->iColumn].name,
                            operations[operation].text);
        if (constraint->op == SQLITE_INDEX_CONSTRAINT_EQ && constraint->iColumn == table->id &&
            operation != OPERATION_IN)
            single = true;
        rows /= constraint->op == SQLITE_INDEX_CONSTRAINT_EQ ? 20 : 4;
    }
    int order = order_for(table, info);
    if (offset >= 0 && all && (order || !info->nOrderBy)) {
        info->aConstraintUsage[offset].argvIndex = ++arguments;
        info->aConstraintUsage[offset].omit = 1;
        sqlite3_str_appendf(plan, "%sOFFSET?", arguments > 1 ? " " : "");
    }
    if (order) {
        info->orderByConsumed = 1;
        sqlite3_str_appendf(plan, "%sORDER BY time%s", arguments ? " " : "", order == 2 ? " DESC" : "");
    }
    info->idxNum = order == 2;
    info->estimatedRows = single ? table->arguments ? 4 : 1 : (sqlite3_int64)(rows + 1);
    info->estimatedCost = single ? 10 : rows + 1000;
    if (single && !table->arguments)
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    int answer = sqlite3_str_errcode(plan);
    info->idxStr = sqlite3_str_finish(plan); /* NULL: empty */
    info->needToFreeIdxStr = 1;
    return answer;
}

/* ---- conditions --------------------------------------------------------------------------- */

static struct predicate *nothing(void) { return predicate_group(GROUP_OR, NULL, 0); }

/* The numbers n for which `n op value`. A column without a number (a call's duration) never is. */
static struct predicate *number_condition(enum field field, unsigned char op, sqlite3_value *value)
{
    struct bounds bounds = {INT64_MIN, INT64_MAX};
    const double limit = 9223372036854775808.0;
    int type = sqlite3_value_numeric_type(value);

    if (type == SQLITE_NULL)
        return nothing();
    if (type == SQLITE_TEXT || type == SQLITE_BLOB) /* any number is less than any text */
        return op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE
                   ? predicate_range(field, INT64_MIN, INT64_MAX) : nothing();
    int64_t floor = sqlite3_value_int64(value);
    bool whole = true;
    if (type == SQLITE_FLOAT) {
        double number = sqlite3_value_double(value);
        bool beyond = number >= limit;
        if (beyond || number < -limit) {
            bool below = op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
            return op != SQLITE_INDEX_CONSTRAINT_EQ && below == beyond
                       ? predicate_range(field, INT64_MIN, INT64_MAX) : nothing();
        }
        floor = (int64_t)number;
        whole = (double)floor == number;
        floor -= !whole && number < 0;
    }
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        if (!whole)
            return nothing();
        bounds = (struct bounds){floor, floor};
        break;
    case SQLITE_INDEX_CONSTRAINT_LT:
        if (whole && floor == INT64_MIN)
            return nothing();
        bounds.high = floor - whole;
        break;
    case SQLITE_INDEX_CONSTRAINT_LE:
        bounds.high = floor;
        break;
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
        if (op == SQLITE_INDEX_CONSTRAINT_GT || !whole) {
            if (floor == INT64_MAX)
                return nothing();
            floor++;
        }
        bounds.low = floor;
        break;
    }
    return predicate_range(field, bounds.low, bounds.high);
}

static struct predicate *text_condition(enum field field, unsigned char op, sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    const char *text = (const char *)sqlite3_value_text(value);

    if (type == SQLITE_NULL || (type == SQLITE_BLOB && (op == SQLITE_INDEX_CONSTRAINT_EQ ||
                                                        sqlite3_compileoption_used("LIKE_DOESNT_MATCH_BLOBS"))))
        return nothing();
    if (!text)
        return NULL;
    if (op == SQLITE_INDEX_CONSTRAINT_LIKE)
        return predicate_like(field, text, strlen(text), -1); /* SQLite's ends at a NUL, too */
    return predicate_equal(field, text, (size_t)sqlite3_value_bytes(value));
}

static struct predicate *condition(const struct column *column, unsigned char op, sqlite3_value *value)
{
    enum field field = (enum field)column->field;
    return column->is_text ? text_condition(field, op, value) : number_condition(field, op, value);
}

/* Conditions that all must hold. */
struct conditions {
    struct predicate **members;
    size_t count, capacity;
};

static bool add_condition(struct conditions *conditions, struct predicate *predicate)
{
    if (predicate && conditions->count == conditions->capacity) {
        size_t capacity = conditions->capacity * 2 + 8;
        struct predicate **larger = realloc(conditions->members, capacity * sizeof *larger);
        if (!larger) {
            predicate_free(predicate);
            predicate = NULL;
        } else {
            conditions->members = larger;
            conditions->capacity = capacity;
        }
    }
    if (predicate)
        conditions->members[conditions->count++] = predicate;
    return predicate;
}

static void conditions_free(struct conditions *conditions)
{
    for (size_t i = 0; i < conditions->count; i++)
        predicate_free(conditions->members[i]);
    free(conditions->members);
    *conditions = (struct conditions){0};
}

/* The conditions as one predicate; NULL: no memory. Empties them. */
static struct predicate *conditions_join(struct conditions *conditions)
{
    struct predicate *joined = predicate_group(GROUP_AND, conditions->members, conditions->count);
    free(conditions->members);
    *conditions = (struct conditions){0};
    return joined;
}

/* What a list holds: numbers, or texts one behind the other in `buffer`. */
struct members {
    int64_t *numbers;
    struct string *texts;
    struct text_buffer buffer;
    size_t count, capacity;
};

static void members_free(struct members *members)
{
    free(members->numbers);
    free(members->texts);
    free(members->buffer.text);
}

static bool members_grow(struct members *members)
{
    size_t capacity = members->capacity * 2 + 16;
    int64_t *numbers = realloc(members->numbers, capacity * sizeof *numbers);
    if (!numbers)
        return false;
    members->numbers = numbers;
    struct string *texts = realloc(members->texts, capacity * sizeof *texts);
    if (!texts)
        return false;
    members->texts = texts;
    members->capacity = capacity;
    return true;
}

/* Adds what can be equal to a column's value. False: no memory. */
static bool members_add(struct members *members, bool is_text, sqlite3_value *value)
{
    int type = is_text ? sqlite3_value_type(value) : sqlite3_value_numeric_type(value);

    if (members->count == members->capacity && !members_grow(members))
        return false;
    if (type == SQLITE_NULL || type == SQLITE_BLOB)
        return true;
    if (is_text) {
        const char *text = (const char *)sqlite3_value_text(value);
        size_t size = (size_t)sqlite3_value_bytes(value);
        if (!text || !text_reserve(&members->buffer, size + 1))
            return false;
        memcpy(members->buffer.text + members->buffer.size, text, size);
        members->buffer.size += size;
        members->texts[members->count++].size = size;
    } else if (type == SQLITE_INTEGER ||
               (type == SQLITE_FLOAT && sqlite3_value_double(value) == (double)sqlite3_value_int64(value))) {
        members->numbers[members->count++] = sqlite3_value_int64(value);
    }
    return true;
}

static struct predicate *in_condition(const struct column *column, sqlite3_value *list)
{
    enum field field = (enum field)column->field;
    struct members members = {0};
    struct predicate *made = NULL;
    sqlite3_value *value;
    bool good = true;

    for (int answer = sqlite3_vtab_in_first(list, &value); good && answer == SQLITE_OK;
         answer = sqlite3_vtab_in_next(list, &value))
        good = members_add(&members, column->is_text, value);
    const char *text = members.buffer.text;
    for (size_t i = 0; column->is_text && i < members.count; text += members.texts[i++].size)
        members.texts[i].text = text;
    if (good && !members.count)
        made = nothing();
    else if (good)
        made = column->is_text ? predicate_in(field, members.texts, members.count)
                               : predicate_numbers(field, members.numbers, members.count);
    members_free(&members);
    return made;
}

/* One condition of a plan: its column and operation; returns the text behind it, NULL at the end. */
static const char *read_plan(const char *plan, const struct table *table, int *column, int *operation)
{
    while (*plan == ' ')
        plan++;
    for (int i = 0; i < table->count; i++) {
        size_t size = strlen(table->columns[i].name);
        if (strncmp(plan, table->columns[i].name, size))
            continue;
        for (int j = 0; j < OPERATIONS; j++) {
            size_t more = strlen(operations[j].text);
            if (!strncmp(plan + size, operations[j].text, more)) {
                *column = i;
                *operation = j;
                return plan + size + more;
            }
        }
    }
    return NULL;
}

/* Makes the cursor's predicates from a plan and its values. */
static int read_conditions(struct cursor *cursor, const char *plan, int count, sqlite3_value **values,
                           int64_t *offset)
{
    struct trace_table *vtab = (struct trace_table *)cursor->base.pVtab;
    const struct table *table = vtab->table;
    struct conditions events = {0}, arguments = {0}, again = {0};
    int column, operation, answer = SQLITE_NOMEM;

    *offset = 0;
    if (table->kind && !add_condition(&events, predicate_equal(FIELD_KIND, table->kind, strlen(table->kind))))
        goto failed;
    for (int i = 0; i < count; i++) {
        plan = read_plan(plan, table, &column, &operation);
        if (!plan) { /* the last: OFFSET? */
            *offset = sqlite3_value_int64(values[i]);
            break;
        }
        const struct column *about = &table->columns[column];
        unsigned char op = operations[operation].op;
        if (op == SQLITE_INDEX_CONSTRAINT_MATCH) {
            char message[256] = "out of memory";
            const char *text = (const char *)sqlite3_value_text(values[i]);
            struct predicate *match = predicate_parse(text ? text : "", (size_t)sqlite3_value_bytes(values[i]),
                                                      message, sizeof message);
            if (!match) {
                answer = trace_fail(&vtab->base, message);
                goto failed;
            }
            if (!add_condition(&events, match))
                goto failed;
            continue;
        }
        for (int twice = 0; twice <= about->of_argument; twice++) {
            struct predicate *made = op ? condition(about, op, values[i]) : in_condition(about, values[i]);
            if (!add_condition(about->of_argument ? twice ? &again : &arguments : &events, made))
                goto failed;
        }
    }
    if (arguments.count) {
        struct predicate *both = conditions_join(&again);
        cursor->argument = conditions_join(&arguments);
        struct predicate *any = predicate_group(GROUP_ANY, &both, 1);
        if (!cursor->argument || !add_condition(&events, any))
            goto failed;
    }
    if (events.count && !(cursor->predicate = conditions_join(&events)))
        goto failed;
    return SQLITE_OK;
failed:
    conditions_free(&events);
    conditions_free(&arguments);
    conditions_free(&again);
    return answer;
}

/* ---- cursors ------------------------------------------------------------------------------ */

static void cursor_clear(struct cursor *cursor)
{
    struct trace *trace = ((struct trace_table *)cursor->base.pVtab)->trace;

    scan_free(cursor->scan);
    predicate_free(cursor->predicate);
    predicate_free(cursor->argument);
    list_free(&cursor->list);
    body_release(cursor->body);
    if (trace->prepared[DATA])
        sqlite3_reset(trace->prepared[DATA]);
    cursor->scan = NULL;
    cursor->predicate = cursor->argument = NULL;
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

/* Comes to the next event. */
static int next_event(struct cursor *cursor)
{
    struct trace *trace = ((struct trace_table *)cursor->base.pVtab)->trace;

    if (!cursor->scan) { /* a look-up has one */
        cursor->done = true;
        return SQLITE_OK;
    }
    int answer = trace_next(trace, cursor->scan, cursor->list.count, &cursor->at);
    cursor->done = answer <= 0;
    return answer >= 0 ? SQLITE_OK : answer == SCAN_NO_MEMORY ? SQLITE_NOMEM : -answer;
}

/* Begins with the arguments of the event that the cursor is at. */
static void open_event(struct cursor *cursor)
{
    const struct scan_row *row = cursor->at.row;
    cursor->walk = (struct argument_walk){0};
    if (event_skim(cursor->at.body + row->offset, cursor->at.body_size - row->offset, &cursor->event) < 0)
        memset(&cursor->event, 0, sizeof cursor->event); /* no arguments */
}

/* Comes to the next argument, perhaps of another event. */
static int next_argument(struct cursor *cursor)
{
    while (!cursor->done) {
        const struct scan_segment *segment = cursor->at.segment;
        const struct run_code *code = run_code_find(segment->run, cursor->at.row->code);
        struct facts facts;

        if (cursor->argument)
            scan_facts(&cursor->at, &cursor->event, &facts);
        while (argument_next(&cursor->walk, &cursor->event, code, &cursor->current))
            if (!cursor->argument || predicate_ask_argument(cursor->argument, &facts, cursor->current.position,
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

static int next_row(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    return ((struct trace_table *)base->pVtab)->table->arguments ? next_argument(cursor) : next_event(cursor);
}

/* Looks one event up by its id. */
static int look_up(struct cursor *cursor, int64_t id)
{
    struct trace *trace = ((struct trace_table *)cursor->base.pVtab)->trace;
    uint32_t index = (uint32_t)(id & ((1 << SCAN_INDEX_BITS) - 1));
    struct facts facts;
    struct event event;
    int answer = id > 0 ? body_get(trace, id >> SCAN_INDEX_BITS, &cursor->body) : SQLITE_OK;

    cursor->done = true;
    if (answer || !cursor->body || !body_at(cursor->body, index, &cursor->row, &cursor->at))
        return answer;
    if (event_skim(cursor->at.body + cursor->row.offset, cursor->at.body_size - cursor->row.offset, &event) < 0)
        return SQLITE_OK;
    scan_facts(&cursor->at, &event, &facts);
    cursor->done = predicate_ask(cursor->predicate, &facts) != ALWAYS;
    return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int descending, const char *plan, int count, sqlite3_value **values)
{
    struct cursor *cursor = (struct cursor *)base;
    struct trace *trace = ((struct trace_table *)base->pVtab)->trace;
    int answer = trace_ready(base->pVtab);
    int64_t offset;

    cursor_clear(cursor);
    if (answer)
        return answer;
    answer = read_conditions(cursor, plan, count, values, &offset);
    if (answer)
        return answer;
    struct bounds ids = cursor->predicate ? predicate_bounds(cursor->predicate, FIELD_ID)
                                          : (struct bounds){INT64_MIN, INT64_MAX};
    if (ids.low == ids.high) {
        answer = look_up(cursor, ids.low);
    } else {
        struct scan_calls calls = {trace_fetch, trace_damaged, trace};
        if ((answer = list_segments(trace, cursor->predicate, &cursor->list)))
            return answer;
        cursor->scan = scan_new(cursor->predicate, cursor->list.segments, cursor->list.count, descending, &calls);
        if (!cursor->scan)
            return SQLITE_NOMEM;
        answer = next_event(cursor);
    }
    if (!answer && !cursor->done && ((struct trace_table *)base->pVtab)->table->arguments) {
        open_event(cursor);
        answer = next_argument(cursor);
    }
    while (!answer && offset-- > 0 && !cursor->done)
        answer = next_row(base);
    return answer;
}

static int at_end(sqlite3_vtab_cursor *base) { return ((struct cursor *)base)->done; }

static int64_t event_id(const struct cursor *cursor)
{
    return (int64_t)((uint64_t)cursor->at.segment->id << SCAN_INDEX_BITS) + cursor->at.row->index;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    const struct cursor *cursor = (const struct cursor *)base;
    *id = event_id(cursor);
    if (((struct trace_table *)base->pVtab)->table->arguments)
        *id = (int64_t)((uint64_t)*id << 9) + (cursor->current.position & 511);
    return SQLITE_OK;
}

/* Texts of definitions live as long as the cursor holds them. */
static void result_string(sqlite3_context *context, struct string string)
{
    sqlite3_result_text(context, string.text, (int)string.size, SQLITE_STATIC);
}

static int result_value(sqlite3_context *context, struct cursor *cursor, text_writer *write)
{
    struct text_names names = run_type_names(cursor->at.segment->run);
    cursor->text.size = 0;
    if (!text_append(&cursor->text, write, &cursor->current.value, &names))
        return SQLITE_NOMEM;
    sqlite3_result_text(context, cursor->text.text, (int)cursor->text.size, SQLITE_TRANSIENT);
    return SQLITE_OK;
}

/* A name that lies in the segment, as it came from the program: a task's, an argument's of a log. */
static int result_name(sqlite3_context *context, struct cursor *cursor, struct string name)
{
    cursor->text.size = 0;
    if (!string_is_utf8(name)) {
        if (!text_append_plain(&cursor->text, name))
            return SQLITE_NOMEM;
        name = (struct string){cursor->text.text, cursor->text.size};
    }
    sqlite3_result_text(context, name.text, (int)name.size, SQLITE_TRANSIENT);
    return SQLITE_OK;
}

static int result_arguments(sqlite3_context *context, struct cursor *cursor)
{
    struct text_names names = run_type_names(cursor->at.segment->run);
    cursor->text.size = 0;
    open_event(cursor);
    if (!arguments_json(&cursor->text, &cursor->event, run_code_find(cursor->at.segment->run, cursor->at.row->code),
                        &names))
        return SQLITE_NOMEM;
    sqlite3_result_text(context, cursor->text.text, (int)cursor->text.size, SQLITE_TRANSIENT);
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
    case OF_ARGS:
        return result_arguments(context, cursor);
    case OF_TASK:
        return result_name(context, cursor, (struct string){(const char *)cursor->at.body + row->task, row->task_size});
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
        [CALL_OF_TID] = OF_TID, [CALL_OF_MODULE] = OF_MODULE, [CALL_OF_FUNC] = OF_FUNC, [CALL_OF_FILE] = OF_FILE,
        [CALL_OF_LINE] = OF_LINE, [CALL_OF_DEPTH] = OF_DEPTH, [CALL_OF_TASK] = OF_TASK,
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

static const sqlite3_module event_module = READ_ONLY_TABLE(event_column);
static const sqlite3_module argument_module = READ_ONLY_TABLE(argument_column);
static const sqlite3_module call_module = READ_ONLY_TABLE(call_column);

/* ---- the table damage --------------------------------------------------------------------- */

struct damage_cursor {
    sqlite3_vtab_cursor base;
    size_t at;
};

static int damage_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    info->estimatedRows = 10;
    info->estimatedCost = 10;
    return SQLITE_OK;
}

static int damage_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct damage_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int damage_close(sqlite3_vtab_cursor *base)
{
    free(base);
    return SQLITE_OK;
}

static int damage_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
    (void)number, (void)plan, (void)count, (void)values;
    ((struct damage_cursor *)base)->at = 0;
    return SQLITE_OK;
}

static int damage_next(sqlite3_vtab_cursor *base)
{
    ((struct damage_cursor *)base)->at++;
    return SQLITE_OK;
}

static int damage_end(sqlite3_vtab_cursor *base)
{
    return ((struct damage_cursor *)base)->at >= ((struct trace_table *)base->pVtab)->trace->damage_count;
}

static int damage_row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)((struct damage_cursor *)base)->at + 1;
    return SQLITE_OK;
}

static int damage_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct trace *trace = ((struct trace_table *)base->pVtab)->trace;
    const struct damage *damage = &trace->damages[((struct damage_cursor *)base)->at];
    const int64_t numbers[] = {damage->segment, damage->run, damage->events, damage->read};
    if (column < 4)
        sqlite3_result_int64(context, numbers[column]);
    else
        sqlite3_result_text(context, damage->reason, -1, SQLITE_STATIC);
    return SQLITE_OK;
}

static const sqlite3_module damage_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = damage_best_index, .xDisconnect = trace_disconnect,
    .xOpen = damage_open, .xClose = damage_close, .xFilter = damage_filter, .xNext = damage_next,
    .xEof = damage_end, .xColumn = damage_column, .xRowid = damage_row_id,
};

/* ---- the extension ------------------------------------------------------------------------ */

static void module_left(void *context)
{
    struct trace *trace = context;
    if (!--trace->modules)
        trace_free(trace);
}

EXPORTED int sqlite3_sqlitetrace_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);
EXPORTED int sqlite3_sqlitetrace_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
    static const struct {
        const char *name;
        const sqlite3_module *module;
    } modules[] = {{"event", &event_module}, {"argument", &argument_module}, {"damage", &damage_module},
                   {"call", &call_module}, {"stack", &stack_module}, {"hot", &hot_module}};
    int answer = SQLITE_OK;

    SQLITE_EXTENSION_INIT2(api);
    if (sqlite3_libversion_number() < 3038000) {
        *error = sqlite3_mprintf("this needs SQLite 3.38 or later, and this is %s", sqlite3_libversion());
        return SQLITE_ERROR;
    }
    struct trace *trace = trace_new(db);
    if (!trace)
        return SQLITE_NOMEM;
    trace->modules = 1; /* until all are made */
    for (size_t i = 0; i < sizeof modules / sizeof *modules && !answer; i++) {
        trace->modules++; /* SQLite gives it back also where it fails */
        answer = sqlite3_create_module_v2(db, modules[i].name, modules[i].module, trace, module_left);
    }
    module_left(trace);
    return answer;
}
