/* The hook's data of each type: its number in the recording, and the way to read its objects. All
 * of it runs under the GIL. */
#ifndef PYTRACE_TYPES_H
#define PYTRACE_TYPES_H

#include "record/pycompat.h"

/* The way to read the content of an object. The first two are in this order: values_put_simple. */
enum type_kind {
    KIND_OBJECT,     /* not at all: type and address */
    KIND_ATTRIBUTES, /* an object of a class in Python, by its attributes: attributes.h */
    KIND_NONE,
    KIND_BOOL,
    KIND_INT,
    KIND_FLOAT,
    KIND_STR,
    KIND_BYTES,
    KIND_TUPLE,
    KIND_LIST,
    KIND_DICT,
    KIND_SET,
    KIND_EXCEPTION,
    KIND_KNOWN,  /* see known.h */
    KIND_FUNCTION,
    KIND_METHOD,
    KIND_BUILTIN,
    KIND_MODULE,
    KIND_CLASS,
    KIND_ELLIPSIS,
    KIND_NOT_IMPLEMENTED,
};

struct type_info {
    PyTypeObject *type;  /* for comparison only, like the next three */
    unsigned version;
    uint32_t layout;     /* of its attributes: attributes.c; 0: none yet */
    const void *name;
    Py_hash_t hash;      /* of its name and its module's */
    uint32_t number;     /* 0: not defined yet; see types_number */
    uint8_t kind;        /* enum type_kind */
    bool exact;          /* a built-in type itself, no subclass */
    uint8_t family;      /* of KIND_KNOWN: types_find_known's */
    uint8_t otherwise;   /* and the kind if an object is not as expected */
    uint8_t unversioned; /* values that came while the type had no version */
};

/* Types by address, with open addressing. A type may die, and another one take its place. Then the
 * version differs (it is unique if it is not 0, and changes with the type), or the name, the names'
 * hash, or the kind. */
struct type_table {
    struct type_info *slots;
    size_t mask, used; /* mask: slots - 1, their number being a power of two */
};
extern struct type_table types_table;

/* The family of a type that is known, or is derived from one that is; 0: none. See known.h.
 * FAMILY_LATER: none yet, ask again at its next value. */
#define FAMILY_LATER UINT8_MAX
extern uint8_t (*types_find_known)(PyTypeObject *type);

struct type_info *types_info_cold(PyTypeObject *type);

/* The slot of a type, or for it. */
static inline struct type_info *types_slot(const PyTypeObject *type)
{
    size_t at = (size_t)(((uint64_t)(uintptr_t)type >> 4) * 0x9E3779B97F4A7C15u >> 32) & types_table.mask;
    while (types_table.slots[at].type != type && types_table.slots[at].type != NULL)
        at = (at + 1) & types_table.mask;
    return &types_table.slots[at];
}

/* The data of a type. Valid until the next call. */
static inline struct type_info *types_info(PyTypeObject *type)
{
    struct type_info *info = types_slot(type);
    unsigned version = type->tp_version_tag;
    return info->type == type && info->version == version && version != 0 ? info : types_info_cold(type);
}

/* The number of a type, defined at first sight; 0: no room for its definition. */
uint32_t types_number(PyTypeObject *type);
/* The number of a type with such attributes (exact str), in this order; 0: as above. */
uint32_t types_define(PyTypeObject *type, PyObject *const *attributes, unsigned count);
#define TYPE_ATTRIBUTES_MAX 100 /* with them, the definition fits */

/* Before the first event. Objects of classes in Python have KIND_ATTRIBUTES from now on, or
 * KIND_OBJECT. 0, or -1 with a Python exception. */
int types_configure(bool attributes);

/* A class in Python? */
bool types_is_python(const PyTypeObject *type);

#endif
