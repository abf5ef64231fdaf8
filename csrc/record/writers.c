/* Pausing writers; see writers.h. */

#include "record/writers.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic(enum writers_mode) writers_mode;
_Thread_local struct record_writer this_writer __attribute__((tls_model("initial-exec")));

static int command = MEMBARRIER_CMD_PRIVATE_EXPEDITED;

static int membarrier(int what) { return (int)syscall(SYS_membarrier, what, 0, 0); }

int writers_prepare(void)
{
    if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0) { /* before Linux 4.14 */
        command = MEMBARRIER_CMD_GLOBAL;
        if (membarrier(command) < 0)
            return -errno;
    }
    return 0;
}

void writers_free(void) { atomic_store_explicit(&writers_mode, WRITERS_FREE, memory_order_release); }

void writers_pause(void)
{
    if (atomic_load_explicit(&writers_mode, memory_order_relaxed) != WRITERS_FREE)
        return;
    atomic_store_explicit(&writers_mode, WRITERS_PAUSED, memory_order_relaxed);
    int error = errno;
    membarrier(command);
    errno = error;
}

void writers_resume(void)
{
    if (atomic_load_explicit(&writers_mode, memory_order_relaxed) == WRITERS_PAUSED)
        atomic_store_explicit(&writers_mode, WRITERS_FREE, memory_order_release);
}

void writers_none(void)
{
    writers_pause();
    atomic_store_explicit(&writers_mode, WRITERS_NONE, memory_order_release);
}

void writers_forked(void) { writers_resume(); }
