/* Objects of known types; see known.h. */

#include "record/known.h"

#include "record/pycompat.h"

#include <datetime.h>
#include <structmember.h>

#include "common/utf8.h"
#include "record/codes.h"
#include "record/layouts.h"
#include "record/lookup.h"
#include "record/secrets.h"
#include "record/stats.h"
#include "record/task.h"
#include "record/text.h"
#include "record/values.h"

/* ---- parts -------------------------------------------------------------------------------- */

/* An object's parts, while they are written. */
struct parts {
    uint8_t *p, *limit;
    const struct outer *outer;
    int depth;
    uint8_t form;
    bool full;       /* something did not fit */
    uint64_t length; /* of the whole, if only some items are stored */
};

static bool fits(struct parts *parts)
{
    if ((size_t)(parts->limit - parts->p) < VALUE_ROOM_MIN + VALUE_TAIL)
        parts->full = true;
    return !parts->full;
}

/* Opens an item. `name`: its keyword; NULL, if it has none. Needs fits(). */
static uint8_t *open_part(struct parts *parts, const char *name)
{
    uint8_t *body = value_open(parts->p, VALUE_ITEM);
    parts->p = name != NULL ? wire_put_bytes(body, VALUE_KEYWORD, name, strlen(name)) : body;
    return body;
}

static void close_part(struct parts *parts, uint8_t *body) { parts->p = value_close(body, parts->p); }

/* A value of the program. Without memory for it, or if it is not there: not put. */
static bool put_named(struct parts *parts, const char *name, PyObject *object)
{
    if (object == NULL || !fits(parts))
        return false;
    if (name == NULL) {
        parts->p = values_put_item(parts->p, parts->limit - VALUE_TAIL, VALUE_ITEM, object, parts->outer,
                                   parts->depth - 1);
        return true;
    }
    Py_INCREF(object);
    uint8_t *body = open_part(parts, name);
    parts->p = values_put_content(parts->p, parts->limit - VALUE_TAIL - WIRE_CLOSE_MAX, object, parts->outer,
                                  parts->depth - 1);
    close_part(parts, body);
    Py_DECREF(object);
    return true;
}

static bool put_part(struct parts *parts, PyObject *object) { return put_named(parts, NULL, object); }

#define NAME_BYTES 64

/* A value under a name of the program's, which may have any characters. False: that is none, or
 * there is no room. */
static bool put_under(struct parts *parts, PyObject *key, PyObject *value)
{
    char name[NAME_BYTES];
    size_t length = PyUnicode_CheckExact(key) ? text_of(name, sizeof name, key) : 0;
    size_t room = VALUE_ROOM_MIN + VALUE_TAIL + 4 * WIRE_CLOSE_MAX + sizeof name;
    if (length == 0 || (size_t)(parts->limit - parts->p) < room)
        return false;
    Py_INCREF(value);
    uint8_t *body = value_open(parts->p, VALUE_ITEM);
    parts->p = wire_put_bytes(body, VALUE_KEYWORD, name, length);
    if (secrets_match(key)) {
        parts->p = event_put(parts->p, VALUE_CONSTANT, CONSTANT_REDACTED);
        parts->p = event_put(parts->p, VALUE_TYPE, types_number(Py_TYPE(value)));
    } else {
        parts->p = values_put_content(parts->p, parts->limit - VALUE_TAIL - WIRE_CLOSE_MAX, value, parts->outer,
                                      parts->depth - 1);
    }
    close_part(parts, body);
    Py_DECREF(value);
    return true;
}

static bool put_integer(struct parts *parts, const char *name, int64_t number)
{
    if (!fits(parts))
        return false;
    uint8_t *body = open_part(parts, name);
    parts->p = value_put_integer(parts->p, number);
    close_part(parts, body);
    return true;
}

static bool put_truth(struct parts *parts, bool truth)
{
    if (!fits(parts))
        return false;
    parts->p = values_put_constant(parts->p, VALUE_ITEM, truth ? CONSTANT_TRUE : CONSTANT_FALSE);
    return true;
}

static bool put_floating(struct parts *parts, double number)
{
    if (!fits(parts))
        return false;
    uint8_t *body = open_part(parts, NULL);
    parts->p = value_put_floating(parts->p, number);
    close_part(parts, body);
    return true;
}

static bool put_bytes(struct parts *parts, enum value_field field, const void *data, size_t size)
{
    if (!fits(parts))
        return false;
    uint8_t *body = open_part(parts, NULL);
    parts->p = wire_put_bytes(parts->p, field, data, size);
    close_part(parts, body);
    return true;
}

/* Any number of bytes: as much of them as a value may have. */
static bool put_buffer(struct parts *parts, const char *data, Py_ssize_t size)
{
    if (!fits(parts))
        return false;
    uint8_t *body = open_part(parts, NULL);
    parts->p = values_put_data(parts->p, parts->limit - VALUE_TAIL, data, size);
    close_part(parts, body);
    return true;
}

static bool put_address(struct parts *parts, const void *address)
{
    if (!fits(parts))
        return false;
    uint8_t *body = open_part(parts, NULL);
    parts->p = value_put_address(parts->p, address);
    close_part(parts, body);
    return true;
}

/* An object as its type and address. */
static bool put_whereabouts(struct parts *parts, PyObject *object)
{
    if (!fits(parts))
        return false;
    uint8_t *body = open_part(parts, NULL);
    parts->p = value_put_address(parts->p, object);
    parts->p = event_put(parts->p, VALUE_TYPE, types_number(Py_TYPE(object)));
    close_part(parts, body);
    return true;
}

/* ---- families ----------------------------------------------------------------------------- */

enum origin {
    IN_C,
    IN_PYTHON,
    ANYWHERE, /* in C, of a package that is not Python's */
};

#define MEMBERS 6

struct family;
typedef bool put_function(struct parts *parts, const struct family *family, PyObject *object);

struct family {
    PyTypeObject *type;          /* this interpreter's; only compared */
    struct lookup_name module, global;
    const char *name;            /* of the type, if it is not the global's */
    enum origin origin;
    size_t size;                 /* tp_basicsize; 0: whatever it is */
    bool (*proof)(PyTypeObject *type); /* of its layout; NULL: the headers have it */
    PyTypeObject *proven;        /* the type whose layout was found to be as meant */
    enum value_form form;
    bool qualified;              /* the type itself is shown with its module */
    put_function *put;
    struct lookup_name members[MEMBERS];
    Py_ssize_t offsets[MEMBERS]; /* of the members; 0: in the instance's dictionary */
    int types[MEMBERS];          /* of the members, as a PyMemberDef has them */
};

static const struct family *family_of_object(PyObject *object);

/* A member that is an object, borrowed; NULL: none. */
static PyObject *member(const struct family *family, int i, PyObject *object)
{
    if (family->offsets[i] == 0)
        /* the look-up keeps its string in the name */
        return lookup_instance(object, (struct lookup_name *)(uintptr_t)&family->members[i]);
    if (family->types[i] != T_OBJECT && family->types[i] != T_OBJECT_EX)
        return NULL;
    return *(PyObject **)((char *)object + family->offsets[i]);
}

static int int_member(const struct family *family, int i, PyObject *object)
{
    return *(int *)((char *)object + family->offsets[i]);
}

/* All members, one after the other. */
static bool put_members(struct parts *parts, const struct family *family, PyObject *object)
{
    for (int i = 0; i < MEMBERS && family->members[i].text != NULL; i++)
        if (!put_part(parts, member(family, i, object)))
            return false;
    return true;
}

/* All members with their names. */
static bool put_keywords(struct parts *parts, const struct family *family, PyObject *object)
{
    for (int i = 0; i < MEMBERS && family->members[i].text != NULL; i++)
        if (!put_named(parts, family->members[i].text, member(family, i, object)))
            return false;
    return true;
}

/* ---- built in ----------------------------------------------------------------------------- */

static bool put_complex(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    Py_complex number = ((PyComplexObject *)object)->cval;
    return put_floating(parts, number.real) && put_floating(parts, number.imag);
}

static bool is_one(PyObject *object)
{
    int64_t number;
    return object != NULL && PyLong_CheckExact(object) && compat_long_compact(object, &number) && number == 1;
}

static bool put_range(struct parts *parts, const struct family *family, PyObject *object)
{
    return put_part(parts, member(family, 0, object)) && put_part(parts, member(family, 1, object)) &&
           (is_one(member(family, 2, object)) || put_part(parts, member(family, 2, object)));
}

static bool put_bytearray(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    return put_buffer(parts, PyByteArray_AS_STRING(object), PyByteArray_GET_SIZE(object));
}

/* Pairs of a dict as items, in the parts of another object. */
static bool put_pairs(struct parts *parts, PyObject *dict)
{
    if (dict == NULL || !PyDict_Check(dict))
        return false;
    Py_INCREF(dict);
    parts->p = values_put_pairs(parts->p, parts->limit, dict, parts->outer, parts->depth);
    Py_DECREF(dict);
    return true;
}

static void put_pair_of(struct parts *parts, PyObject *key, PyObject *value)
{
    Py_INCREF(key);
    Py_INCREF(value);
    /* the key must leave room for its value */
    parts->p = values_put_item(parts->p, parts->limit - VALUE_TAIL - VALUE_ROOM_MIN, VALUE_ITEM, key, parts->outer,
                               parts->depth - 1);
    if (secrets_match(key))
        parts->p = values_put_redacted(parts->p, VALUE_ITEM, value);
    else
        put_part(parts, value);
    Py_DECREF(value);
    Py_DECREF(key);
}

static bool fits_pair(struct parts *parts)
{
    return (size_t)(parts->limit - parts->p) >= 3 * VALUE_ROOM_MIN + VALUE_TAIL;
}

/* Entries of a dict that are looked through at most, so that an event takes no longer. */
#define SEARCHED_MAX 1024

/* The value of this very key: no other key is compared with it by the program's code. */
static PyObject *value_of_key(PyObject *dict, PyObject *wanted)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (PyUnicode_CheckExact(wanted) && compat_dict_has_only_str(dict))
        return PyDict_GetItemWithError(dict, wanted);
    while (PyDict_Next(dict, &position, &key, &value))
        if (key == wanted)
            return value;
    return NULL;
}

/* Whether an OrderedDict can be walked in its order: a large one only if its keys are str. */
static bool is_ordered(PyObject *dict)
{
    const struct ordered *ordered = (const void *)dict;
    return PyODict_Check(dict) && PyODict_Type.tp_basicsize == sizeof *ordered && !values_config.repr &&
           ordered->keys == ordered->dict.ma_keys &&
           (PyDict_GET_SIZE(dict) <= SEARCHED_MAX || compat_dict_has_only_str(dict));
}

static bool next_ordered(PyObject *dict, const struct ordered_node **node, PyObject **key, PyObject **value)
{
    if (*node == NULL || (*value = value_of_key(dict, (*node)->key)) == NULL)
        return false;
    *key = (*node)->key;
    *node = (*node)->next;
    return true;
}

/* As move_to_end has ordered them, if that can be told; else as they were added. */
static bool put_ordered(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    const struct ordered *ordered = (const void *)object;
    const struct ordered_node *node = ordered->first;
    PyObject *key, *value;
    Py_ssize_t position = 0, stored = 0, size = PyDict_GET_SIZE(object);
    if (!is_ordered(object))
        return put_pairs(parts, object);
    while (node != NULL && stored < VALUE_ITEMS && PyDict_Next(object, &position, &key, &value) && node->key == key) {
        node = node->next;
        stored++;
    }
    if (stored == VALUE_ITEMS || stored == size)
        return put_pairs(parts, object);
    node = ordered->first;
    for (stored = 0; parts->depth > 0 && stored < VALUE_ITEMS && fits_pair(parts); stored++) {
        if (!next_ordered(object, &node, &key, &value))
            break;
        put_pair_of(parts, key, value);
    }
    parts->length = stored == size ? 0 : (uint64_t)size;
    return true;
}

/* The largest counts first, if not all of them are stored; else the reader sorts them. */
static bool put_counts(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    struct { PyObject *key, *value; int64_t count; } largest[VALUE_ITEMS];
    PyObject *key, *value;
    Py_ssize_t position = 0, found = 0, stored = 0, size = PyDict_GET_SIZE(object);
    if (size <= VALUE_ITEMS || size > SEARCHED_MAX || values_config.repr)
        return put_pairs(parts, object);
    while (PyDict_Next(object, &position, &key, &value)) {
        int64_t count;
        if (!PyLong_CheckExact(value) || !compat_long_compact(value, &count))
            return put_pairs(parts, object);
        if (found == VALUE_ITEMS && count <= largest[found - 1].count)
            continue;
        Py_ssize_t at = found < VALUE_ITEMS ? found++ : found - 1;
        for (; at > 0 && largest[at - 1].count < count; at--)
            largest[at] = largest[at - 1];
        largest[at].key = key;
        largest[at].value = value;
        largest[at].count = count;
    }
    for (; parts->depth > 0 && stored < found && fits_pair(parts); stored++)
        put_pair_of(parts, largest[stored].key, largest[stored].value);
    parts->length = (uint64_t)size;
    return true;
}

static bool put_defaultdict(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *factory = member(family, 0, object);
    return put_named(parts, "", factory != NULL ? factory : Py_None) && put_pairs(parts, object);
}

struct proxy {
    PyObject_HEAD
    PyObject *mapping;
};

static bool put_proxy(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    PyObject *mapping = ((struct proxy *)object)->mapping;
    if (PyDict_CheckExact(mapping))
        return put_pairs(parts, mapping);
    parts->form = FORM_CALL;
    return put_part(parts, mapping);
}

static bool put_view(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *dict = (PyObject *)((_PyDictViewObject *)object)->dv_dict, *key, *value;
    Py_ssize_t position = 0, stored = 0;
    if (dict == NULL)
        return false;
    bool in_order = is_ordered(dict);
    const struct ordered_node *node = in_order ? ((const struct ordered *)(const void *)dict)->first : NULL;
    if (family->form == FORM_PAIRS)
        return in_order ? put_ordered(parts, family, dict) : put_pairs(parts, dict);
    Py_INCREF(dict);
    Py_ssize_t size = PyDict_GET_SIZE(dict);
    while (parts->depth > 0 && stored < VALUE_ITEMS && fits(parts) &&
           (in_order ? next_ordered(dict, &node, &key, &value) : PyDict_Next(dict, &position, &key, &value))) {
        PyObject *item = family->type == &PyDictKeys_Type ? key : value;
        Py_INCREF(item);
        if (item == value && secrets_match(key))
            parts->p = values_put_redacted(parts->p, VALUE_ITEM, item);
        else
            put_part(parts, item);
        Py_DECREF(item);
        stored++;
    }
    parts->full = false; /* the rest is cut */
    parts->length = stored == size ? 0 : (uint64_t)size;
    Py_DECREF(dict);
    return true;
}

static bool put_reference(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    PyObject *to = ((PyWeakReference *)object)->wr_object;
    return put_address(parts, object) &&
           (to == NULL || to == Py_None || Py_REFCNT(to) <= 0 || put_whereabouts(parts, to));
}

static bool put_generator(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    PyObject *name = ((PyGenObject *)object)->gi_qualname;
    return name != NULL && PyUnicode_CheckExact(name) && put_part(parts, name) && put_address(parts, object);
}

static bool put_code(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    PyCodeObject *code = (PyCodeObject *)object;
    return put_part(parts, code->co_name) && put_part(parts, code->co_filename) &&
           put_integer(parts, NULL, code->co_firstlineno) && put_address(parts, object);
}

static bool put_frame_of(struct parts *parts, PyFrameObject *frame, PyObject *object, int line)
{
    PyCodeObject *code = frame->f_frame != NULL ? compat_frame_code(frame->f_frame) : NULL;
    if (code == NULL)
        return false;
    if (line <= 0)
        line = frame->f_lineno > 0 ? frame->f_lineno
                                   : PyCode_Addr2Line(code, compat_frame_offset(frame->f_frame, code));
    return put_part(parts, code->co_filename) && put_integer(parts, NULL, line) && put_part(parts, code->co_name) &&
           put_address(parts, object);
}

static bool put_frame(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    return put_frame_of(parts, (PyFrameObject *)object, object, 0);
}

/* The place that it tells of. */
static bool put_traceback(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    PyTracebackObject *traceback = (PyTracebackObject *)object;
    PyFrameObject *frame = traceback->tb_frame;
    PyCodeObject *code = frame != NULL && frame->f_frame != NULL ? compat_frame_code(frame->f_frame) : NULL;
    if (code == NULL)
        return false;
    int line = traceback->tb_lineno > 0 ? traceback->tb_lineno : PyCode_Addr2Line(code, traceback->tb_lasti);
    return put_frame_of(parts, frame, object, line);
}

static bool put_variable(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    const struct _pycontextvarobject *variable = (const void *)object;
    return put_named(parts, "name", variable->var_name) &&
           (variable->var_default == NULL || put_named(parts, "default", variable->var_default)) &&
           put_address(parts, object);
}

/* The attributes of a SimpleNamespace: its dictionary. */
static bool put_namespace(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *dict = member(family, 0, object), *key, *value;
    Py_ssize_t position = 0, stored = 0;
    if (dict == NULL || !PyDict_CheckExact(dict))
        return false;
    Py_INCREF(dict);
    Py_ssize_t size = PyDict_GET_SIZE(dict);
    while (parts->depth > 0 && stored < VALUE_ITEMS && fits(parts) && PyDict_Next(dict, &position, &key, &value)) {
        if (!put_under(parts, key, value))
            break;
        stored++;
    }
    parts->full = false;
    parts->length = stored == size ? 0 : (uint64_t)size;
    Py_DECREF(dict);
    return true;
}

/* ---- in C --------------------------------------------------------------------------------- */

static bool put_date(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    return put_bytes(parts, VALUE_DATA, ((PyDateTime_Date *)object)->data, _PyDateTime_DATE_DATASIZE);
}

static bool put_moment(struct parts *parts, const unsigned char *data, size_t size, int fold, PyObject *zone)
{
    unsigned char all[_PyDateTime_DATETIME_DATASIZE + 1];
    memcpy(all, data, size);
    all[size] = fold != 0;
    return put_bytes(parts, VALUE_DATA, all, size + 1) && (zone == NULL || put_part(parts, zone));
}

static bool put_time(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    const PyDateTime_Time *time = (PyDateTime_Time *)object;
    return put_moment(parts, time->data, _PyDateTime_TIME_DATASIZE, time->fold, time->hastzinfo ? time->tzinfo : NULL);
}

static bool put_datetime(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    const PyDateTime_DateTime *time = (PyDateTime_DateTime *)object;
    return put_moment(parts, time->data, _PyDateTime_DATETIME_DATASIZE, time->fold,
                      time->hastzinfo ? time->tzinfo : NULL);
}

static bool put_timedelta(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    const PyDateTime_Delta *delta = (PyDateTime_Delta *)object;
    return put_integer(parts, NULL, delta->days) && put_integer(parts, NULL, delta->seconds) &&
           put_integer(parts, NULL, delta->microseconds);
}

static bool put_timezone(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    static struct lookup_name utc = {.text = "utc"};
    const struct fixed_zone *zone = (const void *)object;
    if (lookup_item(compat_type_dict(Py_TYPE(object)), &utc) == object)
        return true;
    return put_part(parts, zone->offset) && (zone->name == NULL || put_part(parts, zone->name));
}

#define DECIMAL_WORDS 12 /* that are stored at most: more than 200 digits */

static bool put_decimal(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    const struct decimal *number = (const void *)object;
    bool special = number->flags & 14;
    if (number->words == NULL || number->length < 0 || number->length > number->allocated || number->digits < 0 ||
        (!special && (number->digits <= (number->length - 1) * DECIMAL_DIGITS ||
                      number->digits > number->length * DECIMAL_DIGITS)))
        return false;
    if (!put_integer(parts, NULL, number->flags & 15) || !put_integer(parts, NULL, number->exponent) ||
        !put_integer(parts, NULL, number->digits))
        return false;
    uint8_t data[8 * DECIMAL_WORDS];
    size_t size = 0;
    Py_ssize_t first = number->length - 1;
    for (Py_ssize_t i = first; i >= 0 && size < sizeof data && number->digits > 0; i--)
        for (int shift = 56; shift >= 0; shift -= 8)
            data[size++] = (uint8_t)(number->words[i] >> shift);
    if ((size_t)(parts->limit - parts->p) < size + VALUE_ROOM_MIN + VALUE_TAIL)
        return false;
    return put_bytes(parts, VALUE_DATA, data, size);
}

static bool put_deque(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    const struct deque *deque = (const void *)object;
    Py_ssize_t size = Py_SIZE(object), stored = 0;
    if (deque->left == NULL || deque->left_index < 0 || deque->left_index > DEQUE_BLOCK || deque->longest < -1 ||
        size < 0)
        return false;
    if (deque->longest >= 0 && !put_integer(parts, "maxlen", deque->longest))
        return false;
    /* it is looked at anew for each item, as --repr may change it */
    for (; parts->depth > 0 && stored < Py_SIZE(object) && stored < VALUE_ITEMS && fits(parts); stored++) {
        Py_ssize_t at = deque->left_index + stored;
        const struct deque_block *block = at < DEQUE_BLOCK ? deque->left : deque->left->right;
        PyObject *item = block->data[at % DEQUE_BLOCK];
        Py_INCREF(item);
        put_part(parts, item);
        Py_DECREF(item);
    }
    parts->full = false;
    parts->length = stored == size ? 0 : (uint64_t)size;
    return true;
}

/* Modules/_sre/sre.h: what follows `endpos`, the last member with a name */
struct match_end {
    Py_ssize_t end, last_index, groups, marks[2];
};

static bool put_match(struct parts *parts, const struct family *family, PyObject *object)
{
    const struct match_end *match = (const void *)((char *)object + family->offsets[1]);
    PyObject *string = member(family, 0, object);
    Py_ssize_t start = match->marks[0], end = match->marks[1];
    if (string == NULL || start < 0 || end < start || Py_SIZE(object) != 2 * match->groups)
        return false;
    if (!put_integer(parts, NULL, start) || !put_integer(parts, NULL, end))
        return false;
    if (PyBytes_Check(string) && end <= PyBytes_GET_SIZE(string))
        return put_buffer(parts, PyBytes_AS_STRING(string) + start, end - start);
    if (PyByteArray_Check(string)) { /* it may have become shorter */
        Py_ssize_t size = PyByteArray_GET_SIZE(string);
        start = start < size ? start : size;
        return put_buffer(parts, PyByteArray_AS_STRING(string) + start, (end < size ? end : size) - start);
    }
    if (!PyUnicode_Check(string) || !compat_str_is_ready(string) || end > PyUnicode_GET_LENGTH(string))
        return true;
    if (!fits(parts))
        return false;
    size_t room = (size_t)(parts->limit - parts->p) - VALUE_ROOM_MIN, size = 0;
    uint8_t *body = open_part(parts, NULL), *text = wire_open(parts->p, VALUE_TEXT);
    Py_ssize_t at = start;
    for (; at < end && (size_t)(at - start) < values_config.length && size + 4 <= room; at++)
        size += utf8_put(text + size, PyUnicode_READ_CHAR(string, at));
    parts->p = wire_close(text, text + size);
    if (at < end)
        parts->p = event_put(parts->p, VALUE_LENGTH, (uint64_t)(end - start));
    close_part(parts, body);
    return true;
}

static bool put_pattern(struct parts *parts, const struct family *family, PyObject *object)
{
    return put_part(parts, member(family, 0, object)) && put_integer(parts, NULL, int_member(family, 1, object));
}

static bool put_partial(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *key, *value;
    if (!put_part(parts, member(family, 0, object)))
        return false;
    PyObject *args = member(family, 1, object), *keywords = member(family, 2, object);
    if (args == NULL || !PyTuple_CheckExact(args) || keywords == NULL || !PyDict_CheckExact(keywords))
        return false;
    Py_INCREF(args);
    Py_INCREF(keywords);
    Py_ssize_t size = PyTuple_GET_SIZE(args) + PyDict_GET_SIZE(keywords), stored = 0, position = 0;
    for (; stored < PyTuple_GET_SIZE(args) && stored < VALUE_ITEMS && fits(parts); stored++)
        put_part(parts, PyTuple_GET_ITEM(args, stored));
    while (stored < VALUE_ITEMS && fits(parts) && PyDict_Next(keywords, &position, &key, &value)) {
        if (!put_under(parts, key, value))
            break;
        stored++;
    }
    parts->full = false;
    parts->length = stored == size ? 0 : (uint64_t)size + 1;
    Py_DECREF(keywords);
    Py_DECREF(args);
    return true;
}

/* Modules/_io/textio.c, up to the first member with a name on all versions */
struct text_file {
    PyObject_HEAD
    int ok, detached;
    Py_ssize_t chunk_size;
    PyObject *buffer, *encoding;
};

/* The name of a file: FileIO has it in its dictionary, the others have the one below them. */
static PyObject *file_name(const struct family *family, PyObject *file)
{
    static struct lookup_name name = {.text = "name"}, buffer = {.text = "buffer"}, raw = {.text = "raw"};
    const struct text_file *text = (const void *)file;
    if (family->offsets[0] == offsetof(struct text_file, encoding) && lookup_instance(file, &name) == NULL)
        file = text->ok == 1 && text->detached == 0 ? text->buffer : NULL;
    for (int level = 0; file != NULL && level < 3; level++) {
        PyObject *found = lookup_instance(file, &name);
        if (found != NULL)
            return found;
        PyObject *below = lookup_attribute(file, &buffer);
        file = below != NULL ? below : lookup_attribute(file, &raw);
    }
    return NULL;
}

static bool put_file(struct parts *parts, const struct family *family, PyObject *object)
{
    static struct lookup_name mode = {.text = "mode"};
    PyObject *name = file_name(family, object);
    if (name == NULL || !put_named(parts, "name", name))
        return false;
    PyObject *found = lookup_instance(object, &mode); /* --repr of the name may change it */
    if (found != NULL && !put_named(parts, "mode", found))
        return false;
    return family->members[0].text == NULL || put_keywords(parts, family, object);
}

static bool put_socket(struct parts *parts, const struct family *family, PyObject *object)
{
    /* the descriptor is what comes first, before the family */
    if (family->offsets[0] != (Py_ssize_t)(sizeof(PyObject) + sizeof(int)))
        return false;
    if (!put_integer(parts, "fd", *(int *)((char *)object + sizeof(PyObject))))
        return false;
    for (int i = 0; i < 3; i++)
        if (!put_integer(parts, family->members[i].text, int_member(family, i, object)))
            return false;
    return true;
}

static bool put_lock(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    return put_truth(parts, compat_lock_is_locked(object)) && put_address(parts, object);
}

static bool put_rlock(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    int64_t count = compat_rlock_count(object);
    return put_truth(parts, count != 0) && put_address(parts, object) &&
           put_integer(parts, NULL, count ? compat_rlock_owner(object) : 0) && put_integer(parts, NULL, count);
}

static bool put_future(struct parts *parts, const struct family *family, PyObject *object)
{
    static const char *const states[] = {"pending", "cancelled", "finished"};
    const struct compat_future *future = (const void *)object;
    if (future->loop == NULL || future->state < 0 || future->state > 2)
        return false;
    const char *state = states[future->state];
    if (!put_bytes(parts, VALUE_TEXT, state, strlen(state)))
        return false;
    char name[TASK_NAME_MAX];
    size_t length = family->name != NULL ? task_name_of(object, name, sizeof name) : 0;
    if (length && (size_t)(parts->limit - parts->p) > length + VALUE_ROOM_MIN) {
        uint8_t *body = open_part(parts, "name");
        parts->p = wire_put_bytes(parts->p, VALUE_TEXT, name, length);
        close_part(parts, body);
    }
    if (future->state != 2)
        return true;
    return future->exception != NULL && future->exception != Py_None
               ? put_named(parts, "exception", future->exception)
               : future->result == NULL || put_named(parts, "result", future->result);
}

/* ---- in Python ---------------------------------------------------------------------------- */

static bool put_enum(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *name = member(family, 0, object), *value = member(family, 1, object);
    return name != NULL && (name == Py_None || PyUnicode_CheckExact(name)) && value != object &&
           put_part(parts, name) && put_part(parts, member(family, 1, object));
}

static bool is_integer(PyObject *object) { return object != NULL && PyLong_CheckExact(object); }

static bool put_fraction(struct parts *parts, const struct family *family, PyObject *object)
{
    return is_integer(member(family, 0, object)) && is_integer(member(family, 1, object)) &&
           put_members(parts, family, object);
}

static bool put_uuid(struct parts *parts, const struct family *family, PyObject *object)
{
    return is_integer(member(family, 0, object)) && put_part(parts, member(family, 0, object));
}

static bool put_path(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *list = member(family, 0, object);
    if (list == NULL || !PyList_CheckExact(list))
        return false;
    Py_ssize_t stored = 0;
    for (; stored < PyList_GET_SIZE(list) && stored < 4 * VALUE_ITEMS && fits(parts); stored++) {
        if (!PyUnicode_Check(PyList_GET_ITEM(list, stored)))
            return false;
        put_part(parts, PyList_GET_ITEM(list, stored));
    }
    parts->full = false;
    parts->length = stored == PyList_GET_SIZE(list) ? 0 : (uint64_t)PyList_GET_SIZE(list);
    return true;
}

/* `scope` and `prefix`: NULL if it has none. */
static bool put_internet(struct parts *parts, PyObject *number, PyObject *scope, PyObject *prefix)
{
    return is_integer(number) && put_part(parts, number) &&
           (scope == NULL || !PyUnicode_CheckExact(scope) || put_part(parts, scope)) &&
           (prefix == NULL || put_named(parts, "", prefix));
}

static PyObject *scope_of(const struct family *family, int i, PyObject *object)
{
    return family->members[i].text != NULL ? member(family, i, object) : NULL;
}

static bool put_ip(struct parts *parts, const struct family *family, PyObject *object)
{
    return put_internet(parts, member(family, 0, object), scope_of(family, 1, object), NULL);
}

/* A network is its address and the prefix. */
static bool put_network(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *address = member(family, 0, object), *prefix = member(family, 1, object);
    const struct family *inner = address != NULL && is_integer(prefix) ? family_of_object(address) : NULL;
    return inner != NULL && inner->put == put_ip &&
           put_internet(parts, member(inner, 0, address), scope_of(inner, 1, address), prefix);
}

static bool put_interface(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *prefix = member(family, 1, object);
    return is_integer(prefix) &&
           put_internet(parts, member(family, 0, object), scope_of(family, 2, object), prefix);
}

static bool put_chain(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *maps = member(family, 0, object);
    if (maps == NULL || !PyList_CheckExact(maps))
        return false;
    Py_INCREF(maps);
    Py_ssize_t stored = 0, size = PyList_GET_SIZE(maps);
    for (; stored < PyList_GET_SIZE(maps) && stored < VALUE_ITEMS && fits(parts); stored++)
        put_part(parts, PyList_GET_ITEM(maps, stored));
    parts->full = false;
    parts->length = stored == size ? 0 : (uint64_t)size;
    Py_DECREF(maps);
    return true;
}

/* Whether threading counts it among the living. */
static bool is_active(PyObject *thread)
{
    static struct lookup_name threading = {.text = "threading"}, active = {.text = "_active"};
    PyObject *dict = lookup_global(&threading, &active), *key, *value;
    Py_ssize_t position = 0;
    if (dict == NULL || !PyDict_CheckExact(dict))
        return false;
    for (int left = LOOKUP_MOST; left > 0 && PyDict_Next(dict, &position, &key, &value); left--)
        if (value == thread)
            return true;
    return false;
}

static bool put_thread(struct parts *parts, const struct family *family, PyObject *object)
{
    PyObject *name = member(family, 0, object), *daemon = member(family, 1, object), *ident = member(family, 2, object);
    if (name == NULL || !PyUnicode_Check(name) || daemon == NULL || ident == NULL ||
        !(ident == Py_None || PyLong_CheckExact(ident)))
        return false;
    return put_part(parts, name) && put_truth(parts, daemon == Py_True) && put_part(parts, ident) &&
           put_truth(parts, is_active(object));
}

/* ---- buffers ------------------------------------------------------------------------------ */

/* A complex number, as an object of this type has it. */
static bool put_pair(struct parts *parts, double real, double imaginary)
{
    if (!fits(parts))
        return false;
    uint8_t *body = open_part(parts, NULL);
    parts->p = event_put(parts->p, VALUE_CONTAINER, CONTAINER_PARTS);
    parts->p = event_put(parts->p, VALUE_FORM, FORM_COMPLEX);
    for (int i = 0; i < 2; i++) {
        uint8_t *inner = value_open(parts->p, VALUE_ITEM);
        parts->p = value_close(inner, value_put_floating(inner, i ? imaginary : real));
    }
    parts->p = event_put(parts->p, VALUE_TYPE, types_number(&PyComplex_Type));
    close_part(parts, body);
    return true;
}

/* What a format says of an element, as far as it is a simple one. */
struct element {
    char letter; /* 0: it is another one */
    bool swapped;
    Py_ssize_t size;
};

#define ELEMENT_SIZE_MAX 16

/* Copies an element into the order of this machine. */
static void put_in_order(char *to, const char *data, const struct element *element)
{
    Py_ssize_t size = element->letter == 'Z' || element->letter == 'z' ? element->size / 2 : element->size;
    for (Py_ssize_t i = 0; i < element->size; i++)
        to[i] = data[element->swapped ? i / size * size + size - 1 - i % size : i];
}

/* A text of 32 bits a character, or bytes; NULs at the end are none of it. */
static bool put_characters(struct parts *parts, const char *data, const struct element *element)
{
    Py_ssize_t width = element->letter == 'w' ? 4 : 1, length = element->size / width;
    while (length > 0 && memcmp(data + (length - 1) * width, "\0\0\0", (size_t)width) == 0)
        length--;
    if (width == 1)
        return put_buffer(parts, data, length);
    if (!fits(parts))
        return false;
    uint8_t *body = open_part(parts, NULL), *text = wire_open(parts->p, VALUE_TEXT), *end = text;
    Py_ssize_t at = 0;
    for (; at < length && (size_t)at < values_config.length && parts->limit - end > VALUE_ROOM_MIN + VALUE_TAIL; at++) {
        char character[4];
        uint32_t code;
        put_in_order(character, data + at * 4, &(struct element){'w', element->swapped, 4});
        memcpy(&code, character, sizeof code);
        end += utf8_put(end, code < 0x110000 ? code : 0xfffd);
    }
    parts->p = wire_close(text, end);
    if (at < length)
        parts->p = event_put(parts->p, VALUE_LENGTH, (uint64_t)length);
    close_part(parts, body);
    return true;
}

static bool put_element(struct parts *parts, const struct element *element, const char *data)
{
    union {
        int8_t i1; int16_t i2; int32_t i4; int64_t i8;
        uint8_t u1; uint16_t u2; uint32_t u4; uint64_t u8;
        float f4; double f8; long double f16; float z4[2]; double z8[2];
        PyObject *object;
        char bytes[ELEMENT_SIZE_MAX];
    } number = {0};
    Py_ssize_t size = element->size;
    if (element->letter == 's' || element->letter == 'w')
        return put_characters(parts, data, element);
    put_in_order(number.bytes, data, element);
    switch (element->letter) {
    case '?':
        return size == 1 && put_truth(parts, number.u1);
    case 'b': case 'h': case 'i': case 'l': case 'q': case 'n':
        return put_integer(parts, NULL,
                           size == 1 ? number.i1 : size == 2 ? number.i2 : size == 4 ? number.i4 : number.i8);
    case 'B': case 'H': case 'I': case 'L': case 'Q': case 'N':
        if (size == 8 && number.u8 > INT64_MAX) {
            uint8_t big[9] = {0};
            for (int i = 0; i < 8; i++)
                big[1 + i] = (uint8_t)(number.u8 >> 8 * (7 - i));
            return put_bytes(parts, VALUE_BIG, big, sizeof big);
        }
        return put_integer(parts, NULL,
                           size == 1 ? number.u1 : size == 2 ? number.u2 : size == 4 ? number.u4 : (int64_t)number.u8);
    case 'e':
        return size == 2 && put_floating(parts, PyFloat_Unpack2(number.bytes, PY_LITTLE_ENDIAN));
    case 'f':
        return size == 4 && put_floating(parts, (double)number.f4);
    case 'd':
        return size == 8 && put_floating(parts, number.f8);
    case 'g':
        return size == sizeof number.f16 && put_floating(parts, (double)number.f16);
    case 'z':
        return size == 8 && put_pair(parts, (double)number.z4[0], (double)number.z4[1]);
    case 'Z':
        return size == 16 && put_pair(parts, number.z8[0], number.z8[1]);
    case 'c':
        return size == 1 && put_bytes(parts, VALUE_DATA, data, 1);
    case 'O':
        return size == sizeof number.object &&
               put_part(parts, number.object != NULL ? number.object : Py_None);
    }
    return false;
}

/* One letter, those of complex numbers (Zf is z, Zd is Z), or a number of characters. */
static struct element element_of(const Py_buffer *view)
{
    const char *format = view->format != NULL ? view->format : "B";
    struct element element = {.size = view->itemsize};
    if (*format != 0 && strchr("@=<>!", *format) != NULL) {
        element.swapped = PY_LITTLE_ENDIAN ? *format == '>' || *format == '!' : *format == '<';
        format++;
    }
    if (view->itemsize <= 0)
        return element;
    if (format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd') && format[2] == 0) {
        if (view->itemsize == (format[1] == 'f' ? 8 : 16))
            element.letter = format[1] == 'f' ? 'z' : 'Z';
    } else if (*format >= '1' && *format <= '9') {
        while (*format >= '0' && *format <= '9')
            format++;
        if ((*format == 's' || (*format == 'w' && view->itemsize % 4 == 0)) && format[1] == 0)
            element.letter = *format;
    } else if (*format != 0 && format[1] == 0 && strchr("?bBhHiIlLqQnNefdgcsO", *format) != NULL &&
               view->itemsize <= ELEMENT_SIZE_MAX) {
        element.letter = *format;
    }
    return element;
}

/* numpy's ndarray, as far as each of its versions has it: the ABI of its C API */
struct numpy_array {
    PyObject_HEAD
    char *data;
    int dimensions;
    Py_ssize_t *shape, *strides;
    PyObject *base; /* the owner of the data; NULL: the array itself */
};

/* What lends the object its memory; NULL: nothing, or it is not known. */
static PyObject *lender(PyObject *object)
{
    if (PyMemoryView_Check(object)) {
        const PyMemoryViewObject *memory = (PyMemoryViewObject *)object;
        return memory->mbuf != NULL && !(memory->mbuf->flags & _Py_MANAGED_BUFFER_RELEASED) ? memory->mbuf->master.obj
                                                                                             : NULL;
    }
    const struct family *family = family_of_object(object);
    return family != NULL && family->origin == ANYWHERE && strcmp(family->global.text, "ndarray") == 0 &&
                   (size_t)Py_TYPE(object)->tp_basicsize >= sizeof(struct numpy_array)
               ? ((const struct numpy_array *)(const void *)object)->base
               : NULL;
}

#define LENDERS_MAX 16

/* A file that became shorter than its mapping would kill the program at the first look. */
static bool is_mapped(PyObject *object)
{
    static struct lookup_name module = {.text = "mmap"}, name = {.text = "mmap"};
    PyObject *mmap = object != NULL ? lookup_global(&module, &name) : NULL;
    if (mmap == NULL || !PyType_Check(mmap))
        return false;
    for (int left = LENDERS_MAX; left > 0; left--) {
        if (PyObject_TypeCheck(object, (PyTypeObject *)mmap))
            return true;
        if ((object = lender(object)) == NULL)
            return false;
    }
    return true; /* nobody knows */
}

#define BUFFER_DIMENSIONS 8

/* The elements of a view, from the first on, in the order of C. */
static bool put_elements(struct parts *parts, const Py_buffer *view)
{
    struct element element = element_of(view);
    Py_ssize_t total = 1, index[BUFFER_DIMENSIONS] = {0}, stored = 0;
    if (element.letter && is_mapped(view->obj))
        element.letter = 0;
    for (int i = 0; i < view->ndim; i++)
        total *= view->shape[i];
    for (; element.letter && parts->depth > 0 && stored < total && stored < VALUE_ITEMS && fits(parts); stored++) {
        const char *at = view->buf;
        for (int i = 0; i < view->ndim; i++)
            at += index[i] * view->strides[i];
        if (!put_element(parts, &element, at))
            break;
        for (int i = view->ndim - 1; i >= 0 && ++index[i] == view->shape[i]; i--)
            index[i] = 0;
    }
    parts->full = false;
    parts->length = stored == total ? 0 : (uint64_t)total;
    return true;
}

/* How the first class in C gives a view, whatever those in Python have instead. */
static const PyBufferProcs *buffer_of(PyObject *object)
{
    PyObject *mro = Py_TYPE(object)->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        const PyTypeObject *type = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (!types_is_python(type))
            return type->tp_as_buffer != NULL && type->tp_as_buffer->bf_getbuffer != NULL ? type->tp_as_buffer : NULL;
    }
    return NULL;
}

static void let_view_go(PyObject *object, Py_buffer *view)
{
    const PyBufferProcs *procs = buffer_of(object);
    if (procs->bf_releasebuffer != NULL)
        procs->bf_releasebuffer(object, view);
    Py_CLEAR(view->obj);
}

/* No exception is on its way in an event; the one of a failed try goes. Some give no strides,
 * though they are asked for them (numpy.timedelta64). */
static bool get_view(PyObject *object, Py_buffer *view)
{
    const PyBufferProcs *procs = buffer_of(object);
    if (procs == NULL)
        return false;
    memset(view, 0, sizeof *view);
    if (procs->bf_getbuffer(object, view, PyBUF_RECORDS_RO) != 0) {
        PyErr_Clear();
        return false;
    }
    if (view->ndim == 0 || (view->shape != NULL && view->strides != NULL && view->suboffsets == NULL))
        return true;
    let_view_go(object, view);
    return false;
}

static bool put_shape(struct parts *parts, const Py_buffer *view)
{
    if (!fits(parts) || view->ndim > BUFFER_DIMENSIONS ||
        (size_t)(parts->limit - parts->p) < 2 * VALUE_ROOM_MIN + VALUE_TAIL + 14 * BUFFER_DIMENSIONS)
        return false;
    uint8_t *body = open_part(parts, NULL);
    parts->p = event_put(parts->p, VALUE_CONTAINER, CONTAINER_TUPLE);
    for (int i = 0; i < view->ndim; i++) {
        uint8_t *inner = value_open(parts->p, VALUE_ITEM);
        parts->p = value_close(inner, value_put_integer(inner, view->shape[i]));
    }
    close_part(parts, body);
    return true;
}

static bool put_view_of(struct parts *parts, const Py_buffer *view)
{
    char name[32];
    const char *format = view->format != NULL ? view->format : "B";
    size_t length = strnlen(format, sizeof name);
    if (length == sizeof name)
        return false;
    return put_bytes(parts, VALUE_TEXT, format, length) && put_integer(parts, NULL, view->itemsize) &&
           put_shape(parts, view) && put_elements(parts, view);
}

static bool put_array_of(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    Py_buffer view;
    if (!get_view(object, &view))
        return false;
    bool done = put_view_of(parts, &view);
    let_view_go(object, &view);
    return done;
}

/* memoryview: its own view, without asking anybody; a released one has none. */
static bool put_memory(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    const PyMemoryViewObject *memory = (PyMemoryViewObject *)object;
    const Py_buffer *view = &memory->view;
    if (memory->flags & (_Py_MEMORYVIEW_RELEASED | _Py_MEMORYVIEW_PIL) || memory->mbuf == NULL ||
        memory->mbuf->flags & _Py_MANAGED_BUFFER_RELEASED ||
        (view->ndim > 0 && (view->shape == NULL || view->strides == NULL)))
        return false;
    return put_view_of(parts, view);
}

/* array.array: its typecode, and its items; the format of its buffer is w for both u and w. */
static bool put_array(struct parts *parts, const struct family *Py_UNUSED(family), PyObject *object)
{
    Py_buffer view;
    if (!get_view(object, &view))
        return false;
    char letter = *((const struct array *)(const void *)object)->typecode;
    bool done;
    if (letter == 'u' || letter == 'w') {
        wchar_t characters[VALUE_ITEMS * 10];
        Py_ssize_t length = view.len / 4 < VALUE_ITEMS * 10 ? view.len / 4 : VALUE_ITEMS * 10, at = 0;
        done = put_bytes(parts, VALUE_TEXT, &letter, 1) && fits(parts);
        if (done && length > 0) {
            memcpy(characters, view.buf, (size_t)length * 4);
            uint8_t *body = open_part(parts, NULL), *text = wire_open(parts->p, VALUE_TEXT), *end = text;
            for (; at < length && parts->limit - end > VALUE_ROOM_MIN; at++)
                end += utf8_put(end, (uint32_t)characters[at] < 0x110000 ? (uint32_t)characters[at] : 0xfffd);
            parts->p = wire_close(text, end);
            if (at < view.len / 4)
                parts->p = event_put(parts->p, VALUE_LENGTH, (uint64_t)view.len / 4);
            close_part(parts, body);
        }
    } else {
        done = put_bytes(parts, VALUE_TEXT, &letter, 1) && put_elements(parts, &view);
    }
    let_view_go(object, &view);
    return done;
}

/* ---- the table ---------------------------------------------------------------------------- */

#define NAME(name) {.text = name}
#define BUILTIN(kind, shown, how, ...) {.type = &kind, .form = FORM_##shown, .put = how, ##__VA_ARGS__}
#define KNOWN(where, module_, name_, shown, how, ...) \
    {.module = NAME(module_), .global = NAME(name_), .origin = where, .form = FORM_##shown, .put = how, ##__VA_ARGS__}
#define HAVING(...) .members = {__VA_ARGS__}
#define SIZE(bytes) .size = bytes
#define LAYOUT(name) .size = sizeof(struct name), .proof = layouts_##name

/* A subclass comes before its base. */
static struct family families[] = {
    {.put = NULL}, /* 0: none */
    BUILTIN(PyComplex_Type, COMPLEX, put_complex),
    BUILTIN(PyRange_Type, CALL, put_range, HAVING(NAME("start"), NAME("stop"), NAME("step"))),
    BUILTIN(PySlice_Type, CALL, put_members, HAVING(NAME("start"), NAME("stop"), NAME("step"))),
    BUILTIN(PyByteArray_Type, CALL, put_bytearray),
    BUILTIN(PyMemoryView_Type, BUFFER, put_memory),
    BUILTIN(PyDictProxy_Type, MAPPING, put_proxy, SIZE(sizeof(struct proxy))),
    BUILTIN(PyDictKeys_Type, SEQUENCE, put_view),
    BUILTIN(PyDictValues_Type, SEQUENCE, put_view),
    BUILTIN(PyDictItems_Type, PAIRS, put_view),
    BUILTIN(_PyWeakref_RefType, REFERENCE, put_reference),
    BUILTIN(_PyWeakref_ProxyType, REFERENCE, put_reference),
    BUILTIN(_PyWeakref_CallableProxyType, REFERENCE, put_reference),
    BUILTIN(PyGen_Type, OBJECT, put_generator),
    BUILTIN(PyCoro_Type, OBJECT, put_generator),
    BUILTIN(PyAsyncGen_Type, OBJECT, put_generator),
    BUILTIN(PyCode_Type, CODE, put_code),
    BUILTIN(PyFrame_Type, FRAME, put_frame),
    BUILTIN(PyTraceBack_Type, FRAME, put_traceback),
    BUILTIN(PyContextVar_Type, STATE, put_variable),
    BUILTIN(PyODict_Type, MAPPING, put_ordered, LAYOUT(ordered)),
    KNOWN(IN_C, "types", "SimpleNamespace", CALL, put_namespace, HAVING(NAME("__dict__"))),
    KNOWN(IN_C, "datetime", "datetime", DATETIME, put_datetime, SIZE(sizeof(PyDateTime_DateTime))),
    KNOWN(IN_C, "datetime", "date", DATE, put_date, SIZE(sizeof(PyDateTime_Date))),
    KNOWN(IN_C, "datetime", "time", TIME, put_time, SIZE(sizeof(PyDateTime_Time))),
    KNOWN(IN_C, "datetime", "timedelta", TIMEDELTA, put_timedelta, SIZE(sizeof(PyDateTime_Delta))),
    KNOWN(IN_C, "datetime", "timezone", TIMEZONE, put_timezone, .size = sizeof(struct fixed_zone), .proof = layouts_timezone),
    KNOWN(IN_C, "zoneinfo", "ZoneInfo", QUALIFIED, put_keywords, HAVING(NAME("key"))),
    KNOWN(IN_C, "decimal", "Decimal", DECIMAL, put_decimal, LAYOUT(decimal)),
    KNOWN(IN_C, "collections", "deque", SEQUENCE, put_deque, LAYOUT(deque)),
    KNOWN(IN_C, "collections", "defaultdict", MAPPING, put_defaultdict, HAVING(NAME("default_factory"))),
    KNOWN(IN_C, "re", "Pattern", PATTERN, put_pattern, HAVING(NAME("pattern"), NAME("flags"))),
    KNOWN(IN_C, "re", "Match", MATCH, put_match, HAVING(NAME("string"), NAME("endpos"))),
    KNOWN(IN_C, "functools", "partial", QUALIFIED, put_partial,
          HAVING(NAME("func"), NAME("args"), NAME("keywords"))),
    KNOWN(IN_C, "array", "array", ARRAY, put_array, LAYOUT(array)),
    KNOWN(IN_C, "_thread", "LockType", LOCK, put_lock, .proof = layouts_lock, .name = "lock"),
    KNOWN(IN_C, "_thread", "RLock", LOCK, put_rlock, .size = sizeof(struct compat_rlock), .proof = layouts_rlock),
    KNOWN(IN_C, "_io", "TextIOWrapper", STATE, put_file, HAVING(NAME("encoding"))),
    KNOWN(IN_C, "_io", "BufferedReader", STATE, put_file),
    KNOWN(IN_C, "_io", "BufferedWriter", STATE, put_file),
    KNOWN(IN_C, "_io", "BufferedRandom", STATE, put_file),
    KNOWN(IN_C, "_io", "FileIO", STATE, put_file),
    KNOWN(IN_C, "_socket", "socket", STATE_LIST, put_socket, HAVING(NAME("family"), NAME("type"), NAME("proto"))),
    KNOWN(IN_C, "_asyncio", "Task", STATE, put_future, .name = "Task"),
    KNOWN(IN_C, "_asyncio", "Future", STATE, put_future, SIZE(sizeof(struct compat_future))),
    KNOWN(IN_PYTHON, "enum", "Enum", ENUM, put_enum, HAVING(NAME("_name_"), NAME("_value_"))),
    KNOWN(IN_PYTHON, "fractions", "Fraction", CALL, put_fraction, HAVING(NAME("_numerator"), NAME("_denominator"))),
    KNOWN(IN_PYTHON, "uuid", "UUID", UUID, put_uuid, HAVING(NAME("int"))),
    KNOWN(IN_PYTHON, "pathlib", "PurePosixPath", PATH, put_path, HAVING(NAME(COMPAT_PATH_PARTS))),
    KNOWN(IN_PYTHON, "collections", "Counter", COUNTER, put_counts),
    KNOWN(IN_PYTHON, "collections", "ChainMap", CALL, put_chain, HAVING(NAME("maps"))),
    KNOWN(IN_PYTHON, "threading", "Thread", THREAD, put_thread,
          HAVING(NAME("_name"), NAME("_daemonic"), NAME("_ident"))),
    KNOWN(IN_PYTHON, "ipaddress", "IPv4Interface", IPV4, put_interface, HAVING(NAME("_ip"), NAME("_prefixlen"))),
    KNOWN(IN_PYTHON, "ipaddress", "IPv6Interface", IPV6, put_interface,
          HAVING(NAME("_ip"), NAME("_prefixlen"), NAME("_scope_id"))),
    KNOWN(IN_PYTHON, "ipaddress", "IPv4Address", IPV4, put_ip, HAVING(NAME("_ip"))),
    KNOWN(IN_PYTHON, "ipaddress", "IPv6Address", IPV6, put_ip, HAVING(NAME("_ip"), NAME("_scope_id"))),
    KNOWN(IN_PYTHON, "ipaddress", "IPv4Network", IPV4, put_network,
          HAVING(NAME("network_address"), NAME("_prefixlen"))),
    KNOWN(IN_PYTHON, "ipaddress", "IPv6Network", IPV6, put_network,
          HAVING(NAME("network_address"), NAME("_prefixlen"))),
    KNOWN(IN_C, "mmap", "mmap", BUFFER, put_array_of),
    KNOWN(ANYWHERE, "numpy", "ndarray", BUFFER, put_array_of),
    KNOWN(ANYWHERE, "numpy", "number", BUFFER, put_array_of),
    KNOWN(ANYWHERE, "numpy", "bool", BUFFER, put_array_of),
    KNOWN(ANYWHERE, "numpy", "bool_", BUFFER, put_array_of),
};

enum { FAMILIES = sizeof families / sizeof *families };

static const char *last_name(const PyTypeObject *type)
{
    const char *dot = strrchr(type->tp_name, '.');
    return dot != NULL ? dot + 1 : type->tp_name;
}

/* The offset and type of a member, by the descriptor that the class or a base of it has. */
static void find_member(const PyTypeObject *type, struct family *family, int i)
{
    family->offsets[i] = 0;
    for (Py_ssize_t at = 0; type->tp_mro != NULL && at < PyTuple_GET_SIZE(type->tp_mro); at++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, at);
        PyObject *found = lookup_item(compat_type_dict(base), &family->members[i]);
        if (found == NULL)
            continue;
        if (Py_TYPE(found) == &PyMemberDescr_Type && PyDescr_TYPE(found) == base) {
            const PyMemberDef *defined = ((PyMemberDescrObject *)found)->d_member;
            family->offsets[i] = defined->offset;
            family->types[i] = defined->type;
        }
        return;
    }
}

/* True: the type is what the family is meant to be. Looks up its members. */
static bool is_as_expected(struct family *family, PyTypeObject *type)
{
    if (family->size && (size_t)type->tp_basicsize != family->size)
        return false;
    if (family->origin == IN_PYTHON) {
        static struct lookup_name file = {.text = "__file__"};
        char path[4200];
        PyObject *name = lookup_global(&family->module, &file);
        size_t length = name != NULL ? text_of(path, sizeof path - 1, name) : 0;
        path[length] = 0;
        if (!types_is_python(type) || !codes_is_stdlib(path))
            return false;
    } else if (types_is_python(type)) {
        return false;
    }
    for (int i = 0; i < MEMBERS && family->members[i].text != NULL; i++) {
        find_member(type, family, i);
        if (family->origin == IN_C && family->offsets[i] == 0)
            return false;
    }
    if (family->proof != NULL && family->proven != type && family->proof(type))
        family->proven = type;
    return family->proof == NULL || family->proven == type;
}

/* A type whose last name is this: is it the one of the family? *later: its module is there, but
 * does not have this name yet, as it is being imported. */
static bool is_family(struct family *family, PyTypeObject *type, const char *last, bool *later)
{
    if (family->module.text == NULL)
        return family->type == type && is_as_expected(family, type);
    const char *name = family->name != NULL ? family->name : family->global.text;
    if (*name != *last || strcmp(name, last) != 0)
        return false;
    PyObject *global = lookup_global(&family->module, &family->global);
    *later = *later || (global == NULL && lookup_module(&family->module) != NULL);
    if (global != (PyObject *)type || !is_as_expected(family, type))
        return false;
    family->type = type;
    return true;
}

static uint8_t known_find(PyTypeObject *type)
{
    PyObject *mro = type->tp_mro;
    bool later = false;
    uint8_t first = 0;
    for (Py_ssize_t i = 0; mro != NULL && i + 1 < PyTuple_GET_SIZE(mro); i++) { /* but object */
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        const char *last = last_name(base);
        for (uint8_t found = 1; found < FAMILIES; found++) {
            /* a member of an Enum is one, even if it is a Decimal, too */
            if ((first && families[found].form != FORM_ENUM) || !is_family(&families[found], base, last, &later))
                continue;
            if (!first || families[found].form == FORM_ENUM)
                first = found;
            break;
        }
    }
    return later ? FAMILY_LATER : first;
}

static const struct family *family_of_object(PyObject *object)
{
    const struct type_info *info = types_info(Py_TYPE(object));
    const struct family *family = info->kind == KIND_KNOWN ? &families[info->family] : NULL;
    return family != NULL && PyObject_TypeCheck(object, family->type) ? family : NULL;
}

/* No deeper than the decoder reads: each level of parts takes one of VALUE_DEPTH_MAX. */
#define DEEPEST (VALUE_DEPTH + 3 - VALUE_DEPTH_MAX)

static uint8_t *known_put(uint8_t *p, uint8_t *limit, uint8_t number, PyObject *object, const struct outer *outer, int depth)
{
    const struct family *family = &families[number];
    struct parts parts = {.limit = limit, .outer = outer, .depth = depth, .form = (uint8_t)family->form};
    if (depth < DEEPEST || !PyObject_TypeCheck(object, family->type))
        return NULL;
    STAT(value_known);
    uint8_t *form = event_put(p, VALUE_CONTAINER, CONTAINER_PARTS);
    parts.p = event_put(form, VALUE_FORM, parts.form);
    if (!family->put(&parts, family, object))
        return NULL;
    if (parts.form == FORM_QUALIFIED && Py_TYPE(object) != family->type)
        parts.form = FORM_CALL;
    event_put(form, VALUE_FORM, parts.form);
    return parts.length ? event_put(parts.p, VALUE_LENGTH, parts.length) : parts.p;
}

void known_prepare(void)
{
    types_find_known = known_find;
    values_put_known = known_put;
    (void)PyDateTimeAPI; /* datetime.h makes one, for programs that import it */
}
