/* Ends of calls that began in another segment; see late_ends.h. */
#include "query/late_ends.h"

#include "common/array.h"

static uint64_t late_key(uint64_t start, uint32_t code) { return start ^ (uint64_t)code << 40; }

const struct late *late_find(const struct late_ends *ends, const struct timeline *timeline, uint64_t start,
                             uint32_t code, int64_t pid, bool yields)
{
    size_t place = (size_t)map_get(&ends->places, late_key(start, code));

    for (; place; place = ends->all[place - 1].next) {
        const struct late *late = &ends->all[place - 1];
        if (late->start == start && late->code == code && (late->kind == EVENT_YIELD) == yields &&
            timeline->segments[late->position].pid == pid)
            return late;
    }
    return NULL;
}

bool late_add(struct late_ends *ends, const struct timeline *timeline, const struct late *late)
{
    int64_t pid = timeline->segments[late->position].pid;
    uint64_t *place;

    if (late_find(ends, timeline, late->start, late->code, pid, late->kind == EVENT_YIELD))
        return true;
    if (!array_reserve(&ends->all, &ends->capacity, ends->count + 1, sizeof *ends->all) ||
        !(place = map_put(&ends->places, late_key(late->start, late->code), ends->count + 1)))
        return false;
    ends->all[ends->count] = *late;
    if (*place != ends->count + 1)
        ends->all[ends->count].next = (uint32_t)*place;
    *place = ++ends->count;
    return true;
}

void late_free(struct late_ends *ends)
{
    free(ends->all);
    map_free(&ends->places);
}
