/* Types: kinds and numbers; see types.h. */

#include "record/types.h"

#include "record/define.h"
#include "record/lookup.h"
#include "record/stats.h"
#include "record/text.h"

uint8_t (*types_find_known)(PyTypeObject *type);

static struct type_info no_types[1];
struct type_table types_table = {.slots = no_types, .mask = 0, .used = 1};

static bool types_grow(void)
{
    struct type_table old = types_table;
    size_t size = old.slots == no_types ? 256 : (old.mask + 1) * 2;
    struct type_info *slots = PyMem_RawCalloc(size, sizeof *slots);
    if (slots == NULL)
        return false;
    types_table = (struct type_table){slots, size - 1, old.slots == no_types ? 0 : old.used};
    if (old.slots == no_types)
        return true;
    for (size_t i = 0; i <= old.mask; i++)
        if (old.slots[i].type != NULL)
            *types_slot(old.slots[i].type) = old.slots[i];
    PyMem_RawFree(old.slots);
    return true;
}

static destructor python_dealloc; /* tp_dealloc that type.__new__ gives to all classes in Python */
static bool with_attributes;

bool types_is_python(const PyTypeObject *type)
{
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE && type->tp_dealloc == python_dealloc;
}

int types_configure(bool attributes)
{
    if (python_dealloc == NULL) {
        PyObject *made = PyObject_CallFunction((PyObject *)&PyType_Type, "s(){}", "made");
        if (made == NULL)
            return -1;
        python_dealloc = ((PyTypeObject *)made)->tp_dealloc;
        Py_DECREF(made);
    }
    for (size_t i = 0; with_attributes != attributes && i <= types_table.mask; i++)
        types_table.slots[i].version = 0; /* is classified anew */
    with_attributes = attributes;
    return 0;
}

static const struct {
    PyTypeObject *type;
    enum type_kind kind;
    bool subclasses; /* are read like it */
} kinds[] = {
    {&PyBool_Type, KIND_BOOL, false},
    {&PyLong_Type, KIND_INT, true},
    {&PyFloat_Type, KIND_FLOAT, true},
    {&PyUnicode_Type, KIND_STR, true},
    {&PyBytes_Type, KIND_BYTES, true},
    {&PyTuple_Type, KIND_TUPLE, true},
    {&PyList_Type, KIND_LIST, true},
    {&PyDict_Type, KIND_DICT, true},
    {&PySet_Type, KIND_SET, true},
    {&PyFrozenSet_Type, KIND_SET, true},
    {&PyType_Type, KIND_CLASS, true},
    {&PyFunction_Type, KIND_FUNCTION, false},
    {&PyMethod_Type, KIND_METHOD, false},
    {&PyCFunction_Type, KIND_BUILTIN, false},
    {&PyModule_Type, KIND_MODULE, false},
    {&PyEllipsis_Type, KIND_ELLIPSIS, false},
};

static void classify_builtin(struct type_info *info, PyTypeObject *type)
{
    if (type == Py_TYPE(Py_None) || type == Py_TYPE(Py_NotImplemented)) {
        info->kind = type == Py_TYPE(Py_None) ? KIND_NONE : KIND_NOT_IMPLEMENTED;
        info->exact = true;
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (type == kinds[i].type || (kinds[i].subclasses && PyType_IsSubtype(type, kinds[i].type))) {
            info->kind = (uint8_t)kinds[i].kind;
            info->exact = type == kinds[i].type;
            return;
        }
    if (PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS))
        info->kind = KIND_EXCEPTION;
    else
        info->kind = with_attributes && types_is_python(type) ? KIND_ATTRIBUTES : KIND_OBJECT;
}

/* False: it may be another one at the next value. */
static bool classify(struct type_info *info, PyTypeObject *type)
{
    classify_builtin(info, type);
    if (info->exact || (info->kind >= KIND_FUNCTION && info->kind <= KIND_NOT_IMPLEMENTED))
        return true;
    uint8_t family = types_find_known != NULL ? types_find_known(type) : 0;
    if (family == FAMILY_LATER)
        return false;
    if (family) {
        info->family = family;
        info->otherwise = info->kind;
        info->kind = KIND_KNOWN;
    }
    return true;
}

static PyObject *type_qualname(PyTypeObject *type)
{
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE ? ((PyHeapTypeObject *)type)->ht_qualname : NULL;
}

/* The module's name from the type, borrowed; NULL: none, or the type's name has it. */
static PyObject *type_module(PyTypeObject *type)
{
    static struct lookup_name name = {.text = "__module__"};
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE ? lookup_item(compat_type_dict(type), &name) : NULL;
}

static Py_hash_t text_hash(PyObject *text)
{
    return text != NULL && PyUnicode_CheckExact(text) ? PyObject_Hash(text) : 0;
}

/* The names of a named tuple's items, borrowed: a tuple of exact strings; NULL: it is none. */
static PyObject *fields_of(PyTypeObject *type)
{
    static struct lookup_name names = {.text = "_fields"};
    PyObject *mro = type->tp_mro;
    if (!PyType_IsSubtype(type, &PyTuple_Type))
        return NULL;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *fields = lookup_item(compat_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i)), &names);
        if (fields == NULL)
            continue;
        if (!PyTuple_CheckExact(fields) || PyTuple_GET_SIZE(fields) == 0)
            return NULL;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(fields); at++)
            if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(fields, at)))
                return NULL;
        return fields;
    }
    return NULL;
}

/* A type has no version until something is looked up in it. A type that changes again and again
 * should not run out of versions by our doing, so it gets one after many values. */
#define UNVERSIONED_MAX 32

static bool wants_version(const PyTypeObject *type, struct type_info *info)
{
    if (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)
        return true;
    if (info->type != type || ++info->unversioned < UNVERSIONED_MAX)
        return false;
    info->unversioned = 0;
    return true;
}

struct type_info *types_info_cold(PyTypeObject *type)
{
    STAT(type_looked);
    static struct type_info none; /* memory is short: an object of an unknown type */
    if (types_table.used * 2 > types_table.mask && !types_grow())
        return &none;
    struct type_info *info = types_slot(type);
    unsigned version = type->tp_version_tag;
    if (version == 0 && wants_version(type, info))
        version = compat_type_version(type); /* else each of its values would come here */
    if (info->type == type && info->version == version && version != 0)
        return info;
    PyObject *qualname = type_qualname(type);
    const void *name = qualname != NULL ? (const void *)qualname : type->tp_name;
    Py_hash_t hash = text_hash(qualname) ^ text_hash(type_module(type)) * 3;
    PyObject *fields = fields_of(type);
    for (Py_ssize_t i = 0; fields != NULL && i < PyTuple_GET_SIZE(fields); i++)
        hash = hash * 3 ^ text_hash(PyTuple_GET_ITEM(fields, i));
    struct type_info now = {.type = type, .name = name, .hash = hash};
    bool settled = classify(&now, type); /* even under the same name: it may be no int any more */
    if (info->type != type || info->name != name || info->hash != hash || info->kind != now.kind ||
        info->family != now.family || info->otherwise != now.otherwise) {
        types_table.used += info->type == NULL;
        now.layout = info->layout; /* is looked at again, as the version differs */
        *info = now;
    }
    info->version = settled ? version : 0;
    return info;
}

#define TYPE_NAME_MAX 1024
#define FIELDS_MAX 2048 /* bytes of all names of a named tuple's items */
#define ATTRIBUTE_NAME_MAX 200 /* bytes */

/* The names of a named tuple's items: all or none. */
static uint8_t *put_fields(uint8_t *p, PyObject *fields)
{
    uint8_t *start = p, *end = p + FIELDS_MAX;
    for (Py_ssize_t i = 0; fields != NULL && i < PyTuple_GET_SIZE(fields); i++) {
        size_t most = text_most(PyTuple_GET_ITEM(fields, i), FIELDS_MAX) + 2 * WIRE_CLOSE_MAX;
        if ((size_t)(end - p) < most)
            return start;
        p = define_text(p, 3, PyTuple_GET_ITEM(fields, i), most);
    }
    return p;
}

uint32_t types_define(PyTypeObject *type, PyObject *const *attributes, unsigned count)
{
    STAT(type_defined);
    char name[TYPE_NAME_MAX];
    size_t size, most = sizeof name + FIELDS_MAX + 64 + count * (size_t)(ATTRIBUTE_NAME_MAX + 2 + WIRE_CLOSE_MAX);
    PyObject *qualname = type_qualname(type);
    struct definition_writer writer;
    uint8_t *p = define_begin(&writer, DEFINITION_TYPE, most);
    if (p == NULL)
        return 0;
    if (qualname != NULL) {
        size = text_qualified(name, sizeof name, type_module(type), qualname);
    } else {
        size = strnlen(type->tp_name, sizeof name);
        memcpy(name, type->tp_name, size);
    }
    p = put_fields(wire_put_bytes(p, 2, name, size), fields_of(type));
    for (unsigned i = 0; i < count; i++)
        p = define_text(p, 4, attributes[i], ATTRIBUTE_NAME_MAX);
    return define_number(&writer, p);
}

uint32_t types_number(PyTypeObject *type)
{
    struct type_info *info = types_info(type);
    if (info->number == 0 && info->type != NULL)
        info->number = types_define(type, NULL, 0);
    return info->number;
}
