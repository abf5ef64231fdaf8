/* The levels of a stack: which of the open functions are of own code. By them an event has a place
 * among own code alone, as if library functions were not there: its depth is the number of own
 * functions around it. Near code is own code, and the functions that it calls directly.
 *
 * Where a segment begins, levels are open already. The column `open` of `segment` has them: a byte
 * of enum open_flag, then a bit for each level from 0 on (the lowest bit of a byte first), 1 if its
 * function is of own code. Zero bytes at the end are left out. For example own code at levels 0, 1
 * and 9, and a library's event before the first one:
 *
 *   00 03 02
 *
 * The dumper makes it (summary.h); scans read it. No Python, no allocation, no atomics.
 */
#ifndef PYTRACE_LEVELS_H
#define PYTRACE_LEVELS_H

#include "format/segment.h"

#define LEVELS_MAX (1 << 16) /* deeper functions count as a library's */
#define OPEN_MAX (1 + LEVELS_MAX / 8)

/* The event before is shown where only own (near) code is: it is of such code, or tells a loss. */
enum open_flag { OPEN_AFTER_OWN = 1, OPEN_AFTER_NEAR = 2 };

struct levels {
    int64_t open;              /* open calls behind the last event */
    uint32_t own, near;        /* of them */
    bool after_own, after_near;
    uint64_t bits[LEVELS_MAX / 64]; /* of the open levels; the others may be anything */
};

/* The place of an event. */
struct level_place {
    uint32_t own_depth, near_depth; /* open own (near) calls around its function */
    bool near;                      /* it is of near code */
    /* it is shown where only own (near) code is: it is of such code, or tells a loss, or it is the
     * first one of a hidden stretch behind such an event */
    bool shown_own, shown_near;
};

/* *levels has to be all zero, or used before. `open`: at least a byte. */
void levels_begin(struct levels *levels, const uint8_t *open, size_t size, int32_t base_depth);

/* Another number of open calls, which does not follow from the events. The functions of levels that
 * were not open are unknown; they count as a library's. */
void levels_jump(struct levels *levels, int64_t open);

static inline uint32_t levels_bit(const struct levels *levels, int64_t level)
{
    return (uint64_t)level < LEVELS_MAX ? (uint32_t)(levels->bits[level / 64] >> level % 64 & 1) : 0;
}

/* Whether a level's function is near. */
static inline uint32_t levels_near(const struct levels *levels, int64_t level)
{
    return (uint64_t)level < LEVELS_MAX ? levels_bit(levels, level) | levels_bit(levels, level - 1) : 0;
}

/* Takes the next event, also one of an unknown kind. `open`: as the walk has it behind the event;
 * `mine`: its function is of own code. */
static inline __attribute__((always_inline)) void levels_step(struct levels *levels,
                                                              const struct event *event, int64_t open,
                                                              bool mine, struct level_place *place)
{
    bool enters = EVENT_ENTERS >> event->kind & 1, leaves = EVENT_LEAVES >> event->kind & 1;
    int64_t before = open - enters + leaves, level = before - !enters;

    if (__builtin_expect(before != levels->open, 0))
        levels_jump(levels, before);
    levels->open = open;
    bool lost = event->kind == EVENT_LOST;
    uint32_t own = enters ? 0 : levels_bit(levels, level), near = enters ? 0 : levels_near(levels, level);
    place->own_depth = levels->own - own;
    place->near_depth = levels->near - near;
    place->near = !lost && (mine || levels_bit(levels, level - 1));
    if (leaves) {
        levels->own -= own;
        levels->near -= near;
    } else if (enters && (uint64_t)level < LEVELS_MAX) {
        uint64_t bit = 1ull << level % 64, *bits = &levels->bits[level / 64];
        *bits = mine ? *bits | bit : *bits & ~bit;
        levels->own += mine;
        levels->near += levels_near(levels, level);
    }
    if (!event_is_known(event->kind))
        return;
    place->shown_own = mine || lost || levels->after_own;
    place->shown_near = place->near || lost || levels->after_near;
    levels->after_own = mine || lost;
    levels->after_near = place->near || lost;
}

/* Statements about all events of a segment, by its `open`. */
struct open_bounds {
    int64_t own_low, own_high, near_low, near_high; /* depths among own (near) code */
    bool may_be_near;                               /* an own function may call theirs directly */
};

/* low, high: their depths; has_own: some may be of own code. */
void open_bounds(const uint8_t *open, size_t size, int64_t low, int64_t high, bool has_own,
                 struct open_bounds *bounds);

#endif
