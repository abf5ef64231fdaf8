/* What happens to a program, at a moment of its choice, for tests: linked with the hook's own sources, which
 * are built with test points (ring.h), and called by the recorded program through ctypes.
 */
#include "clock.h"
#include "session.h"

#include <signal.h>
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

/* From now on, the process dies where it comes to the point `name` for the `count`th time; also behind the
 * end of the interpreter, whose memory `name` is in. */
EXPORT void die_at(const char *name, int count)
{
    strncpy(point, name, sizeof point - 1);
    left = count;
    ring_test_point = reached;
}

/* The counter begins again, or jumps by so many s: what it does where a machine has slept. */
EXPORT void reset_counter(void)
{
    clock_test_offset = 0;
    clock_test_offset -= clock_ticks();
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
