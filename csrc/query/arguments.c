/* An event's arguments as JSON; see arguments.h. */
#include "query/arguments.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/utf8.h"

bool text_reserve(struct text_buffer *buffer, size_t more)
{
    return array_reserve(&buffer->text, &buffer->capacity, buffer->size + more, 1);
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

/* The next variable of a line. */
static bool variable_next(struct argument_walk *walk, const struct event *event, const struct run_code *code,
                          struct argument *argument)
{
    uint32_t number;

    if (!walk->next)
        event_variables(event, &walk->variables);
    if (walk->next >= walk->variables.changed || !event_value(event, &walk->values, &argument->value))
        return false;
    bool known = event_variable(&walk->variables, &number);
    argument->position = walk->next++;
    argument->name = run_variable_name(code, known ? number : argument->position, known, walk->number);
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
        argument->value.integer = saturate_signed(event->count);
    } else {
        if (!event->fields)
            return false;
        if (event->kind == EVENT_AT_LINE)
            return variable_next(walk, event, code, argument);
        if (!event_value(event, &walk->values, &argument->value))
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

bool string_is_utf8(struct string string)
{
    const uint8_t *p = (const uint8_t *)string.text, *end = p + string.size;
    while (p < end) {
        uint32_t code = *p;
        size_t size = code < 0x80 ? 1 : utf8_get(p, end, &code);
        if (!size || (code >= 0xd800 && code <= 0xdfff))
            return false;
        p += size;
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
            static const char letters[] = {
                ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r',
            };
            if (c < sizeof letters && letters[c]) {
                *p++ = '\\';
                *p++ = letters[c];
            } else {
                p = put_unit(p, c);
            }
            from++;
        } else {
            uint32_t code;
            size_t read = utf8_get(from, end, &code);
            from += read ? read : 1;
            if (!read)
                code = 0xfffd;
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

/* Turns the text behind `start` into a JSON string. */
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

/* The members name, value and type of an object, which stays open. */
static bool put_value(struct text_buffer *buffer, bool is_first, struct string name, const struct value *value,
                      const struct text_names *names)
{
    return put_plain(buffer, is_first ? "{\"name\": " : ", {\"name\": ") &&
           put_json(buffer, name.text, name.size) && put_plain(buffer, ", \"value\": ") &&
           put_text(buffer, text_value, value, names) && put_plain(buffer, ", \"type\": ") &&
           put_text(buffer, text_type, value, names);
}

static bool put_attributes(struct text_buffer *buffer, const struct value *value, const struct text_names *names)
{
    struct attribute_walk walk = {0};
    struct string name;
    struct value item;

    if (!put_plain(buffer, ", \"attributes\": ["))
        return false;
    while (attribute_next(&walk, value, names, &name, &item))
        if (!put_value(buffer, walk.next == 1, name, &item, names) || !put_plain(buffer, "}"))
            return false;
    return put_plain(buffer, "], \"object\": ") && put_text(buffer, text_bare, value, names);
}

bool arguments_json(struct text_buffer *buffer, const struct event *event, const struct run_code *code,
                    const struct text_names *names)
{
    struct argument_walk walk = {0};
    struct argument argument;

    if (!put_plain(buffer, "["))
        return false;
    while (argument_next(&walk, event, code, &argument))
        if (!put_value(buffer, !argument.position, argument.name, &argument.value, names) ||
            (text_has_attributes(&argument.value, names) && !put_attributes(buffer, &argument.value, names)) ||
            !put_plain(buffer, "}"))
            return false;
    return put_plain(buffer, "]");
}

/* "[0]", "['key']", "user": as one would write it behind the value. */
static bool put_item_name(struct text_buffer *buffer, const struct value *value, const struct value *key,
                          const struct string *name, uint32_t position, const struct text_names *names)
{
    char number[16];

    if (name)
        return put_json(buffer, name->text, name->size);
    size_t start = buffer->size;
    if (!put_plain(buffer, "["))
        return false;
    if (value->container == CONTAINER_DICT) {
        if (!text_append(buffer, text_value, key, names))
            return false;
    } else {
        snprintf(number, sizeof number, "%u", position);
        if (!put_plain(buffer, number))
            return false;
    }
    return put_plain(buffer, "]") && quote_from(buffer, start);
}

static bool put_item(struct text_buffer *buffer, const struct value *value, const struct value *key,
                     const struct string *name, uint32_t position, const struct value *item,
                     const struct text_names *names)
{
    return put_plain(buffer, position ? ", {\"name\": " : "{\"name\": ") &&
           put_item_name(buffer, value, key, name, position, names) && put_plain(buffer, ", \"value\": ") &&
           put_text(buffer, text_value, item, names) && put_plain(buffer, ", \"type\": ") &&
           put_text(buffer, text_type, item, names) &&
           (!value_has_items(item, names) ||
            (put_plain(buffer, ", \"items\": ") && items_json(buffer, item, names))) &&
           put_plain(buffer, "}");
}

bool value_has_items(const struct value *value, const struct text_names *names)
{
    if (value->content == VALUE_ADDRESS)
        return text_has_attributes(value, names);
    return value->content == VALUE_CONTAINER && value->container != CONTAINER_PARTS && value->item_count;
}

bool items_json(struct text_buffer *buffer, const struct value *value, const struct text_names *names)
{
    bool pairs = value->container == CONTAINER_DICT && value->content == VALUE_CONTAINER;
    struct attribute_walk attributes = {0};
    const uint8_t *cursor = NULL;
    struct string name;
    struct value key = {0}, item;
    uint32_t position = 0;

    if (!put_plain(buffer, "["))
        return false;
    if (value->content == VALUE_ADDRESS) {
        while (attribute_next(&attributes, value, names, &name, &item))
            if (!put_item(buffer, value, NULL, &name, position++, &item, names))
                return false;
    } else {
        while ((!pairs || value_item(value, &cursor, &key)) && value_item(value, &cursor, &item)) {
            bool named = value->container == CONTAINER_TUPLE && value->type && names && names->field_name;
            const struct string *field =
                named ? names->field_name(names->context, value->type, position) : NULL;
            if (!put_item(buffer, value, &key, field, position++, &item, names))
                return false;
        }
    }
    return put_plain(buffer, "]");
}
