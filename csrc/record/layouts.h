/* Layouts of CPython's objects that no header has, and the proof of each: an object of the type is
 * made, and must lie in memory as it should. What fails is not read.
 *
 * Each function takes the type, which must be the exact one in C; it may call this type and those
 * in C that belong to it, but nothing of the program's. False: another layout, or memory is short.
 */
#ifndef PYTRACE_RECORD_LAYOUTS_H
#define PYTRACE_RECORD_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/pycompat.h"

/* Modules/_datetimemodule.c */
struct fixed_zone {
    PyObject_HEAD
    PyObject *offset, *name;
};

bool layouts_timezone(PyTypeObject *type);

/* Modules/_decimal: an mpd_t of 19 digits a word. */
#define DECIMAL_INSIDE 4 /* words in the object itself */
#define DECIMAL_DIGITS 19

struct decimal {
    PyObject_HEAD
    Py_hash_t hash;
    uint8_t flags;
    Py_ssize_t exponent, digits, length, allocated;
    uint64_t *words;
    uint64_t inside[DECIMAL_INSIDE];
};

bool layouts_decimal(PyTypeObject *type);

/* Modules/_collectionsmodule.c */
#define DEQUE_BLOCK 64
#define DEQUE_FREE 16

struct deque_block {
    struct deque_block *left;
    PyObject *data[DEQUE_BLOCK];
    struct deque_block *right;
};

struct deque {
    PyObject_VAR_HEAD
    struct deque_block *left, *right;
    Py_ssize_t left_index, right_index;
    size_t state;
    Py_ssize_t longest;
    Py_ssize_t free_count;
    struct deque_block *free[DEQUE_FREE];
    PyObject *references;
};

bool layouts_deque(PyTypeObject *type);

/* Objects/odictobject.c */
struct ordered_node {
    PyObject *key;
    Py_hash_t hash;
    struct ordered_node *next, *previous;
};

struct ordered {
    PyDictObject dict;
    struct ordered_node *first, *last;
    struct ordered_node **nodes;
    Py_ssize_t nodes_size;
    void *keys; /* of the dict, when the nodes were made */
    size_t state;
    PyObject *instance_dict, *references;
};

bool layouts_ordered(PyTypeObject *type);

/* Modules/arraymodule.c */
struct array {
    PyObject_VAR_HEAD
    char *items;
    Py_ssize_t allocated;
    const char *typecode;
    PyObject *references;
    Py_ssize_t exports;
};

bool layouts_array(PyTypeObject *type);

/* struct compat_lock and struct compat_rlock of the version */
bool layouts_lock(PyTypeObject *type);
bool layouts_rlock(PyTypeObject *type);

#endif
