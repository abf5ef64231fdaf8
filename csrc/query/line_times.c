/* Runs and times by line; see line_times.h. */
#include "query/line_times.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/map.h"
#include "common/saturate.h"

/* An open function. Others take no memory, whatever depths the events claim. */
struct frame {
    int32_t depth;
    uint32_t code;
    bool is_known;     /* the event that entered it was seen */
    int64_t start;     /* ns; if it is known */
    /* the line that runs in it */
    uint32_t line;     /* 1 + its place in run_lines.lines; 0: none, or not known */
    bool counts;
    bool goes_on;      /* it ran before the function was suspended */
    bool hides;        /* something in it took nobody knows how long */
    int64_t line_start, called; /* ns; those spent in its callees */
};

/* A thread of a run: its open functions. */
struct stack {
    struct stack *next;
    const struct run_thread *thread;
    struct frame *frames;  /* of rising depth, not every one */
    size_t count, capacity;
    struct map active;     /* by frame.line: 1 + the number of frames in which it runs and counts */
};

struct run_lines {
    struct run_lines *next;
    const struct run_definitions *run;
    struct line_time *lines;
    size_t count, capacity;
    struct map places;     /* by code and line: 1 + the place in `lines` */
    struct map waiting;    /* by process and code: the suspended functions, see WAITS */
    bool has_loss;
    struct stack *stacks;
};

struct line_times {
    const struct predicate *counted;
    struct run_lines *runs;
    struct run_lines *last_run; /* of the event before, and mostly of this one */
    struct stack *last;
    struct line_time *result;
};

/* The suspended calls of a function: WAITS, their number, and the line of them all, or 0. The line
 * is frame.line twice, and 1 more if it counts. */
#define WAITS (UINT64_C(1) << 63)
enum { WAITING_BITS = 32 };
static const uint64_t WAITING_MOST = INT32_MAX;

static struct run_lines *find_run(struct line_times *times, const struct run_definitions *run)
{
    struct run_lines *lines = times->runs;
    while (lines && lines->run != run)
        lines = lines->next;
    if (lines || !(lines = calloc(1, sizeof *lines)))
        return lines;
    lines->run = run;
    lines->next = times->runs;
    return times->runs = lines;
}

static struct stack *find_stack(struct run_lines *lines, const struct run_thread *thread)
{
    struct stack **place = &lines->stacks, *stack;
    while (*place && (*place)->thread != thread)
        place = &(*place)->next;
    if ((stack = *place)) { /* to the front: threads take turns for a while */
        *place = stack->next;
    } else {
        if (!(stack = calloc(1, sizeof *stack)))
            return NULL;
        stack->thread = thread;
    }
    stack->next = lines->stacks;
    return lines->stacks = stack;
}

/* ---- the line that runs in a function ---- */

static bool begin_line(struct stack *stack, struct frame *frame, uint32_t line, bool counts, int64_t time,
                       bool goes_on)
{
    uint64_t *active = map_put(&stack->active, line, 1);
    if (!active)
        return false;
    *active += counts;
    frame->line = line;
    frame->counts = counts;
    frame->goes_on = goes_on;
    frame->hides = false;
    frame->line_start = time;
    frame->called = 0;
    return true;
}

/* The line ends at nobody knows what time. */
static void forget_line(struct stack *stack, struct frame *frame)
{
    if (frame->line && frame->counts)
        map_entry(&stack->active, frame->line)->value--;
    frame->line = 0;
}

/* Adds the run of a line that ends now. */
static void add_line(struct run_lines *lines, struct stack *stack, const struct frame *frame, int64_t time)
{
    struct line_time *line = &lines->lines[frame->line - 1];
    int64_t took = saturate_subtract(time, frame->line_start);
    int64_t own = saturate_subtract(took, frame->called);

    if (!frame->hides && own > 0)
        line->own = saturate_add(line->own, own);
    if (map_get(&stack->active, frame->line) == 2)
        line->total = saturate_add(line->total, took);
    line->durations = saturate_add(line->durations, took);
    line->timed += !frame->goes_on;
}

static void end_line(struct run_lines *lines, struct stack *stack, struct frame *frame, int64_t time)
{
    if (frame->line && frame->counts)
        add_line(lines, stack, frame, time);
    forget_line(stack, frame);
}

/* The frame.line of a line. 0: no memory. */
static uint32_t find_line(struct run_lines *lines, uint32_t code, uint32_t line)
{
    uint64_t *place = map_put(&lines->places, (uint64_t)code << 32 | line, lines->count + 1);
    if (!place)
        return 0;
    if (*place > lines->count) {
        if (lines->count >= UINT32_MAX / 2 ||
            !array_reserve(&lines->lines, &lines->capacity, lines->count + 1, sizeof *lines->lines))
            return 0;
        lines->lines[lines->count++] = (struct line_time){.run = lines->run, .code = code, .line = line};
    }
    return (uint32_t)*place;
}

static bool run_line(struct run_lines *lines, struct stack *stack, struct frame *frame, uint32_t line,
                     bool counts, int64_t time)
{
    end_line(lines, stack, frame, time);
    lines->lines[line - 1].count += counts;
    return begin_line(stack, frame, line, counts, time, false);
}

/* ---- open functions ---- */

static struct frame *top(struct stack *stack) { return stack->count ? &stack->frames[stack->count - 1] : NULL; }

/* Leaves the functions of this depth and of larger ones, whose ends are not there. */
static void cut(struct stack *stack, int32_t depth)
{
    for (struct frame *frame; (frame = top(stack)) && frame->depth >= depth; stack->count--)
        forget_line(stack, frame);
}

/* The function that called the one of this depth spent an unknown time in it. */
static void hide(struct stack *stack, int32_t depth)
{
    struct frame *caller = top(stack);
    if (caller && caller->depth == depth - 1)
        caller->hides = true;
}

static struct frame *push(struct stack *stack, const struct scan_row *row, bool is_known)
{
    if (!array_reserve(&stack->frames, &stack->capacity, stack->count + 1, sizeof *stack->frames))
        return NULL;
    struct frame *frame = &stack->frames[stack->count++];
    *frame = (struct frame){.depth = row->depth, .code = row->code, .start = row->time, .is_known = is_known};
    return frame;
}

static uint64_t waiting_key(const struct stack *stack, uint32_t code)
{
    int64_t process = stack->thread ? stack->thread->process : -1;
    return (uint64_t)process << 32 | code;
}

/* A function waits, in a line as in `waiting` (0: which one is not known). */
static bool wait(struct run_lines *lines, const struct stack *stack, uint32_t code, uint32_t line)
{
    uint64_t *waiting = map_put(&lines->waiting, waiting_key(stack, code), WAITS);
    if (!waiting)
        return false;
    uint64_t number = (*waiting & ~WAITS) >> WAITING_BITS;
    if (number && (uint32_t)*waiting != line)
        line = 0;
    number += number < WAITING_MOST;
    *waiting = WAITS | number << WAITING_BITS | line;
    return true;
}

/* The line in which a function goes on, as in `waiting`; 0: not known. */
static uint32_t waited(struct run_lines *lines, const struct stack *stack, uint32_t code)
{
    uint64_t key = waiting_key(stack, code), waiting = map_get(&lines->waiting, key);
    if (!((waiting & ~WAITS) >> WAITING_BITS))
        return 0;
    map_entry(&lines->waiting, key)->value -= UINT64_C(1) << WAITING_BITS;
    return lines->has_loss ? 0 : (uint32_t)waiting;
}

static bool enter(struct run_lines *lines, struct stack *stack, const struct scan_row *row)
{
    cut(stack, row->depth);
    struct frame *frame = push(stack, row, true);
    if (!frame)
        return false;
    uint32_t line = row->kind == EVENT_CALL ? 0 : waited(lines, stack, row->code);
    return !line || begin_line(stack, frame, line >> 1, line & 1, row->time, true);
}

/* Whether a frame is the function of an event. */
static bool is_of(const struct frame *frame, const struct scan_row *row)
{
    return frame && frame->depth == row->depth && frame->code == row->code;
}

static bool leave(struct run_lines *lines, struct stack *stack, const struct scan_row *row)
{
    int64_t took = -1;
    uint32_t line = 0;

    cut(stack, row->depth < INT32_MAX ? row->depth + 1 : INT32_MAX);
    struct frame *frame = top(stack);
    if (is_of(frame, row)) {
        line = frame->line << 1 | (frame->line && frame->counts);
        end_line(lines, stack, frame, row->time);
        if (frame->is_known)
            took = saturate_subtract(row->time, frame->start);
    }
    cut(stack, row->depth);
    struct frame *caller = top(stack);
    if (took < 0)
        hide(stack, row->depth);
    else if (caller && caller->depth == row->depth - 1)
        caller->called = saturate_add(caller->called, took);
    return row->kind != EVENT_YIELD || wait(lines, stack, row->code, line);
}

static bool reach(struct run_lines *lines, struct stack *stack, const struct scan_row *row, bool counts)
{
    cut(stack, row->depth < INT32_MAX ? row->depth + 1 : INT32_MAX);
    struct frame *frame = top(stack);
    if (!is_of(frame, row)) { /* its beginning is not there */
        cut(stack, row->depth);
        hide(stack, row->depth);
        if (!(frame = push(stack, row, false)))
            return false;
    }
    uint32_t line = find_line(lines, row->code, row->line);
    if (!line)
        return false;
    return run_line(lines, stack, frame, line, counts, row->time);
}

bool line_times_add(struct line_times *times, const struct scan_at *at)
{
    const struct scan_segment *segment = at->segment;
    const struct scan_row *row = at->row;

    if (!times->last_run || times->last_run->run != segment->run) {
        if (!(times->last_run = find_run(times, segment->run)))
            return false;
        times->last = NULL;
    }
    if (!times->last || times->last->thread != segment->thread)
        if (!(times->last = find_stack(times->last_run, segment->thread)))
            return false;
    struct run_lines *lines = times->last_run;
    struct stack *stack = times->last;
    switch (row->kind) {
    case EVENT_CALL:
    case EVENT_RESUME:
    case EVENT_THROW:
        return enter(lines, stack, row);
    case EVENT_RETURN:
    case EVENT_EXCEPTION:
    case EVENT_YIELD:
        return leave(lines, stack, row);
    case EVENT_AT_LINE:
        return row->facts & ROW_TRAILING || reach(lines, stack, row, scan_meets(at, times->counted));
    case EVENT_LOST: /* the lost events are not known */
        lines->has_loss = true;
        cut(stack, 0);
        return true;
    default:
        return true;
    }
}

static int by_own_time(const void *left, const void *right)
{
    const struct line_time *a = left, *b = right;
    if (a->own != b->own)
        return a->own > b->own ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    if (a->run->run != b->run->run)
        return a->run->run < b->run->run ? -1 : 1;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

bool line_times_result(struct line_times *times, const struct line_time **lines, size_t *count)
{
    size_t capacity = 0;

    *count = 0;
    for (const struct run_lines *run = times->runs; run; run = run->next)
        capacity += run->count;
    free(times->result);
    *lines = times->result = calloc(capacity + 1, sizeof *times->result);
    if (!times->result)
        return false;
    for (const struct run_lines *run = times->runs; run; run = run->next)
        for (size_t i = 0; i < run->count; i++)
            if (run->lines[i].count)
                times->result[(*count)++] = run->lines[i];
    qsort(times->result, *count, sizeof *times->result, by_own_time);
    return true;
}

struct line_times *line_times_new(const struct predicate *counted)
{
    struct line_times *times = calloc(1, sizeof *times);
    if (times)
        times->counted = counted;
    return times;
}

void line_times_free(struct line_times *times)
{
    if (!times)
        return;
    while (times->runs) {
        struct run_lines *run = times->runs;
        times->runs = run->next;
        while (run->stacks) {
            struct stack *stack = run->stacks;
            run->stacks = stack->next;
            free(stack->frames);
            map_free(&stack->active);
            free(stack);
        }
        map_free(&run->places);
        map_free(&run->waiting);
        free(run->lines);
        free(run);
    }
    free(times->result);
    free(times);
}
