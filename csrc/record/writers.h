/* Who is in the middle of a record.
 *
 * Records of Python are written under the GIL, so that whoever holds it may seal the chunks of all
 * threads. Native functions (native.c) record without the GIL. While they do, every record is
 * written by a writer: a thread that says so before, and takes it back afterwards, by two plain
 * stores. Whoever wants to touch the streams of others pauses all of them:
 *
 *     the writer                             who pauses, with the lock of threads
 *     writing = true                         mode = PAUSED
 *     (a fence of the compiler)              membarrier: a fence in every running thread
 *     mode is FREE? else wait for the lock   is it writing? then its stream is left alone
 *     ... the record ...
 *     writing = false (release)              mode = FREE (release)
 *
 * The membarrier makes one of the two see the other. A signal handler that finds its own thread
 * writing records nothing: it has interrupted a record.
 */
#ifndef PYTRACE_WRITERS_H
#define PYTRACE_WRITERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum writers_mode {
    WRITERS_NONE,   /* all records are written under the GIL, without a writer */
    WRITERS_FREE,
    WRITERS_PAUSED,
};

struct record_writer {
    atomic_bool writing;
    uint32_t missed; /* events of native functions in signal handlers that interrupted a record */
};

extern _Atomic(enum writers_mode) writers_mode;
/* This thread's. */
extern _Thread_local struct record_writer this_writer __attribute__((tls_model("initial-exec")));

static inline bool writer_is_writing(const struct record_writer *writer)
{
    return atomic_load_explicit(&writer->writing, memory_order_acquire);
}

static inline bool writers_are_paused(void)
{
    return atomic_load_explicit(&writers_mode, memory_order_relaxed) == WRITERS_PAUSED;
}

/* This thread is about to write. Returns whether it may without the GIL: if writers are paused, it
 * waits for the lock first, and is no writer meanwhile. */
static inline __attribute__((always_inline)) bool writer_begin(void)
{
    atomic_store_explicit(&this_writer.writing, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    return __builtin_expect(atomic_load_explicit(&writers_mode, memory_order_acquire) == WRITERS_FREE, 1);
}

static inline __attribute__((always_inline)) void writer_end(void)
{
    atomic_store_explicit(&this_writer.writing, false, memory_order_release);
}

/* To be called before writers_free. 0, or a negative errno: the kernel has no membarrier. */
int writers_prepare(void);
/* From now on records may be written without the GIL. */
void writers_free(void);
/* To be called with the lock of threads; does nothing in WRITERS_NONE. */
void writers_pause(void);
void writers_resume(void);
/* No more: those that are paused, or come later, write nothing. */
void writers_none(void);
/* In a forked child, where nobody pauses any more. */
void writers_forked(void);

#endif
