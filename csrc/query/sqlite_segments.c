/* The segments of a question; see sqlite_segments.h. */
#include "query/sqlite_segments.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/saturate.h"
#include "format/summary.h"

#define EXPORTED __attribute__((visibility("default")))

#define QUIET 3 /* questions of an unchanged database, until summaries are kept */
#define LOOKED_FIRST 16 /* kept summaries that are looked at before a scan; then twice as many */
#define LOOKED_MOST 4096

/* ---- which there are ---------------------------------------------------------------------- */

static void free_rest(struct list_rest *rest);

void list_free(struct list *list)
{
    free_rest(list->rest);
    for (size_t i = 0; i < list->definitions_count; i++)
        definitions_release(list->definitions[i]);
    free(list->definitions);
    free(list->segments);
    *list = (struct list){0};
}

/* Whether the predicate may be true of an event in a function, by code number; each is tested
 * once. */
struct code_answers {
    const struct predicate *predicate;
    const struct run_definitions *run;
    uint8_t *answers; /* 1 + enum answer; 0: not asked yet */
};

static bool code_may_match(struct code_answers *codes, uint32_t number)
{
    if (number >= codes->run->code_count)
        return true;
    if (!codes->answers[number]) {
        struct facts facts = facts_unknown;
        facts.run = codes->run;
        facts.code = run_code_find(codes->run, number);
        codes->answers[number] = (uint8_t)(1 + predicate_ask(codes->predicate, &facts));
    }
    return codes->answers[number] - 1 != NEVER;
}

/* False: no function in the segment can match: neither at all, nor with what is known of the
 * segment's events. */
static bool codes_may_match(struct code_answers *codes, struct string summary, struct facts *known,
                            size_t known_count)
{
    const uint8_t *p = (const uint8_t *)summary.text, *end = p ? p + summary.size : p;
    struct summary_code code = {0};
    bool bad = false;

    while (p && (p = summary_next(p, end, &code, &bad))) {
        if (!code_may_match(codes, code.number))
            continue;
        for (size_t i = 0; i < known_count; i++) {
            known[i].code = run_code_find(codes->run, code.number);
            if (predicate_ask(codes->predicate, &known[i]) != NEVER)
                return true;
        }
    }
    return bad;
}

/* False: no event in the segment is of own code. */
static bool may_have_own(const struct run_definitions *run, struct string summary)
{
    const uint8_t *p = (const uint8_t *)summary.text, *end = p ? p + summary.size : p;
    struct summary_code code = {0};
    bool bad = false;

    while (p && (p = summary_next(p, end, &code, &bad)))
        if (run_code_find(run, code.number)->mine)
            return true;
    return bad;
}

/* Facts that follow from the open levels; the other facts of the segment are known. */
static void add_levels(const struct segment_summary *summary, struct facts *facts)
{
    bool own = may_have_own(facts->run, summary->codes), lost = facts->kinds & 1u << EVENT_LOST;
    struct open_bounds bounds = {0};
    const uint8_t *open = (const uint8_t *)summary->open.text;
    size_t size = summary->open.size > OPEN_MAX ? OPEN_MAX : summary->open.size;
    unsigned flags = open ? open[0] : 0;

    if (open)
        open_bounds(open, size, facts->depth.low, facts->depth.high, own, &bounds);
    facts->has_levels = open;
    facts->lacks_levels = !open;
    facts->own_depth = (struct bounds){bounds.own_low, bounds.own_high};
    facts->near_depth = (struct bounds){bounds.near_low, bounds.near_high};
    facts->near = (struct bounds){0, bounds.may_be_near};
    if (!own && !lost && !(flags & OPEN_AFTER_OWN))
        facts->shown[VIEW_OWN] = NEVER;
    if (!own && !lost && !(flags & OPEN_AFTER_NEAR) && !bounds.may_be_near)
        facts->shown[VIEW_NEAR] = NEVER;
}

/* What is asked of the segments of a run. levels: the predicate asks for them; first, last: the
 * times that it allows, in clock units. */
struct question {
    const struct definitions *definitions;
    struct code_answers codes;
    bool levels;
    int64_t first, last;
};

/* The answer for the events of some kinds, which have at least a depth. It completes the facts. */
static enum answer ask_kinds(const struct question *question, const struct segment_summary *summary,
                             struct facts *facts, uint32_t kinds, int64_t lowest)
{
    facts->depth.low = lowest;
    facts->kinds = kinds;
    facts->has_duration = kinds & (1u << EVENT_RETURN | 1u << EVENT_EXCEPTION | 1u << EVENT_YIELD);
    if (question->levels)
        add_levels(summary, facts);
    return predicate_ask(question->codes.predicate, facts);
}

/* The segment of a summary; false: it has no event that can match. */
static bool segment_of_summary(struct question *question, const struct segment_summary *summary,
                               struct scan_segment *segment)
{
    const struct run_definitions *run = &question->definitions->run;
    const struct segment_clock *clock = &run->clock;
    const uint32_t inside = 1u << EVENT_RAISE | 1u << EVENT_LOG | 1u << EVENT_LOST | 1u << EVENT_AT_LINE |
                            1u << EVENT_HAPPENED;

    *segment = (struct scan_segment){
        .id = summary->id,
        .run = run,
        .thread = definitions_thread(run, summary->stream),
        .stream = summary->stream,
        .base_time = (uint64_t)summary->start,
        .count = summary->count,
        .all = true,
    };
    segment->start = segment_clock_ns(clock, segment->base_time);
    segment->end = segment_clock_ns(clock, (uint64_t)summary->end);
    if (!question->codes.predicate)
        return true;
    int64_t first = (int64_t)((uint64_t)segment->id << SCAN_INDEX_BITS);
    int64_t depth = summary->min_depth;
    uint32_t kinds = summary->kinds & EVENT_KNOWN;
    if (!kinds && summary->kinds & EVENT_LATER)
        return false; /* nothing in it is known */
    struct facts facts = facts_unknown;
    facts.id = (struct bounds){first, first | ((1 << SCAN_INDEX_BITS) - 1)};
    facts.time = (struct bounds){segment->start, segment->end};
    facts.depth.high = summary->max_depth;
    facts.duration = (struct bounds){0, segment_duration_ns(clock, (uint64_t)summary->max_duration)};
    facts.has_cpu = summary->kinds & SUMMARY_CPUS;
    facts.run = run;
    facts.thread = segment->thread;
    facts.stream = (struct bounds){segment->stream, segment->stream};
    /* An event in a function has the function's depth: one less than the open calls. */
    struct facts known[] = {facts, facts};
    size_t count = 0;
    enum answer answer = MAYBE;
    uint32_t in_function = kinds & inside, others = kinds & ~inside;
    if (others || !in_function)
        answer = ask_kinds(question, summary, &known[count++], others, depth);
    if (in_function) {
        enum answer theirs =
            ask_kinds(question, summary, &known[count++], in_function, depth > 0 ? depth - 1 : depth);
        answer = !others || theirs == answer ? theirs : MAYBE;
    }
    segment->all = answer == ALWAYS;
    return answer == ALWAYS ||
           (answer == MAYBE && codes_may_match(&question->codes, summary->codes, known, count));
}

static bool list_segment(struct question *question, const struct segment_summary *summary,
                         struct list *list)
{
    struct scan_segment segment;

    if (!segment_of_summary(question, summary, &segment))
        return true;
    if (!array_reserve(&list->segments, &list->capacity, list->count + 1, sizeof segment))
        return false;
    list->segments[list->count++] = segment;
    return true;
}

/* Lists by the rows of a statement that has its parameters. */
static int list_rows(struct trace *trace, struct question *question, sqlite3_stmt *row, bool open,
                     struct list *list)
{
    int answer;

    while ((answer = trace_step(trace, row)) == SQLITE_ROW) {
        struct segment_summary summary = summary_of_row(row, open);
        if (!list_segment(question, &summary, list)) {
            answer = SQLITE_NOMEM;
            break;
        }
    }
    sqlite3_reset(row);
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

static int list_by_id(struct trace *trace, struct question *question, struct bounds ids, struct list *list)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, SEGMENTS_BY_ID, &row);

    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, question->definitions->run.run);
    sqlite3_bind_int64(row, 2, ids.low >> SCAN_INDEX_BITS);
    sqlite3_bind_int64(row, 3, ids.high >> SCAN_INDEX_BITS);
    return list_rows(trace, question, row, true, list);
}

static int list_by_time(struct trace *trace, struct question *question, struct list *list)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, question->levels ? SEGMENTS_OPEN : SEGMENTS, &row);

    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, question->definitions->run.run);
    sqlite3_bind_int64(row, 2, question->last);
    sqlite3_bind_int64(row, 3, question->first);
    return list_rows(trace, question, row, question->levels, list);
}

/* The summaries that are kept, and which of them comes next. */
struct list_rest {
    struct question question;
    struct summaries *kept;
    bool descending;
    uint32_t next, step;      /* step: how many are looked at before a scan goes on */
};

static void free_rest(struct list_rest *rest)
{
    if (!rest)
        return;
    summaries_release(rest->kept);
    free(rest->question.codes.answers);
    free(rest);
}

/* Whether no further summary can be within the times: the others begin later, or end earlier. */
static bool is_beyond(const struct list_rest *rest, const struct segment_summary *summary)
{
    return rest->descending ? summary->end < rest->question.first : summary->start > rest->question.last;
}

int list_more(void *context, size_t *count)
{
    struct list *list = context;
    struct list_rest *rest = list->rest;
    size_t before = list->count;

    if (!rest)
        return 0;
    for (uint32_t looked = 0; rest->next < rest->kept->count; rest->next++, looked++) {
        const struct segment_summary *summary =
            rest->descending ? rest->kept->by_end[rest->next] : &rest->kept->all[rest->next];
        if (is_beyond(rest, summary))
            rest->next = rest->kept->count - 1;
        else if (summary->end >= rest->question.first && summary->start <= rest->question.last &&
                 !list_segment(&rest->question, summary, list))
            return SCAN_NO_MEMORY;
        if (looked >= rest->step && list->count > before) {
            rest->next++;
            break;
        }
    }
    rest->step = rest->step < LOOKED_MOST ? 2 * rest->step : LOOKED_MOST;
    *count = list->count;
    return rest->next < rest->kept->count;
}

/* The segments that are not looked at yet. */
static int64_t list_left(const struct list *list)
{
    return list->rest ? list->rest->kept->count - list->rest->next : 0;
}

enum order { ALL_AT_ONCE, ASCENDING, DESCENDING };

/* The same by the summaries that are kept. In an order, list_more lists them; it takes over the
 * question. */
static int list_kept(struct question *question, enum order order, struct list *list)
{
    struct summaries *kept = question->definitions->summaries;
    struct list_rest *rest;

    if (order == ALL_AT_ONCE) {
        for (uint32_t i = 0; i < kept->count && kept->all[i].start <= question->last; i++)
            if (kept->all[i].end >= question->first && !list_segment(question, &kept->all[i], list))
                return SQLITE_NOMEM;
        return SQLITE_OK;
    }
    /* so many, because segments stay where they are */
    if (!array_reserve(&list->segments, &list->capacity, kept->count + (size_t)1, sizeof *list->segments) ||
        (order == DESCENDING && !summaries_order(kept)) || !(rest = malloc(sizeof *rest)))
        return SQLITE_NOMEM;
    *rest = (struct list_rest){.question = *question,
                               .kept = kept,
                               .descending = order == DESCENDING,
                               .step = LOOKED_FIRST};
    kept->references++;
    question->codes.answers = NULL;
    list->rest = rest;
    return SQLITE_OK;
}

/* Whether the summaries of a run should be kept for the next questions: there were some since the
 * database has changed, and this connection does not change it. */
static bool is_quiet(const struct trace *trace, struct definitions *definitions)
{
    if (definitions->listings < QUIET)
        definitions->listings++;
    return definitions->listings == QUIET && !sqlite3_total_changes(trace->db);
}

static int list_run(struct trace *trace, const struct predicate *predicate, int64_t run, enum order order,
                    struct list *list)
{
    struct bounds ids = {INT64_MIN, INT64_MAX}, times = ids;
    struct definitions *definitions;
    int answer = definitions_get(trace, run, &definitions);

    if (answer)
        return answer;
    if (!array_reserve(&list->definitions, &list->definitions_capacity, list->definitions_count + 1,
                       sizeof definitions)) {
        definitions_release(definitions);
        return SQLITE_NOMEM;
    }
    list->definitions[list->definitions_count++] = definitions;
    if (predicate) {
        ids = predicate_bounds(predicate, FIELD_ID);
        times = predicate_bounds(predicate, FIELD_TIME);
    }
    struct question question = {
        .definitions = definitions,
        .codes = {.predicate = predicate, .run = &definitions->run},
        .levels = predicate && predicate_asks_levels(predicate),
        .first = segment_clock_units(&definitions->run.clock, times.low, false),
        .last = segment_clock_units(&definitions->run.clock, times.high, true),
    };
    if (predicate && !(question.codes.answers = calloc(definitions->run.code_count + (size_t)1, 1)))
        return SQLITE_NOMEM;
    if (ids.low > 0 && ids.high > 0 && (ids.high >> SCAN_INDEX_BITS) - (ids.low >> SCAN_INDEX_BITS) < 256)
        answer = list_by_id(trace, &question, ids, list);
    else if (!is_quiet(trace, definitions))
        answer = list_by_time(trace, &question, list);
    else if (!(answer = summaries_get(trace, definitions, question.levels)))
        answer = list_kept(&question, order, list);
    free(question.codes.answers);
    return answer;
}

static int list(struct trace *trace, const struct predicate *predicate, enum order order, struct list *found)
{
    int64_t *runs = NULL;
    size_t count = 0, capacity = 0;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, RUNS, &row);

    if (answer)
        return answer;
    while ((answer = trace_step(trace, row)) == SQLITE_ROW) {
        struct bounds run = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 0)};
        struct bounds asked = predicate ? predicate_bounds(predicate, FIELD_RUN) : run;
        if (run.low < asked.low || run.low > asked.high)
            continue;
        if (!array_reserve(&runs, &capacity, count + 1, sizeof *runs)) {
            answer = SQLITE_NOMEM;
            break;
        }
        runs[count++] = run.low;
    }
    sqlite3_reset(row);
    if (answer == SQLITE_DONE)
        answer = SQLITE_OK;
    for (size_t i = 0; i < count && !answer; i++)
        answer = list_run(trace, predicate, runs[i], count == 1 ? order : ALL_AT_ONCE, found);
    free(runs);
    return answer;
}

int list_segments(struct trace *trace, const struct predicate *predicate, struct list *found)
{
    return list(trace, predicate, ALL_AT_ONCE, found);
}

int list_in_order(struct trace *trace, const struct predicate *predicate, bool descending, struct list *found)
{
    return list(trace, predicate, descending ? DESCENDING : ASCENDING, found);
}

/* ---- their data --------------------------------------------------------------------------- */

/* An impossible value in the row of a segment or of its run; NULL: none. */
static const char *nonsense(const struct scan_segment *segment, int64_t base_depth)
{
    return segment->run->clock.scale > INT64_MAX ? "its run's clock makes no sense"
           : segment->base_time > INT64_MAX     ? "its start makes no sense"
           : base_depth != (int32_t)base_depth ? "its depth makes no sense" : NULL;
}

int segment_fetch(struct trace *trace, const struct scan_segment *segment, struct scan_data *data)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, DATA, &row);

    if (answer)
        return -answer;
    sqlite3_bind_int64(row, 1, segment->id);
    answer = trace_step(trace, row);
    if (answer == SQLITE_DONE)
        return 0;
    if (answer != SQLITE_ROW)
        return -answer;
    if (sqlite3_column_int64(row, 2)) /* a kind of a later version, which holds no events */
        return 0;
    const char *reason = nonsense(segment, sqlite3_column_int64(row, 0));
    if (reason) {
        trace_damaged(trace, segment, 0, reason);
        return 0;
    }
    *data = (struct scan_data){
        .base_depth = (int32_t)sqlite3_column_int64(row, 0),
        .size = sqlite3_column_int64(row, 1),
        .data = sqlite3_column_blob(row, 3),
        .data_size = (size_t)sqlite3_column_bytes(row, 3),
    };
    if (sqlite3_column_type(row, 4) == SQLITE_BLOB)
        data->open = sqlite3_column_blob(row, 4); /* NULL: it is empty */
    data->open_size = data->open ? (size_t)sqlite3_column_bytes(row, 4) : 0;
    data->open_size = data->open_size > OPEN_MAX ? OPEN_MAX : data->open_size;
    return 1;
}

/* The answers of sqlite_trace_progress and sqlite_trace_reached. Each thread has its own, like the
 * scan that it runs. */
static _Thread_local int64_t progress[2];
static _Thread_local const struct scan *fetching; /* the scan looks for its next event */

int trace_fetch(void *context, const struct scan_segment *segment, struct scan_data *data)
{
    progress[0]++; /* the next event may be many segments away */
    return segment_fetch(context, segment, data);
}

/* Segments opened, and all, of the scan that this thread is in: for SQLite's progress handler. */
EXPORTED void sqlite_trace_progress(int64_t *opened, int64_t *count);
EXPORTED void sqlite_trace_progress(int64_t *opened, int64_t *count)
{
    *opened = progress[0];
    *count = progress[1];
}

/* 1: this thread looks for the next event of a scan, and all before *time (backwards: behind it)
 * have come. For SQLite's progress handler, which may interrupt the scan: another query can go on
 * from there. */
EXPORTED int sqlite_trace_reached(int64_t *time);
EXPORTED int sqlite_trace_reached(int64_t *time)
{
    if (!fetching)
        return 0;
    *time = scan_reached(fetching);
    return 1;
}

int trace_next(struct trace *trace, struct scan *scan, const struct list *list, struct scan_at *at)
{
    progress[0] = (int64_t)scan_opened(scan);
    progress[1] = (int64_t)list->count + list_left(list);
    fetching = scan;
    int answer = scan_next(scan, at);
    fetching = NULL;
    if (answer <= 0 && trace->prepared[DATA])
        sqlite3_reset(trace->prepared[DATA]);
    return answer;
}
