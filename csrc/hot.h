/* Where the time went: calls, own and total time by function, out of events in the order of time.
 *
 * Total time is from entering a function to leaving it, own time what is left of it without the
 * recorded functions that it called. A function that calls itself again counts once, the outermost
 * time; a generator only while it runs. What was entered before the recording's oldest event, or not
 * left until its newest, counts nothing. No Python, no SQLite.
 */
#ifndef PYTRACE_HOT_H
#define PYTRACE_HOT_H

#include "scan.h"

struct hot_code {
    const struct run_definitions *run;
    uint32_t code;
    uint64_t calls;
    int64_t own, total; /* ns */
};

struct hot; /* opaque */

struct hot *hot_new(void); /* NULL: no memory */
void hot_free(struct hot *hot); /* NULL is fine */

/* Takes an event into account; they come in the order of time. False: no memory. */
bool hot_add(struct hot *hot, const struct scan_at *at);

/* The functions that were called or left at all, those with the most own time first. What it points to
 * lives as long as `hot`. False: no memory. */
bool hot_result(struct hot *hot, const struct hot_code **codes, size_t *count);

#endif
