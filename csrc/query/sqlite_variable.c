/* The table-valued function
 *
 *   SELECT name, value, type FROM variable(?) ORDER BY position;
 *
 * has the variables of an event's function, as they were at that event. `changed` is the id of the
 * event that gave the value, as far as that event's segment tells it. `items` has the parts of
 * containers, and the attributes of objects.
 */
#include "query/arguments.h"
#include "query/frame_variables.h"
#include "query/sqlite_bodies.h"
#include "query/sqlite_table.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

struct variable_cursor {
    sqlite3_vtab_cursor base;
    int64_t event;
    struct body *body; /* the values lie in it */
    struct frame_variable *variables;
    size_t count, at;
};

enum { VARIABLE_POSITION, VARIABLE_NAME, VARIABLE_VALUE, VARIABLE_TYPE, VARIABLE_CHANGED, VARIABLE_EVENT,
       VARIABLE_ITEMS };

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace,
                         "CREATE TABLE variable(position INTEGER, name TEXT, value TEXT, type TEXT,"
                         " changed INTEGER, event INTEGER HIDDEN, items TEXT HIDDEN)",
                         made);
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    return trace_plan_of_event(info, VARIABLE_EVENT, VARIABLE_POSITION, 10);
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct variable_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static void forget(struct variable_cursor *cursor)
{
    body_release(cursor->body);
    free(cursor->variables);
    cursor->body = NULL;
    cursor->variables = NULL;
    cursor->count = cursor->at = 0;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    forget((struct variable_cursor *)base);
    free(base);
    return SQLITE_OK;
}

static int find_variables(struct variable_cursor *cursor, struct trace *trace)
{
    uint32_t index = (uint32_t)(cursor->event & ((1 << SCAN_INDEX_BITS) - 1));
    int answer = body_get(trace, cursor->event >> SCAN_INDEX_BITS, &cursor->body);
    const struct body *body = cursor->body;

    if (answer || !body || index >= body->count)
        return answer;
    return frame_variables(body->data, (size_t)body->size, body->segment.base_time, body->places[0].open,
                           body->segment.run, index, &cursor->variables, &cursor->count)
               ? SQLITE_OK
               : SQLITE_NOMEM;
}

static int begin(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
    struct variable_cursor *cursor = (struct variable_cursor *)base;
    int answer = trace_ready(base->pVtab);
    (void)number, (void)plan, (void)count;

    forget(cursor);
    if (answer)
        return answer;
    cursor->event = trace_event_id(values[0]);
    return cursor->event > 0 ? find_variables(cursor, ((struct trace_table *)base->pVtab)->trace) : SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
    return trace_answer(base->pVtab, begin(base, number, plan, count, values));
}

static int next(sqlite3_vtab_cursor *base)
{
    ((struct variable_cursor *)base)->at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const struct variable_cursor *cursor = (const struct variable_cursor *)base;
    return cursor->at >= cursor->count;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)((struct variable_cursor *)base)->at + 1;
    return SQLITE_OK;
}

/* The name, a text of the value, or the JSON of its parts. */
static bool put_text(struct text_buffer *text, const struct frame_variable *variable, int number,
                     const struct text_names *names)
{
    char made[32];

    switch (number) {
    case VARIABLE_NAME:
        return text_append_plain(text, variable->name.text ? variable->name
                                                           : run_variable_name(&run_code_undefined,
                                                                               variable->number, false, made));
    case VARIABLE_ITEMS:
        return items_json(text, &variable->value, names);
    default:
        return text_append(text, number == VARIABLE_VALUE ? text_value : text_type, &variable->value, names);
    }
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct variable_cursor *cursor = (const struct variable_cursor *)base;
    const struct frame_variable *variable = &cursor->variables[cursor->at];
    const struct text_names names = run_type_names(cursor->body->segment.run);
    struct text_buffer text = {0};

    if (number == VARIABLE_POSITION)
        sqlite3_result_int64(context, variable->number);
    else if (number == VARIABLE_EVENT)
        sqlite3_result_int64(context, cursor->event);
    else if (number == VARIABLE_CHANGED && variable->known)
        sqlite3_result_int64(context, cursor->body->segment.id << SCAN_INDEX_BITS | variable->set);
    else if (number == VARIABLE_CHANGED || (number == VARIABLE_ITEMS && !value_has_items(&variable->value, &names)))
        sqlite3_result_null(context);
    else if (!put_text(&text, variable, number, &names))
        sqlite3_result_error_nomem(context);
    else
        trace_result(context, (struct string){text.text ? text.text : "", (uint32_t)text.size}, SQLITE_TRANSIENT);
    free(text.text);
    return SQLITE_OK;
}

const sqlite3_module variable_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
