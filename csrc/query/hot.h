/* Calls and times by function, made of events in the order of time.
 *
 * Total time is the time between entering a function and leaving it. Own time is total time without
 * the recorded functions that it called. Of recursive calls only the outermost one counts. A
 * generator counts only while it runs. A call that began before the oldest event, or did not end
 * before the newest, does not count.
 *
 * Time off the processor is the part of a function's own time in which its thread had none, as the
 * scheduler's events tell: from sched_switch to sched_switch. The kernel sometimes leaves out the
 * second one; then it ends when the thread is woken (sched_waking), or with its next event. The
 * functions of a recording without these events have none.
 *
 * Average, longest and median are of durations, as the events that end calls have them: of all
 * calls, recursive ones too, and of a generator from its call to its end. The median comes from a
 * histogram with four classes for each doubling, of 1 KiB a function: it is right to an eighth.
 *
 * A predicate chooses the calls: a call counts if the event that enters the function meets it, or
 * the event that leaves it. No Python, no SQLite.
 */
#ifndef PYTRACE_HOT_H
#define PYTRACE_HOT_H

#include "query/scan.h"

struct hot_code {
    const struct run_definitions *run;
    uint32_t code;
    uint64_t calls;
    uint64_t ended;             /* calls whose duration is known */
    int64_t own, total;         /* ns */
    int64_t off;                /* ns: the part of `own` off the processor; -1: not recorded */
    int64_t durations, longest; /* ns: the sum of them all, and the largest */
    int64_t median;             /* ns; made by hot_result */
    uint32_t *classes;          /* calls by their duration; NULL: none has ended */
};

struct hot; /* opaque */

/* `counted`: the calls to count (NULL: all); kept by the caller until hot_free. NULL: no memory. */
struct hot *hot_new(const struct predicate *counted);
void hot_free(struct hot *hot); /* NULL is fine */

/* Takes an event into account; they come in the order of time. False: no memory. */
bool hot_add(struct hot *hot, const struct scan_at *at);

/* The functions that were called or left at all, the most own time first. The result lives as long
 * as `hot`. False: no memory. */
bool hot_result(struct hot *hot, const struct hot_code **codes, size_t *count);

#endif
