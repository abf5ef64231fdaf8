/* Walks the records of a chunk's body, in the ring or in a decompressed segment: turns the
 * differences in each record into its absolute time, its depth and its duration.
 *
 * For example, with base time 1000 and two open calls at the start:
 *
 *   0a 05  08 07  50 ac 02       call 7        time 1300, depth 2; three open behind it
 *   0a 04  08 08  50 05          call 8        time 1305, depth 3
 *   0a 05  90 01 07  50 01       kind 18       time 1306, passed over; four calls stay open
 *   0a 06  10 08  50 01  58 02   return of 8   time 1307, depth 3, took 2 units
 *   0a 06  10 07  50 01  58 08   return of 7   time 1308, depth 2, took 8 units
 *
 * No Python, no allocation, no atomics.
 */
#ifndef PYTRACE_SEGMENT_H
#define PYTRACE_SEGMENT_H

#include "common/saturate.h"
#include "format/event.h"

/* The conversion of clock units to wall-clock time; one per recording (run.clock_* in the
 * database). */
struct segment_clock {
    int64_t epoch_ns;
    uint64_t epoch_units;
    uint64_t scale; /* ns per unit << 32 */
};

int64_t segment_clock_ns(const struct segment_clock *clock, uint64_t units);
int64_t segment_duration_ns(const struct segment_clock *clock, uint64_t units);
/* Units that are surely not after a time (after: not before it). */
int64_t segment_clock_units(const struct segment_clock *clock, int64_t ns, bool after);

struct segment_walk {
    const uint8_t *next, *end;
    uint64_t time;     /* units (of a signed number), of the last record */
    int32_t open;      /* recorded calls open behind the last record */
    uint32_t later;    /* records of unknown kinds so far */
    uint32_t between;  /* unknown fields between records so far */
    uint32_t index;    /* of the next record */
    const uint8_t *task; /* name of the last record's task, in the body; NULL: none */
    uint32_t task_size;
    int32_t cpu;         /* the last record's processor; CPU_UNKNOWN */
};

/* A record in its place. */
struct segment_event {
    struct event event;
    uint32_t index;    /* in the segment */
    uint64_t time;     /* clock units */
    int32_t depth;     /* recorded calls open above this event's function: 0 for the outermost.
                        * A call, its return, and all events in the function itself (raise,
                        * log, line, event, yield), have the same. */
    bool has_duration;
    uint64_t duration; /* clock units */
    const uint8_t *record; /* its start */
};

void segment_open(struct segment_walk *walk, const uint8_t *data, size_t size, uint64_t base_time,
                  int32_t base_depth);

/* 1: the next record is in *event; 0: the end; negative: a decode_error, and the walk is over. */
int segment_next(struct segment_walk *walk, struct segment_event *event);

/* Like segment_next, with values unchecked (event_skim), for callers that need few of the records'
 * values, or none. */
int segment_skim(struct segment_walk *walk, struct segment_event *event);

/* Like segment_skim, with values not even counted (event_head): the fastest. */
int segment_head(struct segment_walk *walk, struct segment_event *event);

/* ---- one step, to be built into a loop ---- */

/* Kinds of records that add or remove an open call. All other kinds leave the number unchanged,
 * also those of later versions (unless they carry a depth). */
enum {
    EVENT_ENTERS = 1 << EVENT_CALL | 1 << EVENT_RESUME | 1 << EVENT_THROW,
    EVENT_LEAVES = 1 << EVENT_RETURN | 1 << EVENT_EXCEPTION | 1 << EVENT_YIELD,
};

/* Skips elements that are no records: names of tasks, processors, and unknown fields of
 * `Events`. */
int segment_pass(struct segment_walk *walk);

/* segment_next, segment_skim or segment_head, depending on the decoder. */
static inline __attribute__((always_inline)) int segment_step(struct segment_walk *walk, struct segment_event *event,
                       long (*decode)(const uint8_t *, size_t, struct event *))
{
    long size = 0;

    if (__builtin_expect(walk->next == walk->end || *walk->next != WIRE_TAG(EVENTS_EVENT, WIRE_BYTES), 0))
        size = segment_pass(walk);
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
    /* time never goes back */
    walk->time = (uint64_t)saturate_advance((int64_t)walk->time, event->event.time);
    event->time = walk->time;
    event->index = walk->index++;

    if (event->event.has_depth)
        walk->open = event->event.depth;
    event->has_duration = false;
    event->duration = 0;
    if (EVENT_ENTERS >> event->event.kind & 1) {
        event->depth = walk->open;
        if (walk->open < INT32_MAX)
            walk->open++;
    } else if (EVENT_LEAVES >> event->event.kind & 1) {
        if (walk->open > INT32_MIN)
            walk->open--;
        event->depth = walk->open;
        /* 0: the start is unknown; absent: the record before is the start */
        event->has_duration = !event->event.has_elapsed || event->event.elapsed;
        event->duration = event->event.has_elapsed ? event->event.elapsed : event->event.time;
    } else {
        event->depth = walk->open > 0 ? walk->open - 1 : 0;
        walk->later += !event_is_known(event->event.kind);
    }
    if (event->depth < 0)
        event->depth = 0;
    return 1;
}

#endif
