/* pycompat.h, for 3.11 and 3.12 alone: a thread's frames hang on its `cframe`. */
#ifndef PYTRACE_PYTHON311_312_H
#define PYTRACE_PYTHON311_312_H

#include "record/python311_313.h"

#define COMPAT_LOOP_IN_STATE 0
#define COMPAT_CLOSES_UNSEEN 0
#define COMPAT_MADE_FRAMES 1
#define COMPAT_RAISE_NEEDS_DATA 0

/* Modules/_asynciomodule.c, up to a task's own */
struct compat_future {
    PyObject_HEAD
    PyObject *loop, *callback, *context, *callbacks, *exception, *exception_traceback, *result, *source_traceback,
        *cancel_message;
    int state, bits;
    int blocking;
    PyObject *dict, *references, *cancelled;
};

static inline PyThreadState *compat_thread_state(void) { return _PyThreadState_UncheckedGet(); }

static inline compat_frame *compat_frame_of(const PyThreadState *state) { return state->cframe->current_frame; }

static inline PyObject *compat_frame_executable(const compat_frame *frame) { return (PyObject *)frame->f_code; }

static inline PyObject *compat_frame_local(const compat_frame *frame, int slot) { return frame->localsplus[slot]; }

static inline const void *compat_frame_instruction(const compat_frame *frame) { return frame->prev_instr; }

static inline PyObject *compat_running_task(PyThreadState *Py_UNUSED(state)) { return NULL; }

/* As many as the type has names for. */
static inline Py_ssize_t compat_inline_room(const PyDictValues *Py_UNUSED(values)) { return PY_SSIZE_T_MAX; }

/* Their count and order stand in front of them, from the end on:
 * _PyDictValues_AddToInsertionOrder. */
static inline Py_ssize_t compat_inline_count(const PyDictValues *values) { return ((const uint8_t *)values)[-2]; }

static inline Py_ssize_t compat_inline_place(const PyDictValues *values, Py_ssize_t at)
{
    return ((const uint8_t *)values)[-3 - at];
}

#endif
