/* Scanning segments: those events that meet a predicate, in the order of time over all threads and
 * processes, forwards or backwards.
 *
 * Segments are decompressed and looked through one after the other, ahead of the reader and on all
 * processors once it turns out that he wants more than a page. What comes out is merged, never sorted;
 * memory holds the segments that overlap at one time and a few more.
 *
 * Knows no SQLite: the caller lists the segments, and fetches their data when asked to, always on its
 * own thread.
 */
#ifndef PYTRACE_SCAN_H
#define PYTRACE_SCAN_H

#include "predicate.h"

enum { SCAN_INDEX_BITS = 18 }; /* an event's id: its segment's id << 18, plus its index there */

/* A segment, as its row in the table says; what is needed before it is decompressed. */
struct scan_segment {
    int64_t id;
    const struct run_definitions *run;
    const struct run_thread *thread;
    int64_t start, end;   /* ns since 1970: no event in it is earlier or later */
    uint64_t base_time;   /* clock units */
    uint32_t count;       /* events */
    bool all;             /* every event in it meets the predicate */
};

/* The rest of the row. */
struct scan_data {
    int32_t base_depth;
    int64_t size;         /* of the body, decompressed */
    const void *data;     /* valid until the next fetch */
    size_t data_size;
};

/* An event that meets the predicate. */
struct scan_row {
    int64_t time;         /* ns since 1970 */
    int64_t duration;     /* ns; -1: it has none, or it is not known */
    uint32_t index;       /* in its segment */
    uint32_t offset;      /* of its record in the body */
    uint32_t code;
    uint32_t line;        /* 0: its code's */
    int32_t depth;
    uint32_t kind;
    uint32_t task;        /* offset of its task's name in the body */
    uint32_t task_size;   /* 0: it is of none */
};

struct scan_calls {
    /* 1: *data is there; 0: the segment is gone; negative: ends the scan with this error. */
    int (*fetch)(void *context, const struct scan_segment *segment, struct scan_data *data);
    /* A segment could not be read, or not to its end: `read` events of it were. */
    void (*damaged)(void *context, const struct scan_segment *segment, uint32_t read, const char *reason);
    void *context;
};

struct scan;

enum { SCAN_NO_MEMORY = -1000 };

/* `segments`: in any order; sorted here, and kept by the caller until scan_free, as is `predicate`
 * (NULL: all events). NULL: no memory. zstd_find must have said that it is ready. */
struct scan *scan_new(const struct predicate *predicate, struct scan_segment *segments, size_t count,
                      bool descending, const struct scan_calls *calls);
void scan_free(struct scan *scan); /* NULL is fine */

/* Where scan_next has come to. */
struct scan_at {
    const struct scan_segment *segment;
    const struct scan_row *row;
    const uint8_t *body;
    size_t body_size;
    int32_t base_depth;
};

/* 1: *at is the next event; 0: the end; negative: an error, from fetch or SCAN_NO_MEMORY. */
int scan_next(struct scan *scan, struct scan_at *at);

/* How many segments were opened so far. */
size_t scan_opened(const struct scan *scan);

/* All events before this time (descending: behind it) that meet the predicate have come. For whoever is
 * asked to fetch: he may end the scan, and begin another one there. */
int64_t scan_reached(const struct scan *scan);

/* ---- a segment's body by itself ---- */

/* Decompresses a body of `size` bytes into *body (grown to *capacity where needed). Returns NULL, or
 * what is wrong. */
struct zstd_context;
const char *scan_decompress(struct zstd_context *context, const struct scan_data *data, uint8_t **body,
                            size_t *capacity);

/* The row of the event that a walk has come to. */
void scan_row_of(const struct scan_segment *segment, const uint8_t *body, const struct segment_walk *walk,
                 const struct segment_event *event, struct scan_row *row);

/* The facts of one event, for predicate_ask; `event` for its arguments, or NULL. */
void scan_facts(const struct scan_at *at, const struct event *event, struct facts *facts);

#endif
