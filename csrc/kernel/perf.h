/* What the kernel tells an ordinary user of his own processes, without tracefs: context switches
 * and page faults in user space, by perf_event_open. They come as pages of a tracefs would
 * (pages.h), so that everybody else knows one kind of source.
 *
 * The events in these pages have the numbers of enum perf_event, and these bytes:
 *
 *   number (2) | 0 (2) | tid, "common_pid" (4) | fields, of 8 bytes each
 *
 * A processor has one buffer, which the events of all threads go to. Threads and processes that
 * begin later are followed. No Python.
 */
#ifndef PYTRACE_KERNEL_PERF_H
#define PYTRACE_KERNEL_PERF_H

#include "ring/clock.h"

#include <stddef.h>
#include <sys/types.h>

enum perf_event {
    PERF_SWITCH_OUT = 1, /* prev_pid, prev_state: 1 it waits, 256 it was preempted */
    PERF_SWITCH_IN,      /* next_pid */
    PERF_FAULT,          /* address, ip */
    PERF_BEGIN,          /* pid, clone_flags: in the thread that begins another one */
    PERF_END,            /* in the thread that ends */
};
#define PERF_PAGE_SIZE 4096
#define PERF_PAGE_HEAD 16 /* time stamp and commit */

/* Two moments by the kernel's clock and by the recording's. Between and near them times are
 * converted. */
struct perf_clock {
    enum clock_kind kind;
    struct { uint64_t ns, ticks; } before, now;
};

struct perf; /* a processor's buffer; opaque */

/* Whether this process may have such events. 0, or a negative errno. */
int perf_allowed(void);
/* NULL: no memory. */
struct perf *perf_new(uint32_t cpu);
void perf_free(struct perf *perf);
/* This thread's switches, with `faults` its page faults, and those of all that it begins, on the
 * processor. 0, or a negative errno:
 * -ENODEV if the processor is off, -ESRCH if the thread has ended. */
int perf_attach(struct perf *perf, pid_t tid, bool faults);
/* No more of them. */
void perf_stop(struct perf *perf);
void perf_look_at_clock(struct perf_clock *clock);
/* Fills a page; returns its size, or 0: there is nothing more. Events of process `self` are left
 * out. */
size_t perf_read(struct perf *perf, const struct perf_clock *clock, pid_t self, uint8_t page[PERF_PAGE_SIZE]);

#endif
