/* This process's part in a recording: joining the ring, keeping a dumper alive, leaving.
 * Called by module.c; knows the ring, processes and signals, but no Python and no records.
 */
#ifndef PYTRACE_SESSION_H
#define PYTRACE_SESSION_H

#include "ring/ring.h"

/* Starts `executable -E -P -m pytracer.dumper ring_path`, detached: in a session of its own, with
 * /dev/null as its standard streams and no other descriptor of ours, not a child of this process,
 * and never to be seen by its wait(), signal handlers or job control. Allocates nothing; may be
 * called from any thread. (-E -P and not -I: pytrace may be installed for this user only.)
 * 0 or a negative errno. */
int session_spawn_dumper(const char *executable, const char *ring_path);

/* Attaches to the ring as a producer, registers this process in it, and makes sure that at the
 * end of the process (exit, not _exit or a signal) session_leave is called. `executable` is the
 * Python for session_check_dumper. -EALREADY: this process records already. -ENOENT: there is no
 * such ring, or its recording is over. */
int session_join(const char *ring_path, const char *executable);

/* After fork the child belongs to the recording, too, unless the settings have no_children=1. It is
 * registered, as a process of its own, at its first call of one of these: a child that only starts
 * another program takes no slot. */
struct ring *session_ring(void);   /* NULL: this process records nothing */
uint32_t session_process(void);    /* its index in the ring; invalid if session_ring is NULL */

/* Waits until the dumper is ready, for at most `seconds`; starts it again once if it died.
 * Returns its state; if it refused or did not come up, *message says why (for a person).
 * Gives up early if it does not come up the second time either. In any other state than
 * DUMPER_READY the process has left the ring: nothing may have been recorded before. */
enum dumper_state session_wait_ready(double seconds, char *message, size_t size);

/* Called when a stream wants a new chunk, at most every 20 ms, and at the end: if no dumper holds
 * the ring, starts one. Cheap while the dumper makes progress; never waits for another thread. */
void session_check_dumper(void);

#define SESSION_STATUS_UNKNOWN RING_EXIT_UNKNOWN

/* At the end of the process: says the exit status to the ring, waits (bounded: as long as the
 * dumper makes progress, at most 30 s, without progress 5 s) until everything is saved, and
 * prints the dumper's summary to standard error unless it is empty, or the program has closed
 * standard error or put another file in its place. Only the process that the recording began
 * with waits and prints, as whatever program it has become (exec). Idempotent. exit_status: 0 to
 * 255, the negative number of the signal that is about to end the process, or
 * SESSION_STATUS_UNKNOWN. */
void session_leave(int exit_status);

/* os._exit is about to end the process: reports the exit status, as nobody may know it any more
 * when the dumper asks. The caller keeps the GIL to the end. Waits for nobody. */
void session_end(int exit_status);

/* Called in the child after fork, after the ring's own bookkeeping; the hook sets it to drop
 * inherited streams. */
extern void (*session_after_fork)(void);
/* Called at the start of session_leave and session_end; the hook sets it to stop recording.
 * `alone`: this thread keeps the GIL to the end of the process. False: another thread may still be
 * in the middle of a record. */
extern bool (*session_before_leave)(bool alone);

#endif
