/* A record on its way into the thread's chunk: its time, its room, its first fields.
 *
 * The hot path is in line; records.c has another chunk, and what is lost.
 */
#ifndef PYTRACE_RECORDS_H
#define PYTRACE_RECORDS_H

#include "ring/clock.h"
#include "record/codes.h"
#include "record/task.h"
#include "record/values.h"

/* Bytes of a record with one value, at most. */
#define RECORD_ROOM_FOR_VALUE (EVENT_HEAD_MAX + values_config.most + VALUE_ROOM_MIN)

/* The place of a new record; start is NULL if there is no room. */
struct place {
    uint8_t *start, *end;
};
#define NO_PLACE ((struct place){NULL, NULL})

/* Room for a record of `size` bytes in another chunk, or of `least` and more if there is no such
 * chunk. Writes the lost record after a loss. With --repr, the room is outside of the ring. */
struct place record_room(struct thread *thread, size_t size, size_t least);
/* The same for a native function's record, in the ring and without the GIL. */
uint8_t *record_room_native(struct thread *thread, size_t size);
/* Commits the record that is outside of the ring. */
void record_commit_outside(struct thread *thread, uint8_t *p, uint64_t now);
/* The record from the last record_reserve is not to be. */
void record_abandon(struct thread *thread);
/* record_now if the counter is behind this thread's last event: by a little, as cores may differ,
 * or because the machine has slept. */
uint64_t record_now_behind(const struct thread *thread);
/* record_now's time where it takes more than the counter: another clock, or the processor. */
uint64_t record_now_otherwise(struct thread *thread);

/* The time of the record that comes next. With --cpu it may write an element before that record. */
HOT uint64_t record_now(struct thread *thread)
{
    uint64_t now = LIKELY(recorder.ticks) ? clock_ticks() >> recorder.clock_shift : record_now_otherwise(thread);
    return LIKELY(now >= thread->stream.time) ? now : record_now_behind(thread);
}

/* Room for a record. With --repr it is outside of the ring: the program's code runs while the
 * record is written, and may end this thread's chunk. (Another thread ends the recording, or the
 * process forks.) The thread is not ready meanwhile, so events of that code are skipped, even
 * through sys.call_tracing. */
HOT struct place record_reserve(struct thread *thread, size_t size, size_t least)
{
    struct stream *stream = &thread->stream;
    if (LIKELY((size_t)(stream->end - stream->next) >= size) && LIKELY(!values_config.repr))
        return (struct place){stream->next, stream->next + size};
    return record_room(thread, size, least);
}

/* The least room for a record if large chunks are scarce: it may take `room` bytes, and needs
 * `needed` for its values, however they are cut. */
HOT size_t record_least(size_t room, size_t needed)
{
    size_t small = RING_SMALL_RECORD - EVENT_HEAD_MAX; /* a lost record may come before it */
    size_t least = needed > small ? needed : small;
    return least < room ? least : room;
}

/* The first fields of each record: kind, code, time. Returns the position behind them. */
HOT uint8_t *record_head(uint8_t *p, const struct code_info *info, enum event_kind kind, uint64_t delta)
{
    memcpy(p, info->head, 8);
    if (kind != EVENT_CALL)
        p[CODE_HEAD_KIND] = (uint8_t)WIRE_TAG(kind, WIRE_VARINT);
    return wire_put_short(p + info->head_size, delta);
}

HOT void record_commit(struct thread *thread, uint8_t *record, uint8_t *p, uint64_t now)
{
    if (UNLIKELY(thread->outside != NULL)) {
        record_commit_outside(thread, p, now);
        return;
    }
    thread->stream.time = now;
    stream_commit(&thread->stream, event_close(record, p));
}

#endif
