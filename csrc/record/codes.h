/* The hook's data of each code object: its number in the recording, its scope, and the places of
 * its arguments.
 *
 * All of it under the GIL.
 */
#ifndef PYTRACE_CODES_H
#define PYTRACE_CODES_H

#include "record/pycompat.h"
#include "record/stats.h"

enum scope {
    SCOPE_IN = 0,      /* recorded */
    SCOPE_OUT = 1,     /* not recorded, but its callees may be */
    SCOPE_NOTRACE = 2, /* not recorded, nor its callees */
};

struct argument {
    uint16_t slot;     /* in the frame's locals */
    bool special : 1;  /* one of these: */
    bool cell : 1;     /* the slot holds a cell with the value */
    bool redacted : 1;
};

#define CODE_FEW_ARGUMENTS 4

struct variables;

/* What few code objects need. */
struct code_more {
    struct code_more *next, **previous; /* of all code objects */
    struct code_info *info;  /* whose it is */
    int line, line_at;       /* codes_line's last answer, and the offset; 0: none */
    struct variables *variables; /* NULL: its lines are not recorded */
    uint16_t *sites;         /* c_calls.c; NULL: none yet */
    unsigned listening;      /* monitoring.c: when it was asked to report lines and calls */
};

/* All data for recording an event of this code; attached to the code object itself. */
struct code_info {
    bool ready;              /* in scope and defined: it can be recorded */
    uint8_t scope;           /* enum scope */
    bool resolved : 1;       /* scope has been decided */
    bool notrace : 1;        /* @notrace: stands above scope */
    bool c_calls : 1;        /* the C functions that it calls are recorded; it has `more` */
    bool cython : 1;         /* no frame executes it: see codes_of_cython */
    bool lines;              /* its lines are recorded: more->variables */
    bool catches;            /* has exception handlers */
    bool generator;          /* generator, coroutine or asynchronous generator */
    bool coroutine;          /* the same, except a plain generator */
    uint8_t head_size;
    uint8_t head[14];        /* the start of each of its records; byte 2 is the kind's tag */
    uint16_t argument_count; /* to record: 0 if values are off */
    uint32_t number;         /* 0: not defined yet */
    uint32_t room;           /* bytes that its call record may take */
    struct code_more *more;  /* NULL: none yet */
    struct argument *arguments; /* `few`, or for more of them, memory of their own */
    struct argument few[CODE_FEW_ARGUMENTS];
};

#define CODE_HEAD_KIND 2     /* place of the kind's tag in `head` */

struct codes_config {
    /* Absolute paths of files and folders, NULL-terminated; NULL: everything is in scope. */
    char **modules;
    char **exclude;
    bool site_packages, stdlib;
    bool values;             /* arguments are recorded */
    int lines, c_calls;      /* of 0: nothing, 1: the user's own code, 2: all that is in scope */
    char *stdlib_path;
    char *own_path;          /* our package: never recorded */
    char *own_alias;         /* pytrace.py */
    char *made_up_file;      /* the program's code if it has no file: <string>, <stdin>; NULL */
    char *directory;         /* the folder of relative file names */
    char *redact;            /* POSIX extended regular expression, case ignored; NULL: none */
};

extern Py_ssize_t codes_extra_index;

/* Prepares; once per process. 0, or -1 with a Python exception. */
int codes_init(void);
/* Takes over a copy of config. 0, or -1 with a Python exception. Decisions on codes so far stay. */
int codes_configure(const struct codes_config *config);
/* Is this file or one of the folders above it in the list, which ends with NULL? */
bool codes_is_below_any(const char *file, char **paths);
/* Is the code of this file the user's own? Neither Python's, nor in site-packages, nor made up. */
bool codes_is_mine(const char *file);
/* A copy of such a list in place of *to, or NULL. 0, or -1 with a Python exception. */
int codes_copy_list(char ***to, char **from);
/* Is this a file of the standard library? */
bool codes_is_stdlib(const char *file);
/* The info attached to the code object, or NULL. */
static inline struct code_info *codes_info(PyCodeObject *code)
{
    return compat_code_extra(code, codes_extra_index);
}

/* The same, but makes the info if need be, decides on the scope, and defines the code if it is in
 * scope. `globals`: of its module, for the module's name; may be NULL. NULL, without an exception,
 * if memory or the ring is short: try again at the next event. */
struct code_info *codes_resolve(PyCodeObject *code, PyObject *globals);
/* C code reports an event of this code object, which no frame executes: it is Cython's. To be
 * called before codes_resolve. */
void codes_of_cython(PyCodeObject *code);
/* Defines a code that is in no scope: log() may be called anywhere. False: no room now. */
bool codes_define(PyCodeObject *code, struct code_info *info, PyObject *globals);
/* The line of an instruction, at an offset in bytes; 0 or less: none. CPython reads its table from
 * the start. This keeps the answer, as a function mostly raises, awaits and logs at the same place
 * again. */
int codes_line(struct code_info *info, PyCodeObject *code, int offset);
/* Nobody reports lines and calls any more: a code object's next event asks again. */
void codes_forget_listening(void);
/* Makes the start of its records, which has its number. */
void codes_make_head(struct code_info *info);
/* Marks a code object: neither it nor its callees are recorded. 0, or -1 with a Python
 * exception. */
int codes_notrace(PyCodeObject *code);

#endif
