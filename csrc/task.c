/* Tasks: which one runs, and what it is called; task.h has the rest.
 *
 * No code of the program is run: what is asked for is read from where asyncio and trio keep it, by C
 * functions of the interpreter alone. A task of a kind that none of them knows has no name.
 */

#include "task.h"

#include "decimal.h"

struct stretch {
    const PyObject *task; /* only for comparison: it may be gone */
    ptrdiff_t call;       /* index of the open call that it ends with */
    size_t size;          /* of the name; 0: it has none */
    char name[TASK_NAME_MAX];
};

/* The stretches that are open in a thread: a task may begin another one and run its first step (eager). */
struct tasks {
    size_t count, size;
    struct stretch stretches[];
};

#define FIRST_STRETCHES 4

/* ---- what is written ---------------------------------------------------------------------- */

static const struct stretch *innermost(const struct tasks *tasks)
{
    static const struct stretch none;
    return tasks != NULL && tasks->count ? &tasks->stretches[tasks->count - 1] : &none;
}

/* Writes whose events follow. It is published together with the record behind it. */
static void put(struct thread *thread)
{
    struct stream *stream = &thread->stream;
    const struct stretch *stretch = innermost(thread->tasks);
    if (stream->next == NULL)
        return; /* the next chunk begins with it */
    if (stream->end - stream->next < EVENTS_TASK_MAX)
        stream->end = stream->next; /* the same: the next record has no room in this one */
    else
        stream->next = events_put_task(stream->next, stretch->name, stretch->size);
}

uint8_t *task_put_again(struct thread *thread, uint8_t *p)
{
    const struct stretch *stretch = innermost(thread->tasks);
    if (stretch->size)
        thread->stream.next = p = events_put_task(p, stretch->name, stretch->size);
    return p;
}

void task_forget(struct thread *thread)
{
    if (thread->tasks != NULL)
        thread->tasks->count = 0;
}

/* ---- who runs ----------------------------------------------------------------------------- */

/* What a module that the program has imported has under a name, borrowed; or NULL. */
static PyObject *find_global(const char *module, const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *found = modules != NULL && PyDict_Check(modules) ? PyDict_GetItemString(modules, module) : NULL;
    return found != NULL && PyModule_Check(found) ? PyDict_GetItemString(PyModule_GetDict(found), name) : NULL;
}

/* The running task of asyncio, borrowed; or NULL. */
static PyObject *running_of_asyncio(void)
{
    static PyObject *key, *running; /* running: a dictionary of tasks by loop; since 3.14 of those in Python */
    PyThreadState *state = compat_thread_state();
    PyObject *known = compat_running_task(state);
    if (known != NULL)
        return known;
    if (key == NULL && (key = PyUnicode_InternFromString("__asyncio_running_event_loop__")) == NULL)
        return NULL;
    PyObject *loop = compat_running_loop(state, key), *other, *task;
    if (loop == NULL || loop == Py_None)
        return NULL;
    if (running == NULL) {
        PyObject *found = find_global("asyncio.tasks", "_current_tasks");
        if (found == NULL || !PyDict_Check(found))
            return NULL;
        running = Py_NewRef(found);
    }
    /* Not by key: a loop may have an __eq__ of its own. There are as many as loops run, mostly one. */
    for (Py_ssize_t at = 0; PyDict_Next(running, &at, &other, &task);)
        if (other == loop)
            return task;
    return NULL;
}

/* The running task of trio, borrowed; or NULL. */
static PyObject *running_of_trio(void)
{
    static PyObject *context, *name; /* context: an instance of a subclass of threading.local */
    if (context == NULL) {
        PyObject *found = find_global("trio._core._run", "GLOBAL_RUN_CONTEXT");
        PyTypeObject *base = found != NULL ? Py_TYPE(found)->tp_base : NULL;
        if (base == NULL || strcmp(base->tp_name, "_thread._local") != 0 ||
            Py_TYPE(found)->tp_getattro != base->tp_getattro)
            return NULL;
        if (name == NULL && (name = PyUnicode_InternFromString("task")) == NULL)
            return NULL;
        context = Py_NewRef(found);
    }
    PyObject *task = PyObject_GetAttr(context, name);
    Py_XDECREF(task); /* it runs, and so lives */
    return task;
}

/* ---- names -------------------------------------------------------------------------------- */

/* An attribute that is a slot (__slots__) or stands in the object's dictionary; or NULL. */
static PyObject *plain_attribute(PyObject *object, const char *name)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = ((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_dict;
        PyObject *found = dict != NULL ? PyDict_GetItemString(dict, name) : NULL;
        if (found == NULL)
            continue;
        if (Py_TYPE(found) != &PyMemberDescr_Type)
            return NULL;
        return Py_TYPE(found)->tp_descr_get(found, object, (PyObject *)type);
    }
    PyObject *dict = PyObject_GenericGetDict(object, NULL);
    PyObject *found = dict != NULL && PyDict_Check(dict) ? PyDict_GetItemString(dict, name) : NULL;
    Py_XINCREF(found);
    Py_XDECREF(dict);
    return found;
}

/* Of what a task refers to, the first that is text or a number: its name comes before its results. */
static int is_name(PyObject *held, void *name)
{
    if (!PyUnicode_Check(held) && !PyLong_CheckExact(held))
        return 0;
    *(PyObject **)name = held;
    return 1;
}

/* What asyncio's task in C is called, borrowed: text, or a number as long as nobody has asked; its get_name
 * would make the text of it, which is one of the places where the interpreter runs signal handlers. So its
 * name is asked for as the garbage collector would. */
static PyObject *name_of_asyncio(PyObject *task)
{
    static PyObject *type;
    if (type == NULL) {
        PyObject *found = find_global("_asyncio", "Task");
        if (found == NULL || !PyType_Check(found) || ((PyTypeObject *)found)->tp_traverse == NULL)
            return NULL;
        type = Py_NewRef(found);
    }
    PyObject *name = NULL;
    if (PyObject_TypeCheck(task, (PyTypeObject *)type))
        ((PyTypeObject *)type)->tp_traverse(task, is_name, &name);
    return name;
}

/* The name that asyncio makes of a number: Task-1. A server's tasks take turns: no formatting each time. */
static size_t put_number(char *name, uint64_t number)
{
    static const char before[] = "Task-";
    char digits[DECIMAL_MAX], *end = digits + sizeof digits, *start = decimal_before(end, number);
    size_t size = (size_t)(end - start);
    memcpy(name, before, sizeof before - 1);
    memcpy(name + sizeof before - 1, start, size);
    return sizeof before - 1 + size;
}

static size_t name_of(PyObject *task, char *name, size_t size)
{
    PyObject *text = name_of_asyncio(task);
    if (text != NULL && PyLong_CheckExact(text))
        return put_number(name, PyLong_AsUnsignedLongLongMask(text));
    Py_XINCREF(text);
    if (text == NULL)
        text = plain_attribute(task, "_name"); /* asyncio's in Python */
    if (text == NULL)
        text = plain_attribute(task, "name"); /* trio's */
    size_t length = codes_qualified(name, size, NULL, text);
    Py_XDECREF(text);
    return length;
}

/* ---- stretches ---------------------------------------------------------------------------- */

/* Room for another stretch of the thread; NULL where memory is short. */
static struct stretch *next_stretch(struct thread *thread)
{
    struct tasks *tasks = thread->tasks;
    if (tasks == NULL || tasks->count == tasks->size) {
        size_t size = tasks != NULL ? tasks->size * 2 : FIRST_STRETCHES;
        struct tasks *larger = PyMem_RawRealloc(tasks, sizeof *tasks + size * sizeof *tasks->stretches);
        if (larger == NULL)
            return NULL;
        if (tasks == NULL)
            larger->count = 0;
        larger->size = size;
        thread->tasks = tasks = larger;
    }
    return &tasks->stretches[tasks->count++];
}

/* Begins a stretch, where another task runs than before; it ends with an open call. */
static void begin(struct thread *thread, ptrdiff_t call)
{
    PyObject *task = running_of_asyncio();
    if (task == NULL)
        task = running_of_trio();
    if (task == innermost(thread->tasks)->task)
        return;
    struct stretch *stretch = next_stretch(thread);
    if (stretch == NULL)
        return;
    stretch->task = task;
    stretch->call = call;
    stretch->size = task != NULL ? name_of(task, stretch->name, sizeof stretch->name) : 0;
    put(thread);
}

static void begin_quietly(struct thread *thread, ptrdiff_t call)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    begin(thread, call);
    PyErr_Restore(type, value, traceback); /* also forgets what went wrong */
}

void hook_coroutine_entered(struct thread *thread, const compat_frame *frame)
{
    const struct open_call *before = thread->top - 1;
    if (before->code != NULL && !compat_frame_called_by_c(frame) && compat_frame_runs(frame->previous, before->code))
        return; /* the one before went on with it */
    begin_quietly(thread, thread->top - thread->calls); /* the one about to begin */
}

void hook_coroutine_left(struct thread *thread)
{
    struct tasks *tasks = thread->tasks;
    if (tasks == NULL || !tasks->count)
        return;
    size_t count = tasks->count;
    while (count && tasks->stretches[count - 1].call >= thread->top - thread->calls)
        count--;
    if (count == tasks->count)
        return;
    tasks->count = count;
    put(thread);
}

/* A task may let a greenlet do what is not written as a coroutine. All that this one does until it switches
 * is the task's, but for coroutines that it is in the middle of. */
void hook_greenlet_entered(struct thread *lane)
{
    struct tasks *tasks = lane->tasks;
    bool had = tasks != NULL && tasks->count;
    if (had && tasks->stretches[tasks->count - 1].call > 0)
        return;
    if (had)
        tasks->count = 0; /* that task may be gone, and another one be in its place */
    begin_quietly(lane, 0);
    if (had && !lane->tasks->count)
        put(lane);
}
