/* Walking the records of a segment; see segment.h. */
#include "segment.h"

__extension__ typedef __int128 wide;

static int64_t to_ns(wide units, uint64_t scale, int64_t base)
{
    wide ns = ((units * (wide)scale) >> 32) + base;
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

int64_t segment_clock_ns(const struct segment_clock *clock, uint64_t units)
{
    /* the difference as a signed number: a record may be older than the epoch */
    return to_ns((int64_t)(units - clock->epoch_units), clock->scale, clock->epoch_ns);
}

int64_t segment_duration_ns(const struct segment_clock *clock, uint64_t units)
{
    return to_ns((int64_t)(units > INT64_MAX ? INT64_MAX : units), clock->scale, 0);
}

void segment_open(struct segment_walk *walk, const uint8_t *data, size_t size, uint64_t base_time,
                  int32_t base_depth)
{
    walk->next = data;
    walk->end = size ? data + size : data;
    walk->time = base_time;
    walk->open = base_depth;
    walk->index = 0;
    walk->task = NULL;
    walk->task_size = 0;
}

/* The name behind the tag at `p`. Returns the position behind it, or NULL. */
static const uint8_t *read_task(struct segment_walk *walk, const uint8_t *p)
{
    uint64_t size;
    p = wire_get_varint(p, walk->end, &size);
    if (!p || size > (uint64_t)(walk->end - p) || size > UINT32_MAX)
        return NULL;
    walk->task = size ? p : NULL;
    walk->task_size = (uint32_t)size;
    return p + size;
}

int segment_pass(struct segment_walk *walk)
{
    while (walk->next < walk->end && *walk->next != WIRE_TAG(EVENTS_EVENT, WIRE_BYTES)) {
        uint32_t tag;
        const uint8_t *p = wire_get_tag(walk->next, walk->end, &tag);
        if (p && tag >> 3 == EVENTS_EVENT)
            break;
        if (p)
            p = tag == WIRE_TAG(EVENTS_TASK, WIRE_BYTES) ? read_task(walk, p) : wire_skip(p, walk->end, tag);
        if (!p)
            return DECODE_MALFORMED;
        walk->next = p;
    }
    return 0;
}

int segment_next(struct segment_walk *walk, struct segment_event *event)
{
    return segment_step(walk, event, event_decode);
}

int segment_skim(struct segment_walk *walk, struct segment_event *event)
{
    return segment_step(walk, event, event_skim);
}

int segment_head(struct segment_walk *walk, struct segment_event *event)
{
    return segment_step(walk, event, event_head);
}
