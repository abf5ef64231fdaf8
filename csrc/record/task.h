/* Tasks of asyncio and trio, to which a thread's events belong.
 *
 * When a coroutine begins or goes on, and no other coroutine has called it, this asks which task
 * runs in the thread. If it is another task than before, a stretch of its events begins, which ends
 * when that coroutine ends or is suspended. Both are written between the records (Events.task), and
 * again at the start of each chunk, as a chunk must be readable alone.
 *
 * Code that is no coroutine costs nothing.
 */
#ifndef PYTRACE_TASK_H
#define PYTRACE_TASK_H

#include "record/thread.h"

/* Writes the task at `p`, the start of a fresh chunk, if one runs. Returns the place of the next
 * record. */
uint8_t *task_put_again(struct thread *thread, uint8_t *p);
/* A coroutine begins or goes on in this frame, or has ended or is suspended: another task may
 * run. */
void task_coroutine_entered(struct thread *thread, const compat_frame *frame);
void task_coroutine_left(struct thread *thread);
/* Another greenlet goes on; `from` has switched to it. */
void task_greenlet_entered(struct thread *thread, const struct thread *from);

/* The name of a task of asyncio or trio. Returns its length, at most `size`. */
size_t task_name_of(PyObject *task, char *name, size_t size);

#endif
