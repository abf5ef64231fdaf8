/* What is asked of an event: a tree of conditions on its fields and its arguments.
 *
 * The same tree is asked about sets of events, of which only bounds are known (a segment, by its
 * summary; all events of one function and kind), and about single events. So the answer has three
 * values, and one function gives it.
 *
 * Two-valued logic in the end: a comparison with what is not there (a call's duration) is false,
 * and `not` of it is true.
 *
 * No Python, no SQLite.
 */
#ifndef PYTRACE_PREDICATE_H
#define PYTRACE_PREDICATE_H

#include "definitions.h"
#include "trail.h"

enum field {
    /* numbers */
    FIELD_ID, FIELD_RUN, FIELD_TIME, FIELD_PID, FIELD_TID, FIELD_LINE, FIELD_DEPTH, FIELD_DURATION,
    FIELD_POSITION,  /* of an argument, from 0 */
    /* texts */
    FIELD_THREAD, FIELD_TASK, FIELD_KIND, FIELD_MODULE, FIELD_FILE,
    FIELD_QUALNAME,  /* the qualified name alone */
    FIELD_FUNC,      /* the qualified name or its last part */
    FIELD_NAME,      /* of an argument */
    FIELD_VALUE,     /* as shown */
    FIELD_TEXT,      /* a string's bare content, else as shown */
    FIELD_EITHER,    /* value or text */
    FIELD_TYPE,
};

struct predicate; /* opaque */

/* ---- making. Each takes over what it is given, also where it answers NULL (no memory). ---- */

struct predicate *predicate_range(enum field field, int64_t low, int64_t high); /* both included */
struct predicate *predicate_numbers(enum field field, const int64_t *numbers, size_t count); /* IN; copies */
struct predicate *predicate_equal(enum field field, const char *text, size_t size);          /* copies */
struct predicate *predicate_in(enum field field, const struct string *texts, size_t count);   /* IN; copies */
struct predicate *predicate_like(enum field field, const char *pattern, size_t size, int escape); /* copies */
struct predicate *predicate_plain(enum field field); /* a text of nothing but printable ASCII */

enum group { GROUP_AND, GROUP_OR, GROUP_NOT, GROUP_ANY };
/* NOT and ANY have one member; ANY: there is an argument for which it is true. AND of none is true,
 * OR of none is false. NULL members (no memory) give NULL. `members` is copied, what it points to
 * taken over. */
struct predicate *predicate_group(enum group group, struct predicate **members, size_t count);

void predicate_free(struct predicate *predicate); /* NULL is fine */

/* Reads the text form, which `event MATCH ?` takes:
 *
 *   (and X…) (or X…) (not X) (any X)
 *   (= FIELD V) (!= FIELD V) (< FIELD N) (<= FIELD N) (> FIELD N) (>= FIELD N) (between FIELD N N)
 *   (in FIELD V…) (like FIELD "pattern") (plain FIELD)
 *
 * FIELD: id run time pid tid line depth duration position (N: a decimal integer of 64 bits),
 * thread task kind module file qualname func name value text either type ("…": UTF-8, in which \" and \\
 * stand for " and \). In a pattern a backslash escapes; so one is written \\ in the text form.
 * `=` on texts is exact; `plain` is a text of nothing but printable ASCII. Conditions on an argument outside of `any` are a mistake, as is `any` in `any`.
 * Nested at most PREDICATE_DEPTH_MAX deep.
 *
 * NULL: a mistake, described in `message` (with its position), or no memory. */
#define PREDICATE_DEPTH_MAX 200
struct predicate *predicate_parse(const char *text, size_t size, char *message, size_t message_size);

/* ---- asking ---- */

enum answer { NEVER, ALWAYS, MAYBE };

struct bounds {
    int64_t low, high; /* both included */
};

/* What is known of an event, or of each event of a set. */
struct facts {
    struct bounds id, time, depth;      /* time: ns since 1970 */
    struct bounds duration;             /* ns, of those that have one ... */
    bool has_duration, lacks_duration;  /* ... whether some may have one; some may have none */
    struct bounds line;                 /* as the column: the code's unless the event has one */
    uint32_t kinds;                     /* 1 << kind for each that it may be */
    const struct run_definitions *run;  /* NULL: not known; then nor are the next two */
    const struct run_thread *thread;    /* NULL: not known */
    const struct run_code *code;        /* NULL: not known */
    bool task_known;
    struct string task;                 /* its name; empty: the event is of none */
    const struct event *event;          /* NULL: its arguments are not known */
    const struct trails *missing;       /* no value leaves these of the predicate's; NULL: not known */
};

/* A set of which nothing is known. */
extern const struct facts facts_unknown;

/* With all facts degenerate and `event` given, never MAYBE. `event` may come from event_skim.
 * No allocation, but for a value whose text is longer than 16 KiB (without memory, so much of it is
 * compared); any number of threads at once. */
enum answer predicate_ask(const struct predicate *predicate, const struct facts *facts);

/* Whether an argument of an event (facts as of a single event) meets the conditions in which the
 * argument tables' columns are asked for: the tree may have conditions on arguments outside of `any`. */
bool predicate_ask_argument(const struct predicate *predicate, const struct facts *facts, uint32_t position,
                            struct string name, const struct value *value);

/* What is left of it for the events of a set: true of the same ones among them. It shares conditions with
 * the predicate, and is freed before it, by predicate_rest_free. NULL: no memory. */
const struct predicate *predicate_rest(const struct predicate *predicate, const struct facts *facts);
void predicate_rest_free(const struct predicate *rest); /* NULL is fine */

/* The trails (trail.h) of its conditions on values. Those that are missing among the bytes of some
 * records and the names of types are a fact about these records' events. */
void predicate_trails(const struct predicate *predicate, struct trails *trails);

/* The bounds that it sets to a field in any case (members of its outermost `and`): to find segments. */
struct bounds predicate_bounds(const struct predicate *predicate, enum field field);

#endif
