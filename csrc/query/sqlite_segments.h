/* The segments of a query, whose rows do not rule out the predicate, and their data. Progress
 * handlers of programs that load the extension can ask for the progress of a scan.
 *
 * Called by the tables that are scans: sqlite_event.c, sqlite_hot.c, sqlite_line.c.
 */
#ifndef PYTRACE_SQLITE_SEGMENTS_H
#define PYTRACE_SQLITE_SEGMENTS_H

#include "query/sqlite_definitions.h"

/* The segments of a query, and the definitions that they refer to. */
struct list {
    struct scan_segment *segments;
    size_t count, capacity;
    struct definitions **definitions;
    size_t definitions_count, definitions_capacity;
    struct list_rest *rest;   /* the segments that are not listed yet; NULL: there are none */
};

/* All segments in which the predicate (NULL: anything) may be true of an event. */
int list_segments(struct trace *trace, const struct predicate *predicate, struct list *list);
/* The same in the order of a scan. If the summaries are kept, list_more lists them, some at a time:
 * most scans end after a few. */
int list_in_order(struct trace *trace, const struct predicate *predicate, bool descending, struct list *list);
int list_more(void *list, size_t *count); /* for struct scan_calls */
void list_free(struct list *list);

/* For struct scan_calls, with the trace as context. Fetching runs a statement of its own, so that
 * an interrupt, or SQLite's progress handler, also stops a scan that finds no row. It returns
 * SQLite's codes as negative numbers. */
int trace_fetch(void *context, const struct scan_segment *segment, struct scan_data *data);

/* scan_next over a list; it sets the progress for sqlite_trace_progress. */
int trace_next(struct trace *trace, struct scan *scan, const struct list *list, struct scan_at *at);

/* A segment's data, from the database. 1: it is there; 0: it is not, or makes no sense;
 * negative: an error of SQLite. */
int segment_fetch(struct trace *trace, const struct scan_segment *segment, struct scan_data *data);

#endif
