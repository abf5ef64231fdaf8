/* Ends of calls that began in another segment, found again by function and beginning. Called by
 * calls.c.
 */
#ifndef PYTRACE_LATE_ENDS_H
#define PYTRACE_LATE_ENDS_H

#include "common/map.h"
#include "query/timeline.h"

/* An end whose call is not in its segment, or a yield that may be the first of such a call. */
struct late {
    uint64_t start, duration;
    uint32_t code, position, offset, kind;
    uint32_t next;     /* 1 + place of another one with the same key; 0: none */
};

/* A zeroed one is empty. */
struct late_ends {
    struct late *all;
    size_t count, capacity;
    struct map places; /* by function and beginning: 1 + place in `all` */
};

/* The end of a function's call that began at this time, or its first yield (yields); NULL: none is
 * known. A forked process may have ended it, too. */
const struct late *late_find(const struct late_ends *ends, const struct timeline *timeline, uint64_t start,
                             uint32_t code, int64_t pid, bool yields);

/* Remembers an end; of several of the same call the first. False: no memory. */
bool late_add(struct late_ends *ends, const struct timeline *timeline, const struct late *late);
void late_free(struct late_ends *ends);

#endif
