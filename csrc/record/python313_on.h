/* pycompat.h, for 3.13 and later. */
#ifndef PYTRACE_PYTHON313_ON_H
#define PYTRACE_PYTHON313_ON_H

#include "record/python312_on.h"

#include <internal/pycore_opcode_utils.h>
#include <internal/pycore_tstate.h>
#include <opcode_ids.h>

#define COMPAT_LOOP_IN_STATE 1

static inline PyThreadState *compat_thread_state(void) { return PyThreadState_GetUnchecked(); }

static inline compat_frame *compat_frame_of(const PyThreadState *state) { return state->current_frame; }

static inline PyCodeObject *compat_frame_code(const compat_frame *frame)
{
    PyObject *code = compat_frame_executable(frame);
    return code != NULL && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
}

static inline const void *compat_frame_instruction(const compat_frame *frame) { return frame->instr_ptr; }

/* Of an instruction that has told of a call of a bound method: does it tell of its end, too? Not
 * if it is f(*args). */
static inline int compat_code_is_plain_call(PyCodeObject *code, size_t at)
{
    int opcode = ((const _Py_CODEUNIT *)code->co_code_adaptive)[at].op.code;
    return opcode == INSTRUMENTED_CALL || opcode == INSTRUMENTED_CALL_KW;
}

static inline PyObject *compat_running_loop(PyThreadState *state, PyObject *Py_UNUSED(kept))
{
    return ((_PyThreadStateImpl *)state)->asyncio_running_loop;
}

static inline const PyDictValues *compat_inline_values(PyObject *object)
{
    if (!(Py_TYPE(object)->tp_flags & Py_TPFLAGS_INLINE_VALUES))
        return NULL;
    const PyDictValues *values = _PyObject_InlineValues(object);
    return values->valid ? values : NULL;
}

static inline Py_ssize_t compat_inline_room(const PyDictValues *values) { return values->capacity; }

static inline Py_ssize_t compat_inline_count(const PyDictValues *values) { return values->size; }

/* Their order stands behind them: _PyDictValues_AddToInsertionOrder. */
static inline Py_ssize_t compat_inline_place(const PyDictValues *values, Py_ssize_t at)
{
    return ((const uint8_t *)&values->values[values->capacity])[at];
}

static inline PyObject *compat_managed_dict(PyObject *object)
{
    return (PyObject *)_PyObject_ManagedDictPointer(object)->dict;
}

/* ---- generators, for closed.c ------------------------------------------------------------- */

/* The frame of a generator, a coroutine or an asynchronous generator, which is a part of it. */
static inline const compat_frame *compat_generator_frame(PyObject *generator)
{
    return (const compat_frame *)&((PyGenObject *)generator)->gi_iframe;
}

static inline int compat_generator_has_ended(PyObject *generator)
{
    return FRAME_STATE_FINISHED(((PyGenObject *)generator)->gi_frame_state);
}

/* Does a frame stand where a generator goes on behind a yield? */
static inline int compat_frame_is_at_yield(const compat_frame *frame)
{
    int opcode = frame->instr_ptr->op.code;
    return (opcode == RESUME || opcode == RESUME_CHECK || opcode == INSTRUMENTED_RESUME) &&
           (frame->instr_ptr->op.arg & RESUME_OPARG_LOCATION_MASK) != RESUME_AT_FUNC_START;
}

#endif
