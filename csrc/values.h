/* Python objects to recorded values (message Value of proto/trace.proto).
 *
 * Nothing of the program runs here: no __repr__, __len__, __iter__, property or descriptor; only
 * the C-level content of built-in types and their subclasses is read. Only with `use_repr` is
 * repr() asked, for objects that have no such content.
 *
 * Bounded: `value_length` characters, VALUE_ITEMS elements, VALUE_DEPTH levels, `values_max` bytes.
 */
#ifndef PYTRACE_VALUES_H
#define PYTRACE_VALUES_H

#include "event.h"
#include "pycompat.h"

#define VALUE_ITEMS 10
#define VALUE_DEPTH 3
#define VALUE_LENGTH_MAX 6000   /* characters: so that one value fits a record */
#define VALUE_ROOM_MIN 64       /* bytes that any value gets by with, cut as it may be */

/* Bytes of one value's fields, at most. */
extern size_t values_max;

void values_configure(size_t value_length, bool use_repr);

/* Writes one value with its tag and length. `limit`: where it has to end; at least VALUE_ROOM_MIN
 * bytes away. Returns the position behind it. */
uint8_t *values_put(uint8_t *p, uint8_t *limit, int field, PyObject *object);

/* The type only: the value was asked not to be stored. */
uint8_t *values_put_redacted(uint8_t *p, int field, PyObject *object);

static inline uint8_t *values_put_constant(uint8_t *p, int field, enum value_constant constant)
{
    p[0] = (uint8_t)WIRE_TAG(field, WIRE_BYTES);
    p[1] = 2;
    p[2] = WIRE_TAG(VALUE_CONSTANT, WIRE_VARINT);
    p[3] = (uint8_t)constant;
    return p + 4;
}

/* The values that calls are mostly made of, in line; everything else by values_put. */
static inline uint8_t *values_put_fast(uint8_t *p, uint8_t *limit, int field, PyObject *object)
{
    if (object == Py_None)
        return values_put_constant(p, field, CONSTANT_NONE);
    int64_t number;
    if (PyLong_CheckExact(object) && compat_long_compact(object, &number)) {
        p[0] = (uint8_t)WIRE_TAG(field, WIRE_BYTES);
        p[2] = WIRE_TAG(VALUE_INTEGER, WIRE_VARINT);
        uint8_t *end = wire_put_short(p + 3, wire_zigzag(number));
        p[1] = (uint8_t)(end - p - 2);
        return end;
    }
    return values_put(p, limit, field, object);
}

#endif
