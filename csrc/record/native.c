/* Native functions; see native.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "record/native.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/event.h"
#include "record/define.h"
#include "record/got.h"
#include "record/session.h"

/* Held by writers only, so that a signal handler in the middle records nothing. It is taken within
 * dl_iterate_phdr, whose lock is the dynamic linker's, and never the other way round. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *new_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

/* ---- loaded objects ----------------------------------------------------------------------- */

/* One that has entries of ours. */
struct object {
    uintptr_t start, end;
    uintptr_t bias; /* what its addresses in memory have more than those in its file */
    bool chosen;    /* in this recording */
    uint8_t build_id[GOT_BUILD_ID_MAX];
    size_t build_id_size;
    char path[PATH_MAX];
};

static struct object **objects; /* pages; an object stays where it is */
static size_t object_count, object_room;
static char **chosen;           /* NULL-terminated; empty: all */
static uintptr_t *looked_at;    /* pages: the headers of all objects that were looked at */
static size_t looked_count, looked_room;
static _Atomic uint64_t loads;  /* objects loaded and unloaded until the last look */

static struct object *find_object(uintptr_t address)
{
    for (size_t i = 0; i < object_count; i++)
        if (address >= objects[i]->start && address < objects[i]->end)
            return objects[i];
    return NULL;
}

/* ---- functions ---------------------------------------------------------------------------- */

/* A function by its address: in a table that is read without a lock. An entry is complete when its
 * address is there, and constant from then on. */
struct function {
    _Atomic uintptr_t address; /* 0: free */
    uint32_t number;
    uint8_t head_size;
    uint8_t head[8];           /* the start of each of its records, as of struct code_info */
    uint8_t unused[11];
};
_Static_assert(sizeof(struct function) == 32, "two in a cache line");

struct table {
    unsigned shift; /* of the hash */
    size_t size, used;
    _Alignas(64) struct function functions[];
};

#define FIRST_FUNCTIONS 512

static _Atomic(struct table *) table; /* made before the first entry leads here */

HOT size_t hash(const struct table *in, uintptr_t address)
{
    return (size_t)((uint64_t)address * 0x9e3779b97f4a7c15u >> in->shift);
}

/* The function's place in the table, or the free place for it. */
HOT struct function *place_in(struct table *in, uintptr_t address)
{
    size_t at = hash(in, address);
    for (;;) {
        uintptr_t there = atomic_load_explicit(&in->functions[at].address, memory_order_acquire);
        if (LIKELY(there == address) || there == 0)
            return &in->functions[at];
        at = (at + 1) & (in->size - 1);
    }
}

static void copy_function(struct table *to, const struct function *from)
{
    uintptr_t address = atomic_load_explicit(&from->address, memory_order_relaxed);
    struct function *place = place_in(to, address);
    place->number = from->number;
    place->head_size = from->head_size;
    memcpy(place->head, from->head, sizeof place->head);
    atomic_store_explicit(&place->address, address, memory_order_release);
    to->used++;
}

/* Another table of this size, with all but the functions from `start` to `end`. The old one stays:
 * others may be reading it, and open calls point into it. */
static bool renew_table(size_t size, uintptr_t start, uintptr_t end)
{
    struct table *old = atomic_load_explicit(&table, memory_order_relaxed);
    struct table *renewed = new_pages(sizeof *renewed + size * sizeof *renewed->functions);
    if (renewed == NULL)
        return false;
    renewed->size = size;
    renewed->shift = 64u - (unsigned)__builtin_ctzll(size);
    for (size_t i = 0; old != NULL && i < old->size; i++) {
        uintptr_t address = atomic_load_explicit(&old->functions[i].address, memory_order_relaxed);
        if (address && (address < start || address >= end))
            copy_function(renewed, &old->functions[i]);
    }
    atomic_store_explicit(&table, renewed, memory_order_release);
    return true;
}

/* Defines a function, and puts it into the table; NULL: there is no room now. With the lock. */
static const struct function *define(uintptr_t address)
{
    struct table *in = atomic_load_explicit(&table, memory_order_relaxed);
    struct function *place = place_in(in, address);
    if (atomic_load_explicit(&place->address, memory_order_relaxed))
        return place;
    if (in->used * 2 >= in->size) {
        if (!renew_table(in->size * 2, 0, 0))
            return NULL;
        in = atomic_load_explicit(&table, memory_order_relaxed);
        place = place_in(in, address);
    }
    static const struct object unknown;
    const struct object *object = find_object(address);
    if (object == NULL)
        object = &unknown;
    const char *name = strrchr(object->path, '/');
    name = name != NULL ? name + 1 : object->path;
    char number_text[32];
    int number_size = snprintf(number_text, sizeof number_text, "0x%llx",
                               (unsigned long long)(address - object->bias));
    struct definition_writer writer;
    uint8_t *p = define_begin(&writer, DEFINITION_CODE, 2 * PATH_MAX + 256);
    if (p == NULL)
        return NULL;
    p = wire_put_bytes(p, 2, name, strlen(name));
    p = wire_put_bytes(p, 3, number_text, (size_t)number_size);
    p = wire_put_bytes(p, 4, object->path, strlen(object->path));
    p = event_put(p, 8, 3); /* Code.NATIVE */
    if (codes_is_mine(object->path) && strncmp(object->path, "/usr/", 5) != 0 && strncmp(object->path, "/lib", 4) != 0)
        p = event_put(p, 9, true);
    p = wire_put_bytes(p, 11, object->build_id, object->build_id_size);
    p = event_put(p, 12, address - object->bias);
    uint32_t number = define_native(&writer, p);
    if (number >= 1u << 28)
        return NULL;
    place->number = number;
    uint8_t *end = event_open(place->head, EVENT_CALL, number);
    *end++ = WIRE_TAG(EVENT_TIME, WIRE_VARINT);
    place->head_size = (uint8_t)(end - place->head);
    atomic_store_explicit(&place->address, address, memory_order_release);
    in->used++;
    return place;
}

static __attribute__((noinline)) const struct function *define_function(struct thread *thread, uintptr_t address)
{
    pthread_mutex_lock(&lock);
    const struct function *function = define(address);
    pthread_mutex_unlock(&lock);
    if (function == NULL)
        stream_drop(&thread->stream);
    return function;
}

/* NULL: it is not in the table. */
HOT const struct function *find_function(uintptr_t address)
{
    const struct function *place = place_in(atomic_load_explicit(&table, memory_order_acquire), address);
    return LIKELY(atomic_load_explicit(&place->address, memory_order_relaxed)) ? place : NULL;
}

/* ---- open calls --------------------------------------------------------------------------- */

/* `code` of a native call is its function, marked, and 16 bits of the address that it was called
 * from. `place` tells where the frame of the call to us was, and 16 bits of the
 * instruction behind that. (Addresses of user space have 47 or 48 bits.) */

#define PLACE_BITS 48
#define PLACE_MASK ((1ull << PLACE_BITS) - 1)
_Static_assert(sizeof(void *) == sizeof(uint64_t), "");

HOT const struct function *function_of(const struct open_call *call)
{
    return (const struct function *)(((uint64_t)(uintptr_t)call->code & PLACE_MASK) - CALL_OF_NATIVE);
}

HOT PyCodeObject *code_of(const struct function *function, const void *site)
{
    return (PyCodeObject *)(((uint64_t)(uintptr_t)site << PLACE_BITS) + (uintptr_t)function + CALL_OF_NATIVE);
}

HOT uintptr_t frame_of(const struct open_call *call) { return call->place & PLACE_MASK; }

HOT uint64_t place_of(uintptr_t frame, const void *instruction)
{
    return (uint64_t)(uintptr_t)instruction << PLACE_BITS | frame;
}

#define ROOM (EVENTS_CPU_MAX + EVENT_HEAD_MAX + sizeof NATIVE_LEFT + 8)
_Static_assert(ROOM < 128, "");

HOT uint8_t *room(struct thread *thread)
{
    struct stream *stream = &thread->stream;
    if (LIKELY((size_t)(stream->end - stream->next) >= ROOM))
        return stream->next;
    return record_room_native(thread, ROOM);
}

HOT uint8_t *put_head(uint8_t *p, const struct function *function, enum event_kind kind, uint64_t delta)
{
    memcpy(p, function->head, sizeof function->head);
    if (kind != EVENT_CALL)
        p[CODE_HEAD_KIND] = (uint8_t)WIRE_TAG(kind, WIRE_VARINT);
    return wire_put_short(p + function->head_size, delta);
}

/* All of these records are short: their length is one byte. */
HOT void commit(struct thread *thread, uint8_t *record, uint8_t *p, uint64_t now)
{
    record[1] = (uint8_t)(p - record - 2);
    thread->stream.time = now;
    stream_commit(&thread->stream, p);
}

HOT void push(struct thread *thread, const struct function *function, const void *site, uint64_t here, uint64_t now)
{
    struct open_call *call = thread->top;
    call->code = code_of(function, site);
    call->start = now;
    call->place = here;
    thread->top = call + 1;
    thread->stream.depth++;
}

/* Whether this function, whose frame (`tail`: with those of all that it called) was below `frame`,
 * is the innermost open call. */
HOT bool is_end_of(const struct open_call *call, uintptr_t address, uintptr_t frame, bool tail)
{
    return LIKELY(is_native_call(call)) &&
           LIKELY(atomic_load_explicit(&function_of(call)->address, memory_order_relaxed) == address) &&
           LIKELY(tail ? frame_of(call) < frame && !(is_native_call(call - 1) && frame_of(call - 1) < frame)
                       : frame_of(call) >= frame);
}

/* The innermost call, a native one, is over. */
HOT void put_end(struct thread *thread, struct open_call *call, const struct function *function,
                 enum event_kind kind, bool depth_changed, uint64_t now)
{
    uint8_t *record = room(thread);
    if (LIKELY(record != NULL)) {
        uint64_t delta = now - thread->stream.time, elapsed = now - call->start;
        uint8_t *p = put_head(record, function, kind, delta);
        if (elapsed != delta) {
            if (UNLIKELY(call->start == 0 || elapsed == 0))
                elapsed = call->start != 0;
            *p = WIRE_TAG(EVENT_ELAPSED, WIRE_VARINT);
            p = wire_put_short(p + 1, elapsed);
        }
        if (UNLIKELY(depth_changed))
            p = event_put_depth(p, thread->stream.depth);
        if (UNLIKELY(kind == EVENT_EXCEPTION)) {
            uint8_t *value = value_open(p, EVENT_VALUE);
            p = wire_put_bytes(value, VALUE_REPR, NATIVE_LEFT, sizeof NATIVE_LEFT - 1);
            p = value_close(value, p);
        }
        commit(thread, record, p, now);
    }
    thread->top = call;
    thread->stream.depth--;
    stream_went_down(&thread->stream);
}

bool native_leave_all(struct thread *thread, struct open_call *call, uint64_t now)
{
    bool depth_changed = false;
    while (thread->top > call) {
        struct open_call *top = thread->top - 1;
        if (is_native_call(top)) {
            put_end(thread, top, function_of(top), EVENT_EXCEPTION, depth_changed, now);
            depth_changed = false;
        } else {
            thread->top = top;
            thread->stream.depth--;
            depth_changed = true;
        }
    }
    return depth_changed;
}

/* Reads the range of the piece of memory that an address is in; 0, 0: none. */
static void read_range(uintptr_t address, uintptr_t range[2])
{
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    char text[4096];
    uintptr_t numbers[2] = {0, 0};
    int which = 0; /* 0, 1: in the first, the second number of a line; 2: in its rest */
    bool found = false;
    ssize_t size;
    while (!found && (size = read(file, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < size && !found; i++) {
            char c = text[i];
            if (c == '\n') {
                which = 0;
                numbers[0] = numbers[1] = 0;
            } else if (which < 2 && c != '-' && c != ' ') {
                numbers[which] = numbers[which] << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
            } else if (which < 2 && ++which == 2) {
                found = address >= numbers[0] && address < numbers[1];
            }
        }
    close(file);
    range[0] = found ? numbers[0] : 0;
    range[1] = found ? numbers[1] : 0;
}

/* Whether two addresses are on the same stack: a signal handler may run on another one. */
static bool same_stack(struct thread *thread, uintptr_t a, uintptr_t b)
{
    uintptr_t *range = thread->stack_range;
    if (a < range[0] || a >= range[1] || b < range[0] || b >= range[1])
        read_range(a, range);
    return a >= range[0] && a < range[1] && b >= range[0] && b < range[1];
}

/* Whether one of the innermost calls, in the very same frame, began at the same instruction. */
static bool is_repeated(const struct thread *thread, uint64_t here)
{
    for (const struct open_call *at = thread->top - 1; is_native_call(at) && frame_of(at) == (here & PLACE_MASK); at--)
        if (at->place == here)
            return true;
    return false;
}

/* A call begins at a place of the stack where an open one is, or further out: the open one is over.
 * At the very same place it may be a function that was inlined into the open one: both seem to have
 * been called from the same place, but another instruction tells. (No function that is open begins
 * again in its own frame: if it does, all that is open in this frame since then is over.) */
static __attribute__((noinline)) void leave_before(struct thread *thread, uint64_t here, const void *site)
{
    uint64_t now = record_now(thread);
    int error = errno;
    for (;;) {
        struct open_call *top = thread->top - 1;
        uintptr_t frame = here & PLACE_MASK, there = frame_of(top);
        if (!is_native_call(top) || there > frame)
            break;
        bool inlined = there == frame && top->code == code_of(function_of(top), site) &&
                       !is_repeated(thread, here);
        if (inlined || !same_stack(thread, there, frame))
            break;
        put_end(thread, top, function_of(top), EVENT_EXCEPTION, false, now);
    }
    errno = error;
}

/* A function ends that is not the innermost call, or does not seem to be: calls above it were left,
 * or its beginning was not recorded. `tail`: its frame was gone before it said so, and the frames
 * of all that it called were below. */
static __attribute__((noinline)) void leave_other(struct thread *thread, uintptr_t address, uintptr_t frame, bool tail)
{
    struct open_call *call = NULL, *near = NULL;
    for (struct open_call *at = thread->top - 1; at > thread->calls; at--) {
        if (!is_native_call(at) || atomic_load_explicit(&function_of(at)->address, memory_order_relaxed) != address)
            continue;
        near = near != NULL ? near : at;
        bool below = frame_of(at) < frame;
        if (tail && !below)
            break;
        call = at;
        if (!tail && !below)
            break;
    }
    if (call == NULL)
        call = near;
    uint64_t now = record_now(thread);
    bool depth_changed = true;
    const struct function *function;
    if (call != NULL) {
        function = function_of(call);
        depth_changed = native_leave_all(thread, call + 1, now);
    } else { /* as if its call had been recorded, at an unknown time */
        function = find_function(address);
        if (function == NULL && (function = define_function(thread, address)) == NULL)
            return;
        if (thread->top == thread->end && !thread_grow(thread))
            return;
        call = thread->top++;
        call->code = code_of(function, NULL);
        call->start = call->place = 0;
        thread->stream.depth++;
    }
    put_end(thread, call, function, EVENT_RETURN, depth_changed, now);
}

/* ---- the hot path ------------------------------------------------------------------------- */

/* Not everything is ready. Returns the thread, ready to record; NULL: nothing is recorded. */
static __attribute__((noinline)) struct thread *prepare(struct thread *thread)
{
    if (!thread_wait_writing() || !recorder.on || !threads_forked())
        return NULL;
    int error = errno;
    if (thread_is_nobody(thread))
        thread = thread_make_current();
    errno = error;
    if (thread == NULL || thread->suppressed || thread->outside != NULL)
        return NULL;
    thread->native = true;
    return thread;
}

/* This thread, in the middle of a record until writer_end; or NULL. */
static struct thread *begin(void)
{
    struct thread *thread = current_thread;
    if (UNLIKELY(writer_is_writing(&this_writer))) {
        this_writer.missed++;
        return NULL;
    }
    if (UNLIKELY(!writer_begin()) || UNLIKELY(!thread->native))
        if ((thread = prepare(thread)) == NULL)
            writer_end();
    return thread;
}

/* A function begins: `frame` is that of the call to us, `instruction` the one behind it. */
static __attribute__((noinline)) void enter(void *address, const void *site, uintptr_t frame, const void *instruction)
{
    struct thread *thread = begin();
    if (thread == NULL)
        return;
    const struct function *function = find_function((uintptr_t)address);
    if (function == NULL && (function = define_function(thread, (uintptr_t)address)) == NULL)
        goto end;
    uint64_t here = place_of(frame, instruction);
    if (is_native_call(thread->top - 1) && frame_of(thread->top - 1) <= frame)
        leave_before(thread, here, site);
    uint64_t now = record_now(thread);
    if (thread->top == thread->end && !thread_grow(thread))
        goto end;
    uint8_t *record = room(thread);
    if (record != NULL)
        commit(thread, record, put_head(record, function, EVENT_CALL, now - thread->stream.time), now);
    push(thread, function, site, here, now);
end:
    writer_end();
}

static __attribute__((noinline)) void leave(void *address, uintptr_t frame, bool tail)
{
    struct thread *thread = begin();
    if (thread == NULL)
        return;
    struct open_call *call = thread->top - 1;
    if (is_end_of(call, (uintptr_t)address, frame, tail))
        put_end(thread, call, function_of(call), EVENT_RETURN, false, record_now(thread));
    else
        leave_other(thread, (uintptr_t)address, frame, tail);
    writer_end();
}

/* The fast paths. Whatever is not as usual is done by the two functions above, from the start. */

#define IS_USUAL(thread) \
    (LIKELY(writer_begin()) && LIKELY((thread)->native))

static void on_enter(void *address, void *site)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    const void *instruction = __builtin_return_address(0);
    struct thread *thread = current_thread;
    if (UNLIKELY(writer_is_writing(&this_writer))) {
        this_writer.missed++;
        return;
    }
    if (IS_USUAL(thread)) {
        const struct table *in = atomic_load_explicit(&table, memory_order_acquire);
        const struct function *function = &in->functions[hash(in, (uintptr_t)address)];
        struct open_call *top = thread->top;
        if (LIKELY(atomic_load_explicit(&function->address, memory_order_acquire) == (uintptr_t)address) &&
            !(is_native_call(top - 1) && UNLIKELY(frame_of(top - 1) <= frame)) &&
            LIKELY(top != thread->end) && LIKELY((size_t)(thread->stream.end - thread->stream.next) >= ROOM)) {
            uint64_t now = record_now(thread);
            uint8_t *record = thread->stream.next;
            commit(thread, record, put_head(record, function, EVENT_CALL, now - thread->stream.time), now);
            push(thread, function, site, place_of(frame, instruction), now);
            writer_end();
            return;
        }
    }
    writer_end();
    enter(address, site, frame, instruction);
}

static void on_exit_of(void *address, void *site)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    bool tail = __builtin_return_address(0) == site; /* jumped to, not called */
    struct thread *thread = current_thread;
    if (UNLIKELY(writer_is_writing(&this_writer))) {
        this_writer.missed++;
        return;
    }
    if (IS_USUAL(thread)) {
        struct open_call *call = thread->top - 1;
        if (LIKELY(is_end_of(call, (uintptr_t)address, frame, tail)) &&
            LIKELY((size_t)(thread->stream.end - thread->stream.next) >= ROOM) && LIKELY(call->start != 0)) {
            uint64_t now = record_now(thread);
            uint64_t delta = now - thread->stream.time, elapsed = now - call->start;
            uint8_t *record = thread->stream.next, *p = put_head(record, function_of(call), EVENT_RETURN, delta);
            if (elapsed != delta) {
                *p = WIRE_TAG(EVENT_ELAPSED, WIRE_VARINT);
                p = wire_put_short(p + 1, elapsed);
            }
            commit(thread, record, p, now);
            thread->top = call;
            thread->stream.depth--;
            stream_went_down(&thread->stream);
            writer_end();
            return;
        }
    }
    writer_end();
    leave(address, frame, tail);
}

/* ---- entries ------------------------------------------------------------------------------ */

static void *on_dlsym(void *handle, const char *name);

static const struct got_change ours[] = {
    {"__cyg_profile_func_enter", (void *)(uintptr_t)on_enter}, {"__cyg_profile_func_exit", (void *)(uintptr_t)on_exit_of}};
static const struct got_change our_dlsym[] = {{"dlsym", (void *)(uintptr_t)on_dlsym}};
static struct got_change theirs[2], their_dlsym[1];

/* The real name of an object's file. */
static bool file_of(const struct dl_phdr_info *info, char path[PATH_MAX])
{
    char link[64];
    int file = -1;
    if (*info->dlpi_name) {
        if ((file = open(info->dlpi_name, O_PATH | O_CLOEXEC)) < 0)
            return false;
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    }
    ssize_t size = readlink(file < 0 ? "/proc/self/exe" : link, path, PATH_MAX - 1);
    if (file >= 0)
        close(file);
    path[size > 0 ? size : 0] = 0;
    return size > 0;
}

static bool is_chosen(const char *path, const char *name)
{
    return chosen == NULL || *chosen == NULL || codes_is_below_any(path, chosen) || codes_is_below_any(name, chosen);
}

static struct object *new_object(void)
{
    if (object_count == object_room) {
        size_t size = object_room ? object_room * 2 : 64;
        struct object **larger = new_pages(size * sizeof *larger);
        if (larger == NULL)
            return NULL;
        if (object_room)
            memcpy(larger, objects, object_room * sizeof *larger);
        objects = larger;
        object_room = size;
    }
    struct object *object = new_pages(sizeof *object);
    if (object != NULL)
        objects[object_count++] = object;
    return object;
}

/* Called for each loaded object, with the lock of the dynamic linker and ours. */
static int look_at(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t start, end;
    char path[PATH_MAX];
    (void)size, (void)unused;
    if (!got_range(info, &start, &end) || ((uintptr_t)on_enter >= start && (uintptr_t)on_enter < end))
        return 0;
    got_change(info, our_dlsym, 1);
    static const struct got_change count_only[] = {{"__cyg_profile_func_enter", NULL}, {"__cyg_profile_func_exit", NULL}};
    if (got_change(info, count_only, 2) == 0 || !file_of(info, path) || !is_chosen(path, info->dlpi_name))
        return 0;
    uint8_t id[GOT_BUILD_ID_MAX] = {0};
    size_t id_size = got_build_id(info, id);
    struct object *object = find_object(start);
    bool same = object != NULL && object->start == start && object->end == end && strcmp(object->path, path) == 0 &&
                object->build_id_size == id_size && memcmp(object->build_id, id, id_size) == 0;
    if (!same) {
        struct table *in = atomic_load_explicit(&table, memory_order_relaxed);
        if (in->used) /* of an object that was here before */
            renew_table(in->size, start, end);
        while ((object = find_object(start)) != NULL || (object = find_object(end - 1)) != NULL)
            object->start = object->end = 0;
        if ((object = new_object()) == NULL)
            return 0;
        object->start = start;
        object->end = end;
        object->bias = info->dlpi_addr;
        object->build_id_size = id_size;
        memcpy(object->build_id, id, sizeof id);
        strcpy(object->path, path);
    }
    object->chosen = true;
    got_change(info, ours, 2);
    return 0;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *count)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(uint64_t *)count = info->dlpi_adds + (info->dlpi_subs << 32);
    return 1; /* the first one tells for all */
}

/* Whether the object has been looked at; from now on it has. Programs load hundreds of objects, one
 * after the other. */
static bool was_looked_at(const struct dl_phdr_info *info)
{
    uintptr_t headers = (uintptr_t)info->dlpi_phdr;
    for (size_t i = 0; i < looked_count; i++)
        if (looked_at[i] == headers)
            return true;
    if (looked_count == looked_room) {
        size_t larger = looked_room ? looked_room * 2 : 512;
        uintptr_t *room = new_pages(larger * sizeof *room);
        if (room == NULL)
            return false;
        if (looked_room)
            memcpy(room, looked_at, looked_count * sizeof *room);
        looked_at = room;
        looked_room = larger;
    }
    looked_at[looked_count++] = headers;
    return false;
}

static int look_at_new(struct dl_phdr_info *info, size_t size, void *unused)
{
    pthread_mutex_lock(&lock);
    if (!was_looked_at(info))
        look_at(info, size, unused);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Another thread may have looked at an object while the linker was still filling its table in. */
static int look_again(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t start, end;
    (void)size, (void)unused;
    pthread_mutex_lock(&lock);
    const struct object *object = got_range(info, &start, &end) ? find_object(start) : NULL;
    if (object != NULL && object->chosen)
        got_change(info, ours, 2);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Finds the objects that have been loaded since the last look. */
static void look(void)
{
    uint64_t now = 0, before = atomic_load_explicit(&loads, memory_order_relaxed);
    dl_iterate_phdr(count_loads, &now);
    if (now != 0 && now == before) {
        if (object_count)
            dl_iterate_phdr(look_again, NULL);
        return;
    }
    if (now == 0 || now >> 32 != before >> 32) { /* what was unloaded may have come again */
        pthread_mutex_lock(&lock);
        looked_count = 0;
        pthread_mutex_unlock(&lock);
    }
    dl_iterate_phdr(look_at_new, NULL);
    atomic_store_explicit(&loads, now, memory_order_relaxed);
}

/* An object's functions are mostly asked for before they are called the first time. The real one is
 * jumped to: it looks who has called it. */
static void *on_dlsym(void *handle, const char *name)
{
    if (!writer_is_writing(&this_writer)) {
        int error = errno;
        bool before = thread_begin_writing();
        if (recorder.native && recorder.on)
            look();
        thread_end_writing(before);
        errno = error;
    }
    return dlsym(handle, name);
}

static int take_back(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t start, end;
    (void)size, (void)unused;
    if (!got_range(info, &start, &end) || ((uintptr_t)on_enter >= start && (uintptr_t)on_enter < end))
        return 0;
    got_change(info, their_dlsym, 1);
    struct object *object = find_object(start);
    if (object != NULL) {
        object->chosen = false;
        got_change(info, theirs, 2);
    }
    return 0;
}

static void in_child(void) { lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

/* ---- begin and end ------------------------------------------------------------------------ */

int native_choose(char **paths)
{
    static bool prepared;
    Dl_info enter, other;
    if (codes_copy_list(&chosen, paths) < 0)
        return -1;
    theirs[0] = (struct got_change){ours[0].name, dlsym(RTLD_DEFAULT, ours[0].name)};
    theirs[1] = (struct got_change){ours[1].name, dlsym(RTLD_DEFAULT, ours[1].name)};
    their_dlsym[0] = (struct got_change){"dlsym", (void *)(uintptr_t)dlsym};
    if (theirs[0].to == NULL || theirs[1].to == NULL || !dladdr(theirs[0].to, &enter) ||
        !dladdr((void *)(uintptr_t)getpid, &other) || enter.dli_fbase != other.dli_fbase) {
        PyErr_SetString(PyExc_RuntimeError, "--native: the program has a __cyg_profile_func_enter of its own");
        return -1;
    }
    int error = writers_prepare();
    if (error < 0) {
        PyErr_Format(PyExc_RuntimeError, "--native: the kernel does not allow membarrier: %s", strerror(-error));
        return -1;
    }
    if (!prepared && (!renew_table(FIRST_FUNCTIONS, 0, 0) || pthread_atfork(NULL, NULL, in_child) != 0)) {
        PyErr_NoMemory();
        return -1;
    }
    prepared = true;
    recorder.native = true;
    return 0;
}

void native_begin(void)
{
    if (!recorder.native)
        return;
    writers_free();
    atomic_store_explicit(&loads, UINT64_MAX, memory_order_relaxed); /* all are new */
    bool before = thread_begin_writing();
    look();
    thread_end_writing(before);
}

void native_end(void)
{
    if (theirs[0].to != NULL)
        dl_iterate_phdr(take_back, NULL);
}
