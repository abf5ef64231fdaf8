/* Threads; see thread.h. */

#include "record/thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

static volatile bool forked;     /* and not yet registered */

/* The lock is only held by a writer, so that a signal handler in the middle records nothing. */
static bool lock_threads(void)
{
    bool before = writer_is_writing(&this_writer);
    (void)writer_begin();
    pthread_mutex_lock(&threads_lock);
    return before;
}

static void unlock_threads(bool before)
{
    pthread_mutex_unlock(&threads_lock);
    if (!before)
        writer_end();
}

/* Native functions may be called within malloc, too: memory for threads comes from the system. */
static void *new_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

/* Who pauses has the lock. */
static void wait_writing(void)
{
    writer_end();
    pthread_mutex_lock(&threads_lock);
    pthread_mutex_unlock(&threads_lock);
}

bool thread_wait_writing(void)
{
    bool free;
    while (!(free = writer_begin()) && writers_are_paused())
        wait_writing();
    return free;
}

bool thread_begin_writing(void)
{
    bool before = writer_is_writing(&this_writer);
    while (!writer_begin() && !before && writers_are_paused())
        wait_writing();
    return before;
}

void thread_end_writing(bool before)
{
    if (!before)
        writer_end();
}

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
 * more. All of it runs under threads_lock, because a thread ends without the GIL. Others' chunks
 * are sealed under the GIL, which a thread holds while it writes a record, or while writers are
 * paused. */
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
    bool before = lock_threads();
    if (stream_has_chunk(&thread->stream))
        hold(thread);
    if (stream_is_crowded(&thread->stream)) {
        size_t chunks = thread->stream.ring->chunk_count;
        bool all = thread_count <= MAY_ALL_HOLD(chunks) && stream_has_chunk(&thread->stream);
        int left = !all && held > MAY_HOLD(chunks) ? GIVE_BACK : 0, looks = LOOK_AT;
        if (left)
            writers_pause();
        for (struct thread *other = oldest, *next; other != NULL && left > 0 && looks > 0; other = next, looks--) {
            next = other->newer;
            if (other == thread) /* the rest has just been put there */
                break;
            if (recorder.native && other->writer != thread->writer && writer_is_writing(other->writer))
                continue;
            if (other->stream.time != other->held_time) {
                hold(other);
                continue;
            }
            STAT(chunk_taken_back);
            stream_close(&other->stream);
            hold_no_more(other);
            left--;
        }
        writers_resume();
        define_give_back();
    }
    unlock_threads(before);
}

/* The present time; not before the thread's last event. */
static uint64_t now_after(const struct thread *thread)
{
    uint64_t now = ring_clock_units(thread->stream.ring);
    return now > thread->stream.time ? now : thread->stream.time;
}

void thread_count_missed(struct thread *thread)
{
    for (; UNLIKELY(thread->writer->missed); thread->writer->missed--)
        stream_drop(&thread->stream);
}

/* Closes the stream: a loss at its end becomes a record, if there is a chunk for it. */
static bool close_stream(struct thread *thread)
{
    struct stream *stream = &thread->stream;
    thread_count_missed(thread);
    if (stream->lost && stream_claim(stream, EVENT_HEAD_MAX))
        thread_put_lost(thread, stream->next, now_after(thread));
    stream_close(stream);
    hold_no_more(thread);
    return stream->lost == 0;
}

void thread_seal(struct thread *thread)
{
    bool before = lock_threads();
    stream_close(&thread->stream);
    hold_no_more(thread);
    unlock_threads(before);
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
        munmap(thread->calls, (size_t)(thread->end - thread->calls) * sizeof *thread->calls);
    PyMem_RawFree(thread->tasks);
    PyMem_RawFree(thread->outside);
    munmap(thread, sizeof *thread);
}

/* The thread ends: closes its streams. */
static void thread_ended(void *pointer)
{
    struct thread *first = pointer;
    bool before = lock_threads();
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
    thread_end_writing(before);
}

void thread_update_ready(struct thread *thread)
{
    bool may = !thread->suppressed && thread->outside == NULL;
    thread->ready = recorder.on && thread->looked && may && thread->late.function == NULL;
    thread->native = thread->native && may;
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
    struct thread *thread = new_pages(sizeof *thread);
    if (thread == NULL)
        return NULL;
    STAT(thread_made);
    thread->calls = thread->first;
    thread->top = thread->calls + 1;
    thread->end = thread->calls + FIRST_CALLS;
    stream_open(&thread->stream, session_ring(), session_process(), tid, CHUNK_EVENTS);
    thread->stream.time = ring_clock_units(session_ring());
    thread->writer = &this_writer;
    thread->cpu = CPU_UNKNOWN;
    bool before = lock_threads();
    add_thread(thread);
    unlock_threads(before);
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
    struct open_call *calls = new_pages(size * 2 * sizeof *calls);
    if (calls == NULL)
        return false;
    memcpy(calls, thread->calls, size * sizeof *calls);
    if (thread->calls != thread->first)
        munmap(thread->calls, size * sizeof *calls);
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

size_t thread_system_name(char name[THREAD_SYSTEM_NAME])
{
    char process[THREAD_SYSTEM_NAME + 1] = "";
    int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, process, THREAD_SYSTEM_NAME);
    if (file >= 0)
        close(file);
    memset(name, 0, THREAD_SYSTEM_NAME);
    if (size <= 0 || prctl(PR_GET_NAME, name) < 0)
        return 0;
    process[size - 1] = 0; /* a line's end */
    name[THREAD_SYSTEM_NAME - 1] = 0;
    return strcmp(name, process) == 0 ? 0 : strlen(name);
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
    writers_forked();
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
        one->defined = one->named = one->native = false;
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
    bool before = lock_threads(); /* another thread may be here, without the GIL */
    if (!forked) {
        unlock_threads(before);
        return recorder.on;
    }
    struct ring *ring = session_ring();
    if (ring == NULL) {
        recorder.on = false;
        writers_none();
    } else
        define_open(ring, session_process());
    for (struct thread *one = threads; one != NULL; one = one->next) {
        thread_update_ready(one);
        if (ring == NULL)
            continue;
        struct stream *stream = &one->stream, inherited = *stream;
        stream_open(stream, ring, session_process(), (uint64_t)syscall(SYS_gettid), CHUNK_EVENTS);
        stream->depth = stream->min_depth = inherited.depth;
        stream->time = inherited.time;
    }
    forked = false;
    unlock_threads(before);
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
    thread->late.function = NULL;
    if (thread->outside != NULL) /* that thread is about to change these */
        return;
    thread->top = thread->calls + 1;
    thread->stream.depth = 0;
    PyMem_RawFree(thread->tasks);
    thread->tasks = NULL;
}

#define PAUSE_NS 1000000

/* Closes the streams that nobody is writing to. *pauses: for the dumper to make room, after a loss
 * at the end. Returns whether there is no other. */
static bool close_all(int *pauses)
{
    const struct timespec pause = {0, PAUSE_NS};
    bool all = true;
    for (struct thread *thread = threads; thread != NULL; thread = thread->next) {
        thread->ready = false;
        if (recorder.native && thread->writer != &this_writer && writer_is_writing(thread->writer)) {
            all = false;
            continue;
        }
        while (!close_stream(thread) && (*pauses)-- > 0)
            nanosleep(&pause, NULL);
        forget_open(thread);
    }
    return all;
}

bool threads_close(void)
{
    const struct timespec pause = {0, PAUSE_NS};
    int pauses = 500, waits = 500;
    recorder.on = false;
    bool before = lock_threads(), all;
    writers_none();
    while (!(all = close_all(&pauses)) && waits-- > 0) {
        pthread_mutex_unlock(&threads_lock); /* others wait for it in the middle of a record */
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&threads_lock);
    }
    recorder.native = false;
    define_close();
    unlock_threads(before);
    return all;
}

bool threads_stop(bool wait)
{
    bool all = true;
    recorder.on = false;
    if ((wait ? pthread_mutex_lock : pthread_mutex_trylock)(&threads_lock) != 0)
        return !recorder.native;
    writers_none();
    for (struct thread *thread = threads; thread != NULL; thread = thread->next) {
        thread->ready = false;
        all = all && !(recorder.native && thread->writer != &this_writer && writer_is_writing(thread->writer));
    }
    pthread_mutex_unlock(&threads_lock);
    return all;
}
