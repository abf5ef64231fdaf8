/* Records of lines; see lines.h. */

#include "record/lines.h"

#include "record/generators.h"
#include "record/records.h"
#include "record/variables.h"

/* What is known of a variable. */
struct known {
    PyObject *object; /* compared only: it may be gone */
    uint64_t hash;    /* of its value's bytes, see hash_of; 0: it was not bound */
};

/* What is known of a call. It belongs to the place of the call among the open calls, which later
 * calls use, too, and while a generator is suspended, to generators.h. */
struct call_lines {
    struct variables *variables; /* of the call's code; mostly compared only */
    const void *frame;     /* compared only; NULL: nothing is known yet */
    const uint8_t *behind; /* the end of its last record */
    uint64_t chunk;        /* the one that has all of its variables; see chunk_of */
    int line;              /* the line that runs; 0: none yet */
    uint32_t generator;    /* its number; 0: none yet */
    uint16_t room;         /* variables */
    bool unsure;           /* anything may have changed */
    struct known known[];  /* `room`; behind them two arrays of as many: numbers, marks */
};

static uint16_t *numbers_of(struct call_lines *lines) { return (uint16_t *)(lines->known + lines->room); }
static uint8_t *marks_of(struct call_lines *lines) { return (uint8_t *)(numbers_of(lines) + lines->room); }

/* Chunks are counted in each stream. */
static uint64_t chunk_of(const struct thread *thread)
{
    return (uint64_t)thread->stream.id << 32 | thread->stream.sequence;
}

/* ---- hashes --------------------------------------------------------------------------------- */

#define HASH_DEEP 1 /* a value with parts, which may change in place */
#define HASH_BOUND 2

/* A hash of a value's bytes, for which all that counts is that others differ. Its lowest bits say
 * more. */
static uint64_t hash_of(const uint8_t *p, const uint8_t *end, bool deep)
{
    uint64_t hash = (uint64_t)(end - p) * 0x9E3779B97F4A7C15u, word;
    for (; end - p >= 8; p += 8) {
        memcpy(&word, p, 8);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    word = 0;
    for (int shift = 0; p < end; shift += 8)
        word |= (uint64_t)*p++ << shift;
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
    return (hash & ~(uint64_t)(HASH_DEEP | HASH_BOUND)) | (deep ? HASH_DEEP : 0) | HASH_BOUND;
}

/* ---- what is known of a call ---------------------------------------------------------------- */

/* The call's own; NULL: what is there is another call's, as this one began unseen. */
static struct call_lines *own_lines(const struct open_call *call, const struct variables *variables)
{
    struct call_lines *lines = call->lines;
    bool own = lines != NULL && lines->variables == variables && lines->room >= variables->count;
    return own ? lines : NULL;
}

/* A new call's. */
static struct call_lines *lines_of(struct open_call *call, unsigned count)
{
    struct call_lines *lines = call->lines;
    if (lines != NULL && lines->room >= count)
        return lines;
    unsigned room = count < 8 ? 8 : (count + 7) & ~7u;
    lines = PyMem_RawCalloc(1, sizeof *lines + room * (sizeof(struct known) + sizeof(uint16_t) + 1));
    if (lines == NULL)
        return NULL;
    lines->room = (uint16_t)room;
    PyMem_RawFree(call->lines);
    call->lines = lines;
    return lines;
}

/* The call of this code at this place is a new one. NULL: memory is short. */
static struct call_lines *begin(struct open_call *call, struct variables *variables)
{
    struct call_lines *lines = lines_of(call, variables->count);
    if (lines == NULL)
        return NULL;
    lines->variables = variables;
    lines->frame = NULL;
    lines->line = 0;
    lines->generator = 0;
    lines->chunk = 0;
    memset(lines->known, 0, variables->count * sizeof lines->known[0]);
    return lines;
}

/* A value with parts, which may change in place? */
static bool is_deep(PyObject *object)
{
    enum type_kind kind = (enum type_kind)types_info(Py_TYPE(object))->kind;
    return kind == KIND_ATTRIBUTES || (kind >= KIND_TUPLE && kind <= KIND_KNOWN);
}

/* The arguments as they stand in the call's record, from `p` to `end`. */
static void know_arguments(struct call_lines *lines, const struct code_info *info, const compat_frame *frame,
                           const uint8_t *p, const uint8_t *end)
{
    const struct argument *argument = info->arguments;
    uint64_t size;
    for (unsigned left = info->argument_count; left > 0 && p < end; left--, argument++) {
        const uint8_t *value = p, *body = wire_get_varint(p + 1, end, &size);
        if (body == NULL)
            return;
        p = body + size;
        PyObject *object = compat_frame_local(frame, argument->slot);
        if (!argument->special && object != NULL && argument->slot < lines->variables->count)
            lines->known[argument->slot] = (struct known){object, hash_of(value, p, is_deep(object))};
    }
}

void lines_began(struct thread *thread, struct open_call *call, const struct code_info *info,
                 const compat_frame *frame, ptrdiff_t values)
{
    struct call_lines *lines = begin(call, info->more->variables);
    if (lines == NULL || values < 0)
        return;
    lines->chunk = chunk_of(thread);
    if (frame != NULL && !values_config.repr)
        know_arguments(lines, info, frame, thread->stream.next - values, thread->stream.next);
}

void lines_resumed(struct open_call *call, const struct code_info *info, const compat_frame *frame)
{
    struct variables *variables = info->more->variables;
    void **kept = generators_kept(frame);
    struct call_lines *lines;
    if (kept != NULL && *kept != NULL) {
        void *other = call->lines;
        call->lines = *kept;
        *kept = other;
        if ((lines = own_lines(call, variables)) != NULL) {
            lines->behind = NULL; /* other code has run */
            return;
        }
    }
    begin(call, variables);
}

void lines_suspended(struct open_call *call, const compat_frame *frame)
{
    void **kept = generators_kept(frame);
    if (kept == NULL)
        return;
    void *other = *kept;
    *kept = call->lines;
    call->lines = other;
}

uint8_t *lines_put_suspended(uint8_t *p, struct open_call *call, const struct code_info *info)
{
    static uint32_t generators; /* numbers given so far */
    struct call_lines *lines = own_lines(call, info->more->variables);
    if (lines == NULL)
        return p;
    if (lines->generator == 0)
        lines->generator = ++generators;
    return event_put(p, EVENT_GENERATOR, lines->generator);
}

uint8_t *lines_put_resumed(uint8_t *p, const struct code_info *info, const compat_frame *frame)
{
    void **kept = generators_kept(frame);
    const struct call_lines *lines = kept != NULL ? *kept : NULL;
    if (lines == NULL || lines->variables != info->more->variables)
        return p;
    return event_put(p, EVENT_GENERATOR, lines->generator);
}

/* ---- a record ------------------------------------------------------------------------------- */

/* A record in the making. */
struct writer {
    struct call_lines *lines;
    const struct variables *variables;
    const compat_frame *frame;
    uint8_t *p, *end;
    uint16_t *numbers;
    uint32_t count, changed;
    bool full;
};

/* Bytes of the fields behind the values. */
static size_t tail_size(unsigned count) { return (size_t)count * 2 + 16; }

/* Writes a value, which stays if the bytes are not those known. False: there is no room. */
static bool put_value(struct writer *writer, unsigned number, PyObject *object, bool only_changed, bool keep)
{
    const struct variable *variable = &writer->variables->all[number];
    struct known *known = &writer->lines->known[number];
    uint8_t *p = writer->p, *limit = writer->end - tail_size(writer->count + 1);
    if (limit - p < 2 * VALUE_ROOM_MIN) {
        writer->full = true;
        return false;
    }
    bool deep = false;
    uint8_t *end;
    if (object == NULL) {
        end = values_put_constant(p, EVENT_VALUE, CONSTANT_DELETED);
        *known = (struct known){NULL, 0};
    } else {
        if (variable->redacted) {
            end = values_put_redacted(p, EVENT_VALUE, object);
        } else if ((end = values_put_simple(p, limit, EVENT_VALUE, object, KIND_OBJECT)) == NULL) {
            deep = is_deep(object);
            end = values_put(p, limit, EVENT_VALUE, object);
        }
        if (keep) {
            uint64_t hash = hash_of(p, end, deep);
            if (variable->redacted)
                hash ^= (uint64_t)(uintptr_t)object & ~(uint64_t)(HASH_DEEP | HASH_BOUND);
            bool same = hash == known->hash;
            *known = (struct known){object, hash};
            if (only_changed && same)
                return true;
        }
    }
    writer->p = end;
    writer->numbers[writer->count++] = (uint16_t)number;
    return true;
}

static PyObject *value_of(const struct writer *writer, unsigned number)
{
    return variables_value((struct variable *)&writer->variables->all[number], writer->frame);
}

enum mark { UNKNOWN, MAY_DIFFER, WRITTEN };

static void mark(struct writer *writer, const struct line_stores *line)
{
    uint8_t *marks = marks_of(writer->lines);
    const uint16_t *stored = writer->variables->stored + line->first;
    for (uint16_t i = 0; i < line->count; i++)
        marks[stored[i]] = MAY_DIFFER;
}

/* The variables that were set or deleted, or that hold something that has changed in place.
 * `runs`: other code may have run. */
static void put_changed(struct writer *writer, const struct line_stores *line, bool runs)
{
    struct call_lines *lines = writer->lines;
    unsigned count = writer->variables->count;
    uint8_t *marks = marks_of(lines);
    bool in_place = line->effects & LINE_IN_PLACE, all = lines->unsure;

    mark(writer, line);
    mark(writer, variables_no_line(writer->variables));
    for (unsigned number = 0; number < count; number++) {
        struct known *known = &lines->known[number];
        PyObject *object = value_of(writer, number);
        if (object == known->object && marks[number] != MAY_DIFFER && !all)
            continue;
        if ((object == NULL && known->hash == 0) || put_value(writer, number, object, true, true)) {
            runs |= in_place && marks[number] == MAY_DIFFER && known->hash & HASH_DEEP;
            marks[number] = WRITTEN;
        }
    }
    for (unsigned number = 0; runs && !all && number < count; number++) {
        if (!(lines->known[number].hash & HASH_DEEP) || marks[number] == WRITTEN)
            continue;
        PyObject *object = value_of(writer, number);
        if (object != NULL)
            put_value(writer, number, object, true, true);
    }
    memset(marks, UNKNOWN, count);
    writer->changed = writer->count;
    lines->unsure = writer->full;
}

/* All others, for readers who have this chunk alone. */
static void put_others(struct writer *writer)
{
    uint8_t *marks = marks_of(writer->lines);
    unsigned count = writer->variables->count;
    for (uint32_t i = 0; i < writer->changed; i++)
        marks[writer->numbers[i]] = WRITTEN;
    for (unsigned number = 0; number < count; number++) {
        PyObject *object = marks[number] == WRITTEN ? NULL : value_of(writer, number);
        if (object != NULL)
            put_value(writer, number, object, false, false);
    }
    memset(marks, UNKNOWN, count);
    writer->full = false;
}

/* Before its first line: all that is not known from the call's record, if that is in this chunk. */
static void put_first(struct writer *writer, bool key)
{
    struct call_lines *lines = writer->lines;
    unsigned count = writer->variables->count;
    if (lines->frame != NULL) /* of another call */
        memset(lines->known, 0, count * sizeof lines->known[0]);
    for (unsigned number = 0; number < count; number++) {
        PyObject *object = value_of(writer, number);
        const struct known *known = &lines->known[number];
        if (object == NULL || (!key && known->object == object && known->hash != 0))
            continue;
        uint8_t *p = writer->p;
        uint32_t before = writer->count;
        if (put_value(writer, number, object, false, true) && !key && writer->variables->all[number].argument) {
            writer->p = p;
            writer->count = before;
        }
    }
    lines->unsure = writer->full;
}

static uint8_t *put_tail(const struct writer *writer)
{
    uint8_t *p = writer->p;
    if (writer->count == 0)
        return p;
    p = wire_open(p, EVENT_VARIABLE);
    uint8_t *body = p;
    for (uint32_t i = 0; i < writer->count; i++)
        p = wire_put_short(p, writer->numbers[i]);
    p = wire_close(body, p);
    if (writer->changed < writer->count) {
        p = wire_put_varint(p, WIRE_TAG(EVENT_CHANGED, WIRE_VARINT));
        p = wire_put_varint(p, writer->changed);
    }
    return p;
}

/* As in record_head; the kind's tag takes two bytes. */
static uint8_t *put_head(uint8_t *p, const struct code_info *info, uint64_t delta)
{
    p[0] = info->head[0];
    p[2] = (uint8_t)(WIRE_TAG(EVENT_AT_LINE, WIRE_VARINT) | 0x80);
    p[3] = WIRE_TAG(EVENT_AT_LINE, WIRE_VARINT) >> 7;
    memcpy(p + 4, info->head + CODE_HEAD_KIND + 1, 8);
    return wire_put_short(p + 1 + info->head_size, delta);
}

#define ROOM_MOST (RING_MIN_CHUNK_SIZE / 2 - EVENT_HEAD_MAX)

static size_t room_for(size_t values, size_t tail)
{
    size_t room = EVENT_HEAD_MAX + tail + values * (values_config.most + 2 * VALUE_ROOM_MIN);
    return room < ROOM_MOST ? room : ROOM_MOST;
}

/* Writes the record of a line. `always`: even if nothing has changed. */
static void record(struct thread *thread, struct call_lines *lines, const struct code_info *info,
                   const compat_frame *frame, int line, uint64_t time, bool always, bool depth_changed)
{
    const struct variables *variables = info->more->variables;
    unsigned count = recorder.values ? variables->count : 0;
    const struct line_stores *stores = variables_line(variables, lines->line);
    bool first = lines->frame != frame;
    bool runs = stores->effects & LINE_RUNS || lines->behind != thread->stream.next;
    bool key = lines->chunk != chunk_of(thread);
    size_t tail = tail_size(count);
    size_t few = (size_t)stores->count + (runs ? 4 : 1);
    size_t values = key || first || lines->unsure || values_config.repr || few > count ? count : few;
    size_t room = room_for(values, tail);
    struct place place = record_reserve(thread, room, record_least(room, EVENT_HEAD_MAX + tail + 4 * VALUE_ROOM_MIN));
    if (UNLIKELY(place.start == NULL)) {
        lines->unsure = true;
        lines->frame = frame;
        if (first)
            memset(lines->known, 0, count * sizeof lines->known[0]);
        return;
    }
    key = lines->chunk != chunk_of(thread);
    uint8_t *p = put_head(place.start, info, time - thread->stream.time);
    p = event_put(p, EVENT_LINE, (uint64_t)line);
    if (UNLIKELY(depth_changed))
        p = event_put_depth(p, thread->stream.depth);
    if (!always)
        p = event_put(p, EVENT_TRAILING, 1);
    struct writer writer = {
        .lines = lines, .variables = variables, .frame = frame, .p = p,
        .end = (thread->outside != NULL ? place.end : thread->stream.end) - WIRE_CLOSE_MAX,
        .numbers = numbers_of(lines),
    };
    if (count > 0) {
        if (UNLIKELY(first))
            put_first(&writer, key);
        else
            put_changed(&writer, stores, runs);
        if (UNLIKELY(key) && !first)
            put_others(&writer);
    }
    lines->frame = frame;
    if (!always && writer.changed == 0) {
        record_abandon(thread);
        return;
    }
    record_commit(thread, place.start, put_tail(&writer), time);
    lines->chunk = chunk_of(thread);
    lines->behind = thread->stream.next;
}

void lines_reached(struct thread *thread, PyCodeObject *code, const struct code_info *info,
                   const compat_frame *frame, int line, uint64_t time)
{
    struct open_call *call = thread->top - 1;
    bool depth_changed = false;
    if (UNLIKELY(call->code != code)) { /* calls above it ended unseen, or it was not recorded */
        while (call > thread->calls && call->code != code)
            call--;
        if (call == thread->calls)
            return;
        thread->stream.depth -= (int32_t)(thread->top - (call + 1));
        thread->top = call + 1;
        stream_went_down(&thread->stream);
        depth_changed = true;
    }
    struct call_lines *lines = own_lines(call, info->more->variables);
    if (UNLIKELY(lines == NULL))
        return;
    record(thread, lines, info, frame, line, time, true, depth_changed);
    lines->line = line;
}

void lines_before_end(struct thread *thread, struct open_call *call, const struct code_info *info,
                      const compat_frame *frame, uint64_t time)
{
    struct call_lines *lines = own_lines(call, info->more->variables);
    if (lines == NULL || frame == NULL || lines->frame != frame || lines->line == 0 || !recorder.values)
        return;
    record(thread, lines, info, frame, lines->line, time, false, false);
}
