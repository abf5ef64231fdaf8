/* Room for records, in another chunk or outside of the ring; see records.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu */
#endif

#include "record/records.h"

#include "record/define.h"
#include "record/session.h"
#include "record/stats.h"

#include <sched.h>

uint64_t record_now_behind(const struct thread *thread)
{
    STAT(clock_behind);
    uint64_t now = ring_clock_units(session_ring());
    return now > thread->stream.time ? now : thread->stream.time;
}

/* ---- the processor ------------------------------------------------------------------------ */

/* Writes the processor of the events that follow, if it is another one than before. It is published
 * together with the next record. */
static void note_cpu(struct thread *thread)
{
    struct stream *stream = &thread->stream;
    int32_t cpu = sched_getcpu(); /* no system call: the kernel keeps it in the thread's memory */
    if (cpu == thread->cpu)
        return;
    thread->cpu = cpu;
    if (stream->next == NULL)
        return; /* the next chunk begins with it */
    if (stream->end - stream->next < EVENTS_CPU_MAX)
        stream->end = stream->next; /* the same: the next record has no room in this one */
    else
        stream->next = events_put_cpu(stream->next, cpu);
}

static uint8_t *put_cpu_again(struct thread *thread, uint8_t *p)
{
    if (recorder.cpu && thread->cpu != CPU_UNKNOWN)
        thread->stream.next = p = events_put_cpu(p, thread->cpu);
    return p;
}

uint64_t record_now_otherwise(struct thread *thread)
{
    if (recorder.cpu)
        note_cpu(thread);
    return clock_units(recorder.clock_kind, recorder.clock_shift);
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
    uint64_t now = ring_clock_units(session_ring());
    if (now - checked > DUMPER_CHECK_UNITS) {
        checked = now;
        session_check_dumper();
    }
    if (p != NULL && stream->lost)
        p = thread_put_lost(thread, p, stream->time); /* the next caller read its time before */
    if (p != NULL)
        p = put_cpu_again(thread, task_put_again(thread, p));
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
