/* What the hook reads of the interpreter's inside: a function for each thing, which does the same
 * on every version. python311.h to python315.h have what differs between them.
 *
 * The interpreter's internal frame is read, never written: what a call's arguments are stands
 * there, and asking for a frame object would cost more than all the rest. Each function below says
 * what it returns; none of them runs Python code, allocates, or changes a reference count.
 */
#ifndef PYTRACE_PYCOMPAT_H
#define PYTRACE_PYCOMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef Py_GIL_DISABLED
#error "pytrace does not support free-threaded builds"
#endif

typedef struct _PyInterpreterFrame compat_frame;

/* ---- each version's own ------------------------------------------------------------------- */

/* Each of these files defines all of what follows, and says:
 *   HAVE_MONITORING           there is sys.monitoring; else profile functions are set
 *   COMPAT_LOOP_IN_STATE      see compat_running_loop
 *   COMPAT_CLOSES_UNSEEN      some of its patch releases end a suspended generator without an event;
 *                             see closed.c
 *   COMPAT_MADE_FRAMES        C code reports its functions to profile functions, with frames that it
 *                             makes up; else to sys.monitoring. See cython.h
 *   COMPAT_RAISE_NEEDS_DATA   see prepare_greenlets in monitoring.c
 *   COMPAT_PATH_PARTS         the attribute of a path that has its parts
 *   struct compat_future      an asyncio.Future written in C
 *   struct compat_lock, compat_rlock   those of _thread; and below
 */

/* True if the program ended by a KeyboardInterrupt that nothing caught: when Python is
 * finalized, the process ends by SIGINT, and not by exit()
 * (https://github.com/python/cpython/pull/11862). Known until then and behind it. */
static inline int compat_interrupted(void);

/* See compat_state_word. */
static inline const void *compat_state_address(void);
/* This thread's state. Needs the GIL. */
static inline PyThreadState *compat_thread_state(void);
/* The frame that a thread executes. Needs the GIL. */
static inline compat_frame *compat_frame_of(const PyThreadState *state);

/* What the frame executes, borrowed: its code object; in a frame that belongs to C anything, or
 * NULL. */
static inline PyObject *compat_frame_executable(const compat_frame *frame);
/* The code object, borrowed; NULL for frames that belong to C. */
static inline PyCodeObject *compat_frame_code(const compat_frame *frame);
/* False if the frame was entered straight from the one before it; true if C code called
 * it. */
static inline int compat_frame_called_by_c(const compat_frame *frame);
/* A slot of the locals, borrowed; NULL if it is unbound. */
static inline PyObject *compat_frame_local(const compat_frame *frame, int slot);
/* The position of the current instruction. */
static inline const void *compat_frame_instruction(const compat_frame *frame);

/* The number of an int's digits (base 2**PyLong_SHIFT), negative for a negative int. */
static inline Py_ssize_t compat_long_size(PyObject *number);
static inline const digit *compat_long_digits(PyObject *number);
/* The value of an int of one digit at most; false for the others. */
static inline int compat_long_compact(PyObject *number, int64_t *value);

/* asyncio keeps a thread's running task in its state since 3.14, its running loop since 3.13
 * (https://github.com/python/cpython/issues/129898, .../121621);
 * before, in the state's dictionary, until 3.11 inside of another object. Borrowed; NULL or None
 * if none runs. */
static inline PyObject *compat_running_task(PyThreadState *state);
/* `kept`: what the state's dictionary has of it, if it is there. */
static inline PyObject *compat_running_loop(PyThreadState *state, PyObject *kept);

/* The attributes that stand in an object itself, in the place of a dictionary; NULL: it has none
 * such. */
static inline const PyDictValues *compat_inline_values(PyObject *object);
/* How many of them there are at most. */
static inline Py_ssize_t compat_inline_room(const PyDictValues *values);
/* How many of them are set; and the number of each, in the order in which they were set. */
static inline Py_ssize_t compat_inline_count(const PyDictValues *values);
static inline Py_ssize_t compat_inline_place(const PyDictValues *values, Py_ssize_t at);
/* The dictionary of an object whose type has Py_TPFLAGS_MANAGED_DICT, borrowed; NULL: none yet. */
static inline PyObject *compat_managed_dict(PyObject *object);

/* The names of a type's own attributes, borrowed. */
static inline PyObject *compat_type_dict(PyTypeObject *type);

/* The version of a type that cannot change, given to it if it has none yet. */
static inline unsigned compat_type_version(PyTypeObject *type);

/* -1: the lock lies otherwise. */
static inline int compat_lock_is_locked(PyObject *lock);
/* The thread that holds an RLock, and how often; 0: nobody. */
static inline int64_t compat_rlock_owner(PyObject *lock);
static inline int64_t compat_rlock_count(PyObject *lock);

/* False for a string of the old kind (3.11 only) whose characters are not there yet. */
static inline int compat_str_is_ready(PyObject *str);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED /* the public headers have it, too */
#include <internal/pycore_frame.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_interp.h>
#undef _PyObject_LookupSpecial /* 3.11: another name of a function of pycore_object.h */
#include <internal/pycore_context.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>
#include <frameobject.h>
#pragma GCC diagnostic pop

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x03100000
#error "pytrace knows the frames of CPython 3.11 to 3.15"
#elif PY_VERSION_HEX < 0x030C0000
#include "record/python311.h"
#elif PY_VERSION_HEX < 0x030D0000
#include "record/python312.h"
#elif PY_VERSION_HEX < 0x030E0000
#include "record/python313.h"
#elif PY_VERSION_HEX < 0x030F0000
#include "record/python314.h"
#else
#include "record/python315.h"
#endif
#undef Py_BUILD_CORE
#undef CONSTANT_NONE /* 3.15: operands of LOAD_COMMON_CONSTANT; event.h has such names, too */
#undef CONSTANT_FALSE
#undef CONSTANT_TRUE

/* ---- what they have in common ------------------------------------------------------------- */

/* The word where the interpreter keeps the state of the thread that holds the GIL: in a
 * callback, this thread's. It is read instead of asking for the state, which costs as much as
 * encoding an argument. NULL: it is somewhere else, as this was built for a Python whose inside
 * is laid out in another way. Needs the GIL. */
static inline PyThreadState *const volatile *compat_state_word(void)
{
    PyThreadState *const volatile *state = compat_state_address();
    return *state == PyThreadState_Get() ? state : NULL;
}

/* The frame that this thread executes. Needs the GIL. */
static inline compat_frame *compat_current_frame(void)
{
    return compat_frame_of(compat_thread_state());
}

/* Is this the code that the frame executes? The cheapest form of compat_frame_code(frame) ==
 * code. */
static inline int compat_frame_runs(const compat_frame *frame, const PyCodeObject *code)
{
    return compat_frame_executable(frame) == (const PyObject *)code;
}

/* The bytes from the code's start to the instruction that is executed. */
static inline int compat_frame_offset(const compat_frame *frame, PyCodeObject *code)
{
    return (int)((const char *)compat_frame_instruction(frame) - code->co_code_adaptive);
}

/* Objects/codeobject.c, since 3.6 */
struct compat_code_extra {
    Py_ssize_t size;
    void *extras[1];
};

/* What PyUnstable_Code_SetExtra stored under this index, or NULL. The same as
 * PyUnstable_Code_GetExtra without its checks. */
static inline void *compat_code_extra(PyCodeObject *code, Py_ssize_t index)
{
    const struct compat_code_extra *extra = code->co_extra;
    return extra != NULL && index < extra->size ? extra->extras[index] : NULL;
}

/* Gives back the places behind `index` that nobody uses. The interpreter makes one for everybody
 * who has asked for an index, and when the code object ends calls each one's function, with NULL
 * (https://github.com/python/cpython/issues/122491). The function may be gone by then, if
 * it is a callback of ctypes. */
static inline void compat_code_extra_trim(PyCodeObject *code, Py_ssize_t index)
{
    struct compat_code_extra *extra = code->co_extra;
    while (extra->size > index + 1 && extra->extras[extra->size - 1] == NULL)
        extra->size--;
}


/* True: all keys are exact strings, so that no lookup runs code of a key's class. */
static inline int compat_dict_has_only_str(PyObject *dict)
{
    return DK_IS_UNICODE(((PyDictObject *)dict)->ma_keys);
}

/* One of compat_inline_values after the other: its name, and its value in *value, NULL if it is
 * not set. NULL: there are no more. */
static inline PyObject *compat_inline_next(PyObject *object, const PyDictValues *values, Py_ssize_t *at,
                                           PyObject **value)
{
    PyDictKeysObject *keys = ((PyHeapTypeObject *)Py_TYPE(object))->ht_cached_keys;
    if (keys == NULL || *at >= compat_inline_room(values) || *at >= keys->dk_nentries)
        return NULL;
    *value = values->values[*at];
    return DK_UNICODE_ENTRIES(keys)[(*at)++].me_key;
}

/* The names of an object's inline values, by their place. They only become more while the type
 * lives. */
static inline const PyDictKeysObject *compat_inline_keys(PyObject *object)
{
    return ((PyHeapTypeObject *)Py_TYPE(object))->ht_cached_keys;
}

/* The one of compat_inline_values that was set as number `at` of those that are set: its name, and
 * its value in *value. NULL: there is none. */
static inline PyObject *compat_inline_set(PyObject *object, const PyDictValues *values, Py_ssize_t at,
                                          PyObject **value)
{
    PyDictKeysObject *keys = ((PyHeapTypeObject *)Py_TYPE(object))->ht_cached_keys;
    Py_ssize_t place = compat_inline_place(values, at);
    if (keys == NULL || place >= compat_inline_room(values) || place >= keys->dk_nentries)
        return NULL;
    *value = values->values[place];
    return *value != NULL ? DK_UNICODE_ENTRIES(keys)[place].me_key : NULL;
}

/* The dictionary of an object, borrowed; NULL if it has none, or none yet. */
static inline PyObject *compat_instance_dict(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT)
        return compat_managed_dict(object);
    if (type->tp_dictoffset > 0)
        return *(PyObject **)((char *)object + type->tp_dictoffset);
    if (type->tp_dictoffset == 0)
        return NULL;
    PyObject **place = _PyObject_GetDictPtr(object); /* behind the items, however many there are */
    return place != NULL ? *place : NULL;
}

#endif
