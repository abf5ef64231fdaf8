/* pycompat.h, for 3.14, and if python315.h says nothing else, for 3.15: the references of a
 * frame have flags in their lowest two bits. */
#ifndef PYTRACE_PYTHON314_H
#define PYTRACE_PYTHON314_H

#include "record/python313_on.h"

#define COMPAT_CLOSES_UNSEEN 1
#define COMPAT_MADE_FRAMES 0
#define COMPAT_RAISE_NEEDS_DATA 0

/* Modules/_asynciomodule.c, up to a task's own */
struct compat_future {
    PyObject_HEAD
    PyObject *loop, *callback, *context, *callbacks, *exception, *exception_traceback, *result, *source_traceback,
        *cancel_message, *cancelled, *awaited_by;
    int state, bits;
};

/* Modules/_threadmodule.c */
struct compat_lock {
    PyObject_HEAD
    PyMutex lock;
};

struct compat_rlock {
    PyObject_HEAD
    PyMutex mutex;
    unsigned long long owner;
    size_t level; /* besides the first */
};

static inline int compat_lock_is_locked(PyObject *lock) { return ((struct compat_lock *)lock)->lock._bits & 1; }

static inline int64_t compat_rlock_owner(PyObject *lock) { return (int64_t)((struct compat_rlock *)lock)->owner; }

static inline int64_t compat_rlock_count(PyObject *lock)
{
    const struct compat_rlock *rlock = (const void *)lock;
    return rlock->mutex._bits & 1 ? (int64_t)rlock->level + 1 : 0;
}

static inline PyObject *compat_frame_executable(const compat_frame *frame)
{
    return (PyObject *)(frame->f_executable.bits & ~(uintptr_t)3);
}

static inline PyObject *compat_frame_local(const compat_frame *frame, int slot)
{
    uintptr_t bits = frame->localsplus[slot].bits;
    return (bits & 3) == 3 ? NULL : (PyObject *)(bits & ~(uintptr_t)3);
}

static inline PyObject *compat_running_task(PyThreadState *state)
{
    return ((_PyThreadStateImpl *)state)->asyncio_running_task;
}

#endif
