/* Calls of functions in C: those that code in scope makes (--c-calls).
 *
 * What the interpreter tells of a call, and of what it calls (Python/bytecodes.c, ceval.c; 3.11:
 * trace_call_function):
 *
 *                                      3.11 (profile)   3.12         3.13        3.14, 3.15
 *   built-in function, bound method    call, end        call, end    call, end   call, end
 *   method of a type: l.append(1)      call, end        call, end    call, end   call, end
 *   type, slot wrapper, other object   -                call, end    call, end   call, end
 *   Python function                    -                call         call        call
 *   Python function: f(*args)          -                -            call        call
 *   bound method of a Python function  -                call         call        as its function
 *   bound method of another callable   -                call, end    call, end   as that callable
 *   the same: m(*args)                 -                -            call        call
 *   super()                            -                call, end    call, end   call, end
 *   __enter__ of `with`                -                -            -           call, end
 *   first argument                     - (self)         yes          yes         yes
 *
 * So an end is told of Python classes, too, and of objects with a __call__ in Python; and none of
 * m(*args). Calls that no source shows (operators, iteration, descriptors) are not told at all. No
 * version tells the return value, or the exception.
 *
 * An open call of a C function is on the thread's stack of open calls, with its caller. The end
 * that is told to the same caller, while it is the innermost, is its end.
 *
 * A function that Cython compiled with `profile=True` tells of itself (cython.h). As it is one
 * call, it is recorded once, as Cython's, which has its file and line. Such functions are in shared
 * objects that report; not all functions there do. So their call is late: it waits for the thread's
 * next event. If that is Cython's report of the function, the call is dropped; else it is recorded
 * before the event. The thread is not ready meanwhile, so that no other event has to look for it.
 * Native functions would come between: while they are recorded, the call is recorded at once, until
 * a function has told of itself for the first time.
 *
 * Functions are known by what defines them (PyMethodDef, slot, type), and are never bound. Reading
 * their names runs no code of the program. All of it runs under the GIL.
 */
#ifndef PYTRACE_C_CALLS_H
#define PYTRACE_C_CALLS_H

#include "record/hook.h"
#include "record/native.h"

/* A function in C. Its info has no code object. */
struct c_function {
    const void *key;   /* what defines it; compared only, as is `check` */
    const void *check; /* what lies there, so that another one in the same memory is noticed */
    const char *name;  /* without module and class; NULL: it never tells of itself */
    bool told;         /* it has told of itself, as it does at each call */
    struct code_info info;
};

/* exact: no call site is switched off. `own`: our module, whose functions are never recorded. 0, or
 * -1 with a Python exception. */
int c_calls_configure(bool exact, PyObject *own);

/* The function that is called, if it is one in C; NULL: it is none, or it cannot be recorded. */
struct c_function *c_calls_find(PyObject *callable);

/* An instruction of `code` calls `callable`, which is no function in C. True: as far as it is
 * known, it never calls any, and need not be looked at again. */
bool c_calls_settled(PyCodeObject *code, struct code_info *info, int64_t offset, PyObject *callable);
/* It calls a function in C: it is looked at for ever. */
void c_calls_mark(PyCodeObject *code, struct code_info *info, int64_t offset);

/* A function is called that may tell of itself. */
void c_calls_wait(struct thread *thread, const PyCodeObject *code, struct c_function *function, PyObject *argument);
/* An event of `code`: the thread's late call, if there is one, is recorded or dropped. Cython's
 * code has been marked. begins: of a call that C code reports. globals: see codes_resolve. */
void c_calls_catch_up(struct thread *thread, PyCodeObject *code, PyObject *globals, bool begins);
/* A call of Cython's `code` begins, which may be the innermost one in C. */
void c_calls_told(struct thread *thread, PyCodeObject *code);

HOT void c_calls_record(struct thread *thread, const PyCodeObject *code, struct c_function *function,
                        PyObject *argument, uint64_t now)
{
    if (UNLIKELY(thread->top == thread->end) && !thread_grow(thread))
        return;
    struct place place = record_reserve(thread, RECORD_ROOM_FOR_VALUE, RECORD_ROOM_FOR_VALUE);
    if (LIKELY(place.start != NULL)) {
        uint8_t *p = record_head(place.start, &function->info, EVENT_CALL, now - thread->stream.time);
        if (argument != NULL && LIKELY(recorder.values))
            p = values_put_fast(p, place.end - WIRE_CLOSE_MAX, EVENT_VALUE, argument);
        record_commit(thread, place.start, p, now);
    }
    struct open_call *call = thread->top;
    call->code = (PyCodeObject *)((uintptr_t)function | CALL_OF_C);
    call->start = now;
    call->caller = code;
    thread->top = call + 1;
    thread->stream.depth++;
}

/* `code` calls a function in C. argument: its first one, or NULL. */
HOT void c_calls_enter(struct thread *thread, const PyCodeObject *code, struct c_function *function,
                       PyObject *argument)
{
    if (UNLIKELY(function->name != NULL))
        c_calls_wait(thread, code, function, argument);
    else
        c_calls_record(thread, code, function, argument, record_now(thread));
}

/* A call that `code` made has ended, by a return or an exception, at `now`. */
HOT void c_calls_leave(struct thread *thread, const PyCodeObject *code, enum event_kind kind, uint64_t now)
{
    struct open_call *call = thread->top - 1;
    while (UNLIKELY(is_native_call(call))) /* left by longjmp or an exception of C++ */
        call--;
    if (!call_is_of_c(call) || call->caller != code)
        return; /* its beginning was not recorded */
    struct c_function *function = (struct c_function *)((uintptr_t)call->code & ~(uintptr_t)CALL_OF_C);
    if (UNLIKELY(function->name != NULL) && kind == EVENT_RETURN && !function->told)
        function->name = NULL; /* it has not told of itself, and never will */
    bool depth_changed = UNLIKELY(call + 1 < thread->top) && native_leave_all(thread, call + 1, now);
    hook_leave(thread, call, &function->info, kind, NULL, NULL, depth_changed, now);
}

#endif
