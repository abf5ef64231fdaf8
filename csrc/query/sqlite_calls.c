/* Calls, for SQL; see sqlite_calls.h. */
#include "query/sqlite_calls.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "query/arguments.h"

/* ---- calls of a run, from the database ---------------------------------------------------- */

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

void run_calls_free(struct run_calls *run)
{
    calls_free(run->calls);
    body_release(run->body);
    definitions_release(run->definitions);
    free(run);
}

int run_calls_new(struct trace *trace, const struct scan_segment *segment, struct run_calls **made)
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

int calls_code(int answer) { return answer == SCAN_NO_MEMORY ? SQLITE_NOMEM : -answer; }

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

/* The value in the record of a call's end, as text. */
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
            trace_result(context, (struct string){known->text.text, known->text.size}, SQLITE_TRANSIENT);
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
        return answer < 0 ? calls_code(answer) : SQLITE_OK;
    }
    if (known->event != event) {
        if ((answer = calls_end(run->calls, at, &known->end)) < 0)
            return calls_code(answer);
        known->event = event;
        known->ended = answer;
    }
    if (!known->ended) {
        if (fact != CALL_OUTCOME)
            return SQLITE_OK;
        if ((answer = calls_suspended(run->calls, at)) < 0)
            return calls_code(answer);
        sqlite3_result_text(context, answer ? "suspended" : "running", -1, SQLITE_STATIC);
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
