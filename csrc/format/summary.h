/* A segment's summary: statements about all its events together, by which a scan can skip the
 * segment without decompressing it. The dumper makes it and stores it beside the data (columns
 * max_depth, kinds, max_duration and codes of `segment`); sqlite_segments.c reads it. Beside it the
 * dumper learns which levels are open behind the segment, for the column `open` of the next one.
 *
 * `codes` has two varints for each code object with an event in it, sorted by number. The first one
 * is the difference to the number before (at the start: to 0; a 0 there stands for events in no
 * code). The second one is the number of its calls. For example 5 calls of code 7, and events but
 * no call of code 300:
 *
 *   07 05   a5 02 00             7; 5 calls.   293 more; no call
 *
 * No Python, no atomics.
 */
#ifndef PYTRACE_SUMMARY_H
#define PYTRACE_SUMMARY_H

#include "format/levels.h"

/* Some of its events are of a task; of some the processor is known. No kind has these bits, nor the
 * bits from 10 to 15. */
enum { SUMMARY_TASKS = 1, SUMMARY_CPUS = 1 << 12 };

struct summary {
    int32_t max_depth;      /* largest depth of an event (as struct segment_event); 0: none */
    uint32_t kinds;         /* 1 << kind for each kind in it, later ones too; SUMMARY_... */
    uint64_t max_duration;  /* clock units; 0: no known duration */
    const uint8_t *codes;
    size_t codes_size;
    uint32_t events;        /* it covers so many: all, unless records cannot be read */
    const uint8_t *open;    /* levels.h: of the segment behind it */
    size_t open_size;
};

/* The buffers for making summaries; one serves all segments of a recording. */
struct summary_maker;
struct summary_maker *summary_maker_new(void); /* NULL: no memory */
void summary_maker_free(struct summary_maker *maker);

/* Whether a code object is own code; by default it is not. False: no memory. */
bool summary_own(struct summary_maker *maker, uint32_t number, bool own);

/* The summary of a chunk's body. `open`: levels.h; at least a byte. `codes` and `open` of the
 * summary are valid until the next call. False: no memory. A record that cannot be read ends it: it
 * covers the records before. */
bool summary_make(struct summary_maker *maker, const uint8_t *body, size_t size, int32_t base_depth,
                  const uint8_t *open, size_t open_size, struct summary *summary);

/* ---- reading ---- */

struct summary_code {
    uint32_t number;
    uint64_t calls;
};

/* The next of `codes`; start with a zeroed *code. Returns the position behind it; NULL: the end, or
 * (with *bad) damage. */
const uint8_t *summary_next(const uint8_t *p, const uint8_t *end, struct summary_code *code, bool *bad);

#endif
