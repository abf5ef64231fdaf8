/* Scans segments for events that meet a predicate, in the order of time over all threads and
 * processes, forwards or backwards.
 *
 * Segments are decompressed and scanned one after the other; once the caller wants more than a
 * page, ahead of it and on all processors. The results are merged, never sorted. Memory holds the
 * segments that overlap at one time, and a few more.
 *
 * Knows no SQLite: the caller lists the segments, and fetches their data when asked to, always on
 * its own thread.
 */
#ifndef PYTRACE_SCAN_H
#define PYTRACE_SCAN_H

#include "query/scan_segment.h"

struct scan_calls {
    /* 1: *data is there; 0: the segment is gone; negative: ends the scan with this error. */
    int (*fetch)(void *context, const struct scan_segment *segment, struct scan_data *data);
    /* A segment could not be read, or only its first `read` events could. */
    void (*damaged)(void *context, const struct scan_segment *segment, uint32_t read, const char *reason);
    void *context;
    /* Adds segments behind the others, to which the scan comes later; *count: all so far. 1: there
     * may be more; 0: there are no more; negative: as above. NULL: there are none. */
    int (*more)(void *list, size_t *count);
    void *list;
};

struct scan;

enum { SCAN_NO_MEMORY = -1000 };

/* `segments`: in any order; sorted here, and kept by the caller until scan_free, as is `predicate`
 * (NULL: all events). With `more` they stay where they are, and are in order. levels: rows have
 * places among the open levels, even if the predicate does not ask for them. NULL: no memory.
 * zstd_find must have said that it is ready. */
struct scan *scan_new(const struct predicate *predicate, struct scan_segment *segments, size_t count,
                      bool descending, bool levels, const struct scan_calls *calls);
void scan_free(struct scan *scan); /* NULL is fine */

/* 1: *at is the next event; 0: the end; negative: an error, from fetch or SCAN_NO_MEMORY. */
int scan_next(struct scan *scan, struct scan_at *at);

/* The number of segments opened so far. */
size_t scan_opened(const struct scan *scan);

/* All events before this time (descending: after it) that meet the predicate have come. `fetch` may
 * use it, to end the scan and begin another one there. */
int64_t scan_reached(const struct scan *scan);

#endif
