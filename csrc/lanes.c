/* Greenlets: several stacks of calls on one thread of the operating system. Called by hook.h's hot path
 * and hook.c.
 *
 * Each greenlet has a data stack of its own, where the interpreter keeps its frames: chunks of memory,
 * linked from the innermost to the root. greenlet exchanges the thread state's pointer to the innermost
 * when it switches. So the root tells which greenlet runs, and the hot path (hook_here) sees by the
 * innermost whether that has to be asked: it changes with each switch, and now and then as a stack
 * grows and shrinks. A greenlet that began with a generator has no stack before it calls a function: until
 * then its first frame is its root.
 *
 * Each greenlet that is in the middle of recorded calls has a struct thread: its open calls, and a
 * stream. That is a lane. One whose calls have all ended is used again by whichever greenlet comes
 * next, so that there are no more lanes than greenlets in the middle of something; without greenlets
 * a thread has one. Another thread never looks at these lists. */

#include "hook.h"

#define BUCKETS 256 /* of a byte */

/* The lanes of one thread of the operating system, where it has had several. */
struct lanes {
    struct thread *all;            /* by next_lane */
    struct thread *idle;           /* by next_found: those that no greenlet has */
    struct thread *found[BUCKETS]; /* by root, next_found: the others */
};

static const void *root_of(const _PyStackChunk *chunk)
{
    while (chunk != NULL && chunk->previous != NULL)
        chunk = chunk->previous;
    return chunk;
}

/* What a greenlet began with that has called no function yet: a generator, whose frame is its own memory. */
static const void *first_of(const compat_frame *frame)
{
    const void *first = NULL;
    for (; frame != NULL; frame = frame->previous)
        if (compat_frame_code(frame) != NULL)
            first = frame;
    return first;
}

static struct thread **place(struct lanes *lanes, const struct thread *lane)
{
    return lane->root != NULL ? &lanes->found[(uint64_t)(uintptr_t)lane->root * 0x9E3779B97F4A7C15u >> 56] : &lanes->idle;
}

static void insert(struct lanes *lanes, struct thread *lane)
{
    struct thread **list = place(lanes, lane);
    lane->next_found = *list;
    *list = lane;
}

/* Gives a lane to another greenlet; NULL: to none. */
static void give(struct thread *lane, const void *root)
{
    if (lane->lanes != NULL) {
        struct thread **list = place(lane->lanes, lane);
        while (*list != lane)
            list = &(*list)->next_found;
        *list = lane->next_found;
    }
    lane->root = root;
    if (lane->lanes != NULL)
        insert(lane->lanes, lane);
}

static bool is_open(const struct thread *lane) { return lane->top > lane->calls + 1 || lane->suppressed; }

/* A lane more beside this one; NULL where memory is short. */
static struct thread *make_beside(struct thread *thread)
{
    struct thread *lane;
    if (thread->lanes == NULL) {
        if ((thread->lanes = PyMem_RawCalloc(1, sizeof *thread->lanes)) == NULL)
            return NULL;
        thread->lanes->all = thread;
        insert(thread->lanes, thread);
    }
    if ((lane = hook_thread_opened(thread->stream.tid)) == NULL)
        return NULL;
    lane->lanes = thread->lanes;
    lane->next_lane = lane->lanes->all;
    lane->lanes->all = lane;
    insert(lane->lanes, lane);
    return lane;
}

static struct thread *find(const struct thread *thread, const void *root)
{
    struct thread *lane = NULL;
    if (thread->lanes != NULL && root != NULL) {
        const struct thread like = {.root = root};
        for (lane = *place(thread->lanes, &like); lane != NULL && lane->root != root;)
            lane = lane->next_found;
    }
    return lane;
}

/* The lane of the greenlet whose root this is, and that executes this frame; on the thread of another. */
static struct thread *lane_of(struct thread *thread, const void *root, const compat_frame *frame)
{
    struct thread *lane = find(thread, root);
    if (lane == NULL) { /* perhaps it had no data stack until now */
        const void *first = first_of(frame);
        lane = first != NULL && first == thread->root ? thread : find(thread, first);
        if (lane != NULL)
            give(lane, root);
    }
    if (lane == NULL) {
        lane = !is_open(thread) ? thread : thread->lanes != NULL ? thread->lanes->idle : NULL;
        if (lane == NULL && (lane = make_beside(thread)) == NULL)
            return thread;
        give(lane, root);
    }
    if (lane != thread && !is_open(thread))
        give(thread, NULL);
    return lane;
}

static bool runs(const compat_frame *frame, const PyCodeObject *code)
{
    for (; frame != NULL; frame = frame->previous)
        if (compat_frame_runs(frame, code))
            return true;
    return false;
}

/* Forgets open calls that no frame of the current greenlet executes: a greenlet that was dropped in the middle
 * of them had this lane. */
static void settle(struct thread *lane, const compat_frame *frame)
{
    struct open_call *top = lane->top;
    while (top > lane->calls + 1 && !runs(frame, top[-1].code))
        top--;
    hook_forget_calls(lane, top);
}

struct thread *hook_lane(struct thread *thread)
{
    const PyThreadState *state = hook_remember(thread);
    const _PyStackChunk *chunk = state->datastack_chunk;
    const void **seen = thread->stack;
    bool same = false;

    if (chunk != NULL) /* one chunk more, or less, than before? Roots of deep stacks are far away. */
        same = (chunk->previous == seen[0] && seen[0] != NULL && chunk->previous->previous == seen[1])
               || (chunk == seen[1] && chunk->previous == seen[2]);
    if (!same) {
        const compat_frame *frame = compat_frame_of(state);
        const void *root = chunk != NULL ? root_of(chunk) : first_of(frame);
        struct thread *lane = root == thread->root || root == NULL ? thread : lane_of(thread, root, frame);
        if (lane != thread) {
            settle(lane, frame);
            lane->state = thread->state;
            lane->cleared = thread->cleared;
            hook_switch(thread, lane);
            hook_greenlet_entered(lane);
            thread = hook_thread = lane;
        }
    }
    thread->stack[0] = chunk != NULL ? (const void *)chunk : &thread->stack; /* never the same as no chunk */
    thread->stack[1] = chunk != NULL ? chunk->previous : NULL;
    thread->stack[2] = chunk != NULL && chunk->previous != NULL ? chunk->previous->previous : NULL;
    return thread;
}

void hook_forget_lane(struct thread *lane)
{
    if (lane->lanes != NULL && lane->lanes->all == lane) /* the others come with it */
        PyMem_RawFree(lane->lanes);
}

struct thread *hook_next_lane(struct thread *thread, struct thread *lane)
{
    if (lane == NULL)
        return thread->lanes != NULL ? thread->lanes->all : thread;
    return lane->next_lane;
}

bool hook_is_beside(const struct thread *thread, const struct thread *other)
{
    return thread == other || (thread->lanes != NULL && thread->lanes == other->lanes);
}
