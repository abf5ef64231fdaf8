/* For tests: linked with the hook's own sources, built with test points (ring.h), it lets the process die
 * at one of them. Called by the recorded program itself, through ctypes.
 */
#include "ring.h"

#include "clock.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char *point;
static int left;

static void reached(const char *name)
{
    if (!strcmp(name, point) && --left == 0)
        kill(getpid(), SIGKILL);
}

/* From now on, the process dies where it comes to the point `name` for the `count`th time. */
__attribute__((visibility("default"))) void die_at(const char *name, int count)
{
    point = name;
    left = count;
    ring_test_point = reached;
}

/* The counter begins again, or jumps by so many s: what it does where a machine has slept. */
__attribute__((visibility("default"))) void reset_counter(void)
{
    clock_test_offset = 0;
    clock_test_offset -= clock_ticks();
}

__attribute__((visibility("default"))) void move_counter(double seconds)
{
    uint64_t ticks = clock_ticks(), start = clock_ns(CLOCK_MONOTONIC);
    while (clock_ns(CLOCK_MONOTONIC) - start < 1000000)
        ;
    clock_test_offset += (uint64_t)(int64_t)(seconds * 1000 * (double)(clock_ticks() - ticks));
}
