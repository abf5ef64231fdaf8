/* Python objects to recorded values (message Value of proto/trace.proto).
 *
 * Nothing of the program runs here: no __repr__, __len__, __iter__, property or descriptor; only
 * the C-level content of built-in types and their subclasses is read. Only with values_config.repr is
 * repr() asked, for objects that have no such content.
 *
 * Bounded: values_config.length characters, VALUE_ITEMS elements, VALUE_DEPTH levels, values_config.most bytes.
 */
#ifndef PYTRACE_VALUES_H
#define PYTRACE_VALUES_H

#include "codes.h"
#include "event.h"

#define VALUE_ITEMS 10
#define VALUE_DEPTH 3
#define VALUE_LENGTH_MAX 6000   /* characters: so that one value fits a record */
#define VALUE_ROOM_MIN 64       /* bytes that any value gets by with, cut as it may be */

#define SHORT_STR_MAX 100       /* characters: the lengths of its fields take a byte each */

extern struct values_config {
    size_t length;    /* characters of a str or bytes that are stored */
    size_t most;      /* bytes of one value's fields */
    size_t short_str; /* characters of a str that values_put_simple takes */
    bool repr;
} values_config;

void values_configure(size_t length, bool repr);

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

/* What most values are, in one go: short strings, plain objects, numbers, None. NULL: something else.
 * Needs VALUE_ROOM_MIN bytes, as every value. */
static inline uint8_t *values_put_simple(uint8_t *p, uint8_t *limit, int field, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    uint8_t *end;
    int64_t number;
    if (type == &PyUnicode_Type) {
        if (!PyUnicode_IS_COMPACT_ASCII(object))
            return NULL;
        size_t length = (size_t)PyUnicode_GET_LENGTH(object);
        if (length > values_config.short_str || length + 4 > (size_t)(limit - p))
            return NULL;
        p[2] = WIRE_TAG(VALUE_TEXT, WIRE_BYTES);
        p[3] = (uint8_t)length;
        memcpy(p + 4, PyUnicode_DATA(object), length);
        end = p + 4 + length;
    } else if (type == &PyLong_Type) {
        if (!compat_long_compact(object, &number))
            return NULL;
        p[2] = WIRE_TAG(VALUE_INTEGER, WIRE_VARINT);
        end = wire_put_short(p + 3, wire_zigzag(number));
    } else if (object == Py_None) {
        return values_put_constant(p, field, CONSTANT_NONE);
    } else if (type == &PyFloat_Type) {
        end = value_put_floating(p + 2, PyFloat_AS_DOUBLE(object));
    } else if (type == &PyBool_Type) {
        return values_put_constant(p, field, object == Py_True ? CONSTANT_TRUE : CONSTANT_FALSE);
    } else {
        const struct type_info *info = codes_type_info(type);
        if (info->kind != KIND_OBJECT || info->number == 0 || values_config.repr)
            return NULL;
        end = value_put_address(p + 2, object);
        *end++ = WIRE_TAG(VALUE_TYPE, WIRE_VARINT);
        end = wire_put_short(end, info->number);
    }
    p[0] = (uint8_t)WIRE_TAG(field, WIRE_BYTES);
    p[1] = (uint8_t)(end - p - 2);
    return end;
}

/* As values_put, with what values_put_simple knows in line. */
static inline uint8_t *values_put_fast(uint8_t *p, uint8_t *limit, int field, PyObject *object)
{
    uint8_t *simple = values_put_simple(p, limit, field, object);
    return simple != NULL ? simple : values_put(p, limit, field, object);
}

#endif
