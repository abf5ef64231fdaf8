/* A run's definitions, from the tables run, process, thread, code and type; the summaries of its
 * segments, and its timeline, which is made of these. All are kept while the database is the same,
 * and later while somebody refers to them: SQLite gets the texts of definitions without a copy.
 *
 * Called for each question by sqlite_segments.c and sqlite_bodies.c, for the timeline by
 * sqlite_calls.c.
 */
#ifndef PYTRACE_SQLITE_DEFINITIONS_H
#define PYTRACE_SQLITE_DEFINITIONS_H

#include "query/calls.h"
#include "query/sqlite_database.h"

/* Memory that is freed all at once. */
struct arena {
    struct arena_block *blocks;
    char *next;
    size_t left;
};
struct arena_block {
    struct arena_block *next;
};

/* A run's codes and types. They only grow, so that the same counts mean the same names. */
struct names {
    int references;
    int64_t counts[4];                  /* as COUNTS gives them */
    struct run_code *codes;
    const char **types;
    struct run_names *fields, *attributes; /* by the number of the type; NULL: no type has any */
    uint32_t code_count, type_count;
    struct arena arena;
};

/* What a segment's row tells of its events. Times are in clock units. */
struct segment_summary {
    int64_t id, start, end, max_duration, stream, min_depth, max_depth;
    uint32_t count, kinds;
    struct string codes;                /* format/summary.h */
    struct string open;                 /* format/levels.h; NULL: not known, not asked for */
};

/* In order of start. The texts are the definitions'. */
struct summaries {
    int references;
    struct segment_summary *all;
    const struct segment_summary **by_end; /* the last end first; NULL: not asked for */
    uint32_t count;
    bool has_open;                      /* `open` was asked for */
};

/* A run's definitions, as they were at one time. */
struct definitions {
    struct definitions *next;
    int references, listings;           /* listings: how often its segments were listed */
    int64_t version;                    /* data_version at that time */
    struct run_definitions run;         /* points into `names` and `arena` */
    struct names *names;
    struct summaries *summaries;        /* NULL: not asked for yet */
    struct timeline *timeline;          /* NULL: not asked for yet */
    struct arena arena;                 /* threads, summaries */
};

/* The definitions of a run as they are in this moment's snapshot. A reference becomes the
 * caller's. */
int definitions_get(struct trace *trace, int64_t run, struct definitions **found);
void definitions_release(struct definitions *definitions); /* NULL is fine */

/* The definitions that a segment's `run` belongs to. */
struct definitions *definitions_of(const struct scan_segment *segment);

/* A row of the statements SEGMENTS_..., while it is current. open: it has this column. */
struct segment_summary summary_of_row(sqlite3_stmt *row, bool open);

/* The summaries of all segments of the run, kept with its definitions. */
int summaries_get(struct trace *trace, struct definitions *definitions, bool open);
void summaries_release(struct summaries *summaries); /* NULL is fine */
bool summaries_order(struct summaries *summaries);   /* makes by_end; false: no memory */

/* The run's segments, kept with its definitions. */
int timeline_get(struct trace *trace, struct definitions *definitions, const struct timeline **timeline);

/* The thread of a stream; one without a name if it is undefined. */
const struct run_thread *definitions_thread(const struct run_definitions *run, int64_t stream);

#endif
