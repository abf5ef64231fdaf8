/* Calls made of events: the end of a call, the function that made it, and the stack of an event.
 *
 * Within a segment one walk with a stack pairs calls and ends. If a call outlives its segment, its
 * end identifies it: by its function and start (time - elapsed), in the same process, whatever
 * thread a generator goes on in. So no end is given to a wrong call, even after a loss. The depths
 * tell the functions that are open around an event. A function that was open before a loss counts
 * as still open after it, if the depth allows it.
 *
 * Besides the caller's own segments, each is fetched at most once, and only if its row says that
 * the answer may be in it. Knows no SQLite.
 */
#ifndef PYTRACE_CALLS_H
#define PYTRACE_CALLS_H

#include "query/timeline.h"

struct calls; /* of a run */

/* Makes *start a walk at the first event of a segment, whose body stays until the next fetch. 0;
 * negative: an error. A segment that cannot be read has an empty body. */
typedef int calls_fetch(void *context, int64_t segment, struct segment_walk *start);

/* `timeline` is kept by the caller until calls_free. NULL: no memory. */
struct calls *calls_new(const struct timeline *timeline, calls_fetch *fetch, void *context);
void calls_free(struct calls *calls); /* NULL is fine */

/* A call's return or exception event. */
struct call_end {
    enum event_kind kind;
    int64_t segment;
    uint32_t offset;   /* of its record in that segment's body */
    uint64_t duration; /* clock units */
};

/* These functions return 1: found; 0: not in the database; negative: an error, from fetch or
 * SCAN_NO_MEMORY. `at`: a call event; these come in the order of time, forwards or backwards. */
int calls_end(struct calls *calls, const struct scan_at *at, struct call_end *end);
/* Whether a call without an end is suspended: it has yielded, and no resumed call of its function
 * goes on in its process. (No record tells which call a resumed one is.) */
int calls_suspended(struct calls *calls, const struct scan_at *at);
/* The id of the event that entered the function that called. */
int calls_parent(struct calls *calls, const struct scan_at *at, int64_t *id);

struct calls_level {
    int32_t depth;
    int64_t id;        /* of the event that entered the function */
};

/* The functions open at any event, its own included, outermost first; without functions whose start
 * is not in the database. 0, and *levels for the caller to free; or an error. */
int calls_stack(struct calls *calls, const struct scan_at *at, struct calls_level **levels, size_t *count);

#endif
