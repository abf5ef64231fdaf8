/* Greenlets: several stacks of calls on one thread of the operating system; see greenlets.c. */
#ifndef PYTRACE_GREENLETS_H
#define PYTRACE_GREENLETS_H

#include "record/thread.h"

/* The struct thread of the greenlet that runs now, if the data stack differs from the last one
 * seen. It is current_thread from then on. */
struct thread *greenlets_current(struct thread *thread);

#endif
