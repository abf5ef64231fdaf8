/* Recording: what happens seldom. hook.h has the hot path and tells how the parts lie together. */

#include "hook.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session.h"
#include "task.h"

struct hook hook;
static _PyStackChunk no_chunk;
#if PY_VERSION_HEX < 0x030D0000
static _PyCFrame no_cframe;
PyThreadState hook_no_state = {.cframe = &no_cframe, .datastack_chunk = &no_chunk};
#else
PyThreadState hook_no_state = {.datastack_chunk = &no_chunk};
#endif
static struct open_call no_calls[2];
static struct thread no_thread = {
    .looked = true, .top = no_calls + 1, .calls = no_calls, .end = no_calls + 1, .state = &hook_no_state,
    .stack = {&no_chunk}};
_Thread_local struct thread *hook_thread __attribute__((tls_model("initial-exec"))) = &no_thread;

/* ---- threads ------------------------------------------------------------------------------ */

/* A thread ends without the GIL, so that the list has a lock of its own. */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *threads;
static size_t thread_count;
static pthread_key_t thread_key; /* only for its destructor */

static bool close_stream(struct thread *thread);
static void hold_no_more(struct thread *thread);

static void free_thread(struct thread *thread)
{
    hook_forget_thread(thread);
    PyMem_RawFree(thread->tasks);
    hook_forget_lane(thread);
    if (thread->calls != thread->first)
        PyMem_RawFree(thread->calls);
    PyMem_RawFree(thread);
}

/* The thread ends: its streams are given back. */
static void thread_ended(void *pointer)
{
    struct thread *first = pointer;
    pthread_mutex_lock(&threads_lock);
    for (struct thread *lane = hook_next_lane(first, NULL); lane != NULL; lane = hook_next_lane(first, lane)) {
        thread_count--;
        *lane->previous = lane->next;
        if (lane->next != NULL)
            lane->next->previous = lane->previous;
        if (hook.recording)
            close_stream(lane);
        hold_no_more(lane);
    }
    pthread_mutex_unlock(&threads_lock);
    hook_thread = &no_thread;
    for (struct thread *lane = hook_next_lane(first, NULL), *next; lane != NULL; lane = next) {
        next = hook_next_lane(first, lane);
        free_thread(lane);
    }
}

static const char state_key[] = "pytracer.state";

/* A thread state is cleared, and its dictionary with this capsule in it, perhaps by another thread: who
 * remembers the state must not use it any more. */
static void state_cleared(PyObject *capsule)
{
    const PyThreadState *state = PyCapsule_GetPointer(capsule, state_key);
    pthread_mutex_lock(&threads_lock);
    for (struct thread *thread = threads; thread != NULL; thread = thread->next)
        if (thread->state == state) {
            thread->state = &hook_no_state;
            thread->cleared = state->id;
        }
    pthread_mutex_unlock(&threads_lock);
}

PyThreadState *hook_remember(struct thread *thread)
{
    PyThreadState *state = compat_thread_state();
    /* What is cleared behind the dictionary may run functions of the program yet. */
    if (thread->state != state && thread->cleared != state->id) {
        PyObject *dict = PyThreadState_GetDict();
        PyObject *capsule = dict != NULL ? PyCapsule_New(state, state_key, state_cleared) : NULL;
        if (capsule != NULL && PyDict_SetItemString(dict, state_key, capsule) == 0)
            thread->state = state;
        else
            PyErr_Clear();
        Py_XDECREF(capsule);
    }
    return state;
}

compat_frame *hook_frame_asked(struct thread *thread, const PyCodeObject *code)
{
    compat_frame *frame = compat_frame_of(hook_remember(thread));
    return frame != NULL && compat_frame_runs(frame, code) ? frame : NULL;
}

static void make_ready(struct thread *thread)
{
    thread->ready = hook.recording && thread->looked && !thread->suppressed;
}

void hook_suppress(struct thread *thread, int change)
{
    if (change > 0)
        thread->suppressed++;
    else if (change < 0 && thread->suppressed)
        thread->suppressed--;
    make_ready(thread);
}

void hook_look(struct thread *thread, const PyCodeObject *begins)
{
    const compat_frame *frame = compat_frame_of(hook_remember(thread));
    if (begins != NULL && frame != NULL && compat_frame_runs(frame, begins))
        frame = frame->previous;
    thread->suppressed = 0;
    for (; frame != NULL; frame = frame->previous) {
        PyCodeObject *code = compat_frame_code(frame);
        const struct code_info *info = code != NULL ? codes_info(code) : NULL;
        thread->suppressed += info != NULL && info->notrace;
    }
    thread->looked = true;
    make_ready(thread);
}

static void add_thread(struct thread *thread)
{
    thread->next = threads;
    thread->previous = &threads;
    if (threads != NULL)
        threads->previous = &thread->next;
    threads = thread;
    thread_count++;
}

struct thread *hook_thread_opened(uint64_t tid)
{
    if (!hook_forked() || session_ring() == NULL)
        return NULL;
    struct thread *thread = PyMem_RawCalloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    thread->calls = thread->first;
    thread->top = thread->calls + 1;
    thread->end = thread->calls + FIRST_CALLS;
    thread->state = &hook_no_state;
    stream_open(&thread->stream, session_ring(), session_process(), tid, CHUNK_EVENTS);
    thread->stream.time = ring_clock_units(session_ring());
    pthread_mutex_lock(&threads_lock);
    add_thread(thread);
    pthread_mutex_unlock(&threads_lock);
    return thread;
}

struct thread *hook_thread_made(void)
{
    if (hook_thread != &no_thread)
        return hook_here(true);
    struct thread *thread = hook_thread_opened((uint64_t)syscall(SYS_gettid));
    if (thread == NULL)
        return NULL;
    if (pthread_setspecific(thread_key, thread) != 0) { /* nobody would tell when it ends */
        thread_ended(thread);
        return NULL;
    }
    hook_thread = thread;
    return hook_lane(thread);
}

void hook_forget_calls(struct thread *thread, struct open_call *top)
{
    if (top == thread->top)
        return;
    pthread_mutex_lock(&threads_lock);
    stream_close(&thread->stream); /* the next chunk's header has the depth */
    hold_no_more(thread);
    pthread_mutex_unlock(&threads_lock);
    thread->stream.depth -= (int32_t)(thread->top - top);
    thread->top = top;
    hook_coroutine_left(thread);
}

uint64_t hook_now_behind(const struct thread *thread)
{
    uint64_t now = ring_clock_units(session_ring());
    return now > thread->stream.time ? now : thread->stream.time;
}

bool hook_grow(struct thread *thread)
{
    size_t size = (size_t)(thread->end - thread->calls), used = (size_t)(thread->top - thread->calls);
    struct open_call *own = thread->calls != thread->first ? thread->calls : NULL;
    struct open_call *calls = PyMem_RawRealloc(own, size * 2 * sizeof *calls);
    if (calls == NULL)
        return false;
    if (own == NULL)
        memcpy(calls, thread->first, sizeof thread->first);
    thread->calls = calls;
    thread->top = calls + used;
    thread->end = calls + size * 2;
    return true;
}

/* What threading.Thread calls this thread, as far as it can be read without running code of the
 * program: from the object in threading._active, or the one whose _bootstrap runs right now. */
static PyObject *thread_object(PyObject *threading)
{
    static PyObject *key;
    PyObject *active = codes_item(threading, &key, "_active"), *thread = NULL;
    PyObject *ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    if (ident == NULL)
        PyErr_Clear();
    else if (active != NULL && PyDict_CheckExact(active))
        thread = PyDict_GetItem(active, ident);
    Py_XDECREF(ident);
    if (thread != NULL)
        return thread;
    compat_frame *frame = compat_current_frame();
    PyCodeObject *code = frame != NULL ? compat_frame_code(frame) : NULL;
    if (code != NULL && code->co_argcount == 1 &&
        PyUnicode_CompareWithASCIIString(code->co_qualname, "Thread._bootstrap") == 0)
        return compat_frame_local(frame, 0);
    return NULL;
}

static size_t thread_name(char *name, size_t size)
{
    static const char main_thread[] = "MainThread";
    static PyObject *threading_key, *name_key;
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = modules != NULL ? codes_item(modules, &threading_key, "threading") : NULL;
    PyObject *object = module != NULL && PyModule_Check(module) ? thread_object(PyModule_GetDict(module)) : NULL;
    if (object != NULL) {
        PyObject *dict = PyObject_GenericGetDict(object, NULL);
        if (dict == NULL)
            PyErr_Clear();
        size_t length = dict != NULL && PyDict_Check(dict)
                            ? codes_qualified(name, size, NULL, codes_item(dict, &name_key, "_name"))
                            : 0;
        Py_XDECREF(dict);
        if (length)
            return length;
    }
    if (syscall(SYS_gettid) != getpid())
        return 0;
    memcpy(name, main_thread, sizeof main_thread - 1);
    return sizeof main_thread - 1;
}

/* ---- chunks ------------------------------------------------------------------------------- */

#define DUMPER_CHECK_UNITS (1u << 22) /* some 20 ms: no more often is the dumper looked for */

/* The record that tells of a loss, at `p`, which has room for it. Returns where the next one goes. */
static uint8_t *put_lost(struct thread *thread, uint8_t *p, uint64_t now)
{
    struct stream *stream = &thread->stream;
    uint8_t *end = event_open(p, EVENT_LOST, stream->lost);
    end = event_put(end, EVENT_TIME, now - stream->time);
    stream->lost = 0;
    hook_commit(thread, p, end, now);
    return stream->next;
}

/* A thread keeps its chunk while it waits for something, and there may be more threads than chunks.
 * So whoever claims one in a ring that is well in use seals those that have been idle for longest: whoever
 * had it claims another with its next record. They stand in a queue; who has recorded something since it
 * was put there goes to its end once more. All of it under the GIL, which a thread holds
 * while it writes a record; and under threads_lock, because a thread ends without the GIL. */
static struct thread *oldest, *newest;
static size_t held; /* how many they are */

static void hold_no_more(struct thread *thread)
{
    if (!thread->holds)
        return;
    *(thread->older != NULL ? &thread->older->newer : &oldest) = thread->newer;
    *(thread->newer != NULL ? &thread->newer->older : &newest) = thread->older;
    thread->older = thread->newer = NULL;
    thread->holds = false;
    held--;
}

static void hold(struct thread *thread)
{
    hold_no_more(thread);
    thread->holds = true;
    held++;
    thread->held_time = thread->stream.time;
    thread->older = newest;
    *(newest != NULL ? &newest->newer : &oldest) = thread;
    newest = thread;
}

#define GIVE_BACK 2 /* chunks, for each one claimed: so that their number goes down */
#define LOOK_AT 16  /* that many, at most, for it */
/* No more threads than this keep theirs, while each finds one: where they take turns, each sealed chunk would be
 * another that waits for the dumper, nearly empty. */
#define MAY_ALL_HOLD(chunks) ((chunks) / 2)
/* Of more, that many may hold one: what is left are chunks that wait for the dumper. */
#define MAY_HOLD(chunks) ((chunks) / 8)

/* Called by a thread that has claimed a chunk, or found none. */
static void share_chunks(struct thread *thread)
{
    pthread_mutex_lock(&threads_lock);
    if (thread->stream.chunk != NULL)
        hold(thread);
    if (stream_is_crowded(&thread->stream)) {
        size_t chunks = thread->stream.ring->chunk_count;
        bool all = thread_count <= MAY_ALL_HOLD(chunks) && thread->stream.chunk != NULL;
        int left = !all && held > MAY_HOLD(chunks) ? GIVE_BACK : 0, looks = LOOK_AT;
        for (struct thread *other = oldest, *next; other != NULL && left > 0 && looks > 0; other = next, looks--) {
            next = other->newer;
            if (other == thread) /* behind it are those that have just been put there */
                break;
            if (other->stream.time != other->held_time) {
                hold(other);
                continue;
            }
            stream_close(&other->stream);
            hold_no_more(other);
            left--;
        }
        codes_give_back();
    }
    pthread_mutex_unlock(&threads_lock);
}

static uint8_t *room_in_chunk(struct thread *thread, size_t size, size_t least)
{
    static uint64_t checked;
    struct stream *stream = &thread->stream;
    if (stream->ring == NULL && !hook_forked())
        return NULL;
    uint64_t found_full = stream->freed_seen;
    if (!thread->defined) {
        char name[200];
        thread->defined = codes_define_thread(stream->id, stream->tid, name, thread_name(name, sizeof name));
    }
    const uint8_t *rest = stream->next;
    uint8_t *p = stream_next_chunk(stream, size + EVENT_HEAD_MAX, least + EVENT_HEAD_MAX);
    if (p != NULL && p == rest) /* of the chunk that it has; no other is that large */
        return p;
    if (p != NULL || stream->freed_seen != found_full) /* else nothing has changed since it was full */
        share_chunks(thread);
    if (p == NULL && stream->lost & 0xff) /* to drop a record is cheap: few of them look at the clock */
        return NULL;
    uint64_t now = hook_now(thread);
    if (now - checked > DUMPER_CHECK_UNITS) {
        checked = now;
        session_check_dumper();
    }
    if (p != NULL && stream->lost)
        p = put_lost(thread, p, stream->time); /* whoever comes next took his time before */
    if (p != NULL)
        p = task_put_again(thread, p);
    return p;
}

uint8_t *hook_room(struct thread *thread, size_t size, size_t least)
{
    if (!values_config.repr)
        return room_in_chunk(thread, size, least);
    uint8_t *record = PyMem_RawMalloc(size);
    if (record == NULL)
        stream_drop(&thread->stream);
    return record;
}

void hook_commit_copy(struct thread *thread, uint8_t *record, uint8_t *p, uint64_t now)
{
    struct stream *stream = &thread->stream;
    size_t size = (size_t)(event_close(record, p) - record);
    uint8_t *place = (size_t)(stream->end - stream->next) >= size ? stream->next : room_in_chunk(thread, size, size);
    if (place != NULL) {
        memcpy(place, record, size);
        stream->time = now;
        stream_commit(stream, place + size);
    }
    PyMem_RawFree(record);
}

/* The stream is given back: a loss at its end becomes a record, if there is a chunk for it. */
static bool close_stream(struct thread *thread)
{
    struct stream *stream = &thread->stream;
    if (stream->lost && stream_claim(stream, EVENT_HEAD_MAX))
        put_lost(thread, stream->next, hook_now(thread));
    stream_close(stream);
    hold_no_more(thread);
    return stream->lost == 0;
}

/* ---- events that are out of the ordinary -------------------------------------------------- */

void hook_leave_other(struct thread *thread, PyCodeObject *code, struct code_info *info, const compat_frame *frame,
                      enum event_kind kind, PyObject *value, const struct encoded *encoded, uint64_t now)
{
    struct open_call *call = thread->top - 1;
    if (info->generator && kind != EVENT_YIELD)
        hook_generator_ended(frame ? frame : hook_frame(thread, code));
    while (call > thread->calls && call->code != code)
        call--;
    if (call > thread->calls) {
        thread->stream.depth -= (int32_t)(thread->top - (call + 1));
        thread->top = call + 1;
    } else { /* as if its call had been recorded, at a time that nobody knows */
        if (thread->top == thread->end && !hook_grow(thread))
            return;
        call = thread->top++;
        *call = (struct open_call){.code = code};
        thread->stream.depth++;
    }
    hook_leave(thread, call, info, kind, value, encoded, true, now);
    hook_coroutine_left(thread); /* perhaps among those forgotten */
}

struct code_info *hook_prepare(PyCodeObject *code, PyObject *globals, int notrace, struct thread **thread,
                               bool *out_of_scope)
{
    *out_of_scope = false;
    if (!hook_forked())
        return NULL;
    struct code_info *info = codes_resolve(code, globals);
    if (info != NULL && info->scope == SCOPE_OUT) {
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
    return NULL;
}

void hook_raise(struct thread *thread, struct code_info *info, PyObject *exception, int line, uint64_t now,
                struct encoded *keep)
{
    uint8_t *record = hook_reserve(thread, HOOK_ROOM_FOR_VALUE, HOOK_ROOM_FOR_VALUE);
    if (keep != NULL)
        keep->size = 0;
    if (record == NULL)
        return;
    uint8_t *p = hook_head(record, info, EVENT_RAISE, now - thread->stream.time);
    if (line > 0)
        p = event_put(p, EVENT_LINE, (uint64_t)line);
    if (exception != NULL) {
        uint8_t *value = p;
        p = values_put(p, record + HOOK_ROOM_FOR_VALUE - WIRE_CLOSE_MAX, EVENT_VALUE, exception);
        if (keep != NULL)
            memcpy(keep->bytes, value, keep->size = (size_t)(p - value));
    }
    hook_commit(thread, record, p, now);
}

int hook_log(PyObject *text, PyObject *const *values, PyObject *names)
{
    compat_frame *frame = compat_current_frame();
    PyCodeObject *code = frame != NULL ? compat_frame_code(frame) : NULL;
    struct thread *thread = code != NULL && hook_forked() ? hook_thread_made() : NULL;
    /* Inside a callback, such as --repr's call of a __repr__, a record of this thread is half written. */
    if (thread == NULL || compat_thread_state()->tracing)
        return 0;
    if (!thread->looked)
        hook_look(thread, NULL);
    if (!thread->ready)
        return 0;
    struct code_info *info = codes_resolve(code, frame->f_globals);
    if (info == NULL || !codes_define(code, info, frame->f_globals)) {
        stream_drop(&thread->stream);
        return 0;
    }
    uint64_t now = hook_now(thread);
    size_t count = names != NULL ? (size_t)PyTuple_GET_SIZE(names) : 0, name_max = 200;
    size_t room = EVENT_HEAD_MAX + values_config.most + (count + 1) * (values_config.most + VALUE_ROOM_MIN + name_max);
    if (room > RING_MIN_CHUNK_SIZE / 2 - EVENT_HEAD_MAX)
        room = RING_MIN_CHUNK_SIZE / 2 - EVENT_HEAD_MAX;
    if (count > 64) /* of values that short, this many fit */
        count = 64;
    size_t least = hook_least(room, EVENT_HEAD_MAX + (count + 1) * VALUE_ROOM_MIN + count * (name_max + 4));
    uint8_t *record = hook_reserve(thread, room, least);
    if (record == NULL)
        return 0;
    PyThreadState *state = compat_thread_state();
    PyThreadState_EnterTracing(state); /* as in a callback: no event while the record is half written */
    uint8_t *p = hook_head(record, info, EVENT_LOG, now - thread->stream.time);
    int line = codes_line(info, code, compat_frame_offset(frame, code));
    if (line > 0)
        p = event_put(p, EVENT_LINE, (uint64_t)line);
    uint8_t *end = hook_end(thread, record, room) - count * (name_max + 4);
    p = values_put(p, end - count * VALUE_ROOM_MIN, EVENT_VALUE, text);
    for (size_t i = 0; i < count; i++)
        p = codes_secret(PyTuple_GET_ITEM(names, (Py_ssize_t)i))
                ? values_put_redacted(p, EVENT_VALUE, values[i])
                : values_put(p, end - (count - 1 - i) * VALUE_ROOM_MIN, EVENT_VALUE, values[i]);
    for (size_t i = 0; i < count; i++) {
        char name[200];
        p = wire_put_bytes(p, EVENT_NAME, name,
                           codes_qualified(name, name_max, NULL, PyTuple_GET_ITEM(names, (Py_ssize_t)i)));
    }
    PyThreadState_LeaveTracing(state);
    hook_commit(thread, record, p, now);
    return 0;
}

/* ---- generators --------------------------------------------------------------------------- */

/* When each suspended generator was called, by its frame's address, which does not change while it
 * lives. One that is dropped without an event leaves its entry until another takes its address. */
struct suspended {
    const void *frame;
    uint64_t start;
};

static struct suspended *suspended;
static size_t suspended_size, suspended_used; /* size: a power of two, or 0 */

static size_t suspended_home(const void *frame)
{
    return (size_t)(((uint64_t)(uintptr_t)frame >> 4) * 0x9E3779B97F4A7C15u >> 32) & (suspended_size - 1);
}

/* Where the frame is, or the empty place where it would be. */
static size_t suspended_find(const void *frame)
{
    size_t at = suspended_home(frame);
    while (suspended[at].frame != NULL && suspended[at].frame != frame)
        at = (at + 1) & (suspended_size - 1);
    return at;
}

uint64_t hook_generator_start(const void *frame)
{
    if (frame == NULL || suspended_size == 0)
        return 0;
    size_t at = suspended_find(frame);
    return suspended[at].frame != NULL ? suspended[at].start : 0;
}

static bool suspended_grow(void)
{
    struct suspended *old = suspended;
    size_t old_size = suspended_size, size = old_size ? old_size * 2 : 1024;
    struct suspended *bigger = PyMem_RawCalloc(size, sizeof *bigger);
    if (bigger == NULL)
        return false;
    suspended = bigger;
    suspended_size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].frame != NULL)
            suspended[suspended_find(old[i].frame)] = old[i];
    PyMem_RawFree(old);
    return true;
}

void hook_generator_suspended(const void *frame, uint64_t start)
{
    if (frame == NULL || (suspended_used * 2 >= suspended_size && !suspended_grow()))
        return;
    size_t at = suspended_find(frame);
    suspended_used += suspended[at].frame == NULL;
    suspended[at] = (struct suspended){frame, start};
}

void hook_generator_ended(const void *frame)
{
    if (frame == NULL || suspended_size == 0)
        return;
    size_t hole = suspended_find(frame), at = hole, mask = suspended_size - 1;
    if (suspended[hole].frame == NULL)
        return;
    /* Those behind it that would have liked its place, or one before it, move up. */
    for (;;) {
        at = (at + 1) & mask;
        if (suspended[at].frame == NULL)
            break;
        if (((at - suspended_home(suspended[at].frame)) & mask) >= ((at - hole) & mask)) {
            suspended[hole] = suspended[at];
            hole = at;
        }
    }
    suspended[hole].frame = NULL;
    suspended_used--;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static bool forked; /* and not yet registered */

/* In the child after fork, perhaps one that only starts another program: lets go of what is the parent's.
 * Nothing is asked of the ring. */
static void after_fork(void)
{
    struct thread *others = threads;
    threads_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    threads = NULL;
    thread_count = 0;
    for (struct thread *thread = others, *next; thread != NULL; thread = next) {
        next = thread->next;
        hold_no_more(thread);
        if (!hook_is_beside(thread, hook_thread))
            free_thread(thread);
    }
    forked = true;
    codes_after_fork();
    if (hook_thread == &no_thread)
        return;
    for (struct thread *lane = hook_next_lane(hook_thread, NULL); lane != NULL;
         lane = hook_next_lane(hook_thread, lane)) {
        add_thread(lane);
        lane->defined = false;
        struct stream before = lane->stream;
        stream_abandon(&lane->stream);
        lane->stream.depth = before.depth;
        lane->stream.time = before.time;
    }
}

bool hook_forked(void)
{
    if (!forked || !hook.recording)
        return hook.recording;
    forked = false;
    struct ring *ring = session_ring();
    if (ring == NULL)
        hook.recording = false;
    else
        codes_open(ring, session_process());
    for (struct thread *lane = threads; lane != NULL; lane = lane->next) {
        make_ready(lane);
        if (ring == NULL)
            continue;
        struct stream *stream = &lane->stream, before = *stream;
        stream_open(stream, ring, session_process(), (uint64_t)syscall(SYS_gettid), CHUNK_EVENTS);
        stream->depth = stream->min_depth = before.depth;
        stream->time = before.time;
    }
    return hook.recording;
}

/* What began until now may end unseen, and what begins meanwhile will not be known. */
static void forget_open(struct thread *thread, const PyThreadState *here)
{
    thread->looked = false;
    /* It may be about to change these itself: --repr runs the program's code, which may let go of the GIL. */
    if (values_config.repr && thread->state != here && (thread->state == &hook_no_state || thread->state->tracing))
        return;
    thread->top = thread->calls + 1;
    thread->stream.depth = 0;
    task_forget(thread);
}

void hook_close(void)
{
    const struct timespec pause = {0, 1000000};
    const PyThreadState *here = compat_thread_state();
    int pauses = 500; /* for the dumper to make room, where there was a loss at the end */
    hook.recording = false;
    pthread_mutex_lock(&threads_lock);
    for (struct thread *thread = threads; thread != NULL; thread = thread->next) {
        thread->ready = false;
        while (!close_stream(thread) && pauses-- > 0)
            nanosleep(&pause, NULL);
        forget_open(thread, here);
    }
    if (suspended_size)
        memset(suspended, 0, suspended_size * sizeof *suspended);
    suspended_used = 0;
    codes_close();
    pthread_mutex_unlock(&threads_lock);
}

/* The process ends. Where C code calls exit() (in another thread, in a signal handler), Python's
 * threads still run: their streams stay theirs, and the dumper takes what they have published. */
static void before_leave(void)
{
    if (!Py_IsInitialized()) {
        hook_close();
        return;
    }
    hook.recording = false;
    if (pthread_mutex_trylock(&threads_lock) == 0) {
        for (struct thread *thread = threads; thread != NULL; thread = thread->next)
            thread->ready = false;
        pthread_mutex_unlock(&threads_lock);
    }
}

int hook_open(bool values)
{
    static bool prepared;
    struct ring *ring = session_ring();
    if (ring == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "pytrace: no recording has been joined");
        return -1;
    }
    if (!prepared && pthread_key_create(&thread_key, thread_ended) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "pytrace: no thread-specific data left");
        return -1;
    }
    if (!prepared)
        codes_open(ring, session_process());
    prepared = true;
    session_after_fork = after_fork;
    session_before_leave = before_leave;
    hook.clock_kind = ring->header->clock_kind;
    hook.clock_shift = ring->header->clock_shift;
    hook.values = values;
    hook.recording = true;
    hook_forked();
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
