/* Layouts of CPython's objects; see layouts.h. */

#include "record/layouts.h"

#include "record/lookup.h"

/* Samples come and go unseen: no collection runs, and no exception is changed. */
struct unseen {
    PyObject *type, *value, *traceback;
    int collected;
};

static struct unseen begin(void)
{
    struct unseen unseen = {.collected = PyGC_Disable()};
    PyErr_Fetch(&unseen.type, &unseen.value, &unseen.traceback);
    return unseen;
}

static bool end(struct unseen *unseen, PyObject *sample, bool as_meant)
{
    Py_XDECREF(sample);
    PyErr_Restore(unseen->type, unseen->value, unseen->traceback);
    if (unseen->collected)
        PyGC_Enable();
    return as_meant;
}

bool layouts_timezone(PyTypeObject *type)
{
    static struct lookup_name datetime = {.text = "datetime"}, timedelta = {.text = "timedelta"};
    PyObject *of = lookup_global(&datetime, &timedelta);
    if (of == NULL || !PyType_Check(of) || ((PyTypeObject *)of)->tp_flags & Py_TPFLAGS_HEAPTYPE)
        return false;
    struct unseen unseen = begin();
    PyObject *offset = PyObject_CallFunction(of, "ii", 0, 3600), *name = PyUnicode_FromString("CET"), *sample = NULL;
    if (offset != NULL && name != NULL)
        sample = PyObject_CallFunctionObjArgs((PyObject *)type, offset, name, NULL);
    const struct fixed_zone *zone = (const void *)sample;
    bool as_meant = zone != NULL && zone->offset == offset && zone->name == name;
    Py_XDECREF(name);
    Py_XDECREF(offset);
    return end(&unseen, sample, as_meant);
}

/* Its context belongs to the program: the sample has one of its own. */
bool layouts_decimal(PyTypeObject *type)
{
    struct unseen unseen = begin();
    PyObject *context = PyContext_New(), *sample = NULL;
    if (context != NULL && PyContext_Enter(context) == 0) {
        sample = PyObject_CallFunction((PyObject *)type, "s", "-12345678901234567890123E-7");
        (void)PyContext_Exit(context);
    }
    const struct decimal *number = (const void *)sample;
    bool as_meant = number != NULL && (number->flags & 15) == 1 && number->exponent == -7 && number->digits == 23 &&
                    number->length == 2 && number->allocated >= 2 && number->words == number->inside &&
                    number->words[0] == 5678901234567890123 && number->words[1] == 1234;
    Py_XDECREF(context);
    return end(&unseen, sample, as_meant);
}

bool layouts_deque(PyTypeObject *type)
{
    struct unseen unseen = begin();
    PyObject *sample = PyObject_CallFunction((PyObject *)type, "(OOO)i", Py_True, Py_False, Py_Ellipsis, 9);
    const struct deque *deque = (const void *)sample;
    bool as_meant = deque != NULL && Py_SIZE(sample) == 3 && deque->longest == 9 && deque->left != NULL &&
                    deque->left == deque->right && deque->left_index >= 0 && deque->left_index < DEQUE_BLOCK - 2 &&
                    deque->right_index == deque->left_index + 2;
    if (as_meant) {
        PyObject *const *items = deque->left->data + deque->left_index;
        as_meant = items[0] == Py_True && items[1] == Py_False && items[2] == Py_Ellipsis;
    }
    return end(&unseen, sample, as_meant);
}

bool layouts_ordered(PyTypeObject *Py_UNUSED(type))
{
    struct unseen unseen = begin();
    PyObject *sample = PyODict_New();
    bool filled = sample != NULL && PyODict_SetItem(sample, Py_True, Py_None) == 0 &&
                  PyODict_SetItem(sample, Py_Ellipsis, Py_None) == 0;
    const struct ordered *ordered = (const void *)sample;
    bool as_meant = filled && ordered->keys == ordered->dict.ma_keys && ordered->first != NULL &&
                    ordered->last != NULL && ordered->first != ordered->last;
    if (as_meant)
        as_meant = ordered->first->key == Py_True && ordered->last->key == Py_Ellipsis &&
                   ordered->first->next == ordered->last && ordered->first->previous == NULL &&
                   ordered->last->next == NULL && ordered->last->previous == ordered->first;
    return end(&unseen, sample, as_meant);
}

bool layouts_array(PyTypeObject *type)
{
    struct unseen unseen = begin();
    PyObject *sample = PyObject_CallFunction((PyObject *)type, "s(ii)", "h", 7, 8);
    const struct array *array = (const void *)sample;
    bool as_meant = array != NULL && Py_SIZE(sample) == 2 && array->allocated >= 2 && array->exports == 0 &&
                    array->references == NULL && array->items != NULL && array->typecode != NULL;
    if (as_meant) {
        const int16_t *items = (const void *)array->items;
        as_meant = array->typecode[0] == 'h' && items[0] == 7 && items[1] == 8;
    }
    return end(&unseen, sample, as_meant);
}

/* Is it told apart whether it is held? Nobody else knows of it: nothing has to be waited for. */
static bool tells(PyObject *lock, bool (*is_held)(PyObject *lock))
{
    PyObject *acquired = NULL, *released = NULL;
    bool told = lock != NULL && !is_held(lock) && (acquired = PyObject_CallMethod(lock, "acquire", NULL)) != NULL &&
                is_held(lock) && (released = PyObject_CallMethod(lock, "release", NULL)) != NULL && !is_held(lock);
    Py_XDECREF(acquired);
    Py_XDECREF(released);
    return told;
}

static bool lock_is_held(PyObject *lock) { return compat_lock_is_locked(lock) == 1; }

bool layouts_lock(PyTypeObject *type)
{
    static struct lookup_name thread = {.text = "_thread"}, allocate = {.text = "allocate_lock"};
    PyObject *make = lookup_global(&thread, &allocate);
    if (make == NULL || !PyCFunction_CheckExact(make))
        return false;
    struct unseen unseen = begin();
    PyObject *sample = PyObject_CallNoArgs(make);
    return end(&unseen, sample, sample != NULL && Py_TYPE(sample) == type && tells(sample, lock_is_held));
}

static bool rlock_is_held(PyObject *lock)
{
    return compat_rlock_count(lock) == 1 && compat_rlock_owner(lock) == (int64_t)PyThread_get_thread_ident();
}

bool layouts_rlock(PyTypeObject *type)
{
    struct unseen unseen = begin();
    PyObject *sample = PyObject_CallNoArgs((PyObject *)type);
    return end(&unseen, sample, tells(sample, rlock_is_held));
}
