/* Threads; see thread.h. */

#include "record/thread.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "format/event.h"
#include "record/define.h"
#include "record/lookup.h"
#include "record/session.h"
#include "record/stats.h"
#include "record/text.h"

struct recorder recorder;
static const struct front_end *front_end;

static struct open_call no_calls[2];
static struct thread nobody = {.looked = true, .top = no_calls + 1, .calls = no_calls, .end = no_calls + 1};
_Thread_local struct thread *current_thread __attribute__((tls_model("initial-exec"))) = &nobody;

/* A thread ends without the GIL, so the list has a lock of its own. */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *threads;
static size_t thread_count;
static pthread_key_t thread_key; /* only for its destructor */

static bool forked;              /* and not yet registered */

/* ---- chunks ------------------------------------------------------------------------------- */

uint8_t *thread_put_lost(struct thread *thread, uint8_t *p, uint64_t now)
{
    struct stream *stream = &thread->stream;
    uint8_t *end = event_open(p, EVENT_LOST, stream->lost);
    end = event_put(end, EVENT_TIME, now - stream->time);
    stream->lost = 0;
    stream->time = now;
    stream_commit(stream, event_close(p, end));
    return stream->next;
}

/* A thread keeps its chunk while it waits for something, and there may be more threads than chunks.
 * So a thread that claims a chunk in a ring that is well in use seals the chunks of threads that
 * have been idle for longest. Such a thread claims another chunk with its next record. The threads
 * stand in a queue; one that has recorded something since it was put there goes to its end once
 * more. All of it runs under the GIL, which a thread holds while it writes a record, and under
 * threads_lock, because a thread ends without the GIL. */
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

#define GIVE_BACK 2 /* chunks sealed for each one claimed: their number falls */
#define LOOK_AT 16  /* threads, at most, for that */
/* Up to so many threads keep their chunks, while each finds one. If they take turns, each sealed
 * chunk would be one more that waits for the dumper, nearly empty. */
#define MAY_ALL_HOLD(chunks) ((chunks) / 2)
/* Of more threads, so many may hold a chunk: the other chunks wait for the dumper. */
#define MAY_HOLD(chunks) ((chunks) / 8)

void threads_share_chunks(struct thread *thread)
{
    pthread_mutex_lock(&threads_lock);
    if (stream_has_chunk(&thread->stream))
        hold(thread);
    if (stream_is_crowded(&thread->stream)) {
        size_t chunks = thread->stream.ring->chunk_count;
        bool all = thread_count <= MAY_ALL_HOLD(chunks) && stream_has_chunk(&thread->stream);
        int left = !all && held > MAY_HOLD(chunks) ? GIVE_BACK : 0, looks = LOOK_AT;
        for (struct thread *other = oldest, *next; other != NULL && left > 0 && looks > 0; other = next, looks--) {
            next = other->newer;
            if (other == thread) /* the rest has just been put there */
                break;
            if (other->stream.time != other->held_time) {
                hold(other);
                continue;
            }
            STAT(chunk_taken_back);
            stream_close(&other->stream);
            hold_no_more(other);
            left--;
        }
        define_give_back();
    }
    pthread_mutex_unlock(&threads_lock);
}

/* The present time; not before the thread's last event. */
static uint64_t now_after(const struct thread *thread)
{
    uint64_t now = ring_clock_units(thread->stream.ring);
    return now > thread->stream.time ? now : thread->stream.time;
}

/* Closes the stream: a loss at its end becomes a record, if there is a chunk for it. */
static bool close_stream(struct thread *thread)
{
    struct stream *stream = &thread->stream;
    if (stream->lost && stream_claim(stream, EVENT_HEAD_MAX))
        thread_put_lost(thread, stream->next, now_after(thread));
    stream_close(stream);
    hold_no_more(thread);
    return stream->lost == 0;
}

void thread_seal(struct thread *thread)
{
    pthread_mutex_lock(&threads_lock);
    stream_close(&thread->stream);
    hold_no_more(thread);
    pthread_mutex_unlock(&threads_lock);
}

/* ---- a thread ----------------------------------------------------------------------------- */

bool thread_is_nobody(const struct thread *thread) { return thread == &nobody; }

struct thread *thread_next_beside(const struct thread *thread, const struct thread *at)
{
    if (at != NULL)
        return at->next_beside;
    return thread->greenlets != NULL ? thread->greenlets->all : (struct thread *)thread;
}

static void free_thread(struct thread *thread)
{
    if (front_end->forget_thread != NULL)
        front_end->forget_thread(thread);
    if (thread->greenlets != NULL && --thread->greenlets->count == 0)
        PyMem_RawFree(thread->greenlets);
    for (struct open_call *call = thread->calls; call < thread->end; call++)
        PyMem_RawFree(call->lines);
    if (thread->calls != thread->first)
        PyMem_RawFree(thread->calls);
    PyMem_RawFree(thread->tasks);
    PyMem_RawFree(thread->outside);
    PyMem_RawFree(thread);
}

/* The thread ends: closes its streams. */
static void thread_ended(void *pointer)
{
    struct thread *first = pointer;
    pthread_mutex_lock(&threads_lock);
    for (struct thread *one = thread_next_beside(first, NULL); one != NULL; one = thread_next_beside(first, one)) {
        thread_count--;
        *one->previous = one->next;
        if (one->next != NULL)
            one->next->previous = one->previous;
        if (recorder.on)
            close_stream(one);
        hold_no_more(one);
    }
    pthread_mutex_unlock(&threads_lock);
    current_thread = &nobody;
    for (struct thread *one = thread_next_beside(first, NULL), *next; one != NULL; one = next) {
        next = thread_next_beside(first, one);
        free_thread(one);
    }
}

void thread_update_ready(struct thread *thread)
{
    thread->ready = recorder.on && thread->looked && !thread->suppressed && thread->outside == NULL;
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

struct thread *thread_make(uint64_t tid)
{
    if (session_ring() == NULL)
        return NULL;
    struct thread *thread = PyMem_RawCalloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    STAT(thread_made);
    thread->calls = thread->first;
    thread->top = thread->calls + 1;
    thread->end = thread->calls + FIRST_CALLS;
    stream_open(&thread->stream, session_ring(), session_process(), tid, CHUNK_EVENTS);
    thread->stream.time = ring_clock_units(session_ring());
    pthread_mutex_lock(&threads_lock);
    add_thread(thread);
    pthread_mutex_unlock(&threads_lock);
    return thread;
}

struct thread *thread_make_current(void)
{
    struct thread *thread = thread_make((uint64_t)syscall(SYS_gettid));
    if (thread == NULL)
        return NULL;
    if (pthread_setspecific(thread_key, thread) != 0) { /* its end would not be reported */
        thread_ended(thread);
        return NULL;
    }
    return current_thread = thread;
}

bool thread_grow(struct thread *thread)
{
    STAT(calls_grown);
    size_t size = (size_t)(thread->end - thread->calls), used = (size_t)(thread->top - thread->calls);
    struct open_call *own = thread->calls != thread->first ? thread->calls : NULL;
    struct open_call *calls = PyMem_RawRealloc(own, size * 2 * sizeof *calls);
    if (calls == NULL)
        return false;
    if (own == NULL)
        memcpy(calls, thread->first, sizeof thread->first);
    memset(calls + size, 0, size * sizeof *calls);
    thread->calls = calls;
    thread->top = calls + used;
    thread->end = calls + size * 2;
    return true;
}

/* The threading.Thread of this thread, borrowed: the argument of its first function, or the entry
 * of threading._active for the thread's number. */
static PyObject *thread_object(void)
{
    static struct lookup_name module = {.text = "threading"}, name = {.text = "_active"};
    const compat_frame *first = NULL;
    for (const compat_frame *frame = compat_current_frame(); frame != NULL; frame = frame->previous)
        if (compat_frame_code(frame) != NULL)
            first = frame;
    const PyCodeObject *code = first != NULL ? compat_frame_code(first) : NULL;
    if (code != NULL && code->co_argcount == 1 &&
        PyUnicode_CompareWithASCIIString(code->co_qualname, "Thread._bootstrap") == 0)
        return compat_frame_local(first, 0);
    PyObject *active = lookup_global(&module, &name), *key, *thread;
    if (active == NULL || !PyDict_Check(active))
        return NULL;
    Py_ssize_t position = 0;
    for (int left = LOOKUP_MOST; left > 0 && PyDict_Next(active, &position, &key, &thread); left--)
        if (PyLong_CheckExact(key) && PyLong_AsUnsignedLongMask(key) == PyThread_get_thread_ident())
            return thread;
    return NULL;
}

size_t thread_name(char *name, size_t size)
{
    static const char main_thread[] = "MainThread";
    static struct lookup_name attribute = {.text = "_name"};
    PyObject *object = thread_object();
    size_t length = object != NULL ? text_qualified(name, size, NULL, lookup_attribute(object, &attribute)) : 0;
    if (length)
        return length;
    if (syscall(SYS_gettid) != getpid())
        return 0;
    memcpy(name, main_thread, sizeof main_thread - 1);
    return sizeof main_thread - 1;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static bool is_beside(const struct thread *thread, const struct thread *other)
{
    return thread == other || (thread->greenlets != NULL && thread->greenlets == other->greenlets);
}

/* In the child after fork: drops the parent's streams. It does not use the ring, as the child may
 * only start another program. */
static void after_fork(void)
{
    struct thread *others = threads;
    threads_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    threads = NULL;
    thread_count = 0;
    for (struct thread *thread = others, *next; thread != NULL; thread = next) {
        next = thread->next;
        hold_no_more(thread);
        if (!is_beside(thread, current_thread))
            free_thread(thread);
    }
    forked = true;
    define_after_fork();
    if (current_thread == &nobody)
        return;
    for (struct thread *one = thread_next_beside(current_thread, NULL); one != NULL; one = one->next_beside) {
        add_thread(one);
        one->defined = false;
        struct stream before = one->stream;
        stream_abandon(&one->stream);
        one->stream.depth = before.depth;
        one->stream.time = before.time;
    }
}

bool threads_forked(void)
{
    if (!forked || !recorder.on)
        return recorder.on;
    forked = false;
    struct ring *ring = session_ring();
    if (ring == NULL)
        recorder.on = false;
    else
        define_open(ring, session_process());
    for (struct thread *one = threads; one != NULL; one = one->next) {
        thread_update_ready(one);
        if (ring == NULL)
            continue;
        struct stream *stream = &one->stream, before = *stream;
        stream_open(stream, ring, session_process(), (uint64_t)syscall(SYS_gettid), CHUNK_EVENTS);
        stream->depth = stream->min_depth = before.depth;
        stream->time = before.time;
    }
    return recorder.on;
}

int threads_open(const struct front_end *listener)
{
    static bool prepared;
    if ((recorder.state = compat_state_word()) == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "pytrace: built for another patch release of Python; install it again");
        return -1;
    }
    if (!prepared && pthread_key_create(&thread_key, thread_ended) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "pytrace: no thread-specific data left");
        return -1;
    }
    front_end = listener;
    session_after_fork = after_fork;
    prepared = true;
    return 0;
}

const struct front_end *thread_front_end(void) { return front_end; }

static void forget_open(struct thread *thread)
{
    thread->looked = false;
    if (thread->outside != NULL) /* that thread is about to change these */
        return;
    thread->top = thread->calls + 1;
    thread->stream.depth = 0;
    PyMem_RawFree(thread->tasks);
    thread->tasks = NULL;
}

void threads_close(void)
{
    const struct timespec pause = {0, 1000000};
    int pauses = 500; /* for the dumper to make room, after a loss at the end */
    recorder.on = false;
    pthread_mutex_lock(&threads_lock);
    for (struct thread *thread = threads; thread != NULL; thread = thread->next) {
        thread->ready = false;
        while (!close_stream(thread) && pauses-- > 0)
            nanosleep(&pause, NULL);
        forget_open(thread);
    }
    define_close();
    pthread_mutex_unlock(&threads_lock);
}

void threads_stop(bool wait)
{
    recorder.on = false;
    if ((wait ? pthread_mutex_lock : pthread_mutex_trylock)(&threads_lock) != 0)
        return;
    for (struct thread *thread = threads; thread != NULL; thread = thread->next)
        thread->ready = false;
    pthread_mutex_unlock(&threads_lock);
}
