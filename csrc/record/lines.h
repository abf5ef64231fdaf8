/* Lines: a record for each line of a function, with the variables that have changed since its event
 * before.
 *
 * A call keeps the bytes of each variable's value as they were last, as a hash. At an event those
 * are read that may have changed: what the line before may store, whatever another object stands
 * for now, and, if other code may have run, containers and objects with attributes. A value whose
 * bytes are the same as before is not written. In a chunk where nothing is known of a call yet, all
 * of its variables are written; `changed` says which of them are news.
 *
 * No record tells which generator is resumed. A reader takes the one of its code that was suspended
 * last in the chunk; if it is another, its next line has all of its variables, too.
 */
#ifndef PYTRACE_LINES_H
#define PYTRACE_LINES_H

#include "record/codes.h"
#include "record/thread.h"

/* A call begins (call), or goes on, and is on the stack of open calls; `stored`: its record is. */
void lines_entered(struct thread *thread, struct open_call *call, const struct code_info *info,
                   const compat_frame *frame, bool begins, bool stored);
/* A line comes next; `time`: now. */
void lines_reached(struct thread *thread, PyCodeObject *code, const struct code_info *info,
                   const compat_frame *frame, int line, uint64_t time);
/* The innermost call is about to end, or to be suspended: the last line's changes. */
void lines_before_end(struct thread *thread, struct open_call *call, const struct code_info *info,
                      const compat_frame *frame, uint64_t time);
/* It is suspended now. */
void lines_suspended(struct open_call *call, const struct code_info *info, const compat_frame *frame);

#endif
