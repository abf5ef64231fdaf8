/* What a run's events refer to by number: code objects, threads, types; and its clock.
 *
 * sqlite_trace.c fills it from the tables run, process, thread, code and type; predicate.c and
 * scan.c read it, from several threads at once: it does not change while a scan uses it.
 */
#ifndef PYTRACE_DEFINITIONS_H
#define PYTRACE_DEFINITIONS_H

#include "segment.h"
#include "text.h"

/* UTF-8, not NUL-terminated by contract. */
struct string {
    const char *text;
    size_t size;
};

struct run_code {
    struct string module, func, file; /* func: the qualified name */
    struct string last;               /* func's part behind the last dot */
    uint32_t line;
    uint32_t argument_count;
    const struct string *arguments;   /* names in signature order */
};

struct run_thread {
    uint32_t stream;
    int64_t pid, tid;
    struct string name;
};

struct run_definitions {
    int64_t run;
    struct segment_clock clock;
    uint32_t code_count;            /* codes[0] is "no code": all empty */
    const struct run_code *codes;   /* by number; numbers beyond, and gaps, are `undefined` below */
    uint32_t thread_count;
    const struct run_thread *threads; /* sorted by stream */
    uint32_t type_count;
    const char *const *types;       /* by number, NUL-terminated; NULL where there is none */
};

/* Names are "?": its definition did not reach the database. */
extern const struct run_code run_code_undefined;

const struct run_code *run_code_find(const struct run_definitions *run, uint32_t number);

/* NULL: no such stream. */
const struct run_thread *run_thread_find(const struct run_definitions *run, uint32_t stream);

/* For text_value and its like. */
struct text_names run_type_names(const struct run_definitions *run);

/* The name of an event's value number `position` (from 0): of a call its argument's (where the code
 * has too few, "argument N" in `buffer`), "return value", "exception", "yield value"; of a log
 * "message" and then the names it gave, which come from the record: `given` is what event_name said
 * for this value, or empty. */
struct string run_argument_name(const struct run_code *code, enum event_kind kind, uint32_t position,
                                struct string given, char buffer[32]);

#endif
