/* The front end for CPython 3.12 and later: callbacks of sys.monitoring.
 *
 * A callback is an object of a type with a vectorcall slot of its own: the cheapest thing that
 * CPython can call. DISABLE switches an event off at its place in a code object that is out of
 * scope, which from then on runs as if nobody listened. */

#include "record/c_calls.h"
#include "record/closed.h"
#include "record/cython.h"
#include "record/hook.h"
#include "record/lookup.h"
#include "record/native.h"
#include "record/variables.h"

#if HAVE_MONITORING

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    vectorcallfunc next;     /* of `writing`: the real one */
} Callback;

static PyTypeObject callback_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pytracer._hook.callback",
    .tp_basicsize = sizeof(Callback),
    .tp_vectorcall_offset = offsetof(Callback, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Called by sys.monitoring.",
};

static PyObject *disable; /* sys.monitoring.DISABLE */
static PyObject *missing; /* sys.monitoring.MISSING */
static int tool = -1;     /* our tool id */
static PyObject *set_local_events; /* sys.monitoring's, whatever the program puts in its place */
static unsigned installed; /* how often */
static int line_events, call_events; /* their masks */

#define CALLBACK(name) \
    static PyObject *name(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)

/* register_callback gives the program the callback before its own, and the program may call that,
 * with any arguments. */
static __attribute__((noinline)) PyObject *wrong_arguments(void)
{
    PyErr_SetString(PyExc_TypeError, "pytrace: this is called by sys.monitoring alone");
    return NULL;
}

static int listen(PyCodeObject *code, const struct code_info *info);
static void listen_to_made_frames(PyThreadState *state);

static __attribute__((noinline)) struct code_info *prepare(PyCodeObject *code, int notrace, bool local,
                                                           struct thread **thread, PyObject **answer)
{
    struct code_info *info = NULL;
    bool out_of_scope = false;
    PyObject *pending = PyErr_GetRaisedException(); /* see cython_entered */
    if (PyCode_Check(code)) {
        compat_frame *frame = compat_current_frame();
        bool runs = frame != NULL && compat_frame_runs(frame, code);
        PyObject *globals = runs ? frame->f_globals : cython_prepare(code);
        c_calls_catch_up(*thread, code, globals, !runs && notrace > 0);
        listen_to_made_frames(compat_thread_state());
        info = hook_prepare(code, globals, notrace, thread, &out_of_scope);
        if (info != NULL && (info->lines || info->c_calls) && listen(code, info) < 0)
            PyErr_Clear(); /* it is asked again when its calls are recorded anew */
    }
    *answer = pending != NULL ? NULL : local && out_of_scope ? disable : Py_None;
    PyErr_SetRaisedException(pending);
    return info;
}

/* An event need not come from the interpreter: since 3.13 C code can fire any, for a code object
 * that no frame runs (as Cython does, see cython.h), or for an object that is no code at all
 * (https://github.com/python/cpython/issues/111997). */
#define IS_CODE(object) LIKELY(PyCode_Check(object))

/* Declares `code`, `info` and `thread`, ready to record; or returns. `notrace`: see hook_prepare.
 * `count`: of the arguments. `local`: the event is one that DISABLE can switch off. */
#define READY(count, notrace, local)                                       \
    (void)self;                                                            \
    if (UNLIKELY(PyVectorcall_NARGS(nargsf) != (count) || kwnames != NULL)) \
        return wrong_arguments();                                          \
    PyCodeObject *code = (PyCodeObject *)args[0];                          \
    struct code_info *info = IS_CODE(code) ? codes_info(code) : NULL;      \
    struct thread *thread = hook_here((notrace) > 0);                      \
    if (UNLIKELY(!thread->ready || info == NULL || !info->ready)) {        \
        PyObject *answer;                                                  \
        info = prepare(code, notrace, local, &thread, &answer);            \
        if (info == NULL)                                                  \
            return Py_XNewRef(answer);                                     \
    }

CALLBACK(on_call) /* PY_START: code, offset */
{
    READY(2, 1, true);
    const compat_frame *frame = hook_frame(code);
    if (UNLIKELY(frame == NULL))
        return cython_entered(thread, code, info, EVENT_CALL);
    hook_enter(thread, code, info, frame, EVENT_CALL, NULL);
    Py_RETURN_NONE;
}

CALLBACK(on_resume) /* PY_RESUME: code, offset */
{
    READY(2, 1, true);
    const compat_frame *frame = hook_frame(code);
    if (UNLIKELY(frame == NULL))
        return cython_entered(thread, code, info, EVENT_RESUME);
    hook_enter(thread, code, info, frame, EVENT_RESUME, NULL);
    Py_RETURN_NONE;
}

CALLBACK(on_throw) /* PY_THROW: code, offset, exception */
{
    READY(3, 1, false);
    hook_enter(thread, hook_mark(code, info), info, hook_frame(code), EVENT_THROW, args[2]);
    Py_RETURN_NONE;
}

CALLBACK(on_return) /* PY_RETURN: code, offset, value */
{
    READY(3, -1, true);
    hook_leave_code(thread, code, info, NULL, EVENT_RETURN, args[2], NULL, record_now(thread));
    Py_RETURN_NONE;
}

CALLBACK(on_yield) /* PY_YIELD: code, offset, value */
{
    READY(3, -1, true);
    hook_leave_code(thread, code, info, NULL, EVENT_YIELD, args[2], NULL, record_now(thread));
    Py_RETURN_NONE;
}

CALLBACK(on_unwind) /* PY_UNWIND: code, offset, exception */
{
    READY(3, -1, false);
    hook_leave_code(thread, code, info, NULL, EVENT_EXCEPTION, args[2], NULL, record_now(thread));
    Py_RETURN_NONE;
}

CALLBACK(on_raise) /* RAISE: code, offset, exception */
{
    READY(3, 0, false);
    /* Not args[1]: for an exception out of a callee that is the instruction before the call. The
     * interpreter tells of the one before the next (_PyEval_EvalFrameDefault in Python/ceval.c). */
    compat_frame *frame = hook_frame(code);
    int line = frame != NULL ? codes_line(info, code, compat_frame_offset(frame, code)) : 0;
    if (UNLIKELY(frame == NULL)) { /* Cython tells the line in the place of the offset */
        int64_t offset;
        if (!cython_is_open(thread, code, info))
            Py_RETURN_NONE;
        if (PyLong_CheckExact(args[1]) && compat_long_compact(args[1], &offset))
            line = (int)offset;
    }
    hook_raise(thread, info, args[2], line, record_now(thread), NULL);
    Py_RETURN_NONE;
}

CALLBACK(on_line) /* LINE: code, line */
{
    READY(2, 0, true);
    const compat_frame *frame = hook_frame(code);
    int64_t line;
    if (UNLIKELY(!PyLong_CheckExact(args[1])))
        return wrong_arguments();
    if (LIKELY(frame != NULL && info->lines) && compat_long_compact(args[1], &line))
        lines_reached(thread, code, info, frame, (int)line, record_now(thread));
    Py_RETURN_NONE;
}

/* LINE is told once of a loop that stands in one line. As sys.settrace does, each of its rounds is
 * an event: the jump back makes it. Other jumps are switched off. */
CALLBACK(on_jump) /* JUMP: code, offset, destination */
{
    READY(3, 0, true);
    const compat_frame *frame = hook_frame(code);
    int64_t from, to;
    if (UNLIKELY(!PyLong_CheckExact(args[1]) || !PyLong_CheckExact(args[2])))
        return wrong_arguments();
    if (UNLIKELY(frame == NULL || !info->lines) || !compat_long_compact(args[1], &from) ||
        !compat_long_compact(args[2], &to))
        Py_RETURN_NONE;
    struct variables *variables = info->more->variables;
    if (variables->jump_from != from || variables->jump_line <= 0) {
        int line = to < from ? PyCode_Addr2Line(code, (int)from) : 0;
        if (line <= 0 || PyCode_Addr2Line(code, (int)to) != line)
            return Py_NewRef(disable);
        variables->jump_from = (int)from;
        variables->jump_line = line;
    }
    lines_reached(thread, code, info, frame, variables->jump_line, record_now(thread));
    Py_RETURN_NONE;
}

/* A bound method of something else than a Python function, which f(*args) calls: the interpreter
 * does not tell of its end. */
static bool ends_unseen(PyCodeObject *code, int64_t offset, PyObject *callable)
{
    if (LIKELY(!Py_IS_TYPE(callable, &PyMethod_Type)))
        return false;
    size_t at = (size_t)offset / sizeof(_Py_CODEUNIT);
    return at >= (size_t)Py_SIZE(code) || !compat_code_is_plain_call(code, at);
}

CALLBACK(on_c_call) /* CALL: code, offset, callable, first argument */
{
    READY(4, 0, true);
    int64_t offset;
    if (UNLIKELY(!PyLong_CheckExact(args[1])))
        return wrong_arguments();
    if (UNLIKELY(!info->c_calls) || !compat_long_compact(args[1], &offset))
        Py_RETURN_NONE;
    struct c_function *function = c_calls_find(args[2]);
    if (function == NULL || ends_unseen(code, offset, args[2]))
        return Py_NewRef(c_calls_settled(code, info, offset, args[2]) ? disable : Py_None);
    c_calls_mark(code, info, offset);
    c_calls_enter(thread, code, function, args[3] != missing ? args[3] : NULL);
    Py_RETURN_NONE;
}

CALLBACK(on_c_return) /* C_RETURN: code, offset, callable, first argument */
{
    READY(4, 0, false);
    c_calls_leave(thread, code, EVENT_RETURN, record_now(thread));
    Py_RETURN_NONE;
}

CALLBACK(on_c_raise) /* C_RAISE: the same */
{
    READY(4, 0, false);
    c_calls_leave(thread, code, EVENT_EXCEPTION, record_now(thread));
    Py_RETURN_NONE;
}

/* While `site` sets up the interpreter, this alone listens; the first event after that opens. */
static int open_gate(void);

CALLBACK(on_gate) /* PY_START: code, offset */
{
    if (!recorder.on || hook_in_site(compat_current_frame()))
        Py_RETURN_NONE;
    if (open_gate() < 0) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return on_call(self, args, nargsf, kwnames);
}

/* While native functions are recorded, too, each callback is a writer. */
static PyObject *writing(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    bool began = hook_begin_writing();
    PyObject *answer = ((Callback *)self)->next(self, args, nargsf, kwnames);
    hook_end_writing(began);
    return answer;
}

static const struct {
    const char *event; /* its name in sys.monitoring.events */
    vectorcallfunc callback;
    int *local; /* the mask of local events that it belongs to; NULL: all code reports it */
} listeners[] = {
    {"PY_START", on_call, NULL},         {"PY_RESUME", on_resume, NULL},      {"PY_THROW", on_throw, NULL},
    {"PY_RETURN", on_return, NULL},      {"PY_YIELD", on_yield, NULL},        {"PY_UNWIND", on_unwind, NULL},
    {"RAISE", on_raise, NULL},           {"LINE", on_line, &line_events},     {"JUMP", on_jump, &line_events},
    {"CALL", on_c_call, &call_events},   {"C_RETURN", on_c_return, &call_events},
    {"C_RAISE", on_c_raise, &call_events},
};

static PyObject *monitoring(void) { return PySys_GetObject("monitoring"); } /* borrowed */

/* sys.monitoring.events.NAME; -1 with an exception. */
static int event_mask(const char *name)
{
    PyObject *events = PyObject_GetAttrString(monitoring(), "events");
    if (events == NULL)
        return -1;
    PyObject *mask = PyObject_GetAttrString(events, name);
    Py_DECREF(events);
    if (mask == NULL)
        return -1;
    long number = PyLong_AsLong(mask);
    Py_DECREF(mask);
    return (int)number;
}

/* sys.monitoring.METHOD(tool, ...); -1 with an exception. */
static int call_monitoring(const char *method, const char *format, int first, ...)
{
    va_list rest;
    PyObject *function = PyObject_GetAttrString(monitoring(), method);
    if (function == NULL)
        return -1;
    va_start(rest, first);
    PyObject *more = Py_VaBuildValue(format, rest), *id = PyLong_FromLong(first), *result = NULL, *args = NULL;
    va_end(rest);
    if (more != NULL && id != NULL) {
        args = PyTuple_New(1 + PyTuple_GET_SIZE(more));
        if (args != NULL) {
            PyTuple_SET_ITEM(args, 0, Py_NewRef(id));
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(more); i++)
                PyTuple_SET_ITEM(args, 1 + i, Py_NewRef(PyTuple_GET_ITEM(more, i)));
            result = PyObject_CallObject(function, args);
        }
    }
    Py_XDECREF(args);
    Py_XDECREF(more);
    Py_XDECREF(id);
    Py_DECREF(function);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static int register_callback(const char *event, vectorcallfunc function)
{
    int mask = event_mask(event);
    if (mask < 0)
        return -1;
    Callback *callback = PyObject_New(Callback, &callback_type);
    if (callback == NULL)
        return -1;
    callback->vectorcall = recorder.native ? writing : function;
    callback->next = function;
    int status = call_monitoring("register_callback", "(iO)", tool, mask, callback);
    Py_DECREF(callback);
    return status < 0 ? -1 : mask;
}

static int set_events(int mask) { return call_monitoring("set_events", "(i)", tool, mask); }

/* Lines and calls are told of the code that is asked for them: other code costs nothing. */
static int listen(PyCodeObject *code, const struct code_info *info)
{
    if (info->more->listening == installed)
        return 0;
    info->more->listening = installed;
    int events = (info->lines ? line_events : 0) | (info->c_calls ? call_events : 0);
    PyObject *result = PyObject_CallFunction(set_local_events, "iOi", tool, code, events);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* ---- what C code reports on 3.12: see cython.h ----------------------------------------------- */

#if COMPAT_MADE_FRAMES

static void withdraw(PyThreadState *state);

static int on_made_frame(PyObject *Py_UNUSED(self), PyFrameObject *frame, int what, PyObject *value)
{
    if (!recorder.on)
        withdraw(compat_thread_state());
    else if ((what == PyTrace_CALL || what == PyTrace_RETURN) && compat_current_frame() != frame->f_frame) {
        bool began = hook_begin_writing();
        cython_reported(frame, what, value);
        hook_end_writing(began);
    }
    return 0;
}

/* The interpreter counts the threads that have a profile function. */
static void withdraw(PyThreadState *state)
{
    if (state->c_profilefunc != on_made_frame)
        return;
    state->c_profilefunc = NULL;
    state->interp->sys_profiling_threads--;
}

static void withdraw_all(void)
{
    PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    for (; state != NULL; state = PyThreadState_Next(state))
        withdraw(state);
}

/* The program sets a profile function: the interpreter is to find none. */
static int on_audit(const char *event, PyObject *Py_UNUSED(args), void *Py_UNUSED(data))
{
    if (event[0] == 's' && strcmp(event, "sys.setprofile") == 0)
        withdraw_all();
    return 0;
}

static int watch_setprofile(void)
{
    static bool audited;
    if (!audited && PySys_AddAuditHook(on_audit, NULL) < 0)
        return -1;
    audited = true;
    return 0;
}

static void listen_to_made_frames(PyThreadState *state)
{
    if (state->c_profilefunc != NULL)
        return;
    state->c_profilefunc = on_made_frame;
    state->interp->sys_profiling_threads++;
}

#else

static void withdraw_all(void) {}
static int watch_setprofile(void) { return 0; }
static void listen_to_made_frames(PyThreadState *Py_UNUSED(state)) {}

#endif

static int open_gate(void)
{
    int all = 0;
    native_begin();
    line_events = call_events = 0;
    for (size_t i = 0; i < sizeof listeners / sizeof *listeners; i++) {
        int mask = register_callback(listeners[i].event, listeners[i].callback);
        if (mask < 0)
            return -1;
        *(listeners[i].local != NULL ? listeners[i].local : &all) |= mask;
    }
    return set_events(all);
}

#if COMPAT_RAISE_NEEDS_DATA

/* 3.15 looks for an exception's listeners in the monitoring data of the code object, too
 * (_Py_LocalMonitors in pycore_instruments.h), and crashes if there is none. Code gets the data
 * when it begins or goes on as a generator; running code gets it when a tool begins to listen. The
 * code of suspended greenlets gets it here. */

static int prepare_frames(PyObject *frame) /* takes the reference; a frame, or None */
{
    while (frame != NULL && PyFrame_Check(frame)) {
        PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)frame);
        int status = call_monitoring("set_local_events", "(Oi)", tool, code, 0);
        PyObject *back = status < 0 ? NULL : (PyObject *)PyFrame_GetBack((PyFrameObject *)frame);
        Py_DECREF(code);
        Py_DECREF(frame);
        if (status < 0)
            return -1;
        frame = back;
    }
    Py_XDECREF(frame);
    return 0;
}

struct search {
    PyTypeObject *type;
    PyObject *found; /* a list */
};

static int collect(PyObject *object, void *data)
{
    struct search *search = data;
    return !PyObject_TypeCheck(object, search->type) || PyList_Append(search->found, object) == 0;
}

static int prepare_greenlets(void)
{
    static bool done; /* later code gets its data by itself */
    if (done)
        return 0;
    done = true;
    static struct lookup_name module = {.text = "greenlet._greenlet"}, name = {.text = "greenlet"};
    PyObject *type = lookup_global(&module, &name);
    if (type == NULL || !PyType_Check(type))
        return 0;
    PyObject *gr_frame = PyObject_GetAttrString(type, "gr_frame");
    struct search search = {(PyTypeObject *)type, PyList_New(0)};
    int status = gr_frame == NULL || search.found == NULL ? -1 : 0;
    if (status == 0 && Py_IS_TYPE(gr_frame, &PyGetSetDescr_Type)) {
        PyUnstable_GC_VisitObjects(collect, &search);
        status = PyErr_Occurred() ? -1 : 0;
        for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(search.found); i++) {
            PyObject *frame = Py_TYPE(gr_frame)->tp_descr_get(gr_frame, PyList_GET_ITEM(search.found, i), type);
            status = frame == NULL ? -1 : prepare_frames(frame);
        }
    }
    Py_XDECREF(search.found);
    Py_XDECREF(gr_frame);
    return status;
}

#else

static int prepare_greenlets(void) { return 0; }

#endif

/* Ids 0 to 2 are for other tools (debugger, coverage, profiler), and some tools take 3 or 4 without
 * checking whether it is free. 5 is meant for optimizers, of which there is none. */
static int take_tool(void)
{
    static const int order[] = {5, 4, 3, 2, 1, 0};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (call_monitoring("use_tool_id", "(s)", order[i], "pytrace") == 0)
            return order[i];
        if (!PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear();
    }
    PyErr_SetString(PyExc_RuntimeError, "pytrace: all six tool ids of sys.monitoring are taken by others");
    return -1;
}

static int install(bool gate)
{
    if (PyType_Ready(&callback_type) < 0)
        return -1;
    if (monitoring() == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "pytrace: this Python has no sys.monitoring");
        return -1;
    }
    if (disable == NULL && (disable = PyObject_GetAttrString(monitoring(), "DISABLE")) == NULL)
        return -1;
    if (missing == NULL && (missing = PyObject_GetAttrString(monitoring(), "MISSING")) == NULL)
        return -1;
    if (set_local_events == NULL &&
        (set_local_events = PyObject_GetAttrString(monitoring(), "set_local_events")) == NULL)
        return -1;
    if (closed_watch() < 0 || watch_setprofile() < 0)
        return -1;
    if (tool < 0 && (tool = take_tool()) < 0)
        return -1;
    installed++;
    /* Code out of scope for an earlier recording may be in scope now. */
    PyObject *result = PyObject_CallMethod(monitoring(), "restart_events", NULL);
    if (result == NULL)
        return -1;
    Py_DECREF(result);
    if (!gate)
        return prepare_greenlets() < 0 ? -1 : open_gate();
    int mask = register_callback("PY_START", on_gate);
    return mask < 0 ? -1 : set_events(mask);
}

static int uninstall(void)
{
    if (tool < 0)
        return 0;
    if (set_events(0) < 0)
        return -1;
    withdraw_all();
    codes_forget_listening();
    for (size_t i = 0; i < sizeof listeners / sizeof *listeners; i++) {
        int mask = event_mask(listeners[i].event);
        if (mask < 0 || call_monitoring("register_callback", "(iO)", tool, mask, Py_None) < 0)
            return -1;
    }
    if (call_monitoring("free_tool_id", "()", tool) < 0)
        return -1;
    tool = -1;
    return 0;
}

const struct front_end monitoring_front_end = {.install = install, .uninstall = uninstall};

#endif
