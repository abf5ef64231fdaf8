/* The start of each generator and coroutine that is suspended. */
#ifndef PYTRACE_GENERATORS_H
#define PYTRACE_GENERATORS_H

#include <stdbool.h>
#include <stdint.h>

/* A frame's address stands for its generator: it does not change while the generator lives. NULL
 * is fine everywhere. All of it runs under the GIL. */

/* The time of its call, in clock units; 0: unknown. */
uint64_t generators_start(const void *frame);
/* It has yielded for the first time. If memory is short, its start stays unknown. */
void generators_suspended(const void *frame, uint64_t start);
/* The place for a block of memory that is kept with it, and freed with it (lines.h); NULL: it has
 * not yielded yet. */
void **generators_kept(const void *frame);
/* It has ended. True: it was known, and its start is in *start, which may be NULL. */
bool generators_ended(const void *frame, uint64_t *start);
/* Recording ends: forgets all of them. */
void generators_forget(void);

#endif
