/* A segment's summary: what is said of all its events together, so that a scan can pass it over
 * without decompressing it. The dumper makes it and stores it beside the data (columns max_depth,
 * kinds, max_duration and codes of `segment`); sqlite_trace.c reads it.
 *
 * `codes` is, for each code object that has an event in it, sorted by number, two varints: the
 * difference to the number before (the first: to 0; so 0 can only be the first's, events in no code),
 * and how many of its events are calls.
 *
 * No Python, no atomics.
 */
#ifndef PYTRACE_SUMMARY_H
#define PYTRACE_SUMMARY_H

#include "segment.h"

enum { SUMMARY_TASKS = 1 }; /* some of its events are of a task. No kind has this bit */

struct summary {
    int32_t max_depth;      /* largest depth of an event (as struct segment_event); 0 for none */
    uint32_t kinds;         /* 1 << kind for each kind in it; SUMMARY_TASKS */
    uint64_t max_duration;  /* clock units; 0: none has a duration that is known */
    const uint8_t *codes;
    size_t codes_size;
    uint32_t events;        /* that it covers: all, unless records cannot be read */
};

/* What making needs room for; one serves all segments of a recording. */
struct summary_maker;
struct summary_maker *summary_maker_new(void); /* NULL: no memory */
void summary_maker_free(struct summary_maker *maker);

/* The summary of a chunk's body. `codes` is valid until the next call. False: no memory. Records
 * that cannot be read end it: it then covers those before them. */
bool summary_make(struct summary_maker *maker, const uint8_t *body, size_t size, int32_t base_depth,
                  struct summary *summary);

/* ---- reading ---- */

struct summary_code {
    uint32_t number;
    uint64_t calls;
};

/* The next of `codes`; start with a zeroed *code. Returns the position behind it; NULL: the end, or
 * what is not such a list (*bad then). */
const uint8_t *summary_next(const uint8_t *p, const uint8_t *end, struct summary_code *code, bool *bad);

#endif
