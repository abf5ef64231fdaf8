/* Calls out of events; see calls.h. */
#include "calls.h"

#include <stdlib.h>

#include "summary.h"

#define DEPTH_MAX (1 << 20)  /* functions deeper than that have no caller here */

/* Instead of an index in a segment: */
#define OUTSIDE UINT32_MAX       /* before the segment */
#define UNKNOWN (UINT32_MAX - 1) /* nowhere in the records */

/* Instead of where a call's end is, which is behind its call: */
enum { UNSEEN = 0, STILL_OPEN = 1 };

/* A call of a segment. */
struct call {
    uint64_t time;   /* clock units */
    uint32_t index, code;
    uint32_t end;    /* offset of its end's record, or one of the above */
    uint32_t parent; /* index of what entered the caller, or one of the above */
};

/* An open function. */
struct frame {
    uint32_t index; /* of the event that entered it, or UNKNOWN */
    uint32_t call;  /* its place among the segment's calls; UNKNOWN: it was resumed, or is unknown */
};

/* The functions that are open somewhere in a segment, from level `floor` on: those below were so
 * before the segment. */
struct stack {
    int32_t floor;
    struct frame *frames;
    size_t count, capacity;
};

/* The calls of a segment that questions are about. */
struct pairs {
    struct pairs *next;
    int64_t segment_id;
    int64_t start, end; /* ns */
    uint32_t position;
    struct call *calls; /* in order of index, and so of time */
    size_t count, capacity;
    size_t at;          /* the one asked for last */
    int32_t level;      /* of the function outside ... */
    int64_t outside;    /* ... that was looked for last: its event's id; 0: not known; -1: none was yet */
};

/* What matters of a segment to others: what it leaves open, above those that are open throughout. */
struct border {
    bool known;
    int32_t floor;
    uint32_t count;
    uint32_t *entered; /* indexes of events, by level from floor on */
};

/* An end whose call is not in its segment; by code and beginning in a hash table. */
struct late {
    uint64_t start, duration;
    uint32_t code, position, offset;
    uint32_t kind;     /* 0: an empty place */
};

/* The segments in which a function is. */
struct posting {
    uint32_t code, count;
    uint32_t *positions;
};

struct calls {
    const struct timeline *timeline;
    calls_fetch *fetch;
    void *context;
    struct pairs *pairs, *unused; /* the one asked for last first */
    struct stack stack;
    struct border *borders;       /* by position in the timeline */
    struct late *late;
    size_t late_count, late_size; /* size: a power of two, or 0 */
    struct posting *postings;     /* in order of code */
    size_t posting_count, posting_capacity;
};

static int64_t event_id(int64_t segment, uint32_t index)
{
    return (int64_t)((uint64_t)segment << SCAN_INDEX_BITS) + index;
}

static bool grow(void *array, size_t *capacity, size_t count, size_t element)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity * 2 + 64;
    void *grown = realloc(*(void **)array, larger * element);
    if (!grown)
        return false;
    *(void **)array = grown;
    *capacity = larger;
    return true;
}

/* ---- the timeline ------------------------------------------------------------------------- */

struct place {
    uint32_t stream, position;
};

static int by_stream(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

bool timeline_link(struct timeline *timeline)
{
    struct timeline_segment *segments = timeline->segments;
    struct place *places = malloc((timeline->count + 1) * sizeof *places);
    uint64_t latest = 0;

    if (!places)
        return false;
    for (uint32_t i = 0; i < timeline->count; i++) {
        places[i] = (struct place){segments[i].stream, i};
        latest = segments[i].end > latest ? segments[i].end : latest;
        segments[i].latest = latest;
        segments[i].before = segments[i].after = TIMELINE_NONE;
    }
    qsort(places, timeline->count, sizeof *places, by_stream);
    for (uint32_t i = 1; i < timeline->count; i++)
        if (places[i].stream == places[i - 1].stream) {
            segments[places[i].position].before = places[i - 1].position;
            segments[places[i - 1].position].after = places[i].position;
        }
    free(places);
    return true;
}

/* The first segment that starts at `start` or later. */
static uint32_t find_start(const struct timeline *timeline, uint64_t start)
{
    uint32_t low = 0, high = timeline->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (timeline->segments[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first segment of which there is one up to it that ends at `time` or later. */
static uint32_t find_latest(const struct timeline *timeline, uint64_t time)
{
    uint32_t low = 0, high = timeline->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (timeline->segments[middle].latest < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t find_segment(const struct timeline *timeline, const struct scan_segment *segment)
{
    for (uint32_t i = find_start(timeline, segment->base_time); i < timeline->count; i++)
        if (timeline->segments[i].id == segment->id)
            return i;
        else if (timeline->segments[i].start != segment->base_time)
            break;
    return TIMELINE_NONE;
}

/* ---- the walk over a segment -------------------------------------------------------------- */

static int32_t level_of(int32_t depth) { return depth < 0 ? 0 : depth > DEPTH_MAX ? DEPTH_MAX : depth; }

/* Makes `level` functions open: forgets those above, adds unknown ones. */
static bool cut(struct stack *stack, int32_t level)
{
    if (level < stack->floor) {
        stack->floor = level;
        stack->count = 0;
    }
    size_t count = (size_t)(level - stack->floor);
    while (stack->count < count) {
        if (!grow(&stack->frames, &stack->capacity, stack->count, sizeof *stack->frames))
            return false;
        stack->frames[stack->count++] = (struct frame){UNKNOWN, UNKNOWN};
    }
    stack->count = count;
    return true;
}

/* The index of the event that entered the function at a level. */
static uint32_t entered(const struct stack *stack, int32_t level)
{
    if (level < stack->floor)
        return OUTSIDE;
    return (size_t)(level - stack->floor) < stack->count ? stack->frames[level - stack->floor].index : UNKNOWN;
}

static bool enter(struct stack *stack, struct pairs *pairs, const struct segment_event *event)
{
    int32_t level = level_of(event->depth);
    struct frame frame = {event->index, UNKNOWN};

    if (!cut(stack, level))
        return false;
    if (event->event.kind == EVENT_CALL) {
        if (!grow(&pairs->calls, &pairs->capacity, pairs->count, sizeof *pairs->calls))
            return false;
        frame.call = (uint32_t)pairs->count;
        pairs->calls[pairs->count++] = (struct call){
            .time = event->time,
            .index = event->index,
            .code = event->event.code,
            .parent = level && event->depth == level ? entered(stack, level - 1) : UNKNOWN,
        };
    }
    if (!grow(&stack->frames, &stack->capacity, stack->count, sizeof *stack->frames))
        return false;
    stack->frames[stack->count++] = frame;
    return true;
}

/* The call of the segment of this function at this time, or NULL. */
static struct call *find_call(const struct pairs *pairs, uint32_t code, uint64_t time)
{
    size_t low = 0, high = pairs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pairs->calls[middle].time < time)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < pairs->count && pairs->calls[low].time == time; low++)
        if (pairs->calls[low].code == code && pairs->calls[low].end == UNSEEN)
            return &pairs->calls[low];
    return NULL;
}

static struct late *late_place(const struct calls *calls, uint64_t start, uint32_t code)
{
    uint64_t hash = (start ^ (uint64_t)code << 40) * 0x9e3779b97f4a7c15u;
    size_t mask = calls->late_size - 1, at = (size_t)(hash >> 32) & mask;
    while (calls->late[at].kind && (calls->late[at].start != start || calls->late[at].code != code))
        at = (at + 1) & mask;
    return &calls->late[at];
}

/* The end of a call, among the segments known. A forked process may have ended it, too. */
static const struct late *find_late(const struct calls *calls, const struct call *call, int64_t pid)
{
    const struct late *late = calls->late_size ? late_place(calls, call->time, call->code) : NULL;

    while (late && late->kind && (late->start != call->time || late->code != call->code ||
                                  calls->timeline->segments[late->position].pid != pid))
        late = late == calls->late + calls->late_size - 1 ? calls->late : late + 1;
    return late && late->kind ? late : NULL;
}

static void put_late(struct calls *calls, const struct late *late)
{
    struct late *place = late_place(calls, late->start, late->code);
    while (place->kind)
        place = place == calls->late + calls->late_size - 1 ? calls->late : place + 1;
    *place = *late;
}

static bool add_late(struct calls *calls, const struct late *late)
{
    if ((calls->late_count + 1) * 2 > calls->late_size) {
        struct calls larger = {.late_size = calls->late_size ? calls->late_size * 2 : 1024};
        if (!(larger.late = calloc(larger.late_size, sizeof *larger.late)))
            return false;
        for (size_t i = 0; i < calls->late_size; i++)
            if (calls->late[i].kind)
                put_late(&larger, &calls->late[i]);
        free(calls->late);
        calls->late = larger.late;
        calls->late_size = larger.late_size;
    }
    put_late(calls, late);
    calls->late_count++;
    return true;
}

/* Ends are given to calls of `pairs`; the others are remembered, where `position` is one. */
static bool leave(struct calls *calls, struct pairs *pairs, uint32_t position, const struct segment_event *event,
                  uint32_t offset)
{
    struct stack *stack = &calls->stack;
    int32_t level = level_of(event->depth);
    uint64_t start = event->time - event->duration;

    if (!cut(stack, level + 1))
        return false;
    if (event->event.kind != EVENT_YIELD && event->has_duration) {
        uint32_t top = stack->count ? stack->frames[stack->count - 1].call : UNKNOWN;
        struct call *call = top != UNKNOWN ? &pairs->calls[top] : NULL;
        if (!call || call->code != event->event.code || call->time != start)
            call = find_call(pairs, event->event.code, start);
        if (call)
            call->end = offset;
        else if (position != TIMELINE_NONE &&
                 !add_late(calls, &(struct late){start, event->duration, event->event.code, position, offset,
                                                 event->event.kind}))
            return false;
    }
    return cut(stack, level);
}

/* Walks the records up to the one of index `stop`, and leaves open in `stack` what is so there. Returns
 * how many were read, or SCAN_NO_MEMORY. */
static int64_t walk(struct calls *calls, struct pairs *pairs, uint32_t position, struct segment_walk at,
                    uint32_t stop)
{
    const uint8_t *body = at.next;
    struct stack *stack = &calls->stack;
    struct segment_event event;
    bool fine = true;

    stack->floor = level_of(at.open);
    stack->count = 0;
    pairs->count = 0;
    while (fine && segment_step(&at, &event, event_head) > 0) {
        if (EVENT_ENTERS >> event.event.kind & 1)
            fine = enter(stack, pairs, &event);
        else if (event.index == stop)
            at.open += EVENT_LEAVES >> event.event.kind & 1; /* it is left behind the event */
        else if (EVENT_LEAVES >> event.event.kind & 1)
            fine = leave(calls, pairs, position, &event, (uint32_t)(event.record - body));
        if (event.index == stop)
            break;
    }
    return fine && cut(stack, level_of(at.open)) ? (int64_t)at.index : SCAN_NO_MEMORY;
}

/* ---- other segments ----------------------------------------------------------------------- */

/* Walks a segment for `pairs`, and remembers what matters of it to others. */
static int learn(struct calls *calls, struct pairs *pairs, uint32_t position, const struct segment_walk *body)
{
    struct border *border = position != TIMELINE_NONE ? &calls->borders[position] : NULL;
    bool news = border && !border->known;
    int64_t read = walk(calls, pairs, news ? position : TIMELINE_NONE, *body, UINT32_MAX);
    const struct stack *stack = &calls->stack;

    if (read < 0)
        return (int)read;
    for (size_t i = 0; i < stack->count; i++)
        if (stack->frames[i].call != UNKNOWN)
            pairs->calls[stack->frames[i].call].end = STILL_OPEN;
    if (!news)
        return 0;
    border->known = true;
    border->floor = stack->floor;
    if (read < calls->timeline->segments[position].count) { /* nobody knows what the rest did */
        int32_t lowest = level_of(calls->timeline->segments[position].min_depth);
        if (lowest < border->floor)
            border->floor = lowest;
        return 0;
    }
    if (stack->count && !(border->entered = malloc(stack->count * sizeof *border->entered)))
        return SCAN_NO_MEMORY;
    border->count = (uint32_t)stack->count;
    for (size_t i = 0; i < stack->count; i++)
        border->entered[i] = stack->frames[i].index;
    return 0;
}

static struct pairs *take_pairs(struct calls *calls)
{
    struct pairs *pairs = calls->unused;
    if (pairs)
        calls->unused = pairs->next;
    else
        pairs = calloc(1, sizeof *pairs);
    return pairs;
}

static void give_pairs(struct calls *calls, struct pairs *pairs)
{
    pairs->next = calls->unused;
    calls->unused = pairs;
}

static int know(struct calls *calls, uint32_t position)
{
    struct segment_walk body;
    struct pairs *pairs;
    int answer = 0;

    if (calls->borders[position].known)
        return 0;
    if ((answer = calls->fetch(calls->context, calls->timeline->segments[position].id, &body)) < 0)
        return answer;
    if (!(pairs = take_pairs(calls)))
        return SCAN_NO_MEMORY;
    answer = learn(calls, pairs, position, &body);
    give_pairs(calls, pairs);
    return answer;
}

/* The event that entered the function open at `level` behind the segment at *position, or behind those
 * before it. Leaves *position where that is, for the next level below. */
static int find_entered(struct calls *calls, uint32_t *position, int32_t level, int64_t *id)
{
    const struct timeline_segment *segments = calls->timeline->segments;

    for (; *position != TIMELINE_NONE; *position = segments[*position].before) {
        const struct border *border = &calls->borders[*position];
        int answer;
        if (segments[*position].min_depth > level)
            continue;
        if ((answer = know(calls, *position)) < 0)
            return answer;
        if (border->floor > level)
            continue;
        uint32_t above = (uint32_t)(level - border->floor);
        if (above >= border->count || border->entered[above] == UNKNOWN)
            return 0;
        *id = event_id(segments[*position].id, border->entered[above]);
        return 1;
    }
    return 0;
}

/* Where a function is, from the segments' summaries. */
static int find_posting(struct calls *calls, uint32_t code, const struct posting **found)
{
    size_t low = 0, high = calls->posting_count, capacity = 0;
    struct posting posting = {.code = code};

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (calls->postings[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == calls->posting_count || calls->postings[low].code != code) {
        if (!grow(&calls->postings, &calls->posting_capacity, calls->posting_count, sizeof posting))
            return SCAN_NO_MEMORY;
        for (uint32_t i = 0; i < calls->timeline->count; i++) {
            const struct timeline_segment *segment = &calls->timeline->segments[i];
            const uint8_t *p = segment->codes;
            struct summary_code summary = {0};
            bool bad = false;
            while (p && (p = summary_next(p, segment->codes_end, &summary, &bad)) && summary.number < code)
                continue;
            if (!bad && (!p || summary.number != code))
                continue;
            if (!grow(&posting.positions, &capacity, posting.count, sizeof *posting.positions)) {
                free(posting.positions);
                return SCAN_NO_MEMORY;
            }
            posting.positions[posting.count++] = i;
        }
        memmove(&calls->postings[low + 1], &calls->postings[low],
                (calls->posting_count++ - low) * sizeof posting);
        calls->postings[low] = posting;
    }
    *found = &calls->postings[low];
    return 0;
}

/* ---- ends --------------------------------------------------------------------------------- */

/* Goes through the stream up to where the call at `level` has been left. 1: it has; 0: it is still open. */
static int follow(struct calls *calls, uint32_t position, int32_t level)
{
    const struct timeline_segment *segments = calls->timeline->segments;

    while ((position = segments[position].after) != TIMELINE_NONE) {
        int answer;
        if (segments[position].min_depth > level)
            continue;
        if ((answer = know(calls, position)) < 0)
            return answer;
        if (calls->borders[position].floor <= level)
            return 1;
    }
    return 0;
}

/* Looks for the end of a call in all segments that may have it and are not known yet: where its
 * function is, and something that began early enough ends. */
static int search(struct calls *calls, const struct call *call, int64_t pid, const struct late **end)
{
    const struct timeline *timeline = calls->timeline;
    const struct posting *posting;
    uint32_t from = find_latest(timeline, call->time), low = 0, high;
    int answer = find_posting(calls, call->code, &posting);

    if (answer < 0)
        return answer;
    high = posting->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (posting->positions[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < posting->count; low++) {
        uint32_t position = posting->positions[low];
        const struct timeline_segment *segment = &timeline->segments[position];
        if (calls->borders[position].known || segment->end < call->time || segment->pid != pid)
            continue;
        if (segment->start > call->time && segment->max_duration < segment->start - call->time)
            continue;
        if ((answer = know(calls, position)) < 0)
            return answer;
        if ((*end = find_late(calls, call, pid)))
            return 1;
    }
    return 0;
}

/* The end of a call that is not in its own segment. */
static int find_end(struct calls *calls, uint32_t position, const struct call *call, int32_t level,
                    const struct late **end)
{
    int64_t pid = calls->timeline->segments[position].pid;
    int answer;

    if ((*end = find_late(calls, call, pid)))
        return 1;
    if (call->end == STILL_OPEN) {
        if ((answer = follow(calls, position, level)) <= 0)
            return answer;
        if ((*end = find_late(calls, call, pid)))
            return 1;
    }
    return search(calls, call, pid, end); /* it was suspended, or left unseen */
}

/* ---- questions ---------------------------------------------------------------------------- */

struct calls *calls_new(const struct timeline *timeline, calls_fetch *fetch, void *context)
{
    struct calls *calls = calloc(1, sizeof *calls);
    if (!calls)
        return NULL;
    calls->timeline = timeline;
    calls->fetch = fetch;
    calls->context = context;
    if (!(calls->borders = calloc((size_t)timeline->count + 1, sizeof *calls->borders))) {
        free(calls);
        return NULL;
    }
    return calls;
}

static void free_pairs(struct pairs *pairs)
{
    while (pairs) {
        struct pairs *next = pairs->next;
        free(pairs->calls);
        free(pairs);
        pairs = next;
    }
}

void calls_free(struct calls *calls)
{
    if (!calls)
        return;
    free_pairs(calls->pairs);
    free_pairs(calls->unused);
    for (uint32_t i = 0; i < calls->timeline->count; i++)
        free(calls->borders[i].entered);
    for (size_t i = 0; i < calls->posting_count; i++)
        free(calls->postings[i].positions);
    free(calls->borders);
    free(calls->postings);
    free(calls->late);
    free(calls->stack.frames);
    free(calls);
}

static struct segment_walk body_of(const struct scan_at *at)
{
    struct segment_walk start;
    segment_open(&start, at->body, at->body_size, at->segment->base_time, at->base_depth);
    return start;
}

/* Makes the pairs of the segment that `at` is in the first ones. Those of segments that are not of its
 * time are not needed any more. */
static int focus(struct calls *calls, const struct scan_at *at)
{
    struct pairs **place = &calls->pairs, *pairs;
    struct segment_walk body;

    while ((pairs = *place) && pairs->segment_id != at->segment->id)
        place = &pairs->next;
    if (pairs) {
        *place = pairs->next;
        pairs->next = calls->pairs;
        calls->pairs = pairs;
        return 0;
    }
    for (place = &calls->pairs; (pairs = *place);)
        if (at->row->time < pairs->start || at->row->time > pairs->end) {
            *place = pairs->next;
            give_pairs(calls, pairs);
        } else {
            place = &pairs->next;
        }
    if (!(pairs = take_pairs(calls)))
        return SCAN_NO_MEMORY;
    pairs->segment_id = at->segment->id;
    pairs->start = at->segment->start;
    pairs->end = at->segment->end;
    pairs->position = find_segment(calls->timeline, at->segment);
    pairs->at = 0;
    pairs->outside = -1;
    pairs->next = calls->pairs;
    calls->pairs = pairs;
    body = body_of(at);
    return learn(calls, pairs, pairs->position, &body);
}

/* The call that `at` is at, of the first pairs; NULL: there is none. */
static struct call *call_at(struct calls *calls, const struct scan_at *at)
{
    struct pairs *pairs = calls->pairs;
    uint32_t index = at->row->index;
    size_t low = 0, high = pairs->count;

    for (size_t i = pairs->at ? pairs->at - 1 : 0; i < pairs->at + 2 && i < pairs->count; i++)
        if (pairs->calls[i].index == index)
            return &pairs->calls[pairs->at = i]; /* the one before or behind the one asked for last */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pairs->calls[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    pairs->at = low;
    return low < pairs->count && pairs->calls[low].index == index ? &pairs->calls[low] : NULL;
}

int calls_end(struct calls *calls, const struct scan_at *at, struct call_end *end)
{
    const struct late *late;
    int answer = focus(calls, at);
    const struct call *call = answer < 0 ? NULL : call_at(calls, at);
    const struct pairs *pairs = calls->pairs;

    if (!call)
        return answer;
    if (call->end > STILL_OPEN) {
        struct event event;
        event_head(at->body + call->end, at->body_size - call->end, &event);
        *end = (struct call_end){event.kind, at->segment->id, call->end,
                                 event.has_elapsed ? event.elapsed : event.time};
        return 1;
    }
    if (pairs->position == TIMELINE_NONE)
        return 0;
    if ((answer = find_end(calls, pairs->position, call, level_of(at->row->depth), &late)) > 0)
        *end = (struct call_end){(enum event_kind)late->kind, calls->timeline->segments[late->position].id,
                                 late->offset, late->duration};
    return answer;
}

int calls_parent(struct calls *calls, const struct scan_at *at, int64_t *id)
{
    int answer = focus(calls, at);
    const struct call *call = answer < 0 ? NULL : call_at(calls, at);
    struct pairs *pairs = calls->pairs;
    int32_t level = level_of(at->row->depth) - 1;

    if (!call)
        return answer;
    if (call->parent == UNKNOWN)
        return 0;
    if (call->parent != OUTSIDE) {
        *id = event_id(at->segment->id, call->parent);
        return 1;
    }
    if (pairs->position == TIMELINE_NONE)
        return 0;
    if (pairs->outside < 0 || pairs->level != level) {
        uint32_t position = calls->timeline->segments[pairs->position].before;
        int64_t found = 0;
        if ((answer = find_entered(calls, &position, level, &found)) < 0)
            return answer;
        pairs->level = level;
        pairs->outside = answer ? found : 0;
    }
    *id = pairs->outside;
    return *id != 0;
}

int calls_stack(struct calls *calls, const struct scan_at *at, struct calls_level **levels, size_t *count)
{
    uint32_t position = find_segment(calls->timeline, at->segment);
    struct pairs *pairs = take_pairs(calls);
    struct stack stack = {0};
    size_t capacity = 0;
    int64_t answer = SCAN_NO_MEMORY;

    *levels = NULL;
    *count = 0;
    if (pairs) {
        answer = walk(calls, pairs, TIMELINE_NONE, body_of(at), at->row->index);
        give_pairs(calls, pairs);
        stack = calls->stack; /* as know() makes another one */
        calls->stack = (struct stack){0};
    }
    if (position != TIMELINE_NONE)
        position = calls->timeline->segments[position].before;
    for (int32_t level = stack.floor + (int32_t)stack.count; answer >= 0 && level-- > 0;) {
        uint32_t index = entered(&stack, level);
        int64_t id = index < UNKNOWN ? event_id(at->segment->id, index) : 0;
        if (index == OUTSIDE && position == TIMELINE_NONE)
            break;
        if (index == OUTSIDE)
            answer = find_entered(calls, &position, level, &id);
        if (answer < 0 || !id)
            continue;
        if (grow(levels, &capacity, *count, sizeof **levels))
            (*levels)[(*count)++] = (struct calls_level){level, id};
        else
            answer = SCAN_NO_MEMORY;
    }
    free(stack.frames);
    if (answer < 0) {
        free(*levels);
        *levels = NULL;
        *count = 0;
        return (int)answer;
    }
    for (size_t low = 0, high = *count; low + 1 < high; low++) {
        struct calls_level level = (*levels)[--high];
        (*levels)[high] = (*levels)[low];
        (*levels)[low] = level;
    }
    return 0;
}
