/* Recording: from "this function was called" to a record in the ring. Each file uses only the files
 * below it:
 *
 *   module                                     the functions for Python code
 *   monitoring (3.12+), profile (3.11)         the interpreter's reports: front ends
 *   closed, cython                             generators that end unseen; Cython's functions
 *   c_calls                                    functions in C
 *   hook                                       a record for each event          <- here
 *   lines, variables, native                   what a function does between these events
 *   records                                    a record's time, and its room in a chunk
 *   greenlets, task                            the stack of calls, the task of an event
 *   thread                                     open calls, stream, and chunk of each thread
 *   codes, values, generators                  scope, arguments; objects; suspended frames
 *   attributes                                 of objects
 *   types, define, secrets                     numbers and what they mean
 *   lookup, text, session, pycompat            names without running code; UTF-8; process; CPython
 *   writers, got                               who writes a record; entries of functions
 *
 * The hot path is in this header, in line: no allocation, no formatting, no system call, no lock.
 * hook.c has the rare paths (a thread's first event, a code's first event, a full chunk). All of it
 * runs under the GIL, but each thread writes to a stream of its own.
 */
#ifndef PYTRACE_HOOK_H
#define PYTRACE_HOOK_H

#include "record/generators.h"
#include "record/greenlets.h"
#include "record/lines.h"
#include "record/records.h"

/* ---- seldom (hook.c) ---------------------------------------------------------------------- */

/* This thread, made at its first event; NULL if memory is short or nothing is recorded. */
struct thread *hook_thread_made(void);
/* Counts a @notrace function in (+1) or out (-1). */
void hook_suppress(struct thread *thread, int change);
/* At a thread's first event since recording began, or began again: counts open @notrace functions.
 * `begins`: code that the innermost frame runs and that is not open yet; or NULL. */
void hook_look(struct thread *thread, const PyCodeObject *begins);
/* ---- the hot path ------------------------------------------------------------------------- */

/* The struct thread for this event: that of the greenlet that runs. The first event in a chunk of a
 * data stack is the start of a call, or of a generator's turn. At such events (`begins`) it checks
 * that the chunk has not become a part of another stack. */
HOT struct thread *hook_here(bool begins)
{
    struct thread *thread = current_thread;
    const _PyStackChunk *chunk = thread_state()->datastack_chunk;
    if (UNLIKELY(chunk != thread->stack[0] || (begins && chunk->previous != thread->stack[1])))
        return greenlets_current(thread);
    return thread;
}

/* The current frame, which runs `code`; NULL if C code reports the event. */
HOT compat_frame *hook_frame(const PyCodeObject *code)
{
    compat_frame *frame = compat_frame_of(thread_state());
    return LIKELY(frame != NULL && compat_frame_runs(frame, code)) ? frame : NULL;
}

/* Around what is recorded of Python, while native functions are recorded, too. Begin returns what
 * end is to be given. */
HOT bool hook_begin_writing(void) { return UNLIKELY(recorder.native) && !thread_begin_writing(); }
HOT void hook_end_writing(bool began)
{
    if (UNLIKELY(began))
        writer_end();
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
        /* the other values need their minimum, too */
        p = values_put_fast(p, end - (count - 1) * VALUE_ROOM_MIN, EVENT_VALUE, object);
    }
    return p;
}

/* A call begins (call), or goes on (resume, throw with its exception). */
HOT void hook_enter(struct thread *thread, PyCodeObject *code, struct code_info *info, const compat_frame *frame,
                    enum event_kind kind, PyObject *exception)
{
    if (UNLIKELY(info->coroutine) && frame != NULL)
        task_coroutine_entered(thread, frame);
    uint64_t now = record_now(thread);
    if (UNLIKELY(thread->top == thread->end) && !thread_grow(thread))
        return;
    size_t room = kind == EVENT_CALL ? info->room : RECORD_ROOM_FOR_VALUE;
    size_t least = record_least(room, EVENT_HEAD_MAX + info->argument_count * (size_t)VALUE_ROOM_MIN);
    struct place place = record_reserve(thread, room, kind == EVENT_CALL ? least : room);
    ptrdiff_t values = -1; /* bytes */
    if (LIKELY(place.start != NULL)) {
        uint8_t *p = record_head(place.start, info, kind, now - thread->stream.time);
        if (UNLIKELY(info->lines) && kind != EVENT_CALL)
            p = lines_put_resumed(p, info, frame);
        const uint8_t *head_end = p;
        if (kind == EVENT_CALL && LIKELY(frame != NULL))
            p = hook_arguments(p, place.end - WIRE_CLOSE_MAX, info, frame);
        else if (kind == EVENT_THROW && exception != NULL)
            p = values_put(p, place.end - WIRE_CLOSE_MAX, EVENT_VALUE, exception);
        values = p - head_end;
        record_commit(thread, place.start, p, now);
    }
    struct open_call *call = thread->top;
    call->code = code;
    call->start = kind == EVENT_CALL ? now : generators_start(frame);
    call->since = now;
    thread->top = call + 1;
    thread->stream.depth++;
    if (LIKELY(!info->lines))
        return;
    if (kind == EVENT_CALL)
        lines_began(thread, call, info, frame, values);
    else
        lines_resumed(call, info, frame);
}

/* A value that was encoded while it was within reach. */
struct encoded {
    size_t size;
    uint8_t bytes[]; /* with tag and length */
};

/* The innermost call ends (return, exception) or is suspended (yield), at `now`. Its value is
 * `value`, or else `encoded`; both may be NULL. `depth_changed`: calls above it were forgotten
 * before. */
HOT void hook_leave(struct thread *thread, struct open_call *call, const struct code_info *info,
                    enum event_kind kind, PyObject *value, const struct encoded *encoded, bool depth_changed,
                    uint64_t now)
{
    uint64_t from = kind == EVENT_YIELD ? call->since : call->start;
    struct place place = record_reserve(thread, RECORD_ROOM_FOR_VALUE, RECORD_ROOM_FOR_VALUE);
    if (LIKELY(place.start != NULL)) {
        uint64_t delta = now - thread->stream.time, elapsed = now - from;
        uint8_t *p = record_head(place.start, info, kind, delta);
        if (elapsed != delta) {
            /* 0: not known; no time: right behind lost records */
            if (UNLIKELY(from == 0 || elapsed == 0))
                elapsed = from != 0;
            *p = WIRE_TAG(EVENT_ELAPSED, WIRE_VARINT);
            p = wire_put_short(p + 1, elapsed);
        }
        if (UNLIKELY(depth_changed))
            p = event_put_depth(p, thread->stream.depth);
        if (UNLIKELY(info->lines) && kind == EVENT_YIELD)
            p = lines_put_suspended(p, call, info);
        if (LIKELY(recorder.values || kind == EVENT_EXCEPTION) && value != NULL)
            p = values_put_fast(p, place.end - WIRE_CLOSE_MAX, EVENT_VALUE, value);
        else if (encoded != NULL)
            p = (uint8_t *)memcpy(p, encoded->bytes, encoded->size) + encoded->size;
        record_commit(thread, place.start, p, now);
    }
    thread->top = call;
    thread->stream.depth--;
    stream_went_down(&thread->stream);
}

/* ---- as the front ends call them ---------------------------------------------------------- */

/* What an open call has of a code object. */
HOT PyCodeObject *hook_mark(PyCodeObject *code, const struct code_info *info)
{
    return (PyCodeObject *)((uintptr_t)code | (info->cython ? CALL_OF_CYTHON : 0));
}

/* An end that is not the innermost recorded call's: calls above it ended unseen, or its own
 * beginning was not recorded. And the ends of Cython's functions. */
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
    if (UNLIKELY(info->lines))
        lines_before_end(thread, call, info, frame ? frame : hook_frame(code), now);
    if (UNLIKELY(info->generator)) {
        if (kind != EVENT_YIELD)
            generators_ended(frame ? frame : hook_frame(code), NULL);
        else if (call->since == call->start)
            generators_suspended(frame ? frame : hook_frame(code), call->start);
    }
    hook_leave(thread, call, info, kind, value, encoded, false, now);
    if (UNLIKELY(info->lines) && kind == EVENT_YIELD)
        lines_suspended(call, frame ? frame : hook_frame(code));
    if (UNLIKELY(info->coroutine))
        task_coroutine_left(thread);
}

/* Not everything is ready: makes the code's info and *thread. Returns the info if the event is to
 * be recorded, else NULL. An event in a @notrace function counts it in (notrace +1) or out (-1).
 * *out_of_scope: the code is, and will be. */
struct code_info *hook_prepare(PyCodeObject *code, PyObject *globals, int notrace, struct thread **thread,
                               bool *out_of_scope);

/* An exception starts or arrives in a function. `keep`: also encode the exception there, in
 * RECORD_ROOM_FOR_VALUE bytes; or NULL. */
void hook_raise(struct thread *thread, struct code_info *info, PyObject *exception, int line, uint64_t now,
                struct encoded *keep);
/* log(text, **values): values in the order of names (a tuple of str). */
void hook_log(PyObject *text, PyObject *const *values, PyObject *names);

/* ---- begin and end ------------------------------------------------------------------------ */

/* Makes this process's part of the recording ready; session_join has been called. values,
 * cpu: they are recorded. 0, or -1 with a Python exception. */
int hook_open(const struct front_end *front_end, bool values, bool cpu);
/* Seals all streams of the process. False: as threads_close. */
bool hook_close(void);
/* Python is finalized: no thread records any more. */
void hook_finalized(void);
/* True while `site` is still setting up this interpreter. */
bool hook_in_site(const compat_frame *frame);

#endif
