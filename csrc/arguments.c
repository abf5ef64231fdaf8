/* An event's arguments as JSON; see arguments.h. */
#include "arguments.h"

#include <stdlib.h>

bool text_reserve(struct text_buffer *buffer, size_t more)
{
    size_t capacity = buffer->capacity ? buffer->capacity : 256;
    if (buffer->capacity - buffer->size >= more)
        return true;
    while (capacity - buffer->size < more)
        capacity *= 2;
    char *text = realloc(buffer->text, capacity);
    if (!text)
        return false;
    buffer->text = text;
    buffer->capacity = capacity;
    return true;
}

bool text_append(struct text_buffer *buffer, text_writer *write, const struct value *value,
                 const struct text_names *names)
{
    size_t size = 0;
    do {
        if (!text_reserve(buffer, size ? size : 64))
            return false;
        size = write(value, names, buffer->text + buffer->size, buffer->capacity - buffer->size);
    } while (size > buffer->capacity - buffer->size);
    buffer->size += size;
    return true;
}

bool text_append_plain(struct text_buffer *buffer, struct string name)
{
    size_t size = 0;
    do {
        if (!text_reserve(buffer, size ? size : 64))
            return false;
        size = text_plain((const uint8_t *)name.text, name.size, buffer->text + buffer->size,
                          buffer->capacity - buffer->size);
    } while (size > buffer->capacity - buffer->size);
    buffer->size += size;
    return true;
}

bool argument_next(struct argument_walk *walk, const struct event *event, const struct run_code *code,
                   struct argument *argument)
{
    struct string given = {"", 0};
    const uint8_t *name;

    if (event->kind == EVENT_LOST) {
        if (walk->next)
            return false;
        argument->value = (struct value){.content = VALUE_INTEGER};
        argument->value.integer = event->count > INT64_MAX ? INT64_MAX : (int64_t)event->count;
    } else {
        if (!event->fields || !event_value(event, &walk->values, &argument->value))
            return false;
        /* names belong to the values after the first; walk->names NULL: at the first of them */
        if (event->kind == EVENT_LOG && walk->next && (walk->next == 1 || walk->names) &&
            event_name(event, &walk->names, &name, &given.size))
            given.text = (const char *)name;
        else
            given.size = 0;
    }
    argument->position = walk->next++;
    argument->name =
        run_argument_name(code, event->kind, argument->position, given, walk->number);
    return true;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static const char hex[] = "0123456789abcdef";

static char *put_unit(char *p, uint32_t unit)
{
    *p++ = '\\';
    *p++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *p++ = hex[unit >> shift & 15];
    return p;
}

/* Decodes the character at p, which is beyond ASCII; what is no UTF-8 is U+FFFD. */
static const uint8_t *get_character(const uint8_t *p, const uint8_t *end, uint32_t *code)
{
    size_t size = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 1;
    uint32_t read = size == 1 ? 0 : *p & (0x7fu >> size);
    bool good = size > 1 && *p < 0xf8 && (size_t)(end - p) >= size;
    for (size_t i = 1; good && i < size; i++) {
        good = (p[i] & 0xc0) == 0x80;
        read = read << 6 | (p[i] & 0x3f);
    }
    good = good && read <= 0x10ffff;
    *code = good ? read : 0xfffd;
    return p + (good ? size : 1);
}

bool string_is_utf8(struct string string)
{
    const uint8_t *p = (const uint8_t *)string.text, *end = p + string.size;
    while (p < end) {
        uint32_t code = *p;
        const uint8_t *next = code < 0x80 ? p + 1 : get_character(p, end, &code);
        if ((code >= 0xd800 && code <= 0xdfff) || (code == 0xfffd && next == p + 1))
            return false;
        p = next;
    }
    return true;
}

/* A JSON string in ASCII. */
static bool put_json(struct text_buffer *buffer, const char *text, size_t size)
{
    const uint8_t *from = (const uint8_t *)text, *end = from + size;
    char *p;

    if (!text_reserve(buffer, 6 * size + 2)) /* a byte needs at most six */
        return false;
    p = buffer->text + buffer->size;
    *p++ = '"';
    while (from < end) {
        uint8_t c = *from;
        if (c >= ' ' && c < 0x7f) {
            if (c == '"' || c == '\\')
                *p++ = '\\';
            *p++ = (char)c;
            from++;
        } else if (c < 0x80) {
            const char *letter = c == '\n' ? "n" : c == '\r' ? "r" : c == '\t' ? "t" : c == '\b' ? "b" : c == '\f' ? "f" : NULL;
            if (letter) {
                *p++ = '\\';
                *p++ = *letter;
            } else {
                p = put_unit(p, c);
            }
            from++;
        } else {
            uint32_t code;
            from = get_character(from, end, &code);
            if (code > 0xffff) {
                p = put_unit(p, 0xd800 + ((code - 0x10000) >> 10));
                code = 0xdc00 + ((code - 0x10000) & 0x3ff);
            }
            p = put_unit(p, code);
        }
    }
    *p++ = '"';
    buffer->size = (size_t)(p - buffer->text);
    return true;
}

static bool put_plain(struct text_buffer *buffer, const char *text)
{
    size_t size = strlen(text);
    if (!text_reserve(buffer, size))
        return false;
    memcpy(buffer->text + buffer->size, text, size);
    buffer->size += size;
    return true;
}

/* Turns what stands behind `start` into a JSON string. */
static bool quote_from(struct text_buffer *buffer, size_t start)
{
    size_t size = buffer->size - start;
    bool plain = true;

    for (size_t i = start; i < buffer->size && plain; i++) {
        uint8_t c = (uint8_t)buffer->text[i];
        plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    }
    if (plain) {
        if (!text_reserve(buffer, 2))
            return false;
        memmove(buffer->text + start + 1, buffer->text + start, size);
        buffer->text[start] = buffer->text[start + 1 + size] = '"';
        buffer->size += 2;
        return true;
    }
    char *copy = malloc(size);
    if (!copy)
        return false;
    memcpy(copy, buffer->text + start, size);
    buffer->size = start;
    bool done = put_json(buffer, copy, size);
    free(copy);
    return done;
}

static bool put_text(struct text_buffer *buffer, text_writer *write, const struct value *value,
                     const struct text_names *names)
{
    size_t start = buffer->size;
    return text_append(buffer, write, value, names) && quote_from(buffer, start);
}

bool arguments_json(struct text_buffer *buffer, const struct event *event, const struct run_code *code,
                    const struct text_names *names)
{
    struct argument_walk walk = {0};
    struct argument argument;

    if (!put_plain(buffer, "["))
        return false;
    while (argument_next(&walk, event, code, &argument))
        if (!put_plain(buffer, argument.position ? ", {\"name\": " : "{\"name\": ") ||
            !put_json(buffer, argument.name.text, argument.name.size) || !put_plain(buffer, ", \"value\": ") ||
            !put_text(buffer, text_value, &argument.value, names) ||
            !put_plain(buffer, ", \"type\": ") || !put_text(buffer, text_type, &argument.value, names) ||
            !put_plain(buffer, "}"))
            return false;
    return put_plain(buffer, "]");
}
