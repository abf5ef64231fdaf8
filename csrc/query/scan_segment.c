/* One segment of a scan; see scan_segment.h.
 *
 * An event is tested in steps, each of which settles most events: the required literals in the
 * segment's bytes, the function and kind, the required literals in the record's bytes, the event's
 * numbers, and at last its values.
 */
#include "query/scan_segment.h"

#include <stdlib.h>

#include "common/array.h"
#include "query/zstd.h"

#define BODY_MAX (256 << 10) /* no chunk is larger (RING_MAX_CHUNK_SIZE) */

/* The known answers for a function's events, by kind; there are none for unknown kinds. */
struct code_answers {
    uint32_t age; /* the lens's at that time; answers of another age are invalid */
    /* 1 + enum answer to a record without required literals, by whether the event is shown (a bit
     * for each enum view); 0: not asked yet */
    uint8_t plain[1 << VIEWS][EVENT_KNOWN_END];
    uint8_t marked[1 << VIEWS][EVENT_KNOWN_END]; /* ... with one */
    struct rest {
        const struct predicate *predicate; /* the rest of the predicate; NULL: not asked yet */
        struct bounds lines, depths;       /* it is true of no events at others */
        uint64_t news;                     /* of lines: predicate_news */
    } rests[EVENT_KNOWN_END];
};

const char *scan_decompress(struct zstd_context *context, const struct scan_data *data, uint8_t **body,
                            size_t *capacity)
{
    const char *reason = NULL;
    if (data->size < 0 || data->size > BODY_MAX)
        return "no segment has that many bytes";
    if (!array_reserve(body, capacity, (size_t)data->size + 1, 1))
        return "no memory to decompress it";
    long size = zstd_decompress(context, *body, (size_t)data->size + 1, data->data, data->data_size, &reason);
    if (size >= 0 && size != data->size)
        return "it has another size than it should";
    return reason;
}

void scan_row_of(const struct scan_segment *segment, const uint8_t *body, const struct segment_walk *walk,
                 const struct segment_event *event, struct scan_row *row)
{
    const struct segment_clock *clock = &segment->run->clock;
    *row = (struct scan_row){
        .time = segment_clock_ns(clock, event->time),
        .duration = event->has_duration ? segment_duration_ns(clock, event->duration) : -1,
        .index = event->index,
        .offset = (uint32_t)(event->record - body),
        .code = event->event.code,
        .line = event->event.line,
        .depth = event->depth,
        .kind = (uint8_t)event->event.kind,
        .facts = event->event.is_trailing && event->event.kind == EVENT_AT_LINE ? ROW_TRAILING : 0,
        .task = walk->task ? (uint32_t)(walk->task - body) : 0,
        .task_size = walk->task_size,
        .cpu = walk->cpu,
    };
}

/* A bit for each enum view. */
static unsigned shown_bits(const struct level_place *place)
{
    return (unsigned)place->shown_own << VIEW_OWN | (unsigned)place->shown_near << VIEW_NEAR;
}

void scan_row_place(const struct level_place *place, bool known, struct scan_row *row)
{
    row->own_depth = place->own_depth;
    row->near_depth = place->near_depth;
    row->facts |= (uint8_t)((known ? ROW_LEVELS : 0) | (place->near ? ROW_NEAR : 0) |
                            shown_bits(place) * ROW_SHOWN);
}

static enum answer from(bool is) { return is ? ALWAYS : NEVER; }

void scan_facts(const struct scan_at *at, const struct event *event, struct facts *facts)
{
    const struct scan_segment *segment = at->segment;
    const struct scan_row *row = at->row;
    const struct run_code *code = run_code_find(segment->run, row->code);
    int64_t id = (int64_t)((uint64_t)segment->id << SCAN_INDEX_BITS) + row->index;
    int64_t line = row->line ? row->line : code->line;
    *facts = (struct facts){
        .id = {id, id},
        .time = {row->time, row->time},
        .depth = {row->depth, row->depth},
        .duration = {row->duration, row->duration},
        .has_duration = row->duration >= 0,
        .lacks_duration = row->duration < 0,
        .own_depth = {row->own_depth, row->own_depth},
        .near_depth = {row->near_depth, row->near_depth},
        .near = {(row->facts & ROW_NEAR) != 0, (row->facts & ROW_NEAR) != 0},
        .has_levels = row->facts & ROW_LEVELS,
        .lacks_levels = !(row->facts & ROW_LEVELS),
        .cpu = {row->cpu, row->cpu},
        .has_cpu = row->cpu != CPU_UNKNOWN,
        .lacks_cpu = row->cpu == CPU_UNKNOWN,
        .shown = {[VIEW_OWN] = from(row->facts & ROW_SHOWN << VIEW_OWN),
                  [VIEW_NEAR] = from(row->facts & ROW_SHOWN << VIEW_NEAR)},
        .line = {line, line},
        .trailing = {(row->facts & ROW_TRAILING) != 0, (row->facts & ROW_TRAILING) != 0},
        .kinds = 1u << row->kind,
        .run = segment->run,
        .thread = segment->thread,
        .stream = {segment->stream, segment->stream},
        .code = code,
        .task_known = true,
        .task = {(const char *)at->body + row->task, row->task_size},
        .event = event,
    };
}

bool scan_meets(const struct scan_at *at, const struct predicate *predicate)
{
    struct facts facts;
    struct event event;

    if (!predicate)
        return true;
    scan_facts(at, NULL, &facts);
    enum answer answer = predicate_ask(predicate, &facts);
    if (answer == MAYBE &&
        event_skim(at->body + at->row->offset, at->body_size - at->row->offset, &event) >= 0) {
        scan_facts(at, &event, &facts);
        answer = predicate_ask(predicate, &facts);
    }
    return answer == ALWAYS;
}

/* The facts of all events of the lens's segments. */
static struct facts facts_of(const struct lens *lens, const struct required_literals *missing)
{
    struct facts facts = facts_unknown;
    facts.run = lens->run;
    facts.thread = lens->thread;
    facts.stream = (struct bounds){lens->stream, lens->stream};
    facts.missing = missing;
    return facts;
}

/* The facts of a function's events of a kind. */
static struct facts facts_of_code(const struct lens *lens, uint32_t number, enum event_kind kind,
                                  const struct required_literals *missing)
{
    struct facts facts = facts_of(lens, missing);
    facts.kinds = 1u << kind;
    facts.code = run_code_find(lens->run, number);
    return facts;
}

static void forget_rests(struct code_answers *answers)
{
    for (int kind = 0; kind < EVENT_KNOWN_END; kind++)
        predicate_rest_free(answers->rests[kind].predicate);
}

static void forget_answers(struct lens *lens)
{
    for (size_t i = 0; i < lens->answers_count; i++)
        forget_rests(&lens->answers[i]);
    free(lens->answers);
}

static struct code_answers *answers_of(const struct lens *lens, uint32_t number)
{
    /* one place for all undefined codes */
    uint32_t place = number < lens->run->code_count ? number : lens->run->code_count;
    struct code_answers *answers = &lens->answers[place];
    if (answers->age != lens->age) {
        forget_rests(answers);
        *answers = (struct code_answers){.age = lens->age};
    }
    return answers;
}

/* The answer as far as function and kind give it, and whether the event is shown; `plain`: of a
 * record without any required literal. */
static enum answer ask_code(const struct lens *lens, const struct segment_search *search, uint32_t number,
                            enum event_kind kind, unsigned shown, bool plain)
{
    struct code_answers *answers = answers_of(lens, number);
    uint8_t *answer = plain ? &answers->plain[shown][kind] : &answers->marked[shown][kind];

    if (!*answer) {
        struct facts facts = facts_of_code(lens, number, kind, plain ? &lens->missing : NULL);
        for (int i = 0; i < VIEWS && search->levels; i++)
            facts.shown[i] = from(shown >> i & 1);
        *answer = (uint8_t)(1 + predicate_ask(search->predicate, &facts));
    }
    return (enum answer)(*answer - 1);
}

/* The rest of the predicate for these events. */
static const struct rest *rest_of(const struct lens *lens, const struct segment_search *search,
                                  uint32_t number, enum event_kind kind)
{
    struct rest *rest = &answers_of(lens, number)->rests[kind];

    if (!rest->predicate) {
        struct facts facts = facts_of_code(lens, number, kind, NULL);
        rest->predicate = predicate_rest(search->predicate, &facts);
        const struct predicate *known = rest->predicate ? rest->predicate : search->predicate;
        rest->lines = predicate_bounds(known, FIELD_LINE);
        rest->depths = predicate_bounds(known, FIELD_DEPTH);
        rest->news = kind == EVENT_AT_LINE ? predicate_news(known, &facts) : NEWS_ALL;
    }
    return rest;
}

static bool is_within(struct bounds bounds, int64_t number)
{
    return number >= bounds.low && number <= bounds.high;
}

/* Whether a line tells news of one of the variables; true if it does not say of which. */
static bool tells(const struct event *event, uint64_t news)
{
    struct event_variables variables;
    uint32_t variable;

    event_variables(event, &variables);
    if (!variables.next)
        return event->fields;
    for (uint32_t i = 0; i < variables.changed && event_variable(&variables, &variable); i++)
        if (news >> (variable < NEWS_OTHERS ? variable : NEWS_OTHERS) & 1)
            return true;
    return false;
}

/* False: by its line, its depth and its variables, it cannot meet the rest of the predicate. */
static bool may_be_here(const struct lens *lens, const struct rest *rest, const struct segment_event *event)
{
    uint32_t line = event->event.line;

    return is_within(rest->depths, event->depth) &&
           is_within(rest->lines, line ? line : run_code_find(lens->run, event->event.code)->line) &&
           (rest->news == NEWS_ALL || tells(&event->event, rest->news));
}

static bool names_have(const struct run_names *names, const struct required_literal *literal)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (required_literal_is_in(literal, (const uint8_t *)names->names[i].text, names->names[i].size))
            return true;
    return false;
}

/* Whether the name of a type has it, or that of an item or attribute of its objects. */
static bool types_have(const struct run_definitions *run, const struct required_literal *literal)
{
    for (uint32_t i = 0; i < run->type_count; i++) {
        if (run->types[i] &&
            required_literal_is_in(literal, (const uint8_t *)run->types[i], strlen(run->types[i])))
            return true;
        if ((run->fields && names_have(&run->fields[i], literal)) ||
            (run->attributes && names_have(&run->attributes[i], literal)))
            return true;
    }
    return false;
}

/* The required literals that are not among those found. */
static void collect_missing(const struct segment_search *search, uint32_t found,
                            struct required_literals *missing)
{
    missing->count = 0;
    for (size_t i = 0; i < search->literals.count; i++)
        if (!(found >> i & 1))
            missing->all[missing->count++] = search->literals.all[i];
}

/* Sets the lens to a segment. False: no memory. */
static bool lens_focus(struct lens *lens, const struct segment_search *search,
                       const struct scan_segment *segment)
{
    const struct run_definitions *run = segment->run;

    if (lens->run == run && lens->thread == segment->thread && lens->stream == segment->stream)
        return true;
    if (lens->run != run) {
        size_t count = (size_t)run->code_count + 1;
        if (count > lens->answers_count) {
            struct code_answers *larger = calloc(count, sizeof *larger);
            if (!larger)
                return false;
            forget_answers(lens);
            lens->answers = larger;
            lens->answers_count = count;
        }
        lens->in_types = 0;
        for (size_t i = 0; i < search->literals.count; i++)
            lens->in_types |= (uint32_t)types_have(run, search->literals.all[i]) << i;
        collect_missing(search, lens->in_types, &lens->missing);
    }
    lens->run = run;
    lens->thread = segment->thread;
    lens->stream = segment->stream;
    lens->age++;
    lens->found = UINT32_MAX; /* not asked yet */
    return true;
}

/* The places of required literals in a segment, during the walk over its records. */
struct marks {
    /* the first place that the walk has not passed; NULL: none, or in a type */
    const uint8_t *next[REQUIRED_LITERALS_MAX];
    const uint8_t *nearest;          /* of them; the body's end: there is none */
};

static void marks_nearest(struct marks *marks, const struct segment_search *search, const uint8_t *end)
{
    marks->nearest = end;
    for (size_t i = 0; i < search->literals.count; i++)
        if (marks->next[i] && marks->next[i] < marks->nearest)
            marks->nearest = marks->next[i];
}

/* False: by the literals in the body, no event in it can meet the predicate. */
static bool marks_begin(struct marks *marks, const struct segment_search *search, struct lens *lens,
                        const struct task *task)
{
    uint32_t found = lens->in_types;

    for (size_t i = 0; i < search->literals.count; i++) {
        marks->next[i] = found >> i & 1 ? NULL
                         : required_literal_find(search->literals.all[i], task->body, task->body_size,
                                                 task->body);
        found |= (uint32_t)(marks->next[i] != NULL) << i;
    }
    marks_nearest(marks, search, task->body + task->body_size);
    if (found != lens->found) {
        struct required_literals missing;
        collect_missing(search, found, &missing);
        struct facts facts = facts_of(lens, &missing);
        lens->found = found;
        lens->hopeless = missing.count && predicate_ask(search->predicate, &facts) == NEVER;
    }
    return !lens->hopeless;
}

/* Whether a required literal is in the record between the places; they only rise. */
static bool marks_in(struct marks *marks, const struct segment_search *search, const struct task *task,
                     const uint8_t *record,
                     const uint8_t *end)
{
    if (marks->nearest >= end)
        return false;
    if (marks->nearest >= record)
        return true;
    for (size_t i = 0; i < search->literals.count; i++)
        if (marks->next[i] && marks->next[i] < record)
            marks->next[i] = required_literal_find(search->literals.all[i], task->body, task->body_size,
                                                   record);
    marks_nearest(marks, search, task->body + task->body_size);
    return marks->nearest < end;
}

/* Whether the event in `row` meets the predicate, by all its facts. missing: required literals that
 * its record does not have; NULL: not known. */
static bool ask_event(const struct predicate *predicate, const struct task *task,
                      const struct scan_row *row, const struct required_literals *missing)
{
    struct facts facts;
    struct event event;
    enum answer answer;

    scan_facts(&(struct scan_at){.segment = task->segment, .row = row, .body = task->body}, NULL, &facts);
    facts.missing = missing;
    answer = predicate_ask(predicate, &facts);
    if (answer != MAYBE)
        return answer == ALWAYS;
    if (event_skim(task->body + row->offset, task->body_size - row->offset, &event) < 0)
        return false;
    facts.event = &event;
    return predicate_ask(predicate, &facts) == ALWAYS;
}

/* The part of a segment to which the predicate's bounds go: clock units, and numbers of events. */
struct part {
    int64_t first, last, first_index, last_index;
};

static struct part part_of(const struct segment_search *search, const struct scan_segment *segment)
{
    const struct segment_clock *clock = &segment->run->clock;
    int64_t start = (int64_t)((uint64_t)segment->id << SCAN_INDEX_BITS);

    return (struct part){
        .first = segment_clock_units(clock, search->times.low, false),
        .last = segment_clock_units(clock, search->times.high, true),
        .first_index = saturate_subtract(search->ids.low, start),
        .last_index = saturate_subtract(search->ids.high, start),
    };
}

/* with_levels: search->levels, which is known where this is built in. */
static inline __attribute__((always_inline)) void find_rows(const struct segment_search *search,
                                                            struct lens *lens, struct task *task,
                                                            struct marks *marks, bool with_levels)
{
    const struct scan_segment *segment = task->segment;
    struct levels *levels = with_levels && task->open_size ? &lens->levels : NULL;
    struct segment_walk walk;
    struct segment_event event;
    struct level_place place = {0};
    const struct part part = part_of(search, segment);
    int answer;

    if (levels)
        levels_begin(levels, task->data + task->data_size, task->open_size, task->base_depth);
    segment_open(&walk, task->body, task->body_size, segment->base_time, task->base_depth);
    for (;;) {
        enum answer wanted = ALWAYS;
        const struct rest *rest = NULL;
        bool plain = false;

        answer = segment_step(&walk, &event, event_head);
        if (answer <= 0 || (int64_t)event.time > part.last || event.index > part.last_index)
            break;
        if (event.index >> SCAN_INDEX_BITS) {
            task->reason = "it has more events than any can have";
            return;
        }
        task->read++;
        if (with_levels)
            scan_place(levels, segment, &walk, &event.event, &place);
        if ((int64_t)event.time < part.first || event.index < part.first_index ||
            __builtin_expect(!event_is_known(event.event.kind), 0))
            continue;
        if (!segment->all) {
            plain = !marks_in(marks, search, task, event.record, walk.next);
            wanted = ask_code(lens, search, event.event.code, event.event.kind, shown_bits(&place), plain);
            if (wanted == MAYBE)
                rest = rest_of(lens, search, event.event.code, event.event.kind);
            if (wanted == NEVER || (rest && !may_be_here(lens, rest, &event)))
                continue;
        }
        if (!array_reserve(&task->rows, &task->row_capacity, task->row_count + 1, sizeof *task->rows)) {
            task->no_memory = true;
            return;
        }
        struct scan_row *row = &task->rows[task->row_count];
        scan_row_of(segment, task->body, &walk, &event, row);
        if (with_levels)
            scan_row_place(&place, levels, row);
        if (!rest || ask_event(rest->predicate ? rest->predicate : search->predicate, task, row,
                               plain ? &lens->missing : NULL))
            task->row_count++;
    }
    if (answer == DECODE_TRUNCATED)
        task->reason = "its content ends within an event";
    else if (answer < 0)
        task->reason = "its content makes no sense";
}

void segment_process(const struct segment_search *search, struct lens *lens, struct task *task)
{
    struct scan_data data = {
        .base_depth = task->base_depth, .size = task->size, .data = task->data, .data_size = task->data_size};
    struct marks marks = {0};

    if (!task->data)
        return; /* the segment is gone */
    if (!lens->zstd && !(lens->zstd = zstd_context_new())) {
        task->no_memory = true;
        return;
    }
    task->reason = scan_decompress(lens->zstd, &data, &task->body, &task->body_capacity);
    if (task->reason)
        return;
    task->body_size = (size_t)task->size;
    if (!task->segment->all) {
        if (!lens_focus(lens, search, task->segment)) {
            task->no_memory = true;
            return;
        }
        if (!marks_begin(&marks, search, lens, task)) {
            task->read = task->segment->count;
            return;
        }
    }
    if (search->levels)
        find_rows(search, lens, task, &marks, true);
    else
        find_rows(search, lens, task, &marks, false);
}

void lens_free(struct lens *lens)
{
    if (lens->zstd)
        zstd_context_free(lens->zstd);
    forget_answers(lens);
}
