/* pycompat.h, for 3.13 alone: a frame has plain pointers, as before. */
#ifndef PYTRACE_PYTHON313_H
#define PYTRACE_PYTHON313_H

#include "record/python311_313.h"
#include "record/python313_on.h"

#define COMPAT_CLOSES_UNSEEN 1
#define COMPAT_MADE_FRAMES 0
#define COMPAT_RAISE_NEEDS_DATA 0

/* Modules/_asynciomodule.c, up to a task's own */
struct compat_future {
    PyObject_HEAD
    PyObject *loop, *callback, *context, *callbacks, *exception, *exception_traceback, *result, *source_traceback,
        *cancel_message, *cancelled;
    int state, bits;
};

static inline PyObject *compat_frame_executable(const compat_frame *frame) { return frame->f_executable; }

static inline PyObject *compat_frame_local(const compat_frame *frame, int slot) { return frame->localsplus[slot]; }

static inline PyObject *compat_running_task(PyThreadState *Py_UNUSED(state)) { return NULL; }

#endif
