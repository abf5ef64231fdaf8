/* Functions of shared objects that were compiled with -finstrument-functions: a record when one
 * begins, and one when it ends.
 *
 * Such code calls __cyg_profile_func_enter and _exit, which are empty functions of the C library.
 * While native functions are recorded, the entries for them in the global offset tables (got.h)
 * lead here instead. Objects that are loaded later are found when somebody asks for one of their
 * functions: the entries of dlsym lead here, too.
 *
 * Any thread may call, with the GIL or without, in signal handlers, within malloc. So nothing of
 * Python's is touched, nothing is allocated but pages, and a thread that is in the middle of a
 * record already (writers.h) records nothing. A thread that Python does not know gets a stream of
 * its own at its first event.
 *
 * Open native calls are on the thread's stack of open calls, among those of Python. A call that is
 * left by longjmp, or by an exception of C++, tells nothing. It is found to be over when something
 * happens further out on the stack of the machine, or when the Python function around it ends: then
 * an `exception` is recorded for it, whose value is the text NATIVE_LEFT.
 */
#ifndef PYTRACE_NATIVE_H
#define PYTRACE_NATIVE_H

#include "record/records.h"

#define NATIVE_LEFT "<left by longjmp or an exception>"

/* Chooses the objects: absolute paths of files and folders; empty: all. Nothing is recorded before
 * native_begin. 0, or -1 with a Python exception. */
int native_choose(char **paths);
/* Begins to record, if native functions are to be recorded. */
void native_begin(void);
/* Takes all entries back. */
void native_end(void);
/* The calls from `call` on are over; all above it, too. Those of Python are only forgotten. Returns
 * whether the depth of the thread's next record has to be said. */
bool native_leave_all(struct thread *thread, struct open_call *call, uint64_t now);

#endif
