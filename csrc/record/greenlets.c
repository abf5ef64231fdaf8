/* Greenlets: several stacks of calls on one thread of the operating system. Called by hook.h's
 * hot path and hook.c.
 *
 * Each greenlet has a data stack of its own, where the interpreter keeps its frames: chunks of
 * memory, linked from the innermost to the root. greenlet exchanges the thread state's pointer to
 * the innermost when it switches. So the root tells which greenlet runs. The innermost chunk tells
 * the hot path (hook_here) whether to ask for the root: it changes with each switch, and now and
 * then as a stack grows and shrinks. A greenlet that began with a generator has no stack before it
 * calls a function: until then its first frame is its root.
 *
 * Each greenlet that is in the middle of recorded calls has a struct thread: its open calls, and a
 * stream. If all calls of one have ended, the next greenlet takes it. So there are no more of them
 * than greenlets in the middle of calls; without greenlets a thread has one. Another thread never
 * looks at these lists. */

#include "record/greenlets.h"

#include "record/stats.h"
#include "record/task.h"

static const void *root_of(const _PyStackChunk *chunk)
{
    while (chunk != NULL && chunk->previous != NULL)
        chunk = chunk->previous;
    return chunk;
}

/* The first frame of a greenlet that has called no function yet: that of a generator, which is in
 * the generator's memory. */
static const void *first_of(const compat_frame *frame)
{
    const void *first = NULL;
    for (; frame != NULL; frame = frame->previous)
        if (compat_frame_code(frame) != NULL)
            first = frame;
    return first;
}

static struct thread **place(struct greenlets *greenlets, const struct thread *greenlet)
{
    uint64_t bucket = (uint64_t)(uintptr_t)greenlet->root * 0x9E3779B97F4A7C15u >> 56;
    return greenlet->root != NULL ? &greenlets->found[bucket] : &greenlets->idle;
}

static void insert(struct greenlets *greenlets, struct thread *greenlet)
{
    struct thread **list = place(greenlets, greenlet);
    greenlet->next_found = *list;
    *list = greenlet;
}

/* Gives the struct to another greenlet, which has this root; NULL: to none. */
static void give(struct thread *greenlet, const void *root)
{
    if (greenlet->greenlets != NULL) {
        struct thread **list = place(greenlet->greenlets, greenlet);
        while (*list != greenlet)
            list = &(*list)->next_found;
        *list = greenlet->next_found;
    }
    greenlet->root = root;
    if (greenlet->greenlets != NULL)
        insert(greenlet->greenlets, greenlet);
}

static bool is_open(const struct thread *greenlet)
{
    return greenlet->top > greenlet->calls + 1 || greenlet->suppressed || greenlet->outside != NULL;
}

/* Makes one more beside this one; NULL: memory is short. */
static struct thread *make_beside(struct thread *thread)
{
    struct thread *greenlet;
    if (thread->greenlets == NULL) {
        if ((thread->greenlets = PyMem_RawCalloc(1, sizeof *thread->greenlets)) == NULL)
            return NULL;
        thread->greenlets->all = thread;
        thread->greenlets->count = 1;
        insert(thread->greenlets, thread);
    }
    if (!threads_forked() || (greenlet = thread_make(thread->stream.tid)) == NULL)
        return NULL;
    greenlet->greenlets = thread->greenlets;
    greenlet->next_beside = greenlet->greenlets->all;
    greenlet->greenlets->all = greenlet;
    greenlet->greenlets->count++;
    insert(greenlet->greenlets, greenlet);
    return greenlet;
}

static struct thread *find(const struct thread *thread, const void *root)
{
    struct thread *greenlet = NULL;
    if (thread->greenlets != NULL && root != NULL) {
        const struct thread like = {.root = root};
        for (greenlet = *place(thread->greenlets, &like); greenlet != NULL && greenlet->root != root;)
            greenlet = greenlet->next_found;
    }
    return greenlet;
}

/* The struct of the greenlet that has this root and executes this frame, on the thread of
 * `thread`. */
static struct thread *greenlet_of(struct thread *thread, const void *root, const compat_frame *frame)
{
    struct thread *greenlet = find(thread, root);
    if (greenlet == NULL) { /* perhaps it had no data stack until now */
        const void *first = first_of(frame);
        greenlet = first != NULL && first == thread->root ? thread : find(thread, first);
        if (greenlet != NULL)
            give(greenlet, root);
    }
    if (greenlet == NULL) {
        greenlet = !is_open(thread) ? thread : thread->greenlets != NULL ? thread->greenlets->idle : NULL;
        if (greenlet == NULL && (greenlet = make_beside(thread)) == NULL)
            return thread;
        give(greenlet, root);
    }
    if (greenlet != thread && !is_open(thread))
        give(thread, NULL);
    return greenlet;
}

static bool runs(const compat_frame *frame, const PyCodeObject *code)
{
    for (; frame != NULL; frame = frame->previous)
        if (compat_frame_runs(frame, code))
            return true;
    return false;
}

/* Forgets open calls that no frame of the current greenlet executes: the struct belonged to a
 * greenlet that was dropped in the middle of them. */
static void settle(struct thread *greenlet, const compat_frame *frame)
{
    struct open_call *top = greenlet->top;
    if (greenlet->late.function != NULL) {
        greenlet->late.argument = NULL; /* it may be gone with that greenlet */
        if (!runs(frame, greenlet->late.caller)) {
            greenlet->late.function = NULL;
            thread_update_ready(greenlet);
        }
    }
    for (struct open_call *call = top; call > greenlet->calls + 1; call--) {
        if (!call_is_of_python(call - 1)) /* may go on as long as the call around it */
            continue;
        if (runs(frame, call[-1].code))
            break;
        top = call - 1;
    }
    if (top == greenlet->top)
        return;
    thread_seal(greenlet); /* the next chunk's header has the depth */
    greenlet->stream.depth -= (int32_t)(greenlet->top - top);
    greenlet->top = top;
    task_coroutine_left(greenlet);
}

struct thread *greenlets_current(struct thread *thread)
{
    const PyThreadState *state = thread_state();
    const _PyStackChunk *chunk = state->datastack_chunk;
    const void **seen = thread->stack;
    bool same = false;

    if (thread_is_nobody(thread))
        return thread;
    STAT(stack_looked);
    /* Is it one chunk more, or less, than before? The root of a deep stack is far away. */
    if (chunk != NULL)
        same = (chunk->previous == seen[0] && seen[0] != NULL && chunk->previous->previous == seen[1])
               || (chunk == seen[1] && chunk->previous == seen[2]);
    if (!same) {
        STAT(stack_searched);
        const compat_frame *frame = compat_frame_of(state);
        const void *root = chunk != NULL ? root_of(chunk) : first_of(frame);
        struct thread *greenlet = root == thread->root || root == NULL ? thread : greenlet_of(thread, root, frame);
        if (greenlet != thread) {
            STAT(greenlet_found);
            settle(greenlet, frame);
            if (thread_front_end()->switch_greenlet != NULL)
                thread_front_end()->switch_greenlet(thread, greenlet);
            task_greenlet_entered(greenlet, thread);
            thread = current_thread = greenlet;
        }
    }
    /* never the same as "no chunk" */
    thread->stack[0] = chunk != NULL ? (const void *)chunk : &thread->stack;
    thread->stack[1] = chunk != NULL ? chunk->previous : NULL;
    thread->stack[2] = chunk != NULL && chunk->previous != NULL ? chunk->previous->previous : NULL;
    return thread;
}
