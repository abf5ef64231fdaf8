/* Functions compiled by Cython; see cython.h. */

#include "record/cython.h"

#include "record/c_calls.h"
#include "record/lookup.h"

static void enter(struct thread *thread, PyCodeObject *code, struct code_info *info, enum event_kind kind,
                  PyObject *exception)
{
    if (recorder.native)
        c_calls_told(thread, code);
    hook_enter(thread, hook_mark(code, info), info, NULL, kind, exception);
}

bool cython_is_open(const struct thread *thread, PyCodeObject *code, const struct code_info *info)
{
    const struct open_call *call = thread->top - 1;
    while (is_native_call(call))
        call--;
    return call->code == hook_mark(code, info);
}

PyObject *cython_prepare(PyCodeObject *code)
{
    codes_of_cython(code);
    return lookup_compiled(code->co_filename);
}

/* If an exception is set, it is being thrown into a generator. No callback may return None then (a
 * result with an exception set is a SystemError). So the exception is the answer, and Cython goes
 * on with it as always. */
PyObject *cython_entered(struct thread *thread, PyCodeObject *code, struct code_info *info, enum event_kind kind)
{
#if COMPAT_MADE_FRAMES
    enter(thread, code, info, kind, NULL);
#else
    PyObject *exception = PyErr_GetRaisedException();
    enter(thread, code, info, exception != NULL ? EVENT_THROW : kind, exception);
    if (exception != NULL) {
        PyErr_SetRaisedException(exception);
        return NULL;
    }
#endif
    Py_RETURN_NONE;
}

#if COMPAT_MADE_FRAMES

void cython_reported(PyFrameObject *frame, int what, PyObject *value)
{
    const compat_frame *inner = frame->f_frame;
    PyCodeObject *code = inner->f_code;
    bool begins = what == PyTrace_CALL;
    struct code_info *info = codes_info(code);
    struct thread *thread = hook_here(begins);
    if (!thread->ready || info == NULL || !info->ready) {
        bool out_of_scope;
        codes_of_cython(code);
        c_calls_catch_up(thread, code, inner->f_globals, begins);
        info = hook_prepare(code, inner->f_globals, begins ? 1 : -1, &thread, &out_of_scope);
    }
    if (info == NULL)
        return;
    if (begins)
        enter(thread, code, info, EVENT_CALL, NULL);
    else /* None is also reported if there is an exception: not known */
        hook_leave_code(thread, code, info, NULL, EVENT_RETURN, value != Py_None ? value : NULL, NULL,
                        record_now(thread));
}

#endif
