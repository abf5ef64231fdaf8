/* What happens to a program, at a moment of its choice, for tests: linked with the hook's own
 * sources, which are built with test points (ring.h), and called by the recorded program through
 * ctypes.
 */
#include "ring/clock.h"
#include "record/session.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static char point[64];
static int left;

static void reached(const char *name)
{
    if (!strcmp(name, point) && --left == 0)
        kill(getpid(), SIGKILL);
}

/* From now on, the process dies when it comes to the point `name` for the `count`th time; also
 * behind the end of the interpreter, whose memory `name` is in. */
EXPORT void die_at(const char *name, int count)
{
    strncpy(point, name, sizeof point - 1);
    left = count;
    ring_test_point = reached;
}

/* Of chunks that this process has claimed and not sealed, how many there are. */
static int open_chunks(void)
{
    const struct ring *ring = session_ring();
    uint64_t claimed = CHUNK_CLAIMED | (uint64_t)session_process() << 8;
    int count = 0;
    for (uint32_t i = 0; i < ring->chunk_count; i++)
        count += ring->chunks[i].state == claimed;
    return count;
}

static atomic_int open_before; /* chunks, when the thread that records had come to its point; 0: not yet */

static void *exit_meanwhile(void *status)
{
    while (!open_before)
        usleep(1000);
    exit((int)(intptr_t)status);
}

static void stay(const char *name)
{
    if (!strcmp(name, "before_publish")) {
        open_before = open_chunks();
        for (;;)
            pause();
    } else if (!strcmp(name, "after_summary")) {
        dprintf(1, "%d of %d chunks kept\n", open_chunks(), open_before);
    }
}

/* This thread stays for ever where it is about to publish its next record; another one calls
 * exit() then, and says at the end what has become of the chunks. */
EXPORT void exit_in_the_middle_of_a_record(int status)
{
    pthread_t thread;
    ring_test_point = stay;
    pthread_create(&thread, NULL, exit_meanwhile, (void *)(intptr_t)status);
}

/* The counter begins again, goes back by half of what it has counted (which may be little: a
 * machine may just have started), or jumps by so many s: what it does if a machine has slept. */
EXPORT void reset_counter(void)
{
    clock_test_offset = 0;
    clock_test_offset -= clock_ticks();
}

EXPORT void halve_counter(void)
{
    clock_test_offset -= clock_ticks() / 2;
}

EXPORT void move_counter(double seconds)
{
    const struct ring *ring = session_ring();
    double units = seconds * 1e9 * 4294967296.0 / (double)ring_clock_scale(ring);
    clock_test_offset += (uint64_t)(int64_t)(units * (double)(1u << ring->header->clock_shift));
}

/* The program goes wild, and writes over its chunks of events: their bodies, or their headers. */
EXPORT void scribble_over_chunks(bool headers)
{
    struct ring *ring = session_ring();
    for (uint32_t i = 0; i < ring->chunk_count; i++) {
        struct chunk_header *chunk = &ring->chunks[i];
        if ((chunk->state & 0xff) == CHUNK_FREE || chunk->pid != (uint32_t)getpid() || chunk->kind != CHUNK_EVENTS)
            continue;
        if (headers)
            memset((void *)chunk, 0x5a, sizeof *chunk);
        else
            memset(ring_body(ring, i), 0x5a, ring_body_size(ring, i));
    }
}

/* ... or over the table of processes: its own place, or all of it. */
EXPORT void scribble_over_processes(bool all)
{
    struct ring_process *processes = session_ring()->header->processes;
    if (all)
        memset((void *)processes, 0x5a, RING_PROCESSES * sizeof *processes);
    else
        memset((void *)&processes[session_process()], 0x5a, sizeof *processes);
}
