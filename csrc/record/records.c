/* Room for records, in another chunk or outside of the ring; see records.h. */

#include "record/records.h"

#include "record/define.h"
#include "record/session.h"
#include "record/stats.h"

uint64_t record_now_behind(const struct thread *thread)
{
    STAT(clock_behind);
    uint64_t now = ring_clock_units(session_ring());
    return now > thread->stream.time ? now : thread->stream.time;
}

/* ---- room --------------------------------------------------------------------------------- */

#define DUMPER_CHECK_UNITS (1u << 22) /* some 20 ms between two looks for the dumper */

/* The thread's name in the recording, if Python may be asked for it; else the system's. */
static void define_this(struct thread *thread, bool python)
{
    char name[200];
    const struct stream *stream = &thread->stream;
    if (thread->defined || (thread->named && !python))
        return;
    size_t size = python ? thread_name(name, sizeof name) : thread_system_name(name);
    bool done = define_thread(stream->id, stream->tid, name, size);
    *(python ? &thread->defined : &thread->named) = done;
}

static uint8_t *room_in_chunk(struct thread *thread, size_t size, size_t least, bool python)
{
    STAT(record_without_room);
    static volatile uint64_t checked; /* by any thread: a look more or less does not matter */
    struct stream *stream = &thread->stream;
    if (stream->ring == NULL && !threads_forked())
        return NULL;
    thread_count_missed(thread);
    uint64_t found_full = stream->freed_seen;
    define_this(thread, python);
    const uint8_t *rest = stream->next;
    uint8_t *p = stream_next_chunk(stream, size + EVENT_HEAD_MAX, least + EVENT_HEAD_MAX);
    if (p != NULL && p == rest) /* of the present chunk; no other is that large */
        return p;
    if (p != NULL)
        STAT(chunk_claimed);
    else
        STAT(record_dropped);
    /* else nothing has changed since the ring was full */
    if (p != NULL || stream->freed_seen != found_full)
        threads_share_chunks(thread);
    if (p == NULL && stream->lost & 0xff) /* drops are cheap: few of them look at the clock */
        return NULL;
    uint64_t now = record_now(thread);
    if (now - checked > DUMPER_CHECK_UNITS) {
        checked = now;
        session_check_dumper();
    }
    if (p != NULL && stream->lost)
        p = thread_put_lost(thread, p, stream->time); /* the next caller read its time before */
    if (p != NULL)
        p = task_put_again(thread, p);
    return p;
}

struct place record_room(struct thread *thread, size_t size, size_t least)
{
    if (!values_config.repr) {
        uint8_t *start = room_in_chunk(thread, size, least, true);
        size_t left = (size_t)(thread->stream.end - thread->stream.next);
        return start == NULL ? NO_PLACE : (struct place){start, start + (size < left ? size : left)};
    }
    STAT(record_outside);
    if ((thread->outside = PyMem_RawMalloc(size)) == NULL) {
        stream_drop(&thread->stream);
        return NO_PLACE;
    }
    thread->ready = false; /* until the record is complete */
    return (struct place){thread->outside, thread->outside + size};
}

uint8_t *record_room_native(struct thread *thread, size_t size)
{
    return room_in_chunk(thread, size, size, false);
}

void record_commit_outside(struct thread *thread, uint8_t *p, uint64_t now)
{
    struct stream *stream = &thread->stream;
    uint8_t *record = thread->outside;
    size_t size = (size_t)(event_close(record, p) - record);
    thread->outside = NULL;
    thread_update_ready(thread);
    /* Also if a block has ended meanwhile: the record began inside of it. */
    bool fits = (size_t)(stream->end - stream->next) >= size;
    uint8_t *place = fits ? stream->next : room_in_chunk(thread, size, size, true);
    if (place != NULL) {
        memcpy(place, record, size);
        stream->time = now;
        stream_commit(stream, place + size);
    }
    PyMem_RawFree(record);
}

void record_abandon(struct thread *thread)
{
    if (thread->outside == NULL)
        return;
    PyMem_RawFree(thread->outside);
    thread->outside = NULL;
    thread_update_ready(thread);
}
