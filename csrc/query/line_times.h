/* Runs and times by line, made of events in the order of time.
 *
 * A run of a line lasts from its event to the next event of the same call: its next line, or its
 * end. Own time is that time without the recorded functions that were called in it. Total time is
 * with them; of a line that runs again below itself, only the outermost run counts. Average is of
 * the durations of all runs, inner ones too.
 *
 * A generator or coroutine counts only while it runs. The line that it waits in goes on when it is
 * resumed, if that line is known: if all waiting calls of its function in its process wait in the
 * same line, and nothing was lost before.
 *
 * A trailing event is no run: it tells what the line has changed. A duration is left out if a loss,
 * or the beginning of what is recorded, hides its start, its end, or how long a call in it took.
 *
 * A predicate chooses the runs: a run counts if its event meets it. No Python, no SQLite.
 */
#ifndef PYTRACE_LINE_TIMES_H
#define PYTRACE_LINE_TIMES_H

#include "query/scan.h"

struct line_time {
    const struct run_definitions *run;
    uint32_t code, line;
    uint64_t count;           /* runs */
    uint64_t timed;           /* runs whose duration is known */
    int64_t own, total;       /* ns */
    int64_t durations;        /* ns: the sum of them all */
};

struct line_times; /* opaque */

/* `counted`: the runs to count (NULL: all); kept by the caller until line_times_free. NULL: no
 * memory. */
struct line_times *line_times_new(const struct predicate *counted);
void line_times_free(struct line_times *times); /* NULL is fine */

/* Takes an event into account; they come in the order of time. False: no memory. */
bool line_times_add(struct line_times *times, const struct scan_at *at);

/* The lines with runs that count, the most own time first; no event may follow. The result lives as
 * long as `times`. False: no memory. */
bool line_times_result(struct line_times *times, const struct line_time **lines, size_t *count);

#endif
