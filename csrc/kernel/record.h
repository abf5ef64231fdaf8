/* Kernel events become records: each thread of the recorded processes has a stream of its own for
 * them, beside the stream of its Python functions. The dumper calls this, once a pass:
 *
 *     kernel_drain      takes the pages that the kernel has, of every processor
 *     kernel_follow     notes the depths of the threads' own streams, from their chunks in the ring
 *     kernel_make       makes records of the events that are certain to be in order
 *     kernel_next_body  hands out the streams' bodies, to be stored as segments
 *
 * A thread's events come from each processor that it ran on, so that they are merged by time.
 * Certain are the events before the last drain but one: by then every processor had written down
 * what it was writing.
 *
 * The depth of a record is the number of calls that are open in the thread's own stream at its
 * time, and in its stream of kernel events. Nothing in the own stream ever lies inside of a system
 * call, so that the own stream need not know of it.
 *
 *     own stream      call f (0)  call g (1)                                       return g (1)
 *     kernel stream                           call read (2)   return read (2)
 *
 * A switch from one thread to another, and a thread that wakes another one, stand in the streams of
 * both. Losses, and events of no recorded thread, stand in a stream of the processor.
 *
 * No Python; the ring only for numbers.
 */
#ifndef PYTRACE_KERNEL_RECORD_H
#define PYTRACE_KERNEL_RECORD_H

#include "ring/ring.h"

struct kernel; /* opaque */

/* `errors`: names of errors by number, "" where there is none (kept until kernel_free). error_type,
 * address_type: numbers of the types of such values. all: every thread counts as recorded. NULL: no
 * memory, or `page` is no header_page. */
struct kernel *kernel_new(struct ring *ring, const char *page, size_t page_size, const char *const *errors,
                          uint32_t error_count, uint32_t error_type, uint32_t address_type, bool all);
void kernel_free(struct kernel *kernel);

/* What an event becomes. */
enum kernel_role { KERNEL_EVENT, KERNEL_ENTER, KERNEL_EXIT };
/* An event, by its format file. shown: it is recorded; else only threads are learned of it. Returns
 * its id; -EINVAL: no format; -ENOMEM. */
int kernel_add_event(struct kernel *kernel, const char *format, size_t size, enum kernel_role role,
                     bool shown);
/* Two events, by id, that enter and leave a system call: they have one code. 0 or -EINVAL. */
int kernel_pair(struct kernel *kernel, int enter, int exit);
/* The fields of an event that tell of another thread than the one it happened in, e.g. next_pid;
 * and of one that begins. The event stands in that thread's stream, too. */
int kernel_tells_of(struct kernel *kernel, int id, const char *field, bool begins);
/* The event by whose id a thread tells that it ends. */
void kernel_tells_end(struct kernel *kernel, int id);

/* A processor, its trace_pipe_raw, opened O_NONBLOCK, and its stats (-1: none), which tell how many
 * events were lost where a page has no room for that. kernel_free closes both. 0 or -ENOMEM. */
int kernel_add_processor(struct kernel *kernel, uint32_t number, int fd, int stats_fd);
/* Another dumper has read from these processors before: what was lost so far counts. */
void kernel_go_on(struct kernel *kernel);
/* A processor without tracefs: its events come by perf.h, of the threads that are attached next.
 * 0 or -ENOMEM. */
int kernel_add_perf(struct kernel *kernel, uint32_t number);
/* 0, or a negative errno. */
int kernel_attach(struct kernel *kernel, uint32_t tid, bool faults);
/* Such events end. */
void kernel_stop_perf(struct kernel *kernel);
/* A thread that is recorded from the start. 0 or -ENOMEM. */
int kernel_add_thread(struct kernel *kernel, uint32_t tid);

/* Reads what there is, as long as pages and bodies that wait take less than `most` bytes. The rest
 * stays where it is. 0, or a negative errno. */
int kernel_drain(struct kernel *kernel, size_t most);
/* The chunk of a thread's own stream, as it is in the ring. Chunks of a stream come in order. */
int kernel_follow(struct kernel *kernel, const struct chunk_view *chunk);
/* all: nothing will come any more. 0 or -ENOMEM. */
int kernel_make(struct kernel *kernel, bool all);

/* An event's code that has been used for the first time: its number and id; false: none is left. */
bool kernel_next_code(struct kernel *kernel, uint32_t *number, uint32_t *id);
/* A thread that something is recorded of for the first time, and the one that began it (0: not
 * known). */
struct kernel_birth {
    uint32_t tid, parent, stream;
    bool is_processor, is_process; /* a process that its parent started, and no thread of it */
};
bool kernel_next_birth(struct kernel *kernel, struct kernel_birth *birth);

/* A body that is to be stored: whole ones, and with `live` also those that have grown. It stays
 * valid, and comes again, until kernel_stored. False: there is none. */
struct kernel_body {
    uint32_t stream, sequence, tid, records;
    bool whole;
    int32_t base_depth, min_depth;
    uint64_t base_time, last_time;
    const uint8_t *body;
    size_t size;
};
void kernel_first_body(struct kernel *kernel);
bool kernel_next_body(struct kernel *kernel, bool live, struct kernel_body *body);
/* A body is stored with so many records; a whole one is freed. */
void kernel_stored(struct kernel *kernel, uint32_t stream, uint32_t sequence, uint32_t records);
/* Ends all bodies: they are whole. */
void kernel_finish(struct kernel *kernel);

struct kernel_counts {
    uint64_t events, lost, nonsense; /* pages that made no sense */
    uint64_t bytes;                  /* drained, and not yet made */
    uint64_t waiting;                /* bytes of bodies that are whole and not yet stored */
    uint64_t threads;                /* that are kept in memory */
};
void kernel_count(const struct kernel *kernel, struct kernel_counts *counts);

#endif
