/* pycompat.h, for 3.12 alone. */
#ifndef PYTRACE_PYTHON312_H
#define PYTRACE_PYTHON312_H

#include "record/python311_312.h"
#include "record/python312_on.h"

/* The C stack's frames have a code object that belongs to the interpreter. */
static inline PyCodeObject *compat_frame_code(const compat_frame *frame)
{
    return frame->owner == FRAME_OWNED_BY_CSTACK ? NULL : frame->f_code;
}

/* Of an instruction that has told of a call of a bound method: does it tell of its end, too? The
 * others, f(*args), do not even tell of the call. */
static inline int compat_code_is_plain_call(PyCodeObject *Py_UNUSED(code), size_t Py_UNUSED(at)) { return 1; }

static inline PyObject *compat_running_loop(PyThreadState *Py_UNUSED(state), PyObject *kept) { return kept; }

static inline const PyDictValues *compat_inline_values(PyObject *object)
{
    if (!(Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT))
        return NULL;
    PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
    return _PyDictOrValues_IsValues(either) ? _PyDictOrValues_GetValues(either) : NULL;
}

static inline PyObject *compat_managed_dict(PyObject *object)
{
    PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);
    return _PyDictOrValues_IsValues(either) ? NULL : _PyDictOrValues_GetDict(either);
}

#endif
