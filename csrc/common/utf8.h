/* UTF-8, one character at a time. Lone surrogates are characters, too: a str of Python's may have
 * them.
 */
#ifndef PYTRACE_UTF8_H
#define PYTRACE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_MAX 4 /* bytes of a character */

/* The bytes that utf8_put writes. */
static inline size_t utf8_size(uint32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

/* Writes a code point of up to 0x10ffff; returns its size in bytes. */
static inline size_t utf8_put(uint8_t *out, uint32_t code)
{
    switch (utf8_size(code)) {
    case 1:
        out[0] = (uint8_t)code;
        return 1;
    case 2:
        out[0] = (uint8_t)(0xc0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    case 3:
        out[0] = (uint8_t)(0xe0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    default:
        out[0] = (uint8_t)(0xf0 | code >> 18);
        out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        out[3] = (uint8_t)(0x80 | (code & 0x3f));
        return 4;
    }
}

/* Reads the character at p, before `end`. Returns its size in bytes; 0: it is no UTF-8. */
static inline size_t utf8_get(const uint8_t *p, const uint8_t *end, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = *p < 0x80 ? 1 : *p >= 0xf8 ? 0 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 0;

    *code = *p;
    if (size < 2 || (size_t)(end - p) < size)
        return size < 2 ? size : 0;
    *code = *p & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    return *code < smallest[size] || *code > 0x10ffff ? 0 : size;
}

#endif
