/* Counters of the slow paths, in a build that is made for it (`make STATS=1`); in any other STAT is
 * nothing. tests/record/test_stats.py has how far each counts in small programs, so that a fast
 * path that is never taken is found.
 */
#ifndef PYTRACE_STATS_H
#define PYTRACE_STATS_H

#include "record/pycompat.h"

/* name | what is counted */
#define STATS(_)                                                                    \
    /* events (hook.c, closed.c) */                                                 \
    _(event_prepared)       /* not all stood ready: its code or its thread is new */ \
    _(event_out_of_scope)                                                           \
    _(event_passed_over)    /* of a @notrace function, or under --repr */           \
    _(end_out_of_order)     /* of a call that is not the innermost */               \
    _(end_unseen)           /* of a generator; the interpreter did not tell */      \
    _(clock_behind)         /* the counter was behind the last event */             \
    /* where they go (hook.c, thread.c) */                                          \
    _(record_without_room)  /* in the thread's chunk */                             \
    _(record_outside)       /* written outside of the ring, and copied */           \
    _(record_dropped)                                                               \
    _(chunk_claimed)                                                                \
    _(chunk_taken_back)     /* from another thread */                               \
    _(thread_made)                                                                  \
    _(thread_looked)        /* for open @notrace functions, frame by frame */       \
    _(calls_grown)          /* more were open than there was room for */            \
    /* which stack, which task (greenlets.c, task.c) */                             \
    _(stack_looked)         /* at the chunks of the data stack: which greenlet runs? */ \
    _(stack_searched)       /* to its root */                                       \
    _(greenlet_found)       /* another one runs */                                  \
    _(task_looked)          /* which one runs? */                                   \
    _(task_changed)                                                                 \
    /* what is known (codes.c, types.c, define.c, lookup.c, secrets.c) */           \
    _(code_resolved)                                                                \
    _(code_defined)                                                                 \
    _(type_looked)          /* not as it was when it was seen last */               \
    _(type_defined)                                                                 \
    _(definition_repeated)  /* the same has been written before */                  \
    _(line_looked)          /* in the table of the code object */                   \
    _(name_looked)          /* among keys that are not all strings */               \
    _(name_judged)          /* by the regular expression for secrets */             \
    /* values (values.c, attributes.c) */                                           \
    _(value_general)        /* not one of those that most are */                    \
    _(value_known)          /* an object of a known type is read */                  \
    _(value_cut)            /* or a container of which not all is stored */         \
    _(layout_looked)        /* the type is not as it was when its objects were read last */ \
    _(shape_looked)         /* other names than those of the type's last object */  \
    _(shape_made)                                                                   \
    /* 3.11 (profile.c) */                                                          \
    _(trace_switched)       /* the trace function set, or taken away */             \
    _(end_held_back)        /* until its exception arrives */

#ifdef PYTRACE_STATS

#define STATS_FIELD(name) unsigned long long name;
extern struct stats {
    STATS(STATS_FIELD)
} stats;
#undef STATS_FIELD

#define STAT(name) ((void)stats.name++)

/* stats() -> dict[str, int]: all of them, since this process began. */
PyObject *stats_get(PyObject *module, PyObject *none);
#define STATS_METHOD {"stats", stats_get, METH_NOARGS, "stats() -> dict[str, int]\n\nThe slow paths taken so far."},

#else

#define STAT(name) ((void)0)
#define STATS_METHOD

#endif

#endif
