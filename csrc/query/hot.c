/* Calls and times by function; see hot.h. */
#include "query/hot.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/map.h"
#include "common/saturate.h"

/* Classes of durations: 0 to 3 ns, and from there on four for each doubling. */
enum { CLASS_BITS = 2, IN_DOUBLING = 1 << CLASS_BITS, CLASSES = (64 - CLASS_BITS) * IN_DOUBLING };

/* An open function whose start was seen. Others take no memory, whatever depths the events
 * claim. */
struct frame {
    int32_t depth;
    uint32_t code;
    int64_t start;     /* ns */
    int64_t called;    /* ns spent in its callees */
    int64_t off;       /* ns off the processor, without its callees' */
    bool is_call;      /* entered by its call, not a resume */
    bool counts;       /* by the event that entered it */
};

/* A thread of a run: its open functions. */
struct stack {
    struct stack *next;
    const struct run_thread *thread;
    struct frame *frames; /* of rising depth, not every one */
    size_t count, capacity;
    struct map active;    /* by place in run_times.codes: 1 + the sum of its frames' weights */
    bool is_off;          /* the processor ... */
    int64_t off_since;    /* ... since this time, ns, ... */
    int64_t woken;        /* ... and woken at this one; INT64_MAX: not yet */
};

struct run_times {
    struct run_times *next;
    const struct run_definitions *run;
    struct hot_code *codes;  /* by number; the last one is for undefined codes */
    struct stack *stacks;
    bool knows_off;          /* scheduler's events were recorded */
};

struct hot {
    const struct predicate *counted;
    struct run_times *runs;
    struct stack *last;      /* of the event before, and mostly of this one */
    struct run_times *last_run;
    struct hot_code *result;
};

static uint32_t place(const struct run_times *times, uint32_t code)
{
    return code < times->run->code_count ? code : times->run->code_count;
}

static struct run_times *find_run(struct hot *hot, const struct run_definitions *run)
{
    struct run_times *times = hot->runs;
    while (times && times->run != run)
        times = times->next;
    if (times || !(times = calloc(1, sizeof *times)))
        return times;
    times->codes = calloc((size_t)run->code_count + 1, sizeof *times->codes);
    if (!times->codes) {
        free(times);
        return NULL;
    }
    times->run = run;
    times->next = hot->runs;
    return hot->runs = times;
}

static struct stack *find_stack(struct run_times *times, const struct run_thread *thread)
{
    struct stack **place = &times->stacks, *stack;
    while (*place && (*place)->thread != thread)
        place = &(*place)->next;
    if ((stack = *place)) { /* to the front: threads take turns for a while */
        *place = stack->next;
    } else {
        if (!(stack = calloc(1, sizeof *stack)))
            return NULL;
        stack->thread = thread;
    }
    stack->next = times->stacks;
    return times->stacks = stack;
}

/* Of a function's frames, the low half of their weights counts all, the high half those that
 * count. */
static uint64_t weight(const struct frame *frame) { return frame->counts ? (UINT64_C(1) << 32) + 1 : 1; }

/* Whether no other frame of the function around this one counts; if it counts only by its end,
 * whether there is none at all. */
static bool is_outermost(const struct frame *frame, uint64_t active)
{
    return frame->counts ? active >> 32 == 1 : (uint32_t)active == 2;
}

/* Leaves the functions of this depth and of larger ones. */
static void cut(struct run_times *times, struct stack *stack, int32_t depth)
{
    while (stack->count && stack->frames[stack->count - 1].depth >= depth) {
        const struct frame *frame = &stack->frames[--stack->count];
        map_entry(&stack->active, place(times, frame->code))->value -= weight(frame);
    }
}

static bool enter(struct run_times *times, struct stack *stack, const struct scan_row *row, bool counts)
{
    uint32_t code = place(times, row->code);
    uint64_t *active;

    cut(times, stack, row->depth);
    if (!array_reserve(&stack->frames, &stack->capacity, stack->count + 1, sizeof *stack->frames) ||
        !(active = map_put(&stack->active, code, 1)))
        return false;
    struct frame frame = {.depth = row->depth, .code = row->code, .start = row->time,
                          .is_call = row->kind == EVENT_CALL, .counts = counts};
    *active += weight(&frame);
    stack->frames[stack->count++] = frame;
    times->codes[code].calls += frame.is_call && counts;
    return true;
}

static unsigned class_of(int64_t duration)
{
    uint64_t ns = (uint64_t)duration;
    if (ns < IN_DOUBLING)
        return (unsigned)ns;
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - CLASS_BITS;
    return (shift << CLASS_BITS) + (unsigned)(ns >> shift); /* ns >> shift is 4 to 7 */
}

/* The duration in the middle of a class. */
static int64_t middle_of(unsigned number)
{
    if (number < 2 * IN_DOUBLING)
        return number;
    unsigned shift = (number >> CLASS_BITS) - 1;
    return ((int64_t)(IN_DOUBLING + number % IN_DOUBLING) << shift) + ((INT64_C(1) << shift) >> 1);
}

static int64_t median(const struct hot_code *code)
{
    uint64_t passed = 0;
    unsigned number = 0;

    if (code->ended <= 1 || !code->classes)
        return code->longest;
    while (number < CLASSES - 1 && (passed += code->classes[number]) < (code->ended + 1) / 2)
        number++;
    int64_t middle = middle_of(number);
    return middle < code->longest ? middle : code->longest;
}

/* Takes the end of a call into account. False: no memory. */
static bool ended(struct hot_code *code, int64_t duration)
{
    if (!code->classes && !(code->classes = calloc(CLASSES, sizeof *code->classes)))
        return false;
    uint32_t *class = &code->classes[class_of(duration)];
    *class += *class < UINT32_MAX;
    code->ended++;
    code->durations = saturate_add(code->durations, duration);
    if (duration > code->longest)
        code->longest = duration;
    return true;
}

/* False: no memory. */
static bool leave(struct run_times *times, struct stack *stack, const struct scan_row *row, bool counts)
{
    struct hot_code *hot = &times->codes[place(times, row->code)];

    if (stack->count && stack->frames[stack->count - 1].depth > row->depth)
        cut(times, stack, row->depth + 1);
    struct frame *frame = stack->count ? &stack->frames[stack->count - 1] : NULL;
    if (frame && frame->depth == row->depth && frame->code == row->code) {
        int64_t took = saturate_subtract(row->time, frame->start);
        hot->calls += counts && !frame->counts && (frame->is_call || row->kind != EVENT_YIELD);
        counts = counts || frame->counts;
        if (counts) {
            hot->own = saturate_add(hot->own, saturate_subtract(took, frame->called));
            hot->off = saturate_add(hot->off, frame->off);
            if (is_outermost(frame, map_get(&stack->active, place(times, row->code))))
                hot->total = saturate_add(hot->total, took);
        }
        if (stack->count > 1 && frame[-1].depth == row->depth - 1)
            frame[-1].called = saturate_add(frame[-1].called, took);
    }
    cut(times, stack, row->depth);
    return !counts || row->kind == EVENT_YIELD || row->duration < 0 || ended(hot, row->duration);
}

/* ---- off the processor -------------------------------------------------------------------- */

enum told { OTHER, OUT, WOKEN, IN };

static bool is(struct string string, const char *text)
{
    return string.size == strlen(text) && !memcmp(string.text, text, string.size);
}

/* Whether an event of the kernel has a thread's id in the field of this name. */
static bool names_thread(const struct scan_at *at, const struct run_code *code, const char *field,
                         int64_t tid)
{
    struct event event;
    const uint8_t *cursor = NULL;
    struct value value;

    if (event_decode(at->body + at->row->offset, at->body_size - at->row->offset, &event) < 0)
        return false;
    for (uint32_t i = 0; i < code->argument_count && event_value(&event, &cursor, &value); i++)
        if (is(code->arguments[i], field))
            return value.content == VALUE_INTEGER && value.integer == tid;
    return false;
}

/* What an event tells of its own thread. */
static enum told told(const struct scan_at *at, int64_t tid)
{
    const struct run_code *code = run_code_find(at->segment->run, at->row->code);

    if (at->row->kind != EVENT_HAPPENED || !is(code->module, "sched"))
        return OTHER;
    if (is(code->func, "sched_switch")) {
        if (names_thread(at, code, "prev_pid", tid))
            return OUT;
        return names_thread(at, code, "next_pid", tid) ? IN : OTHER;
    }
    return is(code->func, "sched_waking") && names_thread(at, code, "pid", tid) ? WOKEN : OTHER;
}

/* Heeds an event, before its function is entered or left. */
static void switched(struct run_times *times, struct stack *stack, const struct scan_at *at)
{
    if (!stack->is_off && at->row->kind != EVENT_HAPPENED)
        return;
    enum told what = told(at, stack->thread ? stack->thread->tid : -1);
    if (stack->is_off && what == WOKEN) {
        if (stack->woken == INT64_MAX)
            stack->woken = at->row->time;
        return;
    }
    if (stack->is_off) {
        int64_t end = what != IN && stack->woken < at->row->time ? stack->woken : at->row->time;
        struct frame *frame = stack->count ? &stack->frames[stack->count - 1] : NULL;
        if (frame)
            frame->off = saturate_add(frame->off, saturate_subtract(end, stack->off_since));
        stack->is_off = false;
    }
    if (what == OUT) {
        times->knows_off = stack->is_off = true;
        stack->off_since = at->row->time;
        stack->woken = INT64_MAX;
    }
}

bool hot_add(struct hot *hot, const struct scan_at *at)
{
    const struct scan_segment *segment = at->segment;

    if (!hot->last_run || hot->last_run->run != segment->run) {
        if (!(hot->last_run = find_run(hot, segment->run)))
            return false;
        hot->last = NULL;
    }
    const struct run_thread *thread = run_thread_own(segment->run, segment->thread);
    if (!hot->last || hot->last->thread != thread)
        if (!(hot->last = find_stack(hot->last_run, thread)))
            return false;
    switched(hot->last_run, hot->last, at);
    switch (at->row->kind) {
    case EVENT_CALL:
    case EVENT_RESUME:
    case EVENT_THROW:
        return enter(hot->last_run, hot->last, at->row, scan_meets(at, hot->counted));
    case EVENT_RETURN:
    case EVENT_EXCEPTION:
    case EVENT_YIELD:
        return leave(hot->last_run, hot->last, at->row, scan_meets(at, hot->counted));
    case EVENT_LOST: /* the lost events are not known */
        cut(hot->last_run, hot->last, 0);
        return true;
    default:
        return true;
    }
}

static int by_own_time(const void *left, const void *right)
{
    const struct hot_code *a = left, *b = right;
    if (a->own != b->own)
        return a->own > b->own ? -1 : 1;
    if (a->calls != b->calls)
        return a->calls > b->calls ? -1 : 1;
    if (a->run->run != b->run->run)
        return a->run->run < b->run->run ? -1 : 1;
    return a->code < b->code ? -1 : a->code > b->code;
}

bool hot_result(struct hot *hot, const struct hot_code **codes, size_t *count)
{
    size_t capacity = 0;

    for (const struct run_times *times = hot->runs; times; times = times->next)
        capacity += (size_t)times->run->code_count + 1;
    free(hot->result);
    *count = 0;
    *codes = hot->result = calloc(capacity + 1, sizeof *hot->result);
    if (!hot->result)
        return false;
    for (const struct run_times *times = hot->runs; times; times = times->next)
        for (uint32_t number = 0; number <= times->run->code_count; number++)
            if (times->codes[number].calls || times->codes[number].own || times->codes[number].total) {
                struct hot_code *code = &hot->result[(*count)++];
                *code = times->codes[number];
                code->run = times->run;
                code->code = number;
                code->median = median(code);
                if (!times->knows_off)
                    code->off = -1;
            }
    qsort(hot->result, *count, sizeof *hot->result, by_own_time);
    return true;
}

struct hot *hot_new(const struct predicate *counted)
{
    struct hot *hot = calloc(1, sizeof *hot);
    if (hot)
        hot->counted = counted;
    return hot;
}

void hot_free(struct hot *hot)
{
    if (!hot)
        return;
    while (hot->runs) {
        struct run_times *times = hot->runs;
        hot->runs = times->next;
        while (times->stacks) {
            struct stack *stack = times->stacks;
            times->stacks = stack->next;
            free(stack->frames);
            map_free(&stack->active);
            free(stack);
        }
        for (uint32_t number = 0; number <= times->run->code_count; number++)
            free(times->codes[number].classes);
        free(times->codes);
        free(times);
    }
    free(hot->result);
    free(hot);
}
