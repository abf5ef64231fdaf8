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
}

/* Fields of `Events` that this version does not know are passed over. */
static inline int skip_unknown(struct segment_walk *walk)
{
    while (walk->next < walk->end && *walk->next != WIRE_TAG(EVENTS_EVENT, WIRE_BYTES)) {
        uint32_t tag;
        const uint8_t *p = wire_get_tag(walk->next, walk->end, &tag);
        if (p && tag >> 3 == EVENTS_EVENT)
            break;
        if (p)
            p = wire_skip(p, walk->end, tag);
        if (!p)
            return DECODE_MALFORMED;
        walk->next = p;
    }
    return 0;
}

/* What a record does to the number of open calls. */
enum motion { STAYS, ENTERS, LEAVES };

static enum motion motion(enum event_kind kind)
{
    switch (kind) {
    case EVENT_CALL:
    case EVENT_RESUME:
    case EVENT_THROW:
        return ENTERS;
    case EVENT_RETURN:
    case EVENT_EXCEPTION:
    case EVENT_YIELD:
        return LEAVES;
    default:
        return STAYS;
    }
}

static inline __attribute__((always_inline)) int next(struct segment_walk *walk, struct segment_event *event,
                       long (*decode)(const uint8_t *, size_t, struct event *))
{
    long size = skip_unknown(walk);

    if (!size) {
        if (walk->next == walk->end)
            return 0;
        event->record = walk->next;
        size = decode(walk->next, (size_t)(walk->end - walk->next), &event->event);
    }
    if (size < 0) {
        walk->next = walk->end;
        return (int)size;
    }
    walk->next += size;
    walk->time += event->event.time;
    event->time = walk->time;
    event->index = walk->index++;

    if (event->event.has_depth)
        walk->open = event->event.depth;
    event->has_duration = false;
    event->duration = 0;
    switch (motion(event->event.kind)) {
    case ENTERS:
        event->depth = walk->open;
        if (walk->open < INT32_MAX)
            walk->open++;
        break;
    case LEAVES:
        if (walk->open > INT32_MIN)
            walk->open--;
        event->depth = walk->open;
        /* 0 says that the beginning is unknown; absent, that the record before was it */
        event->has_duration = !event->event.has_elapsed || event->event.elapsed;
        event->duration = event->event.has_elapsed ? event->event.elapsed : event->event.time;
        break;
    case STAYS:
        event->depth = walk->open > 0 ? walk->open - 1 : 0;
        break;
    }
    if (event->depth < 0)
        event->depth = 0;
    return 1;
}

int segment_next(struct segment_walk *walk, struct segment_event *event)
{
    return next(walk, event, event_decode);
}

int segment_skim(struct segment_walk *walk, struct segment_event *event)
{
    return next(walk, event, event_skim);
}

int segment_head(struct segment_walk *walk, struct segment_event *event)
{
    return next(walk, event, event_head);
}
