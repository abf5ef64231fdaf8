/* Which task of asyncio or trio a thread's events are of.
 *
 * When a coroutine begins or goes on, and it was not the coroutine before it that went on with it, this
 * asks which task runs in the thread. Where it is another than before, a stretch of that task's events
 * begins, which ends with that coroutine's end or suspension. Both are written between the records
 * (Events.task); and again at the start of each chunk, as a chunk must be readable alone.
 *
 * Nothing else asks: what is no coroutine pays nothing. hook.h declares what the front ends call.
 */
#ifndef PYTRACE_TASK_H
#define PYTRACE_TASK_H

#include "hook.h"

/* Writes whose events follow at `p`, the start of a fresh chunk, where they are a task's. Returns where
 * the next record goes. */
uint8_t *task_put_again(struct thread *thread, uint8_t *p);
/* Nobody knows any more whose events the next ones are. */
void task_forget(struct thread *thread);

#endif
