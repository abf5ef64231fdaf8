/* A segment's events in batches, with their values as text: rows for Python, which then needs a few
 * calls for thousands of events. Structures have no padding that the format does not name, so that
 * struct.iter_unpack reads them.
 *
 * No Python, no allocation, no atomics.
 */
#ifndef PYTRACE_BATCH_H
#define PYTRACE_BATCH_H

#include "segment.h"

/* An event. struct format: "=4IqqQIIi4x". */
struct batch_event {
    uint32_t index;       /* in the segment */
    uint32_t kind;        /* enum event_kind */
    uint32_t code;        /* 0: none */
    uint32_t line;        /* 0: none given */
    int64_t time;         /* ns since 1970 */
    int64_t duration;     /* ns; -1: it has none, or it is not known */
    uint64_t count;       /* of a lost record */
    uint32_t first_value; /* its values in the batch: first_value .. first_value + value_count - 1 */
    uint32_t value_count;
    int32_t depth;
    uint32_t unused_;
};

/* A piece of the batch's text, UTF-8. */
struct batch_text {
    uint32_t start, size;
};

/* A value. struct format: "=8I". A piece of size 0 is an empty text. */
struct batch_value {
    struct batch_text name;  /* on log: the name it was given; otherwise empty */
    struct batch_text value; /* as text_value */
    struct batch_text type;  /* as text_type */
    struct batch_text bare;  /* as text_bare; the same piece as `value` but for strings */
};

/* Names of types, sorted by number. */
struct batch_types {
    uint32_t count;
    const uint32_t *numbers;
    const char *const *names; /* UTF-8, NUL-terminated */
};

struct batch {
    /* Given by the caller. */
    struct batch_event *events;
    uint32_t event_capacity;
    struct batch_value *values;
    uint32_t value_capacity;
    char *text;
    uint32_t text_capacity;
    struct segment_clock clock;
    struct batch_types types;
    bool with_values;         /* false: events alone, value_count 0 */
    /* Filled by batch_next. */
    uint32_t event_count, value_count, text_size;
};

enum { BATCH_TOO_SMALL = -10 };

/* The next events of the walk, as many as there is room for. Returns how many; 0: the end; a
 * decode_error, when the events before it have been handed out; BATCH_TOO_SMALL: not even the next
 * event alone fits (its values or their text need more room; the walk stays where it is). */
int batch_next(struct segment_walk *walk, struct batch *batch);

#endif
