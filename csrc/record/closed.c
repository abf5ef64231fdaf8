/* Generators that the interpreter closes without an event.
 *
 * A generator that waits at a yield outside of any `try` and `with` has nothing to do when it is
 * closed. Since 3.13 close() and the finalizer end it on the spot, and its frame does not run.
 * There is no event, as if it were suspended for ever
 * (https://github.com/python/cpython/issues/140373; 3.13.10 and 3.14.1 run the frame again if a
 * tool listens).
 *
 * So functions of ours call both. If a suspended generator has ended after such a call, without an
 * event, the end is recorded as in the versions that report it: throw, raise and exception, of
 * GeneratorExit. A generator that waits in `yield from` of another one is closed together with it;
 * then the finalizer of the inner one reports. */

#include "record/closed.h"

#include "record/c_calls.h"
#include "record/stats.h"

#if COMPAT_CLOSES_UNSEEN

static PyInterpreterState *interpreter; /* the one that is recorded */
static PyObject *generator_exit;

/* No code runs between these events, and nobody sees the generator: arguments and tasks of its
 * frame are not read. */
static void record(PyCodeObject *code, const compat_frame *frame, uint64_t start)
{
    struct thread *thread = hook_here(true);
    struct code_info *info = codes_info(code);
    bool out_of_scope;
    c_calls_catch_up(thread, code, NULL, false);
    if (!thread->ready || info == NULL || !info->ready)
        info = hook_prepare(code, NULL, 0, &thread, &out_of_scope);
    if (info == NULL)
        return;
    STAT(end_unseen);
    const struct open_call *top = thread->top;
    hook_enter(thread, code, info, NULL, EVENT_THROW, generator_exit);
    if (thread->top == top) /* memory is short */
        return;
    struct open_call *call = thread->top - 1;
    call->start = start;
    hook_raise(thread, info, generator_exit, codes_line(info, code, compat_frame_offset(frame, code)),
               record_now(thread), NULL);
    hook_leave(thread, call, info, EVENT_EXCEPTION, generator_exit, NULL, false, record_now(thread));
}

/* A generator was closed, or finalized. */
static void look(PyObject *generator)
{
    const compat_frame *frame = compat_generator_frame(generator);
    PyThreadState *state = compat_thread_state();
    uint64_t start;
    if (!recorder.on || state == NULL || state->interp != interpreter || !compat_generator_has_ended(generator) ||
        !generators_ended(frame, &start))
        return;
    PyCodeObject *code = compat_frame_code(frame);
    /* Away from a yield, it ended by itself, in a @notrace function. Inside a callback, a record of
     * this thread is half written. */
    if (code == NULL || !compat_frame_is_at_yield(frame) || state->tracing)
        return;
    PyObject *pending = PyErr_GetRaisedException();
    PyThreadState_EnterTracing(state);
    bool began = hook_begin_writing();
    record(code, frame, start);
    hook_end_writing(began);
    PyThreadState_LeaveTracing(state);
    PyErr_SetRaisedException(pending);
}

/* A type whose objects are generators. */
struct watched {
    PyTypeObject *type;
    bool has_close;
    destructor finalize; /* the interpreter's own; NULL: not watched yet */
    PyCFunction close;
    PyMethodDef method;  /* its own, except the function */
};

static struct watched watched[] = {
    {.type = &PyGen_Type, .has_close = true}, {.type = &PyCoro_Type, .has_close = true}, {.type = &PyAsyncGen_Type}};

#define COUNT (sizeof watched / sizeof *watched)

static const struct watched *find(const PyObject *generator)
{
    size_t at = 0;
    while (at < COUNT - 1 && Py_TYPE(generator) != watched[at].type)
        at++;
    return &watched[at];
}

static void on_finalize(PyObject *generator)
{
    find(generator)->finalize(generator);
    look(generator);
}

static PyObject *on_close(PyObject *generator, PyObject *none)
{
    PyObject *result = find(generator)->close(generator, none);
    look(generator);
    return result;
}

/* Puts on_close into the object of the method, which the program has no means to see. */
static int watch_close(struct watched *each)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)each->type, "close");
    if (found == NULL)
        return -1;
    PyMethodDescrObject *descriptor = (PyMethodDescrObject *)found;
    if (Py_IS_TYPE(found, &PyMethodDescr_Type) && descriptor->d_method->ml_flags == METH_NOARGS) {
        each->method = *descriptor->d_method;
        each->close = each->method.ml_meth;
        each->method.ml_meth = on_close;
        descriptor->d_method = &each->method;
    }
    Py_DECREF(found);
    return 0;
}

int closed_watch(void)
{
    if (generator_exit == NULL && (generator_exit = PyObject_CallNoArgs(PyExc_GeneratorExit)) == NULL)
        return -1;
    interpreter = PyInterpreterState_Get();
    for (struct watched *each = watched; each < watched + COUNT; each++) {
        if (each->finalize != NULL)
            continue;
        if (each->has_close && watch_close(each) < 0)
            return -1;
        each->finalize = each->type->tp_finalize;
        each->type->tp_finalize = on_finalize;
    }
    return 0;
}

#else

int closed_watch(void) { return 0; }

#endif
