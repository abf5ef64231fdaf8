/* Recording: the rare paths. hook.h has the hot path, and the order of the parts. */

#include "record/hook.h"

#include "record/define.h"
#include "record/native.h"
#include "record/secrets.h"
#include "record/session.h"
#include "record/stats.h"
#include "record/text.h"

/* ---- threads ------------------------------------------------------------------------------ */

void hook_suppress(struct thread *thread, int change)
{
    if (change > 0)
        thread->suppressed++;
    else if (change < 0 && thread->suppressed)
        thread->suppressed--;
    thread_update_ready(thread);
}

void hook_look(struct thread *thread, const PyCodeObject *begins)
{
    STAT(thread_looked);
    const compat_frame *frame = compat_frame_of(thread_state());
    if (begins != NULL && frame != NULL && compat_frame_runs(frame, begins))
        frame = frame->previous;
    thread->suppressed = 0;
    for (; frame != NULL; frame = frame->previous) {
        PyCodeObject *code = compat_frame_code(frame);
        const struct code_info *info = code != NULL ? codes_info(code) : NULL;
        thread->suppressed += info != NULL && info->notrace;
    }
    thread->looked = true;
    thread_update_ready(thread);
}

struct thread *hook_thread_made(void)
{
    if (!thread_is_nobody(current_thread))
        return hook_here(true);
    struct thread *thread = threads_forked() ? thread_make_current() : NULL;
    return thread != NULL ? greenlets_current(thread) : NULL;
}

/* ---- events that are out of the ordinary -------------------------------------------------- */

void hook_leave_other(struct thread *thread, PyCodeObject *code, struct code_info *info, const compat_frame *frame,
                      enum event_kind kind, PyObject *value, const struct encoded *encoded, uint64_t now)
{
    struct open_call *call = thread->top - 1;
    code = hook_mark(code, info);
    if (call->code != code)
        STAT(end_out_of_order);
    if (info->generator && kind != EVENT_YIELD)
        generators_ended(frame ? frame : hook_frame(code), NULL);
    while (call > thread->calls && call->code != code && !(info->cython && call_is_of_python(call)))
        call--;
    if (info->cython && call->code != code)
        return; /* told twice: see cython.h */
    bool depth_changed = true;
    if (call > thread->calls) {
        depth_changed = call + 1 < thread->top && native_leave_all(thread, call + 1, now);
    } else { /* as if its call had been recorded, at an unknown time */
        if (thread->top == thread->end && !thread_grow(thread))
            return;
        call = thread->top++;
        call->code = code;
        call->start = call->since = 0;
        thread->stream.depth++;
    }
    if (info->lines && frame != NULL)
        lines_before_end(thread, call, info, frame, now);
    hook_leave(thread, call, info, kind, value, encoded, depth_changed, now);
    task_coroutine_left(thread); /* perhaps among those forgotten */
}

struct code_info *hook_prepare(PyCodeObject *code, PyObject *globals, int notrace, struct thread **thread,
                               bool *out_of_scope)
{
    STAT(event_prepared);
    *out_of_scope = false;
    if (!threads_forked())
        return NULL;
    struct code_info *info = codes_resolve(code, globals);
    if (info != NULL && info->scope == SCOPE_OUT) {
        STAT(event_out_of_scope);
        *out_of_scope = true;
        return NULL;
    }
    if ((*thread = hook_thread_made()) == NULL)
        return NULL;
    if (!(*thread)->looked)
        hook_look(*thread, notrace > 0 ? code : NULL);
    if (info == NULL)
        stream_drop(&(*thread)->stream);
    else if (info->scope == SCOPE_NOTRACE)
        hook_suppress(*thread, notrace);
    else if ((*thread)->ready)
        return info;
    STAT(event_passed_over);
    return NULL;
}

void hook_raise(struct thread *thread, struct code_info *info, PyObject *exception, int line, uint64_t now,
                struct encoded *keep)
{
    struct place place = record_reserve(thread, RECORD_ROOM_FOR_VALUE, RECORD_ROOM_FOR_VALUE);
    if (keep != NULL)
        keep->size = 0;
    if (place.start == NULL)
        return;
    uint8_t *p = record_head(place.start, info, EVENT_RAISE, now - thread->stream.time);
    if (line > 0)
        p = event_put(p, EVENT_LINE, (uint64_t)line);
    if (exception != NULL) {
        uint8_t *value = p;
        p = values_put(p, place.end - WIRE_CLOSE_MAX, EVENT_VALUE, exception);
        if (keep != NULL)
            memcpy(keep->bytes, value, keep->size = (size_t)(p - value));
    }
    record_commit(thread, place.start, p, now);
}

static void log_now(PyObject *text, PyObject *const *values, PyObject *names)
{
    compat_frame *frame = compat_current_frame();
    PyCodeObject *code = frame != NULL ? compat_frame_code(frame) : NULL;
    struct thread *thread = code != NULL && threads_forked() ? hook_thread_made() : NULL;
    /* Inside of a callback, such as a __repr__ with --repr, a record of this thread is half
     * written. */
    if (thread == NULL || compat_thread_state()->tracing)
        return;
    if (!thread->looked)
        hook_look(thread, NULL);
    if (!thread->ready)
        return;
    struct code_info *info = codes_resolve(code, frame->f_globals);
    if (info == NULL || !codes_define(code, info, frame->f_globals)) {
        stream_drop(&thread->stream);
        return;
    }
    uint64_t now = record_now(thread);
    size_t count = names != NULL ? (size_t)PyTuple_GET_SIZE(names) : 0, name_max = 200;
    size_t room = EVENT_HEAD_MAX + values_config.most + (count + 1) * (values_config.most + VALUE_ROOM_MIN + name_max);
    if (room > RING_MIN_CHUNK_SIZE / 2 - EVENT_HEAD_MAX)
        room = RING_MIN_CHUNK_SIZE / 2 - EVENT_HEAD_MAX;
    if (count > 64) /* so many short values fit */
        count = 64;
    size_t least = record_least(room, EVENT_HEAD_MAX + (count + 1) * VALUE_ROOM_MIN + count * (name_max + 4));
    struct place place = record_reserve(thread, room, least);
    if (place.start == NULL)
        return;
    PyThreadState *state = compat_thread_state();
    PyThreadState_EnterTracing(state); /* no event while the record is half written */
    uint8_t *p = record_head(place.start, info, EVENT_LOG, now - thread->stream.time);
    int line = codes_line(info, code, compat_frame_offset(frame, code));
    if (line > 0)
        p = event_put(p, EVENT_LINE, (uint64_t)line);
    uint8_t *end = place.end - WIRE_CLOSE_MAX - count * (name_max + 4);
    p = values_put(p, end - count * VALUE_ROOM_MIN, EVENT_VALUE, text);
    for (size_t i = 0; i < count; i++)
        p = secrets_match(PyTuple_GET_ITEM(names, (Py_ssize_t)i))
                ? values_put_redacted(p, EVENT_VALUE, values[i])
                : values_put(p, end - (count - 1 - i) * VALUE_ROOM_MIN, EVENT_VALUE, values[i]);
    for (size_t i = 0; i < count; i++) {
        char name[200];
        p = wire_put_bytes(p, EVENT_NAME, name,
                           text_qualified(name, name_max, NULL, PyTuple_GET_ITEM(names, (Py_ssize_t)i)));
    }
    PyThreadState_LeaveTracing(state);
    record_commit(thread, place.start, p, now);
}

void hook_log(PyObject *text, PyObject *const *values, PyObject *names)
{
    bool began = hook_begin_writing();
    log_now(text, values, names);
    hook_end_writing(began);
}

/* ---- begin and end ------------------------------------------------------------------------ */

static bool finalized; /* no Python code runs any more */

bool hook_close(void)
{
    bool all = threads_close();
    native_end();
    generators_forget();
    return all;
}

/* The process ends. If C code calls exit() (in another thread, in a signal handler), Python's
 * threads still run, and one may be in the middle of a record. Their streams stay theirs, and the
 * dumper takes the published records. */
static bool before_leave(bool alone)
{
    bool all = finalized ? hook_close() : threads_stop(alone);
    return all && (alone || finalized);
}

void hook_finalized(void) { finalized = true; }

int hook_open(const struct front_end *front_end, bool values, bool cpu)
{
    static bool prepared;
    struct ring *ring = session_ring();
    if (ring == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "pytrace: no recording has been joined");
        return -1;
    }
    if (threads_open(front_end) < 0)
        return -1;
    if (!prepared)
        define_open(ring, session_process());
    prepared = true;
    session_before_leave = before_leave;
    recorder.clock_kind = ring_clock_kind(ring);
    recorder.clock_shift = ring_clock_shift(ring);
    recorder.cpu = cpu;
    recorder.ticks = !cpu && recorder.clock_kind == CLOCK_TICKS;
    recorder.values = values;
    recorder.on = true;
    threads_forked();
    return 0;
}

bool hook_in_site(const compat_frame *frame)
{
    for (; frame != NULL; frame = frame->previous) {
        PyCodeObject *code = compat_frame_code(frame);
        if (code == NULL || !PyUnicode_Check(code->co_filename))
            continue;
        Py_ssize_t size;
        const char *name = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
        if (name == NULL)
            PyErr_Clear();
        else if (strcmp(name, "<frozen site>") == 0 || (size >= 8 && strcmp(name + size - 8, "/site.py") == 0))
            return true;
    }
    return false;
}
