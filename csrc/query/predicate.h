/* Predicates: trees of conditions on an event's fields and its arguments.
 *
 * The same tree is asked about single events, and about sets of events of which only bounds are
 * known (a segment, by its summary; all events of one function and kind). So the answer has three
 * values, and one function gives it.
 *
 * For single events the logic has two values: a comparison with a missing value (a call's duration)
 * is false, and its `not` is true.
 *
 * No Python, no SQLite.
 */
#ifndef PYTRACE_PREDICATE_H
#define PYTRACE_PREDICATE_H

#include "query/run_definitions.h"
#include "query/required_literal.h"

enum field {
    /* numbers */
    FIELD_ID, FIELD_RUN, FIELD_TIME, FIELD_PID, FIELD_TID, FIELD_LINE, FIELD_DEPTH, FIELD_DURATION,
    FIELD_MINE,      /* 1: the function is of the user's own code, else 0 */
    FIELD_TRAILING,  /* 1: a line that has run tells what it changed, else 0 */
    FIELD_OWN_DEPTH, FIELD_NEAR_DEPTH, FIELD_NEAR, /* levels.h: struct level_place */
    FIELD_CPU,       /* the processor's number */
    FIELD_STREAM, FIELD_PROCESS, /* numbers in the run: unlike pids and tids, never used again */
    FIELD_POSITION,  /* of an argument, from 0 */
    /* texts */
    FIELD_THREAD, FIELD_TASK, FIELD_KIND, FIELD_LAYER, FIELD_MODULE, FIELD_FILE,
    FIELD_QUALNAME,  /* the qualified name alone */
    FIELD_FUNC,      /* the qualified name or its last part */
    FIELD_NAME,      /* of an argument */
    FIELD_VALUE,     /* as shown */
    FIELD_TEXT,      /* a string's bare content, else as shown */
    FIELD_EITHER,    /* value or text */
    FIELD_TYPE,
};

struct predicate; /* opaque */

/* ---- making. Each takes over its arguments, even if it returns NULL (no memory). ---- */

struct predicate *predicate_range(enum field field, int64_t low, int64_t high); /* both included */
/* These four copy what they are given; predicate_numbers and predicate_in are IN. */
struct predicate *predicate_numbers(enum field field, const int64_t *numbers, size_t count);
struct predicate *predicate_equal(enum field field, const char *text, size_t size);
struct predicate *predicate_in(enum field field, const struct string *texts, size_t count);
struct predicate *predicate_like(enum field field, const char *pattern, size_t size, int escape);
struct predicate *predicate_plain(enum field field); /* a text of nothing but printable ASCII */
/* Events that are shown where only own (near) code is: level_place.shown_own (shown_near). */
enum view { VIEW_OWN, VIEW_NEAR, VIEWS };
struct predicate *predicate_shown(enum view view);

enum group { GROUP_AND, GROUP_OR, GROUP_NOT, GROUP_ANY };
/* NOT and ANY have one member; ANY: there is an argument for which it is true. AND of none is true,
 * OR of none is false. NULL members (no memory) give NULL. `members` is copied, the members
 * themselves are taken over. */
struct predicate *predicate_group(enum group group, struct predicate **members, size_t count);

void predicate_free(struct predicate *predicate); /* NULL is fine */

/* Reads the text form, which `event MATCH ?` takes:
 *
 *   (and X…) (or X…) (not X) (any X)
 *   (= FIELD V) (!= FIELD V) (< FIELD N) (<= FIELD N) (> FIELD N) (>= FIELD N) (between FIELD N N)
 *   (in FIELD V…) (like FIELD "pattern") (plain FIELD) (shown own) (shown near)
 *
 * FIELD is one of id run time pid tid line depth duration mine trailing own_depth near_depth near
 * cpu stream process position (N: a decimal integer of 64 bits), thread task kind layer module file
 * qualname func name value text either type ("…": UTF-8, in which \" and \\ stand for " and \). In
 * a pattern a backslash escapes; it is written \\ in the text form. `=` on texts is exact; `plain`
 * is a text of nothing but printable ASCII. A condition on an argument outside of `any` is a
 * mistake, and so is `any` in `any`.
 * Conditions are nested at most PREDICATE_DEPTH_MAX deep.
 *
 * NULL: a mistake, described in `message` (with its position), or no memory. */
#define PREDICATE_DEPTH_MAX 200
struct predicate *predicate_parse(const char *text, size_t size, char *message, size_t message_size);

/* ---- asking ---- */

enum answer { NEVER, ALWAYS, MAYBE };

struct bounds {
    int64_t low, high; /* both included */
};

/* The known facts of an event, or of each event of a set. */
struct facts {
    struct bounds id, time, depth;      /* time: ns since 1970 */
    struct bounds duration;             /* ns, of those that have one ... */
    bool has_duration, lacks_duration;  /* ... whether some may have one; some may have none */
    struct bounds own_depth, near_depth, near; /* of those whose open levels are known ... */
    bool has_levels, lacks_levels;      /* ... whether some may be so; some may not */
    struct bounds cpu;                  /* of those where it is known ... */
    bool has_cpu, lacks_cpu;            /* ... whether it may be, of some; may not, of some */
    enum answer shown[VIEWS];
    struct bounds trailing;
    struct bounds line;                 /* as the column: the code's unless the event has one */
    uint32_t kinds;                     /* 1 << kind for each that it may be */
    const struct run_definitions *run;  /* NULL: not known; then nor are the next three */
    const struct run_thread *thread;    /* NULL: not known */
    struct bounds stream;
    const struct run_code *code;        /* NULL: not known */
    bool task_known;
    struct string task;                 /* its name; empty: the event is of none */
    const struct event *event;          /* NULL: its arguments are not known */
    const struct required_literals *missing; /* of the predicate, in no value; NULL: not known */
};

/* The facts of an unknown set. */
extern const struct facts facts_unknown;

/* The answer is never MAYBE if all facts are single values and `event` is given. `event` may come
 * from event_skim. Only a value whose text is longer than 16 KiB needs an allocation; without
 * memory only so much of it is compared. Any number of threads may call it at once. */
enum answer predicate_ask(const struct predicate *predicate, const struct facts *facts);

/* Whether an argument of an event (with the facts of a single event) meets conditions on columns of
 * the table `argument`: the tree may have conditions on arguments outside of `any`. */
bool predicate_ask_argument(const struct predicate *predicate, const struct facts *facts, uint32_t position,
                            struct string name, const struct value *value);

/* The rest of a predicate for the events of a set: true of the same events of the set. It shares
 * conditions with the predicate, and must be freed before it, by predicate_rest_free. NULL: no
 * memory. */
const struct predicate *predicate_rest(const struct predicate *predicate, const struct facts *facts);
void predicate_rest_free(const struct predicate *rest); /* NULL is fine */

/* The required literals (required_literal.h) of its conditions on values. Those that are missing
 * among the bytes of some records and the names of types are a fact about these records' events. */
void predicate_required_literals(const struct predicate *predicate, struct required_literals *literals);

/* The bounds that a predicate sets to a field in any case: it is true of no event outside. */
struct bounds predicate_bounds(const struct predicate *predicate, enum field field);

/* The variables of a function of which a line must tell news, so that the predicate can be true of
 * it: a bit for each one's number, the last bit for all from NEWS_OTHERS on. The facts are those of
 * the function's lines. */
#define NEWS_ALL UINT64_MAX
#define NEWS_OTHERS 63
uint64_t predicate_news(const struct predicate *predicate, const struct facts *facts);

/* Whether it asks for an event's place among the open levels, which follows from all events before
 * it. */
bool predicate_asks_levels(const struct predicate *predicate);

#endif
