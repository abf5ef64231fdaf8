/* Encodes Python objects as recorded values; see values.h. */

#include "record/values.h"

#include "record/attributes.h"
#include "record/lookup.h"
#include "record/secrets.h"
#include "record/stats.h"
#include "record/text.h"

struct values_config values_config = {.length = 200, .most = 1024, .short_str = SHORT_STR_MAX};

uint8_t *(*values_put_known)(uint8_t *p, uint8_t *limit, uint8_t family, PyObject *object, const struct outer *outer,
                             int depth);

int values_configure(size_t length, unsigned attributes, bool repr)
{
    values_config.length = length < VALUE_LENGTH_MAX ? length : VALUE_LENGTH_MAX;
    values_config.attributes = repr ? 0 : attributes;
    /* room for the least of each attribute */
    values_config.most = values_config.length * 4 + 224 + values_config.attributes * VALUE_ROOM_MIN;
    values_config.repr = repr;
    values_config.short_str = length < SHORT_STR_MAX ? length : SHORT_STR_MAX;
    attributes_judge_names();
    return types_configure(values_config.attributes != 0);
}

/* With --repr the program's code runs, and may drop the object that is being read. */
static void hold(PyObject *object)
{
    if (values_config.repr)
        Py_INCREF(object);
}

static void let_go(PyObject *object)
{
    if (values_config.repr)
        Py_DECREF(object);
}

/* Any value. Keeps 4 bytes free, as wire_close may move it. */
static uint8_t *put_any(uint8_t *p, uint8_t *limit, int field, PyObject *object, const struct outer *outer, int depth)
{
    STAT(value_general);
    uint8_t *body = value_open(p, field);
    hold(object);
    p = values_put_content(body, limit - WIRE_CLOSE_MAX, object, outer, depth);
    let_go(object);
    return value_close(body, p);
}

/* A nested value. */
uint8_t *values_put_item(uint8_t *p, uint8_t *limit, int field, PyObject *object, const struct outer *outer, int depth)
{
    uint8_t *simple = values_put_simple(p, limit, field, object, KIND_ATTRIBUTES);
    return simple != NULL ? simple : put_any(p, limit, field, object, outer, depth);
}

static uint8_t *put_type(uint8_t *p, PyObject *object)
{
    return event_put(p, VALUE_TYPE, types_number(Py_TYPE(object)));
}

static uint8_t *put_cut(uint8_t *p, PyObject *object)
{
    STAT(value_cut);
    p = event_put(p, VALUE_CONSTANT, CONSTANT_CUT);
    return put_type(p, object);
}

/* How long a value is that is not stored whole. */
static uint8_t *put_length(uint8_t *p, bool whole, uint64_t length)
{
    if (whole)
        return p;
    STAT(value_cut);
    return event_put(p, VALUE_LENGTH, length);
}

uint8_t *values_put_str(uint8_t *p, uint8_t *limit, int field, PyObject *str)
{
    if (!compat_str_is_ready(str))
        return put_cut(p, str);
    Py_ssize_t length = PyUnicode_GET_LENGTH(str);
    size_t room = (size_t)(limit - p) - VALUE_TAIL - 4;
    if (PyUnicode_IS_COMPACT_ASCII(str)) {
        size_t size = (size_t)length < values_config.length ? (size_t)length : values_config.length;
        if (size > room)
            size = room;
        p = wire_put_bytes(p, field, PyUnicode_DATA(str), size);
        return put_length(p, size == (size_t)length, (uint64_t)length);
    }
    bool cut;
    uint8_t *body = wire_open(p, field);
    size_t size = text_utf8(body, room, str, values_config.length, &cut);
    p = wire_close(body, body + size);
    return put_length(p, !cut, (uint64_t)length);
}

uint8_t *values_put_data(uint8_t *p, uint8_t *limit, const char *data, Py_ssize_t length)
{
    size_t room = (size_t)(limit - p) - VALUE_TAIL - 4;
    size_t size = (size_t)length < values_config.length ? (size_t)length : values_config.length;
    if (size > room)
        size = room;
    p = wire_put_bytes(p, VALUE_DATA, data, size);
    return put_length(p, size == (size_t)length, (uint64_t)length);
}

#define BIG_BYTES 96 /* of magnitude: more than 200 decimal digits */

/* An int of any size: 64 bits as an integer, more as its most significant bytes. */
static uint8_t *put_int(uint8_t *p, uint8_t *limit, PyObject *number)
{
    Py_ssize_t size = compat_long_size(number);
    const digit *digits = compat_long_digits(number);
    bool negative = size < 0;
    if (negative)
        size = -size;
    if (size <= 2) {
        uint64_t magnitude = size > 0 ? digits[0] : 0;
        if (size > 1)
            magnitude |= (uint64_t)digits[1] << PyLong_SHIFT;
        return value_put_integer(p, negative ? -(int64_t)magnitude : (int64_t)magnitude);
    }
    uint64_t bits = (uint64_t)(size - 1) * PyLong_SHIFT + (64 - (unsigned)__builtin_clzll(digits[size - 1]));
    if (bits < 64) {
        uint64_t magnitude = 0;
        for (Py_ssize_t i = size - 1; i >= 0; i--)
            magnitude = magnitude << PyLong_SHIFT | digits[i];
        return value_put_integer(p, negative ? -(int64_t)magnitude : (int64_t)magnitude);
    }
    size_t total = (size_t)((bits + 7) / 8), stored = total;
    if (stored > BIG_BYTES)
        stored = BIG_BYTES;
    if ((size_t)(limit - p) < stored + VALUE_TAIL + 8)
        return put_cut(p, number);
    uint8_t big[1 + BIG_BYTES];
    big[0] = negative;
    for (size_t i = 0; i < stored; i++) {
        /* byte total-1-i of the magnitude, counted from the least significant */
        uint64_t bit = (uint64_t)(total - 1 - i) * 8;
        Py_ssize_t index = (Py_ssize_t)(bit / PyLong_SHIFT);
        unsigned shift = (unsigned)(bit % PyLong_SHIFT);
        uint64_t window = digits[index];
        if (index + 1 < size)
            window |= (uint64_t)digits[index + 1] << PyLong_SHIFT;
        big[1 + i] = (uint8_t)(window >> shift);
    }
    p = wire_put_bytes(p, VALUE_BIG, big, 1 + stored);
    return put_length(p, stored == total, bits);
}

static uint8_t *put_name(uint8_t *p, enum value_named named, const char *name, size_t size)
{
    p = event_put(p, VALUE_NAMED, named);
    return wire_put_bytes(p, VALUE_NAME, name, size);
}

/* A name longer than this is cut: qualified names seldom are. */
#define NAME_MAX_BYTES 200

static uint8_t *put_qualified(uint8_t *p, uint8_t *limit, enum value_named named, PyObject *module, PyObject *qualname)
{
    char name[NAME_MAX_BYTES];
    size_t room = (size_t)(limit - p) - 8;
    size_t size = text_qualified(name, room < sizeof name ? room : sizeof name, module, qualname);
    return put_name(p, named, name, size);
}

static uint8_t *put_builtin(uint8_t *p, uint8_t *limit, PyObject *object)
{
    PyCFunctionObject *function = (PyCFunctionObject *)object;
    const char *name = function->m_ml->ml_name;
    char buffer[NAME_MAX_BYTES];
    size_t room = (size_t)(limit - p) - 8, size = 0;
    if (room > sizeof buffer)
        room = sizeof buffer;
    PyObject *self = function->m_self;
    if (self != NULL && !PyModule_Check(self)) { /* a method: list.append */
        const char *type = (PyType_Check(self) ? (PyTypeObject *)self : Py_TYPE(self))->tp_name;
        const char *dot = strrchr(type, '.');
        if (dot != NULL)
            type = dot + 1;
        size = strnlen(type, room - 1);
        memcpy(buffer, type, size);
        buffer[size++] = '.';
    } else if (function->m_module != NULL && PyUnicode_CheckExact(function->m_module) &&
               PyUnicode_CompareWithASCIIString(function->m_module, "builtins") != 0) {
        size = text_qualified(buffer, room - 1, NULL, function->m_module);
        buffer[size++] = '.';
    }
    size_t length = strnlen(name, room - size);
    memcpy(buffer + size, name, length);
    return put_name(p, NAMED_BUILTIN, buffer, size + length);
}

/* Elements of a container. Room for the tail and for the shortest element stays free. */
#define ITEM_FITS(p, limit) ((size_t)((limit) - (p)) >= VALUE_ROOM_MIN + VALUE_TAIL)

/* `sequence`: a tuple or a list. It is read anew for each item, as --repr may change it. */
static uint8_t *put_sequence(uint8_t *p, uint8_t *limit, enum value_container container, PyObject *sequence,
                             const struct outer *outer, int depth)
{
    p = event_put(p, VALUE_CONTAINER, container);
    Py_ssize_t length = Py_SIZE(sequence), stored = 0;
    while (depth > 0 && stored < Py_SIZE(sequence) && stored < VALUE_ITEMS && ITEM_FITS(p, limit)) {
        PyObject *item = PyTuple_Check(sequence) ? PyTuple_GET_ITEM(sequence, stored)
                                                 : PyList_GET_ITEM(sequence, stored);
        stored++;
        p = item == NULL ? values_put_constant(p, VALUE_ITEM, CONSTANT_UNBOUND)
                         : values_put_item(p, limit - VALUE_TAIL, VALUE_ITEM, item, outer, depth - 1);
    }
    return put_length(p, stored == length, (uint64_t)length);
}

uint8_t *values_put_pairs(uint8_t *p, uint8_t *limit, PyObject *dict, const struct outer *outer, int depth)
{
    Py_ssize_t length = PyDict_GET_SIZE(dict), stored = 0, position = 0;
    PyObject *key, *value;
    while (depth > 0 && stored < VALUE_ITEMS && (size_t)(limit - p) >= 3 * VALUE_ROOM_MIN + VALUE_TAIL &&
           PyDict_Next(dict, &position, &key, &value)) {
        hold(key);
        hold(value);
        /* the key must leave room for its value */
        p = values_put_item(p, limit - VALUE_TAIL - VALUE_ROOM_MIN, VALUE_ITEM, key, outer, depth - 1);
        if (secrets_match(key))
            p = values_put_redacted(p, VALUE_ITEM, value);
        else
            p = values_put_item(p, limit - VALUE_TAIL, VALUE_ITEM, value, outer, depth - 1);
        let_go(value);
        let_go(key);
        stored++;
    }
    return put_length(p, stored == length, (uint64_t)length);
}

/* A set has holes; a nearly empty one that was huge is not searched to its end. */
#define SET_SLOTS 256

static uint8_t *put_set(uint8_t *p, uint8_t *limit, PyObject *object, const struct outer *outer, int depth)
{
    PySetObject *set = (PySetObject *)object;
    p = event_put(p, VALUE_CONTAINER, PyFrozenSet_Check(object) ? CONTAINER_FROZENSET : CONTAINER_SET);
    Py_ssize_t stored = 0;
    for (Py_ssize_t slot = 0; depth > 0 && slot <= set->mask && slot < SET_SLOTS && stored < set->used &&
                              stored < VALUE_ITEMS && ITEM_FITS(p, limit);
         slot++) {
        PyObject *item = set->table[slot].key;
        if (item == NULL || set->table[slot].hash == -1) /* empty, or a dummy */
            continue;
        p = values_put_item(p, limit - VALUE_TAIL, VALUE_ITEM, item, outer, depth - 1);
        stored++;
    }
    return put_length(p, stored == set->used, (uint64_t)set->used);
}

static uint8_t *put_object(uint8_t *p, uint8_t *limit, PyObject *object)
{
    if (values_config.repr) {
        PyObject *text = PyObject_Repr(object);
        if (text == NULL) {
            PyErr_Clear();
        } else {
            p = values_put_str(p, limit, VALUE_REPR, text);
            Py_DECREF(text);
            return put_type(p, object);
        }
    }
    p = value_put_address(p, object);
    return put_type(p, object);
}

/* An object by its attributes, if it has any. Within another value it is short. */
static uint8_t *put_attributes(uint8_t *p, uint8_t *limit, PyObject *object, struct type_info *info,
                               const struct outer *outer)
{
    struct attributes found;
    if (outer != NULL || limit - p < 2 * VALUE_ROOM_MIN ||
        !attributes_read(&found, object, info, values_config.attributes))
        return put_object(p, limit, object);
    const struct outer here = {object, NULL};
    p = value_put_address(p, object);
    p = event_put(p, VALUE_TYPE, found.type);
    size_t left = (size_t)(limit - VALUE_TAIL - p) / VALUE_ROOM_MIN;
    if (left > found.count)
        left = found.count;
    bool whole = left == found.total;
    for (size_t i = 0; left > 0; i++) {
        left--;
        if (found.secret[i])
            p = values_put_redacted(p, VALUE_ITEM, found.values[i]);
        else /* the others need their minimum, too */
            p = values_put_item(p, limit - VALUE_TAIL - left * VALUE_ROOM_MIN, VALUE_ITEM, found.values[i], &here,
                                VALUE_DEPTH - 1);
    }
    return put_length(p, whole, found.total);
}

/* Writes a value's content. `limit` leaves room at least for the shortest value. */
uint8_t *values_put_content(uint8_t *p, uint8_t *limit, PyObject *object, const struct outer *outer, int depth)
{
    struct type_info *info = types_info(Py_TYPE(object));
    enum type_kind kind = (enum type_kind)info->kind;
    const bool exact = info->exact; /* the content tells the type */
    const struct outer here = {object, outer};

    if (kind >= KIND_TUPLE && kind <= KIND_KNOWN)
        for (const struct outer *o = outer; o != NULL; o = o->outer)
            if (o->object == object)
                return put_type(event_put(p, VALUE_CONSTANT, CONSTANT_CYCLE), object);
    if (kind == KIND_KNOWN) {
        uint8_t *end = values_put_known(p, limit, info->family, object, &here, depth);
        if (end != NULL)
            return put_type(end, object);
        info = types_info(Py_TYPE(object)); /* it may have moved */
        kind = (enum type_kind)info->otherwise;
    }
    switch (kind) {
    case KIND_OBJECT:
    case KIND_KNOWN:
        return put_object(p, limit, object);
    case KIND_ATTRIBUTES:
        return put_attributes(p, limit, object, info, outer);
    case KIND_NONE:
        return event_put(p, VALUE_CONSTANT, CONSTANT_NONE);
    case KIND_BOOL:
        return event_put(p, VALUE_CONSTANT, object == Py_True ? CONSTANT_TRUE : CONSTANT_FALSE);
    case KIND_ELLIPSIS:
        return event_put(p, VALUE_CONSTANT, CONSTANT_ELLIPSIS);
    case KIND_NOT_IMPLEMENTED:
        return event_put(p, VALUE_CONSTANT, CONSTANT_NOT_IMPLEMENTED);
    case KIND_FUNCTION: {
        PyFunctionObject *function = (PyFunctionObject *)object;
        return put_qualified(p, limit, NAMED_FUNCTION, function->func_module, function->func_qualname);
    }
    case KIND_METHOD: {
        PyFunctionObject *function = (PyFunctionObject *)PyMethod_GET_FUNCTION(object);
        if (!PyFunction_Check(function))
            return put_object(p, limit, object);
        return put_qualified(p, limit, NAMED_METHOD, function->func_module, function->func_qualname);
    }
    case KIND_BUILTIN:
        return put_builtin(p, limit, object);
    case KIND_MODULE: {
        static struct lookup_name name = {.text = "__name__"};
        return put_qualified(p, limit, NAMED_MODULE, NULL, lookup_item(PyModule_GetDict(object), &name));
    }
    case KIND_CLASS:
        p = event_put(p, VALUE_NAMED, NAMED_CLASS);
        return event_put(p, VALUE_TYPE, types_number((PyTypeObject *)object));
    case KIND_INT:
        p = put_int(p, limit, object);
        break;
    case KIND_FLOAT:
        p = value_put_floating(p, PyFloat_AS_DOUBLE(object));
        break;
    case KIND_STR:
        p = values_put_str(p, limit, VALUE_TEXT, object);
        break;
    case KIND_BYTES:
        p = values_put_data(p, limit, PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
        break;
    case KIND_TUPLE:
        p = put_sequence(p, limit, CONTAINER_TUPLE, object, &here, depth);
        break;
    case KIND_LIST:
        p = put_sequence(p, limit, CONTAINER_LIST, object, &here, depth);
        break;
    case KIND_DICT:
        p = event_put(p, VALUE_CONTAINER, CONTAINER_DICT);
        p = values_put_pairs(p, limit, object, &here, depth);
        break;
    case KIND_SET:
        p = put_set(p, limit, object, &here, depth);
        break;
    case KIND_EXCEPTION: {
        PyObject *args = ((PyBaseExceptionObject *)object)->args;
        if (args == NULL || !PyTuple_Check(args)) {
            p = event_put(p, VALUE_CONTAINER, CONTAINER_EXCEPTION);
            break;
        }
        hold(args);
        p = put_sequence(p, limit, CONTAINER_EXCEPTION, args, &here, depth);
        let_go(args);
        break;
    }
    }
    return exact ? p : put_type(p, object);
}

uint8_t *values_put(uint8_t *p, uint8_t *limit, int field, PyObject *object)
{
    if ((size_t)(limit - p) > values_config.most)
        limit = p + values_config.most;
    return put_any(p, limit, field, object, NULL, VALUE_DEPTH);
}

uint8_t *values_put_redacted(uint8_t *p, int field, PyObject *object)
{
    uint8_t *body = value_open(p, field);
    p = event_put(body, VALUE_CONSTANT, CONSTANT_REDACTED);
    return value_close(body, put_type(p, object));
}
