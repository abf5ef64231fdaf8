/* The variables of a code object, and which of them each of its lines may change: read once from
 * its bytecode, where lines are recorded.
 *
 * A line that stores a variable may give it another value. A line that runs other code (it calls,
 * stores an item or an attribute) may change what a variable holds in place. Everything else stays.
 */
#ifndef PYTRACE_VARIABLES_H
#define PYTRACE_VARIABLES_H

#include "record/pycompat.h"

#define VARIABLES_MAX 4000 /* of a code object; those beyond are not recorded */

struct variable {
    enum variable_kind {
        VARIABLE_LOCAL,  /* in a slot of the frame */
        VARIABLE_CELL,   /* in a cell, in a slot */
        VARIABLE_NAME,   /* in the mapping of a module or class body */
        VARIABLE_GLOBAL, /* the same; in the globals */
        VARIABLE_HIDDEN, /* the compiler's own */
    } kind : 8;
    bool redacted;
    bool argument;
    uint16_t slot;
    uint32_t place;      /* where its name was found last in the mapping */
    PyObject *name;      /* borrowed from the code object */
};

enum line_effect {
    LINE_RUNS = 1,    /* other code: anything may have changed in place */
    LINE_IN_PLACE = 2 /* an operator such as +=, which changes numbers and texts never in place */
};

struct line_stores {
    uint32_t first; /* in `stored` */
    uint16_t count;
    uint8_t effects; /* enum line_effect */
};

struct variables {
    uint16_t count;
    int first_line;
    uint32_t line_count;
    struct line_stores *lines;    /* by line - first_line; then one of code without a line */
    uint16_t *stored;             /* variables */
    int jump_from, jump_line;     /* the last jump back within a line: where from, and the line */
    struct variable all[];
};

/* NULL, without an exception, if memory is short. */
struct variables *variables_read(PyCodeObject *code);
void variables_free(struct variables *variables);

/* What a line stores; of an unknown line nothing. */
static inline const struct line_stores *variables_line(const struct variables *variables, int line)
{
    static const struct line_stores none;
    uint32_t at = (uint32_t)line - (uint32_t)variables->first_line;
    return at < variables->line_count ? &variables->lines[at] : &none;
}

/* What code stores that belongs to no line. */
static inline const struct line_stores *variables_no_line(const struct variables *variables)
{
    return &variables->lines[variables->line_count];
}

/* The item of this name in a dict, borrowed; NULL: none, or not a plain dict. *place is where it
 * was found last. */
PyObject *variables_find_name(PyObject *mapping, PyObject *name, uint32_t *place);

/* The value, borrowed; NULL: it is not bound. */
static inline PyObject *variables_value(struct variable *variable, const compat_frame *frame)
{
    PyObject *object;
    switch (variable->kind) {
    case VARIABLE_LOCAL:
        return compat_frame_local(frame, variable->slot);
    case VARIABLE_CELL:
        object = compat_frame_local(frame, variable->slot);
        return object != NULL && PyCell_Check(object) ? PyCell_GET(object) : object;
    case VARIABLE_HIDDEN:
        return NULL;
    case VARIABLE_NAME:
        return variables_find_name(frame->f_locals, variable->name, &variable->place);
    default:
        return variables_find_name(frame->f_globals, variable->name, &variable->place);
    }
}

#endif
