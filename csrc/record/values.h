/* Encodes Python objects as recorded values (message Value of proto/trace.proto).
 *
 * No code of the program runs here: no __repr__, __len__, __iter__, property or descriptor. Only
 * the C-level content of built-in types and their subclasses is read. Only with values_config.repr
 * is repr() called, for objects without such content.
 *
 * Bounded: values_config.length characters, VALUE_ITEMS elements, values_config.attributes
 * attributes, VALUE_DEPTH levels, values_config.most bytes.
 */
#ifndef PYTRACE_VALUES_H
#define PYTRACE_VALUES_H

#include "record/types.h"
#include "format/event.h"

#define VALUE_ITEMS 10
#define VALUE_DEPTH 3
#define VALUE_LENGTH_MAX 6000   /* characters: so that one value fits a record */
#define VALUE_ROOM_MIN 64       /* bytes that are enough for any value, if it is cut */

#define SHORT_STR_MAX 100       /* characters: the lengths of its fields take a byte each */

extern struct values_config {
    size_t length;    /* characters of a str or bytes that are stored */
    size_t most;      /* bytes of one value's fields */
    size_t short_str; /* characters of a str that values_put_simple takes */
    unsigned attributes; /* of an object that are stored; 0: its type and address */
    bool repr;
} values_config;

/* `attributes`: at most TYPE_ATTRIBUTES_MAX. With repr there are none. To be called after
 * secrets_configure. 0, or -1 with a Python exception. */
int values_configure(size_t length, unsigned attributes, bool repr);

/* Writes one value with its tag and length. `limit`: its latest end, at least VALUE_ROOM_MIN bytes
 * away. Returns the position behind it. */
uint8_t *values_put(uint8_t *p, uint8_t *limit, int field, PyObject *object);

/* The type only, as the value must not be stored. */
uint8_t *values_put_redacted(uint8_t *p, int field, PyObject *object);

static inline uint8_t *values_put_constant(uint8_t *p, int field, enum value_constant constant)
{
    p[0] = (uint8_t)WIRE_TAG(field, WIRE_BYTES);
    p[1] = 2;
    p[2] = WIRE_TAG(VALUE_CONSTANT, WIRE_VARINT);
    p[3] = (uint8_t)constant;
    return p + 4;
}

/* The most frequent values, in one go: short strings, plain objects, numbers, None. NULL: another
 * value. Needs VALUE_ROOM_MIN bytes, as every value does. `short_kind`: KIND_ATTRIBUTES if objects
 * are to be short even if their attributes can be read; else KIND_OBJECT. */
static inline uint8_t *values_put_simple(uint8_t *p, uint8_t *limit, int field, PyObject *object,
                                         enum type_kind short_kind)
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
        const struct type_info *info = types_info(type);
        if (info->kind > short_kind || info->number == 0 || values_config.repr)
            return NULL;
        end = value_put_address(p + 2, object);
        *end++ = WIRE_TAG(VALUE_TYPE, WIRE_VARINT);
        end = wire_put_short(end, info->number);
    }
    p[0] = (uint8_t)WIRE_TAG(field, WIRE_BYTES);
    p[1] = (uint8_t)(end - p - 2);
    return end;
}

/* ---- nested values, for known.c ----------------------------------------------------------- */

/* Containers that are being written, innermost first, to recognize one that contains itself. */
struct outer {
    PyObject *object;
    const struct outer *outer;
};

/* Room for the fields that may follow a value's content: type and length. */
#define VALUE_TAIL 20

/* Writes the parts of an object of a known type. NULL: it is not as expected. See known.h. */
extern uint8_t *(*values_put_known)(uint8_t *p, uint8_t *limit, uint8_t family, PyObject *object,
                                    const struct outer *outer, int depth);

/* A value with its tag and length; `limit` as for values_put. */
uint8_t *values_put_item(uint8_t *p, uint8_t *limit, int field, PyObject *object, const struct outer *outer, int depth);
/* Only its content. */
uint8_t *values_put_content(uint8_t *p, uint8_t *limit, PyObject *object, const struct outer *outer, int depth);
/* The pairs of a dict as items, and its length if there are more. */
uint8_t *values_put_pairs(uint8_t *p, uint8_t *limit, PyObject *dict, const struct outer *outer, int depth);
/* A text, and data, cut to the configured length; then the whole length. */
uint8_t *values_put_str(uint8_t *p, uint8_t *limit, int field, PyObject *str);
uint8_t *values_put_data(uint8_t *p, uint8_t *limit, const char *data, Py_ssize_t length);

/* The same as values_put, with values_put_simple in line. */
static inline uint8_t *values_put_fast(uint8_t *p, uint8_t *limit, int field, PyObject *object)
{
    uint8_t *simple = values_put_simple(p, limit, field, object, KIND_OBJECT);
    return simple != NULL ? simple : values_put(p, limit, field, object);
}

#endif
