/* What the interpreter says, CPython 3.11: a profile function on every thread.
 *
 * The profiler is told of calls and ends, but not of exceptions: at a function's end by an
 * exception, that exception is out of reach. A trace function is told each exception that starts or
 * arrives in a Python function, and each line, which costs. So a trace function is set only while a
 * function runs that could catch an exception or was called by C, and behind an end by an
 * exception, until it has arrived in the caller: there its value is seen, and the record of the
 * end, held back until then, gets it. Where C code catches it in between, the value stays unknown.
 */

#include "hook.h"

#if !HAVE_MONITORING

#include <opcode.h>

/* The end of a call by an exception whose value is not known yet. */
struct pending {
    bool waiting;
    bool raised;             /* its start in the function has been recorded */
    PyCodeObject *code;
    struct code_info *info;
    PyFrameObject *frame;    /* for comparison only */
    int line;
    /* The frame that recorded an exception last, and the encoded value. */
    const void *raised_frame;
    size_t size;
    uint8_t value[];
};

static int on_exception(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);
static int on_profile(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);

#endif
