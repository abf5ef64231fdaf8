/* The variables of a function at one of its events: what its call gave to it, and what its lines
 * have changed up to there. One segment tells them all, because the first line of a call in each
 * segment has all of its variables.
 *
 * A resumed generator goes on from what it has told before: the records of its yields and
 * resumptions have its number (csrc/record/lines.h). Knows no SQLite.
 */
#ifndef PYTRACE_FRAME_VARIABLES_H
#define PYTRACE_FRAME_VARIABLES_H

#include "query/scan_segment.h"

struct frame_variable {
    uint32_t number;     /* its place among the code's variables */
    struct string name;  /* no text: it has none, but its number */
    struct value value;  /* in the body */
    bool known;          /* the event that gave it this value is: */
    uint32_t set;        /* its index in the segment */
};

/* *all in the order of the numbers, for the caller to free; those that are deleted are left out.
 * None, if the segment has no line of the call up to there, nor the call itself. False: no
 * memory. */
bool frame_variables(const uint8_t *body, size_t size, uint64_t base_time, int32_t base_depth,
                     const struct run_definitions *run, uint32_t index, struct frame_variable **all,
                     size_t *count);

#endif
