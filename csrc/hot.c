/* Calls, own and total time by function; see hot.h. */
#include "hot.h"

#include <stdlib.h>

struct frame {
    uint32_t code;
    bool known;        /* its beginning was seen */
    int64_t start;     /* ns */
    int64_t called;    /* ns spent in what it called */
};

/* A thread of a run: its open functions. */
struct stack {
    struct stack *next;
    const struct run_thread *thread;
    struct frame *frames;
    size_t count, capacity;
    uint32_t *active;  /* by code: how many of the frames are of it */
};

struct run_times {
    struct run_times *next;
    const struct run_definitions *run;
    struct hot_code *codes;  /* by number; the last for all that are not defined */
    struct stack *stacks;
};

struct hot {
    struct run_times *runs;
    struct stack *last;      /* of the event before, as mostly of this one */
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
        stack->active = calloc((size_t)times->run->code_count + 1, sizeof *stack->active);
        if (!stack->active) {
            free(stack);
            return NULL;
        }
        stack->thread = thread;
    }
    stack->next = times->stacks;
    return times->stacks = stack;
}

/* Leaves `count` frames. Fewer than that are filled up by frames that nothing is known of. */
static bool cut(struct run_times *times, struct stack *stack, size_t count)
{
    while (stack->count > count) {
        const struct frame *frame = &stack->frames[--stack->count];
        if (frame->known)
            stack->active[place(times, frame->code)]--;
    }
    if (count >= stack->capacity) {
        size_t capacity = count * 2 + 64;
        struct frame *larger = realloc(stack->frames, capacity * sizeof *larger);
        if (!larger)
            return false;
        stack->frames = larger;
        stack->capacity = capacity;
    }
    while (stack->count < count)
        stack->frames[stack->count++] = (struct frame){0};
    return true;
}

static bool enter(struct run_times *times, struct stack *stack, const struct scan_row *row)
{
    uint32_t code = place(times, row->code);

    if (!cut(times, stack, (size_t)row->depth))
        return false;
    stack->frames[stack->count++] = (struct frame){.code = row->code, .known = true, .start = row->time};
    stack->active[code]++;
    if (row->kind == EVENT_CALL)
        times->codes[code].calls++;
    return true;
}

static bool leave(struct run_times *times, struct stack *stack, const struct scan_row *row)
{
    struct hot_code *code = &times->codes[place(times, row->code)];
    size_t depth = (size_t)row->depth;

    if (stack->count > depth + 1 && !cut(times, stack, depth + 1))
        return false;
    if (stack->count == depth + 1) {
        struct frame frame = stack->frames[depth];
        if (frame.known && frame.code == row->code) {
            int64_t took = row->time - frame.start;
            code->own += took - frame.called;
            if (stack->active[place(times, row->code)] == 1)
                code->total += took;
            if (depth)
                stack->frames[depth - 1].called += took;
        }
    }
    return cut(times, stack, depth);
}

#define DEPTH_MAX (1 << 24) /* deeper makes no sense */

bool hot_add(struct hot *hot, const struct scan_at *at)
{
    const struct scan_segment *segment = at->segment;

    if (at->row->depth > DEPTH_MAX)
        return true;
    if (!hot->last_run || hot->last_run->run != segment->run) {
        if (!(hot->last_run = find_run(hot, segment->run)))
            return false;
        hot->last = NULL;
    }
    if (!hot->last || hot->last->thread != segment->thread)
        if (!(hot->last = find_stack(hot->last_run, segment->thread)))
            return false;
    switch (at->row->kind) {
    case EVENT_CALL:
    case EVENT_RESUME:
    case EVENT_THROW:
        return enter(hot->last_run, hot->last, at->row);
    case EVENT_RETURN:
    case EVENT_EXCEPTION:
    case EVENT_YIELD:
        return leave(hot->last_run, hot->last, at->row);
    case EVENT_LOST: /* what happened in between is not known */
        return cut(hot->last_run, hot->last, 0);
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
            }
    qsort(hot->result, *count, sizeof *hot->result, by_own_time);
    return true;
}

struct hot *hot_new(void) { return calloc(1, sizeof(struct hot)); }

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
            free(stack->active);
            free(stack);
        }
        free(times->codes);
        free(times);
    }
    free(hot->result);
    free(hot);
}
