/* A front end: a table of functions of the part that the interpreter tells of calls.
 *
 * There are two, for the two interfaces of the interpreter: monitoring.c (3.12 and later),
 * profile.c (3.11). module.c hands FRONT_END over. */
#ifndef PYTRACE_FRONT_END_H
#define PYTRACE_FRONT_END_H

#include "record/pycompat.h"

struct thread;

struct front_end {
    /* Begins to listen; with `gate` the program's own first event opens the recording, so that
     * site and what it imports stay out of it. 0 or -1 with a Python exception. */
    int (*install)(bool gate);
    /* Ends it. 0 or -1 with a Python exception. */
    int (*uninstall)(void);
    /* A thread is freed: frees the front end's data of it. NULL: there is none. */
    void (*forget_thread)(struct thread *thread);
    /* Another greenlet runs on this thread: moves the front end's data from one to the other. NULL:
     * there is none. */
    void (*switch_greenlet)(struct thread *from, struct thread *to);
};

extern const struct front_end monitoring_front_end, profile_front_end;

#define FRONT_END (HAVE_MONITORING ? &monitoring_front_end : &profile_front_end)

#endif
