/* Recording: from "this function was called" to a record in the ring.
 *
 *   monitoring.c (3.12+), profile.c (3.11)     what the interpreter says
 *        \          /
 *         hook.h, hook.c                       open calls of each thread, records        <- here
 *        /          \
 *   values.c      codes.c                      arguments; code objects and their scope
 *
 * The hot path is in this header, in line: no allocation, no formatting, no system call, no lock.
 * What happens seldom (a thread's first event, a code's first event, a chunk that is full) is in
 * hook.c. All of it runs under the GIL, but each thread writes to a stream of its own.
 */
#ifndef PYTRACE_HOOK_H
#define PYTRACE_HOOK_H

#include "clock.h"
#include "codes.h"
#include "values.h"

/* Bytes of a record with one value, at most. */
#define HOOK_ROOM_FOR_VALUE (EVENT_HEAD_MAX + values_config.most + VALUE_ROOM_MIN)

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A recorded call that is open on a thread. */
struct open_call {
    PyCodeObject *code;
    uint64_t start;  /* clock units; 0: not known */
    uint64_t since;  /* the same; of a generator, when it went on last */
};

#define FIRST_CALLS 64 /* open calls that a thread has room for at first */

/* A thread of the operating system, or where it has greenlets, one of these. */
struct thread {
    bool ready;                     /* recording, looked, and no @notrace function is open */
    bool looked;                    /* for @notrace functions that were open at its first event */
    bool defined;                   /* its name is in the recording */
    bool holds;                     /* a chunk */
    uint32_t suppressed;            /* @notrace functions that are open */
    PyThreadState *state;           /* see hook_frame; hook_no_state: not known */
    const void *stack[3];           /* the innermost chunks of its data stack, as seen last; see lanes.c */
    struct open_call *top;          /* one behind the innermost */
    struct open_call *calls, *end;  /* `first`, or memory of their own; calls[0] is a sentinel that is no call */
    struct stream stream;
    struct tasks *tasks;            /* see task.h; NULL: none has run yet */
    struct thread *next, **previous; /* all threads of the process */
    struct thread *older, *newer;   /* those that hold a chunk, in a queue; see share_chunks */
    uint64_t held_time;             /* of its last record, when it was put there */
    uint64_t cleared;               /* the id of the state that was cleared last */
    const void *root;               /* where its data stack begins; its first frame, while it has none */
    struct lanes *lanes;            /* of greenlets, see lanes.c */
    struct thread *next_lane, *next_found;
#if !HAVE_MONITORING
    struct profile *profile;        /* see profile.c */
#endif
    struct open_call first[FIRST_CALLS];
};

/* What the hot path needs to know of the recording; constant while it runs. */
struct hook {
    uint32_t clock_kind, clock_shift;
    bool values;
    bool recording;
};
extern struct hook hook;

/* Of a thread whose state is not known: no frame, and a data stack that nobody else has. */
extern PyThreadState hook_no_state;

/* This thread; before its first event one that is never ready. Events ask hook_here. */
extern _Thread_local struct thread *hook_thread __attribute__((tls_model("initial-exec")));

/* ---- seldom (hook.c) ---------------------------------------------------------------------- */

/* This thread, made at its first event; NULL where memory is short or nothing is recorded. */
struct thread *hook_thread_made(void);
/* This thread's lane of the greenlet that runs now, where its data stack is another than was seen last. */
struct thread *hook_lane(struct thread *thread);
/* Counts a @notrace function in (+1) or out (-1). */
void hook_suppress(struct thread *thread, int change);
/* At a thread's first event since recording began, or began again: counts those that are open. `begins`: code
 * that the innermost frame runs and that is not open yet; or NULL. */
void hook_look(struct thread *thread, const PyCodeObject *begins);
/* hook_frame where the thread's state has to be asked for. */
compat_frame *hook_frame_asked(struct thread *thread, const PyCodeObject *code);
/* Room for a record of `size` bytes in another chunk, or of `least` and more where there is no such chunk; writes
 * the lost record where there is a loss. With --repr: in memory of its own. */
uint8_t *hook_room(struct thread *thread, size_t size, size_t least);
/* Commits a record in memory of its own. */
void hook_commit_copy(struct thread *thread, uint8_t *record, uint8_t *p, uint64_t now);
/* hook_now where the counter is behind this thread's last event: by a little, which the cores' may be, or
 * because the machine has slept. */
uint64_t hook_now_behind(const struct thread *thread);
/* More room for open calls. */
bool hook_grow(struct thread *thread);

/* When a suspended generator was called first, by its frame. 0: not known. */
uint64_t hook_generator_start(const void *frame);
void hook_generator_suspended(const void *frame, uint64_t start);
void hook_generator_ended(const void *frame);

/* A coroutine begins or goes on in this frame, or has ended or is suspended: perhaps another task runs
 * (task.c). */
void hook_coroutine_entered(struct thread *thread, const compat_frame *frame);
void hook_coroutine_left(struct thread *thread);
/* Another greenlet goes on, in this lane. */
void hook_greenlet_entered(struct thread *lane);

/* ---- the hot path ------------------------------------------------------------------------- */

#define HOT static inline __attribute__((always_inline))

/* Where this event goes: this thread's lane of the greenlet that runs. Each chunk of a data stack sees the
 * beginning of a call first, or of a generator's turn; there it is made sure that it has not become a part
 * of another stack (`begins`). */
HOT struct thread *hook_here(bool begins)
{
    struct thread *thread = hook_thread;
    const _PyStackChunk *chunk = thread->state->datastack_chunk;
    if (UNLIKELY(chunk != thread->stack[0] || (begins && chunk->previous != thread->stack[1])))
        return hook_lane(thread);
    return thread;
}

/* The frame that runs `code`, which is the current one; NULL where it is C code that tells of the event.
 * Asking the interpreter for this thread's state costs as much as encoding an argument, so that it is
 * remembered; it is forgotten when the state is cleared, and the code that its frame runs tells whether it
 * is still the right one. */
HOT compat_frame *hook_frame(struct thread *thread, const PyCodeObject *code)
{
    compat_frame *frame = compat_frame_of(thread->state);
    if (LIKELY(frame != NULL && compat_frame_runs(frame, code)))
        return frame;
    return hook_frame_asked(thread, code);
}

HOT uint64_t hook_now(const struct thread *thread)
{
    uint64_t now = clock_units(hook.clock_kind, hook.clock_shift);
    return LIKELY(now >= thread->stream.time) ? now : hook_now_behind(thread);
}

/* With --repr the program's code runs while a record is being written, and may end this thread's chunk: another
 * thread ends the recording, or the process forks. */
HOT uint8_t *hook_reserve(struct thread *thread, size_t size, size_t least)
{
    struct stream *stream = &thread->stream;
    if (LIKELY((size_t)(stream->end - stream->next) >= size) && LIKELY(!values_config.repr))
        return stream->next;
    return hook_room(thread, size, least);
}

/* What a record makes do with where large chunks are scarce: it may take `room` bytes, and needs `needed` for its
 * values however they are cut. */
HOT size_t hook_least(size_t room, size_t needed)
{
    size_t small = RING_SMALL_RECORD - EVENT_HEAD_MAX; /* a lost record may come before it */
    size_t least = needed > small ? needed : small;
    return least < room ? least : room;
}

/* Where a record has to end that was given `size` bytes, or fewer; in memory of its own, which is far from any
 * chunk, all of them. */
HOT uint8_t *hook_end(const struct thread *thread, uint8_t *record, size_t size)
{
    size_t left = (uintptr_t)thread->stream.end - (uintptr_t)record;
    return record + (LIKELY(size <= left) ? size : left) - WIRE_CLOSE_MAX;
}

/* The fields that every record begins with: kind, code, time. Returns the position behind them. */
HOT uint8_t *hook_head(uint8_t *p, const struct code_info *info, enum event_kind kind, uint64_t delta)
{
    memcpy(p, info->head, 8);
    if (kind != EVENT_CALL)
        p[CODE_HEAD_KIND] = (uint8_t)WIRE_TAG(kind, WIRE_VARINT);
    return wire_put_short(p + info->head_size, delta);
}

HOT void hook_commit(struct thread *thread, uint8_t *record, uint8_t *p, uint64_t now)
{
    if (UNLIKELY(record != thread->stream.next)) {
        hook_commit_copy(thread, record, p, now);
        return;
    }
    thread->stream.time = now;
    stream_commit(&thread->stream, event_close(record, p));
}

HOT uint8_t *hook_arguments(uint8_t *p, uint8_t *end, const struct code_info *info, const compat_frame *frame)
{
    unsigned count = info->argument_count;
    const struct argument *argument = info->arguments;
    for (; count > 0; count--, argument++) {
        PyObject *object = compat_frame_local(frame, argument->slot);
        if (UNLIKELY(argument->special || object == NULL)) {
            if (object != NULL && argument->cell && PyCell_Check(object))
                object = PyCell_GET(object);
            if (object == NULL || argument->redacted) {
                p = object == NULL ? values_put_constant(p, EVENT_VALUE, CONSTANT_UNBOUND)
                                   : values_put_redacted(p, EVENT_VALUE, object);
                continue;
            }
        }
        /* what follows must have its minimum too */
        p = values_put_fast(p, end - (count - 1) * VALUE_ROOM_MIN, EVENT_VALUE, object);
    }
    return p;
}

/* A call begins (call), or goes on (resume, throw with its exception). */
HOT void hook_enter(struct thread *thread, PyCodeObject *code, struct code_info *info, const compat_frame *frame,
                    enum event_kind kind, PyObject *exception)
{
    if (UNLIKELY(info->coroutine) && frame != NULL)
        hook_coroutine_entered(thread, frame);
    uint64_t now = hook_now(thread);
    if (UNLIKELY(thread->top == thread->end) && !hook_grow(thread))
        return;
    struct open_call *call = thread->top;
    size_t room = kind == EVENT_CALL ? info->room : HOOK_ROOM_FOR_VALUE;
    size_t least = hook_least(room, EVENT_HEAD_MAX + info->argument_count * (size_t)VALUE_ROOM_MIN);
    uint8_t *record = hook_reserve(thread, room, kind == EVENT_CALL ? least : room);
    if (LIKELY(record != NULL)) {
        uint8_t *p = hook_head(record, info, kind, now - thread->stream.time);
        if (kind == EVENT_CALL && LIKELY(frame != NULL))
            p = hook_arguments(p, hook_end(thread, record, room), info, frame);
        else if (kind == EVENT_THROW && exception != NULL)
            p = values_put(p, record + room - WIRE_CLOSE_MAX, EVENT_VALUE, exception);
        hook_commit(thread, record, p, now);
    }
    call->code = code;
    call->start = kind == EVENT_CALL ? now : hook_generator_start(frame);
    call->since = now;
    thread->top = call + 1;
    thread->stream.depth++;
}

/* A value that was written down when it was within reach. */
struct encoded {
    size_t size;
    uint8_t bytes[]; /* with tag and length */
};

/* The innermost call ends (return, exception) or is suspended (yield), at `now`. Its value is `value`, or
 * else `encoded`; both may be NULL. `depth_changed`: calls above it were forgotten before. */
HOT void hook_leave(struct thread *thread, struct open_call *call, const struct code_info *info,
                    enum event_kind kind, PyObject *value, const struct encoded *encoded, bool depth_changed,
                    uint64_t now)
{
    uint64_t from = kind == EVENT_YIELD ? call->since : call->start;
    uint8_t *record = hook_reserve(thread, HOOK_ROOM_FOR_VALUE, HOOK_ROOM_FOR_VALUE);
    if (LIKELY(record != NULL)) {
        uint64_t delta = now - thread->stream.time, elapsed = now - from;
        uint8_t *p = hook_head(record, info, kind, delta);
        if (elapsed != delta) {
            if (UNLIKELY(from == 0 || elapsed == 0)) /* not known; none, behind records that were lost */
                elapsed = from != 0;
            *p = WIRE_TAG(EVENT_ELAPSED, WIRE_VARINT);
            p = wire_put_short(p + 1, elapsed);
        }
        if (UNLIKELY(depth_changed))
            p = event_put_depth(p, thread->stream.depth);
        if (LIKELY(hook.values || kind == EVENT_EXCEPTION) && value != NULL)
            p = values_put_fast(p, record + HOOK_ROOM_FOR_VALUE - WIRE_CLOSE_MAX, EVENT_VALUE, value);
        else if (encoded != NULL)
            p = (uint8_t *)memcpy(p, encoded->bytes, encoded->size) + encoded->size;
        hook_commit(thread, record, p, now);
    }
    thread->top = call;
    thread->stream.depth--;
    stream_went_down(&thread->stream);
}

/* ---- as the front ends call them ---------------------------------------------------------- */

/* An end that is not the innermost recorded call's: calls above it ended unseen, or its own beginning
 * was not recorded. */
void hook_leave_other(struct thread *thread, PyCodeObject *code, struct code_info *info, const compat_frame *frame,
                      enum event_kind kind, PyObject *value, const struct encoded *encoded, uint64_t now);

/* The call of `code`, which `frame` runs, ends or is suspended at `now`. */
HOT void hook_leave_code(struct thread *thread, PyCodeObject *code, struct code_info *info,
                         const compat_frame *frame, enum event_kind kind, PyObject *value,
                         const struct encoded *encoded, uint64_t now)
{
    struct open_call *call = thread->top - 1;
    if (UNLIKELY(call->code != code)) {
        hook_leave_other(thread, code, info, frame, kind, value, encoded, now);
        return;
    }
    if (UNLIKELY(info->generator)) {
        if (kind != EVENT_YIELD)
            hook_generator_ended(frame ? frame : hook_frame(thread, code));
        else if (call->since == call->start)
            hook_generator_suspended(frame ? frame : hook_frame(thread, code), call->start);
    }
    hook_leave(thread, call, info, kind, value, encoded, false, now);
    if (UNLIKELY(info->coroutine))
        hook_coroutine_left(thread);
}

/* Not everything stands ready: makes the code's info and *thread, and returns the info where the event
 * is to be recorded, else NULL. An event in a @notrace function counts it in (notrace +1) or out (-1).
 * *out_of_scope: the code is, and will be. */
struct code_info *hook_prepare(PyCodeObject *code, PyObject *globals, int notrace, struct thread **thread,
                               bool *out_of_scope);

/* An exception starts or arrives in a function. `keep`: where to write the exception down as well, with
 * HOOK_ROOM_FOR_VALUE bytes; or NULL. */
void hook_raise(struct thread *thread, struct code_info *info, PyObject *exception, int line, uint64_t now,
                struct encoded *keep);
/* log(text, **values): values in the order of names (a tuple of str). */
int hook_log(PyObject *text, PyObject *const *values, PyObject *names);

/* ---- begin and end ------------------------------------------------------------------------ */

/* Makes this process's part of the recording ready; session_join has been called. 0 or -1. */
int hook_open(bool values);
/* Seals all streams of the process. */
void hook_close(void);
/* In a forked child: makes it a process of the recording, once, at the latest before its first record.
 * Returns whether this process, forked or not, records. */
bool hook_forked(void);

/* The front end for this Python: begins to listen; with `gate` the program's own first event opens
 * the recording, so that site and what it imports stay out of it. 0 or -1 with a Python exception. */
int hook_listen(bool gate);
int hook_deafen(void);
/* A thread is freed: what the front end keeps for it. */
void hook_forget_thread(struct thread *thread);
/* Another greenlet runs on this thread: what the front end keeps goes from one lane to the other. */
void hook_switch(struct thread *from, struct thread *to);

/* ---- between hook.c and lanes.c ----------------------------------------------------------- */

/* A struct thread with a stream, in the list of all; NULL where memory is short or
 * nothing is recorded. tid: the operating system's. */
struct thread *hook_thread_opened(uint64_t tid);
/* The interpreter's state of this thread, which *thread remembers. */
PyThreadState *hook_remember(struct thread *thread);
/* Forgets the open calls from `top` on, whose ends will not be seen. */
void hook_forget_calls(struct thread *thread, struct open_call *top);
/* The lanes on a thread of the operating system, one by one from NULL to NULL. */
struct thread *hook_next_lane(struct thread *thread, struct thread *lane);
/* A lane is freed, and all that are beside it. */
void hook_forget_lane(struct thread *lane);
/* Are they on the same one? */
bool hook_is_beside(const struct thread *thread, const struct thread *other);

/* True while `site` is still setting up this interpreter. */
bool hook_in_site(const compat_frame *frame);

#endif
