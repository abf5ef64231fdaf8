/* Lines: a record for each line of a function, with the variables that have changed since its event
 * before.
 *
 * A call keeps the bytes of each variable's value as they were last, as a hash. At an event those
 * are read that may have changed: what the line before may store, whatever another object stands
 * for now, and, if other code may have run, containers and objects with attributes. A value whose
 * bytes are the same as before is not written. In a chunk where nothing is known of a call yet, all
 * of its variables are written; `changed` says which of them are news.
 *
 * The records of a generator's yields and resumptions have its number, so that a reader finds what
 * it told before.
 */
#ifndef PYTRACE_LINES_H
#define PYTRACE_LINES_H

#include "record/codes.h"
#include "record/thread.h"

/* A call begins, and is on the stack of open calls. `values`: the bytes of its arguments at the end
 * of its record, which is the thread's last one. Negative: there is no record. */
void lines_began(struct thread *thread, struct open_call *call, const struct code_info *info,
                 const compat_frame *frame, ptrdiff_t values);
/* It goes on. */
void lines_resumed(struct open_call *call, const struct code_info *info, const compat_frame *frame);
/* The field `generator` of a record: of the innermost call, which is about to be suspended; of the
 * call that a frame resumes. */
uint8_t *lines_put_suspended(uint8_t *p, struct open_call *call, const struct code_info *info);
uint8_t *lines_put_resumed(uint8_t *p, const struct code_info *info, const compat_frame *frame);
/* A line comes next; `time`: now. */
void lines_reached(struct thread *thread, PyCodeObject *code, const struct code_info *info,
                   const compat_frame *frame, int line, uint64_t time);
/* The innermost call is about to end, or to be suspended: the last line's changes. */
void lines_before_end(struct thread *thread, struct open_call *call, const struct code_info *info,
                      const compat_frame *frame, uint64_t time);
/* It is suspended now. */
void lines_suspended(struct open_call *call, const compat_frame *frame);

#endif
