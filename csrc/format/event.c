/* The decoder of records; event.h has the layout and the encoder.
 *
 * The input may be anything: a chunk that a dying program scribbled over, a file from elsewhere. So
 * each byte is checked to lie inside of the record before it is read.
 */
#include "format/event.h"

/* Lengths beyond this are nonsense, as for protobuf itself. */
#define BYTES_MAX INT32_MAX

const char *event_kind_name(int kind)
{
    static const char *const names[EVENT_KINDS] = {
        [EVENT_CALL] = "call",     [EVENT_RETURN] = "return", [EVENT_EXCEPTION] = "exception",
        [EVENT_YIELD] = "yield",   [EVENT_RESUME] = "resume", [EVENT_THROW] = "throw",
        [EVENT_RAISE] = "raise",   [EVENT_LOG] = "log",       [EVENT_LOST] = "lost",
        [EVENT_AT_LINE] = "line",  [EVENT_HAPPENED] = "event",
    };
    return kind >= 0 && kind < EVENT_KINDS ? names[kind] : NULL;
}

/* The length and then the bytes of a field; returns the position behind them, or NULL. */
static inline const uint8_t *get_bytes(const uint8_t *p, const uint8_t *end, const uint8_t **data,
                                       size_t *size)
{
    uint64_t length;
    p = wire_get_varint(p, end, &length);
    if (!p || length > BYTES_MAX || length > (uint64_t)(end - p))
        return NULL;
    *data = p;
    *size = (size_t)length;
    return p + length;
}

/* The next length-delimited field of this number; returns the position behind it, or NULL if there
 * is no more. */
static const uint8_t *find_bytes(const uint8_t *p, const uint8_t *end, uint32_t field,
                                 const uint8_t **data, size_t *size)
{
    while (p && p < end) {
        uint32_t tag;
        p = wire_get_tag(p, end, &tag);
        if (p && tag == WIRE_TAG(field, WIRE_BYTES))
            return get_bytes(p, end, data, size);
        if (p)
            p = wire_skip(p, end, tag);
    }
    return NULL;
}

/* ---- values ------------------------------------------------------------------------------- */

static bool is_varint(uint32_t field)
{
    return field == VALUE_CONSTANT || field == VALUE_INTEGER || field == VALUE_CONTAINER ||
           field == VALUE_NAMED || field == VALUE_TYPE || field == VALUE_LENGTH || field == VALUE_FORM;
}

/* False: a constant, container or named thing of a later version is unknown content. */
static bool set_varint(struct value *value, uint32_t field, uint64_t n)
{
    bool known = true;

    switch (field) {
    case VALUE_CONSTANT:
        if ((known = n <= CONSTANT_DELETED))
            value->constant = (enum value_constant)n;
        break;
    case VALUE_INTEGER:
        value->integer = wire_unzigzag(n);
        break;
    case VALUE_CONTAINER:
        if ((known = n <= CONTAINER_PARTS))
            value->container = (enum value_container)n;
        break;
    case VALUE_NAMED:
        if ((known = n <= NAMED_MODULE))
            value->named = (enum value_named)n;
        break;
    case VALUE_TYPE:
        if (n > UINT32_MAX)
            return false;
        value->type = (uint32_t)n;
        return true;
    case VALUE_FORM:
        if (n > UINT32_MAX)
            return false;
        value->form = (uint32_t)n;
        return true;
    default: /* VALUE_LENGTH: 0 is the same as absent */
        value->length = n;
        value->has_length = n != 0;
        return true;
    }
    value->content = known ? (enum value_field)field : 0;
    return true;
}

/* Reads a value's own fields, and counts its items without reading them. */
static bool value_read(const uint8_t *p, const uint8_t *end, struct value *value)
{
    const uint8_t *name = NULL;
    size_t name_size = 0;

    memset(value, 0, sizeof *value);
    value->fields_end = end;
    while (p < end) {
        const uint8_t *start = p, *data;
        uint32_t tag, field;
        uint64_t n;
        size_t size;

        p = wire_get_tag(p, end, &tag);
        if (!p)
            return false;
        field = tag >> 3;
        if (is_varint(field)) {
            if ((tag & 7) != WIRE_VARINT)
                return false;
            p = wire_get_varint(p, end, &n);
            if (!p || !set_varint(value, field, n))
                return false;
        } else if (field == VALUE_FLOATING || field == VALUE_ADDRESS) {
            if ((tag & 7) != WIRE_FIXED64)
                return false;
            p = wire_get_fixed64(p, end, &n);
            if (!p)
                return false;
            value->content = (enum value_field)field;
            if (field == VALUE_ADDRESS)
                value->address = n;
            else
                memcpy(&value->floating, &n, 8);
        } else if (field <= VALUE_NAME) { /* text, data, big, item, repr, name */
            if ((tag & 7) != WIRE_BYTES)
                return false;
            p = get_bytes(p, end, &data, &size);
            if (!p)
                return false;
            if (field == VALUE_ITEM) {
                if (!value->fields)
                    value->fields = start;
                value->item_count++;
            } else if (field == VALUE_NAME) {
                name = data;
                name_size = size;
            } else {
                value->content = (enum value_field)field;
                value->bytes = data;
                value->size = size;
            }
        } else if (tag == WIRE_TAG(VALUE_KEYWORD, WIRE_BYTES)) {
            p = get_bytes(p, end, &value->keyword, &value->keyword_size);
            if (!p)
                return false;
        } else {
            p = wire_skip(p, end, tag);
            if (!p)
                return false;
        }
    }
    if (value->content == VALUE_NAMED) {
        value->bytes = name;
        value->size = name_size;
    }
    return true;
}

/* True if the value and everything in it can be read, nested no deeper than VALUE_DEPTH_MAX. */
static bool value_check(const uint8_t *p, const uint8_t *end, int depth)
{
    struct value value;
    const uint8_t *item;
    size_t size;

    if (depth > VALUE_DEPTH_MAX || !value_read(p, end, &value))
        return false;
    if (!value.item_count)
        return true;
    p = value.fields;
    while ((p = find_bytes(p, end, VALUE_ITEM, &item, &size)))
        if (!value_check(item, item + size, depth + 1))
            return false;
    return true;
}

/* ---- events ------------------------------------------------------------------------------- */

static inline bool set_event(struct event *event, uint32_t field, uint64_t n)
{
    switch (field) {
    case EVENT_TIME:
        event->time = n;
        return true;
    case EVENT_ELAPSED:
        event->has_elapsed = true;
        event->elapsed = n;
        return true;
    case EVENT_LINE:
        event->line = (uint32_t)n;
        return n <= UINT32_MAX;
    case EVENT_DEPTH:
        event->has_depth = true;
        event->depth = (int32_t)wire_unzigzag(n);
        return n <= UINT32_MAX;
    case EVENT_TRAILING:
        event->is_trailing = n != 0;
        return true;
    case EVENT_GENERATOR:
        event->generator = (uint32_t)n;
        return n <= UINT32_MAX;
    case EVENT_LOST:
        event->kind = EVENT_LOST;
        event->code = 0;
        event->count = n;
        return true;
    default:
        event->kind = (enum event_kind)field;
        event->code = (uint32_t)n;
        event->count = 0;
        return n <= UINT32_MAX;
    }
}

/* A kind of a later version; its value is a code's number, too, if it is one. Returns the position
 * behind it, or NULL. */
static const uint8_t *set_later(struct event *event, const uint8_t *p, const uint8_t *end, uint32_t tag)
{
    uint64_t n = 0;

    p = (tag & 7) == WIRE_VARINT ? wire_get_varint(p, end, &n) : wire_skip(p, end, tag);
    event->kind = (enum event_kind)(tag >> 3);
    event->code = n <= UINT32_MAX ? (uint32_t)n : 0;
    event->count = 0;
    return p;
}

/* The position behind the field `variable` or `changed`; NULL: not as the hook writes it. */
static const uint8_t *pass_variables(const uint8_t *p, const uint8_t *end, uint32_t tag)
{
    const uint8_t *data;
    size_t size;
    uint64_t n;

    if (tag == WIRE_TAG(EVENT_CHANGED, WIRE_VARINT)) {
        p = wire_get_varint(p, end, &n);
        return p && n <= UINT32_MAX ? p : NULL;
    }
    if (tag != WIRE_TAG(EVENT_VARIABLE, WIRE_BYTES) || !(p = get_bytes(p, end, &data, &size)))
        return NULL;
    for (end = data + size; data < end;)
        if (!(data = wire_get_varint(data, end, &n)) || n > UINT32_MAX)
            return NULL;
    return p;
}

/* The position of the record's first byte behind its length, and its end; or a decode_error. */
static inline long open_record(const uint8_t *data, size_t size, const uint8_t **body)
{
    const uint8_t *end, *p;
    uint64_t tag, length;

    if (!size)
        return DECODE_TRUNCATED;
    end = data + size;
    p = wire_get_varint(data, end, &tag);
    if (!p)
        return size < WIRE_VARINT_MAX ? DECODE_TRUNCATED : DECODE_MALFORMED;
    if (tag != WIRE_TAG(EVENTS_EVENT, WIRE_BYTES))
        return DECODE_MALFORMED;
    *body = wire_get_varint(p, end, &length);
    if (!*body)
        return end - p < WIRE_VARINT_MAX ? DECODE_TRUNCATED : DECODE_MALFORMED;
    if (length > BYTES_MAX)
        return DECODE_MALFORMED;
    if (length > (uint64_t)(end - *body))
        return DECODE_TRUNCATED;
    return (long)(*body - data) + (long)length;
}

static inline __attribute__((always_inline)) long decode(const uint8_t *data, size_t size,
                                                         struct event *event, bool with_values)
{
    const uint8_t *p, *end;
    long total = open_record(data, size, &p);

    memset(event, 0, sizeof *event);
    if (total < 0)
        return total;
    end = data + total;
    event->fields_end = end;
    while (p < end) {
        const uint8_t *start = p, *bytes;
        uint32_t tag, field;
        uint64_t n;
        size_t length;

        p = wire_get_tag(p, end, &tag);
        if (!p)
            return DECODE_MALFORMED;
        field = tag >> 3;
        if (field <= EVENT_DEPTH || field == EVENT_AT_LINE || field == EVENT_HAPPENED ||
            field == EVENT_TRAILING || field == EVENT_GENERATOR) {
            if ((tag & 7) != WIRE_VARINT)
                return DECODE_MALFORMED;
            p = wire_get_varint(p, end, &n);
            if (!p || !set_event(event, field, n))
                return DECODE_MALFORMED;
        } else if (field <= EVENT_NAME) {
            if ((tag & 7) != WIRE_BYTES)
                return DECODE_MALFORMED;
            p = get_bytes(p, end, &bytes, &length);
            if (!p)
                return DECODE_MALFORMED;
            if (!event->fields)
                event->fields = start;
            if (field == EVENT_NAME)
                event->name_count++;
            else
                event->value_count++;
            if (with_values && field == EVENT_VALUE && !value_check(bytes, bytes + length, 1))
                return DECODE_MALFORMED;
        } else if (field < EVENT_KINDS) {
            p = set_later(event, p, end, tag);
            if (!p)
                return DECODE_MALFORMED;
        } else if (field <= EVENT_CHANGED) {
            if (!event->fields)
                event->fields = start;
            p = pass_variables(p, end, tag);
            if (!p)
                return DECODE_MALFORMED;
        } else {
            event->has_later = true;
            p = wire_skip(p, end, tag);
            if (!p)
                return DECODE_MALFORMED;
        }
    }
    return event->kind ? total : DECODE_MALFORMED;
}

long event_decode(const uint8_t *data, size_t size, struct event *event)
{
    return decode(data, size, event, true);
}

long event_skim(const uint8_t *data, size_t size, struct event *event)
{
    return decode(data, size, event, false);
}

bool event_value(const struct event *event, const uint8_t **cursor, struct value *value)
{
    const uint8_t *data;
    size_t size;

    *cursor = find_bytes(*cursor ? *cursor : event->fields, event->fields_end, EVENT_VALUE, &data, &size);
    return *cursor && value_read(data, data + size, value);
}

bool event_name(const struct event *event, const uint8_t **cursor, const uint8_t **name, size_t *size)
{
    *cursor = find_bytes(*cursor ? *cursor : event->fields, event->fields_end, EVENT_NAME, name, size);
    return *cursor;
}

void event_variables(const struct event *event, struct event_variables *walk)
{
    const uint8_t *p = event->fields, *end = event->fields_end, *data;
    size_t size;
    uint64_t n;

    *walk = (struct event_variables){.changed = UINT32_MAX};
    while (p && p < end) {
        uint32_t tag;
        p = wire_get_tag(p, end, &tag);
        if (p && tag == WIRE_TAG(EVENT_VARIABLE, WIRE_BYTES)) {
            if ((p = get_bytes(p, end, &data, &size))) {
                walk->next = data;
                walk->end = data + size;
            }
        } else if (p && tag == WIRE_TAG(EVENT_CHANGED, WIRE_VARINT)) {
            if ((p = wire_get_varint(p, end, &n)))
                walk->changed = (uint32_t)n;
        } else if (p) {
            p = wire_skip(p, end, tag);
        }
    }
}

bool event_variable(struct event_variables *walk, uint32_t *variable)
{
    uint64_t n;

    if (!walk->next || walk->next >= walk->end)
        return false;
    if (!(walk->next = wire_get_varint(walk->next, walk->end, &n)))
        return false;
    *variable = (uint32_t)n;
    return true;
}

bool value_item(const struct value *value, const uint8_t **cursor, struct value *item)
{
    const uint8_t *data;
    size_t size;

    *cursor = find_bytes(*cursor ? *cursor : value->fields, value->fields_end, VALUE_ITEM, &data, &size);
    return *cursor && value_read(data, data + size, item);
}
