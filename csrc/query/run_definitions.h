/* The definitions that a run's events refer to by number: code objects, threads, types; its clock.
 *
 * sqlite_definitions.c fills it from the tables run, process, thread, code and type;
 * predicate_ask.c and scan_segment.c read it, from several threads at once: it does not change
 * while a scan uses it.
 */
#ifndef PYTRACE_RUN_DEFINITIONS_H
#define PYTRACE_RUN_DEFINITIONS_H

#include "format/segment.h"
#include "query/text.h"

#define LAYER_PYTHON ((struct string){"python", 6})

struct run_code {
    struct string module, func, file; /* func: the qualified name */
    struct string last;               /* func's part behind the last dot */
    uint32_t line;
    struct string layer;              /* python, cython, c, native, kernel; or of a later version */
    bool mine;                        /* of the user's own code */
    uint32_t argument_count;
    const struct string *arguments;   /* names in signature order */
    uint32_t variable_count;
    const struct string *variables;   /* names, by which the values of lines are named */
};

struct run_thread {
    uint32_t stream;
    int64_t process;                  /* its number in the run; -1: not known */
    int64_t pid, tid;
    struct string name;
    bool is_kernel;                   /* what the kernel did for a thread ... */
    uint32_t own;                     /* ... whose own stream is this one; 0: it has none */
};

/* The names of the items, or attributes, that values of a type have. */
struct run_names {
    uint32_t count;
    const struct string *names;
};

struct run_definitions {
    int64_t run;
    struct segment_clock clock;
    uint32_t code_count;            /* codes[0] is "no code": all empty */
    const struct run_code *codes;   /* by number; numbers beyond, and gaps, are `undefined` below */
    uint32_t thread_count;
    const struct run_thread *threads; /* sorted by stream */
    uint32_t type_count;
    const char *const *types;       /* by number, NUL-terminated; NULL: none */
    /* of named tuples, and of objects, by the number of the type; NULL: no type has any */
    const struct run_names *fields, *attributes;
};

/* A code whose definition did not reach the database: its names are "?". */
extern const struct run_code run_code_undefined;

const struct run_code *run_code_find(const struct run_definitions *run, uint32_t number);

/* NULL: no such stream. */
const struct run_thread *run_thread_find(const struct run_definitions *run, uint32_t stream);

/* The stream that a thread's functions are in: of what the kernel did for it, the thread's own. */
static inline const struct run_thread *run_thread_own(const struct run_definitions *run,
                                                      const struct run_thread *thread)
{
    const struct run_thread *own = thread && thread->own ? run_thread_find(run, thread->own) : NULL;
    return own ? own : thread;
}

/* The names of types for text_value and similar functions. */
struct text_names run_type_names(const struct run_definitions *run);

/* The name of an event's value number `position` (from 0). For a call or an `event` it is its
 * argument's; if the code has too few, "argument N" in `buffer`. Others are "return value",
 * "exception", "yield value"; for a log, "message" and then the names in the record. `given` is the
 * name that event_name found for this value, or empty. */
struct string run_argument_name(const struct run_code *code, enum event_kind kind, uint32_t position,
                                struct string given, char buffer[32]);

/* The name of a variable of a line: by its number, if the record tells one (`known`), and the code
 * has so many; else "variable N", from 1, in `buffer`. */
struct string run_variable_name(const struct run_code *code, uint32_t number, bool known, char buffer[32]);

/* The name of an attribute of an event's value: "order.total", cut at its bounds, in `buffer`. */
#define RUN_ATTRIBUTE_NAME_MAX 512
struct string run_attribute_name(struct string argument, struct string attribute,
                                 char buffer[RUN_ATTRIBUTE_NAME_MAX]);

#endif
