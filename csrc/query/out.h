/* The writers of a value's text: what text.c and known.c share. Everything goes through `struct
 * out`, which counts what does not fit. */
#ifndef PYTRACE_OUT_H
#define PYTRACE_OUT_H

#include "format/event.h"

/* UTF-8, not NUL-terminated by contract. */
struct string {
    const char *text;
    size_t size;
};

/* Names of types by number, and of the items of named tuples and the attributes of objects; NULL if
 * there is none. The last two functions may be missing. */
struct text_names {
    const char *(*type_name)(void *context, uint32_t number);
    void *context;
    const struct string *(*field_name)(void *context, uint32_t type, uint32_t position);
    const struct string *(*attribute_name)(void *context, uint32_t type, uint32_t position);
};

struct out {
    char *buffer;
    size_t capacity; /* shrinks to what is written once something did not fit */
    size_t length;   /* of the whole */
    /* Writes any value: one inside another. */
    void (*value)(struct out *out, const struct value *value, const struct text_names *names);
};

/* The characters that are escaped besides lone surrogates and NUL. */
enum escapes {
    BARE,      /* nothing */
    ONE_LINE,  /* what is not printable */
    IN_QUOTES, /* the backslash and the quote, too */
};

/* ASCII: may be cut anywhere. */
void out_put(struct out *out, const char *text, size_t size);
void out_string(struct out *out, const char *text);
void out_text(struct out *out, const uint8_t *p, size_t size, enum escapes escapes, char quote);
/* As repr shows a str, and bytes. */
void out_quoted(struct out *out, const uint8_t *bytes, size_t size);
void out_data(struct out *out, const uint8_t *bytes, size_t size);
void out_integer(struct out *out, int64_t n);
/* The name of the value's type; NULL if it has none. */
const char *out_type_name(const struct value *value, const struct text_names *names);
/* The whole name, or its last part, as __name__ and __qualname__ have it. */
void out_type(struct out *out, const char *name, bool last);

#endif
