/* Calls, for SQL: what the table `call` says of a call beyond its event, and the table-valued function
 *
 *   SELECT event.* FROM stack(?) JOIN event ON event.id = stack.id ORDER BY stack.depth;
 *
 * the functions that were open at an event, its own included, outermost first: their depth, and the id
 * of the event that entered them (call; resume or throw of a generator). Those whose beginning is not in
 * the database are left out. calls.h has what is counted as open.
 */
#include "sqlite_store.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "arguments.h"

/* ---- calls of a run, from the database ---------------------------------------------------- */

struct run_calls {
    struct run_calls *next;
    struct trace *trace;
    struct definitions *definitions;
    struct body *body;   /* fetched last */
    struct calls *calls;
};

struct calls_known {
    struct run_calls *runs;
    int64_t event;       /* the call whose end was looked for last; 0: none yet */
    bool ended;
    struct call_end end;
    struct text_buffer text;
};

static int fetch(void *context, int64_t segment, struct segment_walk *start)
{
    struct run_calls *run = context;
    int answer;

    body_release(run->body);
    if ((answer = body_get(run->trace, segment, &run->body)))
        return -answer;
    segment_open(start, NULL, 0, 0, 0);
    if (run->body && run->body->places)
        *start = run->body->places[0];
    return 0;
}

static void run_calls_free(struct run_calls *run)
{
    calls_free(run->calls);
    body_release(run->body);
    definitions_release(run->definitions);
    free(run);
}

static int run_calls_new(struct trace *trace, const struct scan_segment *segment, struct run_calls **made)
{
    struct run_calls *run = calloc(1, sizeof *run);
    const struct timeline *timeline;

    if (!run)
        return SQLITE_NOMEM;
    run->trace = trace;
    run->definitions = definitions_of(segment);
    run->definitions->references++;
    int answer = timeline_get(trace, run->definitions, &timeline);
    if (!answer && !(run->calls = calls_new(timeline, fetch, run)))
        answer = SQLITE_NOMEM;
    if (answer)
        run_calls_free(run);
    else
        *made = run;
    return answer;
}

static int code_of(int answer) { return answer == SCAN_NO_MEMORY ? SQLITE_NOMEM : -answer; }

/* ---- the table call ----------------------------------------------------------------------- */

static int find_run(struct trace *trace, struct calls_known **known, const struct scan_segment *segment,
                    struct run_calls **found)
{
    int answer;

    if (!*known && !(*known = calloc(1, sizeof **known)))
        return SQLITE_NOMEM;
    for (*found = (*known)->runs; *found; *found = (*found)->next)
        if ((*found)->definitions == definitions_of(segment))
            return SQLITE_OK;
    if ((answer = run_calls_new(trace, segment, found)))
        return answer;
    (*found)->next = (*known)->runs;
    (*known)->runs = *found;
    return SQLITE_OK;
}

void calls_known_free(struct calls_known *known)
{
    if (!known)
        return;
    while (known->runs) {
        struct run_calls *run = known->runs;
        known->runs = run->next;
        run_calls_free(run);
    }
    free(known->text.text);
    free(known);
}

/* What a call's end gives: its record's value, as text. */
static int result_value(struct calls_known *known, struct trace *trace, const struct scan_at *at,
                        sqlite3_context *context)
{
    struct text_names names = run_type_names(at->segment->run);
    const uint8_t *bytes = at->body, *cursor = NULL;
    size_t size = at->body_size;
    struct body *body = NULL;
    struct event event;
    struct value value;
    int answer = SQLITE_OK;

    if (known->end.segment != at->segment->id) {
        if ((answer = body_get(trace, known->end.segment, &body)) || !body)
            return answer;
        bytes = body->data;
        size = (size_t)body->size;
    }
    known->text.size = 0;
    if (known->end.offset < size &&
        event_skim(bytes + known->end.offset, size - known->end.offset, &event) >= 0 &&
        event_value(&event, &cursor, &value)) {
        if (text_append(&known->text, text_value, &value, &names))
            sqlite3_result_text(context, known->text.text, (int)known->text.size, SQLITE_TRANSIENT);
        else
            answer = SQLITE_NOMEM;
    }
    body_release(body);
    return answer;
}

int call_result(struct trace *trace, struct calls_known **kept, const struct scan_at *at, enum call_fact fact,
                sqlite3_context *context)
{
    int64_t event = (int64_t)((uint64_t)at->segment->id << SCAN_INDEX_BITS) + at->row->index, parent;
    struct run_calls *run;
    int answer = find_run(trace, kept, at->segment, &run);
    struct calls_known *known = *kept;

    if (answer)
        return answer;
    if (fact == CALL_PARENT) {
        if ((answer = calls_parent(run->calls, at, &parent)) > 0)
            sqlite3_result_int64(context, parent);
        return answer < 0 ? code_of(answer) : SQLITE_OK;
    }
    if (known->event != event) {
        if ((answer = calls_end(run->calls, at, &known->end)) < 0)
            return code_of(answer);
        known->event = event;
        known->ended = answer;
    }
    if (!known->ended) {
        if (fact == CALL_OUTCOME)
            sqlite3_result_text(context, "running", -1, SQLITE_STATIC);
        return SQLITE_OK;
    }
    if (fact == CALL_VALUE)
        return result_value(known, trace, at, context);
    if (fact == CALL_OUTCOME)
        sqlite3_result_text(context, event_kind_name((int)known->end.kind), -1, SQLITE_STATIC);
    else
        sqlite3_result_int64(context, segment_duration_ns(&at->segment->run->clock, known->end.duration));
    return SQLITE_OK;
}

/* ---- the table stack ---------------------------------------------------------------------- */

struct stack_cursor {
    sqlite3_vtab_cursor base;
    int64_t event;
    struct calls_level *levels;
    size_t count, at;
};

enum { STACK_DEPTH, STACK_ID, STACK_EVENT };

static int connect(sqlite3 *db, void *trace, int count, const char *const *words, sqlite3_vtab **made,
                   char **error)
{
    (void)count, (void)words, (void)error;
    return trace_connect(db, trace, "CREATE TABLE stack(depth INTEGER, id INTEGER, event INTEGER HIDDEN)", made);
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->iColumn != STACK_EVENT || constraint->op != SQLITE_INDEX_CONSTRAINT_EQ ||
            !constraint->usable)
            continue;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->idxStr = "event=?";
        info->estimatedCost = 100;
        info->estimatedRows = 20;
        info->orderByConsumed = info->nOrderBy == 1 && info->aOrderBy[0].iColumn == STACK_DEPTH &&
                                !info->aOrderBy[0].desc;
        return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT; /* the stack of no event */
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **made)
{
    struct stack_cursor *cursor = calloc(1, sizeof *cursor);
    (void)vtab;
    if (!cursor)
        return SQLITE_NOMEM;
    *made = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    free(((struct stack_cursor *)base)->levels);
    free(base);
    return SQLITE_OK;
}

static int find_stack(struct stack_cursor *cursor, struct trace *trace)
{
    uint32_t index = (uint32_t)(cursor->event & ((1 << SCAN_INDEX_BITS) - 1));
    struct body *body;
    struct scan_row row;
    struct scan_at at;
    struct run_calls *run;
    int answer = body_get(trace, cursor->event >> SCAN_INDEX_BITS, &body);

    if (!answer && body && body_at(body, index, &row, &at) &&
        !(answer = run_calls_new(trace, at.segment, &run))) {
        answer = code_of(calls_stack(run->calls, &at, &cursor->levels, &cursor->count));
        run_calls_free(run);
    }
    body_release(body);
    return answer;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int count, sqlite3_value **values)
{
    struct stack_cursor *cursor = (struct stack_cursor *)base;
    int answer = trace_ready(base->pVtab);
    (void)number, (void)plan, (void)count;

    free(cursor->levels);
    cursor->levels = NULL;
    cursor->count = cursor->at = 0;
    if (answer)
        return answer;
    if (sqlite3_value_numeric_type(values[0]) != SQLITE_INTEGER)
        return SQLITE_OK; /* no event has such an id */
    cursor->event = sqlite3_value_int64(values[0]);
    return cursor->event > 0 ? find_stack(cursor, ((struct trace_table *)base->pVtab)->trace) : SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
    ((struct stack_cursor *)base)->at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const struct stack_cursor *cursor = (const struct stack_cursor *)base;
    return cursor->at >= cursor->count;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)((struct stack_cursor *)base)->at + 1;
    return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct stack_cursor *cursor = (const struct stack_cursor *)base;
    const struct calls_level *level = &cursor->levels[cursor->at];

    sqlite3_result_int64(context, number == STACK_DEPTH ? level->depth
                                  : number == STACK_ID  ? level->id
                                                        : cursor->event);
    return SQLITE_OK;
}

const sqlite3_module stack_module = {
    .iVersion = 1, .xConnect = connect, .xBestIndex = best_index, .xDisconnect = trace_disconnect,
    .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter, .xNext = next,
    .xEof = at_end, .xColumn = column, .xRowid = row_id,
};
