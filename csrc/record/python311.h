/* pycompat.h, for 3.11 alone. */
#ifndef PYTRACE_PYTHON311_H
#define PYTRACE_PYTHON311_H

#include "record/python311_312.h"

#define HAVE_MONITORING 0
#define COMPAT_PATH_PARTS "_parts"

#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_SetExtra _PyCode_SetExtra

PyAPI_DATA(int) _Py_UnhandledKeyboardInterrupt;

static inline int compat_interrupted(void) { return _Py_UnhandledKeyboardInterrupt; }

static inline const void *compat_state_address(void) { return &_PyRuntime.gilstate.tstate_current; }

static inline PyCodeObject *compat_frame_code(const compat_frame *frame) { return frame->f_code; }

static inline int compat_frame_called_by_c(const compat_frame *frame) { return frame->is_entry; }

static inline Py_ssize_t compat_long_size(PyObject *number) { return Py_SIZE(number); }

static inline const digit *compat_long_digits(PyObject *number) { return ((PyLongObject *)number)->ob_digit; }

static inline int compat_long_compact(PyObject *number, int64_t *value)
{
    Py_ssize_t size = Py_SIZE(number);
    *value = (int64_t)size * (int64_t)((PyLongObject *)number)->ob_digit[0];
    return -1 <= size && size <= 1;
}

static inline PyObject *compat_running_loop(PyThreadState *Py_UNUSED(state), PyObject *kept)
{
    const struct {
        PyObject_HEAD
        PyObject *loop;
    } *holder = (const void *)kept;
    return kept != NULL && strcmp(Py_TYPE(kept)->tp_name, "_RunningLoopHolder") == 0 ? holder->loop : NULL;
}

static inline const PyDictValues *compat_inline_values(PyObject *object)
{
    return Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT ? *_PyObject_ValuesPointer(object) : NULL;
}

static inline PyObject *compat_managed_dict(PyObject *object) { return *_PyObject_ManagedDictPointer(object); }

static inline PyObject *compat_type_dict(PyTypeObject *type) { return type->tp_dict; }

/* The first look-up does it. */
static inline unsigned compat_type_version(PyTypeObject *type)
{
    static PyObject *name;
    if (name == NULL && (name = PyUnicode_InternFromString("__doc__")) == NULL)
        PyErr_Clear();
    if (name != NULL)
        _PyType_Lookup(type, name);
    return type->tp_version_tag;
}

static inline int compat_str_is_ready(PyObject *str) { return PyUnicode_IS_READY(str); }

#endif
