/* The writers of a value's text; see out.h. */
#include "query/out.h"

#include "common/utf8.h"
#include "query/number.h"
#include "query/unprintable.h" /* made by core_build.py: what str.isprintable denies */

static const char hex[] = "0123456789abcdef";

/* ASCII: may be cut anywhere. */
void out_put(struct out *out, const char *text, size_t size)
{
    if (out->length < out->capacity) {
        size_t room = out->capacity - out->length;
        memcpy(out->buffer + out->length, text, size < room ? size : room);
    }
    out->length += size;
}

void out_string(struct out *out, const char *text) { out_put(out, text, strlen(text)); }

/* One character beyond ASCII: all of it or nothing, and then nothing more. */
void out_character(struct out *out, const uint8_t *utf8, size_t size)
{
    if (out->length < out->capacity && out->capacity - out->length < size) {
        memset(out->buffer + out->length, 0, out->capacity - out->length);
        out->capacity = out->length;
    }
    out_put(out, (const char *)utf8, size);
}

static void out_hex(struct out *out, char letter, uint32_t code, int digits)
{
    char text[10] = {'\\', letter};
    for (int i = 0; i < digits; i++)
        text[2 + i] = hex[code >> 4 * (digits - 1 - i) & 15];
    out_put(out, text, 2 + (size_t)digits);
}

/* ---- strings and bytes -------------------------------------------------------------------- */

static bool is_printable(uint32_t code)
{
    size_t low = 0, high = sizeof unprintable / sizeof *unprintable;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > unprintable[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    /* the last range ends at the last code point */
    return code < unprintable[low].first;
}

static void put_escape(struct out *out, uint32_t code)
{
    if (code == '\n' || code == '\r' || code == '\t')
        out_string(out, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
    else if (code <= 0xff)
        out_hex(out, 'x', code, 2);
    else if (code <= 0xffff)
        out_hex(out, 'u', code, 4);
    else
        out_hex(out, 'U', code, 8);
}

void out_text(struct out *out, const uint8_t *p, size_t size, enum escapes escapes, char quote)
{
    const uint8_t *end = size ? p + size : p; /* p may be NULL when there is nothing */
    while (p < end) {
        /* as is: most of most texts */
        const uint8_t *run = p;
        while (p < end && *p >= ' ' && *p < 0x7f && !(escapes == IN_QUOTES && (*p == '\\' || *p == quote)))
            p++;
        out_put(out, (const char *)run, (size_t)(p - run));
        if (p == end)
            break;
        if (*p < 0x80) {
            if (*p >= ' ' && *p < 0x7f)
                out_put(out, (char[]){'\\', (char)*p}, 2);
            else if (escapes == BARE && *p)
                out_put(out, (const char *)p, 1);
            else
                put_escape(out, *p);
            p++;
            continue;
        }
        uint32_t code;
        size_t length = utf8_get(p, end, &code);
        if (!length) {
            out_character(out, (const uint8_t *)"\xef\xbf\xbd", 3); /* U+FFFD */
            p++;
        } else {
            bool surrogate = code >= 0xd800 && code <= 0xdfff;
            if (surrogate || (escapes != BARE && !is_printable(code)))
                put_escape(out, code);
            else
                out_character(out, p, length);
            p += length;
        }
    }
}

/* ' unless that would need escapes that " does not. */
static char quote_for(const uint8_t *bytes, size_t size)
{
    return size && memchr(bytes, '\'', size) && !memchr(bytes, '"', size) ? '"' : '\'';
}

void out_quoted(struct out *out, const uint8_t *bytes, size_t size)
{
    char quote = quote_for(bytes, size);
    out_put(out, &quote, 1);
    out_text(out, bytes, size, IN_QUOTES, quote);
    out_put(out, &quote, 1);
}

void out_data(struct out *out, const uint8_t *bytes, size_t size)
{
    char quote = quote_for(bytes, size);
    out_put(out, (char[]){'b', quote}, 2);
    for (size_t i = 0; i < size; i++) {
        char c = (char)bytes[i];
        if (c == quote || c == '\\')
            out_put(out, (char[]){'\\', c}, 2);
        else if (bytes[i] >= ' ' && bytes[i] < 0x7f)
            out_put(out, &c, 1);
        else
            put_escape(out, bytes[i]);
    }
    out_put(out, &quote, 1);
}

/* ---- types -------------------------------------------------------------------------------- */

const char *out_type_name(const struct value *value, const struct text_names *names)
{
    return value->type && names ? names->type_name(names->context, value->type) : NULL;
}

/* The whole name, or its last part, as __name__ and __qualname__ have it. */
void out_type(struct out *out, const char *name, bool last)
{
    const char *dot = name && last ? strrchr(name, '.') : NULL;
    if (!name)
        name = "?";
    if (dot)
        name = dot + 1;
    out_text(out, (const uint8_t *)name, strlen(name), ONE_LINE, 0);
}

/* ---- numbers ------------------------------------------------------------------------------ */

void out_integer(struct out *out, int64_t n)
{
    char text[NUMBER_INTEGER_MAX];
    out_put(out, text, number_integer(n, text));
}
