/* The segments of a run, in order of time, with the facts of their rows. sqlite_definitions.c reads
 * it; calls.c finds in it the segments that may have an answer. */
#ifndef PYTRACE_TIMELINE_H
#define PYTRACE_TIMELINE_H

#include "query/scan.h"

struct timeline_segment {
    int64_t id, pid;
    uint64_t start, end, max_duration; /* clock units */
    uint32_t stream, count;
    uint32_t own;                      /* of a thread's kernel stream: its own stream; else 0 */
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

/* The place of the first segment of which there is one up to it that ends at `time` or later. */
uint32_t timeline_latest(const struct timeline *timeline, uint64_t time);

/* The place of a segment, or TIMELINE_NONE. */
uint32_t timeline_find(const struct timeline *timeline, const struct scan_segment *segment);

/* The place of the last segment of a stream that begins at `time` or before, or TIMELINE_NONE. */
uint32_t timeline_at(const struct timeline *timeline, uint32_t stream, uint64_t time);

/* ---- where functions are ---- */

/* The segments that have events of a function. */
struct posting {
    uint32_t code, count;
    uint32_t *positions;
};

/* The postings of some functions. Zeroed ones are empty. */
struct postings {
    struct posting *all; /* in order of code */
    size_t count, capacity;
};

/* By the segments' summaries. NULL: no memory. */
const struct posting *postings_get(struct postings *postings, const struct timeline *timeline, uint32_t code);
void postings_free(struct postings *postings);

#endif
