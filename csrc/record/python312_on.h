/* pycompat.h, for 3.12 and later. */
#ifndef PYTRACE_PYTHON312_ON_H
#define PYTRACE_PYTHON312_ON_H

#define HAVE_MONITORING 1
#define COMPAT_PATH_PARTS "_raw_paths"

static inline int compat_interrupted(void) { return _PyRuntime.signals.unhandled_keyboard_interrupt; }

static inline const void *compat_state_address(void) { return &PyInterpreterState_Main()->ceval.gil->last_holder; }

static inline int compat_frame_called_by_c(const compat_frame *frame)
{
    return frame->previous == NULL || compat_frame_code(frame->previous) == NULL;
}

/* An int's tag: digits << 3 | sign; sign: 0, 1 is zero, 2 minus. */
static inline Py_ssize_t compat_long_size(PyObject *number)
{
    uintptr_t tag = ((PyLongObject *)number)->long_value.lv_tag;
    Py_ssize_t digits = (Py_ssize_t)(tag >> 3);
    return (tag & 3) == 2 ? -digits : digits;
}

static inline const digit *compat_long_digits(PyObject *number)
{
    return ((PyLongObject *)number)->long_value.ob_digit;
}

static inline int compat_long_compact(PyObject *number, int64_t *value)
{
    uintptr_t tag = ((PyLongObject *)number)->long_value.lv_tag;
    *value = (1 - (int64_t)(tag & 3)) * (int64_t)((PyLongObject *)number)->long_value.ob_digit[0];
    return tag < 2 << 3;
}

/* That of a type that is built in belongs to the interpreter. */
static inline PyObject *compat_type_dict(PyTypeObject *type)
{
    if (type->tp_dict != NULL)
        return type->tp_dict;
    PyObject *dict = PyType_GetDict(type);
    Py_XDECREF(dict);
    return dict;
}

static inline unsigned compat_type_version(PyTypeObject *type)
{
    PyUnstable_Type_AssignVersionTag(type);
    return type->tp_version_tag;
}

static inline int compat_str_is_ready(PyObject *Py_UNUSED(str)) { return 1; }

#endif
