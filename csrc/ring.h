/* The shared-memory ring: producers append records to chunks of their own, the dumper takes them.
 * ring_abi.h has the layout, docs/ring.md the protocol. Nothing else touches an atomic.
 *
 * Verbs come in pairs: attach/detach, open/close (stream), reserve/commit (record),
 * look/release (chunk). No Python. Functions return 0 or a negative errno unless they say otherwise.
 */
#ifndef PYTRACE_RING_H
#define PYTRACE_RING_H

#include "ring_abi.h"

#include <stdbool.h>
#include <stddef.h>

/* Named places in the race windows, where a test lets a process stop or die: built with
 * -DRING_TEST_POINTS they call ring_test_point, else they are nothing. */
#ifdef RING_TEST_POINTS
extern void (*ring_test_point)(const char *name);
#define RING_TEST_POINT(name) do { if (ring_test_point) ring_test_point(#name); } while (0)
#else
#define RING_TEST_POINT(name) ((void)0)
#endif

#define RING_MIN_CHUNK_SIZE (64u << 10)
#define RING_MAX_CHUNK_SIZE (256u << 10)
#define RING_MIN_CHUNKS 4
#define RING_MAX_CHUNKS (1u << 20)
/* For streams that record little: each begins with one, so that there is one for each of many threads. */
#define RING_SMALL_CHUNK_SIZE (16u << 10)
#define RING_SMALL_RECORD (RING_SMALL_CHUNK_SIZE / 2) /* bytes: larger ones begin in a large chunk */

struct ring {
    struct ring_header *header;
    struct chunk_header *chunks;
    uint8_t *bodies;
    uint32_t chunk_size;   /* copied from the header when attached, and checked: of all but the small ones */
    uint32_t chunk_count;  /* with the small ones ... */
    uint32_t small_count;  /* ... which come first */
    uint32_t pid;          /* of this process as it has registered ... */
    uint64_t image;        /* ... and its image; a forked child's are its parent's until it registers */
};

/* The size of a chunk's body, and where it is. */
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
 * 0 where the buffer has no room for RING_MIN_CHUNKS of the smallest. */
uint32_t ring_chunk_size(uint64_t buffer_size);

/* Creates the file (O_EXCL | O_NOFOLLOW, 0600), with its room really allocated (so that a full
 * /dev/shm is an error here, -ENOSPC, and not a SIGBUS later). Removes it again on error.
 * settings: NAME=value with a NUL after each. */
int ring_create(const char *path, uint64_t buffer_size, const char *settings, size_t settings_size);

/* Maps an existing ring and checks its header (-EPROTO: not a ring, another version, or sizes that
 * do not fit the file). As RING_DUMPER: -EBUSY where another dumper holds it. The lock is an open
 * file description lock on the first byte, held by `*lock_fd` (-1 in other roles) until it is closed
 * or the process ends. */
int ring_attach(struct ring *ring, const char *path, enum ring_role role, int *lock_fd);
void ring_detach(struct ring *ring);

/* 1 where a dumper holds the ring's lock, 0 where none does, negative errno. */
int ring_has_dumper(const char *path);

/* ---- the clock ---------------------------------------------------------------------------- */

/* enum clock_kind. */
static inline uint32_t ring_clock_kind(const struct ring *ring) { return ring->header->clock_kind; }
/* Measures the length of a unit between creation and now and publishes it, unless it is known. */
void ring_clock_calibrate(struct ring *ring);
/* ns per unit << 32; 0 while unknown. */
uint64_t ring_clock_scale(const struct ring *ring);
/* Now, in clock units. Where the counter has gone back, what the kernel's clock makes of it: times of a
 * recording stay in order, whatever the machine does. Slower than clock_units. */
uint64_t ring_clock_units(const struct ring *ring);
/* Now, ns since 1970 as this recording counts them: from its beginning on, however the wall clock is set. */
int64_t ring_now_ns(const struct ring *ring);

/* ---- processes ---------------------------------------------------------------------------- */

/* Takes a slot for this process, a forked child one of its own. parent: index + 1, 0: none. Returns
 * the index; -ENOSPC: all are taken, which is counted; -EXDEV: this process's pid means nothing where the
 * ring was made (another pid namespace); -ESRCH: it cannot be found in /proc. */
int ring_process_register(struct ring *ring, uint32_t parent);
/* The same for the forked child of a process that has registered. start_time: what ring_fork_start said in it; to
 * look into /proc instead takes as long as a dozen page faults. */
int ring_process_register_fork(struct ring *ring, uint32_t parent, uint64_t start_time);
/* In a process that is about to fork: what its child asks ring_fork_start with, at once. That knows the child's start
 * time where it began within the same clock tick as this; 0: it does not. */
uint64_t ring_fork_time(void);
uint64_t ring_fork_start(uint64_t before);
/* The same for a program that has just begun, by whoever was started. Its parent is the nearest process above
 * it that has registered; or, where this very process has (it has replaced itself, by exec), what it
 * was before, which has thereby ended. */
int ring_process_register_program(struct ring *ring);
/* Processes that found no slot. */
uint32_t ring_turned_away(const struct ring *ring);
/* Says how the process ends, and that it writes no more: all its streams are closed. Does nothing in
 * a forked child of it. */
void ring_process_exit(struct ring *ring, uint32_t process, int32_t exit_status);
/* Dumper: all it published is committed; nothing of it is in the ring any more. */
void ring_process_saved(struct ring *ring, uint32_t process);
enum process_state ring_process_state(const struct ring *ring, uint32_t process);
/* False: the ring was made in another pid namespace, and pids mean nothing here: nobody can be asked for
 * whether it lives. */
bool ring_pids_count(const struct ring *ring);
/* True while the process with this index runs (same pid, same start time, no zombie) as the program that
 * it was. False: nothing will write to its chunks any more. */
bool ring_process_alive(const struct ring *ring, uint32_t process);
/* True: it runs, but has become another program (exec), whether that has registered or not. */
bool ring_process_replaced(const struct ring *ring, uint32_t process);
uint64_t ring_process_lost(const struct ring *ring, uint32_t process);
/* From /proc/PID/stat, clock ticks since boot; 0: no such process, or a zombie. */
uint64_t ring_start_time(uint32_t pid);

/* What a process said of itself; exit_status holds once its state is PROCESS_EXITED. */
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

static inline int64_t ring_epoch_ns(const struct ring *ring) { return ring->header->epoch_ns; }
static inline uint64_t ring_epoch_units(const struct ring *ring) { return ring->header->epoch_units; }

/* ---- the dumper's word -------------------------------------------------------------------- */

/* Dumper: writes the message, then the state. */
void ring_dumper_say(struct ring *ring, enum dumper_state state, const char *message);
enum dumper_state ring_dumper_state(const struct ring *ring);
/* Its last word, UTF-8, NUL-terminated; valid once the state says so. */
static inline const char *ring_dumper_message(const struct ring *ring) { return ring->header->message; }
/* Dumper: what the program is to be told that ends before others do; before ring_process_saved. */
void ring_dumper_say_so_far(struct ring *ring, const char *message);
void ring_dumper_pass_ended(struct ring *ring);
uint64_t ring_dumper_passes(const struct ring *ring);

/* A number for a code or a type, unique in the recording. */
uint32_t ring_next_number(struct ring *ring);
/* What a definition is known by: kind and bytes of all but its number. FNV-1a, RFC 9923. */
static inline uint64_t ring_known_hash(uint32_t kind, const uint8_t *start, const uint8_t *end)
{
    uint64_t hash = 0xcbf29ce484222325u ^ kind;
    for (const uint8_t *p = start; p < end; p++)
        hash = (hash ^ *p) * 0x100000001b3u;
    return hash ? hash : 1;
}
/* The number of a definition that is in the database; 0: none is known. */
uint32_t ring_known_find(const struct ring *ring, uint64_t hash);
/* Dumper: what is defined in these records of a chunk of definitions is in the database. What makes no sense in
 * them is passed over. */
void ring_know(struct ring *ring, const uint8_t *records, size_t size);

/* ---- producers ---------------------------------------------------------------------------- */

/* One producer thread. Everything here belongs to it alone. */
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
    uint64_t lost;               /* dropped since the last record that was stored */
    uint64_t freed_seen;         /* ring_header.freed + 1 when the ring was found full; 0: it was not */
    size_t full_from;            /* ... for records of so many bytes and more */
    bool busy;                   /* of events, the last chunk not nearly empty when it was sealed: no small one next */
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

/* Seals the chunk and claims another with room for a record of `size` bytes (at most
 * RING_MIN_CHUNK_SIZE / 2). False: none is free, or the stream has been abandoned. */
bool stream_claim(struct stream *stream, size_t size);
/* Cold part of stream_reserve: the same, and a failure counts as a record dropped. Where no chunk is free that
 * has room for `size`, `least` bytes or more do, in a small one, or in what is left of its own. */
uint8_t *stream_next_chunk(struct stream *stream, size_t size, size_t least);

/* Counts a record that is not even tried to be stored. */
void stream_drop(struct stream *stream);

/* The first free chunk of its size is always taken: how far back it lies tells how many are in use. True
 * where that was a quarter of them when this stream claimed its chunk last, or where there was none. */
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
 * free (or the size is larger than half a chunk), the record is dropped and counted. Where records
 * were dropped and there is room again, stream->lost tells how many; the caller writes the lost
 * record first and sets it to 0. Never waits. */
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

/* Tells the chunk that the thread's depth went down to this; before the commit of the record that
 * takes it there. */
static inline void stream_went_down(struct stream *stream)
{
    if (__builtin_expect(stream->depth < stream->min_depth, 0)) {
        stream->min_depth = stream->depth;
        if (stream->chunk)
            atomic_store_explicit(&stream->chunk->min_depth, stream->depth, memory_order_relaxed);
    }
}

/* ---- dumper ------------------------------------------------------------------------------- */

/* A chunk that is in use, as it was when looked at. */
struct chunk_view {
    uint32_t index;
    uint32_t state;        /* CHUNK_CLAIMED or CHUNK_SEALED */
    uint32_t process;
    uint32_t kind;
    uint32_t stream, sequence;
    int32_t base_depth, min_depth;
    uint64_t base_time, last_time, lost_before, tid;
    uint32_t pid;
    uint32_t used, count;  /* bytes and records published; 0, 0: nothing yet, the rest is not valid */
    const uint8_t *body;
};

/* Looks at one chunk: 1 and a view; 0: it is free; -EPROTO: its words make no sense (scribbled
 * over), of the view only index, state and process are to be used. Sealed: the view is final.
 * min_depth and last_time may already be those of a record behind the ones published. */
int ring_look(const struct ring *ring, uint32_t index, struct chunk_view *view);

/* Looks at all of them: fills up to chunk_count views, returns how many. *bad counts -EPROTO. */
uint32_t ring_look_all(const struct ring *ring, struct chunk_view *views, uint32_t *bad);

/* Gives the chunk back. Only after COMMIT of all that the view showed, and only when the view was
 * sealed, or when the owner had ended *before* the look: an owner found dead after it may have
 * published more in between. */
void ring_release(struct ring *ring, uint32_t index);

#endif
