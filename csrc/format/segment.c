/* Walking the records of a segment; see segment.h. */
#include "format/segment.h"

static int64_t to_ns(int64_t units, uint64_t scale, int64_t base)
{
    return saturate_narrow((((saturate_wide)units * (saturate_wide)scale) >> 32) + base);
}

int64_t segment_clock_ns(const struct segment_clock *clock, uint64_t units)
{
    /* as signed numbers: a record may be older than the epoch */
    return to_ns(saturate_subtract((int64_t)units, (int64_t)clock->epoch_units), clock->scale, clock->epoch_ns);
}

int64_t segment_duration_ns(const struct segment_clock *clock, uint64_t units)
{
    return to_ns(saturate_signed(units), clock->scale, 0);
}

int64_t segment_clock_units(const struct segment_clock *clock, int64_t ns, bool after)
{
    const int64_t slack = 2; /* rounding, here and in segment_clock_ns */

    if (!clock->scale || ns == (after ? INT64_MAX : INT64_MIN)) /* times saturate there */
        return after ? INT64_MAX : INT64_MIN;
    saturate_wide since = (saturate_wide)ns - clock->epoch_ns;
    return saturate_narrow(since * ((saturate_wide)1 << 32) / (saturate_wide)clock->scale +
                           (int64_t)clock->epoch_units + (after ? slack : -slack));
}

void segment_open(struct segment_walk *walk, const uint8_t *data, size_t size, uint64_t base_time,
                  int32_t base_depth)
{
    walk->next = data;
    walk->end = size ? data + size : data;
    walk->time = base_time;
    walk->open = base_depth;
    walk->later = walk->between = 0;
    walk->index = 0;
    walk->task = NULL;
    walk->task_size = 0;
    walk->cpu = CPU_UNKNOWN;
}

/* Reads the name behind the tag at `p`. Returns the position behind it, or NULL. */
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

/* Reads the processor behind the tag at `p`. Returns the position behind it, or NULL. */
static const uint8_t *read_cpu(struct segment_walk *walk, const uint8_t *p)
{
    uint64_t n;
    p = wire_get_varint(p, walk->end, &n);
    if (!p || n > INT32_MAX)
        return NULL;
    walk->cpu = (int32_t)n - 1;
    return p;
}

int segment_pass(struct segment_walk *walk)
{
    while (walk->next < walk->end && *walk->next != WIRE_TAG(EVENTS_EVENT, WIRE_BYTES)) {
        uint32_t tag;
        const uint8_t *p = wire_get_tag(walk->next, walk->end, &tag);
        if (p && tag >> 3 == EVENTS_EVENT)
            break;
        if (p && tag == WIRE_TAG(EVENTS_TASK, WIRE_BYTES)) {
            p = read_task(walk, p);
        } else if (p && tag == WIRE_TAG(EVENTS_CPU, WIRE_VARINT)) {
            p = read_cpu(walk, p);
        } else if (p) {
            p = wire_skip(p, walk->end, tag);
            walk->between++;
        }
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
