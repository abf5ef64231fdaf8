/* The shared-memory ring: producers append records to chunks of their own, the dumper takes them.
 * ring_abi.h has the layout, docs/ring.md the protocol. Nothing else touches an atomic.
 *
 * Verbs come in pairs: attach/detach, open/close (stream), reserve/commit (record), look/release
 * (chunk). No Python. Functions return 0 or a negative errno unless they say otherwise.
 */
#ifndef PYTRACE_RING_H
#define PYTRACE_RING_H

#include "ring/ring_abi.h"

#include <stdbool.h>
#include <stddef.h>

/* Named places in the race windows, where a test lets a process stop or die. With
 * -DRING_TEST_POINTS they call ring_test_point; otherwise they are empty. */
#ifdef RING_TEST_POINTS
extern void (*ring_test_point)(const char *name);
#define RING_TEST_POINT(name) do { if (ring_test_point) ring_test_point(#name); } while (0)
#else
#define RING_TEST_POINT(name) ((void)0)
#endif

/* The state's name for people: `RUNNING`, `SEALED`, ...; `?` if the word was written over. */
const char *ring_chunk_state_name(uint32_t state);
const char *ring_process_state_name(uint32_t state);
const char *ring_dumper_state_name(uint32_t state);

#define RING_MIN_CHUNK_SIZE (64u << 10)
#define RING_MAX_CHUNK_SIZE (256u << 10)
#define RING_MIN_CHUNKS 4
#define RING_MAX_CHUNKS (1u << 20)
/* Small chunks are for streams that record little. Each stream begins with one, so that there are
 * enough for many threads. */
#define RING_SMALL_CHUNK_SIZE (16u << 10)
/* bytes: larger records begin in a large chunk */
#define RING_SMALL_RECORD (RING_SMALL_CHUNK_SIZE / 2)

struct ring {
    struct ring_header *header;
    struct chunk_header *chunks;
    uint8_t *bodies;
    uint32_t chunk_size;   /* of large chunks; copied from the header when attached, and checked */
    uint32_t chunk_count;  /* with the small ones ... */
    uint32_t small_count;  /* ... which come first */
    uint32_t pid;          /* of this process as it has registered ... */
    uint64_t image;        /* a forked child has its parent's two until it registers */
};

/* The size and the place of a chunk's body. */
static inline uint32_t ring_body_size(const struct ring *ring, uint32_t index)
{
    return index < ring->small_count ? RING_SMALL_CHUNK_SIZE : ring->chunk_size;
}

static inline uint8_t *ring_body(const struct ring *ring, uint32_t index)
{
    if (index < ring->small_count)
        return ring->bodies + (size_t)index * RING_SMALL_CHUNK_SIZE;
    return ring->bodies + (size_t)ring->small_count * RING_SMALL_CHUNK_SIZE
           + (size_t)(index - ring->small_count) * ring->chunk_size;
}

/* ---- the whole ---------------------------------------------------------------------------- */

enum ring_role {
    RING_PRODUCER, /* maps everything to read and write */
    RING_DUMPER,   /* headers to read and write, bodies to read; takes the dumper's lock */
    RING_READER,   /* everything to read */
};

/* The chunk size for a buffer of this size: a 256th of it within the bounds above, a power of two.
 * 0: the buffer has no room for RING_MIN_CHUNKS of the smallest. */
uint32_t ring_chunk_size(uint64_t buffer_size);

/* Creates the file (O_EXCL | O_NOFOLLOW, 0600), with its room really allocated (so that a full
 * /dev/shm is an error here, -ENOSPC, and not a SIGBUS later). Removes it again on error.
 * settings: NAME=value with a NUL after each. */
int ring_create(const char *path, uint64_t buffer_size, const char *settings, size_t settings_size);

/* Maps an existing ring and checks its header (-EPROTO: not a ring, another version, or sizes that
 * do not fit the file). As RING_DUMPER: -EBUSY if another dumper holds it. The lock is an open file
 * description lock on the first byte, held by `*lock_fd` (-1 in other roles) until it is closed or
 * the process ends. */
int ring_attach(struct ring *ring, const char *path, enum ring_role role, int *lock_fd);
void ring_detach(struct ring *ring);

/* 1: a dumper holds the ring's lock; 0: none does; negative: an errno. */
int ring_has_dumper(const char *path);

/* ---- the clock ---------------------------------------------------------------------------- */

/* enum clock_kind. */
static inline uint32_t ring_clock_kind(const struct ring *ring) { return ring->header->clock_kind; }
/* A unit is a tick of the counter >> this. */
static inline uint32_t ring_clock_shift(const struct ring *ring) { return ring->header->clock_shift; }
/* Measures the length of a unit between creation and now and publishes it, unless it is known. */
void ring_clock_calibrate(struct ring *ring);
/* ns per unit << 32; 0 while unknown. */
uint64_t ring_clock_scale(const struct ring *ring);
/* Now, in clock units. If the counter has gone back, the kernel's clock gives the time: times of a
 * recording stay in order, whatever the machine does. Slower than clock_units. */
uint64_t ring_clock_units(const struct ring *ring);
/* Now, in ns since 1970 by this recording's own clock: setting the wall clock does not change
 * it. */
int64_t ring_now_ns(const struct ring *ring);

/* ---- processes ---------------------------------------------------------------------------- */

/* Takes a slot for this process, a forked child one of its own. parent: index + 1, 0: none. Returns
 * the index; -ENOSPC: all are taken, which is counted; -EXDEV: the ring was made in another pid
 * namespace, where this process's pid means nothing; -ESRCH: /proc does not have it; or another
 * error of /proc, such as -EMFILE. */
int ring_process_register(struct ring *ring, uint32_t parent);
/* The same for the forked child of a process that has registered. start_time: the answer of
 * ring_fork_start in the child; reading /proc instead takes as long as a dozen page faults. */
int ring_process_register_fork(struct ring *ring, uint32_t parent, uint64_t start_time);
/* In a process that is about to fork: the argument for ring_fork_start, which its child calls at
 * once. That knows the child's start time if it is in the same clock tick as this call; 0: it does
 * not. */
uint64_t ring_fork_time(void);
uint64_t ring_fork_start(uint64_t before);
/* The same for a program that has just begun, whoever started it. Its parent is the nearest process
 * above it that has registered. If this very process has registered (before an exec), that one is
 * the parent, and has ended. */
int ring_process_register_program(struct ring *ring);
/* Processes that found no slot. */
uint32_t ring_turned_away(const struct ring *ring);
/* Reports the exit status of the process, and that it writes no more: all its streams are closed.
 * Does nothing in a forked child of it. */
void ring_process_exit(struct ring *ring, uint32_t process, int32_t exit_status);
/* The same if other threads of the process may still write: its chunks stay its own until it is
 * dead. */
void ring_process_leave(struct ring *ring, uint32_t process, int32_t exit_status);
/* Dumper: everything that the process published is committed, and nothing of it is in the ring. */
void ring_process_saved(struct ring *ring, uint32_t process);
/* Dumper: everything that the process published before it was seen LEAVING is committed. */
void ring_process_left(struct ring *ring, uint32_t process);
enum process_state ring_process_state(const struct ring *ring, uint32_t process);
/* False: the ring was made in another pid namespace. Its pids mean nothing here, and nobody can
 * tell whether they live. */
bool ring_pids_count(const struct ring *ring);
/* True: the process with this index runs (same pid, same start time, no zombie) as the same
 * program, or /proc cannot be read. False: nobody will write to its chunks any more. */
bool ring_process_alive(const struct ring *ring, uint32_t process);
/* True: the process runs, but has become another program (exec), registered or not. */
bool ring_process_replaced(const struct ring *ring, uint32_t process);
uint64_t ring_process_lost(const struct ring *ring, uint32_t process);
/* From /proc/PID/stat, clock ticks since boot; 0: no such process, a zombie, or not readable. */
uint64_t ring_start_time(uint32_t pid);

/* The facts that a process wrote of itself; exit_status is valid once its state is PROCESS_EXITED
 * or PROCESS_LEAVING. */
static inline uint32_t ring_process_pid(const struct ring *ring, uint32_t process)
{
    return ring->header->processes[process].pid;
}

static inline uint64_t ring_process_start_time(const struct ring *ring, uint32_t process)
{
    return ring->header->processes[process].start_time;
}

static inline int64_t ring_process_registered_ns(const struct ring *ring, uint32_t process)
{
    return ring->header->processes[process].registered_ns;
}

static inline uint32_t ring_process_parent(const struct ring *ring, uint32_t process)
{
    return ring->header->processes[process].parent;
}

/* ns since 1970; 0: it has not reported its end. */
static inline int64_t ring_process_ended_ns(const struct ring *ring, uint32_t process)
{
    return atomic_load_explicit(&ring->header->processes[process].ended_ns, memory_order_relaxed);
}

static inline int32_t ring_process_exit_status(const struct ring *ring, uint32_t process)
{
    return atomic_load_explicit(&ring->header->processes[process].exit_status, memory_order_relaxed);
}

/* ---- constants ---------------------------------------------------------------------------- */

/* NAME=value with a NUL after each. */
static inline const char *ring_settings(const struct ring *ring, size_t *size)
{
    uint32_t used = ring->header->settings_size;
    *size = used < RING_SETTINGS_SIZE ? used : RING_SETTINGS_SIZE;
    return ring->header->settings;
}

static inline uint64_t ring_features(const struct ring *ring) { return ring->header->features; }

static inline int64_t ring_epoch_ns(const struct ring *ring) { return ring->header->epoch_ns; }
static inline uint64_t ring_epoch_units(const struct ring *ring) { return ring->header->epoch_units; }

/* ---- the dumper's word -------------------------------------------------------------------- */

/* Dumper: writes the message, then the state. */
void ring_dumper_say(struct ring *ring, enum dumper_state state, const char *message);
enum dumper_state ring_dumper_state(const struct ring *ring);
/* The dumper's message, UTF-8, NUL-terminated; valid once the state says so. */
static inline const char *ring_dumper_message(const struct ring *ring) { return ring->header->message; }
/* Dumper: the message for a program that ends before others; before ring_process_saved. */
void ring_dumper_say_so_far(struct ring *ring, const char *message);
static inline const char *ring_dumper_so_far(const struct ring *ring) { return ring->header->so_far; }
/* Dumper: the reason why nothing can be saved now; "": there is none. */
void ring_dumper_say_trouble(struct ring *ring, const char *why);
/* The same, UTF-8, NUL-terminated; "" if there is none, or if it is just being written. */
void ring_dumper_trouble(const struct ring *ring, char why[RING_TROUBLE_SIZE]);
void ring_dumper_pass_ended(struct ring *ring);
/* Elects the process that starts a dumper, if none holds the ring: true for one of all that ask at
 * the same time. Nobody else is elected for `interval_ns`, doubled for each dumper that was started
 * and has made no pass, five times at most. So an elected process that dies blocks nobody for
 * ever, and a dumper that dies each time is tried more and more rarely. */
bool ring_dumper_elect(struct ring *ring, uint64_t interval_ns);
uint64_t ring_dumper_passes(const struct ring *ring);

/* A number for a code or a type, unique in the recording. */
uint32_t ring_next_number(struct ring *ring);
/* A number for a stream, unique in the recording; stream_open takes one by itself. */
uint32_t ring_next_stream(struct ring *ring);
/* The number of a definition that is in the database, by its hash (not 0); 0: none is known. */
uint32_t ring_known_find(const struct ring *ring, uint64_t hash);
/* Dumper: the definition with this hash is in the database, under this number. */
void ring_known_add(struct ring *ring, uint64_t hash, uint32_t number);

/* ---- producers ---------------------------------------------------------------------------- */

/* One producer thread, the only way to a chunk: stream_commit publishes each record,
 * stream_close seals the chunk, and a claim seals the one before. Everything here belongs to the
 * thread alone; ring.[ch] alone touch `chunk`. */
struct stream {
    uint8_t *next, *end;         /* in the current chunk's body; both NULL: no chunk */
    struct chunk_header *chunk;
    uint8_t *body;
    uint32_t count;              /* records in the current chunk */
    /* The hook keeps these two current: a new chunk's header is made from them. */
    int32_t depth;               /* open recorded calls */
    uint64_t time;               /* of the last record, clock units */
    int32_t min_depth;           /* smallest depth in this chunk */
    uint32_t process, id, sequence, kind;
    uint64_t tid;
    uint64_t lost;               /* dropped since the last stored record */
    uint64_t freed_seen;         /* ring_header.freed + 1 when the ring was full; 0: it was not */
    size_t full_from;            /* ... for records of so many bytes and more */
    bool busy;                   /* of events; its last chunk was well filled: next a large one */
    struct ring *ring;
};

/* Makes a stream without a chunk; one is claimed at the first reserve. */
void stream_open(struct stream *stream, struct ring *ring, uint32_t process, uint64_t tid,
                 enum chunk_kind kind);
/* Seals the chunk. The stream may be used again: the next reserve claims another. */
void stream_close(struct stream *stream);
/* After fork, in the child: forgets the inherited chunk without touching it. Everything is dropped
 * until stream_open makes a stream of the child's own. */
void stream_abandon(struct stream *stream);

static inline bool stream_has_chunk(const struct stream *stream) { return stream->chunk != NULL; }

/* Seals the chunk and claims another with room for a record of `size` bytes (at most
 * RING_MIN_CHUNK_SIZE / 2). False: none is free, or the stream has been abandoned. */
bool stream_claim(struct stream *stream, size_t size);
/* Cold part of stream_reserve: the same, and a failure counts as a dropped record. If no free chunk
 * has room for `size`, `least` bytes or more are enough, in a small chunk or in the rest of its
 * own. */
uint8_t *stream_next_chunk(struct stream *stream, size_t size, size_t least);

/* Drops a record without trying to store it, and counts it. */
void stream_drop(struct stream *stream);

/* A claim always takes the first free chunk of its size, so the place of the chunk tells how many
 * are in use. True: a quarter of them were when this stream claimed its last chunk, or none was
 * free. */
static inline bool stream_is_crowded(const struct stream *stream)
{
    const struct ring *ring = stream->ring;
    if (!stream->chunk)
        return true;
    uint32_t index = (uint32_t)(stream->chunk - ring->chunks);
    return index < ring->small_count ? index >= ring->small_count / 4
                                     : index - ring->small_count >= (ring->chunk_count - ring->small_count) / 4;
}

/* Room for a record of up to `size` bytes (at most RING_MIN_CHUNK_SIZE / 2), or NULL: no chunk is
 * free (or the size is larger than half a chunk), and the record is dropped and counted. When there
 * is room again after drops, stream->lost is their number; the caller writes the lost record first
 * and sets it to 0. Never waits. */
static inline uint8_t *stream_reserve(struct stream *stream, size_t size)
{
    if (__builtin_expect((size_t)(stream->end - stream->next) >= size, 1))
        return stream->next;
    return stream_next_chunk(stream, size, size);
}

/* Publishes the record that ends at `end`. */
static inline void stream_commit(struct stream *stream, uint8_t *end)
{
    RING_TEST_POINT(before_publish);
    stream->next = end;
    stream->count++;
    atomic_store_explicit(&stream->chunk->last_time, stream->time, memory_order_relaxed);
    atomic_store_explicit(&stream->chunk->published,
                          (uint64_t)stream->count << 32 | (uint32_t)(end - stream->body),
                          memory_order_release);
    RING_TEST_POINT(after_publish);
}

/* Notes in the chunk that the thread's depth went down to the present one; before the commit of the
 * record that did so. */
static inline void stream_went_down(struct stream *stream)
{
    if (__builtin_expect(stream->depth < stream->min_depth, 0)) {
        stream->min_depth = stream->depth;
        if (stream->chunk)
            atomic_store_explicit(&stream->chunk->min_depth, stream->depth, memory_order_relaxed);
    }
}

/* ---- dumper ------------------------------------------------------------------------------- */

/* A chunk in use, as it was at the look. */
struct chunk_view {
    uint32_t index;
    uint32_t state;        /* CHUNK_CLAIMED or CHUNK_SEALED */
    uint32_t process;
    uint32_t kind;
    uint32_t stream, sequence;
    int32_t base_depth, min_depth;
    uint64_t base_time, last_time, lost_before, tid;
    uint32_t pid;
    uint32_t used, count;  /* bytes and records published; 0, 0: none, the rest is not valid */
    const uint8_t *body;
};

/* Looks at one chunk: 1 and a view; 0: it is free; -EPROTO: its words make no sense (scribbled
 * over), of the view only index, state and process are to be used. Sealed: the view is final.
 * min_depth and last_time may already belong to a later record than the published ones. */
int ring_look(const struct ring *ring, uint32_t index, struct chunk_view *view);

/* The published content of the chunks of events in use, which is not all in the database. */
struct ring_unsaved {
    uint32_t chunks;
    uint64_t bytes, events;
};
void ring_count_unsaved(const struct ring *ring, struct ring_unsaved *unsaved);

/* Looks at all chunks: fills up to chunk_count views, returns their number. *bad counts -EPROTO. */
uint32_t ring_look_all(const struct ring *ring, struct chunk_view *views, uint32_t *bad);

/* Frees the chunk. To be called only after COMMIT of everything that the view showed. The view must
 * be sealed, or the owner must have ended *before* the look: an owner found dead after the look may
 * have published more in between. */
void ring_release(struct ring *ring, uint32_t index);

#endif
