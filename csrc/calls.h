/* Calls out of events: where a call ended, which function made it, and the stack of an event.
 *
 * Within a segment one walk with a stack pairs them. A call that outlives its segment is known by what
 * its end says: its function and when it began (time - elapsed), in the same process, whatever thread
 * a generator goes on in. So an end is never given to a call that is not its own, also behind a loss.
 * What is open around an event is taken from the depths: a function that was open before records were
 * lost counts as still open behind them where the depth allows it.
 *
 * Each segment is fetched once at most, beyond those that the caller is at, and only where its row
 * says that the answer may be in it. Knows no SQLite.
 */
#ifndef PYTRACE_CALLS_H
#define PYTRACE_CALLS_H

#include "scan.h"

/* ---- the segments of a run ---- */

struct timeline_segment {
    int64_t id, pid;
    uint64_t start, end, max_duration; /* clock units */
    uint32_t stream, count;
    int32_t min_depth;                 /* no fewer calls were open in it */
    const uint8_t *codes, *codes_end;  /* summary.h */
    /* made by timeline_link */
    uint64_t latest;                   /* end of those up to this one */
    uint32_t before, after;            /* the next ones of its stream; TIMELINE_NONE */
};

#define TIMELINE_NONE UINT32_MAX

/* In order of start. */
struct timeline {
    struct timeline_segment *segments;
    uint32_t count;
};

bool timeline_link(struct timeline *timeline); /* false: no memory */

/* ---- questions ---- */

struct calls; /* of a run */

/* Makes *start a walk at the first event of a segment, whose body stays until the next fetch. 0; negative:
 * an error. A segment that cannot be read has an empty body. */
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

/* These answer 1: found; 0: it is not in the database; negative: an error, from fetch or SCAN_NO_MEMORY.
 * `at`: a call event, of which rows come in the order of time, forwards or backwards. */
int calls_end(struct calls *calls, const struct scan_at *at, struct call_end *end);
/* The id of the event that entered the function that called. */
int calls_parent(struct calls *calls, const struct scan_at *at, int64_t *id);

struct calls_level {
    int32_t depth;
    int64_t id;        /* of the event that entered the function */
};

/* The functions open at any event, its own included, outermost first, without those whose beginning is
 * not in the database. 0, and *levels for the caller to free; or an error. */
int calls_stack(struct calls *calls, const struct scan_at *at, struct calls_level **levels, size_t *count);

#endif
