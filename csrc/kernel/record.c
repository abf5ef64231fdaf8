/* Kernel events become records; see record.h. */
#include "kernel/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/map.h"
#include "common/utf8.h"
#include "format/segment.h"
#include "kernel/format.h"
#include "kernel/pages.h"
#include "kernel/perf.h"
#include "ring/clock.h"

#define BODY_WHOLE (64u << 10) /* a body as large as this is whole: thousands of events */
#define VALUE_MAX (KERNEL_TEXT_MAX + 24)
#define RECORD_MAX (EVENTS_CPU_MAX + EVENT_HEAD_MAX + KERNEL_FIELDS_MAX * VALUE_MAX)
#define TOLD_MAX 2             /* fields of an event that tell of other threads */
#define ERROR_LAST 4095        /* a system call returns -1 to -4095 for an error */
#define CLONE_THREAD_FLAG 0x10000
#define LIVE_MOST (16u << 20)  /* bytes of bodies that are still written: then all are whole */
#define TRAILING_NS 1000000000 /* after a thread's end nothing more comes of it */

/* A kind of event, by its id. */
struct event_type {
    struct kernel_format format;
    enum kernel_role role;
    bool shown, begins, ends;
    uint16_t pair;                /* of ENTER and EXIT; 0: none */
    uint32_t code;                /* 0: not used yet */
    uint32_t told_count;
    const struct kernel_field *told[TOLD_MAX];
    const struct kernel_field *flags;  /* of the clone, where it begins a thread */
    const struct kernel_field *result; /* of EXIT */
    uint32_t first_field;         /* of ENTER: behind the number of the system call */
};

/* The depth of a thread's own stream from a time on. */
struct step {
    uint64_t time;
    int32_t depth;
};

struct body {
    struct body *next;            /* of the whole ones */
    uint32_t sequence, records;
    int32_t base_depth, min_depth;
    uint64_t base_time, last_time;
    uint8_t *bytes;
    size_t size, capacity;
    int32_t cpu;                  /* of the last record */
    uint32_t stored;              /* records that are stored already */
};

struct thread {
    struct thread *next, **place;
    uint32_t tid, parent;
    bool is_processor;
    bool is_followed;             /* it has a stream of its own, by which it is known to the end */
    bool is_over;                 /* its number is used again, or nothing has come for long ... */
    uint64_t ended;               /* ... since it ended; ticks, 0: it lives */
    bool is_process;              /* it began as one; else as a thread of its parent */
    uint32_t stream;              /* 0: nothing is recorded of it yet */
    uint32_t sequence;            /* of the body that is written */
    struct body *body;            /* NULL: none has begun */
    struct body *whole, **whole_end;
    int32_t open;                 /* calls behind the last record, as a reader counts them */
    int32_t own;                  /* calls that are open in its own stream ... */
    struct step *steps;           /* ... and later */
    size_t step_first, step_count, step_capacity;
    uint32_t call;                /* the code of the system call that is open; 0: none */
    uint64_t call_time;           /* clock units */
    uint64_t losses;              /* that were known at the last record */
};

/* A stream of a thread's own, in the ring. */
struct own {
    struct own *next;
    uint32_t stream, sequence;
    struct thread *thread;
    struct segment_walk walk;
};

struct processor {
    uint32_t number;
    int fd, stats_fd;
    struct perf *perf;            /* instead of both */
    uint64_t overrun;             /* events lost so far, of those that are told */
    struct thread *thread;        /* its own events */
    uint8_t **pages;              /* of page_size bytes */
    size_t *sizes;
    uint64_t *lost;               /* before each page */
    size_t lost_capacity;
    size_t page_first, page_count, page_capacity, size_capacity;
    struct kernel_page page;
    struct kernel_event event;
    bool has_page, has_event;     /* pages[page_first] is open; its next event is known */
};

struct kernel {
    struct ring *ring;
    struct kernel_layout layout;
    size_t page_size;
    const char *const *errors;
    uint32_t error_count, error_type, address_type;
    bool all;
    struct event_type **types;    /* by id */
    uint32_t *used;               /* ids whose code is new */
    size_t used_count, used_given, used_capacity;
    struct processor *processors;
    size_t processor_count, processor_capacity;
    struct thread *threads, **threads_end;
    struct thread **births;       /* threads that have got a stream */
    size_t birth_count, births_given, birth_capacity;
    struct thread *retired;       /* those of `owns` that are over */
    struct map by_tid;            /* threads that live; or NOBODY */
    struct map by_kernel_stream;  /* those that have got a stream; or NOBODY */
    struct own *owns;
    struct map by_stream;
    uint8_t **spare;              /* pages */
    size_t spare_count, spare_capacity;
    uint64_t drain_time, certain; /* ticks: of the last drain, and of the one before */
    uint64_t losses;              /* times that events were lost */
    struct kernel_counts counts;
    uint64_t trailing;            /* TRAILING_NS in ticks */
    uint64_t live_bytes;          /* of bodies that are written */
    struct perf_clock clock;
    struct thread *giving;        /* where kernel_next_body goes on: its body after this one ... */
    struct body *given;           /* ... NULL: the first */
};

#define TYPES (1u << 16)
#define NOBODY 1               /* as a pointer in a map */
#define SPARE_MAX 1024 /* pages that are kept for the next drain */

/* Ticks in so many nanoseconds, as far as that is known already. */
static uint64_t ticks_in(const struct ring *ring, uint64_t ns)
{
    uint64_t scale = ring_clock_scale(ring); /* ns per unit << 32 */
    return scale ? (uint64_t)(((unsigned __int128)ns << 32) / scale) << ring_clock_shift(ring) : 4 * ns;
}

/* ---- making ------------------------------------------------------------------------------- */

struct kernel *kernel_new(struct ring *ring, const char *page, size_t page_size, const char *const *errors,
                          uint32_t error_count, uint32_t error_type, uint32_t address_type, bool all)
{
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    kernel->ring = ring;
    kernel->errors = errors;
    kernel->error_count = error_count;
    kernel->error_type = error_type;
    kernel->address_type = address_type;
    kernel->all = all;
    kernel->threads_end = &kernel->threads;
    kernel->clock.kind = (enum clock_kind)ring_clock_kind(ring);
    perf_look_at_clock(&kernel->clock);
    kernel->trailing = ticks_in(ring, TRAILING_NS);
    if (!kernel_layout_parse(page, page_size, &kernel->layout) ||
        !(kernel->types = calloc(TYPES, sizeof *kernel->types))) {
        kernel_free(kernel);
        return NULL;
    }
    kernel->page_size = kernel->layout.page_size;
    return kernel;
}

static void body_free(struct body *body)
{
    if (body)
        free(body->bytes);
    free(body);
}

static void thread_free(struct thread *thread)
{
    while (thread->whole) {
        struct body *next = thread->whole->next;
        body_free(thread->whole);
        thread->whole = next;
    }
    body_free(thread->body);
    free(thread->steps);
    free(thread);
}

void kernel_free(struct kernel *kernel)
{
    if (!kernel)
        return;
    for (size_t i = 0; i < kernel->processor_count; i++) {
        struct processor *processor = &kernel->processors[i];
        for (size_t page = processor->page_first; page < processor->page_count; page++)
            free(processor->pages[page]);
        free(processor->pages);
        free(processor->sizes);
        free(processor->lost);
        perf_free(processor->perf);
        if (processor->fd >= 0)
            close(processor->fd);
        if (processor->stats_fd >= 0)
            close(processor->stats_fd);
    }
    free(kernel->processors);
    for (struct thread *thread = kernel->threads, *next; thread; thread = next) {
        next = thread->next;
        thread_free(thread);
    }
    for (struct thread *thread = kernel->retired, *next; thread; thread = next) {
        next = thread->next;
        thread_free(thread);
    }
    for (struct own *own = kernel->owns, *next; own; own = next) {
        next = own->next;
        free(own);
    }
    for (uint32_t id = 0; kernel->types && id < TYPES; id++)
        free(kernel->types[id]);
    for (size_t i = 0; i < kernel->spare_count; i++)
        free(kernel->spare[i]);
    free(kernel->spare);
    free(kernel->types);
    free(kernel->births);
    free(kernel->used);
    map_free(&kernel->by_tid);
    map_free(&kernel->by_kernel_stream);
    map_free(&kernel->by_stream);
    free(kernel);
}

int kernel_add_event(struct kernel *kernel, const char *format, size_t size, enum kernel_role role, bool shown)
{
    struct event_type *type = calloc(1, sizeof *type);
    if (!type)
        return -ENOMEM;
    if (!kernel_format_parse(format, size, &type->format)) {
        free(type);
        return -EINVAL;
    }
    type->role = role;
    type->shown = shown;
    type->first_field = role != KERNEL_EVENT && kernel_format_field(&type->format, "__syscall_nr") ? 1 : 0;
    type->result = role == KERNEL_EXIT ? kernel_format_field(&type->format, "ret") : NULL;
    free(kernel->types[type->format.id]);
    kernel->types[type->format.id] = type;
    return type->format.id;
}

static struct event_type *type_of(const struct kernel *kernel, int id)
{
    return id >= 0 && (uint32_t)id < TYPES ? kernel->types[id] : NULL;
}

int kernel_pair(struct kernel *kernel, int enter, int exit)
{
    struct event_type *one = type_of(kernel, enter), *other = type_of(kernel, exit);
    if (!one || !other)
        return -EINVAL;
    one->pair = (uint16_t)exit;
    other->pair = (uint16_t)enter;
    return 0;
}

int kernel_tells_of(struct kernel *kernel, int id, const char *field, bool begins)
{
    struct event_type *type = type_of(kernel, id);
    const struct kernel_field *found = type ? kernel_format_field(&type->format, field) : NULL;
    if (!found || type->told_count == TOLD_MAX)
        return -EINVAL;
    type->told[type->told_count++] = found;
    if (begins) {
        type->begins = true;
        type->flags = kernel_format_field(&type->format, "clone_flags");
    }
    return 0;
}

void kernel_tells_end(struct kernel *kernel, int id)
{
    struct event_type *type = type_of(kernel, id);
    if (type)
        type->ends = true;
}

/* ---- threads ------------------------------------------------------------------------------ */

static struct thread *new_thread(struct kernel *kernel, uint32_t tid, bool is_processor)
{
    struct thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    if (!is_processor) {
        uint64_t *place = map_put(&kernel->by_tid, tid, 1);
        if (!place) {
            free(thread);
            return NULL;
        }
        *place = (uint64_t)(uintptr_t)thread;
    }
    thread->tid = tid;
    thread->is_processor = is_processor;
    thread->whole_end = &thread->whole;
    thread->place = kernel->threads_end;
    *kernel->threads_end = thread;
    kernel->threads_end = &thread->next;
    kernel->counts.threads++;
    return thread;
}

static struct thread *find_thread(const struct kernel *kernel, uint32_t tid)
{
    uint64_t found = map_get(&kernel->by_tid, tid);
    return found == NOBODY ? NULL : (struct thread *)(uintptr_t)found;
}

static void forget_tid(struct kernel *kernel, const struct thread *thread)
{
    if (!thread->is_processor && find_thread(kernel, thread->tid) == thread)
        map_entry(&kernel->by_tid, thread->tid)->value = NOBODY;
}

/* A thread that is over, and all of it is stored: it goes. */
static void retire(struct kernel *kernel, struct thread *thread)
{
    forget_tid(kernel, thread);
    if (thread->stream)
        map_entry(&kernel->by_kernel_stream, thread->stream)->value = NOBODY;
    *thread->place = thread->next;
    if (thread->next)
        thread->next->place = thread->place;
    else
        kernel->threads_end = thread->place;
    kernel->counts.threads--;
    if (!thread->is_followed) {
        thread_free(thread);
        return;
    }
    free(thread->steps);
    thread->steps = NULL;
    thread->step_first = thread->step_count = thread->step_capacity = 0;
    thread->next = kernel->retired;
    kernel->retired = thread;
}

static struct thread *thread_of(struct kernel *kernel, uint32_t tid)
{
    struct thread *thread = find_thread(kernel, tid);
    return thread ? thread : new_thread(kernel, tid, false);
}

int kernel_add_thread(struct kernel *kernel, uint32_t tid) { return thread_of(kernel, tid) ? 0 : -ENOMEM; }

int kernel_add_processor(struct kernel *kernel, uint32_t number, int fd, int stats_fd)
{
    if (!array_reserve(&kernel->processors, &kernel->processor_capacity, kernel->processor_count + 1,
                       sizeof *kernel->processors))
        return -ENOMEM;
    struct thread *thread = new_thread(kernel, number, true);
    if (!thread)
        return -ENOMEM;
    kernel->processors[kernel->processor_count++] = (struct processor){
        .number = number, .fd = fd, .stats_fd = stats_fd, .thread = thread};
    return 0;
}

int kernel_add_perf(struct kernel *kernel, uint32_t number)
{
    if (kernel->page_size != PERF_PAGE_SIZE)
        return -EINVAL;
    struct perf *perf = perf_new(number);
    if (!perf || kernel_add_processor(kernel, number, -1, -1)) {
        perf_free(perf);
        return -ENOMEM;
    }
    kernel->processors[kernel->processor_count - 1].perf = perf;
    return 0;
}

int kernel_attach(struct kernel *kernel, uint32_t tid, bool faults)
{
    for (size_t i = 0; i < kernel->processor_count; i++) {
        int error = perf_attach(kernel->processors[i].perf, (pid_t)tid, faults);
        if (error && error != -ENODEV)
            return error;
    }
    return kernel_add_thread(kernel, tid);
}

void kernel_stop_perf(struct kernel *kernel)
{
    for (size_t i = 0; i < kernel->processor_count; i++)
        if (kernel->processors[i].perf)
            perf_stop(kernel->processors[i].perf);
}

bool kernel_next_birth(struct kernel *kernel, struct kernel_birth *birth)
{
    if (kernel->births_given == kernel->birth_count) {
        kernel->births_given = kernel->birth_count = 0;
        return false;
    }
    const struct thread *thread = kernel->births[kernel->births_given++];
    *birth = (struct kernel_birth){.tid = thread->tid, .parent = thread->parent, .stream = thread->stream,
                                   .is_processor = thread->is_processor, .is_process = thread->is_process};
    return true;
}

/* ---- the depths of the own streams -------------------------------------------------------- */

static bool add_step(struct thread *thread, uint64_t time, int32_t depth)
{
    if (thread->step_count > thread->step_first) {
        struct step *last = &thread->steps[thread->step_count - 1];
        if (last->depth == depth)
            return true;
        if (last->time == time) {
            last->depth = depth;
            return true;
        }
    }
    if (thread->step_first == thread->step_count)
        thread->step_first = thread->step_count = 0;
    if (!array_reserve(&thread->steps, &thread->step_capacity, thread->step_count + 1, sizeof *thread->steps))
        return false;
    thread->steps[thread->step_count++] = (struct step){time, depth};
    return true;
}

int kernel_follow(struct kernel *kernel, const struct chunk_view *chunk)
{
    uint64_t *place = map_put(&kernel->by_stream, chunk->stream, 1);
    struct own *own = !place || *place == 1 ? NULL : (struct own *)(uintptr_t)*place;
    struct segment_event event;

    if (!place)
        return -ENOMEM;
    if (!own) {
        if (!(own = calloc(1, sizeof *own)) || !(own->thread = thread_of(kernel, (uint32_t)chunk->tid))) {
            free(own);
            return -ENOMEM;
        }
        own->thread->is_followed = true;
        own->stream = chunk->stream;
        own->sequence = UINT32_MAX;
        own->next = kernel->owns;
        kernel->owns = own;
        *place = (uint64_t)(uintptr_t)own;
    }
    if (own->thread->is_over)
        return 0;
    if (own->sequence != chunk->sequence) {
        own->sequence = chunk->sequence;
        segment_open(&own->walk, chunk->body, chunk->used, chunk->base_time, chunk->base_depth);
        if (!add_step(own->thread, chunk->base_time, chunk->base_depth))
            return -ENOMEM;
    } else if (own->walk.end < chunk->body + chunk->used) {
        own->walk.end = chunk->body + chunk->used;
    }
    while (segment_head(&own->walk, &event) > 0)
        if (!add_step(own->thread, event.time, own->walk.open))
            return -ENOMEM;
    return 0;
}

static void reach(struct thread *thread, uint64_t time)
{
    while (thread->step_first < thread->step_count && thread->steps[thread->step_first].time <= time)
        thread->own = thread->steps[thread->step_first++].depth;
}

/* ---- records ------------------------------------------------------------------------------ */

static void end_body(struct kernel *kernel, struct thread *thread)
{
    if (!thread->body)
        return;
    kernel->live_bytes -= thread->body->capacity;
    kernel->counts.waiting += thread->body->size;
    *thread->whole_end = thread->body;
    thread->whole_end = &thread->body->next;
    thread->body = NULL;
    thread->sequence++;
}

/* Room for a record of the thread at this time. NULL: no memory. */
static uint8_t *begin_record(struct kernel *kernel, struct thread *thread, uint64_t time, int32_t cpu)
{
    if (thread->body && thread->body->size >= BODY_WHOLE)
        end_body(kernel, thread);
    struct body *body = thread->body;
    if (!body) {
        if (!(body = calloc(1, sizeof *body)))
            return NULL;
        if (!thread->stream) {
            if (!array_reserve(&kernel->births, &kernel->birth_capacity, kernel->birth_count + 1,
                               sizeof(struct thread *))) {
                free(body);
                return NULL;
            }
            uint32_t stream = ring_next_stream(kernel->ring);
            if (!map_put(&kernel->by_kernel_stream, stream, (uint64_t)(uintptr_t)thread)) {
                free(body);
                return NULL;
            }
            kernel->births[kernel->birth_count++] = thread;
            thread->stream = stream;
        }
        body->sequence = thread->sequence;
        body->base_depth = body->min_depth = thread->open;
        body->base_time = body->last_time = time;
        body->cpu = CPU_UNKNOWN;
        thread->body = body;
    }
    size_t before = body->capacity;
    if (!array_reserve(&body->bytes, &body->capacity, body->size + RECORD_MAX, 1))
        return NULL;
    kernel->live_bytes += body->capacity - before;
    uint8_t *p = body->bytes + body->size;
    if (body->cpu != cpu) {
        p = events_put_cpu(p, cpu);
        body->cpu = cpu;
    }
    return p;
}

/* The head of a record up to its depth, behind which values follow. `before`: calls that are open
 * before it. */
static uint8_t *put_head(struct thread *thread, uint8_t *p, uint64_t time, uint64_t elapsed,
                         bool has_elapsed, int32_t before)
{
    p = event_put(p, EVENT_TIME, time - thread->body->last_time);
    if (has_elapsed)
        p = event_put(p, EVENT_ELAPSED, elapsed);
    if (before != thread->open)
        p = event_put_depth(p, before);
    thread->body->last_time = time;
    return p;
}

static void end_record(struct kernel *kernel, struct thread *thread, uint8_t *record, uint8_t *end, int32_t open)
{
    struct body *body = thread->body;
    end = event_close(record, end);
    body->size = (size_t)(end - body->bytes);
    body->records++;
    thread->open = open;
    if (open < body->min_depth)
        body->min_depth = open;
    kernel->counts.events++;
}

/* The code of an event, which is defined with its first use. */
static uint32_t code_of(struct kernel *kernel, struct event_type *type)
{
    if (type->code)
        return type->code;
    struct event_type *pair = type->pair ? kernel->types[type->pair] : NULL;
    struct event_type *enter = type->role == KERNEL_EXIT && pair ? pair : type;
    if (!array_reserve(&kernel->used, &kernel->used_capacity, kernel->used_count + 1, sizeof *kernel->used))
        return 0;
    kernel->used[kernel->used_count++] = enter->format.id;
    type->code = ring_next_number(kernel->ring);
    if (pair)
        pair->code = type->code;
    return type->code;
}

bool kernel_next_code(struct kernel *kernel, uint32_t *number, uint32_t *id)
{
    if (kernel->used_given == kernel->used_count)
        return false;
    *id = kernel->used[kernel->used_given++];
    *number = kernel->types[*id]->code;
    return true;
}

static uint8_t *put_text(uint8_t *p, int field, const char *text, size_t size, uint32_t type)
{
    p = wire_put_bytes(p, field, text, size);
    return type ? event_put(p, VALUE_TYPE, type) : p;
}

static uint8_t *put_hex(const struct kernel *kernel, uint8_t *p, uint64_t number)
{
    char text[20];
    int size = snprintf(text, sizeof text, "0x%llx", (unsigned long long)number);
    return put_text(p, VALUE_REPR, text, (size_t)size, kernel->address_type);
}

/* Bytes up to a NUL as UTF-8: what is none becomes a question mark. */
static uint8_t *put_characters(uint8_t *p, const uint8_t *bytes, size_t length)
{
    char text[KERNEL_TEXT_MAX];
    size_t whole = 0, size = 0;

    while (whole < length && bytes[whole])
        whole++;
    while (size < whole && size < sizeof text) {
        text[size] = bytes[size] < 0x80 ? (char)bytes[size] : '?';
        size++;
    }
    p = wire_put_bytes(p, VALUE_TEXT, text, size);
    return size < whole ? event_put(p, VALUE_LENGTH, whole) : p;
}

static uint8_t *put_field(const struct kernel *kernel, uint8_t *p, const struct kernel_field *field,
                          const struct kernel_event *event)
{
    const uint8_t *bytes;
    size_t length;
    int64_t number;
    uint8_t *value = value_open(p, EVENT_VALUE);

    p = value;
    if (kernel_field_number(field, event->data, event->size, &number)) {
        if (field->shape == KERNEL_ADDRESS || (!field->is_signed && number < 0))
            p = put_hex(kernel, p, (uint64_t)number);
        else
            p = value_put_integer(p, number);
    } else if (!kernel_field_bytes(field, event->data, event->size, &bytes, &length)) {
        p = event_put(p, VALUE_CONSTANT, CONSTANT_CUT);
    } else if (field->shape == KERNEL_TEXT) {
        p = put_characters(p, bytes, length);
    } else {
        p = wire_put_bytes(p, VALUE_DATA, bytes, length < KERNEL_TEXT_MAX ? length : KERNEL_TEXT_MAX);
        if (length > KERNEL_TEXT_MAX)
            p = event_put(p, VALUE_LENGTH, length);
    }
    return value_close(value, p);
}

static uint8_t *put_result(const struct kernel *kernel, uint8_t *p, const struct event_type *type,
                           const struct kernel_event *event)
{
    int64_t number = 0;
    uint8_t *value;

    if (!type->result || !kernel_field_number(type->result, event->data, event->size, &number))
        return p;
    value = value_open(p, EVENT_VALUE);
    p = value;
    if (number < 0 && number >= -ERROR_LAST && (uint64_t)-number < kernel->error_count &&
        *kernel->errors[-number]) {
        char text[32];
        int size = snprintf(text, sizeof text, "-%s", kernel->errors[-number]);
        p = put_text(p, VALUE_REPR, text, (size_t)size, kernel->error_type);
    } else {
        p = value_put_integer(p, number);
    }
    return value_close(value, p);
}

/* Adds an event to a thread's stream. False: no memory. */
static bool add_record(struct kernel *kernel, struct thread *thread, struct event_type *type,
                       const struct kernel_event *event, int32_t cpu)
{
    uint64_t time = event->time >> ring_clock_shift(kernel->ring);
    uint32_t code = code_of(kernel, type);
    int32_t base;

    if (thread->body && time < thread->body->last_time)
        time = thread->body->last_time;
    reach(thread, time);
    if (thread->losses != kernel->losses) { /* the end of a call may be among them */
        thread->losses = kernel->losses;
        thread->call = 0;
    }
    base = thread->own > 0 ? thread->own : 0;
    uint8_t *p = code ? begin_record(kernel, thread, time, cpu) : NULL, *record = p;
    if (!p)
        return false;
    switch (type->role) {
    case KERNEL_ENTER:
        p = event_open(p, EVENT_CALL, code);
        p = put_head(thread, p, time, 0, false, base);
        for (uint32_t i = type->first_field; i < type->format.field_count; i++)
            p = put_field(kernel, p, &type->format.fields[i], event);
        thread->call = code;
        thread->call_time = time;
        end_record(kernel, thread, record, p, base + 1);
        return true;
    case KERNEL_EXIT: {
        bool known = thread->call == code;
        uint64_t elapsed = known ? time - thread->call_time : 0;
        p = event_open(p, EVENT_RETURN, code);
        p = put_head(thread, p, time, known && !elapsed ? 1 : elapsed, true, base + 1);
        p = put_result(kernel, p, type, event);
        thread->call = 0;
        end_record(kernel, thread, record, p, base);
        return true;
    }
    default:
        base += thread->call != 0;
        p = event_open(p, EVENT_HAPPENED, code);
        p = put_head(thread, p, time, 0, false, base);
        for (uint32_t i = 0; i < type->format.field_count; i++)
            p = put_field(kernel, p, &type->format.fields[i], event);
        end_record(kernel, thread, record, p, base);
        return true;
    }
}

static bool add_lost(struct kernel *kernel, struct processor *processor)
{
    struct thread *thread = processor->thread;
    uint64_t time = processor->page.time >> ring_clock_shift(kernel->ring);
    uint64_t count = processor->lost[processor->page_first];

    kernel->losses++;
    kernel->counts.lost += count;
    if (!count) /* they were told before */
        return true;
    if (thread->body && time < thread->body->last_time)
        time = thread->body->last_time;
    uint8_t *record = begin_record(kernel, thread, time, (int32_t)processor->number), *p;
    if (!record)
        return false;
    p = event_open(record, EVENT_LOST, count);
    p = put_head(thread, p, time, 0, false, 0);
    end_record(kernel, thread, record, p, 0);
    kernel->counts.events--;
    return true;
}

/* An event of this processor, to the streams that it stands in. False: no memory. */
static bool add_event(struct kernel *kernel, struct processor *processor)
{
    const struct kernel_event *event = &processor->event;
    struct event_type *type;
    struct thread *threads[TOLD_MAX + 1];
    uint32_t count = 0, tid;
    uint16_t id;

    if (event->size < sizeof id)
        return true;
    memcpy(&id, event->data, sizeof id);
    type = kernel->types[id];
    if (!type || type->format.pid_offset + sizeof tid > event->size)
        return true;
    memcpy(&tid, event->data + type->format.pid_offset, sizeof tid);
    struct thread *thread = find_thread(kernel, tid);
    /* an event that tells of others may have happened in a thread that is not recorded */
    if (!thread && tid && (kernel->all || !type->told_count) && !(thread = new_thread(kernel, tid, false)))
        return false;
    if (thread)
        threads[count++] = thread;
    for (uint32_t i = 0; i < type->told_count; i++) {
        int64_t number;
        if (!kernel_field_number(type->told[i], event->data, event->size, &number) || number <= 0 ||
            number > INT32_MAX || (uint32_t)number == tid)
            continue;
        struct thread *other = find_thread(kernel, (uint32_t)number);
        if (type->begins) {
            int64_t flags = 0;
            if (other && other->stream) { /* its number is used again */
                forget_tid(kernel, other);
                other->is_over = true;
                other = NULL;
            } /* else its own stream was seen before this */
            if (!other && !(other = new_thread(kernel, (uint32_t)number, false)))
                return false;
            other->parent = tid;
            if (type->flags)
                kernel_field_number(type->flags, event->data, event->size, &flags);
            other->is_process = !(flags & CLONE_THREAD_FLAG);
            continue;
        }
        if (!other && kernel->all && !(other = new_thread(kernel, (uint32_t)number, false)))
            return false;
        if (other)
            threads[count++] = other;
    }
    if (!count)
        threads[count++] = processor->thread;
    if (thread && type->ends)
        thread->ended = event->time;
    else if (thread && type->role == KERNEL_ENTER) /* exec in another thread gives it this number */
        thread->ended = 0;
    for (uint32_t i = 0; i < count && type->shown; i++)
        if (!add_record(kernel, threads[i], type, event, (int32_t)processor->number))
            return false;
    return true;
}

/* ---- pages -------------------------------------------------------------------------------- */

static uint8_t *take_page(struct kernel *kernel)
{
    return kernel->spare_count ? kernel->spare[--kernel->spare_count] : malloc(kernel->page_size);
}

static void give_page(struct kernel *kernel, uint8_t *page)
{
    if (kernel->spare_count < SPARE_MAX &&
        array_reserve(&kernel->spare, &kernel->spare_capacity, kernel->spare_count + 1, sizeof page))
        kernel->spare[kernel->spare_count++] = page;
    else
        free(page);
}

/* Events that were overwritten, from a line of `stats`. */
static bool read_overrun(int fd, uint64_t *overrun)
{
    static const char name[] = "overrun: ";
    char text[512];
    ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (size <= 0)
        return false;
    text[size] = '\0';
    const char *line = text;
    while (line && strncmp(line, name, sizeof name - 1))
        line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    if (!line)
        return false;
    *overrun = strtoull(line + sizeof name - 1, NULL, 10);
    return true;
}

/* The events lost before a page. A full page has no room for their number; `stats` has the sum,
 * perhaps with some of later losses, which are then not told again. */
static uint64_t lost_before(const struct kernel *kernel, struct processor *processor, const uint8_t *bytes,
                            size_t size)
{
    struct kernel_page page;
    uint64_t overrun, before = processor->overrun;

    if (!kernel_page_open(&page, &kernel->layout, bytes, size) || !page.has_missed)
        return 0;
    if (read_overrun(processor->stats_fd, &overrun)) {
        processor->overrun = overrun;
        return overrun > before ? overrun - before : 0;
    }
    return page.missed ? page.missed : 1;
}

void kernel_go_on(struct kernel *kernel)
{
    for (size_t i = 0; i < kernel->processor_count; i++)
        if (read_overrun(kernel->processors[i].stats_fd, &kernel->processors[i].overrun))
            kernel->counts.lost += kernel->processors[i].overrun;
}

static bool add_page(struct kernel *kernel, struct processor *processor, uint8_t *page, size_t size)
{
    if (processor->page_first == processor->page_count)
        processor->page_first = processor->page_count = 0;
    size_t count = processor->page_count + 1;
    if (!array_reserve(&processor->pages, &processor->page_capacity, count, sizeof page) ||
        !array_reserve(&processor->sizes, &processor->size_capacity, count, sizeof size) ||
        !array_reserve(&processor->lost, &processor->lost_capacity, count, sizeof *processor->lost))
        return false;
    processor->lost[processor->page_count] = lost_before(kernel, processor, page, size);
    processor->pages[processor->page_count] = page;
    processor->sizes[processor->page_count++] = size;
    return true;
}

int kernel_drain(struct kernel *kernel, size_t most)
{
    bool whole = true;

    perf_look_at_clock(&kernel->clock);
    uint64_t now = kernel->clock.now.ticks;

    for (size_t i = 0; i < kernel->processor_count; i++) {
        struct processor *processor = &kernel->processors[i];
        for (;;) {
            uint8_t *page;
            ssize_t size;
            if (kernel->counts.bytes + kernel->counts.waiting >= most) {
                whole = false;
                break;
            }
            if (!(page = take_page(kernel)))
                return -ENOMEM;
            do
                size = processor->perf
                           ? (ssize_t)perf_read(processor->perf, &kernel->clock, getpid(), page)
                           : read(processor->fd, page, kernel->page_size);
            while (size < 0 && errno == EINTR);
            if (size <= 0) {
                int error = errno;
                give_page(kernel, page);
                if (size < 0 && error != EAGAIN)
                    return -error;
                break;
            }
            if (!add_page(kernel, processor, page, (size_t)size)) {
                free(page);
                return -ENOMEM;
            }
            kernel->counts.bytes += kernel->page_size;
        }
    }
    if (whole) {
        kernel->certain = kernel->drain_time;
        kernel->drain_time = now;
    }
    return 0;
}

/* Finds the processor's next event. 1: it is in `event`; 0: there is none; negative: -ENOMEM. */
static int peek(struct kernel *kernel, struct processor *processor)
{
    while (!processor->has_event) {
        if (!processor->has_page) {
            if (processor->page_first == processor->page_count)
                return 0;
            if (!kernel_page_open(&processor->page, &kernel->layout, processor->pages[processor->page_first],
                                  processor->sizes[processor->page_first])) {
                kernel->counts.nonsense++;
                give_page(kernel, processor->pages[processor->page_first++]);
                kernel->counts.bytes -= kernel->page_size;
                continue;
            }
            processor->has_page = true;
            if (processor->page.has_missed && !add_lost(kernel, processor))
                return -ENOMEM;
        }
        int found = kernel_page_next(&processor->page, &processor->event);
        if (found > 0) {
            processor->has_event = true;
            break;
        }
        kernel->counts.nonsense += found < 0;
        give_page(kernel, processor->pages[processor->page_first++]);
        kernel->counts.bytes -= kernel->page_size;
        processor->has_page = false;
    }
    return 1;
}

/* The processor whose next event is the oldest one, or NULL; and the time of the next one of the
 * others. */
static int oldest(struct kernel *kernel, struct processor **first, uint64_t *others)
{
    *first = NULL;
    *others = UINT64_MAX;
    for (size_t i = 0; i < kernel->processor_count; i++) {
        struct processor *processor = &kernel->processors[i];
        int found = peek(kernel, processor);
        if (found < 0)
            return found;
        if (!found)
            continue;
        if (!*first || processor->event.time < (*first)->event.time) {
            if (*first)
                *others = (*first)->event.time;
            *first = processor;
        } else if (processor->event.time < *others) {
            *others = processor->event.time;
        }
    }
    return 0;
}

int kernel_make(struct kernel *kernel, bool all)
{
    uint64_t limit = all ? UINT64_MAX : kernel->certain, others;
    struct processor *first;

    for (;;) {
        int found = oldest(kernel, &first, &others);
        if (found < 0)
            return found;
        if (!first || first->event.time >= limit)
            break;
        do {
            if (!add_event(kernel, first))
                return -ENOMEM;
            first->has_event = false;
            if ((found = peek(kernel, first)) < 0)
                return found;
        } while (found && first->event.time <= others && first->event.time < limit);
    }
    bool crowded = kernel->live_bytes > LIVE_MOST;
    for (struct thread *thread = kernel->threads, *next; thread; thread = next) {
        next = thread->next;
        reach(thread, limit >> ring_clock_shift(kernel->ring));
        if (thread->ended && thread->ended + kernel->trailing < limit)
            thread->is_over = true;
        if (crowded || thread->is_over)
            end_body(kernel, thread);
        if (thread->is_over && !thread->whole && kernel->births_given == kernel->birth_count)
            retire(kernel, thread);
    }
    return 0;
}

/* ---- bodies ------------------------------------------------------------------------------- */

void kernel_first_body(struct kernel *kernel)
{
    kernel->giving = kernel->threads;
    kernel->given = NULL;
}

bool kernel_next_body(struct kernel *kernel, bool live, struct kernel_body *next)
{
    for (; kernel->giving; kernel->giving = kernel->giving->next, kernel->given = NULL) {
        const struct thread *thread = kernel->giving;
        struct body *body = NULL;
        if (!kernel->given)
            body = thread->whole;
        else if (kernel->given != thread->body)
            body = kernel->given->next;
        if (!body && kernel->given != thread->body && live && thread->body &&
            thread->body->records > thread->body->stored)
            body = thread->body;
        if (!body)
            continue;
        kernel->given = body;
        *next = (struct kernel_body){
            .stream = thread->stream, .sequence = body->sequence, .tid = thread->tid, .records = body->records,
            .whole = body != thread->body, .base_depth = body->base_depth, .min_depth = body->min_depth,
            .base_time = body->base_time, .last_time = body->last_time, .body = body->bytes, .size = body->size};
        return true;
    }
    return false;
}

void kernel_stored(struct kernel *kernel, uint32_t stream, uint32_t sequence, uint32_t records)
{
    uint64_t found = map_get(&kernel->by_kernel_stream, stream);
    if (!found || found == NOBODY)
        return;
    struct thread *thread = (struct thread *)(uintptr_t)found;
    if (thread->body && thread->body->sequence == sequence)
        thread->body->stored = records;
    for (struct body **place = &thread->whole, *body; (body = *place); place = &body->next) {
        if (body->sequence != sequence)
            continue;
        *place = body->next;
        if (!*place)
            thread->whole_end = place;
        kernel->counts.waiting -= body->size;
        body_free(body);
        return;
    }
}

void kernel_finish(struct kernel *kernel)
{
    for (struct thread *thread = kernel->threads; thread; thread = thread->next)
        end_body(kernel, thread);
}

void kernel_count(const struct kernel *kernel, struct kernel_counts *counts) { *counts = kernel->counts; }
