/* One segment: as its row says, decompressed, and the events found in it that meet a predicate.
 *
 * Knows no SQLite. scan.c searches segments on any of its threads; all may use the rest.
 */
#ifndef PYTRACE_SCAN_SEGMENT_H
#define PYTRACE_SCAN_SEGMENT_H

#include "format/levels.h"
#include "query/predicate.h"

enum { SCAN_INDEX_BITS = 18 }; /* an event's id: its segment's id << 18, plus its index there */

/* The part of a segment's row that is needed before it is decompressed. */
struct scan_segment {
    int64_t id;
    const struct run_definitions *run;
    const struct run_thread *thread;
    int64_t stream;
    int64_t start, end;   /* ns since 1970: no event in it is earlier or later */
    uint64_t base_time;   /* clock units */
    uint32_t count;       /* events */
    bool all;             /* every event in it meets the predicate */
};

/* The rest of the row. */
struct scan_data {
    int32_t base_depth;
    int64_t size;         /* of the body, decompressed */
    const void *data;     /* valid until the next fetch, as is `open` */
    size_t data_size;
    const uint8_t *open;  /* levels.h; NULL: not known */
    size_t open_size;
};

/* Facts of scan_row.facts. */
enum {
    ROW_TRAILING = 1,             /* of a line: event.is_trailing */
    ROW_LEVELS = 2, ROW_NEAR = 4, /* the open levels are known; level_place.near */
    ROW_SHOWN = 8,                /* shifted by enum view */
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
    uint32_t task;        /* offset of its task's name in the body */
    uint32_t task_size;   /* 0: it is of none */
    int32_t cpu;          /* CPU_UNKNOWN */
    uint32_t own_depth, near_depth; /* 0 without ROW_LEVELS */
    uint8_t kind;
    uint8_t facts;        /* ROW_...; those of levels only if they were asked for */
};

/* An event in its place. */
struct scan_at {
    const struct scan_segment *segment;
    const struct scan_row *row;
    const uint8_t *body;
    size_t body_size;
    int32_t base_depth;
};

/* ---- a segment's body by itself ---- */

/* Decompresses a body of `size` bytes into *body, which grows if needed. Returns NULL, or a
 * problem. */
struct zstd_context;
const char *scan_decompress(struct zstd_context *context, const struct scan_data *data, uint8_t **body,
                            size_t *capacity);

/* The row of the event at the place of a walk. */
void scan_row_of(const struct scan_segment *segment, const uint8_t *body, const struct segment_walk *walk,
                 const struct segment_event *event, struct scan_row *row);

/* The place of the next event of a walk among the open levels. levels NULL: they are not known.
 * Then only events of own code, and losses, are shown. */
static inline void scan_place(struct levels *levels, const struct scan_segment *segment,
                              const struct segment_walk *walk, const struct event *event,
                              struct level_place *place)
{
    bool mine = run_code_find(segment->run, event->code)->mine;
    if (levels)
        levels_step(levels, event, walk->open, mine, place);
    else
        place->shown_own = place->shown_near = mine || event->kind == EVENT_LOST;
}

/* Adds the place. known: as the levels were not NULL. */
void scan_row_place(const struct level_place *place, bool known, struct scan_row *row);

/* The facts of one event, for predicate_ask; `event` for its arguments, or NULL. */
void scan_facts(const struct scan_at *at, const struct event *event, struct facts *facts);

/* Whether one event meets a predicate (NULL: each does). */
bool scan_meets(const struct scan_at *at, const struct predicate *predicate);

/* ---- what a scan finds in a segment ---- */

/* The question; the same for all threads. */
struct segment_search {
    const struct predicate *predicate;  /* NULL: all */
    struct required_literals literals;  /* the predicate's */
    struct bounds times, ids;           /* times: ns; it is true of no events at others */
    bool levels;                        /* rows have places among the open levels */
};

/* The state of one thread. */
struct lens {
    struct zstd_context *zstd;
    const struct run_definitions *run; /* whose segments it is for ... */
    const struct run_thread *thread;   /* ... and of which thread ... */
    int64_t stream;                    /* ... and stream */
    uint32_t in_types;                 /* a bit for each required literal that a type's name has */
    struct required_literals missing;  /* the others: a record without them tells only its code */
    uint32_t found;                    /* required literals that a segment has, or the types ... */
    bool hopeless;                     /* ... and no event of this segment can meet the predicate */
    struct code_answers *answers;      /* by code number */
    size_t answers_count;
    uint32_t age;
    struct levels levels;
};

/* A segment on its way; see scan.c. */
struct task {
    struct task *next;         /* in the queue, or among the free ones */
    const struct scan_segment *segment;
    bool done;
    /* the fetched data */
    uint8_t *data;             /* and `open` behind it */
    size_t data_size, data_capacity;
    size_t open_size;          /* 0: not known */
    int64_t size;
    int32_t base_depth;
    /* the results */
    uint8_t *body;
    size_t body_size, body_capacity;
    struct scan_row *rows;
    uint32_t row_count;
    size_t row_capacity;
    uint32_t read;             /* events */
    const char *reason;        /* its problem, or NULL */
    bool no_memory;
    uint32_t passed;           /* rows handed out */
};

/* Finds the rows of a task that has been fetched. */
void segment_process(const struct segment_search *search, struct lens *lens, struct task *task);
void lens_free(struct lens *lens);

#endif
