/* Attributes and items of the program's objects by name, found without running its code.
 *
 * PyDict_GetItem and its kin compare keys by __eq__ if a key's class is the program's (a subclass
 * of str); PyObject_GetAttr runs descriptors and __getattr__. This file compares only exact
 * strings, and finds only entries of a module, of an object's dictionary or of its slots. It
 * allocates nothing but the names, once each, and changes no reference count, no exception and no
 * dictionary.
 */
#ifndef PYTRACE_LOOKUP_H
#define PYTRACE_LOOKUP_H

#include "record/pycompat.h"

#define LOOKUP_MOST 4096 /* entries of a dict with keys other than str that are compared at most */

/* A name in ASCII; its string is made at the first look-up, and kept. */
struct lookup_name {
    const char *text;
    PyObject *string;
};

/* The item of a dict by name; NULL: none, or no dict. Borrowed, like all results below. */
PyObject *lookup_item(PyObject *dict, struct lookup_name *name);
/* The same by an exact string whose hash is known, such as a name in a code object. */
PyObject *lookup_string(PyObject *dict, PyObject *string);
/* A module that the program has imported; NULL: not imported, or no module. */
PyObject *lookup_module(struct lookup_name *module);
/* The globals of the extension module that was compiled from this source file: its shared object
 * has the same name, and as many of the same folders as possible. NULL: there is none. */
PyObject *lookup_compiled(PyObject *source);
/* The global of such a module by name. */
PyObject *lookup_global(struct lookup_name *module, struct lookup_name *name);
/* An attribute in a slot (__slots__) or in the object's dictionary. */
PyObject *lookup_attribute(PyObject *object, struct lookup_name *name);
/* In the object's dictionary alone, whatever its class has. */
PyObject *lookup_instance(PyObject *object, struct lookup_name *name);

#endif
