/* pycompat.h, for 3.11 to 3.13 alone: the locks of _thread (Modules/_threadmodule.c). */
#ifndef PYTRACE_PYTHON311_313_H
#define PYTRACE_PYTHON311_313_H

struct compat_lock {
    PyObject_HEAD
    PyThread_type_lock lock;
    PyObject *references;
    char locked;
};

struct compat_small_lock { /* of later patch releases of 3.13: a PyMutex */
    PyObject_HEAD
    uint8_t bits;
};

struct compat_rlock {
    PyObject_HEAD
    PyThread_type_lock lock;
    unsigned long owner, count;
    PyObject *references;
};

static inline int compat_lock_is_locked(PyObject *lock)
{
    Py_ssize_t size = Py_TYPE(lock)->tp_basicsize;
    if (size == (Py_ssize_t)sizeof(struct compat_lock))
        return ((struct compat_lock *)lock)->locked;
    return size == (Py_ssize_t)sizeof(struct compat_small_lock) ? ((struct compat_small_lock *)lock)->bits & 1 : -1;
}

static inline int64_t compat_rlock_owner(PyObject *lock) { return (int64_t)((struct compat_rlock *)lock)->owner; }

static inline int64_t compat_rlock_count(PyObject *lock) { return (int64_t)((struct compat_rlock *)lock)->count; }

#endif
