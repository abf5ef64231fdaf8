/* Recorded threads: the open calls of each, its stream, and the chunk that it holds.
 *
 * Each thread writes to a stream of its own. All of it runs under the GIL, except a thread's end
 * and what native functions record (native.c): see writers.h. */
#ifndef PYTRACE_THREAD_H
#define PYTRACE_THREAD_H

#include "record/front_end.h"
#include "record/writers.h"
#include "ring/ring.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HOT static inline __attribute__((always_inline))

/* A recorded call that is open on a thread. */
struct open_call {
    PyCodeObject *code; /* or a function that no frame executes, marked: see call_is_of_python */
    uint64_t start;  /* clock units; 0: not known */
    union {
        uint64_t since;             /* the same; of a generator, its last resume */
        uint64_t place;             /* of a native function: see native.c */
        const PyCodeObject *caller; /* of a function in C */
    };
    void *lines;     /* see lines.c: belongs to this place, whatever call is in it; or NULL */
};

/* Marks of calls that are not Python's, added to the address in `code`. */
#define CALL_OF_C 1
#define CALL_OF_NATIVE 2
#define CALL_OF_CYTHON 4

HOT bool call_is_of_c(const struct open_call *call) { return (uintptr_t)call->code & CALL_OF_C; }
HOT bool is_native_call(const struct open_call *call) { return (uintptr_t)call->code & CALL_OF_NATIVE; }
HOT bool call_is_of_python(const struct open_call *call)
{
    return !((uintptr_t)call->code & (CALL_OF_C | CALL_OF_NATIVE | CALL_OF_CYTHON));
}

/* A call of a function in C that is not recorded yet; see c_calls.h. */
struct late_call {
    struct c_function *function; /* NULL: there is none */
    const PyCodeObject *caller;
    PyObject *argument;          /* borrowed from the call; NULL: it has none */
    uint64_t time;
};

#define GREENLETS_BUCKETS 256 /* of a byte */
#define FIRST_CALLS 64 /* open calls that a thread has room for at first */

/* The greenlets of one thread of the operating system that are, or were, in the middle of
 * recorded calls. */
struct greenlets {
    size_t count;
    struct thread *all;                      /* by next_beside */
    struct thread *idle;                     /* by next_found: those without a greenlet */
    struct thread *found[GREENLETS_BUCKETS]; /* by root, next_found: the others */
};

/* A thread of the operating system, or one of its greenlets. */
struct thread {
    bool ready;                     /* recording, looked, not suppressed, no record on its way */
    bool looked;                    /* for @notrace functions that were open at its first event */
    bool defined;                   /* its name is in the recording */
    bool holds;                     /* a chunk */
    bool native;                    /* its native functions are recorded, too */
    bool named;                     /* by the operating system's name, until it is defined */
    uint32_t suppressed;            /* @notrace functions that are open */
    int32_t cpu;                    /* with --cpu: of its last record, or CPU_UNKNOWN */
    const void *stack[3];           /* last seen innermost chunks of its data stack; greenlets.c */
    struct open_call *top;          /* one behind the innermost */
    struct open_call *calls, *end;  /* `first`, or memory of their own; calls[0] is a sentinel */
    struct stream stream;
    struct record_writer *writer;   /* the thread of the operating system that writes to it */
    struct tasks *tasks;            /* see task.h; NULL: none has run yet */
    struct thread *next, **previous; /* all threads of the process */
    struct thread *older, *newer;   /* queue of threads that hold a chunk; threads_share_chunks */
    uint64_t held_time;             /* time of its last record when it joined the queue */
    uint8_t *outside;               /* a record in the making, see record_reserve; NULL: none */
    uintptr_t stack_range[2];       /* of the machine's stack; native.c */
    struct late_call late;
    const void *root;               /* the start of its data stack, or else its first frame */
    struct greenlets *greenlets;    /* of this thread of the system; NULL: it has had none */
    struct thread *next_beside, *next_found; /* in its lists */
#if !HAVE_MONITORING
    struct profile *profile;        /* see profile.c */
#endif
    struct open_call first[FIRST_CALLS];
};

/* The recording's data for the hot path; constant while it runs. */
struct recorder {
    PyThreadState *const volatile *state; /* see compat_state_word */
    uint32_t clock_kind, clock_shift;
    bool ticks;              /* the time is the counter, and nothing else is asked for */
    bool cpu;                /* events tell their processor */
    bool values;
    bool on;
    bool native;             /* native functions are recorded */
};
extern struct recorder recorder;

/* This thread; before its first event a struct that is never ready. For events see hook_here. */
extern _Thread_local struct thread *current_thread __attribute__((tls_model("initial-exec")));

/* The interpreter's state of this thread. */
HOT PyThreadState *thread_state(void) { return *recorder.state; }

/* ---- a thread ----------------------------------------------------------------------------- */

/* True: it is the struct of threads before their first event. */
bool thread_is_nobody(const struct thread *thread);
/* Makes one more, with a stream, in the list of all; NULL if memory is short or nothing is
 * recorded. tid: the operating system's. A forked child must have called threads_forked. */
struct thread *thread_make(uint64_t tid);
/* The same, and it is current_thread to the end of this thread of the operating system. */
struct thread *thread_make_current(void);
/* Before and after this thread records something of Python, while native functions are recorded:
 * its native functions do not record inside of it. Begin returns what end is to be given: whether
 * this thread was writing before. */
bool thread_begin_writing(void);
void thread_end_writing(bool before);
/* Native functions: waits while writers are paused. False: nothing is recorded any more. */
bool thread_wait_writing(void);
/* Sets `ready` after a change of the fields that it depends on. */
void thread_update_ready(struct thread *thread);
/* More room for open calls. */
bool thread_grow(struct thread *thread);
/* Events in signal handlers that interrupted a record are lost. */
void thread_count_missed(struct thread *thread);
/* Seals its chunk. */
void thread_seal(struct thread *thread);
/* The structs on the same thread of the operating system, one by one from NULL to NULL. */
struct thread *thread_next_beside(const struct thread *thread, const struct thread *at);
/* Writes the record of a loss at `p`, which has room for it. Returns the place of the next
 * record. */
uint8_t *thread_put_lost(struct thread *thread, uint8_t *p, uint64_t now);
/* The name of this thread's threading.Thread, in UTF-8, if it can be read without running the
 * program's code. Returns its size; 0: unknown. */
size_t thread_name(char *name, size_t size);
/* The name that the thread has in the operating system, unless it is the process's. */
#define THREAD_SYSTEM_NAME 16
size_t thread_system_name(char name[THREAD_SYSTEM_NAME]);

/* ---- all of them -------------------------------------------------------------------------- */

/* To be called by a thread that has claimed a chunk, or found none: seals chunks of others if they
 * are scarce. */
void threads_share_chunks(struct thread *thread);
/* Recording begins, or begins again. 0, or -1 with a Python exception. */
int threads_open(const struct front_end *front_end);
/* The front end given to threads_open. */
const struct front_end *thread_front_end(void);
/* Seals all streams of the process, and forgets open calls, whose ends may not be seen. False: a
 * thread without the GIL is in the middle of a record, and does not come to its end. */
bool threads_close(void);
/* The process ends while others of its threads may still run: none is ready any more. `wait`:
 * until a thread that is just ending has done so; else the lock may be held by the very thread
 * that a handler has interrupted. Returns whether no native function is recording any more. */
bool threads_stop(bool wait);
/* In a forked child: makes it a process of the recording, once, at the latest before its first
 * record. Returns whether this process, forked or not, records. */
bool threads_forked(void);

#endif
