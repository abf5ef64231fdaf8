/* Single segments; see sqlite_bodies.h. */
#include "query/sqlite_bodies.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/zstd.h"

#define STRIDE 32 /* events between two places where a walk can be taken up */

/* A walk that follows the open levels. */
struct open_walk {
    struct segment_walk walk;
    struct levels levels;
    struct level_place place; /* of the event before walk.index */
};

void body_release(struct body *body)
{
    if (!body || --body->references)
        return;
    definitions_release(body->definitions);
    free(body->data);
    free(body->places);
    free(body->open);
    free(body->levels);
    free(body);
}

/* Walks the body once, and notes places in it. */
static int body_walk(struct trace *trace, struct body *body, int32_t base_depth)
{
    struct segment_walk walk;
    struct segment_event event;
    size_t capacity = 0;
    int answer = 1;

    segment_open(&walk, body->data, (size_t)body->size, body->segment.base_time, base_depth);
    for (;;) {
        if (body->count % STRIDE == 0) {
            if (!array_reserve(&body->places, &capacity, body->count / STRIDE + 1, sizeof walk))
                return SQLITE_NOMEM;
            body->places[body->count / STRIDE] = walk;
        }
        answer = segment_head(&walk, &event);
        if (answer <= 0 || body->count >> SCAN_INDEX_BITS)
            break;
        body->count++;
    }
    if (answer < 0)
        trace_damaged(trace, &body->segment, body->count, "its content makes no sense");
    return SQLITE_OK;
}

static int body_read(struct trace *trace, struct body *body)
{
    struct scan_data data = {0};
    if (!trace->zstd && !(trace->zstd = zstd_context_new()))
        return SQLITE_NOMEM;
    int answer = segment_fetch(trace, &body->segment, &data);
    if (answer < 0)
        return -answer;
    const char *reason = answer ? scan_decompress(trace->zstd, &data, &body->data, &body->capacity) : NULL;
    if (reason)
        trace_damaged(trace, &body->segment, 0, reason);
    if (reason || !answer)
        body->size = 0;
    if (data.open && !(body->open = malloc(data.open_size)))
        return SQLITE_NOMEM;
    if (data.open)
        memcpy(body->open, data.open, data.open_size);
    body->open_size = data.open_size;
    if (trace->prepared[DATA])
        sqlite3_reset(trace->prepared[DATA]); /* while it runs, the snapshot is old */
    return body_walk(trace, body, data.base_depth);
}

int body_get(struct trace *trace, int64_t id, struct body **found)
{
    struct body **place = &trace->bodies[0], *made;
    struct definitions *definitions;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, ROW, &row);

    *found = NULL;
    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, id);
    answer = trace_step(trace, row);
    if (answer != SQLITE_ROW) {
        sqlite3_reset(row);
        return answer == SQLITE_DONE ? SQLITE_OK : answer;
    }
    int64_t run = sqlite3_column_int64(row, 0), size = sqlite3_column_int64(row, 1);
    int64_t stream = sqlite3_column_int64(row, 5);
    struct scan_segment segment = {
        .id = id,
        .base_time = (uint64_t)sqlite3_column_int64(row, 2),
        .count = (uint32_t)sqlite3_column_int64(row, 4),
    };
    uint64_t end = (uint64_t)sqlite3_column_int64(row, 3);
    sqlite3_reset(row);
    if ((answer = definitions_get(trace, run, &definitions)))
        return answer;
    for (int i = 0; i < BODIES; i++) {
        struct body *body = trace->bodies[i];
        if (body && body->segment.id == id && body->segment.count == segment.count && body->size == size &&
            body->definitions == definitions) {
            definitions_release(definitions);
            body->used = ++trace->clock;
            body->references++;
            *found = body;
            return SQLITE_OK;
        }
        if (*place && (!body || body->used < (*place)->used || body->segment.id == id))
            place = &trace->bodies[i];
    }
    if (!(made = calloc(1, sizeof *made))) {
        definitions_release(definitions);
        return SQLITE_NOMEM;
    }
    segment.run = &definitions->run;
    segment.thread = definitions_thread(&definitions->run, stream);
    segment.stream = stream;
    segment.start = segment_clock_ns(&definitions->run.clock, segment.base_time);
    segment.end = segment_clock_ns(&definitions->run.clock, end);
    made->references = 1;
    made->definitions = definitions;
    made->segment = segment;
    made->size = size;
    made->used = ++trace->clock;
    if ((answer = body_read(trace, made))) {
        body_release(made);
        return answer;
    }
    body_release(*place);
    *place = made;
    made->references++;
    *found = made;
    return SQLITE_OK;
}

bool body_at(const struct body *body, uint32_t index, struct scan_row *row, struct scan_at *at)
{
    struct segment_walk walk;
    struct segment_event event;

    if (index >= body->count)
        return false;
    walk = body->places[index / STRIDE];
    do {
        if (segment_head(&walk, &event) <= 0)
            return false;
    } while (event.index != index);
    if (!event_is_known(event.event.kind))
        return false;
    scan_row_of(&body->segment, body->data, &walk, &event, row);
    *at = (struct scan_at){.segment = &body->segment,
                           .row = row,
                           .body = body->data,
                           .body_size = (size_t)body->size,
                           .base_depth = body->places[0].open};
    return true;
}

int body_place(struct body *body, struct scan_row *row)
{
    struct segment_event event;
    struct open_walk *at = body->levels;

    if (!at && !(at = body->levels = calloc(1, sizeof *at)))
        return SQLITE_NOMEM;
    if (!at->walk.index || at->walk.index > row->index + 1) {
        at->walk = body->places[0];
        if (body->open)
            levels_begin(&at->levels, body->open, body->open_size, at->walk.open);
    }
    while (at->walk.index <= row->index && segment_head(&at->walk, &event) > 0)
        scan_place(body->open ? &at->levels : NULL, &body->segment, &at->walk, &event.event, &at->place);
    scan_row_place(&at->place, body->open, row);
    return SQLITE_OK;
}

void bodies_forget(struct trace *trace)
{
    for (int i = 0; i < BODIES; i++) {
        body_release(trace->bodies[i]);
        trace->bodies[i] = NULL;
    }
    zstd_context_free(trace->zstd);
    trace->zstd = NULL;
}
