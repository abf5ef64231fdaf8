/* A recorded value as Python's repr would show it, and its type's name.
 *
 *   None True 'text' b'data' 1.5 [1, 2, ...] {'a': 1} <app.Order at 0x7f…> <function app.pay>
 *   Point((1, 2))   a subclass of a built-in type: its type's last name around the content
 *   ValueError('x') an exception: its type's last name and its args
 *   'abc'...        what was cut ends in `...`
 *   <redacted>
 *
 * No Python, no allocation.
 */
#ifndef PYTRACE_TEXT_H
#define PYTRACE_TEXT_H

#include "event.h"

/* Names of types by number; NULL where there is none. */
struct text_names {
    const char *(*type_name)(void *context, uint32_t number);
    void *context;
};

/* All write UTF-8 without any NUL and return the length of the whole, which may be more than
 * `capacity`: then what was written is cut at a character's boundary, and the up to three bytes
 * left over are NUL. */

/* The value's repr. Lone surrogates, control characters and whatever str.isprintable denies come
 * as \x, \u, \U escapes, as in repr. */
size_t text_value(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);

/* A string's bare content (NUL and lone surrogates as escapes; cut, it ends in `...`); of any other
 * value the same as text_value. */
size_t text_bare(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);

/* "int", "NoneType", "app.Order"; "" where it is not known. */
size_t text_type(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);

/* Any UTF-8 of a record, such as an event's name, shown on one line: escapes as in text_value. */
size_t text_plain(const uint8_t *bytes, size_t size, char *buffer, size_t capacity);

#endif
