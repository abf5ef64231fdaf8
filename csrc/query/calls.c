/* Calls out of events; see calls.h. */
#include "query/calls.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "format/summary.h"
#include "query/frames.h"
#include "query/late_ends.h"

/* In place of the offset of a call's end (which is behind the call): */
enum { UNSEEN, STILL_OPEN, YIELDED };

/* A call of a segment. */
struct call {
    uint64_t time;   /* clock units */
    uint32_t index, code;
    uint32_t end;    /* offset of its end's record, or one of the above */
    uint32_t parent; /* index of the event that entered the caller, or one of the above */
};

/* The calls of a segment. */
struct pairs {
    struct pairs *next;
    int64_t segment_id;
    int64_t start, end; /* ns */
    uint32_t position;
    struct call *calls; /* in order of index, and so of time */
    size_t count, capacity;
    size_t at;          /* the one asked for last */
    int32_t level;      /* of the function outside ... */
    int64_t outside;    /* ... that was looked for last: its event's id; 0: unknown; -1: none */
};

/* The facts of a segment that matter to others: the functions that it leaves open, above those that
 * are open all the time. */
struct border {
    bool known;
    struct stack stack; /* without spare room; `call` of its frames is invalid */
};

/* A function that has been resumed, and is open at the end of its thread's events. */
struct resumed {
    int64_t pid;
    uint32_t code;
};

/* The functions that are open in a thread's own stream at a time: those around what the kernel did
 * for it then. Times mostly rise, so that the walk goes on. */
struct beside {
    int64_t segment;         /* 0: none yet */
    uint32_t position;
    uint8_t *body;           /* a copy: it outlives the next fetch */
    size_t capacity;
    struct segment_walk walk;
    struct segment_event next;
    bool has_next;           /* `next` is behind the last time */
    uint64_t time;
    int32_t open;
    struct stack stack;
};

struct calls {
    const struct timeline *timeline;
    calls_fetch *fetch;
    void *context;
    struct pairs *pairs, *unused; /* the one asked for last first */
    struct stack stack;
    struct border *borders;       /* by position in the timeline */
    struct late_ends late;
    struct postings postings;
    struct beside beside;
    uint64_t stopped;             /* clock units: of the event that the last walk stopped at */
    bool resumed_known;
    struct resumed *resumed;      /* of all streams, in order */
    size_t resumed_count, resumed_capacity;
};

static int64_t event_id(int64_t segment, uint32_t index)
{
    return (int64_t)((uint64_t)segment << SCAN_INDEX_BITS) + index;
}

/* ---- the walk over a segment ------------------------------------------------------------- */

static bool enter(struct stack *stack, struct pairs *pairs, const struct segment_event *event)
{
    int32_t level = level_of(event->depth);
    struct frame frame = {level, event->index, UNKNOWN, event->event.code};

    frames_cut(stack, level);
    if (event->event.kind == EVENT_CALL) {
        if (!array_reserve(&pairs->calls, &pairs->capacity, pairs->count + 1, sizeof *pairs->calls))
            return false;
        frame.call = (uint32_t)pairs->count;
        frame.resumed = UNKNOWN;
        pairs->calls[pairs->count++] = (struct call){
            .time = event->time,
            .index = event->index,
            .code = event->event.code,
            .parent = level && event->depth == level ? frames_entered(stack, level - 1) : UNKNOWN,
        };
    }
    if (!array_reserve(&stack->frames, &stack->capacity, stack->count + 1, sizeof *stack->frames))
        return false;
    stack->frames[stack->count++] = frame;
    return true;
}

static bool has_ended(const struct call *call) { return call->end > YIELDED; }

/* The segment's call of this function at this time that has not ended, or NULL. */
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
        if (pairs->calls[low].code == code && !has_ended(&pairs->calls[low]))
            return &pairs->calls[low];
    return NULL;
}

/* Gives ends and first yields to calls of `pairs`; remembers all others, if `position` is a
 * segment's. */
static bool leave(struct calls *calls, struct pairs *pairs, uint32_t position,
                  const struct segment_event *event,
                  uint32_t offset)
{
    struct stack *stack = &calls->stack;
    int32_t level = level_of(event->depth);
    uint64_t start = event->time - event->duration;
    bool yields = event->event.kind == EVENT_YIELD, fine = true;

    frames_cut(stack, level + 1);
    const struct frame *frame = stack->count ? &stack->frames[stack->count - 1] : NULL;
    if (frame && frame->level != level)
        frame = NULL;
    if (event->has_duration && !(yields && frame && frame->resumed != UNKNOWN)) {
        struct call *call = frame && frame->call != UNKNOWN ? &pairs->calls[frame->call] : NULL;
        if (!call || call->code != event->event.code || call->time != start)
            call = find_call(pairs, event->event.code, start);
        if (call)
            call->end = yields ? YIELDED : offset;
        else if (position != TIMELINE_NONE)
            fine = late_add(&calls->late, calls->timeline,
                            &(struct late){start, event->duration, event->event.code, position, offset,
                                           event->event.kind, 0});
    }
    frames_cut(stack, level);
    return fine;
}

/* Walks the records up to index `stop`; then `stack` has the functions open there. Returns the
 * number of records read, or SCAN_NO_MEMORY. */
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
            at.open += EVENT_LEAVES >> event.event.kind & 1; /* the event leaves it */
        else if (EVENT_LEAVES >> event.event.kind & 1)
            fine = leave(calls, pairs, position, &event, (uint32_t)(event.record - body));
        if (event.index == stop) {
            calls->stopped = event.time;
            break;
        }
    }
    frames_cut(stack, level_of(at.open));
    return fine ? (int64_t)at.index : SCAN_NO_MEMORY;
}

/* ---- other segments ---------------------------------------------------------------------- */

/* Walks a segment for `pairs`, and remembers its border. */
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
    border->stack.floor = stack->floor;
    if (read < calls->timeline->segments[position].count) { /* the rest is not known */
        int32_t lowest = level_of(calls->timeline->segments[position].min_depth);
        if (lowest < stack->floor)
            border->stack.floor = lowest;
        return 0;
    }
    if (stack->count) {
        if (!(border->stack.frames = malloc(stack->count * sizeof *stack->frames)))
            return SCAN_NO_MEMORY;
        memcpy(border->stack.frames, stack->frames, stack->count * sizeof *stack->frames);
        border->stack.count = stack->count;
    }
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

/* The event that entered the function that is open at `level` at the end of the segment *position,
 * or of an earlier one. Sets *position to that segment, for the next level below. */
static int find_entered(struct calls *calls, uint32_t *position, int32_t level, int64_t *id)
{
    const struct timeline_segment *segments = calls->timeline->segments;

    for (; *position != TIMELINE_NONE; *position = segments[*position].before) {
        uint32_t index;
        int answer;
        if (segments[*position].min_depth > level)
            continue;
        if ((answer = know(calls, *position)) < 0)
            return answer;
        if ((index = frames_entered(&calls->borders[*position].stack, level)) == OUTSIDE)
            continue;
        if (index == UNKNOWN)
            return 0;
        *id = event_id(segments[*position].id, index);
        return 1;
    }
    return 0;
}

/* ---- around what the kernel did ----------------------------------------------------------- */

static int beside_open(struct calls *calls, uint32_t position)
{
    struct beside *beside = &calls->beside;
    struct segment_walk walk;
    int answer = calls->fetch(calls->context, calls->timeline->segments[position].id, &walk);
    size_t size;

    beside->segment = 0;
    if (answer < 0)
        return answer;
    size = (size_t)(walk.end - walk.next);
    if (!array_reserve(&beside->body, &beside->capacity, size + 1, 1))
        return SCAN_NO_MEMORY;
    if (size)
        memcpy(beside->body, walk.next, size);
    walk.next = beside->body;
    walk.end = beside->body + size;
    beside->walk = walk;
    beside->position = position;
    beside->segment = calls->timeline->segments[position].id;
    beside->stack.count = 0;
    beside->stack.floor = level_of(walk.open);
    beside->open = walk.open;
    beside->has_next = false;
    beside->time = 0;
    return 0;
}

/* Makes `beside` the functions that are open in a stream at a time. 1; 0: the stream has begun
 * later; or an error. */
static int beside_reach(struct calls *calls, uint32_t stream, uint64_t time)
{
    struct beside *beside = &calls->beside;
    uint32_t position = timeline_at(calls->timeline, stream, time);
    int answer;

    if (position == TIMELINE_NONE)
        return 0;
    if (!beside->segment || beside->position != position || time < beside->time)
        if ((answer = beside_open(calls, position)) < 0)
            return answer;
    beside->time = time;
    while (beside->has_next || segment_step(&beside->walk, &beside->next, event_head) > 0) {
        const struct segment_event *event = &beside->next;
        int32_t level = level_of(event->depth);
        if ((beside->has_next = event->time > time))
            break;
        beside->open = beside->walk.open;
        if (!((EVENT_ENTERS | EVENT_LEAVES) >> event->event.kind & 1))
            continue;
        frames_cut(&beside->stack, level);
        if (EVENT_LEAVES >> event->event.kind & 1)
            continue;
        if (!array_reserve(&beside->stack.frames, &beside->stack.capacity, beside->stack.count + 1,
                           sizeof *beside->stack.frames))
            return SCAN_NO_MEMORY;
        beside->stack.frames[beside->stack.count++] = (struct frame){level, event->index, UNKNOWN, UNKNOWN};
    }
    return 1;
}

/* The event that entered the function at a level of `beside`. */
static int beside_entered(struct calls *calls, int32_t level, int64_t *id)
{
    uint32_t index = frames_entered(&calls->beside.stack, level);
    uint32_t position = calls->timeline->segments[calls->beside.position].before;

    if (index == OUTSIDE)
        return position == TIMELINE_NONE ? 0 : find_entered(calls, &position, level, id);
    if (index == UNKNOWN)
        return 0;
    *id = event_id(calls->beside.segment, index);
    return 1;
}

/* ---- ends -------------------------------------------------------------------------------- */

/* Goes through the stream until the call at `level` has been left. 1: it has been; 0: it is still
 * open. */
static int follow(struct calls *calls, uint32_t position, int32_t level)
{
    const struct timeline_segment *segments = calls->timeline->segments;

    while ((position = segments[position].after) != TIMELINE_NONE) {
        int answer;
        if (segments[position].min_depth > level)
            continue;
        if ((answer = know(calls, position)) < 0)
            return answer;
        if (calls->borders[position].stack.floor <= level)
            return 1;
    }
    return 0;
}

/* Searches for the end of a call in all segments that may have it and were not searched yet. Such a
 * segment has its function, and an end of something that began early enough. */
static int search(struct calls *calls, const struct call *call, int64_t pid, const struct late **end)
{
    const struct timeline *timeline = calls->timeline;
    const struct posting *posting = postings_get(&calls->postings, timeline, call->code);
    uint32_t from = timeline_latest(timeline, call->time), low = 0, high;
    int answer = 0;

    if (!posting)
        return SCAN_NO_MEMORY;
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
        if ((*end = late_find(&calls->late, calls->timeline, call->time, call->code, pid, false)))
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

    if ((*end = late_find(&calls->late, calls->timeline, call->time, call->code, pid, false)))
        return 1;
    if (call->end == STILL_OPEN) {
        if ((answer = follow(calls, position, level)) <= 0)
            return answer;
        if ((*end = late_find(&calls->late, calls->timeline, call->time, call->code, pid, false)))
            return 1;
    }
    return search(calls, call, pid, end); /* suspended, or its end is lost */
}

/* ---- questions --------------------------------------------------------------------------- */

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
        free(calls->borders[i].stack.frames);
    free(calls->borders);
    postings_free(&calls->postings);
    free(calls->resumed);
    late_free(&calls->late);
    free(calls->beside.body);
    free(calls->beside.stack.frames);
    free(calls->stack.frames);
    free(calls);
}

static struct segment_walk body_of(const struct scan_at *at)
{
    struct segment_walk start;
    segment_open(&start, at->body, at->body_size, at->segment->base_time, at->base_depth);
    return start;
}

/* Puts the pairs of the segment of `at` first. Pairs of segments of another time are not needed any
 * more. */
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
    pairs->position = timeline_find(calls->timeline, at->segment);
    pairs->at = 0;
    pairs->outside = -1;
    pairs->next = calls->pairs;
    calls->pairs = pairs;
    body = body_of(at);
    return learn(calls, pairs, pairs->position, &body);
}

/* The call at `at`, in the first pairs; NULL: there is none. */
static struct call *call_at(struct calls *calls, const struct scan_at *at)
{
    struct pairs *pairs = calls->pairs;
    uint32_t index = at->row->index;
    size_t low = 0, high = pairs->count;

    for (size_t i = pairs->at ? pairs->at - 1 : 0; i < pairs->at + 2 && i < pairs->count; i++)
        if (pairs->calls[i].index == index)
            return &pairs->calls[pairs->at = i]; /* the one beside the last answer */
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
    if (has_ended(call)) {
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

static int by_process(const void *left, const void *right)
{
    const struct resumed *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return a->code < b->code ? -1 : a->code > b->code;
}

/* Adds the resumed functions that are open at the end of a stream: those that its last segment
 * leaves open, below them those of the segment before, and so on. */
static int add_resumed(struct calls *calls, uint32_t position)
{
    const struct timeline_segment *segments = calls->timeline->segments;
    int64_t pid = segments[position].pid;
    int32_t level = INT32_MAX;

    for (; position != TIMELINE_NONE && level > 0; position = segments[position].before) {
        const struct stack *stack = &calls->borders[position].stack;
        int answer;
        if (segments[position].min_depth >= level)
            continue;
        if ((answer = know(calls, position)) < 0)
            return answer;
        for (size_t i = 0; i < stack->count && stack->frames[i].level < level; i++) {
            if (stack->frames[i].resumed == UNKNOWN)
                continue;
            if (!array_reserve(&calls->resumed, &calls->resumed_capacity, calls->resumed_count + 1,
                               sizeof *calls->resumed))
                return SCAN_NO_MEMORY;
            calls->resumed[calls->resumed_count++] = (struct resumed){pid, stack->frames[i].resumed};
        }
        if (stack->floor < level)
            level = stack->floor;
    }
    return 0;
}

static int know_resumed(struct calls *calls)
{
    if (calls->resumed_known)
        return 0;
    calls->resumed_count = 0;
    for (uint32_t i = 0; i < calls->timeline->count; i++) {
        int answer = calls->timeline->segments[i].after == TIMELINE_NONE ? add_resumed(calls, i) : 0;
        if (answer < 0)
            return answer;
    }
    if (calls->resumed_count)
        qsort(calls->resumed, calls->resumed_count, sizeof *calls->resumed, by_process);
    calls->resumed_known = true;
    return 0;
}

int calls_suspended(struct calls *calls, const struct scan_at *at)
{
    int answer = focus(calls, at);
    const struct call *call = answer < 0 ? NULL : call_at(calls, at);

    if (!call || calls->pairs->position == TIMELINE_NONE)
        return answer;
    struct resumed key = {calls->timeline->segments[calls->pairs->position].pid, call->code};
    if (call->end != YIELDED && !late_find(&calls->late, calls->timeline, call->time, call->code, key.pid,
                                           true))
        return 0;
    if ((answer = know_resumed(calls)) < 0)
        return answer;
    return !calls->resumed_count ||
           !bsearch(&key, calls->resumed, calls->resumed_count, sizeof *calls->resumed, by_process);
}

int calls_parent(struct calls *calls, const struct scan_at *at, int64_t *id)
{
    int answer = focus(calls, at);
    const struct call *call = answer < 0 ? NULL : call_at(calls, at);
    struct pairs *pairs = calls->pairs;
    int32_t level = level_of(at->row->depth) - 1;

    if (!call)
        return answer;
    uint32_t own = pairs->position == TIMELINE_NONE ? 0 : calls->timeline->segments[pairs->position].own;
    if (own) {
        if (level < 0 || (answer = beside_reach(calls, own, call->time)) <= 0)
            return level < 0 ? 0 : answer;
        return beside_entered(calls, level, id);
    }
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

/* 0, or SCAN_NO_MEMORY. */
static int add_level(struct calls_level **levels, size_t *count, size_t *capacity, int32_t level, int64_t id)
{
    if (!array_reserve(levels, capacity, *count + 1, sizeof **levels))
        return SCAN_NO_MEMORY;
    (*levels)[(*count)++] = (struct calls_level){level, id};
    return 0;
}

int calls_stack(struct calls *calls, const struct scan_at *at, struct calls_level **levels, size_t *count)
{
    uint32_t position = timeline_find(calls->timeline, at->segment);
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
    uint32_t own = position == TIMELINE_NONE ? 0 : calls->timeline->segments[position].own;
    if (position != TIMELINE_NONE)
        position = calls->timeline->segments[position].before;
    for (size_t i = stack.count; answer >= 0 && i-- > 0;) {
        const struct frame *frame = &stack.frames[i];
        answer = add_level(levels, count, &capacity, frame->level, event_id(at->segment->id, frame->index));
    }
    int32_t top = stack.floor;
    if (own && answer >= 0 && (answer = beside_reach(calls, own, calls->stopped)) > 0)
        top = stack.count ? stack.frames[0].level : level_of(calls->beside.open);
    for (int32_t level = top; own && answer > 0 && level-- > 0;) {
        int64_t id;
        int found = beside_entered(calls, level, &id);
        if (found)
            answer = found < 0 ? found : add_level(levels, count, &capacity, level, id) < 0 ? SCAN_NO_MEMORY : 1;
    }
    for (int32_t level = stack.floor; !own && answer >= 0 && level-- > 0 && position != TIMELINE_NONE;) {
        int64_t id;
        if ((answer = find_entered(calls, &position, level, &id)) > 0)
            answer = add_level(levels, count, &capacity, level, id);
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
