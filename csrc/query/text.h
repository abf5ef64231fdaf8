/* A recorded value as Python's repr would show it, and its type's name.
 *
 *   None True 'text' b'data' 1.5 [1, 2, ...] {'a': 1} <app.Order at 0x7f…> <function app.pay>
 *   Point((1, 2))   a subclass of a built-in type: its type's last name around the content
 *   Point(x=1, y=2) a named tuple
 *   Decimal('1.5')  an object of a known type: see known.h
 *   ValueError('x') an exception: its type's last name and its args
 *   'abc'...        a cut text ends in `...`
 *   app.Order(user='bob', total=3)   an object with its attributes
 *   <redacted>
 *
 * No Python, no allocation.
 */
#ifndef PYTRACE_TEXT_H
#define PYTRACE_TEXT_H

#include "query/out.h"

/* Whether a value is an object with attributes: its items. */
static inline bool text_has_attributes(const struct value *value, const struct text_names *names)
{
    return value->content == VALUE_ADDRESS && value->item_count && names && names->attribute_name &&
           names->attribute_name(names->context, value->type, 0);
}

/* Walks the attributes of a value. Start with a zeroed walk. */
struct attribute_walk {
    uint32_t next;
    const uint8_t *items;
};

/* False: there are no more, or it has none. */
bool attribute_next(struct attribute_walk *walk, const struct value *value, const struct text_names *names,
                    struct string *name, struct value *item);

/* All of them write UTF-8 without any NUL, and return the length of the whole text, which may
 * exceed `capacity`. Then the text is cut at a character's boundary, and the rest, up to three
 * bytes, is NUL. */

/* The value's repr. Lone surrogates, control characters and whatever str.isprintable denies come
 * as \x, \u, \U escapes, as in repr. */
size_t text_value(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);

/* A string's bare content (NUL and lone surrogates as escapes; cut, it ends in `...`); an object
 * with attributes by its type and address, <app.Order at 0x7f…>; of any other value the same as
 * text_value: text_is_bare. */
size_t text_bare(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);

static inline bool text_is_bare(const struct value *value, const struct text_names *names)
{
    return value->content != VALUE_TEXT && !text_has_attributes(value, names);
}

/* "int", "NoneType", "app.Order"; "" if it is not known. */
size_t text_type(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);

/* Any UTF-8 of a record, such as an event's name, shown on one line: escapes as in text_value. */
size_t text_plain(const uint8_t *bytes, size_t size, char *buffer, size_t capacity);

#endif
