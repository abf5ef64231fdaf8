/* Single segments, decompressed, for look-ups of events by id, and for the outcome of a call. The
 * last few are kept.
 *
 * Called by sqlite_event.c, sqlite_calls.c and sqlite_stack.c.
 */
#ifndef PYTRACE_SQLITE_BODIES_H
#define PYTRACE_SQLITE_BODIES_H

#include "query/sqlite_segments.h"

/* A decompressed segment, with places to begin at. */
struct body {
    int references;
    uint64_t used;                      /* when it was asked for last */
    int64_t size;                       /* as in its row: a segment that is being written grows */
    struct scan_segment segment;
    struct definitions *definitions;
    uint8_t *data;
    size_t capacity;
    struct segment_walk *places;        /* before the events 0, STRIDE, 2 * STRIDE, ... */
    uint32_t count;                     /* events that can be read */
    uint8_t *open;                      /* levels.h; NULL: not known */
    size_t open_size;
    struct open_walk *levels;           /* of body_place; NULL: nobody has asked yet */
};

/* The segment of this id, decompressed; a reference becomes the caller's. *found NULL: there is
 * none. */
int body_get(struct trace *trace, int64_t id, struct body **found);
void body_release(struct body *body); /* NULL is fine */

/* Makes *at the event of this index, and *row its row. False: there is none. */
bool body_at(const struct body *body, uint32_t index, struct scan_row *row, struct scan_at *at);

/* Adds the event's place among the open levels to the row from body_at. It walks from the start of
 * the segment, or from the event that was asked for last. SQLITE_OK or SQLITE_NOMEM. */
int body_place(struct body *body, struct scan_row *row);

/* Frees the kept segments. */
void bodies_forget(struct trace *trace);

#endif
