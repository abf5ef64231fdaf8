/* Strings of the program as UTF-8. Only the characters of a str, or of a subclass, are read. */
#ifndef PYTRACE_TEXT_H
#define PYTRACE_TEXT_H

#include "record/pycompat.h"

/* UTF-8 of at most `characters` characters and `size` bytes of a str, lone surrogates as three
 * bytes. *cut tells whether anything was left out. */
size_t text_utf8(uint8_t *buffer, size_t size, PyObject *str, size_t characters, bool *cut);

/* UTF-8 of an object if it is a str, at most `size` bytes; else nothing. */
size_t text_of(char *buffer, size_t size, PyObject *object);
/* Bytes that text_of writes at most, if it may write `size`. */
size_t text_most(PyObject *object, size_t size);

/* A function's __module__ and __qualname__ in the form module.qualname, without `builtins`. Writes
 * at most `size` bytes, and returns their number. Objects that are no str are left out. */
size_t text_qualified(char *buffer, size_t size, PyObject *module, PyObject *qualname);

#endif
