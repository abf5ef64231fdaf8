/* Every difference between CPython 3.11 and 3.15 that the hook has to know, in one place.
 *
 * The interpreter's internal frame is read, never written: what a call's arguments are stands there,
 * and asking for a frame object would cost more than all the rest. Each function below says what it
 * returns; none of them runs Python code, allocates, or changes a reference count.
 */
#ifndef PYTRACE_PYCOMPAT_H
#define PYTRACE_PYCOMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x03100000
#error "pytrace knows the frames of CPython 3.11 to 3.15"
#endif
#ifdef Py_GIL_DISABLED
#error "pytrace does not support free-threaded builds"
#endif

#define Py_BUILD_CORE 1
#if PY_VERSION_HEX >= 0x030D0000
#include <internal/pycore_tstate.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#else
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030C0000
#undef _PyGC_FINALIZED /* 3.12 has it in the public headers too */
#include <internal/pycore_runtime.h>
#undef CONSTANT_NONE /* 3.15: numbers of the compiler; ours (event.h) are others */
#undef CONSTANT_FALSE
#undef CONSTANT_TRUE
#else
PyAPI_DATA(int) _Py_UnhandledKeyboardInterrupt;
#endif
#undef Py_BUILD_CORE
/* 3.15: operands of LOAD_COMMON_CONSTANT; event.h has names of the kind too. */
#undef CONSTANT_NONE
#undef CONSTANT_FALSE
#undef CONSTANT_TRUE
#include <frameobject.h>

#define HAVE_MONITORING (PY_VERSION_HEX >= 0x030C0000)

typedef struct _PyInterpreterFrame compat_frame;

/* True where the program ended by a KeyboardInterrupt that nothing caught: when Python is finalized,
 * the process ends by SIGINT, and not by exit(). Known until then and behind it. */
static inline int compat_interrupted(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return _PyRuntime.signals.unhandled_keyboard_interrupt;
#else
    return _Py_UnhandledKeyboardInterrupt;
#endif
}

/* This thread's state. Needs the GIL. */
static inline PyThreadState *compat_thread_state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/* The frame that a thread executes. Needs the GIL. */
static inline compat_frame *compat_frame_of(const PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030D0000
    return state->current_frame;
#else
    return state->cframe->current_frame;
#endif
}

/* The frame that this thread executes. Needs the GIL. */
static inline compat_frame *compat_current_frame(void)
{
    return compat_frame_of(compat_thread_state());
}

/* The code object, borrowed; NULL for frames that belong to C. */
static inline PyCodeObject *compat_frame_code(const compat_frame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    PyObject *code = (PyObject *)(frame->f_executable.bits & ~(uintptr_t)3);
    return code != NULL && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
#elif PY_VERSION_HEX >= 0x030D0000
    PyObject *code = frame->f_executable;
    return code != NULL && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
#elif PY_VERSION_HEX >= 0x030C0000
    /* 3.12 gives the C stack's frames a code object that belongs to the interpreter. */
    return frame->owner == FRAME_OWNED_BY_CSTACK ? NULL : frame->f_code;
#else
    return frame->f_code;
#endif
}

/* Is this the code that the frame executes? The cheapest form of compat_frame_code(frame) == code. */
static inline int compat_frame_runs(const compat_frame *frame, const PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030E0000
    return (frame->f_executable.bits & ~(uintptr_t)3) == (uintptr_t)code;
#elif PY_VERSION_HEX >= 0x030D0000
    return frame->f_executable == (const PyObject *)code;
#else
    return frame->f_code == code;
#endif
}

/* False where the frame was entered straight from the one before it; true where C code called it. */
static inline int compat_frame_called_by_c(const compat_frame *frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    return frame->previous == NULL || compat_frame_code(frame->previous) == NULL;
#else
    return frame->is_entry;
#endif
}

/* A slot of the locals, borrowed; NULL where it is unbound. */
static inline PyObject *compat_frame_local(const compat_frame *frame, int slot)
{
#if PY_VERSION_HEX >= 0x030E0000
    uintptr_t bits = frame->localsplus[slot].bits;
    return (bits & 3) == 3 ? NULL : (PyObject *)(bits & ~(uintptr_t)3);
#else
    return frame->localsplus[slot];
#endif
}

/* The bytes from the code's start to the instruction that is executed. */
static inline int compat_frame_offset(const compat_frame *frame, PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030D0000
    const _Py_CODEUNIT *at = frame->instr_ptr;
#else
    const _Py_CODEUNIT *at = frame->prev_instr;
#endif
    return (int)((const char *)at - code->co_code_adaptive);
}

/* Objects/codeobject.c, since 3.6 */
struct compat_code_extra {
    Py_ssize_t size;
    void *extras[1];
};

/* What PyUnstable_Code_SetExtra stored under this index, or NULL. The same as PyUnstable_Code_GetExtra
 * without its checks. */
static inline void *compat_code_extra(PyCodeObject *code, Py_ssize_t index)
{
    const struct compat_code_extra *extra = code->co_extra;
    return extra != NULL && index < extra->size ? extra->extras[index] : NULL;
}

/* Gives back the places behind `index` that nobody uses. The interpreter makes one for everybody who has
 * asked for an index, and when the code object ends calls each one's function, with NULL; which may be
 * gone by then, where it is a callback of ctypes. */
static inline void compat_code_extra_trim(PyCodeObject *code, Py_ssize_t index)
{
    struct compat_code_extra *extra = code->co_extra;
    while (extra->size > index + 1 && extra->extras[extra->size - 1] == NULL)
        extra->size--;
}

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

/* The number of an int's digits (base 2**PyLong_SHIFT), negative for a negative int. */
static inline Py_ssize_t compat_long_size(PyObject *number)
{
#if PY_VERSION_HEX >= 0x030C0000
    uintptr_t tag = ((PyLongObject *)number)->long_value.lv_tag;
    Py_ssize_t digits = (Py_ssize_t)(tag >> 3);
    return (tag & 3) == 2 ? -digits : digits;
#else
    return Py_SIZE(number);
#endif
}

static inline const digit *compat_long_digits(PyObject *number)
{
#if PY_VERSION_HEX >= 0x030C0000
    return ((PyLongObject *)number)->long_value.ob_digit;
#else
    return ((PyLongObject *)number)->ob_digit;
#endif
}

/* The value of an int of one digit at most; false for the others. */
static inline int compat_long_compact(PyObject *number, int64_t *value)
{
#if PY_VERSION_HEX >= 0x030C0000
    uintptr_t tag = ((PyLongObject *)number)->long_value.lv_tag; /* digits << 3 | sign: 0, 1 is zero, 2 minus */
    *value = (1 - (int64_t)(tag & 3)) * (int64_t)((PyLongObject *)number)->long_value.ob_digit[0];
    return tag < 2 << 3;
#else
    Py_ssize_t size = Py_SIZE(number);
    *value = (int64_t)size * (int64_t)((PyLongObject *)number)->ob_digit[0];
    return -1 <= size && size <= 1;
#endif
}

/* asyncio keeps a thread's running task in its state since 3.14, its running loop since 3.13; before, in
 * the state's dictionary, until 3.11 inside of another object. Borrowed; NULL or None where none runs. */
static inline PyObject *compat_running_task(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030E0000
    return ((_PyThreadStateImpl *)state)->asyncio_running_task;
#else
    (void)state;
    return NULL;
#endif
}

static inline PyObject *compat_running_loop(PyThreadState *state, PyObject *key)
{
#if PY_VERSION_HEX >= 0x030D0000
    (void)key;
    return ((_PyThreadStateImpl *)state)->asyncio_running_loop;
#else
    PyObject *dict = state->dict;
    PyObject *found = dict != NULL ? PyDict_GetItemWithError(dict, key) : NULL;
#if PY_VERSION_HEX < 0x030C0000
    const struct {
        PyObject_HEAD
        PyObject *loop;
    } *holder = (const void *)found;
    return holder != NULL ? holder->loop : NULL;
#else
    return found;
#endif
#endif
}

/* False for a string of the old kind (3.11 only) whose characters are not there yet. */
static inline int compat_str_is_ready(PyObject *str)
{
#if PY_VERSION_HEX >= 0x030C0000
    (void)str;
    return 1;
#else
    return PyUnicode_IS_READY(str);
#endif
}

#endif
