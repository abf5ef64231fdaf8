/* The protobuf wire format: varints, tags, fixed-width words, length-delimited fields.
 * Writers come with their readers. No Python, no allocation.
 *
 *   varint        7 bits a byte, the lowest first, 80 set on all but the last:  300 is ac 02
 *   zigzag        signed as varint:  0 -1 1 -2 is 00 01 02 03
 *   tag           a varint, field number << 3 | wire type:  field 1 of bytes is 0a, field 16, a varint, 80 01
 *   bytes         tag, length, bytes:  text "ab" in field 4 is 22 02 61 62
 *   fixed64       8 bytes, the lowest first:  the double 1.0 is 00 00 00 00 00 00 f0 3f
 *
 * Writers take a position and return the one behind the written bytes; the caller makes sure that
 * there is room. Readers never read at or beyond `end`.
 */
#ifndef PYTRACE_WIRE_H
#define PYTRACE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define WIRE_TAG(field, type) (((field) << 3) | (type))
#define WIRE_VARINT_MAX 10 /* bytes of the longest varint */

static inline uint64_t wire_zigzag(int64_t n) { return ((uint64_t)n << 1) ^ (uint64_t)(n >> 63); }
static inline int64_t wire_unzigzag(uint64_t n) { return (int64_t)(n >> 1) ^ -(int64_t)(n & 1); }

static inline uint8_t *wire_put_varint(uint8_t *p, uint64_t n)
{
    while (n >= 0x80) {
        *p++ = (uint8_t)(n | 0x80);
        n >>= 7;
    }
    *p++ = (uint8_t)n;
    return p;
}

static inline uint8_t *wire_put_fixed64(uint8_t *p, uint64_t n)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    n = __builtin_bswap64(n);
#endif
    memcpy(p, &n, 8);
    return p + 8;
}

/* The same for numbers that mostly take one or two bytes. It has branches: if the processor
 * predicts them, the next field does not wait for the length of this one. */
static inline uint8_t *wire_put_short(uint8_t *p, uint64_t n)
{
    if (__builtin_expect(n < 0x80, 1)) {
        p[0] = (uint8_t)n;
        return p + 1;
    }
    if (__builtin_expect(n < 0x4000, 1)) {
        p[0] = (uint8_t)(n | 0x80);
        p[1] = (uint8_t)(n >> 7);
        return p + 2;
    }
    return wire_put_varint(p, n);
}

/* Returns the position behind the varint, or NULL if it is cut off or longer than 64 bits. */
static inline const uint8_t *wire_get_varint(const uint8_t *p, const uint8_t *end, uint64_t *n)
{
    uint64_t result = 0;
    if (__builtin_expect(p < end && *p < 0x80, 1)) { /* most are one byte */
        *n = *p;
        return p + 1;
    }
    for (int shift = 0; shift < 64; shift += 7) {
        if (p >= end)
            return NULL;
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1)
            return NULL;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *n = result;
            return p;
        }
    }
    return NULL;
}

static inline size_t wire_varint_size(uint64_t n)
{
    size_t size = 1;
    while (n >= 0x80) {
        n >>= 7;
        size++;
    }
    return size;
}

static inline const uint8_t *wire_get_fixed64(const uint8_t *p, const uint8_t *end, uint64_t *n)
{
    if (end - p < 8)
        return NULL;
    memcpy(n, p, 8);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    *n = __builtin_bswap64(*n);
#endif
    return p + 8;
}

/* A field's tag. NULL also for field number 0 and numbers that protobuf does not have. */
static inline const uint8_t *wire_get_tag(const uint8_t *p, const uint8_t *end, uint32_t *tag)
{
    uint64_t n;
    p = wire_get_varint(p, end, &n);
    if (!p || n > UINT32_MAX || n < WIRE_TAG(1, 0))
        return NULL;
    *tag = (uint32_t)n;
    return p;
}

/* The position behind a field whose tag was just read. NULL if it is cut off, and for groups, which
 * proto3 does not have. */
static inline const uint8_t *wire_skip(const uint8_t *p, const uint8_t *end, uint32_t tag)
{
    uint64_t n;
    switch (tag & 7) {
    case WIRE_VARINT:
        return wire_get_varint(p, end, &n);
    case WIRE_FIXED64:
        return end - p < 8 ? NULL : p + 8;
    case WIRE_FIXED32:
        return end - p < 4 ? NULL : p + 4;
    case WIRE_BYTES:
        p = wire_get_varint(p, end, &n);
        return !p || n > (uint64_t)(end - p) ? NULL : p + n;
    default:
        return NULL;
    }
}

/* A length-delimited field whose bytes are there. */
static inline uint8_t *wire_put_bytes(uint8_t *p, int field, const void *data, size_t size)
{
    p = wire_put_varint(p, WIRE_TAG((uint64_t)field, WIRE_BYTES));
    p = wire_put_varint(p, size);
    if (size)
        memcpy(p, data, size);
    return p + size;
}

/* A length-delimited field whose bytes follow: `wire_open` leaves one byte for the length and
 * returns their start; `wire_close` writes the length, and moves them if it needs more. */
static inline uint8_t *wire_open(uint8_t *p, int field)
{
    p = wire_put_varint(p, WIRE_TAG((uint64_t)field, WIRE_BYTES));
    return p + 1;
}

#define WIRE_CLOSE_MAX 4 /* wire_close may move the field so far */

static inline uint8_t *wire_close(uint8_t *body, uint8_t *end)
{
    size_t size = (size_t)(end - body);
    if (__builtin_expect(size < 0x80, 1)) {
        body[-1] = (uint8_t)size;
        return end;
    }
    size_t shift = wire_varint_size(size) - 1;
    memmove(body + shift, body, size);
    wire_put_varint(body - 1, size);
    return end + shift;
}

#endif
