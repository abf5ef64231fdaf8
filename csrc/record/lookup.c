/* Look-ups by name that run no code; see lookup.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strchrnul */
#endif
#include "record/lookup.h"

#include <stdbool.h>
#include <string.h>
#include <structmember.h>

#include "record/stats.h"

static PyObject *string_of(struct lookup_name *name)
{
    if (name->string == NULL) {
        name->string = PyUnicode_InternFromString(name->text);
        if (name->string == NULL)
            PyErr_Clear();
        else
            PyObject_Hash(name->string); /* is known from now on */
    }
    return name->string;
}

/* Both are exact strings, and the key's hash is known, as that of each key. */
static bool same_name(PyObject *key, PyObject *string)
{
    return key == string || (((PyASCIIObject *)key)->hash == ((PyASCIIObject *)string)->hash &&
                             PyUnicode_Compare(key, string) == 0);
}

/* In a dict with other keys than exact strings. */
static PyObject *find_among_others(PyObject *dict, PyObject *string)
{
    STAT(name_looked);
    PyObject *key, *value;
    Py_ssize_t position = 0;
    for (int left = LOOKUP_MOST; left > 0 && PyDict_Next(dict, &position, &key, &value); left--)
        if (PyUnicode_CheckExact(key) && same_name(key, string))
            return value;
    return NULL;
}

PyObject *lookup_string(PyObject *dict, PyObject *string)
{
    return compat_dict_has_only_str(dict) ? PyDict_GetItemWithError(dict, string) : find_among_others(dict, string);
}

PyObject *lookup_item(PyObject *dict, struct lookup_name *name)
{
    PyObject *string;
    if (dict == NULL || !PyDict_Check(dict) || (string = string_of(name)) == NULL)
        return NULL;
    return lookup_string(dict, string);
}

PyObject *lookup_module(struct lookup_name *module)
{
    PyObject *found = lookup_item(PyImport_GetModuleDict(), module);
    return found != NULL && PyModule_Check(found) ? found : NULL;
}

PyObject *lookup_global(struct lookup_name *module, struct lookup_name *name)
{
    PyObject *found = lookup_module(module);
    return found != NULL ? lookup_item(PyModule_GetDict(found), name) : NULL;
}

/* How many of the last parts of two paths are the same, not counting what follows the first dot of
 * the last one: `src/pkg/mod.pyx`, `/lib/pkg/mod.cpython-313.so`: 2. */
static size_t same_parts(const char *one, const char *other)
{
    const char *last = strrchr(one, '/'), *last_of_other = strrchr(other, '/');
    const char *end = strchrnul(last != NULL ? last : one, '.');
    const char *end_of_other = strchrnul(last_of_other != NULL ? last_of_other : other, '.');
    size_t count = 0;
    for (;;) {
        bool starts = end == one || end[-1] == '/';
        if (starts || end_of_other == other || end_of_other[-1] == '/') {
            if (!starts || (end_of_other != other && end_of_other[-1] != '/'))
                return count;
            count++;
            if (end == one || end_of_other == other)
                return count;
        }
        if (*--end != *--end_of_other)
            return count;
    }
}

/* The text of an exact str of ASCII; NULL: it is another object. */
static const char *ascii(PyObject *text)
{
    return text != NULL && PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text) ? PyUnicode_DATA(text)
                                                                                          : NULL;
}

PyObject *lookup_compiled(PyObject *source)
{
    static struct lookup_name file = {.text = "__file__"};
    PyObject *modules = PyImport_GetModuleDict(), *module, *found = NULL; /* borrowed */
    const char *wanted = ascii(source);
    size_t most = 0;
    if (wanted == NULL || modules == NULL || !PyDict_CheckExact(modules))
        return NULL;
    for (Py_ssize_t at = 0; PyDict_Next(modules, &at, NULL, &module);) {
        PyObject *globals = PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
        const char *path = ascii(lookup_item(globals, &file));
        size_t size = path != NULL ? strlen(path) : 0;
        if (size < 3 || strcmp(path + size - 3, ".so") != 0)
            continue;
        size_t same = same_parts(wanted, path);
        if (same > most) {
            most = same;
            found = globals;
        }
    }
    return found;
}

/* The content of a slot of the object. A descriptor of another class is none of this object's. */
static PyObject *slot_content(PyObject *object, PyObject *descriptor)
{
    const PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
    if (!PyObject_TypeCheck(object, PyDescr_TYPE(descriptor)) ||
        (member->type != T_OBJECT_EX && member->type != T_OBJECT))
        return NULL;
    return *(PyObject **)((char *)object + member->offset);
}

PyObject *lookup_attribute(PyObject *object, struct lookup_name *name)
{
    PyObject *mro = Py_TYPE(object)->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *found = lookup_item(compat_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i)), name);
        if (found != NULL)
            return Py_TYPE(found) == &PyMemberDescr_Type ? slot_content(object, found) : NULL;
    }
    return lookup_instance(object, name);
}

PyObject *lookup_instance(PyObject *object, struct lookup_name *name)
{
    PyObject *string = string_of(name), *key, *value;
    if (string == NULL)
        return NULL;
    const PyDictValues *values = compat_inline_values(object);
    if (values == NULL)
        return lookup_item(compat_instance_dict(object), name);
    for (Py_ssize_t at = 0; (key = compat_inline_next(object, values, &at, &value)) != NULL;)
        if (same_name(key, string))
            return value;
    return NULL;
}
