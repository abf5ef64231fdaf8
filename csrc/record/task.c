/* Tasks: the running one and its name; task.h has the rest.
 *
 * No code of the program runs: C functions of the interpreter read the data from the places where
 * asyncio and trio keep them. A task of another kind has no name.
 */

#include "record/task.h"

#include "common/decimal.h"
#include "format/event.h"
#include "record/lookup.h"
#include "record/stats.h"
#include "record/text.h"

struct stretch {
    const PyObject *task; /* only for comparison: it may be gone */
    ptrdiff_t call;       /* index of the open call that it ends with */
    size_t size;          /* of the name; 0: it has none */
    char name[TASK_NAME_MAX];
};

/* The open stretches of a thread: a task may begin another one and run its first step (eager). */
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

/* Writes the name of the task whose events follow. It is published together with the next
 * record. */
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

/* ---- who runs ----------------------------------------------------------------------------- */

/* The running task of asyncio, borrowed; or NULL. */
static PyObject *running_of_asyncio(void)
{
    static struct lookup_name loop_key = {.text = "__asyncio_running_event_loop__"};
    static struct lookup_name module = {.text = "asyncio.tasks"}, name = {.text = "_current_tasks"};
    static PyObject *running; /* tasks by loop; since 3.14 of those in Python */
    PyThreadState *state = compat_thread_state();
    PyObject *known = compat_running_task(state);
    if (known != NULL)
        return known;
    PyObject *kept = COMPAT_LOOP_IN_STATE ? NULL : lookup_item(state->dict, &loop_key);
    PyObject *loop = compat_running_loop(state, kept), *other, *task;
    if (loop == NULL || loop == Py_None)
        return NULL;
    if (running == NULL) {
        PyObject *found = lookup_global(&module, &name);
        if (found == NULL || !PyDict_Check(found))
            return NULL;
        running = Py_NewRef(found);
    }
    /* Not by key: a loop may have an __eq__ of its own. There is an entry for each running loop,
     * mostly one. */
    for (Py_ssize_t at = 0; PyDict_Next(running, &at, &other, &task);)
        if (other == loop)
            return task;
    return NULL;
}

/* The function of trio that runs each task, and the index of the local that holds the task. */
static PyCodeObject *trio_code;
static int trio_slot;

static bool find_trio(void)
{
    static struct lookup_name module = {.text = "trio._core._run"}, name = {.text = "unrolled_run"};
    if (trio_code != NULL)
        return true;
    PyObject *found = lookup_global(&module, &name);
    if (found == NULL || !PyFunction_Check(found))
        return false;
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(found);
    for (trio_slot = 0; trio_slot < code->co_nlocalsplus; trio_slot++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, trio_slot), "task") == 0) {
            trio_code = (PyCodeObject *)Py_NewRef((PyObject *)code);
            return true;
        }
    return false;
}

/* The running task of trio, borrowed; or NULL. trio also has it in a threading.local, but reading
 * that may run code. */
static PyObject *running_of_trio(void)
{
    if (!find_trio())
        return NULL;
    for (const compat_frame *frame = compat_current_frame(); frame != NULL; frame = frame->previous)
        if (compat_frame_runs(frame, trio_code))
            return compat_frame_local(frame, trio_slot);
    return NULL;
}

/* ---- names -------------------------------------------------------------------------------- */

/* Finds the first text or number among the objects that a task refers to: its name comes before its
 * results. */
static int is_name(PyObject *held, void *name)
{
    if (!PyUnicode_Check(held) && !PyLong_CheckExact(held))
        return 0;
    *(PyObject **)name = held;
    return 1;
}

/* The name of asyncio's task in C, borrowed: a text, or a number as long as nobody has asked for
 * it. Its get_name would format the number, and at that the interpreter may run signal handlers. So
 * the name is found as by the garbage collector. */
static PyObject *name_of_asyncio(PyObject *task)
{
    static struct lookup_name module = {.text = "_asyncio"}, task_type = {.text = "Task"};
    static PyObject *type;
    if (type == NULL) {
        PyObject *found = lookup_global(&module, &task_type);
        if (found == NULL || !PyType_Check(found) || ((PyTypeObject *)found)->tp_traverse == NULL)
            return NULL;
        type = Py_NewRef(found);
    }
    PyObject *name = NULL;
    if (PyObject_TypeCheck(task, (PyTypeObject *)type))
        ((PyTypeObject *)type)->tp_traverse(task, is_name, &name);
    return name;
}

/* The name that asyncio makes of a number: Task-1. A server's tasks take turns, so it is not
 * formatted each time. */
static size_t put_number(char *name, uint64_t number)
{
    static const char before[] = "Task-";
    char digits[DECIMAL_MAX], *end = digits + sizeof digits, *start = decimal_before(end, number);
    size_t size = (size_t)(end - start);
    memcpy(name, before, sizeof before - 1);
    memcpy(name + sizeof before - 1, start, size);
    return sizeof before - 1 + size;
}

size_t task_name_of(PyObject *task, char *name, size_t size)
{
    static struct lookup_name name_in_python = {.text = "_name"}, name_in_trio = {.text = "name"};
    PyObject *text = name_of_asyncio(task);
    if (text != NULL && PyLong_CheckExact(text))
        return put_number(name, PyLong_AsUnsignedLongLongMask(text));
    if (text == NULL)
        text = lookup_attribute(task, &name_in_python);
    if (text == NULL)
        text = lookup_attribute(task, &name_in_trio);
    return text_qualified(name, size, NULL, text);
}

/* ---- stretches ---------------------------------------------------------------------------- */

/* Room for another stretch of the thread; NULL: memory is short. */
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

/* Begins a stretch if another task runs than before; it ends with an open call. `from`: the
 * greenlet that has switched to this one, or NULL. trio's frames are on the stack of one greenlet,
 * and its task runs in all of them. */
static void begin(struct thread *thread, ptrdiff_t call, const struct thread *from)
{
    STAT(task_looked);
    const struct stretch *same = NULL;
    PyObject *task = running_of_asyncio();
    if (task == NULL)
        task = running_of_trio();
    if (task == NULL && from != NULL && trio_code != NULL) {
        same = innermost(from->tasks);
        task = (PyObject *)same->task;
    }
    if (task == innermost(thread->tasks)->task)
        return;
    struct stretch *stretch = next_stretch(thread);
    if (stretch == NULL)
        return;
    STAT(task_changed);
    if (same != NULL) {
        *stretch = *same;
    } else {
        stretch->task = task;
        stretch->size = task != NULL ? task_name_of(task, stretch->name, sizeof stretch->name) : 0;
    }
    stretch->call = call;
    put(thread);
}

void task_coroutine_entered(struct thread *thread, const compat_frame *frame)
{
    const struct open_call *before = thread->top - 1;
    if (before->code != NULL && !compat_frame_called_by_c(frame) && compat_frame_runs(frame->previous, before->code))
        return; /* the one before went on with it */
    begin(thread, thread->top - thread->calls, NULL); /* the one about to begin */
}

void task_coroutine_left(struct thread *thread)
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

/* A task may use a greenlet for code that is no coroutine. All events of that greenlet until it
 * switches belong to the task, except those of coroutines that it is in the middle of. */
void task_greenlet_entered(struct thread *greenlet, const struct thread *from)
{
    struct tasks *tasks = greenlet->tasks;
    bool had = tasks != NULL && tasks->count;
    if (had && tasks->stretches[tasks->count - 1].call > 0)
        return;
    if (had)
        tasks->count = 0; /* that task may be gone, and another one be in its place */
    begin(greenlet, 0, from);
    if (had && !greenlet->tasks->count)
        put(greenlet);
}
