/* The functions that were entered in a segment and are open at a place in it. calls.c uses it. */
#ifndef PYTRACE_FRAMES_H
#define PYTRACE_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#define LEVEL_MAX (1 << 20)  /* functions deeper than that have no caller here */

/* Instead of an index in a segment: */
#define OUTSIDE UINT32_MAX       /* before the segment */
#define UNKNOWN (UINT32_MAX - 1) /* nowhere in the records */

/* An open function that was entered in the segment. */
struct frame {
    int32_t level;
    uint32_t index;   /* of the event that entered it */
    uint32_t call;    /* its place among the segment's calls; UNKNOWN: it was resumed */
    uint32_t resumed; /* its code, if it was resumed; else UNKNOWN */
};

/* The functions that are open somewhere in a segment, from level `floor` on: lower ones were open
 * before the segment. Higher levels without a frame are unknown, and take no memory: a damaged
 * event may claim any depth. */
struct stack {
    int32_t floor;
    struct frame *frames; /* of rising level, not every one */
    size_t count, capacity;
};

static inline int32_t level_of(int32_t depth)
{
    return depth < 0 ? 0 : depth > LEVEL_MAX ? LEVEL_MAX : depth;
}

/* Makes no more than `level` functions open. */
void frames_cut(struct stack *stack, int32_t level);

/* The index of the event that entered the function at a level, or OUTSIDE or UNKNOWN. */
uint32_t frames_entered(const struct stack *stack, int32_t level);

#endif
