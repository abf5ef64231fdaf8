/* Strings of the program as UTF-8; see text.h. */

#include "record/text.h"

#include "common/utf8.h"

size_t text_utf8(uint8_t *buffer, size_t size, PyObject *str, size_t characters, bool *cut)
{
    uint8_t *p = buffer;
    Py_ssize_t length = PyUnicode_GET_LENGTH(str), i = 0;
    int kind = PyUnicode_KIND(str);
    const void *data = PyUnicode_DATA(str);
    if (PyUnicode_IS_COMPACT_ASCII(str)) {
        size_t most = characters < size ? characters : size;
        *cut = (size_t)length > most;
        memcpy(buffer, data, *cut ? most : (size_t)length);
        return *cut ? most : (size_t)length;
    }
    for (; i < length && (size_t)i < characters; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, i);
        if (utf8_size(c) > size - (size_t)(p - buffer))
            break;
        p += utf8_put(p, c);
    }
    *cut = i < length;
    return (size_t)(p - buffer);
}

size_t text_of(char *buffer, size_t size, PyObject *object)
{
    bool cut;
    if (object == NULL || !PyUnicode_Check(object) || !compat_str_is_ready(object))
        return 0;
    return text_utf8((uint8_t *)buffer, size, object, size, &cut);
}

size_t text_most(PyObject *object, size_t size)
{
    size_t most = object != NULL && PyUnicode_Check(object) ? 4 * (size_t)PyUnicode_GET_LENGTH(object) : 0;
    return most < size ? most : size;
}

size_t text_qualified(char *buffer, size_t size, PyObject *module, PyObject *qualname)
{
    size_t length = size > 1 ? text_of(buffer, size - 1, module) : 0;
    if (length == 8 && memcmp(buffer, "builtins", 8) == 0)
        length = 0;
    if (length)
        buffer[length++] = '.';
    return length + text_of(buffer + length, size - length, qualname);
}
