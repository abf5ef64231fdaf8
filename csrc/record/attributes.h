/* The attributes of objects whose class is written in Python, read from where the interpreter keeps
 * them: slots, inline values, the dictionary. Called by values.c.
 *
 * No code of the program runs: no property, descriptor or __getattr__ is asked, so that a
 * half-built object is as good as any. The names and their order are a part of the definition of a
 * type (proto/trace.proto, Type.attribute), so that a value has only the attributes' values. A type
 * gets a definition for each row of names that its objects have; after SHAPES_MAX of them its
 * objects with other names are shown without attributes. All of it runs under the GIL.
 */
#ifndef PYTRACE_ATTRIBUTES_H
#define PYTRACE_ATTRIBUTES_H

#include "record/types.h"

#define SHAPES_MAX 256

struct attributes {
    uint32_t type;      /* the number of the type with their names */
    unsigned count;     /* of the following */
    uint64_t total;     /* how many the object has */
    const bool *secret; /* the name looks like that of a secret. Valid until the next call */
    /* Borrowed: slots by class and declaration, then the others as they were set. */
    PyObject *values[TYPE_ATTRIBUTES_MAX];
};

/* The first `most` attributes of an object, whose type has KIND_ATTRIBUTES. False: it has none, or
 * there is no room for a definition now. Names that are no exact str, and those of slots like
 * __this__, are passed over. */
bool attributes_read(struct attributes *found, PyObject *object, struct type_info *info, unsigned most);

/* Judges again which names look secret. */
void attributes_judge_names(void);

#endif
