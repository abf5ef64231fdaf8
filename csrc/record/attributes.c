/* Attributes of objects; see attributes.h. */

#include "record/attributes.h"

#include <structmember.h>

#include "record/lookup.h"
#include "record/secrets.h"
#include "record/stats.h"

/* ---- what is known of a type -------------------------------------------------------------- */

/* A row of names that objects of a type have. It holds references to them, so that another name
 * never has the address of one of them. */
struct shape {
    struct shape *next;
    Py_hash_t hash;
    uint32_t number; /* of the type with these names; 0: not defined yet */
    unsigned count;
    PyObject **names;
    uint8_t *places; /* in inline values, if the type's own keys are these; see find_placed */
    const PyDictKeysObject *keys; /* only compared; NULL: no places */
    bool secret[];   /* for each name; the places and the names stand behind it */
};

struct slot {
    PyObject *name; /* a reference */
    Py_ssize_t offset;
};

/* Where the attributes of a type's objects are. */
struct layout {
    unsigned version;     /* of the type when it was looked at */
    uint64_t mark;        /* differs if the type differs in what follows */
    struct slot *slots;
    size_t slot_count;
    struct shape *shapes; /* the one that was found last is the first */
    unsigned shape_count;
};

static struct layout *layouts; /* by type_info.layout - 1 */
static uint32_t layout_count, layout_room;

static uint64_t mixed(uint64_t mark, uint64_t word)
{
    mark = (mark ^ word) * 0x9E3779B97F4A7C15u;
    return mark ^ mark >> 29;
}

/* The slots that a class itself has, by the names in its ht_slots; NULL: none. */
static PyMemberDef *own_slots(const PyTypeObject *type, Py_ssize_t *count)
{
    PyObject *names = type->tp_flags & Py_TPFLAGS_HEAPTYPE ? ((PyHeapTypeObject *)type)->ht_slots : NULL;
    *count = names != NULL && PyTuple_CheckExact(names) ? PyTuple_GET_SIZE(names) : 0;
    return *count > 0 ? type->tp_members : NULL;
}

static PyObject *slot_name(const PyTypeObject *type, Py_ssize_t at)
{
    return PyTuple_GET_ITEM(((PyHeapTypeObject *)type)->ht_slots, at);
}

/* Names of slots are held by the layout: equal addresses mean equal names. */
static uint64_t mark_of(const struct type_info *info)
{
    uint64_t mark = mixed(mixed(1, (uintptr_t)info->name), (uint64_t)info->hash);
    for (const PyTypeObject *type = info->type; type != NULL; type = type->tp_base) {
        Py_ssize_t count;
        const PyMemberDef *members = own_slots(type, &count);
        for (Py_ssize_t i = 0; members != NULL && i < count; i++)
            mark = mixed(mixed(mark, (uintptr_t)slot_name(type, i)), (uint64_t)members[i].offset);
    }
    return mark;
}

static bool is_special(PyObject *name)
{
    Py_ssize_t size = PyUnicode_GET_LENGTH(name);
    return size > 4 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_' &&
           PyUnicode_READ_CHAR(name, size - 1) == '_' && PyUnicode_READ_CHAR(name, size - 2) == '_';
}

/* Adds a slot of a class, unless it is there or a derived class has another one of this name. */
static void add_slot(struct layout *layout, const PyTypeObject *type, Py_ssize_t at, const PyTypeObject *derived)
{
    PyObject *name = slot_name(type, at);
    const PyMemberDef *member = &type->tp_members[at];
    if (member->type != T_OBJECT_EX || !PyUnicode_CheckExact(name) || !compat_str_is_ready(name) || is_special(name))
        return;
    for (size_t i = 0; i < layout->slot_count; i++)
        if (layout->slots[i].offset == member->offset)
            return;
    for (const PyTypeObject *each = derived; each != type; each = each->tp_base) {
        Py_ssize_t count;
        const PyMemberDef *members = own_slots(each, &count);
        for (Py_ssize_t i = 0; members != NULL && i < count; i++)
            if (slot_name(each, i) == name) /* interned */
                return;
    }
    layout->slots[layout->slot_count++] = (struct slot){Py_NewRef(name), member->offset};
}

/* Is `name`, as it stands in __slots__, that of the slot? A private one has the class in front. */
static bool is_slot(PyObject *name, PyObject *slot)
{
    if (!PyUnicode_CheckExact(name) || !compat_str_is_ready(name))
        return false;
    Py_ssize_t size = PyUnicode_GET_LENGTH(name), more = PyUnicode_GET_LENGTH(slot) - size;
    if (more < 0 || (more > 0 && PyUnicode_READ_CHAR(slot, 0) != '_'))
        return false;
    for (Py_ssize_t i = 0; i < size; i++)
        if (PyUnicode_READ_CHAR(name, i) != PyUnicode_READ_CHAR(slot, more + i))
            return false;
    return more == 0 || (size > 2 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_');
}

static void add_named(struct layout *layout, const PyTypeObject *type, PyObject *name, const PyTypeObject *derived)
{
    Py_ssize_t count = PyTuple_GET_SIZE(((PyHeapTypeObject *)type)->ht_slots);
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyUnicode_CheckExact(slot_name(type, i)) && is_slot(name, slot_name(type, i))) {
            add_slot(layout, type, i, derived);
            return;
        }
}

/* Adds the slots of a class behind those of the classes that it is derived from. ht_slots is
 * sorted; __slots__ has them as they were declared, if it still is what it was. */
static void add_slots(struct layout *layout, const PyTypeObject *type, const PyTypeObject *derived)
{
    static struct lookup_name slots = {.text = "__slots__"};
    Py_ssize_t count, position = 0;
    if (type->tp_base != NULL)
        add_slots(layout, type->tp_base, derived);
    if (own_slots(type, &count) == NULL)
        return;
    PyObject *declared = lookup_item(type->tp_dict, &slots), *name, *value;
    if (declared != NULL && (PyTuple_CheckExact(declared) || PyList_CheckExact(declared)))
        for (Py_ssize_t i = 0; i < Py_SIZE(declared); i++)
            add_named(layout, type,
                      PyTuple_Check(declared) ? PyTuple_GET_ITEM(declared, i) : PyList_GET_ITEM(declared, i), derived);
    else if (declared != NULL && PyDict_CheckExact(declared))
        while (PyDict_Next(declared, &position, &name, &value))
            add_named(layout, type, name, derived);
    for (Py_ssize_t i = 0; i < count; i++)
        add_slot(layout, type, i, derived);
}

static void forget_shapes(struct layout *layout)
{
    for (struct shape *shape = layout->shapes, *next; shape != NULL; shape = next) {
        next = shape->next;
        for (unsigned i = 0; i < shape->count; i++)
            Py_DECREF(shape->names[i]);
        PyMem_RawFree(shape);
    }
    layout->shapes = NULL;
    layout->shape_count = 0;
}

static bool layout_make(struct layout *layout, const struct type_info *info, uint64_t mark)
{
    forget_shapes(layout);
    for (size_t i = 0; i < layout->slot_count; i++)
        Py_DECREF(layout->slots[i].name);
    PyMem_RawFree(layout->slots);
    layout->slots = NULL;
    layout->slot_count = 0;
    layout->mark = 0;
    size_t room = 0;
    for (const PyTypeObject *type = info->type; type != NULL; type = type->tp_base) {
        Py_ssize_t count;
        if (own_slots(type, &count) != NULL)
            room += (size_t)count;
    }
    if (room > 0 && (layout->slots = PyMem_RawMalloc(room * sizeof *layout->slots)) == NULL)
        return false;
    if (room > 0)
        add_slots(layout, info->type, info->type);
    layout->mark = mark;
    return true;
}

/* NULL: memory is short. */
static struct layout *layout_of(struct type_info *info)
{
    if (info->layout != 0 && layouts[info->layout - 1].version == info->version && info->version != 0)
        return &layouts[info->layout - 1];
    STAT(layout_looked);
    if (info->layout == 0) {
        if (info->type == NULL)
            return NULL;
        if (layout_count == layout_room) {
            uint32_t room = layout_room > 0 ? layout_room * 2 : 64;
            struct layout *larger = PyMem_RawRealloc(layouts, room * sizeof *layouts);
            if (larger == NULL)
                return NULL;
            layouts = larger;
            layout_room = room;
        }
        layouts[layout_count] = (struct layout){0};
        info->layout = ++layout_count;
    }
    struct layout *layout = &layouts[info->layout - 1];
    uint64_t mark = mark_of(info);
    if (layout->mark != mark && !layout_make(layout, info, mark))
        return NULL;
    for (struct shape *shape = layout->shapes; shape != NULL; shape = shape->next)
        shape->keys = NULL; /* those of another type may have the same address */
    layout->version = info->version;
    return layout;
}

/* ---- what an object has ------------------------------------------------------------------- */

/* Both are exact strings. */
static bool same_name(PyObject *one, PyObject *other)
{
    return one == other || (PyObject_Hash(one) == PyObject_Hash(other) && PyUnicode_Compare(one, other) == 0);
}

#define PASSED_OVER_MAX 64 /* keys of a dictionary that are no names */

/* Finds the first attributes and their names. */
static void gather(struct attributes *found, PyObject **names, PyObject *object, const struct layout *layout,
                   unsigned most)
{
    unsigned count = 0;
    uint64_t total = 0;
    for (size_t i = 0; i < layout->slot_count; i++) {
        PyObject *value = *(PyObject **)((char *)object + layout->slots[i].offset);
        if (value == NULL)
            continue;
        total++;
        if (count < most) {
            names[count] = layout->slots[i].name;
            found->values[count++] = value;
        }
    }
    const PyDictValues *inlined = compat_inline_values(object);
    PyObject *dict = inlined == NULL ? compat_instance_dict(object) : NULL, *name, *value;
    if (inlined != NULL) {
        Py_ssize_t set = compat_inline_count(inlined);
        total += (uint64_t)set;
        for (Py_ssize_t at = 0; at < set && count < most; at++)
            if ((name = compat_inline_set(object, inlined, at, &value)) != NULL) {
                names[count] = name;
                found->values[count++] = value;
            }
    } else if (dict != NULL && PyDict_Check(dict)) {
        Py_ssize_t position = 0, passed_over = 0;
        while (count < most && passed_over < PASSED_OVER_MAX && PyDict_Next(dict, &position, &name, &value)) {
            if (!PyUnicode_CheckExact(name) || !compat_str_is_ready(name)) {
                passed_over++;
                continue;
            }
            names[count] = name;
            found->values[count++] = value;
        }
        total += (uint64_t)(PyDict_GET_SIZE(dict) - passed_over);
    }
    found->count = count;
    found->total = total;
}

static bool has_same(const struct shape *shape, PyObject *const *names, unsigned count)
{
    if (shape->count != count)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (shape->names[i] != names[i])
            return false;
    return true;
}

static bool has_equal(const struct shape *shape, PyObject *const *names, unsigned count)
{
    if (shape->count != count)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!same_name(shape->names[i], names[i]))
            return false;
    return true;
}

static struct shape *make_shape(PyObject *const *names, unsigned count, Py_hash_t hash)
{
    STAT(shape_made);
    size_t flags = (2 * count + sizeof(PyObject *) - 1) / sizeof(PyObject *) * sizeof(PyObject *);
    struct shape *shape = PyMem_RawMalloc(sizeof *shape + flags + count * sizeof *names);
    if (shape == NULL)
        return NULL;
    *shape = (struct shape){.hash = hash, .count = count};
    shape->places = (uint8_t *)shape->secret + count;
    shape->names = (PyObject **)((char *)shape->secret + flags);
    for (unsigned i = 0; i < count; i++) {
        shape->names[i] = Py_NewRef(names[i]);
        shape->secret[i] = secrets_match(names[i]);
    }
    return shape;
}

/* The shape with these names, made if it is new; NULL: memory is short, or there are too many. */
static struct shape *shape_of(struct layout *layout, PyObject *const *names, unsigned count)
{
    struct shape *shape = layout->shapes;
    if (shape != NULL && has_same(shape, names, count))
        return shape;
    STAT(shape_looked);
    Py_hash_t hash = (Py_hash_t)count;
    for (unsigned i = 0; i < count; i++)
        hash = (Py_hash_t)mixed((uint64_t)hash, (uint64_t)PyObject_Hash(names[i]));
    struct shape **place = &layout->shapes;
    while (*place != NULL && !((*place)->hash == hash && has_equal(*place, names, count)))
        place = &(*place)->next;
    shape = *place;
    if (shape != NULL) {
        *place = shape->next;
    } else {
        if (layout->shape_count == SHAPES_MAX || (shape = make_shape(names, count, hash)) == NULL)
            return NULL;
        layout->shape_count++;
    }
    shape->next = layout->shapes;
    return layout->shapes = shape;
}

/* ---- the quick way ------------------------------------------------------------------------- */

/* Most objects have their attributes in the same places of their inline values, set in the same
 * order, as an object that was read before: then the names are the same, too, as a type's keys only
 * become more. */
#define PLACED_MAX 4 /* shapes that are compared */

static void keep_places(struct shape *shape, PyObject *object, const struct layout *layout)
{
    const PyDictValues *inlined = layout->slot_count == 0 ? compat_inline_values(object) : NULL;
    for (unsigned at = 0; inlined != NULL && at < shape->count; at++) {
        Py_ssize_t place = compat_inline_place(inlined, at);
        PyObject *value;
        if (place > UINT8_MAX || compat_inline_set(object, inlined, at, &value) == NULL)
            return;
        shape->places[at] = (uint8_t)place;
    }
    shape->keys = inlined != NULL ? compat_inline_keys(object) : NULL;
}

/* The shape of an object, and the object's values; NULL: none of those that were used last. */
static const struct shape *find_placed(struct attributes *found, PyObject *object, const struct layout *layout,
                                       unsigned most)
{
    const PyDictValues *inlined = compat_inline_values(object);
    if (inlined == NULL)
        return NULL;
    const PyDictKeysObject *keys = compat_inline_keys(object);
    unsigned total = (unsigned)compat_inline_count(inlined), count = total < most ? total : most;
    const struct shape *shape = layout->shapes;
    for (int left = PLACED_MAX; shape != NULL && left > 0; shape = shape->next, left--) {
        unsigned at = 0;
        if (shape->count != count || shape->keys != keys)
            continue;
        for (; at < count && compat_inline_place(inlined, at) == shape->places[at]; at++)
            if ((found->values[at] = inlined->values[shape->places[at]]) == NULL)
                break;
        if (at < count)
            continue;
        found->count = count;
        found->total = total;
        return shape;
    }
    return NULL;
}

bool attributes_read(struct attributes *found, PyObject *object, struct type_info *info, unsigned most)
{
    PyObject *names[TYPE_ATTRIBUTES_MAX];
    struct layout *layout = layout_of(info);
    if (layout == NULL)
        return false;
    const struct shape *placed = find_placed(found, object, layout, most);
    if (placed != NULL && placed->number != 0) {
        found->type = placed->number;
        found->secret = placed->secret;
        return true;
    }
    gather(found, names, object, layout, most);
    struct shape *shape = found->count > 0 ? shape_of(layout, names, found->count) : NULL;
    if (shape == NULL)
        return false;
    keep_places(shape, object, layout);
    if (shape->number == 0)
        shape->number = types_define(Py_TYPE(object), shape->names, shape->count);
    found->type = shape->number;
    found->secret = shape->secret;
    return shape->number != 0;
}

void attributes_judge_names(void)
{
    for (uint32_t at = 0; at < layout_count; at++)
        for (struct shape *shape = layouts[at].shapes; shape != NULL; shape = shape->next)
            for (unsigned i = 0; i < shape->count; i++)
                shape->secret[i] = secrets_match(shape->names[i]);
}
