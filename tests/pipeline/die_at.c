/* For tests: linked with the hook's own sources, built with test points (ring.h), it lets the process die
 * at one of them. Called by the recorded program itself, through ctypes.
 */
#include "ring.h"

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
