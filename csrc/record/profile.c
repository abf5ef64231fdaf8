/* The front end for CPython 3.11: a profile function on every thread.
 *
 * A profile function is told of calls and ends. If an exception ends a function, it is told only
 * that there is one. A trace function is told of each exception that starts or arrives in a
 * function, but also of each line, which costs time. So a trace function is set while a function
 * runs that might catch an exception, or that C code called. It is also set after each end by an
 * exception, until the exception arrives in the caller: then the record of the end, held back until
 * then, gets its value. If C code catches the exception on the way, the value is the one seen last
 * in that function, if any.
 *
 * C code may call these functions, too, for a frame that it has made up, as Cython does for modules
 * compiled with `profile=True`: see cython.h.
 *
 * Our functions call the profile and trace functions of others. They put themselves before those,
 * and keep the others' objects where sys.getprofile() and sys.gettrace() find them.
 */

#include "record/c_calls.h"
#include "record/cython.h"
#include "record/hook.h"
#include "record/lookup.h"
#include "record/native.h"
#include "record/stats.h"

#if !HAVE_MONITORING

#include <opcode.h>

/* The frames in a C function whose call was reported to next_profile; compared only. */
struct told {
    size_t count, size;
    const PyFrameObject *frames[];
};

/* A thread's data of this front end. */
struct profile {
    /* The functions of others, which ours call; NULL: none. */
    Py_tracefunc next_profile, next_trace;
    struct told *told;     /* NULL: unknown, as sys.setprofile did not set next_profile */
    /* A frame's end by an exception that has not been recorded yet; NULL: none. The frame is
     * only for comparison, it may be gone; the code is held. */
    PyFrameObject *ended;
    PyCodeObject *code;
    struct code_info *info;
    uint64_t time;
    bool traced;           /* the start of the exception in that frame was recorded */
    const PyCodeObject *caller; /* of the C function that this exception has left, too; or NULL */
    uint64_t c_time;            /* when it did */
    PyFrameObject *thrown; /* an exception is on its way into this frame; compared only */
    PyFrameObject *last;   /* where an exception was recorded last; only for comparison */
    struct encoded seen;   /* that exception; RECORD_ROOM_FOR_VALUE bytes follow */
};

static int on_profile(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);
static int on_trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);

/* Whether an exception might be caught in this frame, or by the C code that called it. C calls
 * every generator, but as a rule hands its exceptions on. */
static inline bool wants_trace(const compat_frame *frame)
{
    if (frame == NULL)
        return false;
    const struct code_info *info = codes_info(frame->f_code);
    return info != NULL && info->ready && (info->catches || info->lines || (frame->is_entry && !(frame->f_code->co_flags & CO_GENERATOR)));
}

/* This thread's profile, or NULL if memory is short. */
static inline struct profile *profile_of(struct thread *thread)
{
    if (UNLIKELY(thread->profile == NULL))
        thread->profile = PyMem_RawCalloc(1, sizeof *thread->profile + RECORD_ROOM_FOR_VALUE);
    return thread->profile;
}

/* Updates the interpreter's flag after a change of a thread's functions. The interpreter tests it
 * before it calls them, and not while one of them runs. */
static inline void update_tracing(PyThreadState *state)
{
    bool listening = state->c_profilefunc != NULL || state->c_tracefunc != NULL;
    state->cframe->use_tracing = listening && state->tracing == 0 ? 255 : 0;
}

static __attribute__((noinline)) void switch_trace(PyThreadState *state, bool on)
{
    struct thread *thread = on ? hook_thread_made() : current_thread;
    struct profile *profile = thread != NULL ? on ? profile_of(thread) : thread->profile : NULL;
    if (profile == NULL)
        return;
    STAT(trace_switched);
    if (on)
        profile->next_trace = state->c_tracefunc; /* c_traceobj stays theirs, if it is anybody's */
    state->c_tracefunc = on ? on_trace : profile->next_trace;
    update_tracing(state);
}

/* Puts our trace function on this thread, before somebody else's, or takes it away. */
static inline void set_trace(PyThreadState *state, bool on)
{
    if (UNLIKELY((state->c_tracefunc == on_trace) != on))
        switch_trace(state, on);
}

static void forget_thread(struct thread *thread)
{
    if (thread->profile != NULL)
        PyMem_RawFree(thread->profile->told);
    PyMem_RawFree(thread->profile);
}

static void switch_greenlet(struct thread *from, struct thread *to)
{
    to->profile = from->profile;
    from->profile = NULL;
}

/* The place of a frame in the traceback of an exception that has just arrived in its caller: the
 * caller's own entry is the first. NULL: the exception has not come through that frame. */
static PyTracebackObject *find_frame(PyObject *traceback, const PyFrameObject *frame)
{
    PyTracebackObject *entry = (PyTracebackObject *)traceback;
    for (int i = 0; i < 2 && entry != NULL && Py_TYPE(entry) == &PyTraceBack_Type; i++, entry = entry->tb_next)
        if (entry->tb_frame == frame)
            return entry;
    return NULL;
}

/* Records the end that was held back. `exception`: one that arrives elsewhere, with its traceback;
 * or NULL. It may be another one than has left: C code in between caught that one, or wrapped
 * it. */
static __attribute__((noinline)) void record_ended(struct thread *thread, struct profile *profile,
                                                   PyObject *exception, PyObject *traceback)
{
    PyFrameObject *frame = profile->ended;
    PyCodeObject *code = profile->code;
    PyTracebackObject *place = exception != NULL ? find_frame(traceback, frame) : NULL;
    bool seen = profile->last == frame;
    profile->ended = NULL;
    profile->last = NULL;
    if (place == NULL)
        exception = NULL;
    else if (!seen && !profile->traced) /* it started there */
        hook_raise(thread, profile->info, exception,
                   place->tb_lineno > 0 ? place->tb_lineno : PyCode_Addr2Line(code, place->tb_lasti),
                   profile->time, NULL);
    hook_leave_code(thread, code, profile->info, NULL, EVENT_EXCEPTION, exception,
                    exception == NULL && seen ? &profile->seen : NULL, profile->time);
    Py_DECREF(code);
    if (profile->caller != NULL)
        c_calls_leave(thread, profile->caller, EVENT_EXCEPTION, profile->c_time);
    profile->caller = NULL;
}

/* Whether a function is called, or goes on: its RESUME tells. */
static inline enum event_kind kind_of_call(const compat_frame *frame)
{
    int opcode = _Py_OPCODE(*frame->prev_instr);
    if (opcode != RESUME && opcode != RESUME_QUICK)
        return EVENT_THROW;
    return _Py_OPARG(*frame->prev_instr) == 0 ? EVENT_CALL : EVENT_RESUME;
}

static inline enum event_kind kind_of_return(const compat_frame *frame, PyObject *value)
{
    if (value == NULL)
        return EVENT_EXCEPTION;
    bool suspends = frame->f_code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
    return suspends && _Py_OPCODE(*frame->prev_instr) == YIELD_VALUE ? EVENT_YIELD : EVENT_RETURN;
}

static void on_end(struct thread *thread, struct profile *profile, PyFrameObject *frame, struct code_info *info,
                   PyObject *value)
{
    compat_frame *inner = frame->f_frame;
    enum event_kind kind = kind_of_return(inner, value);
    if (kind != EVENT_EXCEPTION) {
        hook_leave_code(thread, inner->f_code, info, inner, kind, value, NULL, record_now(thread));
        return;
    }
    uint64_t now = record_now(thread);
    struct open_call *call = thread->top - 1;
    if (info->lines && call->code == inner->f_code)
        lines_before_end(thread, call, info, inner, now);
    if (info->generator) /* its place may be taken before the end is recorded */
        generators_ended(inner, NULL);
    STAT(end_held_back);
    profile->ended = frame;
    profile->code = (PyCodeObject *)Py_NewRef(inner->f_code);
    profile->info = info;
    profile->time = now;
    profile->traced = wants_trace(inner);
    if (inner->previous == NULL && profile->last == frame) /* no frame that it could arrive in */
        record_ended(thread, profile, NULL, NULL);
}

/* An exception is thrown into a generator. It is out of reach, but will arrive in the frame. */
static bool on_throw(struct thread *thread, PyThreadState *state, PyFrameObject *frame, PyCodeObject *code,
                     struct code_info *info)
{
    set_trace(state, true);
    if (state->c_tracefunc != on_trace || profile_of(thread) == NULL) {
        hook_enter(thread, code, info, frame->f_frame, EVENT_THROW, NULL);
        return false;
    }
    thread->profile->thrown = frame;
    return true;
}

static inline void record(PyThreadState *state, PyFrameObject *frame, int what, PyObject *arg)
{
    compat_frame *inner = frame->f_frame;
    PyCodeObject *code = inner->f_code;
    struct thread *thread = current_thread;
    struct code_info *info = codes_info(code);
    if (UNLIKELY(thread->profile != NULL && thread->profile->ended != NULL))
        record_ended(thread, thread->profile, NULL, NULL);
    thread = hook_here(what == PyTrace_CALL);
    if (UNLIKELY(!thread->ready || info == NULL || !info->ready)) {
        bool out_of_scope;
        c_calls_catch_up(thread, code, inner->f_globals, false);
        info = hook_prepare(code, inner->f_globals, what == PyTrace_CALL ? 1 : -1, &thread, &out_of_scope);
    }
    if (what == PyTrace_CALL) {
        if (UNLIKELY(thread->profile != NULL) && thread->profile->last == frame)
            thread->profile->last = NULL; /* that was another frame in the same place */
        if (LIKELY(info != NULL)) {
            enum event_kind kind = kind_of_call(inner);
            if (LIKELY(kind == EVENT_CALL))
                hook_enter(thread, code, info, inner, EVENT_CALL, NULL);
            else if (kind == EVENT_RESUME)
                hook_enter(thread, code, info, inner, EVENT_RESUME, NULL);
            else if (on_throw(thread, state, frame, code, info))
                return;
        }
        set_trace(state, wants_trace(inner));
        return;
    }
    bool ended = false;
    if (LIKELY(info != NULL)) {
        if (LIKELY(arg != NULL && !info->generator)) {
            hook_leave_code(thread, code, info, inner, EVENT_RETURN, arg, NULL, record_now(thread));
        } else if (profile_of(thread) != NULL) {
            on_end(thread, thread->profile, frame, info, arg);
            ended = thread->profile->ended != NULL;
        }
    }
    set_trace(state, ended || wants_trace(inner->previous));
}

/* A function in C is called, or has ended: arg. */
static void record_c(PyFrameObject *frame, int what, PyObject *arg)
{
    compat_frame *inner = frame->f_frame;
    PyCodeObject *code = inner->f_code;
    struct code_info *info = codes_info(code);
    struct profile *profile = current_thread->profile;
    if (info == NULL || !info->ready || !info->c_calls)
        return;
    if (what == PyTrace_C_EXCEPTION && profile != NULL && profile->ended != NULL) {
        profile->caller = code; /* the record waits behind that of the end which is held back */
        profile->c_time = record_now(current_thread);
        return;
    }
    if (profile != NULL && profile->ended != NULL)
        record_ended(current_thread, profile, NULL, NULL);
    struct thread *thread = hook_here(false);
    c_calls_catch_up(thread, code, inner->f_globals, false);
    if (!thread->ready)
        return;
    if (what != PyTrace_C_CALL) {
        c_calls_leave(thread, code, what == PyTrace_C_RETURN ? EVENT_RETURN : EVENT_EXCEPTION, record_now(thread));
        return;
    }
    struct c_function *function = c_calls_find(arg);
    if (function == NULL)
        return;
    PyObject *self = PyCFunction_Check(arg) ? ((PyCFunctionObject *)arg)->m_self : NULL;
    if (self != NULL && (((PyCFunctionObject *)arg)->m_module != NULL || PyModule_Check(self) || PyType_Check(self)))
        self = NULL;
    c_calls_enter(thread, code, function, self);
}

/* Recording has ended: restores this thread's former functions. */
static __attribute__((noinline)) void withdraw(PyThreadState *state, const struct profile *profile)
{
    if (state->c_profilefunc == on_profile)
        state->c_profilefunc = profile != NULL ? profile->next_profile : NULL;
    if (state->c_tracefunc == on_trace)
        state->c_tracefunc = profile != NULL ? profile->next_trace : NULL;
    update_tracing(state);
}

#define FIRST_TOLD 16

/* Room for another frame; false: memory is short, and all frames are forgotten. */
static bool grow_told(struct profile *profile)
{
    size_t count = profile->told != NULL ? profile->told->count : 0, size = count ? count * 2 : FIRST_TOLD;
    struct told *told = PyMem_RawRealloc(profile->told, sizeof *told + size * sizeof *told->frames);
    if (told == NULL) {
        PyMem_RawFree(profile->told);
        profile->told = NULL;
        return false;
    }
    told->count = count;
    told->size = size;
    profile->told = told;
    return true;
}

static void called(struct profile *profile, const PyFrameObject *frame)
{
    if (profile->told->count < profile->told->size || grow_told(profile))
        profile->told->frames[profile->told->count++] = frame;
}

/* False: its call was not reported. As a rule it is the last frame; but greenlets take turns. */
static bool returned(struct told *told, const PyFrameObject *frame)
{
    size_t at = told->count;
    while (at > 0 && told->frames[at - 1] != frame)
        at--;
    if (at == 0)
        return false;
    memmove(told->frames + at - 1, told->frames + at, (told->count - at) * sizeof *told->frames);
    told->count--;
    return true;
}

/* True: the interpreter executes this frame. Else C code has made it up. */
static inline bool is_executed(const PyThreadState *state, const PyFrameObject *frame)
{
    return compat_frame_of(state) == frame->f_frame;
}

static int on_profile(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    PyThreadState *state = thread_state();
    if (UNLIKELY(!recorder.on))
        withdraw(state, current_thread->profile);
    else if (LIKELY(what == PyTrace_CALL || what == PyTrace_RETURN) && LIKELY(is_executed(state, frame))) {
        bool began = hook_begin_writing();
        record(state, frame, what, arg);
        hook_end_writing(began);
    } else if (what == PyTrace_CALL || what == PyTrace_RETURN) {
        bool began = hook_begin_writing();
        if (current_thread->profile != NULL && current_thread->profile->ended != NULL)
            record_ended(current_thread, current_thread->profile, NULL, NULL);
        cython_reported(frame, what, arg);
        hook_end_writing(began);
    } else if (what >= PyTrace_C_CALL && what <= PyTrace_C_RETURN && is_executed(state, frame)) {
        bool began = hook_begin_writing();
        record_c(frame, what, arg);
        hook_end_writing(began);
    }
    struct profile *profile = current_thread->profile;
    if (LIKELY(profile == NULL || profile->next_profile == NULL))
        return 0;
    if (profile->told != NULL && what == PyTrace_C_CALL)
        called(profile, frame);
    else if (profile->told != NULL && (what == PyTrace_C_RETURN || what == PyTrace_C_EXCEPTION))
        if (!returned(profile->told, frame))
            return 0; /* only we listened at its call */
    return profile->next_profile(self, frame, what, arg);
}

/* Somebody has set or removed a profile function, and ours has gone: puts ours before it. */
static void listen_again(PyThreadState *state)
{
    struct thread *thread = hook_thread_made();
    if (thread == NULL || profile_of(thread) == NULL)
        return;
    thread->profile->next_profile = state->c_profilefunc;
    PyMem_RawFree(thread->profile->told);
    thread->profile->told = NULL;
    state->c_profilefunc = on_profile; /* c_profileobj stays, for sys.getprofile() and for them */
    update_tracing(state);
}

static void on_line(PyThreadState *state, PyFrameObject *frame)
{
    compat_frame *inner = frame->f_frame;
    struct code_info *info = codes_info(inner->f_code);
    if (info == NULL || !info->ready || !info->lines || !is_executed(state, frame))
        return;
    struct thread *thread = current_thread;
    if (thread->profile != NULL && thread->profile->ended != NULL)
        record_ended(thread, thread->profile, NULL, NULL);
    thread = hook_here(false);
    if (thread->ready)
        lines_reached(thread, inner->f_code, info, inner, frame->f_lineno, record_now(thread));
}

static void trace(PyThreadState *state, struct thread *thread, PyFrameObject *frame, int what, PyObject *arg)
{
    if (UNLIKELY(state->c_profilefunc != on_profile)) {
        listen_again(state);
        if (what == PyTrace_CALL) /* the profile function has its turn behind this one */
            return;
    }
    if (what == PyTrace_LINE)
        on_line(state, frame);
    if (what != PyTrace_EXCEPTION || (thread->looked && !thread->ready) || !is_executed(state, frame) ||
        !PyTuple_Check(arg) || PyTuple_GET_SIZE(arg) != 3)
        return;
    compat_frame *inner = frame->f_frame;
    PyObject *exception = PyTuple_GET_ITEM(arg, 1), *traceback = PyTuple_GET_ITEM(arg, 2);
    struct profile *profile = profile_of(thread);
    if (profile == NULL)
        return;
    if (profile->ended != NULL)
        record_ended(thread, profile, exception, traceback);
    thread = hook_here(true);
    if (!thread->looked)
        hook_look(thread, NULL);
    struct code_info *info = codes_info(inner->f_code);
    /* The end of the object that `await` or `yield from` waits for: SEND (Python/ceval.c)
     * shows the StopIteration only to debuggers. */
    bool ends_send = _Py_OPCODE(*inner->prev_instr) == SEND && PyErr_GivenExceptionMatches(exception, PyExc_StopIteration);
    if (thread->ready && info != NULL && info->ready && !ends_send) {
        if (profile->thrown == frame)
            hook_enter(thread, inner->f_code, info, inner, EVENT_THROW, exception);
        profile->thrown = NULL;
        int line = codes_line(info, inner->f_code, compat_frame_offset(inner, inner->f_code));
        hook_raise(thread, info, exception, line, record_now(thread), &profile->seen);
        profile->last = frame;
    }
    set_trace(state, wants_trace(inner));
}

static int on_trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    PyThreadState *state = compat_thread_state();
    struct thread *thread = current_thread;
    Py_tracefunc next = thread->profile != NULL ? thread->profile->next_trace : NULL;
    if (recorder.on) {
        bool began = hook_begin_writing();
        trace(state, thread, frame, what, arg);
        hook_end_writing(began);
    } else
        withdraw(state, thread->profile);
    return next != NULL ? next(self, frame, what, arg) : 0;
}

/* ---- every thread ------------------------------------------------------------------------- */

static void set_profile(PyThreadState *state)
{
    if (state->c_profilefunc == NULL) {
        state->c_profilefunc = on_profile;
        update_tracing(state);
    }
}

/* The first function of a thread that the program starts: it sets our profile function there, then
 * calls the program's function. It looks like that function wherever the interpreter shows it. */
typedef struct {
    PyObject_HEAD
    PyObject *function;
} Starter;

static PyObject *starter_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    if (recorder.on)
        set_profile(compat_thread_state());
    PyObject *function = ((Starter *)self)->function, *result = PyObject_Call(function, args, keywords);
    if (result == NULL && !PyErr_ExceptionMatches(PyExc_SystemExit)) {
        /* The same as in _thread, but with the program's function for sys.unraisablehook. */
        _PyErr_WriteUnraisableMsg("in thread started by", function);
        result = Py_NewRef(Py_None);
    }
    return result;
}

static PyObject *starter_repr(PyObject *self) { return PyObject_Repr(((Starter *)self)->function); }

static void starter_dealloc(PyObject *self)
{
    Py_DECREF(((Starter *)self)->function);
    PyObject_Free(self);
}

static PyTypeObject starter_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pytracer._hook.starter",
    .tp_basicsize = sizeof(Starter),
    .tp_dealloc = starter_dealloc,
    .tp_repr = starter_repr,
    .tp_call = starter_call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The first function of a thread.",
};

static PyObject *start_new_thread; /* the interpreter's own */

static PyObject *start_thread(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *function = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (!recorder.on || function == NULL || !PyCallable_Check(function))
        return PyObject_CallObject(start_new_thread, args);
    Starter *starter = PyObject_New(Starter, &starter_type);
    if (starter == NULL)
        return NULL;
    starter->function = Py_NewRef(function);
    PyObject *result = NULL, *ours = PyTuple_GetSlice(args, 0, PyTuple_GET_SIZE(args));
    if (ours != NULL && ours == args) { /* a slice of all of it is the same tuple */
        Py_DECREF(ours);
        ours = PyTuple_New(PyTuple_GET_SIZE(args));
        for (Py_ssize_t i = 0; ours != NULL && i < PyTuple_GET_SIZE(args); i++)
            PyTuple_SET_ITEM(ours, i, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    }
    if (ours != NULL && PyTuple_SetItem(ours, 0, (PyObject *)starter) == 0)
        result = PyObject_CallObject(start_new_thread, ours);
    else if (ours == NULL)
        Py_DECREF(starter);
    Py_XDECREF(ours);
    return result;
}

static PyMethodDef start_thread_method = {"start_new_thread", start_thread, METH_VARARGS, NULL};

/* Puts start_thread in the place of _thread.start_new_thread, under all names that it has. */
static int replace_start_new_thread(void)
{
    static struct {
        struct lookup_name module;
        const char *name;
    } places[] = {{{.text = "_thread"}, "start_new_thread"},
                {{.text = "_thread"}, "start_new"},
                {{.text = "threading"}, "_start_new_thread"}};
    if (start_new_thread != NULL)
        return 0;
    PyObject *replacement = NULL;
    PyObject *module = PyImport_ImportModule("_thread");
    if (module == NULL || PyType_Ready(&starter_type) < 0)
        goto failed;
    if ((start_new_thread = PyObject_GetAttrString(module, "start_new_thread")) == NULL)
        goto failed;
    PyObject *doc = PyObject_GetAttrString(start_new_thread, "__doc__");
    if (doc == NULL)
        goto failed;
    /* lives as long as the original */
    start_thread_method.ml_doc = PyUnicode_Check(doc) ? PyUnicode_AsUTF8(doc) : NULL;
    Py_DECREF(doc);
    PyObject *name = PyUnicode_FromString("_thread");
    if (name == NULL)
        goto failed;
    replacement = PyCFunction_NewEx(&start_thread_method, module, name);
    Py_DECREF(name);
    if (replacement == NULL)
        goto failed;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        PyObject *where = lookup_module(&places[i].module);
        if (where != NULL && PyObject_SetAttrString(where, places[i].name, replacement) < 0)
            goto failed;
    }
    Py_DECREF(replacement);
    Py_DECREF(module);
    return 0;
failed:
    Py_XDECREF(replacement);
    Py_XDECREF(module);
    return -1;
}

/* Before somebody sets a profile function: our trace function finds ours gone at the next event. */
static int on_audit(const char *event, PyObject *Py_UNUSED(args), void *Py_UNUSED(data))
{
    if (recorder.on && event[0] == 's' && strcmp(event, "sys.setprofile") == 0)
        set_trace(compat_thread_state(), true);
    return 0;
}

static PyMethodDef setprofile_method; /* its own, except the function: that is the next one */
static PyCFunction setprofile_function;

/* sys.setprofile(function): does the same as always, and puts ours before the program's function at
 * once. Otherwise the interpreter, which listens for us, would report the return of setprofile
 * itself to that function, and returns of earlier calls. */
static PyObject *set_and_listen(PyObject *module, PyObject *function)
{
    PyThreadState *state = compat_thread_state();
    struct profile *profile = current_thread->profile;
    bool first = profile == NULL || profile->next_profile == NULL;
    bool ours = state->c_profilefunc == on_profile;
    PyObject *result = setprofile_function(module, function);
    if (!ours || state->c_profilefunc == NULL || state->c_profilefunc == on_profile)
        return result;
    if (profile != NULL && !first) { /* this one takes over from the other */
        profile->next_profile = state->c_profilefunc;
        state->c_profilefunc = on_profile;
        return result;
    }
    listen_again(state);
    if (state->c_profilefunc == on_profile)
        grow_told(current_thread->profile);
    return result;
}

/* Puts set_and_listen into the object of sys.setprofile, which the program has no means to see. */
static void watch_setprofile(void)
{
    PyObject *found = PySys_GetObject("setprofile"); /* borrowed */
    if (setprofile_function != NULL || found == NULL || !PyCFunction_CheckExact(found))
        return;
    PyCFunctionObject *object = (PyCFunctionObject *)found;
    if (object->m_ml->ml_flags != METH_O)
        return;
    setprofile_method = *object->m_ml;
    setprofile_function = setprofile_method.ml_meth;
    setprofile_method.ml_meth = set_and_listen;
    object->m_ml = &setprofile_method;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static int on_gate(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    if (what != PyTrace_CALL || !recorder.on || hook_in_site(compat_current_frame()))
        return 0;
    native_begin();
    compat_thread_state()->c_profilefunc = on_profile;
    return on_profile(self, frame, what, arg);
}

static int install(bool gate)
{
    static bool audited;
    if (replace_start_new_thread() < 0)
        return -1;
    if (!audited && PySys_AddAuditHook(on_audit, NULL) < 0)
        return -1;
    audited = true;
    watch_setprofile();
    PyThreadState *here = PyThreadState_Get();
    if (gate) {
        here->c_profilefunc = on_gate;
        update_tracing(here);
        return 0;
    }
    native_begin();
    for (PyThreadState *state = PyInterpreterState_ThreadHead(here->interp); state != NULL;
         state = PyThreadState_Next(state))
        set_profile(state);
    return 0;
}

static int uninstall(void) /* the other threads' functions withdraw at their next event */
{
    withdraw(PyThreadState_Get(), current_thread->profile);
    codes_forget_listening();
    return 0;
}

const struct front_end profile_front_end = {
    .install = install, .uninstall = uninstall, .forget_thread = forget_thread, .switch_greenlet = switch_greenlet};

#endif
