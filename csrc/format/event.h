/* Records: the encoder for the hook and the decoder for readers, side by side. proto/trace.proto
 * explains each field; the numbers below are its numbers.
 *
 * A record in a chunk is one element of `Events.event`:
 *
 *   0a LEN | KIND<<3 CODE | 50 TIME | [58 ELAPSED] [60 LINE] [68 DEPTH] [90 02 01] [98 02 GENERATOR]
 *            ^ field `what`: its number is the kind, its value the code's number (lost: a count)
 *
 *          | 72 LEN value ... | 7a LEN name ...
 *
 * Between two records there may be an element of `Events.task` or `Events.cpu`, whose events
 * follow:
 *
 *   12 LEN name
 *   18 CPU+1                            0: not known
 *
 * For example the call f(1, 'ab') of code 7, 300 units after the record before, in task "t":
 *
 *   12 01 74                             task "t"
 *   0a 0f                                a record of 15 bytes
 *      08 07                             call, code 7
 *      50 ac 02                          time 300
 *      72 02  10 02                      value: integer 1 (zigzag)
 *      72 04  22 02 61 62                value: text "ab"
 *
 * its return of None 5 units later, and 2 lost records:
 *
 *   0a 08  10 07  50 05  72 02 08 00     return, code 7; time 5, which is also what it took; None
 *   0a 04  48 02  50 00                  lost, 2; time 0
 *
 * line 12 of code 7, before which variable 1 became 5:
 *
 *   0a 0f  80 01 07  50 01  60 0c  72 02 10 0a  82 02 01 01
 *          ^ kind 16: its tag takes two bytes   ^ field 32, packed: variable 1
 *
 * the same line, as the function ends: what it changed. The field `trailing` stands before the
 * values, so that a reader of heads alone need not pass them:
 *
 *   0a 12  80 01 07  50 01  60 0c  90 02 01  72 02 10 0a  82 02 01 01
 *                                  ^ field 34
 *
 * something that happened on processor 2, of code 9, with the field 5:
 *
 *   18 03                                processor 2
 *   0a 09  88 01 09  50 01  72 02 10 0a
 *
 * and a record of a later version's kind, which this version skips:
 *
 *   0a 05  90 01 07  50 01               kind 18, code 7; time 1
 *
 * No Python, no allocation, no atomics.
 */
#ifndef PYTRACE_EVENT_H
#define PYTRACE_EVENT_H

#include "format/wire.h"

/* Field numbers of Event.what; also SQL's and JSON's kinds, in this order (event_kind_name). Later
 * versions have more, to 31; 10 to 15 are other fields. */
enum event_kind {
    EVENT_CALL = 1,
    EVENT_RETURN = 2,
    EVENT_EXCEPTION = 3,
    EVENT_YIELD = 4,
    EVENT_RESUME = 5,
    EVENT_THROW = 6,
    EVENT_RAISE = 7,
    EVENT_LOG = 8,
    EVENT_LOST = 9,
    EVENT_AT_LINE = 16,
    EVENT_HAPPENED = 17,
    EVENT_KNOWN_END, /* one behind the last one that this version knows */
};

enum { EVENT_KINDS = 32 }; /* the size of arrays by kind, and of masks of 1 << kind */

/* Masks: the kinds that this version knows, and all possible kinds. */
#define EVENT_KNOWN ((2u << EVENT_LOST) - (1u << EVENT_CALL) + (1u << EVENT_AT_LINE) + (1u << EVENT_HAPPENED))
#define EVENT_LATER 0xfffc0000u
#define EVENT_ANY (EVENT_KNOWN | EVENT_LATER)

static inline bool event_is_known(enum event_kind kind) { return EVENT_KNOWN >> kind & 1; }

enum event_field {
    EVENT_TIME = 10,
    EVENT_ELAPSED = 11,
    EVENT_LINE = 12,
    EVENT_DEPTH = 13,
    EVENT_VALUE = 14,
    EVENT_NAME = 15,
    EVENT_VARIABLE = 32,
    EVENT_CHANGED = 33,
    EVENT_TRAILING = 34,
    EVENT_GENERATOR = 35,
};

enum value_field {
    VALUE_CONSTANT = 1,
    VALUE_INTEGER = 2,
    VALUE_FLOATING = 3,
    VALUE_TEXT = 4,
    VALUE_DATA = 5,
    VALUE_BIG = 6,
    VALUE_CONTAINER = 7,
    VALUE_ADDRESS = 8,
    VALUE_NAMED = 9,
    VALUE_ITEM = 10,
    VALUE_TYPE = 11,
    VALUE_LENGTH = 12,
    VALUE_REPR = 13,
    VALUE_NAME = 14,
    VALUE_FORM = 16,
    VALUE_KEYWORD = 17,
};

enum value_constant {
    CONSTANT_NONE,
    CONSTANT_FALSE,
    CONSTANT_TRUE,
    CONSTANT_ELLIPSIS,
    CONSTANT_NOT_IMPLEMENTED,
    CONSTANT_REDACTED,
    CONSTANT_CUT,
    CONSTANT_UNBOUND,
    CONSTANT_CYCLE,
    CONSTANT_DELETED,
};

enum value_container {
    CONTAINER_LIST,
    CONTAINER_TUPLE,
    CONTAINER_DICT,
    CONTAINER_SET,
    CONTAINER_FROZENSET,
    CONTAINER_EXCEPTION,
    CONTAINER_PARTS,
};

enum value_form {
    FORM_NONE,
    FORM_CALL,
    FORM_QUALIFIED,
    FORM_SEQUENCE,
    FORM_MAPPING,
    FORM_PAIRS,
    FORM_COUNTER,
    FORM_STATE,
    FORM_STATE_LIST,
    FORM_ENUM,
    FORM_DATE,
    FORM_TIME,
    FORM_DATETIME,
    FORM_TIMEDELTA,
    FORM_TIMEZONE,
    FORM_DECIMAL,
    FORM_UUID,
    FORM_COMPLEX,
    FORM_PATH,
    FORM_PATTERN,
    FORM_MATCH,
    FORM_REFERENCE,
    FORM_OBJECT,
    FORM_LOCK,
    FORM_FRAME,
    FORM_CODE,
    FORM_THREAD,
    FORM_IPV4,
    FORM_IPV6,
    FORM_ARRAY,
    FORM_BUFFER,
};

enum value_named { NAMED_FUNCTION, NAMED_METHOD, NAMED_BUILTIN, NAMED_CLASS, NAMED_MODULE };

/* ---- encoder ------------------------------------------------------------------------------ */

#define EVENTS_EVENT 1       /* field number of Events.event */
#define EVENTS_TASK 2        /* and of Events.task */
#define EVENTS_CPU 3         /* and of Events.cpu */
#define TASK_NAME_MAX 200    /* bytes of a task's name that are recorded */
#define EVENTS_TASK_MAX (TASK_NAME_MAX + 3)
#define EVENTS_CPU_MAX 6
#define CPU_UNKNOWN (-1)
#define EVENT_HEAD_MAX 64    /* bytes of a record without its values and names, at most */

/* A varint field. Its number is mostly a constant for the compiler; tags from 16 on take two
 * bytes. */
static inline uint8_t *event_put(uint8_t *p, int field, uint64_t n)
{
    *p++ = (uint8_t)(WIRE_TAG(field, WIRE_VARINT) | (field >= 16 ? 0x80 : 0));
    if (field >= 16)
        *p++ = (uint8_t)(field >> 4);
    return wire_put_varint(p, n);
}

/* Opens a record. Its fields follow in the order of their numbers (but `trailing` and `generator`
 * before the values), then event_close. `what`: the code's number, or the count of a lost
 * record. */
static inline uint8_t *event_open(uint8_t *p, enum event_kind kind, uint64_t what)
{
    p = wire_open(p, EVENTS_EVENT);
    return event_put(p, (int)kind, what);
}

static inline uint8_t *event_put_depth(uint8_t *p, int32_t depth)
{
    return event_put(p, EVENT_DEPTH, wire_zigzag(depth));
}

/* The name of the task whose events follow. */
static inline uint8_t *events_put_task(uint8_t *p, const char *name, size_t size)
{
    return wire_put_bytes(p, EVENTS_TASK, name, size);
}

/* The processor of the events that follow; CPU_UNKNOWN: not known. */
static inline uint8_t *events_put_cpu(uint8_t *p, int32_t cpu)
{
    return event_put(p, EVENTS_CPU, (uint64_t)(cpu + (int64_t)1));
}

/* `record`: the position given to event_open. Returns the end of the record. */
static inline uint8_t *event_close(uint8_t *record, uint8_t *end)
{
    return wire_close(record + 2, end);
}

/* Values. Each is written between value_open and value_close; `field` is EVENT_VALUE, or VALUE_ITEM
 * inside a container. */
static inline uint8_t *value_open(uint8_t *p, int field) { return wire_open(p, field); }
static inline uint8_t *value_close(uint8_t *body, uint8_t *end) { return wire_close(body, end); }

static inline uint8_t *value_put_integer(uint8_t *p, int64_t n)
{
    return event_put(p, VALUE_INTEGER, wire_zigzag(n));
}

static inline uint8_t *value_put_floating(uint8_t *p, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, 8);
    *p++ = WIRE_TAG(VALUE_FLOATING, WIRE_FIXED64);
    return wire_put_fixed64(p, bits);
}

static inline uint8_t *value_put_address(uint8_t *p, const void *address)
{
    *p++ = WIRE_TAG(VALUE_ADDRESS, WIRE_FIXED64);
    return wire_put_fixed64(p, (uint64_t)(uintptr_t)address);
}

/* ---- decoder ------------------------------------------------------------------------------ */

/* The errors of a decoder, which otherwise returns a count of bytes. */
enum decode_error {
    DECODE_TRUNCATED = -1, /* the record goes on behind the end */
    DECODE_MALFORMED = -2, /* wrong wire type, a number too large, no kind */
};

struct event {
    enum event_kind kind; /* perhaps of a later version: event_is_known */
    bool is_trailing;     /* a line that has run; event_head looks before the values alone */
    bool has_later;       /* it has fields of a later version; event_head does not look */
    uint32_t code;        /* 0: none */
    uint32_t line;        /* 0: none given */
    uint32_t generator;   /* 0: none given; event_head looks before the values alone */
    uint64_t count;       /* of a lost record */
    uint64_t time;        /* units since the record before */
    bool has_elapsed;
    uint64_t elapsed;     /* units; 0: unknown */
    bool has_depth;
    int32_t depth;
    uint32_t value_count;
    uint32_t name_count;
    /* The record's fields from the first of those that are walked; event_value, event_name and
     * event_variables do. */
    const uint8_t *fields, *fields_end;
};

struct value {
    enum value_field content;  /* which field below counts; 0: none, or one of a later version */
    enum value_constant constant;
    int64_t integer;
    double floating;
    const uint8_t *bytes;      /* text, data, big, repr; of `named` the name */
    size_t size;
    const uint8_t *keyword;    /* of an item of CONTAINER_PARTS; NULL: none */
    size_t keyword_size;
    enum value_container container;
    enum value_named named;
    uint64_t address;
    uint32_t type;             /* 0: the content tells */
    bool has_length;
    uint64_t length;           /* of the whole, if it was cut */
    uint32_t form;             /* enum value_form, or one of a later version */
    uint32_t item_count;
    const uint8_t *fields, *fields_end; /* value_item walks them */
};

/* "call", "return", ... as in SQL and JSON; NULL for an unknown kind. */
const char *event_kind_name(int kind);

/* Decodes the record at `data`. Returns its size in bytes, or a decode_error. Checks the whole
 * record with all its values (nested no deeper than VALUE_DEPTH_MAX), so that the walkers below
 * cannot fail. Unknown fields and kinds are skipped, as protobuf demands: the caller sees them in
 * `has_later` and `kind`. */
#define VALUE_DEPTH_MAX 8
long event_decode(const uint8_t *data, size_t size, struct event *event);

/* Like event_decode, without reading values, for callers that only count or skip. The walkers below
 * then return false at the first value that cannot be read. */
long event_skim(const uint8_t *data, size_t size, struct event *event);

/* Like event_skim, but it ends at the first value: value_count and name_count stay 0, though
 * event_value and event_name walk the values and names. It is for callers that read very many
 * records and few of their values. It relies on the order in which event_open and the other writers
 * put fields; a record that begins otherwise goes to event_skim. */
static inline __attribute__((always_inline)) long event_head(const uint8_t *data, size_t size,
                                                             struct event *event)
{
    const uint8_t *p, *end;
    uint64_t n;
    size_t length;

    if (size < 4 || data[0] != WIRE_TAG(EVENTS_EVENT, WIRE_BYTES))
        return event_skim(data, size, event);
    if (data[1] < 0x80) {
        length = data[1];
        p = data + 2;
    } else if (data[2] < 0x80) {
        length = (data[1] & 0x7fu) | (size_t)data[2] << 7;
        p = data + 3;
    } else {
        return event_skim(data, size, event);
    }
    if (!length || length > size - (size_t)(p - data))
        return event_skim(data, size, event);
    end = p + length;

    uint32_t tag = *p++;
    /* from kind 16 on the tag has two bytes; its first byte is the kind's number, too */
    if (tag >= 0x80 && (p == end || *p++ != 1))
        return event_skim(data, size, event);
    if ((tag & 7) != WIRE_VARINT || !(EVENT_ANY >> (tag >> 3) & 1))
        return event_skim(data, size, event);
    p = wire_get_varint(p, end, &n);
    if (!p)
        return event_skim(data, size, event);
    event->kind = (enum event_kind)(tag >> 3);
    event->code = 0;
    event->count = 0;
    if (event->kind == EVENT_LOST)
        event->count = n;
    else if (n <= UINT32_MAX)
        event->code = (uint32_t)n;
    else
        return event_skim(data, size, event);
    event->time = event->elapsed = 0;
    event->has_elapsed = event->has_depth = event->is_trailing = event->has_later = false;
    event->line = event->generator = 0;
    event->depth = 0;
    if (p < end && *p == WIRE_TAG(EVENT_TIME, WIRE_VARINT))
        p = wire_get_varint(p + 1, end, &event->time);
    if (p && p < end && *p == WIRE_TAG(EVENT_ELAPSED, WIRE_VARINT)) {
        event->has_elapsed = true;
        p = wire_get_varint(p + 1, end, &event->elapsed);
    }
    if (p && p < end && *p == WIRE_TAG(EVENT_LINE, WIRE_VARINT)) {
        p = wire_get_varint(p + 1, end, &n);
        if (!p || n > UINT32_MAX)
            return event_skim(data, size, event);
        event->line = (uint32_t)n;
    }
    if (p && p < end && *p == WIRE_TAG(EVENT_DEPTH, WIRE_VARINT)) {
        p = wire_get_varint(p + 1, end, &n);
        if (!p || n > UINT32_MAX)
            return event_skim(data, size, event);
        event->has_depth = true;
        event->depth = (int32_t)wire_unzigzag(n);
    }
    if (!p || (p < end && *p != WIRE_TAG(EVENT_VALUE, WIRE_BYTES) && *p != WIRE_TAG(EVENT_NAME, WIRE_BYTES)))
        return event_skim(data, size, event);
    event->value_count = event->name_count = 0;
    event->fields = p < end ? p : NULL;
    event->fields_end = end;
    return (long)(end - data);
}

/* Walk the values (names) of a decoded event: start with *cursor = NULL. False at the end. */
bool event_value(const struct event *event, const uint8_t **cursor, struct value *value);
bool event_name(const struct event *event, const uint8_t **cursor, const uint8_t **name, size_t *size);
bool value_item(const struct value *value, const uint8_t **cursor, struct value *item);

/* The variables that the values of an at_line are of, in the order of the values; and how many of
 * the values, from the first one on, were set or deleted: `changed`. Start with event_variables.
 * False: there are no more. */
struct event_variables {
    const uint8_t *next, *end;
    uint32_t changed; /* UINT32_MAX: all */
};
void event_variables(const struct event *event, struct event_variables *walk);
bool event_variable(struct event_variables *walk, uint32_t *variable);

#endif
