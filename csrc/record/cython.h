/* Functions compiled by Cython with `profile=True` or `linetrace=True`: they tell of themselves.
 *
 * Cython's functions are C code, and no frame executes them. What that code calls (Cython/Utility/
 * Profile.c, of Cython 3.1 and later):
 *
 *                         3.11, 3.12                          3.13 and later
 *   calls, ends           the thread's profile function,      the callbacks of sys.monitoring
 *                         with a frame that it makes up
 *   arguments             -                                   -
 *   a generator's turn    as a call of its own                as in Python
 *   end by an exception   as a return of None                 as in Python
 *   module                globals of that frame               -
 *   lines                 the trace function, with            LINE, if a tool asks for it
 *                         `linetrace=True`                    everywhere; not recorded
 *   without the GIL       -                                   -
 *
 * An exception that leaves a `cpdef` function whose caller is Python is told twice: by the
 * function, and by what Python calls. The second time the function is not open any more.
 *
 * So a code object is Cython's if C code reports an event of it: no frame executes it. Its bytecode
 * is empty, or raises an error, and is not instrumented. Nothing of a frame is read for it, as the
 * innermost one is somebody else's. In its open call, its address is marked: CALL_OF_CYTHON.
 *
 * On 3.12, sys.monitoring is not told of these functions, so each thread gets a profile function
 * for them (monitoring.c). The interpreter does not call it: it would if it were set by
 * sys.setprofile. As soon as the program does that, ours goes.
 */
#ifndef PYTRACE_CYTHON_H
#define PYTRACE_CYTHON_H

#include "record/hook.h"

#if COMPAT_MADE_FRAMES
/* C code reports to a profile function: PyTrace_CALL or PyTrace_RETURN, of a frame that it has made
 * up. */
void cython_reported(PyFrameObject *frame, int what, PyObject *value);
#endif

/* C code reports to sys.monitoring that a function begins, or goes on (call, resume). Returns what
 * the callback is to return. */
PyObject *cython_entered(struct thread *thread, PyCodeObject *code, struct code_info *info, enum event_kind kind);

/* Whether this code, which no frame executes, is that of the innermost call. */
bool cython_is_open(const struct thread *thread, PyCodeObject *code, const struct code_info *info);

/* Before codes_resolve, at an event of code that no frame executes: marks it, and returns the
 * globals of its module; NULL: it is not known. */
PyObject *cython_prepare(PyCodeObject *code);

#endif
